//! The preflight. It checks what the published study told its readers to check. Each check is a small
//! function over [`Facts`], which are gathered once. So every verdict can be tested on any machine.

mod checks;
mod facts;
pub(crate) mod machine;

pub(crate) use facts::{Facts, Plan};

use crate::json::Json;
use std::borrow::Cow;

/// How much a finding matters to the figures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Verdict {
    Good,
    /// Nothing to be done, but a reader of the figures should know.
    Note,
    /// The figures will suffer.
    Warning,
    /// The run cannot work.
    Problem,
}

impl Verdict {
    const ALL: [Verdict; 4] = [Verdict::Good, Verdict::Note, Verdict::Warning, Verdict::Problem];

    pub(crate) fn named(name: &str) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Good => "ok",
            Verdict::Note => "note",
            Verdict::Warning => "warning",
            Verdict::Problem => "problem",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    /// The name of the check, for example `open files`.
    pub check: Cow<'static, str>,
    pub verdict: Verdict,
    /// What the check found.
    pub found: String,
    /// What to change, if anything.
    pub advice: Option<String>,
}

impl Finding {
    fn good(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check: check.into(), verdict: Verdict::Good, found: found.into(), advice: None }
    }

    fn note(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Note, ..Finding::good(check, found) }
    }

    fn with(
        check: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { check: check.into(), verdict, found: found.into(), advice: Some(advice.into()) }
    }

    pub(crate) fn to_json(&self) -> Json {
        Json::object([
            ("check", self.check.as_ref().into()),
            ("verdict", self.verdict.name().into()),
            ("found", self.found.as_str().into()),
            ("advice", self.advice.as_deref().into()),
        ])
    }
}

/// Checks this machine for a run.
pub(crate) fn examine(plan: &Plan) -> Vec<Finding> {
    checks::all(&Facts::gather(plan), plan)
}

/// The findings as text, `verbose` with the good ones too.
pub(crate) fn to_text(findings: &[Finding], verbose: bool) -> String {
    let mut text = String::new();
    for finding in findings {
        if !verbose && finding.verdict <= Verdict::Note {
            continue;
        }
        text.push_str(&format!("{:>8}  {}: {}\n", finding.verdict.name(), finding.check, finding.found));
        if let Some(advice) = &finding.advice {
            text.push_str(&format!("          -> {advice}\n"));
        }
    }
    text
}

//! What the rules find, what is excepted from them, and what is still to be mended.

use std::collections::BTreeMap;

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// From the root of the workspace, with slashes.
    pub path: String,
    pub line: usize,
    pub rule: &'static str,
    /// What an exception names: a function, a type, the beginning of a line.
    pub item: String,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl Finding {
    fn shown(&self) -> String {
        format!("{}:{}: {}: {} [{}]", self.path, self.line, self.rule, self.message, self.item)
    }

    /// The part of the workspace that the baseline counts together: a crate, or a folder of the root. Not a
    /// file, so that a file can be moved while its findings are still to be mended.
    fn area(&self) -> String {
        let mut parts = self.path.split('/');
        match (parts.next(), parts.next()) {
            (Some("crates"), Some(name)) => format!("crates/{name}"),
            (Some(folder), Some(_)) => folder.to_owned(),
            _ => ".".to_owned(),
        }
    }
}

/// What is to be said about the findings.
#[derive(Debug)]
pub struct Judgement {
    pub failures: Vec<String>,
    /// Findings that the baseline allows for now.
    pub remaining: usize,
}

struct Exception {
    rule: String,
    path: String,
    item: String,
    reason: String,
    line: usize,
}

/// The lines of a list that are not empty and no comment, each with its number.
pub fn entries(list: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = list.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// `rule | path | item | reason`, one a line. An item may hold the separator; a reason may not.
fn exceptions(list: &str, failures: &mut Vec<String>) -> Vec<Exception> {
    let mut all = Vec::new();
    for (number, line) in entries(list) {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [rule, path, item @ .., reason] = parts.as_slice() else {
            failures.push(format!("exceptions.txt:{number}: not of the form `rule | path | item | reason`"));
            continue;
        };
        if item.is_empty() || reason.split_whitespace().count() < 3 {
            failures
                .push(format!("exceptions.txt:{number}: an exception without a reason; say why it must be"));
            continue;
        }
        let (rule, path, reason) = ((*rule).to_owned(), (*path).to_owned(), (*reason).to_owned());
        all.push(Exception { rule, path, item: item.join(" | "), reason, line: number });
    }
    all
}

type Counts = BTreeMap<(String, String), usize>;

fn baseline_counts(list: &str, failures: &mut Vec<String>) -> Counts {
    let mut counts = Counts::new();
    for (number, line) in entries(list) {
        let mut parts = line.split_whitespace();
        let parsed = (parts.next(), parts.next(), parts.next().and_then(|count| count.parse().ok()));
        let (Some(rule), Some(area), Some(count)) = parsed else {
            failures.push(format!("baseline.txt:{number}: not of the form `rule area count`"));
            continue;
        };
        counts.insert((rule.to_owned(), area.to_owned()), count);
    }
    counts
}

/// The findings that no exception covers, and failures about exceptions that cover nothing.
fn without_exceptions<'a>(
    found: &'a [Finding],
    list: &str,
    failures: &mut Vec<String>,
) -> BTreeMap<(String, String), Vec<&'a Finding>> {
    let exceptions = exceptions(list, failures);
    let mut used = vec![false; exceptions.len()];
    let mut left: BTreeMap<(String, String), Vec<&Finding>> = BTreeMap::new();
    for finding in found {
        let covering = exceptions.iter().position(|exception| {
            exception.rule == finding.rule && exception.path == finding.path && exception.item == finding.item
        });
        match covering {
            Some(index) => used[index] = true,
            None => left.entry((finding.rule.to_owned(), finding.area())).or_default().push(finding),
        }
    }
    for (exception, _) in exceptions.iter().zip(used).filter(|(_, used)| !used) {
        let Exception { rule, path, item, reason, line } = exception;
        failures.push(format!(
            "exceptions.txt:{line}: `{rule}` no longer finds `{item}` in {path} (\"{reason}\"): take the line out"
        ));
    }
    left
}

/// What fails. With `only`, every finding below that path fails, whatever the baseline says; nothing else
/// does.
pub fn judge(found: &[Finding], exceptions: &str, baseline: &str, only: Option<&str>) -> Judgement {
    let mut failures = Vec::new();
    let left = without_exceptions(found, exceptions, &mut failures);
    let counts = baseline_counts(baseline, &mut failures);
    let mut remaining = 0;
    if only.is_some() {
        failures.clear();
    }
    for ((rule, area), findings) in left {
        if let Some(only) = only {
            let shown = findings.iter().filter(|finding| finding.path.starts_with(only));
            failures.extend(shown.map(|finding| finding.shown()));
            continue;
        }
        let allowed = counts.get(&(rule.clone(), area.clone())).copied().unwrap_or(0);
        if findings.len() <= allowed {
            remaining += findings.len();
            continue;
        }
        failures.extend(findings.iter().map(|finding| finding.shown()));
        if allowed > 0 {
            let count = findings.len();
            failures.push(format!("{area}: {count} of `{rule}`, and the baseline allows {allowed}"));
        }
    }
    Judgement { failures, remaining }
}

/// The baseline with each number lowered to what is found; no number rises.
pub fn lower_baseline(found: &[Finding], exceptions: &str, baseline: &str) -> String {
    let left = without_exceptions(found, exceptions, &mut Vec::new());
    let mut text: String =
        baseline.lines().take_while(|line| line.starts_with('#')).fold(String::new(), |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        });
    for ((rule, area), count) in baseline_counts(baseline, &mut Vec::new()) {
        let now = left.get(&(rule.clone(), area.clone())).map_or(0, Vec::len);
        let lowered = count.min(now);
        if lowered > 0 {
            text.push_str(&format!("{rule} {area} {lowered}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, item: &str) -> Finding {
        Finding { path: path.into(), line: 1, rule: "rule", item: item.into(), message: "wrong".into() }
    }

    #[test]
    fn a_finding_fails_unless_it_is_an_exception_with_a_reason() {
        let found = [finding("crates/a/src/lib.rs", "item")];
        assert_eq!(judge(&found, "", "", None).failures.len(), 1);
        let excepted = "rule | crates/a/src/lib.rs | item | it has to be so";
        assert!(judge(&found, excepted, "", None).failures.is_empty());
        let unreasoned = "rule | crates/a/src/lib.rs | item | ";
        assert_eq!(judge(&found, unreasoned, "", None).failures.len(), 2);
    }

    #[test]
    fn an_exception_that_no_longer_occurs_fails() {
        let stale = "rule | crates/a/src/lib.rs | item | it has to be so";
        let failures = judge(&[], stale, "", None).failures;
        assert!(failures[0].contains("no longer finds"), "{failures:?}");
    }

    #[test]
    fn the_baseline_allows_its_number_and_no_more() {
        let found = [finding("crates/a/src/lib.rs", "one"), finding("crates/a/src/lib.rs", "two")];
        assert!(judge(&found, "", "rule crates/a 2", None).failures.is_empty());
        assert!(judge(&found, "", "rule crates/a 3", None).failures.is_empty());
        assert!(!judge(&found, "", "rule crates/a 1", None).failures.is_empty());
        assert!(!judge(&found, "", "rule crates/b 2", None).failures.is_empty());
        assert_eq!(judge(&found, "", "rule crates/a 2", Some("crates/a")).failures.len(), 2);
        assert_eq!(lower_baseline(&found, "", "# Head.\nrule crates/a 3"), "# Head.\nrule crates/a 2\n");
        assert_eq!(lower_baseline(&found, "", "rule crates/a 1"), "rule crates/a 1\n");
    }
}

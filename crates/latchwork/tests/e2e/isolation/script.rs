//! Isolation scripts: their text and their expectations. docs/isolation.md describes the format.

use super::Level;
use crate::support::target::Target;
use std::collections::{BTreeMap, BTreeSet};

/// A script as its file has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    pub name: String,
    pub levels: Vec<Level>,
    pub setup: Vec<String>,
    /// Everything after the setup: comments and steps.
    pub parts: Vec<Part>,
    /// The lines before the first step, unchanged.
    head: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A comment or an empty line.
    Text(String),
    Step(Step),
}

/// A session sends a statement to the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub session: String,
    pub sql: String,
    pub expectations: Vec<Expectation>,
}

/// What is seen after a step: its own outcome, or the answer to a session that had been waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expectation {
    pub levels: Vec<Level>,
    /// `latchwork:reason`: Latchwork's outcome, where it differs from MariaDB's on purpose.
    pub reason: Option<String>,
    /// A session that waited until this step. `None` for the step's own session.
    pub session: Option<String>,
    pub outcome: String,
}

/// What one run saw: the outcomes of each step, by session.
pub type Transcript = Vec<BTreeMap<String, String>>;

const LATCHWORK: &str = "latchwork:";

impl Script {
    pub fn parse(name: &str, text: &str) -> Result<Script, String> {
        let mut script = Script {
            name: name.to_string(),
            levels: Level::ALL.to_vec(),
            setup: Vec::new(),
            parts: Vec::new(),
            head: Vec::new(),
        };
        for (number, line) in text.lines().enumerate() {
            script.line(line).map_err(|why| format!("{name}, line {}: {why}", number + 1))?;
        }
        Ok(script)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(expectation) = line.strip_prefix("    ") {
            let expectation = Expectation::parse(expectation, &self.levels)?;
            let Some(Part::Step(step)) = self.parts.last_mut() else {
                return Err("an expectation without a step".to_string());
            };
            step.expectations.push(expectation);
            return Ok(());
        }
        let pair = line.split_once(": ").filter(|_| !line.starts_with('#'));
        match pair {
            Some(("levels", levels)) => {
                self.levels = levels.split(' ').map(Level::parse).collect::<Result<_, _>>()?;
            }
            Some(("setup", sql)) => self.setup.push(sql.to_string()),
            Some((session, sql)) => {
                let is_session = session.len() == 2 && session.starts_with('s');
                if !is_session {
                    return Err(format!("'{session}' is no session; they are s1 to s9"));
                }
                let step =
                    Step { session: session.to_string(), sql: sql.to_string(), expectations: Vec::new() };
                self.parts.push(Part::Step(step));
                return Ok(());
            }
            None if line.is_empty() || line.starts_with('#') => {}
            None => return Err(format!("'{line}' is no step, no comment, no expectation")),
        }
        if self.parts.iter().any(|part| matches!(part, Part::Step(_))) {
            if pair.is_some() {
                return Err("levels and setup come before the first step".to_string());
            }
            self.parts.push(Part::Text(line.to_string()));
        } else {
            self.head.push(line.to_string());
        }
        Ok(())
    }

    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.parts.iter().filter_map(|part| match part {
            Part::Step(step) => Some(step),
            Part::Text(_) => None,
        })
    }

    pub fn sessions(&self) -> BTreeSet<String> {
        self.steps().map(|step| step.session.clone()).collect()
    }

    /// The reasons why Latchwork differs in this script.
    pub fn reasons(&self) -> BTreeSet<String> {
        self.steps().flat_map(|step| &step.expectations).filter_map(|line| line.reason.clone()).collect()
    }

    /// What a run on `target` should see. Late answers are expected only from sessions that should be waiting
    /// then.
    pub fn expected(&self, level: Level, target: Target) -> Transcript {
        let mut waiting: BTreeSet<&str> = BTreeSet::new();
        let mut transcript = Transcript::new();
        for step in self.steps() {
            let mut seen = BTreeMap::new();
            let own = step.outcome(None, level, target).unwrap_or_default();
            if waiting.contains(step.session.as_str()) {
                seen.insert(step.session.clone(), super::NOT_SENT.to_string());
            } else {
                seen.insert(step.session.clone(), own.clone());
                if own == super::WAITS {
                    waiting.insert(&step.session);
                }
            }
            for session in waiting.clone() {
                if let Some(outcome) = step.outcome(Some(session), level, target) {
                    waiting.remove(session);
                    seen.insert(session.to_string(), outcome);
                }
            }
            transcript.push(seen);
        }
        transcript
    }

    /// The same script with the expectations that these runs on MariaDB gave. Latchwork's expectations stay.
    pub fn recorded(&self, runs: &BTreeMap<Level, Transcript>) -> Script {
        let mut script = self.clone();
        let mut position = 0;
        for part in &mut script.parts {
            let Part::Step(step) = part else { continue };
            let latchwork = step.expectations.iter().filter(|line| line.reason.is_some()).cloned();
            let latchwork: Vec<Expectation> = latchwork.collect();
            let mut lines: Vec<Expectation> = Vec::new();
            for (level, transcript) in runs {
                for (session, outcome) in &transcript[position] {
                    let session = Some(session.clone()).filter(|session| *session != step.session);
                    let same =
                        lines.iter_mut().find(|line| line.session == session && line.outcome == *outcome);
                    match same {
                        Some(line) => line.levels.push(*level),
                        None => lines.push(Expectation {
                            levels: vec![*level],
                            reason: None,
                            session,
                            outcome: outcome.clone(),
                        }),
                    }
                }
            }
            lines.extend(latchwork);
            lines.sort_by_key(|line| (line.session.clone(), line.reason.is_some()));
            step.expectations = lines;
            position += 1;
        }
        script
    }

    /// The text as a file has it.
    pub fn to_text(&self) -> String {
        let mut lines = self.head.clone();
        for part in &self.parts {
            match part {
                Part::Text(text) => lines.push(text.clone()),
                Part::Step(step) => {
                    lines.push(format!("{}: {}", step.session, step.sql));
                    lines.extend(step.expectations.iter().map(|line| line.to_text(&self.levels)));
                }
            }
        }
        lines.join("\n") + "\n"
    }
}

impl Step {
    /// The outcome of the step's own session, or of one that waited.
    fn outcome(&self, session: Option<&str>, level: Level, target: Target) -> Option<String> {
        let applies =
            |line: &&Expectation| line.session.as_deref() == session && line.levels.contains(&level);
        let mut lines = self.expectations.iter().filter(applies);
        let found = match target {
            Target::MariaDb => lines.find(|line| line.reason.is_none()),
            Target::Latchwork => lines.max_by_key(|line| line.reason.is_some()),
        };
        found.map(|line| line.outcome.clone())
    }
}

impl Expectation {
    fn parse(text: &str, all: &[Level]) -> Result<Expectation, String> {
        let (words, outcome) = match text.strip_prefix("-> ") {
            Some(outcome) => ("", outcome),
            None => text.split_once(" -> ").ok_or("an expectation has an arrow")?,
        };
        let mut line =
            Expectation { levels: Vec::new(), reason: None, session: None, outcome: outcome.to_string() };
        for word in words.split_whitespace() {
            if let Some(reason) = word.strip_prefix(LATCHWORK) {
                line.reason = Some(reason.to_string());
            } else if word.starts_with('s') {
                line.session = Some(word.to_string());
            } else {
                line.levels.push(Level::parse(word)?);
            }
        }
        if line.levels.is_empty() {
            line.levels = all.to_vec();
        }
        Ok(line)
    }

    fn to_text(&self, all: &[Level]) -> String {
        let mut words: Vec<String> = Vec::new();
        if self.levels != all {
            words.extend(self.levels.iter().map(|level| level.short().to_string()));
        }
        words.extend(self.reason.iter().map(|reason| format!("{LATCHWORK}{reason}")));
        words.extend(self.session.clone());
        words.push(format!("-> {}", self.outcome));
        format!("    {}", words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A title
levels: RC SE
setup: CREATE TABLE t (id INT PRIMARY KEY)

# What s1 does first
s1: DELETE FROM t
    -> ok, 1 row
s2: SELECT * FROM t
    RC -> (1)
    SE -> waits
    SE latchwork:a-reason -> (1)
s1: COMMIT
    -> ok
    SE s2 -> no rows
";

    #[test]
    fn a_script_is_written_as_it_was_read() {
        let script = Script::parse("x", TEXT).unwrap();
        assert_eq!(script.to_text(), TEXT);
        assert_eq!(script.reasons(), BTreeSet::from(["a-reason".to_string()]));
        let runs = Level::ALL[1..].iter().filter(|level| script.levels.contains(level));
        let runs = runs.map(|level| (*level, script.expected(*level, Target::MariaDb))).collect();
        assert_eq!(script.recorded(&runs).to_text(), TEXT);
    }

    #[test]
    fn a_session_answers_later_only_where_it_should_be_waiting() {
        let script = Script::parse("x", TEXT).unwrap();
        let last = |level, target| script.expected(level, target).pop().unwrap();
        let step = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(session, outcome)| (session.to_string(), outcome.to_string())).collect()
        };
        let alone: BTreeMap<String, String> = step(&[("s1", "ok")]);
        assert_eq!(last(Level::ReadCommitted, Target::MariaDb), alone);
        assert_eq!(last(Level::Serializable, Target::MariaDb), step(&[("s1", "ok"), ("s2", "no rows")]));
        assert_eq!(last(Level::Serializable, Target::Latchwork), alone);
    }

    #[test]
    fn a_script_that_makes_no_sense_is_refused_with_its_line() {
        for (text, why) in [
            ("    -> ok\n", "line 1: an expectation without a step"),
            ("s1: BEGIN\n    ok\n", "line 2: an expectation has an arrow"),
            ("s1: BEGIN\n    XX -> ok\n", "line 2: 'XX' is no level"),
            ("s1: BEGIN\nsetup: BEGIN\n", "line 2: levels and setup come before"),
            ("t1: BEGIN\n", "line 1: 't1' is no session"),
        ] {
            let error = Script::parse("x", text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}

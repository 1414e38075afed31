//! The findings of the rules, and the exceptions from the rules.

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

/// What fails: findings that no exception covers, and exceptions that cover nothing. With `only`, the
/// findings below that path alone.
pub fn judge(found: &[Finding], list: &str, only: Option<&str>) -> Vec<String> {
    let mut failures = Vec::new();
    let exceptions = exceptions(list, &mut failures);
    let mut used = vec![false; exceptions.len()];
    let mut left = Vec::new();
    for finding in found {
        let covering = exceptions.iter().position(|exception| {
            exception.rule == finding.rule && exception.path == finding.path && exception.item == finding.item
        });
        match covering {
            Some(index) => used[index] = true,
            None => left.push(finding),
        }
    }
    if let Some(only) = only {
        let below = left.iter().filter(|finding| finding.path.starts_with(only));
        return below.map(|finding| finding.shown()).collect();
    }
    for (exception, _) in exceptions.iter().zip(used).filter(|(_, used)| !used) {
        let Exception { rule, path, item, reason, line } = exception;
        failures.push(format!(
            "exceptions.txt:{line}: `{rule}` no longer finds `{item}` in {path} (\"{reason}\"): take the line out"
        ));
    }
    failures.extend(left.iter().map(|finding| finding.shown()));
    failures
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
        assert_eq!(judge(&found, "", None).len(), 1);
        let excepted = "rule | crates/a/src/lib.rs | item | it has to be so";
        assert!(judge(&found, excepted, None).is_empty());
        let unreasoned = "rule | crates/a/src/lib.rs | item | ";
        assert_eq!(judge(&found, unreasoned, None).len(), 2);
    }

    #[test]
    fn an_exception_that_no_longer_occurs_fails() {
        let stale = "rule | crates/a/src/lib.rs | item | it has to be so";
        let failures = judge(&[], stale, None);
        assert!(failures[0].contains("no longer finds"), "{failures:?}");
    }

    #[test]
    fn only_what_is_below_a_path_is_shown_if_a_path_is_given() {
        let found = [finding("crates/a/src/lib.rs", "one"), finding("crates/b/src/lib.rs", "two")];
        assert_eq!(judge(&found, "", None).len(), 2);
        assert_eq!(judge(&found, "", Some("crates/a")).len(), 1);
    }
}

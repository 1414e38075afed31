//! The differences that are meant, or known and not mended.

use super::outcome::is_of_values;
use std::collections::BTreeMap;

const LIST: &str = include_str!("../../differences.txt");

/// An entry of the list: a kind of difference, and what the smallest statement looks like. `*` stands for
/// anything.
#[derive(Clone, Debug)]
struct Entry {
    kind: &'static str,
    statement: &'static str,
}

impl Entry {
    /// True if the values of rows differ.
    fn is_of_values(&self) -> bool {
        matches!(self.kind, "rows" | "rows*")
    }
}

/// True for what a change shows of a value that differs: another row, another number of rows, a key or a
/// column that takes one of the values only, or that warns of one of them.
fn is_of_changed_values(kind: &str) -> bool {
    let code = kind
        .strip_prefix("error none / ")
        .or_else(|| kind.strip_prefix("error ").and_then(|rest| rest.strip_suffix(" / none")));
    kind == "affected rows"
        || kind.starts_with("changed rows")
        || kind.starts_with("warnings")
        || code.and_then(|code| code.parse().ok()).is_some_and(is_of_values)
}

/// The list, and how often each entry was met.
#[derive(Clone, Debug)]
pub struct Known {
    entries: Vec<Entry>,
    met: BTreeMap<usize, u64>,
}

impl Known {
    /// # Panics
    /// On a line that is no entry.
    pub fn read() -> Known {
        let lines = LIST.lines().filter_map(|line| line.strip_prefix("    "));
        let entry = |line: &'static str| {
            let (kind, statement) = line.split_once(" | ").unwrap_or_else(|| panic!("no entry: {line}"));
            Entry { kind: kind.trim(), statement: statement.trim() }
        };
        Known { entries: lines.map(entry).collect(), met: BTreeMap::new() }
    }

    /// True if the difference is listed.
    pub fn has(&mut self, kind: &str, statement: &str) -> bool {
        let fits = |entry: &Entry| {
            let same_kind = matches(entry.kind, kind) || entry.is_of_values() && is_of_changed_values(kind);
            same_kind && matches(entry.statement, statement)
        };
        let Some(position) = self.entries.iter().position(fits) else {
            return false;
        };
        *self.met.entry(position).or_default() += 1;
        true
    }

    pub fn times_met(&self) -> u64 {
        self.met.values().sum()
    }
}

/// True if the text is the pattern, where `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, fits) in [
            ("rows", "rows", true),
            ("rows", "rows: order", false),
            ("rows*", "rows: order", true),
            ("SELECT *TIME* FROM t1", "SELECT TIME(a) FROM t1", true),
            ("SELECT *TIME* FROM t1", "SELECT TIME(a) FROM t2", false),
            ("*a*a*", "bab", false),
            ("*a*a*", "aba", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_value_that_differs_is_one_wherever_it_goes() {
        for kind in [
            "affected rows",
            "changed rows",
            "changed rows: number",
            "error none / 1062",
            "error 1048 / none",
        ] {
            assert!(is_of_changed_values(kind), "{kind}");
        }
        for kind in ["rows: order", "error none / 1064", "error 1064 / 1062", "column name"] {
            assert!(!is_of_changed_values(kind), "{kind}");
        }
    }

    #[test]
    fn the_list_can_be_read() {
        assert!(!Known::read().has("no such kind", "SELECT 1"));
    }
}

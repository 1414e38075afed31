//! A structure on disk has a table of its bytes in its module's docs, and a `const` assertion of its size.
//!
//! `formats.txt` lists the modules. A module with a magic number or a version that is not listed is found
//! too.

use crate::comments::Line;
use crate::facts::Constant;
use crate::finding::{Finding, entries};
use crate::workspace::{Kind, Workspace};

const LIST: &str = "tests/tidy/formats.txt";

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    let mut report = |path: &str, line, item: &str, message: &str| {
        let (path, item, message) = (path.to_owned(), item.to_owned(), message.to_owned());
        found.push(Finding { path, line, rule: "format", item, message });
    };
    let listed: Vec<(usize, &str)> = entries(workspace.list("formats.txt")).collect();
    for (number, path) in &listed {
        let Some(source) = workspace.sources.iter().find(|source| source.path == *path) else {
            report(LIST, *number, path, "there is no such file; correct the entry or take it out");
            continue;
        };
        if !source.facts.asserts {
            report(path, 1, "assertion", "no `const _: () = assert!(...)` of the structure's size; add one");
        }
        if !has_byte_table(&source.comments) {
            report(path, 1, "byte table", "no table of the bytes in the module's docs; add one");
        }
    }
    for source in workspace.sources.iter().filter(|source| source.kind == Kind::Product) {
        if listed.iter().any(|(_, path)| *path == source.path) {
            continue;
        }
        let constants = source.facts.constants.iter().filter(|constant| source.is_product(&constant.place));
        for constant in constants.filter(|constant| marks_a_format(constant)) {
            let message = "looks like a format on disk; list its module in formats.txt, or say in \
                           exceptions.txt what it is instead";
            report(&source.path, constant.place.line, &constant.name, message);
        }
    }
}

/// A magic number or a version: an integer of fixed width or bytes.
fn marks_a_format(constant: &Constant) -> bool {
    let last = constant.name.rsplit('_').next().unwrap_or_default();
    matches!(last, "MAGIC" | "VERSION" | "FORMAT")
        && matches!(constant.type_name.as_str(), "u8" | "u16" | "u32" | "u64" | "[u8]")
}

/// At least two lines of docs that begin with a position, a row `| 8 | ...` or `8 ...` in a block of text;
/// or, for what has no fixed positions, two lines in a table or a block with the width of a field, as `u32`
/// or `4 bytes`.
fn has_byte_table(comments: &[Line]) -> bool {
    let mut fenced = false;
    let mut rows = 0;
    for line in comments.iter().filter(|line| line.doc) {
        if line.text.starts_with("```") {
            fenced = !fenced;
        }
        let in_table = fenced || line.text.starts_with('|');
        rows += usize::from(in_table && (begins_with_position(&line.text) || has_width(&line.text)));
    }
    rows >= 2
}

fn has_width(text: &str) -> bool {
    let mut words = text.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| matches!(word, "u8" | "u16" | "u32" | "u64" | "i64" | "byte" | "bytes"))
}

fn begins_with_position(text: &str) -> bool {
    let row = text.trim_start_matches('|').trim_start();
    let Some(first) = row.split_whitespace().next() else { return false };
    let is_position = first.chars().all(|letter| letter.is_ascii_digit() || letter == '.' || letter == '+');
    let is_list = first.ends_with('.') && first.starts_with(|letter: char| letter.is_ascii_digit());
    is_position && !is_list && row.split_whitespace().count() >= 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    const PATH: &str = "crates/a/src/format.rs";
    const LISTED: (&str, &str) = ("tests/tidy/formats.txt", "crates/a/src/format.rs\n");
    const TABLE: &str =
        "//! | byte | size | field |\n//! |---|---|---|\n//! | 0 | 4 | one |\n//! | 4 | 4 | two |\n";

    #[test]
    fn a_structure_on_disk_has_a_table_and_an_assertion() {
        let whole = format!("{TABLE}const MAGIC: u64 = 1;\nconst _: () = assert!(BYTES == 8);");
        assert!(items_found(check, &[LISTED, (PATH, &whole)]).is_empty());
        let text = "//! ```text\n//!  0  checksum u32\n//!  4  format u8 the format\n//! ```\n\
                    const _: () = assert!(1 == 1);";
        assert!(items_found(check, &[LISTED, (PATH, text)]).is_empty());
        assert_eq!(items_found(check, &[LISTED, (PATH, TABLE)]), ["assertion"]);
        assert_eq!(items_found(check, &[LISTED, (PATH, "const _: () = assert!(1 == 1);")]), ["byte table"]);
        let errors = "/// 1105 for bytes.\nfn a() {}\n/// 1105 for bytes.\nconst _: () = assert!(1 == 1);";
        assert_eq!(items_found(check, &[LISTED, (PATH, errors)]), ["byte table"]);
        let list = "//! 1. One two three.\n//! 2. Four five six.\nconst _: () = assert!(1 == 1);";
        assert_eq!(items_found(check, &[LISTED, (PATH, list)]), ["byte table"]);
    }

    #[test]
    fn a_version_in_a_module_that_is_not_listed_is_found() {
        assert_eq!(items_found(check, &[(PATH, "const RECORD_VERSION: u8 = 1;")]), ["RECORD_VERSION"]);
        assert_eq!(items_found(check, &[(PATH, "const MAGIC: [u8; 8] = *b\"12345678\";")]), ["MAGIC"]);
        let others = "const VERSION: &str = \"10\";\nconst FORMAT: usize = 4;\nconst VERSIONS: u64 = 3;";
        assert!(items_found(check, &[(PATH, others)]).is_empty());
        assert_eq!(items_found(check, &[LISTED]), ["crates/a/src/format.rs"]);
    }
}

//! What the documents name is there: `engine/tree/batch.rs::lookup_many` is a file with that item, and a link
//! to a source or to a document leads to one.
//!
//! A path between backticks begins at the root of the workspace, or with a crate's folder and goes on below
//! its `src`. In a document of a crate the end of the path of one of the crate's files is enough, and
//! elsewhere too if there is no item behind it. Blocks of code are not read.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::workspace::{Document, Source, Workspace};

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    let paths: BTreeSet<&str> = (workspace.sources.iter().map(|source| source.path.as_str()))
        .chain(workspace.documents.iter().map(|document| document.path.as_str()))
        .collect();
    for document in &workspace.documents {
        let mut report = |line, item: &str, message: &str| {
            let (path, item, message) = (document.path.clone(), item.to_owned(), message.to_owned());
            found.push(Finding { path, line, rule: "document", item, message });
        };
        for (line, text) in lines(&document.text) {
            for span in spans(text) {
                let (path, item) = span.split_once("::").unwrap_or((span, ""));
                if !is_source(path) {
                    continue;
                }
                match named(workspace, document, path, !item.is_empty()) {
                    None => report(line, span, "there is no such file; name the one that is meant"),
                    Some(source) if !item.is_empty() && !has_item(source, item) => {
                        report(line, span, "the file has no such item; name the one that is meant");
                    }
                    Some(_) => {}
                }
            }
            for target in links(text) {
                if (target.ends_with(".md") || target.ends_with(".rs"))
                    && !paths.contains(beside(&document.path, target).as_str())
                {
                    report(line, target, "the link leads nowhere; mend it");
                }
            }
        }
    }
}

/// The lines outside blocks of code, counted from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((index + 1, line))
    })
}

/// What stands between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of the links to files, without the place in the file.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter(|target| !target.contains("://"));
    files.map(|target| target.split('#').next().unwrap_or_default())
}

fn is_source(path: &str) -> bool {
    path.ends_with(".rs")
        && path.chars().all(|letter| letter.is_ascii_alphanumeric() || "/_-.".contains(letter))
}

/// The file that a document means by `path`.
fn named<'w>(
    workspace: &'w Workspace,
    document: &Document,
    path: &str,
    has_item: bool,
) -> Option<&'w Source> {
    let below_src = path.split_once('/').map(|(krate, rest)| format!("crates/{krate}/src/{rest}"));
    let at = |source: &&Source| source.path == path || source.path.strip_prefix("crates/") == Some(path);
    let exact = |source: &&Source| at(source) || Some(&source.path) == below_src.as_ref();
    if let Some(source) = workspace.sources.iter().find(exact) {
        return Some(source);
    }
    let own = document.path.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    if own.is_none() && has_item {
        return None;
    }
    let is_own = |source: &&Source| own.is_none_or(|krate| source.krate == krate);
    let ends_so = |source: &&Source| source.path.strip_suffix(path).is_some_and(|head| head.ends_with('/'));
    workspace.sources.iter().filter(is_own).find(ends_so)
}

/// A function, method, type, constant, static or module of that name. Of a path only the last part is looked
/// for.
fn has_item(source: &Source, item: &str) -> bool {
    let facts = &source.facts;
    let wanted = last_part(item);
    facts.functions.iter().any(|function| last_part(&function.name) == wanted)
        || facts.items.iter().any(|item| item.name == wanted)
        || facts.constants.iter().any(|constant| constant.name == wanted)
        || facts.modules.iter().any(|module| module.name == wanted)
}

fn last_part(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// The path that a link in `document` to `target` leads to, from the root of the workspace.
fn beside(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    const SOURCE: (&str, &str) = (
        "crates/tree/src/leaf/find.rs",
        "const SLOTS: usize = 1;\nstruct Leaf;\nimpl Leaf { fn find(&self) {} }\nfn split() {}",
    );

    fn found_in(path: &str, text: &str) -> Vec<String> {
        items_found(check, &[SOURCE, (path, text)])
    }

    #[test]
    fn an_item_that_a_document_names_is_in_the_file() {
        let there = "`tree/leaf/find.rs::find`, `tree/leaf/find.rs::Leaf::find`, `tree/leaf/find.rs::split`,\n\
                     | `tree/leaf/find.rs::SLOTS` | `crates/tree/src/leaf/find.rs::Leaf` | `tree/src/leaf/find.rs` |";
        assert!(found_in("README.md", there).is_empty());
        assert_eq!(found_in("README.md", "`tree/leaf/find.rs::merge`"), ["tree/leaf/find.rs::merge"]);
        assert_eq!(found_in("docs/a.md", "| `tree/find.rs::find` |"), ["tree/find.rs::find"]);
    }

    #[test]
    fn a_document_of_a_crate_may_leave_the_beginning_of_a_path_out() {
        assert!(found_in("crates/tree/README.md", "`find.rs`, `leaf/find.rs::split`").is_empty());
        assert!(found_in("docs/a.md", "`find.rs`").is_empty());
        assert_eq!(found_in("docs/a.md", "`find.rs::split`"), ["find.rs::split"]);
        assert_eq!(found_in("crates/tree/README.md", "`split.rs`"), ["split.rs"]);
        assert_eq!(found_in("crates/other/README.md", "`find.rs`"), ["find.rs"]);
        assert!(found_in("docs/a.md", "```\n`gone.rs`\n```\n`not a file.rs`").is_empty());
    }

    #[test]
    fn a_link_leads_to_a_file() {
        let there =
            "[a](../crates/tree/src/leaf/find.rs), [b](a.md#part), [c](https://x.org/y.md), [d](../LICENSE)";
        assert!(found_in("docs/a.md", there).is_empty());
        assert_eq!(found_in("docs/a.md", "[b](b.md#part)"), ["b.md"]);
    }
}

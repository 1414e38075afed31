//! One module a rule. Each reads the workspace and adds its findings.

pub mod columns;
pub mod crates;
pub mod documents;
pub mod formats;
pub mod layers;
pub mod random;
pub mod sizes;
pub mod tables;
pub mod unused;
pub mod words;

use crate::finding::Finding;
use crate::workspace::Workspace;

pub type Rule = fn(&Workspace, &mut Vec<Finding>);

pub const ALL: &[Rule] = &[
    columns::check,
    crates::check,
    documents::check,
    formats::check,
    layers::check,
    random::check,
    sizes::check,
    tables::check,
    unused::check,
    words::check,
];

/// What a rule finds in made-up files: the items.
#[cfg(test)]
pub fn items_found(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    rule(&Workspace::made_up(files), &mut found);
    found.sort();
    found.into_iter().map(|finding| finding.item).collect()
}

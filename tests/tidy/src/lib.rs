//! The rules of the house, as a test: `cargo test -p latchwork-tidy`.
//!
//! Each rule reads the sources of the whole workspace and says where they break it, with file and line, what
//! is wrong and what to do. `rules` has one module a rule, each with canaries: made-up sources that must
//! fail and others that must pass. The lists that the rules obey are text files beside this crate's
//! `Cargo.toml`:
//!
//! | file | what it lists |
//! |---|---|
//! | `layers.txt` | which crate may use which, and the layers of modules inside a crate, bottom to top |
//! | `formats.txt` | the modules that define a structure on disk |
//! | `tables.txt` | the tables whose matches must name every case |
//! | `exceptions.txt` | what may break a rule, each with its reason |
//!
//! `LATCHWORK_TIDY=crates/sql cargo test -p latchwork-tidy` shows the findings below a path alone.
#![cfg(test)]

mod comments;
mod facts;
mod finding;
mod rules;
mod workspace;

use finding::Finding;
use workspace::Workspace;

/// The findings of the rules in the workspace, sorted by file and line.
fn findings(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in rules::ALL {
        rule(workspace, &mut found);
    }
    found.sort();
    found
}

#[test]
fn the_workspace_keeps_the_rules_of_the_house() {
    let workspace = Workspace::read();
    let found = findings(&workspace);
    let only = std::env::var("LATCHWORK_TIDY").ok();
    let failures = finding::judge(&found, workspace.list("exceptions.txt"), only.as_deref());
    assert!(failures.is_empty(), "\n{}\n\n{} to mend\n", failures.join("\n"), failures.len());
}

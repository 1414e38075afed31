//! The rules of the house, as a test: `cargo test -p latchwork-tidy`.
//!
//! Each rule reads the sources of the whole workspace and says where they break it, with file and line, what
//! is wrong and what to do. [`rules`] has one module a rule, each with canaries: made-up sources that must
//! fail and others that must pass. The lists that the rules obey are text files beside this crate's
//! `Cargo.toml`:
//!
//! | file | what it lists |
//! |---|---|
//! | `layers.txt` | which crate may use which, and the layers of modules inside a crate, bottom to top |
//! | `formats.txt` | the modules that define a structure on disk |
//! | `tables.txt` | the tables whose matches must name every case |
//! | `exceptions.txt` | what may break a rule, each with its reason |
//! | `baseline.txt` | how many findings each area still has; the numbers may only fall |
//!
//! `LATCHWORK_TIDY=crates/sql cargo test -p latchwork-tidy` shows every finding below a path, the baseline's
//! too. `LATCHWORK_UPDATE=1` lowers the numbers of the baseline to what is found.
#![cfg(test)]

mod comments;
mod facts;
mod finding;
mod rules;
mod workspace;

use finding::{Finding, Judgement};
use workspace::Workspace;

/// What the rules find in the workspace, sorted by file and line.
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
    let baseline_path = workspace::lists_folder().join("baseline.txt");
    let exceptions = workspace.list("exceptions.txt");
    let baseline = workspace.list("baseline.txt");
    let only = std::env::var("LATCHWORK_TIDY").ok();
    if std::env::var_os("LATCHWORK_UPDATE").is_some() && baseline_path.exists() {
        let lowered = finding::lower_baseline(&found, exceptions, baseline);
        std::fs::write(&baseline_path, lowered).expect("baseline.txt can be written");
        return;
    }
    let Judgement { failures, remaining } = finding::judge(&found, exceptions, baseline, only.as_deref());
    assert!(failures.is_empty(), "\n{}\n\n{} to mend\n", failures.join("\n"), failures.len());
    if remaining > 0 {
        println!("{remaining} findings of the baseline remain");
    }
}

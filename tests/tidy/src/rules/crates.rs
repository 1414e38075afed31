//! A crate uses only the crates that `layers.txt` allows it.
//!
//! The section `[crates]` lists them bottom to top: a crate, a colon, and what it may depend on, all of it
//! from lines above. The compiler sees to it that code uses nothing that is not in `Cargo.toml`. Dependencies
//! of tests are free.

use std::collections::BTreeSet;

use crate::finding::{Finding, entries};
use crate::workspace::Workspace;

const LIST: &str = "tests/tidy/layers.txt";

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    let mut report = |path: &str, line, item: String, message: String| {
        found.push(Finding { path: path.to_owned(), line, rule: "crate-layers", item, message });
    };
    let mut above: BTreeSet<&str> = BTreeSet::new();
    let mut section = "";
    for (line, entry) in entries(workspace.list("layers.txt")) {
        if entry.starts_with('[') {
            section = entry;
            continue;
        }
        if section != "[crates]" {
            continue;
        }
        let (name, allowed) = entry.split_once(':').unwrap_or((entry, ""));
        let allowed: BTreeSet<&str> = allowed.split_whitespace().collect();
        for upper in allowed.difference(&above) {
            report(
                LIST,
                line,
                format!("{name} -> {upper}"),
                "lists are bottom to top: use what stands above".into(),
            );
        }
        above.insert(name);
        let path = format!("crates/{name}/Cargo.toml");
        let Some(manifest) = workspace.manifests.get(name) else {
            report(LIST, line, name.to_owned(), "there is no such crate; take the line out".into());
            continue;
        };
        let used = dependencies(manifest, &workspace.manifests.keys().map(String::as_str).collect());
        for (line, used) in &used {
            if !allowed.contains(used) {
                let message = format!("{name} may not use {used}: move what it needs to a crate below both");
                report(&path, *line, format!("{name} -> {used}"), message);
            }
        }
        for stale in allowed.iter().filter(|allowed| !used.iter().any(|(_, used)| used == *allowed)) {
            report(
                LIST,
                line,
                format!("{name} -> {stale}"),
                "the crate does not use it; take the name out".into(),
            );
        }
    }
    for name in workspace.manifests.keys().filter(|name| !above.contains(name.as_str())) {
        report(LIST, 1, name.clone(), "the crate is not listed; put it above all that may use it".into());
    }
}

/// The crates of the workspace in the section `[dependencies]`, each with its line.
fn dependencies<'a>(manifest: &'a str, crates: &BTreeSet<&str>) -> Vec<(usize, &'a str)> {
    let mut section = "";
    let mut used = Vec::new();
    for (number, line) in entries(manifest) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]" {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if crates.contains(name) {
                used.push((number, name));
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    fn found(list: &str) -> Vec<String> {
        let files = [
            ("tests/tidy/layers.txt", list),
            (
                "crates/low/Cargo.toml",
                "[dependencies]\nitoa = \"1\"\n[dev-dependencies]\nhigh.workspace = true\n",
            ),
            ("crates/high/Cargo.toml", "[dependencies]\nlow.workspace = true\n"),
        ];
        items_found(check, &files)
    }

    #[test]
    fn a_dependency_that_is_not_allowed_is_found() {
        assert!(found("[crates]\nlow:\nhigh: low\n").is_empty());
        assert_eq!(found("[crates]\nlow:\nhigh:\n"), ["high -> low"]);
        assert_eq!(found("[crates]\nhigh: low\nlow:\n"), ["high -> low"]);
        assert_eq!(found("[crates]\nlow:\n"), ["high"]);
        assert_eq!(found("[crates]\nlow:\nhigh: low\nother:\n"), ["other"]);
        assert_eq!(found("[crates]\nlow:\nmid:\nhigh: low mid\n"), ["mid", "high -> mid"]);
    }
}

//! A module imports its own parts and what lies in lower layers.
//!
//! `layers.txt` has a section for each crate, `[engine]`, with one layer a line, bottom to top. The modules
//! of one layer, set apart by blanks, do not import each other, save those that a `+` joins to one unit.
//! `root` stands for what `lib.rs` itself defines. A crate of the section `[without layers]` is left alone.
//! Tests may import anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{ItemKind, Reference};
use crate::finding::{Finding, entries};
use crate::workspace::{Source, Workspace};

const LIST: &str = "tests/tidy/layers.txt";
const ROOT: &str = "root";

/// Where a module stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    layer: usize,
    /// Modules of the same unit may import each other.
    unit: usize,
    /// The line of the list.
    line: usize,
}

type Layers = BTreeMap<String, Standing>;

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    let sections = sections(workspace.list("layers.txt"));
    for krate in workspace.manifests.keys() {
        match sections.get(krate.as_str()) {
            Some(layers) => check_crate(workspace, krate, layers, found),
            None if sections.get("without layers").is_some_and(|flat| flat.contains_key(krate)) => {}
            None => {
                let message =
                    "the crate has no section; declare its layers, or list it under [without layers]";
                push(found, LIST, 1, krate.clone(), message.to_owned());
            }
        }
    }
    for name in sections.keys().filter(|name| !matches!(**name, "crates" | "without layers")) {
        if !workspace.manifests.contains_key(*name) {
            push(
                found,
                LIST,
                1,
                (*name).to_owned(),
                "there is no such crate; take the section out".to_owned(),
            );
        }
    }
}

fn push(found: &mut Vec<Finding>, path: &str, line: usize, item: String, message: String) {
    found.push(Finding { path: path.to_owned(), line, rule: "layers", item, message });
}

fn sections(list: &str) -> BTreeMap<&str, Layers> {
    let mut sections: BTreeMap<&str, Layers> = BTreeMap::new();
    let mut section = "";
    let mut unit = 0;
    for (line, entry) in entries(list) {
        if let Some(name) = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
            sections.entry(section).or_default();
            continue;
        }
        let layers = sections.entry(section).or_default();
        let layer = layers.values().map(|standing| standing.layer + 1).max().unwrap_or(0);
        let mut joined = false;
        for part in entry.split('#').next().unwrap_or_default().split_whitespace() {
            if part == "+" {
                joined = true;
                continue;
            }
            if !joined {
                unit += 1;
            }
            joined = false;
            layers.insert(part.trim_end_matches(':').to_owned(), Standing { layer, unit, line });
        }
    }
    sections
}

fn check_crate(workspace: &Workspace, krate: &str, layers: &Layers, found: &mut Vec<Finding>) {
    let sources: Vec<&Source> = workspace.sources.iter().filter(|source| source.krate == krate).collect();
    let names = RootNames::of(&sources);
    let mut reported = BTreeSet::new();
    for source in &sources {
        for reference in source.facts.references.iter().filter(|each| source.is_product(&each.place)) {
            let module = source.module_of(&reference.place);
            let Some(from) = module.first() else { continue };
            let Some(to) = names.target(&module, reference) else { continue };
            if *from == to || !reported.insert((source.path.clone(), reference.place.line, to.clone())) {
                continue;
            }
            let (Some(lower), Some(upper)) = (layers.get(&to), layers.get(from)) else { continue };
            if lower.layer < upper.layer || lower.unit == upper.unit {
                continue;
            }
            let message = if lower.layer == upper.layer {
                format!("`{from}` and `{to}` share a layer and may not import each other")
            } else {
                format!("`{from}` lies below `{to}` and may not import it")
            };
            let message = format!("{message}; move what is needed down, or pass it in");
            push(found, &source.path, reference.place.line, format!("{from} -> {to}"), message);
        }
    }
    for (name, line) in &names.modules {
        if !layers.contains_key(name) {
            let message = format!("the module `{name}` is in no layer; put it where it belongs in {LIST}");
            push(found, &format!("crates/{krate}/src/lib.rs"), *line, name.clone(), message);
        }
    }
    for (name, standing) in layers.iter().filter(|(name, _)| name.as_str() != ROOT) {
        if !names.modules.contains_key(name) {
            let message = format!("{krate} has no module `{name}`; take it out");
            push(found, LIST, standing.line, name.clone(), message);
        }
    }
}

/// What `crate::name` means.
#[derive(Default)]
struct RootNames {
    /// The top-level modules that are not tests, each with the line that declares it.
    modules: BTreeMap<String, usize>,
    /// What the root takes from its modules, and macros of theirs, which Rust puts at the root.
    from_modules: BTreeMap<String, String>,
    /// What the root takes from other crates.
    foreign: BTreeSet<String>,
}

impl RootNames {
    fn of(sources: &[&Source]) -> RootNames {
        let mut names = RootNames::default();
        for source in sources {
            if !source.module.is_empty() {
                let exported =
                    source.facts.items.iter().filter(|item| item.public && item.place.modules.is_empty());
                for item in exported.filter(|item| item.kind == ItemKind::Macro) {
                    names.from_modules.insert(item.name.clone(), source.module[0].clone());
                }
                continue;
            }
            let modules = source.facts.modules.iter().filter(|module| source.is_product(&module.place));
            for module in modules.filter(|module| module.place.modules.is_empty()) {
                names.modules.insert(module.name.clone(), module.place.line);
            }
        }
        let roots = sources.iter().filter(|source| source.module.is_empty());
        for taken in roots.flat_map(|root| &root.facts.uses).filter(|taken| taken.place.modules.is_empty()) {
            let path = taken.path.iter().find(|part| !matches!(part.as_str(), "crate" | "self"));
            match path {
                Some(first) if names.modules.contains_key(first) => {
                    names.from_modules.insert(taken.name.clone(), first.clone());
                }
                Some(_) => {
                    names.foreign.insert(taken.name.clone());
                }
                None => {}
            }
        }
        names
    }

    /// The top-level module that a reference from this module leads to; `None` if it stays out of the layers.
    fn target(&self, module: &[String], reference: &Reference) -> Option<String> {
        let mut path = reference.path.iter();
        let mut inside: &[String] = match path.next()?.as_str() {
            "crate" => &[],
            "self" => module,
            _ => &module[..module.len().saturating_sub(1)],
        };
        let mut rest = path.as_slice();
        while let [first, others @ ..] = rest
            && first == "super"
        {
            inside = &inside[..inside.len().saturating_sub(1)];
            rest = others;
        }
        if let Some(first) = inside.first() {
            return Some(first.clone());
        }
        let name = rest.first()?;
        if self.modules.contains_key(name) {
            return Some(name.clone());
        }
        if self.foreign.contains(name) {
            return None;
        }
        Some(self.from_modules.get(name).cloned().unwrap_or_else(|| ROOT.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    fn found(list: &str, low: &str, high: &str) -> Vec<String> {
        let list = format!("[crates]\na:\n[a]\n{list}");
        let files = [
            ("tests/tidy/layers.txt", list.as_str()),
            ("crates/a/Cargo.toml", ""),
            (
                "crates/a/src/lib.rs",
                "mod low;\nmod high;\npub use high::Thing;\npub use base::Lsn;\n#[cfg(test)]\nmod testing;",
            ),
            ("crates/a/src/low/part.rs", low),
            ("crates/a/src/high.rs", high),
        ];
        items_found(check, &files)
    }

    #[test]
    fn an_import_against_the_layers_is_found() {
        let upwards = [
            "use crate::high::X;",
            "use crate::{base, high};",
            "use super::super::high;",
            "fn f() { crate::high::f() }",
            "fn f(x: crate::high::X) {}",
            "fn f() { assert!(g(crate::high::X)) }",
            "use crate::Thing;",
            "mod inner { use super::super::super::high; }",
        ];
        for source in upwards {
            assert_eq!(found("low\nhigh", source, ""), ["low -> high"], "{source}");
            assert!(found("high\nlow", source, "").is_empty(), "{source}");
            assert_eq!(found("low high", source, ""), ["low -> high"], "{source}");
            assert!(found("low + high", source, "").is_empty(), "{source}");
        }
    }

    #[test]
    fn own_parts_lower_layers_other_crates_and_tests_pass() {
        let low = "use super::other;\nuse self::inner::X;\nuse crate::low::Y;\nuse crate::Lsn;\nuse std::fmt;\n\
                   #[cfg(test)]\nmod tests { use crate::high::X; }";
        assert!(found("low\nhigh", low, "use crate::low::X;").is_empty());
    }

    #[test]
    fn the_list_and_the_modules_agree() {
        assert_eq!(found("low", "", ""), ["high"]);
        assert_eq!(found("low\nhigh\nother", "", ""), ["other"]);
        let unlisted = [("tests/tidy/layers.txt", "[without layers]\nb"), ("crates/a/Cargo.toml", "")];
        assert_eq!(items_found(check, &unlisted), ["a"]);
    }
}

//! A module imports its own parts and what lies in lower layers.
//!
//! `layers.txt` has a section for each crate, `[engine]`, with one layer a line, bottom to top. The modules
//! of one layer, set apart by blanks, do not import each other, save those that a `+` joins to one unit. A
//! part of a module may have a place of its own, `statements::dml`; then it is no part of `statements`.
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
    let folder = format!("crates/{krate}/src/");
    let sources: Vec<&Source> =
        workspace.sources.iter().filter(|source| source.path.starts_with(&folder)).collect();
    let modules = Modules::of(&sources);
    let mut layers = layers.clone();
    let top = layers.values().map(|standing| standing.layer + 1).max().unwrap_or(0);
    layers.entry(ROOT.to_owned()).or_insert(Standing { layer: top, unit: usize::MAX, line: 1 });
    let layers = &layers;
    let mut reported = BTreeSet::new();
    for source in &sources {
        for reference in source.facts.references.iter().filter(|each| source.is_product(&each.place)) {
            let module = source.module_of(&reference.place);
            let Some(target) = modules.target(&module, reference) else { continue };
            let (Some(from), Some(to)) = (unit(layers, &module), unit(layers, &target)) else { continue };
            let (upper, lower) = (layers[&from], layers[&to]);
            let allowed = lower.layer < upper.layer || lower.unit == upper.unit;
            if allowed || !reported.insert((source.path.clone(), reference.place.line, to.clone())) {
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
    for (path, line) in modules.declared.iter().filter(|(path, _)| path.len() == 1) {
        let name = &path[0];
        if !layers.contains_key(name) {
            let message = format!("the module `{name}` is in no layer; put it where it belongs in {LIST}");
            push(found, &format!("crates/{krate}/src/lib.rs"), *line, name.clone(), message);
        }
    }
    for (name, standing) in layers.iter().filter(|(name, _)| name.as_str() != ROOT) {
        let path: Vec<String> = name.split("::").map(str::to_owned).collect();
        if !modules.declared.contains_key(&path) {
            let message = format!("{krate} has no module `{name}`; take it out");
            push(found, LIST, standing.line, name.clone(), message);
        }
    }
}

/// The entry of the list that a path belongs to: the longest that it begins with.
fn unit(layers: &Layers, path: &[String]) -> Option<String> {
    let prefixes = (1..=path.len()).rev().map(|length| path[..length].join("::"));
    prefixes.into_iter().find(|prefix| layers.contains_key(prefix))
}

/// The modules of a crate that are not tests, and what `crate::name` means.
#[derive(Default)]
struct Modules {
    /// Each with the line that declares it.
    declared: BTreeMap<Vec<String>, usize>,
    /// What the root takes from its modules, and macros of theirs, which Rust puts at the root: where each
    /// comes from.
    taken: BTreeMap<String, Vec<String>>,
    /// What the root takes from other crates.
    foreign: BTreeSet<String>,
}

impl Modules {
    fn of(sources: &[&Source]) -> Modules {
        let mut modules = Modules::default();
        for source in sources {
            for module in source.facts.modules.iter().filter(|module| source.is_product(&module.place)) {
                let mut path = source.module_of(&module.place);
                path.push(module.name.clone());
                modules.declared.insert(path, module.place.line);
            }
            let exported =
                source.facts.items.iter().filter(|item| item.public && item.kind == ItemKind::Macro);
            for item in exported.filter(|_| !source.module.is_empty()) {
                modules.taken.insert(item.name.clone(), source.module_of(&item.place));
            }
        }
        let roots = sources.iter().filter(|source| source.module.is_empty());
        for taken in roots.flat_map(|root| &root.facts.uses).filter(|taken| taken.place.modules.is_empty()) {
            let own = |part: &&String| !matches!(part.as_str(), "crate" | "self");
            let path: Vec<String> = taken.path.iter().filter(own).cloned().collect();
            if path.first().is_some_and(|first| modules.declared.contains_key(std::slice::from_ref(first))) {
                modules.taken.insert(taken.name.clone(), path);
            } else {
                modules.foreign.insert(taken.name.clone());
            }
        }
        modules
    }

    /// What a reference from this module leads to, from the root; `None` for another crate's.
    fn target(&self, module: &[String], reference: &Reference) -> Option<Vec<String>> {
        let mut inside = module;
        let mut rest: &[String] = &reference.path;
        match rest.first()?.as_str() {
            "crate" => (inside, rest) = (&[], &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {}
            name => {
                let child: Vec<String> = module.iter().cloned().chain([name.to_owned()]).collect();
                if !self.declared.contains_key(&child) {
                    return None;
                }
            }
        }
        while let [first, others @ ..] = rest
            && first == "super"
        {
            inside = &inside[..inside.len().saturating_sub(1)];
            rest = others;
        }
        let whole: Vec<String> = inside.iter().chain(rest).cloned().collect();
        let first = whole.first()?;
        if self.declared.contains_key(std::slice::from_ref(first)) {
            return Some(whole);
        }
        if let Some(path) = self.taken.get(first) {
            return Some(path.clone());
        }
        (!self.foreign.contains(first)).then(|| vec![ROOT.to_owned()])
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
            "use crate::{low, high};",
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
    fn a_part_of_a_module_may_have_a_place_of_its_own() {
        let found = |list: &str, part: &str, module: &str| {
            let list = format!("[a]\n{list}");
            let files = [
                ("tests/tidy/layers.txt", list.as_str()),
                ("crates/a/Cargo.toml", ""),
                ("crates/a/src/lib.rs", "mod whole;"),
                ("crates/a/src/whole/mod.rs", module),
                ("crates/a/src/whole/part.rs", part),
            ];
            items_found(check, &files)
        };
        let module = "mod part;\nmod other;\nfn f() { part::f() }";
        assert!(found("whole::part\nwhole", "", module).is_empty());
        assert_eq!(found("whole\nwhole::part", "", module), ["whole -> whole::part"]);
        assert_eq!(found("whole::part\nwhole", "use super::other::X;", module), ["whole::part -> whole"]);
        assert_eq!(found("whole::gone\nwhole", "", module), ["whole::gone"]);
        assert!(found("whole", "use super::other::X;", module).is_empty());
    }

    #[test]
    fn what_the_root_defines_is_above_all_unless_it_is_listed() {
        let files = |list| {
            [
                ("tests/tidy/layers.txt", list),
                ("crates/a/Cargo.toml", ""),
                ("crates/a/src/lib.rs", "mod low;\npub struct X;"),
                ("crates/a/src/low.rs", "use crate::X;"),
                ("crates/a/tests/b.rs", "use a::X;"),
            ]
        };
        assert_eq!(items_found(check, &files("[a]\nlow")), ["low -> root"]);
        assert!(items_found(check, &files("[a]\nroot\nlow")).is_empty());
    }

    #[test]
    fn the_list_and_the_modules_agree() {
        assert_eq!(found("low", "", ""), ["high"]);
        assert_eq!(found("low\nhigh\nother", "", ""), ["other"]);
        let unlisted = [("tests/tidy/layers.txt", "[without layers]\nb"), ("crates/a/Cargo.toml", "")];
        assert_eq!(items_found(check, &unlisted), ["a"]);
    }
}

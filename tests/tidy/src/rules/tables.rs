//! A match in a table names every case: the compiler then says where a new case is forgotten.
//!
//! `tables.txt` lists a file or folder and the enumerations whose matches there may have no arm for the rest;
//! `*` stands for every enumeration that is defined there.

use std::collections::BTreeSet;

use crate::facts::ItemKind;
use crate::finding::{Finding, entries};
use crate::workspace::Workspace;

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    for (number, entry) in entries(workspace.list("tables.txt")) {
        let mut parts = entry.split_whitespace();
        let folder = parts.next().unwrap_or_default();
        let below = |path: &str| {
            path == folder || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let mut names: BTreeSet<String> = parts.map(str::to_owned).collect();
        let sources = || workspace.sources.iter().filter(|source| below(&source.path));
        if names.remove("*") {
            let items = sources().flat_map(|source| &source.facts.items);
            names.extend(
                items.filter(|item| item.kind == ItemKind::Enumeration).map(|item| item.name.clone()),
            );
        }
        let mut matched = false;
        for source in sources() {
            for expression in source.facts.matches.iter().filter(|each| source.is_product(&each.place)) {
                let Some(name) = expression.enumerations.iter().find(|name| names.contains(*name)) else {
                    continue;
                };
                matched = true;
                if expression.catches_all {
                    found.push(Finding {
                        path: source.path.clone(),
                        line: expression.place.line,
                        rule: "table-wildcard",
                        item: expression.function.clone(),
                        message: format!(
                            "a match on {name} with an arm for whatever is left; name every case"
                        ),
                    });
                }
            }
        }
        if !matched {
            found.push(Finding {
                path: "tests/tidy/tables.txt".to_owned(),
                line: number,
                rule: "table-wildcard",
                item: entry.to_owned(),
                message: "no match on these names is there; correct the entry or take it out".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    const LIST: (&str, &str) = ("tests/tidy/tables.txt", "crates/a/src/table *\n");

    fn found(body: &str) -> Vec<String> {
        let source =
            format!("enum Function {{ A, B }}\nimpl Function {{ fn f(self, x: u8) -> u8 {{ {body} }} }}");
        items_found(check, &[LIST, ("crates/a/src/table/one.rs", &source)])
    }

    #[test]
    fn an_arm_for_the_rest_is_found() {
        assert_eq!(found("match self { Function::A => 1, _ => 2 }"), ["Function::f"]);
        assert_eq!(found("match self { Self::A => 1, other => 2 }"), ["Function::f"]);
        assert_eq!(found("match (self, x) { (Self::A, 1) => 1, (_, _) => 2 }"), ["Function::f"]);
    }

    #[test]
    fn a_match_that_names_every_case_passes() {
        assert!(found("match self { Self::A => 1, Self::B => 2 }").is_empty());
        assert!(found("match self { Self::A => match x { 1 => 2, _ => 3 }, Self::B => 2 }").is_empty());
    }

    #[test]
    fn an_entry_without_a_match_is_found() {
        assert_eq!(items_found(check, &[LIST]), ["crates/a/src/table *"]);
    }
}

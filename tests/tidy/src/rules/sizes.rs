//! A product function has at most a hundred lines and seven parameters.
//!
//! Lines are counted from `fn` to the closing brace. `self` counts as a parameter, as it does for clippy.

use crate::finding::Finding;
use crate::workspace::Workspace;

const LINES_MAX: usize = 100;
const PARAMETERS_MAX: usize = 7;

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    for source in &workspace.sources {
        for function in source.facts.functions.iter().filter(|function| source.is_product(&function.place)) {
            let mut report = |rule, message| {
                let (path, item) = (source.path.clone(), function.name.clone());
                found.push(Finding { path, line: function.place.line, rule, item, message });
            };
            if function.lines > LINES_MAX {
                let lines = function.lines;
                report(
                    "function-lines",
                    format!("{lines} lines; take steps that have a name out of it, to at most {LINES_MAX}"),
                );
            }
            if function.parameters > PARAMETERS_MAX {
                let parameters = function.parameters;
                report(
                    "parameters",
                    format!(
                        "{parameters} parameters; join what belongs together in a struct, to at most {PARAMETERS_MAX}"
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    fn function(lines: usize, parameters: &str) -> String {
        format!("impl A {{\n    pub fn long({parameters}) {{{}}}\n}}\n", "\n".repeat(lines - 1))
    }

    #[test]
    fn a_function_of_more_than_a_hundred_lines_is_found() {
        let path = "crates/a/src/lib.rs";
        assert_eq!(items_found(check, &[(path, &function(101, ""))]), ["A::long"]);
        assert!(items_found(check, &[(path, &function(100, ""))]).is_empty());
        assert!(items_found(check, &[("crates/a/tests/b.rs", &function(101, ""))]).is_empty());
    }

    #[test]
    fn a_function_of_more_than_seven_parameters_is_found() {
        let path = "crates/a/src/lib.rs";
        let seven = "&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8";
        assert!(items_found(check, &[(path, &function(2, seven))]).is_empty());
        assert_eq!(items_found(check, &[(path, &function(2, &format!("{seven}, g: u8")))]), ["A::long"]);
    }

    #[test]
    fn tests_inside_of_a_product_file_may_be_long() {
        let inside = format!("#[cfg(test)]\nmod tests {{ {} }}", function(101, ""));
        assert!(items_found(check, &[("crates/a/src/lib.rs", &inside)]).is_empty());
        let files = [
            ("crates/a/src/lib.rs", "#[cfg(all(test, not(feature = \"b\")))]\nmod checks;"),
            ("crates/a/src/checks.rs", &function(101, "")),
        ];
        assert!(items_found(check, &files).is_empty());
        let any = format!("#[cfg(any(test, feature = \"b\"))]\nmod both {{ {} }}", function(101, ""));
        assert_eq!(items_found(check, &[("crates/a/src/lib.rs", &any)]).len(), 1);
    }
}

//! The public items of a crate are used outside of it.
//!
//! Checked are the crates whose doors are shut: their items that can be reached from the root by `pub`, and
//! the public functions of their types. Used is what another crate, or a test or an example of this crate,
//! names; and a type that stands in the interface of what is used. Names are compared, not meanings: what is
//! found is not used, but not all that is not used is found.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::facts::{Item, Use};
use crate::finding::Finding;
use crate::workspace::{Kind, Source, Workspace};

const CRATES: [&str; 3] = ["engine", "lab", "sql"];

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    for krate in CRATES {
        // Tests inside of the crate's sources can see what is not public, and this crate uses no other.
        let inside = format!("crates/{krate}/src/");
        let outside = workspace
            .sources
            .iter()
            .filter(|source| !source.path.starts_with(&inside) && !source.path.starts_with("tests/tidy/"));
        let mut used: HashSet<&str> = HashSet::new();
        for source in outside {
            used.extend(source.facts.identifiers.iter().map(String::as_str));
        }
        check_crate(&Crate::of(workspace, krate), &used, found);
    }
}

/// The index of a source, and of an item in it.
type Id = (usize, usize);

struct Crate<'a> {
    sources: Vec<&'a Source>,
    /// The public and private items of each module by name.
    items: BTreeMap<(Vec<String>, &'a str), Vec<Id>>,
    /// Each module, and whether it is public.
    modules: BTreeMap<Vec<String>, bool>,
    uses: BTreeMap<Vec<String>, Vec<&'a Use>>,
}

/// The items of a crate that can be reached from outside.
#[derive(Default)]
struct Reached {
    items: BTreeSet<Id>,
    modules: BTreeSet<Vec<String>>,
    uses: BTreeSet<(Vec<String>, String)>,
}

impl<'a> Crate<'a> {
    fn of(workspace: &'a Workspace, krate: &str) -> Crate<'a> {
        let sources: Vec<&Source> = workspace
            .sources
            .iter()
            .filter(|source| source.krate == krate && source.kind == Kind::Product)
            .collect();
        let mut all =
            Crate { sources, items: BTreeMap::new(), modules: BTreeMap::new(), uses: BTreeMap::new() };
        for (index, source) in all.sources.iter().enumerate() {
            for (at, item) in source.facts.items.iter().enumerate().filter(|(_, item)| !item.place.test) {
                let key = (source.module_of(&item.place), item.name.as_str());
                all.items.entry(key).or_default().push((index, at));
            }
            for module in source.facts.modules.iter().filter(|module| !module.place.test) {
                let mut path = source.module_of(&module.place);
                path.push(module.name.clone());
                all.modules.insert(path, module.public);
            }
            for taken in source.facts.uses.iter().filter(|taken| !taken.place.test) {
                all.uses.entry(source.module_of(&taken.place)).or_default().push(taken);
            }
        }
        all
    }

    fn item(&self, id: Id) -> &'a Item {
        &self.sources[id.0].facts.items[id.1]
    }

    /// Everything public of a module.
    fn reach_module(&self, module: &[String], reached: &mut Reached) {
        if !reached.modules.insert(module.to_vec()) {
            return;
        }
        let first = (module.to_vec(), "");
        for ((_, _), ids) in self.items.range(first..).take_while(|((at, _), _)| at == module) {
            reached.items.extend(ids.iter().filter(|id| self.item(**id).public));
        }
        for (path, public) in &self.modules {
            if *public && path.len() == module.len() + 1 && path.starts_with(module) {
                self.reach_module(path, reached);
            }
        }
        for taken in self.uses.get(module).into_iter().flatten().filter(|taken| taken.public) {
            self.reach_use(module, taken, reached);
        }
    }

    fn reach_use(&self, module: &[String], taken: &Use, reached: &mut Reached) {
        if !reached.uses.insert((module.to_vec(), taken.path.join("::"))) {
            return;
        }
        let Some((inside, name)) = self.resolve(module, &taken.path) else { return };
        if name == "*" {
            return self.reach_module(&inside, reached);
        }
        self.reach_name(&inside, &name, reached);
    }

    fn reach_name(&self, inside: &[String], name: &str, reached: &mut Reached) {
        let mut whole = inside.to_vec();
        whole.push(name.to_owned());
        if self.modules.contains_key(&whole) {
            self.reach_module(&whole, reached);
        }
        reached.items.extend(self.items.get(&(inside.to_vec(), name)).into_iter().flatten());
        for taken in self.uses.get(inside).into_iter().flatten() {
            if taken.name == name {
                self.reach_use(inside, taken, reached);
            } else if taken.name == "*"
                && let Some((from, _)) = self.resolve(inside, &taken.path)
                && self.items.contains_key(&(from.clone(), name))
            {
                self.reach_name(&from, name, reached);
            }
        }
    }

    /// The module and the name that a path leads to; `None` for another crate's.
    fn resolve(&self, module: &[String], path: &[String]) -> Option<(Vec<String>, String)> {
        let (name, parts) = path.split_last()?;
        let mut inside = module.to_vec();
        for (index, part) in parts.iter().enumerate() {
            match part.as_str() {
                "crate" => inside.clear(),
                "self" => {}
                "super" => {
                    inside.pop();
                }
                _ => {
                    inside.push(part.clone());
                    if !self.modules.contains_key(&inside) {
                        // A name of this crate's that is no module (an enumeration), or another crate.
                        let owner = inside.pop()?;
                        let known = index > 0 || self.items.contains_key(&(inside.clone(), owner.as_str()));
                        return known.then_some((inside, owner));
                    }
                }
            }
        }
        let is_here = parts.first().is_some_and(|first| matches!(first.as_str(), "crate" | "self" | "super"));
        let mut whole = inside.clone();
        whole.push(name.clone());
        let known = is_here
            || !parts.is_empty()
            || self.modules.contains_key(&whole)
            || self.items.contains_key(&(inside.clone(), name.as_str()));
        known.then_some((inside, name.clone()))
    }

    /// The item that a type's name means in a module.
    fn type_named(&self, module: &[String], name: &str) -> Option<Id> {
        let mut reached = Reached::default();
        self.reach_name(module, name, &mut reached);
        reached.items.into_iter().find(|id| self.item(*id).name == name)
    }
}

/// What is reported: an item, or a member of a type.
struct Offered<'a> {
    path: &'a str,
    item: &'a Item,
    /// The type, for a member.
    owner: Option<Id>,
    name: String,
}

fn check_crate(krate: &Crate, used: &HashSet<&str>, found: &mut Vec<Finding>) {
    let mut reached = Reached::default();
    krate.reach_module(&[], &mut reached);
    let mut offered: Vec<Offered> = Vec::new();
    // The interfaces that a type has from the traits it implements.
    let mut traits: BTreeMap<Id, BTreeSet<&str>> = BTreeMap::new();
    for id in &reached.items {
        let (path, item) = (krate.sources[id.0].path.as_str(), krate.item(*id));
        offered.push(Offered { path, item, owner: None, name: item.name.clone() });
    }
    for source in &krate.sources {
        for implementation in source.facts.implementations.iter().filter(|each| !each.place.test) {
            let module = source.module_of(&implementation.place);
            let Some(owner) = krate.type_named(&module, &implementation.self_type) else { continue };
            if !reached.items.contains(&owner) {
                continue;
            }
            traits.entry(owner).or_default().extend(implementation.interface.iter().map(String::as_str));
            for item in &implementation.members {
                let name = format!("{}::{}", implementation.self_type, item.name);
                offered.push(Offered { path: &source.path, item, owner: Some(owner), name });
            }
        }
    }
    // What is named outside, and then what stands in the interface of that, until nothing is added.
    let mut shown: HashSet<&str> = HashSet::new();
    loop {
        let before = shown.len();
        for each in &offered {
            let owner_used = each.owner.is_none_or(|owner| is_used(krate.item(owner), used, &shown));
            if owner_used && is_used(each.item, used, &shown) {
                shown.extend(each.item.interface.iter().map(String::as_str));
            }
        }
        for (owner, interface) in &traits {
            if is_used(krate.item(*owner), used, &shown) {
                shown.extend(interface);
            }
        }
        if shown.len() == before {
            break;
        }
    }
    for each in &offered {
        let unused = match each.owner {
            // A member of a type that is not used is not reported beside its type.
            Some(owner) => {
                is_used(krate.item(owner), used, &shown) && !used.contains(each.item.name.as_str())
            }
            None => !is_used(each.item, used, &shown),
        };
        if unused {
            found.push(Finding {
                path: each.path.to_owned(),
                line: each.item.place.line,
                rule: "unused-public",
                item: each.name.clone(),
                message: "public, and nothing outside uses it; make it pub(crate), and delete it if nothing inside \
                          does"
                    .to_owned(),
            });
        }
    }
}

fn is_used(item: &Item, used: &HashSet<&str>, shown: &HashSet<&str>) -> bool {
    let name = item.name.as_str();
    let is_type = name.starts_with(char::is_uppercase);
    used.contains(name) || (is_type && shown.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    fn found(root: &str, inner: &str, outside: &str) -> Vec<String> {
        let files = [
            ("crates/sql/src/lib.rs", root),
            ("crates/sql/src/inner.rs", inner),
            ("crates/server/src/lib.rs", outside),
        ];
        items_found(check, &files)
    }

    #[test]
    fn a_public_item_that_nothing_outside_names_is_found() {
        let inner = "pub struct A;\npub fn b() {}\nfn c() {}\npub(crate) fn d() {}";
        assert_eq!(found("pub mod inner;", inner, "use sql::inner::A;"), ["b"]);
        assert_eq!(found("mod inner;\npub use inner::{A, b};", inner, "use sql::A;"), ["b"]);
        assert_eq!(found("mod inner;\npub use inner::*;", inner, "use sql::A;"), ["b"]);
        assert!(found("mod inner;\npub use inner::A;", inner, "use sql::A;").is_empty());
        assert!(found("mod inner;\npub use crate::inner::A;", inner, "use sql::A;").is_empty());
        assert!(found("pub mod inner;", inner, "use sql::inner::{A, b};").is_empty());
    }

    #[test]
    fn a_method_that_nothing_outside_names_is_found() {
        let inner = "pub struct A;\nimpl A { pub fn used(&self) {}\npub fn forgotten(&self) {}\n\
                     fn own(&self) {} }\n\
                     struct B;\nimpl B { pub fn hidden(&self) {} }";
        assert_eq!(
            found("mod inner;\npub use inner::A;", inner, "fn f(a: A) { a.used() }"),
            ["A::forgotten"]
        );
    }

    #[test]
    fn what_stands_in_the_interface_of_something_used_is_used() {
        let inner = "pub struct A { pub part: Part }\npub struct Part;\npub enum Shown { Case(Deep) }\n\
                     pub struct Deep;\nimpl Iterator for A { type Item = Next; }\npub struct Next;\n\
                     pub fn f() -> Shown {}\npub struct Other;";
        assert_eq!(found("pub mod inner;", inner, "use sql::inner::{A, f};"), ["Other"]);
    }

    #[test]
    fn tests_beside_the_sources_count_and_tests_among_them_do_not() {
        let files = |test: &'static str| {
            [
                ("crates/sql/src/lib.rs", "pub fn a() {}\n#[cfg(test)]\nmod tests { use super::a; }"),
                (test, "use sql::a;"),
            ]
        };
        assert!(items_found(check, &files("crates/sql/tests/b.rs")).is_empty());
        assert!(items_found(check, &files("crates/sql/examples/b.rs")).is_empty());
        assert_eq!(items_found(check, &files("crates/sql/src/unrelated.rs")), ["a"]);
    }
}

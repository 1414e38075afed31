//! The files of the workspace, and the module tree of each crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::comments;
use crate::facts::{Facts, Place};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Below the `src` of a crate, and not only compiled into tests.
    Product,
    Test,
    Example,
    /// The workspaces beside the crates: `bench` and `fuzz`.
    Beside,
}

#[derive(Debug)]
pub struct Source {
    /// From the root of the workspace, with slashes.
    pub path: String,
    pub kind: Kind,
    /// The crate's folder below `crates`, or the first folder.
    pub krate: String,
    /// The module that the file is, below the crate's root; empty for the root.
    pub module: Vec<String>,
    pub facts: Facts,
    pub comments: Vec<comments::Line>,
}

impl Source {
    pub fn is_product(&self, place: &Place) -> bool {
        self.kind == Kind::Product && !place.test
    }

    /// The module of something in this file.
    pub fn module_of(&self, place: &Place) -> Vec<String> {
        self.module.iter().chain(&place.modules).cloned().collect()
    }
}

#[derive(Debug)]
pub struct Document {
    pub path: String,
    pub text: String,
    pub prose: Vec<comments::Line>,
}

#[derive(Debug, Default)]
pub struct Workspace {
    pub sources: Vec<Source>,
    pub documents: Vec<Document>,
    /// The text of each `Cargo.toml`, by the crate's folder below `crates`.
    pub manifests: BTreeMap<String, String>,
    /// The lists beside this crate's `Cargo.toml`, by file name.
    lists: BTreeMap<String, String>,
}

pub fn lists_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

impl Workspace {
    /// Everything below the root of the workspace, save hidden folders and those that cargo writes.
    pub fn read() -> Workspace {
        let root = lists_folder().join("../..").canonicalize().expect("the workspace has a root");
        let mut files = Vec::new();
        collect(&root, &root, &mut files);
        let parts = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 8);
        let mut workspace = Workspace::default();
        std::thread::scope(|scope| {
            // Every so manieth file each, so that the large crates are shared out.
            let threads: Vec<_> = (0..parts)
                .map(|part| {
                    let files = &files;
                    scope.spawn(move || Workspace::of_files(files.iter().skip(part).step_by(parts)))
                })
                .collect();
            for thread in threads {
                workspace.append(thread.join().expect("every source can be read"));
            }
        });
        workspace.mark_test_modules();
        workspace
    }

    /// A workspace of made-up files, for canaries: paths and texts.
    pub fn made_up(files: &[(&str, &str)]) -> Workspace {
        let files: Vec<_> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let mut workspace = Workspace::of_files(files.iter());
        workspace.mark_test_modules();
        workspace
    }

    /// A list beside this crate's `Cargo.toml`; empty if there is none.
    pub fn list(&self, name: &str) -> &str {
        self.lists.get(name).map_or("", String::as_str)
    }

    fn of_files<'a>(files: impl Iterator<Item = &'a (String, String)>) -> Workspace {
        let mut workspace = Workspace::default();
        for (path, text) in files {
            if let Some(name) = path.strip_prefix("tests/tidy/").filter(|name| name.ends_with(".txt")) {
                workspace.lists.insert(name.to_owned(), text.clone());
            } else if let Some(krate) =
                path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"))
            {
                workspace.manifests.insert(krate.to_owned(), text.clone());
            } else if path.ends_with(".md") {
                let prose = comments::of_markdown(text);
                workspace.documents.push(Document { path: path.clone(), text: text.clone(), prose });
            } else if path.ends_with(".rs") {
                workspace.sources.push(source(path, text));
            }
        }
        workspace
    }

    fn append(&mut self, mut other: Workspace) {
        self.sources.append(&mut other.sources);
        self.documents.append(&mut other.documents);
        self.manifests.append(&mut other.manifests);
        self.lists.append(&mut other.lists);
    }

    /// `#[cfg(test)] mod tests;` makes the file `tests.rs`, and all below it, a test.
    fn mark_test_modules(&mut self) {
        let mut tests: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
        for source in self.sources.iter().filter(|source| source.kind == Kind::Product) {
            for module in source.facts.modules.iter().filter(|module| module.place.test) {
                let mut path = source.module_of(&module.place);
                path.push(module.name.clone());
                tests.insert((source.krate.clone(), path));
            }
        }
        for source in self.sources.iter_mut().filter(|source| source.kind == Kind::Product) {
            let below = |length| (source.krate.clone(), source.module[..length].to_vec());
            if (1..=source.module.len()).any(|length| tests.contains(&below(length))) {
                source.kind = Kind::Test;
            }
        }
    }
}

fn source(path: &str, text: &str) -> Source {
    let parts: Vec<&str> = path.split('/').collect();
    let (kind, krate) = match parts.as_slice() {
        ["crates", krate, "src", ..] => (Kind::Product, *krate),
        ["crates", krate, "examples", ..] => (Kind::Example, *krate),
        ["crates", krate, ..] => (Kind::Test, *krate),
        ["tests", ..] => (Kind::Test, "tests"),
        [first, ..] => (Kind::Beside, *first),
        [] => (Kind::Beside, ""),
    };
    let after_src = parts.iter().position(|part| *part == "src").map_or(parts.len(), |at| at + 1);
    let mut module: Vec<String> = parts[after_src..].iter().map(|part| (*part).to_owned()).collect();
    if let Some(last) = module.pop() {
        let name = last.trim_end_matches(".rs");
        let is_root = module.is_empty() && matches!(name, "lib" | "main");
        if name != "mod" && !is_root {
            module.push(name.to_owned());
        }
    }
    let facts = Facts::read(text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let comments = comments::of_rust(text);
    Source { path: path.to_owned(), kind, krate: krate.to_owned(), module, facts, comments }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    let mut children: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    children.sort();
    for child in children {
        let name = child.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if child.is_dir() {
            // A module may be called target, too: what cargo builds lies in no folder of sources.
            let is_made = matches!(name.as_str(), "target" | "lab-results") && !folder.ends_with("src");
            if !name.starts_with('.') && !is_made {
                collect(root, &child, files);
            }
            continue;
        }
        let path = child.strip_prefix(root).unwrap_or(&child).to_string_lossy().replace('\\', "/");
        let is_list = path.starts_with("tests/tidy/") && path.ends_with(".txt");
        let is_text = path.ends_with(".rs") || path.ends_with(".md") || name == "Cargo.toml";
        if is_text || is_list {
            let text = std::fs::read_to_string(&child).unwrap_or_else(|error| panic!("{path}: {error}"));
            files.push((path, text));
        }
    }
}

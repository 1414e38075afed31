//! The places in the modelled sources where an ordering stronger than Relaxed is used, and the one of them
//! that is made weaker in this process.

use loom::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::collections::HashMap;
use std::panic::Location;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What is done at a place: a fence cannot be Relaxed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Access,
    Fence,
}

/// Under which name, file and function and line, a place is known, with what can be made of it.
#[derive(Default)]
struct Sites {
    names: HashMap<(&'static str, u32, u32), String>,
    /// `name -> weaker ordering`, in the order in which they were met.
    mutants: Vec<String>,
}

static SITES: OnceLock<Mutex<Sites>> = OnceLock::new();
static WEAKENED: OnceLock<String> = OnceLock::new();

fn sites() -> MutexGuard<'static, Sites> {
    SITES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the place is as weak as `mutant` says.
pub fn weaken(mutant: String) {
    let _ = WEAKENED.set(mutant);
}

/// All that can be made weaker of what the models have run through.
pub fn mutants() -> Vec<String> {
    sites().mutants.clone()
}

/// What an ordering can be weakened to, by one step each. The checker takes an access that is SeqCst for one
/// that is AcqRel.
fn weaker(order: Ordering, used: Use) -> &'static [&'static str] {
    match (order, used) {
        (SeqCst, Use::Fence) => &["AcqRel"],
        (_, Use::Fence) => &["nothing"],
        (AcqRel, Use::Access) => &["Acquire", "Release"],
        (_, Use::Access) => &["Relaxed"],
    }
}

/// The ordering to use at a place of the sources; `None` for a fence that is left out.
pub fn order(place: &'static Location<'static>, order: Ordering, used: Use) -> Option<Ordering> {
    if order == Relaxed || !place.file().contains("crates/") {
        return Some(order);
    }
    let mut sites = sites();
    let Sites { names, mutants } = &mut *sites;
    let name = names.entry((place.file(), place.line(), place.column())).or_insert_with(|| {
        let name = name_of(place);
        for text in weaker(order, used) {
            let mutant = format!("{name} -> {text}");
            if !mutants.contains(&mutant) {
                mutants.push(mutant);
            }
        }
        name
    });
    let Some(weakened) = WEAKENED.get() else { return Some(order) };
    let Some(to) = weakened.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix(" -> ")) else {
        return Some(order);
    };
    match to {
        "Relaxed" => Some(Relaxed),
        "Acquire" => Some(Acquire),
        "Release" => Some(Release),
        "AcqRel" => Some(AcqRel),
        _ => None,
    }
}

/// File, function and line of a place: line numbers would change with every edit.
fn name_of(place: &Location<'_>) -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(workspace.join(place.file())).unwrap_or_default();
    let lines: Vec<&str> = text.lines().take(place.line() as usize).collect();
    let line = lines.last().map_or("", |line| line.trim());
    let function = lines.iter().rev().find_map(|line| {
        let rest = &line[line.find("fn ")? + 3..];
        let is_code = !line.trim_start().starts_with("//");
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (is_code && end > 0).then(|| &rest[..end])
    });
    let file = place.file().rsplit('/').next().unwrap_or_default();
    format!("{file} {}: `{line}`", function.unwrap_or("?"))
}

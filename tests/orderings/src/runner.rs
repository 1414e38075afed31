//! Runs models as they are, and then with each ordering weaker.
//!
//! Every run is a process of its own: a model that fails unwinds in the middle of the checker's work.

use crate::sites;
use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A model: what it claims, and a function that the checker runs again and again.
pub struct Model {
    pub claim: &'static str,
    pub run: fn(),
    /// How often a thread may be interrupted where it does not wait; `None` = any number of times.
    pub preemptions: Option<usize>,
}

/// A model that must fail: it does the same in a wrong way.
pub struct Canary(pub Model);

/// An ordering that no model needs, and why it is written all the same.
pub type Excused = (&'static str, &'static str);

const SITE: &str = "ordering: ";
const ENDLESS: &str = "exceeded maximum number of branches";

/// Runs all models of a crate. Fails if a model fails or a canary does not, if an ordering can be weakened
/// and no model notices, and if one is excused without need.
pub fn main(models: &[Model], canaries: &[Canary], excused: &[Excused]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => judge(models, canaries, excused),
        [claim, rest @ ..] => {
            if let [mutant] = rest {
                sites::weaken(mutant.clone());
            }
            explore(models.iter().chain(canaries.iter().map(|canary| &canary.0)), claim)
        }
    }
}

fn explore<'m>(mut models: impl Iterator<Item = &'m Model>, claim: &str) -> ExitCode {
    let Some(model) = models.find(|model| model.claim == claim) else {
        eprintln!("there is no model {claim}");
        return ExitCode::FAILURE;
    };
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = model.preemptions;
    let executions = Arc::new(AtomicU64::new(0));
    let (count, run) = (executions.clone(), model.run);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        run();
    });
    sites::mutants().iter().for_each(|mutant| println!("{SITE}{mutant}"));
    println!("{} executions", executions.load(Ordering::Relaxed));
    ExitCode::SUCCESS
}

fn start(arguments: &[&str]) -> Output {
    let program = std::env::current_exe().expect("a program knows its own file");
    Command::new(program).args(arguments).output().expect("a program can start itself")
}

/// The text of the panic that ended a run.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text.lines().skip_while(|line| !line.contains("panicked at")).skip(1);
    lines.find(|line| !line.trim().is_empty()).unwrap_or("it ended without a word").trim().to_owned()
}

fn judge(models: &[Model], canaries: &[Canary], excused: &[Excused]) -> ExitCode {
    let (mut passed, mut failed) = (0, 0);
    let mut tell = |is_good: bool, text: String| {
        *(if is_good { &mut passed } else { &mut failed }) += 1;
        println!("{} {text}", if is_good { "ok    " } else { "FAILED" });
    };
    // Which models run through each ordering, by the weaker one.
    let mut users: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for model in models {
        let output = start(&[model.claim]);
        if !output.status.success() {
            tell(false, format!("{}: {}", model.claim, complaint(&output)));
            continue;
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for mutant in text.lines().filter_map(|line| line.strip_prefix(SITE)) {
            users.entry(mutant.to_owned()).or_default().push(model.claim);
        }
        tell(true, format!("{}: {}", model.claim, text.lines().last().unwrap_or_default()));
    }
    for Canary(model) in canaries {
        let output = start(&[model.claim]);
        let text = complaint(&output);
        let is_caught = !output.status.success() && !text.contains(ENDLESS);
        tell(is_caught, format!("{}: {}", model.claim, if is_caught { &text } else { "it is not caught" }));
    }
    for (mutant, claims) in &users {
        let noticed = claims.iter().find_map(|claim| {
            let output = start(&[claim, mutant]);
            let complaint = (!output.status.success()).then(|| complaint(&output));
            complaint.filter(|text| !text.contains(ENDLESS)).map(|text| format!("{claim}: {text}"))
        });
        let excuse = excused.iter().find(|(name, _)| name == mutant);
        match (noticed, excuse) {
            (Some(text), None) => tell(true, format!("{mutant} is noticed by {text}")),
            (None, Some((_, why))) => tell(true, format!("{mutant} is not noticed: {why}")),
            (Some(text), Some(_)) => tell(false, format!("{mutant} is excused, and noticed by {text}")),
            (None, None) => tell(false, format!("{mutant} is not noticed by any of {claims:?}")),
        }
    }
    for (name, _) in excused.iter().filter(|(name, _)| !users.contains_key(*name)) {
        tell(false, format!("{name} is excused, and no model runs through it"));
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

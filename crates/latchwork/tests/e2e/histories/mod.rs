//! Random histories of concurrent sessions, which the isolation levels must permit.

mod checker;
mod graph;
mod history;
mod planted;
mod workload;

use crate::support::target::{Proof, targets};

/// The seeds of the runs. `LATCHWORK_SEED=n` runs only that one. The threads of the servers are not seeded,
/// so a seed repeats what the sessions intend, but not the history.
const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn random_transactions_happen_at_moments_that_can_be_ordered() {
    let seeds = match std::env::var("LATCHWORK_SEED") {
        Ok(seed) => vec![seed.parse().expect("LATCHWORK_SEED is a number")],
        Err(_) => SEEDS.to_vec(),
    };
    for target in targets(Proof::Histories) {
        let scratch = tempfile::tempdir().unwrap();
        let server = target.start(scratch.path());
        for &seed in &seeds {
            let (history, last) = workload::run(&server, seed);
            let committed = history
                .iter()
                .filter(|transaction| transaction.outcome == history::Outcome::Committed)
                .count();
            println!("{target:?}, seed {seed}: {} transactions, {committed} committed", history.len());
            assert!(committed > 0, "{target:?}, seed {seed}: nothing was committed");
            let violations = checker::check(&history, &last);
            let involved = history.iter().filter(|transaction| {
                violations.iter().any(|violation| violation.contains(&transaction.name))
            });
            let involved: Vec<String> = involved.map(|transaction| format!("{transaction:?}")).collect();
            assert!(
                violations.is_empty(),
                "{target:?}, seed {seed}:\n{}\n{}\n{last:?}",
                violations.join("\n"),
                involved.join("\n")
            );
        }
    }
}

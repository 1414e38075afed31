//! Random histories on a simulated device, cut anywhere: nothing that was acknowledged is lost.
//!
//! `LATCHWORK_TORTURE_SEED=n` begins with another seed, `LATCHWORK_TORTURE_HISTORIES=n` runs more of them.

use latchwork_torture::simulation::{History, Tally};

/// About a hundred cuts each.
const HISTORIES: u64 = 120;

fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn what_was_acknowledged_survives_ten_thousand_cuts() {
    let first = number_from("LATCHWORK_TORTURE_SEED", 1);
    let histories = number_from("LATCHWORK_TORTURE_HISTORIES", HISTORIES);
    let mut tally = Tally::default();
    for seed in first..first + histories {
        let (of_history, result) = History { seed, steps: 300, gap: 12 }.run();
        tally += of_history;
        if let Err(fault) = result {
            panic!("{fault}");
        }
    }
    println!("{tally:?}");
    let cuts = tally.cuts + tally.cuts_of_recoveries;
    assert!(histories < HISTORIES || cuts >= 10_000, "{cuts} cuts");
}

#[test]
fn histories_that_found_a_fault_once_find_none() {
    // A compressed page at a file's end that could not be read again; a dropped file whose header had never
    // been written; a client that still saw what it had rolled back on a full disk.
    for seed in [65, 69, 149, 167] {
        let (_, result) = History { seed, steps: 300, gap: 12 }.run();
        if let Err(fault) = result {
            panic!("{fault}");
        }
    }
}

#[test]
fn a_seed_is_the_whole_story() {
    for seed in 1_000..1_003 {
        let history = History { seed, steps: 120, gap: 40 };
        assert_eq!(history.run(), history.run(), "seed {seed}");
    }
}

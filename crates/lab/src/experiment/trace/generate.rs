//! Generated traces. Each is a function of its name, the number of keys and the seed.

use super::Requests;
use base::random::{Random, Zipf};

/// There is a scan after this many requests, and it reads this share of the keys.
const SCAN_EVERY: usize = 50_000;
const SCAN_SHARE: usize = 5;
/// How often the hot set moves in the course of a trace.
const SHIFTS: usize = 8;
/// The loop goes through this share of the keys. It is more than the largest of the usual caches has.
const LOOP_SHARE: usize = 8;

/// The generated traces, in the order in which they are shown.
pub(crate) const NAMES: [&str; 8] =
    ["zipf-0.6", "zipf-0.8", "zipf-1.0", "zipf-1.2", "zipf-0.8-scans", "zipf-1.0-scans", "loop", "shifting"];

/// The trace `name` over `keys` keys; `None` if there is none of that name.
pub(crate) fn generate(name: &str, keys: u32, requests: usize, seed: u64) -> Option<Requests> {
    let trace = match name {
        "zipf-0.6" => zipf(0.6, keys, requests, seed),
        "zipf-0.8" => zipf(0.8, keys, requests, seed),
        "zipf-1.0" => zipf(1.0, keys, requests, seed),
        "zipf-1.2" => zipf(1.2, keys, requests, seed),
        "zipf-0.8-scans" => with_scans(zipf(0.8, keys, requests, seed), keys),
        "zipf-1.0-scans" => with_scans(zipf(1.0, keys, requests, seed), keys),
        "loop" => {
            let round = (keys as usize / LOOP_SHARE).max(1);
            (0..requests).map(|number| (number % round) as u32).collect()
        }
        "shifting" => shifting(keys, requests, seed),
        _ => return None,
    };
    // Caches have sizes relative to the footprint. It counts all keys, also those that are never asked for.
    let largest = trace.iter().copied().max().map_or(0, |key| key + 1);
    Some(Requests { name: name.to_string(), footprint: keys.max(largest), keys: trace })
}

/// The key of each rank, in an order drawn anew for each `epoch`.
fn ranks(keys: u32, seed: u64, epoch: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys).collect();
    Random::new(seed, 1_000 + epoch).shuffle(&mut order);
    order
}

fn zipf(skew: f64, keys: u32, requests: usize, seed: u64) -> Vec<u32> {
    let (zipf, order, mut random) = (Zipf::new(keys, skew), ranks(keys, seed, 0), Random::new(seed, 1));
    (0..requests).map(|_| order[zipf.draw(&mut random) as usize]).collect()
}

/// At intervals a scan reads other keys one after the other, each once, and the same keys every time.
fn with_scans(trace: Vec<u32>, keys: u32) -> Vec<u32> {
    let scanned = keys / SCAN_SHARE as u32;
    let mut mixed = Vec::with_capacity(trace.len() * 2);
    for run in trace.chunks(SCAN_EVERY) {
        mixed.extend_from_slice(run);
        if run.len() == SCAN_EVERY {
            mixed.extend(keys..keys + scanned);
        }
    }
    mixed
}

/// Skew 1.0. From time to time other keys become the hot ones.
fn shifting(keys: u32, requests: usize, seed: u64) -> Vec<u32> {
    let (zipf, mut random) = (Zipf::new(keys, 1.0), Random::new(seed, 2));
    let mut trace = Vec::with_capacity(requests);
    for epoch in 0..SHIFTS {
        let order = ranks(keys, seed, epoch as u64);
        let end = requests * (epoch + 1) / SHIFTS;
        while trace.len() < end {
            trace.push(order[zipf.draw(&mut random) as usize]);
        }
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_name_gives_its_trace_and_the_same_one_each_time() {
        for name in NAMES {
            let trace = generate(name, 1_000, 60_000, 303).unwrap();
            assert_eq!(trace.name, name);
            assert!(trace.keys.len() >= 60_000);
            assert!(trace.keys.iter().all(|&key| key < trace.footprint), "{name}");
            assert_eq!(trace.keys, generate(name, 1_000, 60_000, 303).unwrap().keys);
        }
        assert!(generate("zipf-7", 10, 10, 1).is_none());
    }

    #[test]
    fn more_skew_makes_the_hottest_key_hotter() {
        let share_of_hottest = |name| {
            let mut counts: HashMap<u32, u32> = HashMap::new();
            let trace = generate(name, 1_000, 50_000, 1).unwrap();
            trace.keys.iter().for_each(|&key| *counts.entry(key).or_default() += 1);
            counts.into_values().max().unwrap()
        };
        let counts = ["zipf-0.6", "zipf-0.8", "zipf-1.0", "zipf-1.2"].map(share_of_hottest);
        assert!(counts.is_sorted_by(|left, right| left < right), "{counts:?}");
    }

    #[test]
    fn a_scan_touches_keys_that_the_rest_does_not() {
        let trace = generate("zipf-0.8-scans", 1_000, SCAN_EVERY * 2, 1).unwrap();
        assert_eq!(trace.keys.len(), SCAN_EVERY * 2 + 2 * 200);
        assert_eq!(trace.footprint, 1_200);
        assert_eq!(trace.keys[SCAN_EVERY..SCAN_EVERY + 200], (1_000..1_200).collect::<Vec<u32>>());
    }

    #[test]
    fn the_hot_keys_of_one_part_are_not_those_of_the_next() {
        let trace = generate("shifting", 1_000, 80_000, 1).unwrap().keys;
        let hottest = |part: &[u32]| {
            let mut counts: HashMap<u32, u32> = HashMap::new();
            part.iter().for_each(|&key| *counts.entry(key).or_default() += 1);
            counts.into_iter().max_by_key(|&(_, count)| count).unwrap().0
        };
        assert_ne!(hottest(&trace[..10_000]), hottest(&trace[10_000..20_000]));
    }
}

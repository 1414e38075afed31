//! Hit ratios of the ways to choose what goes, on generated traces, beside LRU.
//!
//! `cargo run -p latchwork-rowtier --release --example row_hit_ratio`
//!
//! The traces are made by a fixed pseudo-random sequence, so that the figures are the same everywhere.

use base::random::{Random, Zipf};
use latchwork_rowtier::{Announced, Config, Replacement, RowTier};
use std::collections::{BTreeMap, HashMap};

const ROWS: u32 = 100_000;
const REQUESTS: usize = 2_000_000;
const ROW: [u8; 200] = [7; 200];

/// Requests in order; with false, one whose hit is not counted: a scan's.
type Trace = Vec<(u32, bool)>;

/// Spreads ranks over the rows, differently for each `epoch`.
fn spread(rank: u32, epoch: u32) -> u32 {
    ((u64::from(rank) * 48_271 + u64::from(epoch) * 7_919_777) % u64::from(ROWS)) as u32
}

/// Another hot set every `period` requests.
fn zipf(skew: f64, period: usize) -> Trace {
    let (zipf, mut random) = (Zipf::new(ROWS, skew), Random::new(42, 0));
    (0..REQUESTS).map(|n| (spread(zipf.draw(&mut random), (n / period) as u32), true)).collect()
}

/// Every 50,000 requests somebody looks up 20,000 other rows, one by one, once.
fn zipf_and_scans(skew: f64) -> Trace {
    let mut trace = Vec::new();
    for (n, request) in zipf(skew, REQUESTS).into_iter().enumerate() {
        trace.push(request);
        if n % 50_000 == 49_999 {
            trace.extend((0..20_000).map(|row| (ROWS + row, false)));
        }
    }
    trace
}

/// A hot set of rows, each as likely as the others; others take their place every `period` requests.
fn even(rows: u32, period: usize) -> Trace {
    let mut random = Random::new(43, 0);
    (0..REQUESTS).map(|n| (random.below(rows) + (n / period) as u32 * rows, true)).collect()
}

fn in_turn(rows: u32) -> Trace {
    (0..REQUESTS).map(|n| (n as u32 % rows, true)).collect()
}

/// Counts hits but those of the first fifth, which warms the tier.
fn ratio(trace: &Trace, mut is_hit: impl FnMut(u32) -> bool) -> f64 {
    let (mut hits, mut counted) = (0_u64, 0_u64);
    for (n, (row, counts)) in trace.iter().enumerate() {
        let hit = is_hit(*row);
        if *counts && n >= trace.len() / 5 {
            counted += 1;
            hits += u64::from(hit);
        }
    }
    hits as f64 * 100.0 / counted as f64
}

fn tier_ratio(trace: &Trace, bytes: usize, replacement: Replacement) -> f64 {
    let config = Config { block_words: 2 << 10, replacement, ..Config::new(bytes) };
    let tier = RowTier::with_config(config).expect("address space for the simulation");
    tier.resize(bytes);
    let (kept, mut out) = (Announced::default(), Vec::new());
    ratio(trace, |row| {
        let key = u64::from(row).to_be_bytes();
        out.clear();
        let hit = tier.get(tier.probe(1, &key), &key, &mut out);
        if !hit && let Some(lease) = tier.lease(1, &key, &kept) {
            tier.put(lease, &key, &[&ROW]);
        }
        hit
    })
}

fn lru_ratio(trace: &Trace, rows: usize) -> f64 {
    let (mut last, mut order) = (HashMap::new(), BTreeMap::new());
    let mut now = 0_u64;
    ratio(trace, |row| {
        now += 1;
        let before = last.insert(row, now);
        if let Some(before) = before {
            order.remove(&before);
        }
        order.insert(now, row);
        if last.len() > rows
            && let Some((_, oldest)) = order.pop_first()
        {
            last.remove(&oldest);
        }
        before.is_some()
    })
}

fn main() {
    use Replacement::{ByHits, NewShare, SecondChance};
    let policies = [
        ("second chance", SecondChance),
        ("new 10 %", NewShare(10)),
        ("new 50 %", NewShare(50)),
        ("by hits, 5 %", ByHits(5)),
        ("by hits, 10 %", ByHits(10)),
        ("by hits, 20 %", ByHits(20)),
    ];
    let traces: Vec<(&str, Trace)> = vec![
        ("zipf 0.6", zipf(0.6, REQUESTS)),
        ("zipf 0.8", zipf(0.8, REQUESTS)),
        ("zipf 1.0", zipf(1.0, REQUESTS)),
        ("zipf 1.2", zipf(1.2, REQUESTS)),
        ("zipf 0.8 + scans", zipf_and_scans(0.8)),
        ("zipf 1.0 + scans", zipf_and_scans(1.0)),
        ("shifting, zipf 1.0", zipf(1.0, 200_000)),
        ("shifting, 8,000 even", even(8_000, 100_000)),
        ("8,000 even", even(8_000, REQUESTS)),
        ("20,000 even", even(20_000, REQUESTS)),
        ("loop of 12,000", in_turn(12_000)),
    ];
    // Each row takes 241 bytes.
    for rows in [2_000, 10_000] {
        println!("room for {rows} rows of {ROWS}: hit ratio in percent (difference to LRU)\n");
        print!("| {:<21}| LRU   ", "trace");
        for (name, _) in policies {
            print!("| {name:<13}");
        }
        println!(
            "|\n|{}|{}|{}",
            "-".repeat(22),
            "-".repeat(7),
            format!("{}|", "-".repeat(14)).repeat(policies.len())
        );
        for (name, trace) in &traces {
            let lru = lru_ratio(trace, rows);
            print!("| {name:<21}| {lru:<6.1}");
            for (_, replacement) in policies {
                let ratio = tier_ratio(trace, rows * 241, replacement);
                print!("| {:<13}", format!("{ratio:.1} ({:+.1})", ratio - lru));
            }
            println!("|");
        }
        println!();
    }
}

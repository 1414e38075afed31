//! Readers, writers, evictions and changes of size at once: nothing old and nothing torn is ever found.
#![cfg(not(feature = "shuttle"))]

use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, RwLock, thread};
use latchwork_rowtier::{Announced, Config, RowTier};
use std::time::{Duration, Instant};

const KEYS: u64 = 500;
const PATIENCE: Duration = Duration::from_secs(60);
const READS: u64 = if cfg!(miri) { 30 } else { 60_000 };

/// What the tier is a cache of: each value is a number, and a length made from it.
struct Truth {
    tier: RowTier,
    kept: Announced,
    pages: Vec<RwLock<u64>>,
    /// The changes that have been announced, by key: a reader that begins later must see them.
    done: Vec<AtomicU64>,
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn bytes(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + number as usize % 40)
}

fn number(bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes, self::bytes(number), "a value is torn");
    number
}

fn read(truth: &Truth, state: &mut u64) {
    let key = random(state) * random(state) % KEYS;
    let name = key.to_be_bytes();
    let at_least = truth.done[key as usize].load(SeqCst);
    let mut out = Vec::new();
    let found = if truth.tier.get(truth.tier.probe(1, &name), &name, &mut out) {
        number(&out)
    } else {
        let lease = truth.tier.lease(1, &name, &truth.kept);
        if random(state).is_multiple_of(64) {
            thread::yield_now();
        }
        let found = *truth.pages[key as usize].read();
        if let Some(lease) = lease {
            truth.tier.put(lease, &name, &[&bytes(found)]);
        }
        found
    };
    assert!(found >= at_least, "{found} of key {key} is old: {at_least}");
}

#[test]
fn nothing_old_and_nothing_torn_is_found() {
    let config = Config { block_words: 256, ..Config::new(4 << 20) };
    let truth = Arc::new(Truth {
        tier: RowTier::with_config(config).unwrap(),
        kept: Announced::default(),
        pages: (0..KEYS).map(|_| RwLock::new(0)).collect(),
        done: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
    });
    truth.tier.resize(40 << 10);
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            let truth = truth.clone();
            thread::spawn(move || {
                let mut state = seed;
                let end = Instant::now() + PATIENCE;
                // Repeats until a change has met a row that is being inserted, for which both threads must
                // have run.
                loop {
                    (0..READS).for_each(|_| read(&truth, &mut state));
                    if cfg!(miri) || truth.tier.status().refused > 0 || Instant::now() > end {
                        break;
                    }
                }
            })
        })
        .collect();
    let (mut state, mut change) = (99, 0);
    while !threads.iter().all(|thread| thread.is_finished()) {
        change += 1;
        let key = random(&mut state) * random(&mut state) % KEYS;
        let mut page = truth.pages[key as usize].write();
        truth.tier.invalidate(1, || key.to_be_bytes(), &truth.kept);
        *page = change;
        drop(page);
        truth.done[key as usize].store(change, SeqCst);
        if change % 500 == 0 {
            truth.tier.resize([40 << 10, 0, 100 << 10, 20 << 10, 60 << 10][(change / 500 % 5) as usize]);
            thread::yield_now();
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let status = truth.tier.status();
    assert!(cfg!(miri) || status.hits > 0 && status.fills > 0 && status.refused > 0, "{status:?}");
}

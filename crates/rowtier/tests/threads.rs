//! Readers, writers, evictions and changes of size at once: nothing old and nothing torn is ever found.
#![cfg(not(feature = "shuttle"))]

use base::random::Random;
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

/// Some keys more often than others.
fn some_key(random: &mut Random) -> u64 {
    u64::from(random.below(1 << 31)) * u64::from(random.below(1 << 31)) % KEYS
}

fn bytes(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + number as usize % 40)
}

fn number(bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes, self::bytes(number), "a value is torn");
    number
}

fn read(truth: &Truth, random: &mut Random) {
    let key = some_key(random);
    let name = key.to_be_bytes();
    let at_least = truth.done[key as usize].load(SeqCst);
    let mut out = Vec::new();
    let found = if truth.tier.get(truth.tier.probe(1, &name), &name, &mut out) {
        number(&out)
    } else {
        let lease = truth.tier.lease(1, &name, &truth.kept);
        if random.below(64) == 0 {
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
                let mut random = Random::new(1, seed);
                let end = Instant::now() + PATIENCE;
                // Repeats until a change has met a row that is being inserted, for which both threads must
                // have run.
                loop {
                    (0..READS).for_each(|_| read(&truth, &mut random));
                    if cfg!(miri) || truth.tier.status().refused > 0 || Instant::now() > end {
                        break;
                    }
                }
            })
        })
        .collect();
    let (mut random, mut change) = (Random::new(1, 99), 0);
    while !threads.iter().all(|thread| thread.is_finished()) {
        change += 1;
        let key = some_key(&mut random);
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

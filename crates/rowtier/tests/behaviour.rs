//! What a tier keeps, and what it does not.
#![cfg(not(feature = "shuttle"))]

use latchwork_rowtier::{Announced, Config, Replacement, RowTier, Status};

const OWNER: u64 = 3;
const BUCKETS: usize = 64 * 128;

/// A tier of `blocks` blocks of 8 KiB, beside the smallest index.
fn tier(blocks: usize) -> RowTier {
    let tier = RowTier::with_config(Config { block_words: 1 << 10, ..Config::new(64 << 20) }).unwrap();
    tier.resize(blocks * 8192 + BUCKETS);
    tier
}

fn value(number: u32, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i as u32 + number) as u8).collect()
}

fn put(tier: &RowTier, kept: &Announced, number: u32, length: usize) -> bool {
    let key = number.to_be_bytes();
    let lease = tier.lease(OWNER, &key, kept).unwrap();
    tier.put(lease, &key, &[&value(number, length)])
}

fn get(tier: &RowTier, number: u32) -> Option<Vec<u8>> {
    let key = number.to_be_bytes();
    let mut out = vec![9];
    let found = tier.get(tier.probe(OWNER, &key), &key, &mut out);
    assert!(out[0] == 9 && (found || out.len() == 1));
    found.then(|| out[1..].to_vec())
}

#[test]
fn values_of_all_lengths_are_found_as_they_were_put() {
    let (tier, kept) = (tier(64), Announced::default());
    for number in 0..600 {
        assert!(put(&tier, &kept, number, number as usize));
    }
    for number in 0..600 {
        assert_eq!(get(&tier, number).unwrap(), value(number, number as usize));
    }
    assert_eq!(get(&tier, 600), None);
    // Another owner's key of the same bytes is another key.
    let key = 5_u32.to_be_bytes();
    assert!(!tier.get(tier.probe(OWNER + 1, &key), &key, &mut Vec::new()));
    let Status { entries, hits, misses, fills, evictions, refused, .. } = tier.status();
    assert_eq!((entries, hits, misses, fills, evictions, refused), (600, 600, 2, 600, 0, 0));
}

#[test]
fn an_entry_goes_when_its_value_is_about_to_change_and_a_lease_from_before_is_refused() {
    let (tier, kept) = (tier(16), Announced::default());
    assert!(put(&tier, &kept, 1, 10));
    let key = 1_u32.to_be_bytes();
    let early = tier.lease(OWNER, &key, &kept).unwrap();
    tier.invalidate(OWNER, || key, &kept);
    assert_eq!(get(&tier, 1), None);
    assert!(!tier.put(early, &key, &[b"old"]));
    assert_eq!(get(&tier, 1), None);
    assert!(put(&tier, &kept, 1, 20));
    assert_eq!(get(&tier, 1).unwrap().len(), 20);
    // What is not there may still have been leased.
    let early = tier.lease(OWNER, &2_u32.to_be_bytes(), &kept).unwrap();
    tier.invalidate(OWNER, || 2_u32.to_be_bytes(), &kept);
    assert!(!tier.put(early, &2_u32.to_be_bytes(), &[b"old"]));
    let Status { invalidations, refused, .. } = tier.status();
    assert_eq!((invalidations, refused), (1, 2));
}

#[test]
fn a_value_of_no_bytes_is_one() {
    let (tier, kept) = (tier(16), Announced::default());
    let lease = tier.lease(OWNER, b"nothing", &kept).unwrap();
    assert!(tier.put(lease, b"nothing", &[]));
    assert_eq!(tier.status().entries, 1);
    let mut out = b"before".to_vec();
    assert!(tier.get(tier.probe(OWNER, b"nothing"), b"nothing", &mut out));
    assert_eq!(out, b"before");
    tier.invalidate(OWNER, || b"nothing", &kept);
    assert!(!tier.get(tier.probe(OWNER, b"nothing"), b"nothing", &mut out));
}

#[test]
fn what_nobody_keeps_costs_who_changes_it_nothing() {
    let (tier, kept, other) = (tier(16), Announced::default(), Announced::default());
    assert!(put(&tier, &kept, 1, 10));
    // Of another file: nothing of it was ever kept.
    tier.invalidate(OWNER, || 1_u32.to_be_bytes(), &other);
    assert!(get(&tier, 1).is_some());
}

#[test]
fn what_is_read_again_and_again_outlasts_what_is_not() {
    for replacement in [Replacement::SecondChance, Replacement::NewShare(10), Replacement::ByHits(10)] {
        let config = Config { block_words: 1 << 10, replacement, ..Config::new(64 << 20) };
        let (tier, kept) = (RowTier::with_config(config).unwrap(), Announced::default());
        tier.resize(32 * 8192 + BUCKETS);
        let (mut hits, mut rounds) = (0, 0);
        for number in 1_000..30_000 {
            assert!(put(&tier, &kept, number, 100));
            let hot = number % 50;
            if number > 10_000 {
                rounds += 1;
                hits += u32::from(get(&tier, hot).is_some());
            }
            if get(&tier, hot).is_none() {
                assert!(put(&tier, &kept, hot, 100));
            }
        }
        assert!(hits * 100 > rounds * 99, "{hits} of {rounds} with {replacement:?}");
        let status = tier.status();
        assert!(status.evictions > 20_000 && status.bytes <= status.size, "{status:?}");
    }
}

#[test]
fn the_size_is_kept_to_while_it_changes_and_entries_of_all_lengths_come_and_go() {
    let (tier, kept) = (tier(0), Announced::default());
    assert!(!tier.is_on() && tier.lease(OWNER, b"key", &kept).is_none());
    for (round, blocks) in [8, 60, 61, 200, 30, 4, 3, 100, 5, 0, 700, 12].into_iter().enumerate() {
        let bytes = blocks * 8192 + BUCKETS;
        tier.resize(bytes);
        assert_eq!(tier.is_on(), blocks >= 4);
        let status = tier.status();
        assert!(status.bytes <= status.size, "{status:?}");
        if !tier.is_on() {
            assert_eq!((status.bytes, status.entries), (0, 0));
            continue;
        }
        // Rows of 8 bytes want many more buckets than rows of 500.
        for number in 0..20_000 {
            put(&tier, &kept, number, [8, 60, 500][(round + number as usize / 7_000) % 3]);
            if number % 1_000 == 0 {
                assert!(tier.bytes() <= bytes, "{:?}", tier.status());
            }
        }
        let found = (0..20_000).filter(|number| get(&tier, *number).is_some()).count();
        let status = tier.status();
        assert_eq!(found, status.entries, "{status:?}");
        assert!(status.bytes <= bytes && (blocks < 60 || found > blocks * 10), "{status:?}");
    }
}

#[test]
fn a_lease_from_before_the_tier_was_off_is_refused() {
    let (tier, kept) = (tier(16), Announced::default());
    let key = 1_u32.to_be_bytes();
    let early = tier.lease(OWNER, &key, &kept).unwrap();
    tier.resize(0);
    // The change that nobody notes, for there is nothing to be found.
    tier.invalidate(OWNER, || key, &kept);
    assert!(!tier.put(early, &key, &[b"old"]));
    tier.resize(1 << 20);
    assert!(!tier.put(early, &key, &[b"old"]));
    assert_eq!(get(&tier, 1), None);
}

#[test]
fn what_went_lately_and_is_wanted_again_is_counted() {
    let (tier, kept) = (tier(32), Announced::default());
    let rounds = |from: u32, to: u32| {
        for number in (from..to).chain(from..to) {
            if get(&tier, number).is_none() {
                assert!(put(&tier, &kept, number, 200));
            }
        }
        tier.ghost_hits()
    };
    // Half as much again as fits: a larger tier would have had it.
    let few = rounds(0, 1_500);
    assert!(few > 500, "{few}");
    // Twenty times as much as fits: a slightly larger one would not.
    let many = rounds(100_000, 120_000) - few;
    assert!(many < 200, "{many}");
}

#[test]
fn values_that_are_too_long_are_not_kept() {
    let (tier, kept) = (tier(16), Announced::default());
    assert!(put(&tier, &kept, 1, 2_000));
    assert!(!put(&tier, &kept, 2, 2_100) && !put(&tier, &kept, 3, 17_000));
    assert_eq!(tier.status().entries, 1);
}

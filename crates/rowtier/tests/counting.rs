//! The cost of a hit, counted: `cargo test -p latchwork-rowtier --features counting`.
#![cfg(all(feature = "counting", not(feature = "shuttle")))]

use base::sync::{Counts, counts};
use latchwork_rowtier::{Announced, RowTier};

fn cost(run: impl FnOnce()) -> Counts {
    let before = counts();
    run();
    let after = counts();
    Counts {
        shared_writes: after.shared_writes - before.shared_writes,
        latches: after.latches - before.latches,
    }
}

#[test]
fn a_hit_takes_no_latch_and_writes_nothing_shared_but_the_first_time() {
    let tier = RowTier::new(4 << 20).unwrap();
    tier.resize(4 << 20);
    let kept = Announced::default();
    for number in 0..300_u64 {
        let key = number.to_be_bytes();
        let lease = tier.lease(1, &key, &kept).unwrap();
        assert!(tier.put(lease, &key, &[&[7; 200]]));
    }
    let mut out = Vec::new();
    let mut read_all = |from: u64| {
        for number in from..from + 300 {
            let key = number.to_be_bytes();
            let probe = tier.probe(1, &key);
            tier.prefetch_bucket(probe);
            tier.prefetch_entry(probe);
            out.clear();
            assert_eq!(tier.get(probe, &key, &mut out), number < 300);
        }
    };
    // What finds the thread its counters takes their latch, once.
    read_all(5_000);
    assert_eq!(cost(|| read_all(0)), Counts { shared_writes: 300, latches: 0 });
    assert_eq!(cost(|| read_all(0)), Counts::default());
    // Neither does a miss, nor a change of what nobody has ever kept.
    assert_eq!(cost(|| read_all(5_000)), Counts::default());
    assert_eq!(cost(|| assert!(!tier.invalidate(1, || b"key", &Announced::default()))), Counts::default());
    let status = tier.status();
    assert_eq!((status.hits, status.misses), (600, 600));
}

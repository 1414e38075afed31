//! How much memory a row takes beyond its bytes. Alone in its process: it looks at what the process has.
#![cfg(all(target_os = "linux", not(feature = "shuttle"), not(miri)))]

use latchwork_rowtier::{Announced, RowTier};

const ROW: [u8; 200] = [7; 200];

/// Memory that the process has, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn a_row_of_200_bytes_takes_less_than_48_more_with_its_key_its_share_of_the_index_and_all() {
    let tier = RowTier::new(128 << 20).unwrap();
    tier.resize(128 << 20);
    let kept = Announced::default();
    for rows in [150_000_u64, 200_000, 250_000, 300_000, 350_000, 400_000, 1_200_000] {
        let before = resident() - tier.bytes();
        for number in tier.status().fills..rows {
            let key = number.to_be_bytes();
            let lease = tier.lease(1, &key, &kept).unwrap();
            assert!(tier.put(lease, &key, &[&ROW]));
        }
        let status = tier.status();
        let taken = resident() - before;
        let overhead = |bytes: usize| bytes as f64 / status.entries as f64 - ROW.len() as f64;
        println!(
            "{} rows: {:.1} bytes each beyond their own by the process's memory, {:.1} by the tier's count",
            status.entries,
            overhead(taken),
            overhead(status.bytes)
        );
        assert!((status.overhead() - overhead(status.bytes)).abs() < 0.1);
        assert!(overhead(taken) < 48.0 && overhead(status.bytes) < 48.0, "{status:?}");
    }
    let status = tier.status();
    assert!(status.entries > 500_000 && status.bytes <= 128 << 20, "{status:?}");
}

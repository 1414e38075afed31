//! Records of any size over the borders of files and the seam of the ring, with starts in between.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::sync::Arc;
use common::{CrashVfs, Kept, payload, read_from};
use latchwork_wal::{Checkpoint, Durability, FIRST_LSN, Log, LogConfig, OWNER_WORDS};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Append {
        bytes: usize,
    },
    Flush,
    Write,
    /// All that is durable is a checkpoint, and no longer needed.
    Checkpoint,
    Prepare,
    /// The machine stops; the next start uses these.
    Crash {
        blocks: u64,
        buffer_bits: u32,
        spare_files: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let sizes = prop_oneof![0..40_usize, 0..600_usize, 4000..4200_usize, 0..12_000_usize];
    prop_oneof![
        8 => sizes.prop_map(|bytes| Step::Append { bytes }),
        3 => Just(Step::Flush),
        1 => Just(Step::Write),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Prepare),
        1 => (2..5_u64, 6..14_u32, 0..3_usize).prop_map(|(blocks, buffer_bits, spare_files)| Step::Crash {
            blocks,
            buffer_bits,
            spare_files
        }),
    ]
}

fn configuration(blocks: u64, buffer_bits: u32, spare_files: usize) -> LogConfig {
    LogConfig {
        file_size: blocks * 4096,
        buffer_size: 1 << buffer_bits,
        spare_files,
        ..LogConfig::new(common::DIR)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn what_is_read_is_what_was_appended(steps in prop::collection::vec(step(), 1..60)) {
        let mut device = CrashVfs::default();
        let mut log = Log::create(Arc::new(device.clone()), configuration(2, 7, 1)).unwrap();
        let mut kept: Vec<Kept> = Vec::new();
        for (seed, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append { bytes } => {
                    let text = payload(seed as u64, bytes);
                    let place = log.append(seed as u8, &[&text]).unwrap();
                    kept.push(Kept { lsn: place.start, end: place.end, kind: seed as u8, payload: text });
                }
                Step::Flush => log.flush(log.next_lsn(), Durability::Synced).unwrap(),
                Step::Write => {
                    log.flush(log.next_lsn(), Durability::Written).unwrap();
                    let needed = log.checkpoint().map_or(FIRST_LSN, |checkpoint| checkpoint.needed);
                    let (records, ..) = common::drain(log.read_from(needed).unwrap());
                    prop_assert_eq!(&records, &kept);
                }
                Step::Checkpoint => {
                    let needed = log.next_lsn();
                    log.write_checkpoint(Checkpoint { lsn: needed, needed, owner: [1; OWNER_WORDS] }).unwrap();
                    log.remove_unneeded().unwrap();
                    kept.clear();
                }
                Step::Prepare => log.prepare_file().unwrap(),
                Step::Crash { blocks, buffer_bits, spare_files } => {
                    let synced = log.flushed_lsn();
                    let vfs = device.after_crash();
                    let checkpoint = Checkpoint::read(&*vfs, common::DIR.as_ref()).unwrap();
                    let needed = checkpoint.map_or(FIRST_LSN, |checkpoint| checkpoint.needed);
                    let (records, end, _) = read_from(&*vfs, needed);
                    prop_assert!(end >= synced);
                    kept.truncate(records.len());
                    prop_assert_eq!(&records, &kept);
                    device = CrashVfs::holding(&vfs);
                    let config = configuration(blocks, buffer_bits, spare_files);
                    log = Log::open_at(Arc::new(device.clone()), config, end).unwrap();
                }
            }
        }
    }
}

//! What the log does in one thread: records, files, checkpoints, ends.
#![cfg(not(feature = "shuttle"))]

mod common;

use base::Lsn;
use base::checksum::checksum;
use base::sync::Arc;
use common::{DIR, config, copy_of, drain, file_path, payload, read_all, read_from};
use latchwork_wal::{
    Checkpoint, Durability, End, Error, FIRST_LSN, Log, LogConfig, OWNER_WORDS, PAYLOAD_MAX, Reader, format,
};
use std::path::Path;
use vfs::{Create, MemVfs, OsVfs, Vfs};

fn new_log(config: LogConfig) -> (Arc<MemVfs>, Log) {
    let vfs = Arc::new(MemVfs::new());
    let log = Log::create(vfs.clone(), config).unwrap();
    (vfs, log)
}

fn flush_all(log: &Log) {
    log.flush(log.next_lsn(), Durability::Synced).unwrap();
}

fn checkpoint(needed: Lsn) -> Checkpoint {
    Checkpoint { lsn: needed, needed, owner: [5; OWNER_WORDS] }
}

/// Where a position of the first file is in it.
fn offset(lsn: Lsn) -> u64 {
    lsn.0 - FIRST_LSN.0 + format::FILE_HEADER_BYTES
}

#[test]
fn records_come_back_in_order_with_their_kinds_and_places() {
    let (vfs, log) = new_log(config(1024));
    let mut places = Vec::new();
    for i in 0..50_u64 {
        let text = payload(i, i as usize * 7);
        let (first, second) = text.split_at(text.len() / 3);
        places.push((log.append(i as u8, &[first, second]).unwrap(), i as u8, text));
    }
    flush_all(&log);
    let (records, end, why) = read_all(&*vfs);
    assert_eq!(records.len(), places.len());
    for (record, (place, kind, text)) in records.iter().zip(&places) {
        assert_eq!((record.lsn..record.end, record.kind, &record.payload), (place.clone(), *kind, text));
    }
    assert_eq!((end, why), (log.next_lsn(), End::Nothing));
    assert_eq!(log.flushed_lsn(), end);
}

#[test]
fn what_was_not_flushed_is_not_there() {
    let (vfs, log) = new_log(config(1024));
    log.append(0, &[b"first"]).unwrap();
    flush_all(&log);
    log.append(0, &[b"second"]).unwrap();
    assert_eq!(read_all(&*vfs).0.len(), 1);
    assert!(log.written_lsn() < log.next_lsn());
}

#[test]
fn a_record_larger_than_the_ring_and_a_file_passes_through_both() {
    let (vfs, log) = new_log(config(64));
    let text = payload(1, 20_000);
    log.append(9, &[b"small"]).unwrap();
    log.append(9, &[&text]).unwrap();
    flush_all(&log);
    let (records, ..) = read_all(&*vfs);
    assert_eq!(records[1].payload, text);
    assert!(log.status().waits > 0);
    assert!(log.status().files >= 5);
}

#[test]
fn a_torn_tail_at_every_byte_ends_the_records_at_the_last_whole_one() {
    let (vfs, log) = new_log(config(1024));
    for i in 0..6 {
        log.append(1, &[&payload(i, 1 + 5 * i as usize)]).unwrap();
    }
    flush_all(&log);
    let (records, end, _) = read_all(&*vfs);
    for cut in offset(FIRST_LSN)..=offset(end) {
        for fill in [Some(0), Some(0xff), None] {
            let vfs = copy_of(&vfs);
            let file = vfs.open(&file_path(1), Create::Never).unwrap();
            match fill {
                Some(fill) => file.write_at(&vec![fill; (offset(end) - cut) as usize], cut).unwrap(),
                None => file.set_len(cut).unwrap(),
            }
            // Zeroes in the place of padding change nothing.
            let is_whole = |record: &&common::Kept| {
                let used = format::RECORD_HEADER_BYTES as u64 + record.payload.len() as u64;
                let padded = offset(record.end);
                let least = if fill == Some(0) { offset(record.lsn) + used } else { padded };
                least <= cut
            };
            let expected: Vec<_> = records.iter().take_while(is_whole).cloned().collect();
            let (found, found_end, _) = read_all(&*vfs);
            assert_eq!(found, expected, "cut at {cut}, filled with {fill:?}");

            // And the log goes on from there.
            let log = Log::open_at(vfs.clone(), config(1024), found_end).unwrap();
            let place = log.append(2, &[b"new"]).unwrap();
            assert_eq!(place.start, found_end);
            flush_all(&log);
            let (after, end, why) = read_all(&*vfs);
            assert_eq!(after.len(), expected.len() + 1);
            assert_eq!((end, why), (place.end, End::Nothing));
        }
    }
}

#[test]
fn records_behind_the_end_do_not_come_back_to_life() {
    let (vfs, log) = new_log(config(1024));
    let places: Vec<_> = (0..3).map(|i| log.append(1, &[&payload(i, 100)]).unwrap()).collect();
    flush_all(&log);
    drop(log);
    // The second is damaged, so the third is out of reach, whole as it is.
    let file = vfs.open(&file_path(1), Create::Never).unwrap();
    file.write_at(b"damage", offset(places[1].start) + 20).unwrap();
    let (records, end, why) = read_all(&*vfs);
    assert_eq!((records.len(), end, why), (1, places[1].start, End::Checksum));

    let log = Log::open_at(vfs.clone(), config(1024), end).unwrap();
    assert_eq!(log.append(1, &[&payload(7, 100)]).unwrap(), places[1]);
    flush_all(&log);
    let (records, end, why) = read_all(&*vfs);
    assert_eq!((records.len(), end, why), (2, places[1].end, End::Nothing));
}

#[test]
fn files_behind_the_end_are_removed() {
    let (vfs, log) = new_log(config(1024));
    let first = log.append(1, &[b"first"]).unwrap();
    log.append(1, &[&payload(1, 10_000)]).unwrap();
    flush_all(&log);
    drop(log);
    let log = Log::open_at(vfs.clone(), config(1024), first.end).unwrap();
    assert_eq!(log.status().files, 1);
    assert!(!vfs.exists(&file_path(2)).unwrap());
    flush_all(&log);
    assert_eq!(read_all(&*vfs).1, first.end);
}

#[test]
fn records_of_a_recycled_file_are_not_believed() {
    let config = LogConfig { spare_files: 2, ..config(1024) };
    let (vfs, log) = new_log(config.clone());
    // Records that divide a file evenly: in a recycled file old ones lie exactly where new ones would.
    let text = payload(1, 128 - format::RECORD_HEADER_BYTES);
    let mut recycled = 0;
    for round in 0..200 {
        log.append(1, &[&text]).unwrap();
        flush_all(&log);
        if round % 40 == 39 {
            log.write_checkpoint(checkpoint(log.next_lsn())).unwrap();
            recycled += log.remove_unneeded().unwrap();
        }
        let from = log.checkpoint().map_or(FIRST_LSN, |checkpoint| checkpoint.needed);
        let (_, end, _) = read_from(&*vfs, from);
        assert_eq!(end, log.next_lsn(), "round {round}");
    }
    assert!(recycled >= 4, "{recycled}");
}

#[test]
fn an_old_record_in_a_recycled_file_ends_the_records() {
    let config = LogConfig { spare_files: 2, ..config(1024) };
    let (vfs, log) = new_log(config.clone());
    let text = payload(1, 128 - format::RECORD_HEADER_BYTES);
    // One file and a bit; the first file then becomes the third.
    (0..40).for_each(|_| assert!(!log.append(1, &[&text]).unwrap().is_empty()));
    log.write_checkpoint(checkpoint(log.next_lsn())).unwrap();
    assert_eq!(log.remove_unneeded().unwrap(), 1);
    assert!(vfs.exists(&file_path(3)).unwrap() && !vfs.exists(&file_path(1)).unwrap());
    // Up to the third file and a bit into it.
    (0..30).for_each(|_| assert!(!log.append(1, &[&text]).unwrap().is_empty()));
    flush_all(&log);
    assert_eq!(log.status().files, 2);
    let (_, end, why) = read_from(&*vfs, log.checkpoint().unwrap().needed);
    assert_eq!((end, why), (log.next_lsn(), End::Checksum));

    drop(log);
    let log = Log::open_at(vfs.clone(), config, end).unwrap();
    let (_, end, why) = read_from(&*vfs, log.checkpoint().unwrap().needed);
    assert_eq!((end, why), (log.next_lsn(), End::Nothing));
}

#[test]
fn unneeded_files_beyond_the_spare_ones_are_removed() {
    let config = LogConfig { spare_files: 0, ..config(1024) };
    let (vfs, log) = new_log(config);
    log.append(1, &[&payload(1, 30_000)]).unwrap();
    assert_eq!(log.remove_unneeded().unwrap(), 0, "no checkpoint, everything is needed");
    log.write_checkpoint(checkpoint(log.next_lsn())).unwrap();
    let files = log.status().files;
    assert_eq!(log.remove_unneeded().unwrap(), files - 1);
    assert_eq!(vfs.list(DIR.as_ref()).unwrap().len(), 2, "a log file and the checkpoint");
    log.append(1, &[b"more"]).unwrap();
    flush_all(&log);
    assert_eq!(read_from(&*vfs, log.checkpoint().unwrap().needed).0.len(), 1);
}

#[test]
fn a_log_goes_on_with_files_of_another_size() {
    let (vfs, log) = new_log(config(1024));
    log.append(1, &[&payload(1, 6000)]).unwrap();
    flush_all(&log);
    let mut end = log.next_lsn();
    drop(log);
    for (i, blocks) in [4, 2, 3].into_iter().enumerate() {
        let config = LogConfig { file_size: blocks * 4096, ..config(1024) };
        let log = Log::open_at(vfs.clone(), config, end).unwrap();
        log.append(1, &[&payload(i as u64, 30_000)]).unwrap();
        flush_all(&log);
        end = log.next_lsn();
        let (records, found, _) = read_all(&*vfs);
        assert_eq!((records.len(), found), (2 + i, end));
    }
}

#[test]
fn a_log_that_ends_at_a_border_goes_on() {
    for made_ahead in [false, true] {
        let (vfs, log) = new_log(config(1024));
        let place = log.append(1, &[&payload(1, 4096 - format::RECORD_HEADER_BYTES)]).unwrap();
        flush_all(&log);
        if made_ahead {
            log.prepare_file().unwrap();
        }
        drop(log);
        let (_, end, _) = read_all(&*vfs);
        assert_eq!(end, place.end);
        let log = Log::open_at(vfs.clone(), config(1024), end).unwrap();
        log.append(1, &[b"next"]).unwrap();
        flush_all(&log);
        assert_eq!(read_all(&*vfs).0.len(), 2);
        log.write_checkpoint(checkpoint(place.end)).unwrap();
        log.remove_unneeded().unwrap();
        drop(log);
        assert_eq!(read_from(&*vfs, place.end).0.len(), 1);
    }
}

#[test]
fn a_file_is_made_ahead_once() {
    let (_, log) = new_log(config(1024));
    assert_eq!(log.status().files, 1);
    log.prepare_file().unwrap();
    log.prepare_file().unwrap();
    assert_eq!(log.status().files, 2);
}

#[test]
fn a_checkpoint_is_read_back_and_the_torn_one_is_not() {
    let (vfs, log) = new_log(config(1024));
    assert_eq!(Checkpoint::read(&*vfs, DIR.as_ref()).unwrap(), None);
    let path = Path::new(DIR).join("checkpoint");
    for i in 1..=5_u64 {
        let place = log.append(1, &[b"work"]).unwrap();
        let now = Checkpoint { lsn: place.end, needed: place.start, owner: [i; OWNER_WORDS] };
        let before = log.checkpoint();
        log.write_checkpoint(now).unwrap();
        assert_eq!(Checkpoint::read(&*vfs, DIR.as_ref()).unwrap(), Some(now));
        // Had it been torn, the one before would hold.
        let vfs = copy_of(&vfs);
        vfs.open(&path, Create::Never).unwrap().write_at(b"torn", i % 2 * 4096 + 50).unwrap();
        assert_eq!(Checkpoint::read(&*vfs, DIR.as_ref()).unwrap(), before);
    }
    let file = vfs.open(&path, Create::Never).unwrap();
    file.write_at(b"torn", 50).unwrap();
    file.write_at(b"torn", 4096 + 50).unwrap();
    assert!(matches!(Checkpoint::read(&*vfs, DIR.as_ref()), Err(Error::WrongFormat { .. })));
}

/// A later build wrote them. To take them for damage would be to begin an empty log, or an old one.
#[test]
fn files_of_a_later_format_are_refused_and_left_as_they_are() {
    let (vfs, log) = new_log(config(1024));
    let place = log.append(1, &[b"work"]).unwrap();
    log.flush(place.end, Durability::Synced).unwrap();
    log.write_checkpoint(Checkpoint { lsn: place.end, needed: place.start, owner: [1; OWNER_WORDS] })
        .unwrap();
    drop(log);
    let sum_of_file = |bytes: &[u8]| (60, checksum(0, &bytes[..60]));
    // A checkpoint's copy has its sum in the middle of what it sums.
    let sum_of_copy = |bytes: &[u8]| (12, checksum(checksum(0, &bytes[..12]), &bytes[16..]));
    let copy_bytes = 40 + 8 * OWNER_WORDS;
    type Sum<'s> = &'s dyn Fn(&[u8]) -> (usize, u32);
    let cases: [(&str, usize, Sum<'_>); 2] =
        [("the first file", 64, &sum_of_file), ("checkpoint", copy_bytes, &sum_of_copy)];
    for (name, bytes, sum) in cases {
        let vfs = copy_of(&vfs);
        let path = if name == "checkpoint" { Path::new(DIR).join(name) } else { file_path(1) };
        let file = vfs.open(&path, Create::Never).unwrap();
        for at in if name == "checkpoint" { vec![0, 4096] } else { vec![0] } {
            let mut head = vec![0; bytes];
            file.read_at(&mut head, at).unwrap();
            if head.iter().all(|byte| *byte == 0) {
                continue;
            }
            let (place, before) = sum(&head);
            assert_eq!(head[place..place + 4], before.to_le_bytes(), "{name}: its checksum is elsewhere");
            head[8] += 1;
            let (_, after) = sum(&head);
            head[place..place + 4].copy_from_slice(&after.to_le_bytes());
            file.write_at(&head, at).unwrap();
        }
        let is_refused =
            |error: &Error| matches!(error, Error::WrongFormat { why, .. } if why.contains("format"));
        for _ in 0..2 {
            let read = Checkpoint::read(&*vfs, DIR.as_ref()).map(drop);
            let error = read.and(Reader::open(&*vfs, DIR.as_ref(), place.start).map(drop)).unwrap_err();
            assert!(is_refused(&error), "{name}: {error}");
            let error = Log::open_at(vfs.clone(), config(1024), place.end).map(drop).unwrap_err();
            assert!(is_refused(&error), "{name}: {error}");
        }
    }
}

#[test]
fn a_checkpoint_that_cannot_be_is_refused() {
    let (_, log) = new_log(config(1024));
    let place = log.append(1, &[b"work"]).unwrap();
    log.write_checkpoint(checkpoint(place.end)).unwrap();
    let refused = [
        checkpoint(place.start),
        checkpoint(Lsn(place.end.0 + 8)),
        Checkpoint { needed: place.end, ..checkpoint(place.start) },
    ];
    for checkpoint in refused {
        assert!(matches!(log.write_checkpoint(checkpoint), Err(Error::Checkpoint { .. })));
    }
    assert_eq!(log.checkpoint().unwrap().needed, place.end);
}

#[test]
fn a_log_that_ends_before_its_checkpoint_is_refused() {
    let (vfs, log) = new_log(config(1024));
    let place = log.append(1, &[b"work"]).unwrap();
    log.append(1, &[b"work"]).unwrap();
    log.write_checkpoint(Checkpoint { needed: FIRST_LSN, ..checkpoint(log.next_lsn()) }).unwrap();
    drop(log);
    assert!(matches!(Log::open_at(vfs, config(1024), place.end), Err(Error::Checkpoint { .. })));
}

#[test]
fn an_absent_beginning_is_not_an_empty_log() {
    let (vfs, log) = new_log(config(1024));
    log.append(1, &[&payload(1, 10_000)]).unwrap();
    flush_all(&log);
    drop(log);
    vfs.remove(&file_path(1)).unwrap();
    let read = Reader::open(&*vfs, DIR.as_ref(), FIRST_LSN);
    assert!(matches!(read, Err(Error::Missing { .. })));
    let opened = Log::open_at(vfs, config(1024), FIRST_LSN);
    assert!(matches!(opened, Err(Error::Missing { .. })));
}

#[test]
fn a_missing_file_in_the_middle_ends_the_records() {
    let (vfs, log) = new_log(config(1024));
    let first = log.append(1, &[b"first"]).unwrap();
    (0..100).for_each(|i| assert!(!log.append(1, &[&payload(i, 200)]).unwrap().is_empty()));
    flush_all(&log);
    drop(log);
    vfs.remove(&file_path(2)).unwrap();
    let (records, end, why) = read_all(&*vfs);
    assert_eq!(why, End::File);
    assert!(records.len() > 1 && end > first.end);
    let log = Log::open_at(vfs.clone(), config(1024), end).unwrap();
    log.append(1, &[&payload(1, 5000)]).unwrap();
    flush_all(&log);
    assert_eq!(read_all(&*vfs).0.len(), records.len() + 1);
}

#[test]
fn what_a_log_in_use_has_written_can_be_read() {
    let (_, log) = new_log(config(1024));
    let first = log.append(1, &[&payload(1, 5000)]).unwrap();
    log.flush(first.end, Durability::Written).unwrap();
    let second = log.append(1, &[b"second"]).unwrap();
    let (records, end, why) = drain(log.read_from(FIRST_LSN).unwrap());
    assert_eq!((records.len(), end, why), (1, second.start, End::Written));
    flush_all(&log);
    let (records, ..) = drain(log.read_from(second.start).unwrap());
    assert_eq!(records[0].payload, b"second");
    assert!(matches!(log.read_from(Lsn(1 << 40)), Err(Error::Missing { .. })));
}

#[test]
fn impossible_wishes_are_refused_and_harm_nothing() {
    let (vfs, log) = new_log(config(1024));
    let far = Lsn(log.next_lsn().0 + 8);
    assert!(matches!(log.flush(far, Durability::Synced), Err(Error::Beyond { .. })));
    let block = vec![1; 1 << 20];
    let parts = vec![&block[..]; PAYLOAD_MAX / block.len() + 1];
    assert!(matches!(log.append(1, &parts), Err(Error::TooLong { .. })));
    log.append(1, &[b"fine"]).unwrap();
    flush_all(&log);
    assert_eq!(read_all(&*vfs).0.len(), 1);

    let wrong = [
        LogConfig { file_size: 8191, ..config(64) },
        LogConfig { file_size: 4096, ..config(64) },
        config(32),
        config(100),
    ];
    for config in wrong {
        assert!(matches!(Log::create(Arc::new(MemVfs::new()), config), Err(Error::Config { .. })));
    }
    assert!(matches!(Log::create(vfs.clone(), config(64)), Err(Error::Config { .. })), "there is one");
    drop(log);
    assert!(matches!(Log::open_at(vfs, config(64), Lsn(4099)), Err(Error::Config { .. })));
}

#[test]
fn a_file_that_was_not_finished_is_removed() {
    let (vfs, log) = new_log(config(1024));
    drop(log);
    let unfinished = file_path(2).with_extension("new");
    vfs.open(&unfinished, Create::New).unwrap();
    drop(Log::open_at(vfs.clone(), config(1024), FIRST_LSN).unwrap());
    assert!(!vfs.exists(&unfinished).unwrap());
}

#[test]
fn the_operating_systems_files_hold_a_log_too() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { dir: dir.path().join("log"), ..config(1024) };
    let log = Log::create(Arc::new(OsVfs), config.clone()).unwrap();
    (0..20).for_each(|i| assert!(!log.append(1, &[&payload(i, 900)]).unwrap().is_empty()));
    log.write_checkpoint(checkpoint(log.next_lsn())).unwrap();
    log.remove_unneeded().unwrap();
    let place = log.append(2, &[b"last"]).unwrap();
    flush_all(&log);
    drop(log);
    let needed = Checkpoint::read(&OsVfs, &config.dir).unwrap().unwrap().needed;
    let reader = Reader::open(&OsVfs, &config.dir, needed).unwrap();
    let (records, end, _) = drain(reader);
    assert_eq!((records.len(), end), (1, place.end));
    Log::open_at(Arc::new(OsVfs), config, end).unwrap();
}

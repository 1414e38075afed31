//! A transaction's records in the log, little-endian.
//!
//! ```text
//! 16 ROW          stamp u64 | number u32 | file u32 | flags u8 | key length u16 | numbers 3 x u64 |
//!                 key | old cell
//!                 flags: 1 there was a row, 2 the old cell's overflow pages go with it, 4 it was deleted in
//!                 place
//! 17 INSERTED     stamp u64 | number u32 | file u32 | count u32 | numbers 3 x u64 | ends count x u32 | keys
//! 18 UNDONE       stamp u64 | number u32     what has this number or a higher one has been taken back
//! 19 COMMITTED    stamp u64
//! 20 ROLLED_BACK  stamp u64
//! 21 CHAIN        stamp u64 | file u32 | reference 20 bytes
//!                 overflow pages that are to go: the transaction has committed
//! 22 GARBAGE      stamp u64 | file u32 | flags u8 | key length u16 | key | old cell
//!                 a row is to be purged, as it was before the transaction: that has committed
//!                 flags: 1 the old cell's overflow pages go with it
//! ```
//!
//! ROW and INSERTED come before the pages are changed and say what undoes the change. Their number is the
//! change's among the transaction's: a later record of a number takes the place of an earlier one.
//! Checkpoints log both again at the log's end when the first ones would hold too much of it. What is still
//! to be purged of committed transactions they log as GARBAGE then, or as CHAIN alone.
//! `numbers` are the table's next AUTO_INCREMENT, row id and chain, so that none is given out again after a
//! crash.

use super::undo::{Change, Mark, RowChange, What};
use crate::definition::KeyList;
use crate::format::file_header::{COUNTERS_BYTES, Counters};
use crate::format::overflow::{REFERENCE_BYTES, Reference};
use crate::journal::kind;
use crate::table::Table;
use crate::table::core::Core;
use crate::{Error, Result};
use base::sync::Arc;
use base::{FileId, Lsn, Stamp};

const ROW: u8 = kind::LOGICAL;
const INSERTED: u8 = kind::LOGICAL + 1;
const UNDONE: u8 = kind::LOGICAL + 2;
const COMMITTED: u8 = kind::LOGICAL + 3;
const ROLLED_BACK: u8 = kind::LOGICAL + 4;
const CHAIN: u8 = kind::LOGICAL + 5;
const GARBAGE: u8 = kind::LOGICAL + 6;

const FLAG_OLD: u8 = 1;
const FLAG_CHAIN: u8 = 2;
const FLAG_IN_PLACE: u8 = 4;
const FLAG_GARBAGE_CHAIN: u8 = 1;

/// What ROW and INSERTED begin with, in bytes: stamp, number, file.
const HEAD_BYTES: usize = 16;
const _: () = assert!(HEAD_BYTES == size_of::<Stamp>() + size_of::<u32>() + size_of::<FileId>());
const _: () = assert!(COUNTERS_BYTES == size_of::<Counters>());

fn head(stamp: Stamp, number: usize, file: FileId) -> [u8; HEAD_BYTES] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&stamp.0.to_le_bytes());
    bytes[8..12].copy_from_slice(&(number as u32).to_le_bytes());
    bytes[12..].copy_from_slice(&file.0.to_le_bytes());
    bytes
}

pub(super) fn row(
    core: &Core,
    stamp: Stamp,
    number: usize,
    file: FileId,
    table: &Table,
    change: &RowChange,
) -> Result<()> {
    let mut flags = 0;
    if change.old.is_some() {
        flags |= FLAG_OLD;
    }
    if change.leaves_chain {
        flags |= FLAG_CHAIN;
    }
    if change.in_place {
        flags |= FLAG_IN_PLACE;
    }
    let key_len = (change.key.len() as u16).to_le_bytes();
    let old = change.old.as_deref().unwrap_or(&[]);
    let head = head(stamp, number, file);
    let parts: [&[u8]; 6] = [&head, &[flags], &key_len, &table.counters().to_bytes(), &change.key, old];
    core.journal.append(ROW, &parts).map(drop)
}

pub(super) fn inserted(
    core: &Core,
    stamp: Stamp,
    number: usize,
    file: FileId,
    table: &Table,
    keys: &KeyList,
) -> Result<()> {
    let count = (keys.len() as u32).to_le_bytes();
    let ends: Vec<u8> = keys.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
    let head = head(stamp, number, file);
    let parts: [&[u8]; 5] = [&head, &count, &table.counters().to_bytes(), &ends, &keys.bytes];
    core.journal.append(INSERTED, &parts).map(drop)
}

pub(super) fn undone(core: &Core, stamp: Stamp, mark: Mark) -> Result<()> {
    let parts: [&[u8]; 2] = [&stamp.0.to_le_bytes(), &(mark.0 as u32).to_le_bytes()];
    core.journal.append(UNDONE, &parts).map(drop)
}

/// Gives where the record ends.
pub(crate) fn committed(core: &Core, stamp: Stamp) -> Result<Lsn> {
    Ok(core.journal.append(COMMITTED, &[&stamp.0.to_le_bytes()])?.end)
}

pub(crate) fn rolled_back(core: &Core, stamp: Stamp) -> Result<()> {
    core.journal.append(ROLLED_BACK, &[&stamp.0.to_le_bytes()]).map(drop)
}

/// Overflow pages are to go, those of a row before a change that has committed.
pub(crate) fn chain(core: &Core, stamp: Stamp, file: FileId, chain: Reference) -> Result<()> {
    let parts: [&[u8]; 3] = [&stamp.0.to_le_bytes(), &file.0.to_le_bytes(), &chain.to_bytes()];
    core.journal.append(CHAIN, &parts).map(drop)
}

/// A row is to be purged, as it was before a change that has committed.
pub(crate) fn garbage(
    core: &Core,
    stamp: Stamp,
    file: FileId,
    has_chain: bool,
    key: &[u8],
    old: &[u8],
) -> Result<()> {
    let flags = if has_chain { FLAG_GARBAGE_CHAIN } else { 0 };
    let key_len = (key.len() as u16).to_le_bytes();
    let parts: [&[u8]; 6] = [&stamp.0.to_le_bytes(), &file.0.to_le_bytes(), &[flags], &key_len, key, old];
    core.journal.append(GARBAGE, &parts).map(drop)
}

/// A record, read.
#[derive(Debug)]
pub(crate) enum Record {
    Change { stamp: Stamp, number: u32, file: FileId, counters: Counters, change: Change },
    Undone { stamp: Stamp, number: u32 },
    Committed { stamp: Stamp },
    RolledBack { stamp: Stamp },
    Chain { stamp: Stamp, file: FileId, chain: Reference },
    Garbage { stamp: Stamp, file: FileId, has_chain: bool, key: Box<[u8]>, old: Arc<[u8]> },
}

impl Record {
    pub(crate) fn stamp(&self) -> Stamp {
        match self {
            Record::Change { stamp, .. }
            | Record::Undone { stamp, .. }
            | Record::Committed { stamp }
            | Record::RolledBack { stamp }
            | Record::Chain { stamp, .. }
            | Record::Garbage { stamp, .. } => *stamp,
        }
    }

    /// Reads a record.
    pub(crate) fn read(kind: u8, place: Lsn, payload: &[u8]) -> Result<Record> {
        let record = decode(kind, payload);
        record
            .ok_or_else(|| Error::Log { why: format!("the record of kind {kind} at {place} cannot be read") })
    }
}

fn decode(kind: u8, payload: &[u8]) -> Option<Record> {
    let mut rest = payload;
    let stamp = Stamp(u64::from_le_bytes(take(&mut rest)?));
    let record = match kind {
        ROW => {
            let number = u32::from_le_bytes(take(&mut rest)?);
            let file = FileId(u32::from_le_bytes(take(&mut rest)?));
            let [flags] = take(&mut rest)?;
            let key_len = usize::from(u16::from_le_bytes(take(&mut rest)?));
            let counters = counters(&mut rest)?;
            let (key, old) = rest.split_at_checked(key_len)?;
            let change = RowChange {
                key: key.into(),
                old: (flags & FLAG_OLD != 0).then(|| Arc::from(old)),
                in_place: flags & FLAG_IN_PLACE != 0,
                leaves_chain: flags & FLAG_CHAIN != 0,
                // Perhaps: the record comes before the row's index entries are looked at.
                leaves_garbage: flags & FLAG_OLD != 0,
            };
            rest = &[];
            Record::Change { stamp, number, file, counters, change: Change::logged(What::Row(change)) }
        }
        INSERTED => {
            let number = u32::from_le_bytes(take(&mut rest)?);
            let file = FileId(u32::from_le_bytes(take(&mut rest)?));
            let count = u32::from_le_bytes(take(&mut rest)?) as usize;
            let counters = counters(&mut rest)?;
            let (ends, bytes) = rest.split_at_checked(count.checked_mul(4)?)?;
            let ends: Vec<u32> = ends.as_chunks().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
            let is_whole = ends.is_sorted() && ends.last().copied().unwrap_or(0) as usize == bytes.len();
            let keys = is_whole.then(|| KeyList { bytes: bytes.to_vec(), ends })?;
            rest = &[];
            let change = Change::logged(What::Inserted(keys));
            Record::Change { stamp, number, file, counters, change }
        }
        UNDONE => Record::Undone { stamp, number: u32::from_le_bytes(take(&mut rest)?) },
        COMMITTED => Record::Committed { stamp },
        ROLLED_BACK => Record::RolledBack { stamp },
        CHAIN => {
            let file = FileId(u32::from_le_bytes(take(&mut rest)?));
            Record::Chain { stamp, file, chain: Reference::from_bytes(&take::<REFERENCE_BYTES>(&mut rest)?)? }
        }
        GARBAGE => {
            let file = FileId(u32::from_le_bytes(take(&mut rest)?));
            let [flags] = take(&mut rest)?;
            let key_len = usize::from(u16::from_le_bytes(take(&mut rest)?));
            let (key, old) = rest.split_at_checked(key_len)?;
            rest = &[];
            let has_chain = flags & FLAG_GARBAGE_CHAIN != 0;
            Record::Garbage { stamp, file, has_chain, key: key.into(), old: Arc::from(old) }
        }
        _ => return None,
    };
    rest.is_empty().then_some(record)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*bytes)
}

fn counters(rest: &mut &[u8]) -> Option<Counters> {
    let mut word = || Some(u64::from_le_bytes(take(rest)?));
    Some(Counters { next_auto_increment: word()?, next_row_id: word()?, next_chain: word()? })
}

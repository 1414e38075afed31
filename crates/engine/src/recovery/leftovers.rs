//! What the log says that is to be purged: rows as they were before changes that have committed.
//!
//! It is gathered while the log is read, and purged or queued when the tables are open. It may be as much
//! as the log holds, so it goes to a scratch file.
//!
//! ```text
//! stamp u64 | logged u64 | file u32 | key length u32 | cell length u32 | key | cell
//! ```

use crate::Result;
use crate::format::row::chain_of;
use crate::table::Table;
use crate::write::backlog::Garbage;
use crate::write::core::WriteCore;
use crate::write::scratch::{BLOCK_BYTES, Piece, Place, Scratch, changed};
use base::sync::Arc;
use base::{FileId, Lsn, Stamp};
use std::collections::BTreeMap;

/// A row, as it was before the transaction `stamp` changed it.
#[derive(Debug)]
pub(super) struct Leftover<'l> {
    pub stamp: Stamp,
    pub file: FileId,
    /// The log has it from here on.
    pub logged: Lsn,
    pub key: &'l [u8],
    pub old: &'l [u8],
}

#[derive(Debug)]
pub(super) struct Leftovers {
    scratch: Scratch,
    pieces: Vec<Piece>,
    /// The newest, which are not in a file yet.
    newest: Vec<u8>,
    /// False: there is more than this knows, and the tables are to be swept.
    is_whole: bool,
}

impl Leftovers {
    pub(super) fn new(scratch: &Place, is_whole: bool) -> Leftovers {
        let scratch = Scratch::new(scratch.clone());
        Leftovers { scratch, pieces: Vec::new(), newest: Vec::new(), is_whole }
    }

    pub(super) fn push(&mut self, item: Leftover<'_>) {
        if !self.is_whole {
            return;
        }
        let Leftover { stamp, file, logged, key, old } = item;
        self.newest.extend_from_slice(&stamp.0.to_le_bytes());
        self.newest.extend_from_slice(&logged.0.to_le_bytes());
        for word in [file.0, key.len() as u32, old.len() as u32] {
            self.newest.extend_from_slice(&word.to_le_bytes());
        }
        self.newest.extend_from_slice(key);
        self.newest.extend_from_slice(old);
        if self.newest.len() as u64 >= BLOCK_BYTES {
            match self.scratch.write(&self.newest) {
                Ok(piece) => self.pieces.push(piece),
                // A full disk, perhaps.
                Err(_) => {
                    self.is_whole = false;
                    self.pieces.clear();
                }
            }
            self.newest.clear();
        }
    }

    /// Purges what lies in overflow pages, which are about to go, and queues the rest. False if there is more
    /// than the log lists. The tables are not in use yet.
    pub(super) fn purge_or_queue(
        self,
        core: &WriteCore,
        tables: &BTreeMap<FileId, Arc<Table>>,
    ) -> Result<bool> {
        if !self.is_whole {
            return Ok(false);
        }
        let mut pieces = self.pieces.iter().map(Piece::read).chain(std::iter::once(Ok(self.newest)));
        // A piece that cannot be read: the tables are swept for it.
        let whole = pieces.try_for_each(|piece| {
            let piece = piece?;
            let mut rest = piece.as_slice();
            let mut queued = Vec::new();
            while !rest.is_empty() {
                let item = read(&mut rest).ok_or_else(changed)?;
                queued.extend(tables.get(&item.file).and_then(|table| purge(item, table)));
            }
            core.purge.add(Vec::new(), queued);
            core.purge.spill_some(core);
            Ok::<_, crate::Error>(())
        });
        Ok(whole.is_ok())
    }
}

/// Purges an item whose row had overflow pages. Gives one that is to be queued.
fn purge(item: Leftover<'_>, table: &Arc<Table>) -> Option<Garbage> {
    let Leftover { stamp, file, logged, key, old } = item;
    let (key, old) = (key.into(), old.into());
    let (table, has_chain, is_counted) = (table.clone(), false, true);
    table.add_garbage(1);
    let garbage = Garbage { table, file, key, old, stamp, has_chain, logged, is_counted };
    if chain_of(&garbage.old).is_none() {
        return Some(garbage);
    }
    // What cannot be purged now, for the disk is full or a page is damaged, is tried again.
    match garbage.table.purge_row(garbage.table.state(), &garbage) {
        Ok(()) => {
            garbage.table.remove_garbage(1);
            None
        }
        Err(_) => Some(garbage),
    }
}

fn read<'l>(rest: &mut &'l [u8]) -> Option<Leftover<'l>> {
    let (stamp, after) = rest.split_first_chunk::<8>()?;
    let (logged, after) = after.split_first_chunk::<8>()?;
    let (words, after) = after.split_first_chunk::<12>()?;
    let word = |at: usize| u32::from_le_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
    let (key, after) = after.split_at_checked(word(4) as usize)?;
    let (old, after) = after.split_at_checked(word(8) as usize)?;
    *rest = after;
    Some(Leftover {
        stamp: Stamp(u64::from_le_bytes(*stamp)),
        logged: Lsn(u64::from_le_bytes(*logged)),
        file: FileId(word(0)),
        key,
        old,
    })
}

//! Many rows at once: sorted index by index, so that runs of keys share a descent and a latch.

use super::active::Active;
use super::core::WriteCore;
use super::undo::Enlistment;
use crate::definition::KeyList;
use crate::format::row::{ROW_HEADER_BYTES, RowHeader};
use crate::table::state::TableState;
use crate::table::{Entry, Table};
use crate::tree::RunEnd;
use crate::{Error, Result};

/// Rows that are sorted and inserted together. More rows share more leaves of a random index; the
/// buffers (keys of all indexes) should stay in the processor's second-level cache.
const ROWS: usize = 4_096;
/// No more bytes of row images than these, unless one row alone has more.
const ROW_BYTES: usize = 4 << 20;

/// What [`Table::insert_bulk`] did.
pub(crate) struct Bulk {
    /// The rows that were taken on.
    pub rows: usize,
    /// They are in. If not, one of them collides, and none is.
    pub inserted: bool,
}

/// Rows of a list, from a position on.
struct Part<'r> {
    rows: &'r KeyList,
    from: usize,
}

/// Entries of one index in key order.
#[derive(Default)]
struct Sorted {
    keys: KeyList,
    /// Positions of entries, in key order.
    order: Vec<u32>,
}

impl Sorted {
    fn sort(&mut self) {
        let keys = &self.keys;
        let in_order = (1..keys.len()).all(|i| keys.get(i - 1) <= keys.get(i));
        if in_order {
            self.order = (0..keys.len() as u32).collect();
            return;
        }
        // The first eight bytes decide nearly always, without following the key.
        let mut heads: Vec<(u64, u32)> = (0..keys.len()).map(|i| (head(keys.get(i)), i as u32)).collect();
        heads.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| keys.get(a.1 as usize).cmp(keys.get(b.1 as usize)))
        });
        self.order = heads.into_iter().map(|(_, position)| position).collect();
    }

    fn key(&self, index: usize) -> &[u8] {
        self.keys.get(self.order[index] as usize)
    }

    fn position(&self, index: usize) -> usize {
        self.order[index] as usize
    }
}

fn head(key: &[u8]) -> u64 {
    let mut padded = [0; 8];
    let len = key.len().min(8);
    padded[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(padded)
}

impl Table {
    /// Inserts rows of `rows` from position `from` on, as many as are worth sorting together. On an error the
    /// caller takes back what it did.
    pub(crate) fn insert_bulk(
        &self,
        core: &WriteCore,
        active: &mut Active,
        table: Enlistment,
        rows: &KeyList,
        from: usize,
    ) -> Result<Bulk> {
        let state = self.live_state()?;
        let mut count = 0;
        let mut bytes = 0;
        while from + count < rows.len() && count < ROWS {
            bytes += rows.get(from + count).len();
            if bytes > ROW_BYTES && count > 0 {
                break;
            }
            count += 1;
        }
        // One row, or rows too large for a leaf, go the ordinary way.
        let value_max = state.indexes[0].tree.value_bytes_max(state.indexes[0].tree.key_bytes_max());
        let is_large = |position: usize| rows.get(position).len() + ROW_HEADER_BYTES > value_max;
        if count == 1 || (from..from + count).any(is_large) {
            return Ok(Bulk { rows: count, inserted: false });
        }
        let mut clustered = Sorted::default();
        clustered.keys.ends.reserve(count);
        let hidden = if state.def.primary.is_none() { Some(self.take_row_ids(count as u64)) } else { None };
        for position in from..from + count {
            let keys = &mut clustered.keys;
            match hidden {
                Some(first) => keys.bytes.extend((first + (position - from) as u64).to_be_bytes()),
                None => {
                    let row = self.row_codec().view(rows.get(position));
                    state.indexes[0].codec.encode_row(&row, &mut keys.bytes);
                }
            }
            keys.ends.push(keys.bytes.len() as u32);
        }
        clustered.sort();
        let inserted = self.insert_sorted(core, state, active, table, Part { rows, from }, &clustered)?;
        Ok(Bulk { rows: count, inserted })
    }

    /// Inserts sorted rows; false, and none is in, if one of them has a key that is there already.
    fn insert_sorted(
        &self,
        core: &WriteCore,
        state: &TableState,
        active: &mut Active,
        table: Enlistment,
        Part { rows, from }: Part<'_>,
        clustered: &Sorted,
    ) -> Result<bool> {
        let count = clustered.order.len();
        for position in 0..count {
            self.check_key(state, clustered.keys.get(position))?;
        }
        let header = RowHeader::new(active.stamp(), true).to_bytes();
        let mark = active.mark();
        let bytes = (from..from + count).map(|position| rows.get(position).len()).sum();
        active.push_inserted(core, table, clustered.keys.clone(), bytes)?;
        let mut inserted = 0;
        let row = |i: usize| (clustered.key(i), [&header[..], rows.get(from + clustered.position(i))]);
        // Somebody may have looked for the row, and locked its key because it was not there.
        let file = u64::from(state.space.file_id().0);
        let is_barred = |i: usize| {
            core.has_absent_locks() && active.transaction.is_locked_by_others(file, clustered.key(i))
        };
        let tree = &state.indexes[0].tree;
        let end = tree.insert_run(count, active.stamp(), &mut inserted, row, |_| None, is_barred);
        self.add_rows(inserted as i64);
        if inserted < count {
            // Only these are ours; a row of the same key, which may be this transaction's too, stays.
            let mut keys = KeyList::default();
            (0..inserted).for_each(|i| keys.push(clustered.key(i)));
            active.set_inserted(keys);
        }
        match end? {
            RunEnd::Done => {}
            RunEnd::Duplicate => {
                active.take_back(core, mark)?;
                return Ok(false);
            }
        }
        match self.insert_secondary(core, state, active, rows, from, clustered) {
            Ok(()) => Ok(true),
            Err(Error::DuplicateKey { .. }) => {
                active.take_back(core, mark)?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the rows' entries to all secondary indexes.
    fn insert_secondary(
        &self,
        core: &WriteCore,
        state: &TableState,
        active: &mut Active,
        rows: &KeyList,
        from: usize,
        clustered: &Sorted,
    ) -> Result<()> {
        let mut entry = Entry::default();
        for (position, index) in state.indexes.iter().enumerate().skip(1) {
            let mut sorted = Sorted::default();
            // Of unique entries: how long the part is that no other may begin with; 0 = it may.
            let mut owns = Vec::new();
            for i in 0..clustered.keys.len() {
                let row = self.row_codec().view(rows.get(from + i));
                index.entry(&row, clustered.keys.get(i), &mut entry);
                self.check_key(state, &entry.key)?;
                sorted.keys.push(&entry.key);
                if index.unique {
                    owns.push(if index.codec.row_has_null(&row) { 0 } else { entry.own });
                }
            }
            sorted.sort();
            let own = |i: usize| {
                let own = owns.get(sorted.position(i)).copied().unwrap_or(0);
                (own > 0).then(|| &sorted.key(i)[..own])
            };
            let count = sorted.order.len();
            let mut done = 0;
            while done < count {
                let first = done;
                let mut inserted = 0;
                let end = index.tree.insert_run(
                    count - first,
                    active.stamp(),
                    &mut inserted,
                    |i| (sorted.key(first + i), []),
                    |i| own(first + i),
                    |_| false,
                )?;
                done += inserted;
                if end == RunEnd::Duplicate {
                    // It was there before, or has neighbours: whose they are takes a closer look.
                    if let Some(own) = own(done) {
                        entry.key.clear();
                        entry.key.extend_from_slice(sorted.key(done));
                        entry.own = own.len();
                        let key = clustered.keys.get(sorted.position(done));
                        self.insert_unique(core, state, active, position, &entry, key)?;
                    }
                    done += 1;
                }
            }
        }
        Ok(())
    }
}

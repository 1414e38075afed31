//! Many rows at once: sorted index by index, so that runs of keys share a descent and a latch.

use super::row::inline_header;
use super::state::TableState;
use super::{Entry, Table};
use crate::definition::KeyList;
use crate::tree::RunEnd;
use crate::{Error, Result};
use base::Stamp;

/// Rows that are sorted and inserted together. More rows share more leaves of a random index; the
/// buffers (keys of all indexes) should stay in the processor's second-level cache.
const ROWS: usize = 4_096;
/// No more bytes of row images than these, unless one row alone has more.
const ROW_BYTES: usize = 4 << 20;

/// What [`Table::insert_bulk`] did.
pub(crate) struct Bulk {
    /// The rows that were taken on.
    pub rows: usize,
    /// Their primary keys; `None` if one of them collides and none was inserted.
    pub inserted: Option<KeyList>,
}

/// Something between rows of a bulk insert and its end.
enum Stop {
    Duplicate,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Entries of one index in key order.
#[derive(Default)]
struct Sorted {
    keys: KeyList,
    values: KeyList,
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

    fn value(&self, index: usize) -> &[u8] {
        self.values.get(self.order[index] as usize)
    }
}

fn head(key: &[u8]) -> u64 {
    let mut padded = [0; 8];
    let len = key.len().min(8);
    padded[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(padded)
}

impl Table {
    /// Inserts rows of `rows` from position `from` on, as many as are worth sorting together.
    pub(crate) fn insert_bulk(
        &self,
        state: &TableState,
        rows: &KeyList,
        from: usize,
        stamp: Stamp,
    ) -> Result<Bulk> {
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
        let is_large = |position: usize| rows.get(position).len() + super::row::ROW_HEADER_BYTES > value_max;
        if count == 1 || (from..from + count).any(is_large) {
            return Ok(Bulk { rows: count, inserted: None });
        }
        let mut clustered = Sorted::default();
        clustered.keys.ends.reserve(count);
        let hidden = if state.def.primary.is_none() { Some(self.take_row_ids(count as u64)) } else { None };
        for position in from..from + count {
            let keys = &mut clustered.keys;
            match hidden {
                Some(first) => keys.bytes.extend((first + (position - from) as u64).to_be_bytes()),
                None => {
                    let row = self.row_codec.view(rows.get(position));
                    state.indexes[0].codec.encode_row(&row, &mut keys.bytes);
                }
            }
            keys.ends.push(keys.bytes.len() as u32);
        }
        clustered.sort();
        match self.insert_sorted(state, rows, from, &clustered, stamp) {
            Ok(()) => Ok(Bulk { rows: count, inserted: Some(clustered.keys) }),
            Err(Stop::Duplicate) => Ok(Bulk { rows: count, inserted: None }),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn insert_sorted(
        &self,
        state: &TableState,
        rows: &KeyList,
        from: usize,
        clustered: &Sorted,
        stamp: Stamp,
    ) -> Result<(), Stop> {
        let count = clustered.order.len();
        for position in 0..count {
            self.check_key(state, clustered.keys.get(position))?;
        }
        let header = inline_header(stamp);
        // While this stands, nobody else touches rows that carry the stamp.
        let _active = self.core.bulks.enter(stamp);
        let tree = &state.indexes[0].tree;
        let mut inserted = 0;
        let end = tree.insert_run(count, stamp, &mut inserted, |i| {
            (clustered.key(i), [&header, rows.get(from + clustered.order[i] as usize)])
        });
        let stop = match end {
            Ok(RunEnd::Done) => match self.insert_secondary(state, rows, from, clustered, stamp) {
                Ok(()) => {
                    self.add_rows(count as i64);
                    return Ok(());
                }
                Err(stop) => stop,
            },
            Ok(RunEnd::Duplicate) => Stop::Duplicate,
            Err(error) => Stop::Failed(error),
        };
        for i in 0..inserted {
            tree.remove(clustered.key(i))?;
        }
        Err(stop)
    }

    /// Adds the rows' entries to all secondary indexes, or to none.
    fn insert_secondary(
        &self,
        state: &TableState,
        rows: &KeyList,
        from: usize,
        clustered: &Sorted,
        stamp: Stamp,
    ) -> Result<(), Stop> {
        let mut done: Vec<(usize, Sorted, usize)> = Vec::new();
        let mut entry = Entry::default();
        let mut stop = None;
        for (position, index) in state.indexes.iter().enumerate().skip(1) {
            let mut sorted = Sorted::default();
            for i in 0..clustered.keys.len() {
                let row = self.row_codec.view(rows.get(from + i));
                index.entry(&row, clustered.keys.get(i), &mut entry);
                sorted.keys.push(&entry.key);
                sorted.values.push(&entry.value);
            }
            let checked = (0..sorted.keys.len()).try_for_each(|i| self.check_key(state, sorted.keys.get(i)));
            if let Err(error) = checked {
                stop = Some(Stop::Failed(error));
                break;
            }
            sorted.sort();
            let mut inserted = 0;
            let end = index
                .tree
                .insert_run(sorted.order.len(), stamp, &mut inserted, |i| (sorted.key(i), [sorted.value(i)]));
            done.push((position, sorted, inserted));
            match end {
                Ok(RunEnd::Done) => {}
                Ok(RunEnd::Duplicate) => {
                    stop = Some(Stop::Duplicate);
                    break;
                }
                Err(error) => {
                    stop = Some(Stop::Failed(error));
                    break;
                }
            }
        }
        let Some(stop) = stop else { return Ok(()) };
        for (position, sorted, inserted) in done {
            for i in 0..inserted {
                state.indexes[position].tree.remove(sorted.key(i))?;
            }
        }
        Err(stop)
    }
}

//! Batched lookups of rows by keys of an index.

use super::scan::ScanMemory;
use super::state::TableState;
use super::{Index, Table};
use crate::definition::{Direction, KeyList, KeyRange, RowVisitor, key_behind_prefix};
use crate::format::row::split_cell;
use crate::tree::{Found, LeafVisitor, TierUse, entry_ends};
use crate::visibility::{Reader, Sight};
use crate::{Result, work};
use base::IndexId;
use base::phases::{self, Phase};
use types::KeyCodec;

/// Prefixes that are looked up and delivered together: large enough to overlap their cache misses, small
/// enough that what they found still lies in the processor's cache when it is delivered.
const PREFIXES: usize = 64;

/// Entries of a secondary index whose rows are looked up and delivered together. Without equal keys there are
/// no more of them than prefixes.
const ENTRIES: usize = 256;

/// The length that a cell is assumed to have before one has been seen, in bytes.
const CELL_BYTES_GUESS: usize = 256;
/// No more than this of a cell is asked for ahead.
const CELL_BYTES_AHEAD_MAX: usize = 1_024;

/// Scratch memory of batched lookups. One a lookup under way.
#[derive(Default, Debug)]
pub struct Batch {
    entries: Entries,
    /// Where the primary key of each entry lies in `entries.bytes`. Its own parts end where it starts.
    primary: Vec<PrimaryKey>,
    rows: Rows,
    own: Vec<u8>,
    image: Vec<u8>,
    /// For runs of equal keys that go on in another leaf. Kept here, so that a run takes no latch for its
    /// memory.
    run: ScanMemory,
}

impl Batch {
    /// Its memory, in bytes, small lists left out.
    pub fn capacity(&self) -> usize {
        self.entries.bytes.capacity()
            + self.rows.bytes.capacity()
            + self.own.capacity()
            + self.image.capacity()
            + self.run.capacity()
    }
}

#[derive(Clone, Copy, Debug)]
struct PrimaryKey {
    start: u32,
    end: u32,
}

/// Entries of an index, found for prefixes; at most a leaf's for each.
#[derive(Default, Debug)]
struct Entries {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// The length of `items` before the last visit.
    mark: usize,
    /// Prefixes whose run of entries goes on in the next leaf, in order; they have no items.
    cut: Vec<usize>,
    /// The length of the longest cell seen.
    cell_bytes: usize,
    /// What the row tier has kept.
    kept: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    position: u32,
    key_end: u32,
    value_end: u32,
}

impl Entries {
    fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.cut.clear();
    }

    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.items[index - 1].value_end as usize }
    }

    fn key(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.items[index].key_end as usize]
    }

    fn value(&self, index: usize) -> &[u8] {
        let item = self.items[index];
        &self.bytes[item.key_end as usize..item.value_end as usize]
    }

    fn forget_last_visit(&mut self) {
        self.items.truncate(self.mark);
        let end = self.items.last().map_or(0, |item| item.value_end as usize);
        self.bytes.truncate(end);
    }

    fn push(&mut self, position: usize, key: [&[u8]; 2], value: &[u8]) {
        key.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let key_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.items.push(Item { position: position as u32, key_end, value_end: self.bytes.len() as u32 });
    }
}

/// Collects every entry of a leaf that starts with the prefix looked up.
struct PrefixVisitor<'b, 'k> {
    entries: &'b mut Entries,
    prefixes: &'k KeyList,
    codec: &'k KeyCodec,
    is_clustered: bool,
    /// The position in `prefixes` of the lookup's position 0.
    first: usize,
}

impl LeafVisitor for PrefixVisitor<'_, '_> {
    fn tier_use(&self, position: usize) -> TierUse {
        let prefix = self.prefixes.get(self.first + position);
        let names_all_parts = self.codec.len_in(prefix) == Some(prefix.len()) && !prefix.is_empty();
        if names_all_parts { TierUse::Fill } else { TierUse::None }
    }

    fn take(&mut self, position: usize, append: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let position = self.first + position;
        let prefix = self.prefixes.get(position);
        let entries = &mut *self.entries;
        let mut kept = std::mem::take(&mut entries.kept);
        kept.clear();
        let is_known = append(&mut kept);
        if !self.is_clustered {
            entry_ends(&kept).for_each(|end| entries.push(position, [prefix, end], &[]));
        } else if is_known {
            entries.push(position, [prefix, &[]], &kept);
        }
        entries.kept = kept;
        is_known
    }

    fn visit(&mut self, position: usize, found: Found<'_>) {
        let position = self.first + position;
        let prefix = self.prefixes.get(position);
        let Found { leaf, mut index, .. } = found;
        let entries = &mut *self.entries;
        entries.mark = entries.items.len();
        let count = leaf.count();
        let prefix_len = leaf.prefix_len();
        // More bytes than a page has are a torn page's.
        let mut room = Some(leaf.page().size());
        while let Some(left) = room
            && index < count
            && leaf.key_starts_with(index, prefix)
        {
            let start = entries.bytes.len();
            let key_end = match prefix.get(..prefix_len) {
                Some(of_all) => leaf.append_entry(index, of_all, &mut entries.bytes),
                None => {
                    leaf.append_prefix(&mut entries.bytes);
                    leaf.append_entry(index, b"", &mut entries.bytes)
                }
            };
            let key_end = key_end as u32;
            let value_end = entries.bytes.len();
            entries.cell_bytes = entries.cell_bytes.max(value_end - start);
            room = left.checked_sub((value_end - start).saturating_sub(prefix_len));
            entries.items.push(Item { position: position as u32, key_end, value_end: value_end as u32 });
            index += 1;
        }
        if index == count && leaf.upper_fence_starts_with(prefix) {
            entries.forget_last_visit();
            entries.cut.push(position);
        }
    }

    fn undo(&mut self, position: usize) {
        self.entries.cut.pop_if(|cut| *cut == self.first + position);
        self.entries.forget_last_visit();
    }

    fn cell_bytes(&self) -> usize {
        cells_ahead(self.entries.cell_bytes)
    }
}

fn cells_ahead(seen: usize) -> usize {
    if seen == 0 { CELL_BYTES_GUESS } else { seen.min(CELL_BYTES_AHEAD_MAX) }
}

/// The entries of one prefix that lie in more than one leaf, so that a scan has to read them.
#[derive(Clone, Copy)]
struct CutRun<'a> {
    state: &'a TableState,
    index_id: IndexId,
    prefix: &'a [u8],
    /// Of `prefix` among the prefixes looked up.
    position: usize,
}

/// Cells of clustered rows, one for each primary key looked up; an empty one if there is no such row.
#[derive(Default, Debug)]
pub(super) struct Rows {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    cell_bytes: usize,
    tier_use: TierUse,
}

impl Rows {
    /// Bytes of memory that it has.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    /// Makes room for other rows, of which the row tier keeps what `tier_use` says.
    pub(super) fn clear(&mut self, tier_use: TierUse) {
        self.bytes.clear();
        self.ends.clear();
        self.tier_use = tier_use;
    }

    pub(super) fn cell(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }
}

impl LeafVisitor for Rows {
    fn tier_use(&self, _position: usize) -> TierUse {
        self.tier_use
    }

    fn take(&mut self, _position: usize, append: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let found = append(&mut self.bytes);
        if found {
            self.ends.push(self.bytes.len() as u32);
        }
        found
    }

    fn visit(&mut self, _position: usize, found: Found<'_>) {
        if found.exact {
            let start = self.bytes.len();
            found.leaf.append_value(found.index, &mut self.bytes);
            self.cell_bytes = self.cell_bytes.max(self.bytes.len() - start);
        }
        self.ends.push(self.bytes.len() as u32);
    }

    fn undo(&mut self, _position: usize) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }

    fn cell_bytes(&self) -> usize {
        cells_ahead(self.cell_bytes)
    }
}

/// Appends the cell of one row to `out`, behind `start`.
#[derive(Debug)]
pub(super) struct OneCell<'o> {
    pub out: &'o mut Vec<u8>,
    pub start: usize,
    pub found: bool,
}

impl LeafVisitor for OneCell<'_> {
    fn tier_use(&self, _position: usize) -> TierUse {
        TierUse::Fill
    }

    fn take(&mut self, _position: usize, append: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        self.found = append(self.out);
        self.found
    }

    fn visit(&mut self, _position: usize, found: Found<'_>) {
        self.found = found.exact;
        if found.exact {
            found.leaf.append_value(found.index, self.out);
        }
    }

    fn undo(&mut self, _position: usize) {
        self.out.truncate(self.start);
    }

    fn cell_bytes(&self) -> usize {
        0
    }
}

impl Table {
    /// Every row that `reader` sees and whose key in `index` starts with one of `prefixes` (sorted,
    /// distinct), in the order of the prefixes. Descents are interleaved. `each` gets the position of the
    /// prefix, the primary key and the row image; it returns false to stop early. `batch` keeps the buffers
    /// from call to call.
    ///
    /// # Errors
    /// [`crate::Error::SnapshotTooOld`] and [`crate::Error::TableChanged`] if the snapshot cannot be read
    /// here; [`crate::Error::Io`] and [`crate::Error::Corrupt`].
    pub fn multi_get(
        &self,
        reader: Reader<'_>,
        index: IndexId,
        prefixes: &KeyList,
        batch: &mut Batch,
        each: &mut RowVisitor<'_>,
    ) -> Result<()> {
        if let Some(holder) = reader.range_holder() {
            for prefix in 0..prefixes.len() {
                let prefix = prefixes.get(prefix);
                let end = key_behind_prefix(prefix);
                self.core.ranges.lock(holder, (self.id(), index), prefix, end.as_deref());
            }
        }
        let mut first = 0;
        while first < prefixes.len() {
            let last = (first + PREFIXES).min(prefixes.len());
            let state = self.with_state(index, |state| {
                reader.check_since(self.index(state, index)?.since)?;
                self.find_entries(state, index, prefixes, first..last, batch)?;
                self.find_rows(state, index, 0, batch)?;
                Ok(state)
            })?;
            if !self.deliver(reader, state, index, prefixes, batch, each)? {
                return Ok(());
            }
            first = last;
        }
        Ok(())
    }

    /// Fills `batch` with the entries of some prefixes.
    fn find_entries(
        &self,
        state: &TableState,
        index_id: IndexId,
        prefixes: &KeyList,
        range: std::ops::Range<usize>,
        batch: &mut Batch,
    ) -> Result<()> {
        let index = self.index(state, index_id)?;
        batch.entries.clear();
        let first = range.start;
        let is_clustered = index_id.0 == 0;
        let (entries, codec) = (&mut batch.entries, &*index.codec);
        let mut visitor = PrefixVisitor { entries, prefixes, codec, is_clustered, first };
        let _searching = phases::enter(phase_of(index_id));
        index.tree.lookup_many(range.len(), |i| prefixes.get(first + i), &mut visitor)
    }

    /// Looks up the rows that secondary entries lead to, from entry `first` on, [`ENTRIES`] at most.
    fn find_rows(
        &self,
        state: &TableState,
        index_id: IndexId,
        first: usize,
        batch: &mut Batch,
    ) -> Result<()> {
        if index_id.0 == 0 {
            return Ok(());
        }
        let index = self.index(state, index_id)?;
        let _reading = phases::enter(Phase::Row);
        let Batch { entries, primary, rows, .. } = batch;
        primary.clear();
        rows.clear(TierUse::Fill);
        for item in first..entries.items.len().min(first + ENTRIES) {
            let key = entries.key(item);
            let Some(own) = index.codec.len_in(key) else {
                return Err(state.space.corrupt(0, "an index entry without the index's parts"));
            };
            let start = entries.start(item);
            primary.push(PrimaryKey { start: (start + own) as u32, end: (start + key.len()) as u32 });
        }
        let bytes = &entries.bytes;
        let key = |i: usize| &bytes[primary[i].start as usize..primary[i].end as usize];
        state.indexes[0].tree.lookup_many(primary.len(), key, rows)
    }

    /// Hands out what the entries in `batch` lead to, whose first rows have been looked up, and the runs that
    /// were cut; false if the visitor wants no more.
    fn deliver(
        &self,
        reader: Reader<'_>,
        state: &TableState,
        index_id: IndexId,
        prefixes: &KeyList,
        batch: &mut Batch,
        each: &mut RowVisitor<'_>,
    ) -> Result<bool> {
        let index = self.index(state, index_id)?;
        work::add_rows(batch.entries.items.len() as u64);
        let is_secondary = index_id.0 > 0;
        let file = u64::from(state.space.file_id().0);
        let cut = |position| CutRun { state, index_id, prefix: prefixes.get(position), position };
        let mut runs = 0;
        let mut first_row = 0;
        for item in 0..batch.entries.items.len() {
            let position = batch.entries.items[item].position as usize;
            while let Some(&run) = batch.entries.cut.get(runs).filter(|run| **run < position) {
                runs += 1;
                if !self.deliver_run(reader, cut(run), &mut batch.run, each)? {
                    return Ok(false);
                }
            }
            if is_secondary && item == first_row + ENTRIES {
                first_row = item;
                self.find_more_rows(state, index_id, item, batch)?;
            }
            let (primary_key, own, cell) = if is_secondary {
                let row = item - first_row;
                let place = batch.primary[row];
                let bytes = &batch.entries.bytes;
                let own = &bytes[batch.entries.start(item)..place.start as usize];
                (&bytes[place.start as usize..place.end as usize], Some(own), batch.rows.cell(row))
            } else {
                (batch.entries.key(item), None, batch.entries.value(item))
            };
            let Some((header, image)) = split_cell(cell) else { continue };
            let is_meant = |image: &[u8], scratch: &mut Vec<u8>| {
                own.is_none_or(|own| self.row_has_key(index, image, own, scratch))
            };
            let sight = reader.look(header, file, primary_key)?;
            if matches!(sight, Sight::This | Sight::Both(_)) && !header.is_overflow() {
                if is_meant(image, &mut batch.own) && !each(position, primary_key, image) {
                    return Ok(false);
                }
            } else if matches!(sight, Sight::This | Sight::Both(_) | Sight::Again) {
                batch.image.clear();
                if self.fetch(reader, state, primary_key, &mut batch.image)?
                    && is_meant(&batch.image, &mut batch.own)
                    && !each(position, primary_key, &batch.image)
                {
                    return Ok(false);
                }
            }
            if let Sight::Other(cell) | Sight::Both(cell) = sight {
                let image = self.image_of(&state.space, &cell)?;
                if is_meant(&image, &mut batch.own) && !each(position, primary_key, &image) {
                    return Ok(false);
                }
            }
        }
        for &run in &batch.entries.cut[runs..] {
            if !self.deliver_run(reader, cut(run), &mut batch.run, each)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As [`Table::find_rows`], when rows have been handed out already: they cannot be looked up anew in a
    /// table that was replaced meanwhile.
    #[cold]
    fn find_more_rows(
        &self,
        state: &TableState,
        index_id: IndexId,
        first: usize,
        batch: &mut Batch,
    ) -> Result<()> {
        let found = self.find_rows(state, index_id, first, batch);
        self.check_tree(state, IndexId(0))?;
        found.map_err(|error| self.core.explain(error))
    }

    /// Hands out the rows of a prefix whose entries lie in more leaves than one, of which there may be any
    /// number.
    #[cold]
    fn deliver_run(
        &self,
        reader: Reader<'_>,
        run: CutRun<'_>,
        memory: &mut ScanMemory,
        each: &mut RowVisitor<'_>,
    ) -> Result<bool> {
        let CutRun { state, index_id, prefix, position } = run;
        let range = KeyRange::prefix(prefix);
        let memory_of_run = std::mem::take(memory);
        let mut scan = self.scan_with(memory_of_run, state, reader, index_id, range, Direction::Forward);
        // Short ones are not what scans are: they may be wanted again.
        scan.tier_use = TierUse::Fill;
        let mut rows = 0;
        while let Some((primary_key, image)) = scan.next_row_with_key()? {
            if !each(position, primary_key, image) {
                return Ok(false);
            }
            rows += 1;
            if rows == ENTRIES {
                scan.tier_use = TierUse::Look;
            }
        }
        *memory = scan.into_memory();
        Ok(true)
    }

    /// True if a row still has the parts of the entry that led to it: it may have been changed in between.
    #[inline]
    pub(crate) fn row_has_key(&self, index: &Index, image: &[u8], own: &[u8], scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        index.codec.encode_row(&self.row_codec.view(image), scratch);
        same_bytes(scratch, own)
    }
}

/// Whether two keys are the same. The bytes of one have just been stored: of the usual ones no more is loaded
/// than was stored at once, for that would have to wait until it has left the store buffer.
#[inline]
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    match (<&[u8; 4]>::try_from(a), <&[u8; 4]>::try_from(b)) {
        (Ok(a), Ok(b)) => u32::from_ne_bytes(*a) == u32::from_ne_bytes(*b),
        _ => a == b,
    }
}

/// The phase that reads of an index count as.
pub(super) fn phase_of(index: IndexId) -> Phase {
    if index.0 == 0 { Phase::Row } else { Phase::Index }
}

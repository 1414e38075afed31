//! The changes of a transaction, oldest first: the newest in memory, and beyond a bound those before them in
//! scratch files.
//!
//! ```text
//! block:     change, change, ...
//! row:       flags u32 | table u32 | undo bytes u32 | key length u32 | old length u32 | key | old cell
//! inserted:  flags u32 | table u32 | undo bytes u32 | keys u32 | bytes u32 | ends keys x u32 | bytes
//! ```
//!
//! Flag 1: a row; 2: it has an old cell; 4: a chain; 8: garbage; 16: it is seen in place.

use super::scratch::{BLOCK_BYTES, Piece, Place, Scratch, changed};
use super::undo::{Change, Enlistment, RowChange, What};
use crate::Result;
use crate::definition::KeyList;
use base::sync::Arc;
use std::collections::VecDeque;
use std::iter::once;

/// Changes of a transaction that take more memory than this go to a file, the oldest first, until they take
/// half of it.
const MEMORY_BYTES: u64 = if cfg!(test) { 2 << 10 } else { 4 << 20 };
/// Bytes that a change takes in memory besides keys and cells: itself, and the allocations' share.
const CHANGE_OVERHEAD: u64 = 128;
const HEADER_BYTES: usize = 20;
const ROW: u32 = 1;
const HAS_OLD: u32 = 2;
const LEAVES_CHAIN: u32 = 4;
const LEAVES_GARBAGE: u32 = 8;
const IN_PLACE: u32 = 16;

#[derive(Default, Debug)]
pub(crate) struct ChangeList {
    /// Oldest first.
    spilled: Vec<Spilled>,
    /// How many changes are in them.
    spilled_len: usize,
    newest: VecDeque<Change>,
    /// Bytes that `newest` takes.
    memory: u64,
    /// After a failure to write, they stay in memory until they take this much.
    wait_until: u64,
    files: Option<Scratch>,
}

/// Changes in a file.
#[derive(Clone, Debug)]
pub(crate) struct Spilled {
    piece: Piece,
    len: usize,
    /// How many have a chain that goes when they are committed.
    pub chains: u64,
    /// How many leave something to purge, a chain among it.
    pub garbage: usize,
    /// The tables of that, with how many times it counts as garbage.
    pub counted: Vec<(Enlistment, u64)>,
}

impl ChangeList {
    pub(crate) fn len(&self) -> usize {
        self.spilled_len + self.newest.len()
    }

    /// Bytes of memory that they take.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn push(&mut self, change: Change) {
        self.memory += memory_of(&change);
        self.newest.push_back(change);
    }

    /// Takes the newest.
    ///
    /// # Errors
    /// [`crate::Error::Io`] of a scratch file: nothing has been taken.
    pub(crate) fn pop(&mut self) -> Result<Option<Change>> {
        if self.newest.is_empty() {
            self.read_last()?;
        }
        let change = self.newest.pop_back();
        self.memory -= change.as_ref().map_or(0, memory_of);
        Ok(change)
    }

    /// The newest, if it is in memory: it is, once it has been pushed, until the next call of
    /// [`ChangeList::spill`] or [`ChangeList::pop`].
    pub(crate) fn last(&self) -> Option<&Change> {
        self.newest.back()
    }

    /// As [`ChangeList::last`]; and counts what `change` makes of its memory.
    pub(crate) fn change_last(&mut self, change: impl FnOnce(&mut Change)) {
        if let Some(last) = self.newest.back_mut() {
            self.memory -= memory_of(last);
            change(last);
            self.memory += memory_of(last);
        }
    }

    /// Writes the oldest of those in memory to a file if they take too much of it. Without room on the device
    /// they stay.
    #[inline]
    pub(crate) fn spill(&mut self, place: &Place) {
        if self.memory > MEMORY_BYTES.max(self.wait_until) {
            self.spill_some(place);
        }
    }

    #[cold]
    fn spill_some(&mut self, place: &Place) {
        let files = self.files.get_or_insert_with(|| Scratch::new(place.clone()));
        while self.memory > MEMORY_BYTES / 2 {
            let (mut bytes, mut memory, mut len) = (Vec::new(), 0, 0);
            for change in &self.newest {
                if memory >= BLOCK_BYTES {
                    break;
                }
                memory += memory_of(change);
                len += 1;
                write(change, &mut bytes);
            }
            let Ok(piece) = files.write(&bytes) else {
                self.wait_until = self.memory + MEMORY_BYTES;
                return;
            };
            let mut spilled = Spilled { piece, len, chains: 0, garbage: 0, counted: Vec::new() };
            for change in self.newest.drain(..len) {
                spilled.count(&change);
            }
            self.spilled.push(spilled);
            self.spilled_len += len;
            self.memory -= memory;
        }
        self.wait_until = 0;
    }

    fn read_last(&mut self) -> Result<()> {
        let Some(last) = self.spilled.last() else { return Ok(()) };
        self.newest = last.read()?;
        self.memory = self.newest.iter().map(memory_of).sum();
        self.spilled_len -= last.len;
        self.spilled.pop();
        if self.spilled.is_empty() {
            self.files = None;
        }
        Ok(())
    }

    /// Tells all from number `from` on, in their order.
    ///
    /// # Errors
    /// Those of `each`, and [`crate::Error::Io`] of a scratch file.
    pub(crate) fn each_from(
        &self,
        from: usize,
        each: &mut dyn FnMut(usize, &Change) -> Result<()>,
    ) -> Result<()> {
        let mut number = 0;
        for spilled in &self.spilled {
            let end = number + spilled.len;
            if end > from {
                let changes = spilled.read()?;
                let mut numbered = (number..).zip(&changes).filter(|(number, _)| *number >= from);
                numbered.try_for_each(|(number, change)| each(number, change))?;
            }
            number = end;
        }
        let mut numbered = (number..).zip(&self.newest).skip(from.saturating_sub(number));
        numbered.try_for_each(|(number, change)| each(number, change))
    }

    /// Those in files, and those in memory.
    pub(crate) fn into_parts(self) -> (Vec<Spilled>, VecDeque<Change>) {
        (self.spilled, self.newest)
    }

    /// All, in their order, some at a time.
    pub(crate) fn into_batches(self) -> impl Iterator<Item = Result<VecDeque<Change>>> {
        self.spilled.into_iter().map(|spilled| spilled.read()).chain(once(Ok(self.newest)))
    }
}

impl Spilled {
    fn count(&mut self, change: &Change) {
        if !change.leaves_work() {
            return;
        }
        self.garbage += 1;
        self.chains += u64::from(matches!(&change.what, What::Row(row) if row.leaves_chain));
        let times = u64::from(change.leaves_garbage());
        match self.counted.iter_mut().find(|(table, _)| *table == change.table) {
            Some((_, known)) => *known += times,
            None => self.counted.push((change.table, times)),
        }
    }

    /// Bytes that they take in the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.piece.len() as u64
    }

    /// # Errors
    /// [`crate::Error::Io`], also if the file does not give back what was written.
    pub(crate) fn read(&self) -> Result<VecDeque<Change>> {
        let bytes = self.piece.read()?;
        let (mut rest, mut changes) = (bytes.as_slice(), VecDeque::with_capacity(self.len));
        while !rest.is_empty() {
            changes.push_back(read(&mut rest).ok_or_else(changed)?);
        }
        if changes.len() == self.len { Ok(changes) } else { Err(changed().into()) }
    }

    pub(crate) fn is_same(&self, other: &Spilled) -> bool {
        self.piece.is_same(&other.piece)
    }
}

fn memory_of(change: &Change) -> u64 {
    let bytes = match &change.what {
        What::Row(row) => row.key.len() + row.old.as_ref().map_or(0, |old| old.len()),
        What::Inserted(keys) => keys.bytes.capacity() + 4 * keys.ends.capacity(),
    };
    CHANGE_OVERHEAD + bytes as u64
}

fn write(change: &Change, out: &mut Vec<u8>) {
    let mut header = |flags: u32, lengths: [usize; 2]| {
        let [first, second] = lengths.map(|length| length as u32);
        for word in [flags, change.table.0, change.undo_bytes, first, second] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    };
    match &change.what {
        What::Row(RowChange { key, old, in_place, leaves_chain, leaves_garbage }) => {
            let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
            let flags = ROW
                | flag(old.is_some(), HAS_OLD)
                | flag(*in_place, IN_PLACE)
                | flag(*leaves_chain, LEAVES_CHAIN)
                | flag(*leaves_garbage, LEAVES_GARBAGE);
            let old = old.as_deref().unwrap_or(&[]);
            header(flags, [key.len(), old.len()]);
            out.extend_from_slice(key);
            out.extend_from_slice(old);
        }
        What::Inserted(keys) => {
            header(0, [keys.ends.len(), keys.bytes.len()]);
            keys.ends.iter().for_each(|end| out.extend_from_slice(&end.to_le_bytes()));
            out.extend_from_slice(&keys.bytes);
        }
    }
}

fn read(rest: &mut &[u8]) -> Option<Change> {
    let (header, after) = rest.split_first_chunk::<HEADER_BYTES>()?;
    let (words, _) = header.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let mut word = || words.next();
    let (flags, table, undo_bytes) = (word()?, Enlistment(word()?), word()?);
    let (first, second) = (word()? as usize, word()? as usize);
    let (what, after) = if flags & ROW != 0 {
        let (key, after) = after.split_at_checked(first)?;
        let (old, after) = after.split_at_checked(second)?;
        let row = RowChange {
            key: key.into(),
            old: (flags & HAS_OLD != 0).then(|| Arc::from(old)),
            in_place: flags & IN_PLACE != 0,
            leaves_chain: flags & LEAVES_CHAIN != 0,
            leaves_garbage: flags & LEAVES_GARBAGE != 0,
        };
        (What::Row(row), after)
    } else {
        let (ends, after) = after.split_at_checked(first.checked_mul(4)?)?;
        let (bytes, after) = after.split_at_checked(second)?;
        let ends = ends.as_chunks().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
        (What::Inserted(KeyList { bytes: bytes.to_vec(), ends }), after)
    };
    *rest = after;
    Some(Change { table, undo_bytes, what })
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use base::random::Random;
    use std::path::Path;
    use vfs::{MemVfs, Vfs};

    fn some_change(random: &mut Random) -> Change {
        let mut bytes = |max: u32| vec![random.below(256) as u8; random.below(max) as usize];
        let (key, old) = (bytes(40), bytes(600));
        let what = if random.below(8) == 0 {
            let mut keys = KeyList::default();
            (0..random.below(30)).for_each(|_| keys.push(&key));
            What::Inserted(keys)
        } else {
            What::Row(RowChange {
                key: key.into(),
                old: (random.below(4) > 0).then(|| old.into()),
                in_place: random.below(2) == 0,
                leaves_chain: random.below(4) == 0,
                leaves_garbage: random.below(2) == 0,
            })
        };
        Change { table: Enlistment(random.below(3)), undo_bytes: random.below(u32::MAX), what }
    }

    fn bytes_of(change: &Change) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(change, &mut bytes);
        bytes
    }

    fn all(list: &ChangeList, from: usize) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        list.each_from(from, &mut |number, change| {
            assert_eq!(number, from + found.len());
            found.push(bytes_of(change));
            Ok(())
        })
        .unwrap();
        found
    }

    /// What is counted of those in files.
    fn check_counts(list: &ChangeList) {
        for spilled in &list.spilled {
            let changes = spilled.read().unwrap();
            let garbage = changes.iter().filter(|change| change.leaves_work()).count();
            assert_eq!(spilled.garbage, garbage);
            for table in (0..3).map(Enlistment) {
                let counted = changes.iter().filter(|change| {
                    change.table == table && change.leaves_work() && change.leaves_garbage()
                });
                let times = spilled.counted.iter().find(|(known, _)| *known == table);
                assert_eq!(times.map_or(0, |(_, times)| *times), counted.count() as u64);
            }
        }
    }

    #[test]
    fn a_list_in_files_is_the_list() {
        for seed in 0..60 {
            let mut random = Random::new(seed, 0);
            let vfs = Arc::new(MemVfs::new());
            vfs.create_dir_all(Path::new("scratch")).unwrap();
            let place = Place::new(vfs.clone(), Path::new("scratch"));
            let (mut list, mut model) = (ChangeList::default(), Vec::<Vec<u8>>::new());
            let mut most = 0;
            for _ in 0..600 {
                match random.below(24) {
                    0 => {
                        let len = random.index(model.len() + 1).max(model.len().saturating_sub(30));
                        while list.len() > len {
                            list.pop().unwrap();
                        }
                        model.truncate(len);
                    }
                    1..6 => {
                        let popped = list.pop().unwrap();
                        assert_eq!(popped.as_ref().map(bytes_of), model.pop());
                    }
                    6 => {
                        let from = random.index(model.len() + 2);
                        assert_eq!(all(&list, from), model[from.min(model.len())..]);
                    }
                    7 if list.last().is_some() => {
                        list.change_last(|change| *change = some_change(&mut random));
                        *model.last_mut().unwrap() = bytes_of(list.last().unwrap());
                    }
                    _ => {
                        let change = some_change(&mut random);
                        model.push(bytes_of(&change));
                        list.push(change);
                        list.spill(&place);
                    }
                }
                assert_eq!(list.len(), model.len());
                assert_eq!(list.memory, list.newest.iter().map(memory_of).sum());
                assert!(list.memory <= MEMORY_BYTES + 2 * BLOCK_BYTES, "{}", list.memory);
                most = most.max(list.spilled.len());
            }
            assert!(most > 1, "{most} blocks");
            check_counts(&list);
            assert_eq!(all(&list, 0), model);
            let batches = list.into_batches().flat_map(Result::unwrap);
            assert!(batches.map(|change| bytes_of(&change)).eq(model));
            assert!(vfs.list(Path::new("scratch")).unwrap().is_empty(), "files have no names");
        }
    }

    #[test]
    fn without_room_for_files_changes_stay_in_memory() {
        let mut random = Random::new(1, 1);
        let place = Place::new(Arc::new(vfs::SimVfs::new()), Path::new("there is no such folder"));
        let (mut list, mut model) = (ChangeList::default(), Vec::new());
        for _ in 0..200 {
            let change = some_change(&mut random);
            model.push(bytes_of(&change));
            list.push(change);
            list.spill(&place);
        }
        assert!(list.spilled.is_empty());
        assert_eq!(all(&list, 0), model);
    }
}

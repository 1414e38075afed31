//! Changing one row, with its entries in the secondary indexes.
//!
//! Who may change a row's entries owns the row: the holder of its row latch while the row is in the
//! clustered index, or the bulk insert whose stamp it carries. Hence the order of every change:
//! a row appears first in the clustered index and disappears last from it; a moved entry is added before the row
//! changes and removed after. Readers who come through a secondary index check that the row still has the key.

use super::row::{Cell, split_cell};
use super::state::TableState;
use super::{Entry, Table};
use crate::core::Core;
use crate::latch::RowLatch;
use crate::overflow;
use crate::tablespace::Tablespace;
use crate::{Error, Result};
use base::{IndexId, Stamp};

/// What a row was before a statement changed it, enough to put it back.
#[derive(Debug)]
pub enum Undo {
    Inserted,
    /// The cell that was in the leaf.
    Updated(Vec<u8>),
    Deleted(Vec<u8>),
}

/// What an update came to.
pub enum Updated {
    /// There is no such row, or `change` left it alone.
    No,
    /// The row stayed under its key; its old cell.
    InPlace(Vec<u8>),
    /// The row went to another primary key: the old cell, the new key.
    Moved(Vec<u8>, Vec<u8>),
}

impl Table {
    /// The primary key of a row image; a hidden one is taken from the counter.
    pub(crate) fn primary_key(&self, state: &TableState, image: &[u8], out: &mut Vec<u8>) {
        if state.def.primary.is_some() {
            state.indexes[0].codec.encode_row(&self.row_codec.view(image), out);
        } else {
            out.extend_from_slice(&self.take_row_ids(1).to_be_bytes());
        }
    }

    pub(crate) fn check_key(&self, state: &TableState, key: &[u8]) -> Result<()> {
        let bytes_max = state.indexes[0].tree.key_bytes_max();
        if key.len() > bytes_max {
            return Err(Error::KeyTooLong { bytes: key.len(), bytes_max });
        }
        Ok(())
    }

    pub(crate) fn cell<'i>(
        &self,
        state: &TableState,
        primary_key: &[u8],
        image: &'i [u8],
        stamp: Stamp,
    ) -> Result<Cell<'i>> {
        let value_max = state.indexes[0].tree.value_bytes_max(primary_key.len());
        let inline_max = value_max.saturating_sub(super::row::ROW_HEADER_BYTES);
        Cell::new(&state.space, image, inline_max, stamp, || self.take_chain())
    }

    /// Latches a row that no bulk insert owns.
    fn latch_row<'c>(
        &self,
        core: &'c Core,
        state: &TableState,
        key: &[u8],
    ) -> Result<(RowLatch<'c>, Option<Vec<u8>>)> {
        loop {
            let latch = core.rows.latch(self.id, key);
            let mut cell = Vec::new();
            if !state.indexes[0].tree.get(key, &mut cell)? {
                return Ok((latch, None));
            }
            match split_cell(&cell) {
                Some((header, _)) if core.bulks.owns(header.stamp()) => {
                    drop(latch);
                    core.bulks.wait_for(header.stamp());
                }
                Some(_) => return Ok((latch, Some(cell))),
                None => return Err(state.space.corrupt(0, "a row without a header")),
            }
        }
    }

    /// The image in a cell.
    pub(crate) fn image_of(&self, space: &Tablespace, cell: &[u8]) -> Result<Vec<u8>> {
        let Some((header, rest)) = split_cell(cell) else {
            return Err(space.corrupt(0, "a row without a header"));
        };
        if !header.is_overflow() {
            return Ok(rest.to_vec());
        }
        let mut image = Vec::new();
        match super::row::chain_of(cell) {
            Some(reference) if overflow::load(space, reference, &mut image)? => Ok(image),
            _ => Err(space.corrupt(0, "an overflow chain is broken")),
        }
    }

    /// Inserts one row.
    pub(crate) fn insert_row(
        &self,
        state: &TableState,
        primary_key: &[u8],
        image: &[u8],
        stamp: Stamp,
    ) -> Result<()> {
        self.check_key(state, primary_key)?;
        let cell = self.cell(state, primary_key, image, stamp)?;
        let inserted = self.insert_cell(state, primary_key, image, &cell.parts(), stamp);
        if inserted.is_err() {
            cell.discard(&state.space);
        } else {
            self.add_rows(1);
        }
        inserted
    }

    fn insert_cell(
        &self,
        state: &TableState,
        primary_key: &[u8],
        image: &[u8],
        cell: &[&[u8]],
        stamp: Stamp,
    ) -> Result<()> {
        let clustered = &state.indexes[0].tree;
        loop {
            let latch = self.core.rows.latch(self.id, primary_key);
            if clustered.insert(primary_key, cell, stamp)? {
                let entries = self.insert_entries(state, primary_key, image, stamp);
                if entries.is_err() {
                    clustered.remove(primary_key)?;
                }
                return entries;
            }
            drop(latch);
            // A bulk insert may still take its row back.
            let (_latch, cell) = self.latch_row(&self.core, state, primary_key)?;
            if cell.is_some() {
                return Err(Error::DuplicateKey { index: IndexId(0) });
            }
        }
    }

    /// Adds a row's entries to all secondary indexes, or to none.
    fn insert_entries(
        &self,
        state: &TableState,
        primary_key: &[u8],
        image: &[u8],
        stamp: Stamp,
    ) -> Result<()> {
        let row = self.row_codec.view(image);
        let mut entry = Entry::default();
        for (position, index) in state.indexes.iter().enumerate().skip(1) {
            index.entry(&row, primary_key, &mut entry);
            let result = match self.check_key(state, &entry.key) {
                Ok(()) => index.tree.insert(&entry.key, &[&entry.value], stamp),
                Err(error) => Err(error),
            };
            let error = match result {
                Ok(true) => continue,
                Ok(false) => Error::DuplicateKey { index: IndexId(position as u16) },
                Err(error) => error,
            };
            for earlier in &state.indexes[1..position] {
                earlier.entry(&row, primary_key, &mut entry);
                earlier.tree.remove(&entry.key)?;
            }
            return Err(error);
        }
        Ok(())
    }

    fn remove_entries(&self, state: &TableState, primary_key: &[u8], image: &[u8]) -> Result<()> {
        let row = self.row_codec.view(image);
        let mut entry = Entry::default();
        for index in &state.indexes[1..] {
            index.entry(&row, primary_key, &mut entry);
            index.tree.remove(&entry.key)?;
        }
        Ok(())
    }

    /// Deletes one row if `condition` holds for its image; gives the cell it had.
    pub(crate) fn delete_row(
        &self,
        state: &TableState,
        primary_key: &[u8],
        condition: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>> {
        let (_latch, cell) = self.latch_row(&self.core, state, primary_key)?;
        let Some(cell) = cell else { return Ok(None) };
        let image = self.image_of(&state.space, &cell)?;
        if !condition(&image) {
            return Ok(None);
        }
        self.remove_row(state, primary_key, &image)?;
        Ok(Some(cell))
    }

    fn remove_row(&self, state: &TableState, primary_key: &[u8], image: &[u8]) -> Result<()> {
        self.remove_entries(state, primary_key, image)?;
        state.indexes[0].tree.remove(primary_key)?;
        self.add_rows(-1);
        Ok(())
    }

    /// Changes one row.
    pub(crate) fn update_row(
        &self,
        state: &TableState,
        primary_key: &[u8],
        stamp: Stamp,
        change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<Updated> {
        let (latch, old_cell) = self.latch_row(&self.core, state, primary_key)?;
        let Some(old_cell) = old_cell else { return Ok(Updated::No) };
        let old_image = self.image_of(&state.space, &old_cell)?;
        let mut new_image = Vec::new();
        if !change(&old_image, &mut new_image) {
            return Ok(Updated::No);
        }
        let mut new_key = Vec::new();
        if state.def.primary.is_some() {
            self.primary_key(state, &new_image, &mut new_key);
        }
        if new_key.is_empty() || new_key == primary_key {
            self.replace_row(state, primary_key, &old_image, &new_image, stamp)?;
            return Ok(Updated::InPlace(old_cell));
        }
        drop(latch);
        self.move_row(state, primary_key, new_key, &old_cell, stamp, change)
    }

    /// Replaces a row that is latched and keeps its primary key.
    fn replace_row(
        &self,
        state: &TableState,
        primary_key: &[u8],
        old_image: &[u8],
        new_image: &[u8],
        stamp: Stamp,
    ) -> Result<()> {
        let cell = self.cell(state, primary_key, new_image, stamp)?;
        let replaced = self.replace_cell(state, primary_key, old_image, new_image, &cell.parts(), stamp);
        if replaced.is_err() {
            cell.discard(&state.space);
        }
        replaced
    }

    fn replace_cell(
        &self,
        state: &TableState,
        primary_key: &[u8],
        old_image: &[u8],
        new_image: &[u8],
        cell: &[&[u8]],
        stamp: Stamp,
    ) -> Result<()> {
        let moved = self.moved_entries(state, primary_key, old_image, new_image);
        for (done, (position, _, new)) in moved.iter().enumerate() {
            let tree = &state.indexes[*position].tree;
            let result = match self.check_key(state, &new.key) {
                Ok(()) => tree.insert(&new.key, &[&new.value], stamp),
                Err(error) => Err(error),
            };
            let error = match result {
                Ok(true) => continue,
                Ok(false) => Error::DuplicateKey { index: IndexId(*position as u16) },
                Err(error) => error,
            };
            self.remove_new_entries(state, &moved[..done])?;
            return Err(error);
        }
        match state.indexes[0].tree.replace(primary_key, cell, stamp) {
            Ok(true) => {}
            Ok(false) => {
                self.remove_new_entries(state, &moved)?;
                return Err(state.space.corrupt(0, "a latched row has vanished"));
            }
            Err(error) => {
                self.remove_new_entries(state, &moved)?;
                return Err(error);
            }
        }
        for (position, old, _) in &moved {
            state.indexes[*position].tree.remove(&old.key)?;
        }
        Ok(())
    }

    fn remove_new_entries(&self, state: &TableState, moved: &[(usize, Entry, Entry)]) -> Result<()> {
        for (position, _, new) in moved {
            state.indexes[*position].tree.remove(&new.key)?;
        }
        Ok(())
    }

    /// The entries that differ between two images of a row: index, old, new.
    fn moved_entries(
        &self,
        state: &TableState,
        primary_key: &[u8],
        old_image: &[u8],
        new_image: &[u8],
    ) -> Vec<(usize, Entry, Entry)> {
        let (old_row, new_row) = (self.row_codec.view(old_image), self.row_codec.view(new_image));
        let mut moved = Vec::new();
        let (mut old, mut new) = (Entry::default(), Entry::default());
        for (position, index) in state.indexes.iter().enumerate().skip(1) {
            index.entry(&old_row, primary_key, &mut old);
            index.entry(&new_row, primary_key, &mut new);
            if old.key != new.key {
                moved.push((position, std::mem::take(&mut old), std::mem::take(&mut new)));
            }
        }
        moved
    }

    /// Moves a row to another primary key. Nothing is latched at first; `change` is asked again if the row
    /// differs from what it has seen.
    fn move_row(
        &self,
        state: &TableState,
        primary_key: &[u8],
        mut new_key: Vec<u8>,
        seen: &[u8],
        stamp: Stamp,
        change: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<Updated> {
        let clustered = &state.indexes[0].tree;
        let mut seen = seen.to_vec();
        let mut new_image = None;
        loop {
            let latch = self.core.rows.latch_two(self.id, primary_key, &new_key);
            let mut cell = Vec::new();
            if !clustered.get(primary_key, &mut cell)? {
                return Ok(Updated::No);
            }
            if let Some((header, _)) = split_cell(&cell)
                && self.core.bulks.owns(header.stamp())
            {
                drop(latch);
                self.core.bulks.wait_for(header.stamp());
                continue;
            }
            let old_image = self.image_of(&state.space, &cell)?;
            if new_image.is_none() || seen != cell {
                let mut image = Vec::new();
                if !change(&old_image, &mut image) {
                    return Ok(Updated::No);
                }
                let mut key = Vec::new();
                self.primary_key(state, &image, &mut key);
                seen.clone_from(&cell);
                new_image = Some(image);
                if key == primary_key {
                    // The newest image stays where it is after all.
                    let image = new_image.unwrap_or_default();
                    self.replace_row(state, primary_key, &old_image, &image, stamp)?;
                    return Ok(Updated::InPlace(cell));
                }
                if key != new_key {
                    new_key = key;
                    continue;
                }
            }
            let image = new_image.take().unwrap_or_default();
            return self.move_latched(state, primary_key, new_key, cell, &old_image, &image, stamp);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "both sides of a move")]
    fn move_latched(
        &self,
        state: &TableState,
        primary_key: &[u8],
        new_key: Vec<u8>,
        old_cell: Vec<u8>,
        old_image: &[u8],
        new_image: &[u8],
        stamp: Stamp,
    ) -> Result<Updated> {
        self.check_key(state, &new_key)?;
        let clustered = &state.indexes[0].tree;
        let cell = self.cell(state, &new_key, new_image, stamp)?;
        match clustered.insert(&new_key, &cell.parts(), stamp) {
            Ok(true) => {}
            Ok(false) => {
                cell.discard(&state.space);
                return Err(Error::DuplicateKey { index: IndexId(0) });
            }
            Err(error) => {
                cell.discard(&state.space);
                return Err(error);
            }
        }
        // Unique entries of the row itself must not collide with each other: the old ones go first.
        let moved = self.remove_entries(state, primary_key, old_image).and_then(|()| {
            self.insert_entries(state, &new_key, new_image, stamp).inspect_err(|_| {
                // Taking back what was taken out needs no more room than it had.
                let _ = self.insert_entries(state, primary_key, old_image, stamp);
            })
        });
        if let Err(error) = moved {
            clustered.remove(&new_key)?;
            cell.discard(&state.space);
            return Err(error);
        }
        clustered.remove(primary_key)?;
        Ok(Updated::Moved(old_cell, new_key))
    }

    /// Takes back one change, if the row is still as the statement left it.
    pub(crate) fn undo_row(
        &self,
        state: &TableState,
        primary_key: &[u8],
        undo: &Undo,
        stamp: Stamp,
    ) -> Result<()> {
        let (_latch, cell) = self.latch_row(&self.core, state, primary_key)?;
        let image = cell.as_deref().map(|cell| self.image_of(&state.space, cell)).transpose()?;
        let is_ours = cell.as_deref().and_then(split_cell).is_some_and(|(header, _)| header.stamp() == stamp);
        // What remains without a reference afterwards: the cell that was undone, or the one not put back.
        let old = match undo {
            Undo::Inserted => None,
            Undo::Updated(old) | Undo::Deleted(old) => Some(old.as_slice()),
        };
        let orphan = match (undo, &image) {
            (Undo::Inserted, Some(image)) if is_ours => {
                self.remove_row(state, primary_key, image)?;
                cell.as_deref()
            }
            (Undo::Updated(old_cell), Some(image)) if is_ours => {
                let old_image = self.image_of(&state.space, old_cell)?;
                match self.replace_cell(state, primary_key, image, &old_image, &[old_cell], Stamp(0)) {
                    Ok(()) => cell.as_deref(),
                    // Another statement has taken a unique key that this one had given up.
                    Err(Error::DuplicateKey { .. }) => old,
                    Err(error) => return Err(error),
                }
            }
            (Undo::Deleted(old_cell), None) => {
                if self.put_back(state, primary_key, old_cell)? {
                    None
                } else {
                    old
                }
            }
            // Another statement has changed the row since: its change stands.
            _ => old,
        };
        self.free_chain(state, orphan);
        Ok(())
    }

    /// Puts a deleted row back; false if its keys have been taken by others meanwhile.
    fn put_back(&self, state: &TableState, primary_key: &[u8], cell: &[u8]) -> Result<bool> {
        let image = self.image_of(&state.space, cell)?;
        if !state.indexes[0].tree.insert(primary_key, &[cell], Stamp(0))? {
            return Ok(false);
        }
        match self.insert_entries(state, primary_key, &image, Stamp(0)) {
            Ok(()) => {
                self.add_rows(1);
                Ok(true)
            }
            Err(error) => {
                state.indexes[0].tree.remove(primary_key)?;
                if matches!(error, Error::DuplicateKey { .. }) { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Frees the overflow pages of a cell that no leaf holds any more.
    pub(crate) fn free_chain(&self, state: &TableState, cell: Option<&[u8]>) {
        if let Some(reference) = cell.and_then(super::row::chain_of) {
            // Pages that cannot be given back are lost until the table is rebuilt; `check` reports them.
            let _ = overflow::free(&state.space, reference);
        }
    }
}

//! The catalogue: a tree of records in a file of its own. The records are in `format::catalogue`.

use crate::format::catalogue::{Record, database_key, decode, encode, statistics_key, table_key};
use crate::format::row::{ROW_HEADER_BYTES, RowHeader, chain_of, split_cell};
use crate::space::cell::Cell;
use crate::space::overflow;
use crate::tree::{Chunk, Remainder, Tree};
use crate::{Error, Result};
use base::{Stamp, TableId};

#[derive(Debug)]
pub(crate) struct Catalogue {
    tree: Tree,
    /// Numbers overflow chains.
    next_chain: u64,
    /// Tables that have gone, and whose records could not be removed yet. A start takes no notice of them as
    /// long as their database is not there either, or a newer table has their name. So nothing else is
    /// changed before they are removed.
    gone: Vec<TableId>,
}

impl Catalogue {
    pub(crate) fn new(tree: Tree, next_chain: u64) -> Catalogue {
        Catalogue { tree, next_chain, gone: Vec::new() }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn next_chain(&self) -> u64 {
        self.next_chain
    }

    /// Writes a record, in place of one with the same key.
    pub(crate) fn put(&mut self, record: &Record) -> Result<()> {
        self.remove_gone()?;
        let (key, value) = encode(record);
        if key.len() > self.tree.key_bytes_max() {
            return Err(Error::KeyTooLong { bytes: key.len(), bytes_max: self.tree.key_bytes_max() });
        }
        let inline_max = self.tree.value_bytes_max(key.len()).saturating_sub(ROW_HEADER_BYTES);
        let chain = self.next_chain;
        self.next_chain += 1;
        let cell =
            Cell::new(self.tree.space(), &value, inline_max, RowHeader::new(Stamp(0), true), || chain)?;
        let space = self.tree.space();
        let mut old = Vec::new();
        let before = self.tree.get(&key, &mut old).and_then(|is_there| {
            let operation = overflow::before_last_reference_goes(space, &old)?;
            Ok((is_there, operation))
        });
        let (is_there, operation) = match before {
            Ok(before) => before,
            Err(error) => {
                cell.discard(space);
                return Err(error);
            }
        };
        let done = match is_there {
            true => self.tree.replace(&key, &cell.parts(), Stamp(0)),
            false => self.tree.insert(&key, &cell.parts(), Stamp(0)),
        };
        if done.is_err() {
            cell.discard(space);
            overflow::keep_last(space, operation);
        } else {
            cell.placed(space);
            overflow::free_last(space, &old, operation);
        }
        done.map(drop)
    }

    pub(crate) fn remove_database(&mut self, name: &str) -> Result<()> {
        self.remove_gone()?;
        self.remove(&database_key(name))
    }

    pub(crate) fn remove_table(&mut self, id: TableId) -> Result<()> {
        self.remove_gone()?;
        self.remove_records(id)
    }

    /// As [`Catalogue::remove_table`], of a table that has gone already, as far as a start is concerned:
    /// either its database has, or a newer table has its name. What cannot be removed now is removed before
    /// the next change.
    pub(crate) fn remove_gone_table(&mut self, id: TableId) {
        self.gone.push(id);
        let _ = self.remove_gone();
    }

    fn remove_gone(&mut self) -> Result<()> {
        while let Some(id) = self.gone.last() {
            self.remove_records(*id)?;
            self.gone.pop();
        }
        Ok(())
    }

    fn remove_records(&mut self, id: TableId) -> Result<()> {
        // CRASH: the statistics first: without their table they would stay for ever.
        self.remove(&statistics_key(id))?;
        self.remove(&table_key(id))
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        let mut old = Vec::new();
        self.tree.get(key, &mut old)?;
        let operation = overflow::before_last_reference_goes(self.tree.space(), &old)?;
        self.tree.remove(key)?;
        overflow::free_last(self.tree.space(), &old, operation);
        Ok(())
    }

    /// Every record.
    pub(crate) fn load(&self) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut rest = Remainder::new(Vec::new(), None);
        let mut chunk = Chunk::default();
        while !rest.done {
            self.tree.read_forward(&mut rest, &mut chunk, usize::MAX)?;
            for i in 0..chunk.len() {
                let (key, cell) = chunk.entry(i);
                let mut image = Vec::new();
                let value = match chain_of(cell) {
                    Some(reference) => {
                        overflow::load(self.tree.space(), reference, &mut image)?.then_some(image.as_slice())
                    }
                    None => split_cell(cell).map(|(_, image)| image),
                };
                let record = value.and_then(|value| decode(key, value));
                records.push(record.ok_or_else(|| {
                    self.tree.space().corrupt(self.tree.root().0, "a catalogue record cannot be read")
                })?);
            }
        }
        Ok(records)
    }
}

//! What purge has not come to: in memory, and beyond a bound in scratch files.
//!
//! ```text
//! front (oldest)  |  spilled blocks, in files  |  back (newest)
//! ```
//!
//! Work is added at the back and done from the front, about in the order of the commits. While a snapshot
//! holds it back, the oldest part of the back goes to a file, a block at a time. One thread at a time takes
//! from the front, spills and reads back: the one that purges. What a large transaction has in files when it
//! commits becomes blocks as it is.
//!
//! ```text
//! block:  item, item, ...
//! item:   key length u32 | cell length u32 | stamp u64 | file u32 | table u16 | flags u16 | key | cell
//! ```
//!
//! `table` counts the tables of the block, which are in memory. Flag 1: counted; flag 2: has a chain. Blocks
//! of a transaction's changes are as in [`super::changes`].

use super::changes::Spilled;
use super::scratch::{BLOCK_BYTES, Piece, Scratch, changed};
use super::undo::{Change, Enlisted, RowChange, What};
use crate::Result;
use crate::table::Table;
use base::sync::Arc;
use base::{FileId, Lsn, Stamp, TableId};
use std::collections::{BTreeMap, VecDeque};

const ITEM_HEADER: usize = 24;
const COUNTED: u16 = 1;
const HAS_CHAIN: u16 = 2;
/// Bytes that an item takes in memory besides its key and its cell: itself, and the allocations' share.
const ITEM_OVERHEAD: u64 = 128;
/// Items that stay in front when the others go to files.
const FRONT_ITEMS: usize = if cfg!(test) { 8 } else { 1_024 };

/// About what a record of a chain takes in the log. Chains are logged again when the log has grown by as
/// much as all of them take since the first was logged: so this makes no more than half of what is logged.
const CHAIN_RECORD_BYTES: u64 = 64;

/// A row that some transaction has changed, as it was before.
#[derive(Debug)]
pub(crate) struct Garbage {
    pub table: Arc<Table>,
    pub file: FileId,
    pub key: Box<[u8]>,
    pub old: Arc<[u8]>,
    /// The transaction that changed it.
    pub stamp: Stamp,
    /// The overflow pages of `old` go with it. After a crash the log says so, from here on at the earliest.
    pub chain: Option<Lsn>,
    /// It counts in [`Table::garbage`].
    pub is_counted: bool,
}

impl Garbage {
    /// Bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        ITEM_OVERHEAD + (self.key.len() + self.old.len()) as u64
    }
}

/// The queue of what is to be purged.
#[derive(Default, Debug)]
pub(crate) struct Backlog {
    front: VecDeque<Garbage>,
    spilled: VecDeque<Block>,
    back: VecDeque<Garbage>,
    /// Items of tables that are being redefined.
    aside: BTreeMap<TableId, Vec<Garbage>>,
    /// What is being purged, written or read back needs the log from here on.
    in_hand: Option<Lsn>,
}

/// Items in a file.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    content: Content,
    pub items: usize,
    /// The log says of its chains from here on at the earliest that they are to be freed.
    chain: Option<Lsn>,
    /// About what they take in the log.
    chain_bytes: u64,
    /// Its tables, with how often each counts in [`Table::garbage`] because of this block.
    pub tables: Vec<(Arc<Table>, i64)>,
}

#[derive(Clone, Debug)]
enum Content {
    Items(Piece),
    /// Changes of a transaction that has committed, with its tables.
    Changes(Spilled, Stamp, Arc<[Enlisted]>),
}

/// What a step of [`Backlog::next`] comes to.
#[derive(Debug)]
pub(crate) enum Next {
    Item(Garbage),
    /// These come first, and are to be read.
    Read(Block),
    Nothing,
}

impl Backlog {
    pub(crate) fn add(&mut self, blocks: Vec<Block>, garbage: Vec<Garbage>) {
        if !blocks.is_empty() && self.spilled.is_empty() {
            self.front.append(&mut self.back);
        }
        self.spilled.extend(blocks);
        self.back.extend(garbage);
    }

    /// The transaction that left the oldest item; `None` also if that is to be read from a file first.
    pub(crate) fn first(&mut self) -> Option<Stamp> {
        if self.front.is_empty() && self.spilled.is_empty() {
            std::mem::swap(&mut self.front, &mut self.back);
        }
        self.front.front().map(|garbage| garbage.stamp)
    }

    pub(crate) fn has_spilled(&self) -> bool {
        !self.spilled.is_empty()
    }

    /// Takes the oldest item, or the block that has it.
    pub(crate) fn next(&mut self) -> Next {
        self.in_hand = None;
        if let Some(garbage) = self.front.pop_front() {
            self.in_hand = garbage.chain;
            return Next::Item(garbage);
        }
        match self.spilled.pop_front() {
            Some(block) => {
                self.in_hand = block.chain;
                Next::Read(block)
            }
            None => Next::Nothing,
        }
    }

    /// Nothing is in hand any more.
    pub(crate) fn done(&mut self) {
        self.in_hand = None;
    }

    /// Puts items that were read back where they came from.
    pub(crate) fn put_in_front(&mut self, items: impl DoubleEndedIterator<Item = Garbage>) {
        self.in_hand = None;
        items.rev().for_each(|garbage| self.front.push_front(garbage));
    }

    /// The table of the item in hand is being redefined.
    pub(crate) fn put_aside(&mut self, garbage: Garbage) {
        self.in_hand = None;
        self.aside.entry(garbage.table.id()).or_default().push(garbage);
    }

    /// The tables that something was put aside of.
    pub(crate) fn tables_aside(&self) -> Vec<Arc<Table>> {
        self.aside.values().filter_map(|items| Some(items.first()?.table.clone())).collect()
    }

    /// Queues again, in front, what was put aside of a table.
    pub(crate) fn take_back(&mut self, table: TableId) {
        let items = self.aside.remove(&table).unwrap_or_default();
        items.into_iter().rev().for_each(|garbage| self.front.push_front(garbage));
    }

    /// Takes the oldest items that came after all that is in files; none if there is not a block of them.
    pub(crate) fn take_block(&mut self) -> Vec<Garbage> {
        if self.spilled.is_empty() && self.front.len() > FRONT_ITEMS {
            let mut newer = self.front.split_off(FRONT_ITEMS);
            newer.append(&mut self.back);
            self.back = newer;
        }
        let mut bytes = 0;
        let full = self.back.iter().position(|garbage| {
            bytes += garbage.bytes();
            bytes >= BLOCK_BYTES
        });
        let Some(last) = full else { return Vec::new() };
        let items: Vec<Garbage> = self.back.drain(..=last).collect();
        self.in_hand = items.iter().filter_map(|garbage| garbage.chain).min();
        items
    }

    /// The items that were taken are in a file now.
    pub(crate) fn put_block(&mut self, block: Block) {
        self.in_hand = None;
        self.spilled.push_back(block);
    }

    /// The items that were taken stay in memory.
    pub(crate) fn put_back(&mut self, items: Vec<Garbage>) {
        self.in_hand = None;
        items.into_iter().rev().for_each(|garbage| self.back.push_front(garbage));
    }

    fn in_memory(&mut self) -> impl Iterator<Item = &mut Garbage> {
        let aside = self.aside.values_mut().flatten();
        self.front.iter_mut().chain(self.back.iter_mut()).chain(aside)
    }

    /// The first record in the log that says what is still to be purged.
    pub(crate) fn oldest_needed(&mut self) -> Option<Lsn> {
        let of_blocks = self.spilled.iter().filter_map(|block| block.chain).min();
        let in_hand = self.in_hand;
        self.in_memory().filter_map(|garbage| garbage.chain).chain(of_blocks).chain(in_hand).min()
    }

    /// About what all its chains take in the log.
    pub(crate) fn chain_bytes(&mut self) -> u64 {
        let of_blocks: u64 = self.spilled.iter().map(|block| block.chain_bytes).sum();
        let in_memory = self.in_memory().filter(|garbage| garbage.chain.is_some()).count() as u64;
        of_blocks + in_memory * CHAIN_RECORD_BYTES
    }

    /// The blocks whose chains have their records at or below `below`.
    pub(crate) fn blocks_with_chains(&self, below: Lsn) -> Vec<Block> {
        let blocks = self.spilled.iter();
        blocks.filter(|block| block.chain.is_some_and(|from| from <= below)).cloned().collect()
    }

    /// The chains of a block have been logged again from `position` on.
    pub(crate) fn logged_again(&mut self, block: &Block, position: Lsn) {
        if let Some(block) = self.spilled.iter_mut().find(|other| other.is_same(block)) {
            block.chain = Some(position);
        }
    }

    /// The items in memory whose chains have their records at or below `below`.
    pub(crate) fn with_chains(&mut self, below: Lsn) -> impl Iterator<Item = &mut Garbage> {
        self.in_memory().filter(move |garbage| garbage.chain.is_some_and(|from| from <= below))
    }
}

impl Block {
    pub(crate) fn write(items: &[Garbage], scratch: &Scratch) -> Result<Block> {
        let mut bytes = Vec::with_capacity(BLOCK_BYTES as usize + (BLOCK_BYTES as usize >> 2));
        let mut tables: Vec<(Arc<Table>, i64)> = Vec::new();
        let mut chains = 0;
        for garbage in items {
            let number = place_of(&mut tables, &garbage.table);
            let mut flags = 0;
            if garbage.is_counted {
                flags |= COUNTED;
                tables[number].1 += 1;
            }
            if garbage.chain.is_some() {
                flags |= HAS_CHAIN;
                chains += 1;
            }
            bytes.extend_from_slice(&(garbage.key.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&(garbage.old.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&garbage.stamp.0.to_le_bytes());
            bytes.extend_from_slice(&garbage.file.0.to_le_bytes());
            // A block has far fewer items than 65,536.
            bytes.extend_from_slice(&(number as u16).to_le_bytes());
            bytes.extend_from_slice(&flags.to_le_bytes());
            bytes.extend_from_slice(&garbage.key);
            bytes.extend_from_slice(&garbage.old);
        }
        let content = Content::Items(scratch.write(&bytes)?);
        let chain = items.iter().filter_map(|garbage| garbage.chain).min();
        Ok(Block { content, items: items.len(), chain, chain_bytes: chains * CHAIN_RECORD_BYTES, tables })
    }

    /// What of a transaction's changes is in files when it commits, without those that leave nothing to do.
    /// `from`: where its first record is.
    pub(crate) fn of_changes(
        changes: Vec<Spilled>,
        enlisted: &Arc<[Enlisted]>,
        stamp: Stamp,
        from: Lsn,
    ) -> Vec<Block> {
        let blocks = changes.into_iter().filter(|changes| changes.garbage > 0);
        let block = |changes: Spilled| {
            let mut tables = Vec::new();
            for (table, counted) in &changes.counted {
                let place = place_of(&mut tables, &enlisted[table.index()].table);
                tables[place].1 += counted;
            }
            Block {
                items: changes.garbage,
                chain: (changes.chains > 0).then_some(from),
                chain_bytes: changes.chains * CHAIN_RECORD_BYTES,
                tables,
                content: Content::Changes(changes, stamp, enlisted.clone()),
            }
        };
        blocks.map(block).collect()
    }

    pub(crate) fn has_chains(&self) -> bool {
        self.chain.is_some()
    }

    fn is_same(&self, other: &Block) -> bool {
        match (&self.content, &other.content) {
            (Content::Items(one), Content::Items(other)) => one.is_same(other),
            (Content::Changes(one, ..), Content::Changes(other, ..)) => one.is_same(other),
            _ => false,
        }
    }

    /// Reads the items.
    ///
    /// # Errors
    /// [`crate::Error::Io`], also if the file does not give back what was written.
    pub(crate) fn read(&self) -> Result<Vec<Garbage>> {
        match &self.content {
            Content::Items(piece) => Ok(self.parse(&piece.read()?).ok_or_else(changed)?),
            Content::Changes(changes, stamp, tables) => {
                let chain = self.chain.unwrap_or_default();
                let garbage = |change| garbage_of(tables, change, *stamp, chain);
                Ok(changes.read()?.into_iter().filter_map(garbage).collect())
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<Vec<Garbage>> {
        let mut items = Vec::with_capacity(self.items);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (header, after) = rest.split_at_checked(ITEM_HEADER)?;
            let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
            let half = |at: usize| u16::from_le_bytes(header[at..at + 2].try_into().expect("two bytes"));
            let (key, after) = after.split_at_checked(word(0) as usize)?;
            let (old, after) = after.split_at_checked(word(4) as usize)?;
            let (table, _) = self.tables.get(usize::from(half(20)))?;
            let flags = half(22);
            items.push(Garbage {
                table: table.clone(),
                file: FileId(word(16)),
                key: key.into(),
                old: old.into(),
                stamp: Stamp(u64::from(word(8)) | u64::from(word(12)) << 32),
                chain: self.chain.filter(|_| flags & HAS_CHAIN != 0),
                is_counted: flags & COUNTED != 0,
            });
            rest = after;
        }
        Some(items)
    }
}

fn place_of(tables: &mut Vec<(Arc<Table>, i64)>, table: &Arc<Table>) -> usize {
    let known = tables.iter().position(|(known, _)| Arc::ptr_eq(known, table));
    known.unwrap_or_else(|| {
        tables.push((table.clone(), 0));
        tables.len() - 1
    })
}

/// What purge has to do because of a change that has been committed, when nobody sees the old row any more.
/// `from`: where the transaction's first record is.
pub(crate) fn garbage_of(tables: &[Enlisted], change: Change, stamp: Stamp, from: Lsn) -> Option<Garbage> {
    if !change.leaves_work() {
        return None;
    }
    let Enlisted { table, file } = &tables[change.table.index()];
    let What::Row(RowChange { key, old: Some(old), leaves_garbage, leaves_chain, .. }) = change.what else {
        return None;
    };
    let (table, file, chain) = (table.clone(), *file, leaves_chain.then_some(from));
    Some(Garbage { table, file, key, old, stamp, chain, is_counted: leaves_garbage })
}

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
//!
//! After a crash the log says what was to be purged: the records of the transactions that left it, or those
//! that a checkpoint has logged again. Where that would be too much of the log, a checkpoint has the
//! headers of the tables say that the log does not list all of their garbage ([`Table::set_unlisted`]).
//! Then a start sweeps them, and the log need not keep anything for their items but chains.

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

/// About what a record of an item takes in the log besides its key and its cell. Items are logged again
/// when the log has grown by as much as all of them take since the first was logged: so this makes no more
/// than half of what is logged.
const RECORD_BYTES: u64 = 64;

/// A row that some transaction has changed, as it was before.
#[derive(Debug)]
pub(crate) struct Garbage {
    pub table: Arc<Table>,
    pub file: FileId,
    pub key: Box<[u8]>,
    pub old: Arc<[u8]>,
    /// The transaction that changed it.
    pub stamp: Stamp,
    /// The overflow pages of `old` go with it.
    pub has_chain: bool,
    /// The log has it from here on at the earliest.
    pub logged: Lsn,
    /// It counts in [`Table::garbage`].
    pub is_counted: bool,
}

impl Garbage {
    /// Bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        ITEM_OVERHEAD + (self.key.len() + self.old.len()) as u64
    }

    /// A start needs what the log says of it. To be asked behind a fence: see [`Purge::oldest_needed`].
    ///
    /// [`Purge::oldest_needed`]: super::purge::Purge::oldest_needed
    pub(crate) fn needs_log(&self) -> bool {
        self.has_chain || self.is_listed()
    }

    /// The log lists it, and not its chain alone.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_counted && !self.table.is_unlisted()
    }

    /// About what it takes in the log.
    fn log_bytes(&self) -> u64 {
        match (self.is_listed(), self.has_chain) {
            (true, _) => RECORD_BYTES + (self.key.len() + self.old.len()) as u64,
            (false, true) => RECORD_BYTES,
            (false, false) => 0,
        }
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
    /// The log has its items from here on at the earliest.
    logged: Lsn,
    /// About what they take in the log.
    log_bytes: u64,
    has_chains: bool,
    pub tables: Vec<BlockTable>,
}

/// A table that a block has items of.
#[derive(Clone, Debug)]
pub(crate) struct BlockTable {
    pub table: Arc<Table>,
    pub file: FileId,
    /// How often it counts in [`Table::garbage`] because of the block.
    pub counted: u64,
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
    /// Empties it. The log still needs all that was in it.
    pub(crate) fn forget(&mut self) {
        *self = Backlog { in_hand: Some(Lsn::default()), ..Backlog::default() };
    }

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
            self.in_hand = garbage.needs_log().then_some(garbage.logged);
            return Next::Item(garbage);
        }
        match self.spilled.pop_front() {
            Some(block) => {
                self.in_hand = block.needs_log().then_some(block.logged);
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
        self.in_hand = oldest(items.iter());
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
        let blocks = self.spilled.iter().filter(|block| block.needs_log());
        let of_blocks = blocks.map(|block| block.logged).min();
        let in_hand = self.in_hand;
        oldest(self.in_memory().map(|garbage| &*garbage)).into_iter().chain(of_blocks).chain(in_hand).min()
    }

    /// About what all of it takes in the log.
    pub(crate) fn log_bytes(&mut self) -> u64 {
        let blocks = self.spilled.iter().filter(|block| block.needs_log());
        let of_blocks: u64 = blocks.map(|block| block.log_bytes).sum();
        of_blocks + self.in_memory().map(|garbage| garbage.log_bytes()).sum::<u64>()
    }

    /// The tables whose items the log lists at or below `below`.
    pub(crate) fn listed(&mut self, below: Lsn) -> Vec<Arc<Table>> {
        let mut tables: BTreeMap<TableId, Arc<Table>> = BTreeMap::new();
        for garbage in self.in_memory().filter(|garbage| garbage.logged <= below && garbage.is_listed()) {
            tables.entry(garbage.table.id()).or_insert_with(|| garbage.table.clone());
        }
        for block in self.spilled.iter().filter(|block| block.logged <= below) {
            for table in block.listed() {
                tables.entry(table.id()).or_insert_with(|| table.clone());
            }
        }
        tables.into_values().collect()
    }

    /// The blocks that have their records at or below `below`.
    pub(crate) fn blocks_logged(&self, below: Lsn) -> Vec<Block> {
        let blocks = self.spilled.iter();
        blocks.filter(|block| block.logged <= below && block.needs_log()).cloned().collect()
    }

    /// A block has been logged again from `position` on.
    pub(crate) fn logged_again(&mut self, block: &Block, position: Lsn) {
        if let Some(block) = self.spilled.iter_mut().find(|other| other.is_same(block)) {
            block.logged = position;
        }
    }

    /// The items in memory that have their records at or below `below`.
    pub(crate) fn logged(&mut self, below: Lsn) -> impl Iterator<Item = &mut Garbage> {
        self.in_memory().filter(move |garbage| garbage.logged <= below && garbage.needs_log())
    }
}

fn oldest<'g>(items: impl Iterator<Item = &'g Garbage>) -> Option<Lsn> {
    items.filter(|garbage| garbage.needs_log()).map(|garbage| garbage.logged).min()
}

impl Block {
    pub(crate) fn write(items: &[Garbage], scratch: &Scratch) -> Result<Block> {
        let mut bytes = Vec::with_capacity(BLOCK_BYTES as usize + (BLOCK_BYTES as usize >> 2));
        let mut tables: Vec<BlockTable> = Vec::new();
        for garbage in items {
            let number = place_of(&mut tables, &garbage.table, garbage.file);
            let mut flags = 0;
            if garbage.is_counted {
                flags |= COUNTED;
                tables[number].counted += 1;
            }
            if garbage.has_chain {
                flags |= HAS_CHAIN;
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
        Ok(Block {
            content: Content::Items(scratch.write(&bytes)?),
            items: items.len(),
            logged: items.iter().map(|garbage| garbage.logged).min().unwrap_or_default(),
            log_bytes: items.iter().map(Garbage::log_bytes).sum(),
            has_chains: items.iter().any(|garbage| garbage.has_chain),
            tables,
        })
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
                let Enlisted { table, file } = &enlisted[table.index()];
                let place = place_of(&mut tables, table, *file);
                tables[place].counted += counted;
            }
            Block {
                items: changes.garbage,
                logged: from,
                log_bytes: changes.bytes() + changes.garbage as u64 * RECORD_BYTES,
                has_chains: changes.chains > 0,
                tables,
                content: Content::Changes(changes, stamp, enlisted.clone()),
            }
        };
        blocks.map(block).collect()
    }

    pub(crate) fn has_chains(&self) -> bool {
        self.has_chains
    }

    /// As [`Garbage::needs_log`], of its items.
    fn needs_log(&self) -> bool {
        self.has_chains || self.listed().next().is_some()
    }

    /// The tables whose items the log lists.
    fn listed(&self) -> impl Iterator<Item = &Arc<Table>> {
        let counted = self.tables.iter().filter(|BlockTable { counted, .. }| *counted > 0);
        counted.map(|BlockTable { table, .. }| table).filter(|table| !table.is_unlisted())
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
                let garbage = |change| garbage_of(tables, change, *stamp, self.logged);
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
            let BlockTable { table, .. } = self.tables.get(usize::from(half(20)))?;
            let flags = half(22);
            items.push(Garbage {
                table: table.clone(),
                file: FileId(word(16)),
                key: key.into(),
                old: old.into(),
                stamp: Stamp(u64::from(word(8)) | u64::from(word(12)) << 32),
                has_chain: flags & HAS_CHAIN != 0,
                logged: self.logged,
                is_counted: flags & COUNTED != 0,
            });
            rest = after;
        }
        Some(items)
    }
}

fn place_of(tables: &mut Vec<BlockTable>, table: &Arc<Table>, file: FileId) -> usize {
    let known = tables.iter().position(|known| known.file == file);
    known.unwrap_or_else(|| {
        tables.push(BlockTable { table: table.clone(), file, counted: 0 });
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
    Some(Garbage {
        table: table.clone(),
        file: *file,
        key,
        old,
        stamp,
        has_chain: leaves_chain,
        logged: from,
        is_counted: leaves_garbage,
    })
}

//! What purge has not come to: in memory, and beyond a bound in scratch files.
//!
//! ```text
//! front (oldest)  |  spilled blocks, in files  |  back (newest)
//! ```
//!
//! Work is added at the back and done from the front, about in the order of the commits. While a snapshot
//! holds it back, the oldest part of the back goes to a file, a block at a time. One thread at a time takes
//! from the front, spills and reads back: the one that purges. Files are unnamed: nothing stays of them.
//!
//! ```text
//! block:  item, item, ...
//! item:   key length u32 | cell length u32 | stamp u64 | file u32 | table u16 | flags u16 | key | cell
//! ```
//!
//! `table` counts the tables of the block, which are in memory. Flag 1: counted; flag 2: has a chain.

use crate::Result;
use crate::table::Table;
use base::checksum::crc32;
use base::sync::{Arc, Mutex};
use base::{FileId, Lsn, Stamp, TableId};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use vfs::{File, Vfs};

/// About how many bytes of items go to a file together. Tests write small blocks, so that they write some.
const BLOCK_BYTES: u64 = if cfg!(test) { 4 << 10 } else { 1 << 20 };
/// A file takes so many blocks. It goes when the last of them has been read, so a backlog that never ends
/// keeps no more than it needs.
const FILE_BLOCKS: u64 = 64;
const ITEM_HEADER: usize = 24;
const COUNTED: u16 = 1;
const HAS_CHAIN: u16 = 2;
/// Bytes that an item takes in memory besides its key and its cell: itself, and the allocations' share.
const ITEM_OVERHEAD: u64 = 128;
/// Items that stay in front when the others go to files.
const FRONT_ITEMS: usize = if cfg!(test) { 8 } else { 1_024 };

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
    file: Arc<dyn File>,
    start: u64,
    bytes: usize,
    checksum: u32,
    pub items: usize,
    /// The log says of its chains from here on at the earliest that they are to be freed.
    chain: Option<Lsn>,
    /// About what they take in the log.
    chain_bytes: u64,
    /// Its tables, with how often each counts in [`Table::garbage`] because of this block.
    pub tables: Vec<(Arc<Table>, i64)>,
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
    pub(crate) fn add(&mut self, garbage: Vec<Garbage>) {
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
    pub(crate) fn chain_bytes(&mut self, record: u64) -> u64 {
        let of_blocks: u64 = self.spilled.iter().map(|block| block.chain_bytes).sum();
        of_blocks + record * self.in_memory().filter(|garbage| garbage.chain.is_some()).count() as u64
    }

    /// The blocks whose chains have their records at or below `below`.
    pub(crate) fn blocks_with_chains(&self, below: Lsn) -> Vec<Block> {
        let blocks = self.spilled.iter();
        blocks.filter(|block| block.chain.is_some_and(|from| from <= below)).cloned().collect()
    }

    /// The chains of a block have been logged again from `position` on.
    pub(crate) fn logged_again(&mut self, block: &Block, position: Lsn) {
        let is_same =
            |other: &&mut Block| Arc::ptr_eq(&other.file, &block.file) && other.start == block.start;
        if let Some(block) = self.spilled.iter_mut().find(is_same) {
            block.chain = Some(position);
        }
    }

    /// The items in memory whose chains have their records at or below `below`.
    pub(crate) fn with_chains(&mut self, below: Lsn) -> impl Iterator<Item = &mut Garbage> {
        self.in_memory().filter(move |garbage| garbage.chain.is_some_and(|from| from <= below))
    }
}

/// Where blocks are written.
#[derive(Debug)]
pub(crate) struct Scratch {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    current: Mutex<Option<Filling>>,
}

/// A file that takes more blocks.
#[derive(Debug)]
struct Filling {
    file: Arc<dyn File>,
    bytes: u64,
    blocks: u64,
}

impl Scratch {
    /// Makes its files in a folder, when they are needed.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: PathBuf) -> Scratch {
        Scratch { vfs, dir, current: Mutex::default() }
    }

    /// Writes items. `record` is about what a chain takes in the log.
    pub(crate) fn write(&self, items: &[Garbage], record: u64) -> Result<Block> {
        let mut bytes = Vec::with_capacity(BLOCK_BYTES as usize + (BLOCK_BYTES as usize >> 2));
        let mut tables: Vec<(Arc<Table>, i64)> = Vec::new();
        let mut chains = 0;
        for garbage in items {
            let known = tables.iter().position(|(table, _)| Arc::ptr_eq(table, &garbage.table));
            let number = known.unwrap_or_else(|| {
                tables.push((garbage.table.clone(), 0));
                tables.len() - 1
            });
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
        let (file, start) = self.append(&bytes)?;
        let chain = items.iter().filter_map(|garbage| garbage.chain).min();
        let (checksum, chain_bytes) = (crc32(&bytes), chains * record);
        Ok(Block {
            file,
            start,
            bytes: bytes.len(),
            checksum,
            items: items.len(),
            chain,
            chain_bytes,
            tables,
        })
    }

    /// Nothing of what was written is needed any more.
    pub(crate) fn clear(&self) {
        *self.current.lock() = None;
    }

    fn append(&self, bytes: &[u8]) -> Result<(Arc<dyn File>, u64)> {
        let mut current = self.current.lock();
        let Filling { file, bytes: start, blocks } = match current.take() {
            Some(filling) if filling.blocks < FILE_BLOCKS => filling,
            _ => Filling { file: self.vfs.open_unnamed(&self.dir)?, bytes: 0, blocks: 0 },
        };
        file.write_at(bytes, start)?;
        let end = start + bytes.len() as u64;
        *current = Some(Filling { file: file.clone(), bytes: end, blocks: blocks + 1 });
        Ok((file, start))
    }
}

impl Block {
    /// Reads the items.
    ///
    /// # Errors
    /// [`crate::Error::Io`], also if the file does not give back what was written.
    pub(crate) fn read(&self) -> Result<Vec<Garbage>> {
        let mut bytes = vec![0; self.bytes];
        self.file.read_at(&mut bytes, self.start)?;
        let items = (crc32(&bytes) == self.checksum).then(|| self.parse(&bytes)).flatten();
        Ok(items.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a scratch file has changed"))?)
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

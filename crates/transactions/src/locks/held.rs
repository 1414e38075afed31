//! What locks a transaction holds.

use super::{DEFINITIONS, Held, Holds, LockError, Locks};
use base::hash::HashMap;

/// Bytes that a lock takes besides its key: the queue with its holder, entries of maps, allocations, and what
/// the transaction keeps.
const LOCK_BYTES: u64 = 112;
/// A transaction tells the lock table about so many more bytes of locks at a time.
const COUNT_BYTES: u64 = if cfg!(any(test, feature = "shuttle")) { 1 } else { 64 << 10 };
/// A transaction with this part of what locks may take has wide locks when they take more.
const SHARE_DIVISOR: u64 = 16;
/// So few locks of a table in a partition stay as they are.
const FEW: usize = if cfg!(feature = "shuttle") { 1 } else { 16 };

/// The locks of a transaction.
#[derive(Default, Debug)]
pub struct HeldLocks {
    /// In the order in which they were taken, from number `first` on.
    list: Vec<Held>,
    /// How many were taken before these: they stay until the transaction ends.
    first: usize,
    /// Those of them that wide locks do not replace.
    kept: Vec<Held>,
    /// Wide locks: table and partition.
    wide: Vec<(u64, usize)>,
    bytes: u64,
    /// How many of them the lock table knows of.
    counted: u64,
    /// It is not tried to get wide locks before there are so many.
    widen_at: u64,
}

impl HeldLocks {
    /// How many locks were taken. Those that were given back do not count, those that wide locks have
    /// replaced do.
    pub fn len(&self) -> usize {
        self.first + self.list.len()
    }

    /// Adds a lock. May have many replaced by wide ones.
    ///
    /// # Errors
    /// [`LockError::TableFull`]: it has been added.
    pub fn push(&mut self, owner: u64, held: Held, locks: &Locks) -> Result<(), LockError> {
        self.bytes += bytes_of(&held);
        self.list.push(held);
        if self.bytes < self.counted + COUNT_BYTES {
            return Ok(());
        }
        self.count(locks);
        if locks.bytes() <= locks.limit() {
            return Ok(());
        }
        if self.bytes >= self.widen_at.max(locks.limit() / SHARE_DIVISOR) {
            self.widen(owner, locks);
            self.widen_at = 2 * self.bytes;
            self.count(locks);
        }
        if locks.is_full() { Err(LockError::TableFull) } else { Ok(()) }
    }

    /// Takes those between two numbers out, the newest first. Those that wide locks have replaced stay.
    pub fn take_between(&mut self, from: usize, to: usize) -> impl Iterator<Item = Held> {
        let (from, to) = (from.max(self.first) - self.first, to.max(self.first) - self.first);
        let taken = self.list.drain(from.min(to)..to).rev();
        let bytes = &mut self.bytes;
        taken.inspect(move |held| *bytes -= bytes_of(held))
    }

    /// Gives all locks back.
    pub fn release(&mut self, owner: u64, locks: &Locks) {
        for held in self.list.drain(..).rev().chain(self.kept.drain(..)) {
            locks.unlock(owner, &held, false);
        }
        for (table, partition) in self.wide.drain(..) {
            locks.release_wide(owner, table, partition);
        }
        self.bytes = 0;
        self.count(locks);
    }

    fn count(&mut self, locks: &Locks) {
        if self.bytes != self.counted {
            locks.count_bytes(self.bytes, self.counted);
            self.counted = self.bytes;
        }
    }

    #[cold]
    fn widen(&mut self, owner: u64, locks: &Locks) {
        self.first += self.list.len();
        let mut groups: HashMap<(u64, usize), Vec<Held>> = HashMap::default();
        let all = std::mem::take(&mut self.list).into_iter().chain(std::mem::take(&mut self.kept));
        for held in all {
            groups.entry((held.table, locks.partition_of(held.table, &held.key))).or_default().push(held);
        }
        for ((table, partition), mut group) in groups {
            if table != DEFINITIONS && group.len() > FEW {
                let (rest, is_new) = locks.widen(owner, table, partition, group);
                group = rest;
                if is_new {
                    self.wide.push((table, partition));
                }
            }
            self.kept.append(&mut group);
        }
        self.kept.shrink_to_fit();
        self.bytes = self.kept.iter().map(bytes_of).sum();
    }
}

fn bytes_of(held: &Held) -> u64 {
    LOCK_BYTES + held.key.len() as u64
}

impl Held {
    /// How many locks this adds to those that a transaction holds, as others count them.
    pub fn adds(&self) -> Holds {
        match (self.before, self.table) {
            (Some(_), _) => Holds::default(),
            (None, DEFINITIONS) => Holds { rows: 0, tables: 1 },
            (None, _) => Holds { rows: 1, tables: 0 },
        }
    }
}

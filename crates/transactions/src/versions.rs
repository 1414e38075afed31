//! Old versions of rows, for snapshots that do not see the newest.
//!
//! A version is put here before the page changes (transactions R5), and stays until no snapshot can ask for
//! it (transactions R6). A reader that finds a stamp on a page that its snapshot does not see comes here. It
//! does not hold the page's latch meanwhile.
//!
//! What is to be purged is known from the transactions that committed. Each of their versions is looked at
//! once. If a snapshot still needs it, it is filed under the newest such snapshot and looked at again when
//! that snapshot has gone. So there are never more filed versions than stored ones.

mod chain;

use crate::registry::Live;
use crate::status::{Status, StatusTable};
use base::hash::{HashMap, spread};
use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use base::sync::{Arc, CachePadded, Mutex};
use chain::Chain;

base::latch_class!(pub PurgeListsLatch, "versions to purge");

base::latch_class!(pub VersionsLatch, "row versions");
pub use chain::{Found, Pin, Version};
use std::collections::BTreeMap;

/// Shards of the store: as many as partitions of the lock table, for the same reason.
#[cfg(not(feature = "shuttle"))]
const SHARDS: usize = 64;
#[cfg(feature = "shuttle")]
const SHARDS: usize = 2;

/// Versions of one row at which an insertion prunes; from then on whenever their number has doubled.
#[cfg(not(feature = "shuttle"))]
pub const PRUNE_AT: usize = 4;
#[cfg(feature = "shuttle")]
pub const PRUNE_AT: usize = 2;

/// Bytes counted for a version, on top of its cell: the entry in the chain, the allocation, the reference to
/// purge it by.
pub const VERSION_OVERHEAD: u64 = 96;
/// Bytes counted for a row that has versions, on top of its key: the entry in the map and its share of empty
/// ones.
pub const ROW_OVERHEAD: u64 = 96;

/// What a transaction remembers of a version that it left.
#[derive(Clone, Debug)]
pub struct VersionRef {
    table: u64,
    key: Arc<[u8]>,
    writer: u64,
}

/// By table and key.
type Rows = HashMap<u64, HashMap<Arc<[u8]>, Chain>>;

#[derive(Debug, Default)]
struct Shard {
    rows: Mutex<Rows, VersionsLatch>,
    /// Bytes that they take. Changed under the latch.
    bytes: AtomicU64,
}

#[derive(Debug)]
pub struct VersionStore {
    shards: Box<[CachePadded<Shard>]>,
    /// Versions of committed transactions that purge has not looked at, or that are too new for it.
    incoming: Mutex<Vec<VersionRef>, PurgeListsLatch>,
    /// Versions that purge found needed, by the newest snapshot that needs them. Held through a purge.
    filed: Mutex<BTreeMap<u64, Vec<VersionRef>>>,
    limit_bytes: AtomicU64,
    /// Bytes of versions that transactions under way have left, as far as these have counted them: purge
    /// cannot remove them, whatever snapshots are open.
    active_bytes: CachePadded<AtomicU64>,
}

impl VersionStore {
    pub fn new(limit_bytes: u64) -> VersionStore {
        VersionStore {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            incoming: Mutex::default(),
            filed: Mutex::default(),
            limit_bytes: AtomicU64::new(limit_bytes),
            active_bytes: CachePadded::default(),
        }
    }

    fn shard(&self, table: u64, key: &[u8]) -> &Shard {
        &self.shards[spread(&(table, key)) as usize % self.shards.len()]
    }

    /// Adds a version. Gives the bytes that it takes, with those of its row if it is the row's first. `None`
    /// if its writer has one of this row already.
    pub fn add(
        &self,
        (table, key): (u64, &[u8]),
        version: Version,
        status: &StatusTable,
        live: impl FnOnce() -> Live,
    ) -> Option<(VersionRef, u64)> {
        let Shard { rows, bytes } = self.shard(table, key);
        let mut tables = rows.lock();
        let rows = tables.entry(table).or_default();
        let mut added = 0;
        if !rows.contains_key(key) {
            rows.insert(Arc::from(key), Chain::default());
            added = row_bytes(key);
        }
        let stored = rows.get_key_value(key).expect("just made").0.clone();
        let chain = rows.get_mut(key).expect("just made");
        let (writer, version_bytes) = (version.superseded_by, version.bytes());
        if !chain.push(version) {
            return None;
        }
        added += version_bytes;
        let freed = match chain.is_long() {
            true => {
                let live = live();
                chain.prune(|id| end_of(status, id), |from, to| pin(&live, from, to))
            }
            false => 0,
        };
        // ORDER: Relaxed: changed under the shard's latch; a sum for reports and the limit.
        bytes.store(bytes.load(Relaxed) + added - freed, Relaxed);
        Some((VersionRef { table, key: stored, writer }, added))
    }

    /// What a snapshot finds of a row. `sees` and `check` are asked under the shard's latch.
    pub fn find<E>(
        &self,
        (table, key): (u64, &[u8]),
        sees: impl Fn(u64) -> bool,
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<Found, E> {
        let tables = self.shard(table, key).rows.lock();
        check()?;
        let chain = tables.get(&table).and_then(|rows| rows.get(key));
        Ok(chain.map_or(Found::Newest, |chain| chain.find(sees)))
    }

    /// What the versions of a row say it was, each with the stamp that changed that.
    pub fn of(&self, (table, key): (u64, &[u8])) -> Vec<(u64, Arc<[u8]>)> {
        let tables = self.shard(table, key).rows.lock();
        let chain = tables.get(&table).and_then(|rows| rows.get(key));
        chain.map_or_else(Vec::new, |chain| chain.rows().collect())
    }

    /// Changes the chain of one row, if it has one, by what frees bytes. Gives how many.
    fn shrink<R: Default>(
        &self,
        table: u64,
        key: &[u8],
        change: impl FnOnce(&mut Chain) -> (u64, R),
    ) -> (u64, R) {
        let Shard { rows, bytes } = self.shard(table, key);
        let mut tables = rows.lock();
        let Some(rows) = tables.get_mut(&table) else { return Default::default() };
        let Some(chain) = rows.get_mut(key) else { return Default::default() };
        let (mut freed, result) = change(chain);
        if chain.is_empty() {
            rows.remove(key);
            freed += row_bytes(key);
            if rows.is_empty() {
                tables.remove(&table);
            }
        }
        // ORDER: Relaxed: as in `add`.
        bytes.store(bytes.load(Relaxed) - freed, Relaxed);
        (freed, result)
    }

    /// Removes the version of a row that `writer` left, for its change has been undone on the page. Gives the
    /// bytes freed.
    pub fn take_back(&self, table: u64, key: &[u8], writer: u64) -> u64 {
        self.shrink(table, key, |chain| (chain.take_back(writer), ())).0
    }

    /// Removes all that a transaction left, after its changes have been undone on their pages.
    pub fn roll_back(&self, left: &[VersionRef]) {
        for left in left {
            self.take_back(left.table, &left.key, left.writer);
        }
    }

    /// Leaves the versions of a committed transaction to purge.
    pub fn commit(&self, left: &mut Vec<VersionRef>) {
        if !left.is_empty() {
            self.incoming.lock().append(left);
        }
    }

    /// Removes what no snapshot needs any more. Gives the bytes in use afterwards.
    pub fn purge(&self, status: &StatusTable, live: impl FnOnce() -> Live) -> u64 {
        let mut filed = self.filed.lock();
        let mut due = std::mem::take(&mut *self.incoming.lock());
        let live = live();
        let gone: Vec<u64> = filed.keys().copied().filter(|number| !live.needs(*number)).collect();
        for number in gone {
            due.append(&mut filed.remove(&number).expect("just seen"));
        }
        let mut too_new = Vec::new();
        for left in due {
            let end_of = |id| end_of(status, id);
            let pin = |from, to| pin(&live, from, to);
            let (_, pinned) = self.shrink(left.table, &left.key, |chain| {
                let freed = chain.prune(end_of, pin);
                (freed, chain.pin_of(left.writer, end_of, pin))
            });
            match pinned {
                Some(Pin::Snapshot(number)) => filed.entry(number).or_default().push(left),
                Some(Pin::Future) => too_new.push(left),
                None => {}
            }
        }
        self.commit(&mut too_new);
        drop(filed);
        self.bytes()
    }

    pub fn bytes(&self) -> u64 {
        // ORDER: Relaxed: as in `add`.
        self.shards.iter().map(|shard| shard.bytes.load(Relaxed)).sum()
    }

    /// A transaction under way has left so many bytes more of versions, or has ended and had so many less.
    pub fn count_active(&self, more: u64, less: u64) {
        // ORDER: Relaxed: a sum for the limit. It wraps to the right value however the threads meet.
        self.active_bytes.fetch_add(more.wrapping_sub(less), Relaxed);
    }

    /// True if the versions of committed transactions exceed the limit.
    pub fn is_over_limit(&self) -> bool {
        // ORDER: Relaxed: sums and a setting that are looked at now and then.
        self.bytes().saturating_sub(self.active_bytes.load(Relaxed)) > self.limit_bytes.load(Relaxed)
    }

    /// The snapshots that purge found versions to be needed by, each the newest that needs some; ascending.
    pub fn snapshots_with_versions(&self) -> Vec<u64> {
        self.filed.lock().keys().copied().collect()
    }

    pub fn limit(&self) -> u64 {
        // ORDER: as above.
        self.limit_bytes.load(Relaxed)
    }

    pub fn set_limit(&self, bytes: u64) {
        // ORDER: as above.
        self.limit_bytes.store(bytes, Relaxed);
    }
}

fn row_bytes(key: &[u8]) -> u64 {
    ROW_OVERHEAD + key.len() as u64
}

/// When a transaction committed, as far as open snapshots can tell.
fn end_of(status: &StatusTable, id: u64) -> u64 {
    match status.status(id) {
        Status::Committed(number) => number,
        // The versions of a rolled-back transaction are taken back before it ends. Until then no snapshot
        // sees what is newer.
        Status::Active | Status::Unborn | Status::RolledBack => u64::MAX,
    }
}

/// The snapshots that need what was current from one number on and before another.
fn pin(live: &Live, from: u64, to: u64) -> Option<Pin> {
    if to > live.announced {
        return Some(Pin::Future);
    }
    live.last_needed_in(from, to).map(Pin::Snapshot)
}

/// The right to enforce the limit. One thread has it at a time, and nobody waits for it.
#[derive(Debug, Default)]
pub struct Enforcer(AtomicU64);

impl Enforcer {
    /// Runs `enforce` unless another thread is at it.
    pub fn run(&self, enforce: impl FnOnce()) {
        // ORDER: Acquire here, Release below: a thread that enforces sees what the one before has done.
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            enforce();
            self.0.store(0, Release);
        }
    }
}

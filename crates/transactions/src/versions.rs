//! Old versions of rows, for snapshots that do not see the newest.
//!
//! A version is put here before the page changes (transactions R5), and stays until no snapshot can ask for
//! it (transactions R6). A reader that finds a stamp on a page that its snapshot does not see comes here. It
//! does not hold the page's latch meanwhile.
//!
//! What is to be purged is known from the transactions that committed. Each of their versions is looked at
//! once. If a snapshot still needs it, it is filed under the newest such snapshot and looked at again when
//! that snapshot has gone. So there are never more filed versions than stored ones.
//!
//! What is filed and too much for memory goes to a file, a run ([`run`]), all at once. Then memory has the
//! run's index instead of the versions and of what they are filed under. So does what a large transaction
//! has left while it is under way.

mod chain;
mod run;
mod runs;

use crate::registry::Live;
use crate::status::{Status, StatusTable};
use base::hash::{HashMap, spread};
use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use base::sync::{Arc, CachePadded, Mutex};
use chain::{Chain, Sought, first_needed};
use run::{Interval, Record};

base::latch_class!(pub PurgeListsLatch, "versions to purge");

base::latch_class!(pub VersionsLatch, "row versions");
pub use chain::{Found, Origin, Pin, Version};
pub use run::Undecided;
pub use runs::{Runs, Spilled, SpilledUsage};
use std::cmp::Ordering as Order;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionRef {
    table: u64,
    key: Arc<[u8]>,
    writer: u64,
}

/// A version that a transaction under way has left.
#[derive(Debug)]
pub struct Left {
    pub version: VersionRef,
    /// By which of its changes.
    pub change: u64,
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
    runs: Runs,
    /// Files could not be written, and it is not tried again until the clock has come to this.
    full_until: AtomicU64,
}

/// What is to go to a file.
#[derive(Debug)]
struct Leaving {
    left: VersionRef,
    /// The first bytes of the key, which decide most comparisons.
    head: u64,
    /// What it is filed under, or which change of its writer has left it.
    of: u64,
}

impl Leaving {
    fn new(left: VersionRef, of: u64) -> Leaving {
        let mut head = [0; 8];
        let bytes = left.key.len().min(8);
        head[..bytes].copy_from_slice(&left.key[..bytes]);
        Leaving { head: u64::from_be_bytes(head), left, of }
    }

    /// In the order of [`row_order`].
    fn sort(leaving: &mut [Leaving]) {
        leaving.sort_unstable_by(|a, b| {
            let (a, b) = ((a.head, &a.left), (b.head, &b.left));
            (a.1.table, a.0, &a.1.key, a.1.writer).cmp(&(b.1.table, b.0, &b.1.key, b.1.writer))
        });
    }
}

/// A transaction under way moves its versions to files if they take at least this part of the limit, and
/// those of all such transactions half of it.
const ACTIVE_SHARE: u64 = 16;
/// How often it asks whether they do.
const ASK_BYTES: u64 = 64 << 10;

/// For so many commits after a failure nothing is written to files: there may be no snapshot to give up, and
/// to gather what is to be written takes time.
const FULL_COMMITS: u64 = if cfg!(feature = "shuttle") { 0 } else { 4_096 };

impl VersionStore {
    pub fn new(limit_bytes: u64, runs: Runs) -> VersionStore {
        VersionStore {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            incoming: Mutex::default(),
            filed: Mutex::default(),
            limit_bytes: AtomicU64::new(limit_bytes),
            active_bytes: CachePadded::default(),
            runs,
            full_until: AtomicU64::new(0),
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

    /// What the snapshot with this number finds of a row. `sees` and `check` are asked under the shard's
    /// latch, `check` perhaps once more.
    pub fn find<E>(
        &self,
        (table, key): (u64, &[u8]),
        number: u64,
        sees: impl Fn(u64) -> bool,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<Found, E> {
        let (sought, has_runs) = {
            let tables = self.shard(table, key).rows.lock();
            // Before the check: runs go when their snapshots have been cancelled (transactions R14).
            let has_runs = self.runs.is_any();
            check()?;
            let chain = tables.get(&table).and_then(|rows| rows.get(key));
            (chain.map_or(Sought::Unless(Found::Newest), |chain| chain.find(&sees)), has_runs)
        };
        match sought {
            Sought::Unless(otherwise) if has_runs => {
                let runs = self.runs.with(|run| run.may_have((number, (table, key)), &sees));
                check()?;
                Ok(Spilled::among(runs, (table, key), otherwise))
            }
            Sought::Found(found) | Sought::Unless(found) => Ok(found),
        }
    }

    /// What the versions of a row in memory say it was, each with the stamp that changed that.
    pub fn of(&self, (table, key): (u64, &[u8])) -> Vec<(u64, Arc<[u8]>)> {
        let tables = self.shard(table, key).rows.lock();
        let chain = tables.get(&table).and_then(|rows| rows.get(key));
        chain.map_or_else(Vec::new, |chain| chain.rows().collect())
    }

    /// The same of those in files that snapshots with a number of `horizon` or more may need. To be asked
    /// after those in memory, which go to files meanwhile and never back.
    ///
    /// # Errors
    /// Those of the files.
    pub fn spilled_of(&self, row: (u64, &[u8]), horizon: u64) -> io::Result<Vec<(u64, Arc<[u8]>)>> {
        let mut rows = Vec::new();
        if !self.runs.is_any() {
            return Ok(rows);
        }
        for run in self.runs.with(|run| run.reaches(horizon)) {
            run.versions_of(row, |record| {
                rows.extend(record.old.map(|old| (record.superseded_by, old.into())));
                None::<()>
            })?;
        }
        Ok(rows)
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

    /// Removes a version: its change has been undone on the page, or it has gone to a file. Gives the bytes
    /// freed.
    pub fn take_back(&self, left: &VersionRef) -> u64 {
        self.shrink(left.table, &left.key, |chain| (chain.take_back(left.writer), ())).0
    }

    /// Leaves the versions of a committed transaction to purge.
    pub fn commit(&self, left: impl ExactSizeIterator<Item = VersionRef>) {
        if left.len() > 0 {
            self.incoming.lock().extend(left);
        }
    }

    /// Removes what no snapshot needs any more.
    pub fn purge(&self, status: &StatusTable, live: impl FnOnce() -> Live) {
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
        self.commit(too_new.into_iter());
        drop(filed);
        if self.runs.purge(status, &live) {
            // There is room again.
            // ORDER: Relaxed: when to try again is nobody's but the trying thread's.
            self.full_until.store(0, Relaxed);
        }
    }

    /// Moves what purge has found needed by snapshots to a file. One thread at a time. True if that could be
    /// done: then what is in memory is not kept for snapshots. `clock` says when.
    pub fn spill(&self, status: &StatusTable, clock: u64) -> bool {
        // ORDER: Relaxed: as in `purge`.
        if clock < self.full_until.load(Relaxed) {
            return false;
        }
        let filed = std::mem::take(&mut *self.filed.lock());
        let mut leaving: Vec<Leaving> = Vec::new();
        for (filed_under, left) in filed {
            leaving.extend(left.into_iter().map(|left| Leaving::new(left, filed_under)));
        }
        let written = self.write_run(&mut leaving, None, status);
        if written.is_ok() {
            // The run is listed: now they may leave memory (transactions R14).
            for Leaving { left, .. } in &leaving {
                self.take_back(left);
            }
        } else {
            let mut filed = self.filed.lock();
            for Leaving { left, of, .. } in leaving {
                filed.entry(of).or_default().push(left);
            }
            // ORDER: Relaxed: as in `purge`.
            self.full_until.store(clock + FULL_COMMITS, Relaxed);
        }
        written.is_ok()
    }

    /// Moves what a transaction under way has left to a file. Gives the bytes freed. If that cannot be done,
    /// `left` stays as it is.
    pub fn spill_undecided(
        &self,
        left: &mut Vec<Left>,
        undecided: &Arc<Undecided>,
        status: &StatusTable,
    ) -> io::Result<u64> {
        let mut leaving: Vec<Leaving> =
            left.drain(..).map(|Left { version, change }| Leaving::new(version, change)).collect();
        let written = self.write_run(&mut leaving, Some(undecided.clone()), status);
        match written {
            // As in `spill`.
            Ok(()) => Ok(leaving.iter().map(|leaving| self.take_back(&leaving.left)).sum()),
            Err(error) => {
                leaving.sort_unstable_by_key(|leaving| leaving.of);
                left.extend(
                    leaving.into_iter().map(|Leaving { left, of, .. }| Left { version: left, change: of }),
                );
                Err(error)
            }
        }
    }

    /// A transaction under way asks [`VersionStore::is_too_much`] whenever it has left so many bytes more.
    pub fn asks_after(&self) -> u64 {
        ASK_BYTES.min(self.limit() / ACTIVE_SHARE)
    }

    /// True if a transaction that has left so many bytes, `uncounted` of them not yet told by
    /// [`VersionStore::count_active`], is to move them to a file.
    pub fn is_too_much(&self, left_bytes: u64, uncounted: u64) -> bool {
        let limit = self.limit();
        // ORDER: Relaxed: as in `is_over_limit`.
        left_bytes > limit / ACTIVE_SHARE && self.active_bytes.load(Relaxed) + uncounted > limit / 2
    }

    /// Writes versions to a file and lists it. Those that are there no more are taken from `leaving`.
    fn write_run(
        &self,
        leaving: &mut Vec<Leaving>,
        undecided: Option<Arc<Undecided>>,
        status: &StatusTable,
    ) -> io::Result<()> {
        Leaving::sort(leaving);
        leaving.dedup_by(|a, b| a.left == b.left);
        if leaving.is_empty() {
            return Ok(());
        }
        let is_undecided = undecided.is_some();
        let mut writer = self.runs.writer(0, undecided)?;
        let mut failed = None;
        leaving.retain(|Leaving { left, of, .. }| {
            let VersionRef { table, key, writer: superseded_by } = left;
            let Some(version) = self.version(*table, key, *superseded_by) else { return false };
            if failed.is_none() {
                let Version { origin, old, .. } = &version;
                let (table, superseded_by) = (*table, *superseded_by);
                let interval = interval_of(status, superseded_by, *origin);
                let change = if is_undecided { *of } else { 0 };
                let (origin, old) = (*origin, old.as_deref());
                let record = Record { table, key, superseded_by, origin, change, old };
                failed = writer.push(&record, interval).err();
            }
            true
        });
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(run) = writer.finish()? {
            self.runs.publish(run);
        }
        Ok(())
    }

    fn version(&self, table: u64, key: &[u8], superseded_by: u64) -> Option<Version> {
        let tables = self.shard(table, key).rows.lock();
        tables.get(&table)?.get(key)?.version(superseded_by).cloned()
    }

    /// What files have.
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Bytes in memory.
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

    /// The snapshots that what is kept is needed by, ascending: of what is in memory those that purge found
    /// to be the newest that need some of it, of what is in files all.
    pub fn snapshots_with_versions(&self, status: &StatusTable, live: &Live) -> Vec<u64> {
        let mut numbers: BTreeSet<u64> = self.filed.lock().keys().copied().collect();
        let of_runs = self.runs.list();
        let intervals = of_runs.iter().map(|run| run.interval(|id| end_of(status, id)));
        // What a transaction under way has left stays whatever is given up.
        for Interval { from, to } in intervals.filter(|interval| interval.to < u64::MAX) {
            numbers.extend(live.all_needed_in(from, to));
        }
        numbers.into_iter().collect()
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

/// The snapshots that may need a version, which a committed transaction has superseded.
fn interval_of(status: &StatusTable, superseded_by: u64, origin: Origin) -> Interval {
    let end_of = |id| end_of(status, id);
    Interval { from: first_needed(origin, end_of), to: end_of(superseded_by) }
}

/// How rows are sorted in files.
fn row_order(one: (u64, &[u8]), other: (u64, &[u8])) -> Order {
    one.cmp(&other)
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

//! Records which session uses which table.

use crate::SqlError;
use crate::host::{Interrupt, WaitsFor};
use base::TableId;
use base::sync::atomic::{AtomicU64, Ordering};
use base::sync::{Arc, Mutex};
use std::collections::HashMap;
use std::time::Instant;

base::latch_class!(pub MetadataLatch, "metadata locks");

const SHARDS: usize = 64;

/// What a table is locked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// A transaction has read it.
    Read,
    /// A statement or a transaction changes its rows.
    Write,
    /// LOCK TABLES ... READ: no session changes rows.
    KeepWritersOut,
    /// LOCK TABLES ... WRITE: no other session reads or changes rows.
    KeepAllOut,
    /// The table's definition changes. Readers without a transaction continue: they see the old table until
    /// the new one is there.
    Define,
}

impl Mode {
    fn is_compatible(self, other: Mode) -> bool {
        use Mode::{KeepWritersOut, Read, Write};
        matches!(
            (self, other),
            (Read, Read | Write | KeepWritersOut)
                | (Write, Read | Write)
                | (KeepWritersOut, Read | KeepWritersOut)
        )
    }

    /// True if a session that holds `self` need not ask for `other`.
    fn includes(self, other: Mode) -> bool {
        match self {
            Mode::KeepAllOut | Mode::Define => true,
            Mode::Write | Mode::KeepWritersOut => other == self || other == Mode::Read,
            Mode::Read => other == Mode::Read,
        }
    }
}

/// The session that asks for a lock, and how long it can wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'r> {
    /// The session.
    pub owner: u64,
    pub interrupt: &'r Arc<Interrupt>,
    pub until: Instant,
}

#[derive(Debug)]
struct Holder {
    owner: u64,
    mode: Mode,
    count: u32,
}

#[derive(Debug)]
struct Waiter {
    owner: u64,
    mode: Mode,
    interrupt: Arc<Interrupt>,
}

/// The lock of one table. It exists only while a session holds it or waits for it.
#[derive(Debug, Default)]
struct TableLock {
    holders: Vec<Holder>,
    /// Sessions that wait, in the order in which they came.
    queue: Vec<Waiter>,
}

impl TableLock {
    /// The owners that block `owner`, which stands at `position` in the queue or would stand there.
    fn blockers(&self, owner: u64, mode: Mode, position: usize) -> Vec<u64> {
        let holders = self.holders.iter().map(|holder| (holder.owner, holder.mode));
        let mut blockers: Vec<u64> =
            holders.filter(|(_, held)| !mode.is_compatible(*held)).map(|(other, _)| other).collect();
        // A session that already holds a lock must not wait for the queue, because those in the queue may
        // wait for it.
        if !self.holders.iter().any(|holder| holder.owner == owner) {
            let before = self.queue[..position].iter();
            blockers
                .extend(before.filter(|waiter| !mode.is_compatible(waiter.mode)).map(|waiter| waiter.owner));
        }
        blockers.retain(|other| *other != owner);
        blockers
    }

    fn grant(&mut self, owner: u64, mode: Mode) {
        match self.holders.iter_mut().find(|holder| holder.owner == owner && holder.mode == mode) {
            Some(holder) => holder.count += 1,
            None => self.holders.push(Holder { owner, mode, count: 1 }),
        }
    }
}

/// Which session waits for which others. Kept exact under its latch. That latch is taken while a shard's
/// latch is held.
#[derive(Debug, Default)]
struct Waits(HashMap<u64, Vec<u64>>);

impl Waits {
    /// True if `owner` waits for itself, directly or through others.
    fn has_cycle(&self, owner: u64) -> bool {
        let mut seen = Vec::new();
        let mut open: Vec<u64> = self.0.get(&owner).cloned().unwrap_or_default();
        while let Some(next) = open.pop() {
            if next == owner {
                return true;
            }
            if !seen.contains(&next) {
                seen.push(next);
                open.extend(self.0.get(&next).into_iter().flatten());
            }
        }
        false
    }
}

/// The locks of all locked tables, by table id.
#[derive(Debug)]
pub(crate) struct MetadataLocks {
    shards: [Mutex<HashMap<TableId, TableLock>, MetadataLatch>; SHARDS],
    waits: Mutex<Waits>,
    /// How many tables are locked with [`Mode::KeepAllOut`].
    keeps_readers_out: AtomicU64,
}

impl Default for MetadataLocks {
    fn default() -> MetadataLocks {
        MetadataLocks {
            shards: std::array::from_fn(|_| Mutex::default()),
            waits: Mutex::default(),
            keeps_readers_out: AtomicU64::new(0),
        }
    }
}

impl MetadataLocks {
    fn shard(&self, table: TableId) -> &Mutex<HashMap<TableId, TableLock>, MetadataLatch> {
        &self.shards[table.0 as usize % SHARDS]
    }

    /// True if a table is locked against readers.
    #[inline]
    pub(crate) fn keeps_readers_out(&self) -> bool {
        // ORDER: pairs with the increment in `lock`. A reader that opened its snapshot and then finds 0 here
        // opened it before the lock was granted, so nothing that is changed under the lock is in it.
        self.keeps_readers_out.load(Ordering::SeqCst) != 0
    }

    /// Locks a table. It must be unlocked as often as it was locked.
    ///
    /// # Errors
    /// 1205 when the time is over, 1213 for a deadlock, 1317 and 1927 after KILL.
    pub(crate) fn lock(&self, table: TableId, mode: Mode, request: &Request<'_>) -> Result<(), SqlError> {
        let owner = request.owner;
        {
            let mut shard = self.shard(table).lock();
            let lock = shard.entry(table).or_default();
            let position = lock.queue.len();
            let has_it = lock.holders.iter().any(|held| held.owner == owner && held.mode.includes(mode));
            if has_it || lock.blockers(owner, mode, position).is_empty() {
                self.granted(lock, owner, mode);
                return Ok(());
            }
            lock.queue.push(Waiter { owner, mode, interrupt: request.interrupt.clone() });
            if !self.note_waits(lock, owner) {
                self.leave_queue(&mut shard, table, owner);
                return Err(SqlError::deadlock());
            }
        }
        loop {
            let slept = request.interrupt.sleep(request.until, WaitsFor::Table);
            let mut shard = self.shard(table).lock();
            let Some(lock) = shard.get_mut(&table) else {
                return Err(SqlError::internal("a lock that is waited for is gone"));
            };
            let Some(position) = lock.queue.iter().position(|waiter| waiter.owner == owner) else {
                return Err(SqlError::internal("a waiter is gone from its queue"));
            };
            if lock.blockers(owner, mode, position).is_empty() {
                self.granted(lock, owner, mode);
                self.leave_queue(&mut shard, table, owner);
                return Ok(());
            }
            if let Err(error) = slept {
                self.leave_queue(&mut shard, table, owner);
                return Err(error);
            }
        }
    }

    fn granted(&self, lock: &mut TableLock, owner: u64, mode: Mode) {
        lock.grant(owner, mode);
        if mode == Mode::KeepAllOut {
            // ORDER: see `keeps_readers_out`.
            self.keeps_readers_out.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Updates the graph of waits for the lock of a table. False if `owner` now waits for itself.
    fn note_waits(&self, lock: &TableLock, owner: u64) -> bool {
        let mut waits = self.waits.lock();
        for (position, waiter) in lock.queue.iter().enumerate() {
            waits.0.insert(waiter.owner, lock.blockers(waiter.owner, waiter.mode, position));
        }
        !waits.has_cycle(owner)
    }

    /// Takes an owner out of the queue, and lets those behind it check again.
    fn leave_queue(&self, shard: &mut HashMap<TableId, TableLock>, table: TableId, owner: u64) {
        if let Some(lock) = shard.get_mut(&table) {
            lock.queue.retain(|waiter| waiter.owner != owner);
            self.waits.lock().0.remove(&owner);
            self.changed(shard, table);
        }
    }

    /// Wakes the sessions that wait for a table. Removes its lock if no session holds it or waits for it.
    fn changed(&self, shard: &mut HashMap<TableId, TableLock>, table: TableId) {
        let Some(lock) = shard.get_mut(&table) else { return };
        if lock.queue.is_empty() {
            if lock.holders.is_empty() {
                shard.remove(&table);
            }
            return;
        }
        self.note_waits(lock, 0);
        lock.queue.iter().for_each(|waiter| waiter.interrupt.ring());
    }

    /// Undoes one [`MetadataLocks::lock`].
    pub(crate) fn unlock(&self, table: TableId, mode: Mode, owner: u64) {
        let mut shard = self.shard(table).lock();
        let Some(lock) = shard.get_mut(&table) else { return };
        let Some(at) = lock.holders.iter().position(|held| held.owner == owner && held.mode == mode) else {
            return;
        };
        if mode == Mode::KeepAllOut {
            // ORDER: see `keeps_readers_out`.
            self.keeps_readers_out.fetch_sub(1, Ordering::SeqCst);
        }
        lock.holders[at].count -= 1;
        if lock.holders[at].count == 0 {
            lock.holders.swap_remove(at);
            self.changed(&mut shard, table);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Kill;
    use std::time::Duration;

    const TABLE: TableId = TableId(7);
    const OTHER: TableId = TableId(8);

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    fn late() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn readers_and_writers_share_a_table_and_a_definition_waits_for_both() {
        let locks = MetadataLocks::default();
        let interrupt = Arc::new(Interrupt::default());
        let request = |owner| Request { owner, interrupt: &interrupt, until: soon() };
        locks.lock(TABLE, Mode::Read, &request(1)).expect("free");
        locks.lock(TABLE, Mode::Write, &request(2)).expect("a writer beside a reader");
        assert_eq!(locks.lock(TABLE, Mode::Define, &request(3)).unwrap_err().code(), 1205);
        assert_eq!(locks.lock(TABLE, Mode::KeepWritersOut, &request(3)).unwrap_err().code(), 1205);
        locks.unlock(TABLE, Mode::Write, 2);
        locks.lock(TABLE, Mode::KeepWritersOut, &request(3)).expect("beside a reader");
        assert_eq!(locks.lock(TABLE, Mode::Write, &request(2)).unwrap_err().code(), 1205);
        locks.unlock(TABLE, Mode::KeepWritersOut, 3);
        locks.unlock(TABLE, Mode::Read, 1);
        assert!(locks.shard(TABLE).lock().is_empty());
    }

    #[test]
    fn a_waiting_definition_is_not_overtaken_and_wakes_up_when_it_may() {
        let locks = Arc::new(MetadataLocks::default());
        let interrupt = Arc::new(Interrupt::default());
        let request = Request { owner: 1, interrupt: &interrupt, until: late() };
        locks.lock(TABLE, Mode::Write, &request).expect("free");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let interrupt = Arc::new(Interrupt::default());
                let request = Request { owner: 2, interrupt: &interrupt, until: late() };
                locks.lock(TABLE, Mode::Define, &request).map(|()| locks.unlock(TABLE, Mode::Define, 2))
            });
            while locks.shard(TABLE).lock().get(&TABLE).is_none_or(|lock| lock.queue.is_empty()) {
                std::thread::yield_now();
            }
            let other = Arc::new(Interrupt::default());
            let newcomer = Request { owner: 3, interrupt: &other, until: soon() };
            assert_eq!(locks.lock(TABLE, Mode::Read, &newcomer).unwrap_err().code(), 1205);
            // A session that already holds a lock does not queue.
            locks.lock(TABLE, Mode::Read, &request).expect("inside");
            locks.unlock(TABLE, Mode::Read, 1);
            locks.unlock(TABLE, Mode::Write, 1);
            waiting.join().expect("no panic").expect("granted");
        });
    }

    #[test]
    fn two_that_wait_for_each_other_are_told_apart() {
        let locks = Arc::new(MetadataLocks::default());
        let first = Arc::new(Interrupt::default());
        let request = Request { owner: 1, interrupt: &first, until: late() };
        locks.lock(TABLE, Mode::KeepAllOut, &request).expect("free");
        assert!(locks.keeps_readers_out());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let interrupt = Arc::new(Interrupt::default());
                let request = Request { owner: 2, interrupt: &interrupt, until: late() };
                locks.lock(OTHER, Mode::Write, &request).expect("free");
                let result = locks.lock(TABLE, Mode::Write, &request);
                locks.unlock(OTHER, Mode::Write, 2);
                result
            });
            while locks.shard(TABLE).lock().get(&TABLE).is_none_or(|lock| lock.queue.is_empty()) {
                std::thread::yield_now();
            }
            assert_eq!(locks.lock(OTHER, Mode::Define, &request).unwrap_err().code(), 1213);
            locks.unlock(TABLE, Mode::KeepAllOut, 1);
            assert!(!locks.keeps_readers_out());
            waiting.join().expect("no panic").expect("granted");
        });
    }

    #[test]
    fn a_kill_ends_the_wait() {
        let locks = Arc::new(MetadataLocks::default());
        let first = Arc::new(Interrupt::default());
        let request = Request { owner: 1, interrupt: &first, until: late() };
        locks.lock(TABLE, Mode::Define, &request).expect("free");
        let second = Arc::new(Interrupt::default());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let request = Request { owner: 2, interrupt: &second, until: late() };
                locks.lock(TABLE, Mode::Read, &request)
            });
            while second.waits_for().is_empty() {
                std::thread::yield_now();
            }
            second.raise(Kill::Statement);
            assert_eq!(waiting.join().expect("no panic").unwrap_err().code(), 1317);
        });
        locks.unlock(TABLE, Mode::Define, 1);
        assert!(locks.shard(TABLE).lock().is_empty());
    }
}

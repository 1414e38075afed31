//! The bytes of a named cache, and which share has how many.
//!
//! The size of a cache is one number of bytes. Its *shares*, among them the pools for its page sizes, each
//! have a part of it. A share begins with the least it can have, and takes bytes that no share has, in
//! *steps*, when it needs them. So no share evicts while there is room that no share has. When no such room
//! is left, a share with much unused room gives it back. After that the balance decides: a step goes from the
//! share to which it is worth least to the one to which it is worth most. What more room is worth to a share
//! is measured by its *ghosts*: pages that it gave up lately and that are asked for again. With a little more
//! room it would still have had them.

use crate::error::Error;
use base::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use base::sync::{Arc, Mutex, Weak};
use std::fmt::Debug;

base::latch_class!(pub SharesLatch, "shares of a cache");

/// A step is the whole divided by this.
const STEPS: usize = 64;
/// Ghosts count if they were given up within so many steps. Fewer are met too seldom to say much.
const GHOST_STEPS: usize = 4;
/// So many ghosts have to be met, by all shares together, before the balance moves a step.
const SAMPLE: u64 = 32;
/// What a step has to be worth to the receiver, in percent of what it is worth to the giver. With less a step
/// would go to and fro.
const LEAD_PERCENT: u128 = 125;

/// A user of a part of a cache's bytes. Any thread that holds no latches may call the methods. What they say
/// may have changed by the next call, because a share takes more, and gives back, on its own.
pub trait Share: Send + Sync + Debug {
    /// For messages.
    fn name(&self) -> String;
    /// Bytes that it may use.
    fn bytes(&self) -> usize;
    /// Bytes that it cannot do without.
    fn bytes_min(&self) -> usize;
    /// Bytes that it may use and does not use.
    fn free_bytes(&self) -> usize;
    /// Changes how many bytes it may use. It gives up what is worth least to it.
    ///
    /// # Errors
    ///
    /// What kept it from giving bytes up. Then it stays as it was.
    fn resize(&self, bytes: usize) -> Result<(), Error>;
    /// How often, since it was made, it was asked for something that it would still have had with
    /// [`Share::ghost_bytes`] more.
    fn ghost_hits(&self) -> u64;
    fn ghost_bytes(&self) -> usize;
}

/// See [`Budget::shares`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareStatus {
    pub name: String,
    pub bytes: usize,
    pub free_bytes: usize,
    pub ghost_hits: u64,
}

/// The bytes of a cache.
#[derive(Debug)]
pub struct Budget {
    total: AtomicUsize,
    /// Bytes that the shares have. They exceed the total only by what shares cannot do without (pagecache
    /// R15).
    allotted: AtomicUsize,
    /// Held for a look or a change only.
    shares: Mutex<Vec<Entry>, SharesLatch>,
    /// The number of shares, to look without the mutex.
    count: AtomicUsize,
    /// While this latch is held shares may be asked to give back bytes. It may be held for as long as dirty
    /// pages take to be written. A thread that only looks, or adds a share, does not wait for it.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct Entry {
    share: Weak<dyn Share>,
    /// Ghosts met when the balance was struck last.
    ghost_hits: u64,
}

impl Budget {
    pub fn new(total: usize) -> Arc<Budget> {
        Arc::new(Budget {
            total: AtomicUsize::new(total),
            allotted: AtomicUsize::new(0),
            shares: Mutex::of_class(Vec::new()),
            count: AtomicUsize::new(0),
            turn: Mutex::new(()),
        })
    }

    pub fn total(&self) -> usize {
        // ORDER: Relaxed here and below. No other memory depends on these numbers, and bytes are taken by a
        // read-modify-write (pagecache R15).
        self.total.load(Relaxed)
    }

    /// Bytes that no share has.
    pub fn free(&self) -> usize {
        self.total().saturating_sub(self.allotted.load(Relaxed))
    }

    /// True if shares have insisted on more than there is.
    pub fn is_over(&self) -> bool {
        self.allotted.load(Relaxed) > self.total()
    }

    pub fn step(&self) -> usize {
        self.total() / STEPS
    }

    /// How far shares look back for ghosts.
    pub fn ghost_bytes(&self) -> usize {
        self.step() * GHOST_STEPS
    }

    /// Adds a share. The bytes that it has by now have been taken already.
    pub fn join(&self, share: Weak<dyn Share>) {
        let mut shares = self.shares.lock();
        shares.push(Entry { share, ghost_hits: 0 });
        self.count.store(shares.len(), Relaxed);
    }

    /// Takes as many units of `unit` bytes as are free, up to `max`, and gives their number.
    pub fn take(&self, unit: usize, max: usize) -> usize {
        let mut allotted = self.allotted.load(Relaxed);
        loop {
            let units = (self.total().saturating_sub(allotted) / unit).min(max);
            let more = allotted + units * unit;
            match self.allotted.compare_exchange_weak(allotted, more, Relaxed, Relaxed) {
                Ok(_) => return units,
                Err(newer) => allotted = newer,
            }
        }
    }

    /// Takes bytes that a share cannot do without, even if there are none left.
    pub fn insist(&self, bytes: usize) {
        self.allotted.fetch_add(bytes, Relaxed);
    }

    pub fn give_back(&self, bytes: usize) {
        self.allotted.fetch_sub(bytes, Relaxed);
    }

    /// Sets another total. If it is smaller each share gives up a part of what it can do without.
    ///
    /// # Errors
    ///
    /// The error of a share that could not give bytes up. Then the old total stays, and the shares take what
    /// they need again.
    pub fn set_total(&self, total: usize) -> Result<(), Error> {
        let _turn = self.turn.lock();
        let old = self.total.swap(total, Relaxed);
        let fitted = self.fit_all();
        if fitted.is_err() {
            self.total.store(old, Relaxed);
        }
        fitted
    }

    /// Makes room when shares have insisted on more than there is: as after [`Budget::set_total`].
    pub fn fit(&self) -> Result<(), Error> {
        let _turn = self.turn.lock();
        self.fit_all()
    }

    fn all(&self) -> Vec<Arc<dyn Share>> {
        self.shares.lock().iter().filter_map(|entry| entry.share.upgrade()).collect()
    }

    fn fit_all(&self) -> Result<(), Error> {
        let (total, shares) = (self.total(), self.all());
        let spare_of = |share: &Arc<dyn Share>| share.bytes().saturating_sub(share.bytes_min());
        let least: usize = shares.iter().map(|share| share.bytes_min()).sum();
        let (spare, left): (usize, usize) = (shares.iter().map(spare_of).sum(), total.saturating_sub(least));
        for share in shares.iter().filter(|_| left < spare) {
            let bytes = share.bytes_min() as u128 + spare_of(share) as u128 * left as u128 / spare as u128;
            share.resize(bytes as usize)?;
        }
        for share in shares.iter().filter(|share| share.bytes() < share.bytes_min()) {
            share.resize(share.bytes_min())?;
        }
        Ok(())
    }

    /// All shares and what they have.
    pub fn shares(&self) -> Vec<ShareStatus> {
        let status = |share: Arc<dyn Share>| ShareStatus {
            name: share.name(),
            bytes: share.bytes(),
            free_bytes: share.free_bytes(),
            ghost_hits: share.ghost_hits(),
        };
        self.all().into_iter().map(status).collect()
    }

    /// True if there is more than one share.
    pub fn is_shared(&self) -> bool {
        self.count.load(Relaxed) > 1
    }

    /// Makes other shares give back room that they do not use. True if there was some. For a share that finds
    /// no room of its own. The caller holds no latches.
    pub fn reclaim(&self, own: *const ()) -> bool {
        // Another thread is doing this already, and the caller will find the room.
        let Some(_turn) = self.turn.try_lock() else { return false };
        let mut found = false;
        for (share, least, spare) in self.spares(own) {
            // The share may have become smaller by itself since, as a pool does when its last file goes. It
            // must not grow here.
            found |= spare > 0 && share.resize(least.min(share.bytes())).is_ok();
        }
        found
    }

    /// True if [`Budget::reclaim`] would free so many bytes. For a caller that holds latches.
    pub fn could_reclaim(&self, own: *const (), bytes: usize) -> bool {
        self.turn.try_lock().is_some()
            && self.free() + self.spares(own).map(|(_, _, spare)| spare).sum::<usize>() >= bytes
    }

    /// For each share but `own`: the bytes it needs, and the bytes it has beyond that. Of its free bytes a
    /// step is left to it, and nothing is taken if it has no more than two steps free.
    fn spares(&self, own: *const ()) -> impl Iterator<Item = (Arc<dyn Share>, usize, usize)> {
        let step = self.step();
        let all = self.all().into_iter();
        all.filter(move |share| Arc::as_ptr(share).cast::<()>() != own).map(move |share| {
            let (bytes, free) = (share.bytes(), share.free_bytes());
            let least = (bytes + step).saturating_sub(free).max(share.bytes_min());
            let spare = if free > 2 * step { bytes.saturating_sub(least) } else { 0 };
            (share, least, spare)
        })
    }

    /// Moves a step to the share to which it is worth most from the one to which it is worth least, if enough
    /// ghosts have been met. True if a step was moved.
    pub fn balance(&self) -> bool {
        if !self.is_shared() {
            return false;
        }
        // Another thread is changing the sizes of shares.
        let Some(_turn) = self.turn.try_lock() else { return false };
        if self.is_over() {
            // A share could not become smaller when it was asked to. If it has only what it cannot do
            // without, nothing happens now either.
            return self.fit_all().is_ok() && !self.is_over();
        }
        let step = self.step();
        if self.free() >= step {
            return false;
        }
        let mut shares = self.shares.lock();
        let mut found: Vec<(Arc<dyn Share>, u64)> = Vec::new();
        for entry in &*shares {
            if let Some(share) = entry.share.upgrade() {
                let hits = share.ghost_hits().saturating_sub(entry.ghost_hits);
                found.push((share, hits));
            }
        }
        if found.iter().map(|(_, hits)| hits).sum::<u64>() < SAMPLE {
            return false;
        }
        for entry in &mut *shares {
            entry.ghost_hits = entry.share.upgrade().map_or(0, |share| share.ghost_hits());
        }
        drop(shares);
        // Ghosts a byte.
        let rate = |(share, hits): &(Arc<dyn Share>, u64)| {
            (u128::from(*hits) << 40) / share.ghost_bytes().max(1) as u128
        };
        let can_give = |(share, _): &&(Arc<dyn Share>, u64)| share.bytes() >= share.bytes_min() + step;
        let Some(most) = found.iter().max_by_key(|one| rate(one)) else { return false };
        let Some(least) = found.iter().filter(can_give).min_by_key(|one| rate(one)) else { return false };
        if rate(most) * 100 < rate(least) * LEAD_PERCENT || Arc::ptr_eq(&most.0, &least.0) {
            return false;
        }
        // The share may have become smaller by itself since.
        let Some(rest) = least.0.bytes().checked_sub(step) else { return false };
        // The receiver takes the bytes at once, before the giver can need them again.
        least.0.resize(rest).is_ok() && most.0.resize(most.0.bytes() + step).is_ok()
    }
}

//! The bytes of a named cache, and who has them.
//!
//! What a cache may take is one number of bytes. Its *shares*, the pools for its page sizes among them, each have a part of it. They
//! begin with as little as there can be, and take what nobody has yet, in *steps*, when they need it: so no share evicts while
//! there is room that nobody has. When there is none left, a share that has much room of its own gives it back, and then the balance
//! is struck: a step goes from the share to which it is worth least to the one to which it is worth most. What a byte more is
//! worth to a share is seen by its *ghosts*: what it has given up lately and is asked for again would still be there if it had had a
//! little more.

use crate::error::Error;
use base::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use base::sync::{Arc, Mutex, Weak};
use std::fmt::Debug;

base::latch_class!(pub SharesLatch, "shares of a cache");

/// A step is this share of the whole.
const STEPS: usize = 64;
/// What a share has given up lately are so many steps: fewer are met too seldom to say much.
const GHOST_STEPS: usize = 4;
/// Ghosts met by all shares together before the balance is struck: fewer say little.
const SAMPLE: u64 = 32;
/// How much more a step has to be worth to another share, in percent: or it would go to and fro.
const LEAD_PERCENT: u128 = 125;

/// A part of a cache's bytes, and who uses it. All of it is for any thread that holds no latches. What it says of itself may have changed by
/// the next call: a share takes more, and gives back all it has, when it likes.
pub trait Share: Send + Sync + Debug {
    /// For messages.
    fn name(&self) -> String;
    /// What it may use.
    fn bytes(&self) -> usize;
    /// What it cannot do without.
    fn bytes_min(&self) -> usize;
    /// How much of what it may use is not in use.
    fn free_bytes(&self) -> usize;
    /// Changes what it may use; it gives up what is least worth to it. On an error it stays as it was.
    fn resize(&self, bytes: usize) -> Result<(), Error>;
    /// How often it was asked for what it would still have, had it had [`Share::ghost_bytes`] more, since it was made.
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
    /// What the shares have. Above the total only by what they cannot do without.
    allotted: AtomicUsize,
    /// Held for a look or a change only.
    shares: Mutex<Vec<Entry>, SharesLatch>,
    /// Their number, to look without the mutex.
    count: AtomicUsize,
    /// Held by who has shares give back what they have, which may take as long as it takes to write what is dirty. Who only looks, or comes
    /// with another share, does not wait for that.
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
        // ORDER: here and below: numbers that stand for themselves; who takes bytes does so by a read-modify-write.
        self.total.load(Relaxed)
    }

    /// What no share has.
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

    /// Takes part from now on; what it has by now has been taken.
    pub fn join(&self, share: Weak<dyn Share>) {
        let mut shares = self.shares.lock();
        shares.push(Entry { share, ghost_hits: 0 });
        self.count.store(shares.len(), Relaxed);
    }

    /// Takes as many units as are free, up to `max`; gives their number.
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

    /// Takes what a share cannot do without.
    pub fn insist(&self, bytes: usize) {
        self.allotted.fetch_add(bytes, Relaxed);
    }

    pub fn give_back(&self, bytes: usize) {
        self.allotted.fetch_sub(bytes, Relaxed);
    }

    /// Another total. Smaller, each share gives up a part of what it can do without; if one cannot, the old total stays, and the shares take
    /// again what they need.
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

    /// Who has how much.
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

    /// Room that another share has and does not use becomes anybody's; true if there was some. For who finds none of his own and
    /// holds no latches.
    pub fn reclaim(&self, own: *const ()) -> bool {
        // Somebody is at it: it will be found.
        let Some(_turn) = self.turn.try_lock() else { return false };
        let mut found = false;
        for (share, least, spare) in self.spares(own) {
            // It may have become smaller by itself since, as a pool does when its last file goes: it is not to grow for that.
            found |= spare > 0 && share.resize(least.min(share.bytes())).is_ok();
        }
        found
    }

    /// True if [`Budget::reclaim`] would come to so many bytes. For who holds latches.
    pub fn could_reclaim(&self, own: *const (), bytes: usize) -> bool {
        self.turn.try_lock().is_some()
            && self.free() + self.spares(own).map(|(_, _, spare)| spare).sum::<usize>() >= bytes
    }

    /// The shares but for `own`, what each needs, and what it has beyond that: all that is free, but for a step if it was given that lately.
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

    /// Moves a step to the share to which it is worth most, from that to which it is worth least, if there is enough to tell. True if one was
    /// moved.
    pub fn balance(&self) -> bool {
        if !self.is_shared() {
            return false;
        }
        // Somebody gives it another size.
        let Some(_turn) = self.turn.try_lock() else { return false };
        if self.is_over() {
            // Somebody could not give way when it was time. It may be as little as there can be, and then nothing happens.
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
        // It may have become smaller by itself since.
        let Some(rest) = least.0.bytes().checked_sub(step) else { return false };
        // What is given back is taken at once, before the giver is in need again.
        least.0.resize(rest).is_ok() && most.0.resize(most.0.bytes() + step).is_ok()
    }
}

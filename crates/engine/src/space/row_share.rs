//! The row tier's part of the default cache's bytes.
//!
//! Unless its size is fixed, it is a share of the budget as the pools of pages are: it takes what nobody has
//! when it is full, and then gives and takes by what a byte is worth to it ([`pagecache::Budget`]).
//!
//! A sample of the keys tells what one more byte would be worth. For each key of the sample it is noted when
//! its row was kept last. A miss on a row that left the tier a short time ago is counted: a larger tier would
//! have had it.

use crate::Result;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use base::sync::{Arc, Mutex};
use pagecache::{Budget, Share};
use rowtier::RowTier;

/// The smallest tier, in bytes. With less, its worth could not be measured.
const BYTES_MIN: usize = 512 << 10;
/// A cache that is not so many times larger has no row tier unless it is asked for.
const CACHE_MIN: usize = 32;

/// One key in so many is in the sample.
const SAMPLE: u64 = 8;
/// Bytes of the cache that one place of the sample is for: about as many as there can be sampled rows in the
/// tier.
const BYTES_A_PLACE: usize = 2048;
const PLACES_MAX: usize = 1 << 20;
/// The size that a row is assumed to have in the tier while the tier is empty, in bytes.
const ROW_BYTES_GUESS: usize = 256;

#[derive(Debug)]
pub(crate) struct RowShare {
    pub tier: RowTier,
    /// Rows kept so far.
    fills: AtomicU64,
    /// When a key of the sample was kept last: upper half of its hash, and of `fills` the lower.
    sample: Box<[AtomicU64]>,
    ghost_hits: AtomicU64,
    /// Bytes that a row takes, of late.
    row_bytes: AtomicU64,
    budget: Arc<Budget>,
    size: Mutex<Size>,
}

#[derive(Debug)]
struct Size {
    /// As the budget has it.
    bytes: usize,
    is_fixed: bool,
}

impl RowShare {
    /// `bytes`: see [`RowShare::set`].
    pub(crate) fn new(tier: RowTier, budget: &Arc<Budget>, bytes: Option<usize>) -> Result<Arc<RowShare>> {
        let size = Mutex::new(Size { bytes: 0, is_fixed: true });
        let places = (budget.total() / BYTES_A_PLACE).next_power_of_two().min(PLACES_MAX);
        let share = Arc::new(RowShare {
            tier,
            fills: AtomicU64::new(0),
            sample: (0..places).map(|_| AtomicU64::new(0)).collect(),
            ghost_hits: AtomicU64::new(0),
            row_bytes: AtomicU64::new(ROW_BYTES_GUESS as u64),
            budget: budget.clone(),
            size,
        });
        let shared: Arc<dyn Share> = share.clone();
        budget.join(Arc::downgrade(&shared));
        share.set(bytes)?;
        Ok(share)
    }

    /// Fixes the tier's size, 0 = none; or, with `None`, has it follow the benefit from now on.
    pub(crate) fn set(&self, bytes: Option<usize>) -> Result<()> {
        {
            let mut size = self.size.lock();
            size.is_fixed = bytes.is_some();
            let bytes = bytes.unwrap_or(size.bytes.max(self.least()));
            if bytes > size.bytes {
                self.budget.insist(bytes - size.bytes);
            }
            self.tier.resize(bytes);
            if bytes < size.bytes {
                self.budget.give_back(size.bytes - bytes);
            }
            size.bytes = bytes;
        }
        Ok(self.budget.fit()?)
    }

    fn least(&self) -> usize {
        if self.budget.total() / CACHE_MIN >= BYTES_MIN { BYTES_MIN } else { 0 }
    }

    /// A row of `bytes` bytes, whose key has this hash, has been read from the device and is about to be
    /// kept. To be called with no page latched.
    pub(crate) fn note_fill(&self, hash: u64, bytes: usize) {
        // ORDER: here and below: figures, each for itself. Two fills at once may lose one of theirs.
        let now = self.fills.fetch_add(1, Relaxed) as u32;
        if (hash >> 16).is_multiple_of(SAMPLE) {
            let average = (self.row_bytes.load(Relaxed) * 15 + bytes as u64) / 16;
            self.row_bytes.store(average.max(1), Relaxed);
            let place = &self.sample[hash as usize % self.sample.len()];
            let before = place.swap(hash >> 32 << 32 | u64::from(now), Relaxed);
            let rows = (self.tier.bytes() + self.budget.ghost_bytes()) as u64 / average.max(1);
            if before >> 32 == hash >> 32 && u64::from(now.wrapping_sub(before as u32)) <= rows {
                self.ghost_hits.fetch_add(SAMPLE, Relaxed);
            }
        }
        self.grow();
    }

    /// Takes a step more of what nobody has, if the tier is full.
    fn grow(&self) {
        let step = self.budget.step().max(1);
        if self.budget.free() < step {
            return;
        }
        let mut size = self.size.lock();
        if !size.is_fixed && self.tier.bytes() + step / 2 > size.bytes {
            size.bytes += self.budget.take(step, 1) * step;
            self.tier.resize(size.bytes);
        }
    }
}

impl Share for RowShare {
    fn name(&self) -> String {
        "row tier".to_owned()
    }

    fn bytes(&self) -> usize {
        self.size.lock().bytes
    }

    fn bytes_min(&self) -> usize {
        let size = self.size.lock();
        if size.is_fixed { size.bytes } else { self.least() }
    }

    fn free_bytes(&self) -> usize {
        let size = self.size.lock();
        if size.is_fixed { 0 } else { size.bytes.saturating_sub(self.tier.bytes()) }
    }

    fn resize(&self, bytes: usize) -> Result<(), pagecache::Error> {
        let mut size = self.size.lock();
        if size.is_fixed {
            return Ok(());
        }
        if bytes > size.bytes {
            size.bytes += self.budget.take(1, bytes - size.bytes);
            self.tier.resize(size.bytes);
        } else {
            self.tier.resize(bytes);
            self.budget.give_back(size.bytes - bytes);
            size.bytes = bytes;
        }
        Ok(())
    }

    fn ghost_hits(&self) -> u64 {
        if self.size.lock().is_fixed { 0 } else { self.ghost_hits.load(Relaxed) }
    }

    fn ghost_bytes(&self) -> usize {
        self.budget.ghost_bytes()
    }
}

//! The row tier's part of the default cache's bytes.
//!
//! Unless its size is fixed, it is a share of the budget as the pools of pages are: it takes what nobody has when it is full, and then gives and
//! takes by what a byte is worth to it ([`pagecache::Budget`]).

use crate::Result;
use base::sync::{Arc, Mutex};
use pagecache::{Budget, Share};
use rowtier::RowTier;

/// What it has at the least, in bytes, so that its worth can be told.
const BYTES_MIN: usize = 512 << 10;
/// A cache that is not so many times larger has no row tier unless it is asked for.
const CACHE_MIN: usize = 32;

#[derive(Debug)]
pub(crate) struct RowShare {
    pub tier: RowTier,
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
    pub fn new(tier: RowTier, budget: &Arc<Budget>, bytes: Option<usize>) -> Result<Arc<RowShare>> {
        let size = Mutex::new(Size { bytes: 0, is_fixed: true });
        let share = Arc::new(RowShare { tier, budget: budget.clone(), size });
        let shared: Arc<dyn Share> = share.clone();
        budget.join(Arc::downgrade(&shared));
        share.set(bytes)?;
        Ok(share)
    }

    /// Fixes the tier's size, 0 = none; or, with `None`, has it follow the benefit from now on.
    pub fn set(&self, bytes: Option<usize>) -> Result<()> {
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

    /// Takes a step more of what nobody has, if the tier is full. To be called with no page latched.
    pub fn grow(&self) {
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
        if self.size.lock().is_fixed { 0 } else { self.tier.ghost_hits() }
    }

    /// The tier remembers as much as it holds.
    fn ghost_bytes(&self) -> usize {
        self.size.lock().bytes
    }
}

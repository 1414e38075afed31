//! As `base::region` under a model checker: a box.

use crate::sync::atomic::{AtomicU32, AtomicU64};
use std::io;
use std::ops::{Deref, Range};

/// # Safety
/// None is needed here, where no memory is zeroed: the sources that implement it say `unsafe`.
pub unsafe trait Zeroable: Default {}

// SAFETY: see `Zeroable`.
unsafe impl Zeroable for AtomicU64 {}
// SAFETY: see `Zeroable`.
unsafe impl Zeroable for AtomicU32 {}

#[derive(Debug)]
pub struct Region<T>(Box<[T]>);

impl<T: Zeroable> Region<T> {
    /// # Errors
    /// None: the signature is that of the real one.
    pub fn new(len: usize) -> io::Result<Region<T>> {
        Ok(Region((0..len).map(|_| T::default()).collect()))
    }

    pub fn block(&self, number: u32, len_log2: u32) -> &[T] {
        &self.0[(number as usize) << len_log2..][..1 << len_log2]
    }

    pub fn use_huge_pages(&self, _count: usize) {}

    pub fn release_from(&self, _from: usize) {}

    pub fn release(&self, _range: Range<usize>) {}
}

impl<T> Deref for Region<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

pub fn prefetch_line<T>(_place: &T) {}

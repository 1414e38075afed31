//! Files that are opened past the operating system's cache, and memory that they can be read into.

use crate::forward::forward_names;
use crate::{Create, File, Vfs};
use base::sync::Arc;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// The alignment of memory that a device reads or writes by itself, in bytes. No device asks for more.
pub(crate) const ALIGNMENT: usize = 4096;

/// Memory that a file of [`Vfs::open_direct`] reads and writes without a copy.
#[derive(Debug)]
pub struct AlignedBuffer {
    /// Longer than asked for, so that an aligned part of the wanted length lies in it. It never grows, so it
    /// never moves.
    bytes: Box<[u8]>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// `len` zeroes.
    pub fn new(len: usize) -> AlignedBuffer {
        let bytes = vec![0; len + ALIGNMENT].into_boxed_slice();
        // Under an interpreter (miri) the address may not be known, and then no aligned part is found. The
        // buffer works all the same: the file copies.
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        AlignedBuffer { bytes, start, len }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// A file tree around another one that opens all files by [`Vfs::open_direct`].
#[derive(Clone, Debug)]
pub struct Direct {
    inner: Arc<dyn Vfs>,
    block: usize,
}

impl Direct {
    /// Reads and writes will be whole blocks of `block` bytes.
    pub fn new(inner: Arc<dyn Vfs>, block: usize) -> Direct {
        Direct { inner, block }
    }
}

impl Vfs for Direct {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        self.inner.open_direct(path, create, self.block)
    }

    fn open_direct(&self, path: &Path, create: Create, block: usize) -> io::Result<Arc<dyn File>> {
        self.inner.open_direct(path, create, block)
    }

    forward_names!(inner);

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_any_length_begin_where_a_device_can_read_them() {
        for len in [0, 1, 512, 1024, 4096, 5000, 65_536 * 65] {
            let mut buffer = AlignedBuffer::new(len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer.fill(7);
            assert!(cfg!(miri) || buffer.as_ptr().addr().is_multiple_of(ALIGNMENT));
            assert!(buffer.iter().all(|byte| *byte == 7));
        }
    }
}

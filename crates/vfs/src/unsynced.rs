//! A file tree that makes nothing durable.

use crate::{Create, File, Vfs};
use base::sync::Arc;
use std::io;
use std::path::{Path, PathBuf};

/// Another file tree, whose syncs return at once and do nothing: what a machine loses when it stops is anybody's guess.
#[derive(Clone, Debug)]
pub struct Unsynced {
    inner: Arc<dyn Vfs>,
}

impl Unsynced {
    pub fn new(inner: Arc<dyn Vfs>) -> Unsynced {
        Unsynced { inner }
    }
}

impl Vfs for Unsynced {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(UnsyncedFile(self.inner.open(path, create)?)))
    }

    fn open_direct(&self, path: &Path, create: Create, block: usize) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(UnsyncedFile(self.inner.open_direct(path, create, block)?)))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir_all(dir)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.remove_dir(dir)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct UnsyncedFile(Arc<dyn File>);

impl File for UnsyncedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        self.0.reserve(len)
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.discard(offset, len)
    }

    fn try_lock_exclusive(&self) -> io::Result<()> {
        self.0.try_lock_exclusive()
    }
}

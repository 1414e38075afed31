//! A file tree that makes nothing durable.

use crate::forward::{forward_names, forward_size_and_lock};
use crate::{Create, File, Vfs};
use base::sync::Arc;
use std::io;
use std::path::Path;

/// A file tree around another one, whose syncs return at once and do nothing. When the machine stops anything
/// written may be lost.
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

    forward_names!(inner);

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

    forward_size_and_lock!(0);
}

//! Files that can fail. Everything that touches a disk goes through [`Vfs`] and [`File`], so that a
//! test can put memory, a full disk or a crash in the place of the operating system.

mod direct;
mod faulty;
mod few_open;
mod forward;
mod memory;
mod os;
mod overlay;
pub mod sim;
mod throttled;
mod unsynced;

pub use direct::{AlignedBuffer, Direct};
pub use faulty::{Fault, Faults, FaultyVfs, Operation};
pub use few_open::FewOpen;
pub use memory::MemVfs;
pub use os::OsVfs;
pub use overlay::Overlay;
pub use sim::SimVfs;
pub use throttled::{Clock, Limits, SystemClock, Throttled, Usage};
pub use unsynced::Unsynced;

use base::sync::Arc;
use std::io;
use std::path::{Path, PathBuf};

/// A folder tree of files. Paths are absolute or relative to the process, as the caller has them.
pub trait Vfs: Send + Sync + std::fmt::Debug {
    /// Opens a file for reading and writing. `create` says what to do about its existence.
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>>;
    /// As [`Vfs::open`]; reads and writes go past the operating system's cache. They are whole blocks of
    /// `block` bytes, a power of two, at multiples of `block`, best from and to an [`AlignedBuffer`]: other
    /// memory is copied first. A write is no more durable than any other before `sync`.
    ///
    /// # Errors
    /// `Unsupported` if that cannot be, with blocks of this size. The file may have been created.
    fn open_direct(&self, path: &Path, create: Create, block: usize) -> io::Result<Arc<dyn File>> {
        let _ = (path, create, block);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// A new, empty file on the file system of the folder `dir`. It has no name, so nobody else can open it,
    /// and it is gone as soon as it is closed or the process ends, however that happens.
    ///
    /// # Errors
    /// As [`Vfs::open`].
    fn open_unnamed(&self, dir: &Path) -> io::Result<Arc<dyn File>> {
        open_and_remove(self, dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Atomically replaces `to` by `from`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// The names directly inside a folder, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes creations, removals and renames inside `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// [`Vfs::open_unnamed`] where there are no files without a name: the name is removed at once.
fn open_and_remove(vfs: &(impl Vfs + ?Sized), dir: &Path) -> io::Result<Arc<dyn File>> {
    let mut number = 0;
    loop {
        let path = dir.join(format!("latchwork-{}-{number}", std::process::id()));
        match vfs.open(&path, Create::New) {
            // Another thread is just between its creation and its removal.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
            Ok(file) => return vfs.remove(&path).map(|()| file),
        }
    }
}

/// What [`Vfs::open`] does about a file's existence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Create {
    /// The file must exist.
    Never,
    /// The file is created if it is missing.
    IfMissing,
    /// The file must not exist yet.
    New,
}

/// A random-access file. All methods may be called from many threads at once.
pub trait File: Send + Sync + std::fmt::Debug {
    /// Fills `buffer` from byte `offset`; a short file is `UnexpectedEof`.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at byte `offset`, growing the file if need be.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes all earlier writes durable, data and length.
    fn sync(&self) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts or extends (with zeroes) to `len` bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Extends to `len` bytes, as [`File::set_len`], and has the device set the room aside, so that writes
    /// below `len` do not meet a full disk later. A file system that cannot do so only extends. A longer file
    /// stays as it is.
    fn reserve(&self, len: u64) -> io::Result<()> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }
    /// These bytes are not needed any more: they may read as zeroes from now on, or as they were, and the
    /// file system may use their room for something else. The length stays. A file system that cannot do so
    /// does nothing.
    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        let _ = (offset, len);
        Ok(())
    }
    /// Takes the exclusive advisory lock on the file, held until the last handle is dropped.
    /// `WouldBlock` when another process holds it.
    fn try_lock_exclusive(&self) -> io::Result<()>;
}

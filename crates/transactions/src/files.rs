//! Files for what is too much for memory. This crate knows nothing of directories: whoever makes the
//! transactions says where such files come from.

use base::sync::Arc;
use std::fmt::Debug;
use std::io;

/// Makes files for old versions of rows.
pub trait VersionFiles: Debug + Send + Sync {
    /// A new, empty file. It goes when it is dropped, and when the process ends.
    ///
    /// # Errors
    /// Those of the device. Old versions stay in memory then.
    fn create(&self) -> io::Result<Arc<dyn VersionFile>>;
}

/// A file that is written once, from its beginning to its end, and then read anywhere, by several threads.
pub trait VersionFile: Debug + Send + Sync {
    /// # Errors
    /// Those of the device, a full one among them. The file is given up then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer`.
    ///
    /// # Errors
    /// Those of the device.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

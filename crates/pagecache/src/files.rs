//! The files whose pages are cached, and how pages are read from them and written to them.

use crate::compressed;
use crate::error::Error;
use crate::page::{Page, PageMut};
use crate::page_header::{array, header, verify};
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Arc, Mutex};
use base::{FileId, PageId, PageNo};
use std::io;
use std::path::PathBuf;
use vfs::AlignedBuffer;

base::latch_class!(pub SyncLatch, "file sync");

/// The layout of a file's pages on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileFormat {
    /// Bytes a page: a power of two, 1 to 64 KiB.
    pub page_size: usize,
    /// Pages are written compressed where that saves room: see `compressed`. Both kinds can be read, whatever
    /// this says. Page 0 identifies the file and is always written as it is.
    pub is_compressed: bool,
}

impl FileFormat {
    /// Pages as they are.
    pub fn plain(page_size: usize) -> FileFormat {
        FileFormat { page_size, is_compressed: false }
    }
}

/// A file that is attached to a pool.
#[derive(Debug)]
pub struct OpenFile {
    pub id: FileId,
    pub path: PathBuf,
    format: FileFormat,
    device: Arc<Device>,
    /// Set before the file's pages are purged. No page is installed after that.
    detached: AtomicBool,
}

/// What stays the same when a file moves to another pool (pagecache R14): a thread that is late with a write
/// or a sync may have found the file in an earlier pool.
#[derive(Debug)]
struct Device {
    file: Arc<dyn vfs::File>,
    /// Pages were written since the last sync.
    unsynced: AtomicBool,
    /// Held during a sync, so that a thread that finds nothing to sync has waited for a sync under way. It
    /// holds how that ended.
    syncing: Mutex<Syncs, SyncLatch>,
}

/// What has become of a file's syncs.
#[derive(Debug, Default)]
struct Syncs {
    /// What the first one that failed said. No later one succeeds.
    failure: Option<(io::ErrorKind, String)>,
}

impl OpenFile {
    pub fn new(id: FileId, path: PathBuf, file: Arc<dyn vfs::File>, format: FileFormat) -> OpenFile {
        let device =
            Device { file, unsynced: AtomicBool::new(false), syncing: Mutex::of_class(Syncs::default()) };
        OpenFile { id, path, format, device: Arc::new(device), detached: AtomicBool::new(false) }
    }

    /// The same file, to be attached again.
    pub fn again(&self) -> OpenFile {
        let device = self.device.clone();
        let (path, detached) = (self.path.clone(), AtomicBool::new(false));
        OpenFile { id: self.id, path, format: self.format, device, detached }
    }

    /// The file is going to be deleted, so its writes do not have to be synced.
    pub fn forget_writes(&self) {
        // ORDER: no page of the file is on its way any more.
        self.device.unsynced.store(false, Ordering::Relaxed);
    }

    /// Under a segment's mutex, or before passing all of them: see `Pool::detach`.
    pub fn is_detached(&self) -> bool {
        // ORDER: the segment mutexes order it.
        self.detached.load(Ordering::Relaxed)
    }

    pub fn is_compressed(&self) -> bool {
        self.format.is_compressed
    }

    pub fn set_detached(&self, detached: bool) {
        self.detached.store(detached, Ordering::Relaxed);
    }

    pub fn io_error(&self, page: Option<PageId>, source: io::Error) -> Error {
        Error::Io { path: self.path.clone(), page, source }
    }

    /// Reads the page by way of `bytes`, which is as long as a page, checks it, and stores it into `target`.
    pub fn read_page(
        &self,
        id: PageId,
        target: &mut PageMut<'_>,
        bytes: &mut AlignedBuffer,
    ) -> Result<(), Error> {
        let offset = u64::from(id.page.0) * bytes.len() as u64;
        self.device.file.read_at(bytes, offset).map_err(|source| self.io_error(Some(id), source))?;
        if let Err(why) = unseal(bytes, id) {
            let lsn = u64::from_le_bytes(array(bytes, header::LSN));
            return Err(Error::Corrupt { path: self.path.clone(), page: id, lsn, why });
        }
        target.write(0, bytes);
        Ok(())
    }

    /// Writes a copy of a page that has been sealed.
    pub fn write_page(&self, id: PageId, copy: &[u8]) -> Result<(), Error> {
        let offset = u64::from(id.page.0) * copy.len() as u64;
        let is_candidate = self.format.is_compressed && id.page != PageNo(0);
        let small = if is_candidate { compressed::compress_for_device(copy) } else { None };
        let written = match small {
            Some(small) if small.len().next_multiple_of(compressed::BLOCK) < copy.len() => {
                let mut blocks = AlignedBuffer::new(small.len().next_multiple_of(compressed::BLOCK));
                blocks[..small.len()].copy_from_slice(&small);
                let rest = (copy.len() - blocks.len()) as u64;
                // CRASH: if the discard is lost the compressed page is whole all the same, with other bytes
                // behind it.
                let end = offset + copy.len() as u64;
                (self.device.file.write_at(&blocks, offset))
                    .and_then(|()| self.device.file.discard(offset + blocks.len() as u64, rest))
                    .and_then(|()| self.reach(end))
            }
            _ => self.device.file.write_at(copy, offset),
        };
        // CRASH: set after the write. If it were set before, a sync in between would clear it and the write
        // would not be synced. Set whatever the result is, because a write that failed may have written a
        // part. ORDER: the thread that is to sync the page learns of the write by other means, and looks here
        // after that.
        self.device.unsynced.store(true, Ordering::Relaxed);
        written.map_err(|source| self.io_error(Some(id), source))
    }

    /// Makes the file at least `len` bytes long.
    fn reach(&self, len: u64) -> io::Result<()> {
        // CRASH: a crash may leave a file shorter than its pages, which redo then writes again. A page is
        // read as a whole, so the last one must not end with its compressed bytes.
        if self.device.file.len()? < len { self.device.file.set_len(len) } else { Ok(()) }
    }

    /// Makes durable what has been written.
    ///
    /// # Errors
    /// [`Error::Io`] if this sync fails, or one has failed before.
    pub fn sync(&self) -> Result<(), Error> {
        self.sync_under(&mut self.device.syncing.lock())
    }

    /// [`OpenFile::sync`], if anything was written since the last.
    pub fn sync_if_written(&self) -> Result<(), Error> {
        let mut syncs = self.device.syncing.lock();
        // ORDER: as in `sync_under`; a sync under way has been waited for.
        if syncs.failure.is_some() || self.device.unsynced.load(Ordering::Relaxed) {
            return self.sync_under(&mut syncs);
        }
        Ok(())
    }

    fn sync_under(&self, syncs: &mut Syncs) -> Result<(), Error> {
        // CRASH: the operating system reports a failure once, may have thrown away what it could not write,
        // and says that the next sync is fine. So a thread that waited for the one that failed, or comes
        // later, must not ask again (pagecache R18).
        if let Some((kind, why)) = &syncs.failure {
            return Err(self.io_error(None, io::Error::new(*kind, format!("a sync failed before: {why}"))));
        }
        // ORDER: a write that is not seen here is one that the caller does not know of. Cleared before the
        // sync, so that a write during the sync counts for the next one.
        self.device.unsynced.store(false, Ordering::Relaxed);
        self.device.file.sync().map_err(|source| {
            syncs.failure = Some((source.kind(), source.to_string()));
            self.io_error(None, source)
        })
    }
}

/// A copy of a page that is latched.
pub fn copy_of(page: Page<'_>) -> AlignedBuffer {
    let mut copy = AlignedBuffer::new(page.size());
    page.copy_to(0, &mut copy);
    copy
}

/// Makes a page of the bytes that a file has in the page's place: verifies them, and opens a compressed page.
///
/// # Errors
/// What is wrong with the bytes, which are unchanged then.
pub fn unseal(bytes: &mut [u8], id: PageId) -> Result<(), String> {
    if !compressed::is_compressed(bytes) {
        return verify(bytes, id);
    }
    let len = compressed::verify(bytes, id, bytes.len())?;
    let mut page = vec![0; bytes.len()];
    compressed::open_from_device(&bytes[..len], &mut page)?;
    bytes.copy_from_slice(&page);
    Ok(())
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::page_header::seal;
    use std::path::Path;
    use vfs::{Create, Fault, FaultyVfs, MemVfs, Operation, Vfs};

    #[test]
    fn a_compressed_page_behind_the_end_of_a_file_can_be_read_again() {
        const SIZE: usize = 16 << 10;
        let path = Path::new("file");
        let device = MemVfs::new().open(path, Create::New).unwrap();
        let format = FileFormat { page_size: SIZE, is_compressed: true };
        let file = OpenFile::new(FileId(7), path.to_path_buf(), device.clone(), format);
        let id = PageId::new(FileId(7), PageNo(2));
        let mut copy = AlignedBuffer::new(SIZE);
        seal(&mut copy, id);
        file.write_page(id, &copy).unwrap();
        assert_eq!(device.len().unwrap(), 3 * SIZE as u64);
        let mut bytes = vec![0; SIZE];
        device.read_at(&mut bytes, 2 * SIZE as u64).unwrap();
        assert_eq!(unseal(&mut bytes, id), Ok(()));
    }

    #[test]
    fn after_a_failed_sync_none_succeeds_although_the_device_says_so() {
        let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
        let path = Path::new("file");
        let device = vfs.open(path, Create::New).unwrap();
        let file = OpenFile::new(FileId(7), path.to_path_buf(), device, FileFormat::plain(1024));
        file.write_page(PageId::new(FileId(7), PageNo(0)), &[1; 1024]).unwrap();
        vfs.faults().fail_nth(Operation::Sync, 1, Fault::Error(io::ErrorKind::Other));
        assert!(file.sync().is_err());
        assert!(file.sync_if_written().is_err(), "a checkpoint takes the page for durable");
        assert!(file.sync().is_err(), "the second sync of a page that the system has thrown away");
        // Also in another pool: it is the same device.
        assert!(file.again().sync_if_written().is_err());
    }
}

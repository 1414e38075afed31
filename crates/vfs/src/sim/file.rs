//! Handles of open files.

use super::content::Content;
use super::dice::Dice;
use super::{Dirty, Disk, EventKind, failed_sync};
use crate::File;
use base::sync::{Arc, Mutex};
use std::io;
use std::path::{Path, PathBuf};

/// The longest file: a mistaken offset is an error here, and not the end of the test's memory.
const MAX_LEN: u64 = 1 << 32;

/// One handle; the advisory lock belongs to it.
#[derive(Debug)]
pub(super) struct SimFile {
    disk: Arc<Mutex<Disk>>,
    /// Its latch is taken under the disk's only.
    content: Arc<Mutex<Content>>,
    path: PathBuf,
    handle: u64,
}

fn in_memory(len: u64) -> io::Result<usize> {
    usize::try_from(len).ok().filter(|_| len <= MAX_LEN).ok_or(io::ErrorKind::FileTooLarge.into())
}

impl SimFile {
    pub(super) fn new(
        disk: Arc<Mutex<Disk>>,
        content: Arc<Mutex<Content>>,
        path: &Path,
        handle: u64,
    ) -> SimFile {
        SimFile { disk, content, path: path.to_path_buf(), handle }
    }

    /// Sets the length to what `choose` makes of the present one.
    fn resize(&self, choose: impl FnOnce(u64) -> u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let old = self.content.lock().live().len() as u64;
        let len = choose(old);
        let target = in_memory(len)?;
        disk.event(EventKind::SetLen, &self.path)?;
        let growth = len.saturating_sub(old);
        if disk.room(growth) < growth {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.content.lock().set_len(target);
        Ok(())
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let content = self.content.lock();
        let source = usize::try_from(offset)
            .ok()
            .and_then(|start| content.live().get(start..start.checked_add(buffer.len())?))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(source);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        let end = offset.saturating_add(bytes.len() as u64);
        let (start, _) = (in_memory(offset)?, in_memory(end)?);
        disk.progress.operation()?;
        disk.event(EventKind::Write, &self.path)?;
        let old = self.content.lock().live().len() as u64;
        let growth = end.saturating_sub(old);
        let missing = growth - disk.room(growth);
        let fits = bytes.len().saturating_sub(missing as usize);
        self.content.lock().write(&bytes[..fits], start);
        if missing > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let failure = disk.sync_event(EventKind::Sync, &self.path)?;
        let mut content = self.content.lock();
        match failure {
            None => {
                content.sync();
                Ok(())
            }
            Some(Dirty::Kept) => Err(failed_sync()),
            Some(Dirty::Forgotten { seed }) => {
                content.sync_and_forget(&mut Dice::new(seed));
                Err(failed_sync())
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        Ok(self.content.lock().live().len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.resize(|_| len)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        self.resize(|old| old.max(len))
    }

    /// As a write of zeroes, which a crash may tear.
    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        disk.event(EventKind::Write, &self.path)?;
        let mut content = self.content.lock();
        let (start, end) = (in_memory(offset)?, in_memory(offset.saturating_add(len))?);
        let zeroes = vec![0; end.min(content.live().len()).saturating_sub(start)];
        content.write(&zeroes, start);
        Ok(())
    }

    fn try_lock_exclusive(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let mut content = self.content.lock();
        if *content.locked_by.get_or_insert(self.handle) == self.handle {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let _disk = self.disk.lock();
        let mut content = self.content.lock();
        if content.locked_by == Some(self.handle) {
            content.locked_by = None;
        }
    }
}

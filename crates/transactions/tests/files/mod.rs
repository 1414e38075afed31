//! Files in memory, which fail when they are told to.

use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, Mutex};
use latchwork_transactions::{VersionFile, VersionFiles};
use std::io;

/// A device.
#[derive(Debug, Default)]
pub struct Device {
    /// Calls that make or write a file, so far.
    writes: AtomicU64,
    /// From this call on the device is full; 0: never.
    full_from: AtomicU64,
    /// Every byte that is read is wrong.
    is_broken: AtomicU64,
}

/// Where its files come from.
#[derive(Debug, Default)]
pub struct Files(pub Arc<Device>);

#[derive(Debug)]
struct File {
    device: Arc<Device>,
    bytes: Mutex<Vec<u8>>,
}

impl Device {
    fn write(&self) -> io::Result<()> {
        let number = self.writes.fetch_add(1, SeqCst) + 1;
        let full_from = self.full_from.load(SeqCst);
        if full_from != 0 && number >= full_from { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[allow(dead_code, reason = "not all tests make it fail")]
impl Device {
    pub fn writes(&self) -> u64 {
        self.writes.load(SeqCst)
    }

    pub fn is_full_from(&self, write: u64) {
        self.full_from.store(write, SeqCst);
    }

    pub fn breaks(&self) {
        self.is_broken.store(1, SeqCst);
    }
}

impl VersionFiles for Files {
    fn create(&self) -> io::Result<Arc<dyn VersionFile>> {
        self.0.write()?;
        Ok(Arc::new(File { device: self.0.clone(), bytes: Mutex::default() }))
    }
}

impl VersionFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.device.write()?;
        let mut all = self.bytes.lock();
        assert_eq!(all.len() as u64, offset, "it is written from its beginning to its end");
        all.extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let all = self.bytes.lock();
        let bytes = all.get(offset as usize..offset as usize + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        if self.device.is_broken.load(SeqCst) != 0 {
            buffer.iter_mut().for_each(|byte| *byte ^= 1);
        }
        Ok(())
    }
}

//! A device that forgets what was not synced, and what the tests want to know of a log.
#![allow(dead_code, reason = "each test file uses a part of it")]

use base::Lsn;
use base::sync::{Arc, Mutex};
use latchwork_wal::{End, FIRST_LSN, LogConfig, Reader};
use std::io;
use std::path::{Path, PathBuf};
use vfs::{Create, File, MemVfs, Vfs};

pub const DIR: &str = "log";

/// A small log: files of one block, a ring of `buffer_size`.
pub fn config(buffer_size: usize) -> LogConfig {
    LogConfig { file_size: 8192, buffer_size, ..LogConfig::new(DIR) }
}

/// Keeps beside each file what of it was synced. Names are durable at once.
#[derive(Clone, Debug, Default)]
pub struct CrashVfs {
    pub live: MemVfs,
    pub durable: MemVfs,
    syncing: Arc<Mutex<()>>,
}

#[derive(Debug)]
struct CrashFile {
    live: Arc<dyn File>,
    durable: Arc<dyn File>,
    syncing: Arc<Mutex<()>>,
}

impl CrashVfs {
    /// A copy of what a crash now would leave.
    pub fn after_crash(&self) -> Arc<MemVfs> {
        let _syncing = self.syncing.lock();
        copy_of(&self.durable)
    }
}

/// A copy of the log's folder.
pub fn copy_of(vfs: &MemVfs) -> Arc<MemVfs> {
    let copy = MemVfs::new();
    copy.create_dir_all(DIR.as_ref()).unwrap();
    for name in vfs.list(DIR.as_ref()).unwrap() {
        let path = Path::new(DIR).join(name);
        // Removed between the list and now.
        let Ok(file) = vfs.open(&path, Create::Never) else { continue };
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        copy.open(&path, Create::New).unwrap().write_at(&bytes, 0).unwrap();
    }
    Arc::new(copy)
}

impl Vfs for CrashVfs {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        let live = self.live.open(path, create)?;
        let durable = self.durable.open(path, Create::IfMissing)?;
        Ok(Arc::new(CrashFile { live, durable, syncing: self.syncing.clone() }))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.live.exists(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        let _syncing = self.syncing.lock();
        self.live.remove(path)?;
        self.durable.remove(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _syncing = self.syncing.lock();
        self.live.rename(from, to)?;
        self.durable.rename(from, to)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.live.list(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.live.create_dir_all(dir)?;
        self.durable.create_dir_all(dir)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.live.remove_dir(dir)?;
        self.durable.remove_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.live.sync_dir(dir)
    }
}

impl File for CrashFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.live.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.live.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        let _syncing = self.syncing.lock();
        let length = self.live.len()?;
        let mut bytes = vec![0; length as usize];
        self.live.read_at(&mut bytes, 0)?;
        self.durable.set_len(length)?;
        self.durable.write_at(&bytes, 0)
    }
    fn len(&self) -> io::Result<u64> {
        self.live.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.live.set_len(len)
    }
    fn try_lock_exclusive(&self) -> io::Result<()> {
        self.live.try_lock_exclusive()
    }
}

/// A record that a test remembers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kept {
    pub lsn: Lsn,
    pub end: Lsn,
    pub kind: u8,
    pub payload: Vec<u8>,
}

/// All records from `lsn` on, where they end, and why.
pub fn read_from(vfs: &dyn Vfs, lsn: Lsn) -> (Vec<Kept>, Lsn, End) {
    drain(Reader::open(vfs, DIR.as_ref(), lsn).unwrap())
}

pub fn read_all(vfs: &dyn Vfs) -> (Vec<Kept>, Lsn, End) {
    read_from(vfs, FIRST_LSN)
}

pub fn drain(mut reader: Reader) -> (Vec<Kept>, Lsn, End) {
    let mut records: Vec<Kept> = Vec::new();
    while let Some(record) = reader.read_next().unwrap() {
        let payload = record.payload.to_vec();
        let kept = Kept { lsn: record.lsn, end: record.end, kind: record.kind, payload };
        assert!(records.last().is_none_or(|last| last.end == kept.lsn), "records follow each other");
        records.push(kept);
    }
    assert!(reader.read_next().unwrap().is_none(), "the end stays the end");
    (records, reader.position(), reader.end().unwrap())
}

/// A payload of `length` bytes without a zero among them, different for each `seed`.
pub fn payload(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8 | 1
    };
    (0..length).map(|_| next()).collect()
}

pub fn file_path(number: u64) -> PathBuf {
    Path::new(DIR).join(format!("L{number:010}.lwl"))
}

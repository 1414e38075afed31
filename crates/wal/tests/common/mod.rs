//! A device that forgets what was not synced, and what the tests want to know of a log.
#![allow(dead_code, reason = "each test file uses a part of it")]

use base::Lsn;
use base::sync::{Arc, Mutex};
use latchwork_wal::{End, FIRST_LSN, LogConfig, Reader};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vfs::{Create, File, MemVfs, Vfs};

pub const DIR: &str = "log";

/// A small log: files of one block, a ring of `buffer_size`.
pub fn config(buffer_size: usize) -> LogConfig {
    LogConfig { file_size: 8192, buffer_size, full_wait: Duration::ZERO, ..LogConfig::new(DIR) }
}

/// Keeps beside each file its synced content, and beside the folder its entries at the latest sync.
#[derive(Clone, Debug, Default)]
pub struct CrashVfs {
    pub live: MemVfs,
    /// Synced contents, each under a name of its own that never changes.
    contents: MemVfs,
    names: Arc<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    made: u64,
    /// Which content a path names now, and named when its folder was synced.
    live: BTreeMap<PathBuf, PathBuf>,
    durable: BTreeMap<PathBuf, PathBuf>,
}

#[derive(Debug)]
struct CrashFile {
    live: Arc<dyn File>,
    content: Arc<dyn File>,
    /// Whoever copies contents holds it.
    names: Arc<Mutex<Names>>,
}

impl CrashVfs {
    /// A device that holds what is in `vfs`, all of it durable.
    pub fn holding(vfs: &MemVfs) -> CrashVfs {
        let device = CrashVfs::default();
        device.create_dir_all(DIR.as_ref()).unwrap();
        for (path, bytes) in files_of(vfs) {
            let file = device.open(&path, Create::New).unwrap();
            file.write_at(&bytes, 0).unwrap();
            file.sync().unwrap();
        }
        device.sync_dir(DIR.as_ref()).unwrap();
        device
    }

    /// A copy of what a crash now would leave.
    pub fn after_crash(&self) -> Arc<MemVfs> {
        let names = self.names.lock();
        let copy = MemVfs::new();
        copy.create_dir_all(DIR.as_ref()).unwrap();
        for (path, content) in &names.durable {
            let bytes = bytes_of(&*self.contents.open(content, Create::Never).unwrap());
            copy.open(path, Create::New).unwrap().write_at(&bytes, 0).unwrap();
        }
        Arc::new(copy)
    }
}

fn bytes_of(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn files_of(vfs: &MemVfs) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = vfs.list(DIR.as_ref()).unwrap().into_iter().map(|name| Path::new(DIR).join(name));
    paths.map(|path| (path.clone(), bytes_of(&*vfs.open(&path, Create::Never).unwrap()))).collect()
}

/// A copy of the log's folder.
pub fn copy_of(vfs: &MemVfs) -> Arc<MemVfs> {
    let copy = MemVfs::new();
    copy.create_dir_all(DIR.as_ref()).unwrap();
    for (path, bytes) in files_of(vfs) {
        copy.open(&path, Create::New).unwrap().write_at(&bytes, 0).unwrap();
    }
    Arc::new(copy)
}

impl Vfs for CrashVfs {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        let mut names = self.names.lock();
        let live = self.live.open(path, create)?;
        let content = match names.live.get(path) {
            Some(content) => content.clone(),
            None => {
                names.made += 1;
                let content = PathBuf::from(format!("content {}", names.made));
                names.live.insert(path.to_path_buf(), content.clone());
                content
            }
        };
        let content = self.contents.open(&content, Create::IfMissing)?;
        Ok(Arc::new(CrashFile { live, content, names: self.names.clone() }))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.live.exists(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        self.live.remove(path)?;
        names.live.remove(path);
        Ok(())
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        self.live.rename(from, to)?;
        let content = names.live.remove(from).ok_or(io::ErrorKind::NotFound)?;
        names.live.insert(to.to_path_buf(), content);
        Ok(())
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.live.list(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.live.create_dir_all(dir)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.live.remove_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        self.live.sync_dir(dir)?;
        let live: Vec<_> =
            names.live.clone().into_iter().filter(|(path, _)| path.parent() == Some(dir)).collect();
        names.durable.retain(|path, _| path.parent() != Some(dir));
        names.durable.extend(live);
        Ok(())
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
        let _names = self.names.lock();
        let bytes = bytes_of(&*self.live);
        self.content.set_len(bytes.len() as u64)?;
        self.content.write_at(&bytes, 0)
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
    let mut random = base::random::Random::new(seed, 0);
    (0..length).map(|_| random.next_u64() as u8 | 1).collect()
}

pub fn file_path(number: u64) -> PathBuf {
    Path::new(DIR).join(format!("L{number:010}.lwl"))
}

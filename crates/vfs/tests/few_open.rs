//! A tree that keeps few files open behaves as the tree below it, with few files open.
#![cfg(not(feature = "shuttle"))]

use base::random::Random;
use base::sync::Arc;
use base::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use latchwork_vfs::sim::{Points, every_cut};
use latchwork_vfs::{Create, Fault, FaultyVfs, FewOpen, File, MemVfs, Operation, OsVfs, SimVfs, Vfs};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A tree that counts its open files, and has descriptors for so many.
#[derive(Clone, Debug)]
struct Counted {
    inner: Arc<dyn Vfs>,
    open: Arc<AtomicUsize>,
    most: usize,
}

#[derive(Debug)]
struct CountedFile {
    inner: Arc<dyn File>,
    open: Arc<AtomicUsize>,
}

impl Counted {
    fn new(inner: impl Vfs + 'static, most: usize) -> Counted {
        Counted { inner: Arc::new(inner), open: Arc::default(), most }
    }
}

impl Drop for CountedFile {
    fn drop(&mut self) {
        self.open.fetch_sub(1, SeqCst);
    }
}

impl Vfs for Counted {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        if self.open.load(SeqCst) >= self.most {
            return Err(io::Error::from_raw_os_error(24));
        }
        let inner = self.inner.open(path, create)?;
        self.open.fetch_add(1, SeqCst);
        Ok(Arc::new(CountedFile { inner, open: self.open.clone() }))
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
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
}

impl File for CountedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn try_lock_exclusive(&self) -> io::Result<()> {
        self.inner.try_lock_exclusive()
    }
}

fn name(number: usize) -> PathBuf {
    PathBuf::from(format!("file{number}"))
}

#[test]
fn many_files_are_used_with_few_of_them_open() {
    const FILES: usize = 100;
    const MOST: usize = 7;
    let device = Counted::new(MemVfs::new(), usize::MAX);
    let vfs = FewOpen::new(Arc::new(device.clone()), MOST);
    let mut files: BTreeMap<usize, (Arc<dyn File>, Vec<u8>)> = BTreeMap::new();
    let mut random = Random::new(3, 0);
    for _ in 0..20_000 {
        let number = random.index(FILES);
        let (file, content) = files
            .entry(number)
            .or_insert_with(|| (vfs.open(&name(number), Create::IfMissing).unwrap(), Vec::new()));
        match random.below(20) {
            0 => {
                files.remove(&number);
                vfs.remove(&name(number)).unwrap();
            }
            1 => file.sync().unwrap(),
            2 => {
                content.resize(random.index(200), 0);
                file.set_len(content.len() as u64).unwrap();
            }
            3..=8 => {
                let bytes = vec![random.below(256) as u8; 1 + random.index(20)];
                let at = random.index(100);
                content.resize(content.len().max(at + bytes.len()), 0);
                content[at..at + bytes.len()].copy_from_slice(&bytes);
                file.write_at(&bytes, at as u64).unwrap();
            }
            _ => {
                assert_eq!(file.len().unwrap(), content.len() as u64);
                let mut found = vec![0; content.len()];
                file.read_at(&mut found, 0).unwrap();
                assert_eq!(found, *content);
            }
        }
        assert!(device.open.load(SeqCst) <= MOST);
        assert_eq!(device.open.load(SeqCst), vfs.open_files());
    }
    drop(files);
    assert_eq!((device.open.load(SeqCst), vfs.open_files()), (0, 0));
}

#[test]
fn without_a_descriptor_another_file_is_closed_first() {
    let device = Counted::new(MemVfs::new(), 3);
    let vfs = FewOpen::new(Arc::new(device.clone()), 100);
    let files: Vec<_> = (0..10).map(|number| vfs.open(&name(number), Create::New).unwrap()).collect();
    for round in 0..3 {
        for (number, file) in files.iter().enumerate() {
            file.write_at(&[number as u8, round], 0).unwrap();
        }
    }
    for (number, file) in files.iter().enumerate() {
        let mut found = [0; 2];
        file.read_at(&mut found, 0).unwrap();
        assert_eq!(found, [number as u8, 2]);
    }
    // Not even one can be closed: the lock would go with it.
    let full = FewOpen::new(Arc::new(Counted::new(OsVfs, 1)), 100);
    let folder = tempfile::tempdir().unwrap();
    let lock = full.open(&folder.path().join("lock"), Create::New).unwrap();
    lock.try_lock_exclusive().unwrap();
    let error = full.open(&folder.path().join("other"), Create::New).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(24));
    drop(lock);
    full.open(&folder.path().join("other"), Create::New).unwrap();
}

#[test]
fn a_locked_file_stays_open() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = FewOpen::new(Arc::new(OsVfs), 1);
    let path = folder.path().join("lock");
    let lock = vfs.open(&path, Create::New).unwrap();
    lock.try_lock_exclusive().unwrap();
    let others: Vec<_> =
        (0..5).map(|number| vfs.open(&folder.path().join(name(number)), Create::New).unwrap()).collect();
    others.iter().for_each(|file| file.write_at(b"x", 0).unwrap());
    let error = OsVfs.open(&path, Create::Never).unwrap().try_lock_exclusive().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_file_that_cannot_be_synced_is_not_closed_and_its_owner_hears_of_it() {
    let faulty = FaultyVfs::new(Arc::new(MemVfs::new()));
    let vfs = FewOpen::new(Arc::new(faulty.clone()), 1);
    let one = vfs.open(&name(1), Create::New).unwrap();
    one.write_at(b"one", 0).unwrap();
    faulty.faults().fail_nth(Operation::Sync, 1, Fault::Error(io::ErrorKind::Other));
    // Its place is wanted, but its writes cannot be made durable.
    let other = vfs.open(&name(2), Create::New).unwrap();
    assert_eq!(vfs.open_files(), 2);
    // The device says that the next sync is fine; what became of the write is unknown.
    for _ in 0..2 {
        assert!(one.sync().is_err(), "the owner was told that the write is durable");
    }
    other.write_at(b"other", 0).unwrap();
    other.sync().unwrap();
}

#[test]
fn files_that_are_only_read_are_closed_without_a_sync() {
    let faulty = FaultyVfs::new(Arc::new(MemVfs::new()));
    for number in 0..10 {
        faulty.open(&name(number), Create::New).unwrap().write_at(&[7; 100], 0).unwrap();
    }
    let vfs = FewOpen::new(Arc::new(faulty.clone()), 2);
    let files: Vec<_> = (0..10).map(|number| vfs.open(&name(number), Create::Never).unwrap()).collect();
    for file in &files {
        // As long as it is.
        file.reserve(file.len().unwrap()).unwrap();
        file.read_at(&mut [0; 100], 0).unwrap();
    }
    assert_eq!(faulty.faults().count(Operation::Sync), 0);
    files[3].reserve(200).unwrap();
    files.iter().for_each(|file| file.read_at(&mut [0; 100], 0).unwrap());
    assert_eq!(faulty.faults().count(Operation::Sync), 1);
}

#[test]
fn a_closed_file_that_was_removed_can_be_synced_and_dropped() {
    let vfs = FewOpen::new(Arc::new(MemVfs::new()), 1);
    let one = vfs.open(&name(1), Create::New).unwrap();
    one.write_at(b"one", 0).unwrap();
    let _other = vfs.open(&name(2), Create::New).unwrap();
    vfs.remove(&name(1)).unwrap();
    one.sync().unwrap();
    assert_eq!(one.read_at(&mut [0; 3], 0).unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// A process that was killed has left writes that are not synced. The next one opens the file, which is
/// closed behind its back, and syncs it.
#[test]
fn a_sync_of_a_closed_file_makes_durable_what_an_earlier_process_wrote() {
    let sim = SimVfs::new();
    let before = sim.open(&name(1), Create::New).unwrap();
    sim.sync_dir(Path::new("")).unwrap();
    before.write_at(b"one", 0).unwrap();
    drop(before);
    let vfs = FewOpen::new(Arc::new(sim.clone()), 1);
    let one = vfs.open(&name(1), Create::Never).unwrap();
    let _other = vfs.open(&name(2), Create::New).unwrap();
    one.sync().unwrap();
    for seed in 0..20 {
        let mut found = [0; 3];
        sim.crash(seed).open(&name(1), Create::Never).unwrap().read_at(&mut found, 0).unwrap();
        assert_eq!(&found, b"one");
    }
}

#[test]
fn what_was_synced_survives_with_two_of_five_files_open() {
    const FILES: usize = 5;
    fn workload(sim: &SimVfs, promised: &mut [u8; FILES]) -> io::Result<()> {
        let vfs = FewOpen::new(Arc::new(sim.clone()), 2);
        let files: io::Result<Vec<_>> =
            (0..FILES).map(|number| vfs.open(&name(number), Create::IfMissing)).collect();
        let files = files?;
        vfs.sync_dir(Path::new(""))?;
        for round in 1..4 {
            for file in &files {
                file.write_at(&[round], 0)?;
            }
            for (number, file) in files.iter().enumerate() {
                file.sync()?;
                promised[number] = round;
            }
        }
        Ok(())
    }
    let run = |sim: &SimVfs| {
        let mut promised = [0; FILES];
        // The machine stops at one point or another.
        let _ = workload(sim, &mut promised);
        promised
    };
    every_cut(Points::Events, 0..8, run, |promised, left| {
        for (number, promised) in promised.iter().enumerate().filter(|(_, promised)| **promised > 0) {
            let mut found = [0];
            left.open(&name(number), Create::Never).unwrap().read_at(&mut found, 0).unwrap();
            assert!(found[0] >= *promised, "file {number} has {found:?}, not {promised}");
        }
    });
}

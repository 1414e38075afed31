//! Models: every interleaving that a randomised scheduler finds, of threads that use files of which few are
//! open.
//!
//! `cargo test -p latchwork-vfs --features shuttle --test models`
#![cfg(feature = "shuttle")]

use base::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use base::sync::{Arc, Mutex, Weak, find_fault, shuttle, thread};
use latchwork_vfs::{Create, FewOpen, File, Vfs};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A system with a cache and a device. As Linux it tells of a write that failed those who have the file open,
/// each once, forgets what was to be written, and says that the next sync is fine. A later opener is told
/// nothing.
#[derive(Clone, Debug, Default)]
struct System(Arc<Mutex<BTreeMap<PathBuf, Arc<Inode>>>>, Arc<AtomicUsize>);

#[derive(Debug, Default)]
struct Inode(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    cached: u8,
    durable: u8,
    is_dirty: bool,
    syncs_that_fail: u32,
    handles: Vec<Weak<Mutex<bool>>>,
}

#[derive(Debug)]
struct Handle {
    inode: Arc<Inode>,
    /// An error has to be told.
    failed: Arc<Mutex<bool>>,
    open: Arc<AtomicUsize>,
}

impl State {
    /// Writes what is dirty to the device, as the system may do at any time.
    fn write_back(&mut self) {
        if !std::mem::take(&mut self.is_dirty) {
            return;
        }
        if self.syncs_that_fail > 0 {
            self.syncs_that_fail -= 1;
            for handle in self.handles.iter().filter_map(Weak::upgrade) {
                *handle.lock() = true;
            }
        } else {
            self.durable = self.cached;
        }
    }
}

impl System {
    fn inode(&self, path: &Path) -> Arc<Inode> {
        self.0.lock().entry(path.to_path_buf()).or_default().clone()
    }

    fn durable(&self, path: &Path) -> u8 {
        self.inode(path).0.lock().durable
    }
}

impl Vfs for System {
    fn open(&self, path: &Path, _: Create) -> io::Result<Arc<dyn File>> {
        let inode = self.inode(path);
        let failed = Arc::new(Mutex::new(false));
        inode.0.lock().handles.push(Arc::downgrade(&failed));
        self.1.fetch_add(1, SeqCst);
        Ok(Arc::new(Handle { inode, failed, open: self.1.clone() }))
    }
    fn exists(&self, _: &Path) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.open.fetch_sub(1, SeqCst);
    }
}

impl File for Handle {
    fn read_at(&self, buffer: &mut [u8], _: u64) -> io::Result<()> {
        buffer[0] = self.inode.0.lock().cached;
        Ok(())
    }
    fn write_at(&self, bytes: &[u8], _: u64) -> io::Result<()> {
        let mut state = self.inode.0.lock();
        state.cached = bytes[0];
        state.is_dirty = true;
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.inode.0.lock().write_back();
        thread::yield_now();
        if std::mem::take(&mut *self.failed.lock()) { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
    }
    fn len(&self) -> io::Result<u64> {
        Ok(1)
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn try_lock_exclusive(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A tree that opens a file for each operation, and syncs nothing of its own accord.
#[derive(Debug)]
struct OpenedEachTime(System, PathBuf);

impl OpenedEachTime {
    fn handle(&self) -> Arc<dyn File> {
        self.0.open(&self.1, Create::Never).unwrap()
    }
}

impl File for OpenedEachTime {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.handle().read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.handle().write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.handle().sync()
    }
    fn len(&self) -> io::Result<u64> {
        self.handle().len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.handle().set_len(len)
    }
    fn try_lock_exclusive(&self) -> io::Result<()> {
        self.handle().try_lock_exclusive()
    }
}

const RUNS: usize = 2_000;

fn explore(model: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(model, RUNS);
    shuttle::check_pct(model, RUNS, 3);
}

/// A thread writes a file and syncs it, another one syncs it too, and a third uses another file, so that the
/// first is closed at any time. The device fails once, at any time.
fn writes_and_syncs(system: &System, one: Arc<dyn File>, other: Arc<dyn File>) {
    const ONE: &str = "one";
    system.inode(Path::new(ONE)).0.lock().syncs_that_fail = 1;
    let writer = thread::spawn({
        let (system, one) = (system.clone(), one.clone());
        move || {
            for value in 1..3 {
                one.write_at(&[value], 0).unwrap();
                let mut found = [0];
                one.read_at(&mut found, 0).unwrap();
                assert_eq!(found[0], value);
                if one.sync().is_err() {
                    assert!(one.sync().is_err(), "it was called durable after a failure");
                    return;
                }
                assert_eq!(system.durable(Path::new(ONE)), value, "it was called durable");
            }
        }
    });
    let system_itself = thread::spawn({
        let system = system.clone();
        move || system.inode(Path::new(ONE)).0.lock().write_back()
    });
    let also = thread::spawn({
        let one = one.clone();
        move || drop(one.sync())
    });
    for value in 1..3 {
        other.write_at(&[value], 0).unwrap();
        let mut found = [0];
        other.read_at(&mut found, 0).unwrap();
        assert_eq!(found[0], value);
    }
    writer.join().unwrap();
    system_itself.join().unwrap();
    also.join().unwrap();
}

#[test]
fn what_a_sync_calls_durable_is_although_the_file_is_closed_at_any_time() {
    explore(|| {
        let system = System::default();
        let vfs = FewOpen::new(Arc::new(system.clone()), 1);
        let open = |name: &str| vfs.open(Path::new(name), Create::IfMissing).unwrap();
        let (one, other) = (open("one"), open("other"));
        writes_and_syncs(&system, one.clone(), other.clone());
        assert_eq!(system.1.load(SeqCst), vfs.open_files());
        drop((one, other));
        assert_eq!((system.1.load(SeqCst), vfs.open_files()), (0, 0));
    });
}

/// The canary: files that are closed without a sync.
#[test]
#[should_panic(expected = "it was called durable")]
fn a_file_that_is_closed_without_a_sync_loses_what_it_wrote() {
    find_fault(|| {
        let system = System::default();
        let open = |name: &str| Arc::new(OpenedEachTime(system.clone(), PathBuf::from(name)));
        writes_and_syncs(&system, open("one"), open("other"));
    });
}

#[test]
fn threads_that_want_each_others_places_all_go_on() {
    explore(|| {
        let system = System::default();
        let vfs = FewOpen::new(Arc::new(system.clone()), 1);
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let vfs = vfs.clone();
                thread::spawn(move || {
                    let path = PathBuf::from(number.to_string());
                    let file = vfs.open(&path, Create::IfMissing).unwrap();
                    for value in 1..3 {
                        file.write_at(&[value], 0).unwrap();
                        file.sync().unwrap();
                    }
                    (file, path)
                })
            })
            .collect();
        let files: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(files.iter().all(|(_, path)| system.durable(path) == 2));
        assert_eq!(system.1.load(SeqCst), vfs.open_files());
    });
}

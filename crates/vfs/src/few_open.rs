//! A file tree that keeps only so many files open.
//!
//! A process may have only so many descriptors, and a server many more tables. So a file here is closed
//! behind its owner's back when another one needs its place, and opened again when it is used. The rules:
//!
//! - **A file is closed only when no operation on it is under way.** An operation holds the file's latch
//!   shared. The thread that closes the file takes the latch alone, if that can be at once, and never waits
//!   for it.
//! - **A file with writes that have not been synced is synced before it is closed**, and stays open if that
//!   fails. The operating system reports what it could not write to the descriptors that were open then, and
//!   may forget it when none is. A failure is kept, and every later sync of the file gets it: its owner was
//!   not there when it happened.
//! - **A file that was synced before it was closed has nothing to sync.** So a sync of one returns at once
//!   and opens nothing. A file that has never been synced is opened for it: a process that was killed may
//!   have left something there.
//! - **The mutex of a file's syncs is only tried by a thread that closes the file.** A thread that syncs a
//!   file may have to open it, and to close another one for that: two of them would wait for each other.
//!
//! The file that goes is one that has not been used since the search came by last (the clock algorithm), and
//! if there is one, one that needs no sync. If all are in use the bound is exceeded, so nobody waits for
//! another thread's operation.

use crate::forward::forward_names;
use crate::{Create, File, Vfs};
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use base::sync::{Arc, Mutex, RwLock, Weak};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

base::latch_class!(pub OpenFilesLatch, "open files");

base::latch_class!(pub OpenFileLatch, "open file");

/// How often a file that cannot be opened for want of a descriptor is tried again, each time after another
/// one has been closed: descriptors are used for other things, too.
const TRIES: usize = 16;

/// The errors that say that there is no descriptor: EMFILE and ENFILE of Linux.
const NO_DESCRIPTOR: [i32; 2] = [24, 23];

/// A file tree around another one, of whose files only so many are open at a time. A file is found again by
/// its name: while somebody has it, it may be removed, but not renamed.
#[derive(Clone, Debug)]
pub struct FewOpen {
    inner: Arc<dyn Vfs>,
    open: Arc<OpenFiles>,
}

#[derive(Debug)]
struct OpenFiles {
    most: usize,
    list: Mutex<List, OpenFilesLatch>,
}

/// Which files are open.
#[derive(Debug, Default)]
struct List {
    /// How many are, or are about to be.
    count: usize,
    /// Those that may be closed, in the order in which the search goes through them. A file that a thread is
    /// looking at is not among them.
    queue: BTreeMap<u64, Weak<KeptFile>>,
    next: u64,
}

/// A file that is open or can be opened again.
#[derive(Debug)]
struct KeptFile {
    this: Weak<KeptFile>,
    tree: FewOpen,
    path: PathBuf,
    /// It is opened past the system's cache, for blocks of so many bytes.
    block: Option<usize>,
    /// `None` while it is closed.
    file: RwLock<Option<Arc<dyn File>>, OpenFileLatch>,
    /// Used since the search came by last.
    used: AtomicBool,
    /// Written to since the last sync. Set before the operation gives the latch back.
    unsynced: AtomicBool,
    /// It has a lock, which would go with the descriptor.
    is_locked: AtomicBool,
    /// Held during a sync.
    syncing: Mutex<Syncs>,
    /// The place in the queue. Changed under the list's mutex.
    place: AtomicU64,
}

/// What has become of a file's syncs.
#[derive(Debug, Default)]
struct Syncs {
    /// There was one that succeeded.
    any: bool,
    /// What the first one that failed said.
    failure: Option<(io::ErrorKind, String)>,
}

/// What a search may close.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// A file that needs no sync.
    Clean,
    Any,
}

impl FewOpen {
    /// At most `most` files of `inner` are open at a time, but for those in use, and at least one.
    pub fn new(inner: Arc<dyn Vfs>, most: usize) -> FewOpen {
        let list = Mutex::of_class(List::default());
        FewOpen { inner, open: Arc::new(OpenFiles { most: most.max(1), list }) }
    }

    /// How many files are open.
    pub fn open_files(&self) -> usize {
        self.open.list.lock().count
    }

    fn keep(&self, path: &Path, create: Create, block: Option<usize>) -> io::Result<Arc<dyn File>> {
        self.open.make_room();
        let file = self.open_now(path, create, block).inspect_err(|_| self.open.give_back())?;
        let kept = Arc::new_cyclic(|this| KeptFile {
            this: this.clone(),
            tree: self.clone(),
            path: path.to_path_buf(),
            block,
            file: RwLock::of_class(Some(file)),
            used: AtomicBool::new(true),
            unsynced: AtomicBool::new(false),
            is_locked: AtomicBool::new(false),
            syncing: Mutex::new(Syncs::default()),
            place: AtomicU64::new(u64::MAX),
        });
        self.open.line_up(&kept);
        Ok(kept)
    }

    fn open_now(&self, path: &Path, create: Create, block: Option<usize>) -> io::Result<Arc<dyn File>> {
        let mut tries = 0;
        loop {
            let opened = match block {
                Some(block) => self.inner.open_direct(path, create, block),
                None => self.inner.open(path, create),
            };
            match opened {
                Err(error)
                    if error.raw_os_error().is_some_and(|code| NO_DESCRIPTOR.contains(&code))
                        && tries < TRIES
                        && self.open.close_one() =>
                {
                    self.open.give_back();
                    tries += 1;
                }
                opened => return opened,
            }
        }
    }
}

impl OpenFiles {
    /// Counts a file that is about to be opened, after closing another one if there are too many.
    fn make_room(&self) {
        {
            let mut list = self.list.lock();
            if list.count < self.most {
                list.count += 1;
                return;
            }
        }
        if !self.close_one() {
            self.list.lock().count += 1;
        }
    }

    /// A file has been closed, or has not been opened after all.
    fn give_back(&self) {
        self.list.lock().count -= 1;
    }

    /// The file may be closed from now on.
    fn line_up(&self, file: &Arc<KeptFile>) {
        let mut list = self.list.lock();
        let place = list.next;
        list.next += 1;
        list.queue.insert(place, Arc::downgrade(file));
        // ORDER: under the list's mutex, here and in `drop`.
        file.place.store(place, Relaxed);
    }

    /// Closes a file, which still counts: its place is the caller's. False if none can be closed now.
    fn close_one(&self) -> bool {
        // The first look at a file that has been used only notes that it has not been used since.
        self.search(Closing::Clean) || self.search(Closing::Any) || self.search(Closing::Any)
    }

    /// Looks at each file once.
    fn search(&self, closing: Closing) -> bool {
        let looks = self.list.lock().queue.len();
        for _ in 0..looks {
            let first = self.list.lock().queue.pop_first();
            let Some((_, first)) = first else { return false };
            let Some(file) = first.upgrade() else { continue };
            // ORDER: a hint.
            if !file.used.swap(false, Relaxed) && file.close_if_idle(closing) {
                return true;
            }
            self.line_up(&file);
        }
        false
    }
}

impl KeptFile {
    /// Runs an operation on the open file.
    fn with<T>(&self, operation: impl FnOnce(&dyn File) -> io::Result<T>) -> io::Result<T> {
        loop {
            if let Some(file) = &*self.file.read() {
                // ORDER: a hint, as in `search`. Looked at first, so that the line stays shared.
                if !self.used.load(Relaxed) {
                    self.used.store(true, Relaxed);
                }
                return operation(&**file);
            }
            self.open_again()?;
        }
    }

    /// The same for an operation that leaves something to be synced.
    fn change<T>(&self, operation: impl FnOnce(&dyn File) -> io::Result<T>) -> io::Result<T> {
        self.with(|file| {
            let result = operation(file);
            // CRASH: after the operation: set before, a sync in between would clear it. Whatever the result
            // is, for an operation that failed may have done a part. ORDER: under the latch, which a thread
            // that closes the file takes alone before it looks.
            self.unsynced.store(true, Relaxed);
            result
        })
    }

    #[cold]
    fn open_again(&self) -> io::Result<()> {
        let all = &self.tree.open;
        // With no latch held: a thread that makes room may sync another file.
        all.make_room();
        let opened = self.tree.open_now(&self.path, Create::Never, self.block);
        let mut file = self.file.write();
        match opened {
            Ok(opened) if file.is_none() => {
                *file = Some(opened);
                drop(file);
                if let Some(this) = self.this.upgrade() {
                    all.line_up(&this);
                }
                Ok(())
            }
            // Another thread was faster.
            _ if file.is_some() => {
                all.give_back();
                Ok(())
            }
            opened => {
                all.give_back();
                opened.map(drop)
            }
        }
    }

    /// Closes the file if no operation is under way. True if it was open and is closed.
    fn close_if_idle(&self, closing: Closing) -> bool {
        // ORDER: looked at again under the latch.
        if self.is_locked.load(Relaxed) {
            return false;
        }
        // CRASH: what has been written is durable before the descriptor goes, or the file stays open and its
        // owner's next sync fails.
        if self.unsynced.load(Relaxed) {
            if closing == Closing::Clean {
                return false;
            }
            let Some(mut syncs) = self.syncing.try_lock() else { return false };
            if self.sync_under(&mut syncs).is_err() {
                return false;
            }
        }
        let Some(mut file) = self.file.try_write() else { return false };
        // ORDER: the latch orders both.
        if self.unsynced.load(Relaxed) || self.is_locked.load(Relaxed) {
            return false;
        }
        let closed = file.take();
        drop(file);
        closed.is_some()
    }
}

impl KeptFile {
    fn sync_under(&self, syncs: &mut Syncs) -> io::Result<()> {
        if let Some(failure) = &syncs.failure {
            return Err(failed_before(failure));
        }
        self.with(|file| {
            // ORDER: a write that is not seen here is one that the caller does not know of. Cleared before
            // the sync, so that a write during the sync counts for the next one.
            self.unsynced.store(false, Relaxed);
            match file.sync() {
                Ok(()) => syncs.any = true,
                Err(error) => {
                    // ORDER: under the latch, as in `change`.
                    self.unsynced.store(true, Relaxed);
                    syncs.failure = Some((error.kind(), error.to_string()));
                    return Err(error);
                }
            }
            Ok(())
        })
    }
}

fn failed_before((kind, why): &(io::ErrorKind, String)) -> io::Error {
    io::Error::new(*kind, format!("a sync failed before: {why}"))
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        let is_open = self.file.read().is_some();
        let mut list = self.tree.open.list.lock();
        list.queue.remove(&self.place.load(Relaxed));
        if is_open {
            list.count -= 1;
        }
    }
}

impl Vfs for FewOpen {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        self.keep(path, create, None)
    }

    fn open_direct(&self, path: &Path, create: Create, block: usize) -> io::Result<Arc<dyn File>> {
        self.keep(path, create, Some(block))
    }

    forward_names!(inner);

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
}

impl File for KeptFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|file| file.read_at(buffer, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(|file| file.write_at(bytes, offset))
    }

    fn sync(&self) -> io::Result<()> {
        let mut syncs = self.syncing.lock();
        if syncs.any && self.file.read().is_none() {
            return match &syncs.failure {
                Some(failure) => Err(failed_before(failure)),
                None => Ok(()),
            };
        }
        self.sync_under(&mut syncs)
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|file| file.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|file| file.set_len(len))
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        // What is long enough is not changed, and need not be synced.
        if self.len()? >= len { Ok(()) } else { self.change(|file| file.reserve(len)) }
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        self.change(|file| file.discard(offset, len))
    }

    fn try_lock_exclusive(&self) -> io::Result<()> {
        self.with(|file| {
            file.try_lock_exclusive()?;
            // ORDER: the latch, as in `change`.
            self.is_locked.store(true, Relaxed);
            Ok(())
        })
    }
}

//! A file tree that fails on demand: the nth write, a full disk, half a page.

use crate::{Create, File, Vfs};
use base::sync::{Arc, Mutex};
use std::io;
use std::path::{Path, PathBuf};

/// The operations that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Read,
    Write,
    Sync,
    /// Opening, and everything that changes names.
    Name,
}

/// How it fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing happens but the error.
    Error(io::ErrorKind),
    /// The first half of the bytes is written (or read), then the error: a torn write.
    Torn(io::ErrorKind),
    /// The operation reports success and did nothing: a lost write, a lying device.
    Lost,
}

#[derive(Debug)]
struct Rule {
    operation: Operation,
    /// `None`: the thread panics.
    fault: Option<Fault>,
    /// Operations that still succeed before the fault strikes.
    successes_left: u64,
    /// How many times it strikes; `u64::MAX` = until healed.
    strikes_left: u64,
    /// Only files whose path ends so.
    suffix: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    /// Bytes by which files may still grow before the disk is full.
    free_bytes: Option<u64>,
    counts: [u64; 4],
}

/// The switchboard of a [`FaultyVfs`]: shared by its clones and its open files.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<State>>);

impl Faults {
    /// The `nth` (from 1) operation from now on fails once.
    pub fn fail_nth(&self, operation: Operation, nth: u64, fault: Fault) {
        self.add(operation, nth, 1, None, Some(fault));
    }

    /// The thread that asks for the `nth` (from 1) operation on files whose path ends in `suffix` panics,
    /// once. This stands for a fault of the program.
    pub fn panic_at(&self, suffix: &Path, operation: Operation, nth: u64) {
        self.add(operation, nth, 1, Some(suffix.to_path_buf()), None);
    }

    /// Every operation from the `nth` (from 1) on fails, until [`Faults::heal`].
    pub fn fail_from(&self, operation: Operation, nth: u64, fault: Fault) {
        self.add(operation, nth, u64::MAX, None, Some(fault));
    }

    /// As [`Faults::fail_from`], only for files whose path ends in `suffix` (whole components).
    pub fn fail_file_from(&self, suffix: &Path, operation: Operation, nth: u64, fault: Fault) {
        self.add(operation, nth, u64::MAX, Some(suffix.to_path_buf()), Some(fault));
    }

    /// Files may grow by this many bytes more, then writes fail with `StorageFull` after writing
    /// what fits. `None` = an endless disk.
    pub fn set_free_bytes(&self, bytes: Option<u64>) {
        self.0.lock().free_bytes = bytes;
    }

    /// Forgets every fault, and the disk is endless again.
    pub fn heal(&self) {
        let mut state = self.0.lock();
        state.rules.clear();
        state.free_bytes = None;
    }

    /// How many operations of the kind were asked for so far, failed ones included.
    pub fn count(&self, operation: Operation) -> u64 {
        self.0.lock().counts[operation as usize]
    }

    fn add(
        &self,
        operation: Operation,
        nth: u64,
        strikes: u64,
        suffix: Option<PathBuf>,
        fault: Option<Fault>,
    ) {
        assert!(nth > 0, "operations are counted from 1");
        let rule = Rule { operation, fault, successes_left: nth - 1, strikes_left: strikes, suffix };
        self.0.lock().rules.push(rule);
    }

    /// Counts the operation and says whether it is to fail.
    fn strike(&self, operation: Operation, path: &Path) -> Option<Fault> {
        let mut state = self.0.lock();
        state.counts[operation as usize] += 1;
        let mut struck: Option<Option<Fault>> = None;
        for rule in &mut state.rules {
            if rule.operation != operation || rule.suffix.as_ref().is_some_and(|s| !path.ends_with(s)) {
                continue;
            }
            if rule.successes_left > 0 {
                rule.successes_left -= 1;
            } else if rule.strikes_left > 0 && struck.is_none() {
                rule.strikes_left -= u64::from(rule.strikes_left != u64::MAX);
                struck = Some(rule.fault);
            }
        }
        drop(state);
        assert!(struck != Some(None), "a panic that was asked for: {operation:?} of '{}'", path.display());
        struck.flatten()
    }

    /// Takes `growth` bytes from the free space; gives how many of them fit.
    fn grow(&self, growth: u64) -> u64 {
        let mut state = self.0.lock();
        match &mut state.free_bytes {
            None => growth,
            Some(free) => {
                let fits = growth.min(*free);
                *free -= fits;
                fits
            }
        }
    }
}

/// Wraps another file tree and fails as its [`Faults`] say.
#[derive(Clone, Debug)]
pub struct FaultyVfs {
    inner: Arc<dyn Vfs>,
    faults: Faults,
}

impl FaultyVfs {
    pub fn new(inner: Arc<dyn Vfs>) -> FaultyVfs {
        FaultyVfs { inner, faults: Faults::default() }
    }

    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    fn name_operation<T>(&self, path: &Path, run: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.faults.strike(Operation::Name, path) {
            None | Some(Fault::Lost) => run(),
            Some(Fault::Error(kind) | Fault::Torn(kind)) => Err(kind.into()),
        }
    }
}

impl Vfs for FaultyVfs {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        let inner = self.name_operation(path, || self.inner.open(path, create))?;
        Ok(Arc::new(FaultyFile { inner, path: path.to_path_buf(), faults: self.faults.clone() }))
    }

    fn open_direct(&self, path: &Path, create: Create, block: usize) -> io::Result<Arc<dyn File>> {
        let inner = self.name_operation(path, || self.inner.open_direct(path, create, block))?;
        Ok(Arc::new(FaultyFile { inner, path: path.to_path_buf(), faults: self.faults.clone() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.name_operation(path, || self.inner.remove(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.name_operation(from, || self.inner.rename(from, to))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.name_operation(dir, || self.inner.create_dir_all(dir))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.name_operation(dir, || self.inner.remove_dir(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match self.faults.strike(Operation::Sync, dir) {
            None => self.inner.sync_dir(dir),
            Some(Fault::Lost) => Ok(()),
            Some(Fault::Error(kind) | Fault::Torn(kind)) => Err(kind.into()),
        }
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn File>,
    path: PathBuf,
    faults: Faults,
}

impl FaultyFile {
    /// Takes the room to grow to `len` bytes.
    fn take_space(&self, len: u64) -> io::Result<()> {
        let growth = len.saturating_sub(self.inner.len()?);
        if self.faults.grow(growth) < growth { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// Writes at most what the disk has room for.
    fn write_into_space(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        let growth = end.saturating_sub(self.inner.len()?);
        let missing = growth - self.faults.grow(growth);
        let fits = bytes.len() - usize::try_from(missing).unwrap_or(usize::MAX).min(bytes.len());
        if fits > 0 {
            self.inner.write_at(&bytes[..fits], offset)?;
        }
        if missing > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.faults.strike(Operation::Read, &self.path) {
            None => self.inner.read_at(buffer, offset),
            Some(Fault::Error(kind)) => Err(kind.into()),
            Some(Fault::Torn(kind)) => {
                let half = buffer.len() / 2;
                self.inner.read_at(&mut buffer[..half], offset)?;
                Err(kind.into())
            }
            Some(Fault::Lost) => {
                buffer.fill(0);
                Ok(())
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.faults.strike(Operation::Write, &self.path) {
            None => self.write_into_space(bytes, offset),
            Some(Fault::Error(kind)) => Err(kind.into()),
            Some(Fault::Torn(kind)) => {
                self.write_into_space(&bytes[..bytes.len() / 2], offset)?;
                Err(kind.into())
            }
            Some(Fault::Lost) => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self.faults.strike(Operation::Sync, &self.path) {
            None => self.inner.sync(),
            Some(Fault::Lost) => Ok(()),
            Some(Fault::Error(kind) | Fault::Torn(kind)) => Err(kind.into()),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.take_space(len)?;
        self.inner.set_len(len)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        self.take_space(len)?;
        self.inner.reserve(len)
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.discard(offset, len)
    }

    fn try_lock_exclusive(&self) -> io::Result<()> {
        self.inner.try_lock_exclusive()
    }
}

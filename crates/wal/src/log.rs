//! The log itself: making, opening, its state, checkpoints.

use crate::checkpoint::{Checkpoint, Checkpoints};
use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::files::{self, Files, LogFile, chain_from, clear_from, remove_others, scan};
use crate::flush::{Durability, Leading};
use crate::format::{ALIGNMENT, FILE_HEADER_BYTES, FIRST_LSN};
use crate::reader::{End, Reader};
use crate::reserve::Reserve;
use crate::ring::Ring;
use crate::slots::Slots;
use base::Lsn;
use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use base::sync::{Arc, CachePadded, Condvar, Mutex, OnceLock};
use std::path::Path;
use vfs::Vfs;

base::latch_class!(pub DeviceLatch, "log device");

base::latch_class!(pub LeaderLatch, "log leader");

/// A log that is written to. Shared by all threads that append and flush.
///
/// If it is dropped without a flush, records that were not flushed are lost, as by a crash.
#[derive(Debug)]
pub struct Log {
    /// The next LSN to be given out. The one word that all appending threads write.
    pub(crate) next: CachePadded<AtomicU64>,
    pub(crate) slots: Slots,
    pub(crate) ring: Ring,
    /// Everything below has been handed to the operating system, and its room in the ring is free. Changed by
    /// the leader, under `leading` (wal R4).
    pub(crate) written: CachePadded<AtomicU64>,
    /// Everything below is durable. Changed by the leader, under `leading` (wal R4).
    pub(crate) synced: CachePadded<AtomicU64>,
    pub(crate) leading: Mutex<Leading, LeaderLatch>,
    /// `written` has grown, or there is no leader.
    pub(crate) write_done: Condvar,
    /// There is no leader.
    pub(crate) lead_ended: Condvar,
    /// What only the leader touches.
    pub(crate) device: Mutex<Device, DeviceLatch>,
    pub(crate) files: Files,
    pub(crate) poison: OnceLock<String>,
    pub(crate) counters: Counters,
    checkpoints: Mutex<Checkpoints>,
}

/// What the leader works with.
#[derive(Debug, Default)]
pub(crate) struct Device {
    /// The bytes of the next write, copied out of the ring.
    pub staging: Vec<u8>,
    /// The file of the last write.
    pub current: Option<LogFile>,
    /// Files that were written to since they were last synced.
    pub unsynced: Vec<LogFile>,
}

/// Counters that leaders write, and threads that wait for room, so rarely.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub writes: AtomicU64,
    pub syncs: AtomicU64,
    pub waits: AtomicU64,
}

/// What a log has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogStatus {
    /// The next LSN to be given out.
    pub next: Lsn,
    /// Everything below is with the operating system.
    pub written: Lsn,
    /// Everything below is durable.
    pub synced: Lsn,
    /// Writes to the device since the start.
    pub writes: u64,
    /// Rounds of syncs since the start. Compared with the number of commits they tell how well commits share
    /// syncs.
    pub syncs: u64,
    /// How often an append found the ring full.
    pub waits: u64,
    /// Files, those made ahead included.
    pub files: usize,
}

impl Log {
    /// Makes a log in a folder that has none; the folder is made if need be.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for settings that are not valid, and for a folder that has a log already;
    /// [`Error::Io`].
    pub fn create(vfs: Arc<dyn Vfs>, config: LogConfig) -> Result<Log> {
        config.check()?;
        let dir = config.dir.clone();
        vfs.create_dir_all(&dir).map_err(|source| Error::io(&dir, source))?;
        if files::exist(&*vfs, &dir)? {
            return Err(Error::Config { why: format!("{}: there is a log already", dir.display()) });
        }
        remove_others(&*vfs, &dir, &[])?;
        let parent = match dir.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        files::sync_dir(&*vfs, parent)?;
        let checkpoints = Checkpoints::open(&*vfs, &dir)?;
        if let Some(checkpoint) = checkpoints.durable() {
            let why = format!("{}: a checkpoint at {}, but no log", dir.display(), checkpoint.lsn);
            return Err(Error::Config { why });
        }
        let log = Log::new(vfs, config, Vec::new(), checkpoints, FIRST_LSN);
        // CRASH: the first file is made last, so that there is a whole log or none.
        log.files.holding(FIRST_LSN.0)?;
        Ok(log)
    }

    /// Opens the log in `config.dir` to go on at `end`, where a [`Reader`] found no further record. What lies
    /// behind `end` is made zero, so that it is not taken for a record that follows new ones. What lies
    /// before `end` is made durable.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if no file of the log holds the checkpoint's needed LSN, or they do not reach
    /// `end`; [`Error::Checkpoint`] if `end` is before the checkpoint: synced records are gone, and the log
    /// must not go on as if they had never been; [`Error::Config`]; [`Error::Io`]; [`Error::WrongFormat`].
    /// After any of them, reading finds the same records as before.
    pub fn open_at(vfs: Arc<dyn Vfs>, config: LogConfig, end: Lsn) -> Result<Log> {
        config.check()?;
        let dir = &config.dir;
        if !end.0.is_multiple_of(ALIGNMENT) {
            return Err(Error::Config { why: format!("log position {end}: no record begins there") });
        }
        let checkpoints = Checkpoints::open(&*vfs, dir)?;
        if let Some(checkpoint) = checkpoints.durable()
            && end < checkpoint.lsn
        {
            // The log was durable up to there before the checkpoint was. So the device has lost durable
            // records.
            let why = format!(
                "{}: the log ends at {end}, before its checkpoint at {}",
                dir.display(),
                checkpoint.lsn
            );
            return Err(Error::Checkpoint { why });
        }
        // First of all: what follows may need its room.
        Reserve::remove(&*vfs, dir)?;
        let needed = checkpoints.durable().map_or(FIRST_LSN, |checkpoint| checkpoint.needed);
        let missing = || Error::Missing { dir: dir.clone(), lsn: end };
        let scanned = scan(&*vfs, dir)?;
        // At the border behind the last file nothing else may be needed.
        let from = match scanned.last() {
            Some(last) if last.end() == needed.0 => last.first(),
            _ => needed.0,
        };
        let mut chain = chain_from(scanned, from);
        // A cut file in the middle ends the log. Nothing beyond it was read.
        chain.retain(|file| file.first() <= end.0);
        if chain.is_empty() || chain.last().is_some_and(|last| last.end() < end.0) {
            return Err(missing());
        }
        for file in &chain {
            if file.readable < file.header.capacity {
                if file.first() + file.readable < end.0 {
                    return Err(missing());
                }
                let whole = file.header.capacity + FILE_HEADER_BYTES;
                file.file.set_len(whole).map_err(|source| file.error(source))?;
            }
        }
        // CRASH: all of this may be done again. Until the first new record, reading ends at the same
        // position.
        remove_others(&*vfs, dir, &chain)?;
        for file in &mut chain {
            file.readable = file.header.capacity;
            if file.holds(end.0) {
                clear_from(file, end.0)?;
            } else {
                // Perhaps only the operating system has what was read. The owner is about to rely on it, so
                // it is synced.
                file.file.sync().map_err(|source| file.error(source))?;
            }
        }
        Ok(Log::new(vfs, config, chain, checkpoints, end))
    }

    fn new(
        vfs: Arc<dyn Vfs>,
        config: LogConfig,
        files: Vec<LogFile>,
        checkpoints: Checkpoints,
        end: Lsn,
    ) -> Log {
        Log {
            next: CachePadded(AtomicU64::new(end.0)),
            slots: Slots::new(),
            ring: Ring::new(config.buffer_size),
            written: CachePadded(AtomicU64::new(end.0)),
            synced: CachePadded(AtomicU64::new(end.0)),
            leading: Mutex::of_class(Leading::default()),
            write_done: Condvar::new(),
            lead_ended: Condvar::new(),
            device: Mutex::of_class(Device::default()),
            files: Files::new(vfs, config, files),
            poison: OnceLock::new(),
            counters: Counters::default(),
            checkpoints: Mutex::new(checkpoints),
        }
    }

    /// The next LSN to be given out: above everything appended so far.
    pub fn next_lsn(&self) -> Lsn {
        // ORDER: Acquire, so that a thread that saw a record's LSN elsewhere gets no smaller end here.
        Lsn(self.next.load(Acquire))
    }

    /// Everything below is with the operating system, and survives this process.
    pub fn written_lsn(&self) -> Lsn {
        // ORDER: Acquire meets the leader's Release after the write.
        Lsn(self.written.load(Acquire))
    }

    /// Everything below is durable, and survives this machine.
    pub fn flushed_lsn(&self) -> Lsn {
        // ORDER: Acquire meets the leader's Release after the sync.
        Lsn(self.synced.load(Acquire))
    }

    /// Why the log takes nothing more; `None` while all is well.
    pub fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    pub fn status(&self) -> LogStatus {
        // ORDER: figures for people.
        LogStatus {
            next: self.next_lsn(),
            written: self.written_lsn(),
            synced: self.flushed_lsn(),
            writes: self.counters.writes.load(Relaxed),
            syncs: self.counters.syncs.load(Relaxed),
            waits: self.counters.waits.load(Relaxed),
            files: self.files.list().len(),
        }
    }

    /// Reads what is written of a log in use, from `lsn` on, where a record begins. Not below the needed LSN:
    /// a file removed or used again meanwhile ends the reading.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if no file holds `lsn`.
    pub fn read_from(&self, lsn: Lsn) -> Result<Reader> {
        let written = self.written_lsn();
        let files = self.files.list();
        if lsn != written && !files.iter().any(|file| file.holds(lsn.0)) {
            return Err(Error::Missing { dir: self.files.dir().to_path_buf(), lsn });
        }
        Ok(Reader::new(files, lsn, (written.0, End::Written)))
    }

    /// Makes the next file, unless there is one. To be called by a thread that has time, so that no commit
    /// has to wait for it.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`]; [`Error::Io`]: nothing is lost by that, and it is tried again when the file is
    /// needed. Only then does a failure poison the log.
    pub fn prepare_file(&self) -> Result<()> {
        self.check_poison()?;
        self.files.prepare_behind(self.next_lsn().0)
    }

    /// The end of the existing files. A thread that writes the log beyond it makes a file first.
    pub fn prepared_lsn(&self) -> Lsn {
        self.files.end().map_or(FIRST_LSN, Lsn)
    }

    /// Sets `bytes` of the disk aside, in a file of its own: for the log's next files if the disk is full
    /// when they are needed, and for what [`Log::give_reserve`] gives it up for. Less than is set aside
    /// already changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]: what was set aside before still is.
    pub fn keep_reserve(&self, bytes: u64) -> Result<()> {
        self.files.reserve.keep(bytes)
    }

    /// Gives up what is set aside beyond `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn trim_reserve(&self, bytes: u64) -> Result<()> {
        self.files.reserve.trim(bytes)
    }

    /// Gives up so many of the bytes set aside, or what is left of them, for a thread that has met a full
    /// disk and must go on. False if nothing is left.
    pub fn give_reserve(&self, bytes: u64) -> bool {
        self.files.reserve.give(bytes)
    }

    /// Bytes that are set aside.
    pub fn reserve(&self) -> u64 {
        self.files.reserve.bytes()
    }

    /// The last durable checkpoint.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoints.lock().durable()
    }

    /// Flushes what was appended so far and makes the checkpoint durable. The owner sees to it that all pages
    /// changed below `needed` are on the device before (wal R9).
    ///
    /// # Errors
    ///
    /// [`Error::Checkpoint`] if `needed` is above `lsn`, or below what it was, or `lsn` was never given out.
    /// Those of [`Log::flush`]. [`Error::Io`]: the checkpoint before holds, or this one; it may be tried
    /// again.
    pub fn write_checkpoint(&self, checkpoint: Checkpoint) -> Result<()> {
        let next = self.next_lsn();
        self.flush(next, Durability::Synced)?;
        let mut checkpoints = self.checkpoints.lock();
        let before = checkpoints.durable().map_or(FIRST_LSN, |checkpoint| checkpoint.needed);
        if checkpoint.needed < before || checkpoint.lsn < checkpoint.needed || next < checkpoint.lsn {
            let Checkpoint { lsn, needed, .. } = checkpoint;
            let why = format!(
                "a checkpoint at {lsn} that needs {needed}, after {before} was needed, before {next}"
            );
            return Err(Error::Checkpoint { why });
        }
        checkpoints.write(checkpoint)
    }

    /// Removes the files wholly below the durable checkpoint's needed LSN, or keeps some as spare ones. Gives
    /// their number.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]: the log works on, and a file that was left behind is removed at the next start.
    /// [`Error::Poisoned`].
    pub fn remove_unneeded(&self) -> Result<usize> {
        self.check_poison()?;
        match self.checkpoint() {
            Some(checkpoint) => self.files.remove_below(checkpoint.needed.0, self.written_lsn().0),
            None => Ok(0),
        }
    }

    pub(crate) fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(why) => Err(Error::Poisoned { why: why.clone() }),
        }
    }

    /// From now on nothing is accepted, and all threads that wait are told (wal R7). The first reason stays.
    pub(crate) fn poison(&self, why: String) -> Error {
        let why = self.poison.get_or_init(|| why).clone();
        // Under the mutex: a thread that looked before waits by now, and is woken.
        drop(self.leading.lock());
        self.write_done.notify_all();
        self.lead_ended.notify_all();
        Error::Poisoned { why }
    }
}

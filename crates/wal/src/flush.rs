//! Flushing: one of the threads that wait writes and syncs for all.
//!
//! There is no flusher thread and no timer. A thread that finds no leader leads (wal R5): it writes
//! everything complete, syncs, and wakes the others. Records that are appended while it syncs are the next
//! leader's. So the slower the device is, the more records share a sync.

use crate::error::{Error, Result};
use crate::files::LogFile;
use crate::log::{Device, Log};
use base::Lsn;
use base::phases;
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use base::sync::{MutexGuard, hint, thread};
use std::io;
use std::time::Duration;

/// Bytes written at once: enough that the cost of a call does not count.
const WRITE_MAX: u64 = 1 << 20;

/// How often a thread looks for progress before it gives up the processor. A copy takes less than a
/// microsecond.
#[cfg(not(feature = "shuttle"))]
const SPINS: u32 = 100;
#[cfg(feature = "shuttle")]
const SPINS: u32 = 1;

/// How long the leader pauses between two looks whether a full disk has room again.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// How safe a record is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// The operating system has it, so it survives this process.
    Written,
    /// The device has it, so it survives a stop of the machine.
    Synced,
}

/// Whether a thread leads.
#[derive(Debug, Default)]
pub(crate) struct Leading {
    pub has_leader: bool,
}

/// The right to write. Whatever happens to its holder, the right ends, and all threads that wait look again
/// (wal R5).
#[derive(Debug)]
pub(crate) struct Leadership<'l> {
    log: &'l Log,
}

impl Drop for Leadership<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.log.poison("a thread that wrote the log panicked".to_string());
        }
        self.log.leading.lock().has_leader = false;
        self.log.write_done.notify_all();
        self.log.lead_ended.notify_all();
    }
}

/// How a leader's round of writing ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Everything below is written.
    pub written: u64,
    pub has_progress: bool,
}

impl Log {
    /// Returns when everything below `up_to` is as safe as asked.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`] if that can never be promised any more: the caller's records may or may not
    /// survive. What was safe before stays safe, and a flush up to there still succeeds. [`Error::Beyond`] if
    /// `up_to` was never given out.
    pub fn flush(&self, up_to: Lsn, durability: Durability) -> Result<()> {
        if self.is_safe(up_to.0, durability) {
            return Ok(());
        }
        let _log = phases::enter(phases::Phase::Log);
        let next = self.next_lsn();
        if next < up_to {
            return Err(Error::Beyond { lsn: up_to, next });
        }
        let mut leading = self.leading.lock();
        let leadership = loop {
            if self.is_safe(up_to.0, durability) {
                return Ok(());
            }
            self.check_poison()?;
            if !leading.has_leader {
                break self.take_leadership(&mut leading);
            }
            leading = match durability {
                Durability::Written => self.write_done.wait(leading),
                Durability::Synced => self.lead_ended.wait(leading),
            };
        };
        drop(leading);
        let written = self.write_up_to(up_to.0, &leadership)?;
        match durability {
            Durability::Written => Ok(()),
            Durability::Synced => self.sync_up_to(written, &leadership),
        }
    }

    fn is_safe(&self, up_to: u64, durability: Durability) -> bool {
        let safe = match durability {
            Durability::Written => &self.written,
            Durability::Synced => &self.synced,
        };
        // ORDER: Acquire meets the Release that the leader makes after the device has confirmed.
        safe.load(Acquire) >= up_to
    }

    /// The caller has seen that there is no leader.
    pub(crate) fn take_leadership(&self, leading: &mut MutexGuard<'_, Leading>) -> Leadership<'_> {
        assert!(!leading.has_leader, "one leader at a time");
        leading.has_leader = true;
        Leadership { log: self }
    }

    /// Writes until everything below `up_to` is written, and gives the position up to which it is.
    fn write_up_to(&self, up_to: u64, leadership: &Leadership<'_>) -> Result<u64> {
        let mut spins = 0;
        loop {
            let round = self.write_complete(leadership)?;
            if round.written >= up_to {
                return Ok(round.written);
            }
            self.check_poison()?;
            // A thread is copying. If it waits for room, it has just got some.
            if round.has_progress {
                spins = 0;
            }
            if spins < SPINS {
                spins += 1;
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }

    /// Writes what is complete. A failure poisons the log.
    pub(crate) fn write_complete(&self, _leadership: &Leadership<'_>) -> Result<Round> {
        // ORDER: only leaders change it (wal R4), and leadership passes through a mutex.
        let from = self.written.load(Relaxed);
        let to = self.slots.complete_up_to(&self.next);
        // Looked at after that: an append that failed leaves its slot and poisons the log, and a poisoned log
        // is not written to (wal R7).
        self.check_poison()?;
        let mut at = from;
        // Always free: only the leader takes it.
        let mut device = self.device.lock();
        while at < to {
            at += self.write_piece(&mut device, at, to)?;
            self.set_written(at);
        }
        Ok(Round { written: at, has_progress: at > from })
    }

    /// Writes from `at` on, at most up to `to`, inside one file, and gives the number of bytes.
    fn write_piece(&self, device: &mut Device, at: u64, to: u64) -> Result<u64> {
        let Device { staging, current, unsynced } = device;
        let file = match current.take() {
            Some(file) if file.holds(at) => file,
            _ => self.file_for(at)?,
        };
        let bytes = (to - at).min(file.end() - at).min(WRITE_MAX);
        staging.resize(bytes as usize, 0);
        self.ring.copy_out(at, staging);
        if unsynced.last().is_none_or(|last| last.first() != file.first()) {
            unsynced.push(file.clone());
        }
        // CRASH: after a crash the device may have any part of this. A record that is not all there fails its
        // checksum.
        let written = file.file.write_at(staging, file.offset(at));
        // ORDER: a figure for people.
        self.counters.writes.fetch_add(1, Relaxed);
        written.map_err(|error| self.poison(format!("{}: write: {error}", file.path.display())))?;
        *current = Some(file);
        Ok(bytes)
    }

    /// The file that holds `at`; if it has to be made on a full disk, from the reserve, or after a wait for
    /// room. Nothing has been written of what belongs there, so nothing is unknown meanwhile. A failure
    /// poisons.
    fn file_for(&self, at: u64) -> Result<LogFile> {
        let config = self.files.config();
        let mut waited = Duration::ZERO;
        loop {
            match self.files.holding(at) {
                Ok(file) => return Ok(file),
                Err(error) if error.is_full() && self.files.reserve.give(config.file_size) => {}
                Err(error) if error.is_full() && waited < config.full_wait => {
                    thread::sleep(FULL_PAUSE);
                    waited += FULL_PAUSE;
                }
                Err(error) => return Err(self.poison(error.to_string())),
            }
        }
    }

    fn set_written(&self, written: u64) {
        // Under the mutex, so that no thread decides to wait between this and the wake-up (wal R4).
        let leading = self.leading.lock();
        // ORDER: Release: the words below have been read, and a writer that sees this may overwrite them (wal
        // R2).
        self.written.store(written, Release);
        drop(leading);
        self.write_done.notify_all();
    }

    /// Makes everything below `written` durable. A failure poisons the log.
    fn sync_up_to(&self, written: u64, _leadership: &Leadership<'_>) -> Result<()> {
        let mut device = self.device.lock();
        for file in &device.unsynced {
            // CRASH: after a failed sync the operating system may have thrown away what it could not write,
            // and a second sync would report success. Nothing more may be called durable.
            file.file
                .sync()
                .map_err(|error: io::Error| self.poison(format!("{}: sync: {error}", file.path.display())))?;
        }
        device.unsynced.clear();
        drop(device);
        // ORDER: a figure for people.
        self.counters.syncs.fetch_add(1, Relaxed);
        // Threads that wait for it are woken when the leadership ends. Both pass through the mutex (wal R4).
        // ORDER: Release: the device's answer comes before.
        self.synced.store(written, Release);
        Ok(())
    }
}

//! The planned faults, their times, and the faults so far.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What goes wrong in a [`SimVfs`](super::SimVfs), counted from the moment that the plan is set. Nothing, by
/// default.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// When the machine stops: every operation from then on fails.
    pub cut: Option<Cut>,
    /// Files may grow by this many bytes, together; then a write writes what fits and fails with
    /// `StorageFull`. What is removed or cut short makes room.
    pub free_bytes: Option<u64>,
    /// One sync that fails.
    pub failed_sync: Option<FailedSync>,
    /// One operation that fails with an error of the device and changes nothing: which one, counted from 1.
    /// Reads, look-ups and opening count too, unlike in [`Cut::AfterEvent`]. A sync that fails so keeps its
    /// data unsynced.
    pub failed_operation: Option<u64>,
}

/// Where a machine stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// After so many events (see [`EventKind`]). With 0 nothing happens at all.
    AfterEvent(u64),
    /// Instead of this sync of a file or a folder, counted from 1: where the most is unsynced.
    BeforeSync(u64),
}

/// A sync, of a file or of a folder, that reports an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedSync {
    /// Which one, counted from 1.
    pub nth: u64,
    pub dirty: Dirty,
}

/// The fate of unsynced data when their sync fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dirty {
    /// The data stay unsynced. A later sync that succeeds makes them durable.
    Kept,
    /// As on Linux: some of the data may have been written, all of them are called clean, later syncs succeed
    /// without them, and reads show them until the crash. Names are never forgotten.
    Forgotten { seed: u64 },
}

/// Operations that change something, or make it durable. Reads, look-ups and opening an existing file are not
/// events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A file was created by opening it.
    Create,
    Write,
    /// Also of `reserve`.
    SetLen,
    Sync,
    Remove,
    Rename,
    /// One for each folder that `create_dir_all` makes.
    CreateDir,
    RemoveDir,
    SyncDir,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Counted from 1.
    pub number: u64,
    pub kind: EventKind,
    /// The path of a rename is the old one; that of an operation on a file, the one that it was opened by.
    pub path: PathBuf,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}, {:?} of {}", self.number, self.kind, self.path.display())
    }
}

fn failed_operation() -> io::Error {
    io::Error::other("the simulated device failed")
}

/// A plan and what was counted since it was set.
#[derive(Debug, Default)]
pub(super) struct Progress {
    plan: Plan,
    pub(super) operations: u64,
    pub(super) events: u64,
    pub(super) syncs: u64,
    pub(super) last: Option<Event>,
    stopped: bool,
}

impl Progress {
    pub(super) fn new(plan: Plan) -> Progress {
        Progress { plan, ..Progress::default() }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped || self.plan.cut == Some(Cut::AfterEvent(self.events))
    }

    /// Counts an operation. Called once by each, before it does anything.
    pub(super) fn operation(&mut self) -> io::Result<()> {
        self.check_running()?;
        self.operations += 1;
        if self.plan.failed_operation == Some(self.operations) { Err(failed_operation()) } else { Ok(()) }
    }

    fn check_running(&self) -> io::Result<()> {
        if self.stopped() { Err(io::Error::other("the simulated machine has stopped")) } else { Ok(()) }
    }

    /// Counts an event that is about to happen.
    pub(super) fn event(&mut self, kind: EventKind, path: &Path) -> io::Result<()> {
        self.check_running()?;
        self.events += 1;
        self.last = Some(Event { number: self.events, kind, path: path.to_path_buf() });
        Ok(())
    }

    /// Counts a sync that is about to happen, and says whether it is to fail.
    pub(super) fn sync(&mut self, kind: EventKind, path: &Path) -> io::Result<Option<Dirty>> {
        self.stopped |= self.plan.cut == Some(Cut::BeforeSync(self.syncs + 1));
        self.event(kind, path)?;
        self.syncs += 1;
        Ok(self.plan.failed_sync.filter(|failed| failed.nth == self.syncs).map(|failed| failed.dirty))
    }
}

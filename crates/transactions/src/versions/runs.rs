//! The runs: which files have versions, and what becomes of them.
//!
//! A version is in memory until the run that has it is listed. A reader looks at memory first and lists the
//! runs afterwards, so it does not miss a version that goes from one to the other (transactions R14).

use super::chain::Found;
use super::run::{Cursor, Interval, Record, Run, Undecided, Writer};
use super::{end_of, interval_of, pin, row_order};
use crate::files::{VersionFile, VersionFiles};
use crate::registry::Live;
use crate::status::StatusTable;
use base::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use base::sync::{Arc, Mutex, Weak};
use std::io;

base::latch_class!(pub VersionRunsLatch, "files of row versions");

/// So many runs of a level become one of the next. So their number grows with the logarithm of what is in
/// them, and a version is written again as often.
#[cfg(not(feature = "shuttle"))]
const MERGED: usize = 4;
#[cfg(feature = "shuttle")]
const MERGED: usize = 2;

/// So many records are merged between two questions whether to go on.
const ASKED_EVERY: u64 = 1_024;

/// What files have of old versions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SpilledUsage {
    /// How many files there are.
    pub files: u64,
    /// How long they are, in bytes.
    pub file_bytes: u64,
    /// How many versions they have.
    pub versions: u64,
    /// Bytes of memory by which the versions are found.
    pub memory_bytes: u64,
    /// How many versions have gone from memory to files since the start.
    pub spilled: u64,
}

#[derive(Debug)]
pub struct Runs {
    files: Option<Arc<dyn VersionFiles>>,
    limit_bytes: AtomicU64,
    /// False while there are none.
    is_any: AtomicBool,
    /// Oldest first, as far as they have not been merged.
    list: Mutex<Arc<[Arc<Run>]>, VersionRunsLatch>,
    /// Held by the thread that merges.
    merging: Mutex<Merging>,
    spilled: AtomicU64,
}

/// What is known from earlier attempts to merge.
#[derive(Debug, Default)]
struct Merging {
    /// Runs whose merging has failed: it is not tried again until one of them has gone or another has come.
    failed: Vec<Weak<Run>>,
}

/// Where what a row was for a snapshot may be: in files, which are read by [`crate::View::read_spilled`], and
/// not under a latch.
#[derive(Clone, Debug)]
pub struct Spilled {
    runs: Vec<Arc<Run>>,
    table: u64,
    key: Box<[u8]>,
    /// What holds if it is in none of them.
    otherwise: Found,
}

impl PartialEq for Spilled {
    fn eq(&self, other: &Spilled) -> bool {
        (self.table, &self.key, &self.otherwise) == (other.table, &other.key, &other.otherwise)
            && self.runs.iter().map(Arc::as_ptr).eq(other.runs.iter().map(Arc::as_ptr))
    }
}

impl Eq for Spilled {}

impl Spilled {
    /// `None`: no file has it.
    pub fn among(runs: Vec<Arc<Run>>, (table, key): (u64, &[u8]), otherwise: Found) -> Found {
        match runs.is_empty() {
            true => otherwise,
            false => Found::Spilled(Box::new(Spilled { runs, table, key: key.into(), otherwise })),
        }
    }

    /// # Errors
    /// Those of the files, also if one does not give back what was written.
    pub fn read(&self, sees: impl Fn(u64) -> bool) -> io::Result<Found> {
        for run in &self.runs {
            if let Some(found) = run.find((self.table, &self.key), &sees)? {
                return Ok(found);
            }
        }
        Ok(self.otherwise.clone())
    }
}

impl Runs {
    pub fn new(files: Option<Arc<dyn VersionFiles>>, limit_bytes: u64) -> Runs {
        Runs {
            files,
            limit_bytes: AtomicU64::new(limit_bytes),
            is_any: AtomicBool::new(false),
            list: Mutex::of_class(Arc::default()),
            merging: Mutex::default(),
            spilled: AtomicU64::new(0),
        }
    }

    /// To be asked with the shard's latch before the chain is believed to be all that there is of a row.
    #[inline]
    pub fn is_any(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `replace`. A version that has gone from its shard to a run
        // went under the shard's latch, after this was set. If it has been cleared since, the run was needed
        // by cancelled snapshots alone, and who reads that sees the cancellation.
        self.is_any.load(Acquire)
    }

    pub fn list(&self) -> Arc<[Arc<Run>]> {
        self.list.lock().clone()
    }

    /// The runs that may have what a row was.
    pub fn with(&self, may_have: impl Fn(&Run) -> bool) -> Vec<Arc<Run>> {
        self.list().iter().filter(|run| may_have(run)).cloned().collect()
    }

    /// True if versions that this transaction left while it was under way are in files.
    pub fn has_undecided(&self, writer: u64) -> bool {
        let is_of =
            |run: &Arc<Run>| run.undecided.as_ref().is_some_and(|undecided| undecided.writer == writer);
        self.is_any() && self.list().iter().any(is_of)
    }

    /// Changes the list.
    fn replace(&self, change: impl FnOnce(&mut Vec<Arc<Run>>)) {
        let mut list = self.list.lock();
        let mut runs = list.to_vec();
        change(&mut runs);
        // ORDER: Release: see `is_any`. Under the latch, so it says what the list has.
        self.is_any.store(!runs.is_empty(), Release);
        let before = std::mem::replace(&mut *list, runs.into());
        drop(list);
        // To close a large file takes a while.
        drop(before);
    }

    /// Begins a run. What a transaction leaves while it is under way may have as many bytes as it takes.
    ///
    /// # Errors
    /// Those of the file; `Unsupported` if there are to be none.
    pub fn writer(&self, level: u32, undecided: Option<Arc<Undecided>>) -> io::Result<Writer> {
        let files = self.files.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let room = match undecided {
            Some(_) => u64::MAX,
            None => {
                let limited = |run: &&Arc<Run>| run.undecided.is_none();
                self.limit().saturating_sub(self.list().iter().filter(limited).map(|run| run.bytes).sum())
            }
        };
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file: Arc<dyn VersionFile> = files.create()?;
        Ok(Writer::new(file, room, level, undecided))
    }

    /// From now on readers look into this run. What it has is to leave memory afterwards.
    pub fn publish(&self, run: Run) {
        // ORDER: Relaxed: a count for reports.
        self.spilled.fetch_add(run.versions, Relaxed);
        self.replace(|runs| runs.push(Arc::new(run)));
    }

    /// Drops the runs that no snapshot needs. True if there were any.
    pub fn purge(&self, status: &StatusTable, live: &Live) -> bool {
        if !self.is_any() {
            return false;
        }
        // A run may have come since, for a snapshot that has.
        let is_needed = |run: &Arc<Run>| {
            let Interval { from, to } = run.interval(|id| end_of(status, id));
            pin(live, from, to).is_some() && !run.is_taken_back()
        };
        let is_any_over = !self.list().iter().all(is_needed);
        if is_any_over {
            self.replace(|runs| runs.retain(is_needed));
        }
        is_any_over
    }

    /// Merges runs, if there are many of a size, and leaves out what no snapshot needs. To be called by a
    /// thread that has time. Gives up as soon as `goes_on` says so.
    pub fn merge(&self, status: &StatusTable, live: impl Fn() -> Live, goes_on: impl Fn() -> bool) {
        let Some(mut merging) = self.merging.try_lock() else { return };
        while let Some(inputs) = self.due_to_merge(status) {
            if merging.failed.iter().map(Weak::as_ptr).eq(inputs.runs.iter().map(Arc::as_ptr)) {
                return;
            }
            match self.merged(&inputs, status, &live(), &goes_on) {
                Ok(merged) => self.replace(|runs| {
                    let at = runs.iter().position(|run| Arc::ptr_eq(run, &inputs.runs[0])).unwrap_or(0);
                    // One that has gone meanwhile was not needed: what is left of it in the new one does no
                    // harm.
                    runs.retain(|run| !inputs.runs.iter().any(|input| Arc::ptr_eq(run, input)));
                    let at = at.min(runs.len());
                    runs.splice(at..at, merged.map(Arc::new));
                }),
                Err(_) if !goes_on() => return,
                // They stay as they are, and whoever reads them meets the fault.
                Err(_) => {
                    merging.failed = inputs.runs.iter().map(Arc::downgrade).collect();
                    return;
                }
            }
        }
        merging.failed.clear();
    }

    /// Drops the runs of a transaction that has taken everything back.
    pub fn drop_taken_back(&self, undecided: &[Arc<Undecided>]) {
        if !undecided.is_empty() {
            self.replace(|runs| runs.retain(|run| !run.is_taken_back()));
        }
    }

    /// Runs of a level, either of transactions that have ended or of one that has not: what that one takes
    /// back must not hold in any of them.
    fn due_to_merge(&self, status: &StatusTable) -> Option<Inputs> {
        let runs = self.list();
        let kinds: Vec<Kind> = runs.iter().map(|run| Kind::of(run, status)).collect();
        let is_due = |kind: &&Kind| kinds.iter().filter(|other| other == kind).count() >= MERGED;
        let kind = kinds.iter().find(is_due)?;
        let like = runs.iter().zip(&kinds).filter(|(_, other)| *other == kind);
        let runs = like.take(MERGED).map(|(run, _)| run.clone()).collect();
        Some(Inputs { runs, kind: kind.clone() })
    }

    fn merged(
        &self,
        Inputs { runs, kind }: &Inputs,
        status: &StatusTable,
        live: &Live,
        goes_on: impl Fn() -> bool,
    ) -> io::Result<Option<Run>> {
        let mut writer = self.writer(kind.level + 1, kind.undecided.clone())?;
        let cursors: io::Result<Vec<Cursor>> = runs.iter().cloned().map(Cursor::new).collect();
        let mut cursors = cursors?;
        let mut records: u64 = 0;
        while let Some(first) = first_of(&cursors)? {
            if let Some(record) = cursors[first].record()? {
                let interval = interval_of(status, record.superseded_by, record.origin);
                if runs[first].holds(&record) && pin(live, interval.from, interval.to).is_some() {
                    let change = if kind.undecided.is_some() { record.change } else { 0 };
                    writer.push(&Record { change, ..record }, interval)?;
                }
            }
            cursors[first].advance()?;
            records += 1;
            if records.is_multiple_of(ASKED_EVERY) && !goes_on() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        writer.finish()
    }

    pub fn usage(&self) -> SpilledUsage {
        let runs = self.list();
        SpilledUsage {
            files: runs.len() as u64,
            file_bytes: runs.iter().map(|run| run.bytes).sum(),
            versions: runs.iter().map(|run| run.versions).sum(),
            memory_bytes: runs.iter().map(|run| run.memory_bytes()).sum(),
            // ORDER: Relaxed: as in `publish`.
            spilled: self.spilled.load(Relaxed),
        }
    }

    pub fn limit(&self) -> u64 {
        // ORDER: Relaxed: a setting.
        self.limit_bytes.load(Relaxed)
    }

    pub fn set_limit(&self, bytes: u64) {
        // ORDER: as above.
        self.limit_bytes.store(bytes, Relaxed);
    }
}

/// Runs that may be merged.
#[derive(Debug)]
struct Inputs {
    runs: Vec<Arc<Run>>,
    kind: Kind,
}

/// Runs of a kind may be merged.
#[derive(Clone, Debug)]
struct Kind {
    level: u32,
    /// If the transaction has not ended.
    undecided: Option<Arc<Undecided>>,
}

impl Kind {
    fn of(run: &Run, status: &StatusTable) -> Kind {
        let has_not_ended = |undecided: &Arc<Undecided>| end_of(status, undecided.writer) == u64::MAX;
        Kind { level: run.level, undecided: run.undecided.clone().filter(has_not_ended) }
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        let undecided = [self, other].map(|kind| kind.undecided.as_ref().map(Arc::as_ptr));
        self.level == other.level && undecided[0] == undecided[1]
    }
}

/// The cursor that stands before the first row.
fn first_of(cursors: &[Cursor]) -> io::Result<Option<usize>> {
    let mut first: Option<(usize, (u64, &[u8]))> = None;
    for (position, cursor) in cursors.iter().enumerate() {
        if let Some(Record { table, key, .. }) = cursor.record()?
            && first.is_none_or(|(_, row)| row_order((table, key), row).is_lt())
        {
            first = Some((position, (table, key)));
        }
    }
    Ok(first.map(|(position, _)| position))
}

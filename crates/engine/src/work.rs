//! How much a thread has read, so that a caller can tell what a statement cost. Each thread counts for
//! itself. Models leave it out.

use std::cell::Cell;

/// Counts that only grow: a statement's are the difference between its end and its begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Rows looked up and entries of indexes passed.
    pub rows: u64,
    /// Scans that had no bounds.
    pub whole_scans: u64,
}

thread_local! {
    static WORK: Cell<Work> = const { Cell::new(Work { rows: 0, whole_scans: 0 }) };
}

/// What the calling thread has done since it began.
#[inline]
pub fn work() -> Work {
    WORK.get()
}

#[inline]
pub(crate) fn add_rows(rows: u64) {
    let work = WORK.get();
    WORK.set(Work { rows: work.rows.wrapping_add(rows), ..work });
}

pub(crate) fn add_whole_scan() {
    let work = WORK.get();
    WORK.set(Work { whole_scans: work.whole_scans.wrapping_add(1), ..work });
}

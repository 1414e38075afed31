//! What a statement sees of a row.

use crate::format::row::RowHeader;
use crate::{Error, Result};
use base::Stamp;
use base::sync::Arc;
use transactions::{Found, View};

/// How a statement reads rows: by a snapshot, or the newest state.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'s>(Mode<'s>);

#[derive(Clone, Copy, Debug)]
enum Mode<'s> {
    Newest,
    Snapshot(View<'s>),
    /// The newest state of what has ended by the time of the view, and both sides of what has not.
    Current {
        view: View<'s>,
        own: Stamp,
        /// What is read is locked against changes by others: SERIALIZABLE.
        locks_ranges: bool,
    },
}

/// The two ways in which a statement that changes rows reads.
#[derive(Clone, Copy, Debug)]
pub struct Readers<'s> {
    /// By the statement's snapshot: what a plain SELECT would see.
    pub snapshot: Reader<'s>,
    /// For the rows that the statement means to change or to lock. It finds candidates: the newest state of
    /// every row and, if another transaction's change of it is pending, also what the row is without it. A
    /// statement that has locked the row looks again.
    pub current: Reader<'s>,
}

/// What a reader makes of a cell that it has found in a leaf.
#[derive(Debug)]
pub(crate) enum Sight {
    /// The cell is the row.
    This,
    /// There is no row.
    Nothing,
    /// The row is this cell.
    Other(Arc<[u8]>),
    /// Both are candidates.
    Both(Arc<[u8]>),
    /// The page is being restored by a rollback: look again.
    Again,
}

impl<'s> Reader<'s> {
    /// Sees every row as it is, with changes that have not been committed. For statistics, and for callers
    /// that have made sure that there are no such changes.
    pub fn newest() -> Reader<'static> {
        Reader(Mode::Newest)
    }

    pub(crate) fn snapshot(view: View<'s>) -> Reader<'s> {
        Reader(Mode::Snapshot(view))
    }

    pub(crate) fn current(view: View<'s>, own: Stamp, locks_ranges: bool) -> Reader<'s> {
        Reader(Mode::Current { view, own, locks_ranges })
    }

    /// The same without locks on ranges: for a reader that leaves out rows of its range, SKIP LOCKED.
    pub fn without_ranges(self) -> Reader<'s> {
        match self.0 {
            Mode::Current { view, own, .. } => Reader::current(view, own, false),
            _ => self,
        }
    }

    /// The transaction that locks the ranges which it reads.
    #[inline]
    pub(crate) fn range_holder(&self) -> Option<Stamp> {
        match &self.0 {
            Mode::Current { own, locks_ranges: true, .. } => Some(*own),
            _ => None,
        }
    }

    /// Judges a cell by its header. `file` and `key` say where older versions of the row are kept.
    #[inline(always)]
    pub(crate) fn look(&self, header: RowHeader, file: u64, key: &[u8]) -> Result<Sight> {
        match &self.0 {
            Mode::Snapshot(view) if !view.sees(header.stamp()) => older(view, header, file, key),
            Mode::Current { view, own, .. } if header.stamp() != *own && !view.sees(header.stamp()) => {
                both(view, header, file, key)
            }
            _ if header.is_deleted() => Ok(Sight::Nothing),
            _ => Ok(Sight::This),
        }
    }

    /// True if all rows and entries of a page are seen whose newest stamp is this.
    pub(crate) fn sees_all_until(&self, stamp_max: u64) -> bool {
        match &self.0 {
            Mode::Newest => true,
            // No stamp of the page is above. Those below may still be active, unless all of them have ended
            // before.
            Mode::Snapshot(view) => view.sees_all_until(Stamp(stamp_max)),
            Mode::Current { .. } => false,
        }
    }

    /// To be called before rows are read. Fails if the snapshot was taken before a tree that was built when
    /// the clock stood at `since`: it has no older versions. Fails also if the snapshot has been given up.
    #[inline]
    pub(crate) fn check_since(&self, since: u64) -> Result<()> {
        match &self.0 {
            Mode::Snapshot(view) if view.number() < since => Err(Error::TableChanged),
            Mode::Snapshot(view) => Ok(view.check()?),
            _ => Ok(()),
        }
    }
}

#[cold]
fn older(view: &View<'_>, header: RowHeader, file: u64, key: &[u8]) -> Result<Sight> {
    if header.is_first() {
        return Ok(Sight::Nothing);
    }
    if header.is_in_place() {
        return Ok(Sight::This);
    }
    Ok(match find(view, file, key)? {
        Some(Some(cell)) => Sight::Other(cell),
        Some(None) => Sight::Nothing,
        None => Sight::Again,
    })
}

#[cold]
fn both(view: &View<'_>, header: RowHeader, file: u64, key: &[u8]) -> Result<Sight> {
    if header.is_in_place() {
        return Ok(Sight::This);
    }
    let without = if header.is_first() { Some(None) } else { find(view, file, key)? };
    Ok(match (without, header.is_deleted()) {
        (Some(Some(cell)), true) => Sight::Other(cell),
        (Some(Some(cell)), false) => Sight::Both(cell),
        (Some(None), true) => Sight::Nothing,
        (Some(None), false) => Sight::This,
        (None, _) => Sight::Again,
    })
}

/// What the row was, if there was one, in memory or in files. `None`: the page is to be read again.
fn find(view: &View<'_>, file: u64, key: &[u8]) -> Result<Option<Option<Arc<[u8]>>>> {
    let mut found = view.find_version(file, key)?;
    loop {
        found = match found {
            Found::Row(cell) => return Ok(Some(Some(cell))),
            Found::NoRow => return Ok(Some(None)),
            Found::Newest => return Ok(None),
            Found::Spilled(spilled) => view.read_spilled(&spilled)?,
        };
    }
}

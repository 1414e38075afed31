//! Attempts: every operation on a tree is a function that can be called again (engine R3, R5, R21).

use crate::{Error, Result};
use pagecache::{CachedFile, Conflict};

/// Conflicts after which an operation goes on with latches, so that no reader starves.
///
/// A conflict costs a descent (a third of a microsecond in memory). Eight of them are still cheaper than
/// one wait for a sleeping thread, and rarer than one in a million operations unless a page is under fire.
const CONFLICTS_MAX: u32 = 8;

/// How an attempt reads pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// By the cache's configured hit path.
    Configured,
    /// Under latches, parent before child: what follows too many conflicts.
    Latched,
}

/// Why an attempt ended without a result.
#[derive(Debug)]
pub(crate) enum Interrupt {
    /// A page changed under the reader.
    Conflict,
    /// The tree was reshaped to make room: try again, and count no conflict.
    Again,
    /// No frame was free while latches were held.
    Busy,
    /// The file is on its way to another cache, or closed.
    Away,
    Failed(Error),
}

pub(crate) type Attempt<T> = Result<T, Interrupt>;

impl From<Conflict> for Interrupt {
    #[inline]
    fn from(_: Conflict) -> Interrupt {
        Interrupt::Conflict
    }
}

impl From<pagecache::Error> for Interrupt {
    #[cold]
    fn from(error: pagecache::Error) -> Interrupt {
        match error {
            pagecache::Error::Busy => Interrupt::Busy,
            pagecache::Error::NotAttached { .. } => Interrupt::Away,
            error => Interrupt::Failed(error.into()),
        }
    }
}

impl From<Error> for Interrupt {
    #[cold]
    fn from(error: Error) -> Interrupt {
        Interrupt::Failed(error)
    }
}

/// Calls `attempt`, which works on pages of `file`, until it gives a result. The attempt holds no latch when
/// it returns.
pub(crate) fn retry<T>(file: &CachedFile, mut attempt: impl FnMut(Mode) -> Attempt<T>) -> Result<T> {
    match attempt(Mode::Configured) {
        Ok(result) => Ok(result),
        Err(Interrupt::Failed(error)) => Err(error),
        Err(first) => retry_again(file, first, attempt),
    }
}

#[cold]
fn retry_again<T>(
    file: &CachedFile,
    first: Interrupt,
    mut attempt: impl FnMut(Mode) -> Attempt<T>,
) -> Result<T> {
    let mut conflicts = 0;
    let mut permit = None;
    let mut interrupt = first;
    loop {
        match interrupt {
            Interrupt::Conflict => {
                conflicts += 1;
                if conflicts > 2 {
                    base::sync::thread::yield_now();
                }
            }
            Interrupt::Again => {}
            Interrupt::Busy => {
                // The old permit goes back first: one thread never asks for two.
                drop(permit.take());
                permit = Some(file.pool().wait_for_frames());
            }
            Interrupt::Away => {
                drop(permit.take());
                if !file.settle() {
                    return Err(Error::NoSuchTable);
                }
            }
            Interrupt::Failed(error) => return Err(error),
        }
        let mode = if conflicts < CONFLICTS_MAX { Mode::Configured } else { Mode::Latched };
        match attempt(mode) {
            Ok(result) => return Ok(result),
            Err(again) => interrupt = again,
        }
    }
}

//! `max_prepared_stmt_count`: how many prepared statements all sessions may keep together.

use crate::{ErrorKind, SqlError};
use base::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The place of one prepared statement in the count. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct PreparedSlot(Arc<AtomicU64>);

impl PreparedSlot {
    /// # Errors
    /// 1461 if there are `most` already.
    pub(crate) fn take(count: &Arc<AtomicU64>, most: u64) -> Result<PreparedSlot, SqlError> {
        // ORDER: a counter. A place beyond the last one is given back at once.
        let before = count.fetch_add(1, Ordering::Relaxed);
        let slot = PreparedSlot(count.clone());
        if before < most {
            return Ok(slot);
        }
        let text =
            format!("Can't create more than max_prepared_stmt_count statements (current value: {most})");
        Err(SqlError::new(ErrorKind::TooManyStatements, text))
    }
}

impl Drop for PreparedSlot {
    fn drop(&mut self) {
        // ORDER: a counter.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

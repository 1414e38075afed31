//! What the last statement did, for the slow query log.

use super::Session;
use crate::status::Counter;
use crate::text::LexicalMode;
use types::ValueRef;

/// Figures about one statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatementFigures {
    pub rows_sent: u64,
    /// Rows and index entries that were read, whether or not they met the conditions.
    pub rows_examined: u64,
    /// Microseconds spent waiting for rows and tables.
    pub lock_micros: u64,
    /// True if a whole table or index was read.
    pub scanned_whole: bool,
}

/// The counters of the session and of its thread at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    rows_sent: u64,
    work: engine::Work,
    waited_micros: u64,
}

/// The text of a prepared statement, with its values in place of the placeholders.
pub fn with_values(text: &[u8], mode: LexicalMode, values: &[ValueRef<'_>]) -> String {
    crate::text::parse::fill_placeholders(&String::from_utf8_lossy(text), mode, values).into_owned()
}

impl Session {
    #[inline]
    pub(crate) fn counted(&self) -> Counted {
        Counted {
            rows_sent: self.counters.get(Counter::RowsSent),
            work: engine::work(),
            waited_micros: self.interrupt.waited_micros(),
        }
    }

    /// Figures about the last statement. They must be asked for by the thread that ran it, before its next
    /// statement.
    pub fn figures(&self) -> StatementFigures {
        let (before, now) = (self.before, self.counted());
        StatementFigures {
            // FLUSH STATUS resets the counters to 0.
            rows_sent: now.rows_sent.saturating_sub(before.rows_sent),
            rows_examined: now.work.rows.wrapping_sub(before.work.rows),
            lock_micros: now.waited_micros.wrapping_sub(before.waited_micros),
            scanned_whole: now.work.whole_scans != before.work.whole_scans,
        }
    }

    /// Counts the last statement as slow: it took longer than `long_query_time`.
    pub fn count_slow(&self) {
        self.counters.add(Counter::SlowQueries, 1);
    }
}

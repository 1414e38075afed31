//! Ranges of index keys that transactions at SERIALIZABLE have read, and that nobody else may change.
//!
//! A reader locks a range before it reads there. A writer changes a row, and then asks whether another
//! transaction has locked a range that the row was in or is in now. If so it takes the change back, waits
//! for that transaction, and begins again. Of the two one is first: the reader sees the changed row, which
//! carries an active stamp, and waits for it; or the writer sees the range (engine R23).
//!
//! ```text
//! reader:  range is listed;     fence;  pages are read
//! writer:  page is changed;     fence;  are there ranges?
//! ```
//!
//! While there are no ranges a writer pays a fence and a load.

use base::sync::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use base::sync::{CachePadded, Mutex};
use base::{IndexId, Stamp, TableId};
use std::collections::HashMap;

base::latch_class!(pub RangesLatch, "ranges read at SERIALIZABLE");

/// A transaction with more ranges of one index has all of it: a join would lock one for each row.
const RANGES_MAX: usize = 256;

/// The ranges of a database.
#[derive(Default, Debug)]
pub(crate) struct RangeLocks {
    count: CachePadded<AtomicUsize>,
    listed: Mutex<Listed, RangesLatch>,
}

#[derive(Default, Debug)]
struct Listed {
    tables: HashMap<TableId, Vec<Held>>,
    /// How many statements each transaction with ranges has begun.
    statements: HashMap<Stamp, u64>,
}

/// Keys from `start` on and below `end`; without an end, all from `start` on.
#[derive(Debug)]
struct Held {
    holder: Stamp,
    /// Of the holder's statements, the one that read it first.
    statement: u64,
    index: IndexId,
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl Held {
    fn has(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_deref().is_none_or(|end| key < end)
    }

    fn covers(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        let ends_behind = match (self.end.as_deref(), end) {
            (None, _) => true,
            (Some(own), Some(end)) => end <= own,
            (Some(_), None) => false,
        };
        self.start.as_slice() <= start && ends_behind
    }
}

/// A transaction that has locked a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    pub transaction: Stamp,
    /// The statement that is under way has locked it, and none before.
    pub is_new: bool,
}

impl RangeLocks {
    /// A statement of `holder` begins, which may lock ranges.
    pub(crate) fn begin_statement(&self, holder: Stamp) {
        *self.listed.lock().statements.entry(holder).or_default() += 1;
    }

    /// `holder` is about to read the keys of an index from `start` on and below `end`.
    pub(crate) fn lock(
        &self,
        holder: Stamp,
        (table, index): (TableId, IndexId),
        start: &[u8],
        end: Option<&[u8]>,
    ) {
        {
            let Listed { tables, statements } = &mut *self.listed.lock();
            let statement = statements.get(&holder).copied().unwrap_or_default();
            let held = tables.entry(table).or_default();
            let is_own = |range: &Held| range.holder == holder && range.index == index;
            if !held.iter().any(|range| is_own(range) && range.covers(start, end)) {
                let before = held.len();
                let (start, end) = (start.to_vec(), end.map(<[u8]>::to_vec));
                let mut range = Held { holder, statement, index, start, end };
                if held.iter().filter(|range| is_own(range)).count() >= RANGES_MAX {
                    // As old as the oldest of those that it stands for.
                    let first = held.iter().filter(|range| is_own(range)).map(|range| range.statement).min();
                    let statement = first.unwrap_or(statement);
                    held.retain(|range| !is_own(range));
                    range = Held { statement, start: Vec::new(), end: None, ..range };
                }
                held.push(range);
                // ORDER: Relaxed before the fence below. Changed under the latch.
                self.count.store(self.count.load(Relaxed) + held.len() - before, Relaxed);
            }
        }
        // ORDER: see the head of this file.
        fence(SeqCst);
    }

    /// The transaction has ended.
    pub(crate) fn release(&self, holder: Stamp) {
        let Listed { tables, statements } = &mut *self.listed.lock();
        statements.remove(&holder);
        let mut left = 0;
        tables.retain(|_, held| {
            held.retain(|range| range.holder != holder);
            left += held.len();
            !held.is_empty()
        });
        // ORDER: as in `lock`.
        self.count.store(left, Relaxed);
    }

    /// True if any transaction has locked a range. To be asked after a row has been changed.
    pub(crate) fn is_any(&self) -> bool {
        // ORDER: see the head of this file.
        fence(SeqCst);
        self.count.load(Relaxed) > 0
    }

    /// The transactions, except `own`, that have locked a range of the index with this key.
    pub(crate) fn holders(&self, own: Stamp, table: TableId, index: IndexId, key: &[u8]) -> Vec<Holder> {
        let Listed { tables, statements } = &*self.listed.lock();
        let held = tables.get(&table).into_iter().flatten();
        held.filter(|range| range.holder != own && range.index == index && range.has(key))
            .map(|range| Holder {
                transaction: range.holder,
                is_new: statements.get(&range.holder) == Some(&range.statement),
            })
            .collect()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(1);
    const INDEX: IndexId = IndexId(0);

    #[test]
    fn a_range_has_its_start_and_not_its_end_and_ends_with_its_holder() {
        let ranges = RangeLocks::default();
        assert!(!ranges.is_any());
        ranges.lock(Stamp(1), (TABLE, INDEX), b"b", Some(b"d"));
        ranges.lock(Stamp(2), (TABLE, INDEX), b"c", None);
        let by = |by, index, key: &[u8]| -> Vec<Stamp> {
            ranges.holders(by, TABLE, index, key).iter().map(|holder| holder.transaction).collect()
        };
        let holders = |key: &[u8]| by(Stamp(9), INDEX, key);
        assert_eq!(holders(b"a"), []);
        assert_eq!(holders(b"b"), [Stamp(1)]);
        assert_eq!(holders(b"c9"), [Stamp(1), Stamp(2)]);
        assert_eq!(holders(b"d"), [Stamp(2)]);
        assert_eq!(by(Stamp(2), INDEX, b"d"), []);
        assert_eq!(by(Stamp(9), IndexId(1), b"d"), []);
        ranges.release(Stamp(2));
        assert!(ranges.is_any());
        assert_eq!(holders(b"d"), []);
        ranges.release(Stamp(1));
        assert!(!ranges.is_any());
    }

    #[test]
    fn a_range_is_new_while_the_statement_runs_that_read_it_first() {
        let ranges = RangeLocks::default();
        let is_new =
            |key: &[u8]| ranges.holders(Stamp(9), TABLE, INDEX, key).iter().all(|holder| holder.is_new);
        ranges.begin_statement(Stamp(1));
        ranges.lock(Stamp(1), (TABLE, INDEX), b"b", Some(b"d"));
        assert!(is_new(b"c"));
        ranges.begin_statement(Stamp(1));
        ranges.lock(Stamp(1), (TABLE, INDEX), b"c", Some(b"d"));
        ranges.lock(Stamp(1), (TABLE, INDEX), b"c", Some(b"e"));
        assert!(!is_new(b"c") && is_new(b"d"));
    }

    #[test]
    fn many_ranges_become_the_whole_index_and_those_that_are_covered_cost_nothing() {
        let ranges = RangeLocks::default();
        for n in 0..10_000_u32 {
            let key = (2 * n).to_be_bytes();
            ranges.lock(Stamp(1), (TABLE, INDEX), &key, Some(&(2 * n + 1).to_be_bytes()));
        }
        assert_eq!(ranges.listed.lock().tables[&TABLE].len(), 1);
        assert_eq!(ranges.holders(Stamp(9), TABLE, INDEX, b"anything")[0].transaction, Stamp(1));
        ranges.release(Stamp(1));
        assert!(!ranges.is_any());
    }
}

//! What the planner knows of a table's values: counted by ANALYZE TABLE, kept until the definition changes,
//! and by the catalogue over a restart.

use super::Table;
use crate::Error;
use crate::definition::{Direction, KeyRange, Statistics};
use crate::visibility::Reader;
use base::IndexId;
use base::sync::Arc;
use base::sync::atomic::Ordering;

impl Table {
    pub fn statistics(&self) -> Option<Arc<Statistics>> {
        self.statistics.read().clone()
    }

    /// What an earlier run has counted.
    pub(crate) fn remember(&self, statistics: Statistics) {
        *self.statistics.write() = Some(Arc::new(statistics));
    }

    /// Counts the rows and the distinct keys of every index. Reads the whole table; `check` is called now and
    /// then and may end it.
    ///
    /// # Errors
    /// What `check` gives; [`Error::Io`] and [`Error::Corrupt`].
    pub fn analyze<E: From<Error>>(
        &self,
        mut check: impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let version = self.version();
        let indexes = self.live_state()?.indexes.len();
        let mut statistics = Statistics::default();
        for index in (0..indexes).filter_map(|index| u16::try_from(index).ok()) {
            let (entries, distinct) = self.distinct_keys(IndexId(index), &mut check)?;
            if index == 0 {
                statistics.rows = entries;
            }
            statistics.distinct.push(distinct);
        }
        let rows = statistics.rows;
        self.set_rows(rows);
        let mut kept = self.statistics.write();
        if version == self.version() {
            *kept = Some(Arc::new(statistics));
            // Plans were made by other numbers.
            // ORDER: see `version`; a session that plans anew takes the latch.
            self.version.fetch_add(1, Ordering::Release);
        }
        Ok(rows)
    }

    fn distinct_keys<E: From<Error>>(
        &self,
        index: IndexId,
        check: &mut impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<(u64, Vec<u64>), E> {
        /// How many entries pass between two checks.
        const BETWEEN_CHECKS: u64 = 1_024;
        let codec = self.key_codec(index);
        let mut distinct = vec![0; codec.parts()];
        let mut scan = self.scan_keys(Reader::newest(), index, KeyRange::all(), Direction::Forward);
        let (mut last, mut ends) = (Vec::new(), Vec::new());
        let mut entries: u64 = 0;
        while let Some(key) = scan.next_key()? {
            let same = key.iter().zip(&last).take_while(|(left, right)| left == right).count();
            if codec.ends_in(key, &mut ends).is_some() {
                let is_new = |end: &usize| entries == 0 || *end > same;
                ends.iter()
                    .zip(&mut distinct)
                    .filter(|(end, _)| is_new(end))
                    .for_each(|(_, count)| *count += 1);
            }
            last.clear();
            last.extend_from_slice(key);
            entries += 1;
            if entries.is_multiple_of(BETWEEN_CHECKS) {
                check()?;
            }
        }
        Ok((entries, distinct))
    }
}

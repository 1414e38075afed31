//! The counters and where they live.

use base::sync::atomic::{AtomicU64, Ordering};
use base::sync::{CachePadded, Mutex};
use std::sync::Arc;
use std::time::Instant;

base::latch_class!(pub CountersLatch, "status counters");

macro_rules! counters {
    ($($name:ident = $text:literal $(of $($words:literal)|+)?,)*) => {
        /// The counters, by MySQL's names.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Counter {
            $($name,)*
        }

        impl Counter {
            pub(crate) const NAMES: &'static [&'static str] = &[$($text,)*];

            /// The first word, or the first two words, of a statement, and its counter.
            const STATEMENTS: &'static [(&'static str, Counter)] = &[$($($(($words, Counter::$name),)+)?)*];
        }
    };
}

impl Counter {
    /// The counter of a statement with these first two words. `word` is in capitals. `second` is as it was
    /// written.
    pub(crate) fn of_statement(word: &str, second: &str) -> Option<Counter> {
        let mut by_first = None;
        for (words, counter) in Self::STATEMENTS {
            match words.strip_prefix(word).map(|rest| rest.strip_prefix(' ').ok_or(rest)) {
                Some(Ok(next)) if next.eq_ignore_ascii_case(second) => return Some(*counter),
                Some(Err("")) => by_first = Some(*counter),
                _ => {}
            }
        }
        by_first
    }
}

// A counter and its name in SHOW STATUS. For statements that are not planned, also their first words.
counters! {
    Questions = "Questions",
    ComAlterTable = "Com_alter_table" of "ALTER",
    ComAnalyze = "Com_analyze" of "ANALYZE",
    ComAssignToKeycache = "Com_assign_to_keycache" of "CACHE",
    ComBegin = "Com_begin" of "BEGIN" | "START",
    ComChangeDb = "Com_change_db",
    ComCheck = "Com_check" of "CHECK",
    ComChecksum = "Com_checksum" of "CHECKSUM",
    ComCommit = "Com_commit" of "COMMIT",
    ComCreateDb = "Com_create_db" of "CREATE DATABASE" | "CREATE SCHEMA",
    ComCreateIndex = "Com_create_index" of "CREATE INDEX" | "CREATE UNIQUE",
    ComCreateTable = "Com_create_table" of "CREATE TABLE" | "CREATE OR",
    ComDeallocSql = "Com_dealloc_sql" of "DROP PREPARE" | "DEALLOCATE",
    ComDelete = "Com_delete",
    ComDeleteMulti = "Com_delete_multi",
    ComDropDb = "Com_drop_db" of "DROP DATABASE" | "DROP SCHEMA",
    ComDropIndex = "Com_drop_index" of "DROP INDEX",
    ComDropTable = "Com_drop_table" of "DROP TABLE",
    ComExecuteSql = "Com_execute_sql" of "EXECUTE",
    ComFlush = "Com_flush" of "FLUSH",
    ComInsert = "Com_insert",
    ComInsertSelect = "Com_insert_select",
    ComKill = "Com_kill" of "KILL",
    ComLoad = "Com_load" of "LOAD",
    ComLockTables = "Com_lock_tables" of "LOCK",
    ComOptimize = "Com_optimize" of "OPTIMIZE",
    ComPreloadKeys = "Com_preload_keys" of "LOAD INDEX",
    ComPrepareSql = "Com_prepare_sql" of "PREPARE",
    ComReleaseSavepoint = "Com_release_savepoint" of "RELEASE",
    ComRenameTable = "Com_rename_table" of "RENAME",
    ComRepair = "Com_repair" of "REPAIR",
    ComReplace = "Com_replace",
    ComReplaceSelect = "Com_replace_select",
    ComRollback = "Com_rollback" of "ROLLBACK",
    ComRollbackToSavepoint = "Com_rollback_to_savepoint" of "ROLLBACK TO",
    ComSavepoint = "Com_savepoint" of "SAVEPOINT",
    ComSelect = "Com_select",
    ComSetOption = "Com_set_option" of "SET",
    ComShow = "Com_show" of "SHOW" | "DESCRIBE" | "DESC" | "EXPLAIN",
    ComStmtClose = "Com_stmt_close",
    ComStmtExecute = "Com_stmt_execute",
    ComStmtFetch = "Com_stmt_fetch",
    ComStmtPrepare = "Com_stmt_prepare",
    ComTruncate = "Com_truncate" of "TRUNCATE",
    ComUnlockTables = "Com_unlock_tables" of "UNLOCK",
    ComUpdate = "Com_update",
    ComUpdateMulti = "Com_update_multi",
    CreatedTmpDiskTables = "Created_tmp_disk_tables",
    HandlerCommit = "Handler_commit",
    HandlerDelete = "Handler_delete",
    HandlerRollback = "Handler_rollback",
    HandlerUpdate = "Handler_update",
    HandlerWrite = "Handler_write",
    PhaseClockReadings = "Phase_clock_readings",
    PhaseCommands = "Phase_commands",
    PhaseIdle = "Phase_idle_ns",
    PhaseIndex = "Phase_index_ns",
    PhaseLatchWait = "Phase_latch_wait_ns",
    PhaseLockWait = "Phase_lock_wait_ns",
    PhaseLog = "Phase_log_ns",
    PhaseNetwork = "Phase_network_ns",
    PhaseParse = "Phase_parse_ns",
    PhasePlan = "Phase_plan_ns",
    PhaseRest = "Phase_rest_ns",
    PhaseRow = "Phase_row_ns",
    RowsSent = "Rows_sent",
    SlowQueries = "Slow_queries",
    SortMergePasses = "Sort_merge_passes",
}

const COUNT: usize = Counter::NAMES.len();

/// One session's counters. Only the session's thread writes them.
#[derive(Debug)]
pub(crate) struct SessionCounters {
    /// On cache lines of their own, so that no two sessions write to the same line.
    cells: Box<CachePadded<[AtomicU64; COUNT]>>,
    /// The number of prepared statements that the session has now.
    prepared: AtomicU64,
}

impl Default for SessionCounters {
    fn default() -> SessionCounters {
        let cells = Box::new(CachePadded(std::array::from_fn(|_| AtomicU64::new(0))));
        SessionCounters { cells, prepared: AtomicU64::new(0) }
    }
}

impl SessionCounters {
    /// Adds to a counter. Only the session itself may call this.
    #[inline]
    pub(crate) fn add(&self, counter: Counter, count: u64) {
        let cell = &self.cells[counter as usize];
        // ORDER: only this thread writes. Readers need a recent number, and read no other data because of it.
        cell.store_owned(cell.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self, counter: Counter) -> u64 {
        // ORDER: as in `add`.
        self.cells[counter as usize].load(Ordering::Relaxed)
    }

    /// Only the session itself may call this.
    pub(crate) fn set_prepared(&self, statements: usize) {
        // ORDER: as in `add`.
        self.prepared.store_owned(statements as u64, Ordering::Relaxed);
    }

    pub(crate) fn at(&self, position: usize) -> u64 {
        // ORDER: as in `add`.
        self.cells[position].load(Ordering::Relaxed)
    }

    fn add_to(&self, sums: &mut [u64; COUNT]) {
        for (sum, cell) in sums.iter_mut().zip(self.cells.iter()) {
            // ORDER: as in `add`.
            *sum = sum.wrapping_add(cell.load(Ordering::Relaxed));
        }
    }
}

/// The counters of all sessions, including those that have ended.
#[derive(Debug)]
pub(crate) struct StatusRegistry {
    state: Mutex<State, CountersLatch>,
    started: Instant,
}

#[derive(Debug)]
struct State {
    live: Vec<Arc<SessionCounters>>,
    ended: [u64; COUNT],
}

impl Default for StatusRegistry {
    fn default() -> StatusRegistry {
        let state = State { live: Vec::new(), ended: [0; COUNT] };
        StatusRegistry { state: Mutex::of_class(state), started: Instant::now() }
    }
}

impl StatusRegistry {
    /// Counters for a new session.
    pub(crate) fn register(&self) -> Arc<SessionCounters> {
        let counters = Arc::new(SessionCounters::default());
        self.state.lock().live.push(counters.clone());
        counters
    }

    /// Removes a session that has ended. Its counts stay in the sums.
    pub(crate) fn retire(&self, counters: &Arc<SessionCounters>) {
        let mut state = self.state.lock();
        let Some(position) = state.live.iter().position(|live| Arc::ptr_eq(live, counters)) else { return };
        state.live.swap_remove(position);
        counters.add_to(&mut state.ended);
    }

    /// Takes a session out of the sums: its statements are the server's own.
    pub(crate) fn leave_out(&self, counters: &Arc<SessionCounters>) {
        self.state.lock().live.retain(|live| !Arc::ptr_eq(live, counters));
    }

    /// The number of prepared statements that all sessions have now.
    pub(crate) fn prepared(&self) -> u64 {
        // ORDER: as in `SessionCounters::add`.
        self.state.lock().live.iter().map(|session| session.prepared.load(Ordering::Relaxed)).sum()
    }

    /// FLUSH STATUS: a session counts from zero again. The sums go on, as in MySQL.
    pub(crate) fn flush(&self, counters: &mut Arc<SessionCounters>) {
        // ORDER: as in `SessionCounters::add`.
        let prepared = counters.prepared.load(Ordering::Relaxed);
        let ended = std::mem::replace(counters, self.register());
        counters.set_prepared(prepared as usize);
        self.retire(&ended);
    }

    pub(crate) fn sums(&self) -> Vec<u64> {
        let state = self.state.lock();
        let mut sums = state.ended;
        for live in &state.live {
            live.add_to(&mut sums);
        }
        sums.to_vec()
    }

    pub(crate) fn named_sums(&self) -> Vec<(&'static str, u64)> {
        Counter::NAMES.iter().copied().zip(self.sums()).collect()
    }

    pub(crate) fn uptime_seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_ended_session_counted_stays_in_the_sums() {
        let registry = StatusRegistry::default();
        let (first, mut second) = (registry.register(), registry.register());
        first.add(Counter::ComSelect, 2);
        second.add(Counter::ComSelect, 3);
        registry.retire(&first);
        registry.retire(&first);
        assert_eq!(registry.sums()[Counter::ComSelect as usize], 5);
        second.set_prepared(4);
        registry.flush(&mut second);
        assert_eq!((second.get(Counter::ComSelect), registry.prepared()), (0, 4));
        second.add(Counter::ComSelect, 1);
        assert_eq!((second.get(Counter::ComSelect), registry.sums()[Counter::ComSelect as usize]), (1, 6));
    }

    #[test]
    fn a_statement_is_told_by_two_words_before_one() {
        assert_eq!(Counter::of_statement("LOAD", "index"), Some(Counter::ComPreloadKeys));
        assert_eq!(Counter::of_statement("LOAD", "DATA"), Some(Counter::ComLoad));
        assert_eq!(Counter::of_statement("ROLLBACK", ""), Some(Counter::ComRollback));
        assert_eq!(Counter::of_statement("CREATE", "or"), Some(Counter::ComCreateTable));
        assert_eq!(Counter::of_statement("CREATE", "VIEW"), None);
    }
}

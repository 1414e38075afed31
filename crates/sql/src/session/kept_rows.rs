//! Rows of a result that a client fetches later: those of a cursor.

use super::Session;
use crate::Instance;
use crate::SqlError;
use crate::host::Interrupt;
use crate::memory::Account;
use crate::spill::{Spool, SpoolReader, Workspace};
use crate::status::{Counter, SessionCounters};
use crate::variables::MemoryLimits;
use base::sync::Arc;

/// Takes rows in any form, as whoever keeps them will want them back. They count as memory of the session,
/// and beyond `tmp_memory_table_size` they are in a file.
///
/// It borrows nothing of the session, so that it can take rows while a statement of the session runs.
#[derive(Debug)]
pub struct RowKeeper {
    instance: Arc<Instance>,
    account: Arc<Account>,
    interrupt: Arc<Interrupt>,
    counters: Arc<SessionCounters>,
    limits: MemoryLimits,
    spool: Spool,
}

/// The rows of a [`RowKeeper`], in their order.
#[derive(Debug)]
pub struct KeptRows(SpoolReader);

impl Session {
    /// A place for the rows of the next statement.
    pub fn keep_rows(&self) -> RowKeeper {
        RowKeeper {
            instance: self.instance.clone(),
            account: self.memory.clone(),
            interrupt: self.interrupt.clone(),
            counters: self.counters.clone(),
            limits: self.variables.common.memory,
            spool: Spool::default(),
        }
    }

    /// A client fetches rows of a cursor. A KILL QUERY that came before this was meant for something else.
    pub fn begin_fetch(&mut self) {
        self.interrupt.begin_statement();
        self.counters.add(Counter::ComStmtFetch, 1);
    }
}

impl RowKeeper {
    /// # Errors
    /// 1290 and 1041 for memory, 1021 and 1030 for the file, 1317 after KILL.
    pub fn push(&mut self, row: &[u8]) -> Result<(), SqlError> {
        let workspace = Workspace {
            limits: &self.limits,
            account: &self.account,
            interrupt: &self.interrupt,
            counters: &self.counters,
            database: &self.instance.database,
            globals: &self.instance.globals,
        };
        self.spool.push(b"", row, workspace)
    }

    /// # Errors
    /// As [`RowKeeper::push`].
    pub fn finish(self) -> Result<KeptRows, SqlError> {
        Ok(KeptRows(SpoolReader::new(self.spool.finish()?)))
    }
}

impl KeptRows {
    /// The next row, as it was pushed. `None` at the end.
    ///
    /// # Errors
    /// 1030 if the file fails.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>, SqlError> {
        self.0.next_row()
    }
}

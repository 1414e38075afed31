//! Running a statement on tables: the locks on tables that it needs, the engine's half of the session, and
//! what an error does to the transaction.

use super::Characteristics;
use crate::locks::{MetadataLocks, Mode, Used};
use crate::plan::plan::Dependency;
use crate::session::relations::Family;
use crate::status::Counter;
use crate::{ErrorKind, Session, SqlError};
use base::TableId;
use engine::{Reader, Readers, Writer};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// Locks on tables that last as long as a statement.
pub(crate) struct StatementLocks<'l> {
    locks: &'l MetadataLocks,
    owner: u64,
    held: Vec<(TableId, Mode)>,
}

impl Drop for StatementLocks<'_> {
    fn drop(&mut self) {
        for (table, mode) in self.held.drain(..) {
            self.locks.unlock(table, mode, self.owner);
        }
    }
}

impl<'l> StatementLocks<'l> {
    pub(crate) fn new(locks: &'l MetadataLocks, owner: u64) -> StatementLocks<'l> {
        StatementLocks { locks, owner, held: Vec::new() }
    }

    pub(crate) fn lock(&mut self, session: &Session, table: TableId, mode: Mode) -> Result<(), SqlError> {
        self.locks.lock(table, mode, &session.request())?;
        self.held.push((table, mode));
        Ok(())
    }
}

/// How a statement uses its tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Writes {
    /// It changes rows.
    Rows,
    /// It locks rows. It waits this many seconds for a locked row, or, if `None`, as long as the variables
    /// say.
    Locks { seconds: Option<u64> },
}

impl Session {
    /// Runs `body`, a statement that only reads these tables.
    ///
    /// # Errors
    /// 1100, 1205 and their like, and those of `body`.
    #[inline]
    pub(crate) fn read_tables<T>(
        &mut self,
        dependencies: &[Dependency],
        body: impl FnOnce(&mut Session, Reader<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if dependencies.is_empty() {
            return body(self, Reader::newest());
        }
        self.note_uses(dependencies.iter().map(|used| used.in_mode(Mode::Read)));
        if !self.is_plain_reader() {
            return self.read_locked_tables(dependencies, body);
        }
        let mut engine = self.take_engine()?;
        let entered = engine.read();
        if let Ok(read) = &entered
            && !self.instance.locks.keeps_readers_out()
        {
            let result = body(self, read.reader());
            drop(entered);
            self.engine = Some(engine);
            return self.after_error(result);
        }
        let refused = entered.map(drop).err();
        self.engine = Some(engine);
        match refused {
            Some(error) => self.after_error(Err(error.into())),
            None => self.read_locked_tables(dependencies, body),
        }
    }

    /// True if the SELECTs of this session lock nothing.
    fn is_plain_reader(&self) -> bool {
        let transaction = &self.state.transaction;
        self.variables.common.autocommit
            && !transaction.open
            && transaction.next == Characteristics::default()
            && !self.locked.has_tables()
    }

    fn read_locked_tables<T>(
        &mut self,
        dependencies: &[Dependency],
        body: impl FnOnce(&mut Session, Reader<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let instance = self.instance.clone();
        self.begin_without_autocommit()?;
        self.locked.check_all(dependencies.iter().map(|used| used.in_mode(Mode::Read)))?;
        let mut locks = StatementLocks::new(&instance.locks, self.client.id);
        for dependency in dependencies {
            self.use_table(dependency.in_mode(Mode::Read), &mut locks)?;
        }
        self.state.transaction.did.read |= self.state.transaction.open;
        if !dependencies.iter().all(Dependency::is_current) {
            return Err(SqlError::definition_changed());
        }
        self.begin_next()?;
        let mut engine = self.take_engine()?;
        let result = match engine.read() {
            Ok(read) => catch_unwind(AssertUnwindSafe(|| body(self, read.reader()))),
            Err(error) => Ok(Err(error.into())),
        };
        self.engine = Some(engine);
        self.end_next();
        self.after_error(result.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Runs `body`, a statement that changes or locks rows. Either all of its changes are kept or none.
    /// `families`: the tables that FOREIGN KEYs make it look at or change.
    ///
    /// # Errors
    /// 1792, 1223, 1099, 1100, 1205, 1213 and their like, and those of `body`.
    pub(crate) fn write_tables<T>(
        &mut self,
        writes: Writes,
        tables: &[Used<'_>],
        families: &[&Family],
        is_current: &dyn Fn() -> bool,
        body: impl FnOnce(&mut Session, Readers<'_>, Writer<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let is_exclusive = writes == Writes::Rows || tables.iter().any(|used| used.mode == Mode::Write);
        if is_exclusive && self.is_read_only() {
            return Err(SqlError::read_only_transaction());
        }
        if is_exclusive {
            self.check_server_takes_changes()?;
        }
        self.locked.check_all(tables.iter().copied())?;
        self.check_not_locked_out()?;
        self.note_uses(tables.iter().copied());
        let instance = self.instance.clone();
        let _writing = instance.read_lock.write(&self.writing, &self.request())?;
        self.begin_without_autocommit()?;
        let mut locks = StatementLocks::new(&instance.locks, self.client.id);
        for used in tables.iter().copied().chain(families.iter().flat_map(|family| family.used())) {
            self.use_table(used, &mut locks)?;
        }
        if self.state.transaction.open {
            let did = &mut self.state.transaction.did;
            did.read |= tables.iter().any(|used| used.mode == Mode::Read);
            did.write |= tables.iter().any(|used| used.mode != Mode::Read);
        }
        if !is_current() {
            return Err(SqlError::definition_changed());
        }
        self.begin_next()?;
        let patience = Duration::from_secs(match writes {
            Writes::Locks { seconds: Some(seconds) } => seconds,
            _ => self.variables.common.row_lock_wait_seconds,
        });
        let mut engine = self.take_engine()?;
        engine.set_lock_wait(patience);
        // A panic continues only after the statement was undone. While it unwinds, a change of a page would
        // count as interrupted.
        let result = match engine.write() {
            Ok(mut statement) => {
                let (readers, writer) = statement.split();
                catch_unwind(AssertUnwindSafe(|| body(self, readers, writer)))
                    .map(|done| done.and_then(|done| Ok(statement.commit().map(|()| done)?)))
            }
            Err(error) => Ok(Err(error.into())),
        };
        self.engine = Some(engine);
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        if self.state.transaction.open {
            self.state.transaction.wrote = true;
        } else if result.is_ok() {
            self.counters.add(Counter::HandlerCommit, 1);
        }
        self.end_next();
        self.after_error(result)
    }

    fn take_engine(&mut self) -> Result<Box<engine::Session>, SqlError> {
        self.engine.take().ok_or_else(|| SqlError::internal("a statement inside of a statement"))
    }

    /// 1223 if the session itself has locked everything.
    pub(crate) fn check_not_locked_out(&self) -> Result<(), SqlError> {
        if self.locked.everything {
            let text = "Can't execute the query because you have a conflicting read lock";
            return Err(SqlError::new(ErrorKind::ReadLockHeld, text));
        }
        Ok(())
    }

    /// With autocommit off, the first statement that uses a table begins a transaction.
    fn begin_without_autocommit(&mut self) -> Result<(), SqlError> {
        if !self.variables.common.autocommit && !self.state.transaction.open {
            self.begin_transaction(None)?;
        }
        Ok(())
    }

    /// Keeps other sessions from changing the table's definition, until the transaction ends, or until the
    /// statement ends if there is no transaction.
    fn use_table(&mut self, used: Used<'_>, locks: &mut StatementLocks<'_>) -> Result<(), SqlError> {
        let Used { table, mode, .. } = used;
        if self.state.transaction.open {
            self.note_use();
        }
        if self.locked.has_tables() {
            return Ok(());
        }
        if !self.state.transaction.open {
            return locks.lock(self, table.id(), mode);
        }
        if self
            .state
            .transaction
            .tables
            .iter()
            .any(|(id, held)| *id == table.id() && (*held == mode || *held == Mode::Write))
        {
            return Ok(());
        }
        self.instance.locks.lock(table.id(), mode, &self.request())?;
        self.state.transaction.tables.push((table.id(), mode));
        Ok(())
    }

    /// Outside of a transaction, SET TRANSACTION also holds for a single statement.
    fn begin_next(&mut self) -> Result<(), SqlError> {
        if !self.state.transaction.open
            && let Some(isolation) = self.state.transaction.next.isolation
        {
            self.engine()?.set_isolation(isolation);
        }
        Ok(())
    }

    fn end_next(&mut self) {
        let isolation = self.variables.common.isolation;
        if !self.state.transaction.open
            && self.state.transaction.next != Characteristics::default()
            && let Some(engine) = &mut self.engine
        {
            engine.set_isolation(isolation);
            self.state.transaction.next = Characteristics::default();
        }
    }

    /// A deadlock rolls back the whole transaction, and so does a row that another transaction has changed
    /// after a binding snapshot, and locks that take too much memory. A KILL of the connection is reported
    /// as such.
    fn after_error<T>(&mut self, result: Result<T, SqlError>) -> Result<T, SqlError> {
        match result {
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::Deadlock | ErrorKind::RecordChanged | ErrorKind::LockTableFull
                ) =>
            {
                self.end_transaction(false)?;
                Err(error)
            }
            Err(error) if error.kind == ErrorKind::QueryInterrupted => {
                Err(self.interrupt.check().err().unwrap_or(error))
            }
            result => result,
        }
    }
}

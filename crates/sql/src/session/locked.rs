//! The tables that a session has locked by LOCK TABLES and FLUSH TABLES.

use super::transaction::StatementLocks;
use super::{DEFINITION_RETRIES, Session};
use crate::locks::{MetadataLocks, Mode, Used};
use crate::{ErrorKind, SqlError};
use base::TableId;
use engine::Table;
use std::sync::Arc;

/// What a session has locked by statements for that purpose.
#[derive(Debug, Default)]
pub(crate) struct Locked {
    /// True under FLUSH TABLES WITH READ LOCK.
    pub everything: bool,
    /// The tables of LOCK TABLES.
    tables: Vec<LockedTable>,
    /// True from LOCK TABLES to UNLOCK TABLES, even if all of its tables are dropped meanwhile.
    locks_tables: bool,
}

/// A table that LOCK TABLES names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) database: String,
    pub(crate) name: String,
    /// The name that statements have to use for it.
    pub(crate) alias: String,
    pub(crate) mode: Mode,
}

#[derive(Clone, Debug)]
struct LockedTable {
    named: Named,
    table: TableId,
}

/// 1192.
fn active_locks() -> SqlError {
    SqlError::new(
        ErrorKind::LockedTablesOrTransaction,
        "Can't execute the given command because you have active locked tables or an active transaction",
    )
}

pub(crate) fn only_read(name: &str) -> SqlError {
    let text = format!("Table '{name}' was locked with a READ lock and can't be updated");
    SqlError::new(ErrorKind::TableLockedForRead, text)
}

impl Locked {
    /// The tables that LOCK TABLES named.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Named> {
        self.tables.iter().map(|known| &known.named)
    }

    #[inline]
    pub(crate) fn has_tables(&self) -> bool {
        self.locks_tables
    }

    /// Under LOCK TABLES: as [`Locked::check`] for all tables of a statement. If the statement names a table
    /// several times, it needs a lock for each.
    pub(crate) fn check_all<'t>(
        &self,
        tables: impl Iterator<Item = Used<'t>> + Clone,
    ) -> Result<(), SqlError> {
        if !self.has_tables() {
            return Ok(());
        }
        for (position, used) in tables.clone().enumerate() {
            let is_same = |other: Used<'_>| other.table.id() == used.table.id() && other.alias == used.alias;
            if tables.clone().take(position).any(is_same) {
                return Err(SqlError::not_locked(used.alias));
            }
            self.check(used)?;
        }
        Ok(())
    }

    /// Under LOCK TABLES: 1100 for a table that is not locked under this name, 1099 for one that may only be
    /// read.
    pub(crate) fn check(&self, used: Used<'_>) -> Result<(), SqlError> {
        let is_meant =
            |known: &&LockedTable| known.table == used.table.id() && known.named.alias == used.alias;
        match self.tables.iter().find(is_meant) {
            None => Err(SqlError::not_locked(used.alias)),
            Some(known) if used.mode != Mode::Read && known.named.mode == Mode::KeepWritersOut => {
                Err(only_read(used.alias))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Session {
    /// Under LOCK TABLES: 1192 for a statement that is not allowed there.
    pub(crate) fn check_no_locked_tables(&self) -> Result<(), SqlError> {
        if self.locked.has_tables() { Err(active_locks()) } else { Ok(()) }
    }

    /// Under LOCK TABLES: 1100 for a new table, because it cannot have been locked.
    pub(crate) fn check_new_table(&self, name: &str) -> Result<(), SqlError> {
        if self.locked.has_tables() { Err(SqlError::not_locked(name)) } else { Ok(()) }
    }

    /// Looks up and locks a table for a statement that changes its definition. Under LOCK TABLES it has to be
    /// locked already.
    ///
    /// # Errors
    /// 1146 and others, 1099, 1100, 1205, 1317.
    pub(crate) fn lock_definition<'l>(
        &self,
        locks: &'l MetadataLocks,
        database: &str,
        name: &str,
    ) -> Result<(Arc<Table>, StatementLocks<'l>), SqlError> {
        loop {
            let table = self.table_to_use(database, name)?;
            let mut held = StatementLocks::new(locks, self.client.id);
            if self.locked.has_tables() {
                self.locked.check(Used { table: &table, alias: name, mode: Mode::Define })?;
                return Ok((table, held));
            }
            held.lock(self, table.id(), Mode::Define)?;
            // It may have been dropped or replaced during the wait.
            if self.table(database, name)?.id() == table.id() {
                return Ok((table, held));
            }
        }
    }

    /// Under LOCK TABLES: if a table replaced another one, it is locked instead.
    pub(crate) fn replace_locked_table(&mut self, old: TableId, new: TableId) -> Result<(), SqlError> {
        for at in 0..self.locked.tables.len() {
            let LockedTable { table, named: Named { mode, .. } } = self.locked.tables[at];
            if table == old {
                self.instance.locks.lock(new, mode, &self.request())?;
                self.instance.locks.unlock(old, mode, self.client.id);
                self.locked.tables[at].table = new;
            }
        }
        Ok(())
    }

    /// Under LOCK TABLES: removes a table that was dropped.
    pub(crate) fn forget_locked_table(&mut self, dropped: TableId) {
        let owner = self.client.id;
        let locks = &self.instance.locks;
        self.locked.tables.retain(|known| {
            let keep = known.table != dropped;
            if !keep {
                locks.unlock(known.table, known.named.mode, owner);
            }
            keep
        });
    }

    /// Unlocks what LOCK TABLES locked.
    pub(crate) fn unlock_tables(&mut self) {
        self.locked.locks_tables = false;
        for known in std::mem::take(&mut self.locked.tables) {
            self.instance.locks.unlock(known.table, known.named.mode, self.client.id);
        }
    }

    /// Locks all of these tables or none, in the order of their ids. If a table has several names, the
    /// strongest lock comes first. So two sessions cannot wait for each other.
    fn lock_named(&mut self, mut wanted: Vec<(Arc<Table>, LockedTable)>) -> Result<(), SqlError> {
        wanted.sort_by_key(|(_, wanted)| (wanted.table.0, wanted.named.mode != Mode::KeepAllOut));
        let instance = self.instance.clone();
        let mut held: Vec<LockedTable> = Vec::new();
        for (table, wanted) in wanted {
            let mode = wanted.named.mode;
            let locked = instance.locks.lock(wanted.table, mode, &self.request()).and_then(|()| {
                held.push(wanted.clone());
                // It may have been replaced during the wait.
                let now = self.table(&wanted.named.database, &wanted.named.name)?;
                match now.id() == table.id() {
                    true => Ok(()),
                    false => Err(SqlError::definition_changed()),
                }
            });
            if let Err(error) = locked {
                held.iter()
                    .for_each(|held| instance.locks.unlock(held.table, held.named.mode, self.client.id));
                return Err(error);
            }
        }
        self.locked.tables = held;
        self.locked.locks_tables = true;
        Ok(())
    }

    /// Locks the tables with these names, all or none. If one was replaced meanwhile, it is looked up again.
    pub(crate) fn lock_named_again(&mut self, names: &[Named]) -> Result<(), SqlError> {
        for _ in 0..DEFINITION_RETRIES {
            let mut wanted = Vec::with_capacity(names.len());
            for named in names {
                let table = self.table(&named.database, &named.name)?;
                let locked = LockedTable { named: named.clone(), table: table.id() };
                wanted.push((table, locked));
            }
            match self.lock_named(wanted) {
                Err(error) if error.is_definition_changed() => {}
                done => return done,
            }
        }
        Err(SqlError::definition_changed())
    }
}

//! LOCK TABLES, UNLOCK TABLES, FLUSH TABLES.

use crate::locks::{MetadataLocks, Mode};
use crate::session::transaction::{StatementLocks, Used};
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, ResultSink, Session, SqlError};
use base::TableId;
use engine::Table;
use std::sync::Arc;

/// What a session has locked by statements of its own.
#[derive(Debug, Default)]
pub(crate) struct Locked {
    /// FLUSH TABLES WITH READ LOCK.
    pub everything: bool,
    /// LOCK TABLES.
    tables: Vec<LockedTable>,
    /// True from LOCK TABLES to UNLOCK TABLES, even if all the tables are dropped.
    locks_tables: bool,
}

/// A table that LOCK TABLES names.
#[derive(Clone, Debug)]
struct Named {
    database: String,
    name: String,
    /// What statements have to call it.
    alias: String,
    mode: Mode,
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

fn only_read(name: &str) -> SqlError {
    let text = format!("Table '{name}' was locked with a READ lock and can't be updated");
    SqlError::new(ErrorKind::TableLockedForRead, text)
}

impl Locked {
    #[inline]
    pub fn has_tables(&self) -> bool {
        self.locks_tables
    }

    /// Under LOCK TABLES: as [`Locked::check`] for all tables of a statement, which needs a lock for each time that it names one.
    pub fn check_all<'t>(&self, tables: impl Iterator<Item = Used<'t>> + Clone) -> Result<(), SqlError> {
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

    /// Under LOCK TABLES: 1100 for a table that is not locked by this name, 1099 for one that may only be read.
    pub fn check(&self, used: Used<'_>) -> Result<(), SqlError> {
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
    /// Under LOCK TABLES: 1192 for a statement that cannot be there.
    pub(crate) fn check_no_locked_tables(&self) -> Result<(), SqlError> {
        if self.locked.has_tables() { Err(active_locks()) } else { Ok(()) }
    }

    /// Under LOCK TABLES: 1100 for a new table, which cannot have been locked.
    pub(crate) fn check_new_table(&self, name: &str) -> Result<(), SqlError> {
        if self.locked.has_tables() { Err(SqlError::not_locked(name)) } else { Ok(()) }
    }

    /// Looks up and locks a table for a statement that changes its definition; under LOCK TABLES it has to be locked already.
    ///
    /// # Errors
    /// 1146 and its like, 1099, 1100, 1205, 1317.
    pub(crate) fn lock_definition<'l>(
        &self,
        locks: &'l MetadataLocks,
        database: &str,
        name: &str,
    ) -> Result<(Arc<Table>, StatementLocks<'l>), SqlError> {
        loop {
            let table = self.table_to_use(database, name)?;
            let mut held = StatementLocks::new(locks, self.id);
            if self.locked.has_tables() {
                self.locked.check(Used { table: &table, alias: name, mode: Mode::Define })?;
                return Ok((table, held));
            }
            held.lock(self, table.id(), Mode::Define)?;
            // It may have been dropped or replaced while we waited.
            if self.table(database, name)?.id() == table.id() {
                return Ok((table, held));
            }
        }
    }

    /// Under LOCK TABLES a table that took another's place is locked in its stead.
    pub(crate) fn replace_locked_table(&mut self, old: TableId, new: TableId) -> Result<(), SqlError> {
        for at in 0..self.locked.tables.len() {
            let LockedTable { table, named: Named { mode, .. } } = self.locked.tables[at];
            if table == old {
                self.instance.locks.lock(new, mode, &self.request())?;
                self.instance.locks.unlock(old, mode, self.id);
                self.locked.tables[at].table = new;
            }
        }
        Ok(())
    }

    /// Under LOCK TABLES a table that was dropped is forgotten.
    pub(crate) fn forget_locked_table(&mut self, dropped: TableId) {
        let owner = self.id;
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
            self.instance.locks.unlock(known.table, known.named.mode, self.id);
        }
    }

    /// Locks all of these tables or none. In the order of their numbers, a table under several names for the most first, so that two
    /// sessions do not wait for each other.
    fn lock_named(&mut self, mut wanted: Vec<(Arc<Table>, LockedTable)>) -> Result<(), SqlError> {
        wanted.sort_by_key(|(_, wanted)| (wanted.table.0, wanted.named.mode != Mode::KeepAllOut));
        let instance = self.instance.clone();
        let mut held: Vec<LockedTable> = Vec::new();
        for (table, wanted) in wanted {
            let mode = wanted.named.mode;
            let locked = instance.locks.lock(wanted.table, mode, &self.request()).and_then(|()| {
                held.push(wanted.clone());
                // It may have been replaced while we waited.
                let now = self.table(&wanted.named.database, &wanted.named.name)?;
                match now.id() == table.id() {
                    true => Ok(()),
                    false => Err(crate::statements::dml::definition_changed()),
                }
            });
            if let Err(error) = locked {
                held.iter().for_each(|held| instance.locks.unlock(held.table, held.named.mode, self.id));
                return Err(error);
            }
        }
        self.locked.tables = held;
        self.locked.locks_tables = true;
        Ok(())
    }

    fn lock_named_again(&mut self, names: &[Named]) -> Result<(), SqlError> {
        for _ in 0..crate::statements::dml::DEFINITION_RETRIES {
            let mut wanted = Vec::with_capacity(names.len());
            for named in names {
                let table = self.table(&named.database, &named.name)?;
                let locked = LockedTable { named: named.clone(), table: table.id() };
                wanted.push((table, locked));
            }
            match self.lock_named(wanted) {
                Err(error) if crate::statements::dml::is_definition_changed(&error) => {}
                done => return done,
            }
        }
        Err(crate::statements::dml::definition_changed())
    }
}

/// LOCK TABLES t [[AS] alias] {READ [LOCAL] | [LOW_PRIORITY] WRITE}, ... [WAIT n | NOWAIT], behind LOCK.
pub(crate) fn lock_tables(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if !words.accept("TABLES") {
        words.expect("TABLE")?;
    }
    let mut names: Vec<Named> = Vec::new();
    loop {
        let (database, name) = words.qualified_name()?;
        let database = session.resolve_database(database)?;
        let mut alias = name.clone();
        if words.accept("AS") || !["READ", "WRITE", "LOW_PRIORITY"].iter().any(|mode| words.is(mode)) {
            alias = words.name()?;
        }
        let mode = if words.accept("READ") {
            words.accept("LOCAL");
            Mode::KeepWritersOut
        } else {
            words.accept("LOW_PRIORITY");
            words.expect("WRITE")?;
            words.accept("CONCURRENT");
            Mode::KeepAllOut
        };
        if names.iter().any(|known| known.alias == alias) {
            return Err(SqlError::new(
                ErrorKind::NotUniqueTable,
                format!("Not unique table/alias: '{alias}'"),
            ));
        }
        names.push(Named { database, name, alias, mode });
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    session.implicit_commit()?;
    session.unlock_tables();
    let instance = session.instance.clone();
    let writes = names.iter().any(|named| named.mode == Mode::KeepAllOut);
    if writes {
        session.check_not_locked_out()?;
    }
    let _writing = match writes {
        true => Some(instance.read_lock.write(&session.writing, &session.request())?),
        false => None,
    };
    session.lock_named_again(&names)?;
    session.done(0, String::new(), sink)
}

/// UNLOCK TABLES, behind UNLOCK.
pub(crate) fn unlock_tables(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if !words.accept("TABLES") {
        words.expect("TABLE")?;
    }
    words.end()?;
    if session.locked.has_tables() {
        session.implicit_commit()?;
        session.unlock_tables();
    }
    if std::mem::take(&mut session.locked.everything) {
        session.instance.read_lock.unlock();
    }
    session.done(0, String::new(), sink)
}

/// FLUSH TABLES [t, ...] [WITH READ LOCK | FOR EXPORT], behind TABLES.
pub(crate) fn flush_tables(session: &mut Session, words: &mut Words<'_>) -> Result<(), SqlError> {
    let mut names = Vec::new();
    while !matches!(words.peek(), Word::End) && !words.is("WITH") && !words.is("FOR") {
        let (database, name) = words.qualified_name()?;
        let (database, alias) = (session.resolve_database(database)?, name.clone());
        names.push(Named { database, name, alias, mode: Mode::KeepWritersOut });
        if !words.accept_symbol(",") {
            break;
        }
    }
    let export = words.accept_all(&["FOR", "EXPORT"]);
    let locks = export || words.accept_all(&["WITH", "READ", "LOCK"]);
    words.end()?;
    if !locks {
        let mut locked = session.locked.tables.iter().map(|known| &known.named);
        if let Some(known) = locked.find(|known| known.mode == Mode::KeepWritersOut) {
            return Err(only_read(&known.alias));
        }
        // Tables are always open, and what is to be written is written by the checkpoint.
        return session.implicit_commit();
    }
    session.check_no_locked_tables()?;
    session.implicit_commit()?;
    if names.is_empty() {
        if !session.locked.everything {
            session.instance.read_lock.lock(&session.request())?;
            session.locked.everything = true;
        }
        return Ok(());
    }
    session.lock_named_again(&names)
}

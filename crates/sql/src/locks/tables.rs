//! LOCK TABLES, UNLOCK TABLES, FLUSH TABLES.

use super::{MetadataLocks, Mode};
use crate::parse::{Word, Words};
use crate::transaction::StatementLocks;
use crate::{ResultSink, Session, SqlError};
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

#[derive(Clone, Debug)]
struct LockedTable {
    database: String,
    name: String,
    table: TableId,
    mode: Mode,
}

/// 1192.
fn active_locks() -> SqlError {
    SqlError::new(
        1192,
        b"HY000",
        "Can't execute the given command because you have active locked tables or an active transaction",
    )
}

fn not_locked(name: &str) -> SqlError {
    SqlError::new(1100, b"HY000", format!("Table '{name}' was not locked with LOCK TABLES"))
}

fn only_read(name: &str) -> SqlError {
    let text = format!("Table '{name}' was locked with a READ lock and can't be updated");
    SqlError::new(1099, b"HY000", text)
}

impl Locked {
    #[inline]
    pub fn has_tables(&self) -> bool {
        self.locks_tables
    }

    /// Under LOCK TABLES: 1100 for a table that is not locked, 1099 for one that may only be read.
    pub fn check(&self, table: &Table, write: bool) -> Result<(), SqlError> {
        let mut known = self.tables.iter().filter(|known| known.table == table.id()).peekable();
        if known.peek().is_none() {
            return Err(not_locked(&table.def().name));
        }
        if write && known.all(|known| known.mode == Mode::KeepWritersOut) {
            return Err(only_read(&table.def().name));
        }
        Ok(())
    }
}

impl Session {
    /// Under LOCK TABLES: 1192 for a statement that cannot be there.
    pub(crate) fn check_no_locked_tables(&self) -> Result<(), SqlError> {
        if self.locked.has_tables() { Err(active_locks()) } else { Ok(()) }
    }

    /// Under LOCK TABLES: 1100 for a new table, which cannot have been locked.
    pub(crate) fn check_new_table(&self, name: &str) -> Result<(), SqlError> {
        if self.locked.has_tables() { Err(not_locked(name)) } else { Ok(()) }
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
            let table = self.table(database, name)?;
            let mut held = StatementLocks::new(locks, self.id);
            if self.locked.has_tables() {
                self.locked.check(&table, true)?;
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
            let LockedTable { table, mode, .. } = self.locked.tables[at];
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
                locks.unlock(known.table, known.mode, owner);
            }
            keep
        });
    }

    /// Unlocks what LOCK TABLES locked.
    pub(crate) fn unlock_tables(&mut self) {
        self.locked.locks_tables = false;
        for known in std::mem::take(&mut self.locked.tables) {
            self.instance.locks.unlock(known.table, known.mode, self.id);
        }
    }

    /// Locks all of these tables or none. In the order of their numbers, so that two sessions do not wait for each other.
    fn lock_named(&mut self, mut wanted: Vec<(Arc<Table>, LockedTable)>) -> Result<(), SqlError> {
        wanted.sort_by_key(|(_, wanted)| wanted.table.0);
        let instance = self.instance.clone();
        let mut held: Vec<LockedTable> = Vec::new();
        for (table, wanted) in wanted {
            let locked = instance.locks.lock(wanted.table, wanted.mode, &self.request()).and_then(|()| {
                held.push(wanted.clone());
                // It may have been replaced while we waited.
                let now = self.table(&wanted.database, &wanted.name)?;
                match now.id() == table.id() {
                    true => Ok(()),
                    false => Err(crate::dml::definition_changed()),
                }
            });
            if let Err(error) = locked {
                held.iter().for_each(|held| instance.locks.unlock(held.table, held.mode, self.id));
                return Err(error);
            }
        }
        self.locked.tables = held;
        self.locked.locks_tables = true;
        Ok(())
    }

    fn lock_named_again(&mut self, names: &[(String, String, Mode)]) -> Result<(), SqlError> {
        for _ in 0..crate::dml::DEFINITION_RETRIES {
            let mut wanted = Vec::with_capacity(names.len());
            for (database, name, mode) in names {
                let table = self.table(database, name)?;
                let (database, name) = (database.clone(), name.clone());
                let locked = LockedTable { database, name, table: table.id(), mode: *mode };
                wanted.push((table, locked));
            }
            match self.lock_named(wanted) {
                Err(error) if crate::dml::is_definition_changed(&error) => {}
                done => return done,
            }
        }
        Err(crate::dml::definition_changed())
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
    let mut names: Vec<(String, String, Mode)> = Vec::new();
    let mut aliases: Vec<String> = Vec::new();
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
        if aliases.contains(&alias) {
            return Err(SqlError::new(1066, b"42000", format!("Not unique table/alias: '{alias}'")));
        }
        aliases.push(alias);
        // One table under two aliases is locked once, for the more of the two.
        match names.iter_mut().find(|known| known.0 == database && known.1 == name) {
            Some(known) if mode == Mode::KeepAllOut => known.2 = mode,
            Some(_) => {}
            None => names.push((database, name, mode)),
        }
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    session.implicit_commit()?;
    session.unlock_tables();
    let instance = session.instance.clone();
    let writes = names.iter().any(|(_, _, mode)| *mode == Mode::KeepAllOut);
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
        names.push((session.resolve_database(database)?, name, Mode::KeepWritersOut));
        if !words.accept_symbol(",") {
            break;
        }
    }
    let export = words.accept_all(&["FOR", "EXPORT"]);
    let locks = export || words.accept_all(&["WITH", "READ", "LOCK"]);
    words.end()?;
    if !locks {
        let read_only = |known: &LockedTable| known.mode == Mode::KeepWritersOut;
        if let Some(known) = session.locked.tables.iter().find(|known| read_only(known)) {
            return Err(only_read(&known.name));
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

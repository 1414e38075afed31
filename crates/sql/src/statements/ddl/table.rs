//! CREATE, DROP, RENAME and TRUNCATE TABLE.

use super::build::{Surroundings, build};
use super::database::check_writable;
use super::foreign_keys::{
    Before, check_definition, check_drop, check_truncate, follow_rename, note_definition,
};
use crate::accounts::Rights;
use crate::audit::TableUse;
use crate::definition::column_types::collation_named;
use crate::definition::metadata::TableMetadata;
use crate::definition::parse::{table_body, table_options};
use crate::definition::rank;
use crate::locks::Mode;
use crate::locks::Used;
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, ResultSink, Session, SqlError};
use engine::{Error, TableDef};
use types::Collation;

/// `collation_server`, in the form that columns can have.
pub(super) fn server_collation(session: &Session) -> Collation {
    collation_named(&session.variables.values().text("collation_server"))
        .unwrap_or(Collation::Utf8mb4GeneralCi)
}

/// Seconds since 1970.
pub(super) fn now(session: &Session) -> u64 {
    session.variables.timestamp() as u64
}

pub(super) fn surroundings<'a>(session: &Session, database: &'a str) -> Result<Surroundings<'a>, SqlError> {
    let values = session.instance.globals.values();
    Ok(Surroundings {
        database,
        collation: session.database_collation(database)?,
        sql_mode: session.variables.common.sql_mode,
        zone: session.variables.zone().clone(),
        explicit_timestamps: session.variables.values().boolean("explicit_defaults_for_timestamp"),
        default_engine: session.variables.values().text("default_storage_engine"),
        strict_options: session.variables.values().boolean("innodb_strict_mode"),
        page_size: u32::try_from(values.unsigned("innodb_page_size")).unwrap_or(u32::MAX),
        altering: None,
        now: now(session),
    })
}

pub(super) fn table_exists(name: &str) -> SqlError {
    SqlError::new(ErrorKind::TableExists, format!("Table '{name}' already exists"))
}

/// The error that a client gets for an engine's error about a table. It contains the table's name.
pub(super) fn table_error(error: Error, database: &str, name: &str) -> SqlError {
    match error {
        Error::TableExists => table_exists(name),
        Error::NoSuchTable => SqlError::no_such_table(database, name),
        Error::NoSuchDatabase => SqlError::unknown_database(database),
        other => other.into(),
    }
}

/// CREATE [OR REPLACE] TABLE, behind those words.
pub(crate) fn create_table(
    session: &mut Session,
    words: &mut Words<'_>,
    or_replace: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_not_exists = words.accept_all(&["IF", "NOT", "EXISTS"]);
    let (database, name) = words.qualified_name()?;
    let database = session.resolve_database(database)?;
    check_writable(session, &database)?;
    let mut wanted = if or_replace { Rights::CREATE | Rights::DROP } else { Rights::CREATE };
    if fills(words) {
        wanted |= Rights::INSERT;
    }
    session.check_rights(wanted, &database, &name)?;
    let collation = session.database_collation(&database)?;
    if let Some(source) = like(words)? {
        words.end()?;
        let from = session.resolve_database(source.0.clone())?;
        session.check_rights(Rights::SELECT, &from, &source.1)?;
        session.implicit_commit()?;
        if already(session, &database, &name, if_not_exists, or_replace)? {
            return session.done(0, String::new(), sink);
        }
        let def = copy_of(session, source, &database, &name)?;
        return create(session, def, None, if_not_exists, sink);
    }
    let has_body = matches!(words.peek(), Word::Symbol(symbol) if symbol == "(")
        && !matches!(words.peek_second(), Word::Bare(word) if word.eq_ignore_ascii_case("SELECT"));
    let spec = if has_body {
        table_body(words, collation)?
    } else {
        let mut ignored = Vec::new();
        let options = table_options(words, &mut ignored, collation)?;
        crate::definition::TableSpec { options, ignored, ..Default::default() }
    };
    let _ = words.accept("IGNORE") || words.accept("REPLACE");
    let as_select = words.accept("AS") || words.is("SELECT") || words.is("WITH") || words.is("(");
    if !as_select {
        words.end()?;
    }
    session.implicit_commit()?;
    if already(session, &database, &name, if_not_exists, or_replace)? {
        return session.done(0, String::new(), sink);
    }
    if as_select {
        return super::select::create_from_select(session, &database, &name, spec, words, sink);
    }
    let around = surroundings(session, &database)?;
    let auto_increment = spec.options.auto_increment;
    let def = build(&name, spec, &around, &mut session.state.warnings)?;
    create(session, def, auto_increment, if_not_exists, sink)
}

/// True if a SELECT follows, whose rows the new table gets. Parentheses may be around it, and columns before
/// it.
fn fills(words: &Words<'_>) -> bool {
    let mut words = words.clone();
    loop {
        match words.next() {
            Word::End => return false,
            Word::Bare(word) if word.eq_ignore_ascii_case("SELECT") => return true,
            _ => {}
        }
    }
}

/// LIKE t, with or without parentheses.
fn like(words: &mut Words<'_>) -> Result<Option<(Option<String>, String)>, SqlError> {
    let mut ahead = words.clone();
    let parenthesis = ahead.accept_symbol("(");
    if !ahead.accept("LIKE") {
        return Ok(None);
    }
    let source = ahead.qualified_name()?;
    if parenthesis {
        ahead.expect_symbol(")")?;
    }
    *words = ahead;
    Ok(Some(source))
}

/// Handles a table that exists already. True if that ends the statement.
fn already(
    session: &mut Session,
    database: &str,
    name: &str,
    if_not_exists: bool,
    or_replace: bool,
) -> Result<bool, SqlError> {
    let table = match session.instance.database.table(database, name) {
        Ok(table) => table,
        Err(Error::NoSuchTable) => {
            session.check_new_table(name)?;
            return Ok(false);
        }
        Err(error) => return Err(table_error(error, database, name)),
    };
    if session.locked.has_tables() {
        session.locked.check(Used { table: &table, alias: name, mode: Mode::Define })?;
    }
    if or_replace {
        let instance = session.instance.clone();
        let (table, _lock) = session.lock_definition(&instance.locks, database, name)?;
        let full_name = (database.to_owned(), name.to_owned());
        check_drop(session, &full_name)?;
        session.note_table(TableUse::Drop, database, name);
        return match instance.database.drop_table(database, name) {
            Ok(()) | Err(Error::NoSuchTable) => {
                note_definition(session, &full_name);
                session.forget_locked_table(table.id());
                Ok(false)
            }
            Err(error) => Err(table_error(error, database, name)),
        };
    }
    let error = table_exists(name);
    if !if_not_exists {
        return Err(error);
    }
    session.state.warnings.note(error.kind, error.message);
    Ok(true)
}

fn create(
    session: &mut Session,
    def: TableDef,
    auto_increment: Option<u64>,
    if_not_exists: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let (database, name) = (def.database.clone(), def.name.clone());
    session.note_table(TableUse::Create, &database, &name);
    let instance = session.instance.clone();
    let _parents = match check_definition(session, &instance.locks, &def, Before::default()) {
        // That the table exists comes first.
        Err(error) if instance.database.table(&database, &name).is_err() => return Err(error),
        parents => parents.ok(),
    };
    match instance.database.create_table(def) {
        Ok(table) => {
            note_definition(session, &(database.clone(), name.clone()));
            if let Some(next) = auto_increment.filter(|next| *next > 1) {
                table.raise_auto_increment(next - 1);
            }
        }
        Err(Error::TableExists) if if_not_exists => {
            let error = table_exists(&name);
            session.state.warnings.note(error.kind, error.message);
        }
        Err(error) => return Err(table_error(error, &database, &name)),
    }
    session.done(0, String::new(), sink)
}

/// The definition of another table under a new name.
fn copy_of(
    session: &Session,
    source: (Option<String>, String),
    database: &str,
    name: &str,
) -> Result<TableDef, SqlError> {
    crate::names::check_table(name)?;
    let source_database = session.resolve_database(source.0)?;
    let table = session
        .instance
        .database
        .table(&source_database, &source.1)
        .map_err(|error| table_error(error, &source_database, &source.1))?;
    let mut def = (*table.def()).clone();
    let mut metadata = TableMetadata::of(&def)?;
    metadata.created = now(session);
    // As in MariaDB, the copy has none.
    metadata.foreign_keys.clear();
    let columns = &def.columns;
    def.indexes.sort_by_key(|index| rank(columns, index));
    def.sql_metadata = metadata.encode();
    database.clone_into(&mut def.database);
    name.clone_into(&mut def.name);
    Ok(def)
}

/// DROP TABLE, behind those words.
pub(crate) fn drop_table(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_exists = words.accept_all(&["IF", "EXISTS"]);
    let mut tables = Vec::new();
    loop {
        let (database, name) = words.qualified_name()?;
        tables.push((session.resolve_database(database)?, name));
        if !words.accept_symbol(",") {
            break;
        }
    }
    let _ = words.accept("RESTRICT") || words.accept("CASCADE");
    words.end()?;
    for (database, name) in &tables {
        session.check_rights(Rights::DROP, database, name)?;
    }
    session.implicit_commit()?;
    let instance = session.instance.clone();
    let mut missing = Vec::new();
    // The other tables are dropped all the same.
    let mut refusal = None;
    for (database, name) in tables {
        check_writable(session, &database)?;
        let full_name = (database.clone(), name.clone());
        match session.lock_definition(&instance.locks, &database, &name) {
            Ok((table, _lock)) => {
                if let Err(error) = check_drop(session, &full_name) {
                    refusal.get_or_insert(error);
                    continue;
                }
                session.note_table(TableUse::Drop, &database, &name);
                instance.database.drop_table(&database, &name)?;
                note_definition(session, &full_name);
                session.forget_locked_table(table.id());
            }
            Err(error)
                if error.kind == ErrorKind::NoSuchTable || error.kind == ErrorKind::UnknownDatabase =>
            {
                missing.push(format!("{database}.{name}"));
            }
            // Closed because it is damaged: nobody uses it, and this is how it goes.
            Err(error) if error.kind == ErrorKind::TableCorrupt => {
                session.note_table(TableUse::Drop, &database, &name);
                instance.database.drop_table(&database, &name)?;
                note_definition(session, &full_name);
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = refusal {
        return Err(error);
    }
    if !missing.is_empty() {
        let error = SqlError::unknown_table(&missing.join(","));
        if !if_exists {
            return Err(error);
        }
        session.state.warnings.note(error.kind, error.message);
    }
    session.done(0, String::new(), sink)
}

/// TRUNCATE [TABLE], behind those words.
pub(crate) fn truncate_table(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let (database, name) = words.qualified_name()?;
    words.end()?;
    let database = session.resolve_database(database)?;
    session.check_rights(Rights::DROP, &database, &name)?;
    session.implicit_commit()?;
    check_writable(session, &database)?;
    let instance = session.instance.clone();
    {
        let (table, _lock) = session.lock_definition(&instance.locks, &database, &name)?;
        check_truncate(session, &(database.clone(), name.clone()))?;
        session.note_table(TableUse::Write, &database, &name);
        instance.database.truncate(&table).map_err(|error| table_error(error, &database, &name))?;
    }
    session.done(0, String::new(), sink)
}

/// RENAME TABLE a TO b, c TO d: one after the other. After an error, the tables renamed before are renamed
/// back.
pub(crate) fn rename_table(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut pairs = Vec::new();
    loop {
        let (from_database, from) = words.qualified_name()?;
        words.expect("TO")?;
        let (to_database, to) = words.qualified_name()?;
        let from_database = session.resolve_database(from_database)?;
        let to_database = session.resolve_database(to_database)?;
        pairs.push(((from_database, from), (to_database, to)));
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    for (from, to) in &pairs {
        check_rename(session, from, to)?;
    }
    session.check_no_locked_tables()?;
    session.implicit_commit()?;
    let engine = session.instance.database.clone();
    for (position, (from, to)) in pairs.iter().enumerate() {
        let Err(error) = rename(session, from, to) else { continue };
        for (from, to) in pairs[..position].iter().rev() {
            // A failure here is ignored: the client has to see the first error.
            let _ = engine.rename_table((&to.0, &to.1), (&from.0, &from.1));
            let _ = follow_rename(session, to, from);
        }
        return Err(error);
    }
    session.done(0, String::new(), sink)
}

/// # Errors
/// 1142.
pub(super) fn check_rename(
    session: &Session,
    from: &(String, String),
    to: &(String, String),
) -> Result<(), SqlError> {
    session.check_rights(Rights::ALTER | Rights::DROP, &from.0, &from.1)?;
    session.check_rights(Rights::CREATE | Rights::INSERT, &to.0, &to.1)
}

pub(super) fn rename(
    session: &mut Session,
    from: &(String, String),
    to: &(String, String),
) -> Result<(), SqlError> {
    check_writable(session, &from.0)?;
    check_writable(session, &to.0)?;
    crate::names::check_table(&to.1)?;
    let instance = session.instance.clone();
    let (_, _lock) = session.lock_definition(&instance.locks, &from.0, &from.1)?;
    session.note_table(TableUse::Rename, &from.0, &format!("{}|{}.{}", from.1, to.0, to.1));
    instance.database.rename_table((&from.0, &from.1), (&to.0, &to.1)).map_err(|error| match error {
        Error::TableExists => table_exists(&to.1),
        Error::NoSuchDatabase => SqlError::unknown_database(&to.0),
        other => table_error(other, &from.0, &from.1),
    })?;
    follow_rename(session, from, to)
}

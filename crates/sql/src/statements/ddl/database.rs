//! CREATE, ALTER and DROP DATABASE.

use super::foreign_keys::{check_drop_with_database, note_definition};
use crate::accounts::Rights;
use crate::audit::TableUse;
use crate::definition::metadata::DatabaseMetadata;
use crate::definition::parse::{charset_option, database_options};
use crate::text::parse::Words;
use crate::{ErrorKind, ResultSink, Session, SqlError, names};
use engine::Error;

fn exists(name: &str) -> SqlError {
    SqlError::new(ErrorKind::DatabaseExists, format!("Can't create database '{name}'; database exists"))
}

/// 1044 for a database that no statement can change.
pub(super) fn check_writable(session: &Session, database: &str) -> Result<(), SqlError> {
    if names::virtual_database(database).is_none() {
        return Ok(());
    }
    Err(session.access.database_denied(database))
}

/// CREATE {DATABASE | SCHEMA}, behind those words.
pub(crate) fn create_database(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_not_exists = words.accept_all(&["IF", "NOT", "EXISTS"]);
    let name = words.name()?;
    let collation = database_options(words, super::table::server_collation(session))?;
    words.end()?;
    session.check_no_locked_tables()?;
    session.implicit_commit()?;
    names::check_database(&name)?;
    session.access.check_database(&name, Rights::CREATE)?;
    let is_computed = match names::virtual_database(&name) {
        Some(names::INFORMATION_SCHEMA) => return Err(session.access.database_denied(&name)),
        computed => computed.is_some(),
    };
    let metadata = DatabaseMetadata {
        collation: match collation {
            Some(collation) => collation,
            None => super::table::server_collation(session),
        },
    };
    let made = match is_computed {
        true => Err(Error::DatabaseExists),
        false => session.instance.database.create_database(&name, &metadata.encode()),
    };
    match made {
        Ok(()) => session.done(1, String::new(), sink),
        Err(Error::DatabaseExists) if if_not_exists => {
            let error = exists(&name);
            session.state.warnings.note(error.kind, error.message);
            session.done(0, String::new(), sink)
        }
        Err(Error::DatabaseExists) => Err(exists(&name)),
        Err(error) => Err(error.into()),
    }
}

/// ALTER {DATABASE | SCHEMA} [name] options, behind those words. Tables keep their own collations.
pub(crate) fn alter_database(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut ahead = words.clone();
    let is_current = charset_option(&mut ahead)
        || ahead.is("COLLATE")
        || ahead.is("DEFAULT")
        || (ahead.is("COMMENT") && !ahead.accept_all(&["COMMENT", "DEFAULT"]));
    let written = if is_current { None } else { Some(words.name()?) };
    let name = session.resolve_database(written)?;
    let before = words.error();
    let collation = database_options(words, session.database_collation(&name)?)?;
    words.end()?;
    session.check_no_locked_tables()?;
    session.implicit_commit()?;
    check_writable(session, &name)?;
    session.access.check_database(&name, Rights::ALTER)?;
    let collation = collation.ok_or(before)?;
    let metadata = DatabaseMetadata { collation };
    match session.instance.database.set_database_metadata(&name, &metadata.encode()) {
        Ok(()) => session.done(1, String::new(), sink),
        Err(Error::NoSuchDatabase) => Err(SqlError::unknown_database(&name)),
        Err(error) => Err(error.into()),
    }
}

/// DROP {DATABASE | SCHEMA}, behind those words.
pub(crate) fn drop_database(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_exists = words.accept_all(&["IF", "EXISTS"]);
    let name = words.name()?;
    words.end()?;
    session.check_no_locked_tables()?;
    session.implicit_commit()?;
    check_writable(session, &name)?;
    session.access.check_database(&name, Rights::DROP)?;
    let missing = || {
        SqlError::new(
            ErrorKind::DatabaseDoesNotExist,
            format!("Can't drop database '{name}'; database doesn't exist"),
        )
    };
    let dropped = match drop_with_tables(session, &name) {
        Ok(dropped) => dropped,
        Err(DropError::NoSuchDatabase) if if_exists => {
            let error = missing();
            session.state.warnings.note(error.kind, error.message);
            return session.done(0, String::new(), sink);
        }
        Err(DropError::NoSuchDatabase) => return Err(missing()),
        Err(DropError::Other(error)) => return Err(error),
    };
    if session.state.database.as_deref() == Some(name.as_str()) {
        session.state.database = None;
        session.note_schema();
    }
    session.done(dropped, String::new(), sink)
}

enum DropError {
    /// It was not there, or another session has dropped it meanwhile.
    NoSuchDatabase,
    Other(SqlError),
}

impl From<Error> for DropError {
    fn from(error: Error) -> DropError {
        match error {
            Error::NoSuchDatabase => DropError::NoSuchDatabase,
            error => DropError::Other(error.into()),
        }
    }
}

/// Gives the number of tables that it had.
fn drop_with_tables(session: &mut Session, name: &str) -> Result<u64, DropError> {
    let database = session.instance.database.clone();
    let tables = database.tables(name)?;
    let instance = session.instance.clone();
    for table in &tables {
        let table_name = table.def().name.clone();
        let _lock = match session.lock_definition(&instance.locks, name, &table_name) {
            Ok((_, lock)) => lock,
            // Another session has dropped it meanwhile.
            Err(error) if error.kind == ErrorKind::NoSuchTable => continue,
            // And the database with it.
            Err(error) if error.kind == ErrorKind::UnknownDatabase => return Err(DropError::NoSuchDatabase),
            Err(error) => return Err(DropError::Other(error)),
        };
        let full_name = (name.to_owned(), table_name.clone());
        check_drop_with_database(session, &full_name).map_err(DropError::Other)?;
        session.note_table(TableUse::Drop, name, &table_name);
        match database.drop_table(name, &table_name) {
            Ok(()) | Err(Error::NoSuchTable) => note_definition(session, &full_name),
            Err(error) => return Err(error.into()),
        }
    }
    database.drop_database(name)?;
    Ok(tables.len() as u64)
}

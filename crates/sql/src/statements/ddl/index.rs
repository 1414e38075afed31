//! CREATE INDEX and DROP INDEX, also as parts of ALTER TABLE.

use super::build::{duplicate_key_name, generated_name, key_parts};
use super::database::check_writable;
use super::foreign_keys::{check_indexes, without_indexes};
use super::table::table_error;
use crate::accounts::Rights;
use crate::audit::TableUse;
use crate::definition::metadata::TableMetadata;
use crate::definition::parse::{index_options, key_parts as parse_key_parts};
use crate::definition::{IndexOptions, KeyKind, KeySpec};
use crate::session::ProgressMeter;
use crate::statements::dml::duplicate_entry;
use crate::text::parse::Words;
use crate::{ErrorKind, ResultSink, Session, SqlError, names};
use engine::{BuildStep, Building, Error, IndexDef, Table};

/// CREATE [UNIQUE] INDEX, behind INDEX.
pub(crate) fn create_index(
    session: &mut Session,
    words: &mut Words<'_>,
    unique: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_not_exists = words.accept_all(&["IF", "NOT", "EXISTS"]);
    let name = words.name()?;
    if words.accept("USING") {
        words.name()?;
    }
    words.expect("ON")?;
    let (database, table) = words.qualified_name()?;
    let parts = parse_key_parts(words)?;
    let options = index_options(words)?;
    algorithm_and_lock(words)?;
    words.end()?;
    let database = session.resolve_database(database)?;
    session.check_rights(Rights::INDEX, &database, &table)?;
    session.implicit_commit()?;
    check_writable(session, &database)?;
    let instance = session.instance.clone();
    let (found, _lock) = session.lock_definition(&instance.locks, &database, &table)?;
    session.note_table(TableUse::Alter, &database, &table);
    let kind = if unique { KeyKind::Unique } else { KeyKind::Plain };
    let key = KeySpec { kind, name: Some(name.clone()), parts, options, reference: None };
    let added = add_index(session, &found, &key, &mut ProgressMeter::new(session, INDEX_STAGES, sink));
    match added {
        Err(error) if error.kind == ErrorKind::DuplicateKeyName && if_not_exists => {
            session.state.warnings.note(error.kind, error.message);
        }
        Err(error) => return Err(error),
        Ok(()) if key.options != IndexOptions::default() => {
            let mut metadata = TableMetadata::of(&found.def())?;
            metadata.note_index(&name, &key.options);
            session.instance.database.set_sql_metadata(&found, metadata.encode())?;
        }
        Ok(()) => {}
    }
    session.done(0, "Records: 0  Duplicates: 0  Warnings: 0".to_owned(), sink)
}

/// ALGORITHM = x and LOCK = x. They have no effect here.
pub(super) fn algorithm_and_lock(words: &mut Words<'_>) -> Result<(), SqlError> {
    while words.is("ALGORITHM") || words.is("LOCK") {
        words.next();
        words.accept_symbol("=");
        words.name()?;
    }
    Ok(())
}

/// With less memory than this, in bytes, an index would be sorted in too many pieces.
const SORT_BYTES_MIN: usize = 1 << 20;

/// An index is added in this many stages.
pub(super) const INDEX_STAGES: usize = 2;

/// Adds an index, other than the primary key, to a table.
pub(super) fn add_index(
    session: &Session,
    table: &Table,
    key: &KeySpec,
    meter: &mut ProgressMeter<'_>,
) -> Result<(), SqlError> {
    let def = table.def();
    let parts = key_parts(&def.columns, key, table.key_bytes_max())?;
    let name = match &key.name {
        Some(name) => {
            names::check_index(name)?;
            name.clone()
        }
        None => generated_name(&def.columns[parts[0].column].name, &def.indexes, &[]),
    };
    if def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(&name)) {
        return Err(duplicate_key_name(&name));
    }
    let index = IndexDef { name: name.clone(), unique: key.kind == KeyKind::Unique, parts: parts.clone() };
    let sort_bytes = session.variables.values().unsigned("myisam_sort_buffer_size");
    let sort_bytes = usize::try_from(sort_bytes).unwrap_or(usize::MAX).max(SORT_BYTES_MIN);
    let rows = table.row_count();
    let mut building = None;
    let mut refusal = None;
    let mut watch = |step, done| {
        if building != Some(step) {
            building = Some(step);
            meter.next_stage(match step {
                BuildStep::Read => "reading rows",
                BuildStep::Write => "writing index",
            });
        }
        meter.note(done, rows).map_err(|error| {
            refusal = Some(error);
            Error::Interrupted
        })
    };
    match session.instance.database.build_index(table, index, Building { sort_bytes, watch: &mut watch }) {
        Ok(()) => Ok(()),
        Err(Error::Interrupted) if let Some(error) = refusal => Err(error),
        Err(Error::IndexExists) => Err(duplicate_key_name(&name)),
        Err(Error::DuplicateKey { .. }) => Err(first_duplicate(table, &parts, &name)?),
        Err(error) => Err(table_error(error, &def.database, &def.name)),
    }
}

/// Finds the value that makes a unique index impossible. The message shows it.
fn first_duplicate(table: &Table, parts: &[types::KeyPart], name: &str) -> Result<SqlError, SqlError> {
    use std::collections::HashSet;
    let def = table.def();
    let codec = types::KeyCodec::new(&def.columns, parts);
    let mut seen = HashSet::new();
    let everything =
        engine::KeyRange { lower: std::ops::Bound::Unbounded, upper: std::ops::Bound::Unbounded };
    let mut scan =
        table.scan(engine::Reader::newest(), base::IndexId(0), everything, engine::Direction::Forward);
    while let Some(image) = scan.next_row()? {
        let row = table.row_codec().view(image);
        if codec.row_has_null(&row) {
            continue;
        }
        let mut key = Vec::new();
        codec.encode_row(&row, &mut key);
        if !seen.insert(key) {
            return Ok(duplicate_entry(&row, &def, parts, name));
        }
    }
    // Another session has removed the duplicate meanwhile.
    Ok(SqlError::new(ErrorKind::DuplicateEntry, format!("Duplicate entry for key '{name}'")))
}

pub(super) fn cannot_drop(what: &str, name: &str) -> SqlError {
    SqlError::new(
        ErrorKind::CannotDropColumnOrKey,
        format!("Can't DROP {what} `{name}`; check that it exists"),
    )
}

/// DROP INDEX, behind INDEX.
pub(crate) fn drop_index(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_exists = words.accept_all(&["IF", "EXISTS"]);
    let name = words.name()?;
    words.expect("ON")?;
    let (database, table) = words.qualified_name()?;
    algorithm_and_lock(words)?;
    words.end()?;
    let database = session.resolve_database(database)?;
    session.check_rights(Rights::INDEX, &database, &table)?;
    session.implicit_commit()?;
    check_writable(session, &database)?;
    let instance = session.instance.clone();
    let (found, _lock) = session.lock_definition(&instance.locks, &database, &table)?;
    session.note_table(TableUse::Alter, &database, &table);
    if name.eq_ignore_ascii_case("PRIMARY") {
        let actions = vec![super::alter::Action::DropPrimary];
        return super::alter::carry_out(session, &database, &table, actions, sink);
    }
    let def = found.def();
    check_indexes(session, &def, &without_indexes(&def, &[&name]), &[&name])?;
    match remove_index(session, &found, &name) {
        Err(error) if error.kind == ErrorKind::CannotDropColumnOrKey && if_exists => {
            session.state.warnings.note(error.kind, error.message);
        }
        other => other?,
    }
    session.done(0, "Records: 0  Duplicates: 0  Warnings: 0".to_owned(), sink)
}

pub(super) fn remove_index(session: &Session, table: &Table, name: &str) -> Result<(), SqlError> {
    let def = table.def();
    let index = def
        .indexes
        .iter()
        .find(|index| index.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| cannot_drop("INDEX", name))?;
    check_auto_increment(&def, &[name])?;
    match session.instance.database.drop_index(table, &index.name) {
        Err(Error::NoSuchIndex) => return Err(cannot_drop("INDEX", name)),
        other => other?,
    }
    // A later index of this name has options of its own.
    let before = TableMetadata::of(&table.def())?;
    let mut metadata = before.clone();
    metadata.forget_index(name);
    if metadata != before {
        session.instance.database.set_sql_metadata(table, metadata.encode())?;
    }
    Ok(())
}

/// 1075 if no index would begin with the AUTO_INCREMENT column after the indexes `dropped` are removed.
pub(super) fn check_auto_increment(def: &engine::TableDef, dropped: &[&str]) -> Result<(), SqlError> {
    let Some(column) = def.auto_increment else { return Ok(()) };
    let leads = |parts: &[types::KeyPart]| parts.first().is_some_and(|part| part.column == column);
    let kept = def.indexes.iter().any(|index| {
        leads(&index.parts) && !dropped.iter().any(|name| name.eq_ignore_ascii_case(&index.name))
    });
    if kept || def.primary.as_deref().is_some_and(leads) {
        return Ok(());
    }
    Err(SqlError::new(
        ErrorKind::WrongAutoIncrementKey,
        "Incorrect table definition; there can be only one auto column and it must be defined as a key",
    ))
}

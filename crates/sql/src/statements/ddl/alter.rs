//! ALTER TABLE.
//!
//! Adding and dropping secondary indexes, AUTO_INCREMENT and RENAME happen in place. All other actions make a
//! second table, copy the rows, and give it the name of the first. Readers see the old table until then.

use super::build::{build, key_parts};
use super::conditions;
use super::copy::copy_rows;
use super::database::check_writable;
use super::foreign_keys::{
    Before, check_change_column, check_conditions, check_definition, check_drop_column, check_indexes,
    follow_columns, follow_own_columns, note_definition, without_indexes,
};
use super::index::{
    INDEX_STAGES, add_index, algorithm_and_lock, cannot_drop, check_auto_increment, remove_index,
};
use super::table::{check_rename, rename, surroundings, table_error};
use crate::accounts::Rights;
use crate::audit::TableUse;
use crate::definition::check::CheckSpec;
use crate::definition::column_types::{blob_class, name_or_string};
use crate::definition::foreign_key::ForeignKey;
use crate::definition::metadata::TableMetadata;
use crate::definition::parse::{
    DefaultSpec, charset_option, check_of_table, column_definition, default_value, index_is_ignored,
    key_definition, table_options,
};
use crate::definition::*;
use crate::session::ProgressMeter;
use crate::session::relations::name_of;
use crate::text::LexicalMode;
use crate::text::parse::{Word, Words};
use crate::variables::assign::engine_named;
use crate::{ErrorKind, ResultSink, Session, SqlError};
use engine::{Table, TableDef};
use std::sync::Arc;
use types::Collation;

/// Where a column is inserted.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ColumnPosition {
    First,
    After(String),
    Stay,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Action {
    AddColumn(ColumnSpec, ColumnPosition),
    DropColumn(String),
    /// The old name and the new definition.
    ChangeColumn(String, ColumnSpec, ColumnPosition),
    /// `None` for DROP DEFAULT.
    SetDefault(String, Option<DefaultSpec>),
    RenameColumn(String, String),
    AddKey(KeySpec),
    AddCheck(CheckSpec),
    DropKey(String),
    DropPrimary,
    DropForeignKey(String),
    /// A FOREIGN KEY, or else a unique index.
    DropConstraint(String),
    RenameKey(String, String),
    /// True for IGNORED.
    IgnoreKey(String, bool),
    Rename(Option<String>, String),
    Options(TableOptions),
    ConvertTo(Collation),
    /// FORCE and ORDER BY: the table is copied.
    Rebuild,
    /// DISABLE KEYS, ENABLE KEYS and other actions that have no effect here.
    Nothing,
}

/// ALTER TABLE, behind those words.
pub(crate) fn alter_table(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let if_exists = words.accept_all(&["IF", "EXISTS"]);
    let (database, name) = words.qualified_name()?;
    let database = session.resolve_database(database)?;
    check_writable(session, &database)?;
    let wanted = if renames(words) { Rights::ALTER | Rights::DROP } else { Rights::ALTER };
    session.check_rights(wanted, &database, &name)?;
    let table = match session.table_to_use(&database, &name) {
        Err(error) if error.kind == ErrorKind::NoSuchTable && if_exists => {
            session.state.warnings.error(&error);
            return session.done(0, String::new(), sink);
        }
        table => table?,
    };
    let collation = TableMetadata::of(&table.def())?.collation;
    let mut actions = Vec::new();
    loop {
        let is_conditional = conditions::is_conditional(words);
        let before = actions.len();
        action(words, &table.def(), collation, session, &mut actions)?;
        if is_conditional {
            conditions::leave_out(session, &table.def(), &mut actions, before)?;
        }
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    carry_out(session, &database, &name, actions, sink)
}

/// True if one of the actions gives the table another name.
fn renames(words: &Words<'_>) -> bool {
    let mut words = words.clone();
    loop {
        match words.next() {
            Word::End => return false,
            Word::Bare(word)
                if word.eq_ignore_ascii_case("RENAME")
                    && !["COLUMN", "INDEX", "KEY"].iter().any(|kind| words.is(kind)) =>
            {
                return true;
            }
            _ => {}
        }
    }
}

fn position(words: &mut Words<'_>) -> Result<ColumnPosition, SqlError> {
    if words.accept("FIRST") {
        return Ok(ColumnPosition::First);
    }
    if words.accept("AFTER") {
        return Ok(ColumnPosition::After(words.name()?));
    }
    Ok(ColumnPosition::Stay)
}

fn action(
    words: &mut Words<'_>,
    def: &TableDef,
    collation: Collation,
    session: &mut Session,
    actions: &mut Vec<Action>,
) -> Result<(), SqlError> {
    let mut ignored = Vec::new();
    if words.accept("ADD") {
        add(words, collation, actions)?;
    } else if words.accept("DROP") {
        actions.push(drop(words)?);
    } else if words.accept("MODIFY") {
        words.accept("COLUMN");
        conditions::accept_if_exists(words);
        let column = column_definition(words, collation)?;
        let position = position(words)?;
        actions.push(Action::ChangeColumn(column.name.clone(), column, position));
    } else if words.accept("CHANGE") {
        words.accept("COLUMN");
        conditions::accept_if_exists(words);
        let old = words.name()?;
        let column = column_definition(words, collation)?;
        let position = position(words)?;
        actions.push(Action::ChangeColumn(old, column, position));
    } else if words.accept_all(&["ALTER", "INDEX"]) || words.accept_all(&["ALTER", "KEY"]) {
        words.accept_all(&["IF", "EXISTS"]);
        let name = words.name()?;
        match index_is_ignored(words) {
            Some(is_ignored) => actions.push(Action::IgnoreKey(name, is_ignored)),
            None => return Err(words.error()),
        }
    } else if words.accept("ALTER") {
        words.accept("COLUMN");
        let name = words.name()?;
        if words.accept_all(&["DROP", "DEFAULT"]) {
            actions.push(Action::SetDefault(name, None));
        } else {
            words.expect("SET")?;
            words.expect("DEFAULT")?;
            let metadata = TableMetadata::of(def)?;
            let columns = columns_of(def, &metadata);
            let position = find_column(&columns, &name, &def.name)?;
            let value = default_value(words, &columns[position])?;
            actions.push(Action::SetDefault(name, Some(value)));
        }
    } else if words.accept("RENAME") {
        actions.push(rename_action(words)?);
    } else if words.accept("CONVERT") {
        words.expect("TO")?;
        if !charset_option(words) {
            return Err(words.error());
        }
        let charset = name_or_string(words)?;
        let collate = if words.accept("COLLATE") { Some(name_or_string(words)?) } else { None };
        let chosen =
            crate::definition::column_types::combine(Some(&charset), collate.as_deref(), false, collation)?;
        actions.push(Action::ConvertTo(chosen.unwrap_or(collation)));
    } else if words.accept("DISABLE") || words.accept("ENABLE") {
        words.expect("KEYS")?;
        session.state.warnings.note(
            ErrorKind::IllegalForTable,
            "DISABLE KEYS and ENABLE KEYS change nothing: indexes are always kept",
        );
        actions.push(Action::Nothing);
    } else if words.accept("FORCE") {
        actions.push(Action::Rebuild);
    } else if words.accept("ORDER") {
        words.expect("BY")?;
        loop {
            words.name()?;
            let _ = words.accept("ASC") || words.accept("DESC");
            if !words.accept_symbol(",") {
                break;
            }
        }
        actions.push(Action::Nothing);
    } else if words.is("ALGORITHM") || words.is("LOCK") {
        algorithm_and_lock(words)?;
        actions.push(Action::Nothing);
    } else if words.is("PARTITION") || words.is("DISCARD") || words.is("IMPORT") || words.is("TRUNCATE") {
        let what = words.name()?;
        return Err(SqlError::not_supported(&format!("ALTER TABLE ... {}", what.to_ascii_uppercase())));
    } else {
        let before = words.error();
        let options = table_options(words, &mut ignored, collation)?;
        if options == TableOptions::default() {
            return Err(before);
        }
        if let Some(engine) = &options.engine {
            engine_named(engine)?;
        }
        actions.push(Action::Options(options));
    }
    for what in ignored {
        session.state.warnings.warn(ErrorKind::NotSupported, format!("{what} is accepted and has no effect"));
    }
    Ok(())
}

fn add(words: &mut Words<'_>, collation: Collation, actions: &mut Vec<Action>) -> Result<(), SqlError> {
    if let Some(check) = check_of_table(words)? {
        actions.push(Action::AddCheck(check));
        return Ok(());
    }
    if let Some(key) = key_definition(words)? {
        actions.push(Action::AddKey(key));
        return Ok(());
    }
    words.accept("COLUMN");
    conditions::accept_if_not_exists(words);
    if words.accept_symbol("(") {
        loop {
            let column = column_definition(words, collation)?;
            actions.push(Action::AddColumn(column, ColumnPosition::Stay));
            if !words.accept_symbol(",") {
                break;
            }
        }
        return words.expect_symbol(")");
    }
    let column = column_definition(words, collation)?;
    let position = position(words)?;
    actions.push(Action::AddColumn(column, position));
    Ok(())
}

fn drop(words: &mut Words<'_>) -> Result<Action, SqlError> {
    if words.accept_all(&["PRIMARY", "KEY"]) {
        return Ok(Action::DropPrimary);
    }
    if words.accept_all(&["FOREIGN", "KEY"]) {
        conditions::accept_if_exists(words);
        return Ok(Action::DropForeignKey(words.name()?));
    }
    // DROP CHECK is MySQL's.
    if words.accept("CONSTRAINT") || words.accept("CHECK") {
        conditions::accept_if_exists(words);
        return Ok(Action::DropConstraint(words.name()?));
    }
    if words.accept("KEY") || words.accept("INDEX") {
        conditions::accept_if_exists(words);
        let name = words.name()?;
        return Ok(if name.eq_ignore_ascii_case("PRIMARY") {
            Action::DropPrimary
        } else {
            Action::DropKey(name)
        });
    }
    words.accept("COLUMN");
    conditions::accept_if_exists(words);
    let name = words.name()?;
    let _ = words.accept("RESTRICT") || words.accept("CASCADE");
    Ok(Action::DropColumn(name))
}

fn rename_action(words: &mut Words<'_>) -> Result<Action, SqlError> {
    if words.accept("COLUMN") {
        conditions::accept_if_exists(words);
        let from = words.name()?;
        words.expect("TO")?;
        return Ok(Action::RenameColumn(from, words.name()?));
    }
    if words.accept("INDEX") || words.accept("KEY") {
        let from = words.name()?;
        words.expect("TO")?;
        return Ok(Action::RenameKey(from, words.name()?));
    }
    let _ = words.accept("TO") || words.accept("AS") || words.accept_symbol("=");
    let (database, name) = words.qualified_name()?;
    Ok(Action::Rename(database, name))
}

/// Runs the actions.
pub(super) fn carry_out(
    session: &mut Session,
    database: &str,
    name: &str,
    actions: Vec<Action>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    for action in &actions {
        if let Action::Rename(to_database, to) = action {
            let to_database = to_database.as_deref().unwrap_or(database);
            check_rename(
                session,
                &(database.to_owned(), name.to_owned()),
                &(to_database.to_owned(), to.clone()),
            )?;
        }
    }
    session.implicit_commit()?;
    let instance = session.instance.clone();
    // Waits for writers of the table and for transactions that have used it. Sessions that come later wait,
    // and then see the changed table.
    let (table, _lock) = session.lock_definition(&instance.locks, database, name)?;
    session.note_table(TableUse::Alter, database, name);
    let in_place = is_in_place(&actions);
    let copied = if in_place {
        change_indexes(session, &table, &actions, sink)?;
        0
    } else {
        copy(session, database, name, &table, &actions, sink)?
    };
    for action in &actions {
        match action {
            Action::Rename(to_database, to) => {
                let to_database = to_database.clone().unwrap_or_else(|| database.to_owned());
                rename(session, &(database.to_owned(), name.to_owned()), &(to_database, to.clone()))?;
            }
            Action::Options(TableOptions { auto_increment: Some(next), .. }) if in_place && *next > 0 => {
                table.raise_auto_increment(next - 1);
            }
            _ => {}
        }
    }
    let warnings = session.state.warnings.count_u16();
    session.done(copied, format!("Records: {copied}  Duplicates: 0  Warnings: {warnings}"), sink)
}

/// Copies all rows of a table to a new one, as OPTIMIZE TABLE does.
pub(crate) fn rebuild_table(
    session: &mut Session,
    database: &str,
    name: &str,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let instance = session.instance.clone();
    let (table, _lock) = session.lock_definition(&instance.locks, database, name)?;
    copy(session, database, name, &table, &[Action::Rebuild], sink).map(|_| ())
}

/// True if no row has to be copied.
fn is_in_place(actions: &[Action]) -> bool {
    let dropped: Vec<&str> = actions
        .iter()
        .filter_map(|action| match action {
            Action::DropKey(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    actions.iter().all(|action| match action {
        Action::AddKey(key) => {
            let renewed = key
                .name
                .as_ref()
                .is_some_and(|name| dropped.iter().any(|other| other.eq_ignore_ascii_case(name)));
            key.kind != KeyKind::Primary
                && key.reference.is_none()
                && key.options == IndexOptions::default()
                && !renewed
        }
        Action::DropKey(_)
        | Action::DropForeignKey(_)
        | Action::IgnoreKey(..)
        | Action::Rename(..)
        | Action::Nothing => true,
        Action::Options(options) => {
            options.collation.is_none() && options.comment.is_none() && options.shown.is_empty()
        }
        _ => false,
    })
}

fn change_indexes(
    session: &mut Session,
    table: &Arc<Table>,
    actions: &[Action],
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let def = table.def();
    let mut dropped = Vec::new();
    for action in actions {
        if let Action::DropKey(name) = action {
            if !def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name)) {
                return Err(cannot_drop("INDEX", name));
            }
            dropped.push(name.as_str());
        }
    }
    if !dropped.is_empty() {
        check_auto_increment(&def, &dropped)?;
        let mut left = without_indexes(&def, &dropped);
        for action in actions {
            if let Action::AddKey(key) = action {
                let parts = key_parts(&def.columns, key, table.key_bytes_max())?;
                left.indexes.push(engine::IndexDef { name: String::new(), unique: false, parts });
            }
        }
        check_indexes(session, &def, &left, &dropped)?;
    }
    let mut metadata = TableMetadata::of(&def)?;
    let before = metadata.clone();
    for action in actions {
        if let Action::DropForeignKey(name) = action {
            let at = named_foreign_key(&metadata.foreign_keys, name)?;
            metadata.foreign_keys.remove(at);
        }
        if let Action::IgnoreKey(name, is_ignored) = action {
            let index = def.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(name));
            let name = index.map(|index| &index.name).ok_or_else(|| no_such_key(name, &def.name))?;
            let options = IndexOptions { ignored: *is_ignored, ..metadata.index_options(name) };
            metadata.note_index(name, &options);
        }
    }
    if metadata != before {
        session.instance.database.set_sql_metadata(table, metadata.encode())?;
        note_definition(session, &name_of(&def));
    }
    let added = actions.iter().filter(|action| matches!(action, Action::AddKey(_))).count();
    let mut meter = ProgressMeter::new(session, added * INDEX_STAGES, sink);
    for action in actions {
        if let Action::AddKey(key) = action
            && let Err(error) = add_index(session, table, key, &mut meter)
        {
            // Drop the indexes that this statement added before.
            for index in &table.def().indexes {
                if !def.indexes.iter().any(|before| before.name == index.name) {
                    session.instance.database.drop_index(table, &index.name)?;
                }
            }
            return Err(error);
        }
    }
    for name in dropped {
        remove_index(session, table, name)?;
    }
    Ok(())
}

/// The columns of a table in the form in which CREATE TABLE is read.
pub(super) fn columns_of(def: &TableDef, metadata: &TableMetadata) -> Vec<ColumnSpec> {
    def.columns
        .iter()
        .zip(&metadata.columns)
        .enumerate()
        .map(|(position, (column, extras))| ColumnSpec {
            name: column.name.clone(),
            column_type: column.column_type.clone(),
            own_collation: column.column_type.has_characters()
                && column.column_type.collation() != metadata.collation,
            nullable: Some(column.nullable),
            auto_increment: def.auto_increment == Some(position),
            primary: false,
            unique: false,
            reference: None,
            check: None,
            generated: None,
            default: None,
            extras: extras.clone(),
        })
        .collect()
}

fn spec_of(def: &TableDef, metadata: &TableMetadata) -> TableSpec {
    let part = |part: &types::KeyPart| KeyPartSpec {
        column: def.columns[part.column].name.clone(),
        prefix: part.prefix_chars,
        descending: part.descending,
    };
    let mut keys = Vec::new();
    if let Some(primary) = &def.primary {
        keys.push(KeySpec {
            kind: KeyKind::Primary,
            name: None,
            parts: primary.iter().map(part).collect(),
            options: metadata.index_options("PRIMARY"),
            reference: None,
        });
    }
    for index in &def.indexes {
        keys.push(KeySpec {
            kind: if index.unique { KeyKind::Unique } else { KeyKind::Plain },
            name: Some(index.name.clone()),
            parts: index.parts.iter().map(part).collect(),
            options: metadata.index_options(&index.name),
            reference: None,
        });
    }
    TableSpec {
        columns: columns_of(def, metadata),
        keys,
        foreign_keys: metadata.foreign_keys.clone(),
        old_checks: metadata.checks.clone(),
        checks: Vec::new(),
        options: TableOptions {
            engine: None,
            auto_increment: None,
            collation: Some(metadata.collation),
            comment: Some(metadata.comment.clone()),
            shown: metadata.options.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect(),
        },
        ignored: Vec::new(),
    }
}

fn find_column(columns: &[ColumnSpec], name: &str, table: &str) -> Result<usize, SqlError> {
    columns
        .iter()
        .position(|column| column.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| SqlError::unknown_column(name, table))
}

/// The definition of the table after the actions. For each column it also says which old column its values
/// come from.
fn changed(
    def: &TableDef,
    metadata: &TableMetadata,
    actions: &[Action],
) -> Result<(TableSpec, Vec<Option<usize>>), SqlError> {
    let mut spec = spec_of(def, metadata);
    let mut sources: Vec<Option<usize>> = (0..spec.columns.len()).map(Some).collect();
    for action in actions {
        match action {
            Action::AddColumn(column, position) => {
                let at = match position {
                    ColumnPosition::First => 0,
                    ColumnPosition::After(name) => find_column(&spec.columns, name, &def.name)? + 1,
                    ColumnPosition::Stay => spec.columns.len(),
                };
                spec.columns.insert(at, column.clone());
                sources.insert(at, None);
            }
            Action::DropColumn(name) => {
                let at = spec
                    .columns
                    .iter()
                    .position(|column| column.name.eq_ignore_ascii_case(name))
                    .ok_or_else(|| cannot_drop("COLUMN", name))?;
                if spec.columns.len() == 1 {
                    return Err(SqlError::new(
                        ErrorKind::CannotRemoveAllColumns,
                        "You can't delete all columns with ALTER TABLE; use DROP TABLE instead",
                    ));
                }
                spec.columns.remove(at);
                sources.remove(at);
                for key in &mut spec.keys {
                    key.parts.retain(|part| !part.column.eq_ignore_ascii_case(name));
                }
                spec.keys.retain(|key| !key.parts.is_empty());
            }
            Action::ChangeColumn(old, column, position) => {
                let at = find_column(&spec.columns, old, &def.name)?;
                rename_in_keys(&mut spec, old, &column.name);
                check_kind(&spec.columns[at], column)?;
                spec.columns[at] = column.clone();
                let to = match position {
                    ColumnPosition::First => 0,
                    ColumnPosition::Stay => at,
                    ColumnPosition::After(name) => {
                        let after = find_column(&spec.columns, name, &def.name)?;
                        if after < at { after + 1 } else { after }
                    }
                };
                let moved = spec.columns.remove(at);
                spec.columns.insert(to, moved);
                let source = sources.remove(at);
                sources.insert(to, source);
            }
            Action::SetDefault(name, value) => {
                let at = find_column(&spec.columns, name, &def.name)?;
                set_default(&mut spec.columns[at], value.clone())?;
            }
            Action::RenameColumn(from, to) => {
                crate::names::check_column(to)?;
                let at = find_column(&spec.columns, from, &def.name)?;
                spec.columns[at].name.clone_from(to);
                rename_in_keys(&mut spec, from, to);
            }
            Action::AddKey(key) => spec.keys.push(key.clone()),
            Action::AddCheck(check) => spec.checks.push(check.clone()),
            Action::DropKey(name) => {
                let at = named_key(&spec.keys, name).ok_or_else(|| cannot_drop("INDEX", name))?;
                spec.keys.remove(at);
            }
            Action::DropForeignKey(name) => {
                let at = named_foreign_key(&spec.foreign_keys, name)?;
                spec.foreign_keys.remove(at);
            }
            Action::DropConstraint(name) => drop_constraint(&mut spec, name)?,
            Action::DropPrimary => {
                let at = spec
                    .keys
                    .iter()
                    .position(|key| key.kind == KeyKind::Primary)
                    .ok_or_else(|| cannot_drop("INDEX", "PRIMARY"))?;
                spec.keys.remove(at);
            }
            Action::RenameKey(from, to) => {
                let at = named_key(&spec.keys, from).ok_or_else(|| no_such_key(from, &def.name))?;
                spec.keys[at].name = Some(to.clone());
            }
            Action::IgnoreKey(name, ignored) => {
                let at = named_key(&spec.keys, name).ok_or_else(|| no_such_key(name, &def.name))?;
                spec.keys[at].options.ignored = *ignored;
            }
            Action::Options(options) => merge(&mut spec.options, options),
            Action::ConvertTo(collation) => convert(&mut spec, *collation),
            Action::Rename(..) | Action::Rebuild | Action::Nothing => {}
        }
    }
    Ok((spec, sources))
}

pub(super) fn no_such_key(name: &str, table: &str) -> SqlError {
    SqlError::new(ErrorKind::KeyDoesNotExist, format!("Key '{name}' doesn't exist in table '{table}'"))
}

/// # Errors
/// 1907.
fn set_default(column: &mut ColumnSpec, value: Option<DefaultSpec>) -> Result<(), SqlError> {
    if column.extras.generated.is_some() {
        return Err(SqlError::not_yet_for_generated());
    }
    (column.extras.default, column.default) = match value {
        None => (ColumnDefault::Unset, None),
        Some(DefaultSpec::Value(value)) => (value, None),
        Some(DefaultSpec::Expression(written)) => (ColumnDefault::Unset, Some(written)),
    };
    Ok(())
}

/// As in MariaDB, a column does not become VIRTUAL, nor a VIRTUAL column another one. A STORED one may become
/// a plain one.
///
/// # Errors
/// 1907.
fn check_kind(old: &ColumnSpec, new: &ColumnSpec) -> Result<(), SqlError> {
    let before = old.extras.generated.as_ref().map(|generated| generated.stored);
    let after = new.generated.as_ref().map(|(_, stored)| *stored);
    let is_virtual = |kind: Option<bool>| kind == Some(false);
    match is_virtual(before) != is_virtual(after) {
        true => Err(SqlError::not_yet_for_generated()),
        false => Ok(()),
    }
}

/// # Errors
/// 1091.
fn drop_constraint(spec: &mut TableSpec, name: &str) -> Result<(), SqlError> {
    let is_unique = |at: &usize| spec.keys[*at].kind == KeyKind::Unique;
    let check = spec.old_checks.iter().position(|check| check.name.eq_ignore_ascii_case(name));
    if let Ok(at) = named_foreign_key(&spec.foreign_keys, name) {
        spec.foreign_keys.remove(at);
    } else if let Some(at) = check {
        spec.old_checks.remove(at);
    } else if let Some(at) = named_key(&spec.keys, name).filter(is_unique) {
        spec.keys.remove(at);
    } else {
        return Err(cannot_drop("CONSTRAINT", name));
    }
    Ok(())
}

fn named_foreign_key(keys: &[ForeignKey], name: &str) -> Result<usize, SqlError> {
    let found = keys.iter().position(|key| key.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| cannot_drop("FOREIGN KEY", name))
}

/// Checks that FOREIGN KEYs allow the actions. Returns the old and new names of columns that are renamed.
fn check_foreign_keys(
    session: &Session,
    def: &TableDef,
    actions: &[Action],
) -> Result<Vec<(String, String)>, SqlError> {
    let mut renamed = Vec::new();
    let is_dropped = |name: &str| {
        actions.iter().any(|action| match action {
            Action::DropForeignKey(other) | Action::DropConstraint(other) => other.eq_ignore_ascii_case(name),
            _ => false,
        })
    };
    // What the same statement drops is in no one's way.
    let mut left = def.clone();
    let mut metadata = TableMetadata::of(def)?;
    metadata.foreign_keys.retain(|key| !is_dropped(&key.name));
    left.sql_metadata = metadata.encode();
    for action in actions {
        match action {
            Action::DropColumn(name) => check_drop_column(session, &left, name)?,
            Action::ChangeColumn(old, column, _) => {
                check_change_column(session, &left, old, column)?;
                renamed.push((old.clone(), column.name.clone()));
            }
            Action::RenameColumn(from, to) => renamed.push((from.clone(), to.clone())),
            _ => {}
        }
    }
    renamed.retain(|(from, to)| !from.eq_ignore_ascii_case(to));
    Ok(renamed)
}

fn named_key(keys: &[KeySpec], name: &str) -> Option<usize> {
    keys.iter().position(|key| key.name.as_ref().is_some_and(|other| other.eq_ignore_ascii_case(name)))
}

fn rename_in_keys(spec: &mut TableSpec, from: &str, to: &str) {
    let parts = spec.keys.iter_mut().flat_map(|key| key.parts.iter_mut().map(|part| &mut part.column));
    let foreign = spec.foreign_keys.iter_mut().flat_map(|key| &mut key.columns);
    for column in parts.chain(foreign).filter(|column| column.eq_ignore_ascii_case(from)) {
        to.clone_into(column);
    }
    // Conditions quote the names of columns.
    let (from, to) = (quoted(from, LexicalMode::NONE), quoted(to, LexicalMode::NONE));
    let of_columns = spec.columns.iter_mut().flat_map(|column| {
        let extras = &mut column.extras;
        let default = match &mut extras.default {
            ColumnDefault::Expression(text) => Some(text),
            _ => None,
        };
        let generated = extras.generated.as_mut().map(|generated| &mut generated.expression);
        extras.check.as_mut().into_iter().chain(generated).chain(default)
    });
    let of_table = spec.old_checks.iter_mut().map(|check| &mut check.condition);
    for condition in of_columns.chain(of_table) {
        *condition = condition.replace(&from, &to);
    }
}

fn merge(into: &mut TableOptions, options: &TableOptions) {
    into.auto_increment = options.auto_increment.or(into.auto_increment);
    into.collation = options.collation.or(into.collation);
    if options.comment.is_some() {
        into.comment.clone_from(&options.comment);
    }
    for (name, value) in &options.shown {
        into.shown.retain(|(other, _)| other != name);
        into.shown.push((name.clone(), value.clone()));
    }
}

fn convert(spec: &mut TableSpec, to: Collation) {
    use types::ColumnType;
    spec.options.collation = Some(to);
    for column in &mut spec.columns {
        match &mut column.column_type {
            ColumnType::Char { collation, .. } | ColumnType::Varchar { collation, .. } => *collation = to,
            ColumnType::Text { collation, bytes_max } => {
                // A character set of longer characters needs a larger type for as many of them.
                let [from, into] = [*collation, to].map(|one| u64::from(one.character_bytes_max()));
                if into > from {
                    let bytes = u64::from(*bytes_max) / from * into;
                    *bytes_max = blob_class(bytes.min(u64::from(u32::MAX)), "").unwrap_or(u32::MAX);
                }
                *collation = to;
            }
            ColumnType::Enum { members, .. } | ColumnType::Set { members, .. } => {
                *members = Arc::new(members.with_collation(to));
            }
            _ => {}
        }
    }
}

/// Makes the changed table beside the old one, fills it, and replaces the old one by it. Returns the number
/// of rows.
fn copy(
    session: &mut Session,
    database: &str,
    name: &str,
    table: &Arc<Table>,
    actions: &[Action],
    sink: &mut dyn ResultSink,
) -> Result<u64, SqlError> {
    let instance = session.instance.clone();
    let old = table.def();
    let metadata = TableMetadata::of(&old)?.in_zone(&old, session.variables.zone());
    let renamed = check_foreign_keys(session, &old, actions)?;
    let (mut spec, sources) = changed(&old, &metadata, actions)?;
    let before = Before { keys: &[], renamed: &renamed };
    follow_own_columns(&mut spec.foreign_keys, (database, name), before);
    let kept = spec.foreign_keys.clone();
    let before = Before { keys: &kept, ..before };
    let next = spec.options.auto_increment;
    let engine_changes =
        actions.iter().any(|action| matches!(action, Action::Options(TableOptions { engine: Some(_), .. })));
    let mut around = surroundings(session, database)?;
    let asked = actions.iter().rev().find_map(|action| match action {
        Action::Options(options) => options.engine.clone(),
        _ => None,
    });
    around.altering = Some(asked.unwrap_or_else(|| metadata.engine.clone()));
    let mentions_page_size = spec.options.shown.iter().any(|(name, _)| name == "PAGE_SIZE");
    if !mentions_page_size && let Some(page_size) = old.page_size {
        around.page_size = page_size;
    }
    let mut def = build(name, spec, &around, &mut session.state.warnings)?;
    if !engine_changes {
        let mut changed = TableMetadata::decode(&def.sql_metadata)?;
        changed.engine.clone_from(&metadata.engine);
        changed.created = metadata.created;
        def.sql_metadata = changed.encode();
    }
    if !mentions_page_size {
        def.page_size = old.page_size;
    }
    let dropped: Vec<&str> = actions
        .iter()
        .filter_map(|action| match action {
            Action::DropKey(name) | Action::DropConstraint(name) => Some(name.as_str()),
            Action::DropPrimary => Some("PRIMARY"),
            _ => None,
        })
        .collect();
    if renamed.is_empty() {
        check_indexes(session, &old, &def, &dropped)?;
    }
    let parents = check_definition(session, &instance.locks, &def, before)?;
    let copy =
        instance.database.create_replacement(def).map_err(|error| table_error(error, database, name))?;
    let mut swapped = copy_rows(session, table, &copy, &sources, sink).and_then(|count| {
        if old.auto_increment.is_some() && copy.def().auto_increment.is_some() {
            copy.raise_auto_increment(table.next_auto_increment().saturating_sub(1));
        }
        if let Some(next) = next.filter(|next| *next > 1) {
            copy.raise_auto_increment(next - 1);
        }
        parents.check_rows(session, &copy)?;
        check_conditions(session, &copy)?;
        instance.database.replace_table(table, &copy).map_err(|error| table_error(error, database, name))?;
        let name = (database.to_owned(), name.to_owned());
        follow_columns(session, &name, before)?;
        note_definition(session, &name);
        Ok(count)
    });
    if swapped.is_ok()
        && let Err(error) = session.replace_locked_table(table.id(), copy.id())
    {
        swapped = Err(error);
    }
    if swapped.is_err() && !table.is_dropped() {
        // The old table is still in place, so the copy is discarded.
        instance.database.discard_replacement(&copy);
    }
    swapped
}

//! FOREIGN KEY in statements that define tables: what a constraint may be, and what it keeps from being
//! dropped or changed.

use crate::accounts::Rights;
use crate::definition::ColumnSpec;
use crate::definition::foreign_key::{ForeignKey, ReferentialAction, renamed};
use crate::definition::metadata::TableMetadata;
use crate::definition::quoted;
use crate::expr::{Context, Slots};
use crate::locks::{MetadataLocks, Mode};
use crate::plan::checks::Checks;
use crate::session::environment::SessionEnvironment;
use crate::session::relations::{TableName, column_positions, index_over, name_of, refused};
use crate::session::transaction::StatementLocks;
use crate::statements::dml::Search;
use crate::text::LexicalMode;
use crate::{ErrorKind, Session, SqlError};
use bumpalo::Bump;
use engine::{Direction, KeyRange, Reader, Table, TableDef};
use std::sync::Arc;
use types::{ColumnType, RowView, ValueRef};

/// 1005 with the number of an engine's error.
fn cannot_create(def: &TableDef, number: u16, text: &str) -> SqlError {
    let name = format!("{}.{}", shown(&def.database), shown(&def.name));
    let text = format!("Can't create table {name} (errno: {number} \"{text}\")");
    SqlError::new(ErrorKind::CannotCreateTable, text)
}

fn incorrect(def: &TableDef) -> SqlError {
    cannot_create(def, 150, "Foreign key constraint is incorrectly formed")
}

fn shown(name: &str) -> String {
    quoted(name, LexicalMode::NONE)
}

/// True if values of the columns can be compared key by key.
fn comparable(child: &ColumnType, parent: &ColumnType) -> bool {
    use ColumnType::*;
    match (child, parent) {
        (child, parent) if child.is_text() || parent.is_text() => {
            child.is_text() && parent.is_text() && child.collation() == parent.collation()
        }
        (Binary { .. } | Varbinary { .. }, Binary { .. } | Varbinary { .. }) => true,
        (child, parent) => child == parent,
    }
}

/// True if a constraint of `child` can refer to `parent`.
fn fits(child: &TableDef, parent: &TableDef, key: &ForeignKey) -> bool {
    let (Some(columns), Some(parents)) =
        (column_positions(child, &key.columns), column_positions(parent, &key.parent_columns))
    else {
        return false;
    };
    let nullable = columns.iter().all(|column| child.columns[*column].nullable);
    let sets_null = [key.on_delete, key.on_update].contains(&ReferentialAction::SetNull);
    let alike = columns.iter().zip(&parents).all(|(column, parent_column)| {
        comparable(&child.columns[*column].column_type, &parent.columns[*parent_column].column_type)
    });
    alike && (nullable || !sets_null) && index_over(parent, &parents).is_some()
}

/// The parents of a new table, or of one whose definition changes, with their definitions locked.
pub(super) struct Parents<'l> {
    _locks: StatementLocks<'l>,
    /// The constraints that are new.
    new: Vec<ForeignKey>,
    checks: bool,
}

/// What a table was before its definition is changed.
#[derive(Clone, Copy, Default)]
pub(super) struct Before<'a> {
    /// The constraints that it keeps, with the new names of its columns.
    pub keys: &'a [ForeignKey],
    /// The old and the new names of columns that are renamed.
    pub renamed: &'a [(String, String)],
}

impl Before<'_> {
    /// The new name of a column.
    fn new_name(&self, column: &mut String) {
        if let Some((_, to)) = self.renamed.iter().find(|(from, _)| from.eq_ignore_ascii_case(column)) {
            column.clone_from(to);
        }
    }
}

/// Checks the constraints of a table that is to be made or changed: those that it did not have before, and
/// those of other tables that refer to it.
///
/// # Errors
/// 1005, 1142, and those of waiting for the parents' definitions.
pub(super) fn check_definition<'l>(
    session: &Session,
    locks: &'l MetadataLocks,
    def: &TableDef,
    before: Before<'_>,
) -> Result<Parents<'l>, SqlError> {
    let instance = &session.instance;
    let checks = session.variables.common.foreign_key_checks;
    let constraints = instance.relations.constraints(&instance.database);
    let name = name_of(def);
    let keys = TableMetadata::of(def)?.foreign_keys;
    let mut locked = StatementLocks::new(locks, session.client.id);
    let mut new: Vec<ForeignKey> = Vec::new();
    let mut kept: Vec<&ForeignKey> = before.keys.iter().collect();
    for key in keys {
        if let Some(at) = kept.iter().position(|old| **old == key) {
            kept.remove(at);
            continue;
        }
        let is_taken = |other: &ForeignKey| other.name.eq_ignore_ascii_case(&key.name);
        if before.keys.iter().chain(&new).any(is_taken) || constraints.has_name(&def.database, &key.name) {
            return Err(cannot_create(def, 121, "Duplicate key on write or update"));
        }
        check_access(session, &key)?;
        if key.refers_to(&name.0, &name.1) {
            if !fits(def, def, &key) {
                return Err(incorrect(def));
            }
        } else {
            match session.table(&key.parent_database, &key.parent_table) {
                Ok(parent) => {
                    if !session.locked.has_tables() {
                        locked.lock(session, parent.id(), Mode::Define)?;
                    }
                    if !fits(def, &parent.def(), &key) && checks {
                        return Err(incorrect(def));
                    }
                }
                Err(_) if checks => return Err(incorrect(def)),
                Err(_) => {}
            }
        }
        new.push(key);
    }
    if checks {
        for (child, key) in constraints.children(&name) {
            let child = session.table(&child.0, &child.1).ok().filter(|_| *child != name);
            let mut key = (**key).clone();
            key.parent_columns.iter_mut().for_each(|column| before.new_name(column));
            if child.is_some_and(|child| !fits(&child.def(), def, &key)) {
                return Err(incorrect(def));
            }
        }
    }
    Ok(Parents { _locks: locked, new, checks })
}

/// 1142 if the session may do nothing with the parent.
fn check_access(session: &Session, key: &ForeignKey) -> Result<(), SqlError> {
    let (database, table) = (&key.parent_database, &key.parent_table);
    let enough = Rights::SELECT | Rights::INSERT | Rights::UPDATE | Rights::REFERENCES;
    match session.access.on_table(database, table).rights.intersects(enough) {
        true => Ok(()),
        false => Err(session.access.command_denied("REFERENCES", database, table)),
    }
}

impl Parents<'_> {
    /// Checks the rows that a table has already against the new constraints. The definitions of both tables
    /// are locked, so nobody changes rows.
    ///
    /// # Errors
    /// 1452.
    pub(super) fn check_rows(&self, session: &Session, table: &Table) -> Result<(), SqlError> {
        if !self.checks {
            return Ok(());
        }
        let def = table.def();
        let name = name_of(&def);
        for key in &self.new {
            let itself = key.refers_to(&name.0, &name.1);
            let found = session.table(&key.parent_database, &key.parent_table);
            let parent: Option<&Table> = match (itself, &found) {
                (true, _) => Some(table),
                (false, Ok(parent)) => Some(parent),
                (false, Err(_)) => None,
            };
            let violated = || {
                let constraint = key.shown((&name.0, &name.1), &def.database);
                refused(ErrorKind::NoReferencedRow, "add or update a child", &constraint)
            };
            let columns = column_positions(&def, &key.columns).unwrap_or_default();
            let parent_def = parent.map(Table::def);
            let parent_columns =
                parent_def.as_ref().and_then(|parent| column_positions(parent, &key.parent_columns));
            let search = match (parent, &parent_def, &parent_columns) {
                (Some(parent), Some(def), Some(columns)) => {
                    Some(Search::new(parent, index_over(def, columns), columns))
                }
                _ => None,
            };
            each_row(session, table, |row| {
                let values: Vec<ValueRef<'_>> = columns.iter().map(|column| row.get(*column)).collect();
                if values.iter().any(ValueRef::is_null) {
                    return Ok(());
                }
                let mut is_there = false;
                if let Some(search) = &search {
                    is_there = search.finds(Reader::newest(), &values)?;
                }
                if is_there { Ok(()) } else { Err(violated()) }
            })?;
        }
        Ok(())
    }
}

/// Checks the rows of a table against its CHECKs.
///
/// # Errors
/// 4025.
pub(super) fn check_conditions(session: &Session, table: &Table) -> Result<(), SqlError> {
    let def = table.def();
    let checks = Checks::of(&def, &TableMetadata::of(&def)?)?;
    let Some(checks) = checks.filter(|_| session.variables.common.check_constraint_checks) else {
        return Ok(());
    };
    let environment = SessionEnvironment::new(session);
    let mut arena = Bump::new();
    each_row(session, table, |row| {
        arena.reset();
        let context =
            Context { slots: Slots::EMPTY, arena: &arena, environment: &environment, subqueries: None };
        checks.test(row, &context)
    })
}

/// Calls with each row of a table.
fn each_row(
    session: &Session,
    table: &Table,
    mut each: impl FnMut(RowView<'_>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let mut scan = table.scan(Reader::newest(), base::IndexId(0), KeyRange::all(), Direction::Forward);
    while let Some(image) = scan.next_row()? {
        session.interrupt.check()?;
        each(table.row_codec().view(image))?;
    }
    Ok(())
}

/// 1451 if other tables refer to one that is to be dropped.
pub(super) fn check_drop(session: &Session, name: &TableName) -> Result<(), SqlError> {
    if session.variables.common.foreign_key_checks && !other_children(session, name).is_empty() {
        let text = "Cannot delete or update a parent row: a foreign key constraint fails";
        return Err(SqlError::new(ErrorKind::RowIsReferenced, text));
    }
    Ok(())
}

/// 1451 if tables of other databases refer to one that is to be dropped with its database.
pub(super) fn check_drop_with_database(session: &Session, name: &TableName) -> Result<(), SqlError> {
    let is_outside = |(child, _): &(TableName, Arc<ForeignKey>)| child.0 != name.0;
    match other_children(session, name).iter().any(is_outside) {
        true => check_drop(session, name),
        false => Ok(()),
    }
}

/// 1701 if other tables refer to one that is to be emptied.
pub(super) fn check_truncate(session: &Session, name: &TableName) -> Result<(), SqlError> {
    if session.variables.common.foreign_key_checks
        && let Some((child, key)) = other_children(session, name).first()
    {
        // Here the parent is shown with its database.
        let constraint = key.shown((&child.0, &child.1), "");
        let text = format!("Cannot truncate a table referenced in a foreign key constraint ({constraint})");
        return Err(SqlError::new(ErrorKind::TruncateOfParent, text));
    }
    Ok(())
}

/// The constraints of other tables that refer to this one.
fn other_children(session: &Session, name: &TableName) -> Vec<(TableName, Arc<ForeignKey>)> {
    let instance = &session.instance;
    let constraints = instance.relations.constraints(&instance.database);
    constraints.children(name).iter().filter(|(child, _)| child != name).cloned().collect()
}

/// The definition of a table without some of its indexes.
pub(super) fn without_indexes(def: &TableDef, dropped: &[&str]) -> TableDef {
    let is_dropped = |name: &str| dropped.iter().any(|other| other.eq_ignore_ascii_case(name));
    let mut left = def.clone();
    left.indexes.retain(|index| !is_dropped(&index.name));
    if is_dropped("PRIMARY") {
        left.primary = None;
    }
    left
}

/// 1553 if a constraint of the table `left`, or of a table that refers to it, needs one of the indexes that
/// are dropped, and no other can take its place. `def` is the definition before.
pub(super) fn check_indexes(
    session: &Session,
    def: &TableDef,
    left: &TableDef,
    dropped: &[&str],
) -> Result<(), SqlError> {
    if dropped.is_empty() || !session.variables.common.foreign_key_checks {
        return Ok(());
    }
    let serves = |columns: &[String]| {
        let index = |def: &TableDef| index_over(def, &column_positions(def, columns)?);
        index(left).is_some() || index(def).is_none()
    };
    let own = TableMetadata::of(left)?.foreign_keys;
    let children = other_children(session, &name_of(def));
    let needed = own.iter().any(|key| !serves(&key.columns))
        || children.iter().any(|(_, key)| !serves(&key.parent_columns));
    if needed {
        let text = format!("Cannot drop index '{}': needed in a foreign key constraint", dropped[0]);
        return Err(SqlError::new(ErrorKind::IndexNeededByForeignKey, text));
    }
    Ok(())
}

/// 1828 or 1829 if a constraint needs a column that is to be dropped.
pub(super) fn check_drop_column(session: &Session, def: &TableDef, column: &str) -> Result<(), SqlError> {
    let names = |columns: &[String]| columns.iter().any(|name| name.eq_ignore_ascii_case(column));
    if let Some(key) = TableMetadata::of(def)?.foreign_keys.iter().find(|key| names(&key.columns)) {
        let text =
            format!("Cannot drop column '{column}': needed in a foreign key constraint '{}'", key.name);
        return Err(SqlError::new(ErrorKind::ColumnNeededByForeignKey, text));
    }
    for (child, key) in other_children(session, &name_of(def)) {
        if names(&key.parent_columns) {
            let child = format!("{}.{}", shown(&child.0), shown(&child.1));
            let constraint = &key.name;
            let text = format!(
                "Cannot drop column '{column}': needed in a foreign key constraint '{constraint}' of table {child}"
            );
            return Err(SqlError::new(ErrorKind::ColumnNeededByChild, text));
        }
    }
    Ok(())
}

/// 1832 or 1833 if a column of a constraint is to get another type, 1830 if it must stay nullable.
pub(super) fn check_change_column(
    session: &Session,
    def: &TableDef,
    column: &str,
    new: &ColumnSpec,
) -> Result<(), SqlError> {
    if !session.variables.common.foreign_key_checks {
        return Ok(());
    }
    let old = def.columns.iter().find(|other| other.name.eq_ignore_ascii_case(column));
    let names = |columns: &[String]| columns.iter().any(|name| name.eq_ignore_ascii_case(column));
    let changes = old.is_some_and(|old| !comparable(&old.column_type, &new.column_type));
    for key in TableMetadata::of(def)?.foreign_keys.iter().filter(|key| names(&key.columns)) {
        if changes {
            let constraint = &key.name;
            let text =
                format!("Cannot change column '{column}': used in a foreign key constraint '{constraint}'");
            return Err(SqlError::new(ErrorKind::ColumnOfForeignKey, text));
        }
        let sets_null = [key.on_delete, key.on_update].contains(&ReferentialAction::SetNull);
        if sets_null && new.nullable == Some(false) {
            let constraint = &key.name;
            let text = format!(
                "Column '{column}' cannot be NOT NULL: needed in a foreign key constraint '{constraint}' SET NULL"
            );
            return Err(SqlError::new(ErrorKind::ForeignKeyMustNotBeNull, text));
        }
    }
    for (child, key) in other_children(session, &name_of(def)) {
        if changes && names(&key.parent_columns) {
            let text = format!(
                "Cannot change column '{column}': used in a foreign key constraint '{}' of table '{}.{}'",
                key.name, child.0, child.1
            );
            return Err(SqlError::new(ErrorKind::ColumnOfChildsForeignKey, text));
        }
    }
    Ok(())
}

/// Changes constraints of other tables that refer to a table, and its own, after it was renamed.
///
/// # Errors
/// Those of writing the catalogue.
pub(super) fn follow_rename(session: &Session, from: &TableName, to: &TableName) -> Result<(), SqlError> {
    let instance = &session.instance;
    let constraints = instance.relations.constraints(&instance.database);
    let mut concerned: Vec<TableName> =
        constraints.children(from).iter().map(|(child, _)| child.clone()).collect();
    if !constraints.own(from).is_empty() {
        concerned.push(from.clone());
    }
    for name in concerned {
        let name = if name == *from { to } else { &name };
        change_keys(session, name, |key| {
            if key.refers_to(&from.0, &from.1) {
                key.parent_database.clone_from(&to.0);
                key.parent_table.clone_from(&to.1);
            }
            if name == to {
                key.name = renamed(&key.name, &from.1, &to.1);
            }
        })?;
    }
    instance.relations.note_change(from, false);
    instance.relations.note_change(to, false);
    Ok(())
}

/// Changes constraints of other tables that refer to columns which were renamed.
///
/// # Errors
/// Those of writing the catalogue.
pub(super) fn follow_columns(
    session: &Session,
    name: &TableName,
    before: Before<'_>,
) -> Result<(), SqlError> {
    if before.renamed.is_empty() {
        return Ok(());
    }
    for (child, _) in other_children(session, name) {
        change_keys(session, &child, |key| {
            if !key.refers_to(&name.0, &name.1) {
                return;
            }
            key.parent_columns.iter_mut().for_each(|column| before.new_name(column));
        })?;
    }
    Ok(())
}

/// Gives the columns of a table's constraints on itself their new names.
pub(super) fn follow_own_columns(keys: &mut [ForeignKey], name: (&str, &str), before: Before<'_>) {
    for key in keys.iter_mut().filter(|key| key.refers_to(name.0, name.1)) {
        key.parent_columns.iter_mut().for_each(|column| before.new_name(column));
    }
}

fn change_keys(
    session: &Session,
    name: &TableName,
    mut change: impl FnMut(&mut ForeignKey),
) -> Result<(), SqlError> {
    let table = session.instance.database.table(&name.0, &name.1)?;
    let mut metadata = TableMetadata::of(&table.def())?;
    metadata.foreign_keys.iter_mut().for_each(&mut change);
    metadata.foreign_keys.sort_by(|one, other| one.name.cmp(&other.name));
    session.instance.database.set_sql_metadata(&table, metadata.encode())?;
    Ok(())
}

/// Tells the session's server that a table was made, changed or dropped.
pub(super) fn note_definition(session: &Session, name: &TableName) {
    let table = session.instance.database.table(&name.0, &name.1).ok();
    let metadata = table.and_then(|table| TableMetadata::of(&table.def()).ok());
    let has_keys = metadata.is_some_and(|metadata| !metadata.foreign_keys.is_empty());
    session.instance.relations.note_change(name, has_keys);
}

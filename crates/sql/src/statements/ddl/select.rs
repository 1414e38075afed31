//! CREATE TABLE ... AS SELECT.

use super::build::build;
use super::table::{surroundings, table_error};
use crate::definition::*;
use crate::memory::{Account, Charge};
use crate::text::parse::{self, Statement, Words};
use crate::{ColumnMeta, Completion, ResultSink, Session, SqlError, Warnings};
use base::sync::Arc;
use bumpalo::Bump;
use engine::KeyList;
use types::{ColumnType, Value, ValueRef};

/// Keeps a result set in memory.
struct Collected {
    columns: Vec<ColumnMeta>,
    rows: Vec<Vec<Value>>,
    bytes: usize,
    account: Arc<Account>,
    charge: Charge,
}

impl ResultSink for Collected {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let texts: usize = row.iter().filter_map(ValueRef::as_bytes).map(<[u8]>::len).sum();
        self.bytes += size_of::<Vec<Value>>() + size_of::<Value>() * row.len() + texts;
        self.charge.cover(self.bytes, &self.account)?;
        self.rows.push(row.iter().map(ValueRef::to_value).collect());
        Ok(())
    }

    fn end(&mut self, _completion: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

/// Creates a table from the columns of `spec` and the columns of a query, and fills it.
pub(super) fn create_from_select(
    session: &mut Session,
    database: &str,
    name: &str,
    mut spec: TableSpec,
    words: &Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let query = words.rest();
    let statement = parse::parse(query, words.mode())?;
    let Statement::Query(query) = statement else { return Err(SqlError::syntax(query, 1)) };
    let (account, charge) = (session.memory.clone(), Charge::default());
    let mut result = Collected { columns: Vec::new(), rows: Vec::new(), bytes: 0, account, charge };
    // The query counts as a statement of its own. Its warnings are added to those of this statement.
    let earlier = session.state.warnings.clone();
    session.plan_and_run_inner(&query, &mut result)?;
    let later = std::mem::replace(&mut session.state.warnings, earlier);
    add_warnings(&mut session.state.warnings, &later);

    // A column of the query that the statement defines gets that definition. The other columns are appended.
    let mut target = Vec::with_capacity(result.columns.len());
    for column in &result.columns {
        let known = spec.columns.iter().position(|other| other.name.eq_ignore_ascii_case(&column.name));
        target.push(known.unwrap_or(spec.columns.len()));
        if known.is_none() {
            crate::names::check_column(&column.name)?;
            spec.columns.push(column_of(column));
        }
    }
    let around = surroundings(session, database)?;
    let auto_increment = spec.options.auto_increment;
    let def = build(name, spec, &around, &mut session.state.warnings)?;
    let table =
        session.instance.database.create_table(def).map_err(|error| table_error(error, database, name))?;
    if let Some(next) = auto_increment.filter(|next| *next > 1) {
        table.raise_auto_increment(next - 1);
    }
    let filled = fill(session, &table, &target, &result.rows);
    if let Err(error) = filled {
        // This statement has created the table, so it drops it again.
        session
            .instance
            .database
            .drop_table(database, name)
            .map_err(|error| table_error(error, database, name))?;
        return Err(error);
    }
    let count = result.rows.len() as u64;
    session.done(count, format!("Records: {count}  Duplicates: 0  Warnings: 0"), sink)
}

fn add_warnings(to: &mut Warnings, from: &Warnings) {
    for warning in from.list() {
        to.push(warning.level, warning.kind, warning.message.clone());
    }
}

fn column_of(meta: &ColumnMeta) -> ColumnSpec {
    let column_type = match &meta.column_type {
        // The type of an expression that is always NULL.
        ColumnType::Binary { bytes: 0 } => ColumnType::Binary { bytes: 0 },
        other => other.clone(),
    };
    ColumnSpec {
        name: meta.name.clone(),
        column_type,
        own_collation: false,
        nullable: Some(!meta.not_null),
        auto_increment: false,
        primary: false,
        unique: false,
        extras: ColumnExtras::default(),
    }
}

fn fill(
    session: &mut Session,
    table: &engine::Table,
    target: &[usize],
    rows: &[Vec<Value>],
) -> Result<(), SqlError> {
    let clock = session.clock();
    let def = table.def();
    let metadata = crate::definition::metadata::TableMetadata::of(&def)?;
    let defaults: Vec<Value> = def
        .columns
        .iter()
        .zip(&metadata.columns)
        .map(|(column, extras)| {
            crate::definition::defaults::column_default(column, extras, &clock)
                .unwrap_or_else(|| crate::definition::defaults::implicit_default(column))
        })
        .collect();
    let instance = session.instance.clone();
    let mut write = instance.database.begin_write()?;
    let mut arena = Bump::new();
    let mut images = KeyList::default();
    for (number, row) in rows.iter().enumerate() {
        arena.reset();
        let mut values: Vec<ValueRef<'_>> = defaults.iter().map(Value::as_ref).collect();
        for (value, position) in row.iter().zip(target) {
            let coerced = crate::expr::coerce(value.as_ref(), &def.columns[*position], &arena);
            let column = &def.columns[*position].name;
            crate::statements::dml::note_issue(session, &coerced, &def, column, number as u64 + 1)?;
            values[*position] = coerced.value;
        }
        if let Some(column) = def.auto_increment.filter(|column| !target.contains(column)) {
            values[column] = ValueRef::Int(table.reserve_auto_increment(1)? as i64);
        }
        images.clear();
        let mut image = Vec::new();
        table.row_codec().encode(&values, &mut image);
        images.push(&image);
        if let Err((_, error)) = write.insert_many(table, &images) {
            return Err(crate::statements::dml::write_error(error, table, &image));
        }
    }
    write.commit()?;
    Ok(())
}

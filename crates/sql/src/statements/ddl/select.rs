//! CREATE TABLE ... AS SELECT.

use super::build::build;
use super::foreign_keys::{Before, check_conditions, check_definition, note_definition};
use super::table::{surroundings, table_error};
use crate::audit::TableUse;
use crate::definition::*;
use crate::plan::computed::Computed;
use crate::spill::{Spool, Spooled, Workspace, append_row, read_row};
use crate::statements::dml::Making;
use crate::text::parse::{self, Statement, Words};
use crate::{ColumnMeta, Completion, ResultSink, Session, SqlError, ToldAs};
use bumpalo::Bump;
use engine::KeyList;
use types::{ColumnType, Value, ValueRef};

/// Keeps a result set.
struct Collected<'w> {
    columns: Vec<ColumnMeta>,
    rows: Spool,
    workspace: Workspace<'w>,
    row: Vec<u8>,
}

impl ResultSink for Collected<'_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.row.clear();
        append_row(row, &mut self.row);
        self.rows.push(&[], &self.row, self.workspace)
    }

    fn end(&mut self, _completion: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

/// Rows are written together until their images take so many bytes.
const BATCH_BYTES: usize = 1 << 20;

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
    // The session runs the query while its rows are kept.
    let (instance, account) = (session.instance.clone(), session.memory.clone());
    let (interrupt, counters) = (session.interrupt.clone(), session.counters.clone());
    let limits = session.variables.common.memory;
    let workspace = Workspace {
        limits: &limits,
        account: &account,
        interrupt: &interrupt,
        counters: &counters,
        database: &instance.database,
        globals: &instance.globals,
    };
    let mut result = Collected { columns: Vec::new(), rows: Spool::default(), workspace, row: Vec::new() };
    session.state.warnings.forget_old();
    session.plan_and_run_inner(&query, &mut result)?;

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
    session.note_table(TableUse::Create, database, name);
    session.note_table(TableUse::Write, database, name);
    let parents = check_definition(session, &instance.locks, &def, Before::default())?;
    let table = instance.database.create_table(def).map_err(|error| table_error(error, database, name))?;
    if let Some(next) = auto_increment.filter(|next| *next > 1) {
        table.raise_auto_increment(next - 1);
    }
    let count = result.rows.len() as u64;
    let filled = result.rows.finish().and_then(|rows| fill(session, &table, &target, &rows));
    let filled = filled.and_then(|()| parents.check_rows(session, &table));
    let filled = filled.and_then(|()| check_conditions(session, &table));
    if let Err(error) = filled {
        // This statement has created the table, so it drops it again.
        session
            .instance
            .database
            .drop_table(database, name)
            .map_err(|error| table_error(error, database, name))?;
        return Err(error);
    }
    note_definition(session, &(database.to_owned(), name.to_owned()));
    let warnings = session.state.warnings.count_u16();
    session.done(count, format!("Records: {count}  Duplicates: 0  Warnings: {warnings}"), sink)
}

fn column_of(meta: &ColumnMeta) -> ColumnSpec {
    let is_long = meta.traits.told_as == ToldAs::LongBlob;
    let column_type = match meta.column_type.clone() {
        ColumnType::Text { collation, .. } if is_long => ColumnType::Text { bytes_max: u32::MAX, collation },
        ColumnType::Blob { .. } if is_long => ColumnType::Blob { bytes_max: u32::MAX },
        ColumnType::Decimal { precision, scale, unsigned } => {
            ColumnType::Decimal { precision, scale: scale.min(types::decimal::SCALE_MAX), unsigned }
        }
        other => other,
    };
    let mut extras = ColumnExtras::default();
    match column_type {
        ColumnType::Int { .. } => extras.display_width = u8::try_from(meta.display_chars).ok(),
        ColumnType::Float { .. } | ColumnType::Double { .. } => {
            extras.float_digits = meta
                .fixed_digits()
                .and_then(|decimals| Some((u8::try_from(meta.display_chars).ok()?, decimals)));
        }
        _ => {}
    }
    ColumnSpec {
        name: meta.name.clone(),
        column_type,
        own_collation: false,
        nullable: Some(!meta.not_null),
        auto_increment: false,
        primary: false,
        unique: false,
        reference: None,
        check: None,
        generated: None,
        default: None,
        extras,
    }
}

fn fill(
    session: &mut Session,
    table: &engine::Table,
    target: &[usize],
    rows: &Spooled,
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
    let computed = Computed::of(&def, &metadata)?;
    let strict = session.variables.common.sql_mode.is_strict();
    let instance = session.instance.clone();
    let mut write = instance.database.begin_write()?;
    let mut arena = Bump::new();
    let mut images = KeyList::default();
    let mut insert = |images: &mut KeyList| {
        let inserted = write.insert_many(table, images);
        inserted.map_err(|(position, error)| {
            crate::statements::dml::write_error(error, table, images.get(position))
        })?;
        images.clear();
        Ok::<(), SqlError>(())
    };
    let mut number = 0;
    let mut image = Vec::new();
    rows.for_each(|_, row| {
        session.interrupt.check()?;
        arena.reset();
        number += 1;
        let mut given = Vec::with_capacity(target.len());
        read_row(row, &mut given)?;
        let mut values: Vec<ValueRef<'_>> = defaults.iter().map(Value::as_ref).collect();
        for (value, position) in given.iter().zip(target) {
            let column = &def.columns[*position];
            let mode = session.variables.common.sql_mode.into();
            let coerced = crate::expr::coerce(*value, column, Some(session.variables.zone()), &arena)
                .in_digits(metadata.columns[*position].float_digits)
                .in_mode(value, column, mode);
            let noted = crate::statements::dml::note_issue(session, &coerced, &def, &column.name, number);
            if let Err(error) = noted {
                // If one of the rows before this one collides, that error comes first.
                insert(&mut images)?;
                return Err(error);
            }
            values[*position] = coerced.value;
        }
        if let Some(computed) = &computed {
            let (def, metadata) = (&*def, &metadata);
            let making = Making { def, metadata, computed, strict, number };
            making.complete(session, &mut values, &|column| target.contains(&column), &arena)?;
        }
        if let Some(column) = def.auto_increment.filter(|column| !target.contains(column)) {
            values[column] = ValueRef::Int(table.reserve_auto_increment(1)? as i64);
        }
        image.clear();
        table.row_codec().encode(&values, &mut image);
        images.push(&image);
        if images.bytes.len() >= BATCH_BYTES {
            insert(&mut images)?;
        }
        Ok(true)
    })?;
    insert(&mut images)?;
    write.commit()?;
    Ok(())
}

//! Copies the rows of one table into another that has different columns.

use crate::definition::defaults::{column_default, implicit_default};
use crate::definition::metadata::TableMetadata;
use crate::definition::{ColumnDefault, ColumnExtras};
use crate::expr::{CoerceIssue, Coerced, SqlMode, coerce, given, zero_of};
use crate::plan::computed::Computed;
use crate::session::ProgressMeter;
use crate::statements::dml::{Making, note_issue, write_error};
use crate::variables::time_zones::Zone;
use crate::{ResultSink, Session, SqlError};
use base::IndexId;
use bumpalo::Bump;
use engine::{Direction, KeyList, KeyRange, Table, TableDef};
use types::{Column, ColumnType, Value, ValueRef};

/// How many rows are passed to the engine at once.
const ROWS_A_BATCH: usize = 1000;

/// Copies every row. `sources` says for each column of `to` which column of `from` it takes, if any. Returns
/// the number of rows. After an error `to` is incomplete: the caller drops it.
pub(super) fn copy_rows(
    session: &mut Session,
    from: &Table,
    to: &Table,
    sources: &[Option<usize>],
    sink: &mut dyn ResultSink,
) -> Result<u64, SqlError> {
    let mut meter = ProgressMeter::new(session, 1, sink);
    meter.next_stage("copy to tmp table");
    let (old, new) = (from.def(), to.def());
    let metadata = TableMetadata::of(&new)?;
    let clock = session.clock();
    let described = new.columns.iter().zip(&metadata.columns);
    let of =
        |(column, extras)| column_default(column, extras, &clock).unwrap_or_else(|| implicit_default(column));
    let defaults: Vec<Value> = described.map(of).collect();
    let mode: SqlMode = session.variables.common.sql_mode.into();
    // If the columns and their order are the same, row images are copied unchanged.
    let computed = Computed::of(&new, &metadata)?;
    let strict = session.variables.common.sql_mode.is_strict();
    let same = old.columns == new.columns
        && computed.is_none()
        && sources.iter().enumerate().all(|(position, source)| *source == Some(position));
    let instance = session.instance.clone();
    let zone = session.variables.zone().clone();
    let mut write = instance.database.begin_write()?;
    let mut batch = KeyList::default();
    let mut arena = Bump::new();
    let (mut image, mut count) = (Vec::new(), 0);
    let mut scan = from.scan(engine::Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
    loop {
        let row = scan.next_row()?;
        if row.is_none() || batch.len() >= ROWS_A_BATCH {
            if let Err((position, error)) = write.insert_many(to, &batch) {
                return Err(write_error(error, to, batch.get(position)));
            }
            // Each batch commits by itself. No other session sees the copy, and an undo list for all of it
            // would be as large as the table.
            write.commit()?;
            write = instance.database.begin_write()?;
            batch.clear();
            meter.note(count, from.row_count())?;
        }
        let Some(row) = row else { break };
        session.interrupt.check()?;
        count += 1;
        if same {
            batch.push(row);
            continue;
        }
        arena.reset();
        image.clear();
        let view = from.row_codec().view(row);
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(sources.len());
        for (position, source) in sources.iter().enumerate() {
            let column = &new.columns[position];
            let extras = &metadata.columns[position];
            if is_computed(extras, *source) {
                values.push(ValueRef::Null);
                continue;
            }
            let stays = |source: usize| keeps(&old.columns[source].column_type, &column.column_type);
            let value = match source {
                Some(source) if stays(*source) => view.get(*source),
                Some(source) if view.is_null(*source) => ValueRef::Null,
                Some(source) => {
                    let from = &old.columns[*source].column_type;
                    let (value, coerced) = converted(view.get(*source), from, column, &zone, &arena);
                    let coerced = coerced.in_digits(extras.float_digits).in_mode(&value, column, mode);
                    note_issue(session, &coerced, &new, &column.name, count)?;
                    coerced.value
                }
                None if new.auto_increment == Some(position) => {
                    ValueRef::Int(to.reserve_auto_increment(1)? as i64)
                }
                None if extras.default == ColumnDefault::Unset => {
                    let value = defaults[position].as_ref();
                    check_implicit(&value, column, mode, &arena)
                        .map_err(|issue| issue.to_error_in(&new.database, &new.name, &column.name, count))?;
                    value
                }
                None => defaults[position].as_ref(),
            };
            values.push(match value {
                ValueRef::Null if !column.nullable => in_place_of_null(session, column, &new, count)?,
                value => value,
            });
        }
        if let Some(computed) = &computed {
            let (def, metadata) = (&*new, &metadata);
            let making = Making { def, metadata, computed, strict, number: count };
            // Of the defaults, only those of new columns are computed.
            making.complete(session, &mut values, &|column| sources[column].is_some(), &arena)?;
        }
        to.row_codec().encode(&values, &mut image);
        batch.push(&image);
    }
    write.commit()?;
    Ok(count)
}

/// True if the value is made from the rest of the row.
fn is_computed(extras: &ColumnExtras, source: Option<usize>) -> bool {
    match &extras.default {
        ColumnDefault::Expression(_) => source.is_none(),
        _ => extras.generated.is_some(),
    }
}

/// What a column that cannot be NULL has instead.
///
/// # Errors
/// 1265 in strict mode.
fn in_place_of_null(
    session: &mut Session,
    column: &Column,
    def: &TableDef,
    row: u64,
) -> Result<ValueRef<'static>, SqlError> {
    if let Some(now) = session.clock().in_place_of_null(column) {
        return Ok(now);
    }
    // A NULL that the column cannot hold counts as cut, as in MariaDB, and not as NULL.
    let value = zero_of(&column.column_type);
    let cut = Coerced { value, issue: Some(CoerceIssue::Truncated) };
    note_issue(session, &cut, def, &column.name, row)?;
    Ok(cut.value)
}

/// A value of a column of type `from` as a statement reads it, and what another column stores for it.
fn converted<'v>(
    value: ValueRef<'v>,
    from: &'v ColumnType,
    column: &Column,
    zone: &Zone,
    arena: &'v Bump,
) -> (ValueRef<'v>, Coerced<'v>) {
    match value {
        // A moment stays the same moment.
        _ if from.is_timestamp() && column.column_type.is_timestamp() => {
            (value, coerce(value, column, None, arena))
        }
        ValueRef::DateTime(stored) if from.is_timestamp() => {
            let shown = ValueRef::DateTime(zone.from_utc(stored));
            (shown, coerce(shown, column, None, arena))
        }
        // As in MariaDB, the text of a column is a number here.
        ValueRef::Text(_) if matches!(column.column_type, ColumnType::Bit { .. }) => {
            let number = ColumnType::Int { bytes: 8, unsigned: true };
            let read = coerce(value, &Column { column_type: number, ..column.clone() }, None, arena);
            let stored = coerce(read.value, column, None, arena);
            (value, Coerced { issue: read.issue.or(stored.issue), ..stored })
        }
        _ => {
            let value = given(value, from, &column.column_type, arena);
            (value, coerce(value, column, Some(zone), arena))
        }
    }
}

/// True if the column's values are stored as before. New members may follow the old ones.
fn keeps(old: &ColumnType, new: &ColumnType) -> bool {
    use ColumnType::{Enum, Set};
    match (old, new) {
        (Enum { members: old, .. }, Enum { members: new, .. })
        | (Set { members: old, .. }, Set { members: new, .. }) => {
            old.collation() == new.collation() && new.names().starts_with(old.names())
        }
        (old, new) => old == new,
    }
}

/// NO_ZERO_DATE refuses a date of nought for rows that are there, in strict mode and without it. A TIMESTAMP
/// may be nought.
fn check_implicit(
    value: &ValueRef<'_>,
    column: &Column,
    mode: SqlMode,
    arena: &Bump,
) -> Result<(), CoerceIssue> {
    if column.nullable || column.column_type.is_timestamp() {
        return Ok(());
    }
    coerce(*value, column, None, arena).in_mode(value, column, mode).issue.map_or(Ok(()), Err)
}

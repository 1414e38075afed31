//! The end of a query: projection, DISTINCT, LIMIT.

use super::seen::{Novelty, Seen};
use super::{Flow, RowConsumer, RowSink, recycle};
use crate::expr::{Context, Row, is_seen_apart, shown};
use crate::memory::Charge;
use crate::plan::plan::{Output, QueryPlan, SelectPlan};
use crate::spill::{RunReader, RunWriter, Spooled, Stored, Workspace, append_row, read_row};
use crate::{ColumnMeta, ResultSink, SqlError};
use bumpalo::Bump;
use types::{ColumnType, Value, ValueRef};

/// Evaluates the columns of the result and hands them on.
pub(super) struct Project<'p, 's> {
    pub(super) plan: &'p SelectPlan,
    pub(super) out: &'s mut dyn RowSink,
    pub(super) buffer: Vec<ValueRef<'static>>,
    /// [`RowSink::wants_all_digits`].
    pub(super) all_digits: bool,
}

impl RowConsumer for Project<'_, '_> {
    #[inline]
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError> {
        let mut values = recycle(std::mem::take(&mut self.buffer));
        evaluate(&self.plan.output, row, context, self.all_digits, &mut values)?;
        let flow = self.out.row(&values)?;
        self.buffer = recycle(values);
        Ok(flow)
    }
}

/// Appends the columns of the result. `all_digits` as [`RowSink::wants_all_digits`] says.
#[inline]
pub(super) fn evaluate<'a>(
    output: &'a [Output],
    row: &Row<'a>,
    context: &Context<'a>,
    all_digits: bool,
    values: &mut Vec<ValueRef<'a>>,
) -> Result<(), SqlError> {
    for output in output {
        match output {
            Output::Column { part, column } => row.0[*part].push_to(*column, values),
            Output::Value(value) if all_digits => values.push(value.exact(row, context)?),
            Output::Value(value) => values.push(value.evaluate(row, context)?),
        }
    }
    Ok(())
}

/// Appends a row of a result to `out`, for [`read_row`]: what the columns of `plan` make of a joined row.
///
/// # Errors
/// Of the expressions.
pub(crate) fn result_row(
    plan: &SelectPlan,
    row: &Row<'_>,
    context: &Context<'_>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let mut values = Vec::new();
    evaluate(&plan.output, row, context, false, &mut values)?;
    append_row(&values, out);
    Ok(())
}

/// Sends rows that [`result_row`] has made, as the client sees their values. Returns how many there were.
///
/// # Errors
/// Those of reading rows, and of the client's connection.
pub(crate) fn send_rows(
    query: &QueryPlan,
    rows: Spooled,
    sink: &mut dyn ResultSink,
) -> Result<u64, SqlError> {
    let mut client = ToClient(sink);
    let mut seen = AsSeen::new(&query.columns, is_seen_apart, &mut client);
    let mut sent = 0;
    rows.for_each(|_, row| {
        sent += 1;
        hand_on(row, &mut seen).map(|_| true)
    })?;
    Ok(sent)
}

/// Leaves out rows that have been seen before.
pub(super) struct Distinct<'p, 's> {
    pub(super) seen: Seen<'p>,
    pub(super) stopped: bool,
    pub(super) out: &'s mut dyn RowSink,
}

impl Distinct<'_, '_> {
    /// Hands on the rows that were put off.
    pub(super) fn finish(self) -> Result<(), SqlError> {
        let Distinct { mut seen, stopped, out } = self;
        if !stopped {
            seen.finish(&mut |row| hand_on(row, out))?;
        }
        Ok(())
    }
}

/// Hands on a row of a scratch file.
pub(super) fn hand_on(row: &[u8], out: &mut dyn RowSink) -> Result<Flow, SqlError> {
    let mut values = Vec::new();
    read_row(row, &mut values)?;
    out.row(&values)
}

impl RowSink for Distinct<'_, '_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        match self.seen.note(values)? {
            Novelty::New => {
                let flow = self.out.row(values)?;
                self.stopped |= flow == Flow::Stop;
                return Ok(flow);
            }
            Novelty::Known => {}
            Novelty::Unknown => self.seen.put_off(|row| append_row(values, row))?,
        }
        Ok(Flow::Continue)
    }
}

/// Skips the first rows, and stops after the last.
pub(super) struct Limited<'s> {
    pub(super) offset: u64,
    pub(super) count: u64,
    /// Continues to count rows after the last one, for SQL_CALC_FOUND_ROWS.
    pub(super) counts_on: bool,
    pub(super) seen: u64,
    pub(super) sent: u64,
    pub(super) out: &'s mut dyn RowSink,
}

impl RowSink for Limited<'_> {
    #[inline]
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        if self.sent == self.count {
            self.seen += 1;
            return Ok(if self.counts_on { Flow::Continue } else { Flow::Stop });
        }
        self.seen += 1;
        if self.seen <= self.offset {
            return Ok(Flow::Continue);
        }
        self.sent += 1;
        let flow = self.out.row(values)?;
        if self.sent == self.count && !self.counts_on { Ok(Flow::Stop) } else { Ok(flow) }
    }

    fn wants_all_digits(&self) -> bool {
        self.out.wants_all_digits()
    }
}

/// Hands on what clients and expressions see of the values that columns store.
pub(super) struct AsSeen<'s> {
    /// The columns whose values are seen as others.
    columns: Vec<(usize, &'s ColumnType)>,
    arena: Bump,
    out: &'s mut dyn RowSink,
}

impl<'s> AsSeen<'s> {
    pub(super) fn new(
        columns: &'s [ColumnMeta],
        is_apart: fn(&ColumnType) -> bool,
        out: &'s mut dyn RowSink,
    ) -> AsSeen<'s> {
        // As in MariaDB, the bits that a function gives are a number.
        let is_bits = |meta: &ColumnMeta| matches!(meta.column_type, ColumnType::Bit { .. });
        let apart = columns
            .iter()
            .enumerate()
            .filter(|(_, meta)| is_apart(&meta.column_type) && (!is_bits(meta) || !meta.table.is_empty()));
        let columns = apart.map(|(position, meta)| (position, &meta.column_type)).collect();
        AsSeen { columns, arena: Bump::new(), out }
    }
}

impl RowSink for AsSeen<'_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        self.arena.reset();
        let mut values = values.to_vec();
        for (position, column_type) in &self.columns {
            if let Some(value) = values.get_mut(*position) {
                *value = shown(*value, column_type, &self.arena);
            }
        }
        self.out.row(&values)
    }

    fn wants_all_digits(&self) -> bool {
        self.out.wants_all_digits()
    }
}

/// Hands rows to the client.
pub(super) struct ToClient<'s>(pub(super) &'s mut dyn ResultSink);

impl RowSink for ToClient<'_> {
    #[inline]
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        self.0.row(values)?;
        Ok(Flow::Continue)
    }
}

/// The rows of a derived or virtual table.
#[derive(Default, Debug)]
pub(super) struct Materialized {
    first: Vec<Vec<Value>>,
    /// Those that did not fit into memory.
    rest: Option<Stored>,
    _charge: Charge,
}

/// Bytes of a file of rows that are read at a time.
const READ_BYTES: usize = 128 << 10;

impl Materialized {
    /// Rows that are in memory anyway.
    pub(super) fn of(rows: Vec<Vec<Value>>) -> Materialized {
        Materialized { first: rows, ..Materialized::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.rest.is_none()
    }

    /// Hands on the rows in the order in which they came.
    pub(super) fn for_each(
        &self,
        each: &mut dyn FnMut(&[ValueRef<'_>]) -> Result<Flow, SqlError>,
    ) -> Result<Flow, SqlError> {
        let mut values: Vec<ValueRef<'_>> = Vec::new();
        for row in &self.first {
            values.clear();
            values.extend(row.iter().map(Value::as_ref));
            if each(&values)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        let Some(rest) = &self.rest else { return Ok(Flow::Continue) };
        let mut reader = RunReader::new(rest, READ_BYTES);
        let mut buffer = Vec::new();
        while reader.advance()? {
            let mut values = recycle(std::mem::take(&mut buffer));
            read_row(reader.row(), &mut values)?;
            if each(&values)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            buffer = recycle(values);
        }
        Ok(Flow::Continue)
    }
}

/// Keeps rows: in memory, and beyond some bytes in a file.
pub(super) struct Collect<'w> {
    workspace: Workspace<'w>,
    rows: Vec<Vec<Value>>,
    bytes: usize,
    /// When they reach this many, more memory is asked for.
    bytes_next: usize,
    bytes_max: usize,
    charge: Charge,
    rest: Option<RunWriter>,
    row: Vec<u8>,
}

impl<'w> Collect<'w> {
    /// For the rows of a temporary table.
    pub(super) fn table(workspace: Workspace<'w>) -> Collect<'w> {
        let (charge, bytes_max) = (Charge::default(), workspace.limits.table_bytes);
        let bytes_next = charge.covered().min(bytes_max);
        let (rows, row) = (Vec::new(), Vec::new());
        Collect { workspace, rows, bytes: 0, bytes_next, bytes_max, charge, rest: None, row }
    }

    pub(super) fn finish(self) -> Result<Materialized, SqlError> {
        let rest = self.rest.map(RunWriter::finish).transpose()?;
        Ok(Materialized { first: self.rows, rest, _charge: self.charge })
    }

    /// Asks for more memory. If there is no more, the rows to come go to a file.
    #[cold]
    fn grow(&mut self) -> Result<(), SqlError> {
        if self.bytes < self.bytes_max {
            self.charge.cover(self.bytes + 1, self.workspace.account)?;
            self.bytes_next = self.charge.covered().min(self.bytes_max);
        } else {
            self.workspace.note_disk_table();
            self.rest = Some(RunWriter::new(self.workspace)?);
        }
        Ok(())
    }
}

impl RowSink for Collect<'_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        if let Some(rest) = &mut self.rest {
            self.row.clear();
            append_row(values, &mut self.row);
            rest.push(&[], &self.row)?;
            return Ok(Flow::Continue);
        }
        let texts = values.iter().filter_map(ValueRef::as_bytes).map(<[u8]>::len).sum::<usize>();
        self.bytes += size_of::<Vec<Value>>() + size_of::<Value>() * values.len() + texts;
        self.rows.push(values.iter().map(ValueRef::to_value).collect());
        if self.bytes >= self.bytes_next {
            self.grow()?;
        }
        Ok(Flow::Continue)
    }
}

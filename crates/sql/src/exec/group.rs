//! GROUP BY and aggregate functions.
//!
//! Groups are kept in memory. When they take more than a temporary table may, no group is added any more, and
//! no value of DISTINCT. Rows of other groups go to a file, sorted by their groups, and so do values of
//! DISTINCT that are not known. At the end the values are counted, and the groups of the file are made one by
//! one, between those in memory, in the order of their keys. With GROUP_CONCAT, whose groups keep a text of
//! each row, all rows go to the file from then on, and groups in memory get their last rows from there.

use super::access::ROWS_BETWEEN_CHECKS;
use super::parts::{append_parts, read_parts};
use super::query::Runtime;
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::expr::value_keys::ValueKeys;
use crate::expr::{
    Accumulator, Compiled, CompiledAggregate, Context, Part, ROOM_KEY_BYTES, Room, Row, Slots,
};
use crate::memory::Charge;
use crate::plan::access::{Access, Path};
use crate::plan::plan::{End, Group, SelectPlan, Shortcut, Source};
use crate::spill::{SortedRows, Sorter, Workspace, read_row};
use bumpalo::Bump;
use engine::{Direction, KeyRange, Reader, Table};
use std::collections::HashMap;
use std::ops::Bound;
use types::{Value, ValueRef};

/// One part of a group's first row.
enum OwnedPart {
    Image(Vec<u8>),
    Values(Vec<Value>),
    Nulls,
}

impl OwnedPart {
    fn bytes(&self) -> usize {
        size_of::<OwnedPart>()
            + match self {
                OwnedPart::Image(image) => image.len(),
                OwnedPart::Values(values) => {
                    let texts = values.iter().filter_map(|value| value.as_ref().as_bytes()).map(<[u8]>::len);
                    size_of_val(values.as_slice()) + texts.sum::<usize>()
                }
                OwnedPart::Nulls => 0,
            }
    }
}

struct State {
    /// How many keys are told apart. Only WITH ROLLUP has groups that do not tell all of them apart.
    told_apart: usize,
    row: Vec<OwnedPart>,
    accumulators: Vec<Accumulator>,
}

/// What a group takes beside its key, its row and its accumulators.
const GROUP_BYTES: usize = size_of::<State>() + 4 * size_of::<usize>();

impl State {
    fn bytes(&self) -> usize {
        let row = self.row.iter().map(OwnedPart::bytes).sum::<usize>();
        GROUP_BYTES + row + size_of_val(self.accumulators.as_slice())
    }
}

/// Takes what the groups in memory have no room for.
struct Beyond<'p> {
    /// Rows of other groups, by the keys of their groups.
    rows: Sorter<'p>,
    /// Values of DISTINCT: see [`Room::beyond`].
    values: Sorter<'p>,
    row: Vec<u8>,
}

impl<'p> Beyond<'p> {
    fn new(workspace: Workspace<'p>) -> Beyond<'p> {
        let bytes = workspace.limits.sort_bytes.max(workspace.limits.table_bytes);
        let sorter = || Sorter::new(workspace, bytes, usize::MAX);
        Beyond { rows: sorter(), values: sorter(), row: Vec::new() }
    }
}

/// Sorts rows into groups and hands each group on as a row: the parts of its first row, then the results of
/// the aggregates.
pub(super) struct Grouper<'p, 'c> {
    plan: &'p SelectPlan,
    group: &'p Group,
    slots: Slots<'p>,
    runtime: &'p Runtime<'p>,
    after: &'c mut dyn RowConsumer,
    groups: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
    states: Vec<State>,
    key: Vec<u8>,
    /// The key of the current group, if groups come one after the other.
    current: Vec<u8>,
    stopped: bool,
    /// Bytes of the groups, about.
    bytes: usize,
    /// When they reach this many, more memory is asked for.
    bytes_next: usize,
    charge: Charge,
    beyond: Option<Box<Beyond<'p>>>,
    /// How many rows were added to groups in memory.
    rows: u64,
    /// True if a group keeps more with each row.
    keeps_rows: bool,
}

impl<'p, 'c> Grouper<'p, 'c> {
    pub(super) fn new(
        plan: &'p SelectPlan,
        group: &'p Group,
        slots: Slots<'p>,
        runtime: &'p Runtime<'p>,
        after: &'c mut dyn RowConsumer,
    ) -> Grouper<'p, 'c> {
        let charge = Charge::default();
        let bytes_next = charge.covered().min(runtime.workspace().limits.table_bytes);
        let mut grouper = Grouper {
            plan,
            group,
            slots,
            runtime,
            after,
            groups: HashMap::default(),
            states: Vec::new(),
            key: Vec::new(),
            current: Vec::new(),
            stopped: false,
            bytes: 0,
            bytes_next,
            charge,
            beyond: None,
            rows: 0,
            keeps_rows: group.aggregates.iter().any(CompiledAggregate::keeps_rows),
        };
        if group.keys.is_empty() {
            let state = grouper.start(&[], None);
            grouper.states.push(state);
        }
        grouper
    }

    /// A new group, whose key is `key`.
    fn start(&self, key: &[u8], row: Option<&Row<'_>>) -> State {
        let first_row = match row {
            Some(row) if self.group.keeps_row => row.0.iter().map(keep).collect(),
            _ => Vec::new(),
        };
        // The last byte of a key of WITH ROLLUP.
        let told_apart = match (&self.group.rollup, key.last()) {
            (Some(_), Some(count)) => usize::from(*count),
            _ => self.group.keys.len(),
        };
        State {
            told_apart,
            row: first_row,
            accumulators: self.group.aggregates.iter().map(|aggregate| aggregate.start()).collect(),
        }
    }

    /// The group of the row whose key is in `self.key`. `None` if there is no memory for the row's group.
    fn group_of(&mut self, row: &Row<'_>) -> Result<Option<usize>, SqlError> {
        if self.group.ordered {
            if !self.states.is_empty() && self.current != self.key {
                self.emit_all()?;
            }
            if self.states.is_empty() {
                self.current.clone_from(&self.key);
                let state = self.start(&self.key, Some(row));
                self.states.push(state);
            }
            return Ok(Some(0));
        }
        if self.keeps_rows && self.beyond.is_some() {
            return Ok(None);
        }
        if let Some(group) = self.groups.get(self.key.as_slice()) {
            return Ok(Some(*group));
        }
        if self.beyond.is_some() {
            return Ok(None);
        }
        let state = self.start(&self.key, Some(row));
        self.bytes += self.key.len() + state.bytes();
        self.states.push(state);
        self.groups.insert(Box::from(self.key.as_slice()), self.states.len() - 1);
        Ok(Some(self.states.len() - 1))
    }

    /// Asks for more memory. If there is no more, what comes goes to files.
    #[cold]
    fn grow(&mut self) -> Result<(), SqlError> {
        let workspace = self.runtime.workspace();
        let table_bytes = workspace.limits.table_bytes;
        if self.bytes >= table_bytes && self.beyond.is_none() {
            workspace.note_disk_table();
            self.beyond = Some(Box::new(Beyond::new(workspace)));
        }
        // The texts of GROUP_CONCAT go on growing.
        self.charge.cover(self.bytes + 1, workspace.account)?;
        let next = self.charge.covered();
        self.bytes_next = if self.beyond.is_some() { next } else { next.min(table_bytes) };
        Ok(())
    }

    /// Hands on all groups, in the order of their keys.
    pub(super) fn finish(mut self) -> Result<(), SqlError> {
        self.emit_all()
    }

    fn emit_all(&mut self) -> Result<(), SqlError> {
        let beyond = self.beyond.take();
        let mut order: Vec<(Box<[u8]>, usize)> = self.groups.drain().collect();
        order.sort();
        let mut states = std::mem::take(&mut self.states);
        let mut cold = None;
        if let Some(beyond) = beyond {
            self.add_values(beyond.values, &mut states)?;
            let mut rows = beyond.rows.finish()?;
            cold = rows.advance()?.then_some(rows);
        }
        self.bytes = 0;
        let mut states: Vec<Option<State>> = states.into_iter().map(Some).collect();
        if order.is_empty() {
            order = (0..states.len()).map(|group| (Box::default(), group)).collect();
        }
        for (key, group) in order {
            while !self.stopped && cold.as_ref().is_some_and(|rows| rows.key() < &*key) {
                self.emit_cold(None, &mut cold)?;
            }
            if self.stopped {
                return Ok(());
            }
            let has_more = cold.as_ref().is_some_and(|rows| rows.key() == &*key);
            match states[group].take() {
                Some(state) if has_more => self.emit_cold(Some(state), &mut cold)?,
                Some(state) => self.emit(state)?,
                None => {}
            }
        }
        while !self.stopped && cold.is_some() {
            self.emit_cold(None, &mut cold)?;
        }
        Ok(())
    }

    /// Makes the group of the current row, or goes on with what is known of it, and hands it on. Moves to the
    /// first row of the next group; at the end `cold` is empty.
    fn emit_cold(&mut self, known: Option<State>, cold: &mut Option<SortedRows<'p>>) -> Result<(), SqlError> {
        let Some(rows) = cold else { return Ok(()) };
        let workspace = self.runtime.workspace();
        let key = rows.key().to_vec();
        let mut made = known;
        let (mut bytes, mut charge) = (0usize, Charge::default());
        let mut values: Option<Sorter<'p>> = None;
        let (mut arena, mut number) = (Bump::new(), 0);
        loop {
            arena.reset();
            let parts = read_parts(self.plan, rows.row(), &arena)?;
            let row = Row(&parts);
            let state = made.get_or_insert_with(|| self.start(&key, Some(&row)));
            let mut room = Room { grown: 0, beyond: values.as_mut(), group: 0, aggregate: 0, row: number };
            number += 1;
            let group: &'p Group = self.group;
            add_row(&group.aggregates, state, &row, &self.context(&arena), &mut room)?;
            bytes = bytes.saturating_add_signed(room.grown);
            charge.cover(bytes, workspace.account)?;
            if bytes >= workspace.limits.table_bytes && values.is_none() {
                values = Some(Beyond::new(workspace).values);
            }
            if !rows.advance()? {
                *cold = None;
                break;
            }
            if rows.key() != key {
                break;
            }
        }
        let Some(mut state) = made else { return Ok(()) };
        if let Some(values) = values {
            self.add_values(values, std::slice::from_mut(&mut state))?;
        }
        self.emit(state)
    }

    /// Adds the values of DISTINCT that were put off, each once for its group and aggregate.
    fn add_values(&self, values: Sorter<'p>, states: &mut [State]) -> Result<(), SqlError> {
        let bad = || SqlError::internal("a value of DISTINCT without its group");
        let mut values = values.finish()?;
        let (mut last, mut key) = (Vec::new(), Vec::new());
        let mut in_order = Beyond::new(self.runtime.workspace()).values;
        while values.advance()? {
            if last == values.key() {
                continue;
            }
            last.clear();
            last.extend_from_slice(values.key());
            let numbers = last.first_chunk::<ROOM_KEY_BYTES>().ok_or_else(bad)?;
            let (row, value) = values.row().split_first_chunk::<ROW_NUMBER_BYTES>().ok_or_else(bad)?;
            if self.group.aggregates.get(numbers_of(numbers).1).ok_or_else(bad)?.depends_on_order() {
                key.clear();
                key.extend_from_slice(numbers);
                key.extend_from_slice(row);
                in_order.push(&key, value)?;
            } else {
                self.add_value(numbers, value, states)?;
            }
        }
        drop(values);
        let mut values = in_order.finish()?;
        while values.advance()? {
            let numbers = values.key().first_chunk().ok_or_else(bad)?;
            self.add_value(numbers, values.row(), states)?;
        }
        Ok(())
    }

    /// Adds one value to the group and the aggregate of these numbers.
    fn add_value(
        &self,
        numbers: &[u8; ROOM_KEY_BYTES],
        value: &[u8],
        states: &mut [State],
    ) -> Result<(), SqlError> {
        let bad = || SqlError::internal("a value of DISTINCT without its group");
        let (group, number) = numbers_of(numbers);
        let mut values = Vec::with_capacity(1);
        read_row(value, &mut values)?;
        let state = states.get_mut(group).ok_or_else(bad)?;
        let accumulator = state.accumulators.get_mut(number).ok_or_else(bad)?;
        let aggregate = self.group.aggregates.get(number).ok_or_else(bad)?;
        let mut room = Room { grown: 0, beyond: None, group: 0, aggregate: 0, row: 0 };
        let arena = Bump::new();
        aggregate.add_value(accumulator, values.first().ok_or_else(bad)?, &self.context(&arena), &mut room)
    }

    fn emit(&mut self, state: State) -> Result<(), SqlError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let State { told_apart, row, accumulators } = state;
        let values: Vec<Value> = self
            .group
            .aggregates
            .iter()
            .zip(accumulators)
            .map(|(aggregate, accumulator)| aggregate.finish(accumulator, &context))
            .collect();
        self.emit_values(told_apart, &row, &values)
    }

    fn emit_values(
        &mut self,
        told_apart: usize,
        first_row: &[OwnedPart],
        values: &[Value],
    ) -> Result<(), SqlError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let width = self.plan.inputs.len();
        let borrowed: Vec<Vec<ValueRef<'_>>> = first_row
            .iter()
            .map(|part| match part {
                OwnedPart::Values(values) => values.iter().map(Value::as_ref).collect(),
                _ => Vec::new(),
            })
            .collect();
        let results: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(width + 1);
        for (part, input) in self.plan.inputs.iter().enumerate() {
            parts.push(match (first_row.get(part), &input.source) {
                (Some(OwnedPart::Image(image)), Source::Table { table, .. }) => {
                    Part::Image(table.row_codec().view(image))
                }
                (Some(OwnedPart::Values(_)), _) => Part::Values(&borrowed[part]),
                _ => Part::Nulls,
            });
        }
        parts.push(Part::Values(&results));
        let first = if self.group.rollup.is_some() { parts.clone() } else { Vec::new() };
        let mut keys;
        if self.group.rollup.is_some() {
            let group: &'p Group = self.group;
            keys = evaluate_all(&group.keys, &Row(&first), &context)?;
            keys[told_apart..].fill(ValueRef::Null);
            parts.push(Part::Values(&keys));
        }
        let row = Row(&parts);
        if let Some(having) = &self.plan.having
            && !having.is_true(&row, &context)?
        {
            return Ok(());
        }
        self.stopped |= self.after.row(&row, &context)? == Flow::Stop;
        Ok(())
    }

    fn context<'a>(&self, arena: &'a Bump) -> Context<'a>
    where
        'p: 'a,
    {
        Context {
            slots: self.slots,
            arena,
            environment: self.runtime.environment,
            subqueries: Some(self.runtime),
        }
    }

    /// Answers the query from an index alone. `false` if that turns out to be impossible.
    pub(super) fn shortcut(&mut self, shortcut: &Shortcut, table: &Table) -> Result<bool, SqlError> {
        let values = match shortcut {
            Shortcut::RowCount => {
                let access = self.plan.steps.first().and_then(|step| step.access.as_ref());
                let Some(Access { path: Path::Whole { index, .. }, .. }) = access else { return Ok(false) };
                let rows = self.count_rows(table, *index)?;
                vec![Value::Int(rows); self.group.aggregates.len()]
            }
            Shortcut::Ends(ends) => {
                let reader = self.runtime.reader;
                let end = |end| end_of_index(reader, table, end);
                ends.iter().map(end).collect::<Result<Vec<_>, SqlError>>()?
            }
        };
        self.states.clear();
        self.emit_values(0, &[], &values)?;
        Ok(true)
    }

    /// How many rows the statement sees. They are counted, because each snapshot sees its own number of rows.
    fn count_rows(&self, table: &Table, index: base::IndexId) -> Result<i64, SqlError> {
        let range = KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded };
        let mut scan = table.scan_keys(self.runtime.reader, index, range, Direction::Forward);
        let mut rows: i64 = 0;
        while scan.next_key()?.is_some() {
            rows += 1;
            if rows % i64::from(ROWS_BETWEEN_CHECKS) == 0 {
                self.runtime.interrupt.check()?;
            }
        }
        Ok(rows)
    }
}

impl Grouper<'_, '_> {
    /// Adds a row to the group whose key is in `self.key`.
    fn add(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<(), SqlError> {
        let Some(group) = self.group_of(row)? else {
            let Some(beyond) = &mut self.beyond else {
                return Err(SqlError::internal("a group without a place"));
            };
            beyond.row.clear();
            append_parts(row, &mut beyond.row);
            return beyond.rows.push(&self.key, &beyond.row);
        };
        self.add_to(group, row, context)
    }

    #[inline]
    fn add_to(&mut self, group: usize, row: &Row<'_>, context: &Context<'_>) -> Result<(), SqlError> {
        let mut room = Room {
            grown: 0,
            beyond: self.beyond.as_mut().map(|beyond| &mut beyond.values),
            group: group as u64,
            aggregate: 0,
            row: self.rows,
        };
        self.rows += 1;
        add_row(&self.group.aggregates, &mut self.states[group], row, context, &mut room)?;
        self.bytes = self.bytes.saturating_add_signed(room.grown);
        if self.bytes >= self.bytes_next {
            self.grow()?;
        }
        Ok(())
    }

    /// Adds a row to the groups of WITH ROLLUP. In the key of a group a mark stands before each value. The
    /// mark of keys that are not told apart is the larger one, so a total follows what it sums up. The number
    /// of keys that are told apart comes last.
    fn roll_up(
        &mut self,
        encoders: &[ValueKeys],
        values: &[ValueRef<'_>],
        row: &Row<'_>,
        context: &Context<'_>,
    ) -> Result<(), SqlError> {
        let mut told_apart = Vec::new();
        for count in 0..=values.len() {
            self.key.clone_from(&told_apart);
            if count < values.len() {
                self.key.push(ROLLED_UP);
            }
            self.key.push(u8::try_from(count).unwrap_or(u8::MAX));
            self.add(row, context)?;
            if let (Some(encoder), Some(value)) = (encoders.get(count), values.get(count)) {
                told_apart.push(TOLD_APART);
                encoder.encode(std::slice::from_ref(value), &mut told_apart);
            }
        }
        Ok(())
    }
}

/// Marks in the keys of WITH ROLLUP.
const TOLD_APART: u8 = 0;
const ROLLED_UP: u8 = 1;

impl RowConsumer for Grouper<'_, '_> {
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError> {
        let group = self.group;
        match group.keys.as_slice() {
            [] => {
                if group.keeps_row && self.states[0].row.is_empty() {
                    self.states[0].row = row.0.iter().map(keep).collect();
                }
                self.add_to(0, row, context)?;
            }
            keys => {
                let values: Vec<ValueRef<'_>> = evaluate_all(keys, row, context)?;
                match &group.rollup {
                    Some(encoders) => self.roll_up(encoders, &values, row, context)?,
                    None => {
                        self.key.clear();
                        group.values.encode(&values, &mut self.key);
                        self.add(row, context)?;
                    }
                }
            }
        }
        Ok(if self.stopped { Flow::Stop } else { Flow::Continue })
    }
}

/// Adds a row to each aggregate of a group.
#[inline]
fn add_row<'a>(
    aggregates: &'a [CompiledAggregate],
    state: &mut State,
    row: &Row<'a>,
    context: &Context<'a>,
    room: &mut Room<'_, '_>,
) -> Result<(), SqlError> {
    for (aggregate, accumulator) in aggregates.iter().zip(&mut state.accumulators) {
        aggregate.add(accumulator, row, context, room)?;
        room.aggregate += 1;
    }
    Ok(())
}

/// A row's number, before a value of [`Room::beyond`].
const ROW_NUMBER_BYTES: usize = 8;

/// The numbers of group and aggregate in the key of a value.
fn numbers_of(key: &[u8; ROOM_KEY_BYTES]) -> (usize, usize) {
    let (group, aggregate) = key.split_at(size_of::<u64>());
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    (number(group), number(aggregate))
}

fn evaluate_all<'a>(
    exprs: &'a [Compiled],
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<Vec<ValueRef<'a>>, SqlError> {
    exprs.iter().map(|expr| expr.evaluate(row, context)).collect()
}

fn keep(part: &Part<'_>) -> OwnedPart {
    match part {
        Part::Image(view) => OwnedPart::Image(view.image().to_vec()),
        Part::Values(values) => OwnedPart::Values(values.iter().map(ValueRef::to_value).collect()),
        Part::Nulls => OwnedPart::Nulls,
    }
}

/// The first or last value of an index that is not NULL.
fn end_of_index(reader: Reader<'_>, table: &Table, end: &End) -> Result<Value, SqlError> {
    let range = KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded };
    let direction = if end.last { Direction::Backward } else { Direction::Forward };
    let nullable = table.def().columns.get(end.column).is_none_or(|column| column.nullable);
    let range = match nullable {
        // NULLs come first: their key is one byte, 0. The range begins after it.
        true => KeyRange { lower: Bound::Excluded(vec![0]), ..range },
        false => range,
    };
    let mut scan = table.scan(reader, end.index, range, direction);
    Ok(match scan.next_row()? {
        Some(image) => table.row_codec().view(image).get(end.column).to_value(),
        None => Value::Null,
    })
}

//! GROUP BY and aggregate functions.

use super::access::ROWS_BETWEEN_CHECKS;
use super::query::Runtime;
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::expr::{Accumulator, Compiled, Context, Part, Row, Slots};
use crate::plan::access::{Access, Path};
use crate::plan::plan::{End, Group, SelectPlan, Shortcut, Source};
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

struct State {
    row: Vec<OwnedPart>,
    accumulators: Vec<Accumulator>,
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
}

impl<'p, 'c> Grouper<'p, 'c> {
    pub(super) fn new(
        plan: &'p SelectPlan,
        group: &'p Group,
        slots: Slots<'p>,
        runtime: &'p Runtime<'p>,
        after: &'c mut dyn RowConsumer,
    ) -> Grouper<'p, 'c> {
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
        };
        if group.keys.is_empty() {
            let state = grouper.start(None);
            grouper.states.push(state);
        }
        grouper
    }

    fn start(&self, row: Option<&Row<'_>>) -> State {
        let first_row = match row {
            Some(row) if self.group.keeps_row => row.0.iter().map(keep).collect(),
            _ => Vec::new(),
        };
        State {
            row: first_row,
            accumulators: self.group.aggregates.iter().map(|aggregate| aggregate.start()).collect(),
        }
    }

    /// The group of the row whose key is in `self.key`.
    fn group_of(&mut self, row: &Row<'_>) -> Result<usize, SqlError> {
        if self.group.ordered {
            if !self.states.is_empty() && self.current != self.key {
                self.emit_all()?;
            }
            if self.states.is_empty() {
                self.current.clone_from(&self.key);
                let state = self.start(Some(row));
                self.states.push(state);
            }
            return Ok(0);
        }
        if let Some(group) = self.groups.get(self.key.as_slice()) {
            return Ok(*group);
        }
        let state = self.start(Some(row));
        self.states.push(state);
        self.groups.insert(Box::from(self.key.as_slice()), self.states.len() - 1);
        Ok(self.states.len() - 1)
    }

    /// Hands on all groups, in the order of their keys.
    pub(super) fn finish(mut self) -> Result<(), SqlError> {
        self.emit_all()
    }

    fn emit_all(&mut self) -> Result<(), SqlError> {
        let mut order: Vec<(Box<[u8]>, usize)> = self.groups.drain().collect();
        order.sort();
        let mut states: Vec<Option<State>> = std::mem::take(&mut self.states).into_iter().map(Some).collect();
        let groups: Vec<usize> = match order.is_empty() {
            true => (0..states.len()).collect(),
            false => order.into_iter().map(|(_, group)| group).collect(),
        };
        for group in groups {
            let Some(state) = states.get_mut(group).and_then(Option::take) else { continue };
            if self.stopped {
                break;
            }
            self.emit(state)?;
        }
        Ok(())
    }

    fn emit(&mut self, state: State) -> Result<(), SqlError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let State { row, accumulators } = state;
        let values: Vec<Value> = self
            .group
            .aggregates
            .iter()
            .zip(accumulators)
            .map(|(aggregate, accumulator)| aggregate.finish(accumulator, &context))
            .collect();
        self.emit_values(&row, &values)
    }

    fn emit_values(&mut self, first_row: &[OwnedPart], values: &[Value]) -> Result<(), SqlError> {
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
        self.emit_values(&[], &values)?;
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

impl RowConsumer for Grouper<'_, '_> {
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError> {
        let group = match self.group.keys.as_slice() {
            [] => {
                if self.group.keeps_row && self.states[0].row.is_empty() {
                    self.states[0].row = row.0.iter().map(keep).collect();
                }
                0
            }
            keys => {
                let values: Vec<ValueRef<'_>> = evaluate_all(keys, row, context)?;
                self.key.clear();
                self.group.values.encode(&values, &mut self.key);
                self.group_of(row)?
            }
        };
        let state = &mut self.states[group];
        for (aggregate, accumulator) in self.group.aggregates.iter().zip(&mut state.accumulators) {
            aggregate.add(accumulator, row, context)?;
        }
        Ok(if self.stopped { Flow::Stop } else { Flow::Continue })
    }
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

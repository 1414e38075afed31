//! Runs the plan of a statement.

use super::access::Scratch;
use super::group::Grouper;
use super::join::Join;
use super::lock::RowLocks;
use super::output::{AsSeen, Collect, Distinct, Limited, Materialized, Project, ToClient};
use super::recursive::run_recursive;
use super::seen::Seen;
use super::set_operations::run_set_operations;
use super::sort::{SortRows, Sorter};
use super::window::Windows;
use super::{Flow, RowConsumer, RowSink};
use crate::expr::is_seen_apart;
use crate::expr::{Environment, InnerQuery, ListSet, RunSubquery, Slots, StoredList, cells};
use crate::host::Interrupt;
use crate::memory::Charge;
use crate::plan::bind::SubqueryUse;
use crate::plan::describe::Running;
use crate::plan::names::{self, LiteralText};
use crate::plan::plan::*;
use crate::spill::{Spool, Workspace, append_row};
use crate::{ColumnMeta, ErrorKind, ResultSink, SqlError};
use std::any::Any;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use types::{ColumnType, Decimal, Value, ValueRef};

/// What a running plan asks of its session. Each of these is called rarely, once for a query or less.
pub(crate) trait SessionServices {
    /// The rows of a computed table, with one value for each column.
    ///
    /// # Errors
    /// Those of the table.
    fn virtual_rows(&self, table: &'static VirtualTable) -> Result<Vec<Vec<Value>>, SqlError>;

    /// Where the statement keeps rows.
    fn workspace(&self) -> Workspace<'_>;
}

/// What a running statement needs of its session.
pub(crate) struct Runtime<'r> {
    pub environment: &'r dyn Environment,
    pub interrupt: &'r Interrupt,
    pub session: &'r dyn SessionServices,
    /// The text of the literal in a slot, which names of columns show.
    pub literal_text: &'r LiteralText<'r>,
    /// The reader for rows that are not locked.
    pub reader: engine::Reader<'r>,
    /// Present if the statement may lock rows.
    pub locks: Option<RowLocks<'r>>,
    /// Memory for subqueries that run for each row. A subquery takes it out while it runs.
    pub spare: RefCell<Vec<Vec<Scratch>>>,
    pub derived: DerivedRows,
}

/// The rows of tables in FROM that are computed once.
#[derive(Default, Debug)]
pub(crate) struct DerivedRows {
    /// Those of WITH, and of derived tables in subqueries that run for each row, by the addresses of their
    /// plans. A derived table cannot read the row around it, so computing it once is enough.
    known: RefCell<HashMap<usize, Rc<Materialized>>>,
    /// For each recursive definition that is running, the rows that came last.
    working: RefCell<HashMap<usize, Rc<Materialized>>>,
}

impl DerivedRows {
    fn get(
        &self,
        plan: &QueryPlan,
        read: impl FnOnce() -> Result<Materialized, SqlError>,
    ) -> Result<Rc<Materialized>, SqlError> {
        let address = std::ptr::from_ref(plan).addr();
        if let Some(rows) = self.known.borrow().get(&address) {
            return Ok(rows.clone());
        }
        let rows = Rc::new(read()?);
        self.known.borrow_mut().insert(address, rows.clone());
        Ok(rows)
    }

    /// Sets the rows that came last of a recursive definition, and gives those before them.
    pub(super) fn set_working(
        &self,
        number: usize,
        rows: Option<Rc<Materialized>>,
    ) -> Option<Rc<Materialized>> {
        let mut working = self.working.borrow_mut();
        match rows {
            Some(rows) => working.insert(number, rows),
            None => working.remove(&number),
        }
    }
}

impl<'r> Runtime<'r> {
    /// Where the statement keeps rows. Statements that keep none do not ask.
    pub(crate) fn workspace(&self) -> Workspace<'r> {
        self.session.workspace()
    }

    /// A runtime that reads without locking.
    pub(crate) fn without_locks(&self) -> Runtime<'r> {
        Runtime { locks: None, spare: RefCell::default(), derived: DerivedRows::default(), ..*self }
    }
}

impl RunSubquery for Runtime<'_> {
    fn run(
        &self,
        plan: &dyn InnerQuery,
        slots: Slots<'_>,
        each: &mut dyn FnMut(&[ValueRef<'_>]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        self.interrupt.check()?;
        let plan: &dyn Any = plan;
        let plan = plan
            .downcast_ref::<QueryPlan>()
            .ok_or_else(|| SqlError::internal("a subquery without a plan"))?;
        let mut scratch = self.spare.borrow_mut().pop().unwrap_or_default();
        let done = run_query(plan, slots, self, &mut scratch, &mut Each(each));
        self.spare.borrow_mut().push(scratch);
        done.map(|_| ())
    }

    fn workspace(&self) -> Workspace<'_> {
        self.session.workspace()
    }
}

/// Hands each row to a function.
struct Each<'e>(&'e mut dyn FnMut(&[ValueRef<'_>]) -> Result<bool, SqlError>);

impl RowSink for Each<'_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        Ok(if (self.0)(values)? { Flow::Continue } else { Flow::Stop })
    }

    fn wants_all_digits(&self) -> bool {
        true
    }
}

/// How many rows a query had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Done {
    pub sent: u64,
    /// FOUND_ROWS().
    pub found: u64,
}

/// Runs a plan and sends its columns and rows to the client. The caller sends the end.
///
/// # Errors
/// Any error of running the plan. Rows may have been sent already.
pub(crate) fn run_to_client(
    plan: &StatementPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    sink: &mut dyn ResultSink,
) -> Result<Done, SqlError> {
    if plan.query.has_fixed_columns() {
        sink.columns(&plan.query.columns)?;
    } else {
        let (literal_text, environment) = (runtime.literal_text, Some(runtime.environment));
        let run = Running { slots, literal_text, subqueries: &plan.subqueries, environment };
        sink.columns(&named_columns(&plan.query, run))?;
    }
    with_subqueries(&plan.subqueries, slots, runtime, scratch, &mut |slots, scratch| {
        let mut client = ToClient(sink);
        match plan.query.is_seen_apart {
            true => {
                let mut seen = AsSeen::new(&plan.query.columns, is_seen_apart, &mut client);
                run_stored(&plan.query, slots, runtime, scratch, &mut seen)
            }
            false => run_stored(&plan.query, slots, runtime, scratch, &mut client),
        }
    })
}

/// Runs a plan and keeps its rows as columns store them: INSERT ... SELECT. The entries have no keys;
/// [`crate::spill::read_row`] reads their rows.
///
/// # Errors
/// As [`run_to_client`].
pub(crate) fn run_to_spool<'w>(
    plan: &StatementPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'w>,
    scratch: &mut Vec<Scratch>,
) -> Result<Spool, SqlError> {
    let mut rows = ToSpool { spool: Spool::default(), workspace: runtime.workspace(), row: Vec::new() };
    with_subqueries(&plan.subqueries, slots, runtime, scratch, &mut |slots, scratch| {
        run_stored(&plan.query, slots, runtime, scratch, &mut rows)
    })?;
    Ok(rows.spool)
}

struct ToSpool<'w> {
    spool: Spool,
    workspace: Workspace<'w>,
    row: Vec<u8>,
}

impl RowSink for ToSpool<'_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        self.row.clear();
        append_row(values, &mut self.row);
        self.spool.push(&[], &self.row, self.workspace)?;
        Ok(Flow::Continue)
    }

    fn wants_all_digits(&self) -> bool {
        true
    }
}

/// The columns of a query in this run, with the literals in their names.
pub(crate) fn named_columns(query: &QueryPlan, run: Running<'_>) -> Vec<ColumnMeta> {
    let mut columns = query.described_columns(run);
    for (at, name) in &query.names {
        columns[*at].name = names::shown(name.filled(run.literal_text));
    }
    columns
}

/// The code that runs when the results of subqueries are in the slots.
pub(super) type Inner<'b, T> = dyn FnMut(Slots<'_>, &mut Vec<Scratch>) -> Result<T, SqlError> + 'b;

/// Runs the subqueries, then `body` with their results behind the statement's slots.
///
/// # Errors
/// Those of the subqueries and of `body`.
pub(crate) fn with_subqueries<T>(
    subqueries: &[SubqueryPlan],
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    body: &mut Inner<'_, T>,
) -> Result<T, SqlError> {
    if subqueries.is_empty() {
        if slots.sets.is_empty() && !ListSet::are_of_use(&slots) {
            return body(slots, scratch);
        }
        let sets = sets_for(&slots, &[]);
        return body(Slots { sets: &sets, ..slots }, scratch);
    }
    let around = slots;
    let mut results: Vec<SubqueryResult> = Vec::new();
    for subquery in subqueries {
        let result = {
            let (values, starts) = extended(around, &results);
            let slots = Slots { values: &values, starts: &starts, ..around };
            let sets = sets_for(&slots, &results);
            let slots = Slots { sets: &sets, ..slots };
            subquery_values(subquery, slots, runtime, scratch)?
        };
        results.push(result);
    }
    let (values, starts) = extended(around, &results);
    let slots = Slots { values: &values, starts: &starts, ..around };
    let sets = sets_for(&slots, &results);
    body(Slots { sets: &sets, ..slots }, scratch)
}

/// What a subquery stands for.
#[derive(Default)]
struct SubqueryResult {
    values: Vec<Value>,
    /// The list, if it did not fit into memory. Then there are no values.
    stored: Option<Rc<StoredList>>,
    /// Counts the values.
    _charge: Charge,
}

/// One empty cell for each slot with a long list, to hold the set made of the list, and the lists that did
/// not fit into memory. The last slots are those of `results`.
fn sets_for(slots: &Slots<'_>, results: &[SubqueryResult]) -> Vec<OnceCell<ListSet>> {
    let any_stored = !slots.sets.is_empty() || results.iter().any(|result| result.stored.is_some());
    let count = slots.starts.len().saturating_sub(1);
    if !any_stored {
        let count = if ListSet::are_of_use(slots) { count } else { 0 };
        return std::iter::repeat_with(OnceCell::new).take(count).collect();
    }
    let around = (0..slots.sets.len())
        .filter_map(|slot| ListSet::stored_of_slot(slots, slot).map(|list| (slot, list.clone())));
    let first = count - results.len();
    let of_results = results.iter().enumerate();
    let stored = of_results.filter_map(|(at, result)| Some((first + at, result.stored.clone()?)));
    cells(count, around.chain(stored))
}

/// The slots of the statement, followed by those of the subqueries' results.
fn extended<'a>(slots: Slots<'a>, results: &'a [SubqueryResult]) -> (Vec<ValueRef<'a>>, Vec<u32>) {
    let mut values = slots.values.to_vec();
    let mut starts = match slots.starts {
        [] => (0..=slots.values.len() as u32).collect(),
        starts => starts.to_vec(),
    };
    for result in results {
        values.extend(result.values.iter().map(Value::as_ref));
        starts.push(values.len() as u32);
    }
    (values, starts)
}

/// Keeps the values of a subquery behind IN: in memory, and if they are too many for that, in a file.
struct ListRows<'w> {
    workspace: Workspace<'w>,
    values: Vec<Value>,
    bytes: usize,
    /// When they reach this many, more memory is asked for.
    bytes_next: usize,
    charge: Charge,
    stored: Option<Spool>,
    row: Vec<u8>,
}

/// What a value of a list takes beside its text: itself, what refers to it, and its entry in a set.
const LIST_VALUE_BYTES: usize = size_of::<Value>() + size_of::<ValueRef<'_>>() + 32;

impl<'w> ListRows<'w> {
    fn new(workspace: Workspace<'w>) -> ListRows<'w> {
        let charge = Charge::default();
        let bytes_next = charge.covered().min(workspace.limits.table_bytes);
        ListRows {
            workspace,
            values: Vec::new(),
            bytes: 0,
            bytes_next,
            charge,
            stored: None,
            row: Vec::new(),
        }
    }

    /// Asks for more memory. If there is no more, all rows go to a file.
    #[cold]
    fn grow(&mut self, width: usize) -> Result<(), SqlError> {
        let bytes_max = self.workspace.limits.table_bytes;
        if self.bytes < bytes_max {
            self.charge.cover(self.bytes + 1, self.workspace.account)?;
            self.bytes_next = self.charge.covered().min(bytes_max);
            return Ok(());
        }
        let values = std::mem::take(&mut self.values);
        self.charge.release();
        for row in values.chunks(width) {
            let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            self.store(&row)?;
        }
        Ok(())
    }

    fn store(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.row.clear();
        append_row(row, &mut self.row);
        self.stored.get_or_insert_default().push(&[], &self.row, self.workspace)
    }
}

impl RowSink for ListRows<'_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        if self.stored.is_some() {
            self.store(values)?;
            return Ok(Flow::Continue);
        }
        let texts = values.iter().filter_map(ValueRef::as_bytes).map(<[u8]>::len).sum::<usize>();
        self.bytes += values.len() * LIST_VALUE_BYTES + 2 * texts;
        self.values.extend(values.iter().map(ValueRef::to_value));
        if self.bytes >= self.bytes_next {
            self.grow(values.len())?;
        }
        Ok(Flow::Continue)
    }
}

/// Runs a subquery.
fn subquery_values(
    subquery: &SubqueryPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
) -> Result<SubqueryResult, SqlError> {
    let mut rows = ListRows::new(runtime.workspace());
    let count = match subquery.use_as {
        SubqueryUse::Exists => 1,
        SubqueryUse::Scalar => 2,
        SubqueryUse::List | SubqueryUse::Rows { .. } => {
            run_query(&subquery.query, slots, runtime, scratch, &mut rows)?;
            let width = subquery.use_as.columns();
            let stored = rows.stored.map(Spool::finish).transpose()?;
            return Ok(SubqueryResult {
                values: rows.values,
                stored: stored.map(|rows| Rc::new(StoredList::new(rows, width))),
                _charge: rows.charge,
            });
        }
    };
    let mut few: Few = Few::default();
    let mut limited = Limited { offset: 0, count, counts_on: false, seen: 0, sent: 0, out: &mut few };
    run_query(&subquery.query, slots, runtime, scratch, &mut limited)?;
    let value = match subquery.use_as {
        SubqueryUse::Exists => Value::Int(i64::from(few.rows > 0)),
        _ if few.rows > 1 => return Err(SqlError::subquery_of_several_rows()),
        _ => few.first.unwrap_or(Value::Null),
    };
    Ok(SubqueryResult { values: vec![value], ..SubqueryResult::default() })
}

/// Counts rows, and keeps the last value of the first.
#[derive(Default)]
struct Few {
    first: Option<Value>,
    rows: usize,
}

impl RowSink for Few {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        if self.rows == 0 {
            self.first = values.last().map(ValueRef::to_value);
        }
        self.rows += 1;
        Ok(Flow::Continue)
    }

    fn wants_all_digits(&self) -> bool {
        true
    }
}

/// Runs a query whose rows expressions see.
pub(super) fn run_query(
    plan: &QueryPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    out: &mut dyn RowSink,
) -> Result<Done, SqlError> {
    match plan.is_seen_apart {
        true => {
            let mut seen = AsSeen::new(&plan.columns, ColumnType::is_coded, out);
            run_stored(plan, slots, runtime, scratch, &mut seen)
        }
        false => run_stored(plan, slots, runtime, scratch, out),
    }
}

/// Runs a query whose columns give the values that columns store.
fn run_stored(
    plan: &QueryPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    out: &mut dyn RowSink,
) -> Result<Done, SqlError> {
    match &plan.body {
        Body::Select(select) => run_select(select, slots, runtime, scratch, out),
        Body::Union(union) => run_set_operations(union, slots, runtime, scratch, out),
        Body::Recursive(plan) => run_recursive(plan, slots, runtime, scratch, out),
    }
}

/// The values of LIMIT: offset and count.
pub(crate) fn limits(
    limit: &Limit,
    slots: &Slots<'_>,
    environment: &dyn Environment,
) -> Result<(u64, u64), SqlError> {
    let value = |value: Option<LimitValue>, otherwise: u64| match value {
        None => Ok(otherwise),
        Some(LimitValue::Number(number)) => Ok(number),
        Some(LimitValue::Slot(slot)) => limit_of(slots.value(slot), environment),
    };
    Ok((value(limit.offset, 0)?, value(limit.count, u64::MAX)?))
}

/// A parameter of LIMIT. Some drivers send numbers as text.
fn limit_of(value: ValueRef<'_>, environment: &dyn Environment) -> Result<u64, SqlError> {
    let number = match value {
        ValueRef::UInt(number) => return Ok(number),
        // LIMIT NULL takes no row.
        ValueRef::Null => return Ok(0),
        ValueRef::Int(number) => Decimal::from(number),
        ValueRef::Decimal(number) => number,
        ValueRef::Float(number) => Decimal::from_f64(number.into()),
        ValueRef::Double(number) => Decimal::from_f64(number),
        ValueRef::Text(text) | ValueRef::Binary(text) => {
            let (number, used) = Decimal::parse_prefix(text);
            if used == 0 || !text[used..].trim_ascii().is_empty() {
                environment.warn(
                    ErrorKind::TruncatedWrongValue,
                    format!("Truncated incorrect INTEGER value: '{}'", String::from_utf8_lossy(text)),
                );
            }
            number
        }
        _ => return Err(SqlError::wrong_arguments("LIMIT")),
    };
    let rounded = number.rounded();
    rounded.to_u64().filter(|_| !rounded.is_negative()).ok_or_else(|| SqlError::wrong_arguments("EXECUTE"))
}

/// The number after a word such as WAIT.
pub(crate) fn number_behind(word: &str, value: LimitValue, slots: &Slots<'_>) -> Result<u64, SqlError> {
    match value {
        LimitValue::Number(number) => Ok(number),
        LimitValue::Slot(slot) => match slots.value(slot) {
            ValueRef::Int(number) => u64::try_from(number).map_err(|_| SqlError::wrong_arguments(word)),
            ValueRef::UInt(number) => Ok(number),
            _ => Err(SqlError::wrong_arguments(word)),
        },
    }
}

fn run_select(
    plan: &SelectPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    out: &mut dyn RowSink,
) -> Result<Done, SqlError> {
    let (offset, count) = limits(&plan.limit, &slots, runtime.environment)?;
    if count == 0 && !plan.calculates_found_rows {
        return Ok(Done::default());
    }
    let counts_on = plan.calculates_found_rows;
    // The sort knows which rows tie with the last one.
    let sent_max = if plan.limit.ties { u64::MAX } else { count };
    let mut limited = Limited { offset, count: sent_max, counts_on, seen: 0, sent: 0, out };
    if plan.order.items.is_empty() {
        match &plan.distinct {
            None => {
                let buffer = std::mem::take(&mut first(scratch).output);
                let all_digits = limited.wants_all_digits();
                let mut project = Project { plan, out: &mut limited, buffer, all_digits };
                read_and_group(plan, slots, runtime, scratch, &mut project)?;
                scratch[0].output = project.buffer;
            }
            Some(keys) => {
                let seen = Seen::new(keys, runtime.workspace());
                let mut distinct = Distinct { seen, stopped: false, out: &mut limited };
                let mut project = Project { plan, out: &mut distinct, buffer: Vec::new(), all_digits: false };
                read_and_group(plan, slots, runtime, scratch, &mut project)?;
                distinct.finish()?;
            }
        }
    } else {
        let mut arena = std::mem::take(&mut first(scratch).arena);
        let wanted = if counts_on { u64::MAX } else { offset.saturating_add(count) };
        let mut sort = SortRows {
            plan,
            sorter: Sorter::new(&plan.order, &arena, wanted, plan.limit.ties, runtime.workspace()),
            distinct: plan.distinct.as_ref().map(|keys| Seen::new(keys, runtime.workspace())),
        };
        read_and_group(plan, slots, runtime, scratch, &mut sort)?;
        sort.finish(&mut limited)?;
        arena.reset();
        scratch[0].arena = arena;
    }
    let found = if plan.calculates_found_rows { limited.seen } else { limited.sent };
    Ok(Done { sent: limited.sent, found })
}

/// The memory for the query as a whole. What a query around this one uses has been taken out of the list.
#[inline]
fn first(scratch: &mut Vec<Scratch>) -> &mut Scratch {
    if scratch.is_empty() {
        scratch.push(Scratch::default());
    }
    &mut scratch[0]
}

/// By part: the rows of derived and computed tables. It ends with the last one that has any.
pub(super) fn materialize(
    plan: &SelectPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
) -> Result<Vec<Option<Rc<Materialized>>>, SqlError> {
    let mut materialized: Vec<Option<Rc<Materialized>>> = Vec::new();
    for (part, input) in plan.inputs.iter().enumerate() {
        let mut read = |query: &QueryPlan| {
            let mut rows = Collect::table(runtime.workspace());
            run_stored(query, slots, runtime, scratch, &mut rows)?;
            rows.finish()
        };
        let rows = match &input.source {
            Source::Table { .. } => continue,
            // Only a subquery that runs for each row can run this more than once.
            Source::Derived(query) if slots.outer.is_empty() => Rc::new(read(query)?),
            Source::Derived(query) => runtime.derived.get(query, || read(query))?,
            Source::Shared(query) => runtime.derived.get(query, || read(query))?,
            Source::Working(number) => {
                let rows = runtime.derived.working.borrow().get(number).cloned();
                rows.ok_or_else(|| SqlError::internal("a recursive definition that is not running"))?
            }
            Source::Virtual(table) => Rc::new(Materialized::of(runtime.session.virtual_rows(table)?)),
        };
        materialized.resize_with(part, || None);
        materialized.push(Some(rows));
    }
    Ok(materialized)
}

/// Reads the tables, groups the rows if the plan groups, and computes window functions.
fn read_and_group(
    plan: &SelectPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    consumer: &mut dyn RowConsumer,
) -> Result<(), SqlError> {
    let Some(window) = &plan.windows else {
        return read_rows(plan, slots, runtime, scratch, consumer);
    };
    let mut windows = Windows::new(plan, window, slots, runtime, consumer);
    read_rows(plan, slots, runtime, scratch, &mut windows)?;
    windows.finish()
}

/// Reads the tables, and groups the rows if the plan groups.
fn read_rows(
    plan: &SelectPlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    consumer: &mut dyn RowConsumer,
) -> Result<(), SqlError> {
    let materialized = materialize(plan, slots, runtime, scratch)?;
    if scratch.len() < plan.steps.len() {
        scratch.resize_with(plan.steps.len(), Scratch::default);
    }
    let lock = runtime.locks.as_ref().and_then(|locks| locks.clause_of(plan));
    let join = Join { plan, slots, runtime, materialized: &materialized, lock, change: None };
    let Some(group) = &plan.group else {
        let Some(having) = &plan.having else {
            join.run(scratch, consumer)?;
            return Ok(());
        };
        join.run(scratch, &mut Having { having, after: consumer })?;
        return Ok(());
    };
    let mut grouper = Grouper::new(plan, group, slots, runtime, consumer);
    if let (Some(shortcut), Some(Source::Table { table, .. })) =
        (&plan.shortcut, plan.inputs.first().map(|input| &input.source))
        && lock.is_none()
        && grouper.shortcut(shortcut, table)?
    {
        return Ok(());
    }
    join.run(scratch, &mut grouper)?;
    grouper.finish()
}

/// HAVING without groups: a second WHERE that can name aliases.
struct Having<'p, 'c> {
    having: &'p crate::expr::Compiled,
    after: &'c mut dyn RowConsumer,
}

impl RowConsumer for Having<'_, '_> {
    fn row(
        &mut self,
        row: &crate::expr::Row<'_>,
        context: &crate::expr::Context<'_>,
    ) -> Result<Flow, SqlError> {
        if self.having.is_true(row, context)? { self.after.row(row, context) } else { Ok(Flow::Continue) }
    }
}

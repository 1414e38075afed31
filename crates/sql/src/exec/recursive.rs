//! Runs a definition of WITH RECURSIVE.
//!
//! Its rows are handed on as they come. Those of one round are kept beside, because the members read them in
//! the next round. A round without new rows is the last one.

use super::key_set::KeySet;
use super::output::{Collect, Materialized};
use super::query::{Done, Runtime, run_query};
use super::{Flow, RowSink, Scratch};
use crate::expr::Slots;
use crate::expr::value_keys::ValueKeys;
use crate::memory::Charge;
use crate::plan::describe::Running;
use crate::plan::plan::{QueryPlan, RecursivePlan};
use crate::plan::set_operations::union_columns;
use crate::spill::{IndexedRows, Sorter, Workspace};
use crate::{ColumnMeta, ErrorKind, SqlError};
use bumpalo::Bump;
use std::borrow::Cow;
use std::rc::Rc;
use types::{Column, ColumnType, ValueRef};

pub(super) fn run_recursive(
    plan: &RecursivePlan,
    slots: Slots<'_>,
    runtime: &Runtime<'_>,
    scratch: &mut Vec<Scratch>,
    out: &mut dyn RowSink,
) -> Result<Done, SqlError> {
    // A definition does not read the row around it. Derived tables inside of it that read the last round must
    // not be kept as those of a subquery are.
    let slots = Slots { outer: &[], ..slots };
    let mut round = Round {
        columns: columns(plan, slots, runtime),
        runtime,
        known: plan.keys.as_ref().map(|keys| Known::new(keys, runtime.workspace())),
        rows: Collect::table(runtime.workspace()),
        count: 0,
        stopped: false,
        out,
    };
    for anchor in &plan.anchors {
        run_query(anchor, slots, runtime, scratch, &mut round)?;
    }
    let rounds_max = runtime.environment.recursions_max();
    let mut rounds = 0;
    loop {
        let last = round.take()?;
        if last.is_empty() || round.stopped {
            break;
        }
        if rounds == rounds_max {
            let text = format!(
                "Query execution was interrupted. The query exceeded max_recursive_iterations = {rounds_max}. \
                 The query result may be incomplete"
            );
            runtime.environment.warn(ErrorKind::RecursionsExceeded, text);
            break;
        }
        rounds += 1;
        runtime.interrupt.check()?;
        let around = runtime.derived.set_working(plan.number, Some(Rc::new(last)));
        let members = plan.members.iter();
        let done: Result<Vec<Done>, SqlError> =
            members.map(|member| run_query(member, slots, runtime, scratch, &mut round)).collect();
        runtime.derived.set_working(plan.number, around);
        done?;
    }
    Ok(Done { sent: round.count, found: round.count })
}

/// The columns, with the types of those literals that this run has.
fn columns<'p>(plan: &'p RecursivePlan, slots: Slots<'_>, runtime: &Runtime<'_>) -> Cow<'p, [Column]> {
    if !plan.anchors.iter().any(QueryPlan::is_described_late) {
        return Cow::Borrowed(&plan.columns);
    }
    let (literal_text, environment) = (runtime.literal_text, Some(runtime.environment));
    let run = Running { slots, literal_text, subqueries: &[], environment };
    let metas: Vec<Vec<ColumnMeta>> =
        plan.anchors.iter().map(|anchor| anchor.described_columns(run)).collect();
    let metas: Vec<&[ColumnMeta]> = metas.iter().map(Vec::as_slice).collect();
    let mut columns = plan.columns.clone();
    for (column, of_run) in columns.iter_mut().zip(union_columns(&metas)) {
        column.column_type = of_run.column_type;
    }
    Cow::Owned(columns)
}

/// Takes the rows of a round.
struct Round<'p, 's> {
    columns: Cow<'p, [Column]>,
    runtime: &'p Runtime<'p>,
    /// `None` if equal rows may come.
    known: Option<Known<'p>>,
    rows: Collect<'p>,
    /// The rows of all rounds.
    count: u64,
    stopped: bool,
    out: &'s mut dyn RowSink,
}

impl Round<'_, '_> {
    /// Ends the round and gives its rows.
    fn take(&mut self) -> Result<Materialized, SqlError> {
        let rows = Collect::table(self.runtime.workspace());
        std::mem::replace(&mut self.rows, rows).finish()
    }

    /// A value as the column has it.
    fn convert<'a>(
        &self,
        value: ValueRef<'a>,
        column: &Column,
        arena: &'a Bump,
    ) -> Result<ValueRef<'a>, SqlError> {
        // A column whose anchors are all NULL holds nothing else but the empty string.
        if column.column_type == (ColumnType::Binary { bytes: 0 }) && value != ValueRef::Null {
            return Ok(ValueRef::Binary(b""));
        }
        let coerced = crate::expr::coerce(value, column, None, arena);
        let Some(issue) = &coerced.issue else { return Ok(coerced.value) };
        let row = self.count + 1;
        let environment = self.runtime.environment;
        if !issue.is_error_when_strict() {
            let error = issue.to_error(&column.name, row);
            environment.note(error.kind, error.message);
        } else if environment.sql_mode().strict {
            return Err(issue.to_error(&column.name, row));
        } else {
            let error = issue.as_warning().to_error(&column.name, row);
            environment.warn(error.kind, error.message);
        }
        Ok(coerced.value)
    }
}

impl RowSink for Round<'_, '_> {
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<Flow, SqlError> {
        let arena = Bump::new();
        let columns = self.columns.iter();
        let alike: Vec<ValueRef<'_>> = columns
            .zip(values)
            .map(|(column, value)| self.convert(*value, column, &arena))
            .collect::<Result<_, SqlError>>()?;
        if let Some(known) = &mut self.known
            && !known.is_new(&alike)?
        {
            return Ok(Flow::Continue);
        }
        self.count += 1;
        self.rows.row(&alike)?;
        let flow = self.out.row(&alike)?;
        self.stopped |= flow == Flow::Stop;
        Ok(flow)
    }

    fn wants_all_digits(&self) -> bool {
        true
    }
}

/// The rows that have come, by their keys. Whether a row is new must be known at once, so those that do not
/// fit into memory lie in files that are searched.
struct Known<'p> {
    keys: &'p ValueKeys,
    workspace: Workspace<'p>,
    set: KeySet,
    key: Vec<u8>,
    /// When the set takes so many bytes, more memory is asked for.
    bytes_next: usize,
    charge: Charge,
    files: Vec<IndexedRows>,
}

impl<'p> Known<'p> {
    fn new(keys: &'p ValueKeys, workspace: Workspace<'p>) -> Known<'p> {
        let charge = Charge::default();
        let bytes_next = charge.covered().min(workspace.limits.table_bytes);
        Known { keys, workspace, set: KeySet::default(), key: vec![], bytes_next, charge, files: vec![] }
    }

    /// Notes a row. True if none like it has come before.
    fn is_new(&mut self, values: &[ValueRef<'_>]) -> Result<bool, SqlError> {
        self.key.clear();
        self.keys.encode(values, &mut self.key);
        if self.set.contains(&self.key) {
            return Ok(false);
        }
        for file in &self.files {
            let mut found = false;
            file.for_each_of(self.workspace, &self.key, |_| {
                found = true;
                Ok(false)
            })?;
            if found {
                return Ok(false);
            }
        }
        self.set.insert(&self.key);
        if self.set.bytes() >= self.bytes_next {
            self.grow()?;
        }
        Ok(true)
    }

    /// Asks for more memory. If there is no more, the keys go to a file.
    #[cold]
    fn grow(&mut self) -> Result<(), SqlError> {
        let limits = self.workspace.limits;
        if self.set.bytes() < limits.table_bytes {
            self.charge.cover(self.set.bytes() + 1, self.workspace.account)?;
            self.bytes_next = self.charge.covered().min(limits.table_bytes);
            return Ok(());
        }
        self.workspace.note_disk_table();
        let mut sorter = Sorter::new(self.workspace, limits.sort_bytes.max(limits.table_bytes), usize::MAX);
        for key in self.set.iter() {
            sorter.push(key, &[])?;
        }
        self.files.push(IndexedRows::new(self.workspace, sorter)?);
        self.set = KeySet::default();
        Ok(())
    }
}

//! Window functions.
//!
//! All rows are gathered first. For each order that the functions need, the rows are sorted, and of each
//! partition the results are computed row by row: they become a part of the row. The last sort hands the rows
//! on. A partition is kept in memory, and beyond `tmp_memory_table_size` in a file. Functions read it with
//! cursors of their own, which only move forward, save those of LAG, LEAD and NTH_VALUE.

mod frame;
mod functions;
mod record;
mod sliding;

use super::query::Runtime;
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::exec::parts::read_parts;
use crate::expr::{Context, Part, RangeKey, Row, Slots};
use crate::plan::plan::SelectPlan;
use crate::plan::window::{WindowPlan, WindowSort};
use crate::spill::{GatheredRows, RowCursor, SortedRows, Sorter, append_value, read_row};
use bumpalo::Bump;
use frame::{Frame, Group, Sorted};
use functions::{Place, Runner};
use record::Layout;
use types::{Value, ValueRef};

/// Gathers rows, and hands them on with the results of the window functions.
pub(super) struct Windows<'p, 'c> {
    plan: &'p SelectPlan,
    layout: Layout<'p>,
    window: &'p WindowPlan,
    slots: Slots<'p>,
    runtime: &'p Runtime<'p>,
    after: &'c mut dyn RowConsumer,
    rows: Source<'p>,
    key: Vec<u8>,
    record: Vec<u8>,
}

/// The rows for a sort.
enum Source<'p> {
    Sorter(Sorter<'p>),
    /// Any order will do, and there is one partition.
    All(GatheredRows<'p>),
}

impl Source<'_> {
    fn push(&mut self, key: &[u8], record: &[u8]) -> Result<(), SqlError> {
        match self {
            Source::Sorter(sorter) => sorter.push(key, record),
            Source::All(rows) => rows.push(key, record),
        }
    }
}

impl<'p, 'c> Windows<'p, 'c> {
    pub(super) fn new(
        plan: &'p SelectPlan,
        window: &'p WindowPlan,
        slots: Slots<'p>,
        runtime: &'p Runtime<'p>,
        after: &'c mut dyn RowConsumer,
    ) -> Windows<'p, 'c> {
        let rows = source(window, 0, runtime);
        let layout = Layout::new(window);
        Windows { plan, layout, window, slots, runtime, after, rows, key: Vec::new(), record: Vec::new() }
    }

    /// Computes the functions, and hands the rows on.
    pub(super) fn finish(self) -> Result<(), SqlError> {
        let Windows { plan, layout, window, slots, runtime, after, rows, .. } = self;
        let arena = Bump::new();
        let context =
            Context { slots, arena: &arena, environment: runtime.environment, subqueries: Some(runtime) };
        let distance = |expr: &'p crate::expr::Compiled| -> Result<RangeKey, SqlError> {
            Ok(RangeKey::of(&expr.evaluate(&Row::EMPTY, &context)?))
        };
        let distances = window.distances.iter().map(distance).collect::<Result<Vec<_>, _>>()?;
        let mut run = Run { plan, layout, window, slots, runtime, after, distances };
        let mut rows = rows;
        for sort in 0..window.sorts.len() {
            let is_last = sort + 1 == window.sorts.len();
            let mut next = (!is_last).then(|| source(window, sort + 1, runtime));
            run.sort(sort, rows, &mut next)?;
            match next {
                Some(source) => rows = source,
                None => break,
            }
        }
        Ok(())
    }
}

fn source<'p>(window: &'p WindowPlan, sort: usize, runtime: &'p Runtime<'p>) -> Source<'p> {
    let workspace = runtime.workspace();
    match window.sorts[sort].components.is_empty() {
        true => Source::All(GatheredRows::new(workspace)),
        false => Source::Sorter(Sorter::new(workspace, workspace.limits.sort_bytes, usize::MAX)),
    }
}

impl RowConsumer for Windows<'_, '_> {
    fn row(&mut self, row: &Row<'_>, context: &Context<'_>) -> Result<Flow, SqlError> {
        self.layout.make(row, context, &mut self.key, &mut self.record)?;
        self.rows.push(&self.key, &self.record)?;
        Ok(Flow::Continue)
    }
}

/// The computation, when all rows are there.
struct Run<'p, 'c> {
    plan: &'p SelectPlan,
    layout: Layout<'p>,
    window: &'p WindowPlan,
    slots: Slots<'p>,
    runtime: &'p Runtime<'p>,
    after: &'c mut dyn RowConsumer,
    distances: Vec<RangeKey>,
}

impl<'p> Run<'p, '_> {
    /// Computes the functions of a sort, whose rows go to the next one, or on if there is none.
    fn sort(
        &mut self,
        sort: usize,
        source: Source<'p>,
        next: &mut Option<Source<'p>>,
    ) -> Result<(), SqlError> {
        let mut rows = match source {
            Source::All(mut rows) => {
                rows.seal()?;
                self.partition(sort, &rows, next)?;
                return Ok(());
            }
            Source::Sorter(sorter) => sorter.finish()?,
        };
        // The largest partitions that a function of the sort has.
        let components = self.window.sorts[sort].groups.first().copied().unwrap_or(0);
        let mut gathered = GatheredRows::new(self.runtime.workspace());
        let mut more = rows.advance()?;
        while more {
            more = self.gather(sort, components, &mut rows, &mut gathered)?;
            gathered.seal()?;
            if self.partition(sort, &gathered, next)? == Flow::Stop {
                return Ok(());
            }
            gathered.clear();
        }
        Ok(())
    }

    /// Takes the rows of a partition, the current one first. False if there are no more behind.
    fn gather(
        &self,
        sort: usize,
        components: usize,
        rows: &mut SortedRows<'p>,
        gathered: &mut GatheredRows<'p>,
    ) -> Result<bool, SqlError> {
        let mut partition: Option<Vec<u8>> = None;
        loop {
            let prefix = self.layout.prefix(sort, components, rows.key(), rows.row())?;
            match &partition {
                None => partition = Some(prefix.to_vec()),
                Some(partition) if partition != prefix => return Ok(true),
                Some(_) => {}
            }
            gathered.push(rows.key(), rows.row())?;
            if !rows.advance()? {
                return Ok(false);
            }
        }
    }

    fn partition(
        &mut self,
        sort: usize,
        rows: &GatheredRows<'p>,
        next: &mut Option<Source<'p>>,
    ) -> Result<Flow, SqlError> {
        let plan: &WindowSort = &self.window.sorts[sort];
        let mut groups: Vec<Group> = plan.groups.iter().map(|components| Group::new(*components)).collect();
        let mut frames: Vec<Frame<'_>> =
            plan.frames.iter().map(|frame| Frame::new(frame, &self.distances)).collect();
        let mut runners: Vec<Runner<'_>> = plan.functions.iter().map(Runner::new).collect();
        let sorted = Sorted { rows, layout: &self.layout, sort, interrupt: self.runtime.interrupt };
        let mut cursor = RowCursor::default();
        let mut spans: Vec<(usize, usize)> = Vec::with_capacity(frames.len());
        let mut results: Vec<Value> = Vec::with_capacity(runners.len());
        let mut record = Vec::new();
        let mut arena = Bump::new();
        for row in 0..rows.len() {
            sorted.check(row)?;
            arena.reset();
            for group in &mut groups {
                group.advance(row, sorted)?;
            }
            spans.clear();
            for frame in &mut frames {
                spans.push(frame.of(row, &groups, sorted)?);
            }
            results.clear();
            let context = context_of(self.slots, self.runtime, &arena);
            for (runner, call) in runners.iter_mut().zip(&plan.functions) {
                let frame = &plan.frames[call.frame];
                let (partition, peers) = (&groups[frame.partition], &groups[frame.peers]);
                let place = Place { row, partition, peers, frame: spans[call.frame] };
                results.push(runner.result(place, sorted, &context)?);
            }
            let (_, kept) = rows.read(&mut cursor, row)?;
            match next {
                Some(source) => {
                    record.clear();
                    record.extend_from_slice(kept);
                    results.iter().for_each(|result| append_value(&result.as_ref(), &mut record));
                    source.push(self.layout.key(sort + 1, kept)?, &record)?;
                }
                None => {
                    let fields = self.layout.fields(kept)?;
                    let all = self.all_results(fields.results, &results)?;
                    let mut parts = read_parts(self.plan, fields.parts, &arena)?;
                    // The results stand behind the parts of the aggregates and of the keys of WITH ROLLUP.
                    parts.resize(self.plan.inputs.len() + 2, Part::Nulls);
                    parts.push(Part::Values(&all));
                    if self.after.row(&Row(&parts), &context)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
            }
        }
        Ok(Flow::Continue)
    }

    /// The results by their columns. Those of the sorts before are in `before`.
    fn all_results<'r>(&self, before: &'r [u8], here: &'r [Value]) -> Result<Vec<ValueRef<'r>>, SqlError> {
        let mut computed = Vec::with_capacity(self.window.functions);
        read_row(before, &mut computed)?;
        computed.extend(here.iter().map(Value::as_ref));
        let mut all = vec![ValueRef::Null; self.window.functions];
        let calls = self.window.sorts.iter().flat_map(|sort| &sort.functions);
        for (call, result) in calls.zip(computed) {
            all[call.result] = result;
        }
        Ok(all)
    }
}

fn context_of<'a>(slots: Slots<'a>, runtime: &'a Runtime<'a>, arena: &'a Bump) -> Context<'a> {
    Context { slots, arena, environment: runtime.environment, subqueries: Some(runtime) }
}

//! Joins: for each row of the tables before, the rows of the next one.

use super::access::{Left, ROWS_BETWEEN_CHECKS, Scratch, Wants, for_each_row};
use super::lock::lock_each_row;
use super::query::Runtime;
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::expr::{Compiled, Context, Part, Row, Slots};
use crate::plan::access::Access;
use crate::plan::plan::{Input, LockClause, SelectPlan, Source, Step};
use bumpalo::Bump;
use engine::Table;
use types::{Value, ValueRef};

/// The rows of a derived or virtual table.
pub(super) type Materialized = Vec<Vec<Value>>;

/// Takes a row of one table and the condition that it has yet to meet.
type EachRow<'e> = dyn FnMut(Part<'_>, &Option<Compiled>) -> Result<Flow, SqlError> + 'e;

/// Reads the tables of a SELECT.
pub(super) struct Join<'p> {
    pub(super) plan: &'p SelectPlan,
    pub(super) slots: Slots<'p>,
    pub(super) runtime: &'p Runtime<'p>,
    /// By part; empty for tables.
    pub(super) materialized: &'p [Option<Materialized>],
    /// How the rows of its tables are locked, if they are.
    pub(super) lock: Option<LockClause>,
}

impl<'p> Join<'p> {
    /// Hands every joined row to `consumer`.
    pub(super) fn run(
        &self,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        if let Some(constant) = &self.plan.constant {
            let arena = Bump::new();
            if !constant.is_true(&Row::EMPTY, &self.context(&arena))? {
                return Ok(Flow::Continue);
            }
        }
        match self.plan.steps.as_slice() {
            [] => {
                let arena = Bump::new();
                consumer.row(&Row::EMPTY, &self.context(&arena))
            }
            // One table: its row is the whole row.
            [Step { part: 0, access: Some(access), left: false, after: None, .. }] => {
                let Source::Table { table, .. } = &self.plan.inputs[0].source else {
                    return Err(SqlError::internal("an access without a table"));
                };
                let outer_arena = Bump::new();
                let mut arena = Bump::new();
                let mut rows = 0;
                let mut each = |part: Part<'_>, filter: &Option<Compiled>| {
                    self.check(&mut rows)?;
                    arena.reset();
                    let context = self.context(&arena);
                    let parts = [part];
                    let row = Row(&parts);
                    if !passes(filter, &row, &context)? {
                        return Ok(Flow::Continue);
                    }
                    consumer.row(&row, &context)
                };
                let context = self.context(&outer_arena);
                self.rows(table, access, 0, &[Part::Nulls], &context, &mut scratch[0], &mut each)
            }
            steps => {
                let parts = vec![Part::Nulls; self.plan.inputs.len()];
                self.step(steps, &parts, scratch, consumer)
            }
        }
    }

    /// The rows that an access finds, locked if they have to be, each with the condition that it has yet to meet.
    #[allow(clippy::too_many_arguments)]
    fn rows(
        &self,
        table: &Table,
        access: &Access,
        part: usize,
        outer: &[Part<'_>],
        context: &Context<'_>,
        scratch: &mut Scratch,
        each: &mut EachRow<'_>,
    ) -> Result<Flow, SqlError> {
        if let (Some(locks), Some(clause)) = (&self.runtime.locks, self.lock) {
            return lock_each_row(
                locks,
                clause,
                table,
                access,
                part,
                outer,
                context,
                scratch,
                &mut |image| each(Part::Image(table.row_codec().view(image)), &None),
            );
        }
        let (reader, outer) = (self.runtime.reader, Row(outer));
        for_each_row(reader, table, access, &outer, context, scratch, Wants::Rows, &mut |_, part, left| {
            match left {
                Left::Residual => each(part, &access.residual),
                Left::All => each(part, &access.all),
            }
        })
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

    #[inline]
    fn check(&self, rows: &mut u32) -> Result<(), SqlError> {
        *rows += 1;
        if (*rows).is_multiple_of(ROWS_BETWEEN_CHECKS) { self.runtime.interrupt.check() } else { Ok(()) }
    }

    /// Reads the first of `steps` for the row `outer`, and the others inside of it.
    fn step(
        &self,
        steps: &[Step],
        outer: &[Part<'_>],
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let Some((step, inner)) = steps.split_first() else {
            let arena = Bump::new();
            return consumer.row(&Row(outer), &self.context(&arena));
        };
        let (own, inner_scratch) =
            scratch.split_first_mut().ok_or_else(|| SqlError::internal("too little scratch"))?;
        let mut matched = false;
        let mut arena = Bump::new();
        let mut rows = 0;
        let mut each = |part: Part<'_>, filter: &Option<Compiled>| {
            self.check(&mut rows)?;
            arena.reset();
            let mut parts = outer.to_vec();
            parts[step.part] = part;
            let context = self.context(&arena);
            let row = Row(&parts);
            if !passes(filter, &row, &context)? {
                return Ok(Flow::Continue);
            }
            matched = true;
            if !passes(&step.after, &row, &context)? {
                return Ok(Flow::Continue);
            }
            self.inner(inner, &row, &context, inner_scratch, consumer)
        };
        let flow = match (&self.plan.inputs[step.part], &step.access) {
            (Input { source: Source::Table { table, .. }, .. }, Some(access)) => {
                let outer_arena = Bump::new();
                let context = self.context(&outer_arena);
                self.rows(table, access, step.part, outer, &context, own, &mut each)?
            }
            _ => self.materialized_rows(step, &mut |part| each(part, &step.filter))?,
        };
        if flow == Flow::Stop || matched || !step.left {
            return Ok(flow);
        }
        let mut parts = outer.to_vec();
        parts[step.part] = Part::Nulls;
        let arena = Bump::new();
        let context = self.context(&arena);
        let row = Row(&parts);
        if !passes(&step.after, &row, &context)? {
            return Ok(Flow::Continue);
        }
        self.inner(inner, &row, &context, inner_scratch, consumer)
    }

    fn inner(
        &self,
        steps: &[Step],
        row: &Row<'_>,
        context: &Context<'_>,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        if steps.is_empty() { consumer.row(row, context) } else { self.step(steps, row.0, scratch, consumer) }
    }

    fn materialized_rows(
        &self,
        step: &Step,
        each: &mut dyn FnMut(Part<'_>) -> Result<Flow, SqlError>,
    ) -> Result<Flow, SqlError> {
        let rows = self.materialized.get(step.part).and_then(Option::as_ref);
        let mut values: Vec<ValueRef<'_>> = Vec::new();
        for row in rows.into_iter().flatten() {
            values.clear();
            values.extend(row.iter().map(Value::as_ref));
            if each(Part::Values(&values))? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

#[inline]
pub(super) fn passes(
    filter: &Option<Compiled>,
    row: &Row<'_>,
    context: &Context<'_>,
) -> Result<bool, SqlError> {
    match filter {
        None => Ok(true),
        Some(filter) => filter.is_true(row, context),
    }
}

//! Descriptions of the columns of a result where they depend on more than the plan: as in MariaDB, on the
//! digits of the literals in an expression, and on the values of variables.
//!
//! A plan serves every literal of a kind. So its own descriptions hold for all literals, and a query that has
//! such columns keeps their expressions, to describe them again when it runs.

use super::bind::SubqueryUse;
use super::names::LiteralText;
use super::plan::{Body, Input, Limit, QueryPlan, SelectPlan, SubqueryPlan, UnionPlan};
use super::select::CONNECTION_COLLATION;
use super::set_operations::{keeps_rows, union_metas};
use super::walk::for_each_operand;
use crate::expr::{
    Aggregate, ColumnRef, Compiled, CompiledAggregate, Environment, Expr, InnerQuery, Leaf, Leaves,
    ResultType, Slots,
};
use crate::{ColumnMeta, SqlError};
use std::any::Any;
use types::{ColumnType, Value};

/// The columns of a SELECT that are described when it runs.
#[derive(Debug)]
pub(crate) struct LateColumns {
    /// Positions in the result, and expressions.
    columns: Vec<(usize, Expr)>,
    /// The aggregate functions. Their results are the columns of the part behind the tables.
    aggregates: Vec<Aggregate>,
}

/// What descriptions look at when a plan is made.
#[derive(Clone, Copy)]
pub(super) struct Planned<'p> {
    pub inputs: &'p [Input],
    pub aggregates: &'p [Aggregate],
    pub subqueries: &'p [SubqueryPlan],
    /// How many slots hold literals and parameters. Those behind them hold the results of subqueries.
    pub slots: usize,
}

impl LateColumns {
    /// Those of a select list; `None` if there are none.
    pub(super) fn of<'e>(items: impl Iterator<Item = &'e Expr>, planned: Planned<'_>) -> Option<LateColumns> {
        let columns: Vec<(usize, Expr)> = items
            .enumerate()
            .filter(|(_, expr)| planned.is_late(expr))
            .map(|(at, expr)| (at, expr.clone()))
            .collect();
        (!columns.is_empty()).then(|| LateColumns { columns, aggregates: planned.aggregates.to_vec() })
    }
}

impl Planned<'_> {
    /// True if an expression is described when it runs.
    fn is_late(&self, expr: &Expr) -> bool {
        let mut late = match expr {
            Expr::Slot { index, .. } => match index.checked_sub(self.slots) {
                None => true,
                Some(at) => self.subqueries.get(at).is_some_and(|inner| inner.query.is_described_late()),
            },
            Expr::InSlot { index, .. } => *index < self.slots,
            Expr::Column(column) => match self.inputs.get(column.part) {
                Some(input) => input.source.query().is_some_and(QueryPlan::is_described_late),
                None => aggregate_of(column, self.inputs, self.aggregates).is_some_and(|aggregate| {
                    aggregate.arguments.iter().any(|argument| self.is_late(argument))
                }),
            },
            Expr::Subquery(subquery) => inner_plan(&*subquery.plan).is_some_and(QueryPlan::is_described_late),
            Expr::UserVariable(_) | Expr::SystemVariable { .. } => true,
            _ => false,
        };
        for_each_operand(expr, &mut |operand| late = late || self.is_late(operand));
        late
    }

    /// The type of an expression as far as the plan knows it.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub(super) fn described(&self, expr: &Expr) -> Result<ResultType, SqlError> {
        Compiled::described(expr, CONNECTION_COLLATION, self)
    }
}

impl Leaves for Planned<'_> {
    fn slot(&self, index: usize) -> Option<Leaf> {
        let subquery = self.subqueries.get(index.checked_sub(self.slots)?)?;
        of_subquery(&subquery.query.columns, &subquery.query, subquery.use_as).map(Leaf::Result)
    }

    fn list_has_null(&self, index: usize) -> Option<bool> {
        (index >= self.slots).then_some(true)
    }

    fn column(&self, column: &ColumnRef) -> Option<ResultType> {
        match self.inputs.get(column.part) {
            Some(input) => {
                let meta = input.source.query()?.columns.get(column.column)?;
                Some(of_derived(meta, column.nullable))
            }
            None => of_aggregate(aggregate_of(column, self.inputs, self.aggregates)?, self),
        }
    }

    fn subquery(&self, plan: &dyn InnerQuery) -> Option<ResultType> {
        plan.columns().first().map(|meta| ResultType { nullable: true, ..of_meta(meta) })
    }

    fn environment(&self) -> Option<&dyn Environment> {
        None
    }
}

/// What descriptions look at when a plan runs.
#[derive(Clone, Copy)]
pub(crate) struct Running<'r> {
    pub slots: Slots<'r>,
    /// How literals are written.
    pub literal_text: &'r LiteralText<'r>,
    /// Which run beforehand.
    pub subqueries: &'r [SubqueryPlan],
    /// `None` before a prepared statement runs.
    pub environment: Option<&'r dyn Environment>,
}

/// A running SELECT.
struct RunningSelect<'r> {
    run: Running<'r>,
    plan: &'r SelectPlan,
    late: &'r LateColumns,
}

impl QueryPlan {
    /// True if neither names nor descriptions of the columns have to do with the literals of a run.
    #[inline]
    pub(crate) fn has_fixed_columns(&self) -> bool {
        self.names.is_empty() && !self.is_described_late()
    }

    /// True if columns are described again when the query runs.
    pub(crate) fn is_described_late(&self) -> bool {
        match &self.body {
            Body::Select(_) => self.late.is_some(),
            Body::Union(union) => union.branches.iter().any(QueryPlan::is_described_late),
            Body::Recursive(_) => false,
        }
    }

    /// The columns of this run. Their names are not filled in.
    pub(crate) fn described_columns(&self, run: Running<'_>) -> Vec<ColumnMeta> {
        match (&self.body, &self.late) {
            (Body::Union(union), _) if self.is_described_late() => {
                let branches: Vec<Vec<ColumnMeta>> =
                    union.branches.iter().map(|branch| branch.described_columns(run)).collect();
                let UnionPlan { operations, columns, .. } = &**union;
                let branches = branches.iter().map(|branch| &branch[..]);
                union_metas(branches, columns, keeps_rows(operations))
            }
            (Body::Select(plan), Some(late)) => {
                let mut columns = self.columns.to_vec();
                let leaves = RunningSelect { run, plan, late };
                for (at, expr) in &late.columns {
                    if columns[*at].column_type.is_coded() {
                        continue;
                    }
                    // What cannot be described keeps the description of the plan.
                    let Ok(mut result) = Compiled::described(expr, CONNECTION_COLLATION, &leaves) else {
                        continue;
                    };
                    if let Expr::Slot { index, .. } = expr
                        && let Some(Leaf::Parameter(value)) = leaves.slot(*index)
                    {
                        // A parameter alone, in contrast to one in an expression.
                        result.nullable = value == Value::Null;
                    }
                    put(&mut columns[*at], result);
                }
                columns
            }
            _ => self.columns.to_vec(),
        }
    }

    /// True for a derived table that MariaDB makes a part of the query around it.
    pub(super) fn is_merged(&self) -> bool {
        let Body::Select(select) = &self.body else { return false };
        let SelectPlan { inputs, having, group, limit, distinct, .. } = &**select;
        let is_plain = having.is_none() && group.is_none() && distinct.is_none();
        !inputs.is_empty() && is_plain && *limit == Limit::default()
    }

    /// True for a query that has always one row, since it is made of nothing else.
    fn is_one_row(&self) -> bool {
        let Body::Select(select) = &self.body else { return false };
        let SelectPlan { inputs, constant, having, group, limit, .. } = &**select;
        let bare = inputs.is_empty() && constant.is_none() && having.is_none() && group.is_none();
        bare && limit.count.is_none()
    }
}

impl Leaves for RunningSelect<'_> {
    fn slot(&self, index: usize) -> Option<Leaf> {
        let literals = literal_slots(&self.run);
        let Some(at) = index.checked_sub(literals) else {
            let [value] = self.run.slots.list(index) else { return None };
            let (value, text) = (value.to_value(), (self.run.literal_text)(index, false));
            return Some(if text == "?" { Leaf::Parameter(value) } else { Leaf::Literal(value, text) });
        };
        let subquery = self.run.subqueries.get(at)?;
        let columns = subquery.query.described_columns(self.run);
        of_subquery(&columns, &subquery.query, subquery.use_as).map(Leaf::Result)
    }

    fn list_has_null(&self, index: usize) -> Option<bool> {
        if index >= literal_slots(&self.run) {
            return Some(true);
        }
        Some(self.run.slots.list(index).iter().any(types::ValueRef::is_null))
    }

    fn column(&self, column: &ColumnRef) -> Option<ResultType> {
        match self.plan.inputs.get(column.part) {
            Some(input) => {
                let columns = input.source.query()?.described_columns(self.run);
                columns.get(column.column).map(|meta| of_derived(meta, self.is_outer(column.part)))
            }
            None => of_aggregate(aggregate_of(column, &self.plan.inputs, &self.late.aggregates)?, self),
        }
    }

    fn subquery(&self, plan: &dyn InnerQuery) -> Option<ResultType> {
        let columns = inner_plan(plan)?.described_columns(self.run);
        columns.first().map(|meta| ResultType { nullable: true, ..of_meta(meta) })
    }

    fn environment(&self) -> Option<&dyn Environment> {
        self.run.environment
    }
}

impl RunningSelect<'_> {
    /// True for a part on the inner side of an outer join.
    fn is_outer(&self, part: usize) -> bool {
        let mut inner = self.plan.nests.iter().flat_map(|nest| self.plan.steps.get(nest.first..=nest.last));
        inner.any(|steps| steps.iter().any(|step| step.part == part))
    }
}

/// How many slots hold literals: subqueries have not run yet.
fn literal_slots(run: &Running<'_>) -> usize {
    match run.slots.starts {
        [] => run.slots.values.len(),
        starts => starts.len() - 1,
    }
}

fn inner_plan(plan: &dyn InnerQuery) -> Option<&QueryPlan> {
    let plan: &dyn Any = plan;
    plan.downcast_ref()
}

/// The aggregate function that a column is the result of. Behind the part of these results there are parts
/// for the keys of ROLLUP and for window functions, which keep the description of the plan.
fn aggregate_of<'a>(
    column: &ColumnRef,
    inputs: &[Input],
    aggregates: &'a [Aggregate],
) -> Option<&'a Aggregate> {
    if column.part == inputs.len() { aggregates.get(column.column) } else { None }
}

fn of_aggregate(aggregate: &Aggregate, leaves: &dyn Leaves) -> Option<ResultType> {
    CompiledAggregate::described(aggregate, CONNECTION_COLLATION, leaves).ok()
}

/// The type of a subquery's result, which has these columns.
fn of_subquery(columns: &[ColumnMeta], query: &QueryPlan, use_as: SubqueryUse) -> Option<ResultType> {
    match use_as {
        SubqueryUse::Scalar => {
            let result = of_meta(columns.first()?);
            if query.is_one_row() {
                return Some(result);
            }
            let chars = u32::from(result.digits) + 1;
            Some(ResultType {
                nullable: true,
                // As in MariaDB, with room for a sign.
                display_chars: match result.column_type {
                    ColumnType::Int { unsigned: false, .. } => result.display_chars.max(chars),
                    _ => result.display_chars,
                },
                ..result
            })
        }
        SubqueryUse::Exists => Some(ResultType {
            display_chars: 1,
            ..ResultType::of(ColumnType::Int { bytes: 4, unsigned: false }, false)
        }),
        SubqueryUse::List | SubqueryUse::Rows { .. } => None,
    }
}

/// The type of a derived table's column. `is_outer`: the row may be missing.
fn of_derived(meta: &ColumnMeta, is_outer: bool) -> ResultType {
    let nullable = !meta.not_null || is_outer;
    // As in MariaDB, an integer has the digits of its type.
    let digits = ResultType::of(meta.column_type.clone(), nullable).digits;
    ResultType { nullable, digits, ..of_meta(meta) }
}

pub(super) fn of_meta(meta: &ColumnMeta) -> ResultType {
    let plain = ResultType::of(meta.column_type.clone(), !meta.not_null);
    ResultType {
        nullable: !meta.not_null,
        collation: meta.collation,
        decimals: meta.decimals,
        display_chars: meta.display_chars,
        told_as: meta.traits.told_as,
        digits: if meta.traits.digits > 0 { meta.traits.digits } else { plain.digits },
        ..plain
    }
}

/// Puts a description into a column. The name stays.
pub(super) fn put(column: &mut ColumnMeta, result: ResultType) {
    column.column_type = result.column_type;
    column.collation = result.collation;
    column.not_null = !result.nullable;
    column.decimals = result.decimals;
    column.display_chars = result.display_chars;
    column.traits.told_as = result.told_as;
    column.traits.digits = result.digits;
}

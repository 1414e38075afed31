//! The order in which tables are read, and which condition is tested where.

use super::access::{self, Target, choose};
use super::from::From;
use super::plan::{Source, Step};
use super::walk::{Parts, conjunction, for_each_column, is_fixed, parts_of};
use crate::SqlError;
use crate::expr::{Comparison, Compiled, Expr};
use types::Collation;

/// Up to this many tables every order is tried.
const PERMUTED_TABLES_MAX: usize = 6;
/// Rows that a derived table is taken to have.
const DERIVED_ROWS: f64 = 100.0;

/// The order that rows had best come in.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) part: usize,
    pub(super) columns: Vec<(usize, bool)>,
    pub(super) by_group: bool,
    /// ORDER BY needs no sort if rows come so.
    pub(super) meets_order: bool,
}

pub(super) struct JoinPlan<'a> {
    pub(super) from: &'a From,
    /// WHERE, split at its ANDs.
    pub(super) conditions: &'a [Expr],
    /// By part: the columns that output, grouping and order read.
    pub(super) needed: &'a [Vec<bool>],
    pub(super) wanted: &'a Wanted,
    pub(super) limit: Option<u64>,
    pub(super) straight: bool,
    pub(super) connection: Collation,
}

pub(super) struct Joined {
    pub(super) steps: Vec<Step>,
    pub(super) constant: Option<Compiled>,
    /// Rows come in the wanted order.
    pub(super) ordered: bool,
}

/// The conditions by where they are tested.
struct Placed {
    constant: Vec<Expr>,
    /// By part: tested as its row is found.
    at: Vec<Vec<Expr>>,
    /// By part: tested after NULLs have stood in.
    after: Vec<Vec<Expr>>,
}

impl JoinPlan<'_> {
    pub(super) fn plan(&self) -> Result<Joined, SqlError> {
        let left: Vec<bool> = (0..self.from.inputs.len())
            .map(|part| self.from.joins[part].left && !self.rejects_nulls(part))
            .collect();
        let order = self.order(&left);
        let placed = self.place(&order, &left);
        let mut steps = Vec::new();
        let mut before = Parts::default();
        let mut ordered = self.wanted.columns.is_empty() && self.wanted.meets_order;
        for (depth, &part) in order.iter().enumerate() {
            let conditions = &placed.at[part];
            let input = &self.from.inputs[part];
            let mut unique = false;
            let (access, filter) = match &input.source {
                Source::Table { table, def } => {
                    let needed = self.needed_of(part);
                    let leads = depth == 0 && self.wanted.part == part;
                    let target = Target {
                        table,
                        def,
                        part,
                        before,
                        hints: &self.from.hints[part],
                        needed: &needed,
                        order: if leads { &self.wanted.columns } else { &[] },
                        limit: self.limit.filter(|_| leads),
                        connection: self.connection,
                    };
                    let chosen = choose(&target, conditions)?;
                    ordered |= leads && !self.wanted.columns.is_empty() && chosen.ordered;
                    unique = chosen.unique;
                    (Some(chosen.access), None)
                }
                _ => (None, self.compile(conditions)?),
            };
            steps.push(Step {
                part,
                access,
                filter,
                left: left[part],
                after: self.compile(&placed.after[part])?,
                unique,
            });
            before = before.with(part);
        }
        Ok(Joined { steps, constant: self.compile(&placed.constant)?, ordered })
    }

    fn compile(&self, conditions: &[Expr]) -> Result<Option<Compiled>, SqlError> {
        let whole = conjunction(conditions.to_vec());
        whole.map(|whole| Compiled::new(&whole, self.connection)).transpose()
    }

    /// The columns of a table that anything but conditions on it alone reads.
    fn needed_of(&self, part: usize) -> Vec<bool> {
        let mut needed = self.needed[part].clone();
        let joins = self.from.joins.iter().flat_map(|join| &join.on);
        for condition in self.conditions.iter().chain(joins) {
            if parts_of(condition).is_within(Parts::one(part)) {
                continue;
            }
            for_each_column(condition, &mut |column| {
                if column.part == part {
                    needed[column.column] = true;
                }
            });
        }
        needed
    }

    /// True if WHERE cannot hold for a row of NULLs: then a left join is an inner one.
    fn rejects_nulls(&self, part: usize) -> bool {
        let is_column = |expr: &Expr| matches!(expr, Expr::Column(column) if column.part == part);
        self.conditions.iter().any(|condition| match condition {
            Expr::Compare { op, left, right } => {
                *op != Comparison::NullSafeEqual && (is_column(left) || is_column(right))
            }
            Expr::Between { operand, negated: false, .. }
            | Expr::InList { operand, negated: false, .. }
            | Expr::InSlot { operand, negated: false, .. }
            | Expr::Like { operand, negated: false, .. }
            | Expr::IsNull { operand, negated: true } => is_column(operand),
            _ => false,
        })
    }

    fn place(&self, order: &[usize], left: &[bool]) -> Placed {
        let tables = self.from.inputs.len();
        let mut placed = Placed { constant: vec![], at: vec![vec![]; tables], after: vec![vec![]; tables] };
        let last_of = |parts: Parts| order.iter().rev().find(|part| parts.has(**part)).copied();
        let mut inner: Vec<&Expr> = self.conditions.iter().collect();
        for (part, join) in self.from.joins.iter().enumerate() {
            if left[part] {
                placed.at[part].extend(join.on.iter().cloned());
            } else {
                inner.extend(&join.on);
            }
        }
        for condition in inner {
            let place = match (last_of(parts_of(condition)), order.last()) {
                (Some(part), _) => Some(part),
                (None, Some(&last)) if !is_fixed(condition) => Some(last),
                (None, _) => None,
            };
            match place {
                None => placed.constant.push(condition.clone()),
                Some(part) if left[part] => placed.after[part].push(condition.clone()),
                Some(part) => placed.at[part].push(condition.clone()),
            }
        }
        placed
    }

    /// The cheapest order of the tables, as far as they may be exchanged.
    fn order(&self, left: &[bool]) -> Vec<usize> {
        let tables = self.from.inputs.len();
        let written: Vec<usize> = (0..tables).collect();
        if !(2..=PERMUTED_TABLES_MAX).contains(&tables) || self.straight || left.contains(&true) {
            return written;
        }
        let mut search = Search { plan: self, left, best: written.clone(), best_cost: f64::INFINITY };
        search.extend(&mut Vec::new(), Parts::default(), 1.0, 0.0);
        search.best
    }

    /// What reading a table costs after those before, and how many rows it gives.
    fn step_cost(&self, part: usize, before: Parts) -> (f64, f64) {
        let here = before.with(part);
        let joins = self.from.joins.iter().flat_map(|join| &join.on);
        let conditions: Vec<Expr> = self
            .conditions
            .iter()
            .chain(joins)
            .filter(|condition| {
                let parts = parts_of(condition);
                parts.has(part) && parts.is_within(here)
            })
            .cloned()
            .collect();
        let Source::Table { table, def } = &self.from.inputs[part].source else {
            return (DERIVED_ROWS, DERIVED_ROWS);
        };
        let needed = self.needed_of(part);
        let target = Target {
            table,
            def,
            part,
            before,
            hints: &self.from.hints[part],
            needed: &needed,
            order: &[],
            limit: None,
            connection: self.connection,
        };
        let best = access::best(&target, &conditions);
        let tested = conditions.len().saturating_sub(best.points.len() + usize::from(best.range.is_some()));
        let rows = best.rows as f64 * 0.5f64.powi(i32::try_from(tested).unwrap_or(8).min(8));
        (best.cost, rows.max(0.1))
    }
}

struct Search<'a, 'p> {
    plan: &'a JoinPlan<'p>,
    left: &'a [bool],
    best: Vec<usize>,
    best_cost: f64,
}

impl Search<'_, '_> {
    fn extend(&mut self, order: &mut Vec<usize>, before: Parts, rows: f64, cost: f64) {
        if cost >= self.best_cost {
            return;
        }
        if order.len() == self.left.len() {
            self.best.clone_from(order);
            self.best_cost = cost;
            return;
        }
        for part in 0..self.left.len() {
            if before.has(part) {
                continue;
            }
            let (step_cost, step_rows) = self.plan.step_cost(part, before);
            order.push(part);
            self.extend(order, before.with(part), rows * step_rows, cost + rows * step_cost);
            order.pop();
        }
    }
}

//! The order in which tables are read, by which method each is joined, and which condition is tested where.

use super::access::{self, Candidate, IntegerRows, Path, PointValues, Target};
use super::from::From;
use super::plan::{Body, HashKeys, LimitValue, Merge, Method, NestPlan, QueryPlan, Source, Step};
use super::sarg::{Test, orders_agree};
use super::scope::PartColumn;
use super::tree::Tree;
use super::walk::{Parts, conjunction, for_each_column, has_collate, has_side_effects, is_fixed, parts_of};
use crate::SqlError;
use crate::expr::value_keys::ValueKeys;
use crate::expr::{Comparison, Compiled, Expr};
use crate::variables::join_methods::JoinMethods;
use base::IndexId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use types::{Collation, Column, ColumnType};

/// For up to this many tables every order is tried. For more, the next table is always the one that looks
/// cheapest.
const PERMUTED_TABLES_MAX: usize = 6;
/// How many rows an information_schema table is assumed to have.
const VIRTUAL_ROWS: f64 = 100.0;
/// The share of rows that are assumed to meet an equation, and another condition, if nothing better is known.
const EQUAL_SHARE: f64 = 0.1;
const OTHER_SHARE: f64 = 0.5;
/// The cost of inserting a row into a hash table, and of looking one up there. The unit is a row read in
/// order.
const HASH_BUILD: f64 = 2.0;
const HASH_PROBE: f64 = 0.8;
/// Added to the cost of a method that is switched off: it is chosen only if there is no other.
const OFF: f64 = 1e9;
/// What a lookup for one row of a join costs in addition to the access's own estimate: keys in no order miss
/// the processor's caches. Measured on a million rows in memory: eight times a row read in order.
const LOOKUP: f64 = 4.0;
/// Keys with more parts than this are looked up one by one.
const GATHERED_PARTS_MAX: usize = 2;
/// The cost of moving a cursor to the next key.
const FOLLOW: f64 = 0.6;

/// The wanted order of the rows.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) part: usize,
    pub(super) columns: Vec<(usize, bool)>,
    pub(super) by_group: bool,
    /// True if rows in this order need no sort for ORDER BY.
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
    pub(super) methods: JoinMethods,
    /// True if the rows are locked as they are read.
    pub(super) locks: bool,
}

pub(super) struct Joined {
    pub(super) steps: Vec<Step>,
    pub(super) nests: Vec<NestPlan>,
    pub(super) constant: Option<Compiled>,
    /// True if the rows come in the wanted order.
    pub(super) ordered: bool,
    pub(super) rows: u64,
}

/// How a table is joined to those before it, and what that costs.
#[derive(Clone, Debug)]
struct Choice {
    method: Chosen,
    cost: f64,
    rows: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chosen {
    Each,
    Follow,
    Hash,
}

/// The estimate for reading a table. It does not depend on the number of rows before.
struct Estimate {
    /// For a stored table: the access for each row, and the access that fills a hash table.
    each: Option<Candidate>,
    each_cost: f64,
    each_rows: f64,
    hashed: Option<(f64, f64)>,
}

impl JoinPlan<'_> {
    pub(super) fn plan(&self) -> Result<Joined, SqlError> {
        let tree = Tree::new(self.from, self.conditions);
        let search = Search { plan: self, tree: &tree, estimates: RefCell::default() };
        let order = search.order();
        self.build(&tree, &search, &order)
    }

    fn build(&self, tree: &Tree, search: &Search<'_, '_>, order: &Order) -> Result<Joined, SqlError> {
        let parts = &order.parts;
        let assigned = tree.assign_conditions(parts);
        let mut steps = Vec::new();
        let mut before = Parts::default();
        let mut sorted: Vec<PartColumn> = Vec::new();
        let mut ordered = self.wanted.columns.is_empty() && self.wanted.meets_order;
        let mut rows = 1.0;
        for (depth, &part) in parts.iter().enumerate() {
            let conditions = &assigned.at[part];
            let choice = search.choose(part, before, &sorted, rows, order);
            let needed = self.needed_of(tree, part, before);
            // The first table may be read in another order than the wanted one, if that allows a merge.
            let leads = depth == 0 && self.wanted.part == part && order.first == self.wanted.columns;
            let (local, joining): (Vec<Expr>, Vec<Expr>) = match choice.method {
                Chosen::Hash => conditions.iter().cloned().partition(|condition| is_local(condition, part)),
                _ => (conditions.clone(), vec![]),
            };
            let mut method = match choice.method {
                Chosen::Hash => self.hash_keys(part, before, conditions)?.map_or(Method::Each, Method::Hash),
                _ => Method::Each,
            };
            let (access, filter) = match &self.from.inputs[part].source {
                Source::Table { table, def } => {
                    let is_hash = choice.method == Chosen::Hash;
                    let everything = vec![true; needed.len()];
                    let target = Target {
                        table,
                        def,
                        part,
                        before: if is_hash { Parts::default() } else { before },
                        hints: &self.from.hints[part],
                        needed: if is_hash { &everything } else { &needed },
                        order: &order.leading(depth),
                        in_order: depth == 0 && order.is_kept,
                        limit: self.limit.filter(|_| leads),
                        connection: self.connection,
                    };
                    let mut chosen = access::choose(&target, &local)?;
                    // EXPLAIN shows ALL if all rows are read by primary key only for the sake of a merge.
                    chosen.access.in_order &= leads;
                    ordered |= leads && !self.wanted.columns.is_empty() && chosen.ordered;
                    if choice.method == Chosen::Follow {
                        let keys_only = !chosen.needed.contains(&true);
                        let merge = (depth == 1).then(|| self.merge(&steps[0], &target, &chosen));
                        method = Method::Follow { keys_only, merge: merge.flatten() };
                    }
                    if choice.method == Chosen::Each
                        && depth > 0
                        && self.can_gather(tree, part, conditions, &chosen)
                    {
                        method = Method::Gather;
                    }
                    if depth == 0 {
                        sorted.extend(chosen.sorted_by.iter().map(|column| (part, *column)));
                    }
                    (Some(chosen.access), self.compile(&joining)?)
                }
                _ => (None, self.compile(conditions)?),
            };
            extend_sorted(&mut sorted, part, conditions);
            let begins = tree.begins(part, before);
            before = before.with(part);
            let found = access.as_ref().map_or(choice.rows, |access| rows * access.rows as f64);
            let is_tested =
                filter.is_some() || access.as_ref().is_some_and(|access| access.residual.is_some());
            let filtered = if is_tested { (choice.rows / found.max(1.0)).clamp(0.0, 1.0) } else { 1.0 };
            let (ends, cost) = (tree.ends(part, before), choice.cost);
            steps.push(Step { part, access, method, filter, begins, ends, cost, filtered });
            rows = choice.rows;
        }
        // Nests are named by their position in the plan.
        let mut nests = Vec::new();
        let mut names = HashMap::new();
        for (first, step) in steps.iter_mut().enumerate() {
            let Some(nest) = &mut step.begins else { continue };
            names.insert(*nest, nests.len());
            let after = self.compile(&assigned.after[*nest])?;
            *nest = nests.len();
            nests.push(NestPlan { first, last: first, after });
        }
        for (last, step) in steps.iter_mut().enumerate() {
            for nest in &mut step.ends {
                *nest =
                    names.get(nest).copied().ok_or_else(|| SqlError::internal("a nest that never began"))?;
                nests[*nest].last = last;
            }
        }
        let rows = rows.min(1e18).round() as u64;
        Ok(Joined { steps, nests, constant: self.compile(&assigned.constant)?, ordered, rows })
    }

    /// How the table of `target` is merged with the first table, if both can be read as integers.
    fn merge(&self, first: &Step, target: &Target<'_>, chosen: &access::Chosen) -> Option<Merge> {
        let outer = first.access.as_ref()?.integers.as_ref()?;
        let Path::Points { index: IndexId(0), points, unique: true, .. } = &chosen.access.path else {
            return None;
        };
        let [access::Point { values: PointValues::Value { value, null_safe: false }, .. }] =
            points.as_slice()
        else {
            return None;
        };
        let (part, column) = value.as_column()?;
        let outer =
            outer.columns.columns().iter().position(|known| part == first.part && *known == column)?;
        let key = target.def.primary.iter().flatten().next()?.column;
        let others = access::positions(&chosen.needed).filter(|column| *column != key);
        let residual = chosen.access.residual.as_ref();
        let inner = IntegerRows::new(target, std::iter::once(key).chain(others), residual)?;
        let reads_rows = self.from.inputs.len() > 2
            || [first.part, target.part].iter().any(|part| self.needed[*part].contains(&true));
        Some(Merge { outer, inner, reads_rows })
    }

    /// True if rows of the tables before can be gathered for lookups of this one. Three things must hold:
    /// each lookup finds at most one row; the table is not one of several that NULLs replace together; and
    /// the order in which conditions are tested cannot be seen.
    fn can_gather(&self, tree: &Tree, part: usize, conditions: &[Expr], chosen: &access::Chosen) -> bool {
        let Path::Points { points, unique: true, .. } = &chosen.access.path else { return false };
        let is_single =
            |point: &access::Point| matches!(point.values, PointValues::Value { null_safe: false, .. });
        let is_alone = tree.nest_of[part].is_none_or(|nest| {
            tree.nests[nest].parent.is_none() && tree.nests[nest].parts == Parts::one(part)
        });
        chosen.unique
            && is_alone
            && !self.locks
            && points.len() <= GATHERED_PARTS_MAX
            && points.iter().all(is_single)
            && !conditions.iter().any(has_side_effects)
    }

    fn compile(&self, conditions: &[Expr]) -> Result<Option<Compiled>, SqlError> {
        let whole = conjunction(conditions.to_vec());
        whole.map(|whole| Compiled::new(&whole, self.connection)).transpose()
    }

    /// By column of a table: true if it is read after the table was joined to those before.
    fn needed_of(&self, tree: &Tree, part: usize, before: Parts) -> Vec<bool> {
        let mut needed = self.needed[part].clone();
        let here = before.with(part);
        for (owner, condition) in &tree.conditions {
            if *owner == tree.nest_of[part] && parts_of(condition).is_within(here) {
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

    /// The equations between a table and those before it that a hash table can answer.
    fn hash_keys(
        &self,
        part: usize,
        before: Parts,
        conditions: &[Expr],
    ) -> Result<Option<HashKeys>, SqlError> {
        let (mut inner, mut outer, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for (own, other) in conditions.iter().filter_map(|condition| equation(condition, part, before)) {
            let (own, other) = self.sides(own, other)?;
            let (left, right) = (&own.result_type().column_type, &other.result_type().column_type);
            let Some(column_type) = common_type(left, right) else { continue };
            columns.push(Column { name: String::new(), column_type, nullable: true });
            inner.push(own);
            outer.push(other);
        }
        Ok((!inner.is_empty()).then(|| HashKeys { inner, outer, keys: ValueKeys::new(columns) }))
    }

    /// The sides of an equation. A member of an ENUM or SET is compared with a number by its own.
    fn sides(&self, left: &Expr, right: &Expr) -> Result<(Compiled, Compiled), SqlError> {
        let sides = (Compiled::new(left, self.connection)?, Compiled::new(right, self.connection)?);
        Ok(match (sides.0.is_number(), sides.1.is_number()) {
            (true, false) => (sides.0, Compiled::number(right, self.connection)?),
            (false, true) => (Compiled::number(left, self.connection)?, sides.1),
            (true, true) | (false, false) => sides,
        })
    }

    fn can_hash(&self, part: usize, before: Parts, conditions: &[Expr]) -> bool {
        matches!(self.hash_keys(part, before, conditions), Ok(Some(_)))
    }
}

/// The two sides of an equation: the table's own side, and the side of the tables before.
fn equation(condition: &Expr, part: usize, before: Parts) -> Option<(&Expr, &Expr)> {
    let Expr::Compare { op: Comparison::Equal, left, right } = condition else { return None };
    let is_own = |expr: &Expr| parts_of(expr) == Parts::one(part);
    let is_other = |expr: &Expr| !parts_of(expr).is_empty() && parts_of(expr).is_within(before);
    let sides = match (is_own(left) && is_other(right), is_own(right) && is_other(left)) {
        (true, _) => (&**left, &**right),
        (_, true) => (&**right, &**left),
        _ => return None,
    };
    (!has_collate(condition) && !has_side_effects(condition)).then_some(sides)
}

/// A type that values of both types can be converted to, so that they have equal keys if they are equal.
fn common_type(left: &ColumnType, right: &ColumnType) -> Option<ColumnType> {
    let is_number = |column_type: &ColumnType| {
        matches!(column_type, ColumnType::Int { .. } | ColumnType::Double { .. }) || column_type.is_text()
    };
    if orders_agree(left, right) {
        return Some(super::query::wider(left, right));
    }
    // Integers, texts and doubles are compared as doubles.
    (is_number(left) && is_number(right) && !(left.is_text() && right.is_text()))
        .then_some(ColumnType::Double { unsigned: false })
}

/// True if a condition reads columns of one table only.
fn is_local(condition: &Expr, part: usize) -> bool {
    parts_of(condition).is_within(Parts::one(part))
}

/// If a table is joined by an equation with a column that comes in order, its own column comes in order too.
fn extend_sorted(sorted: &mut Vec<PartColumn>, part: usize, conditions: &[Expr]) {
    for condition in conditions {
        let Expr::Compare { op: Comparison::Equal, left, right } = condition else { continue };
        let (Expr::Column(left), Expr::Column(right)) = (&**left, &**right) else { continue };
        for (own, other) in [(left, right), (right, left)] {
            if own.part == part && sorted.contains(&(other.part, other.column)) {
                sorted.push((part, own.column));
            }
        }
    }
}

/// How many rows a derived table is assumed to have.
pub(super) fn rows_of(query: &QueryPlan) -> f64 {
    let (rows, limit) = match &query.body {
        Body::Select(select) => {
            let rows = match &select.group {
                Some(group) if group.keys.is_empty() => 1.0,
                Some(_) => select.rows as f64 * EQUAL_SHARE,
                None => select.rows as f64,
            };
            (rows, &select.limit)
        }
        Body::Union(union) => (union.branches.iter().map(rows_of).sum(), &union.limit),
        Body::Recursive(recursive) => return recursive.parts().map(rows_of).sum(),
    };
    match limit.count {
        Some(LimitValue::Number(count)) => rows.min(count as f64).max(1.0),
        _ => rows.max(1.0),
    }
}

/// Tables in the order in which they are read.
#[derive(Clone, Default)]
struct Order {
    parts: Vec<usize>,
    /// The order in which the first table is read. Tables joined behind may rely on it.
    first: Vec<(usize, bool)>,
    /// The first table is read in that order whatever it costs there.
    is_kept: bool,
}

impl Order {
    fn leading(&self, depth: usize) -> Vec<(usize, bool)> {
        if depth == 0 { self.first.clone() } else { vec![] }
    }
}

struct Search<'a, 'p> {
    plan: &'a JoinPlan<'p>,
    tree: &'a Tree,
    estimates: RefCell<HashMap<(usize, Parts), Rc<Estimate>>>,
}

struct Best {
    order: Order,
    cost: f64,
}

/// What reading the tables of a beginning of an order comes to.
#[derive(Clone, Copy)]
struct Estimated {
    rows: f64,
    cost: f64,
}

impl Search<'_, '_> {
    /// The cheapest order of the tables that the joins allow.
    fn order(&self) -> Order {
        let tables = self.plan.from.inputs.len();
        let wanted = self.plan.wanted;
        let own_order = |part: usize| if part == wanted.part { wanted.columns.clone() } else { vec![] };
        if tables < 2 || self.plan.straight || self.plan.from.straight {
            let mut order = Order::default();
            let mut before = Parts::default();
            while let Some(next) = (0..tables).find(|part| self.tree.may_follow(*part, before)) {
                before = before.with(next);
                order.parts.push(next);
            }
            order.first = order.parts.first().map(|first| own_order(*first)).unwrap_or_default();
            return order;
        }
        let mut best = Best { order: Order::default(), cost: f64::INFINITY };
        for part in (0..tables).filter(|part| self.tree.may_follow(*part, Parts::default())) {
            for (first, is_kept) in [(own_order(part), false), (self.clustered_order(part), true)] {
                if is_kept && first.is_empty() {
                    continue;
                }
                let mut order = Order { parts: vec![], first, is_kept };
                self.extend(
                    &mut order,
                    part,
                    Parts::default(),
                    &[],
                    Estimated { rows: 1.0, cost: 0.0 },
                    &mut best,
                );
            }
        }
        best.order
    }

    /// The order of the primary key: tables behind may then be merged.
    fn clustered_order(&self, part: usize) -> Vec<(usize, bool)> {
        let Source::Table { def, .. } = &self.plan.from.inputs[part].source else { return vec![] };
        let first = def.primary.iter().flatten().next();
        first.map(|first| vec![(first.column, first.descending)]).unwrap_or_default()
    }

    /// Puts `part` behind the tables of `order`, then all the others.
    fn extend(
        &self,
        order: &mut Order,
        part: usize,
        before: Parts,
        sorted: &[PartColumn],
        so_far: Estimated,
        best: &mut Best,
    ) {
        let leading = order.leading(order.parts.len());
        let choice = self.choose(part, before, sorted, so_far.rows, order);
        let cost = so_far.cost + choice.cost + self.sort_cost(part, before, choice.rows, &leading);
        if cost >= best.cost {
            return;
        }
        let mut sorted = sorted.to_vec();
        if before.is_empty() {
            let estimate = self.estimate(part, before, order);
            sorted.extend(estimate.each.iter().flat_map(Candidate::sorted_by).map(|column| (part, column)));
        }
        extend_sorted(&mut sorted, part, &self.conditions_at(part, before));
        order.parts.push(part);
        let here = before.with(part);
        let tables = self.plan.from.inputs.len();
        let mut next: Vec<usize> =
            (0..tables).filter(|next| !here.has(*next) && self.tree.may_follow(*next, here)).collect();
        if next.is_empty() {
            *best = Best { order: order.clone(), cost };
        }
        if tables > PERMUTED_TABLES_MAX {
            // Prefer tables that soon reduce the number of rows at little cost.
            let weight = |next: &usize| {
                let choice = self.choose(*next, here, &sorted, choice.rows, order);
                choice.cost + choice.rows
            };
            next.sort_by(|left, right| weight(left).total_cmp(&weight(right)));
            next.truncate(1);
        }
        for next in next {
            self.extend(order, next, here, &sorted, Estimated { rows: choice.rows, cost }, best);
        }
        order.parts.pop();
    }

    /// The cost of the final sort, if the first table is not read in the wanted order.
    fn sort_cost(&self, part: usize, before: Parts, rows: f64, leading: &[(usize, bool)]) -> f64 {
        let wanted = self.plan.wanted;
        let is_met = wanted.columns.is_empty() || (wanted.part == part && wanted.columns == leading);
        if !before.is_empty() || is_met {
            return 0.0;
        }
        super::cost::sort(rows)
    }

    /// The conditions that are tested when the row of a table is found.
    fn conditions_at(&self, part: usize, before: Parts) -> Vec<Expr> {
        let here = before.with(part);
        self.tree
            .conditions
            .iter()
            .filter(|(owner, condition)| {
                let parts = parts_of(condition);
                *owner == self.tree.nest_of[part] && parts.has(part) && parts.is_within(here)
            })
            .map(|(_, condition)| condition.clone())
            .collect()
    }

    fn estimate(&self, part: usize, before: Parts, order: &Order) -> Rc<Estimate> {
        let known = self.estimates.borrow().get(&(part, before)).cloned();
        if let Some(known) = known.filter(|_| !before.is_empty()) {
            return known;
        }
        let estimate = Rc::new(self.estimate_anew(part, before, order));
        self.estimates.borrow_mut().insert((part, before), estimate.clone());
        estimate
    }

    fn estimate_anew(&self, part: usize, before: Parts, order: &Order) -> Estimate {
        let leading = match before.is_empty() {
            true => &order.first[..],
            false => &[],
        };
        let conditions = self.conditions_at(part, before);
        let can_hash =
            !before.is_empty() && !self.plan.locks && self.plan.can_hash(part, before, &conditions);
        let (table, def) = match &self.plan.from.inputs[part].source {
            Source::Table { table, def } => (table, def),
            source => {
                let all = source.query().map_or(VIRTUAL_ROWS, rows_of);
                let rows = (all * share(&conditions)).max(0.1);
                return Estimate {
                    each: None,
                    each_cost: all,
                    each_rows: rows,
                    hashed: can_hash.then_some((all, all)),
                };
            }
        };
        let needed = self.plan.needed_of(self.tree, part, before);
        let mut target = Target {
            table,
            def,
            part,
            before,
            hints: &self.plan.from.hints[part],
            needed: &needed,
            order: leading,
            in_order: before.is_empty() && order.is_kept,
            limit: self.plan.limit.filter(|_| leading == self.plan.wanted.columns),
            connection: self.plan.connection,
        };
        let best = access::best(&target, &conditions);
        let used: Vec<usize> = best.points.iter().chain(&best.range).map(|sarg| sarg.condition).collect();
        let left: Vec<Expr> = conditions
            .iter()
            .enumerate()
            .filter(|(at, _)| !used.contains(at))
            .map(|(_, condition)| condition.clone())
            .collect();
        let rows = best.rows as f64 * share(&left);
        let everything = vec![true; needed.len()];
        target.before = Parts::default();
        target.needed = &everything;
        target.in_order = false;
        let hashed = can_hash.then(|| {
            let local: Vec<Expr> =
                conditions.iter().filter(|condition| is_local(condition, part)).cloned().collect();
            let best = access::best(&target, &local);
            (best.cost, best.rows as f64)
        });
        Estimate { each_cost: best.cost, each_rows: rows.max(0.1), each: Some(best), hashed }
    }

    /// The cheapest method to join a table to `rows` rows of the tables before.
    fn choose(&self, part: usize, before: Parts, sorted: &[PartColumn], rows: f64, order: &Order) -> Choice {
        let estimate = self.estimate(part, before, order);
        let joined = rows * estimate.each_rows;
        let joined = if self.tree.nest_of[part].is_some() { joined.max(rows) } else { joined };
        let mut choice = Choice { method: Chosen::Each, cost: rows * estimate.each_cost, rows: joined };
        let weighed = |method, cost: f64| if self.plan.methods.has(method) { cost } else { cost * OFF };
        if !before.is_empty() {
            choice.cost = weighed(JoinMethods::NESTED_LOOP, choice.cost + rows * LOOKUP);
        }
        let mut offer = |method, cost: f64| {
            if cost < choice.cost {
                choice = Choice { method, cost, rows: joined };
            }
        };
        if let Some(candidate) = &estimate.each
            && !before.is_empty()
            && !self.plan.locks
            && follows(candidate, sorted)
        {
            let descent = super::cost::DESCENT;
            let cost = descent + rows * (candidate.cost - descent + FOLLOW);
            offer(Chosen::Follow, weighed(JoinMethods::MERGE, cost));
        }
        if let Some((build, entries)) = estimate.hashed {
            let cost = build + entries * HASH_BUILD + (rows + joined) * HASH_PROBE;
            offer(Chosen::Hash, weighed(JoinMethods::HASH, cost));
        }
        choice
    }
}

/// True if the keys that a table is looked up by come in the order of its index.
fn follows(candidate: &Candidate, sorted: &[PartColumn]) -> bool {
    let is_single = |test: &Test| matches!(test, Test::Equal { null_safe: false, .. });
    let comes_in_order = match candidate.points.first().map(|point| &point.test) {
        Some(Test::Equal { value: Expr::Column(column), .. }) => {
            sorted.contains(&(column.part, column.column))
        }
        _ => false,
    };
    comes_in_order && candidate.range.is_none() && candidate.points.iter().all(|point| is_single(&point.test))
}

/// An estimate of the share of rows that meet all of these conditions.
fn share(conditions: &[Expr]) -> f64 {
    let one = |condition: &Expr| match condition {
        condition if is_fixed(condition) => 1.0,
        Expr::Compare { op: Comparison::Equal, .. } => EQUAL_SHARE,
        _ => OTHER_SHARE,
    };
    conditions.iter().map(one).product::<f64>().max(0.001)
}

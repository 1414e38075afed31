//! Plans one SELECT: binds its clauses, puts its tables in order, describes its output.

use super::access;
use super::bind::{AliasUse, Binder};
use super::describe::{LateColumns, Planned, put};
use super::from::From;
use super::join::{JoinPlan, Wanted};
use super::names::{Name, shown};
use super::plan::*;
use super::query::{Planner, is_descending};
use super::rollup;
use super::walk::{for_each_column, is_fixed};
use super::window::{self, FoundWindow, WindowFunction, WindowUse, reads_window};
use super::{object_name, walk};
use crate::expr::is_seen_apart;
use crate::expr::value_keys::ValueKeys;
use crate::expr::{Aggregate, AggregateKind, ColumnRef, Compiled, CompiledAggregate, Expr};
use crate::{ColumnMeta, ColumnTraits, ErrorKind, SqlError};
use sqlparser::ast;
use std::sync::Arc;
use types::{Collation, Column, Value};

/// One item of the select list.
pub(super) struct Item {
    pub(super) expr: Expr,
    name: Name,
    /// True if an alias was given.
    aliased: bool,
    /// Set for a plain column.
    pub(super) meta: Option<ColumnMeta>,
}

/// An item of ORDER BY, bound.
pub(super) struct Order {
    pub(super) expr: Expr,
    /// The output column that it is equal to, if there is one.
    pub(super) output: Option<usize>,
    pub(super) descending: bool,
}

impl Planner<'_> {
    pub(super) fn select(
        &self,
        select: &ast::Select,
        order: Vec<&ast::OrderByExpr>,
        limit: Limit,
        lock: Option<LockClause>,
    ) -> Result<QueryPlan, SqlError> {
        refuse(select)?;
        let from = self.from(&select.from)?;
        self.check_recursion(&from)?;
        let mut aggregates: Vec<Aggregate> = Vec::new();
        let mut found = Vec::new();
        let mut items = self.items(select, &from, &mut aggregates, &mut found)?;
        let mut conditions = Vec::new();
        if let Some(selection) = &select.selection {
            let mut binder = Binder::new(&from.scope, self.slots, "where clause");
            binder.subqueries = Some(self);
            conditions = walk::conditions(binder.bind(selection)?, &from.scope);
        }
        let aliases: Vec<(String, Expr)> = items
            .iter()
            .filter_map(|item| match &item.name {
                Name::Fixed(name) if item.aliased => Some((name.clone(), item.expr.clone())),
                _ => None,
            })
            .collect();
        let keys = self.group_keys(&select.group_by, &from, &items, &aliases)?;
        let rolls_up = rollup::is_wanted(&select.group_by, !order.is_empty())?;
        let mut late = Binder::new(&from.scope, self.slots, "having clause");
        late.subqueries = Some(self);
        late.aggregate_part = from.inputs.len();
        late.aggregates = Some(&mut aggregates);
        late.aliases = &aliases;
        late.alias_use = AliasUse::First;
        late.group_keys = &keys;
        let mut having = select.having.as_ref().map(|having| late.bind(having)).transpose()?;
        if having.as_ref().is_some_and(|having| reads_window(having, late.window_part())) {
            return Err(window::misplaced());
        }
        late.group_keys = &[];
        late.clause = "order clause";
        late.windows = WindowUse::Here(&mut found);
        let mut order: Vec<Order> =
            order.iter().map(|item| bind_order(&mut late, item, &items)).collect::<Result<_, SqlError>>()?;
        let mut windows = window::bind_windows(&mut late, &select.named_window)?;
        let is_grouped = !keys.is_empty() || !aggregates.is_empty();
        if rolls_up {
            let read_keys = rollup::keys_of(&keys, from.inputs.len() + 1, self.connection)?;
            items.iter_mut().for_each(|item| read_keys.in_item(item));
            having.iter_mut().for_each(|having| read_keys.in_expr(having));
            order.iter_mut().for_each(|order| read_keys.in_expr(&mut order.expr));
            windows
                .iter_mut()
                .for_each(|window| window.for_each_expr_mut(&mut |expr| read_keys.in_expr(expr)));
        }
        self.assemble(Parts {
            rolls_up,
            distinct: matches!(select.distinct, Some(ast::Distinct::Distinct)),
            calculates_found_rows: select
                .select_modifiers
                .as_ref()
                .is_some_and(|modifiers| modifiers.sql_calc_found_rows),
            straight: select.select_modifiers.as_ref().is_some_and(|modifiers| modifiers.straight_join),
            from,
            items,
            conditions,
            keys,
            aggregates,
            is_grouped,
            having,
            windows,
            order,
            limit,
            lock,
        })
    }

    /// A query that reads no table and gives one row.
    pub(super) fn without_tables(&self, items: Vec<(Expr, Name)>) -> Result<QueryPlan, SqlError> {
        let items = items.into_iter().map(|(expr, name)| Item { expr, name, aliased: false, meta: None });
        self.assemble(Parts {
            from: From::default(),
            items: items.collect(),
            conditions: vec![],
            keys: vec![],
            aggregates: vec![],
            is_grouped: false,
            rolls_up: false,
            having: None,
            windows: vec![],
            order: vec![],
            limit: Limit::default(),
            distinct: false,
            calculates_found_rows: false,
            straight: false,
            lock: None,
        })
    }

    fn items(
        &self,
        select: &ast::Select,
        from: &From,
        aggregates: &mut Vec<Aggregate>,
        windows: &mut Vec<FoundWindow>,
    ) -> Result<Vec<Item>, SqlError> {
        let mut binder = Binder::new(&from.scope, self.slots, "field list");
        binder.subqueries = Some(self);
        binder.aggregate_part = from.inputs.len();
        binder.aggregates = Some(aggregates);
        binder.windows = WindowUse::Here(windows);
        let mut items = Vec::new();
        // Only the first select list of a statement has its text available.
        let is_first = *self.depth.borrow() == 1 && self.names.len() == select.projection.len();
        for (position, item) in select.projection.iter().enumerate() {
            let wildcard = |database: Option<&str>, table: Option<&str>| {
                from.scope.wildcard(database, table).map(|columns| {
                    columns.into_iter().map(|(part, column)| {
                        let meta = from.scope.meta(part, column);
                        Item {
                            expr: from.scope.column(part, column),
                            name: from.scope.name(part, column),
                            aliased: false,
                            meta: Some(meta),
                        }
                    })
                })
            };
            match item {
                ast::SelectItem::Wildcard(_) => items.extend(wildcard(None, None)?),
                ast::SelectItem::QualifiedWildcard(kind, _) => {
                    let path = match kind {
                        ast::SelectItemQualifiedWildcardKind::ObjectName(name) => object_name(name),
                        other => return Err(SqlError::not_supported(&other.to_string())),
                    };
                    match path.as_slice() {
                        [table] => items.extend(wildcard(None, Some(table))?),
                        [database, table] => items.extend(wildcard(Some(database), Some(table))?),
                        _ => return Err(SqlError::syntax(&path.join("."), 1)),
                    }
                }
                ast::SelectItem::ExprWithAlias { expr, alias } => {
                    let expr = binder.bind(expr)?;
                    items.push(Item {
                        meta: column_meta(from, &expr),
                        expr,
                        name: Name::Fixed(alias.value.clone()),
                        aliased: true,
                    });
                }
                ast::SelectItem::UnnamedExpr(expr) => {
                    let bound = binder.bind(expr)?;
                    let text = self.names.get(position).filter(|_| is_first);
                    let name = self.name_of(expr, text);
                    items.push(Item { meta: column_meta(from, &bound), expr: bound, name, aliased: false });
                }
                other => return Err(SqlError::syntax(&other.to_string(), 1)),
            }
        }
        Ok(items)
    }

    /// The name of a column without an alias. `text` is what was written, if that is known.
    pub(super) fn name_of(&self, expr: &ast::Expr, text: Option<&Name>) -> Name {
        match without_parentheses(expr) {
            ast::Expr::Identifier(name) if !name.value.starts_with('@') => Name::Fixed(name.value.clone()),
            ast::Expr::CompoundIdentifier(path) if !path[0].value.starts_with('@') => {
                Name::Fixed(path.last().map(|name| name.value.clone()).unwrap_or_default())
            }
            ast::Expr::Value(value) if string_name(&value.value).is_some() => {
                Name::Fixed(string_name(&value.value).unwrap_or_default())
            }
            number @ ast::Expr::Value(value) if is_slot(&value.value) => {
                Name::of_parsed(number, self.slots.len())
            }
            _ => text.cloned().unwrap_or_else(|| Name::of_parsed(expr, self.slots.len())),
        }
    }

    fn group_keys(
        &self,
        group_by: &ast::GroupByExpr,
        from: &From,
        items: &[Item],
        aliases: &[(String, Expr)],
    ) -> Result<Vec<Expr>, SqlError> {
        let keys = match group_by {
            ast::GroupByExpr::Expressions(keys, _) => keys,
            ast::GroupByExpr::All(_) => return Err(SqlError::syntax("ALL", 1)),
        };
        let mut binder = Binder::new(&from.scope, self.slots, "group statement");
        binder.subqueries = Some(self);
        binder.aliases = aliases;
        binder.alias_use = AliasUse::Last;
        let mut bound = Vec::new();
        for key in keys {
            let expr = match position(key) {
                Some(at) => match at.checked_sub(1).and_then(|at| items.get(at)) {
                    Some(item) => item.expr.clone(),
                    None => return Err(SqlError::unknown_column(&at.to_string(), "group statement")),
                },
                None => binder.bind(key)?,
            };
            if reads_window(&expr, from.inputs.len() + 2) {
                return Err(window::misplaced());
            }
            let mut has_aggregate = false;
            for_each_column(&expr, &mut |column| has_aggregate |= column.part >= from.inputs.len());
            if has_aggregate {
                return Err(SqlError::new(ErrorKind::CannotGroupBy, format!("Can't group on '{key}'")));
            }
            bound.push(expr);
        }
        Ok(bound)
    }

    fn assemble(&self, parts: Parts) -> Result<QueryPlan, SqlError> {
        let Parts { from, items, conditions, keys, aggregates, having, order, limit, .. } = &parts;
        let shortcut = shortcut(&parts);
        let counted: Vec<bool> = aggregates.iter().map(counts_every_row).collect();
        let needed = needed_columns(&parts, &counted);
        let wanted = wanted_order(&parts);
        let join = JoinPlan {
            from,
            conditions,
            needed: &needed,
            wanted: &wanted,
            limit: match (parts.is_grouped || parts.distinct || !parts.windows.is_empty(), limit.count) {
                (false, Some(LimitValue::Number(count))) => Some(count),
                (false, Some(LimitValue::Slot(_))) => Some(20),
                _ => None,
            },
            straight: parts.straight || from.straight,
            connection: self.connection,
            methods: self.methods,
            locks: parts.lock.is_some(),
        };
        let joined = join.plan()?;
        let compile = |expr: &Expr| Compiled::new(expr, self.connection);
        let mut output = Vec::new();
        let mut columns = Vec::new();
        let mut metas = Vec::new();
        let mut names = Vec::new();
        let known = self.subqueries.borrow();
        let planned =
            Planned { inputs: &from.inputs, aggregates, subqueries: &known, slots: self.slots.len() };
        let late = LateColumns::of(items.iter().map(|item| &item.expr), planned).map(Box::new);
        for (at, item) in items.iter().enumerate() {
            let compiled = Compiled::stored(&item.expr, self.connection)?;
            let name = match &item.name {
                Name::Fixed(name) => shown(name.clone()),
                template => {
                    names.push((at, template.clone()));
                    String::new()
                }
            };
            let meta = match &item.meta {
                Some(known) => ColumnMeta { name, ..known.clone() },
                None => {
                    let mut meta = meta_of(&compiled, &name);
                    if !meta.column_type.is_coded() {
                        put(&mut meta, planned.described(&item.expr)?);
                    }
                    meta
                }
            };
            columns.push(pseudo_column(&compiled));
            metas.push(meta);
            output.push(match &item.expr {
                Expr::Column(column) if column.part < from.inputs.len() && !column.in_utc => {
                    Output::Column { part: column.part, column: column.column }
                }
                // The result of an aggregate may have digits that are not shown.
                _ => Output::Value(compiled),
            });
        }
        let sorted_by_group = joined.ordered && wanted.by_group && !parts.rolls_up;
        let group = self.group(&parts, &counted, sorted_by_group)?;
        let order_is_met = joined.ordered && wanted.meets_order && !limit.ties;
        let sort: Vec<SortItem> = if order_is_met || (parts.is_grouped && keys.is_empty()) {
            vec![]
        } else {
            order.iter().map(|order| self.sort_item(order, &columns)).collect::<Result<_, SqlError>>()?
        };
        let windows = self.window_plan(&parts.windows)?;
        let uses_temporary =
            (parts.is_grouped && !keys.is_empty() && !sorted_by_group) || parts.distinct || windows.is_some();
        let plan = SelectPlan {
            steps: joined.steps,
            nests: joined.nests,
            rows: joined.rows,
            constant: joined.constant,
            output,
            group,
            having: having.as_ref().map(compile).transpose()?,
            windows,
            distinct: parts.distinct.then(|| ValueKeys::new(columns.iter().cloned())),
            order: SortOrder::new(sort, columns.len()),
            limit: *limit,
            calculates_found_rows: parts.calculates_found_rows,
            lock: parts.lock,
            shortcut,
            uses_temporary,
            inputs: parts.from.inputs,
        };
        Ok(QueryPlan {
            is_seen_apart: metas.iter().any(|meta| is_seen_apart(&meta.column_type)),
            columns: Arc::from(metas),
            names,
            late,
            body: Body::Select(Box::new(plan)),
        })
    }

    /// The grouping, if there is one. `is_sorted` says that rows come in the order of its keys.
    fn group(&self, parts: &Parts, counted: &[bool], is_sorted: bool) -> Result<Option<Group>, SqlError> {
        if !parts.is_grouped {
            return Ok(None);
        }
        let Parts { from, items, keys, aggregates, having, order, .. } = parts;
        let compile = |expr: &Expr| Compiled::stored(expr, self.connection);
        // Moments are grouped as they are stored: a clock shows an hour of autumn twice.
        // The result reads the values of keys that WITH ROLLUP has grouped by.
        let stored = |key: &Expr| match key {
            Expr::Column(column) if !parts.rolls_up => {
                Expr::Column(ColumnRef { in_utc: false, ..column.clone() })
            }
            key => key.clone(),
        };
        let compiled: Vec<Compiled> =
            keys.iter().map(|key| compile(&stored(key))).collect::<Result<_, _>>()?;
        let width = from.inputs.len();
        // The values of the keys that a row of the result has are those of its first row.
        let mut keeps_row = parts.rolls_up;
        let mut look = |expr: &Expr| {
            for_each_column(expr, &mut |column| keeps_row |= column.part < width);
        };
        items.iter().for_each(|item| look(&item.expr));
        order.iter().for_each(|order| look(&order.expr));
        having.iter().for_each(&mut look);
        parts.windows.iter().for_each(|window| window.for_each_expr(&mut look));
        Ok(Some(Group {
            values: ValueKeys::new(compiled.iter().map(pseudo_column)),
            rollup: parts.rolls_up.then(|| rollup::encoders(&compiled)),
            keys: compiled,
            aggregates: aggregates
                .iter()
                .zip(counted)
                .map(|(aggregate, counted)| {
                    let compiled = self.compile_aggregate(aggregate, *counted)?;
                    Ok(if keys.is_empty() { compiled.with_all_digits() } else { compiled })
                })
                .collect::<Result<_, SqlError>>()?,
            keeps_row,
            ordered: is_sorted && !keys.is_empty(),
        }))
    }

    fn compile_aggregate(&self, aggregate: &Aggregate, counted: bool) -> Result<CompiledAggregate, SqlError> {
        if counted {
            let rows = Aggregate { kind: AggregateKind::CountRows, arguments: vec![], ..aggregate.clone() };
            return CompiledAggregate::new(&rows, self.connection);
        }
        CompiledAggregate::new(aggregate, self.connection)
    }

    fn sort_item(&self, order: &Order, columns: &[Column]) -> Result<SortItem, SqlError> {
        let compiled = Compiled::stored(&order.expr, self.connection)?;
        Ok(match order.output {
            Some(at) => SortItem {
                value: SortValue::Output(at),
                column: columns[at].clone(),
                descending: order.descending,
            },
            None => SortItem {
                column: pseudo_column(&compiled),
                value: SortValue::Value(compiled),
                descending: order.descending,
            },
        })
    }
}

/// A SELECT with its clauses bound.
struct Parts {
    from: From,
    items: Vec<Item>,
    conditions: Vec<Expr>,
    keys: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    is_grouped: bool,
    /// WITH ROLLUP.
    rolls_up: bool,
    having: Option<Expr>,
    windows: Vec<WindowFunction>,
    order: Vec<Order>,
    limit: Limit,
    distinct: bool,
    calculates_found_rows: bool,
    straight: bool,
    lock: Option<LockClause>,
}

/// Refuses clauses that MySQL does not have, and those that are not supported.
fn refuse(select: &ast::Select) -> Result<(), SqlError> {
    if select.into.is_some() {
        return Err(SqlError::syntax("into", 1));
    }
    if matches!(select.distinct, Some(ast::Distinct::On(_))) {
        return Err(SqlError::syntax("ON", 1));
    }
    if select.top.is_some() || select.prewhere.is_some() || select.qualify.is_some() {
        return Err(SqlError::syntax(&select.to_string(), 1));
    }
    Ok(())
}

/// The position that a number in ORDER BY or GROUP BY stands for.
fn position(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(text, _) => text.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn bind_order(binder: &mut Binder<'_>, item: &ast::OrderByExpr, items: &[Item]) -> Result<Order, SqlError> {
    let descending = is_descending(item);
    if let Some(at) = position(&item.expr) {
        let Some(found) = at.checked_sub(1).and_then(|at| items.get(at)) else {
            return Err(SqlError::unknown_column(&at.to_string(), "order clause"));
        };
        return Ok(Order { expr: found.expr.clone(), output: Some(at - 1), descending });
    }
    // Within an expression a column hides an alias.
    let is_name = matches!(item.expr, ast::Expr::Identifier(_));
    binder.alias_use = if is_name { AliasUse::First } else { AliasUse::Last };
    let expr = binder.bind(&item.expr)?;
    let output = items.iter().position(|item| item.expr == expr && is_fixed_or_column(&expr));
    Ok(Order { expr, output, descending })
}

fn is_fixed_or_column(expr: &Expr) -> bool {
    !walk::has_side_effects(expr)
}

fn column_meta(from: &From, expr: &Expr) -> Option<ColumnMeta> {
    match expr {
        Expr::Column(column) if column.part < from.scope.tables.len() => {
            Some(from.scope.meta(column.part, column.column))
        }
        _ => None,
    }
}

fn without_parentheses(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

fn is_slot(value: &ast::Value) -> bool {
    matches!(value, ast::Value::Placeholder(_) | ast::Value::Number(..))
}

/// The name of a column that is a literal: a text without its quotes, or a word.
fn string_name(value: &ast::Value) -> Option<String> {
    match value {
        ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => {
            Some(text.trim_ascii_start().to_owned())
        }
        ast::Value::Null => Some("NULL".to_string()),
        ast::Value::Boolean(truth) => Some(if *truth { "TRUE" } else { "FALSE" }.to_string()),
        _ => None,
    }
}

/// The description of an expression in a result.
pub(crate) fn meta_of(compiled: &Compiled, name: &str) -> ColumnMeta {
    let result = compiled.result_type();
    ColumnMeta {
        name: name.to_string(),
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        database: String::new(),
        column_type: result.column_type.clone(),
        collation: result.collation,
        not_null: !result.nullable,
        traits: ColumnTraits { told_as: result.told_as, ..ColumnTraits::default() },
        decimals: result.decimals,
        display_chars: result.display_chars,
    }
}

/// A column that can hold an expression's values in keys. It is always nullable: that costs one byte, and a
/// NULL in a column that cannot have one would make the order wrong.
pub(super) fn pseudo_column(compiled: &Compiled) -> Column {
    let result = compiled.result_type();
    Column { name: String::new(), column_type: result.column_type.clone(), nullable: true }
}

/// By table and column: whether the result needs it. The arguments of aggregates that only count rows
/// (`counted`) need no columns.
fn needed_columns(parts: &Parts, counted: &[bool]) -> Vec<Vec<bool>> {
    let Parts { from, items, keys, aggregates, having, order, .. } = parts;
    let mut needed: Vec<Vec<bool>> =
        from.scope.tables.iter().map(|table| vec![false; table.columns.len()]).collect();
    let mut mark = |expr: &Expr| {
        for_each_column(expr, &mut |column| {
            if let Some(needed) = needed.get_mut(column.part) {
                needed[column.column] = true;
            }
        });
    };
    items.iter().for_each(|item| mark(&item.expr));
    keys.iter().for_each(&mut mark);
    order.iter().for_each(|order| mark(&order.expr));
    having.iter().for_each(&mut mark);
    parts.windows.iter().for_each(|window| window.for_each_expr(&mut mark));
    for (aggregate, counted) in aggregates.iter().zip(counted) {
        if !counted {
            aggregate.arguments.iter().for_each(&mut mark);
            aggregate.order.iter().for_each(|(expr, _)| mark(expr));
        }
    }
    needed
}

/// True for COUNT(*), and for COUNT of an expression that is never NULL.
fn counts_every_row(aggregate: &Aggregate) -> bool {
    match (aggregate.kind, aggregate.arguments.as_slice()) {
        (AggregateKind::CountRows, _) => true,
        (AggregateKind::Count, [Expr::Column(column)]) => !column.nullable && !aggregate.distinct,
        (AggregateKind::Count, [Expr::Constant(value)]) => *value != Value::Null && !aggregate.distinct,
        (AggregateKind::Count, [Expr::Slot { kind, .. }]) => {
            *kind != crate::text::SlotKind::Null && !aggregate.distinct
        }
        _ => false,
    }
}

/// The wanted order of the first table's rows.
fn wanted_order(parts: &Parts) -> Wanted {
    let columns = |exprs: &mut dyn Iterator<Item = (&Expr, bool)>| -> Option<(usize, Vec<(usize, bool)>)> {
        let mut part = None;
        let mut columns = Vec::new();
        for (expr, descending) in exprs {
            match expr {
                Expr::Column(column) if column.part < parts.from.inputs.len() => {
                    if *part.get_or_insert(column.part) != column.part {
                        return None;
                    }
                    columns.push((column.column, descending));
                }
                expr if is_fixed(expr) => {}
                _ => return None,
            }
        }
        Some((part?, columns))
    };
    if parts.is_grouped {
        let Some((part, keys)) = columns(&mut parts.keys.iter().map(|key| (key, false))) else {
            return Wanted::default();
        };
        // Groups come in the order of their keys. That is the wanted order if ORDER BY asks for nothing else.
        let meets_order =
            parts.order.iter().zip(&parts.keys).all(|(order, key)| order.expr == *key && !order.descending)
                && parts.order.len() <= parts.keys.len()
                && parts.windows.is_empty();
        return Wanted { part, columns: keys, by_group: true, meets_order };
    }
    if !parts.windows.is_empty() {
        return Wanted::default();
    }
    match columns(&mut parts.order.iter().map(|order| (&order.expr, order.descending))) {
        Some((part, columns)) => Wanted { part, columns, by_group: false, meets_order: true },
        None => Wanted::default(),
    }
}

/// A shortcut for queries that need no rows: COUNT(*) of a whole table, MIN and MAX of indexed columns.
fn shortcut(parts: &Parts) -> Option<Shortcut> {
    let Parts { from, conditions, keys, aggregates, .. } = parts;
    let [input] = from.inputs.as_slice() else { return None };
    let Source::Table { def, .. } = &input.source else { return None };
    if !conditions.is_empty() || !keys.is_empty() || aggregates.is_empty() || !parts.windows.is_empty() {
        return None;
    }
    let mut reads_row = false;
    for expr in parts.items.iter().map(|item| &item.expr).chain(&parts.having) {
        for_each_column(expr, &mut |column| reads_row |= column.part == 0);
    }
    if reads_row {
        return None;
    }
    if aggregates.iter().all(counts_every_row) {
        return Some(Shortcut::RowCount);
    }
    let indexes = access::indexes(def);
    let end = |aggregate: &Aggregate| {
        let last = match aggregate.kind {
            AggregateKind::Minimum => false,
            AggregateKind::Maximum => true,
            _ => return None,
        };
        let [Expr::Column(column)] = aggregate.arguments.as_slice() else { return None };
        // An index of members has them in the order of their numbers, and not of their texts.
        if column.column_type.is_coded() {
            return None;
        }
        let leads = |index: &&access::IndexShape| {
            index.parts.first().is_some_and(|part| {
                part.column == column.column && part.prefix_chars.is_none() && !part.descending
            })
        };
        let mut usable =
            indexes.iter().filter(|index| from.hints.iter().all(|hints| hints.allows(&index.name)));
        let index = usable.find(leads).filter(|_| !column.in_utc)?;
        Some(End { index: index.id, column: column.column, last })
    };
    aggregates.iter().map(end).collect::<Option<Vec<End>>>().map(Shortcut::Ends)
}

/// The collation of literals, unless the session has set another one.
pub(crate) const CONNECTION_COLLATION: Collation = Collation::Utf8mb4GeneralCi;

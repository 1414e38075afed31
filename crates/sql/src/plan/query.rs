//! Queries: SELECT, UNION, parentheses, and the statement around them.

use super::bind::{Planned, SlotInfo, Subqueries, SubqueryUse, kind_of_type};
use super::names::Name;
use super::plan::*;
use super::scope::Scope;
use super::with::With;
use crate::accounts::Rights;
use crate::accounts::access::{Access, Needs, TableNeed};
use crate::expr::{Compiled, Expr, OuterRef};
use crate::text::SlotKind;
use crate::variables::join_methods::JoinMethods;
use crate::{ErrorKind, SqlError};
use engine::Database;
use sqlparser::ast;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use types::{Collation, ColumnType};

/// What planning needs to know.
pub(crate) struct Planner<'a> {
    pub engine: &'a Database,
    pub database: Option<&'a str>,
    pub slots: &'a [SlotInfo],
    /// The collation of literals.
    pub connection: Collation,
    /// The names of the first select list's columns.
    pub names: Vec<Name>,
    /// `sql_select_limit`.
    pub select_limit: u64,
    pub methods: JoinMethods,
    /// Under LOCK TABLES, a table that does not exist is reported as one that was not locked.
    pub knows_locked_only: bool,
    /// Whose rights decide what may be known; `None` for everybody's.
    pub access: Option<&'a Access>,
    /// What the statement wants to do with the table that is looked up next.
    pub(super) wants: Cell<Rights>,
    pub(super) needs: RefCell<Vec<Rc<RefCell<TableNeed>>>>,
    pub(super) dependencies: RefCell<Vec<Dependency>>,
    pub(super) subqueries: RefCell<Vec<SubqueryPlan>>,
    pub(super) virtual_tables: FindVirtual,
    /// The subqueries that run for each row of a query around them.
    pub(super) dependents: RefCell<Vec<Arc<QueryPlan>>>,
    /// The queries around the one that is being planned, the outermost first.
    pub(super) around: RefCell<Vec<Around>>,
    pub(super) with: With,
    pub(super) depth: RefCell<usize>,
    locks: Cell<bool>,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(
        engine: &'a Database,
        virtual_tables: FindVirtual,
        database: Option<&'a str>,
        slots: &'a [SlotInfo],
    ) -> Planner<'a> {
        Planner {
            engine,
            virtual_tables,
            database,
            slots,
            connection: super::select::CONNECTION_COLLATION,
            names: vec![],
            select_limit: u64::MAX,
            methods: JoinMethods::default(),
            knows_locked_only: false,
            access: None,
            wants: Cell::new(Rights::SELECT),
            needs: RefCell::default(),
            dependencies: RefCell::default(),
            subqueries: RefCell::default(),
            dependents: RefCell::default(),
            around: RefCell::default(),
            with: With::default(),
            depth: RefCell::default(),
            locks: Cell::default(),
        }
    }

    /// A planner for a part of the statement that is examined beforehand.
    pub(crate) fn another(&self) -> Planner<'a> {
        let mut planner = Planner::new(self.engine, self.virtual_tables, self.database, self.slots);
        planner.connection = self.connection;
        planner.methods = self.methods;
        planner.knows_locked_only = self.knows_locked_only;
        planner.access = self.access;
        planner
    }

    /// Plans a whole statement.
    ///
    /// # Errors
    /// Unknown names, and what is not supported.
    pub(crate) fn statement(self, query: &ast::Query) -> Result<StatementPlan, SqlError> {
        let plan = self.whole(query)?;
        Ok(self.finish(plan))
    }

    /// Plans the query of a statement, without finishing the statement.
    ///
    /// # Errors
    /// As [`Planner::statement`].
    pub(crate) fn whole(&self, query: &ast::Query) -> Result<QueryPlan, SqlError> {
        let mut plan = self.query(query)?;
        if self.select_limit != u64::MAX {
            let limit = match &mut plan.body {
                Body::Select(select) => &mut select.limit,
                Body::Union(union) => &mut union.limit,
                Body::Recursive(_) => return Ok(plan),
            };
            limit.count.get_or_insert(LimitValue::Number(self.select_limit));
        }
        Ok(plan)
    }

    /// The tables and subqueries of a statement that has no query around them.
    pub(crate) fn into_subqueries(self) -> (Vec<Dependency>, Vec<SubqueryPlan>) {
        (self.dependencies.into_inner(), self.subqueries.into_inner())
    }

    /// What the tables need that have been looked up until now.
    pub(crate) fn needs(&self) -> Vec<TableNeed> {
        self.needs.borrow().iter().map(|need| need.borrow().clone()).collect()
    }

    /// Makes a statement's plan of a query's plan.
    pub(crate) fn finish(self, query: QueryPlan) -> StatementPlan {
        StatementPlan {
            needs: Needs::new(self.needs()),
            query,
            subqueries: self.subqueries.into_inner(),
            dependents: self.dependents.into_inner(),
            dependencies: self.dependencies.into_inner(),
            locks: self.locks.get(),
            cacheable: true,
        }
    }

    pub(super) fn default_database(&self) -> Result<&str, SqlError> {
        self.database.ok_or_else(SqlError::no_database)
    }

    pub(super) fn query(&self, query: &ast::Query) -> Result<QueryPlan, SqlError> {
        match &query.with {
            Some(with) => self.with(with, query),
            None => self.plain(query),
        }
    }

    /// Plans a query without its WITH clause.
    pub(super) fn plain(&self, query: &ast::Query) -> Result<QueryPlan, SqlError> {
        if query.for_clause.is_some() {
            return Err(SqlError::syntax("FOR", 1));
        }
        let order = order_items(query)?;
        let limit = self.limit(query)?;
        if limit.ties && order.is_empty() {
            let text = "FETCH ... WITH TIES requires ORDER BY clause to be present";
            return Err(SqlError::new(ErrorKind::TiesNeedOrder, text));
        }
        let lock = self.lock_clause(query)?;
        self.note_height(1)?;
        *self.depth.borrow_mut() += 1;
        let wants = self.wants.replace(Rights::SELECT);
        let plan = match &*query.body {
            ast::SetExpr::Select(select) => self.select(select, order, limit, lock),
            // These are only parentheses. In contrast, (SELECT ...) LIMIT 1 orders and limits the inner
            // result again.
            ast::SetExpr::Query(inner) if order.is_empty() && limit == Limit::default() => {
                self.in_parentheses(inner)
            }
            body => self.union(body, order, limit),
        };
        self.wants.set(wants);
        *self.depth.borrow_mut() -= 1;
        plan
    }

    /// A query in parentheses, which is no deeper for them: its columns have the names of the text.
    pub(super) fn in_parentheses(&self, query: &ast::Query) -> Result<QueryPlan, SqlError> {
        *self.depth.borrow_mut() -= 1;
        let plan = self.query(query);
        *self.depth.borrow_mut() += 1;
        plan
    }

    fn lock_clause(&self, query: &ast::Query) -> Result<Option<LockClause>, SqlError> {
        let clause = match query.locks.as_slice() {
            [] => return Ok(None),
            [clause] => clause,
            [_, second, ..] => return Err(SqlError::syntax(&second.to_string(), 1)),
        };
        let wait = match (&clause.of, &clause.nonblock) {
            (None, None) => LockPatience::Default,
            (None, Some(ast::NonBlock::Nowait)) => LockPatience::NoWait,
            (None, Some(ast::NonBlock::SkipLocked)) => LockPatience::SkipLocked,
            (Some(of), None) => match crate::text::parse::tokens::wait_seconds(of) {
                Some(seconds) => LockPatience::Seconds(self.lock_seconds(&seconds)?),
                None => return Err(SqlError::syntax(&format!("of {of}"), 1)),
            },
            (Some(of), Some(_)) => return Err(SqlError::syntax(&format!("of {of}"), 1)),
        };
        self.locks.set(true);
        Ok(Some(LockClause { exclusive: clause.lock_type == ast::LockType::Update, wait }))
    }

    /// The number of seconds in WAIT n.
    fn lock_seconds(&self, seconds: &ast::Value) -> Result<LimitValue, SqlError> {
        let wrong = || SqlError::syntax(&seconds.to_string(), 1);
        match self.number_or_slot(seconds).ok_or_else(wrong)? {
            (number, SlotKind::Int | SlotKind::UInt | SlotKind::Null) => Ok(number),
            _ => Err(wrong()),
        }
    }

    fn limit(&self, query: &ast::Query) -> Result<Limit, SqlError> {
        let (count, offset) = match &query.limit_clause {
            None => (None, None),
            Some(ast::LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
            Some(ast::LimitClause::LimitOffset { limit, offset, .. }) => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
        };
        let mut limit = Limit {
            count: count.map(|count| self.limit_value(count)).transpose()?,
            offset: offset.map(|offset| self.limit_value(offset)).transpose()?,
            ties: false,
        };
        if let Some(fetch) = &query.fetch {
            if limit.count.is_some() || fetch.percent {
                return Err(SqlError::syntax(&fetch.to_string(), 1));
            }
            let one = LimitValue::Number(1);
            limit.count = Some(fetch.quantity.as_ref().map_or(Ok(one), |count| self.limit_value(count))?);
            limit.ties = fetch.with_ties;
        }
        Ok(limit)
    }

    /// The value of LIMIT: a number or a parameter. Nothing else is allowed.
    pub(crate) fn limit_value(&self, expr: &ast::Expr) -> Result<LimitValue, SqlError> {
        let wrong = || SqlError::syntax(&expr.to_string(), 1);
        let ast::Expr::Value(value) = expr else { return Err(wrong()) };
        self.number_or_slot(&value.value).map(|(number, _)| number).ok_or_else(wrong)
    }

    /// A number or a slot, with the kind of the slot.
    fn number_or_slot(&self, value: &ast::Value) -> Option<(LimitValue, SlotKind)> {
        match value {
            ast::Value::Number(text, _) => Some((LimitValue::Number(text.parse().ok()?), SlotKind::UInt)),
            ast::Value::Placeholder(name) => {
                let index: usize = name.strip_prefix('?')?.parse().ok()?;
                let kind = self.slots.get(index).map_or(SlotKind::Mixed, |slot| slot.kind);
                Some((LimitValue::Slot(index), kind))
            }
            _ => None,
        }
    }
}

impl Planner<'_> {
    /// Plans a query that cannot read the queries around it, such as a derived table.
    pub(super) fn apart(&self, query: &ast::Query) -> Result<QueryPlan, SqlError> {
        let around = self.around.take();
        let plan = self.query(query);
        self.around.replace(around);
        plan
    }
}

impl Subqueries for Planner<'_> {
    fn connection(&self) -> Collation {
        self.connection
    }

    fn plan(
        &self,
        query: &ast::Query,
        use_as: SubqueryUse,
        scope: &Scope,
        aliases: &[(String, Expr)],
    ) -> Result<Planned, SqlError> {
        let around = Around { scope: scope.clone(), aliases: aliases.to_vec(), parameters: vec![] };
        self.around.borrow_mut().push(around);
        let subqueries = &self.with.subqueries;
        subqueries.set(subqueries.get() + 1);
        let plan = self.query(query);
        subqueries.set(subqueries.get() - 1);
        let parameters = self.around.borrow_mut().pop().map(|around| around.parameters).unwrap_or_default();
        let plan = plan?;
        let kind = match use_as {
            SubqueryUse::Exists => SlotKind::Int,
            _ if plan.columns.len() != use_as.columns() => return Err(SqlError::columns(use_as.columns())),
            _ => kind_of_type(&plan.columns[0].column_type),
        };
        if !parameters.is_empty() {
            let plan = Arc::new(plan);
            self.dependents.borrow_mut().push(plan.clone());
            return Ok(Planned::EachRow { plan, parameters });
        }
        let mut subqueries = self.subqueries.borrow_mut();
        let slot = self.slots.len() + subqueries.len();
        let kinds = plan.columns.iter().map(|column| kind_of_type(&column.column_type)).collect();
        subqueries.push(SubqueryPlan { query: plan, use_as });
        Ok(match use_as {
            SubqueryUse::Rows { .. } => Planned::Rows { slot, kinds },
            _ => Planned::Once { slot, kind },
        })
    }

    fn outer(&self, name: &[ast::Ident], clause: &str) -> Result<Option<Expr>, SqlError> {
        let mut around = self.around.borrow_mut();
        let mut levels = around.iter().enumerate().rev();
        let found = levels.find_map(|(level, around)| Some((level, around.find(name, clause).transpose()?)));
        let Some((level, found)) = found else { return Ok(None) };
        let mut found = found?;
        // Each query in between passes the value on to the next one inside.
        for around in &mut around[level..] {
            found = around.parameter(found, self.connection)?;
        }
        Ok(Some(found))
    }
}

/// The query around a subquery that is being planned.
pub(super) struct Around {
    scope: Scope,
    aliases: Vec<(String, Expr)>,
    parameters: Vec<Expr>,
}

impl Around {
    fn find(&self, name: &[ast::Ident], clause: &str) -> Result<Option<Expr>, SqlError> {
        if let Some(found) = self.scope.resolve_if_any(name, clause)? {
            return Ok(Some(found));
        }
        let [single] = name else { return Ok(None) };
        let alias = self.aliases.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(&single.value));
        Ok(alias.map(|(_, expr)| expr.clone()))
    }

    /// The parameter that replaces, inside the subquery, an expression over the row around it.
    fn parameter(&mut self, expr: Expr, connection: Collation) -> Result<Expr, SqlError> {
        let (column_type, nullable, name) = match &expr {
            Expr::Column(column) => (column.column_type.clone(), column.nullable, column.name.clone()),
            Expr::Outer(outer) => (outer.column_type.clone(), outer.nullable, outer.name.clone()),
            other => {
                let compiled = Compiled::new(other, connection)?;
                let result = compiled.result_type();
                (result.column_type.clone(), result.nullable, "func".to_string())
            }
        };
        let known = self.parameters.iter().position(|known| *known == expr);
        let index = known.unwrap_or_else(|| {
            self.parameters.push(expr);
            self.parameters.len() - 1
        });
        Ok(Expr::Outer(OuterRef { index, column_type, nullable, name }))
    }
}

/// The items of ORDER BY.
pub(super) fn order_items(query: &ast::Query) -> Result<Vec<&ast::OrderByExpr>, SqlError> {
    match query.order_by.as_ref().map(|order| &order.kind) {
        None => Ok(vec![]),
        // ORDER BY NULL means no order.
        Some(ast::OrderByKind::Expressions(items)) => {
            let is_null = |item: &&ast::OrderByExpr| matches!(&item.expr, ast::Expr::Value(value) if value.value == ast::Value::Null);
            Ok(items.iter().filter(|item| !is_null(item)).collect())
        }
        Some(ast::OrderByKind::All(_)) => Err(SqlError::syntax("ALL", 1)),
    }
}

pub(super) fn is_descending(item: &ast::OrderByExpr) -> bool {
    item.options.sort == Some(ast::OrderBySort::Desc)
}

/// A type that can hold the values of both types.
pub(super) fn wider(left: &ColumnType, right: &ColumnType) -> ColumnType {
    use ColumnType::*;
    if left == right {
        return left.clone();
    }
    let digits = |bytes: u8| match bytes {
        1 => 3,
        2 => 5,
        3 => 8,
        4 => 10,
        _ => 20,
    };
    let fsp = |of: &ColumnType| match of {
        DateTime { fsp } | Timestamp { fsp } => *fsp,
        _ => 0,
    };
    match (left, right) {
        (Year, Int { bytes, unsigned: true }) | (Int { bytes, unsigned: true }, Year) => {
            Int { bytes: *bytes.max(&2), unsigned: true }
        }
        // No sign and a sign, as below.
        (Year, Int { bytes, .. }) | (Int { bytes, .. }, Year) => {
            Decimal { precision: digits(*bytes).max(5), scale: 0, unsigned: false }
        }
        (Int { bytes: a, unsigned: ua }, Int { bytes: b, unsigned: ub }) => {
            if ua == ub {
                Int { bytes: *a.max(b), unsigned: *ua }
            } else if *a < 8 && *b < 8 {
                Int { bytes: 8, unsigned: false }
            } else {
                Decimal { precision: 20, scale: 0, unsigned: false }
            }
        }
        (Int { bytes, .. }, Decimal { precision, scale, .. })
        | (Decimal { precision, scale, .. }, Int { bytes, .. }) => {
            let whole = (precision - scale).max(digits(*bytes));
            Decimal { precision: (whole + scale).min(65), scale: *scale, unsigned: false }
        }
        (Decimal { precision: p, scale: s, .. }, Decimal { precision: q, scale: t, .. }) => {
            let scale = *s.max(t);
            let whole = (p - s).max(q - t);
            Decimal { precision: (whole + scale).min(65), scale, unsigned: false }
        }
        (
            Int { .. } | Decimal { .. } | Float { .. } | Double { .. } | Year,
            Int { .. } | Decimal { .. } | Float { .. } | Double { .. } | Year,
        ) => Double { unsigned: false },
        (Date | DateTime { .. } | Timestamp { .. }, Date | DateTime { .. } | Timestamp { .. }) => {
            DateTime { fsp: fsp(left).max(fsp(right)) }
        }
        (Time { fsp: a }, Time { fsp: b }) => Time { fsp: *a.max(b) },
        (left, right) if left.is_binary() || right.is_binary() => Varbinary { bytes: 65_535 },
        (left, right) => {
            // All characters must fit, and bytes have precedence over letters.
            let rank = |of: Collation| (of.character_bytes_max(), of.is_bin());
            let collation = match (left.collation(), right.collation()) {
                (Collation::Binary, Collation::Binary) => Collation::Utf8mb4GeneralCi,
                (Collation::Binary, other) | (other, Collation::Binary) => other,
                (left, right) if rank(right) > rank(left) => right,
                (left, _) => left,
            };
            Varchar { chars: 16_383, collation }
        }
    }
}

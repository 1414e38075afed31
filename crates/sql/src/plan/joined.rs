//! UPDATE and DELETE of several tables: plans the join that finds the rows to be changed.

use super::bind::Binder;
use super::from::From;
use super::join::{JoinPlan, Wanted};
use super::plan::*;
use super::query::{Planner, is_descending};
use super::scope::Scope;
use super::walk::{self, Parts};
use crate::SqlError;
use crate::accounts::Rights;
use crate::expr::{Compiled, Expr};
use sqlparser::ast;
use std::sync::Arc;

/// The join whose rows a statement changes, and in which tables.
#[derive(Debug)]
pub(crate) struct JoinedRead {
    /// Its query has no columns. Its order and limit are those of the statement.
    pub statement: StatementPlan,
    /// The tables that are changed, as parts of the query's rows.
    pub changed: Parts,
}

impl JoinedRead {
    /// # Errors
    /// 1105 if this is no plan of a join.
    pub(crate) fn select(&self) -> Result<&SelectPlan, SqlError> {
        match &self.statement.query.body {
            Body::Select(select) => Ok(select),
            Body::Union(_) | Body::Recursive(_) => Err(SqlError::internal("a change of a union")),
        }
    }
}

/// The clauses that select rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinedMeant<'a> {
    /// What is done with the rows: UPDATE or DELETE.
    pub right: Rights,
    pub from: &'a [ast::TableWithJoins],
    pub selection: Option<&'a ast::Expr>,
    pub order: &'a [ast::OrderByExpr],
    pub limit: Option<&'a ast::Expr>,
}

/// A table of the join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinedTable<'a> {
    pub part: usize,
    pub source: &'a Source,
    pub name: &'a str,
}

impl Planner<'_> {
    /// Plans the join of a statement that changes rows of several tables. `bind` binds what else names the
    /// tables' columns, and gives the parts that are changed; the subqueries in it belong to the statement.
    ///
    /// # Errors
    /// 1146, 1054 and others, and those of `bind`.
    pub(crate) fn joined_read<T>(
        self,
        meant: &JoinedMeant<'_>,
        bind: impl FnOnce(&Self, &Scope, &[JoinedTable<'_>]) -> Result<(Parts, T), SqlError>,
    ) -> Result<(JoinedRead, T), SqlError> {
        let is_update = meant.right == Rights::UPDATE;
        // Which of its tables an UPDATE changes is known when its columns are.
        self.wants.set(if is_update { Rights::SELECT | Rights::UPDATE } else { Rights::SELECT });
        let from = self.from(meant.from)?;
        self.wants.set(Rights::SELECT);
        let scope = &from.scope;
        let mut conditions = Vec::new();
        if let Some(selection) = meant.selection {
            let mut binder = Binder::new(scope, self.slots, "where clause");
            binder.subqueries = Some(&self);
            conditions = walk::conditions(binder.bind(selection)?, scope);
        }
        let order = meant.order.iter().map(|item| Ok(self.order_of_rows(item, scope)?.1));
        let order = order.collect::<Result<Vec<SortItem>, SqlError>>()?;
        let count = meant.limit.map(|limit| self.limit_value(limit)).transpose()?;
        let tables: Vec<JoinedTable<'_>> = from
            .inputs
            .iter()
            .enumerate()
            .map(|(part, input)| JoinedTable { part, source: &input.source, name: &input.name })
            .collect();
        let (changed, bound) = bind(&self, scope, &tables)?;
        for (part, table) in scope.tables.iter().enumerate() {
            let Some(need) = &table.need else { continue };
            let mut need = need.borrow_mut();
            match (is_update, changed.has(part)) {
                (true, true) => need.any = Rights::UPDATE,
                (true, false) => need.any = Rights::SELECT,
                (false, true) => need.whole |= meant.right,
                (false, false) => {}
            }
        }
        let limit = Limit { count, ..Limit::default() };
        let select = self.join_to_change(from, &conditions, SortOrder::new(order, 0), limit)?;
        let body = Body::Select(Box::new(select));
        let query =
            QueryPlan { columns: Arc::from([]), names: vec![], late: None, body, is_seen_apart: false };
        Ok((JoinedRead { statement: self.finish(query), changed }, bound))
    }

    /// An item of ORDER BY of a statement that changes rows: its expression, and how rows are sorted by it.
    ///
    /// # Errors
    /// 1054 and others.
    pub(super) fn order_of_rows(
        &self,
        item: &ast::OrderByExpr,
        scope: &Scope,
    ) -> Result<(Expr, SortItem), SqlError> {
        let mut binder = Binder::new(scope, self.slots, "order clause");
        binder.subqueries = Some(self);
        let expr = binder.bind(&item.expr)?;
        let value = Compiled::new(&expr, self.connection)?;
        let column = types::Column {
            name: String::new(),
            column_type: value.result_type().column_type.clone(),
            nullable: true,
        };
        let item = SortItem { value: SortValue::Value(value), column, descending: is_descending(item) };
        Ok((expr, item))
    }

    fn join_to_change(
        &self,
        from: From,
        conditions: &[Expr],
        order: SortOrder,
        limit: Limit,
    ) -> Result<SelectPlan, SqlError> {
        let needed: Vec<Vec<bool>> =
            from.scope.tables.iter().map(|table| vec![true; table.columns.len()]).collect();
        let joined = JoinPlan {
            from: &from,
            conditions,
            needed: &needed,
            wanted: &Wanted { meets_order: true, ..Wanted::default() },
            limit: None,
            straight: from.straight,
            connection: self.connection,
            methods: self.methods,
            locks: true,
        };
        let joined = joined.plan()?;
        Ok(SelectPlan {
            steps: joined.steps,
            nests: joined.nests,
            rows: joined.rows,
            constant: joined.constant,
            output: vec![],
            group: None,
            having: None,
            windows: None,
            distinct: None,
            uses_temporary: !order.items.is_empty(),
            order,
            limit,
            calculates_found_rows: false,
            lock: Some(LockClause { exclusive: true, wait: LockPatience::Default }),
            shortcut: None,
            inputs: from.inputs,
        })
    }
}

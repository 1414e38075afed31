//! UPDATE and DELETE: plans how to find the rows of one table that are to be changed.

use super::access::{Access, Hints, Target, choose};
use super::bind::Binder;
use super::object_name;
use super::plan::*;
use super::query::Planner;
use super::scope::Scope;
use super::walk::{self, Parts, conjunction};
use crate::SqlError;
use crate::accounts::Rights;
use crate::accounts::access::Needs;
use crate::expr::{Compiled, Expr};
use engine::{Table, TableDef};
use sqlparser::ast;
use std::sync::Arc;

/// Which rows of a table a statement changes, and in which order.
///
/// [`crate::exec::candidates`] finds their primary keys. Nothing locks the rows between that and the change.
/// So the condition must be tested again on the newest image of a row while it is changed
/// ([`TableRead::condition`]).
#[derive(Debug)]
pub(crate) struct TableRead {
    pub table: Arc<Table>,
    /// The name that the statement uses for it.
    pub name: String,
    pub access: Access,
    /// The whole WHERE.
    pub condition: Option<Compiled>,
    /// Empty if the access finds the rows in the wanted order.
    pub order: SortOrder,
    pub limit: Limit,
    pub dependencies: Vec<Dependency>,
    pub needs: Needs,
    /// They run first. Their results are in slots.
    pub subqueries: Vec<SubqueryPlan>,
    /// True if a subquery that runs for each row reads the table. It must see the table as it was before the
    /// statement, so no row is changed before all of them have been looked at.
    pub reads_itself: bool,
    /// The subqueries that run for each row.
    pub dependents: Vec<Arc<QueryPlan>>,
}

impl TableRead {
    pub(crate) fn is_current(&self) -> bool {
        self.dependencies.iter().all(Dependency::is_current)
    }
}

/// The clauses of UPDATE and DELETE that select rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meant<'a> {
    /// What is done with the rows: UPDATE or DELETE.
    pub right: Rights,
    pub table: &'a ast::TableFactor,
    pub selection: Option<&'a ast::Expr>,
    pub order: &'a [ast::OrderByExpr],
    pub limit: Option<&'a ast::Expr>,
}

impl Meant<'_> {
    fn statement(&self) -> &'static str {
        if self.right == Rights::DELETE { "DELETE" } else { "UPDATE" }
    }
}

impl Planner<'_> {
    /// Plans finding the rows that an UPDATE or DELETE of one table changes. An index that holds a column to
    /// be assigned must not be scanned while it changes, so [`crate::exec::candidates`] finds all keys first.
    /// `bind` binds what else names the table's columns; the subqueries in it belong to the statement.
    ///
    /// # Errors
    /// 1146, 1054 and others, and those of `bind`. 1235 for several tables.
    pub(crate) fn table_read<T>(
        self,
        meant: &Meant<'_>,
        bind: impl FnOnce(&Self, &Scope, &TableDef) -> Result<T, SqlError>,
    ) -> Result<(TableRead, T), SqlError> {
        let ast::TableFactor::Table { name, alias, .. } = meant.table else {
            return Err(SqlError::not_supported("changing anything but one table"));
        };
        let path = object_name(name);
        let (database, table_name) = match path.as_slice() {
            [table] => (self.default_database()?.to_string(), table.clone()),
            [database, table] => (database.clone(), table.clone()),
            _ => return Err(SqlError::syntax(&name.to_string(), 1)),
        };
        let name = alias.as_ref().map_or(table_name.as_str(), |alias| &alias.name.value);
        self.wants.set(meant.right);
        let (source, mut named) = self.table(&database, &table_name, name)?;
        self.wants.set(Rights::SELECT);
        let Source::Table { table, def } = source else {
            return Err(SqlError::not_updatable(&table_name, meant.statement()));
        };
        if let Some(alias) = alias {
            named.name.clone_from(&alias.name.value);
            named.by_database = false;
        }
        named.need.iter().for_each(|need| need.borrow_mut().changes(meant.right));
        let mut scope = Scope::default();
        scope.push(named);
        let mut conditions = Vec::new();
        if let Some(selection) = meant.selection {
            let mut binder = Binder::new(&scope, self.slots, "where clause");
            binder.subqueries = Some(&self);
            conditions = walk::conditions(binder.bind(selection)?, &scope);
        }
        let mut wanted = Vec::new();
        let mut order = Vec::new();
        let mut is_plain = true;
        for item in meant.order {
            let (expr, item) = self.order_of_rows(item, &scope)?;
            match &expr {
                Expr::Column(column) => wanted.push((column.column, item.descending)),
                _ => is_plain = false,
            }
            order.push(item);
        }
        if !is_plain {
            wanted.clear();
        }
        let count = meant.limit.map(|limit| self.limit_value(limit)).transpose()?;
        let limit = Limit { count, ..Limit::default() };
        let bound = bind(&self, &scope, &def)?;
        let needed = vec![true; def.columns.len()];
        let target = Target {
            table: &table,
            def: &def,
            part: 0,
            before: Parts::default(),
            hints: &Hints { ignore: scope.tables[0].ignored_indexes.clone(), ..Hints::default() },
            needed: &needed,
            order: &wanted,
            in_order: false,
            limit: match limit.count {
                Some(LimitValue::Number(count)) => Some(count),
                Some(LimitValue::Slot(_)) => Some(20),
                None => None,
            },
            connection: self.connection,
        };
        let chosen = choose(&target, &conditions)?;
        if chosen.ordered && !wanted.is_empty() {
            order.clear();
        }
        let condition = conjunction(conditions);
        let condition = condition.map(|condition| Compiled::new(&condition, self.connection)).transpose()?;
        let reads_itself = self.dependents.borrow().iter().any(|query| query.reads(&table));
        let read = TableRead {
            access: chosen.access,
            reads_itself,
            name: name.to_owned(),
            dependents: self.dependents.take(),
            table,
            condition,
            order: SortOrder::new(order, 0),
            limit,
            needs: Needs::new(self.needs()),
            dependencies: self.dependencies.into_inner(),
            subqueries: self.subqueries.into_inner(),
        };
        Ok((read, bound))
    }
}

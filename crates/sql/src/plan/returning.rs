//! RETURNING: plans the columns that a statement gives of the rows that it inserts or deletes.

use super::plan::{Body, QueryPlan, SelectPlan};
use super::query::Planner;
use crate::text::LexicalMode;
use crate::text::parse::parse_ast;
use crate::{ErrorKind, SqlError};
use engine::Table;
use sqlparser::ast;
use std::sync::Arc;

/// The columns of RETURNING.
#[derive(Debug)]
pub(crate) struct Returning {
    /// Would read the table itself. Only its columns are used.
    pub query: QueryPlan,
}

impl Returning {
    /// # Errors
    /// 1105 if this is no plan of one table.
    pub(crate) fn select(&self) -> Result<&SelectPlan, SqlError> {
        match &self.query.body {
            Body::Select(select) => Ok(select),
            Body::Union(_) | Body::Recursive(_) => Err(SqlError::internal("RETURNING of a union")),
        }
    }
}

impl Planner<'_> {
    /// Plans `RETURNING items` of a statement that changes rows of one table.
    ///
    /// # Errors
    /// Those of a SELECT, and 1111 for aggregates.
    pub(crate) fn returning(
        &self,
        items: &[ast::SelectItem],
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Returning, SqlError> {
        // RETURNING DISTINCT is read as a column with this name and an alias.
        if let Some(ast::SelectItem::ExprWithAlias { expr: ast::Expr::Identifier(first), .. }) = items.first()
            && first.quote_style.is_none()
            && ["DISTINCT", "ALL"].iter().any(|word| first.value.eq_ignore_ascii_case(word))
        {
            return Err(SqlError::syntax(&first.value, 1));
        }
        let unknown = || SqlError::internal("a SELECT that is none");
        let ast::Statement::Query(mut query) = parse_ast("SELECT 1 FROM t", LexicalMode::NONE)? else {
            return Err(unknown());
        };
        let ast::SetExpr::Select(select) = &mut *query.body else { return Err(unknown()) };
        select.projection = items.to_vec();
        match select.from.first_mut().map(|from| &mut from.relation) {
            Some(ast::TableFactor::Table { name: table, alias: named, .. }) => {
                table.clone_from(name);
                *named = alias.cloned();
            }
            _ => return Err(unknown()),
        }
        let read_before = self.dependencies.borrow().len();
        let query = self.query(&query)?;
        // The statement changes the table. It does not read it for this.
        self.dependencies.borrow_mut().remove(read_before);
        let returning = Returning { query };
        if returning.select()?.group.is_some() {
            return Err(SqlError::new(ErrorKind::InvalidGroupFunction, "Invalid use of group function"));
        }
        Ok(returning)
    }

    /// How many subqueries have been planned, those that run once and those that run for each row.
    pub(crate) fn count_subqueries(&self) -> (usize, usize) {
        (self.subqueries.borrow().len(), self.dependents.borrow().len())
    }

    /// 1093 if a subquery that was planned after the first ones reads this table.
    ///
    /// # Errors
    /// 1093.
    pub(crate) fn check_not_source(
        &self,
        (first, first_dependents): (usize, usize),
        table: &Arc<Table>,
        name: &str,
        statement: &str,
    ) -> Result<(), SqlError> {
        let names = |query: &QueryPlan| query.names(table);
        if self.subqueries.borrow().iter().skip(first).any(|subquery| names(&subquery.query))
            || self.dependents.borrow().iter().skip(first_dependents).any(|query| names(query))
        {
            return Err(SqlError::target_is_source(name, statement));
        }
        Ok(())
    }
}

//! UNION, INTERSECT, EXCEPT, and VALUES.

use super::bind::Binder;
use super::describe;
use super::from::{From, columns_scope};
use super::names::Name;
use super::plan::*;
use super::query::{Planner, is_descending, wider};
use super::scope::Scope;
use super::select::{CONNECTION_COLLATION, pseudo_column};
use crate::expr::value_keys::ValueKeys;
use crate::expr::{Compiled, ResultType, seen_type, united};
use crate::{ColumnMeta, ColumnTraits, ErrorKind, SqlError};
use sqlparser::ast;
use std::sync::Arc;
use types::{Collation, Column, ColumnType};

impl Planner<'_> {
    /// Plans what operators make of several queries, or VALUES.
    pub(super) fn union(
        &self,
        body: &ast::SetExpr,
        order: Vec<&ast::OrderByExpr>,
        limit: Limit,
    ) -> Result<QueryPlan, SqlError> {
        let (mut branches, mut operations) = (Vec::new(), Vec::new());
        self.branches(body, &mut branches, &mut operations)?;
        let columns = columns_of_branches(&branches)?;
        let names = branches[0].names.clone();
        let metas = metas_of_branches(&branches, &columns, keeps_rows(&operations));
        let mut scope = Scope::default();
        scope.push(columns_scope(&metas, &names, ""));
        let order = order
            .into_iter()
            .map(|item| self.union_order(item, &scope, &columns))
            .collect::<Result<Vec<_>, SqlError>>()?;
        let keys = ValueKeys::new(columns.iter().cloned());
        let order = SortOrder::new(order, columns.len());
        let plan = UnionPlan { branches, operations, columns, keys, order, limit };
        Ok(of_columns(metas, names, Body::Union(Box::new(plan))))
    }

    /// Appends the operands of a chain of operators. What binds tighter than the chain is one operand of it.
    fn branches(
        &self,
        body: &ast::SetExpr,
        branches: &mut Vec<QueryPlan>,
        operations: &mut Vec<SetOperation>,
    ) -> Result<(), SqlError> {
        use ast::SetQuantifier as Quantifier;
        let ast::SetExpr::SetOperation { op, set_quantifier, left, right } = body else {
            branches.push(self.branch(body)?);
            return Ok(());
        };
        self.branches(left, branches, operations)?;
        let operator = match op {
            ast::SetOperator::Union => SetOperator::Union,
            ast::SetOperator::Intersect => SetOperator::Intersect,
            ast::SetOperator::Except => SetOperator::Except,
            // Only Oracle's mode has it.
            ast::SetOperator::Minus => return Err(SqlError::syntax(&right.to_string(), 1)),
        };
        let all = match set_quantifier {
            Quantifier::All => true,
            Quantifier::None | Quantifier::Distinct => false,
            other => return Err(SqlError::syntax(&other.to_string(), 1)),
        };
        branches.push(self.branch(right)?);
        operations.push(SetOperation { operator, all });
        Ok(())
    }

    /// Plans one operand.
    pub(super) fn branch(&self, body: &ast::SetExpr) -> Result<QueryPlan, SqlError> {
        match body {
            ast::SetExpr::Select(select) => self.select(select, vec![], Limit::default(), None),
            ast::SetExpr::Query(query) => self.in_parentheses(query),
            ast::SetExpr::SetOperation { .. } => self.union(body, vec![], Limit::default()),
            ast::SetExpr::Values(values) => self.values(values),
            ast::SetExpr::Table(_) => Err(SqlError::not_supported("TABLE")),
            change => Err(SqlError::syntax(&change.to_string(), 1)),
        }
    }

    /// VALUES: each row is a query without tables.
    fn values(&self, values: &ast::Values) -> Result<QueryPlan, SqlError> {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        if values.rows.iter().any(|row| row.content.is_empty()) {
            let text = "Row with no elements is not allowed in table value constructor in this context";
            return Err(SqlError::new(ErrorKind::EmptyRowOfValues, text));
        }
        if values.rows.iter().any(|row| row.content.len() != width) {
            let text = "The used table value constructor has a different number of values";
            return Err(SqlError::new(ErrorKind::WrongCountOfValues, text));
        }
        let rows = values.rows.iter().enumerate();
        let branches = rows
            .map(|(at, row)| self.row_of_values(&row.content, at == 0, values.explicit_row))
            .collect::<Result<Vec<_>, SqlError>>()?;
        let columns = columns_of_branches(&branches)?;
        let names = branches[0].names.clone();
        let metas = metas_of_branches(&branches, &columns, false);
        let keys = ValueKeys::new(columns.iter().cloned());
        let operations = vec![SetOperation { operator: SetOperator::Union, all: true }; branches.len() - 1];
        let (order, limit) = (SortOrder::new(vec![], width), Limit::default());
        let plan = UnionPlan { branches, operations, columns, keys, order, limit };
        Ok(of_columns(metas, names, Body::Union(Box::new(plan))))
    }

    /// Plans one row of VALUES. The columns have the names of the first row's expressions. In MySQL, which
    /// alone writes ROW, they have numbers.
    fn row_of_values(
        &self,
        row: &[ast::Expr],
        is_first: bool,
        is_mysql: bool,
    ) -> Result<QueryPlan, SqlError> {
        let from = From::default();
        let mut binder = Binder::new(&from.scope, self.slots, "field list");
        binder.subqueries = Some(self);
        let has_texts = is_first && *self.depth.borrow() == 1 && self.names.len() == row.len();
        let mut items = Vec::new();
        for (at, expr) in row.iter().enumerate() {
            if let ast::Expr::Identifier(name) = expr
                && !name.value.starts_with('@')
            {
                return Err(name_in_values(&name.value));
            }
            let name = match is_mysql {
                true => Name::Fixed(format!("column_{at}")),
                false => self.name_of(expr, self.names.get(at).filter(|_| has_texts)),
            };
            items.push((binder.bind(expr)?, name));
        }
        self.without_tables(items)
    }

    /// An item of ORDER BY over a whole union: a column of its result, by name or position, or an expression
    /// of such columns.
    fn union_order(
        &self,
        item: &ast::OrderByExpr,
        scope: &Scope,
        columns: &[Column],
    ) -> Result<SortItem, SqlError> {
        let unknown = || SqlError::unknown_column(&item.expr.to_string(), "order clause");
        let descending = is_descending(item);
        let named = &scope.tables[0].columns;
        let position = match &item.expr {
            ast::Expr::Identifier(name) if !name.value.starts_with('@') => Some(
                named
                    .iter()
                    .position(|column| column.name.eq_ignore_ascii_case(&name.value))
                    .ok_or_else(unknown)?,
            ),
            ast::Expr::CompoundIdentifier(path) if !path[0].value.starts_with('@') => {
                let table = &path[path.len().saturating_sub(2)].value;
                let text = format!("Table '{table}' from one of the SELECTs cannot be used in ORDER BY");
                return Err(SqlError::new(ErrorKind::TableNotAllowedHere, text));
            }
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Number(text, _) => match text.parse::<usize>() {
                    Ok(position) if (1..=columns.len()).contains(&position) => Some(position - 1),
                    _ => return Err(unknown()),
                },
                _ => None,
            },
            _ => None,
        };
        if let Some(position) = position {
            let column = columns[position].clone();
            return Ok(SortItem { value: SortValue::Output(position), column, descending });
        }
        let mut binder = Binder::new(scope, self.slots, "order clause");
        binder.subqueries = Some(self);
        let compiled = Compiled::new(&binder.bind(&item.expr)?, self.connection)?;
        Ok(SortItem { column: pseudo_column(&compiled), value: SortValue::Value(compiled), descending })
    }
}

/// The error for a name in VALUES.
fn name_in_values(name: &str) -> SqlError {
    if name.eq_ignore_ascii_case("default") {
        return SqlError::new(ErrorKind::NotAllowedInContext, "'default' is not allowed in this context");
    }
    let text = format!("Field reference '{name}' can't be used in table value constructor");
    SqlError::new(ErrorKind::NameInValues, text)
}

/// The plan of a query whose columns have the values that expressions see.
pub(super) fn of_columns(columns: Arc<[ColumnMeta]>, names: Vec<(usize, Name)>, body: Body) -> QueryPlan {
    QueryPlan { columns, is_seen_apart: false, names, late: None, body }
}

/// The descriptions of a union's columns, which have these types. `is_kept`: its rows are kept in a temporary
/// table, since equal ones are reduced to one.
pub(super) fn union_metas<'b>(
    branches: impl Iterator<Item = &'b [ColumnMeta]> + Clone,
    columns: &[Column],
    is_kept: bool,
) -> Vec<ColumnMeta> {
    let column = |(position, column): (usize, &Column)| {
        let of_branches = || branches.clone().filter_map(|branch| branch.get(position));
        let plain = || ResultType::of(column.column_type.clone(), column.nullable);
        let united = united(of_branches().map(describe::of_meta), CONNECTION_COLLATION);
        let mut meta = ColumnMeta {
            name: column.name.clone(),
            column_type: ColumnType::Date,
            collation: Collation::Binary,
            not_null: true,
            decimals: 0,
            display_chars: 0,
            org_name: String::new(),
            org_table: String::new(),
            table: String::new(),
            database: String::new(),
            traits: ColumnTraits { is_kept, ..ColumnTraits::default() },
        };
        describe::put(&mut meta, united.unwrap_or_else(plain));
        if is_kept && (meta.column_type.has_characters() || meta.column_type.is_binary()) {
            meta.decimals = 0;
        }
        meta
    };
    columns.iter().enumerate().map(column).collect()
}

/// [`union_metas`] of plans.
pub(super) fn metas_of_branches(
    branches: &[QueryPlan],
    columns: &[Column],
    is_kept: bool,
) -> Arc<[ColumnMeta]> {
    union_metas(branches.iter().map(|branch| &*branch.columns), columns, is_kept).into()
}

/// True if rows are compared with each other: they are kept then.
pub(super) fn keeps_rows(operations: &[SetOperation]) -> bool {
    operations.iter().any(|operation| operation.operator != SetOperator::Union || !operation.all)
}

/// The columns of a union. Each has a type that can hold the values of every branch.
///
/// # Errors
/// 1222.
pub(super) fn columns_of_branches(branches: &[QueryPlan]) -> Result<Vec<Column>, SqlError> {
    let metas: Vec<&[ColumnMeta]> = branches.iter().map(|branch| &*branch.columns).collect();
    match metas.iter().any(|other| other.len() != metas[0].len()) {
        true => Err(SqlError::column_counts_differ()),
        false => Ok(union_columns(&metas)),
    }
}

/// As many columns as the first branch has, described by those of all branches.
pub(crate) fn union_columns(branches: &[&[ColumnMeta]]) -> Vec<Column> {
    let column = |(position, first): (usize, &ColumnMeta)| {
        let metas = branches.iter().filter_map(|branch| branch.get(position));
        let mut column_type: Option<ColumnType> = None;
        for meta in metas.clone() {
            if meta.column_type == (ColumnType::Binary { bytes: 0 }) {
                continue;
            }
            column_type = Some(match column_type {
                None => seen_type(&meta.column_type),
                Some(before) => wider(&before, &seen_type(&meta.column_type)),
            });
        }
        Column {
            name: first.name.clone(),
            column_type: column_type.unwrap_or(ColumnType::Binary { bytes: 0 }),
            nullable: metas.clone().any(|meta| !meta.not_null),
        }
    };
    branches.first().map_or(&[][..], |first| first).iter().enumerate().map(column).collect()
}

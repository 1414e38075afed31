//! ON DUPLICATE KEY UPDATE: the names in its expressions. `VALUES(c)` is a column of the row that could not
//! be inserted; with `AS new(a, b)` the row has a name, and may have names for its columns. Other names are
//! columns of the row that exists, or of the tables that the SELECT reads.
//!
//! If an expression names a column of the SELECT's tables, the column is added to the end of the SELECT's
//! list, behind the inserted columns. The expression then reads it from there.

use super::assign::{Assignments, Literals, is_default};
use crate::accounts::access::TableNeed;
use crate::expr::{Function, functions};
use crate::plan::from::{result_scope, single_scope};
use crate::plan::object_name;
use crate::plan::plan::QueryPlan;
use crate::plan::query::Planner;
use crate::plan::scope::{Scope, written};
use crate::session::Target;
use crate::{ErrorKind, SqlError};
use sqlparser::ast;
use std::cell::RefCell;
use std::rc::Rc;

/// The names under which the expressions see two more tables: the row that could not be inserted, and the
/// SELECT's row. No real table can have these names.
const NEW_ROW: &str = "values ";
const SOURCE_ROW: &str = "source ";

/// The names of the row that could not be inserted.
pub(super) struct NewRow {
    name: String,
    /// Positions in the target, with names for the columns there.
    columns: Vec<(usize, String)>,
}

impl NewRow {
    /// Of `INSERT INTO t (columns) ... AS alias`.
    ///
    /// # Errors
    /// 1353 for a list of another length, 1060 for a name that comes twice.
    pub(super) fn new(insert: &ast::Insert, target: &Target) -> Result<NewRow, SqlError> {
        let Some(ast::InsertAliases { row_alias, col_aliases }) = &insert.insert_alias else {
            return Ok(NewRow { name: NEW_ROW.to_owned(), columns: vec![] });
        };
        let last = |name: &ast::ObjectName| object_name(name).pop().unwrap_or_default();
        let aliases = col_aliases.as_deref().unwrap_or_default();
        let mut names: Vec<String> = insert.columns.iter().map(last).collect();
        for assignment in &insert.assignments {
            if let ast::AssignmentTarget::ColumnName(name) = &assignment.target {
                names.push(last(name));
            }
        }
        let positions: Vec<usize> = match names.is_empty() {
            true => (0..target.def.columns.len()).collect(),
            // What is unknown is an error of the statement in any case.
            false => names.iter().filter_map(|name| target.column(name)).collect(),
        };
        if !aliases.is_empty() && aliases.len() != positions.len() {
            let text = "Incorrect column name list of the row alias";
            return Err(SqlError::new(ErrorKind::WrongColumnListOfView, text));
        }
        let columns: Vec<(usize, String)> =
            positions.into_iter().zip(aliases.iter().map(|alias| alias.value.clone())).collect();
        for (at, (_, name)) in columns.iter().enumerate() {
            if columns[..at].iter().any(|(_, other)| other.eq_ignore_ascii_case(name)) {
                let text = format!("Duplicate column name '{name}'");
                return Err(SqlError::new(ErrorKind::DuplicateColumn, text));
            }
        }
        Ok(NewRow { name: last(row_alias), columns })
    }

    /// The scope of the row.
    fn scope(&self, database: &str, target: &Target) -> Result<Scope, SqlError> {
        let mut scope = single_scope(database, &self.name, &target.table)?;
        scope.tables[0].by_database = false;
        for (position, name) in &self.columns {
            scope.tables[0].columns[*position].name.clone_from(name);
        }
        Ok(scope)
    }
}

/// The assignments, while the statement is planned.
pub(super) struct OnDuplicateUpdate {
    database: String,
    table: String,
    new_row: NewRow,
    assignments: Vec<ast::Assignment>,
    /// The columns that the SELECT has to add.
    wanted: Vec<ast::Expr>,
}

impl OnDuplicateUpdate {
    /// `source` is the FROM of the SELECT. It is given only if the SELECT's rows are rows of those tables.
    ///
    /// # Errors
    /// 1052 for an ambiguous name.
    pub(super) fn new(
        assignments: &[ast::Assignment],
        database: &str,
        table: &str,
        target: &Target,
        (new_row, source): (NewRow, Scope),
    ) -> Result<OnDuplicateUpdate, SqlError> {
        let mut scope = single_scope(database, table, &target.table)?;
        scope.append(source);
        let mut names = Names { table, target, new_row: &new_row, scope, wanted: Vec::new() };
        let mut qualified = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let mut value = assignment.value.clone();
            names.qualify(&mut value)?;
            qualified.push(ast::Assignment { target: assignment.target.clone(), value });
        }
        let wanted = names.wanted;
        let (database, table) = (database.to_owned(), table.to_owned());
        Ok(OnDuplicateUpdate { database, table, new_row, assignments: qualified, wanted })
    }

    /// How many columns of the SELECT's row are not inserted.
    pub(super) fn not_inserted(&self) -> usize {
        self.wanted.len()
    }

    /// The SELECT, with the columns that the expressions need.
    pub(super) fn extend(&self, query: &ast::Query) -> ast::Query {
        let mut query = query.clone();
        if let ast::SetExpr::Select(select) = &mut *query.body {
            let item = |(number, expr): (usize, &ast::Expr)| ast::SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: ast::Ident::new(wanted_name(number)),
            };
            select.projection.extend(self.wanted.iter().enumerate().map(item));
        }
        query
    }

    /// Binds the expressions to the old row, the new row and the row of the extended SELECT. `need` gets the
    /// columns of the old row that they read and assign to.
    ///
    /// # Errors
    /// As [`Assignments::new`].
    pub(super) fn bind(
        &self,
        target: &Target,
        source: Option<&QueryPlan>,
        planner: &Planner<'_>,
        need: Rc<RefCell<TableNeed>>,
    ) -> Result<Assignments, SqlError> {
        let mut scope = single_scope(&self.database, &self.table, &target.table)?;
        scope.tables[0].need = Some(need);
        let columns_of_target = scope.shown.len();
        scope.append(self.new_row.scope(&self.database, target)?);
        source.into_iter().for_each(|query| scope.push(result_scope(query, SOURCE_ROW)));
        // A bare name in a subquery that is none of its own columns means one of the target.
        scope.shown.truncate(columns_of_target);
        let columns = &target.def.columns;
        Assignments::new(&self.assignments, "SET", &scope, columns, Literals::of(planner), Some(planner))
    }
}

fn wanted_name(number: usize) -> String {
    format!("{SOURCE_ROW}{number}")
}

/// True if each row of the SELECT is a joined row of its tables: there is no grouping.
pub(super) fn has_rows_of_tables(select: &ast::Select) -> bool {
    let ungrouped = matches!(&select.group_by, ast::GroupByExpr::Expressions(by, modifiers) if by.is_empty() && modifiers.is_empty());
    ungrouped && select.distinct.is_none() && select.having.is_none()
}

struct Names<'a> {
    /// The target's name.
    table: &'a str,
    target: &'a Target,
    new_row: &'a NewRow,
    /// The target, followed by the tables of the source.
    scope: Scope,
    wanted: Vec<ast::Expr>,
}

impl Names<'_> {
    /// Rewrites a column's name so that it keeps its meaning beside the new row and the source's row.
    fn name(&mut self, path: &[ast::Ident]) -> Result<ast::Expr, SqlError> {
        let NewRow { name: new_row, columns } = self.new_row;
        match path {
            [row, _] if row.value == *new_row => return Ok(ast::Expr::CompoundIdentifier(path.to_vec())),
            [column] if columns.iter().any(|(_, name)| name.eq_ignore_ascii_case(&column.value)) => {
                let path = vec![ast::Ident::new(new_row.clone()), column.clone()];
                return Ok(ast::Expr::CompoundIdentifier(path));
            }
            _ => {}
        }
        let row = match self.scope.place_of(path, "UPDATE")? {
            None => return Err(SqlError::unknown_column(&written(path), "UPDATE")),
            Some((part, _)) if part > 0 => {
                let column = match path {
                    [column] => ast::Expr::Identifier(column.clone()),
                    path => ast::Expr::CompoundIdentifier(path.to_vec()),
                };
                let known = self.wanted.iter().position(|wanted| *wanted == column);
                let number = known.unwrap_or(self.wanted.len());
                if known.is_none() {
                    self.wanted.push(column);
                }
                vec![ast::Ident::new(SOURCE_ROW), ast::Ident::new(wanted_name(number))]
            }
            _ => match path {
                [column] => vec![ast::Ident::new(self.table), column.clone()],
                path => path.to_vec(),
            },
        };
        Ok(ast::Expr::CompoundIdentifier(row))
    }

    fn qualify(&mut self, expr: &mut ast::Expr) -> Result<(), SqlError> {
        match expr {
            ast::Expr::Identifier(column) if !is_default(&ast::Expr::Identifier(column.clone())) => {
                *expr = self.name(std::slice::from_ref(column))?;
            }
            ast::Expr::CompoundIdentifier(path) => *expr = self.name(path)?,
            ast::Expr::Function(function)
                if Function::lookup(&function.name.to_string()) == Some(&functions::syntax::VALUES)
                    || function.name.to_string().eq_ignore_ascii_case("value") =>
            {
                if let ast::FunctionArguments::List(list) = &function.args
                    && let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(column))] =
                        list.args.as_slice()
                    && let ast::Expr::Identifier(column) = column
                {
                    let NewRow { name, columns } = self.new_row;
                    let position = self.target.column(&column.value);
                    let alias = columns.iter().find(|(at, _)| Some(*at) == position);
                    let column = alias.map_or_else(|| column.clone(), |(_, name)| ast::Ident::new(name));
                    *expr = ast::Expr::CompoundIdentifier(vec![ast::Ident::new(name.clone()), column]);
                }
            }
            ast::Expr::Function(function) => {
                // The first argument of these is a unit.
                let units = [&functions::time::TIMESTAMP_DIFF, &functions::time::TIMESTAMP_ADD];
                let function_of = Function::lookup(&function.name.to_string());
                let begin = usize::from(units.into_iter().any(|unit| function_of == Some(unit)));
                if let ast::FunctionArguments::List(list) = &mut function.args {
                    for argument in list.args.iter_mut().skip(begin) {
                        if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(inner)) = argument {
                            self.qualify(inner)?;
                        }
                    }
                }
            }
            ast::Expr::BinaryOp { left, right, .. } => {
                self.qualify(left)?;
                self.qualify(right)?;
            }
            ast::Expr::UnaryOp { expr: inner, .. }
            | ast::Expr::InSubquery { expr: inner, .. }
            | ast::Expr::Nested(inner)
            | ast::Expr::IsNull(inner)
            | ast::Expr::IsNotNull(inner)
            | ast::Expr::Cast { expr: inner, .. } => self.qualify(inner)?,
            ast::Expr::Case { operand, conditions, else_result, .. } => {
                let operands = operand.iter_mut().map(|operand| &mut **operand);
                let conditions =
                    conditions.iter_mut().flat_map(|when| [&mut when.condition, &mut when.result]);
                let otherwise = else_result.iter_mut().map(|otherwise| &mut **otherwise);
                for inner in operands.chain(conditions).chain(otherwise) {
                    self.qualify(inner)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

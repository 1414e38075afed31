//! WITH: common table expressions.
//!
//! A definition is planned when FROM names it first, and its rows are computed once a statement, however
//! often it is named. Inside of WITH RECURSIVE a definition may name itself. The parts of its UNION that do
//! so are its *members*. The others are its *anchors*: their rows come first, and its columns have their
//! types.

use super::from::{From, columns_scope, distinct_names, result_scope};
use super::plan::*;
use super::query::Planner;
use super::scope::ScopeTable;
use super::set_operations::{columns_of_branches, metas_of_branches, of_columns};
use crate::expr::value_keys::ValueKeys;
use crate::{ColumnMeta, ErrorKind, SqlError};
use sqlparser::ast;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// How many queries may lie inside one another: threads have the stack for so many.
const HEIGHT_MAX: usize = 128;

/// The definitions that a planner knows.
#[derive(Default)]
pub(super) struct With {
    /// Those that FROM can name at this place. Of several with one name the last is meant.
    visible: RefCell<Vec<Rc<Definition>>>,
    /// Those whose planning has begun, in this order.
    begun: RefCell<Vec<Rc<Definition>>>,
    /// Those that are being planned, the innermost last.
    open: RefCell<Vec<Rc<Definition>>>,
    /// How many recursive definitions there have been.
    recursions: Cell<usize>,
    /// How many subqueries of expressions are around the place that is being planned.
    pub(super) subqueries: Cell<usize>,
}

/// One definition of a WITH clause.
struct Definition {
    name: String,
    /// The names of its columns, if they are listed.
    columns: Vec<String>,
    query: ast::Query,
    /// How many definitions its query can name: those before it, and with RECURSIVE all of its clause.
    sees: usize,
    is_recursive: bool,
    state: RefCell<State>,
    /// How many queries were around it when its planning began.
    base: Cell<usize>,
    /// How many queries lie inside one another in it, those of other definitions too.
    height: Cell<usize>,
}

#[derive(Clone)]
enum State {
    Unplanned,
    /// The query is being planned and cannot name itself.
    Plain,
    /// The parts of the query are tried one by one. `true` once the current one has named the definition.
    Tried(bool),
    /// The members are being planned.
    Members {
        number: usize,
        columns: Arc<[ColumnMeta]>,
        subqueries: usize,
        named: usize,
    },
    Planned(Arc<QueryPlan>),
}

/// How much a planner has noted until now.
struct Mark {
    subqueries: usize,
    dependents: usize,
    dependencies: usize,
    needs: usize,
    begun: usize,
    depth: usize,
}

impl Planner<'_> {
    /// Plans a query with its WITH clause.
    pub(super) fn with(&self, with: &ast::With, query: &ast::Query) -> Result<QueryPlan, SqlError> {
        let before = self.with.visible.borrow().len();
        let plan = self.see(with).and_then(|()| self.plain(query)).and_then(|plan| {
            self.check_unused(before)?;
            Ok(plan)
        });
        self.with.visible.borrow_mut().truncate(before);
        plan
    }

    /// Lets FROM name the definitions of a clause.
    ///
    /// # Errors
    /// 4004.
    pub(super) fn see(&self, with: &ast::With) -> Result<(), SqlError> {
        let visible = &mut *self.with.visible.borrow_mut();
        let (before, count) = (visible.len(), with.cte_tables.len());
        for (at, table) in with.cte_tables.iter().enumerate() {
            let name = &table.alias.name.value;
            if visible[before..].iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
                let text = format!("Duplicate query name `{name}` in WITH clause");
                return Err(SqlError::new(ErrorKind::DuplicateQueryName, text));
            }
            visible.push(Rc::new(Definition {
                name: name.clone(),
                columns: table.alias.columns.iter().map(|column| column.name.value.clone()).collect(),
                query: (*table.query).clone(),
                sees: before + if with.recursive { count } else { at },
                is_recursive: with.recursive,
                state: RefCell::new(State::Unplanned),
                base: Cell::new(0),
                height: Cell::new(0),
            }));
        }
        Ok(())
    }

    /// Plans the definitions that have no use, and forgets the plans: their names must exist.
    fn check_unused(&self, from: usize) -> Result<(), SqlError> {
        let definitions: Vec<Rc<Definition>> = self.with.visible.borrow()[from..].to_vec();
        for definition in definitions {
            if matches!(&*definition.state.borrow(), State::Unplanned) {
                let (subqueries, dependents) =
                    (self.subqueries.borrow().len(), self.dependents.borrow().len());
                self.define(&definition)?;
                self.subqueries.borrow_mut().truncate(subqueries);
                self.dependents.borrow_mut().truncate(dependents);
            }
        }
        Ok(())
    }

    /// What a name in FROM means if a definition has it. `alias` is the name that columns are found under.
    pub(super) fn defined(&self, name: &str, alias: &str) -> Result<Option<(Source, ScopeTable)>, SqlError> {
        let found = {
            let visible = self.with.visible.borrow();
            visible.iter().rev().find(|definition| definition.name.eq_ignore_ascii_case(name)).cloned()
        };
        let Some(definition) = found else { return Ok(None) };
        let state = definition.state.borrow().clone();
        let plan = match state {
            State::Planned(plan) => plan,
            State::Unplanned => self.define(&definition)?,
            State::Plain | State::Tried(_) | State::Members { .. } if !self.is_innermost(&definition) => {
                return Err(SqlError::not_supported("mutual recursion of WITH elements"));
            }
            State::Plain => return Err(SqlError::internal("a definition that names itself")),
            State::Tried(_) => {
                definition.state.replace(State::Tried(true));
                return Err(SqlError::internal("a definition that has no columns yet"));
            }
            State::Members { number, columns, subqueries, named } => {
                if named > 0 || self.with.subqueries.get() > subqueries {
                    return Err(violation(&definition.name));
                }
                let named = State::Members { number, columns: columns.clone(), subqueries, named: 1 };
                definition.state.replace(named);
                let mut scope = columns_scope(&columns, &[], alias);
                definition.name_columns(&mut scope)?;
                return Ok(Some((Source::Working(number), scope)));
            }
        };
        self.note_height(definition.height.get())?;
        let mut scope = result_scope(&plan, alias);
        definition.name_columns(&mut scope)?;
        Ok(Some((Source::Shared(plan), scope)))
    }

    /// Notes that `more` queries lie inside one another in the query that is being planned. Each is a level
    /// of recursion when the plan is made and when it runs, and the text of definitions does not show how
    /// many there are.
    ///
    /// # Errors
    /// 1436 if there are too many.
    pub(super) fn note_height(&self, more: usize) -> Result<(), SqlError> {
        let height = *self.depth.borrow() + more;
        if height > HEIGHT_MAX {
            let text = "Thread stack overrun: the statement has too many queries inside one another";
            return Err(SqlError::new(ErrorKind::StackOverrun, text));
        }
        if let Some(open) = self.with.open.borrow().last() {
            let inside = height.saturating_sub(open.base.get());
            open.height.set(open.height.get().max(inside));
        }
        Ok(())
    }

    /// Refuses a FROM in which a definition that is being planned is on the inner side of an outer join: rows
    /// that come later could take back a row of NULLs.
    ///
    /// # Errors
    /// 4008.
    pub(super) fn check_recursion(&self, from: &From) -> Result<(), SqlError> {
        let open = self.with.open.borrow();
        let Some(definition) = open.last() else { return Ok(()) };
        let mut inputs = from.inputs.iter().zip(&from.nest_of);
        match inputs.any(|(input, nest)| matches!(input.source, Source::Working(_)) && nest.is_some()) {
            true => Err(violation(&definition.name)),
            false => Ok(()),
        }
    }

    fn is_innermost(&self, definition: &Rc<Definition>) -> bool {
        self.with.open.borrow().last().is_some_and(|open| Rc::ptr_eq(open, definition))
    }

    /// Plans a definition.
    fn define(&self, definition: &Rc<Definition>) -> Result<Arc<QueryPlan>, SqlError> {
        self.with.begun.borrow_mut().push(definition.clone());
        self.with.open.borrow_mut().push(definition.clone());
        definition.base.set(*self.depth.borrow());
        // Its parts are queries inside of the one that names it.
        *self.depth.borrow_mut() += 1;
        let seen = self.with.visible.borrow()[..definition.sees].to_vec();
        let visible = self.with.visible.replace(seen);
        let around = self.around.take();
        let plan = match definition.is_recursive {
            true => self.perhaps_recursive(definition),
            false => {
                definition.state.replace(State::Plain);
                self.query(&definition.query)
            }
        };
        *self.depth.borrow_mut() = definition.base.get();
        self.around.replace(around);
        self.with.visible.replace(visible);
        self.with.open.borrow_mut().pop();
        let plan = Arc::new(plan?);
        let mut scope = result_scope(&plan, &definition.name);
        definition.name_columns(&mut scope)?;
        definition.state.replace(State::Planned(plan.clone()));
        Ok(plan)
    }

    /// Plans a definition of WITH RECURSIVE, which may name itself or not.
    fn perhaps_recursive(&self, definition: &Definition) -> Result<QueryPlan, SqlError> {
        let mut parts = Vec::new();
        let mut distinct = Vec::new();
        collect_parts(&definition.query.body, &mut parts, &mut distinct);
        let begin = self.mark();
        let (mut anchors, mut members) = (Vec::new(), Vec::new());
        for part in parts {
            let mark = self.mark();
            definition.state.replace(State::Tried(false));
            let plan = self.branch(part);
            let named = matches!(&*definition.state.borrow(), State::Tried(true));
            match plan {
                Ok(plan) => anchors.push(plan),
                Err(_) if named => {
                    self.forget(&mark);
                    members.push(part);
                }
                Err(error) => return Err(error),
            }
        }
        if members.is_empty() {
            self.forget(&begin);
            definition.state.replace(State::Plain);
            return self.query(&definition.query);
        }
        if members.iter().any(|member| matches!(member, ast::SetExpr::SetOperation { .. })) {
            return Err(SqlError::not_supported("INTERSECT and EXCEPT in recursive CTE spec"));
        }
        if anchors.is_empty() {
            let text = format!("No anchors for recursive WITH element '{}'", definition.name);
            return Err(SqlError::new(ErrorKind::RecursionWithoutAnchor, text));
        }
        let query = &definition.query;
        if query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
            return Err(SqlError::not_supported("global ORDER_BY/LIMIT in recursive CTE spec"));
        }
        if distinct.iter().any(|other| *other != distinct[0]) {
            let what = "mix of ALL and DISTINCT UNION operations in recursive CTE spec";
            return Err(SqlError::not_supported(what));
        }
        self.recursive(definition, anchors, &members, distinct.first() == Some(&true))
    }

    fn recursive(
        &self,
        definition: &Definition,
        anchors: Vec<QueryPlan>,
        members: &[&ast::SetExpr],
        distinct: bool,
    ) -> Result<QueryPlan, SqlError> {
        let mut columns = columns_of_branches(&anchors)?;
        columns.iter_mut().for_each(|column| column.nullable = true);
        let mut metas = metas_of_branches(&anchors, &columns, true).to_vec();
        metas.iter_mut().for_each(|meta| meta.not_null = false);
        let metas: Arc<[ColumnMeta]> = metas.into();
        let number = self.with.recursions.get();
        self.with.recursions.set(number + 1);
        // The members read the columns under the names that the definition lists.
        let mut scope = columns_scope(&metas, &anchors[0].names, &definition.name);
        definition.name_columns(&mut scope)?;
        for (column, named) in columns.iter_mut().zip(&scope.columns) {
            column.name.clone_from(&named.name);
        }
        let mut planned = Vec::new();
        for member in members {
            let (columns, subqueries) = (metas.clone(), self.with.subqueries.get());
            definition.state.replace(State::Members { number, columns, subqueries, named: 0 });
            let plan = self.branch(member)?;
            if plan.columns.len() != columns_of(&anchors) {
                return Err(SqlError::column_counts_differ());
            }
            if is_grouped(&plan, number) {
                return Err(violation(&definition.name));
            }
            planned.push(plan);
        }
        let names = anchors[0].names.clone();
        let keys = distinct.then(|| ValueKeys::new(columns.iter().cloned()));
        let plan = RecursivePlan { number, anchors, members: planned, columns, keys };
        Ok(of_columns(metas, names, Body::Recursive(Box::new(plan))))
    }

    fn mark(&self) -> Mark {
        Mark {
            subqueries: self.subqueries.borrow().len(),
            dependents: self.dependents.borrow().len(),
            dependencies: self.dependencies.borrow().len(),
            needs: self.needs.borrow().len(),
            begun: self.with.begun.borrow().len(),
            depth: *self.depth.borrow(),
        }
    }

    /// Forgets what was planned since the mark was set.
    fn forget(&self, mark: &Mark) {
        self.subqueries.borrow_mut().truncate(mark.subqueries);
        self.dependents.borrow_mut().truncate(mark.dependents);
        self.dependencies.borrow_mut().truncate(mark.dependencies);
        self.needs.borrow_mut().truncate(mark.needs);
        for definition in self.with.begun.borrow_mut().drain(mark.begun..) {
            definition.state.replace(State::Unplanned);
        }
        *self.depth.borrow_mut() = mark.depth;
    }
}

impl Definition {
    /// Gives the columns the names that the definition lists.
    ///
    /// # Errors
    /// 4002, 1060.
    fn name_columns(&self, scope: &mut ScopeTable) -> Result<(), SqlError> {
        if !self.columns.is_empty() {
            if self.columns.len() != scope.columns.len() {
                let text = "WITH column list and SELECT field list have different column counts";
                return Err(SqlError::new(ErrorKind::WrongColumnListOfWith, text));
            }
            for (column, name) in scope.columns.iter_mut().zip(&self.columns) {
                column.name.clone_from(name);
                column.template = None;
                column.meta.name.clone_from(name);
            }
        }
        distinct_names(scope)
    }
}

fn columns_of(anchors: &[QueryPlan]) -> usize {
    anchors.first().map_or(0, |anchor| anchor.columns.len())
}

/// The parts that UNIONs join, and for each UNION whether it is one of distinct rows.
fn collect_parts<'q>(body: &'q ast::SetExpr, parts: &mut Vec<&'q ast::SetExpr>, distinct: &mut Vec<bool>) {
    match body {
        ast::SetExpr::SetOperation { op: ast::SetOperator::Union, set_quantifier, left, right } => {
            collect_parts(left, parts, distinct);
            collect_parts(right, parts, distinct);
            distinct.push(*set_quantifier != ast::SetQuantifier::All);
        }
        part => parts.push(part),
    }
}

/// True for a member that makes one row of several rows of the definition.
fn is_grouped(member: &QueryPlan, number: usize) -> bool {
    let Body::Select(select) = &member.body else { return false };
    let mut inputs = select.inputs.iter();
    inputs.any(|input| matches!(input.source, Source::Working(of) if of == number))
        && select.group.as_ref().is_some_and(|group| !group.aggregates.is_empty())
}

fn violation(name: &str) -> SqlError {
    let text = format!("Restrictions imposed on recursive definitions are violated for table '{name}'");
    SqlError::new(ErrorKind::RecursionViolatesStandard, text)
}

//! FROM: which tables there are, and under which conditions they are joined.

use super::access::Hints;
use super::bind::{Binder, SlotInfo};
use super::names::Name;
use super::object_name;
use super::plan::{Dependency, Input, QueryPlan, Source};
use super::query::Planner;
use super::scope::{Scope, ScopeColumn, ScopeTable};
use super::walk::{TABLES_MAX, conjuncts};
use crate::expr::{ColumnRef, Comparison, Compiled, Expr};
use crate::{ColumnMeta, SqlError, infoschema};
use engine::{Table, TableDef};
use sqlparser::ast;
use std::sync::Arc;
use types::{Collation, Column};

/// A FROM with its names resolved.
#[derive(Debug, Default)]
pub(super) struct From {
    pub(super) scope: Scope,
    pub(super) inputs: Vec<Input>,
    pub(super) hints: Vec<Hints>,
    /// How each table is joined to those before it.
    pub(super) joins: Vec<Join>,
    /// STRAIGHT_JOIN: tables are read as they are written.
    pub(super) straight: bool,
}

#[derive(Debug, Default)]
pub(super) struct Join {
    pub(super) left: bool,
    /// ON, split at its ANDs.
    pub(super) on: Vec<Expr>,
}

impl Planner<'_> {
    /// What the names of a FROM mean.
    ///
    /// # Errors
    /// 1146 and its like.
    pub fn scope_of_from(self, from: &[ast::TableWithJoins]) -> Result<Scope, SqlError> {
        Ok(self.from(from)?.scope)
    }

    pub(super) fn from(&self, from: &[ast::TableWithJoins]) -> Result<From, SqlError> {
        let mut out = From::default();
        for item in from {
            self.factor(&item.relation, Join::default(), &mut out)?;
            for join in &item.joins {
                self.join(join, &mut out)?;
            }
        }
        Ok(out)
    }

    fn join(&self, join: &ast::Join, out: &mut From) -> Result<(), SqlError> {
        use ast::JoinOperator as Operator;
        let (left, constraint) = match &join.join_operator {
            Operator::Join(constraint) | Operator::Inner(constraint) | Operator::CrossJoin(constraint) => {
                (false, constraint)
            }
            Operator::StraightJoin(constraint) => {
                out.straight = true;
                (false, constraint)
            }
            Operator::Left(constraint) | Operator::LeftOuter(constraint) => (true, constraint),
            Operator::Right(constraint) | Operator::RightOuter(constraint) => {
                return self.right_join(&join.relation, constraint, out);
            }
            other => return Err(SqlError::not_supported(&format!("the join {other:?}"))),
        };
        let before = out.inputs.len();
        self.factor(&join.relation, Join { left, on: vec![] }, out)?;
        if left && out.inputs.len() > before + 1 {
            return Err(SqlError::not_supported("LEFT JOIN of several tables in parentheses"));
        }
        let on = self.constraint(constraint, before, out)?;
        if let Some(join) = out.joins.last_mut() {
            join.on.extend(on);
        }
        Ok(())
    }

    /// `a RIGHT JOIN b` is `b LEFT JOIN a`; done for a single table to the left.
    fn right_join(
        &self,
        relation: &ast::TableFactor,
        constraint: &ast::JoinConstraint,
        out: &mut From,
    ) -> Result<(), SqlError> {
        if out.inputs.len() != 1 {
            return Err(SqlError::not_supported("RIGHT JOIN behind other joins"));
        }
        let mut swapped = From::default();
        self.factor(relation, Join::default(), &mut swapped)?;
        if swapped.inputs.len() != 1 {
            return Err(SqlError::not_supported("RIGHT JOIN of several tables in parentheses"));
        }
        let mut table = out.scope.tables.remove(0);
        table.nullable = true;
        swapped.scope.tables.push(table);
        swapped.inputs.append(&mut out.inputs);
        swapped.hints.append(&mut out.hints);
        swapped.joins.push(Join { left: true, on: vec![] });
        *out = swapped;
        let on = self.constraint(constraint, 1, out)?;
        out.joins[1].on = on;
        Ok(())
    }

    /// The conditions of ON, USING or NATURAL; the joined tables start at part `before`.
    fn constraint(
        &self,
        constraint: &ast::JoinConstraint,
        before: usize,
        out: &mut From,
    ) -> Result<Vec<Expr>, SqlError> {
        let names: Vec<String> = match constraint {
            ast::JoinConstraint::None => return Ok(vec![]),
            ast::JoinConstraint::On(condition) => {
                let mut binder = Binder::new(&out.scope, self.slots, "on clause");
                binder.subqueries = Some(self);
                return Ok(conjuncts(binder.bind(condition)?));
            }
            ast::JoinConstraint::Using(names) => {
                names.iter().map(|name| object_name(name).pop().unwrap_or_default()).collect()
            }
            ast::JoinConstraint::Natural => {
                let (left, right) = out.scope.tables.split_at(before);
                let has = |name: &str| {
                    left.iter()
                        .flat_map(|table| &table.columns)
                        .any(|column| column.name.eq_ignore_ascii_case(name))
                };
                right
                    .iter()
                    .flat_map(|table| &table.columns)
                    .filter(|column| has(&column.name))
                    .map(|column| column.name.clone())
                    .collect()
            }
        };
        let mut on = Vec::new();
        for name in names {
            let find = |parts: std::ops::Range<usize>| -> Result<(usize, usize), SqlError> {
                let named = |column: &ScopeColumn| !column.merged && column.name.eq_ignore_ascii_case(&name);
                for part in parts {
                    if let Some(column) = out.scope.tables[part].columns.iter().position(named) {
                        return Ok((part, column));
                    }
                }
                Err(SqlError::unknown_column(&name, "from clause"))
            };
            let left = find(0..before)?;
            let right = find(before..out.scope.tables.len())?;
            on.push(Expr::Compare {
                op: Comparison::Equal,
                left: Box::new(out.scope.column(left.0, left.1)),
                right: Box::new(out.scope.column(right.0, right.1)),
            });
            out.scope.tables[right.0].columns[right.1].merged = true;
        }
        Ok(on)
    }

    fn factor(&self, factor: &ast::TableFactor, join: Join, out: &mut From) -> Result<(), SqlError> {
        if out.inputs.len() >= TABLES_MAX {
            let text = format!("Too many tables; Latchwork can only use {TABLES_MAX} tables in a join");
            return Err(SqlError::new(1116, b"HY000", text));
        }
        match factor {
            ast::TableFactor::Table { name, alias, args: None, index_hints, partitions, .. } => {
                if !partitions.is_empty() {
                    return Err(SqlError::new(
                        1747,
                        b"HY000",
                        "PARTITION () clause on non partitioned table",
                    ));
                }
                let path = object_name(name);
                let (database, table) = match path.as_slice() {
                    // DUAL is a FROM without tables.
                    [table] if table.eq_ignore_ascii_case("dual") && alias.is_none() => return Ok(()),
                    [table] => (self.default_database()?.to_string(), table.clone()),
                    [database, table] => (database.clone(), table.clone()),
                    _ => return Err(SqlError::syntax(&name.to_string(), 1)),
                };
                let name = alias.as_ref().map_or(table.as_str(), |alias| &alias.name.value);
                let (source, mut scope) = self.table(&database, &table, name)?;
                scope.nullable = join.left;
                if let Some(alias) = alias {
                    scope.name.clone_from(&alias.name.value);
                    scope.by_database = false;
                }
                self.add(source, scope, hints(index_hints), join, out)
            }
            ast::TableFactor::Derived { lateral: false, subquery, alias, .. } => {
                let Some(alias) = alias else {
                    let text = "Every derived table must have its own alias";
                    return Err(SqlError::new(1248, b"42000", text));
                };
                let plan = self.apart(subquery)?;
                let mut scope = result_scope(&plan, &alias.name.value);
                if !alias.columns.is_empty() {
                    if alias.columns.len() != scope.columns.len() {
                        let text = "Incorrect column name list of a derived table";
                        return Err(SqlError::new(1353, b"HY000", text));
                    }
                    for (column, name) in scope.columns.iter_mut().zip(&alias.columns) {
                        column.name.clone_from(&name.name.value);
                    }
                }
                scope.nullable = join.left;
                self.add(Source::Derived(Box::new(plan)), scope, Hints::default(), join, out)
            }
            ast::TableFactor::NestedJoin { table_with_joins, alias: None } => {
                if join.left {
                    return Err(SqlError::not_supported("LEFT JOIN of several tables in parentheses"));
                }
                self.factor(&table_with_joins.relation, join, out)?;
                for join in &table_with_joins.joins {
                    self.join(join, out)?;
                }
                Ok(())
            }
            other => Err(SqlError::not_supported(&format!("FROM {other}"))),
        }
    }

    fn add(
        &self,
        source: Source,
        scope: ScopeTable,
        hints: Hints,
        join: Join,
        out: &mut From,
    ) -> Result<(), SqlError> {
        let same = |other: &&ScopeTable| {
            other.name == scope.name
                && (other.database == scope.database || !(other.by_database && scope.by_database))
        };
        if out.scope.tables.iter().any(|other| same(&other)) {
            return Err(SqlError::new(1066, b"42000", format!("Not unique table/alias: '{}'", scope.name)));
        }
        if let Source::Table { def, .. } = &source {
            check_hints(&hints, def, &scope.name)?;
        }
        out.inputs.push(Input { source, name: scope.name.clone() });
        out.scope.tables.push(scope);
        out.hints.push(hints);
        out.joins.push(join);
        Ok(())
    }

    /// A table by its name: what to read, and what names see of it.
    pub(super) fn table(
        &self,
        database: &str,
        name: &str,
        alias: &str,
    ) -> Result<(Source, ScopeTable), SqlError> {
        if let Some(table) = infoschema::find(database, name) {
            let scope = scope_of(database, name, &table.columns, None)?;
            return Ok((Source::Virtual(table), scope));
        }
        let table = self.engine.table(database, name).map_err(|error| match error {
            engine::Error::NoSuchDatabase | engine::Error::NoSuchTable if self.knows_locked_only => {
                SqlError::not_locked(alias)
            }
            engine::Error::NoSuchDatabase => SqlError::unknown_database(database),
            engine::Error::NoSuchTable => SqlError::no_such_table(database, name),
            other => other.into(),
        })?;
        // The version first: a change in between makes the plan stale, not wrong.
        let version = table.version();
        let def = table.def();
        self.dependencies.borrow_mut().push(Dependency {
            table: table.clone(),
            alias: alias.to_owned(),
            version,
        });
        let scope = scope_of(database, name, &def.columns, Some(&def))?;
        Ok((Source::Table { table, def }, scope))
    }
}

/// What names see of a table.
///
/// # Errors
/// As [`Compiled::new`].
pub fn scope_of(
    database: &str,
    name: &str,
    columns: &[Column],
    def: Option<&TableDef>,
) -> Result<ScopeTable, SqlError> {
    let columns = columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let mut meta = meta_of(column, position)?;
            meta.table = name.to_string();
            meta.org_table = name.to_string();
            meta.database = database.to_string();
            if let Some(def) = def {
                flags(&mut meta, def, position);
            }
            Ok(ScopeColumn {
                name: column.name.clone(),
                column_type: column.column_type.clone(),
                nullable: column.nullable,
                meta,
                merged: false,
            })
        })
        .collect::<Result<_, SqlError>>()?;
    Ok(ScopeTable {
        name: name.to_string(),
        database: database.to_string(),
        by_database: true,
        columns,
        nullable: false,
    })
}

fn meta_of(column: &Column, position: usize) -> Result<ColumnMeta, SqlError> {
    let expr = Expr::Column(ColumnRef {
        part: 0,
        column: position,
        column_type: column.column_type.clone(),
        nullable: column.nullable,
        name: column.name.clone(),
    });
    let mut meta = super::select::meta_of(&Compiled::new(&expr, Collation::Utf8mb4GeneralCi)?, &column.name);
    meta.column_type = column.column_type.clone();
    meta.org_name.clone_from(&column.name);
    Ok(meta)
}

fn flags(meta: &mut ColumnMeta, def: &TableDef, position: usize) {
    let is = |part: &types::KeyPart| part.column == position;
    meta.primary_key = def.primary.as_ref().is_some_and(|parts| parts.iter().any(is));
    meta.auto_increment = def.auto_increment == Some(position);
    for index in &def.indexes {
        if index.parts.first().is_some_and(is) {
            meta.unique_key |= index.unique && index.parts.len() == 1;
            meta.multiple_key |= !index.unique || index.parts.len() > 1;
        }
    }
}

pub fn result_scope(plan: &QueryPlan, alias: &str) -> ScopeTable {
    let columns = plan
        .columns
        .iter()
        .enumerate()
        .map(|(position, meta)| {
            let named = plan.names.iter().find(|(at, _)| *at == position);
            let name = match named {
                Some((_, Name::Fixed(name))) => name.clone(),
                _ => meta.name.clone(),
            };
            let mut meta = meta.clone();
            meta.name.clone_from(&name);
            meta.org_table = alias.to_string();
            (meta.primary_key, meta.unique_key, meta.multiple_key, meta.auto_increment) =
                (false, false, false, false);
            ScopeColumn {
                name,
                column_type: meta.column_type.clone(),
                nullable: !meta.not_null,
                meta,
                merged: false,
            }
        })
        .collect();
    ScopeTable {
        name: alias.to_string(),
        database: String::new(),
        by_database: false,
        columns,
        nullable: false,
    }
}

fn hints(hints: &[ast::TableIndexHints]) -> Hints {
    let mut out = Hints::default();
    for hint in hints {
        // FOR ORDER BY and FOR GROUP BY do not say how rows are found.
        if hint.for_clause.is_some() {
            continue;
        }
        let names = hint.index_names.iter().map(|name| name.value.clone());
        match hint.hint_type {
            ast::TableIndexHintType::Ignore => out.ignore.extend(names),
            ast::TableIndexHintType::Use => out.only.get_or_insert_default().extend(names),
            ast::TableIndexHintType::Force => {
                out.force = true;
                out.only.get_or_insert_default().extend(names);
            }
        }
    }
    out
}

fn check_hints(hints: &Hints, def: &TableDef, table: &str) -> Result<(), SqlError> {
    let known = |name: &String| {
        (name.eq_ignore_ascii_case("primary") && def.primary.is_some())
            || def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name))
    };
    for name in hints.only.iter().flatten().chain(&hints.ignore) {
        if !known(name) {
            let text = format!("Key '{name}' doesn't exist in table '{table}'");
            return Err(SqlError::new(1176, b"42000", text));
        }
    }
    Ok(())
}

/// The scope of one table alone: for UPDATE, DELETE and expressions of DDL.
///
/// # Errors
/// As [`Compiled::new`].
pub fn single_scope(database: &str, name: &str, table: &Arc<Table>) -> Result<Scope, SqlError> {
    let def = table.def();
    Ok(Scope { tables: vec![scope_of(database, name, &def.columns, Some(&def))?] })
}

/// Binds an expression that stands alone, without a table and without slots.
///
/// # Errors
/// 1054 for any name in it.
pub fn bind_constant(expr: &ast::Expr) -> Result<Expr, SqlError> {
    let slots: &[SlotInfo] = &[];
    Binder::new(&Scope::default(), slots, "field list").bind(expr)
}

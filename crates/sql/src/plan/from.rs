//! FROM: which tables it names, and under which conditions they are joined.

use super::access::Hints;
use super::bind::Binder;
use super::names::Name;
use super::object_name;
use super::plan::{Dependency, Input, QueryPlan, Source, VirtualTable};
use super::query::Planner;
use super::scope::{PartColumn, Scope, ScopeColumn, ScopeTable};
use super::walk::{Parts, TABLES_MAX, conjuncts};
use crate::accounts::Rights;
use crate::accounts::access::TableNeed;
use crate::definition::check::CheckSpec;
use crate::definition::metadata::TableMetadata;
use crate::definition::{ColumnDefault, ColumnExtras};
use crate::expr::{ColumnRef, Comparison, Compiled, Expr, ResultType};
use crate::names::{INFORMATION_SCHEMA, virtual_database};
use crate::text::LexicalMode;
use crate::text::parse::parse_ast;
use crate::{ColumnMeta, ColumnTraits, ErrorKind, SqlError, ToldAs};
use engine::{Table, TableDef};
use sqlparser::ast;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use types::{Collation, Column, ColumnType};

/// A FROM with its names resolved.
#[derive(Debug, Default)]
pub(super) struct From {
    pub(super) scope: Scope,
    pub(super) inputs: Vec<Input>,
    pub(super) hints: Vec<Hints>,
    /// The conditions of inner joins, which could as well be part of WHERE.
    pub(super) on: Vec<Expr>,
    pub(super) nests: Vec<Nest>,
    /// By part: the innermost nest that it is in.
    pub(super) nest_of: Vec<Option<usize>>,
    /// STRAIGHT_JOIN: tables are read as they are written.
    pub(super) straight: bool,
}

/// The inner side of an outer join: one table or several. If none of its rows match, NULLs replace all of
/// them.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    pub(super) parent: Option<usize>,
    /// All of its tables, including those of nests inside.
    pub(super) parts: Parts,
    /// The tables of the outer side.
    pub(super) outer: Parts,
    /// The ON condition, and those of inner joins inside the nest.
    pub(super) on: Vec<Expr>,
}

/// An operand of a join while FROM is read: tables next to each other.
struct Operand {
    /// Its first table.
    from: usize,
    /// The columns of it that `*` shows.
    shown: Vec<PartColumn>,
    /// The conditions of its inner joins.
    on: Vec<Expr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Inner,
    /// Every row of the left operand is in the result.
    Left,
    Right,
}

impl From {
    /// The set of the parts in a range.
    fn parts(&self, range: std::ops::Range<usize>) -> Parts {
        range.fold(Parts::default(), Parts::with)
    }

    /// Makes the tables of a range a nest.
    fn nest(&mut self, inner: std::ops::Range<usize>, outer: std::ops::Range<usize>, on: Vec<Expr>) {
        let new = self.nests.len();
        let (parts, outer) = (self.parts(inner.clone()), self.parts(outer));
        for nest in self.nests.iter_mut().filter(|nest| nest.parent.is_none() && nest.parts.is_within(parts))
        {
            nest.parent = Some(new);
        }
        for part in inner {
            self.nest_of[part].get_or_insert(new);
            self.scope.tables[part].nullable = true;
        }
        self.nests.push(Nest { parent: None, parts, outer, on });
    }
}

impl Planner<'_> {
    /// What the names of a FROM mean, behind a WITH.
    ///
    /// # Errors
    /// 1146 and its like.
    pub(crate) fn scope_of_from(
        self,
        with: Option<&ast::With>,
        from: &[ast::TableWithJoins],
    ) -> Result<Scope, SqlError> {
        with.map_or(Ok(()), |with| self.see(with))?;
        Ok(self.from(from)?.scope)
    }

    pub(super) fn from(&self, from: &[ast::TableWithJoins]) -> Result<From, SqlError> {
        let mut out = From::default();
        let mut shown = Vec::new();
        for item in from {
            let operand = self.joined(item, &mut out)?;
            shown.extend(operand.shown);
            out.on.extend(operand.on);
        }
        out.scope.shown = shown;
        Ok(out)
    }

    fn joined(&self, item: &ast::TableWithJoins, out: &mut From) -> Result<Operand, SqlError> {
        let mut left = self.factor(&item.relation, out)?;
        for join in &item.joins {
            left = self.join(left, join, out)?;
        }
        Ok(left)
    }

    fn join(&self, left: Operand, join: &ast::Join, out: &mut From) -> Result<Operand, SqlError> {
        use ast::JoinOperator as Operator;
        let side = match &join.join_operator {
            Operator::Left(_) | Operator::LeftOuter(_) => Side::Left,
            Operator::Right(_) | Operator::RightOuter(_) => Side::Right,
            _ => Side::Inner,
        };
        let constraint = match &join.join_operator {
            Operator::StraightJoin(constraint) => {
                out.straight = true;
                constraint
            }
            Operator::Join(constraint)
            | Operator::Inner(constraint)
            | Operator::CrossJoin(constraint)
            | Operator::Left(constraint)
            | Operator::LeftOuter(constraint)
            | Operator::Right(constraint)
            | Operator::RightOuter(constraint) => constraint,
            other => return Err(SqlError::not_supported(&format!("the join {other:?}"))),
        };
        let right = self.factor(&join.relation, out)?;
        let (on, shown) = self.constraint(constraint, &left, &right, side, out)?;
        let all = |one: Vec<Expr>, other: Vec<Expr>| one.into_iter().chain(other).collect::<Vec<Expr>>();
        let (before, behind) = (left.from..right.from, right.from..out.inputs.len());
        let on = match side {
            Side::Inner => all(all(left.on, right.on), on),
            Side::Left => {
                out.nest(behind, before, all(right.on, on));
                left.on
            }
            Side::Right => {
                out.nest(before, behind, all(left.on, on));
                right.on
            }
        };
        Ok(Operand { from: left.from, shown, on })
    }

    /// The conditions of ON, USING or NATURAL, and what `*` shows of the join.
    fn constraint(
        &self,
        constraint: &ast::JoinConstraint,
        left: &Operand,
        right: &Operand,
        side: Side,
        out: &mut From,
    ) -> Result<(Vec<Expr>, Vec<PartColumn>), SqlError> {
        let scope = &mut out.scope;
        let both = || left.shown.iter().chain(&right.shown).copied().collect::<Vec<_>>();
        // A right join is the left join of its operands exchanged. Its columns are exchanged too.
        let (first, second) = if side == Side::Right { (right, left) } else { (left, right) };
        let name =
            |scope: &Scope, (part, column): PartColumn| scope.tables[part].columns[column].name.clone();
        let names: Vec<String> = match constraint {
            ast::JoinConstraint::None if side == Side::Inner => return Ok((vec![], both())),
            ast::JoinConstraint::None => return Err(SqlError::syntax("", 1)),
            ast::JoinConstraint::On(condition) => {
                scope.shown = both();
                scope.from = left.from;
                let mut binder = Binder::new(scope, self.slots, "on clause");
                binder.subqueries = Some(self);
                let on = conjuncts(binder.bind(condition)?);
                scope.from = 0;
                return Ok((on, both()));
            }
            ast::JoinConstraint::Using(names) => {
                names.iter().map(|name| object_name(name).pop().unwrap_or_default()).collect()
            }
            ast::JoinConstraint::Natural => {
                let others: Vec<String> = second.shown.iter().map(|column| name(scope, *column)).collect();
                let is_common = |name: &String| others.iter().any(|other| other.eq_ignore_ascii_case(name));
                let is_visible = |at: &&PartColumn| !scope.tables[at.0].columns[at.1].invisible;
                let visible = first.shown.iter().filter(is_visible);
                let mut names: Vec<String> = visible.map(|column| name(scope, *column)).collect();
                names.retain(is_common);
                names
            }
        };
        let (mut on, mut common, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let (shown, other) = (scope.among(&first.shown, &name)?, scope.among(&second.shown, &name)?);
            on.push(Expr::Compare {
                op: Comparison::Equal,
                left: Box::new(scope.column(shown.0, shown.1)),
                right: Box::new(scope.column(other.0, other.1)),
            });
            common.push(shown);
            hidden.push(other);
        }
        // The common columns first, in the order of the first operand.
        let is_common = |column: &&PartColumn| common.contains(column);
        let shown = first.shown.iter().filter(is_common);
        let rest = first.shown.iter().filter(|column| !common.contains(column));
        let others = second.shown.iter().filter(|column| !hidden.contains(column));
        let shown = shown.chain(rest).chain(others).copied().collect();
        Ok((on, shown))
    }

    fn factor(&self, factor: &ast::TableFactor, out: &mut From) -> Result<Operand, SqlError> {
        if out.inputs.len() >= TABLES_MAX {
            let text = format!("Too many tables; Latchwork can only use {TABLES_MAX} tables in a join");
            return Err(SqlError::new(ErrorKind::TooManyTables, text));
        }
        match factor {
            ast::TableFactor::Table { name, alias, args: None, index_hints, partitions, .. } => {
                if !partitions.is_empty() {
                    return Err(SqlError::new(
                        ErrorKind::PartitionClauseOnUnpartitioned,
                        "PARTITION () clause on non partitioned table",
                    ));
                }
                let path = object_name(name);
                let (database, table) = match path.as_slice() {
                    // DUAL is a FROM without tables.
                    [table] if table.eq_ignore_ascii_case("dual") && alias.is_none() => {
                        return Ok(Operand { from: out.inputs.len(), shown: vec![], on: vec![] });
                    }
                    [table] => {
                        let name = alias.as_ref().map_or(table.as_str(), |alias| &alias.name.value);
                        if let Some((source, scope)) = self.defined(table, name)? {
                            return self.add(source, scope, Hints::default(), out);
                        }
                        (self.default_database()?.to_string(), table.clone())
                    }
                    [database, table] => (database.clone(), table.clone()),
                    _ => return Err(SqlError::syntax(&name.to_string(), 1)),
                };
                let name = alias.as_ref().map_or(table.as_str(), |alias| &alias.name.value);
                let (source, mut scope) = self.table(&database, &table, name)?;
                if let Some(alias) = alias {
                    scope.name.clone_from(&alias.name.value);
                    scope.by_database = false;
                }
                self.add(source, scope, hints(index_hints), out)
            }
            ast::TableFactor::Derived { lateral: false, subquery, alias, .. } => {
                let Some(alias) = alias else {
                    let text = "Every derived table must have its own alias";
                    return Err(SqlError::new(ErrorKind::DerivedTableNeedsAlias, text));
                };
                let plan = self.apart(subquery)?;
                let mut scope = result_scope(&plan, &alias.name.value);
                if !alias.columns.is_empty() {
                    if alias.columns.len() != scope.columns.len() {
                        let text = "Incorrect column name list of a derived table";
                        return Err(SqlError::new(ErrorKind::WrongColumnListOfView, text));
                    }
                    for (column, name) in scope.columns.iter_mut().zip(&alias.columns) {
                        column.name.clone_from(&name.name.value);
                    }
                }
                distinct_names(&scope)?;
                self.add(Source::Derived(Box::new(plan)), scope, Hints::default(), out)
            }
            ast::TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.joined(table_with_joins, out)
            }
            other => Err(SqlError::not_supported(&format!("FROM {other}"))),
        }
    }

    fn add(
        &self,
        source: Source,
        scope: ScopeTable,
        mut hints: Hints,
        out: &mut From,
    ) -> Result<Operand, SqlError> {
        let same = |other: &&ScopeTable| {
            other.name == scope.name
                && (other.database == scope.database || !(other.by_database && scope.by_database))
        };
        if out.scope.tables.iter().any(|other| same(&other)) {
            return Err(SqlError::new(
                ErrorKind::NotUniqueTable,
                format!("Not unique table/alias: '{}'", scope.name),
            ));
        }
        if let Source::Table { def, .. } = &source {
            check_hints(&hints, def, &scope.name)?;
        }
        hints.ignore.extend_from_slice(&scope.ignored_indexes);
        let part = out.inputs.len();
        let shown = (0..scope.columns.len()).map(|column| (part, column)).collect();
        out.inputs.push(Input { source, name: scope.name.clone() });
        out.scope.tables.push(scope);
        out.hints.push(hints);
        out.nest_of.push(None);
        Ok(Operand { from: part, shown, on: vec![] })
    }

    /// A table by its name: what to read, and what names see of it.
    pub(super) fn table(
        &self,
        database: &str,
        name: &str,
        alias: &str,
    ) -> Result<(Source, ScopeTable), SqlError> {
        if let Some(table) = (self.virtual_tables)(database, name) {
            return self.virtual_table(table, database, name);
        }
        match virtual_database(database) {
            None => {}
            Some(INFORMATION_SCHEMA) => {
                let text = format!("Unknown table '{name}' in information_schema");
                return Err(SqlError::new(ErrorKind::UnknownTableInMulti, text));
            }
            Some(_) => return Err(SqlError::no_such_table(database, name)),
        }
        let need = self.need(database, name)?;
        let table = self.engine.table(database, name).map_err(|error| match error {
            engine::Error::NoSuchDatabase | engine::Error::NoSuchTable if self.knows_locked_only => {
                SqlError::not_locked(alias)
            }
            engine::Error::NoSuchDatabase => SqlError::unknown_database(database),
            engine::Error::NoSuchTable => SqlError::no_such_table(database, name),
            other => other.into(),
        })?;
        // Read the version first: if the table changes in between, the plan is stale but not wrong.
        let version = table.version();
        let def = table.def();
        self.dependencies.borrow_mut().push(Dependency {
            table: table.clone(),
            alias: alias.to_owned(),
            version,
        });
        let mut scope = scope_of(database, name, &def.columns, Some(&def))?;
        scope.need = Some(need);
        Ok((Source::Table { table, def }, scope))
    }

    /// A table that is computed. One that is a view of others needs the rights on those, too.
    fn virtual_table(
        &self,
        table: &'static VirtualTable,
        database: &str,
        name: &str,
    ) -> Result<(Source, ScopeTable), SqlError> {
        let need = if table.readable_by_all { None } else { Some(self.need(database, name)?) };
        let Some(query) = table.query else {
            let mut scope = scope_of(database, name, &table.columns, None)?;
            scope.need = need;
            return Ok((Source::Virtual(table), scope));
        };
        let ast::Statement::Query(query) = parse_ast(query, LexicalMode::NONE)? else {
            return Err(SqlError::no_such_table(database, name));
        };
        let plan = self.apart(&query)?;
        let mut scope = result_scope(&plan, name);
        scope.database = database.to_owned();
        scope.by_database = true;
        scope.need = need;
        Ok((Source::Derived(Box::new(plan)), scope))
    }

    /// Notes that the statement reads a table. A session that may do nothing with the table is not told
    /// whether it exists.
    ///
    /// # Errors
    /// 1142.
    pub(super) fn need(&self, database: &str, name: &str) -> Result<Rc<RefCell<TableNeed>>, SqlError> {
        let need = TableNeed { any: self.wants.get(), ..TableNeed::new(database, name) };
        if let Some(access) = self.access {
            // One of several rights is enough here; which of them is needed is known later.
            let one = |right| access.check_table(&TableNeed { any: right, ..need.clone() });
            match need.any == Rights::SELECT | Rights::UPDATE {
                true => one(Rights::UPDATE).or_else(|_| one(Rights::SELECT))?,
                false => access.check_table(&need)?,
            }
        }
        let need = Rc::new(RefCell::new(need));
        self.needs.borrow_mut().push(need.clone());
        Ok(need)
    }
}

/// What names see of a table.
///
/// # Errors
/// As [`Compiled::new`].
pub(crate) fn scope_of(
    database: &str,
    name: &str,
    columns: &[Column],
    def: Option<&TableDef>,
) -> Result<ScopeTable, SqlError> {
    let metadata = def.map(TableMetadata::of).transpose()?;
    let (extras, ignored_indexes) =
        metadata.map_or_else(Default::default, |metadata| (metadata.columns, metadata.ignored_indexes));
    let columns = columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let mut meta = meta_of(column, position)?;
            meta.table = name.to_string();
            meta.org_table = name.to_string();
            meta.database = database.to_string();
            if let (Some(def), Some(extras)) = (def, extras.get(position)) {
                describe(&mut meta, def, position, extras);
            }
            let condition = extras.get(position).and_then(|extras| extras.check.as_ref());
            Ok(ScopeColumn {
                is_json: condition
                    .is_some_and(|check| *check == CheckSpec::of_json(&column.name).condition.text),
                invisible: extras.get(position).is_some_and(|extras| extras.invisible),
                name: column.name.clone(),
                template: None,
                column_type: column.column_type.clone(),
                nullable: column.nullable,
                meta,
            })
        })
        .collect::<Result<_, SqlError>>()?;
    Ok(ScopeTable {
        name: name.to_string(),
        database: database.to_string(),
        by_database: true,
        columns,
        nullable: false,
        is_stored: def.is_some(),
        extras,
        ignored_indexes,
        need: None,
    })
}

fn meta_of(column: &Column, position: usize) -> Result<ColumnMeta, SqlError> {
    let expr = Expr::Column(ColumnRef {
        part: 0,
        column: position,
        column_type: column.column_type.clone(),
        nullable: column.nullable,
        digits: None,
        is_json: false,
        in_utc: false,
        name: column.name.clone(),
    });
    let mut meta = super::select::meta_of(&Compiled::new(&expr, Collation::Utf8mb4GeneralCi)?, &column.name);
    meta.column_type = column.column_type.clone();
    meta.display_chars = ResultType::of(column.column_type.clone(), column.nullable).display_chars;
    meta.org_name.clone_from(&column.name);
    Ok(meta)
}

/// Describes the column of a table further.
fn describe(meta: &mut ColumnMeta, def: &TableDef, position: usize, extras: &ColumnExtras) {
    let is = |part: &types::KeyPart| part.column == position;
    let traits = &mut meta.traits;
    traits.primary_key = def.primary.as_ref().is_some_and(|parts| parts.iter().any(is));
    traits.in_key = traits.primary_key;
    traits.auto_increment = def.auto_increment == Some(position);
    for index in &def.indexes {
        traits.in_key |= index.parts.iter().any(is);
        if index.parts.first().is_some_and(is) {
            traits.unique_key |= index.unique && index.parts.len() == 1;
            traits.multiple_key |= !index.unique || index.parts.len() > 1;
        }
    }
    traits.zerofill = extras.zerofill;
    traits.on_update_now = extras.on_update_now;
    traits.takes_present = extras.on_update_now || extras.default == ColumnDefault::Now;
    traits.no_default = meta.not_null && !traits.auto_increment && extras.default == ColumnDefault::Unset;
    if let Some(width) = extras.display_width
        && matches!(meta.column_type, ColumnType::Int { .. })
    {
        meta.display_chars = width.into();
    }
    if let Some((digits, decimals)) = extras.float_digits {
        (meta.display_chars, meta.decimals) = (digits.into(), decimals);
    }
}

/// Refuses a derived table two of whose columns have the same name.
///
/// # Errors
/// 1060.
pub(super) fn distinct_names(derived: &ScopeTable) -> Result<(), SqlError> {
    let mut seen = std::collections::HashSet::new();
    match derived.columns.iter().find(|column| !seen.insert(column.name.to_lowercase())) {
        None => Ok(()),
        Some(column) => {
            let text = format!("Duplicate column name '{}'", column.name);
            Err(SqlError::new(ErrorKind::DuplicateColumn, text))
        }
    }
}

pub(crate) fn result_scope(plan: &QueryPlan, alias: &str) -> ScopeTable {
    let mut scope = columns_scope(&plan.columns, &plan.names, alias);
    if !plan.is_merged() {
        for column in &mut scope.columns {
            column.meta.traits.is_kept = true;
            column.meta.traits.told_as = ToldAs::Itself;
            if column.meta.org_name.is_empty() && column.meta.column_type.has_characters() {
                column.meta.decimals = 0;
            }
        }
    }
    scope
}

/// What names see of a result with these columns. `names` are their names that have slots in them.
pub(super) fn columns_scope(columns: &[ColumnMeta], names: &[(usize, Name)], alias: &str) -> ScopeTable {
    let columns = columns
        .iter()
        .enumerate()
        .map(|(position, meta)| {
            let template = names.iter().find(|(at, _)| *at == position).map(|(_, name)| name.clone());
            let name = template.as_ref().map_or_else(|| meta.name.clone(), Name::shape);
            let mut meta = meta.clone();
            meta.name.clone_from(&name);
            meta.org_table = alias.to_string();
            let (zerofill, told_as) = (meta.traits.zerofill, meta.traits.told_as);
            meta.traits = ColumnTraits { zerofill, told_as, ..ColumnTraits::default() };
            let (column_type, nullable) = (meta.column_type.clone(), !meta.not_null);
            ScopeColumn { name, template, column_type, nullable, is_json: false, invisible: false, meta }
        })
        .collect();
    ScopeTable {
        name: alias.to_string(),
        database: String::new(),
        by_database: false,
        columns,
        nullable: false,
        is_stored: false,
        extras: Vec::new(),
        ignored_indexes: Vec::new(),
        need: None,
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
            return Err(SqlError::new(ErrorKind::KeyDoesNotExist, text));
        }
    }
    Ok(())
}

/// The scope of one table: for UPDATE, DELETE and expressions of DDL.
///
/// # Errors
/// As [`Compiled::new`].
pub(crate) fn single_scope(database: &str, name: &str, table: &Arc<Table>) -> Result<Scope, SqlError> {
    let def = table.def();
    let mut scope = Scope::default();
    scope.push(scope_of(database, name, &def.columns, Some(&def))?);
    Ok(scope)
}

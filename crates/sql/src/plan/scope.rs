//! The tables in which a statement's names are looked up.

use super::names::Name;
use crate::accounts::Rights;
use crate::accounts::access::TableNeed;
use crate::definition::ColumnExtras;
use crate::expr::{ColumnRef, Expr};
use crate::{ColumnMeta, ErrorKind, SqlError};
use sqlparser::ast;
use std::cell::RefCell;
use std::rc::Rc;
use types::ColumnType;

/// A column, by part and position.
pub(crate) type PartColumn = (usize, usize);

/// The tables of one FROM, in the order in which they are written. A table's position here is its part of a
/// row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub tables: Vec<ScopeTable>,
    /// The columns of `*`, by part and position. A name without a table can mean these columns only. Where
    /// USING or NATURAL made several columns one, only one of them is here.
    pub shown: Vec<PartColumn>,
    /// Names cannot mean the tables before this one: ON sees only the tables that it joins.
    pub from: usize,
}

/// One table, as names can refer to it.
#[derive(Clone, Debug)]
pub(crate) struct ScopeTable {
    /// The alias, or the table's own name.
    pub name: String,
    /// Empty for a derived table.
    pub database: String,
    /// True if a name with a database in front can mean this table. An alias prevents that.
    pub by_database: bool,
    pub columns: Vec<ScopeColumn>,
    /// True for the inner side of an outer join: every column can be NULL.
    pub nullable: bool,
    /// True if its values are as a table stores them: TIMESTAMP in UTC.
    pub is_stored: bool,
    /// What a table's definition says of each column. Empty for other things than tables.
    pub extras: Vec<ColumnExtras>,
    /// The names of its IGNORED indexes.
    pub ignored_indexes: Vec<String>,
    /// What the statement needs of it; notes the columns that are read. `None` for what needs no right.
    pub need: Option<Rc<RefCell<TableNeed>>>,
}

/// One column, as names can refer to it.
#[derive(Clone, Debug)]
pub(crate) struct ScopeColumn {
    pub name: String,
    /// The name with the slots that are in it, if there are any.
    pub template: Option<Name>,
    pub column_type: ColumnType,
    pub nullable: bool,
    /// True for a column whose CHECK is that of JSON.
    pub is_json: bool,
    /// True for a column that `*` leaves out.
    pub invisible: bool,
    pub meta: ColumnMeta,
}

impl Scope {
    /// Adds a table, all of whose columns are shown.
    pub(crate) fn push(&mut self, table: ScopeTable) {
        let part = self.tables.len();
        self.shown.extend((0..table.columns.len()).map(|column| (part, column)));
        self.tables.push(table);
    }

    /// Adds the tables of another scope.
    pub(crate) fn append(&mut self, other: Scope) {
        let before = self.tables.len();
        self.shown.extend(other.shown.into_iter().map(|(part, column)| (before + part, column)));
        self.tables.extend(other.tables);
    }

    /// The only column of `shown` with this name.
    ///
    /// # Errors
    /// 1054 if there is none, 1052 if there are several.
    pub(crate) fn among(&self, shown: &[PartColumn], name: &str) -> Result<PartColumn, SqlError> {
        let mut named = shown
            .iter()
            .filter(|(part, column)| self.tables[*part].columns[*column].name.eq_ignore_ascii_case(name));
        match (named.next(), named.next()) {
            (Some(found), None) => Ok(*found),
            (None, _) => Err(SqlError::unknown_column(name, "from clause")),
            (Some(_), Some(_)) => Err(SqlError::ambiguous_column(name, "from clause")),
        }
    }

    /// Where the column is that a name means. `None` if there is no such column.
    ///
    /// # Errors
    /// 1052 if there are several.
    pub(crate) fn place_of(&self, name: &[ast::Ident], clause: &str) -> Result<Option<PartColumn>, SqlError> {
        match self.find(name)? {
            Found::One(part, column) => Ok(Some((part, column))),
            Found::None => Ok(None),
            Found::Several => Err(SqlError::ambiguous_column(&written(name), clause)),
        }
    }

    /// The column that a name means. `None` if there is no such column.
    ///
    /// # Errors
    /// 1052 if there are several. `clause` is `field list`, `where clause` and so on.
    pub(crate) fn resolve_if_any(&self, name: &[ast::Ident], clause: &str) -> Result<Option<Expr>, SqlError> {
        match self.find(name)? {
            Found::One(part, column) => Ok(Some(self.column(part, column))),
            Found::None => Ok(None),
            Found::Several => Err(SqlError::ambiguous_column(&written(name), clause)),
        }
    }

    fn find(&self, name: &[ast::Ident]) -> Result<Found, SqlError> {
        let (database, table, column) = match name {
            [column] => (None, None, column),
            [table, column] => (None, Some(table), column),
            [database, table, column] => (Some(database), Some(table), column),
            _ => return Err(SqlError::syntax(&written(name), 1)),
        };
        let is_named =
            |at: &PartColumn| self.tables[at.0].columns[at.1].name.eq_ignore_ascii_case(&column.value);
        let one_of = |found: &mut dyn Iterator<Item = PartColumn>| match (found.next(), found.next()) {
            (None, _) => Found::None,
            (Some((part, column)), None) => Found::One(part, column),
            (Some(_), Some(_)) => Found::Several,
        };
        let Some(table) = table else {
            return Ok(one_of(&mut self.shown.iter().copied().filter(is_named)));
        };
        let database = database.map(|ident| &*ident.value);
        let tables = self.tables.iter().enumerate().skip(self.from);
        let meant = tables.filter(|(_, candidate)| candidate.is_named(database, Some(&table.value)));
        let columns =
            |(part, table): (usize, &ScopeTable)| (0..table.columns.len()).map(move |column| (part, column));
        Ok(one_of(&mut meant.flat_map(columns).filter(is_named)))
    }

    /// The expression of a column.
    pub(crate) fn column(&self, part: usize, column: usize) -> Expr {
        let table = &self.tables[part];
        let found = &table.columns[column];
        if let Some(need) = &table.need {
            need.borrow_mut().column(&found.name, Rights::SELECT);
        }
        Expr::Column(ColumnRef {
            part,
            column,
            column_type: found.column_type.clone(),
            nullable: found.nullable || table.nullable,
            digits: found.meta.fixed_digits(),
            is_json: found.is_json,
            in_utc: table.is_stored && found.column_type.is_timestamp(),
            name: found.name.clone(),
        })
    }

    /// The name of a result column that is this column under its own name.
    pub(crate) fn name(&self, part: usize, column: usize) -> Name {
        let ScopeColumn { name, template, .. } = &self.tables[part].columns[column];
        template.clone().unwrap_or_else(|| Name::Fixed(name.clone()))
    }

    /// The description of a result column that is this column under its own name.
    pub(crate) fn meta(&self, part: usize, column: usize) -> ColumnMeta {
        let table = &self.tables[part];
        let mut meta = table.columns[column].meta.clone();
        meta.table.clone_from(&table.name);
        meta.not_null &= !table.nullable;
        meta
    }

    /// The columns of `*`, or of `table.*`.
    ///
    /// # Errors
    /// 1051 for an unknown table.
    pub(crate) fn wildcard(
        &self,
        database: Option<&str>,
        table: Option<&str>,
    ) -> Result<Vec<PartColumn>, SqlError> {
        let note = |part: &ScopeTable| {
            if let Some(need) = &part.need {
                need.borrow_mut().unnamed |= Rights::SELECT;
            }
        };
        let Some(table) = table else {
            if self.tables.is_empty() {
                return Err(SqlError::new(ErrorKind::NoTablesUsed, "No tables used"));
            }
            self.tables.iter().for_each(note);
            let is_visible = |at: &&PartColumn| !self.is_invisible(**at);
            return Ok(self.shown.iter().filter(is_visible).copied().collect());
        };
        let mut meant = self
            .tables
            .iter()
            .enumerate()
            .filter(|(_, candidate)| candidate.is_named(database, Some(table)))
            .peekable();
        if meant.peek().is_none() {
            return Err(SqlError::unknown_table(table));
        }
        Ok(meant
            .inspect(|(_, table)| note(table))
            .flat_map(|(part, table)| (0..table.columns.len()).map(move |column| (part, column)))
            .filter(|at| !self.is_invisible(*at))
            .collect())
    }

    fn is_invisible(&self, (part, column): PartColumn) -> bool {
        self.tables[part].columns[column].invisible
    }
}

enum Found {
    None,
    One(usize, usize),
    Several,
}

impl ScopeTable {
    fn is_named(&self, database: Option<&str>, table: Option<&str>) -> bool {
        table.is_none_or(|table| self.name == table)
            && database.is_none_or(|database| self.by_database && self.database == database)
    }
}

/// A name as the user wrote it.
pub(crate) fn written(name: &[ast::Ident]) -> String {
    let parts: Vec<&str> = name.iter().map(|ident| ident.value.as_str()).collect();
    parts.join(".")
}

//! The tables that a statement's names are looked up in.

use crate::expr::{ColumnRef, Expr};
use crate::{ColumnMeta, SqlError};
use sqlparser::ast;
use types::ColumnType;

/// The tables of one FROM, in the order in which they are written: a table's place is its part of a row.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub tables: Vec<ScopeTable>,
}

/// One table as names see it.
#[derive(Clone, Debug)]
pub struct ScopeTable {
    /// The alias, or the table's own name.
    pub name: String,
    /// Empty for a derived table.
    pub database: String,
    /// True if a name with a database in front can mean this table: it has no alias.
    pub by_database: bool,
    pub columns: Vec<ScopeColumn>,
    /// The right side of a left join: every column can be NULL.
    pub nullable: bool,
}

/// One column as names see it.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    pub name: String,
    pub column_type: ColumnType,
    pub nullable: bool,
    pub meta: ColumnMeta,
    /// Merged into a column of a table to the left by USING or NATURAL: left out of `*`, and found only with its table's
    /// name in front.
    pub merged: bool,
}

impl Scope {
    /// The column that a name means.
    ///
    /// # Errors
    /// 1054 if there is none, 1052 if there are several. `place` is `field list`, `where clause` and so on.
    pub fn resolve(&self, name: &[ast::Ident], place: &str) -> Result<Expr, SqlError> {
        match self.find(name)? {
            Found::One(part, column) => Ok(self.column(part, column)),
            Found::None => Err(SqlError::unknown_column(&written(name), place)),
            Found::Several => Err(SqlError::ambiguous_column(&written(name), place)),
        }
    }

    /// Which table has the column that a name means; `None` if there is no such column.
    ///
    /// # Errors
    /// 1052.
    pub fn part_of(&self, name: &[ast::Ident], place: &str) -> Result<Option<usize>, SqlError> {
        match self.find(name)? {
            Found::One(part, _) => Ok(Some(part)),
            Found::None => Ok(None),
            Found::Several => Err(SqlError::ambiguous_column(&written(name), place)),
        }
    }

    /// As [`Scope::resolve`], but `None` if there is no such column.
    pub fn resolve_if_any(&self, name: &[ast::Ident], place: &str) -> Result<Option<Expr>, SqlError> {
        match self.find(name)? {
            Found::One(part, column) => Ok(Some(self.column(part, column))),
            Found::None => Ok(None),
            Found::Several => Err(SqlError::ambiguous_column(&written(name), place)),
        }
    }

    fn find(&self, name: &[ast::Ident]) -> Result<Found, SqlError> {
        let (database, table, column) = match name {
            [column] => (None, None, column),
            [table, column] => (None, Some(table), column),
            [database, table, column] => (Some(database), Some(table), column),
            _ => return Err(SqlError::syntax(&written(name), 1)),
        };
        let mut found = Found::None;
        for (part, candidate) in self.tables.iter().enumerate() {
            if !candidate.is_named(database.map(|ident| &*ident.value), table.map(|ident| &*ident.value)) {
                continue;
            }
            for (position, candidate) in candidate.columns.iter().enumerate() {
                if (candidate.merged && table.is_none())
                    || !candidate.name.eq_ignore_ascii_case(&column.value)
                {
                    continue;
                }
                if matches!(found, Found::One(..)) {
                    return Ok(Found::Several);
                }
                found = Found::One(part, position);
            }
        }
        Ok(found)
    }

    /// The expression of a column.
    pub fn column(&self, part: usize, column: usize) -> Expr {
        let table = &self.tables[part];
        let found = &table.columns[column];
        Expr::Column(ColumnRef {
            part,
            column,
            column_type: found.column_type.clone(),
            nullable: found.nullable || table.nullable,
            name: found.name.clone(),
        })
    }

    /// The description of a column in a result, under its own name.
    pub fn meta(&self, part: usize, column: usize) -> ColumnMeta {
        let table = &self.tables[part];
        let mut meta = table.columns[column].meta.clone();
        meta.table.clone_from(&table.name);
        meta.not_null &= !table.nullable;
        meta
    }

    /// The columns of `*`, or of `table.*`.
    ///
    /// # Errors
    /// 1051 for a table that is not there.
    pub fn wildcard(
        &self,
        database: Option<&str>,
        table: Option<&str>,
    ) -> Result<Vec<(usize, usize)>, SqlError> {
        let mut all = Vec::new();
        let mut any = false;
        for (part, candidate) in self.tables.iter().enumerate() {
            if candidate.is_named(database, table) {
                any = true;
                let shown = |column: &&(usize, &ScopeColumn)| table.is_some() || !column.1.merged;
                all.extend(
                    candidate
                        .columns
                        .iter()
                        .enumerate()
                        .filter(|column| shown(&column))
                        .map(|(at, _)| (part, at)),
                );
            }
        }
        match (any, table) {
            (false, Some(table)) => Err(SqlError::unknown_table(table)),
            (false, None) => Err(SqlError::new(1096, b"HY000", "No tables used")),
            _ => Ok(all),
        }
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

/// A name as it was written.
pub fn written(name: &[ast::Ident]) -> String {
    let parts: Vec<&str> = name.iter().map(|ident| ident.value.as_str()).collect();
    parts.join(".")
}

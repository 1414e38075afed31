//! Result sets that SHOW builds in memory, filtered by LIKE and WHERE.

use super::filter::Filter;
use crate::text::parse::Words;
use crate::{ColumnMeta, ColumnTraits, Completion, ResultSink, Session, SqlError};
use types::{Collation, ColumnType, Value, ValueRef};

/// A result set in memory.
#[derive(Debug)]
pub(crate) struct Listing {
    columns: Vec<(String, ColumnType)>,
    pub rows: Vec<Vec<Value>>,
}

/// The type of a text column of this many characters.
pub(crate) fn characters(chars: u32) -> ColumnType {
    ColumnType::Varchar { chars, collation: Collation::Utf8mb4GeneralCi }
}

pub(crate) fn number() -> ColumnType {
    ColumnType::Int { bytes: 8, unsigned: true }
}

impl Listing {
    pub(crate) fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, ColumnType)>) -> Listing {
        let columns = columns.into_iter().map(|(name, kind)| (name.into(), kind)).collect();
        Listing { columns, rows: Vec::new() }
    }

    /// A listing whose columns are all texts.
    pub(crate) fn of_texts(columns: &[&str]) -> Listing {
        Listing::new(columns.iter().map(|name| (*name, characters(64))))
    }

    pub(crate) fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Reads LIKE 'x' (for the first column) or WHERE, if there is one, and keeps the rows that match.
    ///
    /// # Errors
    /// 1064; 1054 for a column that the result does not have.
    pub(crate) fn filter(&mut self, words: &mut Words<'_>) -> Result<(), SqlError> {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let filter = Filter::parse(words, &names)?;
        if let Some(filter) = filter {
            self.rows.retain(|row| filter.keeps(row));
        }
        Ok(())
    }

    /// Sends the result set.
    ///
    /// # Errors
    /// Those of the sink.
    pub(crate) fn send(self, session: &mut Session, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let metas: Vec<ColumnMeta> = self
            .columns
            .iter()
            .map(|(name, kind)| ColumnMeta {
                name: name.clone(),
                org_name: name.clone(),
                table: String::new(),
                org_table: String::new(),
                database: String::new(),
                column_type: kind.clone(),
                collation: kind.collation(),
                not_null: false,
                traits: ColumnTraits::default(),
                decimals: 0,
                display_chars: match kind {
                    ColumnType::Varchar { chars, .. } => *chars,
                    _ => 21,
                },
            })
            .collect();
        sink.columns(&metas)?;
        for row in &self.rows {
            let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            sink.row(&row)?;
        }
        session.state.found_rows = self.rows.len() as u64;
        session.state.transaction.did.send_rows |= session.state.transaction.open;
        sink.end(&Completion { warnings: session.state.warnings.count_u16(), ..Completion::default() })
    }
}

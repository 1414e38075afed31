//! The columns of a table, as COM_FIELD_LIST asks for them.

use crate::definition::ColumnDefault;
use crate::definition::defaults::{column_default, implicit_default};
use crate::definition::metadata::TableMetadata;
use crate::statements::show::like;
use crate::text::parse;
use crate::{ColumnMeta, Session, SqlError};
use types::Value;

/// Columns of a table, and the value that each gets in a row that does not mention it.
#[derive(Debug)]
pub struct Fields {
    pub columns: Vec<ColumnMeta>,
    pub defaults: Vec<Value>,
}

impl Session {
    /// The columns of a table of the default database whose names are like the pattern; all if it is empty.
    ///
    /// # Errors
    /// 1046 without a default database, 1146 for an unknown table.
    pub fn list_fields(&mut self, table: &[u8], pattern: &[u8]) -> Result<Fields, SqlError> {
        let mut fields = Fields { columns: Vec::new(), defaults: Vec::new() };
        self.contain(|session| session.add_fields(table, pattern, &mut fields))?;
        Ok(fields)
    }

    fn add_fields(&mut self, table: &[u8], pattern: &[u8], fields: &mut Fields) -> Result<(), SqlError> {
        let (name, pattern) = (parse::utf8(table)?, parse::utf8(pattern)?);
        let database = self.resolve_database(None)?;
        let statement = format!("SELECT * FROM `{}`", name.replace('`', "``"));
        let prepared = self.prepare_text(statement.as_bytes())?;
        self.forget_prepared(prepared.id);
        // The tables of information_schema are not the engine's, and nobody inserts into them.
        let defaults = match self.table(&database, name) {
            Ok(table) => {
                let def = table.def();
                let extras = TableMetadata::of(&def)?.columns;
                let clock = self.clock();
                let default = |(column, extras)| match column_default(column, extras, &clock) {
                    Some(value) if !matches!(extras.default, ColumnDefault::Now) => value,
                    _ => implicit_default(column),
                };
                def.columns.iter().zip(&extras).map(default).collect()
            }
            Err(_) => vec![Value::Null; prepared.columns.len()],
        };
        for (column, default) in prepared.columns.iter().zip(defaults) {
            if pattern.is_empty() || like(&column.name, pattern) {
                fields.columns.push(column.clone());
                fields.defaults.push(default);
            }
        }
        Ok(())
    }
}

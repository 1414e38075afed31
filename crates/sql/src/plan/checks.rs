//! Binds the CHECKs of a table.

use super::bind::Binder;
use super::from::scope_of;
use super::scope::Scope;
use crate::definition::check::CheckLevel;
use crate::definition::metadata::TableMetadata;
use crate::expr::{Compiled, Context, Part, Row, Slots};
use crate::text::LexicalMode;
use crate::{ErrorKind, SqlError};
use engine::TableDef;
use types::{Collation, RowView};

/// The conditions of a table's rows.
#[derive(Debug)]
pub(crate) struct Checks {
    conditions: Vec<Condition>,
    /// The table, as messages name it.
    table: String,
}

#[derive(Debug)]
struct Condition {
    name: String,
    test: Compiled,
}

impl Checks {
    /// The conditions of the columns, then those of the table. `None` if there are none.
    ///
    /// # Errors
    /// 1054, 1305 and others of expressions.
    pub(crate) fn of(def: &TableDef, metadata: &TableMetadata) -> Result<Option<Checks>, SqlError> {
        if metadata.conditions(def).next().is_none() {
            return Ok(None);
        }
        let mut scope = Scope::default();
        scope.push(scope_of(&def.database, &def.name, &def.columns, Some(def))?);
        let mut conditions = Vec::new();
        for (level, name, condition) in metadata.conditions(def) {
            let parsed = crate::text::parse::parse_expression(condition, LexicalMode::NONE)?;
            let bound = Binder::new(&scope, &[], "CHECK").bind(&parsed)?;
            let test = Compiled::new(&bound, Collation::Utf8mb4GeneralCi)?;
            let name = match level {
                CheckLevel::Column => format!("{}.{name}", def.name),
                CheckLevel::Table => name.to_owned(),
            };
            conditions.push(Condition { name, test });
        }
        let table = format!("`{}`.`{}`", def.database, def.name);
        Ok(Some(Checks { conditions, table }))
    }

    /// Tests a row.
    ///
    /// # Errors
    /// 4025 if a condition is false, and those of evaluating it. One that is unknown is met.
    pub(crate) fn test<'a>(&'a self, row: RowView<'a>, context: &Context<'a>) -> Result<(), SqlError> {
        let parts = [Part::Image(row)];
        let context = Context { slots: Slots::EMPTY, ..*context };
        for condition in &self.conditions {
            if condition.test.is_false(&Row(&parts), &context)? {
                let text = format!("CONSTRAINT `{}` failed for {}", condition.name, self.table);
                return Err(SqlError::new(ErrorKind::ConstraintFailed, text));
            }
        }
        Ok(())
    }
}

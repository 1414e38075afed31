//! DEFAULT(column).

use super::bind::Binder;
use super::scope::Scope;
use super::walk::is_fixed;
use crate::definition::defaults::implicit_default;
use crate::definition::{ColumnDefault, literal};
use crate::expr::functions::clock;
use crate::expr::{ColumnRef, Expr, VariableScope, coerce};
use crate::text::LexicalMode;
use crate::{ErrorKind, SqlError};
use bumpalo::Bump;
use sqlparser::ast;
use types::{Column, ColumnType, Value};

impl Binder<'_> {
    /// The default of a column, as an expression over its row.
    ///
    /// # Errors
    /// 1054, 1064, 1364.
    pub(super) fn default_of(&mut self, list: &ast::FunctionArgumentList) -> Result<Expr, SqlError> {
        let name = match list.args.as_slice() {
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(name)))] => {
                std::slice::from_ref(name)
            }
            [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::CompoundIdentifier(name)))] => {
                name.as_slice()
            }
            [other, ..] => return Err(SqlError::syntax(&other.to_string(), 1)),
            [] => return Err(SqlError::syntax(")", 1)),
        };
        let scope: &Scope = self.defaults.unwrap_or(self.scope);
        let Some(Expr::Column(column)) = scope.resolve_if_any(name, self.clause)? else {
            return Err(SqlError::unknown_column(&super::scope::written(name), self.clause));
        };
        let extras = scope.tables.get(column.part).and_then(|table| table.extras.get(column.column));
        match extras {
            Some(extras) if extras.generated.is_some() => match self.defaults {
                None => Ok(Expr::Column(column)),
                Some(_) => Err(SqlError::not_supported("DEFAULT of a generated column here")),
            },
            Some(extras) => self.value_of(&extras.default, column, scope),
            None => Err(no_default(&column.name)),
        }
    }

    fn value_of(&self, default: &ColumnDefault, column: ColumnRef, scope: &Scope) -> Result<Expr, SqlError> {
        let table = &scope.tables[column.part];
        let generates = table.columns[column.column].meta.traits.auto_increment;
        let part = column.part;
        let described =
            Column { name: column.name, column_type: column.column_type, nullable: column.nullable };
        let fsp = match described.column_type {
            ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => fsp,
            _ => 0,
        };
        Ok(match default {
            ColumnDefault::Unset if generates => Expr::Constant(implicit_default(&described)),
            ColumnDefault::Unset if !described.nullable => return Err(no_default(&described.name)),
            ColumnDefault::Unset | ColumnDefault::Null => Expr::Constant(Value::Null),
            ColumnDefault::Now => {
                Expr::Call { function: &clock::NOW, arguments: vec![Expr::Constant(Value::Int(fsp.into()))] }
            }
            ColumnDefault::Expression(text) => {
                let parsed = crate::text::parse::parse_expression(text, LexicalMode::NONE)?;
                // It reads columns of its own table only.
                let mut own = Scope::default();
                own.push(table.clone());
                let bound = Binder::new(&own, &[], self.clause).bind(&parsed)?;
                let has_row = part == 0 && self.defaults.is_none();
                if !has_row && !is_fixed(&bound) {
                    return Err(SqlError::not_supported("DEFAULT of a computed default here"));
                }
                as_stored(bound, &described.column_type)
            }
            written => {
                let arena = Bump::new();
                let value = literal(written)
                    .map_or(Value::Null, |value| coerce(value, &described, None, &arena).value.to_value());
                match described.column_type.is_timestamp() {
                    // It is kept in UTC.
                    true => Expr::Call {
                        function: &clock::CONVERT_TZ,
                        arguments: vec![
                            Expr::Constant(value),
                            Expr::Constant(Value::text("+00:00")),
                            Expr::SystemVariable {
                                scope: VariableScope::Default,
                                cache: None,
                                name: "time_zone".to_owned(),
                            },
                        ],
                    },
                    false => Expr::Constant(value),
                }
            }
        })
    }
}

/// A value as a column of the type would store it, as far as a cast does that.
fn as_stored(value: Expr, column_type: &ColumnType) -> Expr {
    let to = match *column_type {
        ColumnType::Int { unsigned, .. } => ColumnType::Int { bytes: 8, unsigned },
        ColumnType::Decimal { .. } | ColumnType::Date | ColumnType::Time { .. } => column_type.clone(),
        ColumnType::DateTime { fsp } => ColumnType::DateTime { fsp },
        _ => return value,
    };
    Expr::Cast { operand: Box::new(value), to }
}

/// 1364.
fn no_default(column: &str) -> SqlError {
    SqlError::new(ErrorKind::NoDefaultForField, format!("Field '{column}' doesn't have a default value"))
}

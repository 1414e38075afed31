//! What is known of the leaves of expressions beside their types, for descriptions of results.

use super::compile::unify;
use super::result_type::{Class, Derivation, Typed};
use super::{ColumnRef, Environment, InnerQuery, ResultType};
use crate::ToldAs;
use types::{Collation, ColumnType, Value};

/// The leaves of an expression that is described.
pub(crate) trait Leaves {
    /// What a slot holds; `None` if only its kind is known.
    fn slot(&self, index: usize) -> Option<Leaf>;

    /// Whether NULL is in the list that a slot holds, or may be. `None` if only the list's kind is known.
    fn list_has_null(&self, index: usize) -> Option<bool>;

    /// A column that is not one of a table.
    fn column(&self, column: &ColumnRef) -> Option<ResultType>;

    /// The value of a subquery that runs for each row.
    fn subquery(&self, plan: &dyn InnerQuery) -> Option<ResultType>;

    /// `None` before the statement runs: values of variables are not known then.
    fn environment(&self) -> Option<&dyn Environment>;
}

/// What a slot holds.
#[derive(Debug)]
pub(crate) enum Leaf {
    /// A literal, and how it is written.
    Literal(Value, String),
    /// A parameter of a prepared statement.
    Parameter(Value),
    Result(ResultType),
}

/// Digits after the point of a variable's decimal, as it is told.
const VARIABLE_SCALE: u8 = 38;

/// A text of a variable may have so many bytes.
const VARIABLE_BYTES: u32 = 16_777_215;

/// The type of a user variable that has this value.
pub(super) fn variable_type(value: &Value, connection: Collation) -> Typed {
    let bytes = |bytes_max| Typed::new(ColumnType::Blob { bytes_max }, true);
    let typed = match value {
        Value::Null => bytes(VARIABLE_BYTES + 1),
        Value::Binary(_) => bytes(VARIABLE_BYTES),
        Value::Int(_) => Typed::int(8, false, true),
        Value::UInt(_) => Typed::int(8, true, true),
        Value::Float(_) | Value::Double(_) => Typed::double(true),
        Value::Decimal(_) => {
            let precision = types::decimal::PRECISION_MAX;
            let column_type = ColumnType::Decimal { precision, scale: VARIABLE_SCALE, unsigned: false };
            // As in MariaDB, which adds 18 characters.
            Typed::new(column_type, true).with_display(u32::from(precision) + 18)
        }
        Value::Text(_) | Value::Date(_) | Value::Time(_) | Value::DateTime(_) => {
            let column_type = ColumnType::Text { bytes_max: VARIABLE_BYTES, collation: connection };
            let chars = VARIABLE_BYTES / connection.character_bytes_max();
            Typed::new(column_type, true).with_display(chars)
        }
    };
    match typed.class.is_text() {
        true => typed.computed().told_as(ToldAs::LongBlob).with_derivation(Derivation::Implicit),
        false => typed,
    }
}

/// The type of a column that has values of all these types; `None` if their collations do not mix.
pub(crate) fn united(results: impl Iterator<Item = ResultType>, connection: Collation) -> Option<ResultType> {
    let types: Vec<Typed> = results.map(Typed::of_result).collect();
    let (typed, _) = unify(&types.iter().collect::<Vec<_>>(), "UNION", connection).ok()?;
    Some(typed.result)
}

impl Typed {
    /// The type that a part of the statement was found to have.
    pub(super) fn of_result(result: ResultType) -> Typed {
        if result.column_type == (ColumnType::Binary { bytes: 0 }) && result.told_as == ToldAs::Itself {
            return Typed::null();
        }
        let typed = Typed::new(result.column_type.clone(), result.nullable);
        let derivation = if typed.class.is_text() { Derivation::Implicit } else { typed.derivation };
        Typed { result, derivation, ..typed }
    }

    /// The type of a literal that is written so.
    pub(super) fn of_literal(self, text: &str) -> Typed {
        let digits = text.trim_start_matches(['-', ' ']);
        let is_number =
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let count = digits.bytes().filter(u8::is_ascii_digit).count() as u32;
        match (self.class, &self.result.column_type) {
            (Class::Int, _) if is_number => {
                let negative = u32::from(digits.len() < text.len());
                let mut typed = Typed::int_as_wide(count + negative, false, false);
                typed.result.digits = u8::try_from(count).unwrap_or(u8::MAX);
                typed
            }
            (Class::UInt, _) if is_number => self.with_display(count),
            (Class::Decimal, ColumnType::Decimal { scale, .. }) if is_number => {
                Typed::decimal(count, *scale, false)
            }
            (Class::Double, _) if !text.is_empty() => self.with_display(text.len() as u32),
            _ => self,
        }
    }
}

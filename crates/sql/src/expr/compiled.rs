//! Expressions made ready to run: types inferred, conversions and collations settled.

use super::node::{Conversion, Node};
use super::result_type::{Class, Typed};
use super::{Context, Expr, Leaves, ResultType, Row, compile, evaluate};
use crate::SqlError;
use types::{Collation, Column, ColumnType, ValueRef};

/// An expression ready to run. A plan makes it once, and all executions share it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) node: Node,
    typed: Typed,
}

impl Compiled {
    /// `connection` is the collation of literals.
    ///
    /// # Errors
    /// 1582 for a wrong number of arguments, 1267 for collations that do not mix, 1235 for what is not
    /// supported.
    pub(crate) fn new(expr: &Expr, connection: Collation) -> Result<Compiled, SqlError> {
        let (node, typed) = compile::compile(expr, connection)?;
        Ok(Compiled { node, typed })
    }

    /// The type of an expression, with what is known of its leaves.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub(crate) fn described(
        expr: &Expr,
        connection: Collation,
        leaves: &dyn Leaves,
    ) -> Result<ResultType, SqlError> {
        Ok(compile::compile_with(expr, connection, leaves, false)?.1.result)
    }

    /// As [`Compiled::new`], but the values of a column are those that it stores. They order and group rows,
    /// and are the columns of a result: [`super::shown`] tells what is seen of them.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub(crate) fn stored(expr: &Expr, connection: Collation) -> Result<Compiled, SqlError> {
        let (node, typed) = compile::compile_stored(expr, connection)?;
        Ok(Compiled { node, typed })
    }

    /// As [`Compiled::new`], but the members of an ENUM or SET are their numbers.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub(crate) fn number(expr: &Expr, connection: Collation) -> Result<Compiled, SqlError> {
        let (node, typed) = compile::compile_number(expr, connection)?;
        Ok(Compiled { node, typed })
    }

    /// For a value that is compared with such a column: a number where that has numbers.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub(crate) fn beside(
        expr: &Expr,
        column: Option<&Column>,
        connection: Collation,
    ) -> Result<Compiled, SqlError> {
        match column.is_some_and(|column| Class::of(&column.column_type).is_numeric()) {
            true => Compiled::number(expr, connection),
            false => Compiled::new(expr, connection),
        }
    }

    /// For a value that goes straight into a column. A choice between decimals then gives the digits of the
    /// value that it chooses, as in MariaDB, where the column converts it. `column` is the column's type, if
    /// it is known: a value may be a column's.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub(crate) fn for_column(
        expr: &Expr,
        column: Option<&ColumnType>,
        connection: Collation,
    ) -> Result<Compiled, SqlError> {
        let of = match expr {
            Expr::Column(of) => Some(&of.column_type),
            _ => None,
        };
        let mut compiled = match of {
            // A column of the same type takes the value as it is, but for codes: bytes are their own bytes.
            Some(of) if Some(of) == column && !matches!(of, ColumnType::Code(_)) => {
                Compiled::stored(expr, connection)?
            }
            _ if column.is_some_and(|column| Class::of(column).is_numeric()) => {
                Compiled::number(expr, connection)?
            }
            _ => Compiled::new(expr, connection)?,
        };
        let to = match &mut compiled.node {
            Node::Case { to, .. } => Some(to),
            Node::Call(call) => Some(&mut call.to),
            _ => None,
        };
        if let Some(to @ Conversion::Decimal(_)) = to {
            *to = Conversion::Decimal(None);
        }
        Ok(compiled)
    }

    pub(crate) fn result_type(&self) -> &ResultType {
        &self.typed.result
    }

    /// True for bits that are written in the statement: bytes, or a number where that is wanted.
    pub(crate) fn is_bits(&self) -> bool {
        matches!(&self.node, Node::Coded { operand, .. } if matches!(**operand, Node::Constant(_)))
    }

    /// True if its values are numbers.
    pub(crate) fn is_number(&self) -> bool {
        self.typed.class.is_numeric()
    }

    pub(super) fn typed(&self) -> &Typed {
        &self.typed
    }

    /// The value over a row.
    ///
    /// # Errors
    /// 1690 for numbers out of range, and what the environment answers.
    pub(crate) fn evaluate<'a>(
        &'a self,
        row: &Row<'a>,
        context: &Context<'a>,
    ) -> Result<ValueRef<'a>, SqlError> {
        Ok(match evaluate::value(&self.node, row, context)? {
            // A quotient drops the digits that only further arithmetic needed.
            ValueRef::Decimal(number) => ValueRef::Decimal(number.rounded()),
            value => value,
        })
    }

    /// As [`Compiled::evaluate`], but a quotient keeps the digits that only further arithmetic and columns
    /// need.
    ///
    /// # Errors
    /// As [`Compiled::evaluate`].
    pub(crate) fn exact<'a>(
        &'a self,
        row: &Row<'a>,
        context: &Context<'a>,
    ) -> Result<ValueRef<'a>, SqlError> {
        evaluate::value(&self.node, row, context)
    }

    /// True if the value is neither false nor NULL. WHERE, ON and HAVING ask this.
    ///
    /// # Errors
    /// As [`Compiled::evaluate`].
    #[inline]
    pub(crate) fn is_true<'a>(&'a self, row: &Row<'a>, context: &Context<'a>) -> Result<bool, SqlError> {
        Ok(evaluate::truth(&self.node, row, context)? == Some(true))
    }

    /// True if the value is false, and not unknown.
    ///
    /// # Errors
    /// As [`Compiled::evaluate`].
    pub(crate) fn is_false<'a>(&'a self, row: &Row<'a>, context: &Context<'a>) -> Result<bool, SqlError> {
        Ok(evaluate::truth(&self.node, row, context)? == Some(false))
    }

    /// Appends the value's key. Values that GROUP BY and DISTINCT take for equal have the same key. No key is
    /// the start of another, so that the keys of several expressions can be joined.
    pub(crate) fn write_group_key(&self, value: &ValueRef<'_>, out: &mut Vec<u8>) {
        let mut fixed = |tag: u8, bytes: &[u8]| {
            out.push(tag);
            out.extend_from_slice(bytes);
        };
        match *value {
            ValueRef::Null => out.push(0),
            // An expression's integers may come signed and unsigned.
            ValueRef::Int(number) => fixed(1, &(number as i128).to_le_bytes()),
            ValueRef::UInt(number) => fixed(1, &(number as i128).to_le_bytes()),
            ValueRef::Float(number) => fixed(2, &(number + 0.0).to_bits().to_le_bytes()),
            ValueRef::Double(number) => fixed(3, &(number + 0.0).to_bits().to_le_bytes()),
            ValueRef::Decimal(number) => {
                // 1.0 and 1.00 are one value.
                let scaled = number.with_scale(types::decimal::SCALE_MAX).unwrap_or(number);
                fixed(4, &scaled.unscaled().to_le_bytes());
            }
            ValueRef::Date(date) => fixed(5, &date.to_packed().to_le_bytes()),
            ValueRef::Time(time) => fixed(6, &time.micros.to_le_bytes()),
            ValueRef::DateTime(moment) => fixed(7, &moment.to_packed().to_le_bytes()),
            ValueRef::Text(text) => {
                out.push(8);
                types::key::encode_text(self.typed.collation(), text, out);
            }
            ValueRef::Binary(bytes) => {
                out.push(9);
                types::key::encode_binary(bytes, out);
            }
        }
    }
}

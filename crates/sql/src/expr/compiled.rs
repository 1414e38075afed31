//! Expressions made ready to run: types inferred, conversions and collations settled.

use super::node::Node;
use super::result_type::Typed;
use super::{Context, Expr, ResultType, Row, compile, evaluate};
use crate::SqlError;
use types::{Collation, ValueRef};

/// An expression ready to run. Made once a plan, shared by all that run it.
#[derive(Debug)]
pub struct Compiled {
    node: Node,
    typed: Typed,
}

impl Compiled {
    /// `connection` is the collation of literals.
    ///
    /// # Errors
    /// 1582 for a wrong number of arguments, 1267 for collations that do not mix, 1235 for what is not supported.
    pub fn new(expr: &Expr, connection: Collation) -> Result<Compiled, SqlError> {
        let (node, typed) = compile::compile(expr, connection)?;
        Ok(Compiled { node, typed })
    }

    pub fn result_type(&self) -> &ResultType {
        &self.typed.result
    }

    pub(super) fn typed(&self) -> &Typed {
        &self.typed
    }

    /// The value over a row.
    ///
    /// # Errors
    /// 1690 for numbers out of range, and what the environment answers.
    pub fn evaluate<'a>(&'a self, row: &Row<'a>, context: &Context<'a>) -> Result<ValueRef<'a>, SqlError> {
        Ok(match evaluate::value(&self.node, row, context)? {
            // A quotient drops the digits that only further arithmetic needed.
            ValueRef::Decimal(number) => ValueRef::Decimal(number.rounded()),
            value => value,
        })
    }

    /// True if the value is true: neither false nor NULL. What WHERE, ON and HAVING ask.
    ///
    /// # Errors
    /// As [`Compiled::evaluate`].
    #[inline]
    pub fn is_true<'a>(&'a self, row: &Row<'a>, context: &Context<'a>) -> Result<bool, SqlError> {
        Ok(evaluate::truth(&self.node, row, context)? == Some(true))
    }
}

//! Aggregate functions.

use super::{Context, Expr, ResultType, Row};
use crate::SqlError;
use types::{Collation, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AggregateKind {
    /// COUNT(*).
    CountRows,
    /// COUNT(x), COUNT(DISTINCT x, ...): rows in which no argument is NULL.
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
    GroupConcat,
    BitAnd,
    BitOr,
    BitXor,
    /// STD, STDDEV, STDDEV_POP.
    StandardDeviation,
    /// STDDEV_SAMP.
    SampleStandardDeviation,
    /// VARIANCE, VAR_POP.
    Variance,
    /// VAR_SAMP.
    SampleVariance,
}

impl AggregateKind {
    /// The aggregate of a name, whatever its case. COUNT(*) is told from COUNT(x) by the caller.
    pub fn lookup(name: &str) -> Option<AggregateKind> {
        Some(match name.to_ascii_lowercase().as_str() {
            "count" => AggregateKind::Count,
            "sum" => AggregateKind::Sum,
            "avg" => AggregateKind::Average,
            "min" => AggregateKind::Minimum,
            "max" => AggregateKind::Maximum,
            "group_concat" => AggregateKind::GroupConcat,
            "bit_and" => AggregateKind::BitAnd,
            "bit_or" => AggregateKind::BitOr,
            "bit_xor" => AggregateKind::BitXor,
            "std" | "stddev" | "stddev_pop" => AggregateKind::StandardDeviation,
            "stddev_samp" => AggregateKind::SampleStandardDeviation,
            "variance" | "var_pop" => AggregateKind::Variance,
            "var_samp" => AggregateKind::SampleVariance,
            _ => return None,
        })
    }
}

/// An aggregate function as the statement has it.
#[derive(Clone, PartialEq, Debug)]
pub struct Aggregate {
    pub kind: AggregateKind,
    pub distinct: bool,
    pub arguments: Vec<Expr>,
    /// GROUP_CONCAT: `,` if not given.
    pub separator: Option<String>,
    /// GROUP_CONCAT's ORDER BY: expressions, and true for DESC.
    pub order: Vec<(Expr, bool)>,
}

/// An aggregate ready to run: shared by all groups, each of which has its [`Accumulator`].
#[derive(Debug)]
pub struct CompiledAggregate {
    result: ResultType,
}

/// What one group has gathered.
#[derive(Debug)]
pub struct Accumulator {}

impl CompiledAggregate {
    /// # Errors
    /// As [`Compiled::new`](super::Compiled::new).
    pub fn new(_aggregate: &Aggregate, _connection: Collation) -> Result<CompiledAggregate, SqlError> {
        Err(SqlError::not_supported("aggregates"))
    }

    pub fn result_type(&self) -> &ResultType {
        &self.result
    }

    /// An empty group.
    pub fn start(&self) -> Accumulator {
        Accumulator {}
    }

    /// Takes one row in.
    ///
    /// # Errors
    /// As [`Compiled::evaluate`](super::Compiled::evaluate).
    pub fn add<'a>(
        &'a self,
        _group: &mut Accumulator,
        _row: &Row<'a>,
        _context: &Context<'a>,
    ) -> Result<(), SqlError> {
        Err(SqlError::not_supported("aggregates"))
    }

    /// The result of a group.
    pub fn finish(&self, _group: Accumulator, _context: &Context<'_>) -> Value {
        Value::Null
    }
}

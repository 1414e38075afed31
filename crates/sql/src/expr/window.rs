//! Window functions: their kinds and types, and what aggregates need to slide over frames of rows.

use super::aggregate::{Accumulator, AggregateKind, State, Sum};
use super::evaluate::{self, Number};
use super::result_type::{Class, Typed};
use super::{Compiled, CompiledAggregate, Context, ResultType, Room};
use crate::SqlError;
use std::cmp::Ordering;
use types::{Decimal, Value, ValueRef};

/// A function that only a window has. Aggregates are [`AggregateKind`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    /// As `PercentileCont` of a half.
    Median,
    PercentileCont,
    PercentileDisc,
}

impl WindowKind {
    /// True if the rows of its window must have an order.
    pub(crate) fn needs_order(self) -> bool {
        use WindowKind as K;
        matches!(self, K::Rank | K::DenseRank | K::PercentRank | K::CumeDist | K::Lag | K::Lead)
    }

    /// True if its window must not have a frame.
    pub(crate) fn refuses_frame(self) -> bool {
        use WindowKind as K;
        matches!(self, K::RowNumber | K::Rank | K::DenseRank | K::PercentRank | K::CumeDist | K::Ntile)
    }

    /// True for the functions whose window is ordered by their own value: WITHIN GROUP.
    pub(crate) fn is_percentile(self) -> bool {
        matches!(self, WindowKind::Median | WindowKind::PercentileCont | WindowKind::PercentileDisc)
    }
}

/// The type of a window function's result. `value` is its first argument, or what WITHIN GROUP orders by.
pub(crate) fn result_of_window(kind: WindowKind, value: Option<&Compiled>) -> ResultType {
    use WindowKind as K;
    let typed = match kind {
        K::RowNumber | K::Rank | K::DenseRank | K::Ntile => Typed::int(8, false, false).with_display(21),
        K::PercentRank | K::CumeDist | K::Median | K::PercentileCont => Typed::double_with(10, true),
        K::Lag | K::Lead | K::FirstValue | K::LastValue | K::NthValue | K::PercentileDisc => {
            let mut typed = value.map_or_else(Typed::null, |value| value.typed().clone());
            typed.result.nullable = true;
            typed
        }
    };
    typed.result
}

/// True if the values are numbers. `or_moments`: dates and times are numbers too.
pub(crate) fn is_number(value: &Compiled, or_moments: bool) -> bool {
    let class = value.typed().class;
    class.is_numeric() || (or_moments && class.is_temporal())
}

/// The value as a whole number; `None` for NULL.
pub(crate) fn whole_number(value: &ValueRef<'_>, context: &Context<'_>) -> Option<i64> {
    let whole = evaluate::number_to_int(evaluate::to_number(value, context)?);
    Some(whole.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

/// The place that a number counted from 1 stands for, counted from 0. As in MariaDB it is rounded only after
/// the subtraction, and NULL stands for the first one.
pub(crate) fn place_of(value: &ValueRef<'_>, context: &Context<'_>) -> i64 {
    let less = evaluate::to_number(value, context).and_then(|number| evaluate::add(number, Number::Int(-1)));
    less.map_or(0, |place| evaluate::number_to_int(place).min(i128::from(i64::MAX)) as i64)
}

/// The value as a double; `None` for NULL.
pub(crate) fn share_of(value: &ValueRef<'_>, context: &Context<'_>) -> Option<f64> {
    evaluate::to_number(value, context).map(Number::to_f64)
}

/// A number by which a RANGE frame is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RangeKey {
    Null,
    Exact(Decimal),
    Double(f64),
}

impl RangeKey {
    pub(crate) fn of(value: &ValueRef<'_>) -> RangeKey {
        match evaluate::plain_number(value) {
            None => RangeKey::Null,
            Some(Number::Double(number)) => RangeKey::Double(number),
            Some(number) => RangeKey::Exact(number.to_decimal()),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, RangeKey::Null)
    }

    fn to_f64(self) -> f64 {
        match self {
            RangeKey::Null => 0.0,
            RangeKey::Exact(number) => number.to_f64(),
            RangeKey::Double(number) => number,
        }
    }

    /// The sum, or the difference. It is a double if one of the two is, or if there are too many digits.
    pub(crate) fn moved_by(self, distance: RangeKey, back: bool) -> RangeKey {
        if let (RangeKey::Exact(number), RangeKey::Exact(distance)) = (self, distance) {
            let exact = if back { number.subtract(&distance) } else { number.add(&distance) };
            if let Some(exact) = exact {
                return RangeKey::Exact(exact);
            }
        }
        let distance = distance.to_f64();
        RangeKey::Double(self.to_f64() + if back { -distance } else { distance })
    }

    /// The order of two numbers. NULL is not one.
    pub(crate) fn order(&self, other: &RangeKey) -> Ordering {
        match (self, other) {
            (RangeKey::Exact(number), RangeKey::Exact(other)) => number.compare(other),
            _ => self.to_f64().partial_cmp(&other.to_f64()).unwrap_or(Ordering::Equal),
        }
    }
}

impl CompiledAggregate {
    /// True if values can be taken out again without a loss of digits.
    pub(crate) fn is_invertible(&self) -> bool {
        match self.kind {
            AggregateKind::CountRows | AggregateKind::Count | AggregateKind::BitXor => true,
            AggregateKind::Sum | AggregateKind::Average => self.typed.class == Class::Decimal,
            AggregateKind::Minimum
            | AggregateKind::Maximum
            | AggregateKind::GroupConcat
            | AggregateKind::JsonArray
            | AggregateKind::JsonObject
            | AggregateKind::BitAnd
            | AggregateKind::BitOr
            | AggregateKind::StandardDeviation
            | AggregateKind::SampleStandardDeviation
            | AggregateKind::Variance
            | AggregateKind::SampleVariance => false,
        }
    }

    /// Takes a value in. NULL changes nothing.
    ///
    /// # Errors
    /// 1690 if a sum is too large.
    pub(crate) fn include(
        &self,
        group: &mut Accumulator,
        value: &ValueRef<'_>,
        context: &Context<'_>,
    ) -> Result<(), SqlError> {
        if value.is_null() {
            return Ok(());
        }
        let mut room = Room { grown: 0, beyond: None, group: 0, aggregate: 0, row: 0 };
        self.add_value(group, value, context, &mut room)
    }

    /// Takes a value out again, if the aggregate is invertible.
    ///
    /// # Errors
    /// As [`CompiledAggregate::include`].
    pub(crate) fn exclude(
        &self,
        group: &mut Accumulator,
        value: &ValueRef<'_>,
        context: &Context<'_>,
    ) -> Result<(), SqlError> {
        if value.is_null() {
            return Ok(());
        }
        match &mut group.state {
            State::Count(count) => *count = count.saturating_sub(1),
            State::Sum(sum, count) => {
                let Some(number) = evaluate::to_number(value, context) else { return Ok(()) };
                let opposite = match (&*sum, number) {
                    (Sum::Integers(sum), Number::Int(number)) => {
                        Some(Sum::Integers(sum - i128::from(number)))
                    }
                    (Sum::Integers(sum), Number::UInt(number)) => {
                        Some(Sum::Integers(sum - i128::from(number)))
                    }
                    (sum, number) => sum.plus(Number::Decimal(number.to_decimal().negate())),
                };
                *sum = opposite.ok_or_else(|| self.overflow())?;
                *count = count.saturating_sub(1);
            }
            // Each number is its own inverse.
            State::BitXor(_) => return self.include(group, value, context),
            _ => return Err(SqlError::internal("an aggregate that cannot be taken back")),
        }
        Ok(())
    }

    /// What two neighbouring stretches of rows have gathered, together.
    ///
    /// # Errors
    /// As [`CompiledAggregate::include`].
    pub(crate) fn joined(
        &self,
        before: &Accumulator,
        after: &Accumulator,
        context: &Context<'_>,
    ) -> Result<Accumulator, SqlError> {
        let state = match (&before.state, &after.state) {
            (State::Count(a), State::Count(b)) => State::Count(a + b),
            (State::Sum(a, count), State::Sum(b, more)) => {
                let sum = match (a, b) {
                    (Sum::Integers(a), Sum::Integers(b)) => Sum::Integers(a + b),
                    _ if *count == 0 => *b,
                    _ if *more == 0 => *a,
                    (a, b) => a.plus(b.number()).ok_or_else(|| self.overflow())?,
                };
                State::Sum(sum, count + more)
            }
            (State::Extreme(a, wanted), State::Extreme(b, _)) => {
                let is_better = || {
                    let order = evaluate::compare(&b.as_ref(), &a.as_ref(), self.collation, context);
                    order == Some(*wanted)
                };
                let later = !b.is_null() && (a.is_null() || is_better());
                State::Extreme(if later { b.clone() } else { a.clone() }, *wanted)
            }
            (State::BitAnd(a), State::BitAnd(b)) => State::BitAnd(a & b),
            (State::BitOr(a), State::BitOr(b)) => State::BitOr(a | b),
            (State::BitXor(a), State::BitXor(b)) => State::BitXor(a ^ b),
            (State::Variance { count: 0, .. }, State::Variance { count, mean, squares })
            | (State::Variance { count, mean, squares }, State::Variance { count: 0, .. }) => {
                State::Variance { count: *count, mean: *mean, squares: *squares }
            }
            // Chan, Golub and LeVeque's sum of two samples (COMPSTAT 1982).
            (
                State::Variance { count, mean, squares },
                State::Variance { count: more, mean: other, squares: others },
            ) => {
                let all = count + more;
                let difference = other - mean;
                let share = *more as f64 / all as f64;
                State::Variance {
                    count: all,
                    mean: mean + difference * share,
                    squares: squares + others + difference * difference * share * *count as f64,
                }
            }
            _ => return Err(SqlError::internal("an aggregate that cannot be joined")),
        };
        let mut joined = self.start();
        joined.state = state;
        Ok(joined)
    }

    /// The result of what was gathered so far.
    pub(crate) fn result(&self, group: &Accumulator, context: &Context<'_>) -> Value {
        self.finish(group.clone(), context)
    }
}

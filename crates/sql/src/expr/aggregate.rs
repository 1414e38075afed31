//! Aggregate functions.

use super::compile::compile_with;
use super::evaluate::{self, Number};
use super::functions::json::{push_as_json, push_string};
use super::result_type::{Class, Meaning, Typed};
use super::{Compiled, Context, Expr, Function, Leaves, ResultType, Row};
use crate::result::DECIMALS_FLOATING;
use crate::spill::{Sorter, append_row};
use crate::{ErrorKind, SqlError, ToldAs};
use std::cmp::Ordering;
use std::collections::HashSet;
use types::{Collation, ColumnType, Value, ValueRef};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AggregateKind {
    /// COUNT(*).
    CountRows,
    /// COUNT(x), COUNT(DISTINCT x, ...): rows in which no argument is NULL.
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
    GroupConcat,
    /// JSON_ARRAYAGG: as GROUP_CONCAT, of values as JSON.
    JsonArray,
    /// JSON_OBJECTAGG(key, value).
    JsonObject,
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
    /// MIN and MAX.
    fn is_extreme(self) -> bool {
        matches!(self, AggregateKind::Minimum | AggregateKind::Maximum)
    }

    /// True if its arguments are numbers.
    fn is_of_numbers(self) -> bool {
        match self {
            AggregateKind::Sum
            | AggregateKind::Average
            | AggregateKind::BitAnd
            | AggregateKind::BitOr
            | AggregateKind::BitXor
            | AggregateKind::StandardDeviation
            | AggregateKind::SampleStandardDeviation
            | AggregateKind::Variance
            | AggregateKind::SampleVariance => true,
            AggregateKind::CountRows
            | AggregateKind::Count
            | AggregateKind::Minimum
            | AggregateKind::Maximum
            | AggregateKind::GroupConcat
            | AggregateKind::JsonArray
            | AggregateKind::JsonObject => false,
        }
    }

    /// The name that messages use.
    pub(crate) fn name(self) -> &'static str {
        let listed = if self == AggregateKind::CountRows { AggregateKind::Count } else { self };
        Function::all()
            .find(|function| function.aggregate() == Some(listed))
            .map_or("", |function| function.name)
    }
}

/// An aggregate function as the statement has it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Aggregate {
    pub kind: AggregateKind,
    pub distinct: bool,
    pub arguments: Vec<Expr>,
    /// GROUP_CONCAT: `,` if not given.
    pub separator: Option<String>,
    /// GROUP_CONCAT's ORDER BY: expressions, and true for DESC.
    pub order: Vec<(Expr, bool)>,
}

/// An aggregate ready to run. All groups share it, and each has its own [`Accumulator`].
#[derive(Debug)]
pub(crate) struct CompiledAggregate {
    pub(super) kind: AggregateKind,
    distinct: bool,
    pub(super) arguments: Vec<Compiled>,
    order: Vec<(Compiled, bool)>,
    separator: Vec<u8>,
    pub(super) collation: Collation,
    pub(super) typed: Typed,
    /// Quotients keep the digits that only further arithmetic needs.
    all_digits: bool,
}

/// What one group has gathered.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    pub(super) state: State,
    /// Keys of the values that were seen, for DISTINCT.
    seen: HashSet<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Sum {
    /// As long as there are only integers. No number of rows makes it too large.
    Integers(i128),
    Others(Number),
}

impl Sum {
    /// `None` if the sum gets too large.
    #[inline]
    pub(super) fn plus(self, number: Number) -> Option<Sum> {
        Some(Sum::Others(match (self, number) {
            (Sum::Integers(sum), Number::Int(number)) => {
                return Some(Sum::Integers(sum + i128::from(number)));
            }
            (Sum::Integers(sum), Number::UInt(number)) => {
                return Some(Sum::Integers(sum + i128::from(number)));
            }
            (Sum::Integers(0), number) => number,
            (sum, Number::Int(_) | Number::UInt(_)) => {
                evaluate::add(sum.number(), Number::Decimal(number.to_decimal()))?
            }
            (sum, number) => evaluate::add(sum.number(), number)?,
        }))
    }

    pub(super) fn number(self) -> Number {
        match self {
            Sum::Integers(sum) => Number::Decimal(sum.into()),
            Sum::Others(sum) => sum,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum State {
    Count(u64),
    /// SUM and AVG, and the count of the numbers.
    Sum(Sum, u64),
    /// MIN and MAX, and the order in which a better value stands to the one here.
    Extreme(Value, Ordering),
    BitAnd(u64),
    BitOr(u64),
    BitXor(u64),
    /// Welford's running mean and sum of squared differences (Technometrics 4, 1962).
    Variance {
        count: u64,
        mean: f64,
        squares: f64,
    },
    /// GROUP_CONCAT without an order: the text so far, of how many rows it is, and the row that was cut.
    Joined {
        text: Vec<u8>,
        rows: u64,
        cut: Option<u64>,
    },
    /// GROUP_CONCAT with an order: the order's values and the text of each row, and the bytes of the texts
    /// with their separators.
    Texts {
        texts: Vec<(Vec<Value>, Vec<u8>)>,
        bytes: usize,
    },
}

/// The default of `group_concat_max_len`: bytes of a GROUP_CONCAT. The type of the result has room for these.
pub(crate) const GROUP_CONCAT_BYTES: usize = 1 << 20;

/// Memory for what groups gather.
#[derive(Debug)]
pub(crate) struct Room<'r, 'w> {
    /// By how many bytes the groups have grown.
    pub grown: isize,
    /// Takes the values of DISTINCT for which there is no memory left. `None` as long as there is.
    pub beyond: Option<&'r mut Sorter<'w>>,
    /// The number of the group, and of the aggregate: how those values are told apart.
    pub group: u64,
    pub aggregate: u32,
    /// The number of the row. It comes before each of those values.
    pub row: u64,
}

/// The length of what a value of [`Room::beyond`] has before its own key: the numbers of group and aggregate.
pub(crate) const ROOM_KEY_BYTES: usize = 12;

/// The texts of a GROUP_CONCAT with an order are cut when they are longer than twice what the result has room
/// for, and so many bytes.
const SLACK_BYTES: usize = 4 << 10;

/// What the set of DISTINCT needs for a value, beside the bytes of its key.
const SEEN_BYTES: usize = 2 * size_of::<Vec<u8>>();

impl CompiledAggregate {
    /// # Errors
    /// As [`Compiled::new`](super::Compiled::new).
    pub(crate) fn new(aggregate: &Aggregate, connection: Collation) -> Result<CompiledAggregate, SqlError> {
        let compile = |expr: &Expr| match (aggregate.kind.is_of_numbers(), expr) {
            (true, _) => Compiled::number(expr, connection),
            // Addresses and UUIDs are compared as they are stored.
            (false, Expr::Column(column))
                if matches!(column.column_type, ColumnType::Code(_)) && aggregate.kind.is_extreme() =>
            {
                Compiled::stored(expr, connection)
            }
            (false, _) => Compiled::new(expr, connection),
        };
        let arguments = aggregate.arguments.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        let wanted = match aggregate.kind {
            AggregateKind::CountRows => 0..=0,
            AggregateKind::GroupConcat => 1..=usize::MAX,
            AggregateKind::JsonArray => 1..=1,
            AggregateKind::JsonObject => 2..=2,
            AggregateKind::Count if aggregate.distinct => 1..=usize::MAX,
            AggregateKind::Count
            | AggregateKind::Sum
            | AggregateKind::Average
            | AggregateKind::Minimum
            | AggregateKind::Maximum
            | AggregateKind::BitAnd
            | AggregateKind::BitOr
            | AggregateKind::BitXor
            | AggregateKind::StandardDeviation
            | AggregateKind::SampleStandardDeviation
            | AggregateKind::Variance
            | AggregateKind::SampleVariance => 1..=1,
        };
        if !wanted.contains(&arguments.len()) {
            return Err(SqlError::wrong_parameter_count(aggregate.kind.name()));
        }
        let stored = |expr: &Expr| Compiled::stored(expr, connection);
        if let ([Expr::Column(column)], true) = (&aggregate.arguments[..], aggregate.kind.is_of_numbers())
            && let ColumnType::Code(code) = column.column_type
        {
            let (code, name) = (code.name(), aggregate.kind.name());
            let message = format!("Illegal parameter data type {code} for operation '{name}('");
            return Err(SqlError::new(ErrorKind::IllegalParameterType, message));
        }
        let order = aggregate.order.iter().map(|(expr, descending)| Ok((stored(expr)?, *descending)));
        let types: Vec<&Typed> = arguments.iter().map(Compiled::typed).collect();
        let mut typed = result_type(aggregate, &types, connection);
        if let [Expr::Column(column)] = &aggregate.arguments[..]
            && aggregate.kind.is_extreme()
            && column.column_type.members().is_some()
        {
            // Members compare as texts, and the result is a member.
            typed.result = ResultType::of(column.column_type.clone(), true);
        }
        Ok(CompiledAggregate {
            kind: aggregate.kind,
            distinct: aggregate.distinct,
            order: order.collect::<Result<Vec<_>, SqlError>>()?,
            separator: match &aggregate.separator {
                Some(text) => text.as_bytes().to_vec(),
                None if aggregate.kind == AggregateKind::JsonObject => b", ".to_vec(),
                None => b",".to_vec(),
            },
            collation: types.first().map_or(connection, |typed| match typed.class.is_text() {
                true => typed.collation(),
                false => connection,
            }),
            typed,
            arguments,
            all_digits: false,
        })
    }

    /// The type of the result, with what is known of the leaves of the arguments.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    pub(crate) fn described(
        aggregate: &Aggregate,
        connection: Collation,
        leaves: &dyn Leaves,
    ) -> Result<ResultType, SqlError> {
        let wants_number = aggregate.kind.is_of_numbers();
        let compile = |argument| Ok(compile_with(argument, connection, leaves, wants_number)?.1);
        let types: Vec<Typed> = aggregate.arguments.iter().map(compile).collect::<Result<_, SqlError>>()?;
        Ok(result_type(aggregate, &types.iter().collect::<Vec<_>>(), connection).result)
    }

    /// Results of quotients keep the digits that only further arithmetic needs. As in MariaDB, which rounds
    /// them when it groups.
    pub(crate) fn with_all_digits(self) -> CompiledAggregate {
        CompiledAggregate { all_digits: true, ..self }
    }

    pub(crate) fn result_type(&self) -> &ResultType {
        &self.typed.result
    }

    /// True if a group keeps more with each row.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.kind == AggregateKind::GroupConcat || self.is_json()
    }

    fn is_json(&self) -> bool {
        matches!(self.kind, AggregateKind::JsonArray | AggregateKind::JsonObject)
    }

    /// True if the result depends on the order of the values, because doubles are rounded at each step.
    pub(crate) fn depends_on_order(&self) -> bool {
        self.typed.class == Class::Double
    }

    /// An empty group.
    pub(crate) fn start(&self) -> Accumulator {
        let state = match self.kind {
            AggregateKind::CountRows | AggregateKind::Count => State::Count(0),
            AggregateKind::Sum | AggregateKind::Average => State::Sum(Sum::Integers(0), 0),
            AggregateKind::Minimum => State::Extreme(Value::Null, Ordering::Less),
            AggregateKind::Maximum => State::Extreme(Value::Null, Ordering::Greater),
            AggregateKind::BitAnd => State::BitAnd(u64::MAX),
            AggregateKind::BitOr => State::BitOr(0),
            AggregateKind::BitXor => State::BitXor(0),
            AggregateKind::GroupConcat | AggregateKind::JsonArray | AggregateKind::JsonObject
                if self.order.is_empty() =>
            {
                State::Joined { text: Vec::new(), rows: 0, cut: None }
            }
            AggregateKind::GroupConcat | AggregateKind::JsonArray | AggregateKind::JsonObject => {
                State::Texts { texts: Vec::new(), bytes: 0 }
            }
            AggregateKind::StandardDeviation
            | AggregateKind::SampleStandardDeviation
            | AggregateKind::Variance
            | AggregateKind::SampleVariance => State::Variance { count: 0, mean: 0.0, squares: 0.0 },
        };
        Accumulator { state, seen: HashSet::new() }
    }

    /// Takes one row in.
    ///
    /// # Errors
    /// As [`Compiled::evaluate`](super::Compiled::evaluate), and those of the sorter.
    pub(crate) fn add<'a>(
        &'a self,
        group: &mut Accumulator,
        row: &Row<'a>,
        context: &Context<'a>,
        room: &mut Room<'_, '_>,
    ) -> Result<(), SqlError> {
        if let (AggregateKind::CountRows, State::Count(count)) = (self.kind, &mut group.state) {
            *count += 1;
            return Ok(());
        }
        let value = match self.arguments.as_slice() {
            [argument] if (self.all_digits || matches!(group.state, State::Sum(..))) && !self.distinct => {
                argument.exact(row, context)?
            }
            [argument] => argument.evaluate(row, context)?,
            [key, value] if self.kind == AggregateKind::JsonObject => {
                let key = key.evaluate(row, context)?;
                let Some(key) = evaluate::to_text(&key, context) else { return Ok(()) };
                let value = value.evaluate(row, context)?;
                let mut member = Vec::new();
                push_string(key, &mut member);
                member.push(b':');
                push_as_json(&value, self.arguments[1].typed().meaning, context, &mut member);
                ValueRef::Text(context.arena.alloc_slice_copy(&member))
            }
            arguments => match joined(arguments, row, context)? {
                Some(joined) => joined,
                None => return Ok(()),
            },
        };
        if value.is_null() && !self.is_json() {
            return Ok(());
        }
        if self.distinct && !self.is_new(&value, row, context, group, room)? {
            return Ok(());
        }
        let value = match self.kind == AggregateKind::JsonArray {
            true => {
                let mut item = Vec::new();
                push_as_json(&value, self.arguments[0].typed().meaning, context, &mut item);
                ValueRef::Text(context.arena.alloc_slice_copy(&item))
            }
            false => value,
        };
        if let State::Texts { texts, bytes } = &mut group.state {
            let Some(text) = evaluate::to_text(&value, context) else { return Ok(()) };
            let mut order = Vec::with_capacity(self.order.len());
            for (key, _) in &self.order {
                order.push(key.evaluate(row, context)?.to_value());
            }
            *bytes += text.len() + self.separator.len();
            room.grown += self.row_bytes(&order, text) as isize;
            texts.push((order, text.to_vec()));
            let max = context.environment.group_concat_bytes();
            if *bytes > max.saturating_mul(2).saturating_add(SLACK_BYTES) {
                self.cut(texts, bytes, max, context, room);
            }
            return Ok(());
        }
        self.add_value(group, &value, context, room)
    }

    /// Takes in a value that is not NULL and, with DISTINCT, new to the group. For GROUP_CONCAT with an order
    /// it does nothing.
    ///
    /// # Errors
    /// 1690 if a sum is too large.
    pub(crate) fn add_value(
        &self,
        group: &mut Accumulator,
        value: &ValueRef<'_>,
        context: &Context<'_>,
        room: &mut Room<'_, '_>,
    ) -> Result<(), SqlError> {
        match &mut group.state {
            State::Count(count) => *count += 1,
            State::Sum(sum, count) => {
                let Some(number) = evaluate::to_number(value, context) else { return Ok(()) };
                *sum = sum.plus(number).ok_or_else(|| self.overflow())?;
                *count += 1;
            }
            State::Extreme(extreme, wanted) => {
                let order = || evaluate::compare(value, &extreme.as_ref(), self.collation, context);
                if extreme.is_null() || order() == Some(*wanted) {
                    *extreme = value.to_value();
                }
            }
            State::BitAnd(bits) => *bits &= bits_of(value, context),
            State::BitOr(bits) => *bits |= bits_of(value, context),
            State::BitXor(bits) => *bits ^= bits_of(value, context),
            State::Variance { count, mean, squares } => {
                let number = evaluate::to_number(value, context).map_or(0.0, Number::to_f64);
                *count += 1;
                let difference = number - *mean;
                *mean += difference / *count as f64;
                *squares += difference * (number - *mean);
            }
            State::Joined { text, rows, cut } => {
                let Some(more) = evaluate::to_text(value, context) else { return Ok(()) };
                if cut.is_none() {
                    let before = text.len();
                    if *rows > 0 {
                        text.extend_from_slice(&self.separator);
                    }
                    text.extend_from_slice(more);
                    *rows += 1;
                    let max = context.environment.group_concat_bytes();
                    // As in MariaDB, an object is never cut.
                    if text.len() > max && self.kind != AggregateKind::JsonObject {
                        self.truncate(text, max);
                        *cut = Some(*rows);
                    }
                    room.grown += text.len() as isize - before as isize;
                }
            }
            State::Texts { .. } => {}
        }
        Ok(())
    }

    /// True if the value is new to the group. Texts that are equal in the collation are the same value. If
    /// there is no memory left, the value goes where the room says, and counts as known.
    fn is_new<'a>(
        &'a self,
        value: &ValueRef<'a>,
        row: &Row<'a>,
        context: &Context<'a>,
        group: &mut Accumulator,
        room: &mut Room<'_, '_>,
    ) -> Result<bool, SqlError> {
        let mut key = Vec::new();
        if room.beyond.is_some() {
            key.extend_from_slice(&room.group.to_be_bytes());
            key.extend_from_slice(&room.aggregate.to_be_bytes());
        }
        let start = key.len();
        match self.arguments.len() {
            1 => self.arguments[0].write_group_key(value, &mut key),
            _ => {
                for argument in &self.arguments {
                    let value = argument.evaluate(row, context)?;
                    argument.write_group_key(&value, &mut key);
                }
            }
        }
        // What GROUP_CONCAT keeps is bounded, and it depends on the order of the rows.
        if let Some(beyond) = &mut room.beyond
            && !self.keeps_rows()
        {
            if !group.seen.contains(&key[start..]) {
                let mut row = room.row.to_be_bytes().to_vec();
                append_row(std::slice::from_ref(value), &mut row);
                beyond.push(&key, &row)?;
            }
            return Ok(false);
        }
        key.drain(..start);
        let bytes = key.len() + SEEN_BYTES;
        let is_new = group.seen.insert(key);
        if is_new {
            room.grown += bytes as isize;
        }
        Ok(is_new)
    }

    /// What a row of GROUP_CONCAT with an order takes.
    fn row_bytes(&self, order: &[Value], text: &[u8]) -> usize {
        let texts = order.iter().filter_map(|value| value.as_ref().as_bytes()).map(<[u8]>::len);
        size_of::<(Vec<Value>, Vec<u8>)>() + size_of_val(order) + texts.sum::<usize>() + text.len()
    }

    /// Throws away the texts that the result has no room for.
    fn cut(
        &self,
        texts: &mut Vec<(Vec<Value>, Vec<u8>)>,
        bytes: &mut usize,
        max: usize,
        context: &Context<'_>,
        room: &mut Room<'_, '_>,
    ) {
        self.sort(texts, context);
        let mut kept = 0;
        let fits = texts.iter().take_while(|(_, text)| {
            let before = kept;
            kept += text.len() + self.separator.len();
            // One more than fits, so that the end knows that something was cut.
            before <= max.saturating_add(self.separator.len())
        });
        let count = fits.count();
        for (order, text) in texts.drain(count..) {
            *bytes -= text.len() + self.separator.len();
            room.grown -= self.row_bytes(&order, &text) as isize;
        }
    }

    /// Cuts a text to `max` bytes, or to fewer if a character would be cut in two.
    fn truncate(&self, text: &mut Vec<u8>, max: usize) {
        let mut end = max.min(text.len());
        if self.typed.class != Class::Binary {
            while end > 0 && text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
                end -= 1;
            }
        }
        text.truncate(end);
    }

    pub(super) fn overflow(&self) -> SqlError {
        let kind = if self.typed.class == Class::Double { "DOUBLE" } else { "DECIMAL" };
        SqlError::new(
            ErrorKind::DataOutOfRange,
            format!("{kind} value is out of range in '{}()'", self.kind.name()),
        )
    }

    /// The result of a group.
    pub(crate) fn finish(&self, group: Accumulator, context: &Context<'_>) -> Value {
        match group.state {
            State::Count(count) => Value::Int(count as i64),
            State::Sum(_, 0) => Value::Null,
            State::Sum(sum, _) if self.kind == AggregateKind::Sum => self.finished(sum.number()),
            State::Sum(sum, count) => {
                let average = evaluate::divide(sum.number(), Number::UInt(count));
                average.map_or(Value::Null, |average| self.finished(average))
            }
            State::Extreme(value, _) => super::coded::stored(value, &self.typed.result.column_type),
            State::BitAnd(bits) | State::BitOr(bits) | State::BitXor(bits) => Value::UInt(bits),
            State::Variance { count, squares, .. } => {
                let sample = matches!(
                    self.kind,
                    AggregateKind::SampleVariance | AggregateKind::SampleStandardDeviation
                );
                let divisor = count.saturating_sub(sample as u64);
                if divisor == 0 {
                    return Value::Null;
                }
                let variance = squares / divisor as f64;
                let is_variance =
                    matches!(self.kind, AggregateKind::Variance | AggregateKind::SampleVariance);
                Value::Double(if is_variance { variance } else { variance.sqrt() })
            }
            State::Joined { rows: 0, .. } => Value::Null,
            State::Joined { text, cut, .. } => self.concatenated(text, cut, context),
            State::Texts { texts, .. } => self.join(texts, context),
        }
    }

    fn finished(&self, number: Number) -> Value {
        match number {
            Number::Decimal(number) if !self.all_digits => Value::Decimal(number.rounded()),
            number => number.to_value().to_value(),
        }
    }

    /// The result of GROUP_CONCAT. `cut` is the number of the row that did not fit.
    fn concatenated(&self, text: Vec<u8>, cut: Option<u64>, context: &Context<'_>) -> Value {
        if let Some(row) = cut {
            let message = format!("Row {row} was cut by {}()", self.kind.name().to_uppercase());
            context.environment.warn(ErrorKind::CutByGroupConcat, message);
        }
        let text = if self.kind == AggregateKind::JsonArray {
            // As in MariaDB, a text that was cut ends with a quote.
            let is_plain = self.arguments.iter().all(|argument| {
                argument.typed().meaning == Meaning::Plain && !argument.typed().class.is_numeric()
            });
            match (text.split_last(), cut) {
                (Some((_, kept)), Some(_)) if is_plain => [b"[", kept, b"\"]"].concat(),
                _ => [b"[", &text[..], b"]"].concat(),
            }
        } else if self.kind == AggregateKind::JsonObject {
            [b"{", &text[..], b"}"].concat()
        } else {
            text
        };
        match self.typed.class {
            Class::Binary => Value::Binary(text),
            _ => Value::Text(text),
        }
    }

    fn sort(&self, texts: &mut [(Vec<Value>, Vec<u8>)], context: &Context<'_>) {
        texts.sort_by(|(a, _), (b, _)| {
            for ((a, b), (key, descending)) in a.iter().zip(b).zip(&self.order) {
                let order = match (a.is_null(), b.is_null()) {
                    (true, true) => Ordering::Equal,
                    (true, false) => Ordering::Less,
                    (false, true) => Ordering::Greater,
                    _ => evaluate::compare(&a.as_ref(), &b.as_ref(), key.typed().collation(), context)
                        .unwrap_or(Ordering::Equal),
                };
                if order.is_ne() {
                    return if *descending { order.reverse() } else { order };
                }
            }
            Ordering::Equal
        });
    }

    fn join(&self, mut texts: Vec<(Vec<Value>, Vec<u8>)>, context: &Context<'_>) -> Value {
        if texts.is_empty() {
            return Value::Null;
        }
        self.sort(&mut texts, context);
        let max = context.environment.group_concat_bytes();
        let mut joined = Vec::new();
        for (index, (_, text)) in texts.iter().enumerate() {
            if index > 0 {
                joined.extend_from_slice(&self.separator);
            }
            joined.extend_from_slice(text);
            if joined.len() > max {
                self.truncate(&mut joined, max);
                return self.concatenated(joined, Some(index as u64 + 1), context);
            }
        }
        self.concatenated(joined, None, context)
    }
}

/// The texts of several arguments put together; `None` if one is NULL.
fn joined<'a>(
    arguments: &'a [Compiled],
    row: &Row<'a>,
    context: &Context<'a>,
) -> Result<Option<ValueRef<'a>>, SqlError> {
    let mut joined = Vec::new();
    for argument in arguments {
        let value = argument.evaluate(row, context)?;
        match evaluate::to_text(&value, context) {
            Some(text) => joined.extend_from_slice(text),
            None => return Ok(None),
        }
    }
    Ok(Some(ValueRef::Text(context.arena.alloc_slice_copy(&joined))))
}

fn bits_of(value: &ValueRef<'_>, context: &Context<'_>) -> u64 {
    evaluate::to_number(value, context).map_or(0, evaluate::number_to_int) as u64
}

fn result_type(aggregate: &Aggregate, arguments: &[&Typed], connection: Collation) -> Typed {
    use AggregateKind as K;
    let kind = aggregate.kind;
    let is_column = matches!(aggregate.arguments[..], [Expr::Column(_) | Expr::Outer(_)]);
    let Some(first) = arguments.first() else { return Typed::int(8, false, false).with_display(21) };
    let is_double = matches!(first.class, Class::Double | Class::Text | Class::Binary);
    let (whole, scale) = first.digits();
    match kind {
        K::CountRows | K::Count => Typed::int(8, false, false).with_display(21),
        K::Average if is_double => {
            let chars = first.chars().saturating_add(super::DIVISION_INCREMENT as u32);
            let typed = Typed::double(true);
            let chars_max = typed.chars();
            typed.with_display(chars.min(chars_max))
        }
        K::Sum if is_double => Typed::double(true),
        // SUM has room for 22 more digits than its argument.
        K::Sum => Typed::decimal(whole + scale as u32 + 22, scale, true),
        K::Average => {
            let scale = scale.saturating_add(super::DIVISION_INCREMENT);
            Typed::decimal(whole + scale as u32, scale, true)
        }
        K::Minimum | K::Maximum => {
            let mut typed = (*first).clone().computed();
            typed.result.nullable = true;
            match typed.result.column_type {
                // As in MariaDB, for MIN and MAX of an expression. The value stays a FLOAT, which shows where
                // it becomes a text.
                ColumnType::Float { .. } if !is_column => Typed::double(true),
                ColumnType::Float { .. } | ColumnType::Double { .. }
                    if typed.result.decimals == DECIMALS_FLOATING =>
                {
                    let chars = Typed::double(true).chars();
                    typed.with_display(chars)
                }
                ColumnType::Int { unsigned, .. } if !is_column => {
                    let chars = typed.chars();
                    Typed::int(8, unsigned, true).with_display(chars)
                }
                ColumnType::Text { .. } => typed.told_as(ToldAs::Blob),
                _ => typed,
            }
        }
        K::BitAnd | K::BitOr | K::BitXor => Typed::bigint(true, false),
        K::GroupConcat | K::JsonArray | K::JsonObject => {
            let collation = match arguments.iter().find(|typed| typed.class.is_text()) {
                Some(typed) => typed.collation(),
                None => connection,
            };
            let chars = GROUP_CONCAT_BYTES as u32;
            let typed = Typed::text(chars, collation, true).without_decimals().told_as(ToldAs::Blob);
            let is_json = kind != K::GroupConcat;
            Typed { meaning: if is_json { Meaning::Json } else { Meaning::Plain }, ..typed }
        }
        K::StandardDeviation | K::SampleStandardDeviation | K::Variance | K::SampleVariance if is_double => {
            Typed::double(true)
        }
        // Of exact numbers, variances show four more digits.
        K::StandardDeviation | K::SampleStandardDeviation | K::Variance | K::SampleVariance => {
            let precision = 2 * (whole + scale as u32) + super::DIVISION_INCREMENT as u32;
            // A point and a sign.
            Typed::double_with(scale as u32 + super::DIVISION_INCREMENT as u32, true)
                .with_display(precision + 2)
        }
    }
}

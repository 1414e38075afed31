//! The functions that only a window has.

use super::frame::{Group, Sorted};
use super::sliding::Sliding;
use crate::expr::{Context, WindowKind, place_of, share_of, whole_number};
use crate::plan::window::{ComputedBy, WindowCall};
use crate::spill::RowCursor;
use crate::{ErrorKind, SqlError};
use types::Value;

/// Computes one function for the rows of a sort, one after the other.
pub(super) struct Runner<'p> {
    call: &'p WindowCall,
    state: State<'p>,
    cursor: RowCursor,
    /// For what is read beside the current row.
    other: RowCursor,
}

enum State<'p> {
    Aggregate(Box<Sliding<'p>>),
    RowNumber,
    Rank,
    /// The first of the peers, and their rank.
    DenseRank(usize, i64),
    PercentRank,
    CumeDist,
    /// The number of parts. 0 before the first row of a partition.
    Ntile(i64),
    /// LAG and LEAD.
    Neighbour {
        is_before: bool,
    },
    FirstValue,
    LastValue,
    NthValue,
    Percentile {
        is_exact: bool,
        result: Value,
    },
}

/// Where a row is.
#[derive(Clone, Copy)]
pub(super) struct Place<'s> {
    pub(super) row: usize,
    pub(super) partition: &'s Group,
    pub(super) peers: &'s Group,
    pub(super) frame: (usize, usize),
}

impl<'p> Runner<'p> {
    pub(super) fn new(call: &'p WindowCall) -> Runner<'p> {
        use WindowKind as K;
        let state = match &call.function {
            ComputedBy::Aggregate(aggregate) => {
                State::Aggregate(Box::new(Sliding::new(aggregate, call.arguments.first().copied())))
            }
            ComputedBy::Own(kind) => match kind {
                K::RowNumber => State::RowNumber,
                K::Rank => State::Rank,
                K::DenseRank => State::DenseRank(0, 0),
                K::PercentRank => State::PercentRank,
                K::CumeDist => State::CumeDist,
                K::Ntile => State::Ntile(0),
                K::Lag => State::Neighbour { is_before: true },
                K::Lead => State::Neighbour { is_before: false },
                K::FirstValue => State::FirstValue,
                K::LastValue => State::LastValue,
                K::NthValue => State::NthValue,
                K::Median | K::PercentileCont => State::Percentile { is_exact: false, result: Value::Null },
                K::PercentileDisc => State::Percentile { is_exact: true, result: Value::Null },
            },
        };
        Runner { call, state, cursor: RowCursor::default(), other: RowCursor::default() }
    }

    /// The function's result in a row. Rows come in ascending order, all of them.
    pub(super) fn result(
        &mut self,
        place: Place<'_>,
        sorted: Sorted<'_, '_>,
        context: &Context<'_>,
    ) -> Result<Value, SqlError> {
        let Place { row, partition, peers, frame } = place;
        let rows = (partition.end - partition.start) as i64;
        let rank = (peers.start - partition.start) as i64 + 1;
        let number = (row - partition.start) as i64 + 1;
        let is_first = row == partition.start;
        Ok(match &mut self.state {
            State::Aggregate(sliding) => sliding.over(frame, sorted, context)?,
            State::RowNumber => Value::Int(number),
            State::Rank => Value::Int(rank),
            State::DenseRank(first, rank) => {
                if is_first {
                    (*first, *rank) = (row, 1);
                } else if peers.start != *first {
                    (*first, *rank) = (peers.start, *rank + 1);
                }
                Value::Int(*rank)
            }
            State::PercentRank if rows == 1 => Value::Double(0.0),
            State::PercentRank => Value::Double((rank - 1) as f64 / (rows - 1) as f64),
            State::CumeDist => Value::Double((peers.end - partition.start) as f64 / rows as f64),
            State::Ntile(before) => {
                let before = if is_first { 0 } else { *before };
                let parts = self.count(sorted, row, 0, context)?.unwrap_or(0);
                self.state = State::Ntile(parts);
                Value::Int(ntile(before, parts, number, rows)?)
            }
            State::Neighbour { is_before } => {
                let is_before = *is_before;
                let distance = match self.call.arguments.len() {
                    1 => 1,
                    _ => self.count(sorted, row, 1, context)?.unwrap_or(0),
                };
                let at = (row as i64).checked_add(if is_before { -distance } else { distance });
                self.value_at(at, (partition.start, partition.end), sorted)?
            }
            State::FirstValue => self.value_at(Some(frame.0 as i64), frame, sorted)?,
            State::LastValue => self.value_at(Some(frame.1 as i64 - 1), frame, sorted)?,
            State::NthValue => {
                let place = {
                    let value = sorted.argument(&mut self.cursor, row, self.call.arguments[1])?;
                    place_of(&value, context)
                };
                self.value_at((frame.0 as i64).checked_add(place), frame, sorted)?
            }
            State::Percentile { .. } => {
                if is_first {
                    let found = self.percentile(partition, sorted, context)?;
                    if let State::Percentile { result, .. } = &mut self.state {
                        *result = found;
                    }
                }
                let share = sorted.argument(&mut self.cursor, row, self.call.arguments[1])?;
                match &self.state {
                    State::Percentile { result, .. } if !share.is_null() => result.clone(),
                    _ => Value::Null,
                }
            }
        })
    }

    /// An argument in the current row as a whole number; `None` for NULL.
    fn count(
        &mut self,
        sorted: Sorted<'_, '_>,
        row: usize,
        nth: usize,
        context: &Context<'_>,
    ) -> Result<Option<i64>, SqlError> {
        let value = sorted.argument(&mut self.cursor, row, self.call.arguments[nth])?;
        Ok(whole_number(&value, context))
    }

    /// The first argument in another row. NULL if that is not one of the range.
    fn value_at(
        &mut self,
        at: Option<i64>,
        (start, end): (usize, usize),
        sorted: Sorted<'_, '_>,
    ) -> Result<Value, SqlError> {
        match at.and_then(|at| usize::try_from(at).ok()).filter(|at| (start..end).contains(at)) {
            Some(at) => Ok(sorted.argument(&mut self.other, at, self.call.arguments[0])?.to_value()),
            None => Ok(Value::Null),
        }
    }

    /// The percentile of a partition, whose rows are sorted by the values. NULLs do not count.
    ///
    /// # Errors
    /// 4102, 4103.
    fn percentile(
        &mut self,
        partition: &Group,
        sorted: Sorted<'_, '_>,
        context: &Context<'_>,
    ) -> Result<Value, SqlError> {
        let State::Percentile { is_exact, .. } = self.state else { return Ok(Value::Null) };
        let refuse = |kind: ErrorKind, text: &str| {
            let name = if is_exact { "percentile_disc" } else { "percentile_cont" };
            Err(SqlError::new(kind, format!("Argument to the {name} function {text}")))
        };
        let mut share: Option<f64> = None;
        let (mut first, mut count) = (partition.start, 0);
        for row in partition.start..partition.end {
            sorted.check(row + 1)?;
            let given = {
                let value = sorted.argument(&mut self.other, row, self.call.arguments[1])?;
                share_of(&value, context)
            };
            match (share, given) {
                (_, None) => {}
                (None, Some(given)) if (0.0..=1.0).contains(&given) => share = Some(given),
                (None, Some(_)) => {
                    return refuse(ErrorKind::PercentileOutOfRange, "does not belong to the range [0,1]");
                }
                (Some(share), Some(given)) if share != given => {
                    return refuse(ErrorKind::PercentileVaries, "is not a constant for a partition");
                }
                (Some(_), Some(_)) => {}
            }
            if !sorted.argument(&mut self.other, row, self.call.arguments[0])?.is_null() {
                if count == 0 {
                    first = row;
                }
                count += 1;
            }
        }
        let Some(share) = share.filter(|_| count > 0) else { return Ok(Value::Null) };
        let range = (partition.start, partition.end);
        if is_exact {
            let mut nth = ((share * count as f64).ceil() as usize).clamp(1, count);
            // The product may be rounded.
            while nth > 1 && (nth - 1) as f64 / count as f64 >= share {
                nth -= 1;
            }
            while nth < count && (nth as f64 / count as f64) < share {
                nth += 1;
            }
            return self.value_at(Some((first + nth - 1) as i64), range, sorted);
        }
        let place = 1.0 + share * (count - 1) as f64;
        let mut number = |nth: f64| -> Result<f64, SqlError> {
            let value = self.value_at(Some((first + nth as usize - 1) as i64), range, sorted)?;
            Ok(share_of(&value.as_ref(), context).unwrap_or(0.0))
        };
        let (low, high) = (place.floor(), place.ceil());
        if low == high {
            return Ok(Value::Double(number(low)?));
        }
        let (below, above) = (number(low)?, number(high)?);
        Ok(Value::Double((place - low) * above + (high - place) * below))
    }
}

/// The part that a row is in. The first parts have a row more if the rows cannot be divided. `before` is the
/// number of parts that the row before asked for.
///
/// # Errors
/// 4024.
fn ntile(before: i64, parts: i64, number: i64, rows: i64) -> Result<i64, SqlError> {
    if parts <= 0 || (before > 0 && before != parts) {
        return Err(SqlError::new(ErrorKind::NtileArgument, "Argument of NTILE must be greater than 0"));
    }
    let (size, larger) = (rows / parts, rows % parts);
    Ok(match number <= larger * (size + 1) {
        true => (number - 1) / (size + 1) + 1,
        // If parts have no row at all, each row is in a larger one.
        false => (number - 1 - larger) / size.max(1) + 1,
    })
}

//! Estimates what a path costs. The unit is one row read in the order of the clustered index.

use super::access::{Candidate, IndexShape, Target, covers};
use super::sarg::{Sarg, Test};
use crate::expr::Expr;
use engine::Direction;

/// A row found through a secondary index: its entry, then a descent of the clustered tree.
const SECONDARY_ROW: f64 = 3.0;
/// An entry of a secondary index, without its row.
const ENTRY: f64 = 0.6;
/// A descent, with all else that a path costs before its first row.
pub(super) const DESCENT: f64 = 2.0;
/// Sorting: the cost of one row for each doubling of the number of rows.
const SORT_STEP: f64 = 0.08;
/// The share of a table that a range is assumed to hold if nothing better is known.
const RANGE_SHARE: f64 = 0.05;
const HALF_RANGE_SHARE: f64 = 0.3;
/// How many rows at most are assumed to share a value of an index's first part, if nothing better is known.
const ROWS_A_VALUE: f64 = 10.0;
/// Tables are assumed to have at least this many rows, because a plan stays in use while its table grows.
const ROWS_MIN: u64 = 1_000;
/// How many values an IN list is assumed to have if that is not known.
const LIST_VALUES: f64 = 10.0;

/// How an index can serve the conditions, with its cost.
pub(super) fn candidate(
    target: &Target<'_>,
    conditions: &[Expr],
    index: IndexShape,
    sargs: &[Sarg],
) -> Candidate {
    let mut points: Vec<Sarg> = Vec::new();
    let mut range = None;
    for part in &index.parts {
        let on_part = || sargs.iter().filter(|sarg| sarg.column == part.column);
        let equal = on_part().find(|sarg| matches!(sarg.test, Test::Equal { .. }));
        let list = || on_part().find(|sarg| matches!(sarg.test, Test::InSlot { .. } | Test::InList { .. }));
        match equal.or_else(list) {
            // The keys of a cut prefix also find rows that are not equal. So the parts that follow it cannot
            // be used.
            Some(sarg) => {
                points.push(sarg.clone());
                if part.prefix_chars.is_some() {
                    break;
                }
            }
            None => {
                range = merged_intervals(on_part().filter(|sarg| matches!(sarg.test, Test::Intervals(_))));
                break;
            }
        }
    }
    let mut candidate = Candidate {
        index,
        points,
        range,
        direction: Direction::Forward,
        ordered: false,
        covering: false,
        rows: 0,
        cost: 0.0,
    };
    candidate.covering = covers(target, &candidate.index, &needed(target, conditions, &candidate));
    order(target, &mut candidate);
    estimate(target, &mut candidate);
    candidate
}

/// Combines several single intervals on one column into one. Of several unions only the first is used.
fn merged_intervals<'s>(sargs: impl Iterator<Item = &'s Sarg>) -> Option<Sarg> {
    let mut merged: Option<Sarg> = None;
    for sarg in sargs {
        let Some(before) = &mut merged else {
            merged = Some(sarg.clone());
            continue;
        };
        if let (Test::Intervals(before_intervals), Test::Intervals(intervals)) =
            (&mut before.test, &sarg.test)
            && let ([into], [from], true) =
                (before_intervals.as_mut_slice(), intervals.as_slice(), before.exact && sarg.exact)
        {
            into.lower.extend(from.lower.iter().cloned());
            into.upper.extend(from.upper.iter().cloned());
            before.needs.0 |= sarg.needs.0;
            // Two conditions were combined but only one can be marked as met. The other is tested again,
            // which is cheap.
        }
    }
    merged
}

/// By column: true if it must be read, because something else needs it or because a condition reads it that
/// the path does not meet.
fn needed(target: &Target<'_>, conditions: &[Expr], candidate: &Candidate) -> Vec<bool> {
    let mut needed = target.needed.to_vec();
    for (at, condition) in conditions.iter().enumerate() {
        if candidate.points.iter().chain(&candidate.range).any(|sarg| sarg.condition == at && sarg.exact) {
            continue;
        }
        super::walk::for_each_column(condition, &mut |column| {
            if column.part == target.part {
                needed[column.column] = true;
            }
        });
    }
    needed
}

/// Finds out whether the rows come in the wanted order, and in which direction the index must be read for
/// that.
fn order(target: &Target<'_>, candidate: &mut Candidate) {
    if target.order.is_empty() || candidate.index.parts.is_empty() {
        return;
    }
    let single = |sarg: &Sarg| matches!(sarg.test, Test::Equal { .. });
    if !candidate.points.iter().all(single) {
        return;
    }
    // Columns that have one value only do not matter for the order.
    let fixed = |column: usize| candidate.points.iter().any(|sarg| sarg.column == column);
    let mut wanted = target.order.iter().filter(|(column, _)| !fixed(*column)).peekable();
    let primary = target.def.primary.as_deref().filter(|_| candidate.index.id.0 != 0).unwrap_or_default();
    let mut backward = None;
    if !candidate.is_unique() {
        for part in candidate.index.parts[candidate.points.len()..].iter().chain(primary) {
            if fixed(part.column) {
                continue;
            }
            let Some((column, descending)) = wanted.peek() else { break };
            if *column != part.column || part.prefix_chars.is_some() {
                break;
            }
            let reversed = *descending != part.descending;
            if *backward.get_or_insert(reversed) != reversed {
                break;
            }
            wanted.next();
        }
        // All parts of the index are used up. If it is unique, further wanted columns would not matter, but
        // that is too rare to look for.
        if wanted.peek().is_some() {
            return;
        }
    }
    // Lookups of whole keys go in batches and do not keep the order.
    if candidate.range.is_none()
        && !candidate.points.is_empty()
        && !candidate.is_unique()
        && backward.is_some()
    {
        candidate.range = Some(super::sarg::whole_part(&candidate.index, candidate.points.len()));
    }
    candidate.ordered = true;
    if backward == Some(true) {
        candidate.direction = Direction::Backward;
    }
}

fn estimate(target: &Target<'_>, candidate: &mut Candidate) {
    let actual = target.table.row_count().max(1);
    let all = actual.max(ROWS_MIN) as f64;
    let lists = candidate.points.iter().map(values_in).product::<f64>();
    let rows = if candidate.is_whole() {
        all
    } else if candidate.is_unique() {
        lists
    } else {
        let points = candidate.points.len() as i32;
        let share = match &candidate.range {
            None => 1.0,
            Some(range) => range_share(range),
        };
        // Each further part that is fixed reduces the number of rows.
        let of_points = match points {
            0 => all,
            parts if let Some(rows) = known_rows(target, candidate, parts as usize) => lists * rows,
            _ => {
                let unique_by = candidate.index.parts.len().max(1) as i32;
                let floor = if candidate.index.unique { 1.0 } else { ROWS_A_VALUE };
                lists * (all.powf(1.0 - f64::from(points) / f64::from(unique_by))).max(floor)
            }
        };
        (of_points * share).min(all).max(1.0)
    };
    candidate.rows = (rows.ceil() as u64).min(actual);
    let unit = candidate.unit();
    let mut read = rows;
    let mut sort = 0.0;
    if !target.order.is_empty() {
        match (candidate.ordered, target.limit) {
            (true, Some(limit)) => {
                read = read.min(limit as f64 * if candidate.is_whole() { 4.0 } else { 1.0 })
            }
            (true, None) => {}
            (false, _) => sort = self::sort(rows),
        }
    }
    let descents = if candidate.is_whole() { 1.0 } else { lists.max(1.0) };
    candidate.cost = read * unit + sort + descents * DESCENT;
}

/// How many rows share the values of an index's first parts, if ANALYZE TABLE has counted them.
fn known_rows(target: &Target<'_>, candidate: &Candidate, parts: usize) -> Option<f64> {
    target.table.statistics()?.rows_of_prefix(candidate.index.id, parts)
}

/// The cost of sorting this many rows.
pub(super) fn sort(rows: f64) -> f64 {
    rows * rows.max(2.0).log2() * SORT_STEP
}

impl Candidate {
    /// The cost of one row.
    pub(super) fn unit(&self) -> f64 {
        match (self.index.id.0 == 0, self.covering) {
            (true, _) => 1.0,
            (false, true) => ENTRY,
            (false, false) => SECONDARY_ROW,
        }
    }
}

fn values_in(sarg: &Sarg) -> f64 {
    match &sarg.test {
        Test::InList { values } => values.len() as f64,
        Test::InSlot { .. } => LIST_VALUES,
        _ => 1.0,
    }
}

fn range_share(sarg: &Sarg) -> f64 {
    let Test::Intervals(intervals) = &sarg.test else { return 1.0 };
    let share =
        |interval: &super::sarg::Interval| match (interval.lower.is_empty(), interval.upper.is_empty()) {
            (false, false) => RANGE_SHARE,
            (true, true) => 1.0,
            _ => HALF_RANGE_SHARE,
        };
    intervals.iter().map(share).sum::<f64>().min(0.9)
}

//! Conditions that an index can answer ("sargs", search arguments).

use super::walk::{Parts, parts_of};
use crate::expr::{Comparison, Expr};
use crate::text::SlotKind;
use types::{ColumnType, Value};

/// A condition on one column, in the form in which an index can use it.
#[derive(Clone, Debug)]
pub(crate) struct Sarg {
    /// The column's position in its table.
    pub column: usize,
    pub test: Test,
    /// The position of its condition in the list of conditions.
    pub condition: usize,
    /// False if rows found in the index must still be tested.
    pub exact: bool,
    /// The other tables that its values are read from.
    pub needs: Parts,
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Equal {
        value: Expr,
        null_safe: bool,
    },
    /// Equal to one of the values of a slot.
    InSlot {
        index: usize,
    },
    InList {
        values: Vec<Expr>,
    },
    /// In one of these intervals.
    Intervals(Vec<Interval>),
}

/// An interval: all of these bounds hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    pub lower: Vec<Bound>,
    pub upper: Vec<Bound>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub value: Expr,
    pub inclusive: bool,
    /// The value is a LIKE pattern. Its beginning up to the first wildcard is the bound.
    pub like: Option<Escape>,
}

/// The escape character of a LIKE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Escape(pub Option<char>);

/// How an index can use a condition on table `part` when the tables `before` are already read.
pub(crate) fn sarg(expr: &Expr, condition: usize, part: usize, before: Parts) -> Option<Sarg> {
    let finder = Finder { part, before };
    let (column, test, exact) = finder.test(expr)?;
    let needs = Parts(parts_of(expr).0 & !Parts::one(part).0);
    Some(Sarg { column, test, condition, exact, needs })
}

struct Finder {
    part: usize,
    before: Parts,
}

type Found = (usize, Test, bool);

impl Finder {
    fn column(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Column(column) if column.part == self.part => Some(column.column),
            _ => None,
        }
    }

    /// True if the value is known before this table is read.
    fn is_known(&self, expr: &Expr) -> bool {
        parts_of(expr).is_within(self.before) && !super::walk::has_side_effects(expr)
    }

    fn test(&self, expr: &Expr) -> Option<Found> {
        match expr {
            Expr::Compare { op, left, right } => {
                if let (Some(column), true) = (self.column(left), self.is_known(right)) {
                    return self.comparison(column, left, *op, right);
                }
                if let (Some(column), true) = (self.column(right), self.is_known(left)) {
                    return self.comparison(column, right, op.mirrored(), left);
                }
                None
            }
            Expr::IsNull { operand, negated: false } => {
                let value = Expr::Constant(Value::Null);
                Some((self.column(operand)?, Test::Equal { value, null_safe: true }, true))
            }
            Expr::InSlot { operand, index, kind, negated: false } => {
                let column = self.column(operand)?;
                kind_fits(operand, *kind).then_some((column, Test::InSlot { index: *index }, true))
            }
            Expr::InList { operand, list, negated: false } => {
                let column = self.column(operand)?;
                if !list.iter().all(|value| self.is_known(value) && value_fits(operand, value)) {
                    return None;
                }
                Some((column, Test::InList { values: list.clone() }, true))
            }
            Expr::Between { operand, low, high, negated: false } => {
                let column = self.column(operand).filter(|_| !is_coded(operand))?;
                if !self.is_known(low) || !self.is_known(high) {
                    return None;
                }
                if !value_fits(operand, low) || !value_fits(operand, high) {
                    return None;
                }
                let bound = |value: &Expr| Bound { value: value.clone(), inclusive: true, like: None };
                let interval = Interval { lower: vec![bound(low)], upper: vec![bound(high)] };
                Some((column, Test::Intervals(vec![interval]), true))
            }
            Expr::Like { operand, pattern, escape, negated: false } => {
                let column = self.column(operand)?;
                if !self.is_known(pattern) || !is_text(operand) || !value_fits(operand, pattern) {
                    return None;
                }
                let bound =
                    Bound { value: (**pattern).clone(), inclusive: true, like: Some(Escape(*escape)) };
                let interval = Interval { lower: vec![bound.clone()], upper: vec![bound] };
                Some((column, Test::Intervals(vec![interval]), false))
            }
            Expr::Or(branches) => self.union(branches),
            Expr::And(conditions) => self.intersection(conditions),
            _ => None,
        }
    }

    fn comparison(&self, column: usize, operand: &Expr, op: Comparison, value: &Expr) -> Option<Found> {
        if !value_fits(operand, value) {
            return None;
        }
        let bound = |inclusive| vec![Bound { value: value.clone(), inclusive, like: None }];
        let interval = match op {
            // A member is compared with the value again, as in MariaDB.
            Comparison::Equal => {
                let exact = !is_coded(operand);
                return Some((column, Test::Equal { value: value.clone(), null_safe: false }, exact));
            }
            Comparison::NullSafeEqual => {
                return Some((column, Test::Equal { value: value.clone(), null_safe: true }, true));
            }
            Comparison::NotEqual => return None,
            _ if is_coded(operand) => return None,
            Comparison::Less => Interval { lower: vec![], upper: bound(false) },
            Comparison::LessOrEqual => Interval { lower: vec![], upper: bound(true) },
            Comparison::Greater => Interval { lower: bound(false), upper: vec![] },
            Comparison::GreaterOrEqual => Interval { lower: bound(true), upper: vec![] },
        };
        Some((column, Test::Intervals(vec![interval]), true))
    }

    /// Several conditions on one column, joined by OR.
    fn union(&self, branches: &[Expr]) -> Option<Found> {
        let mut column = None;
        let mut intervals = Vec::new();
        let mut exact = true;
        for branch in branches {
            let (found, test, found_exact) = self.test(branch)?;
            if *column.get_or_insert(found) != found {
                return None;
            }
            exact &= found_exact;
            intervals.extend(as_intervals(test)?);
        }
        Some((column?, Test::Intervals(intervals), exact))
    }

    /// Several conditions on one column, joined by AND, inside of an OR. Conditions on other columns are left
    /// to be tested.
    fn intersection(&self, conditions: &[Expr]) -> Option<Found> {
        let mut merged: Option<(usize, Interval)> = None;
        let mut exact = true;
        for condition in conditions {
            let Some((column, test, found_exact)) = self.test(condition) else {
                exact = false;
                continue;
            };
            let mut intervals = as_intervals(test)?;
            match (&mut merged, intervals.pop()) {
                (None, Some(interval)) if intervals.is_empty() => merged = Some((column, interval)),
                (Some((known, before)), Some(interval)) if intervals.is_empty() && *known == column => {
                    before.lower.extend(interval.lower);
                    before.upper.extend(interval.upper);
                }
                _ => {
                    exact = false;
                    continue;
                }
            }
            exact &= found_exact;
        }
        let (column, interval) = merged?;
        Some((column, Test::Intervals(vec![interval]), exact))
    }
}

/// True if an index has another order than comparisons have.
fn is_coded(operand: &Expr) -> bool {
    matches!(operand, Expr::Column(column) if column.column_type.members().is_some())
}

fn as_intervals(test: Test) -> Option<Vec<Interval>> {
    let point = |value: Expr| {
        let bound = Bound { value, inclusive: true, like: None };
        Interval { lower: vec![bound.clone()], upper: vec![bound] }
    };
    match test {
        Test::Intervals(intervals) => Some(intervals),
        Test::Equal { value, null_safe: false } => Some(vec![point(value)]),
        Test::InList { values } => Some(values.into_iter().map(point).collect()),
        Test::Equal { null_safe: true, .. } | Test::InSlot { .. } => None,
    }
}

fn is_text(operand: &Expr) -> bool {
    matches!(operand, Expr::Column(column) if column.column_type.is_text())
}

/// True if a comparison with such a value uses the column's own order. A comparison of a text column with a
/// number does not: it compares the texts as numbers.
fn kind_fits(operand: &Expr, kind: SlotKind) -> bool {
    let Expr::Column(column) = operand else { return false };
    type_takes(&column.column_type, kind)
}

pub(super) fn type_takes(column_type: &ColumnType, kind: SlotKind) -> bool {
    use SlotKind::*;
    match column_type {
        _ if kind == Null => true,
        ColumnType::Int { .. } => {
            matches!(kind, Int | UInt | Decimal { .. } | Double | Text | TextOf(_) | Mixed)
        }
        ColumnType::Year => matches!(kind, Int | UInt),
        ColumnType::Float { .. } | ColumnType::Double { .. } | ColumnType::Decimal { .. } => {
            matches!(kind, Int | UInt | Decimal { .. } | Double | Text | TextOf(_) | Mixed)
        }
        ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            matches!(kind, Text | TextOf(_) | Date | DateTime)
        }
        ColumnType::Time { .. } => matches!(kind, Text | TextOf(_) | Time),
        ColumnType::Enum { members, .. } | ColumnType::Set { members, .. } => {
            matches!(kind, Int | UInt | Text) || kind == TextOf(members.collation())
        }
        ColumnType::Bit { .. } => matches!(kind, Int | UInt),
        ColumnType::Code(_) => matches!(kind, Text | TextOf(_) | Binary),
        text if text.is_text() => kind == Text || kind == TextOf(text.collation()),
        _ => matches!(kind, Text | TextOf(_) | Binary),
    }
}

fn value_fits(operand: &Expr, value: &Expr) -> bool {
    let Expr::Column(column) = operand else { return false };
    match value {
        Expr::Slot { kind, .. } => type_takes(&column.column_type, *kind),
        Expr::Constant(value) => type_takes(&column.column_type, SlotKind::of(&value.as_ref())),
        // A column of another table: both must have the same order.
        Expr::Column(other) => orders_agree(&column.column_type, &other.column_type),
        Expr::Outer(other) => orders_agree(&column.column_type, &other.column_type),
        // Any other expression: this is decided when its value is known.
        other => !super::walk::has_collate(other),
    }
}

/// True if comparing values of the two columns gives the order of either column.
pub(super) fn orders_agree(left: &ColumnType, right: &ColumnType) -> bool {
    match (left, right) {
        (
            ColumnType::Int { .. } | ColumnType::Bit { .. },
            ColumnType::Int { .. } | ColumnType::Bit { .. },
        ) => true,
        // Members compare as texts, and are ordered by their numbers.
        (ColumnType::Code(left), ColumnType::Code(right)) => left == right,
        _ if left.is_coded() || right.is_coded() => false,
        _ if left.is_text() => right.is_text() && left.collation() == right.collation(),
        _ => std::mem::discriminant(left) == std::mem::discriminant(right),
    }
}

/// The range of all keys that start with `points` equal parts. It is used to read them in order.
pub(super) fn whole_part(index: &super::access::IndexShape, points: usize) -> Sarg {
    Sarg {
        column: index.parts.get(points).map_or(usize::MAX, |part| part.column),
        test: Test::Intervals(vec![Interval::default()]),
        condition: usize::MAX,
        exact: true,
        needs: Parts::default(),
    }
}

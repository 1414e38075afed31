//! The rows of a subquery as a set, because they are searched for each row that is compared with them.

use super::value_keys::{ValueKeys, is_of_type};
use foldhash::fast::RandomState;
use std::collections::HashSet;
use types::{Collation, Column, ColumnType, ValueRef};

/// A set of rows. In each column, all values that are not NULL compare as values of one type.
#[derive(Debug)]
pub(super) struct RowSet {
    columns: Vec<Column>,
    keys: ValueKeys,
    /// The keys of all rows. Rows with NULLs are included, and do no harm: a row that is searched has no
    /// NULL.
    rows: HashSet<Vec<u8>, RandomState>,
    /// The places of rows with NULLs. Of equal ones the first is kept.
    with_nulls: Vec<usize>,
}

impl RowSet {
    /// `None` if the values of a column compare in several ways, or in one that keys do not have.
    pub(super) fn new(values: &[ValueRef<'_>], collations: &[Collation]) -> Option<RowSet> {
        let width = collations.len();
        let column = |(at, collation): (usize, &Collation)| {
            let of_column = || values.iter().skip(at).step_by(width);
            let column_type = match of_column().find(|value| !value.is_null()) {
                Some(first) => key_type(first, *collation)?,
                None => ColumnType::Int { bytes: 8, unsigned: false },
            };
            let column = Column { name: String::new(), column_type, nullable: true };
            of_column().all(|value| value.is_null() || has_key(value, &column)).then_some(column)
        };
        let columns: Vec<Column> = collations.iter().enumerate().map(column).collect::<Option<_>>()?;
        let keys = ValueKeys::new(columns.iter().cloned());
        let mut set = RowSet { columns, keys, rows: HashSet::default(), with_nulls: vec![] };
        for (at, row) in values.chunks(width).enumerate() {
            let is_new = set.rows.insert(set.key(row));
            if is_new && row.iter().any(ValueRef::is_null) {
                set.with_nulls.push(at);
            }
        }
        Some(set)
    }

    fn key(&self, row: &[ValueRef<'_>]) -> Vec<u8> {
        let mut key = Vec::new();
        self.keys.encode(row, &mut key);
        key
    }

    /// True if one of the rows is equal. `None` if the set cannot tell, which is so for a row with a NULL.
    pub(super) fn has(&self, row: &[ValueRef<'_>]) -> Option<bool> {
        let can_tell = row.iter().zip(&self.columns).all(|(value, column)| has_key(value, column));
        can_tell.then(|| self.rows.contains(&self.key(row)))
    }

    /// The rows that may be equal.
    pub(super) fn with_nulls(&self) -> &[usize] {
        &self.with_nulls
    }
}

/// The type whose keys are equal if values such as this one are.
pub(super) fn key_type(value: &ValueRef<'_>, collation: Collation) -> Option<ColumnType> {
    Some(match value {
        ValueRef::Int(_) | ValueRef::UInt(_) => ColumnType::Int { bytes: 8, unsigned: false },
        ValueRef::Double(_) => ColumnType::Double { unsigned: false },
        ValueRef::Decimal(number) => {
            ColumnType::Decimal { precision: 65, scale: number.scale(), unsigned: false }
        }
        ValueRef::Date(_) => ColumnType::Date,
        ValueRef::Time(_) => ColumnType::Time { fsp: 6 },
        ValueRef::DateTime(_) => ColumnType::DateTime { fsp: 6 },
        ValueRef::Text(_) => ColumnType::Varchar { chars: 255, collation },
        ValueRef::Null | ValueRef::Float(_) | ValueRef::Binary(_) => return None,
    })
}

/// True if the value's key among those of the column's type says what it equals.
pub(super) fn has_key(value: &ValueRef<'_>, column: &Column) -> bool {
    match value {
        ValueRef::Null | ValueRef::Float(_) => false,
        // Quotients compare as they are shown.
        ValueRef::Decimal(number) if number.shown() != number.scale() => false,
        value => is_of_type(value, column),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Date, Decimal};

    const COLLATION: Collation = Collation::Utf8mb4GeneralCi;

    fn set<'v>(values: &'v [ValueRef<'v>], width: usize) -> Option<RowSet> {
        RowSet::new(values, &vec![COLLATION; width])
    }

    #[test]
    fn a_row_is_found_whatever_way_its_values_are_written() {
        use ValueRef::{Int, Null, Text, UInt};
        let values =
            [Int(1), Text(b"a"), Int(2), Text(b"B "), Null, Text(b"c"), Null, Text(b"C"), Int(3), Null];
        let set = set(&values, 2).unwrap();
        assert_eq!(set.has(&[Int(1), Text(b"A")]), Some(true));
        assert_eq!(set.has(&[UInt(2), Text(b"b")]), Some(true));
        assert_eq!(set.has(&[Int(1), Text(b"b")]), Some(false));
        assert_eq!(set.has(&[Null, Text(b"c")]), None, "a NULL is equal to nothing");
        assert_eq!(set.has(&[Int(1), Int(1)]), None, "a text beside a number compares as one");
        assert_eq!(set.with_nulls(), [2, 4], "of equal rows the first");
    }

    #[test]
    fn values_of_several_kinds_make_no_set() {
        use ValueRef::{Double, Int, Text, UInt};
        assert!(set(&[Int(1), Text(b"1")], 1).is_none());
        assert!(set(&[Int(1), Double(1.0)], 1).is_none());
        assert!(set(&[Int(1), UInt(u64::MAX)], 1).is_none());
        assert!(set(&[ValueRef::Float(0.1)], 1).is_none());
        assert!(set(&[Int(1), Text(b"1"), Int(2), Text(b"2")], 2).is_some());
    }

    #[test]
    fn dates_doubles_and_decimals_are_found() {
        let day = |day| ValueRef::Date(Date { year: 2024, month: 2, day });
        let decimal = |text: &str| ValueRef::Decimal(Decimal::parse_prefix(text.as_bytes()).0);
        let dates = [day(1), day(29)];
        assert_eq!(set(&dates, 1).unwrap().has(&[day(29)]), Some(true));
        assert_eq!(set(&dates, 1).unwrap().has(&[day(28)]), Some(false));
        assert_eq!(set(&dates, 1).unwrap().has(&[ValueRef::Text(b"2024-02-29")]), None);
        let decimals = [decimal("1.0"), decimal("2.5")];
        assert_eq!(set(&decimals, 1).unwrap().has(&[decimal("2.5")]), Some(true));
        assert_eq!(set(&decimals, 1).unwrap().has(&[decimal("1")]), None, "written in other digits");
        let doubles = [ValueRef::Double(0.0), ValueRef::Double(2.5)];
        assert_eq!(set(&doubles, 1).unwrap().has(&[ValueRef::Double(-0.0)]), Some(true));
        assert_eq!(set(&doubles, 1).unwrap().has(&[ValueRef::Double(2.25)]), Some(false));
    }
}

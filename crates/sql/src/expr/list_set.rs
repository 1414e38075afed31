//! The values of an IN's list as a set, because a list is searched for each row.

use super::Slots;
use super::row_set::RowSet;
use super::stored_list::StoredList;
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::rc::Rc;
use types::{Collation, ValueRef};

/// Shorter lists are searched one by one.
const LIST_MIN: usize = 16;

/// The values of a list, or its rows of several values. All values of a column must compare in one way. A set
/// of values does not hold NULL.
#[derive(Debug)]
pub(crate) struct ListSet {
    values: Values,
    has_null: bool,
}

#[derive(Debug)]
enum Values {
    Integers(HashSet<i128, RandomState>),
    /// By what is equal in the collation.
    Texts(HashSet<Vec<u8>, RandomState>, Collation),
    /// Of other types, or several in a row.
    Rows(RowSet),
    /// To be searched one by one.
    Mixed,
    /// In a file. Then the slot's list is empty.
    Stored(Rc<StoredList>),
}

fn integer(value: &ValueRef<'_>) -> Option<i128> {
    match value {
        ValueRef::Int(number) => Some(i128::from(*number)),
        ValueRef::UInt(number) => Some(i128::from(*number)),
        _ => None,
    }
}

fn text(value: &ValueRef<'_>, collation: Collation) -> Option<Vec<u8>> {
    let ValueRef::Text(text) = value else { return None };
    let mut key = Vec::with_capacity(text.len() + 2);
    types::key::encode_text(collation, text, &mut key);
    Some(key)
}

impl ListSet {
    /// A list that did not fit into memory.
    pub(crate) fn stored(list: Rc<StoredList>) -> ListSet {
        ListSet { values: Values::Stored(list), has_null: false }
    }

    /// The list of a slot, if it did not fit into memory.
    pub(crate) fn stored_of_slot<'a>(slots: &Slots<'a>, slot: usize) -> Option<&'a Rc<StoredList>> {
        match slots.sets.get(slot)?.get()? {
            ListSet { values: Values::Stored(list), .. } => Some(list),
            _ => None,
        }
    }

    /// The set of a slot's values; `None` if they are few.
    #[inline]
    pub(crate) fn of_slot<'a>(slots: &Slots<'a>, slot: usize, collation: Collation) -> Option<&'a ListSet> {
        let list = slots.list(slot);
        let set = slots.sets.get(slot).filter(|_| list.len() >= LIST_MIN)?;
        Some(set.get_or_init(|| ListSet::new(list, collation)))
    }

    /// The set of the rows in a slot; `None` if they are few. The collations are those of their columns.
    pub(super) fn of_rows<'a>(
        slots: &Slots<'a>,
        slot: usize,
        collations: impl Iterator<Item = Collation>,
    ) -> Option<&'a ListSet> {
        let list = slots.list(slot);
        let set = slots.sets.get(slot).filter(|_| list.len() >= LIST_MIN)?;
        Some(set.get_or_init(|| {
            let rows = RowSet::new(list, &collations.collect::<Vec<_>>());
            ListSet { values: rows.map_or(Values::Mixed, Values::Rows), has_null: false }
        }))
    }

    /// The rows as a set, unless they have to be searched one by one.
    pub(super) fn rows(&self) -> Option<&RowSet> {
        match &self.values {
            Values::Rows(rows) => Some(rows),
            _ => None,
        }
    }

    /// True if one of the slots has a list that is worth a set.
    pub(crate) fn are_of_use(slots: &Slots<'_>) -> bool {
        slots.starts.windows(2).any(|ends| (ends[1] - ends[0]) as usize >= LIST_MIN)
    }

    fn new(list: &[ValueRef<'_>], collation: Collation) -> ListSet {
        let some = || list.iter().filter(|value| !value.is_null());
        let values = if let Some(integers) = some().map(integer).collect() {
            Values::Integers(integers)
        } else if let Some(texts) = some().map(|value| text(value, collation)).collect() {
            Values::Texts(texts, collation)
        } else {
            RowSet::new(list, &[collation]).map_or(Values::Mixed, Values::Rows)
        };
        ListSet { values, has_null: list.iter().any(ValueRef::is_null) }
    }

    /// Whether a value is in the list. The inner `None` is SQL's unknown, the outer one says that the set
    /// cannot tell.
    pub(crate) fn find(&self, value: &ValueRef<'_>, collation: Collation) -> Option<Option<bool>> {
        if value.is_null() {
            return Some(None);
        }
        let is_in = match &self.values {
            Values::Integers(integers) => integers.contains(&integer(value)?),
            Values::Texts(texts, of) if *of == collation => texts.contains(&text(value, collation)?),
            Values::Rows(rows) => rows.has(&[*value])?,
            Values::Texts(..) | Values::Mixed | Values::Stored(_) => return None,
        };
        Some(if is_in || !self.has_null { Some(is_in) } else { None })
    }

    /// True if every value is an integer.
    pub(super) fn is_of_integers(&self) -> bool {
        matches!(self.values, Values::Integers(_)) && !self.has_null
    }

    #[inline]
    pub(super) fn has_integer(&self, value: i64) -> bool {
        matches!(&self.values, Values::Integers(integers) if integers.contains(&i128::from(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::OnceCell;

    #[test]
    fn a_set_answers_as_the_list_would() {
        let mut values: Vec<ValueRef<'_>> = (0..40).map(|value| ValueRef::Int(value * 3)).collect();
        let sets: Vec<OnceCell<ListSet>> = vec![OnceCell::new()];
        let find = |values: &[ValueRef<'_>], sets: &[OnceCell<ListSet>], value: ValueRef<'_>| {
            let starts = [0, values.len() as u32];
            let slots = Slots { values, starts: &starts, outer: &[], sets };
            ListSet::of_slot(&slots, 0, Collation::Utf8mb4GeneralCi)
                .unwrap()
                .find(&value, Collation::Utf8mb4GeneralCi)
        };
        assert_eq!(find(&values, &sets, ValueRef::UInt(27)), Some(Some(true)));
        assert_eq!(find(&values, &sets, ValueRef::Int(28)), Some(Some(false)));
        assert_eq!(find(&values, &sets, ValueRef::Null), Some(None));
        assert_eq!(find(&values, &sets, ValueRef::Double(27.0)), None, "compared one by one");
        values.push(ValueRef::Null);
        let sets: Vec<OnceCell<ListSet>> = vec![OnceCell::new()];
        assert_eq!(find(&values, &sets, ValueRef::Int(28)), Some(None), "it may be the one not known");
        assert_eq!(find(&values, &sets, ValueRef::Int(27)), Some(Some(true)));
        let texts: Vec<String> = (0..20).map(|nth| format!("word{nth}")).collect();
        let texts: Vec<ValueRef<'_>> = texts.iter().map(|text| ValueRef::Text(text.as_bytes())).collect();
        let sets: Vec<OnceCell<ListSet>> = vec![OnceCell::new()];
        assert_eq!(find(&texts, &sets, ValueRef::Text(b"WORD7  ")), Some(Some(true)));
        assert_eq!(find(&texts, &sets, ValueRef::Text(b"word77")), Some(Some(false)));
    }
}

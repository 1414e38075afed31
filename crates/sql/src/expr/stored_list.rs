//! The rows of a subquery behind IN that do not fit into memory: in a file, looked up by their keys.

use super::list_set::ListSet;
use super::row_set::{has_key, key_type};
use super::value_keys::ValueKeys;
use crate::SqlError;
use crate::spill::{IndexedRows, Sorter, Spooled, Workspace, read_row};
use std::cell::OnceCell;
use std::rc::Rc;
use types::{Collation, Column, ColumnType, ValueRef};

/// The rows of a subquery in a file.
#[derive(Debug)]
pub(crate) struct StoredList {
    /// In the order in which they came.
    rows: Spooled,
    /// How many values a row has.
    width: usize,
    /// Made when it is first asked for: only then the collations are known. Empty if the values of a column
    /// compare in several ways.
    index: OnceCell<Option<Index>>,
}

/// The distinct rows by their keys.
#[derive(Debug)]
struct Index {
    collations: Vec<Collation>,
    columns: Vec<Column>,
    keys: ValueKeys,
    rows: IndexedRows,
    has_nulls: bool,
}

impl StoredList {
    pub(crate) fn new(rows: Spooled, width: usize) -> StoredList {
        StoredList { rows, width, index: OnceCell::new() }
    }

    /// Calls `each` with the rows until it returns false.
    ///
    /// # Errors
    /// 1030 if the file fails, 1317 after KILL, and those of `each`.
    pub(super) fn for_each(
        &self,
        workspace: Workspace<'_>,
        mut each: impl FnMut(&[ValueRef<'_>]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        self.rows.for_each(|_, row| {
            workspace.interrupt.check()?;
            let mut values = Vec::with_capacity(self.width);
            read_row(row, &mut values)?;
            each(&values)
        })
    }

    /// Whether a row equals `operands`. The inner `None` is SQL's unknown: no row is equal, but one may be.
    /// The outer one says that the rows have to be compared one by one.
    ///
    /// # Errors
    /// Those of sorting, and of the file.
    pub(super) fn find(
        &self,
        operands: &[ValueRef<'_>],
        collations: impl Iterator<Item = Collation>,
        workspace: Workspace<'_>,
    ) -> Result<Option<Option<bool>>, SqlError> {
        let collations: Vec<Collation> = collations.collect();
        let index = match self.index.get() {
            Some(index) => index,
            None => {
                let index = self.index(collations.clone(), workspace)?;
                self.index.get_or_init(|| index)
            }
        };
        let Some(index) = index.as_ref().filter(|index| index.collations == collations) else {
            return Ok(None);
        };
        if !operands.iter().zip(&index.columns).all(|(value, column)| has_key(value, column)) {
            return Ok(None);
        }
        let mut key = Vec::new();
        index.keys.encode(operands, &mut key);
        let mut is_in = false;
        index.rows.for_each_of(workspace, &key, |_| {
            is_in = true;
            Ok(false)
        })?;
        Ok(match (is_in, index.has_nulls) {
            (true, _) => Some(Some(true)),
            (false, false) => Some(Some(false)),
            // A NULL may be any value.
            (false, true) if self.width == 1 => Some(None),
            (false, true) => None,
        })
    }

    fn index(&self, collations: Vec<Collation>, workspace: Workspace<'_>) -> Result<Option<Index>, SqlError> {
        let Some(columns) = self.columns(&collations, workspace)? else { return Ok(None) };
        let keys = ValueKeys::new(columns.iter().cloned());
        let mut sorter = Sorter::new(workspace, workspace.limits.sort_bytes, usize::MAX);
        let (mut is_alike, mut has_nulls) = (true, false);
        let mut key = Vec::new();
        self.for_each(workspace, |row| {
            if row.iter().any(ValueRef::is_null) {
                has_nulls = true;
                return Ok(true);
            }
            is_alike = row.iter().zip(&columns).all(|(value, column)| has_key(value, column));
            if is_alike {
                key.clear();
                keys.encode(row, &mut key);
                sorter.push(&key, &[])?;
            }
            Ok(is_alike)
        })?;
        if !is_alike {
            return Ok(None);
        }
        let rows = IndexedRows::distinct(workspace, sorter)?;
        Ok(Some(Index { collations, columns, keys, rows, has_nulls }))
    }

    /// The columns whose keys are those of the first values that are not NULL.
    fn columns(
        &self,
        collations: &[Collation],
        workspace: Workspace<'_>,
    ) -> Result<Option<Vec<Column>>, SqlError> {
        let mut types: Vec<Option<ColumnType>> = vec![None; self.width];
        let mut have_keys = true;
        self.for_each(workspace, |row| {
            for ((known, value), collation) in types.iter_mut().zip(row).zip(collations) {
                if known.is_none() && !value.is_null() {
                    *known = key_type(value, *collation);
                    have_keys &= known.is_some();
                }
            }
            Ok(have_keys && types.iter().any(Option::is_none))
        })?;
        let column = |column_type: Option<ColumnType>| Column {
            name: String::new(),
            column_type: column_type.unwrap_or(ColumnType::Int { bytes: 8, unsigned: false }),
            nullable: true,
        };
        Ok(have_keys.then(|| types.into_iter().map(column).collect()))
    }
}

/// Cells for the sets of slots with lists. `stored` are the lists in files, by their slots.
pub(crate) fn cells(
    count: usize,
    stored: impl Iterator<Item = (usize, Rc<StoredList>)>,
) -> Vec<OnceCell<ListSet>> {
    let mut cells: Vec<OnceCell<ListSet>> = std::iter::repeat_with(OnceCell::new).take(count).collect();
    for (slot, list) in stored {
        if slot >= cells.len() {
            cells.resize_with(slot + 1, OnceCell::new);
        }
        cells[slot] = OnceCell::from(ListSet::stored(list));
    }
    cells
}

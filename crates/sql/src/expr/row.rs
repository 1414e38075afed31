//! The rows from which an expression reads columns.

use types::{RowView, ValueRef};

/// The rows of the joined tables, one part a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a>(pub &'a [Part<'a>]);

/// One table's row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    /// As the table stores it.
    Image(RowView<'a>),
    /// As a sub-result or a group has it.
    Values(&'a [ValueRef<'a>]),
    /// The right side of a left join if no row was found.
    Nulls,
}

impl<'a> Part<'a> {
    #[inline]
    pub(crate) fn get(&self, column: usize) -> ValueRef<'a> {
        match self {
            Part::Image(view) => view.get(column),
            Part::Values(values) => values[column],
            Part::Nulls => ValueRef::Null,
        }
    }

    /// See [`RowView::push_to`].
    #[inline]
    pub(crate) fn push_to(&self, column: usize, values: &mut Vec<ValueRef<'a>>) {
        match self {
            Part::Image(view) => view.push_to(column, values),
            part => values.push(part.get(column)),
        }
    }
}

impl<'a> Row<'a> {
    pub(crate) const EMPTY: Row<'static> = Row(&[]);

    #[inline]
    pub(crate) fn get(&self, part: usize, column: usize) -> ValueRef<'a> {
        self.0[part].get(column)
    }
}

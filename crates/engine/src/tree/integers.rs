//! Integers of a leaf's rows, read where they lie in the page: nothing else of a row is touched or copied.
//!
//! The first part of a clustered key is in most leaves all that the page's prefix and the slots' heads hold;
//! then not even the rows are touched.

use super::Tree;
use super::descend::Toward;
use super::range::Remainder;
use crate::Result;
use crate::format::node::Node;
use crate::format::row::{ROW_HEADER_BYTES, RowHeader};
use crate::space::retry::retry;
use pagecache::loads_of_this_thread;
use types::IntegerPlace;

/// Rows whose cells are asked for before they are read.
const CELLS_AHEAD: usize = 8;

/// Where one integer of a row lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The key begins with it: 4 or 8 bytes, big-endian, the sign bit flipped unless it is unsigned.
    Key {
        bytes: u8,
        unsigned: bool,
    },
    Image(IntegerPlace),
}

impl Source {
    #[inline(always)]
    pub(crate) fn is_unsigned(self) -> bool {
        match self {
            Source::Key { unsigned, .. } => unsigned,
            Source::Image(place) => place.unsigned,
        }
    }
}

/// Columns of a batch of rows.
#[derive(Default, Debug)]
pub struct Integers {
    pub(crate) columns: Vec<IntegerValues>,
    pub(crate) rows: usize,
    /// No row is the work of a newer stamp.
    pub(crate) stamp_max: u64,
}

/// The values of one column. Where it is NULL the value means nothing.
#[derive(Default, Debug)]
pub struct IntegerValues {
    pub values: Vec<i64>,
    /// Empty if no value can be NULL.
    pub nulls: Vec<bool>,
}

impl IntegerValues {
    #[inline(always)]
    pub fn get(&self, row: usize) -> Option<i64> {
        if self.nulls.get(row).copied().unwrap_or(false) { None } else { self.values.get(row).copied() }
    }
}

impl Integers {
    /// How many rows the batch has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A column, by its place among those asked for.
    pub fn column(&self, at: usize) -> &IntegerValues {
        &self.columns[at]
    }

    pub(crate) fn clear(&mut self, columns: usize) {
        self.rows = 0;
        self.columns.resize_with(columns, IntegerValues::default);
        for column in &mut self.columns {
            column.values.clear();
            column.nulls.clear();
        }
    }

    /// Reads the rows of slots `from..to`; false if one of them is not whole in the page, or deleted.
    fn fill(&mut self, node: Node<'_>, sources: &[Source], from: usize, to: usize) -> bool {
        self.clear(sources.len());
        self.rows = to - from;
        self.stamp_max = node.stamp_max();
        let page = node.page();
        let of_rows = sources.iter().any(|source| matches!(source, Source::Image(_)));
        if of_rows {
            let mut flags = 0;
            for index in from..to {
                node.prefetch_cell_start(index + CELLS_AHEAD);
                flags |= page.u64_at(node.value_start(index));
            }
            let any = RowHeader(flags);
            if any.is_overflow() || any.is_deleted() {
                return false;
            }
        }
        for (source, column) in sources.iter().zip(&mut self.columns) {
            match *source {
                Source::Key { bytes: 4, unsigned } => {
                    let flip = if unsigned { 0 } else { 1 << 31 };
                    let signed = |key: u32| if unsigned { i64::from(key) } else { i64::from(key as i32) };
                    let keys = node.first_words(from, to, 4);
                    column.values.extend(keys.map(|key| signed((key >> 32) as u32 ^ flip)));
                }
                Source::Key { .. } => {
                    let keys = node.first_words(from, to, 8);
                    column.values.extend(keys.map(|key| (key ^ 1 << 63) as i64));
                }
                Source::Image(place) => {
                    let at = |index: usize| node.value_start(index) + ROW_HEADER_BYTES + place.offset;
                    let rows = from..to;
                    match (place.bytes, place.unsigned) {
                        (4, false) => {
                            column.values.extend(rows.map(|row| i64::from(page.u32_at(at(row)) as i32)))
                        }
                        (bytes, unsigned) => {
                            let unused = 64 - 8 * u32::from(bytes.clamp(1, 8));
                            let signed = |word: u64| match unsigned {
                                true => (word << unused >> unused) as i64,
                                false => (word << unused) as i64 >> unused,
                            };
                            column.values.extend(rows.map(|row| signed(page.u64_at(at(row)))));
                        }
                    }
                    if let Some(bit) = place.null_bit {
                        let byte = ROW_HEADER_BYTES + bit as usize / 8;
                        let is_null = |row| page.u8_at(node.value_start(row) + byte) >> (bit % 8) & 1 == 1;
                        column.nulls.extend((from..to).map(is_null));
                    }
                }
            }
        }
        true
    }
}

impl Tree {
    /// Reads the next rows from the front of `rest`, at most `limit` and at most a leaf's; false, and nothing
    /// read, if they must be looked at one by one. Without rows it is not the end: `rest.done` is.
    pub(crate) fn read_integers(
        &self,
        rest: &mut Remainder,
        sources: &[Source],
        out: &mut Integers,
        limit: usize,
    ) -> Result<bool> {
        let mut next = Vec::new();
        let loads = loads_of_this_thread();
        let read = retry(self.file(), |mode| {
            next.clear();
            let leaf = self.find_leaf(Toward::Key(&rest.start), mode)?;
            let node = Node::new(leaf.page());
            let from = node.search(&rest.start).0;
            let to = node.end_index(rest.end.as_deref());
            let taken = to.saturating_sub(from).min(limit);
            let is_whole = out.fill(node, sources, from, from + taken);
            let cut = from + taken < to;
            let has_more = if cut {
                node.append_key(from + taken, &mut next);
                true
            } else {
                node.append_upper_fence(&mut next)
            };
            leaf.validate()?;
            Ok(is_whole.then_some((cut, has_more)))
        })?;
        let Some((cut, has_more)) = read else { return Ok(false) };
        if cut || has_more && rest.end.as_ref().is_none_or(|end| next < *end) {
            rest.start = next;
            if !cut {
                self.read_ahead(rest, loads);
            }
        } else {
            rest.done = true;
        }
        Ok(true)
    }
}

//! Groups of equal rows, and where the frame of a row begins and ends.

use super::record::Layout;
use crate::SqlError;
use crate::expr::RangeKey;
use crate::host::Interrupt;
use crate::plan::window::{FrameBound, FramePlan};
use crate::spill::{GatheredRows, RowCursor};
use std::cmp::Ordering;
use types::ValueRef;

/// After so many rows the statement looks again whether it was killed.
const ROWS_BETWEEN_CHECKS: usize = 256;

/// The rows of a sort that are looked at together: those of the largest partitions that its functions have.
#[derive(Clone, Copy)]
pub(super) struct Sorted<'s, 'w> {
    pub(super) rows: &'s GatheredRows<'w>,
    pub(super) layout: &'s Layout<'s>,
    pub(super) sort: usize,
    pub(super) interrupt: &'s Interrupt,
}

impl Sorted<'_, '_> {
    /// Honours KILL once in a while.
    pub(super) fn check(&self, row: usize) -> Result<(), SqlError> {
        if row.is_multiple_of(ROWS_BETWEEN_CHECKS) { self.interrupt.check() } else { Ok(()) }
    }

    /// An argument of a function, in a row.
    pub(super) fn argument<'r>(
        &'r self,
        cursor: &'r mut RowCursor,
        row: usize,
        nth: usize,
    ) -> Result<ValueRef<'r>, SqlError> {
        let (_, record) = self.rows.read(cursor, row)?;
        self.layout.argument(record, nth)
    }
}

/// The group that the current row is in: rows that are equal in the first components of the sort.
#[derive(Default)]
pub(super) struct Group {
    components: usize,
    pub(super) start: usize,
    /// Behind its last row.
    pub(super) end: usize,
    /// The first bytes of the keys of its rows.
    prefix: Vec<u8>,
    cursor: RowCursor,
}

impl Group {
    pub(super) fn new(components: usize) -> Group {
        Group { components, ..Group::default() }
    }

    /// Finds the group of a row. Rows come in ascending order.
    pub(super) fn advance(&mut self, row: usize, sorted: Sorted<'_, '_>) -> Result<(), SqlError> {
        if row < self.end {
            return Ok(());
        }
        self.start = row;
        self.end = sorted.rows.len();
        if self.components == 0 {
            return Ok(());
        }
        let Sorted { rows, layout, sort, .. } = sorted;
        for at in row..rows.len() {
            sorted.check(at + 1)?;
            let (key, record) = rows.read(&mut self.cursor, at)?;
            let prefix = layout.prefix(sort, self.components, key, record)?;
            if at == row {
                self.prefix.clear();
                self.prefix.extend_from_slice(prefix);
            } else if self.prefix != prefix {
                self.end = at;
                break;
            }
        }
        Ok(())
    }
}

/// Where the frames of rows begin and end, for one kind of frame. Both only move forward.
pub(super) struct Frame<'p> {
    plan: &'p FramePlan,
    /// By position: the distances of all frames.
    distances: &'p [RangeKey],
    start: Edge,
    end: Edge,
    /// The first of the peers for which the edges of a RANGE were found.
    measured: Option<usize>,
    cursor: RowCursor,
}

/// The place up to which a RANGE was measured.
#[derive(Default)]
struct Edge {
    at: usize,
    cursor: RowCursor,
}

impl<'p> Frame<'p> {
    pub(super) fn new(plan: &'p FramePlan, distances: &'p [RangeKey]) -> Frame<'p> {
        Frame {
            plan,
            distances,
            start: Edge::default(),
            end: Edge::default(),
            measured: None,
            cursor: RowCursor::default(),
        }
    }

    /// The first row of a row's frame, and the row behind its last one. An empty frame has no row between.
    pub(super) fn of(
        &mut self,
        row: usize,
        groups: &[Group],
        sorted: Sorted<'_, '_>,
    ) -> Result<(usize, usize), SqlError> {
        let (partition, peers) = (&groups[self.plan.partition], &groups[self.plan.peers]);
        if let Some((argument, descending)) = self.plan.measure {
            return self.measured(argument, descending, row, [partition, peers], sorted);
        }
        let (first, last) = if self.plan.rows { (row, row + 1) } else { (peers.start, peers.end) };
        let start = match self.plan.start {
            FrameBound::Unbounded => partition.start,
            FrameBound::Current => first,
            FrameBound::Preceding(distance) => row.saturating_sub(self.rows(distance)).max(partition.start),
            FrameBound::Following(distance) => row.saturating_add(self.rows(distance)).min(partition.end),
        };
        let end = match self.plan.end {
            FrameBound::Unbounded => partition.end,
            FrameBound::Current => last,
            FrameBound::Preceding(distance) => last.saturating_sub(self.rows(distance)).max(partition.start),
            FrameBound::Following(distance) => last.saturating_add(self.rows(distance)).min(partition.end),
        };
        Ok((start, end.max(start)))
    }

    /// A distance in rows.
    fn rows(&self, distance: usize) -> usize {
        match self.distances.get(distance) {
            Some(RangeKey::Exact(number)) => {
                number.to_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    /// A frame of RANGE with a distance: at its edges the ordering number is so much smaller or larger.
    fn measured(
        &mut self,
        argument: usize,
        descending: bool,
        row: usize,
        [partition, peers]: [&Group; 2],
        sorted: Sorted<'_, '_>,
    ) -> Result<(usize, usize), SqlError> {
        if self.measured == Some(peers.start) {
            return Ok((self.start.at, self.end.at.max(self.start.at)));
        }
        self.measured = Some(peers.start);
        let here = RangeKey::of(&sorted.argument(&mut self.cursor, row, argument)?);
        let measure = |edge: &mut Edge, bound: FrameBound<usize>, keeps: fn(Ordering) -> bool| {
            let (distance, is_back) = match bound {
                FrameBound::Preceding(distance) => (distance, true),
                FrameBound::Following(distance) => (distance, false),
                FrameBound::Unbounded | FrameBound::Current => return Ok(None),
            };
            // The frame of NULL is its peers.
            let Some(distance) = self.distances.get(distance).filter(|_| !here.is_null()) else {
                return Ok(None);
            };
            let target = here.moved_by(*distance, is_back != descending);
            edge.at = edge.at.max(partition.start);
            while edge.at < partition.end {
                sorted.check(edge.at + 1)?;
                let key = RangeKey::of(&sorted.argument(&mut edge.cursor, edge.at, argument)?);
                // NULL comes before all numbers, and descending behind them.
                let is_before = match (key.is_null(), descending) {
                    (true, descending) => !descending,
                    (false, false) => keeps(key.order(&target)),
                    (false, true) => keeps(key.order(&target).reverse()),
                };
                if !is_before {
                    break;
                }
                edge.at += 1;
            }
            Ok::<_, SqlError>(Some(edge.at))
        };
        let start = measure(&mut self.start, self.plan.start, Ordering::is_lt)?;
        let end = measure(&mut self.end, self.plan.end, Ordering::is_le)?;
        self.start.at = start.unwrap_or(match self.plan.start {
            FrameBound::Unbounded => partition.start,
            _ => peers.start,
        });
        self.end.at = end.unwrap_or(match self.plan.end {
            FrameBound::Unbounded => partition.end,
            _ => peers.end,
        });
        Ok((self.start.at, self.end.at.max(self.start.at)))
    }
}

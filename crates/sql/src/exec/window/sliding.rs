//! Aggregates over frames that slide.
//!
//! Both ends of a frame only move forward. What an aggregate cannot take out again is kept in two halves: of
//! the front half there is a result from each row to the half's end, of the back half one result. When the
//! start of the frame reaches the end of the front half, the back half becomes the front half. So each row is
//! taken in a fixed number of times, however long the frames are. (Two stacks make a queue; Tangwongsan,
//! Hirzel and Schneider, DEBS 2017, compare such structures.)
//!
//! Of a long front half, results are kept of the row at the start of each block only. Those within a block
//! are made when the frame's start reaches it.

use super::frame::Sorted;
use crate::SqlError;
use crate::expr::{Accumulator, CompiledAggregate, Context};
use crate::spill::RowCursor;
use types::{Value, ValueRef};

const BLOCK_ROWS: usize = 256;
/// A frame of so few rows is gathered anew if its start moves. That costs no more, and sums of doubles are
/// then rounded as in any other query.
const FEW_ROWS: usize = 8;

/// An aggregate that slides over the rows of a sort.
pub(super) struct Sliding<'p> {
    aggregate: &'p CompiledAggregate,
    /// `None` for COUNT(*).
    argument: Option<usize>,
    start: usize,
    end: usize,
    /// Where the front half ends.
    middle: usize,
    front: Front,
    /// Of the back half. If values can be taken out again, of the whole frame.
    back: Accumulator,
    /// The result of the frame. `None` if it has changed since.
    result: Option<Value>,
    entering: RowCursor,
    leaving: RowCursor,
}

/// The front half.
#[derive(Default)]
struct Front {
    /// Its first row when it was made.
    first: usize,
    /// By block: what the rows behind the block have gathered.
    behind: Vec<Accumulator>,
    /// By row of the present block: what the rows from this one on have gathered.
    from: Vec<Accumulator>,
    block: usize,
}

impl<'p> Sliding<'p> {
    pub(super) fn new(aggregate: &'p CompiledAggregate, argument: Option<usize>) -> Sliding<'p> {
        Sliding {
            aggregate,
            argument,
            start: 0,
            end: 0,
            middle: 0,
            front: Front::default(),
            back: aggregate.start(),
            result: None,
            entering: RowCursor::default(),
            leaving: RowCursor::default(),
        }
    }

    /// The result over the rows from `start` to the one before `end`. Neither ever gets smaller.
    pub(super) fn over(
        &mut self,
        (start, end): (usize, usize),
        sorted: Sorted<'_, '_>,
        context: &Context<'_>,
    ) -> Result<Value, SqlError> {
        if (start, end) == (self.start, self.end)
            && let Some(result) = &self.result
        {
            return Ok(result.clone());
        }
        if start >= self.end {
            self.begin(start);
        } else if start > self.start {
            if self.aggregate.is_invertible() {
                self.leave(start, sorted, context)?;
            } else if end - start <= FEW_ROWS {
                self.begin(start);
            } else {
                self.move_start(start, sorted, context)?;
            }
        }
        for row in self.end..end {
            sorted.check(row + 1)?;
            let value = value_of(self.argument, sorted, &mut self.entering, row)?;
            self.aggregate.include(&mut self.back, &value, context)?;
        }
        self.end = end;
        let result = match self.front.from.get(self.start.saturating_sub(self.front.block_start())) {
            Some(front) if self.start < self.middle => {
                let all = self.aggregate.joined(front, &self.back, context)?;
                self.aggregate.result(&all, context)
            }
            _ => self.aggregate.result(&self.back, context),
        };
        self.result = Some(result.clone());
        Ok(result)
    }

    /// Begins with an empty frame.
    fn begin(&mut self, start: usize) {
        (self.start, self.middle, self.end) = (start, start, start);
        self.back = self.aggregate.start();
    }

    fn leave(&mut self, start: usize, sorted: Sorted<'_, '_>, context: &Context<'_>) -> Result<(), SqlError> {
        for row in self.start..start {
            sorted.check(row + 1)?;
            let value = value_of(self.argument, sorted, &mut self.leaving, row)?;
            self.aggregate.exclude(&mut self.back, &value, context)?;
        }
        (self.start, self.middle) = (start, start);
        Ok(())
    }

    fn move_start(
        &mut self,
        start: usize,
        sorted: Sorted<'_, '_>,
        context: &Context<'_>,
    ) -> Result<(), SqlError> {
        self.start = start;
        if start >= self.middle {
            self.front.first = start;
            self.middle = self.end;
            self.back = self.aggregate.start();
            self.mark_blocks(sorted, context)?;
            self.enter_block(0, sorted, context)?;
        }
        let block = (start - self.front.first) / BLOCK_ROWS;
        if block != self.front.block {
            self.enter_block(block, sorted, context)?;
        }
        Ok(())
    }

    /// Gathers, for each block of the front half, what comes behind it.
    fn mark_blocks(&mut self, sorted: Sorted<'_, '_>, context: &Context<'_>) -> Result<(), SqlError> {
        let blocks = (self.middle - self.front.first).div_ceil(BLOCK_ROWS);
        self.front.behind.clear();
        self.front.behind.resize_with(blocks, || self.aggregate.start());
        for block in (1..blocks).rev() {
            let mut gathered = self.aggregate.start();
            for row in self.rows_of(block) {
                sorted.check(row + 1)?;
                let value = value_of(self.argument, sorted, &mut self.leaving, row)?;
                self.aggregate.include(&mut gathered, &value, context)?;
            }
            self.front.behind[block - 1] =
                self.aggregate.joined(&gathered, &self.front.behind[block], context)?;
        }
        Ok(())
    }

    fn rows_of(&self, block: usize) -> std::ops::Range<usize> {
        let start = self.front.first + block * BLOCK_ROWS;
        start..(start + BLOCK_ROWS).min(self.middle)
    }

    fn enter_block(
        &mut self,
        block: usize,
        sorted: Sorted<'_, '_>,
        context: &Context<'_>,
    ) -> Result<(), SqlError> {
        self.front.block = block;
        self.front.from.clear();
        for row in self.rows_of(block) {
            let value = value_of(self.argument, sorted, &mut self.leaving, row)?;
            let mut single = self.aggregate.start();
            self.aggregate.include(&mut single, &value, context)?;
            self.front.from.push(single);
        }
        let empty = self.aggregate.start();
        let mut behind = self.front.behind.get(block).unwrap_or(&empty);
        for here in self.front.from.iter_mut().rev() {
            *here = self.aggregate.joined(here, behind, context)?;
            behind = here;
        }
        Ok(())
    }
}

impl Front {
    /// The first row of the present block.
    fn block_start(&self) -> usize {
        self.first + self.block * BLOCK_ROWS
    }
}

fn value_of<'r>(
    argument: Option<usize>,
    sorted: Sorted<'r, '_>,
    cursor: &'r mut RowCursor,
    row: usize,
) -> Result<ValueRef<'r>, SqlError> {
    let Some(argument) = argument else { return Ok(ValueRef::Int(1)) };
    let (_, record) = sorted.rows.read(cursor, row)?;
    sorted.layout.argument(record, argument)
}

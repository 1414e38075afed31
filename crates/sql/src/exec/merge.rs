//! Merges by integers: reads the first table of a join in the order of its key, next to the primary key of
//! the second.
//!
//! Both sides are read leaf by leaf, and only their integers. If the result reads no column, as in COUNT(*)
//! of a join, no rows are made.

use super::access::{Left, Scratch, ranges};
use super::join::{Running, passes, with_part};
use super::key_value::{KeyValue, equal_integer};
use super::{Flow, RowConsumer, recycle};
use crate::SqlError;
use crate::expr::{Context, IntegerFilter, Part, Row, Slots};
use crate::plan::access::{Access, IntegerRows, Path, Point};
use crate::plan::plan::{Merge, Source, Step};
use bumpalo::Bump;
use engine::{Direction, IntegerColumns, Integers, KeyRange, Reader, Scan, Table};
use types::{KeyCodec, ValueRef};

/// How many keys are skipped one by one before the rest of the leaf is searched.
const STEPS: usize = 8;

/// The side that is looked up: its rows in the order of their keys.
struct Inner<'s> {
    reader: Reader<'s>,
    table: &'s Table,
    columns: &'s IntegerColumns,
    codec: &'s KeyCodec,
    point: &'s Point,
    scan: Scan<'s>,
    batch: Integers,
    /// The position in the batch of the first row whose key is not below those looked up so far.
    at: usize,
    last: i64,
    key: Vec<u8>,
}

impl<'s> Inner<'s> {
    fn new(
        reader: Reader<'s>,
        table: &'s Table,
        columns: &'s IntegerColumns,
        codec: &'s KeyCodec,
        point: &'s Point,
        mut batch: Integers,
    ) -> Inner<'s> {
        columns.clear(&mut batch);
        let scan = whole(reader, table);
        Inner {
            reader,
            table,
            columns,
            codec,
            point,
            scan,
            batch,
            at: usize::MAX,
            last: i64::MIN,
            key: vec![],
        }
    }

    /// Moves to the row with this key. True if there is one.
    #[inline(always)]
    fn find(&mut self, key: i64) -> Result<bool, SqlError> {
        if key >= self.last
            && let Some(keys) = self.batch.column(0).values.get(self.at..)
        {
            let steps = keys.len().min(STEPS);
            for (step, known) in keys[..steps].iter().enumerate() {
                if *known >= key {
                    self.at += step;
                    self.last = key;
                    return Ok(*known == key);
                }
            }
        }
        self.find_far(key)
    }

    fn find_far(&mut self, key: i64) -> Result<bool, SqlError> {
        if key < self.last {
            // Keys normally come in order. If one does not, the scan starts again from the beginning.
            self.scan = whole(self.reader, self.table);
            self.at = usize::MAX;
        }
        self.last = key;
        loop {
            if let Some(keys) = self.batch.column(0).values.get(self.at..)
                && keys.last().is_some_and(|last| *last >= key)
            {
                self.at += keys.partition_point(|known| *known < key);
                return Ok(self.batch.column(0).values[self.at] == key);
            }
            let KeyValue::Exact(value) = equal_integer(key, &self.point.column_type) else {
                return Ok(false);
            };
            self.key.clear();
            self.codec.encode_prefix(&[value], &mut self.key);
            self.scan.skip_to(&self.key);
            self.at = 0;
            if !self.scan.next_integers(self.columns, &mut self.batch)? {
                self.at = usize::MAX;
                return Ok(false);
            }
        }
    }
}

fn whole<'s>(reader: Reader<'s>, table: &'s Table) -> Scan<'s> {
    table.scan(reader, base::IndexId(0), KeyRange::all(), Direction::Forward)
}

/// Tests a row of a batch: by its integers if that is enough, otherwise as a row.
struct Conditions<'c> {
    filter: Option<IntegerFilter<'c>>,
    left: Left,
}

impl<'c> Conditions<'c> {
    fn new(rows: &'c IntegerRows, slots: Slots<'c>) -> Conditions<'c> {
        let filter = rows.tests.as_ref().and_then(|tests| tests.fill(&slots));
        let left = if filter.is_some() { Left::Nothing } else { Left::Residual };
        Conditions { filter, left }
    }

    #[inline(always)]
    fn refuses(&self, batch: &Integers, row: usize) -> bool {
        self.filter.as_ref().is_some_and(|filter| !filter.takes(batch, row))
    }
}

/// The two steps that are merged, with the accesses and conditions of their tables.
struct Merging<'m, 'j, 'p> {
    running: &'m Running<'j, 'p>,
    merge: &'j Merge,
    first: &'j Step,
    second: &'j Step,
    outer_access: &'j Access,
    inner_access: &'j Access,
    outer: &'j IntegerRows,
    outer_conditions: Conditions<'j>,
    inner_conditions: Conditions<'j>,
    nothing: Vec<Part<'static>>,
}

impl<'j> Running<'j, '_> {
    /// Reads the first two steps, and for each row found the steps behind them. `None` if a value cannot be a
    /// key of the first table.
    pub(super) fn merge(
        &self,
        merge: &'j Merge,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Option<Flow>, SqlError> {
        let plan = self.join.plan;
        let [first, second, ..] = plan.steps.as_slice() else { return Ok(None) };
        let (Some(outer_access), Some(inner_access)) = (&first.access, &second.access) else {
            return Ok(None);
        };
        let (Source::Table { table: outer_table, .. }, Source::Table { table: inner_table, .. }) =
            (&plan.inputs[first.part].source, &plan.inputs[second.part].source)
        else {
            return Ok(None);
        };
        let (Some(outer), Path::Points { codec, points, .. }) = (&outer_access.integers, &inner_access.path)
        else {
            return Ok(None);
        };
        let mut arena = Bump::new();
        let nothing = vec![Part::Nulls; plan.inputs.len()];
        let context = self.join.context(&arena);
        let Some(ranges) = ranges(outer_access, &Row(&nothing), &context, &mut scratch[0])? else {
            return Ok(None);
        };
        let merging = Merging {
            running: self,
            merge,
            first,
            second,
            outer_access,
            inner_access,
            outer,
            outer_conditions: Conditions::new(outer, self.join.slots),
            inner_conditions: Conditions::new(&merge.inner, self.join.slots),
            nothing,
        };
        let reader = self.join.runtime.reader;
        let mut batch = std::mem::take(&mut scratch[0].integers);
        let inner_batch = std::mem::take(&mut scratch[1].integers);
        let mut inner = Inner::new(reader, inner_table, &merge.inner.columns, codec, &points[0], inner_batch);
        let mut flow = Flow::Continue;
        'ranges: for range in ranges {
            let mut scan = outer_table.scan(reader, base::IndexId(0), range, Direction::Forward);
            while scan.next_integers(&outer.columns, &mut batch)? {
                self.join.runtime.interrupt.check()?;
                arena.reset();
                let context = self.join.context(&arena);
                flow = if merging.only_finds() {
                    merging.find_batch(&batch, &mut inner, &context, scratch, consumer)?
                } else {
                    merging.join_batch(&batch, &mut inner, &context, scratch, consumer)?
                };
                if flow == Flow::Stop {
                    break 'ranges;
                }
            }
        }
        scratch[0].integers = batch;
        scratch[1].integers = inner.batch;
        Ok(Some(flow))
    }
}

impl Merging<'_, '_, '_> {
    /// True if no column of the rows found is read.
    fn only_finds(&self) -> bool {
        let Merging { merge, first, second, outer_conditions, inner_conditions, .. } = self;
        !merge.reads_rows
            && [outer_conditions, inner_conditions].iter().all(|conditions| conditions.left == Left::Nothing)
            && [first, second].iter().all(|step| step.filter.is_none())
            && second.begins.is_none()
    }

    fn find_batch(
        &self,
        batch: &Integers,
        inner: &mut Inner<'_>,
        context: &Context<'_>,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let keys = batch.column(self.merge.outer);
        let found = Row(&self.nothing);
        for row in 0..batch.rows() {
            if self.outer_conditions.refuses(batch, row) {
                continue;
            }
            let Some(key) = keys.get(row) else { continue };
            if inner.find(key)?
                && !self.inner_conditions.refuses(&inner.batch, inner.at)
                && self.running.found(1, &self.second.ends, &found, context, &mut scratch[2..], consumer)?
                    == Flow::Stop
            {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    fn join_batch(
        &self,
        batch: &Integers,
        inner: &mut Inner<'_>,
        context: &Context<'_>,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let Merging { first, second, .. } = self;
        let mut outer_values = recycle(std::mem::take(&mut scratch[0].values));
        let mut inner_values = recycle(std::mem::take(&mut scratch[1].values));
        outer_values.resize(self.outer.width, ValueRef::Null);
        inner_values.resize(self.merge.inner.width, ValueRef::Null);
        let keys = batch.column(self.merge.outer);
        let mut flow = Flow::Continue;
        for at in 0..batch.rows() {
            if self.outer_conditions.refuses(batch, at) {
                continue;
            }
            self.outer.columns.read(batch, at, &mut outer_values);
            flow = with_part(&self.nothing, first.part, Part::Values(&outer_values), |parts| {
                let row = Row(parts);
                let conditions = self.outer_conditions.left.of(self.outer_access);
                if !passes(conditions, &row, context)? || !passes(&first.filter, &row, context)? {
                    return Ok(Flow::Continue);
                }
                if let Some(nest) = second.begins {
                    self.running.matched[nest].set(false);
                }
                let mut flow = Flow::Continue;
                if let Some(key) = keys.get(at)
                    && inner.find(key)?
                    && !self.inner_conditions.refuses(&inner.batch, inner.at)
                {
                    self.merge.inner.columns.read(&inner.batch, inner.at, &mut inner_values);
                    flow = self.join_row(parts, &inner_values, context, scratch, consumer)?;
                }
                match second.begins {
                    Some(nest) if flow == Flow::Continue && !self.running.matched[nest].get() => {
                        self.running.nulls(nest, parts, &mut scratch[1..], consumer)
                    }
                    _ => Ok(flow),
                }
            })?;
            if flow == Flow::Stop {
                break;
            }
        }
        scratch[0].values = recycle(outer_values);
        scratch[1].values = recycle(inner_values);
        Ok(flow)
    }

    fn join_row(
        &self,
        outer: &[Part<'_>],
        values: &[ValueRef<'_>],
        context: &Context<'_>,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        with_part(outer, self.second.part, Part::Values(values), |parts| {
            let row = Row(parts);
            let conditions = self.inner_conditions.left.of(self.inner_access);
            if !passes(conditions, &row, context)? || !passes(&self.second.filter, &row, context)? {
                return Ok(Flow::Continue);
            }
            self.running.found(1, &self.second.ends, &row, context, &mut scratch[2..], consumer)
        })
    }
}

//! Finds the rows of one table by its access path.

use super::Flow;
use super::key_value::{KeyBound, KeyValue, Side, bound, equal, is_exact};
use super::recycle;
use crate::SqlError;
use crate::expr::read_code;
use crate::expr::{Compiled, Context, ListSet, Part, Row};
use crate::plan::access::{
    Access, BoundValue, Covering, IntegerRows, Path, Point, PointValues, RangeBound, RangeInterval, RangePart,
};
use base::IndexId;
use bumpalo::Bump;
use engine::{Batch, Direction, Integers, KeyList, KeyRange, Reader, Scan, Table};
use std::ops::Bound;
use types::{ColumnType, KeyCodec, ValueRef};

/// If there are more keys than this, looking them up one by one is not worth it.
const KEYS_MAX: usize = 1 << 20;
/// After this many rows the statement looks again whether it was killed.
pub(super) const ROWS_BETWEEN_CHECKS: u32 = 256;

/// Memory that is reused from statement to statement.
#[derive(Default, Debug)]
pub(crate) struct Scratch {
    keys: KeyList,
    sorted: KeyList,
    order: Vec<u32>,
    words: Vec<u64>,
    pub(super) row: Vec<u8>,
    /// The key for a hash table.
    pub(super) key: Vec<u8>,
    pub(super) batch: Batch,
    pub(super) integers: Integers,
    pub(super) values: Vec<ValueRef<'static>>,
    decoded: Vec<u8>,
    /// A row of the result.
    pub(super) output: Vec<ValueRef<'static>>,
    /// Rows and keys that are being sorted.
    pub(super) arena: Bump,
    /// True if scans must deliver primary keys.
    wants_keys: bool,
}

impl Scratch {
    /// The keys that [`named_rows`] found, in order.
    pub(crate) fn sorted(&mut self) -> &mut KeyList {
        &mut self.sorted
    }

    /// The size of its memory in bytes. Small lists are not counted.
    pub(crate) fn capacity(&self) -> usize {
        let lists = self.keys.bytes.capacity() + self.sorted.bytes.capacity() + self.order.capacity() * 4;
        lists
            + self.row.capacity()
            + self.decoded.capacity()
            + self.batch.capacity()
            + self.arena.allocated_bytes()
    }
}

/// Whether the visitor needs primary keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wants {
    Rows,
    /// Rows with their primary keys. A statement that changes rows needs these.
    Keys,
}

/// Which of an access's conditions still have to be tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    Nothing,
    Residual,
    All,
}

impl Left {
    /// The conditions.
    pub(crate) fn of(self, access: &Access) -> &Option<Compiled> {
        match self {
            Left::Nothing => &None,
            Left::Residual => &access.residual,
            Left::All => &access.all,
        }
    }
}

/// What a scan reads of each row.
#[derive(Clone, Copy)]
enum Read<'a> {
    Whole,
    /// The keys of an index.
    Keys(&'a Covering),
    Integers(&'a IntegerRows),
}

/// The result of making keys.
enum Keys {
    Nothing,
    Found,
    Unusable,
}

/// Takes a row as an access finds it: its primary key (which may be empty unless it was asked for), its
/// columns, and the conditions that the row still has to meet.
pub(crate) type Visitor<'v> = dyn FnMut(&[u8], &Part<'_>, Left) -> Result<Flow, SqlError> + 'v;

/// The rows that are looked for, and the reader that looks.
#[derive(Clone, Copy)]
pub(crate) struct Find<'f> {
    /// Only rows that this reader sees are found.
    pub reader: Reader<'f>,
    pub table: &'f Table,
    pub access: &'f Access,
    /// The joined row of the tables before.
    pub outer: Row<'f>,
    pub context: &'f Context<'f>,
}

/// A range of an index, and how it is read.
struct Span<'s> {
    index: IndexId,
    range: KeyRange,
    direction: Direction,
    read: Read<'s>,
    left: Left,
}

/// Calls `each` for the rows that an access path finds.
///
/// # Errors
/// Of the engine, of evaluating keys, and those of `each`.
pub(crate) fn for_each_row(
    find: &Find<'_>,
    scratch: &mut Scratch,
    wants: Wants,
    each: &mut Visitor<'_>,
) -> Result<Flow, SqlError> {
    let Find { access, context, .. } = *find;
    let outer = &find.outer;
    scratch.wants_keys = wants == Wants::Keys;
    let read = match (&access.integers, &access.covering) {
        // Primary keys are delivered with whole rows only.
        _ if scratch.wants_keys => Read::Whole,
        (Some(integers), _) => Read::Integers(integers),
        (None, Some(covering)) => Read::Keys(covering),
        (None, None) => Read::Whole,
    };
    if let Path::Points { index, codec, points, unique } = &access.path {
        return match point_keys(codec, points, outer, context, scratch)? {
            Keys::Nothing => Ok(Flow::Continue),
            Keys::Unusable => everything(find, IndexId(0), Direction::Forward, scratch, each),
            Keys::Found => points_found(find, *index, *unique, read, scratch, each),
        };
    }
    let (index, direction) = (access.index(), access.direction());
    let Some(ranges) = ranges(access, outer, context, scratch)? else {
        return everything(find, index, direction, scratch, each);
    };
    for range in ranges {
        let span = Span { index, range, direction, read, left: Left::Residual };
        let flow = scan(find, span, scratch, each)?;
        if flow == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// The ranges of its index that a path reads, in the order in which it reads them. `None` if a value cannot
/// be a key.
pub(super) fn ranges<'a>(
    access: &'a Access,
    outer: &Row<'a>,
    context: &Context<'a>,
    scratch: &mut Scratch,
) -> Result<Option<Vec<KeyRange>>, SqlError> {
    let Path::Ranges { codec, points, part, intervals, direction, .. } = &access.path else {
        return Ok(Some(vec![KeyRange::all()]));
    };
    match point_keys(codec, points, outer, context, scratch)? {
        Keys::Nothing => return Ok(Some(vec![])),
        Keys::Unusable => return Ok(None),
        Keys::Found => {}
    }
    let builder = RangeBuilder { codec, points: points.len(), part: part.as_ref(), outer, context };
    let mut ranges = builder.ranges(intervals, &scratch.sorted)?;
    if *direction == Direction::Backward
        && let Some(ranges) = &mut ranges
    {
        ranges.reverse();
    }
    Ok(ranges)
}

/// The primary keys that rows of the access can have, if its conditions name them. Then a statement that
/// locks rows need not find them first. The keys are in `scratch.sorted()`. False if the conditions do not
/// name them.
///
/// # Errors
/// Those of evaluating keys.
pub(crate) fn named_rows(
    access: &Access,
    outer: &Row<'_>,
    context: &Context<'_>,
    scratch: &mut Scratch,
) -> Result<bool, SqlError> {
    let Path::Points { index: IndexId(0), codec, points, unique: true } = &access.path else {
        return Ok(false);
    };
    Ok(match point_keys(codec, points, outer, context, scratch)? {
        Keys::Found => true,
        Keys::Unusable => false,
        Keys::Nothing => {
            scratch.sorted.clear();
            true
        }
    })
}

/// Every row, with every condition left to test. The rows come in the order in which the path would have
/// found them, because the caller may rely on that order and not sort.
fn everything(
    find: &Find<'_>,
    index: IndexId,
    direction: Direction,
    scratch: &mut Scratch,
    each: &mut Visitor<'_>,
) -> Result<Flow, SqlError> {
    let span = Span { index, range: KeyRange::all(), direction, read: Read::Whole, left: Left::All };
    scan(find, span, scratch, each)
}

/// Hands on the rows that have the keys in `scratch.sorted`.
fn points_found(
    find: &Find<'_>,
    index: IndexId,
    unique: bool,
    read: Read<'_>,
    scratch: &mut Scratch,
    each: &mut Visitor<'_>,
) -> Result<Flow, SqlError> {
    let Find { reader, table, .. } = *find;
    let codec = table.row_codec();
    if unique && index.0 == 0 && scratch.sorted.len() == 1 && !scratch.wants_keys {
        let mut image = std::mem::take(&mut scratch.row);
        image.clear();
        let found = table.get(reader, scratch.sorted.get(0), &mut image)?;
        let flow = match found {
            true => each(scratch.sorted.get(0), &Part::Image(codec.view(&image)), Left::Residual),
            false => Ok(Flow::Continue),
        };
        scratch.row = image;
        return flow;
    }
    if let Read::Keys(_) = read {
        let keys = std::mem::take(&mut scratch.sorted);
        let mut flow = Ok(Flow::Continue);
        for position in 0..keys.len() {
            let key = keys.get(position).to_vec();
            let range = KeyRange { lower: Bound::Included(key.clone()), upper: Bound::Included(key) };
            let span = Span { index, range, direction: Direction::Forward, read, left: Left::Residual };
            flow = scan(find, span, scratch, each);
            if !matches!(flow, Ok(Flow::Continue)) {
                break;
            }
        }
        scratch.sorted = keys;
        return flow;
    }
    let mut outcome = Ok(Flow::Continue);
    let Scratch { sorted, batch, .. } = scratch;
    table.multi_get(reader, index, sorted, batch, &mut |_, primary_key, image| match each(
        primary_key,
        &Part::Image(codec.view(image)),
        Left::Residual,
    ) {
        Ok(Flow::Continue) => true,
        end => {
            outcome = end;
            false
        }
    })?;
    outcome
}

/// Hands on the rows of a range.
fn scan(
    find: &Find<'_>,
    span: Span<'_>,
    scratch: &mut Scratch,
    each: &mut Visitor<'_>,
) -> Result<Flow, SqlError> {
    let Find { reader, table, context, .. } = *find;
    let Span { index, range, direction, read, left } = span;
    let codec = table.row_codec();
    let mut scan = match read {
        Read::Keys(_) => table.scan_keys(reader, index, range, direction),
        _ => table.scan(reader, index, range, direction),
    };
    match read {
        Read::Integers(integers) => scan_integers(scan, integers, left, context, scratch, each),
        Read::Whole if !scratch.wants_keys => {
            while let Some(image) = scan.next_row()? {
                if each(&[], &Part::Image(codec.view(image)), left)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        }
        Read::Whole => {
            let mut primary_key = Vec::new();
            let mut image = std::mem::take(&mut scratch.row);
            let mut flow = Ok(Flow::Continue);
            loop {
                image.clear();
                match scan.next_row()? {
                    Some(row) => image.extend_from_slice(row),
                    None => break,
                }
                primary_key.clear();
                primary_key.extend_from_slice(scan.primary_key());
                flow = each(&primary_key, &Part::Image(codec.view(&image)), left);
                if !matches!(flow, Ok(Flow::Continue)) {
                    break;
                }
            }
            scratch.row = image;
            flow
        }
        Read::Keys(covering) if !covering.decode => {
            while scan.next_key()?.is_some() {
                if each(&[], &Part::Nulls, left)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::Continue)
        }
        Read::Keys(covering) => {
            let mut primary_scratch = Vec::new();
            let mut values = std::mem::take(&mut scratch.values);
            let mut decoded = std::mem::take(&mut scratch.decoded);
            let mut flow = Ok(Flow::Continue);
            while let Some(key) = scan.next_key()? {
                let mut row = recycle(values);
                let read = covering.read(key, &mut decoded, &mut primary_scratch, &mut row);
                flow = match read {
                    Some(()) => each(&[], &Part::Values(&row), left),
                    None => Err(SqlError::internal("an index entry that cannot be read")),
                };
                values = recycle(row);
                if !matches!(flow, Ok(Flow::Continue)) {
                    break;
                }
            }
            scratch.values = values;
            scratch.decoded = decoded;
            flow
        }
    }
}

fn scan_integers(
    mut scan: Scan<'_>,
    rows: &IntegerRows,
    left: Left,
    context: &Context<'_>,
    scratch: &mut Scratch,
    each: &mut Visitor<'_>,
) -> Result<Flow, SqlError> {
    let filter = rows.tests.as_ref().and_then(|tests| tests.fill(&context.slots));
    let left = if filter.is_some() { Left::Nothing } else { left };
    let mut batch = std::mem::take(&mut scratch.integers);
    let mut values: Vec<ValueRef<'_>> = recycle(std::mem::take(&mut scratch.values));
    values.resize(rows.width, ValueRef::Null);
    let mut flow = Ok(Flow::Continue);
    'batches: while scan.next_integers(&rows.columns, &mut batch)? {
        context.environment.check_interrupt()?;
        for row in 0..batch.rows() {
            if filter.as_ref().is_some_and(|filter| !filter.takes(&batch, row)) {
                continue;
            }
            rows.columns.read(&batch, row, &mut values);
            flow = each(&[], &Part::Values(&values), left);
            if !matches!(flow, Ok(Flow::Continue)) {
                break 'batches;
            }
        }
    }
    scratch.integers = batch;
    scratch.values = recycle(values);
    flow
}

impl Covering {
    /// Reads a row's columns from an index entry. Columns that the entry does not have are NULL.
    fn read<'k>(
        &self,
        key: &'k [u8],
        scratch: &'k mut Vec<u8>,
        primary_scratch: &'k mut Vec<u8>,
        row: &mut Vec<ValueRef<'k>>,
    ) -> Option<()> {
        scratch.clear();
        primary_scratch.clear();
        row.resize(self.width, ValueRef::Null);
        let (own, rest) = key.split_at_checked(self.own.len_in(key)?)?;
        let own = self.own.decode(own, scratch)?;
        let primary = match &self.primary {
            Some(codec) => codec.decode(rest, primary_scratch)?,
            None => Vec::new(),
        };
        for (column, value) in self.columns.iter().zip(own.into_iter().chain(primary)) {
            row[*column] = value;
        }
        Some(())
    }
}

/// Writes the keys of `points` to `scratch.sorted`, sorted and distinct. Without points that is one empty
/// key.
fn point_keys(
    codec: &KeyCodec,
    points: &[Point],
    outer: &Row<'_>,
    context: &Context<'_>,
    scratch: &mut Scratch,
) -> Result<Keys, SqlError> {
    scratch.keys.clear();
    let keys = match points {
        [Point { values: PointValues::Slot(slot), column_type, .. }] => {
            match equal_code(context.slots.value(*slot), column_type, context) {
                KeyValue::Exact(value) => {
                    // One value needs no sorting.
                    scratch.sorted.clear();
                    codec.encode_prefix(&[value], &mut scratch.sorted.bytes);
                    scratch.sorted.ends.push(scratch.sorted.bytes.len() as u32);
                    return Ok(Keys::Found);
                }
                KeyValue::Never => Keys::Nothing,
                KeyValue::Unusable => Keys::Unusable,
            }
        }
        [Point { values: PointValues::Slots(slot), column_type, .. }] => {
            if ListSet::stored_of_slot(&context.slots, *slot).is_some() {
                return Ok(Keys::Unusable);
            }
            let mut found = Keys::Nothing;
            for value in context.slots.list(*slot) {
                let exact;
                let value = if is_exact(value, column_type) {
                    value
                } else {
                    match equal_code(*value, column_type, context) {
                        KeyValue::Exact(value) => exact = value,
                        KeyValue::Never => continue,
                        KeyValue::Unusable => return Ok(Keys::Unusable),
                    }
                    &exact
                };
                codec.encode_prefix(std::slice::from_ref(value), &mut scratch.keys.bytes);
                scratch.keys.ends.push(scratch.keys.bytes.len() as u32);
                found = Keys::Found;
            }
            found
        }
        points => product(codec, points, outer, context, &mut scratch.keys)?,
    };
    if matches!(keys, Keys::Found) {
        sort_keys(scratch);
    }
    Ok(keys)
}

/// As [`equal`], but a text is read as a UUID or an address beside a column of such.
#[inline]
fn equal_code<'a>(value: ValueRef<'a>, column: &ColumnType, context: &Context<'a>) -> KeyValue<'a> {
    match (equal(value, column, context.environment), column) {
        (KeyValue::Unusable, ColumnType::Code(code)) => match read_code(&value, *code, context) {
            ValueRef::Null => KeyValue::Never,
            value => KeyValue::Exact(value),
        },
        (found, _) => found,
    }
}

/// The keys of all combinations of the points' values.
fn product<'a>(
    codec: &KeyCodec,
    points: &'a [Point],
    outer: &Row<'a>,
    context: &Context<'a>,
    keys: &mut KeyList,
) -> Result<Keys, SqlError> {
    let mut values: Vec<Vec<ValueRef<'a>>> = Vec::with_capacity(points.len());
    let mut combinations = 1usize;
    for point in points {
        let mut found = Vec::new();
        match point_values(point, outer, context, &mut found)? {
            Keys::Nothing => return Ok(Keys::Nothing),
            Keys::Unusable => return Ok(Keys::Unusable),
            Keys::Found => {}
        }
        combinations = combinations.saturating_mul(found.len());
        if combinations > KEYS_MAX {
            return Ok(Keys::Unusable);
        }
        values.push(found);
    }
    let mut chosen = vec![0; values.len()];
    let mut key = Vec::with_capacity(values.len());
    loop {
        key.clear();
        key.extend(values.iter().zip(&chosen).map(|(values, at)| values[*at]));
        codec.encode_prefix(&key, &mut keys.bytes);
        keys.ends.push(keys.bytes.len() as u32);
        // Advances like a counter: the last part changes fastest.
        let mut part = values.len();
        loop {
            if part == 0 {
                return Ok(Keys::Found);
            }
            part -= 1;
            chosen[part] += 1;
            if chosen[part] < values[part].len() {
                break;
            }
            chosen[part] = 0;
        }
    }
}

/// The values that one key part can have.
fn point_values<'a>(
    point: &'a Point,
    outer: &Row<'a>,
    context: &Context<'a>,
    out: &mut Vec<ValueRef<'a>>,
) -> Result<Keys, SqlError> {
    let mut usable = true;
    let mut take = |value: ValueRef<'a>, null_safe: bool| match (value, null_safe) {
        (ValueRef::Null, true) if point.nullable => out.push(ValueRef::Null),
        (value, _) => match equal_code(value, &point.column_type, context) {
            KeyValue::Exact(value) => out.push(value),
            KeyValue::Never => {}
            KeyValue::Unusable => usable = false,
        },
    };
    match &point.values {
        PointValues::Slot(slot) => take(context.slots.value(*slot), false),
        PointValues::Slots(slot) => {
            if ListSet::stored_of_slot(&context.slots, *slot).is_some() {
                return Ok(Keys::Unusable);
            }
            context.slots.list(*slot).iter().for_each(|value| take(*value, false));
        }
        PointValues::Value { value, null_safe } => take(value.evaluate(outer, context)?, *null_safe),
        PointValues::Values(values) => {
            for value in values {
                take(value.evaluate(outer, context)?, false);
            }
        }
    }
    Ok(match (usable, out.is_empty()) {
        (false, _) => Keys::Unusable,
        (true, true) => Keys::Nothing,
        (true, false) => Keys::Found,
    })
}

/// Writes the key of points that have one value each. False if no row can have that key. `None` if keys
/// cannot decide which rows match.
pub(super) fn single_key<'a>(
    codec: &KeyCodec,
    points: &'a [Point],
    outer: &Row<'a>,
    context: &Context<'a>,
    key: &mut Vec<u8>,
) -> Result<Option<bool>, SqlError> {
    /// Longer keys are looked up one by one.
    const PARTS_MAX: usize = 2;
    key.clear();
    let mut few = [ValueRef::Null; PARTS_MAX];
    if points.len() > PARTS_MAX {
        return Ok(None);
    }
    for (point, part_value) in points.iter().zip(&mut few) {
        let value = match &point.values {
            PointValues::Slot(slot) => context.slots.value(*slot),
            PointValues::Value { value, null_safe: false } => value.evaluate(outer, context)?,
            _ => return Ok(None),
        };
        match equal_code(value, &point.column_type, context) {
            KeyValue::Exact(value) => *part_value = value,
            KeyValue::Never => return Ok(Some(false)),
            KeyValue::Unusable => return Ok(None),
        }
    }
    codec.encode_prefix(&few[..points.len()], key);
    Ok(Some(true))
}

/// Sorts `scratch.keys` into `scratch.sorted` and drops duplicates.
fn sort_keys(scratch: &mut Scratch) {
    let Scratch { keys, sorted, order, words, .. } = scratch;
    sorted.clear();
    let count = keys.len();
    let length = keys.bytes.len() / count.max(1);
    let is_even = length <= 8
        && length > 0
        && keys.ends.iter().zip(1..).all(|(end, nth)| *end as usize == nth * length);
    if is_even {
        // Short keys of one length are sorted as numbers.
        words.clear();
        words.extend(keys.bytes.chunks_exact(length).map(|key| {
            let mut word = [0; 8];
            word[..length].copy_from_slice(key);
            u64::from_be_bytes(word)
        }));
        words.sort_unstable();
        words.dedup();
        for word in words.iter() {
            sorted.push(&word.to_be_bytes()[..length]);
        }
        return;
    }
    order.clear();
    order.extend(0..count as u32);
    order.sort_unstable_by(|left, right| keys.get(*left as usize).cmp(keys.get(*right as usize)));
    for at in order.iter() {
        let key = keys.get(*at as usize);
        if sorted.is_empty() || sorted.get(sorted.len() - 1) != key {
            sorted.push(key);
        }
    }
}

/// Makes key ranges from intervals.
struct RangeBuilder<'a, 'r> {
    codec: &'r KeyCodec,
    /// How many key parts come before the part that the range is on.
    points: usize,
    part: Option<&'a RangePart>,
    outer: &'r Row<'a>,
    context: &'r Context<'a>,
}

/// The interior of one interval as bytes that follow a prefix. A bound of `None` is the end of the part's
/// values.
struct Piece {
    lower: Option<(Vec<u8>, bool)>,
    upper: Option<(Vec<u8>, bool)>,
    /// True if there is a condition, even one that every value meets: NULL does not meet it.
    excludes_null: bool,
}

impl<'a> RangeBuilder<'a, '_> {
    /// The ranges in key order, without overlaps; `None` if a value cannot be a key.
    fn ranges(
        &self,
        intervals: &'a [RangeInterval],
        prefixes: &KeyList,
    ) -> Result<Option<Vec<KeyRange>>, SqlError> {
        let mut ranges = Vec::new();
        for at in 0..prefixes.len().max(1) {
            let prefix = if prefixes.is_empty() { &[][..] } else { prefixes.get(at) };
            for interval in intervals {
                let Some(part) = self.part else {
                    ranges.push(KeyRange {
                        lower: Bound::Included(prefix.to_vec()),
                        upper: Bound::Included(prefix.to_vec()),
                    });
                    continue;
                };
                match self.piece(interval, part, prefix)? {
                    Made::Piece(piece) => ranges.push(range(piece, prefix, part)),
                    Made::Empty => {}
                    Made::Unusable => return Ok(None),
                }
            }
        }
        Ok(Some(merge(ranges)))
    }

    fn piece(&self, interval: &'a RangeInterval, part: &RangePart, prefix: &[u8]) -> Result<Made, SqlError> {
        let excludes_null = !interval.lower.is_empty() || !interval.upper.is_empty();
        let mut piece = Piece { lower: None, upper: None, excludes_null };
        for (side, bounds) in [(Side::Lower, &interval.lower), (Side::Upper, &interval.upper)] {
            for bound in bounds {
                let (key, inclusive) = match self.key(bound, part, side, prefix)? {
                    MadeKey::Key(key, inclusive) => (key, inclusive),
                    MadeKey::Open => continue,
                    MadeKey::Empty => return Ok(Made::Empty),
                    MadeKey::Unusable => return Ok(Made::Unusable),
                };
                // A descending part stores inverted bytes, so its lower and upper side are exchanged.
                let as_lower = (side == Side::Lower) != part.descending;
                let tightest = if as_lower { &mut piece.lower } else { &mut piece.upper };
                let tighter = tightest.as_ref().is_none_or(|(known, known_inclusive)| {
                    let order = key.cmp(known);
                    (if as_lower { order.is_gt() } else { order.is_lt() })
                        || (order.is_eq() && *known_inclusive && !inclusive)
                });
                if tighter {
                    *tightest = Some((key, inclusive));
                }
            }
        }
        Ok(Made::Piece(piece))
    }

    /// As [`bound`], but a text is read as a UUID or an address beside a column of such.
    fn bound(&self, value: ValueRef<'a>, part: &RangePart, inclusive: bool, side: Side) -> KeyBound<'a> {
        let ColumnType::Code(code) = part.column_type else {
            return bound(value, &part.column_type, inclusive, side, self.context.environment);
        };
        match read_code(&value, code, self.context) {
            ValueRef::Null => KeyBound::Empty,
            value => KeyBound::At { value, inclusive },
        }
    }

    fn key(
        &self,
        range: &'a RangeBound,
        part: &RangePart,
        side: Side,
        prefix: &[u8],
    ) -> Result<MadeKey, SqlError> {
        let value = match &range.value {
            BoundValue::Slot(slot) => self.context.slots.value(*slot),
            BoundValue::Value(value) => value.evaluate(self.outer, self.context)?,
        };
        // The part's own encoding begins after the encodings of the parts before it. Those are only fillers
        // here.
        let fillers = vec![ValueRef::Null; self.points];
        let mut key = Vec::new();
        self.codec.encode_prefix(&fillers, &mut key);
        let head = key.len();
        let mut values = fillers;
        key.clear();
        let mut inclusive = range.inclusive || part.cut;
        match range.like {
            Some(escape) => {
                let pattern = match value {
                    ValueRef::Null => return Ok(MadeKey::Empty),
                    ValueRef::Text(pattern) => pattern,
                    _ => return Ok(MadeKey::Unusable),
                };
                let start = like_start(pattern, escape.0);
                if start.is_empty() {
                    return Ok(MadeKey::Open);
                }
                self.codec.encode_text_start(&values, &start, &mut key);
            }
            // The starts of the texts are not in the order of the texts.
            None if part.cut && !part.column_type.collation().starts_keep_order() => {
                return Ok(MadeKey::Open);
            }
            None => match self.bound(value, part, range.inclusive, side) {
                KeyBound::At { value, inclusive: moved } => {
                    inclusive = moved || part.cut;
                    values.push(value);
                    self.codec.encode_prefix(&values, &mut key);
                }
                KeyBound::Open => return Ok(MadeKey::Open),
                KeyBound::Empty => return Ok(MadeKey::Empty),
                KeyBound::Unusable => return Ok(MadeKey::Unusable),
            },
        }
        let key = if head == 0 && prefix.is_empty() { key } else { [prefix, &key[head..]].concat() };
        Ok(MadeKey::Key(key, inclusive))
    }
}

enum Made {
    Piece(Piece),
    Empty,
    Unusable,
}

enum MadeKey {
    Key(Vec<u8>, bool),
    Open,
    Empty,
    Unusable,
}

/// The bytes that a LIKE pattern begins with, up to its first wildcard.
fn like_start(pattern: &[u8], escape: Option<char>) -> Vec<u8> {
    let text = String::from_utf8_lossy(pattern);
    let mut start = String::new();
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            '%' | '_' => break,
            next if Some(next) == escape => match chars.next() {
                Some(escaped) => start.push(escaped),
                None => start.push(next),
            },
            next => start.push(next),
        }
    }
    start.into_bytes()
}

/// The range of a piece. NULL is outside every interval that has a bound. NULLs come first, or last in a
/// descending part.
fn range(piece: Piece, prefix: &[u8], part: &RangePart) -> KeyRange {
    let null = |byte: u8| Bound::Excluded([prefix, &[byte]].concat());
    let side = |bound: Option<(Vec<u8>, bool)>| match bound {
        Some((key, true)) => Bound::Included(key),
        Some((key, false)) => Bound::Excluded(key),
        None if prefix.is_empty() => Bound::Unbounded,
        None => Bound::Included(prefix.to_vec()),
    };
    let keeps_out_nulls = part.nullable && piece.excludes_null;
    KeyRange {
        lower: match piece.lower {
            None if keeps_out_nulls && !part.descending => null(0),
            lower => side(lower),
        },
        upper: match piece.upper {
            None if keeps_out_nulls && part.descending => null(0xff),
            upper => side(upper),
        },
    }
}

/// Sorts ranges and joins those that overlap, so that no row is found twice.
fn merge(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    if ranges.len() < 2 {
        return ranges;
    }
    ranges.sort_by(|left, right| lower_order(&left.lower, &right.lower));
    let mut merged: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if reaches(&last.upper, &range.lower) => {
                if upper_order(&last.upper, &range.upper).is_lt() {
                    last.upper = range.upper;
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Bounds are prefixes: an included upper bound includes all keys that start with it.
fn lower_order(left: &Bound<Vec<u8>>, right: &Bound<Vec<u8>>) -> std::cmp::Ordering {
    let rank = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Unbounded => (Vec::new(), 0),
        Bound::Included(key) => (key.clone(), 1),
        Bound::Excluded(key) => (key.clone(), 2),
    };
    rank(left).cmp(&rank(right))
}

fn upper_order(left: &Bound<Vec<u8>>, right: &Bound<Vec<u8>>) -> std::cmp::Ordering {
    use std::cmp::Ordering::{Equal, Greater, Less};
    match (left, right) {
        (Bound::Unbounded, Bound::Unbounded) => Equal,
        (Bound::Unbounded, _) => Greater,
        (_, Bound::Unbounded) => Less,
        (Bound::Included(left), Bound::Included(right)) => {
            match (left.starts_with(right), right.starts_with(left)) {
                (true, true) => Equal,
                // The shorter prefix includes more keys.
                (true, false) => Less,
                (false, true) => Greater,
                _ => left.cmp(right),
            }
        }
        (Bound::Excluded(left), Bound::Excluded(right)) => left.cmp(right),
        (Bound::Included(left), Bound::Excluded(right)) => {
            if left >= right || right.starts_with(left) {
                Greater
            } else {
                Less
            }
        }
        (Bound::Excluded(_), Bound::Included(_)) => upper_order(right, left).reverse(),
    }
}

/// True if a range that ends in `upper` overlaps or touches a range that starts at `lower`. The second range
/// must not start before the first.
fn reaches(upper: &Bound<Vec<u8>>, lower: &Bound<Vec<u8>>) -> bool {
    let key = match lower {
        Bound::Unbounded => return true,
        Bound::Included(key) | Bound::Excluded(key) => key,
    };
    match upper {
        Bound::Unbounded => true,
        Bound::Included(upper) => key <= upper || key.starts_with(upper),
        Bound::Excluded(upper) => key < upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_become_one() {
        let included = |from: &[u8], to: &[u8]| KeyRange {
            lower: Bound::Included(from.to_vec()),
            upper: Bound::Included(to.to_vec()),
        };
        let merged = merge(vec![
            included(b"m", b"p"),
            included(b"a", b"c"),
            included(b"b", b"d"),
            included(b"d", b"e"),
        ]);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[0].upper, Bound::Included(b"e".to_vec()));
    }

    #[test]
    fn a_pattern_begins_with_what_comes_before_its_wildcards() {
        assert_eq!(like_start(br"ab\%c%", Some('\\')), b"ab%c");
        assert_eq!(like_start(b"%ab", Some('\\')), b"");
        assert_eq!(like_start(b"a!%_", Some('!')), b"a%");
    }
}

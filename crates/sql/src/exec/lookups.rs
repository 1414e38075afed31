//! Lookups of many rows at a time. Rows of the tables before are gathered. Then the rows that a unique index
//! has for them are looked up together, so that their cache misses overlap. The result keeps the order of the
//! tables before.

use super::access::{Scratch, single_key};
use super::join::{Running, passes};
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::expr::{Part, Row};
use crate::plan::access::Path;
use crate::plan::plan::Source;
use bumpalo::Bump;
use engine::KeyList;
use types::{Value, ValueRef};

/// How many rows are gathered at first, because many joins end soon, and how many at most.
const ROWS_FIRST: usize = 8;
const ROWS_MAX: usize = 128;
/// The gathered rows are looked up when their images take this many bytes.
const BYTES_MAX: usize = 1 << 20;

/// Rows of the tables before, kept until the lookup for them is made.
#[derive(Debug)]
pub(super) struct Gathered {
    rows_max: usize,
    /// By row: the position of its key among `keys`; `None` if it equals none.
    rows: Vec<Option<u32>>,
    keys: KeyList,
    /// For every row, one entry for each table.
    parts: Vec<GatheredPart>,
    images: Vec<u8>,
    values: Vec<Value>,
    key: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum GatheredPart {
    Nulls,
    /// In the images.
    Image(usize, usize),
    /// Among the values.
    Values(usize, usize),
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered {
            rows_max: ROWS_FIRST,
            rows: vec![],
            keys: KeyList::default(),
            parts: vec![],
            images: vec![],
            values: vec![],
            key: vec![],
        }
    }
}

impl Gathered {
    fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_max || self.images.len() >= BYTES_MAX
    }

    /// Adds a row of the tables before. Its key is in `key`.
    fn push(&mut self, row: &[Part<'_>], has_key: bool) {
        self.rows.push(has_key.then_some(self.keys.len() as u32));
        if has_key {
            self.keys.push(&self.key);
        }
        for part in row {
            self.parts.push(match part {
                Part::Nulls => GatheredPart::Nulls,
                Part::Image(view) => {
                    let start = self.images.len();
                    self.images.extend_from_slice(view.image());
                    GatheredPart::Image(start, self.images.len())
                }
                Part::Values(values) => {
                    let start = self.values.len();
                    self.values.extend(values.iter().map(ValueRef::to_value));
                    GatheredPart::Values(start, self.values.len())
                }
            });
        }
    }

    fn clear(&mut self) {
        self.rows_max = (self.rows_max * 2).min(ROWS_MAX);
        self.rows.clear();
        self.keys.clear();
        self.parts.clear();
        self.images.clear();
        self.values.clear();
    }
}

/// The rows found for keys, by the keys' positions.
#[derive(Default)]
struct Found {
    images: Vec<u8>,
    images_of_key: Vec<Option<(usize, usize)>>,
}

impl<'j> Running<'j, '_> {
    /// Gathers the row `outer` for step `at`. If enough rows are gathered, looks all of them up.
    pub(super) fn gather(
        &self,
        at: usize,
        outer: &[Part<'_>],
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let access = self.join.plan.steps[at].access.as_ref();
        let Some(Path::Points { codec, points, .. }) = access.map(|access| &access.path) else {
            return Err(SqlError::internal("lookups without keys"));
        };
        let is_full = {
            let mut gathered = self.gathered(at).borrow_mut();
            let arena = Bump::new();
            let context = self.join.context(&arena);
            let has_key = single_key(codec, points, &Row(outer), &context, &mut gathered.key)?;
            if let Some(has_key) = has_key {
                gathered.push(outer, has_key);
            }
            has_key.map(|_| gathered.is_full())
        };
        match is_full {
            Some(false) => Ok(Flow::Continue),
            Some(true) => self.look_up(at, scratch, consumer),
            // Keys cannot decide which rows match this row. It takes the step alone, after the rows that were
            // gathered before it.
            None => match self.look_up(at, scratch, consumer)? {
                Flow::Continue => self.step_now(at, outer, scratch, consumer),
                Flow::Stop => Ok(Flow::Stop),
            },
        }
    }

    /// Makes the lookups for the rows that were gathered for step `at`, and hands on the rows found.
    pub(super) fn look_up(
        &self,
        at: usize,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let mut gathered = std::mem::take(&mut *self.gathered(at).borrow_mut());
        let flow = self.hand_on(at, &gathered, scratch, consumer);
        gathered.clear();
        *self.gathered(at).borrow_mut() = gathered;
        flow
    }

    fn hand_on(
        &self,
        at: usize,
        gathered: &Gathered,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let plan = self.join.plan;
        let step = &plan.steps[at];
        let (Source::Table { table, .. }, Some(access)) = (&plan.inputs[step.part].source, &step.access)
        else {
            return Err(SqlError::internal("an access without a table"));
        };
        let found = self.find(access.index(), table, gathered, &mut scratch[0])?;
        let values: Vec<ValueRef<'_>> = gathered.values.iter().map(Value::as_ref).collect();
        let width = plan.inputs.len();
        let mut parts = vec![Part::Nulls; width];
        let mut arena = Bump::new();
        for (row, key) in gathered.rows.iter().enumerate() {
            self.check(at)?;
            for (part, gathered_part) in gathered.parts[row * width..(row + 1) * width].iter().enumerate() {
                parts[part] = match (*gathered_part, &plan.inputs[part].source) {
                    (GatheredPart::Image(start, end), Source::Table { table, .. }) => {
                        Part::Image(table.row_codec().view(&gathered.images[start..end]))
                    }
                    (GatheredPart::Values(start, end), _) => Part::Values(&values[start..end]),
                    _ => Part::Nulls,
                };
            }
            if let Some(nest) = step.begins {
                self.matched[nest].set(false);
            }
            let mut flow = Flow::Continue;
            if let Some((start, end)) = key.and_then(|key| found.images_of_key[key as usize]) {
                arena.reset();
                let context = self.join.context(&arena);
                parts[step.part] = Part::Image(table.row_codec().view(&found.images[start..end]));
                let row = Row(&parts);
                if passes(&access.residual, &row, &context)? && passes(&step.filter, &row, &context)? {
                    flow = self.found(at, &step.ends, &row, &context, &mut scratch[1..], consumer)?;
                }
            }
            if let Some(nest) = step.begins
                && flow == Flow::Continue
                && !self.matched[nest].get()
            {
                parts[step.part] = Part::Nulls;
                flow = self.nulls(nest, &parts, scratch, consumer)?;
            }
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    /// Looks each key up once.
    fn find(
        &self,
        index: base::IndexId,
        table: &engine::Table,
        gathered: &Gathered,
        scratch: &mut Scratch,
    ) -> Result<Found, SqlError> {
        let keys = &gathered.keys;
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by(|left, right| keys.get(*left).cmp(keys.get(*right)));
        let mut sorted = KeyList::default();
        // By position among the sorted keys: where its users begin in `order`.
        let mut firsts = Vec::with_capacity(order.len() + 1);
        for (nth, key) in order.iter().map(|key| keys.get(*key)).enumerate() {
            if sorted.is_empty() || sorted.get(sorted.len() - 1) != key {
                sorted.push(key);
                firsts.push(nth);
            }
        }
        firsts.push(order.len());
        let mut found = Found { images: vec![], images_of_key: vec![None; keys.len()] };
        table.multi_get(
            self.join.runtime.reader,
            index,
            &sorted,
            &mut scratch.batch,
            &mut |position, _, image| {
                let start = found.images.len();
                found.images.extend_from_slice(image);
                for user in &order[firsts[position]..firsts[position + 1]] {
                    found.images_of_key[*user] = Some((start, found.images.len()));
                }
                true
            },
        )?;
        Ok(found)
    }
}

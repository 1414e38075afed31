//! Joins: for each row of the tables before, finds the rows of the next table.

use super::access::{Find, ROWS_BETWEEN_CHECKS, Scratch, Wants, for_each_row, single_key};
use super::hash::{HashedRow, HashedRows, encode_key};
use super::lock::lock_each_row;
use super::lookups::Gathered;
use super::output::Materialized;
use super::partitions::PutOff;
use super::query::Runtime;
use super::{Flow, RowConsumer};
use crate::SqlError;
use crate::expr::{Compiled, Context, Part, Row, Slots};
use crate::plan::access::{Access, Path};
use crate::plan::plan::{HashKeys, LockClause, Method, SelectPlan, Source, Step};
use crate::plan::walk::Parts;
use bumpalo::Bump;
use engine::{Direction, KeyRange, Scan, Table};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// Takes a row of one table, and the condition that the row still has to meet.
type EachRow<'e> = dyn FnMut(&Part<'_>, &Option<Compiled>) -> Result<Flow, SqlError> + 'e;

/// Reads the tables of a SELECT.
pub(super) struct Join<'p> {
    pub(super) plan: &'p SelectPlan,
    pub(super) slots: Slots<'p>,
    pub(super) runtime: &'p Runtime<'p>,
    /// By part. Empty for stored tables.
    pub(super) materialized: &'p [Option<Rc<Materialized>>],
    /// How the rows of its tables are locked. `None` if they are not.
    pub(super) lock: Option<LockClause>,
    /// Set for a statement that changes some of the tables.
    pub(super) change: Option<JoinToChange<'p>>,
}

/// A join whose rows a statement changes.
#[derive(Clone, Copy)]
pub(super) struct JoinToChange<'p> {
    /// The tables whose rows are changed. The rows of the others are locked as `unasked` says.
    pub(super) parts: Parts,
    pub(super) unasked: Option<LockClause>,
    /// By part: the primary key of the row that is being joined, if the part is changed.
    pub(super) keys: &'p RefCell<Vec<Vec<u8>>>,
}

impl<'p> Join<'p> {
    /// Hands every joined row to `consumer`.
    pub(super) fn run(
        &self,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        if let Some(constant) = &self.plan.constant {
            let arena = Bump::new();
            if !constant.is_true(&Row::EMPTY, &self.context(&arena))? {
                return Ok(Flow::Continue);
            }
        }
        match self.plan.steps.as_slice() {
            [] => {
                let arena = Bump::new();
                consumer.row(&Row::EMPTY, &self.context(&arena))
            }
            // There is one table only: its row is the whole row.
            [Step { part: 0, access: Some(access), begins: None, filter: None, .. }] => {
                let Source::Table { table, .. } = &self.plan.inputs[0].source else {
                    return Err(SqlError::internal("an access without a table"));
                };
                let outer_arena = Bump::new();
                let mut arena = Bump::new();
                let mut rows = 0;
                let mut each = |part: &Part<'_>, filter: &Option<Compiled>| {
                    self.check(&mut rows)?;
                    arena.reset();
                    let context = self.context(&arena);
                    let row = Row(std::slice::from_ref(part));
                    if !passes(filter, &row, &context)? {
                        return Ok(Flow::Continue);
                    }
                    consumer.row(&row, &context)
                };
                let context = self.context(&outer_arena);
                let (reader, outer) = (self.runtime.reader, Row(&[Part::Nulls]));
                let find = Find { reader, table, access, outer, context: &context };
                self.rows(0, &find, &mut scratch[0], &mut each)
            }
            steps => {
                let arenas: Vec<Bump> = steps.iter().map(|_| Bump::new()).collect();
                let states = arenas.iter().map(State::new).collect();
                let matched = vec![Cell::new(false); self.plan.nests.len()];
                let parts = vec![Part::Nulls; self.plan.inputs.len()];
                let running = Running { join: self, states, matched };
                let merged = match steps {
                    [_, Step { method: Method::Follow { merge: Some(merge), .. }, .. }, ..]
                        if self.lock.is_none() =>
                    {
                        running.merge(merge, scratch, consumer)?
                    }
                    _ => None,
                };
                let mut flow = match merged {
                    Some(flow) => flow,
                    None => running.step(0, &parts, scratch, consumer)?,
                };
                // Each step hands its rows on to the steps behind it.
                for (at, step) in steps.iter().enumerate() {
                    if flow == Flow::Stop {
                        break;
                    }
                    match &step.method {
                        Method::Gather => flow = running.look_up(at, &mut scratch[at..], consumer)?,
                        Method::Hash(keys) => {
                            flow = running.join_put_off(at, keys, &mut scratch[at..], consumer)?;
                        }
                        _ => {}
                    }
                }
                Ok(flow)
            }
        }
    }

    /// The rows that an access finds, locked if the statement locks rows. Each comes with the condition that
    /// it still has to meet.
    fn rows(
        &self,
        part: usize,
        find: &Find<'_>,
        scratch: &mut Scratch,
        each: &mut EachRow<'_>,
    ) -> Result<Flow, SqlError> {
        let Find { table, access, .. } = *find;
        let keys = self.change.filter(|change| change.parts.has(part)).map(|change| change.keys);
        let lock = match &self.change {
            Some(change) if keys.is_none() => change.unasked,
            _ => self.lock,
        };
        if let (Some(locks), Some(clause)) = (&self.runtime.locks, lock) {
            let workspace = self.runtime.workspace();
            return lock_each_row(
                locks,
                clause,
                part,
                find,
                scratch,
                workspace,
                &mut |primary_key, image| {
                    if let Some(keys) = keys {
                        let key = &mut keys.borrow_mut()[part];
                        key.clear();
                        key.extend_from_slice(primary_key);
                    }
                    each(&Part::Image(table.row_codec().view(image)), &None)
                },
            );
        }
        for_each_row(find, scratch, Wants::Rows, &mut |_, part, left| each(part, left.of(access)))
    }

    pub(super) fn context<'a>(&self, arena: &'a Bump) -> Context<'a>
    where
        'p: 'a,
    {
        let environment = self.runtime.environment;
        Context { slots: self.slots, arena, environment, subqueries: Some(self.runtime) }
    }

    #[inline]
    fn check(&self, rows: &mut u32) -> Result<(), SqlError> {
        *rows += 1;
        if (*rows).is_multiple_of(ROWS_BETWEEN_CHECKS) { self.runtime.interrupt.check() } else { Ok(()) }
    }
}

/// What a step keeps while the rows before it change.
struct State<'s> {
    /// Memory that lives as long as the join.
    arena: &'s Bump,
    followed: RefCell<Followed<'s>>,
    hashed: OnceCell<HashedRows<'s>>,
    put_off: RefCell<Option<PutOff<'s>>>,
    gathered: RefCell<Gathered>,
    rows: Cell<u32>,
}

impl<'s> State<'s> {
    fn new(arena: &'s Bump) -> State<'s> {
        State {
            arena,
            followed: RefCell::default(),
            hashed: OnceCell::new(),
            put_off: RefCell::default(),
            gathered: RefCell::default(),
            rows: Cell::new(0),
        }
    }
}

/// A cursor that moves forward with the keys of the rows before.
#[derive(Default)]
struct Followed<'s> {
    scan: Option<Scan<'s>>,
    key: Vec<u8>,
}

/// A join of several tables while it runs.
pub(super) struct Running<'j, 'p> {
    pub(super) join: &'j Join<'p>,
    /// By step.
    states: Vec<State<'j>>,
    /// By nest: true if a row of it has matched.
    pub(super) matched: Vec<Cell<bool>>,
}

/// Joins of up to this many tables need no heap memory of their own for each row.
const FEW_PARTS: usize = 6;

/// Calls `body` with the row `outer` extended by `part`.
#[inline]
pub(super) fn with_part<R>(
    outer: &[Part<'_>],
    at: usize,
    part: Part<'_>,
    body: impl FnOnce(&[Part<'_>]) -> R,
) -> R {
    if outer.len() <= FEW_PARTS {
        let mut few = [Part::Nulls; FEW_PARTS];
        let parts = &mut few[..outer.len()];
        parts.copy_from_slice(outer);
        parts[at] = part;
        return body(parts);
    }
    let mut parts = outer.to_vec();
    parts[at] = part;
    body(&parts)
}

impl<'j> Running<'j, '_> {
    pub(super) fn put_off_rows(&self, at: usize) -> &RefCell<Option<PutOff<'j>>> {
        &self.states[at].put_off
    }

    pub(super) fn gathered(&self, at: usize) -> &RefCell<Gathered> {
        &self.states[at].gathered
    }

    /// Every few rows, checks whether the statement was killed. Called for each row of step `at`.
    #[inline]
    pub(super) fn check(&self, at: usize) -> Result<(), SqlError> {
        let rows = &self.states[at].rows;
        let mut count = rows.get();
        self.join.check(&mut count)?;
        rows.set(count);
        Ok(())
    }

    /// Reads the step's table for the row `outer`, and for each row found the steps behind it.
    fn step(
        &self,
        at: usize,
        outer: &[Part<'_>],
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        match self.join.plan.steps[at].method {
            Method::Gather if self.join.lock.is_none() => self.gather(at, outer, scratch, consumer),
            Method::Hash(ref keys) if self.join.lock.is_none() => {
                match self.put_off(at, keys, outer, &mut scratch[0])? {
                    true => Ok(Flow::Continue),
                    false => self.step_now(at, outer, scratch, consumer),
                }
            }
            _ => self.step_now(at, outer, scratch, consumer),
        }
    }

    /// As [`Running::step`], but without gathering rows first.
    pub(super) fn step_now(
        &self,
        at: usize,
        outer: &[Part<'_>],
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let step = &self.join.plan.steps[at];
        let (own, inner_scratch) =
            scratch.split_first_mut().ok_or_else(|| SqlError::internal("too little scratch"))?;
        if let Some(nest) = step.begins {
            self.matched[nest].set(false);
        }
        let mut arena = Bump::new();
        let mut each = |part: &Part<'_>, filter: &Option<Compiled>| {
            self.check(at)?;
            arena.reset();
            with_part(outer, step.part, *part, |parts| {
                let context = self.join.context(&arena);
                let row = Row(parts);
                if !passes(filter, &row, &context)? || !passes(&step.filter, &row, &context)? {
                    return Ok(Flow::Continue);
                }
                self.found(at, &step.ends, &row, &context, inner_scratch, consumer)
            })
        };
        let flow = self.rows(at, outer, own, &mut each)?;
        match step.begins {
            Some(nest) if flow == Flow::Continue && !self.matched[nest].get() => {
                self.nulls(nest, outer, scratch, consumer)
            }
            _ => Ok(flow),
        }
    }

    /// Continues with a row that has passed step `at`. The nests `ends` end here.
    pub(super) fn found(
        &self,
        at: usize,
        ends: &[usize],
        row: &Row<'_>,
        context: &Context<'_>,
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        for nest in ends {
            self.matched[*nest].set(true);
            if !passes(&self.join.plan.nests[*nest].after, row, context)? {
                return Ok(Flow::Continue);
            }
        }
        if at + 1 == self.join.plan.steps.len() {
            return consumer.row(row, context);
        }
        self.step(at + 1, row.0, scratch, consumer)
    }

    /// Continues with NULLs for a nest that had no row for `outer`. `scratch` begins with the memory of the
    /// nest's first step.
    pub(super) fn nulls(
        &self,
        nest: usize,
        outer: &[Part<'_>],
        scratch: &mut [Scratch],
        consumer: &mut dyn RowConsumer,
    ) -> Result<Flow, SqlError> {
        let plan = &self.join.plan.nests[nest];
        let steps = &self.join.plan.steps;
        let mut parts = outer.to_vec();
        for step in &steps[plan.first..=plan.last] {
            parts[step.part] = Part::Nulls;
        }
        let arena = Bump::new();
        let context = self.join.context(&arena);
        let row = Row(&parts);
        if !passes(&plan.after, &row, &context)? {
            return Ok(Flow::Continue);
        }
        // For the nests around this one that end with it, this counts as a row found.
        let ends = &steps[plan.last].ends;
        let around = ends.iter().position(|end| *end == nest).map_or(&[][..], |own| &ends[own + 1..]);
        let scratch = &mut scratch[plan.last + 1 - plan.first..];
        self.found(plan.last, around, &row, &context, scratch, consumer)
    }

    /// The rows of step `at` for the row `outer`, by the step's method.
    fn rows(
        &self,
        at: usize,
        outer: &[Part<'_>],
        scratch: &mut Scratch,
        each: &mut EachRow<'_>,
    ) -> Result<Flow, SqlError> {
        let Join { plan, materialized, lock, .. } = self.join;
        let step = &plan.steps[at];
        let arena = Bump::new();
        let context = self.join.context(&arena);
        let reader = self.join.runtime.reader;
        match (&plan.inputs[step.part].source, &step.access, &step.method) {
            (Source::Table { table, .. }, Some(access), Method::Follow { keys_only, .. })
                if lock.is_none() =>
            {
                let find = Find { reader, table, access, outer: Row(outer), context: &context };
                match self.follow(at, table, *keys_only, &find, each)? {
                    Some(flow) => Ok(flow),
                    None => self.join.rows(step.part, &find, scratch, each),
                }
            }
            (Source::Table { .. }, Some(_), Method::Hash(keys)) if lock.is_none() => {
                let rows = self.hashed(at, keys, scratch)?;
                self.probe(at, rows, &Row(outer), &context, scratch, each)
            }
            (Source::Table { table, .. }, Some(access), _) => {
                let find = Find { reader, table, access, outer: Row(outer), context: &context };
                self.join.rows(step.part, &find, scratch, each)
            }
            (_, _, method) => {
                let Some(Some(rows)) = materialized.get(step.part) else { return Ok(Flow::Continue) };
                let Method::Hash(keys) = method else {
                    return rows.for_each(&mut |values| each(&Part::Values(values), &None));
                };
                let hashed = self.hashed(at, keys, scratch)?;
                self.probe(at, hashed, &Row(outer), &context, scratch, each)
            }
        }
    }

    /// Moves the step's cursor to the key of `outer` and hands on the rows found there. `None` if that key
    /// cannot be a key of the index.
    fn follow(
        &self,
        at: usize,
        table: &'j Table,
        keys_only: bool,
        find: &Find<'_>,
        each: &mut EachRow<'_>,
    ) -> Result<Option<Flow>, SqlError> {
        let Find { access, context, .. } = *find;
        let Path::Points { index, codec, points, .. } = &access.path else { return Ok(None) };
        let mut followed = self.states[at].followed.borrow_mut();
        let Followed { scan, key } = &mut *followed;
        match single_key(codec, points, &find.outer, context, key)? {
            None => return Ok(None),
            Some(false) => return Ok(Some(Flow::Continue)),
            Some(true) => {}
        }
        let scan = scan.get_or_insert_with(|| {
            let (reader, all) = (self.join.runtime.reader, KeyRange::all());
            match keys_only {
                true => table.scan_keys(reader, *index, all, Direction::Forward),
                false => table.scan(reader, *index, all, Direction::Forward),
            }
        });
        scan.seek(key);
        if keys_only {
            while scan.next_key()?.is_some() {
                if each(&Part::Nulls, &access.residual)? == Flow::Stop {
                    return Ok(Some(Flow::Stop));
                }
            }
            return Ok(Some(Flow::Continue));
        }
        while let Some(image) = scan.next_row()? {
            if each(&Part::Image(table.row_codec().view(image)), &access.residual)? == Flow::Stop {
                return Ok(Some(Flow::Stop));
            }
        }
        Ok(Some(Flow::Continue))
    }

    /// The rows of step `at` by the step's keys. They are read when they are first asked for.
    #[inline]
    pub(super) fn hashed(
        &self,
        at: usize,
        keys: &'j HashKeys,
        scratch: &mut Scratch,
    ) -> Result<&HashedRows<'j>, SqlError> {
        match self.states[at].hashed.get() {
            Some(hashed) => Ok(hashed),
            None => self.hash(at, keys, scratch),
        }
    }

    #[cold]
    fn hash(
        &self,
        at: usize,
        keys: &'j HashKeys,
        scratch: &mut Scratch,
    ) -> Result<&HashedRows<'j>, SqlError> {
        let step = &self.join.plan.steps[at];
        let arena = Bump::new();
        let context = self.join.context(&arena);
        let hashed = match (&step.access, self.join.materialized.get(step.part)) {
            (Some(access), _) => self.hash_table(at, access, keys, &context, scratch)?,
            (None, Some(Some(rows))) => self.hash_materialized(at, rows, keys, &context)?,
            (None, _) => return Err(SqlError::internal("a table without rows")),
        };
        Ok(self.states[at].hashed.get_or_init(|| hashed))
    }

    /// True if the step's rows are looked up for each row before, and nothing around the step waits for them:
    /// then rows before can be put off.
    fn may_put_off(&self, at: usize) -> bool {
        let nests = &self.join.plan.nests;
        nests.iter().all(|nest| at < nest.first || at > nest.last || nest.first == nest.last)
    }

    /// A hash table of a stored table's rows by the step's keys.
    fn hash_table(
        &self,
        at: usize,
        access: &Access,
        keys: &'j HashKeys,
        context: &Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<HashedRows<'j>, SqlError> {
        let step = &self.join.plan.steps[at];
        let Source::Table { table, .. } = &self.join.plan.inputs[step.part].source else {
            return Err(SqlError::internal("an access without a table"));
        };
        let workspace = self.join.runtime.workspace();
        let mut hashed = HashedRows::new(keys, self.states[at].arena, workspace, self.may_put_off(at));
        let nothing = vec![Part::Nulls; self.join.plan.inputs.len()];
        let mut arena = Bump::new();
        let reader = self.join.runtime.reader;
        let find = Find { reader, table, access, outer: Row(&nothing), context };
        for_each_row(&find, scratch, Wants::Keys, &mut |_, part, left| {
            self.check(at)?;
            arena.reset();
            with_part(&nothing, step.part, *part, |parts| {
                let context = self.join.context(&arena);
                let row = Row(parts);
                if passes(left.of(access), &row, &context)? {
                    hashed.insert(&row, &context, step.part)?;
                }
                Ok(Flow::Continue)
            })
        })?;
        hashed.finish()?;
        Ok(hashed)
    }

    /// A hash table of a derived or virtual table's rows by the step's keys.
    fn hash_materialized(
        &self,
        at: usize,
        rows: &Materialized,
        keys: &'j HashKeys,
        context: &Context<'_>,
    ) -> Result<HashedRows<'j>, SqlError> {
        let part = self.join.plan.steps[at].part;
        let workspace = self.join.runtime.workspace();
        let mut hashed = HashedRows::new(keys, self.states[at].arena, workspace, self.may_put_off(at));
        let nothing = vec![Part::Nulls; self.join.plan.inputs.len()];
        rows.for_each(&mut |values| {
            self.check(at)?;
            with_part(&nothing, part, Part::Values(values), |parts| {
                hashed.insert(&Row(parts), context, part)
            })?;
            Ok(Flow::Continue)
        })?;
        hashed.finish()?;
        Ok(hashed)
    }

    /// Hands on the rows of a hash table that have the key of `outer`.
    fn probe(
        &self,
        at: usize,
        hashed: &HashedRows<'_>,
        outer: &Row<'_>,
        context: &Context<'_>,
        scratch: &mut Scratch,
        each: &mut EachRow<'_>,
    ) -> Result<Flow, SqlError> {
        let (key, keys) = (&mut scratch.key, hashed.keys);
        if !encode_key(&keys.outer, keys, outer, context, key)? {
            return Ok(Flow::Continue);
        }
        hashed.for_each_of(key, |row| each(&self.part_of(at, row)?, &None))
    }

    /// A row of a hash table as the part of step `at`.
    #[inline]
    pub(super) fn part_of<'a>(&'a self, at: usize, row: HashedRow<'a>) -> Result<Part<'a>, SqlError> {
        match (row, &self.join.plan.inputs[self.join.plan.steps[at].part].source) {
            (HashedRow::Image(image), Source::Table { table, .. }) => {
                Ok(Part::Image(table.row_codec().view(image)))
            }
            (HashedRow::Values(values), _) => Ok(Part::Values(values)),
            _ => Err(SqlError::internal("a row of no table")),
        }
    }
}

#[inline]
pub(super) fn passes(
    filter: &Option<Compiled>,
    row: &Row<'_>,
    context: &Context<'_>,
) -> Result<bool, SqlError> {
    match filter {
        None => Ok(true),
        Some(filter) => filter.is_true(row, context),
    }
}

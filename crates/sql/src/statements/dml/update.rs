//! UPDATE and DELETE of one table.

use super::assign::{Assigned, Assigning, Assignments, Literals, Outcome, Strictness, on_update};
use super::foreign_keys::{Keeper, or_take_back};
use super::returning::{self, Returned};
use super::write_error;
use crate::accounts::Rights;
use crate::accounts::access::Needs;
use crate::exec::{DerivedRows, RowLocks, Runtime, Scratch, WriterLocks, candidates, with_subqueries};
use crate::expr::{Context, Part, Row, Slots};
use crate::locks::Mode;
use crate::locks::Used;
use crate::memory::Charge;
use crate::plan::access::Path;
use crate::plan::change::{Meant, TableRead};
use crate::plan::checks::Checks;
use crate::plan::explain_change::Change;
use crate::plan::names::LiteralText;
use crate::plan::plan::{Limit, QueryPlan, SubqueryPlan};
use crate::plan::query::Planner;
use crate::plan::returning::Returning;
use crate::session::Target;
use crate::session::environment::SessionEnvironment;
use crate::session::plans::ChangePlan;
use crate::session::transaction::Writes;
use crate::spill::{Spool, Spooled};
use crate::status::Counter;
use crate::text::parse::ignores;
use crate::{Completion, ErrorKind, ResultSink, Session, SqlError, Warnings};
use base::IndexId;
use bumpalo::Bump;
use engine::{Error, LockMode, LockWait, Reader, RowUpdate, Writer};
use sqlparser::ast;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use types::Value;

/// An UPDATE or, without assignments, a DELETE.
#[derive(Debug)]
struct RowsPlan {
    read: TableRead,
    target: Arc<Target>,
    assignments: Option<Assignments>,
    /// UPDATE IGNORE, DELETE IGNORE.
    ignore: bool,
    /// Of a DELETE.
    returning: Option<Returning>,
}

/// The result of a statement.
#[derive(Clone, Copy, Default)]
pub(super) struct Changed {
    pub matched: u64,
    pub changed: u64,
}

/// 1175.
pub(super) fn without_key() -> SqlError {
    SqlError::new(
        ErrorKind::SafeUpdateWithoutKey,
        "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column",
    )
}

/// Plans an UPDATE.
pub(super) fn plan_update(
    session: &Session,
    planner: Planner<'_>,
    update: &ast::Update,
) -> Result<Box<dyn ChangePlan>, SqlError> {
    let ignore = update.or.is_some();
    let meant = Meant {
        right: Rights::UPDATE,
        table: &update.table.relation,
        selection: update.selection.as_ref(),
        order: &update.order_by,
        limit: update.limit.as_ref(),
    };
    let (read, assignments) = planner.table_read(&meant, |planner, scope, def| {
        Assignments::new(
            &update.assignments,
            "SET",
            scope,
            &def.columns,
            Literals::of(planner),
            Some(planner),
        )
    })?;
    let target = Arc::new(Target::new(&session.instance, read.table.clone())?);
    Ok(Box::new(RowsPlan { read, target, assignments: Some(assignments), ignore, returning: None }))
}

/// Plans a DELETE.
pub(super) fn plan_delete(
    session: &Session,
    planner: Planner<'_>,
    delete: &ast::Delete,
) -> Result<Box<dyn ChangePlan>, SqlError> {
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    let [table] = from.as_slice() else {
        return Err(SqlError::internal("a DELETE of one table that has several"));
    };
    let meant = Meant {
        right: Rights::DELETE,
        table: &table.relation,
        selection: delete.selection.as_ref(),
        order: &delete.order_by,
        limit: delete.limit.as_ref(),
    };
    let (read, returning) = planner.table_read(&meant, |planner, _, _| {
        let (Some(items), ast::TableFactor::Table { name, alias, .. }) = (&delete.returning, meant.table)
        else {
            return Ok(None);
        };
        planner.returning(items, name, alias.as_ref()).map(Some)
    })?;
    let target = Arc::new(Target::new(&session.instance, read.table.clone())?);
    Ok(Box::new(RowsPlan { read, target, assignments: None, ignore: ignores(delete), returning }))
}

impl ChangePlan for RowsPlan {
    fn explained(&self) -> Result<(Change<'_>, &[SubqueryPlan]), SqlError> {
        let change = match &self.assignments {
            Some(_) => Change::Update(&self.read),
            None => Change::Delete(&self.read),
        };
        Ok((change, &self.read.subqueries))
    }

    fn needs(&self) -> &Needs {
        &self.read.needs
    }

    fn is_current(&self) -> bool {
        self.read.is_current() && self.target.is_current()
    }

    fn returning(&self) -> Option<&QueryPlan> {
        self.returning.as_ref().map(|returning| &returning.query)
    }

    fn run(
        &self,
        session: &mut Session,
        slots: Slots<'_>,
        literal_text: &LiteralText<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let is_update = self.assignments.is_some();
        session.counters.add(if is_update { Counter::ComUpdate } else { Counter::ComDelete }, 1);
        let common = &session.variables.common;
        let whole = matches!(self.read.access.path, Path::Whole { .. });
        if common.sql_safe_updates && whole && self.read.limit == Limit::default() {
            return Err(without_key());
        }
        // The table that is changed was named first.
        let modes = std::iter::once(Mode::Write).chain(std::iter::repeat(Mode::Read));
        let tables: Vec<Used<'_>> =
            self.read.dependencies.iter().zip(modes).map(|(used, mode)| used.in_mode(mode)).collect();
        let (done, returned) = session.write_tables(
            Writes::Rows,
            &tables,
            self.target.family(session).cloned().as_deref().as_slice(),
            &|| self.is_current(),
            |session, readers, writer| {
                let writer = RefCell::new(writer);
                let mut warnings = session.state.warnings.clone();
                let environment = SessionEnvironment::new(session);
                let runtime = Runtime {
                    environment: &environment,
                    interrupt: &session.interrupt,
                    session,
                    literal_text: &|_, _| String::new(),
                    reader: readers.snapshot,
                    locks: Some(RowLocks {
                        candidates: readers.current,
                        rows: &WriterLocks(&writer),
                        unasked: session.lock_of_reads(),
                    }),
                    spare: RefCell::default(),
                    derived: DerivedRows::default(),
                };
                let mut scratch: Vec<Scratch> = Vec::new();
                let read = &self.read;
                let result = with_subqueries(
                    &read.subqueries,
                    slots,
                    &runtime,
                    &mut scratch,
                    &mut |slots, scratch| {
                        // A row is tested again and changed while its latch is held. So a subquery in that
                        // must not wait for locks. Where it has to, rows are locked and tested first, and
                        // changed afterwards.
                        let unlocked = runtime.without_locks();
                        let locks = session.lock_of_reads().is_some() && !read.dependents.is_empty();
                        let of_rows = if locks { &runtime } else { &unlocked };
                        let mut rows = Rows::new(self, session, slots, of_rows, &mut warnings);
                        rows.keeper = self.target.family(session).map(|family| Keeper {
                            family,
                            reader: readers.current,
                            workspace: session.workspace(),
                        });
                        rows.prepares = locks || read.reads_itself;
                        if let Some(assignments) = &self.assignments
                            && assignments.need_defaults()
                        {
                            assignments.check_defaults(&self.target, &rows.defaults)?;
                        }
                        rows.change_all(readers.current, &writer, slots, &runtime, scratch)
                    },
                );
                let leftovers = environment.into_leftovers();
                let stores = self.assignments.is_some() && !self.ignore;
                let strict = stores && session.variables.common.sql_mode.is_strict();
                let result = leftovers.refuse_warnings(strict, result);
                session.state.warnings = warnings;
                leftovers.settle(session);
                result
            },
        )?;
        match (&self.returning, returned) {
            (Some(returning), Some(rows)) => {
                done.count(is_update, session);
                returning::send(session, returning, rows, (slots, literal_text), sink)
            }
            _ => done.end(is_update, session, sink),
        }
    }
}

impl Changed {
    fn count(self, is_update: bool, session: &Session) {
        if self.changed > 0 {
            let counter = if is_update { Counter::HandlerUpdate } else { Counter::HandlerDelete };
            session.counters.add(counter, self.changed);
        }
    }

    /// Tells the client of the end of an UPDATE, or of a DELETE.
    pub(super) fn end(
        self,
        is_update: bool,
        session: &mut Session,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.count(is_update, session);
        let warnings = session.state.warnings.count_u16();
        let (affected_rows, info) = if is_update {
            let affected = if session.client.counts_found_rows { self.matched } else { self.changed };
            let info =
                format!("Rows matched: {}  Changed: {}  Warnings: {warnings}", self.matched, self.changed);
            (affected, info)
        } else {
            (self.changed, String::new())
        };
        if let Some(bulk) = &mut session.bulk {
            bulk.add_changed(affected_rows, self.matched, self.changed);
            return Ok(());
        }
        session.state.row_count = affected_rows as i64;
        // As in MariaDB, UPDATE tells what LAST_INSERT_ID(n) was given: counters are made so.
        let given = session.state.given_insert_id.filter(|_| is_update);
        sink.end(&Completion { affected_rows, last_insert_id: given.unwrap_or(0), warnings, info })
    }
}

/// The keys of the rows that a statement with LIMIT has tried to change.
#[derive(Default)]
struct Tried {
    keys: HashSet<Vec<u8>>,
    bytes: usize,
    charge: Charge,
}

impl Tried {
    /// What a key takes beside its own bytes, about.
    const ENTRY_BYTES: usize = 2 * size_of::<Vec<u8>>();

    /// True if the key is new.
    fn note(&mut self, key: &[u8], runtime: &Runtime<'_>) -> Result<bool, SqlError> {
        let is_new = self.keys.insert(key.to_vec());
        self.bytes += if is_new { key.len() + Tried::ENTRY_BYTES } else { 0 };
        if self.bytes > self.charge.covered() {
            self.charge.cover(self.bytes, runtime.workspace().account)?;
        }
        Ok(is_new)
    }
}

/// The rows of a statement while they are changed.
struct Rows<'a> {
    plan: &'a RowsPlan,
    slots: Slots<'a>,
    runtime: &'a Runtime<'a>,
    warnings: &'a mut Warnings,
    /// Checks FOREIGN KEYs, if there are any.
    keeper: Option<Keeper<'a>>,
    checks: Option<&'a Checks>,
    returned: Option<Returned<'a>>,
    /// All rows are locked and tested before the first is changed.
    prepares: bool,
    defaults: Vec<Option<Value>>,
    now: Vec<(usize, Value)>,
    strictness: Strictness,
    arena: Bump,
    /// The outcome of the row that was changed last.
    outcome: Outcome,
    done: Changed,
}

impl<'a> Rows<'a> {
    fn new(
        plan: &'a RowsPlan,
        session: &Session,
        slots: Slots<'a>,
        runtime: &'a Runtime<'a>,
        warnings: &'a mut Warnings,
    ) -> Rows<'a> {
        let clock = session.clock();
        let (defaults, now) = match &plan.assignments {
            Some(assignments) if assignments.need_defaults() => {
                (plan.target.defaults(&clock), on_update(&plan.target, &clock))
            }
            Some(_) => (Vec::new(), on_update(&plan.target, &clock)),
            None => (Vec::new(), Vec::new()),
        };
        let strict = session.variables.common.sql_mode.is_strict();
        Rows {
            plan,
            slots,
            runtime,
            warnings,
            keeper: None,
            checks: plan.target.checks(session),
            returned: plan.returning.as_ref().map(Returned::new),
            prepares: false,
            defaults,
            now,
            strictness: Strictness { strict, ignore: plan.ignore, generates: false, refuses_null: false },
            arena: Bump::new(),
            outcome: Outcome::default(),
            done: Changed::default(),
        }
    }

    /// Finds the keys of the rows that may have to be changed, then changes them one by one. A row is changed
    /// only when no other transaction changes it, and only if it still meets the condition then. With LIMIT,
    /// more rows are searched for until enough were changed.
    fn change_all(
        mut self,
        reader: Reader<'_>,
        writer: &RefCell<Writer<'_>>,
        slots: Slots<'_>,
        runtime: &Runtime<'_>,
        scratch: &mut Vec<Scratch>,
    ) -> Result<(Changed, Option<Spooled>), SqlError> {
        let mut later = self.prepares.then(Spool::default);
        let mut asked = 0;
        let mut seen = Tried::default();
        loop {
            let found = candidates(reader, &self.plan.read, slots, runtime, scratch, asked)?;
            let limited = found.wanted != u64::MAX;
            found.keys.for_each(|key, _| {
                if self.done.matched >= found.wanted {
                    return Ok(false);
                }
                runtime.interrupt.check()?;
                if limited && !seen.note(key, runtime)? {
                    return Ok(true);
                }
                if let Some(later) = &mut later {
                    self.prepare(writer, key, later)?;
                    return Ok(true);
                }
                self.change(&mut writer.borrow_mut(), key)?;
                if limited && let Some(key) = self.moved_to() {
                    seen.note(&key, runtime)?;
                }
                Ok(true)
            })?;
            if found.complete || self.done.matched >= found.wanted {
                break;
            }
            asked = asked.max(found.wanted).saturating_mul(4);
        }
        if let Some(later) = later {
            later.finish()?.for_each(|key, image| {
                runtime.interrupt.check()?;
                self.make_prepared(&mut writer.borrow_mut(), key, image).map(|()| true)
            })?;
        }
        Ok((self.done, self.returned.map(Returned::finish).transpose()?))
    }

    /// Locks the row with this key, if it meets the condition, and notes what is to become of it.
    fn prepare(
        &mut self,
        writer: &RefCell<Writer<'_>>,
        key: &[u8],
        later: &mut Spool,
    ) -> Result<(), SqlError> {
        self.arena.reset();
        let Rows {
            plan,
            slots,
            runtime,
            warnings,
            checks,
            defaults,
            now,
            strictness,
            arena,
            outcome,
            done,
            returned,
            ..
        } = self;
        let table = &plan.read.table;
        let context =
            Context { slots: *slots, arena, environment: runtime.environment, subqueries: Some(*runtime) };
        let locked = writer.borrow_mut().lock(table, key, LockMode::Exclusive, LockWait::Wait)?;
        let Some(row) = locked else { return Ok(()) };
        let image = table.row_codec().view(arena.alloc_slice_copy(&row.image));
        if let Some(condition) = &plan.read.condition
            && !condition.is_true(&Row(&[Part::Image(image)]), &context)?
        {
            writer.borrow_mut().give_back(row);
            return Ok(());
        }
        done.matched += 1;
        let workspace = runtime.workspace();
        if let Some(returned) = returned {
            returned.add(image, &context, workspace)?;
        }
        let Some(assignments) = &plan.assignments else { return later.push(key, &[], workspace) };
        let assigning = Assigning {
            assignments,
            target: &plan.target,
            defaults,
            now,
            checks: *checks,
            strictness: *strictness,
        };
        let mut out = Vec::new();
        let row = Assigned { image, others: &[], number: done.matched };
        if assigning.change(&row, &context, warnings, &mut out, outcome) {
            later.push(key, &out, workspace)?;
        }
        done.matched -= u64::from(outcome.refused);
        outcome.error.take().map_or(Ok(()), Err)
    }

    /// Makes the change that [`Rows::prepare`] noted. The row has been locked since.
    fn make_prepared(&mut self, writer: &mut Writer<'_>, key: &[u8], image: &[u8]) -> Result<(), SqlError> {
        let table = &self.plan.read.table;
        let before = self.keeper.map(|_| writer.savepoint());
        let mut old = Vec::new();
        let is_checked = self.keeper.is_some();
        let mut note = |image: &[u8]| {
            if is_checked {
                old.clear();
                old.extend_from_slice(image);
            }
        };
        let is_delete = self.plan.assignments.is_none();
        let mut changed = if is_delete {
            writer.delete(table, key, &mut |image| {
                note(image);
                true
            })?
        } else {
            let result = writer.update(table, key, &mut |before, out| {
                note(before);
                out.extend_from_slice(image);
                true
            });
            match result {
                Err(Error::DuplicateKey { .. }) if self.plan.ignore => false,
                result => result.map_err(|error| write_error(error, table, image))?,
            }
        };
        if let Some(keeper) = self.keeper.filter(|_| changed) {
            let refused = or_take_back(writer, before, self.plan.ignore, |writer| match is_delete {
                true => keeper.deleted(writer, &old),
                false => keeper.updated(writer, &old, image),
            })?;
            changed = refused.is_none();
            // As in MariaDB, UPDATE IGNORE does not tell.
            if let Some(refused) = refused.filter(|_| is_delete) {
                self.warnings.warn(refused.kind, refused.message);
            }
        }
        self.done.changed += u64::from(changed);
        Ok(())
    }

    /// The key of the row that was written last.
    fn moved_to(&self) -> Option<Vec<u8>> {
        let table = &self.plan.read.table;
        table.def().primary.as_ref()?;
        (!self.outcome.written.is_empty()).then(|| {
            let mut key = Vec::new();
            table.key_codec(IndexId(0)).encode_row(&table.row_codec().view(&self.outcome.written), &mut key);
            key
        })
    }

    /// Changes the row with this key, if it meets the condition.
    fn change(&mut self, writer: &mut Writer<'_>, key: &[u8]) -> Result<(), SqlError> {
        self.arena.reset();
        self.outcome.written.clear();
        let Rows {
            plan,
            slots,
            runtime,
            warnings,
            defaults,
            now,
            strictness,
            arena,
            outcome,
            done,
            keeper,
            checks,
            returned,
            ..
        } = self;
        let table = &plan.read.table;
        let context =
            Context { slots: *slots, arena, environment: runtime.environment, subqueries: Some(*runtime) };
        let before = keeper.map(|_| writer.savepoint());
        let mut old: &[u8] = &[];
        let mut failure = None;
        let mut is_meant = |image: &[u8]| {
            // The image is only valid while the row's latch is held. What is needed longer is copied.
            let view = table.row_codec().view(arena.alloc_slice_copy(image));
            match &plan.read.condition {
                None => Some(view),
                Some(condition) => match condition.is_true(&Row(&[Part::Image(view)]), &context) {
                    Ok(true) => Some(view),
                    Ok(false) => None,
                    Err(error) => {
                        failure.get_or_insert(error);
                        None
                    }
                },
            }
        };
        let Some(assignments) = &plan.assignments else {
            let deleted = writer.delete(table, key, &mut |image| {
                let meant = is_meant(image);
                old = meant.map_or(&[], |image| image.image());
                meant.is_some()
            })?;
            let mut refused = None;
            if let Some(keeper) = keeper.filter(|_| deleted) {
                let check = |writer: &mut Writer<'_>| keeper.deleted(writer, old);
                refused = or_take_back(writer, before, plan.ignore, check)?;
            }
            done.matched += u64::from(deleted);
            done.changed += u64::from(deleted && refused.is_none());
            // As in MariaDB, also of a row that IGNORE passes over.
            if let Some(returned) = returned.as_mut().filter(|_| deleted) {
                returned.add(table.row_codec().view(old), &context, runtime.workspace())?;
            }
            if let Some(refused) = refused {
                warnings.warn(refused.kind, refused.message);
            }
            return failure.map_or(Ok(()), Err);
        };
        let mut matched = false;
        let assigning = Assigning {
            assignments,
            target: &plan.target,
            defaults,
            now,
            checks: *checks,
            strictness: *strictness,
        };
        let number = done.matched + 1;
        let result = writer.update_or_keep(table, key, &mut |image, out| {
            let Some(image) = is_meant(image) else { return RowUpdate::Skip };
            matched = true;
            old = image.image();
            let row = Assigned { image, others: &[], number };
            match assigning.change(&row, &context, warnings, out, outcome) {
                true => RowUpdate::Change,
                false => RowUpdate::Keep,
            }
        });
        if let Some(error) = outcome.error.take().or(failure) {
            return Err(error);
        }
        let mut changed = match result {
            Err(Error::DuplicateKey { .. }) if plan.ignore => {
                outcome.written.clear();
                false
            }
            result => result.map_err(|error| write_error(error, table, &outcome.written))?,
        };
        if let Some(keeper) = keeper.filter(|_| changed) {
            let check = |writer: &mut Writer<'_>| keeper.updated(writer, old, &outcome.written);
            changed = or_take_back(writer, before, plan.ignore, check)?.is_none();
        }
        done.matched += u64::from(matched && !outcome.refused);
        done.changed += u64::from(changed);
        Ok(())
    }
}

//! UPDATE and DELETE of several tables.
//!
//! First the join is run, and the rows that it finds are locked. For each table to be changed, the keys of
//! its rows are kept, and of an UPDATE what the columns get. Then the rows are changed, table by table.

use super::assign::{Assigning, Assignments, Outcome, Strictness, on_update};
use super::foreign_keys::{Keeper, or_take_back};
use super::update::{Changed, without_key};
use super::write_error;
use crate::accounts::Rights;
use crate::accounts::access::Needs;
use crate::exec::{
    DerivedRows, FirstRows, Joining, RowLocks, Runtime, WriterLocks, join_to_change, with_subqueries,
};
use crate::expr::{Context, Part, Row, Slots};
use crate::locks::{Mode, Used};
use crate::plan::access::Path;
use crate::plan::joined::{JoinedMeant, JoinedRead, JoinedTable};
use crate::plan::names::LiteralText;
use crate::plan::object_name;
use crate::plan::plan::{Dependency, Source, StatementPlan};
use crate::plan::query::Planner;
use crate::plan::scope::Scope;
use crate::plan::walk::Parts;
use crate::session::Target;
use crate::session::environment::SessionEnvironment;
use crate::session::plans::ChangePlan;
use crate::session::relations::Family;
use crate::session::transaction::Writes;
use crate::spill::Spooled;
use crate::status::Counter;
use crate::text::parse::ignores;
use crate::{ErrorKind, ResultSink, Session, SqlError, Warnings};
use bumpalo::Bump;
use engine::{Error, Readers, Writer};
use sqlparser::ast;
use std::cell::RefCell;
use std::sync::Arc;
use types::{RowView, Value, ValueRef};

/// An UPDATE or a DELETE of several tables.
#[derive(Debug)]
struct JoinedPlan {
    read: JoinedRead,
    /// In the order in which they are changed.
    targets: Vec<JoinedTarget>,
    is_update: bool,
    ignore: bool,
}

/// A table that is changed.
#[derive(Debug)]
struct JoinedTarget {
    /// Its part of the joined rows.
    part: usize,
    target: Arc<Target>,
    /// `None` if its rows are deleted.
    assignments: Option<Assignments>,
}

/// True for an UPDATE that joins tables, or may change something else than a table.
pub(super) fn is_joined_update(update: &ast::Update) -> bool {
    let is_table = matches!(update.table.relation, ast::TableFactor::Table { .. });
    update.from.is_some() || !update.table.joins.is_empty() || !is_table
}

/// The stored table that is to be changed.
///
/// # Errors
/// 1288, and those of a damaged definition.
fn stored(
    session: &Session,
    table: &JoinedTable<'_>,
    assignments: Option<Assignments>,
) -> Result<JoinedTarget, SqlError> {
    let Source::Table { table: stored, .. } = table.source else {
        let statement = if assignments.is_some() { "UPDATE" } else { "DELETE" };
        return Err(SqlError::not_updatable(table.name, statement));
    };
    let target = Arc::new(Target::new(&session.instance, stored.clone())?);
    Ok(JoinedTarget { part: table.part, target, assignments })
}

/// Plans an UPDATE.
pub(super) fn plan_update(
    session: &Session,
    planner: Planner<'_>,
    update: &ast::Update,
) -> Result<Box<dyn ChangePlan>, SqlError> {
    let mut from = vec![update.table.clone()];
    if let Some(ast::UpdateTableFromKind::BeforeSet(others) | ast::UpdateTableFromKind::AfterSet(others)) =
        &update.from
    {
        from.extend(others.iter().cloned());
    }
    let meant = JoinedMeant {
        right: Rights::UPDATE,
        from: &from,
        selection: update.selection.as_ref(),
        order: &update.order_by,
        limit: update.limit.as_ref(),
    };
    let (read, mut targets) = planner.joined_read(&meant, |planner, scope, tables| {
        let parts = Assignments::of_parts(&update.assignments, scope, planner)?;
        let changed = parts.keys().fold(Parts::default(), |changed, part| changed.with(*part));
        let targets =
            parts.into_iter().map(|(part, assignments)| stored(session, &tables[part], Some(assignments)));
        Ok((changed, targets.collect::<Result<Vec<_>, SqlError>>()?))
    })?;
    // As in MariaDB, the table that is read first is changed first.
    let first = read.select()?.steps.first().map(|step| step.part);
    targets.sort_by_key(|target| Some(target.part) != first);
    Ok(Box::new(JoinedPlan { read, targets, is_update: true, ignore: update.or.is_some() }))
}

/// The tables that a DELETE names, among those that it joins.
///
/// # Errors
/// 1109, 1066.
fn deleted_tables<'t>(
    planner: &Planner<'_>,
    delete: &ast::Delete,
    scope: &Scope,
    tables: &'t [JoinedTable<'t>],
) -> Result<Vec<&'t JoinedTable<'t>>, SqlError> {
    let mut found: Vec<&JoinedTable<'_>> = Vec::new();
    for name in &delete.tables {
        let path = object_name(name);
        let (database, table) = match path.as_slice() {
            [table] => (None, table),
            [database, table] => (Some(database), table),
            _ => return Err(SqlError::syntax(&name.to_string(), 1)),
        };
        let is_meant = |meant: &&JoinedTable<'_>| {
            let named = &scope.tables[meant.part];
            named.name == *table
                && match database {
                    // The name alone may mean an alias, and else a table of the default database.
                    None => !named.by_database || Some(named.database.as_str()) == planner.database,
                    Some(database) => named.by_database && named.database == *database,
                }
        };
        let Some(meant) = tables.iter().find(is_meant) else {
            let text = format!("Unknown table '{table}' in MULTI DELETE");
            return Err(SqlError::new(ErrorKind::UnknownTableInMulti, text));
        };
        if found.iter().any(|known| known.part == meant.part) {
            let text = format!("Not unique table/alias: '{table}'");
            return Err(SqlError::new(ErrorKind::NotUniqueTable, text));
        }
        found.push(meant);
    }
    Ok(found)
}

/// Plans a DELETE that names the tables to delete from.
pub(super) fn plan_delete(
    session: &Session,
    planner: Planner<'_>,
    delete: &ast::Delete,
) -> Result<Box<dyn ChangePlan>, SqlError> {
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    let meant = JoinedMeant {
        right: Rights::DELETE,
        from,
        selection: delete.selection.as_ref(),
        order: &[],
        limit: None,
    };
    let (read, mut targets) = planner.joined_read(&meant, |planner, scope, tables| {
        let deleted = deleted_tables(planner, delete, scope, tables)?;
        let changed = deleted.iter().fold(Parts::default(), |changed, table| changed.with(table.part));
        let targets = deleted.into_iter().map(|table| stored(session, table, None));
        Ok((changed, targets.collect::<Result<Vec<_>, SqlError>>()?))
    })?;
    let statement = &read.statement;
    let subqueries = statement.subqueries.iter().map(|subquery| &subquery.query);
    let subqueries = subqueries.chain(statement.dependents.iter().map(|query| &**query));
    for query in subqueries {
        if let Some(target) = targets.iter().find(|target| query.names(&target.target.table)) {
            return Err(SqlError::target_is_source(&read.select()?.inputs[target.part].name, "DELETE"));
        }
    }
    // As in MariaDB, they are changed in the order in which they are read.
    let steps = &read.select()?.steps;
    targets.sort_by_key(|target| steps.iter().position(|step| step.part == target.part));
    Ok(Box::new(JoinedPlan { read, targets, is_update: false, ignore: ignores(delete) }))
}

impl ChangePlan for JoinedPlan {
    fn needs(&self) -> &Needs {
        &self.read.statement.needs
    }

    fn is_current(&self) -> bool {
        self.read.statement.is_current() && self.targets.iter().all(|target| target.target.is_current())
    }

    fn reads_by(&self) -> Option<&StatementPlan> {
        Some(&self.read.statement)
    }

    fn run(
        &self,
        session: &mut Session,
        slots: Slots<'_>,
        _literal_text: &LiteralText<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let is_update = self.is_update;
        session.counters.add(if is_update { Counter::ComUpdateMulti } else { Counter::ComDeleteMulti }, 1);
        if session.variables.common.sql_safe_updates && self.reads_whole_tables()? {
            return Err(without_key());
        }
        let used = |used| self.used(used);
        let tables =
            self.read.statement.dependencies.iter().map(used).collect::<Result<Vec<Used<'_>>, SqlError>>()?;
        let families: Vec<Arc<Family>> =
            self.targets.iter().filter_map(|target| target.target.family(session).cloned()).collect();
        let families: Vec<&Family> = families.iter().map(|family| &**family).collect();
        let done = session.write_tables(
            Writes::Rows,
            &tables,
            &families,
            &|| self.is_current(),
            |session, readers, writer| self.find_and_change(session, slots, readers, writer),
        )?;
        done.end(is_update, session, sink)
    }
}

impl JoinedPlan {
    fn reads_whole_tables(&self) -> Result<bool, SqlError> {
        let steps = &self.read.select()?.steps;
        let whole = |access: &crate::plan::access::Access| matches!(access.path, Path::Whole { .. });
        Ok(steps.iter().any(|step| step.access.as_ref().is_some_and(whole)))
    }

    /// How the statement uses a table.
    fn used<'a>(&self, dependency: &'a Dependency) -> Result<Used<'a>, SqlError> {
        let inputs = &self.read.select()?.inputs;
        let is_changed = self.targets.iter().any(|target| {
            Arc::ptr_eq(&target.target.table, &dependency.table)
                && inputs[target.part].name == dependency.alias
        });
        Ok(dependency.in_mode(if is_changed { Mode::Write } else { Mode::Read }))
    }

    fn find_and_change(
        &self,
        session: &mut Session,
        slots: Slots<'_>,
        readers: Readers<'_>,
        writer: Writer<'_>,
    ) -> Result<Changed, SqlError> {
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
        let subqueries = &self.read.statement.subqueries;
        let result = with_subqueries(subqueries, slots, &runtime, &mut Vec::new(), &mut |slots, scratch| {
            let mut finding = Finding::new(self, session, &mut warnings)?;
            join_to_change(&self.read, slots, &runtime, scratch, &mut finding)?;
            let found = finding.finish()?;
            let mut changing = Changing {
                plan: self,
                session,
                slots,
                runtime: &runtime,
                readers,
                warnings: &mut warnings,
                outcome: Outcome::default(),
                done: Changed::default(),
            };
            for (target, rows) in self.targets.iter().zip(found) {
                changing.change_all(target, rows, &mut writer.borrow_mut())?;
            }
            Ok(changing.done)
        });
        let leftovers = environment.into_leftovers();
        let strict = self.is_update && !self.ignore && session.variables.common.sql_mode.is_strict();
        let result = leftovers.refuse_warnings(strict, result);
        session.state.warnings = warnings;
        leftovers.settle(session);
        result
    }

    fn strictness(&self, session: &Session) -> Strictness {
        let strict = session.variables.common.sql_mode.is_strict();
        Strictness { strict, ignore: self.ignore, generates: false, refuses_null: false }
    }
}

/// The rows to be changed while the join finds them.
struct Finding<'a> {
    plan: &'a JoinedPlan,
    strictness: Strictness,
    /// By target.
    rows: Vec<FirstRows<'a>>,
    defaults: Vec<Vec<Option<Value>>>,
    warnings: &'a mut Warnings,
}

impl<'a> Finding<'a> {
    fn new(
        plan: &'a JoinedPlan,
        session: &'a Session,
        warnings: &'a mut Warnings,
    ) -> Result<Finding<'a>, SqlError> {
        let clock = session.clock();
        let mut defaults = Vec::new();
        for JoinedTarget { target, assignments, .. } in &plan.targets {
            defaults.push(match assignments {
                Some(assignments) if assignments.need_defaults() => {
                    let values = target.defaults(&clock);
                    assignments.check_defaults(target, &values)?;
                    values
                }
                _ => vec![],
            });
        }
        let rows = plan.targets.iter().map(|_| FirstRows::new(session.workspace())).collect();
        Ok(Finding { plan, strictness: plan.strictness(session), rows, defaults, warnings })
    }

    /// By target: the keys of the rows to be changed, and, of an UPDATE, images of what they get.
    fn finish(self) -> Result<Vec<Spooled>, SqlError> {
        self.rows.into_iter().map(FirstRows::finish).collect()
    }

    /// Appends the image of a row with its columns set.
    fn append_image(
        &mut self,
        at: usize,
        image: RowView<'_>,
        row: &Row<'_>,
        context: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let JoinedTarget { part, target, assignments } = &self.plan.targets[at];
        let Some(assignments) = assignments else { return Ok(()) };
        let assigning = Assigning {
            assignments,
            target,
            defaults: &self.defaults[at],
            now: &[],
            checks: None,
            strictness: self.strictness,
        };
        let mut values: Vec<ValueRef<'_>> = Vec::new();
        image.read_into(&mut values);
        assigning.set_part(*part, row, &mut values, context, self.warnings)?;
        target.table.row_codec().encode(&values, out);
        Ok(())
    }
}

/// What is kept of a joined row, for each table to be changed: the lengths of the key and of the image, both
/// `u32` and little endian, then the key and the image. A table that has no row there, as the inner one of an
/// outer join, has this for the length of its key.
const NO_ROW: u32 = u32::MAX;
const LENGTHS_BYTES: usize = 2 * size_of::<u32>();

impl Joining for Finding<'_> {
    fn make(
        &mut self,
        row: &Row<'_>,
        context: &Context<'_>,
        keys: &[Vec<u8>],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        for at in 0..self.plan.targets.len() {
            let part = self.plan.targets[at].part;
            let start = out.len();
            out.extend_from_slice(&[0; LENGTHS_BYTES]);
            let mut lengths = [NO_ROW, 0];
            match row.0[part] {
                Part::Image(image) => {
                    out.extend_from_slice(&keys[part]);
                    self.append_image(at, image, row, context, out)?;
                    let key_bytes = keys[part].len();
                    let image_bytes = out.len() - start - LENGTHS_BYTES - key_bytes;
                    lengths = [key_bytes as u32, image_bytes as u32];
                }
                Part::Nulls => {}
                Part::Values(_) => return Err(SqlError::internal("a row to be changed that is not stored")),
            }
            for (place, length) in out[start..].chunks_exact_mut(size_of::<u32>()).zip(lengths) {
                place.copy_from_slice(&length.to_le_bytes());
            }
        }
        Ok(())
    }

    fn take(&mut self, mut made: &[u8]) -> Result<(), SqlError> {
        let damaged = || SqlError::internal("a damaged row of a join");
        for rows in &mut self.rows {
            let mut length = || {
                let (length, rest) = made.split_first_chunk::<{ size_of::<u32>() }>()?;
                made = rest;
                Some(u32::from_le_bytes(*length))
            };
            let (key_bytes, image_bytes) = (length().ok_or_else(damaged)?, length().ok_or_else(damaged)?);
            if key_bytes == NO_ROW {
                continue;
            }
            let (key, rest) = made.split_at_checked(key_bytes as usize).ok_or_else(damaged)?;
            let (image, rest) = rest.split_at_checked(image_bytes as usize).ok_or_else(damaged)?;
            made = rest;
            rows.push(key, image)?;
        }
        Ok(())
    }
}

/// Changes the rows that were found. They are locked.
struct Changing<'a> {
    plan: &'a JoinedPlan,
    session: &'a Session,
    slots: Slots<'a>,
    runtime: &'a Runtime<'a>,
    readers: Readers<'a>,
    warnings: &'a mut Warnings,
    outcome: Outcome,
    done: Changed,
}

impl Changing<'_> {
    /// Changes the rows of one table.
    fn change_all(
        &mut self,
        target: &JoinedTarget,
        rows: Spooled,
        writer: &mut Writer<'_>,
    ) -> Result<(), SqlError> {
        let keeper = target.target.family(self.session).map(|family| Keeper {
            family,
            reader: self.readers.current,
            workspace: self.session.workspace(),
        });
        let now = match &target.assignments {
            Some(_) => on_update(&target.target, &self.session.clock()),
            None => vec![],
        };
        let mut arena = Bump::new();
        rows.for_each(|key, wanted| {
            self.runtime.interrupt.check()?;
            self.done.matched += 1;
            arena.reset();
            let changed = match &target.assignments {
                None => self.delete(target, key, keeper, writer)?,
                Some(assignments) => {
                    let assigning = Assigning {
                        assignments,
                        target: &target.target,
                        defaults: &[],
                        now: &now,
                        checks: target.target.checks(self.session),
                        strictness: self.plan.strictness(self.session),
                    };
                    self.update(&assigning, (key, wanted), keeper, &arena, writer)?
                }
            };
            self.done.changed += u64::from(changed);
            Ok(true)
        })
    }

    fn delete(
        &mut self,
        target: &JoinedTarget,
        key: &[u8],
        keeper: Option<Keeper<'_>>,
        writer: &mut Writer<'_>,
    ) -> Result<bool, SqlError> {
        let before = keeper.map(|_| writer.savepoint());
        let mut old = Vec::new();
        let deleted = writer.delete(&target.target.table, key, &mut |image| {
            if keeper.is_some() {
                old.clear();
                old.extend_from_slice(image);
            }
            true
        })?;
        let Some(keeper) = keeper.filter(|_| deleted) else { return Ok(deleted) };
        let check = |writer: &mut Writer<'_>| keeper.deleted(writer, &old);
        Ok(or_take_back(writer, before, self.plan.ignore, check)?.is_none())
    }

    /// Gives a row the values that were made for it. Meanwhile it may have changed itself: if the statement
    /// has changed it under another name, or through a FOREIGN KEY.
    fn update(
        &mut self,
        assigning: &Assigning<'_>,
        (key, wanted): (&[u8], &[u8]),
        keeper: Option<Keeper<'_>>,
        arena: &Bump,
        writer: &mut Writer<'_>,
    ) -> Result<bool, SqlError> {
        let Changing { slots, runtime, warnings, outcome, .. } = self;
        let table = &assigning.target.table;
        let codec = table.row_codec();
        let context =
            Context { slots: *slots, arena, environment: runtime.environment, subqueries: Some(*runtime) };
        let wanted: &[u8] = arena.alloc_slice_copy(wanted);
        let before = keeper.map(|_| writer.savepoint());
        let mut old: &[u8] = &[];
        let result = writer.update(table, key, &mut |image, out| {
            // The image is only valid while the row's latch is held. What is needed longer is copied.
            old = arena.alloc_slice_copy(image);
            let images = (codec.view(old), codec.view(wanted));
            assigning.merge(images, &context, warnings, out, outcome)
        });
        if let Some(error) = outcome.error.take() {
            return Err(error);
        }
        let changed = match result {
            Err(Error::DuplicateKey { .. }) if self.plan.ignore => false,
            result => result.map_err(|error| write_error(error, table, &outcome.written))?,
        };
        self.done.matched -= u64::from(outcome.refused);
        let Some(keeper) = keeper.filter(|_| changed) else { return Ok(changed) };
        let check = |writer: &mut Writer<'_>| keeper.updated(writer, old, &outcome.written);
        Ok(or_take_back(writer, before, self.plan.ignore, check)?.is_none())
    }
}

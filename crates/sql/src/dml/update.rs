//! UPDATE and DELETE of one table.

use super::assign::{Assignments, Strictness, on_update};
use super::inserter::definition_changed;
use super::target::Target;
use super::write_error;
use crate::cache::plans::ChangePlan;
use crate::exec::{Runtime, Scratch, matching_keys, with_read_slots};
use crate::expr::{Context, Part, Row, Slots};
use crate::plan::access::Path;
use crate::plan::change::{Meant, TableRead};
use crate::plan::plan::Limit;
use crate::plan::query::Planner;
use crate::session::environment::SessionEnvironment;
use crate::status::Counter;
use crate::{Completion, ResultSink, Session, SqlError, Warnings};
use bumpalo::Bump;
use engine::KeyList;
use sqlparser::ast;
use std::sync::Arc;

/// An UPDATE or, without assignments, a DELETE.
#[derive(Debug)]
struct RowsPlan {
    read: TableRead,
    target: Arc<Target>,
    assignments: Option<Assignments>,
}

/// What a statement did.
#[derive(Clone, Copy, Default)]
struct Changed {
    matched: u64,
    changed: u64,
}

fn only_table<'a>(table: &'a ast::TableWithJoins, statement: &str) -> Result<&'a ast::TableFactor, SqlError> {
    if table.joins.is_empty() {
        return Ok(&table.relation);
    }
    Err(SqlError::not_supported(&format!("{statement} of several tables")))
}

/// Plans an UPDATE.
pub(super) fn plan_update(
    planner: Planner<'_>,
    update: &ast::Update,
) -> Result<Box<dyn ChangePlan>, SqlError> {
    if update.from.is_some() || update.returning.is_some() || update.or.is_some() {
        return Err(SqlError::not_supported("this form of UPDATE"));
    }
    let (slots, connection) = (planner.slots, planner.connection);
    let meant = Meant {
        table: only_table(&update.table, "UPDATE")?,
        selection: update.selection.as_ref(),
        order: &update.order_by,
        limit: update.limit.as_ref(),
    };
    let read = planner.table_read(&meant)?;
    let assignments =
        Assignments::new(&update.assignments, &read.scope, &read.def.columns, slots, connection)?;
    let target = Arc::new(Target::new(read.table.clone())?);
    Ok(Box::new(RowsPlan { read, target, assignments: Some(assignments) }))
}

/// Plans a DELETE.
pub(super) fn plan_delete(
    planner: Planner<'_>,
    delete: &ast::Delete,
) -> Result<Box<dyn ChangePlan>, SqlError> {
    if !delete.tables.is_empty() || delete.using.is_some() || delete.returning.is_some() {
        return Err(SqlError::not_supported("DELETE of several tables"));
    }
    let (ast::FromTable::WithFromKeyword(tables) | ast::FromTable::WithoutKeyword(tables)) = &delete.from;
    let [table] = tables.as_slice() else {
        return Err(SqlError::not_supported("DELETE of several tables"));
    };
    let meant = Meant {
        table: only_table(table, "DELETE")?,
        selection: delete.selection.as_ref(),
        order: &delete.order_by,
        limit: delete.limit.as_ref(),
    };
    let read = planner.table_read(&meant)?;
    let target = Arc::new(Target::new(read.table.clone())?);
    Ok(Box::new(RowsPlan { read, target, assignments: None }))
}

impl ChangePlan for RowsPlan {
    fn is_current(&self) -> bool {
        self.read.is_current()
    }

    fn run(
        &self,
        session: &mut Session,
        slots: Slots<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let is_update = self.assignments.is_some();
        session.counters.add(if is_update { Counter::ComUpdate } else { Counter::ComDelete }, 1);
        let common = &session.variables.common;
        let whole = matches!(self.read.access.path, Path::Whole { .. });
        if common.sql_safe_updates && whole && self.read.limit == Limit::default() {
            return Err(SqlError::new(
                1175,
                b"HY000",
                "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column",
            ));
        }
        let instance = session.instance.clone();
        let _lock = instance.table_locks.change_rows(self.read.table.id());
        if !self.is_current() {
            return Err(definition_changed());
        }
        let mut warnings = session.state.warnings.clone();
        let environment = SessionEnvironment::new(session);
        let runtime = Runtime {
            environment: &environment,
            interrupt: &session.interrupt,
            session,
            literal_text: &|_, _| String::new(),
        };
        let mut scratch: Vec<Scratch> = Vec::new();
        let result = with_read_slots(&self.read, slots, &runtime, &mut scratch, &mut |slots, scratch| {
            self.change(session, slots, &runtime, scratch, &mut warnings)
        });
        let leftovers = environment.into_leftovers();
        session.state.warnings = warnings;
        leftovers.settle(session);
        let done = result?;
        self.end(session, done, sink)
    }
}

impl RowsPlan {
    fn end(&self, session: &mut Session, done: Changed, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        if done.changed > 0 {
            let is_update = self.assignments.is_some();
            let counter = if is_update { Counter::HandlerUpdate } else { Counter::HandlerDelete };
            session.counters.add(counter, done.changed);
            session.note_change();
        }
        let warnings = session.state.warnings.count_u16();
        let (affected_rows, info) = if self.assignments.is_some() {
            let affected = if session.counts_found_rows { done.matched } else { done.changed };
            let info =
                format!("Rows matched: {}  Changed: {}  Warnings: {warnings}", done.matched, done.changed);
            (affected, info)
        } else {
            (done.changed, String::new())
        };
        session.state.row_count = affected_rows as i64;
        sink.end(&Completion { affected_rows, last_insert_id: 0, warnings, info })
    }

    /// Finds the keys of the rows that are meant, then changes one row after the other, under each one's latch and only if
    /// it is still meant then.
    fn change(
        &self,
        session: &Session,
        slots: Slots<'_>,
        runtime: &Runtime<'_>,
        scratch: &mut Vec<Scratch>,
        warnings: &mut Warnings,
    ) -> Result<Changed, SqlError> {
        let mut keys = KeyList::default();
        matching_keys(&self.read, slots, runtime, scratch, &mut keys)?;
        let mut done = Changed::default();
        if keys.is_empty() {
            return Ok(done);
        }
        let table = &self.read.table;
        let clock = session.clock();
        let (defaults, now) = match &self.assignments {
            Some(assignments) if assignments.need_defaults() => {
                (self.target.defaults(&clock), on_update(&self.target, &clock))
            }
            Some(_) => (Vec::new(), on_update(&self.target, &clock)),
            None => (Vec::new(), Vec::new()),
        };
        let strictness = Strictness { strict: session.variables.common.sql_mode.is_strict(), ignore: false };
        let mut write = session.instance.database.begin_write()?;
        let mut arena = Bump::new();
        let mut failure = None;
        let mut written = Vec::new();
        for position in 0..keys.len() {
            session.interrupt.check()?;
            arena.reset();
            let context = Context { slots, arena: &arena, environment: runtime.environment };
            let mut still_meant = |image: &[u8]| {
                // The image lives as long as the row's latch is held; what outlives it is copied.
                let view = table.row_codec().view(arena.alloc_slice_copy(image));
                match &self.read.condition {
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
            match &self.assignments {
                None => {
                    let deleted =
                        write.delete(table, keys.get(position), &mut |image| still_meant(image).is_some())?;
                    done.matched += u64::from(deleted);
                    done.changed += u64::from(deleted);
                }
                Some(assignments) => {
                    let mut matched = false;
                    let mut wrong = None;
                    let number = done.matched + 1;
                    let result = write.update(table, keys.get(position), &mut |image, out| {
                        let Some(view) = still_meant(image) else { return false };
                        matched = true;
                        let start = out.len();
                        let result = assignments.apply(
                            &self.target,
                            &defaults,
                            &now,
                            view,
                            &[],
                            number,
                            strictness,
                            &context,
                            warnings,
                            out,
                        );
                        match result {
                            Ok(true) => {
                                written.clear();
                                written.extend_from_slice(&out[start..]);
                                true
                            }
                            Ok(false) => {
                                out.truncate(start);
                                false
                            }
                            Err(error) => {
                                out.truncate(start);
                                wrong = Some(error);
                                false
                            }
                        }
                    });
                    if let Some(error) = wrong {
                        return Err(error);
                    }
                    let changed = result.map_err(|error| write_error(error, table, &written))?;
                    done.matched += u64::from(matched);
                    done.changed += u64::from(changed);
                }
            }
            if let Some(error) = failure {
                return Err(error);
            }
        }
        write.commit()?;
        Ok(done)
    }
}

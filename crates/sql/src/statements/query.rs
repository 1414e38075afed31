//! Statements that are planned: from text or parameters to a plan, and running it.

use crate::Session;
use crate::exec::{
    DerivedRows, Done, LiteralText, RowLocks, Runtime, Scratch, WriterLocks, number_behind, recycle,
    run_statement,
};
use crate::expr::{SlotKind, Slots};
use crate::locks::Mode;
use crate::plan::bind::SlotInfo;
use crate::plan::names::select_list;
use crate::plan::plan::{Body, LockClause, LockPatience, StatementPlan};
use crate::plan::query::Planner;
use crate::session::PreparedText;
use crate::session::environment::SessionEnvironment;
use crate::session::plans::{Plan, SessionPlans};
use crate::session::transaction::{Used, Writes};
use crate::status::Counter;
use crate::text::parse;
use crate::text::{Scan, ScanEnd, SlotShape};
use crate::{Completion, ErrorKind, ResultSink, SqlError};
use base::phases::{self, Phase};
use engine::{Isolation, Reader};
use sqlparser::ast;
use std::cell::RefCell;
use std::sync::Arc;
use types::ValueRef;

/// What a session keeps from statement to statement. Taken out of the session while one runs.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) scan: Scan,
    pub(crate) plans: SessionPlans,
}

/// Memory for the statement that runs on a core, whoever's it is: keys, rows, values on their way.
#[derive(Debug, Default)]
pub(crate) struct WorkingMemory {
    values: Vec<ValueRef<'static>>,
    scratch: Vec<Scratch>,
}

/// A larger working memory is given back to the allocator after the statement that needed it.
const WORKING_BYTES_MAX: usize = 4 << 20;

impl Session {
    fn take_working_memory(&self) -> WorkingMemory {
        self.instance.working_memory.take().unwrap_or_default()
    }

    fn keep_working_memory(&self, memory: WorkingMemory) {
        let bytes: usize = memory.scratch.iter().map(Scratch::capacity).sum();
        if bytes + memory.values.capacity() * size_of::<ValueRef<'_>>() <= WORKING_BYTES_MAX {
            self.instance.working_memory.put(memory);
        }
    }
}

impl Session {
    /// True for the statements that are planned, by their first word.
    pub(crate) fn is_planned(sql: &[u8]) -> bool {
        let start = sql.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != b'(').unwrap_or(0);
        let rest = &sql[start..];
        let words: [&[u8]; 5] = [b"select", b"update", b"delete", b"insert", b"replace"];
        words.iter().any(|word| {
            rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
                && rest.get(word.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        })
    }

    /// Runs one statement of text by its shape. `None` if it cannot be scanned as it is.
    pub(crate) fn run_by_shape(
        &mut self,
        sql: &[u8],
        sink: &mut dyn ResultSink,
    ) -> Option<Result<(), SqlError>> {
        let mut kept = self.kept.take().unwrap_or_default();
        let result = self.run_scanned(&mut kept, sql, sink);
        self.kept = Some(kept);
        result
    }

    fn run_scanned(
        &mut self,
        kept: &mut Kept,
        sql: &[u8],
        sink: &mut dyn ResultSink,
    ) -> Option<Result<(), SqlError>> {
        let Kept { scan, plans } = kept;
        self.key_prefix();
        let parsing = phases::enter(Phase::Parse);
        let end = scan.scan(&self.prefix, sql);
        drop(parsing);
        if end != ScanEnd::Whole || scan.parameters > 0 {
            return None;
        }
        let WorkingMemory { values, mut scratch } = self.take_working_memory();
        let mut bound = recycle(values);
        bound.extend(scan.literals.iter().map(|literal| literal.value(sql, &scan.unescaped, &[])));
        let slots = Slots::new(&bound, &scan.starts);
        let text = Literals { text: sql, shapes: &scan.slots, slots };
        let planning = phases::enter(Phase::Plan);
        let found = plans.find(&scan.key);
        drop(planning);
        let result = match found {
            // The plan is borrowed, not cloned: its counter is shared with other sessions.
            Some(plan) => self.run_plan(plan, slots, &text, &mut scratch, sink),
            None => match self.plan_scan(scan, sql, plans) {
                Ok(plan) => self.run_plan(&plan, slots, &text, &mut scratch, sink),
                // Perhaps only the shape is wrong, a literal standing where syntax is: the parser will see.
                Err(error) if error.kind == ErrorKind::Syntax => return None,
                Err(error) => Err(error),
            },
        };
        self.keep_working_memory(WorkingMemory { values: recycle(bound), scratch });
        Some(result)
    }

    /// Runs a prepared statement. `None` if it was not scanned.
    pub(crate) fn run_prepared(
        &mut self,
        prepared: &mut PreparedText,
        parameters: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Option<Result<(), SqlError>> {
        if !prepared.is_scanned {
            return None;
        }
        self.key_prefix();
        if prepared.scan.key[..prepared.scan.key_start] != self.prefix {
            // It is planned for other settings by now.
            prepared.plan = None;
            if prepared.scan.scan(&self.prefix, &prepared.text) != ScanEnd::Whole {
                return None;
            }
        }
        let mut kept = self.kept.take().unwrap_or_default();
        let result = self.run_bound(&mut kept, prepared, parameters, sink);
        self.kept = Some(kept);
        Some(result)
    }

    fn run_bound(
        &mut self,
        kept: &mut Kept,
        prepared: &mut PreparedText,
        parameters: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let PreparedText { text, scan, kinds, plan, .. } = prepared;
        let WorkingMemory { values, mut scratch } = self.take_working_memory();
        let mut bound = recycle(values);
        bound.extend(scan.literals.iter().map(|literal| literal.value(text, &scan.unescaped, parameters)));
        let slots = Slots::new(&bound, &scan.starts);
        let same = kinds.len() == scan.slots.len()
            && scan.slots.iter().zip(kinds.iter()).enumerate().all(|(at, (slot, kind))| {
                slot.kind.is_some() || kind_of_slot(&slots, at, slot.list) == *kind
            });
        let current = plan.as_ref().filter(|plan| same && plan.is_current());
        let literals = Literals { text, shapes: &scan.slots, slots };
        let result = match current {
            Some(plan) => self.run_plan(plan, slots, &literals, &mut scratch, sink),
            None => {
                kinds.clear();
                kinds.extend(
                    scan.slots
                        .iter()
                        .enumerate()
                        .map(|(at, slot)| slot.kind.unwrap_or_else(|| kind_of_slot(&slots, at, slot.list))),
                );
                let mut with_kinds = scan.clone();
                with_kinds.bind_kinds(kinds);
                match self.plan_scan(&with_kinds, text, &mut kept.plans) {
                    Ok(made) => {
                        let made = plan.insert(made);
                        self.run_plan(made, slots, &literals, &mut scratch, sink)
                    }
                    Err(error) => Err(error),
                }
            }
        };
        self.keep_working_memory(WorkingMemory { values: recycle(bound), scratch });
        result
    }

    /// What a plan depends on beside the shape of the text: put in front of the key.
    pub(crate) fn key_prefix(&mut self) {
        self.prefix.clear();
        if let Some(database) = &self.state.database {
            self.prefix.extend_from_slice(database.as_bytes());
        }
        self.prefix.push(0);
        let limit = self.variables.common.sql_select_limit;
        if limit != u64::MAX {
            self.prefix.extend_from_slice(&limit.to_le_bytes());
        }
        self.prefix.push(self.variables.common.join_methods.key());
    }

    /// The plan of a scanned statement: from the shared store, or made now.
    pub(crate) fn plan_scan(
        &self,
        scan: &Scan,
        sql: &[u8],
        plans: &mut SessionPlans,
    ) -> Result<Arc<Plan>, SqlError> {
        let _planning = phases::enter(Phase::Plan);
        plans.make(&scan.key, &self.instance.plans, || {
            let parsing = phases::enter(Phase::Parse);
            let text = scan.parser_text();
            let text = std::str::from_utf8(&text).map_err(|_| invalid_text(sql))?;
            let statement = parse::parse_ast(text)?;
            drop(parsing);
            let slots: Vec<SlotInfo> = kinds_in_key(scan);
            self.plan_statement(&statement, &slots, select_list(&scan.key[scan.key_start..]))
        })
    }

    /// Plans a parsed statement.
    ///
    /// # Errors
    /// Those of planning.
    pub(crate) fn plan_statement(
        &self,
        statement: &ast::Statement,
        slots: &[SlotInfo],
        names: Vec<crate::plan::names::Name>,
    ) -> Result<Plan, SqlError> {
        let mut planner = Planner::new(&self.instance.database, self.state.database.as_deref(), slots);
        planner.names = names;
        planner.knows_locked_only = self.locked.has_tables();
        planner.methods = self.variables.common.join_methods;
        match statement {
            ast::Statement::Query(query) => {
                planner.select_limit = self.variables.common.sql_select_limit;
                Ok(Plan::Query(planner.statement(query)?))
            }
            other => crate::statements::dml::plan_change(self, planner, other).map(Plan::Change),
        }
    }

    fn run_plan(
        &mut self,
        plan: &Plan,
        slots: Slots<'_>,
        literals: &Literals<'_>,
        scratch: &mut Vec<Scratch>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        match plan {
            Plan::Query(plan) => {
                self.counters.add(Counter::ComSelect, 1);
                self.run_query(plan, slots, &|slot, alone| literals.text_of(slot, alone), scratch, sink)
            }
            Plan::Change(plan) => plan.run(self, slots, sink),
        }
    }

    /// Runs a query's plan and ends the result.
    pub(crate) fn run_query(
        &mut self,
        plan: &StatementPlan,
        slots: Slots<'_>,
        literal_text: &LiteralText<'_>,
        scratch: &mut Vec<Scratch>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let done = match self.lock_of_query(plan) {
            None => self.read_tables(&plan.dependencies, |session, reader| {
                session.run_read(plan, slots, literal_text, scratch, sink, reader, None)
            }),
            Some(unasked) => self.run_locking(plan, slots, literal_text, scratch, sink, unasked),
        };
        let done = done?;
        self.counters.add(Counter::RowsSent, done.sent);
        self.state.found_rows = done.found;
        self.state.row_count = -1;
        sink.end(&Completion { warnings: self.state.warnings.count_u16(), ..Completion::default() })
    }

    /// Runs a query's plan on tables that are open to it.
    #[allow(clippy::too_many_arguments)]
    fn run_read(
        &mut self,
        plan: &StatementPlan,
        slots: Slots<'_>,
        literal_text: &LiteralText<'_>,
        scratch: &mut Vec<Scratch>,
        sink: &mut dyn ResultSink,
        reader: Reader<'_>,
        locks: Option<RowLocks<'_>>,
    ) -> Result<Done, SqlError> {
        let environment = SessionEnvironment::new(self);
        let (interrupt, session) = (&*self.interrupt, &*self);
        let runtime = Runtime {
            environment: &environment,
            interrupt,
            session,
            literal_text,
            reader,
            locks,
            spare: RefCell::default(),
            derived: DerivedRows::default(),
        };
        let done = run_statement(plan, slots, &runtime, scratch, sink);
        environment.into_leftovers().settle(self);
        done
    }

    /// `Some` for a query that locks rows: how those of its SELECTs lock that do not say so themselves. A SELECT in a SERIALIZABLE
    /// transaction keeps what it has read from being changed.
    #[inline]
    fn lock_of_query(&self, plan: &StatementPlan) -> Option<Option<LockClause>> {
        let serializable = self.isolation() == Isolation::Serializable
            && (self.state.transaction.open || !self.variables.common.autocommit)
            && !plan.dependencies.is_empty();
        if serializable {
            return Some(Some(LockClause { exclusive: false, wait: LockPatience::Default }));
        }
        (plan.locks && !plan.dependencies.is_empty()).then_some(None)
    }

    fn run_locking(
        &mut self,
        plan: &StatementPlan,
        slots: Slots<'_>,
        literal_text: &LiteralText<'_>,
        scratch: &mut Vec<Scratch>,
        sink: &mut dyn ResultSink,
        unasked: Option<LockClause>,
    ) -> Result<Done, SqlError> {
        let clause = match &plan.query.body {
            Body::Select(select) => select.lock,
            Body::Union(_) => None,
        };
        let mode = match clause {
            Some(LockClause { exclusive: true, .. }) => Mode::Write,
            _ => Mode::Read,
        };
        let seconds = match clause {
            Some(LockClause { wait: LockPatience::Seconds(seconds), .. }) => {
                Some(number_behind("WAIT", seconds, &slots)?)
            }
            _ => None,
        };
        let tables: Vec<Used<'_>> = plan.dependencies.iter().map(|used| used.in_mode(mode)).collect();
        let writes = Writes::Locks { seconds };
        self.write_tables(writes, &tables, &|| plan.is_current(), |session, readers, writer| {
            let writer = RefCell::new(writer);
            let rows = &WriterLocks(&writer);
            let locks = RowLocks { candidates: readers.current, rows, unasked };
            session.run_read(plan, slots, literal_text, scratch, sink, readers.snapshot, Some(locks))
        })
    }

    /// Plans and runs a statement that was parsed without a shape.
    pub(crate) fn run_parsed(
        &mut self,
        statement: &ast::Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let plan = self.plan_statement(statement, &[], vec![])?;
        let literals = Literals { text: &[], shapes: &[], slots: Slots::EMPTY };
        let mut scratch = Vec::new();
        self.run_plan(&plan, Slots::EMPTY, &literals, &mut scratch, sink)
    }
}

impl Session {
    /// What the rows of a hash join may take: `join_buffer_size`, and no less than a temporary table in memory.
    pub(crate) fn join_bytes(&self) -> usize {
        let size = |name| self.variables.values().unsigned(name);
        let temporary = size("tmp_table_size").min(size("max_heap_table_size"));
        usize::try_from(size("join_buffer_size").max(temporary)).unwrap_or(usize::MAX)
    }
}

/// The literals of a statement as they are written.
pub(crate) struct Literals<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) shapes: &'a [SlotShape],
    pub(crate) slots: Slots<'a>,
}

impl Literals<'_> {
    pub(crate) fn text_of(&self, slot: usize, alone: bool) -> String {
        let Some(shape) = self.shapes.get(slot) else { return String::new() };
        let text = match self.slots.list(slot) {
            [ValueRef::Text(text)] if alone && shape.kind.is_some() => text,
            _ => self.text.get(shape.from as usize..shape.end as usize).unwrap_or_default(),
        };
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The kind of what is bound to a slot.
#[inline]
fn kind_of_slot(slots: &Slots<'_>, at: usize, list: bool) -> SlotKind {
    if !list {
        return SlotKind::of(&slots.value(at));
    }
    let mut kind = None;
    for value in slots.list(at) {
        let this = SlotKind::of(value);
        match kind {
            None => kind = Some(this),
            Some(known) if known != this => return SlotKind::Mixed,
            Some(_) => {}
        }
    }
    kind.unwrap_or(SlotKind::Null)
}

/// The kinds of a scan's slots; those of parameters as they were bound into its key.
fn kinds_in_key(scan: &Scan) -> Vec<SlotInfo> {
    scan.slots
        .iter()
        .map(|slot| SlotInfo { kind: slot.kind.unwrap_or_else(|| scan.kind_in_key(slot)), list: slot.list })
        .collect()
}

fn invalid_text(sql: &[u8]) -> SqlError {
    match parse::to_text(sql) {
        Err(error) => error,
        Ok(text) => SqlError::syntax(&text, 1),
    }
}

//! SELECT: plans it and runs the plan.

use crate::exec::{
    DerivedRows, Done, RowLocks, Runtime, Scratch, SessionServices, WriterLocks, number_behind, run_to_client,
};
use crate::expr::Slots;
use crate::locks::{Mode, Used};
use crate::plan::bind::SlotInfo;
use crate::plan::names::LiteralText;
use crate::plan::names::Name;
use crate::plan::plan::{Body, LockClause, LockPatience, StatementPlan, VirtualTable};
use crate::plan::query::Planner;
use crate::session::environment::SessionEnvironment;
use crate::session::transaction::Writes;
use crate::spill::Workspace;
use crate::statements::show::infoschema;
use crate::status::Counter;
use crate::{Completion, ResultSink, Session, SqlError};
use engine::{Isolation, Reader};
use sqlparser::ast;
use std::cell::RefCell;
use types::Value;

/// A query that is about to run.
#[derive(Clone, Copy)]
pub(crate) struct Query<'q> {
    pub plan: &'q StatementPlan,
    pub slots: Slots<'q>,
    /// The text of the literal in a slot, which names of columns show.
    pub literal_text: &'q LiteralText<'q>,
}

impl Session {
    /// A planner for a statement of this session, with these slots.
    pub(crate) fn planner<'a>(&'a self, slots: &'a [SlotInfo]) -> Planner<'a> {
        let database = self.state.database.as_deref();
        let mut planner = Planner::new(&self.instance.database, infoschema::find, database, slots);
        planner.knows_locked_only = self.locked.has_tables();
        planner.access = Some(&self.access).filter(|access| !access.is_global());
        planner.methods = self.variables.common.join_methods;
        planner.connection = self.variables.common.connection;
        planner
    }

    /// Plans a query. `names` are the names of its columns as the client wrote them, if known.
    ///
    /// # Errors
    /// Errors about names and types.
    pub(crate) fn plan_query(
        &self,
        query: &ast::Query,
        slots: &[SlotInfo],
        names: Vec<Name>,
    ) -> Result<StatementPlan, SqlError> {
        let mut planner = self.planner(slots);
        planner.names = names;
        planner.select_limit = self.variables.common.sql_select_limit;
        planner.statement(query)
    }

    /// Plans and runs a query that is part of another statement.
    ///
    /// # Errors
    /// Those of planning and running.
    pub(crate) fn plan_and_run_inner(
        &mut self,
        query: &ast::Query,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let plan = self.plan_query(query, &[], vec![])?;
        self.access.check(&plan.needs)?;
        self.counters.add(Counter::ComSelect, 1);
        let query = Query { plan: &plan, slots: Slots::EMPTY, literal_text: &|_, _| String::new() };
        self.answer_query(&query, &mut Vec::new(), sink)
    }

    /// Runs a query's plan and sends the end of the result.
    pub(crate) fn answer_query(
        &mut self,
        query: &Query<'_>,
        scratch: &mut Vec<Scratch>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        if query.plan.reads_tables() {
            self.state.warnings.forget_old();
        }
        let done = match self.lock_of_query(query.plan) {
            None => self.read_tables(&query.plan.dependencies, |session, reader| {
                session.run_with_reader(query, scratch, sink, reader, None)
            }),
            Some(unasked) => self.run_with_row_locks(query, scratch, sink, unasked),
        };
        let done = done?;
        self.counters.add(Counter::RowsSent, done.sent);
        self.state.found_rows = done.found;
        self.state.row_count = -1;
        sink.end(&Completion { warnings: self.state.warnings.count_u16(), ..Completion::default() })
    }

    /// Runs a query's plan with a reader for its tables.
    fn run_with_reader(
        &mut self,
        query: &Query<'_>,
        scratch: &mut Vec<Scratch>,
        sink: &mut dyn ResultSink,
        reader: Reader<'_>,
        locks: Option<RowLocks<'_>>,
    ) -> Result<Done, SqlError> {
        if self.state.transaction.open {
            // It may have begun just now.
            sink.status(self.status_flags(), Vec::new());
        }
        let environment = SessionEnvironment::new(self);
        let (interrupt, session) = (&*self.interrupt, &*self);
        let runtime = Runtime {
            environment: &environment,
            interrupt,
            session,
            literal_text: query.literal_text,
            reader,
            locks,
            spare: RefCell::default(),
            derived: DerivedRows::default(),
        };
        let done = run_to_client(query.plan, query.slots, &runtime, scratch, sink);
        environment.into_leftovers().settle(self);
        done
    }

    /// For a query that locks rows: the lock of those of its SELECTs that name none. A SELECT in a
    /// SERIALIZABLE transaction keeps the rows that it has read from being changed.
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

    fn run_with_row_locks(
        &mut self,
        query: &Query<'_>,
        scratch: &mut Vec<Scratch>,
        sink: &mut dyn ResultSink,
        unasked: Option<LockClause>,
    ) -> Result<Done, SqlError> {
        let Query { plan, slots, .. } = *query;
        let clause = match &plan.query.body {
            Body::Select(select) => select.lock,
            Body::Union(_) | Body::Recursive(_) => None,
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
        self.write_tables(writes, &tables, &[], &|| plan.is_current(), |session, readers, writer| {
            let writer = RefCell::new(writer);
            let rows = &WriterLocks(&writer);
            let locks = RowLocks { candidates: readers.current, rows, unasked };
            session.run_with_reader(query, scratch, sink, readers.snapshot, Some(locks))
        })
    }
}

impl SessionServices for Session {
    fn virtual_rows(&self, table: &'static VirtualTable) -> Result<Vec<Vec<Value>>, SqlError> {
        infoschema::rows(self, table)
    }

    fn workspace(&self) -> Workspace<'_> {
        Session::workspace(self)
    }
}

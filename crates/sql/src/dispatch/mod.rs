//! Hands each statement to the module that runs it.
//!
//! SELECT and what is built of it run through plans; every other kind has a function of its own that takes
//! the session, the statement and the sink. To add one: give it a variant of [`Statement`] (or take it out of
//! [`Statement::Other`] by its first word) and an arm in [`Session::run_parsed`].

mod bulk;
mod fields;
mod other;
mod preparation;
mod prepared;
mod set_statement;
mod shape;
mod time_hint;

pub use fields::Fields;

use crate::expr::Slots;
use crate::locks::Mode;
use crate::plan::describe::Running;
use crate::plan::plan::{QueryPlan, SubqueryPlan};
use crate::session::environment::SessionEnvironment;
use crate::session::plans::Plan;
use crate::session::slots::PreparedSlot;
use crate::session::{DEFINITION_RETRIES, PreparedText};
use crate::status::Counter;
use crate::text::SlotKind;
use crate::text::parse::{self, ExplainForm, Statement};
use crate::text::{Literal, Scan, ScanEnd};
use crate::{ColumnMeta, Completion, ErrorKind, Prepared, ResultSink, Session, SqlError};
use shape::Literals;
use sqlparser::ast;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use types::ValueRef;

impl Session {
    /// Runs a statement's text. Several statements separated by `;` give 1064 unless
    /// `set_multi_statements(true)` was called.
    ///
    /// # Errors
    /// The statement's own error. In that case no end was sent to `sink`.
    pub fn query(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        self.counters.add(Counter::Questions, 1);
        self.contain(|session| {
            let result = match time_hint::limit_of(sql) {
                None => session.run_command_text(sql, sink),
                Some(micros) => session.run_limited(micros, |session| session.run_command_text(sql, sink)),
            };
            // Unless its statements were noted one by one.
            session.note_statement(sql, &result);
            result
        })
    }

    /// Scans and plans a statement that is to be run later.
    ///
    /// # Errors
    /// 1064, and errors of the names in the statement.
    pub fn prepare(&mut self, sql: &[u8]) -> Result<Prepared, SqlError> {
        self.counters.add(Counter::ComStmtPrepare, 1);
        let _parsing = base::phases::enter(base::phases::Phase::Parse);
        let result = self.check_password().and_then(|()| self.prepare_text(sql));
        if let Err(error) = &result {
            // Otherwise its executions are noted.
            self.begin_trail();
            self.note_statement(sql, &Err(error.clone()));
        }
        result
    }

    /// Runs a prepared statement. `params` have the types that the client sent.
    ///
    /// # Errors
    /// 1243 for an unknown id, 1210 for a wrong number of parameters, and the statement's own errors.
    pub fn execute(
        &mut self,
        id: u32,
        params: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.counters.add(Counter::Questions, 1);
        self.counters.add(Counter::ComStmtExecute, 1);
        self.contain(|session| session.execute_by_id(id, params, "mysqld_stmt_execute", sink))
    }

    /// Runs a client's command from beginning to end. An error is recorded for SHOW WARNINGS and ROW_COUNT().
    ///
    /// A panic ends the session. Its unfinished changes are taken back before the panic unwinds further:
    /// later the engine could not tell them from a change of a page that the panic interrupted.
    #[inline]
    fn contain(&mut self, run: impl FnOnce(&mut Session) -> Result<(), SqlError>) -> Result<(), SqlError> {
        self.begin_statement();
        match self.variables.common.statement_micros {
            0 => self.contain_panics(run),
            micros => self.contain_timed(micros, run),
        }
    }

    /// As [`Session::contain`], for at most `max_statement_time`.
    #[cold]
    fn contain_timed(
        &mut self,
        micros: u64,
        run: impl FnOnce(&mut Session) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.contain_panics(|session| session.run_for(micros, run))
    }

    /// Runs `run` for at most so many microseconds; 0 for no limit.
    fn run_for(
        &mut self,
        micros: u64,
        run: impl FnOnce(&mut Session) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let begun = match micros {
            0 => {
                self.interrupt.set_end(0);
                Ok(())
            }
            micros => self.instance.timer.begin(&self.interrupt, &mut self.is_timed, micros),
        };
        let result = begun.and_then(|()| run(self));
        // The engine does not know why its wait was ended.
        let result = match result {
            Err(error) if error.kind == ErrorKind::QueryInterrupted => {
                Err(self.interrupt.check().err().unwrap_or(error))
            }
            result => result,
        };
        self.interrupt.set_end(0);
        result
    }

    /// Gives the next statement of a text its own time.
    fn renew_limit(&mut self) -> Result<(), SqlError> {
        match self.variables.common.statement_micros {
            _ if !self.interrupt.is_limited() => Ok(()),
            0 => {
                self.interrupt.set_end(0);
                Ok(())
            }
            micros => self.instance.timer.begin(&self.interrupt, &mut self.is_timed, micros),
        }
    }

    fn contain_panics(
        &mut self,
        run: impl FnOnce(&mut Session) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let result = match catch_unwind(AssertUnwindSafe(|| run(self))) {
            Ok(result) => result,
            Err(panic) => {
                self.give_up();
                resume_unwind(panic)
            }
        };
        if let Err(error) = &result {
            self.state.warnings.error(error);
            self.state.row_count = -1;
        }
        result
    }

    /// A KILL QUERY that came too late is forgotten.
    fn begin_statement(&mut self) {
        self.take_up_accounts();
        self.begin_trail();
        self.state.warnings.begin();
        for text in std::mem::take(&mut self.state.parameter_warnings) {
            self.state.warnings.warn(ErrorKind::TruncatedWrongValue, text);
        }
        self.state.given_insert_id = None;
        self.before = self.counted();
        if self.interrupt.begin_statement()
            && let Some(engine) = &self.engine
        {
            engine.clear_interrupt();
        }
    }

    /// Runs the text of a client's command: one statement, or several.
    fn run_command_text(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        // The statements of a session with bounds are looked at one by one.
        if self.bounds.is_none()
            && let Some(result) = self.run_by_scan(sql, sink)
        {
            return result;
        }
        let text = parse::utf8(sql)?;
        let mut rest = text;
        let mut next = parse::take_statement(&mut rest, self.lexical());
        if next.is_none() {
            // As in MariaDB, a text with nothing but comments is done.
            let is_empty =
                text.trim_matches(|letter: char| letter.is_whitespace() || letter == ';').is_empty();
            return if is_empty { Err(SqlError::empty_query()) } else { self.done(0, String::new(), sink) };
        }
        if !self.client.multi_statements
            && !next.is_some_and(other::has_a_body)
            && let Some(second) = parse::take_statement(&mut { rest }, self.lexical())
        {
            return Err(parse::error_at(text, parse::offset_in(text, second)));
        }
        while let Some(statement) = next {
            let written = statement;
            let (mode, mut behind) = (self.lexical(), rest);
            let following = parse::take_statement(&mut behind, mode);
            sink.more_follow(following.is_some());
            self.state.given_insert_id = None;
            let statement = parse::unwrap_comments(statement, self.lexical());
            let result = match self.check_bounds(statement.as_bytes()) {
                Ok(()) => self.run_statement_text(&statement, sink),
                refused => refused,
            };
            self.note_statement(written.as_bytes(), &result);
            result?;
            // The statement may have changed what the client is told.
            sink.status(self.status_flags(), self.take_changes());
            self.renew_limit()?;
            // The statement may have changed how the next one is read.
            next = match self.lexical() == mode {
                true => {
                    rest = behind;
                    following
                }
                false => parse::take_statement(&mut rest, self.lexical()),
            };
            if next.is_some() {
                self.state.warnings.begin();
                self.go_on_with_trail();
            }
        }
        Ok(())
    }

    /// Runs a statement whose executable comments are opened and that has no other behind it.
    fn run_statement_text(&mut self, text: &str, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let text = parse::skip_comments(text);
        if let Some(result) = self.run_by_scan(text.as_bytes(), sink) {
            return result;
        }
        let statement = parse::parse(text, self.lexical())?;
        self.run_parsed(&statement, sink)
    }

    /// Runs a text that a scanner can read: an INSERT of plain rows, or one statement that has a shape.
    /// `None` if the text has to be parsed as it is.
    fn run_by_scan(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> Option<Result<(), SqlError>> {
        if let Some(result) = self.try_plain_insert(sql, self.lexical(), &[], sink) {
            return Some(result);
        }
        if !Session::is_planned(sql) {
            return None;
        }
        let mut cache = self.cache.take().unwrap_or_default();
        let result = self.with_retries(sink, |session, sink| session.scan_and_run(&mut cache, sql, sink));
        self.cache = Some(cache);
        result
    }

    /// Runs a statement, and runs it again if ALTER TABLE came between its planning and its first change.
    #[inline]
    fn with_retries(
        &mut self,
        sink: &mut dyn ResultSink,
        mut run: impl FnMut(&mut Session, &mut dyn ResultSink) -> Option<Result<(), SqlError>>,
    ) -> Option<Result<(), SqlError>> {
        let mut result = run(self, sink);
        for _ in 0..DEFINITION_RETRIES {
            let changed = matches!(&result, Some(Err(error)) if error.is_definition_changed());
            if !changed || sink.is_in_rows() {
                break;
            }
            self.state.warnings.clear();
            result = run(self, sink);
        }
        result
    }

    /// Scans and plans the one statement of a text, and keeps it under a new number.
    pub(crate) fn prepare_text(&mut self, sql: &[u8]) -> Result<Prepared, SqlError> {
        let most = self.instance.globals().values().unsigned("max_prepared_stmt_count");
        let slot = PreparedSlot::take(&self.instance.prepared, most)?;
        let mode = self.lexical();
        let text = parse::utf8(sql)?;
        let mut rest = text;
        let Some(statement) = parse::take_statement(&mut rest, mode) else {
            return Err(SqlError::empty_query());
        };
        if let Some(second) = parse::take_statement(&mut rest, mode) {
            return Err(parse::error_at(text, parse::offset_in(text, second)));
        }
        let text = parse::skip_comments(&parse::unwrap_comments(statement, mode)).to_string();
        let params = u16::try_from(parse::count_placeholders(&text, mode)).map_err(|_| {
            SqlError::new(ErrorKind::TooManyPlaceholders, "Prepared statement contains too many placeholders")
        })?;
        let mut prepared = PreparedText {
            text: text.into_bytes(),
            mode,
            params,
            database: self.state.database.clone(),
            scan: Scan::default(),
            is_scanned: false,
            kinds: vec![],
            plan: None,
            _slot: slot,
        };
        let columns = self.scan_and_plan(&mut prepared)?;
        let id = self.keep_prepared(prepared)?;
        Ok(Prepared { id, params, columns })
    }

    /// Scans and plans a statement that is being prepared, as if its parameters were integers; gives its
    /// columns.
    fn scan_and_plan(&mut self, prepared: &mut PreparedText) -> Result<Arc<[ColumnMeta]>, SqlError> {
        let none: Arc<[ColumnMeta]> = Arc::from([]);
        let text = String::from_utf8_lossy(&prepared.text).into_owned();
        if !Session::is_planned(&prepared.text) {
            if let Statement::Other(other) = parse::parse(&text, prepared.mode)? {
                prepared::check_preparable(&other)?;
                other::check_word(&other)?;
                preparation::check_names(self, &other)?;
                if other::defines_or_maintains(&other) {
                    self.state.warnings.forget_old();
                }
            }
            return Ok(none);
        }
        let mut cache = self.cache.take().unwrap_or_default();
        self.write_key_prefix(prepared.mode, &mut cache.prefix);
        let scanned = prepared.scan.scan(&cache.prefix, &prepared.text, prepared.mode) == ScanEnd::Whole;
        if !scanned {
            self.cache = Some(cache);
            parse::parse(&text, prepared.mode)?;
            return Ok(none);
        }
        prepared.is_scanned = true;
        let kinds: Vec<SlotKind> =
            prepared.scan.slots.iter().map(|slot| slot.kind.unwrap_or(SlotKind::Int)).collect();
        let mut filled = prepared.scan.clone();
        filled.fill_kinds(&kinds);
        let plan = self.plan_scanned(&filled, &prepared.text, prepared.mode, &mut cache.plans);
        self.cache = Some(cache);
        let plan = match plan {
            // An error about the shape's text is reported with the text that the client sent instead.
            Err(error) if error.kind == ErrorKind::Syntax => {
                parse::parse(&text, prepared.mode)?;
                return Err(error);
            }
            plan => plan?,
        };
        self.access.check(plan.needs())?;
        let columns = match &*plan {
            Plan::Query(plan) => {
                if plan.reads_tables() {
                    self.state.warnings.forget_old();
                }
                self.prepared_columns(&plan.query, &plan.subqueries, prepared)
            }
            Plan::Change(plan) => {
                self.state.warnings.forget_old();
                plan.returning().map_or(none, |query| self.prepared_columns(query, &[], prepared))
            }
        };
        prepared.kinds = kinds;
        prepared.plan = Some(plan);
        Ok(columns)
    }

    /// `subqueries` run before the query.
    fn prepared_columns(
        &self,
        query: &QueryPlan,
        subqueries: &[SubqueryPlan],
        prepared: &PreparedText,
    ) -> Arc<[ColumnMeta]> {
        if query.has_fixed_columns() {
            return query.columns.clone();
        }
        let scan = &prepared.scan;
        let value = |literal: &Literal| literal.value(&prepared.text, &scan.unescaped, &[]);
        let values: Vec<ValueRef<'_>> = scan.literals.iter().map(value).collect();
        let slots = Slots::new(&values, &scan.starts);
        let literals = Literals { text: &prepared.text, shapes: &scan.slots, slots };
        let literal = |slot: usize, alone: bool| literals.text_of(slot, alone);
        let (literal_text, session) = (&literal, SessionEnvironment::new(self));
        let run = Running { slots, literal_text, subqueries, environment: Some(&session) };
        Arc::from(crate::exec::named_columns(query, run))
    }

    /// Runs the prepared statement with this number; messages name `command`.
    pub(crate) fn execute_by_id(
        &mut self,
        id: u32,
        params: &[ValueRef<'_>],
        command: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.with_prepared(id, command, |session, statement| {
            if params.len() != usize::from(statement.params) {
                return Err(SqlError::wrong_arguments(command));
            }
            match time_hint::limit_of(&statement.text) {
                None => session.run_prepared(statement, params, sink),
                Some(micros) => session.run_limited(micros, |s| s.run_prepared(statement, params, sink)),
            }
        })
    }

    /// Takes a prepared statement out while `run` runs it, in the database of its PREPARE. Tells the audit
    /// log of it.
    #[inline]
    fn with_prepared(
        &mut self,
        id: u32,
        command: &str,
        run: impl FnOnce(&mut Session, &mut PreparedText) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let Some(mut statement) = self.prepared.by_id.get_mut(&id).and_then(Option::take) else {
            return Err(SqlError::unknown_statement(id, command));
        };
        let own = self.state.database == statement.database;
        let outer = match own {
            true => None,
            false => std::mem::replace(&mut self.state.database, statement.database.clone()),
        };
        let result = run(self, &mut statement);
        self.note_statement(&statement.text, &result);
        if !own {
            self.state.database = outer;
        }
        // A reset of the session may have closed it meanwhile.
        if let Some(entry) = self.prepared.by_id.get_mut(&id) {
            *entry = Some(statement);
        }
        result
    }

    /// Runs a prepared statement with as many parameters as it takes.
    fn run_prepared(
        &mut self,
        statement: &mut PreparedText,
        params: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        if self.bounds.is_some() {
            self.check_bounds(&statement.text)?;
        }
        if let Some(result) = self.try_plain_insert(&statement.text, statement.mode, params, sink) {
            return result;
        }
        if statement.is_scanned {
            let mut cache = self.cache.take().unwrap_or_default();
            let result = self.with_retries(sink, |session, sink| {
                session.fill_and_run(&mut cache, statement, params, sink)
            });
            self.cache = Some(cache);
            if let Some(result) = result {
                return result;
            }
        }
        let text = String::from_utf8_lossy(&statement.text);
        let mode = statement.mode;
        let statement = parse::parse(&parse::fill_placeholders(&text, mode, params), mode)?;
        self.run_parsed(&statement, sink)
    }

    /// Runs one parsed statement.
    pub(crate) fn run_parsed(
        &mut self,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        match statement {
            Statement::Use(name) => {
                self.counters.add(Counter::ComChangeDb, 1);
                self.use_database(name)?;
                sink.end(&Completion::default())
            }
            Statement::Query(query) => self.plan_and_run(&ast::Statement::Query(query.clone()), sink),
            Statement::Explain(inner, form) => self.explain(inner, *form, sink),
            Statement::Insert(change) | Statement::Update(change) | Statement::Delete(change) => {
                self.plan_and_run(change, sink)
            }
            Statement::Other(other) => other::run_by_word(self, other, sink),
        }
    }

    fn explain(
        &mut self,
        statement: &Statement,
        form: ExplainForm,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let plan = match statement {
            Statement::Query(query) => {
                self.plan_parsed(&ast::Statement::Query(query.clone()), &[], vec![])?
            }
            Statement::Insert(change) | Statement::Update(change) | Statement::Delete(change) => {
                self.plan_parsed(change, &[], vec![])?
            }
            _ => return Err(SqlError::not_supported("EXPLAIN of this statement")),
        };
        self.access.check(plan.needs())?;
        let plan = match &plan {
            Plan::Query(plan) => plan,
            Plan::Change(change) => match change.reads_by() {
                Some(plan) => plan,
                None => {
                    let (change, subqueries) = change.explained()?;
                    return crate::plan::explain_change::send(change, subqueries, form, sink);
                }
            },
        };
        if !plan.dependencies.is_empty() {
            self.note_uses(plan.dependencies.iter().map(|used| used.in_mode(Mode::Read)));
        }
        crate::plan::explain::send(plan, form, sink)
    }
}

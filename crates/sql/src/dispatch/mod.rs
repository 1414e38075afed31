//! From a statement to whoever runs it.
//!
//! SELECT and what is built of it run through plans; every other kind has a function of its own that takes the session,
//! the statement and the sink. To add one: give it a variant of [`Statement`] (or take it out of [`Statement::Other`] by
//! its first word) and an arm in [`Session::run_statement`].

use crate::expr::{SlotKind, Slots};
use crate::plan::plan::StatementPlan;
use crate::session::PreparedText;
use crate::session::plans::Plan;
use crate::statements::dml;
use crate::statements::prepared;
use crate::statements::query::Literals;
use crate::status::Counter;
use crate::text::parse::{self, ExplainForm, Statement};
use crate::text::{Literal, Scan, ScanEnd};
use crate::{ColumnMeta, Completion, ErrorKind, Prepared, ResultSink, Session, SqlError};
use sqlparser::ast;
use std::sync::Arc;
use types::ValueRef;

impl Session {
    pub(crate) fn run_text(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        self.begin_statement();
        let result = self.run_any_text(sql, sink);
        if let Err(error) = &result {
            self.state.warnings.error(error);
        }
        result
    }

    /// A KILL QUERY that came too late is forgotten.
    fn begin_statement(&mut self) {
        self.before = self.counted();
        if self.interrupt.begin_statement()
            && let Some(engine) = &self.engine
        {
            engine.clear_interrupt();
        }
    }

    fn run_any_text(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        if let Some(result) = self.try_plain_insert(sql, &[], sink) {
            return result;
        }
        if Session::is_planned(sql)
            && let Some(result) = self.run_planned(sql, sink)
        {
            return result;
        }
        let text = parse::to_text(sql)?;
        let statements = parse::split(&text);
        if statements.is_empty() {
            return Err(SqlError::empty_query());
        }
        if statements.len() > 1 && !self.multi_statements {
            return Err(parse::error_at(&text, parse::offset_in(&text, statements[1])));
        }
        for statement in statements {
            self.run_one(statement, sink)?;
        }
        Ok(())
    }

    /// Runs a statement whose executable comments are opened and that has no other behind it.
    fn run_one(&mut self, text: &str, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let text = parse::skip_comments(text);
        if let Some(result) = self.try_plain_insert(text.as_bytes(), &[], sink) {
            return result;
        }
        if Session::is_planned(text.as_bytes())
            && let Some(result) = self.run_planned(text.as_bytes(), sink)
        {
            return result;
        }
        let statement = parse::parse(text)?;
        self.run_statement(&statement, sink)
    }

    fn run_planned(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> Option<Result<(), SqlError>> {
        // SHOW WARNINGS looks back at the last statement; a query starts with a clean list.
        self.state.warnings.clear();
        let mut result = self.run_by_shape(sql, sink);
        for _ in 0..dml::DEFINITION_RETRIES {
            if sink.is_in_rows() || !matches!(&result, Some(Err(error)) if dml::is_definition_changed(error))
            {
                break;
            }
            self.state.warnings.clear();
            result = self.run_by_shape(sql, sink);
        }
        result
    }

    pub(crate) fn prepare_text(&mut self, sql: &[u8]) -> Result<Prepared, SqlError> {
        let text = parse::to_text(sql)?;
        let statements = parse::split(&text);
        let text = match statements.as_slice() {
            [] => return Err(SqlError::empty_query()),
            [statement] => parse::skip_comments(statement).to_string(),
            [_, second, ..] => return Err(parse::error_at(&text, parse::offset_in(&text, second))),
        };
        let params = u16::try_from(parse::count_placeholders(&text)).map_err(|_| {
            SqlError::new(ErrorKind::TooManyPlaceholders, "Prepared statement contains too many placeholders")
        })?;
        let mut prepared = PreparedText {
            text: text.into_bytes(),
            params,
            database: self.state.database.clone(),
            scan: Scan::default(),
            is_scanned: false,
            kinds: vec![],
            plan: None,
        };
        let columns = self.prepare_plan(&mut prepared)?;
        self.prepared_last = self.prepared_last.wrapping_add(1);
        let id = self.prepared_last;
        self.prepared.insert(id, Some(Box::new(prepared)));
        self.counters.set_prepared(self.prepared.len());
        Ok(Prepared { id, params, columns })
    }

    /// Scans and plans a statement that is being prepared, as if its parameters were integers; gives its columns.
    fn prepare_plan(&mut self, prepared: &mut PreparedText) -> Result<Arc<[ColumnMeta]>, SqlError> {
        let none: Arc<[ColumnMeta]> = Arc::from([]);
        let text = String::from_utf8_lossy(&prepared.text).into_owned();
        if !Session::is_planned(&prepared.text) {
            if let Statement::Other(other) = parse::parse(&text)? {
                prepared::check_preparable(&other)?;
                crate::statements::check_word(&other)?;
            }
            return Ok(none);
        }
        self.key_prefix();
        let scanned = prepared.scan.scan(&self.prefix, &prepared.text) == ScanEnd::Whole;
        if !scanned {
            parse::parse(&text)?;
            return Ok(none);
        }
        prepared.is_scanned = true;
        let kinds: Vec<SlotKind> =
            prepared.scan.slots.iter().map(|slot| slot.kind.unwrap_or(SlotKind::Int)).collect();
        let mut bound = prepared.scan.clone();
        bound.bind_kinds(&kinds);
        let mut kept = self.kept.take().unwrap_or_default();
        let plan = self.plan_scan(&bound, &prepared.text, &mut kept.plans);
        self.kept = Some(kept);
        let plan = match plan {
            // An error in the shape's text is told by the text that the client sent.
            Err(error) if error.kind == ErrorKind::Syntax => {
                parse::parse(&text)?;
                return Err(error);
            }
            plan => plan?,
        };
        let columns = match &*plan {
            Plan::Query(plan) => self.prepared_columns(plan, prepared),
            Plan::Change(_) => none,
        };
        prepared.kinds = kinds;
        prepared.plan = Some(plan);
        Ok(columns)
    }

    fn prepared_columns(&self, plan: &StatementPlan, prepared: &PreparedText) -> Arc<[ColumnMeta]> {
        if plan.query.names.is_empty() {
            return plan.query.columns.clone();
        }
        let scan = &prepared.scan;
        let value = |literal: &Literal| literal.value(&prepared.text, &scan.unescaped, &[]);
        let values: Vec<ValueRef<'_>> = scan.literals.iter().map(value).collect();
        let slots = Slots::new(&values, &scan.starts);
        let literals = Literals { text: &prepared.text, shapes: &scan.slots, slots };
        let literal = |slot: usize, alone: bool| literals.text_of(slot, alone);
        Arc::from(crate::exec::named_columns(&plan.query, &literal))
    }

    pub(crate) fn execute_prepared(
        &mut self,
        id: u32,
        params: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.begin_statement();
        let result = self.run_prepared_statement(id, params, "mysqld_stmt_execute", sink);
        if let Err(error) = &result {
            self.state.warnings.error(error);
        }
        result
    }

    /// Runs a prepared statement; `command` is who asks, for messages.
    pub(crate) fn run_prepared_statement(
        &mut self,
        id: u32,
        params: &[ValueRef<'_>],
        command: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let Some(mut statement) = self.prepared.get_mut(&id).and_then(Option::take) else {
            return Err(SqlError::unknown_statement(id, command));
        };
        let result = if params.len() != usize::from(statement.params) {
            self.state.warnings.clear();
            Err(SqlError::wrong_arguments(command))
        } else if self.state.database == statement.database {
            self.execute_statement(&mut statement, params, sink)
        } else {
            let database = std::mem::replace(&mut self.state.database, statement.database.clone());
            let result = self.execute_statement(&mut statement, params, sink);
            self.state.database = database;
            result
        };
        // It may have been closed meanwhile, by a reset of the session.
        if let Some(place) = self.prepared.get_mut(&id) {
            *place = Some(statement);
        }
        result
    }

    fn execute_statement(
        &mut self,
        statement: &mut PreparedText,
        params: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        if let Some(result) = self.try_plain_insert(&statement.text, params, sink) {
            return result;
        }
        if statement.is_scanned {
            self.state.warnings.clear();
        }
        if let Some(mut result) = self.run_prepared(statement, params, sink) {
            for _ in 0..dml::DEFINITION_RETRIES {
                if sink.is_in_rows() || !matches!(&result, Err(error) if dml::is_definition_changed(error)) {
                    break;
                }
                self.state.warnings.clear();
                result = self.run_prepared(statement, params, sink).unwrap_or(result);
            }
            return result;
        }
        let text = String::from_utf8_lossy(&statement.text);
        let statement = parse::parse(&parse::fill_placeholders(&text, params))?;
        self.run_statement(&statement, sink)
    }

    /// Runs one parsed statement.
    pub(crate) fn run_statement(
        &mut self,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        if !matches!(statement, Statement::Other(other) if crate::statements::keeps_warnings(other)) {
            self.state.warnings.clear();
        }
        match statement {
            Statement::Use(name) => {
                self.counters.add(Counter::ComChangeDb, 1);
                self.use_database(name)?;
                sink.end(&Completion::default())
            }
            Statement::Query(query) => self.run_parsed(&ast::Statement::Query(query.clone()), sink),
            Statement::Explain(inner, form) => self.explain(inner, *form, sink),
            Statement::Insert(change) | Statement::Update(change) | Statement::Delete(change) => {
                self.run_parsed(change, sink)
            }
            Statement::Other(other) => crate::statements::run(self, other, sink),
        }
    }

    fn explain(
        &mut self,
        statement: &Statement,
        form: ExplainForm,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        match statement {
            Statement::Query(query) => {
                let plan = self.plan_statement(&ast::Statement::Query(query.clone()), &[], vec![])?;
                match plan {
                    Plan::Query(plan) => crate::plan::explain::send(&plan, form, sink),
                    Plan::Change(_) => Err(SqlError::internal("a query without a query's plan")),
                }
            }
            _ => Err(SqlError::not_supported("EXPLAIN of a statement that changes rows")),
        }
    }
}

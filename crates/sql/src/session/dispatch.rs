//! From a statement to whoever runs it.
//!
//! SELECT and what is built of it run through plans; every other kind has a function of its own that takes the session,
//! the statement and the sink. To add one: give it a variant of [`Statement`] (or take it out of [`Statement::Other`] by
//! its first word) and an arm in [`Session::run_statement`].

use super::{Prepared, PreparedText, Session};
use crate::parse::{self, Statement};
use crate::{Completion, ResultSink, SqlError};
use std::sync::Arc;
use types::ValueRef;

impl Session {
    pub(super) fn run_text(&mut self, sql: &[u8], sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        if let Some(result) = self.try_plain_insert(sql, &[], sink) {
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
            let statement = parse::parse(statement)?;
            self.run_statement(&statement, &[], sink)?;
        }
        Ok(())
    }

    pub(super) fn prepare_text(&mut self, sql: &[u8]) -> Result<Prepared, SqlError> {
        let text = parse::to_text(sql)?;
        parse::parse(&text)?;
        let params = parse::count_placeholders(&text);
        let params = u16::try_from(params).map_err(|_| {
            SqlError::new(1390, b"HY000", "Prepared statement contains too many placeholders")
        })?;
        self.prepared_last = self.prepared_last.wrapping_add(1);
        let id = self.prepared_last;
        self.prepared.insert(id, PreparedText { text: text.into_owned().into_bytes(), params });
        Ok(Prepared { id, params, columns: Arc::from([]) })
    }

    pub(super) fn execute_prepared(
        &mut self,
        id: u32,
        params: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let Some(statement) = self.prepared.get(&id) else {
            return Err(SqlError::unknown_statement(id, "mysqld_stmt_execute"));
        };
        if params.len() != usize::from(statement.params) {
            return Err(SqlError::wrong_arguments("mysqld_stmt_execute"));
        }
        let text = statement.text.clone();
        if let Some(result) = self.try_plain_insert(&text, params, sink) {
            return result;
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let statement = parse::parse(&text)?;
        self.run_statement(&statement, params, sink)
    }

    /// Runs one parsed statement.
    pub(crate) fn run_statement(
        &mut self,
        statement: &Statement,
        _params: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        match statement {
            Statement::Use(name) => {
                self.use_database(name)?;
                sink.end(&Completion::default())
            }
            Statement::Query(_) => Err(SqlError::not_supported("SELECT")),
            Statement::Explain(_) => Err(SqlError::not_supported("EXPLAIN")),
            Statement::Insert(_) => Err(SqlError::not_supported("INSERT")),
            Statement::Update(_) => Err(SqlError::not_supported("UPDATE")),
            Statement::Delete(_) => Err(SqlError::not_supported("DELETE")),
            Statement::Other(other) => crate::statements::run(self, other, sink),
        }
    }
}

//! COM_STMT_BULK_EXECUTE: a prepared statement runs with many rows of parameters.
//!
//! As in MariaDB, INSERT and REPLACE are one statement with all of the rows. UPDATE and DELETE are a
//! statement a row, and an error leaves what the rows before it did. The client gets one answer, with sums.

use crate::plan::object_name;
use crate::session::PreparedText;
use crate::session::bulk::{Bulk, BulkParam, ParameterRows};
use crate::status::Counter;
use crate::text::parse::{self, Statement};
use crate::{Completion, ErrorKind, ResultSink, Session, SqlError};
use sqlparser::ast;
use types::ValueRef;

/// Stand for parameters without a value, until the text has been parsed.
const DEFAULT_MARK: &str = "\u{1}default";
const IGNORE_MARK: &str = "\u{1}ignore";

const COMMAND: &str = "mysqld_stmt_bulk_execute";

/// How a statement runs with rows of parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// INSERT and REPLACE.
    AllRows,
    Update,
    Delete,
}

impl Session {
    /// Runs a prepared statement once for each row of parameters. Each row has as many as it takes.
    ///
    /// # Errors
    /// 1243 for an unknown id, 1295 for a statement that takes no rows of parameters, 4032 for a default in a
    /// place that is no column's, and the statement's own errors.
    pub fn execute_bulk<'p>(
        &mut self,
        id: u32,
        rows: &mut dyn ParameterRows<'p>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.counters.add(Counter::Questions, 1);
        self.counters.add(Counter::ComStmtExecute, 1);
        self.contain(|session| {
            let result = session
                .with_prepared(id, COMMAND, |session, statement| session.run_bulk(statement, rows, sink));
            session.bulk = None;
            result
        })
    }

    fn run_bulk<'p>(
        &mut self,
        statement: &mut PreparedText,
        rows: &mut dyn ParameterRows<'p>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.check_bounds(&statement.text)?;
        if statement.params == 0 {
            return Err(not_preparable());
        }
        if let Some(result) = self.try_plain_insert_of_rows(&statement.text, statement.mode, rows, sink) {
            return result;
        }
        let form = form(statement)?;
        match form {
            Form::AllRows => self.in_one_statement(|session| session.run_rows(statement, rows, sink))?,
            Form::Update | Form::Delete => self.run_rows(statement, rows, sink)?,
        }
        self.end_bulk(form, sink)
    }

    /// Runs `body`, which runs statements: either all of their changes are kept or none.
    fn in_one_statement(
        &mut self,
        body: impl FnOnce(&mut Session) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let is_alone = self.variables.common.autocommit && !self.state.transaction.open;
        if !self.state.transaction.open {
            self.begin_transaction(None)?;
        }
        let savepoint = self.engine()?.savepoint();
        let before = self.variables.last_insert_id;
        let result = match body(self) {
            Ok(()) if is_alone => self.end_transaction(true),
            result => result,
        };
        if result.is_err() {
            self.variables.last_insert_id = before;
        }
        // A deadlock has ended the transaction already.
        if result.is_err() && self.state.transaction.open {
            match is_alone {
                true => self.end_transaction(false)?,
                false => self.engine()?.roll_back_to(savepoint)?,
            }
        }
        result
    }

    /// Runs the statement with each row. What they did is in the totals.
    fn run_rows<'p>(
        &mut self,
        statement: &mut PreparedText,
        rows: &mut dyn ParameterRows<'p>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let mut warnings = self.state.warnings.clone();
        let mut row = Vec::new();
        let mut values = Vec::new();
        self.bulk = Some(Bulk::default());
        rows.rewind();
        let mut result = Ok(());
        while result.is_ok() && rows.next_row(&mut row) {
            values.clear();
            values.extend(row.iter().map(|param| match param {
                BulkParam::Value(value) => *value,
                BulkParam::Default | BulkParam::Ignore => ValueRef::Null,
            }));
            let are_values = row.iter().all(|param| matches!(param, BulkParam::Value(_)));
            result = self.interrupt.check().and_then(|()| match are_values {
                true => self.run_prepared(statement, &values, sink),
                false => self.run_with_defaults(statement, &row, &values, sink),
            });
            warnings.append(&mut self.state.warnings);
        }
        self.state.warnings = warnings;
        if let Some(bulk) = &self.bulk
            && bulk.inserted.is_generated
        {
            self.variables.last_insert_id = bulk.inserted.insert_id;
        }
        result
    }

    /// Runs the statement with parameters that are not all values.
    fn run_with_defaults(
        &mut self,
        statement: &PreparedText,
        row: &[BulkParam<'_>],
        values: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let text = String::from_utf8_lossy(&statement.text);
        let mark = |at: usize| match row.get(at) {
            Some(BulkParam::Default) => Some(DEFAULT_MARK),
            Some(BulkParam::Ignore) => Some(IGNORE_MARK),
            Some(BulkParam::Value(_)) | None => None,
        };
        let marks = (0..row.len()).filter(|at| mark(*at).is_some()).count();
        let filled = parse::fill_placeholders_but(&text, statement.mode, values, mark);
        let mut parsed = parse::parse(&filled, statement.mode)?;
        if unmark(&mut parsed) < marks {
            let text = "Default/ignore value is not supported for such parameter usage";
            return Err(SqlError::new(ErrorKind::InvalidDefaultParameter, text));
        }
        self.run_parsed(&parsed, sink)
    }

    /// Sends the sums.
    fn end_bulk(&mut self, form: Form, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
        let bulk = self.bulk.take().unwrap_or_default();
        if form == Form::AllRows {
            return self.end_insert(&bulk.inserted, sink);
        }
        let warnings = self.state.warnings.count_u16();
        let info = match form {
            Form::Update => {
                format!("Rows matched: {}  Changed: {}  Warnings: {warnings}", bulk.matched, bulk.changed)
            }
            Form::AllRows | Form::Delete => String::new(),
        };
        self.state.row_count = bulk.inserted.affected as i64;
        sink.end(&Completion { affected_rows: bulk.inserted.affected, last_insert_id: 0, warnings, info })
    }
}

fn not_preparable() -> SqlError {
    let text = "This command is not supported in the prepared statement protocol yet";
    SqlError::new(ErrorKind::NotPreparable, text)
}

/// How the statement runs with rows of parameters.
///
/// # Errors
/// 1295 if it does not.
fn form(statement: &PreparedText) -> Result<Form, SqlError> {
    let text = String::from_utf8_lossy(&statement.text);
    match parse::parse(&text, statement.mode)? {
        Statement::Insert(insert) => match *insert {
            ast::Statement::Insert(insert) if inserts_rows(&insert) => Ok(Form::AllRows),
            _ => Err(not_preparable()),
        },
        Statement::Update(_) => Ok(Form::Update),
        Statement::Delete(delete) => match *delete {
            ast::Statement::Delete(delete) if delete.tables.is_empty() && delete.using.is_none() => {
                Ok(Form::Delete)
            }
            _ => Err(not_preparable()),
        },
        _ => Err(not_preparable()),
    }
}

/// True for INSERT ... VALUES and INSERT ... SET, false for INSERT ... SELECT.
fn inserts_rows(insert: &ast::Insert) -> bool {
    insert.source.as_ref().is_none_or(|source| matches!(*source.body, ast::SetExpr::Values(_)))
}

/// Puts defaults, or the column itself, in the place of the marks that are the whole value of a column.
/// Returns how many there were.
fn unmark(statement: &mut Statement) -> usize {
    let (Statement::Insert(change) | Statement::Update(change)) = statement else { return 0 };
    let mut found = 0;
    match &mut **change {
        ast::Statement::Insert(insert) => {
            for assignment in &mut insert.assignments {
                found += usize::from(unmark_value(&mut assignment.value, None));
            }
            if let Some(source) = &mut insert.source
                && let ast::SetExpr::Values(values) = &mut *source.body
            {
                for value in values.rows.iter_mut().flat_map(|row| &mut row.content) {
                    found += usize::from(unmark_value(value, None));
                }
            }
        }
        ast::Statement::Update(update) => {
            for ast::Assignment { target, value } in &mut update.assignments {
                found += usize::from(unmark_value(value, Some(target)));
            }
        }
        _ => {}
    }
    found
}

/// False if the value is no mark. A column that is ignored keeps its value.
fn unmark_value(value: &mut ast::Expr, target: Option<&ast::AssignmentTarget>) -> bool {
    let ast::Expr::Identifier(name) = &*value else { return false };
    let mark = name.value.as_str();
    *value = match (mark, target) {
        (IGNORE_MARK, Some(ast::AssignmentTarget::ColumnName(column))) => {
            let quoted = |name| ast::Ident::with_quote('`', name);
            ast::Expr::CompoundIdentifier(object_name(column).into_iter().map(quoted).collect())
        }
        (DEFAULT_MARK | IGNORE_MARK, _) => ast::Expr::Identifier(ast::Ident::new("DEFAULT")),
        _ => return false,
    };
    true
}

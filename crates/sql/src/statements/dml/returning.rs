//! RETURNING: the rows that a statement has inserted or deleted, as its result.
//!
//! They are kept until all of them have been written, in a file if they are many: a statement that fails has
//! no result.

use crate::exec::{named_columns, result_row, send_rows};
use crate::expr::{Context, Part, Row, Slots};
use crate::plan::describe::Running;
use crate::plan::names::LiteralText;
use crate::plan::returning::Returning;
use crate::session::environment::SessionEnvironment;
use crate::spill::{Spool, Spooled, Workspace};
use crate::status::Counter;
use crate::{Completion, ResultSink, Session, SqlError};
use types::RowView;

/// The result of a statement, while it is made.
pub(super) struct Returned<'r> {
    returning: &'r Returning,
    rows: Spool,
    row: Vec<u8>,
}

impl<'r> Returned<'r> {
    pub(super) fn new(returning: &'r Returning) -> Returned<'r> {
        Returned { returning, rows: Spool::default(), row: Vec::new() }
    }

    /// Adds what is returned of a row of the table.
    ///
    /// # Errors
    /// Of the expressions, and of keeping rows.
    pub(super) fn add(
        &mut self,
        image: RowView<'_>,
        context: &Context<'_>,
        workspace: Workspace<'_>,
    ) -> Result<(), SqlError> {
        self.row.clear();
        let part = [Part::Image(image)];
        result_row(self.returning.select()?, &Row(&part), context, &mut self.row)?;
        self.rows.push(&[], &self.row, workspace)
    }

    /// # Errors
    /// Of keeping rows.
    pub(super) fn finish(self) -> Result<Spooled, SqlError> {
        self.rows.finish()
    }
}

/// Sends a result, and its end.
///
/// # Errors
/// Those of the client's connection, and of reading rows.
pub(super) fn send(
    session: &mut Session,
    returning: &Returning,
    rows: Spooled,
    (slots, literal_text): (Slots<'_>, &LiteralText<'_>),
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if session.state.transaction.open {
        // It may have begun just now.
        sink.status(session.status_flags(), Vec::new());
    }
    let columns = {
        let environment = SessionEnvironment::new(session);
        let run = Running { slots, literal_text, subqueries: &[], environment: Some(&environment) };
        named_columns(&returning.query, run)
    };
    sink.columns(&columns)?;
    let sent = send_rows(&returning.query, rows, sink)?;
    session.counters.add(Counter::RowsSent, sent);
    session.state.found_rows = sent;
    session.state.row_count = -1;
    sink.end(&Completion { warnings: session.state.warnings.count_u16(), ..Completion::default() })
}

//! `SET STATEMENT variable = value, ... FOR statement`: the variables have the values while the statement
//! runs.

use crate::statements::set::StatementVariables;
use crate::text::parse::{self, Words};
use crate::{ResultSink, Session, SqlError};

/// SET STATEMENT, behind these words. The variables go back to what they were, also behind an error.
pub(super) fn set_statement(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut variables = StatementVariables::new(session);
    loop {
        variables.read(session, words)?;
        words.expect("FOR")?;
        // One in another is read here, because recursion would need stack for each. As in MariaDB, the inner
        // one counts alone.
        if !words.accept_all(&["SET", "STATEMENT"]) {
            break;
        }
        variables.forget();
    }
    let text = words.rest();
    if text.trim().is_empty() {
        return Err(words.error());
    }
    // The whole text is read by the rules that hold before.
    let mode = session.lexical();
    let statement = parse::parse(text, mode)?;
    let run = |session: &mut Session, sink: &mut dyn ResultSink| match session.lexical() == mode {
        true => session.run_statement_text(text, sink),
        false => session.run_parsed(&statement, sink),
    };
    let micros = session.variables.common.statement_micros;
    let set = variables.set(session);
    let result = set.and_then(|()| match session.variables.common.statement_micros {
        now if now != micros => session.run_for(now, |session| run(session, sink)),
        _ => run(session, sink),
    });
    variables.restore(session)?;
    if micros > 0 {
        // Statements behind this one in the client's text are limited again.
        session.instance.timer.begin(&session.interrupt, &mut session.is_timed, micros)?;
    }
    result
}

//! `--init-file=FILE`: statements that run when the server starts, before it takes connections.
//!
//! Each statement ends with a semicolon. As in MariaDB, a server whose file cannot be read does not start. A
//! statement that fails or lacks its semicolon ends the file: the error is logged, here with its line, and
//! the server starts without running the rest. The same holds for a comment without an end. An error that a
//! statement reports as a row of its result (`CACHE INDEX` of a missing table) is logged, and the file goes
//! on.
//!
//! MariaDB requires each semicolon at the end of a line, and it knows comments only at the beginning of
//! lines. DELIMITER is a command of the client: `DELIMITER ;` has no effect here, and another delimiter is an
//! error.

use crate::log::Log;
use base::sync::Arc;
use sql::{ColumnMeta, Completion, Instance, ResultSink, Session, SqlError, parse};
use std::fmt::Display;
use std::path::PathBuf;
use types::ValueRef;

/// The text of an init file, and its path.
#[derive(Debug)]
pub(crate) struct InitFile {
    path: PathBuf,
    text: String,
}

impl InitFile {
    pub(crate) fn read(path: PathBuf) -> Result<InitFile, String> {
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(InitFile { path, text }),
            Err(error) => Err(format!("--init-file: cannot read {}: {error}", path.display())),
        }
    }

    /// Runs the statements in a session of their own, as a user with all rights.
    pub(crate) fn run(&self, instance: &Arc<Instance>, log: &Log) {
        let mut session = Session::new(instance.clone(), 0, "root", "localhost");
        let mut rest = self.text.as_str();
        // A statement may change how the next one is read.
        while let Some(statement) = parse::take_statement(&mut rest, session.lexical()) {
            let mut answer = Answer::default();
            match self.run_one(&mut session, statement, &mut answer) {
                Ok(()) => answer.errors.iter().for_each(|error| log.error(&self.at(statement, error))),
                Err(error) => {
                    let error = format!("{error}; the statements behind it are not run");
                    log.error(&self.at(statement, error));
                    return;
                }
            }
        }
        if let Some(place) = parse::open_comment(&self.text, session.lexical()) {
            log.error(&self.at_place(place, "a comment begins that does not end; nothing behind it is run"));
        }
    }

    fn run_one(
        &self,
        session: &mut Session,
        statement: &str,
        answer: &mut Answer,
    ) -> Result<(), Box<dyn Display>> {
        let end = parse::offset_in(&self.text, statement) + statement.len();
        if !self.text[end..].trim_start().starts_with(';') {
            return Err(Box::new("the last statement does not end with a semicolon, and is not run"));
        }
        let mut words = parse::skip_comments(statement).split_whitespace();
        if words.next().is_some_and(|word| word.eq_ignore_ascii_case("DELIMITER")) {
            return match words.next() {
                None => Ok(()),
                Some(_) => Err(Box::new("DELIMITER is not supported here: statements end with a semicolon")),
            };
        }
        session.query(statement.as_bytes(), answer).map_err(|error| Box::new(error) as Box<dyn Display>)
    }

    /// A line for the log: the place of the statement, and what is wrong with it.
    fn at(&self, statement: &str, what: impl Display) -> String {
        self.at_place(parse::offset_in(&self.text, parse::skip_comments(statement)), what)
    }

    fn at_place(&self, place: usize, what: impl Display) -> String {
        let line = self.text[..place].matches('\n').count() + 1;
        format!("init file {}, line {line}: {what}", self.path.display())
    }
}

/// Takes results, and keeps only the errors in the rows of administrative statements.
#[derive(Default)]
struct Answer {
    /// The columns with the table, the kind of the message and its text. `None` if the result has other
    /// columns.
    form: Option<[usize; 3]>,
    errors: Vec<String>,
}

impl ResultSink for Answer {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        self.form = place("Table").zip(place("Msg_type")).zip(place("Msg_text")).map(|((a, b), c)| [a, b, c]);
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let text = |at: usize| match row.get(at) {
            Some(ValueRef::Text(text)) => String::from_utf8_lossy(text),
            _ => "".into(),
        };
        if let Some([table, kind, message]) = self.form
            && text(kind).eq_ignore_ascii_case("error")
        {
            self.errors.push(format!("{}: {}", text(table), text(message)));
        }
        Ok(())
    }

    fn end(&mut self, _completion: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

//! `--init-file=FILE`: statements that run when the server starts, before it takes connections.
//!
//! As in MariaDB a file that cannot be read keeps the server from starting, and a statement that fails ends the file: the error is
//! logged, with its line here, and the start goes on without the statements behind it.

use crate::log::Log;
use base::sync::Arc;
use sql::{ColumnMeta, Completion, Instance, ResultSink, Session, SqlError, parse};
use std::path::PathBuf;
use types::ValueRef;

/// The text of an init file, and where it was read.
#[derive(Debug)]
pub(crate) struct InitFile {
    path: PathBuf,
    text: String,
}

impl InitFile {
    pub fn read(path: PathBuf) -> Result<InitFile, String> {
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(InitFile { path, text }),
            Err(error) => Err(format!("--init-file: cannot read {}: {error}", path.display())),
        }
    }

    /// Runs the statements as a user who may do everything, in a session of their own.
    pub fn run(&self, instance: &Arc<Instance>, log: &Log) {
        let mut session = Session::new(instance.clone(), 0, "root", "localhost");
        for statement in parse::split(&self.text) {
            if let Err(error) = session.query(statement.as_bytes(), &mut Nobody) {
                let place = parse::offset_in(&self.text, parse::skip_comments(statement));
                let line = self.text[..place].matches('\n').count() + 1;
                log.error(&format!(
                    "init file {}, line {line}: {error}; the statements behind it are not run",
                    self.path.display()
                ));
                return;
            }
        }
    }
}

/// Takes results that nobody reads.
struct Nobody;

impl ResultSink for Nobody {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> Result<(), SqlError> {
        Ok(())
    }

    fn row(&mut self, _row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }

    fn end(&mut self, _completion: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

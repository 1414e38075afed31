//! The state of prepared statements that a connection keeps. The session keeps the rest.

use super::cells::ResultCharset;
use base::sync::Arc;
use sql::{ColumnMeta, ErrorKind, KeptRows, SqlError};
use std::collections::HashMap;
use wire::command::LAST_PREPARED;
use wire::value::WireType;

/// The prepared statements of a connection, by id.
#[derive(Debug, Default)]
pub(super) struct Statements {
    by_id: HashMap<u32, Statement>,
    /// The one that was prepared last. `None` if that failed.
    last: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Statement {
    /// How many parameters it takes.
    pub params: usize,
    /// The types that the last execution sent. Empty before the first.
    pub types: Vec<WireType>,
    /// Parameters that were sent ahead of the next execution.
    pub long_data: LongData,
    /// The text, for the process list.
    pub text: Arc<[u8]>,
    /// The column definitions that the client keeps, as far as the server knows.
    pub kept: Option<KeptDefinitions>,
    /// The rows of the last execution that the client has not fetched yet, if it asked for a cursor.
    pub cursor: Option<KeptRows>,
}

/// The column definitions that were in the answer to COM_STMT_PREPARE. Clients with CACHE_METADATA keep them,
/// and the server does not send the same ones again.
#[derive(Debug)]
pub(super) struct KeptDefinitions {
    pub columns: Arc<[ColumnMeta]>,
    pub charset: ResultCharset,
}

impl KeptDefinitions {
    /// True if they are the definitions of these columns.
    pub(super) fn are(&self, columns: &[ColumnMeta], charset: ResultCharset) -> bool {
        // Usually the plan of the prepare is the one that runs, so both are the same slice of memory.
        self.charset == charset && (std::ptr::eq(&*self.columns, columns) || *self.columns == *columns)
    }
}

/// Values sent in parts by COM_STMT_SEND_LONG_DATA.
#[derive(Debug, Default)]
pub(super) struct LongData {
    parts: Vec<(usize, Vec<u8>)>,
    bytes: usize,
    /// That command has no answer, so the next execution reports what was wrong.
    error: Option<SqlError>,
}

impl LongData {
    pub(super) fn append(&mut self, param: usize, params: usize, data: &[u8], bytes_max: usize) {
        if param >= params {
            self.error = Some(SqlError::new(
                ErrorKind::WrongArguments,
                "Incorrect arguments to mysqld_stmt_send_long_data",
            ));
            return;
        }
        self.bytes += data.len();
        if self.bytes > bytes_max {
            let message = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than \
                           'max_allowed_packet' bytes";
            self.error = Some(SqlError::new(ErrorKind::Unknown, message));
            self.parts.clear();
            return;
        }
        match self.parts.iter_mut().find(|(at, _)| *at == param) {
            Some((_, value)) => value.extend_from_slice(data),
            None => self.parts.push((param, data.to_vec())),
        }
    }

    pub(super) fn get(&self, param: usize) -> Option<&[u8]> {
        self.parts.iter().find(|(at, _)| *at == param).map(|(_, value)| &value[..])
    }

    pub(super) fn take_error(&mut self) -> Option<SqlError> {
        self.error.take()
    }

    pub(super) fn clear(&mut self) {
        if self.bytes > 0 || self.error.is_some() {
            *self = LongData::default();
        }
    }
}

impl Statements {
    pub(super) fn add(&mut self, id: u32, params: usize, text: &[u8], kept: Option<KeptDefinitions>) {
        let statement = Statement {
            params,
            types: Vec::new(),
            long_data: LongData::default(),
            text: Arc::from(text),
            kept,
            cursor: None,
        };
        self.by_id.insert(id, statement);
        self.last = Some(id);
    }

    /// A statement could not be prepared.
    pub(super) fn forget_last(&mut self) {
        self.last = None;
    }

    /// The number of the statement that a client means.
    pub(super) fn number(&self, id: u32) -> u32 {
        match id {
            LAST_PREPARED => self.last.unwrap_or(LAST_PREPARED),
            id => id,
        }
    }

    pub(super) fn find(&self, id: u32) -> Option<&Statement> {
        self.by_id.get(&self.number(id))
    }

    /// # Errors
    /// 1243 if there is no such statement. `what` names the call in the message, as MySQL does.
    pub(super) fn get(&mut self, id: u32, what: &str) -> Result<&mut Statement, SqlError> {
        self.by_id.get_mut(&self.number(id)).ok_or_else(|| {
            let message = format!("Unknown prepared statement handler ({id}) given to {what}");
            SqlError::new(ErrorKind::UnknownStatementHandler, message)
        })
    }

    /// Forgets a statement, and returns its number.
    pub(super) fn remove(&mut self, id: u32) -> u32 {
        let id = self.number(id);
        self.by_id.remove(&id);
        if self.last == Some(id) {
            self.last = None;
        }
        id
    }

    pub(super) fn clear(&mut self) {
        *self = Statements::default();
    }
}

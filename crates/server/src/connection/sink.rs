//! Turns the rows of a statement into packets.

use super::cells::{self, Cell, ResultCharset};
use super::changes::Changes;
use super::client_file::{ClientFile, FileLimits};
use super::columns;
use super::statements::KeptDefinitions;
use crate::registry::Entry;
use crate::stream::Stream;
use sql::host::Interrupt;
use sql::{
    Change, ColumnMeta, Completion, ErrorKind, FileParts, KeptRows, Progress, ResultSink, RowKeeper, Session,
    SqlError,
};
use std::io;
use types::ValueRef;
use wire::constants::status;
use wire::response::{self, Definitions, OkFields, OkHeader, ProgressReport};
use wire::row::BinaryRow;
use wire::{PacketWriter, put};

/// Rows are sent when this many bytes of them have been collected. A smaller result is sent with one write.
pub(super) const FLUSH_BYTES: usize = 64 << 10;

/// Memory that a connection keeps from statement to statement.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    cells: Vec<Cell>,
    digits: String,
    /// Empty between executions. Only the memory is kept.
    params: Vec<ValueRef<'static>>,
}

impl Scratch {
    /// The list for a statement's parameters.
    pub(super) fn take_params<'a>(&mut self) -> Vec<ValueRef<'a>> {
        std::mem::take(&mut self.params)
    }

    /// Takes the list back and clears it. `collect` reuses the memory of the empty vector.
    pub(super) fn keep_params(&mut self, mut params: Vec<ValueRef<'_>>) {
        params.clear();
        self.params = params.into_iter().map(|_| ValueRef::Null).collect();
    }
}

/// A client that has more than this many bytes still to be sent is not told of progress.
const PROGRESS_BYTES_MAX: usize = 4 << 10;

/// How rows are sent: as text for COM_QUERY, binary for COM_STMT_EXECUTE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    Text,
    Binary,
}

/// How the client wants its results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub encoding: Encoding,
    pub deprecate_eof: bool,
    /// Results say whether they have column definitions.
    pub cache_metadata: bool,
    pub charset: ResultCharset,
    /// The session's flags before the statement, or behind the statement before in the same text.
    pub status: u16,
    /// The client wants to know how far long statements are.
    pub progress: bool,
    /// How a file of the client is read. `None` if the client sends no files.
    pub files: Option<FileLimits>,
}

/// Writes the results of one command.
pub(super) struct WireSink<'c> {
    pub(super) writer: &'c mut PacketWriter,
    pub(super) stream: &'c Stream,
    pub(super) entry: &'c Entry,
    pub(super) interrupt: &'c Interrupt,
    scratch: &'c mut Scratch,
    form: Form,
    /// Changes of the session that the client has not been told of.
    changes: &'c mut Changes,
    /// The definitions that the client keeps of the prepared statement that runs.
    kept: Option<&'c mut Option<KeptDefinitions>>,
    /// Takes the rows, if the client asked for a cursor.
    cursor: Option<Cursor>,
    opens_cursor: bool,
    in_rows: bool,
    /// Another statement follows in the text.
    more: bool,
    /// The end of a result. It is written when it is known whether another result follows.
    ended: Option<Ended>,
    /// The error by which the connection failed.
    pub(super) failed: Option<io::Error>,
    /// True after a result without rows.
    had_other_than_rows: bool,
}

/// The rows of a cursor, and what the client gets before them: only once the statement has ended well.
struct Cursor {
    rows: RowKeeper,
    columns: Vec<ColumnMeta>,
    /// Memory for one row.
    row: Vec<u8>,
}

struct Ended {
    rows: bool,
    completion: Completion,
}

impl<'c> WireSink<'c> {
    pub(super) fn new(
        writer: &'c mut PacketWriter,
        entry: &'c Entry,
        interrupt: &'c Interrupt,
        scratch: &'c mut Scratch,
        changes: &'c mut Changes,
        form: Form,
    ) -> Self {
        let stream = &entry.stream;
        WireSink {
            writer,
            stream,
            entry,
            interrupt,
            scratch,
            form,
            changes,
            kept: None,
            cursor: None,
            opens_cursor: false,
            in_rows: false,
            more: false,
            ended: None,
            failed: None,
            had_other_than_rows: false,
        }
    }

    /// Leaves out the column definitions that the client keeps of this statement.
    pub(super) fn of_prepared(mut self, kept: &'c mut Option<KeptDefinitions>) -> Self {
        self.kept = Some(kept);
        self
    }

    /// Keeps the rows for later, if there is a place for them.
    pub(super) fn with_cursor(mut self, rows: Option<RowKeeper>) -> Self {
        self.cursor = rows.map(|rows| Cursor { rows, columns: Vec::new(), row: Vec::new() });
        self
    }

    /// The rows that were kept, once the statement has ended. `None` if it had no rows, or they were sent.
    pub(super) fn take_cursor(&mut self) -> Option<Result<KeptRows, SqlError>> {
        let Cursor { rows, columns, .. } = self.cursor.take()?;
        if !self.ended.as_ref().is_some_and(|ended| ended.rows) {
            return None;
        }
        let rows = rows.finish();
        match rows {
            Ok(_) => {
                self.write_columns(&columns);
                self.opens_cursor = true;
            }
            Err(_) => self.ended = None,
        }
        Some(rows)
    }

    /// True if one of the results had no rows. The statement may then have been a SET or a USE.
    pub(super) fn had_other_than_rows(&self) -> bool {
        self.had_other_than_rows
    }

    /// Writes how the command ended.
    pub(super) fn finish(mut self, result: Result<(), SqlError>, session: &mut Session) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match result {
            Ok(()) => {
                self.changes.add(session);
                self.write_end(session.status_flags());
            }
            Err(error) => {
                self.write_end(self.form.status | status::MORE_RESULTS);
                // If a packet is open, it is a row whose evaluation failed.
                self.writer.abandon();
                response::error(self.writer, error.code(), Some(error.sqlstate()), &error.message);
            }
        }
        Ok(())
    }

    fn write_columns(&mut self, columns: &[ColumnMeta]) {
        let definitions = self.definitions(columns);
        response::column_count(self.writer, columns.len(), definitions);
        if definitions != Definitions::Omitted {
            for column in columns {
                columns::write(self.writer, column, self.form.charset);
            }
        }
    }

    fn definitions(&mut self, columns: &[ColumnMeta]) -> Definitions {
        if !self.form.cache_metadata {
            return Definitions::Implied;
        }
        if let Some(kept) = self.kept.as_deref_mut() {
            if kept.as_ref().is_some_and(|kept| kept.are(columns, self.form.charset)) {
                return Definitions::Omitted;
            }
            // Some clients use the definitions that came last, others those of the prepare. The server cannot
            // know which, so from now on it always sends them.
            *kept = None;
        }
        Definitions::Follow
    }

    /// Writes the end of the last result, if it has not been written yet.
    fn write_end(&mut self, status_flags: u16) {
        let Some(Ended { rows, completion }) = self.ended.take() else { return };
        let status_flags = status_flags | if self.opens_cursor { status::CURSOR_EXISTS } else { 0 };
        if rows && !self.form.deprecate_eof {
            // An EOF packet has no room for changes. They wait for the next OK.
            return response::eof(self.writer, status_flags, completion.warnings);
        }
        let header = if rows { OkHeader::EndOfRows } else { OkHeader::Statement };
        let fields = OkFields {
            affected_rows: completion.affected_rows,
            last_insert_id: completion.last_insert_id,
            status: status_flags,
            warnings: completion.warnings,
            info: completion.info.as_bytes(),
            changes: self.changes.encoded(),
        };
        response::ok(self.writer, header, &fields);
        self.changes.clear();
    }

    #[cold]
    fn flush(&mut self) -> Result<(), SqlError> {
        // While it waits for a slow client, the statement does not count against `thread_concurrency`.
        let sent = self.interrupt.outside(|| self.stream.write_all(self.writer.bytes()))?;
        self.sent(sent)
    }

    /// The writer's bytes were sent, or could not be.
    fn sent(&mut self, sent: io::Result<()>) -> Result<(), SqlError> {
        self.entry.count_sent(self.writer.len());
        self.writer.clear();
        sent.map_err(|error| {
            let what = SqlError::new(
                ErrorKind::NetworkWriteFailed,
                format!("Got an error writing communication packets: {error}"),
            );
            self.failed = Some(error);
            what
        })
    }
}

impl ResultSink for WireSink<'_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.write_end(self.form.status | status::MORE_RESULTS);
        self.in_rows = true;
        self.scratch.cells.clear();
        self.scratch.cells.extend(columns.iter().map(Cell::of));
        if let Some(cursor) = &mut self.cursor {
            cursor.columns.extend_from_slice(columns);
            return Ok(());
        }
        self.write_columns(columns);
        if !self.form.deprecate_eof {
            // Libraries that read the rows one by one believe this packet, and not the one behind the rows.
            let more = if self.more { status::MORE_RESULTS } else { 0 };
            response::eof(self.writer, self.form.status | more, 0);
        }
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let Form { encoding, charset, .. } = self.form;
        let Scratch { cells, digits, .. } = &mut *self.scratch;
        debug_assert_eq!(row.len(), cells.len(), "as many values as columns");
        let out = match &mut self.cursor {
            Some(cursor) => {
                cursor.row.clear();
                &mut cursor.row
            }
            None => self.writer.begin(),
        };
        match encoding {
            Encoding::Text => {
                for (value, cell) in row.iter().zip(cells.iter()) {
                    match value {
                        // The most frequent case first.
                        ValueRef::Text(bytes) if charset == ResultCharset::AsStored => {
                            put::lenenc_bytes(out, bytes);
                        }
                        value => cells::text(out, value, *cell, charset, digits),
                    }
                }
            }
            Encoding::Binary => {
                let head = BinaryRow::begin(out, cells.len());
                for (column, (value, cell)) in row.iter().zip(cells.iter()).enumerate() {
                    match value {
                        ValueRef::Null => head.null(out, column),
                        ValueRef::Text(bytes)
                            if charset == ResultCharset::AsStored
                                && cell.kind >= wire::constants::kind::BLOB =>
                        {
                            put::lenenc_bytes(out, bytes);
                        }
                        value => cells::binary(out, value, *cell, charset, digits),
                    }
                }
            }
        }
        if let Some(cursor) = &mut self.cursor {
            return cursor.rows.push(&cursor.row);
        }
        self.writer.finish();
        if self.writer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn end(&mut self, completion: &Completion) -> Result<(), SqlError> {
        self.write_end(self.form.status | status::MORE_RESULTS);
        let rows = std::mem::take(&mut self.in_rows);
        self.had_other_than_rows |= !rows;
        self.ended = Some(Ended { rows, completion: completion.clone() });
        Ok(())
    }

    fn client_file(&mut self, name: &str) -> Result<Option<Box<dyn FileParts + '_>>, SqlError> {
        let Some(limits) = self.form.files else { return Ok(None) };
        self.write_end(self.form.status | status::MORE_RESULTS);
        response::file_request(self.writer, name);
        self.flush()?;
        Ok(Some(Box::new(ClientFile::new(self, limits))))
    }

    fn progress(&mut self, progress: Progress, what: &str) -> Result<(), SqlError> {
        if !self.form.progress || self.in_rows || self.writer.len() > PROGRESS_BYTES_MAX {
            return Ok(());
        }
        // The statement may hold latches, so it does not wait for a client that does not read.
        if !self.stream.is_writable() {
            return Ok(());
        }
        self.write_end(self.form.status | status::MORE_RESULTS);
        let report = ProgressReport {
            stage: progress.stage,
            stages: progress.stages,
            done: progress.done,
            what: what.as_bytes(),
        };
        report.write(self.writer);
        let sent = self.stream.write_all(self.writer.bytes());
        self.sent(sent)
    }

    fn more_follow(&mut self, more: bool) {
        self.more = more;
    }

    fn status(&mut self, flags: u16, changes: Vec<Change>) {
        self.form.status = flags;
        self.changes.extend(changes);
    }

    fn is_in_rows(&self) -> bool {
        self.in_rows
    }
}

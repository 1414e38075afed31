//! Where a statement's rows become packets.

use super::Stream;
use super::cells::{self, Cell, ResultCharset};
use super::client_file::{ClientFile, FileLimits};
use super::columns;
use super::statements::KeptDefinitions;
use crate::registry::Entry;
use sql::host::Interrupt;
use sql::{ColumnMeta, Completion, ErrorKind, FileParts, ResultSink, SqlError};
use std::io;
use types::ValueRef;
use wire::constants::status;
use wire::response::{self, Definitions, OkFields, OkHeader};
use wire::row::BinaryRow;
use wire::{PacketWriter, put};

/// Rows are sent when so many bytes of them have gathered; a smaller result is sent with one write.
const FLUSH_BYTES: usize = 64 << 10;

/// Memory that a connection keeps from statement to statement.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    cells: Vec<Cell>,
    digits: String,
    /// Emptied after each execution; only its memory is kept.
    params: Vec<ValueRef<'static>>,
}

impl Scratch {
    /// The list for a statement's parameters.
    pub fn take_params<'a>(&mut self) -> Vec<ValueRef<'a>> {
        std::mem::take(&mut self.params)
    }

    /// Gives the list back. The values go, their memory stays: an empty vector's is reused by `collect`.
    pub fn keep_params(&mut self, mut params: Vec<ValueRef<'_>>) {
        params.clear();
        self.params = params.into_iter().map(|_| ValueRef::Null).collect();
    }
}

/// Whether rows are sent as COM_QUERY's or as COM_STMT_EXECUTE's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    Text,
    Binary,
}

/// What the client asked of results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub encoding: Encoding,
    pub deprecate_eof: bool,
    /// Results say whether they have column definitions.
    pub cache_metadata: bool,
    pub charset: ResultCharset,
    /// The session's flags before the statement.
    pub status: u16,
    /// How files of the client's are read; `None` from a client that gives none.
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
    /// Of the prepared statement that runs, if it has any.
    kept: Option<&'c mut Option<KeptDefinitions>>,
    in_rows: bool,
    /// The end of a result, kept back until it is known whether another result follows.
    ended: Option<Ended>,
    /// The client is gone.
    pub(super) failed: Option<io::Error>,
    /// A result without rows was among the results.
    had_other_than_rows: bool,
}

struct Ended {
    rows: bool,
    completion: Completion,
}

impl<'c> WireSink<'c> {
    pub fn new(
        writer: &'c mut PacketWriter,
        entry: &'c Entry,
        interrupt: &'c Interrupt,
        scratch: &'c mut Scratch,
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
            kept: None,
            in_rows: false,
            ended: None,
            failed: None,
            had_other_than_rows: false,
        }
    }

    /// Leaves out the definitions that the statement's client keeps.
    pub fn of_prepared(mut self, kept: &'c mut Option<KeptDefinitions>) -> Self {
        self.kept = Some(kept);
        self
    }

    /// True if a result without rows was among the results: of a SET or a USE perhaps.
    pub fn had_other_than_rows(&self) -> bool {
        self.had_other_than_rows
    }

    /// Writes how the command ended.
    pub fn finish(mut self, result: Result<(), SqlError>, status_flags: u16) -> io::Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match result {
            Ok(()) => self.write_end(status_flags),
            Err(error) => {
                self.write_end(self.form.status | status::MORE_RESULTS);
                // An open packet would be a row that an evaluation error broke off.
                self.writer.abandon();
                response::error(self.writer, error.code(), Some(error.sqlstate()), &error.message);
            }
        }
        Ok(())
    }

    fn definitions(&mut self, columns: &[ColumnMeta]) -> Definitions {
        if !self.form.cache_metadata {
            return Definitions::Implied;
        }
        if let Some(kept) = self.kept.as_deref_mut() {
            if kept.as_ref().is_some_and(|kept| kept.are(columns, self.form.charset)) {
                return Definitions::Omitted;
            }
            // Some clients go by the definitions that came last, others by the first. There is no telling which, so
            // from now on they are always sent.
            *kept = None;
        }
        Definitions::Follow
    }

    /// Writes the end that was kept back, if there is one.
    fn write_end(&mut self, status_flags: u16) {
        let Some(Ended { rows, completion }) = self.ended.take() else { return };
        if rows && !self.form.deprecate_eof {
            return response::eof(self.writer, status_flags, completion.warnings);
        }
        let header = if rows { OkHeader::EndOfRows } else { OkHeader::Statement };
        let fields = OkFields {
            affected_rows: completion.affected_rows,
            last_insert_id: completion.last_insert_id,
            status: status_flags,
            warnings: completion.warnings,
            info: completion.info.as_bytes(),
        };
        response::ok(self.writer, header, &fields);
    }

    #[cold]
    fn flush(&mut self) -> Result<(), SqlError> {
        // A client that takes its time keeps nobody else waiting.
        let sent = self.interrupt.outside(|| self.stream.write_all(self.writer.bytes()));
        self.entry.count_sent(self.writer.len());
        self.writer.clear();
        sent?.map_err(|error| {
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
        let definitions = self.definitions(columns);
        response::column_count(self.writer, columns.len(), definitions);
        if definitions != Definitions::Omitted {
            for column in columns {
                columns::write(self.writer, column, self.form.charset);
            }
        }
        if !self.form.deprecate_eof {
            response::eof(self.writer, self.form.status, 0);
        }
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let Form { encoding, charset, .. } = self.form;
        let Scratch { cells, digits, .. } = &mut *self.scratch;
        debug_assert_eq!(row.len(), cells.len(), "as many values as columns");
        let out = self.writer.begin();
        match encoding {
            Encoding::Text => {
                for (value, cell) in row.iter().zip(cells.iter()) {
                    match value {
                        // The usual cells first.
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

    fn is_in_rows(&self) -> bool {
        self.in_rows
    }
}

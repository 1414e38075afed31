//! A blocking client over anything that reads and writes.

use super::encode;
use super::login::plugin_of;
use super::scanner::{ResponseKind, ResponseScanner, ScanError, Summary};
use crate::auth;
use crate::column::ColumnDefinition;
use crate::command::com;
use crate::constants::{capability, status};
use crate::cursor::Cursor;
use crate::frame::Packet;
use crate::handshake::Greeting;
use crate::response::{Definitions, OkFields, PrepareOk, ProgressReport, ServerError, parse_column_count};
use crate::row::BinaryRowReader;
use crate::value::{DateTime, Time, WireType, WireValue};
use crate::{FrameError, Malformed, PacketReader, PacketWriter};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};

/// Why an exchange failed.
#[derive(Debug)]
pub enum ClientError {
    Io(io::Error),
    /// The server's bytes make no sense.
    Protocol(ScanError),
    /// The server answered with an error.
    Server(ServerError),
}

impl ClientError {
    /// The number of the server's error, if it is one.
    pub fn code(&self) -> Option<u16> {
        match self {
            ClientError::Server(error) => Some(error.code),
            _ => None,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Io(error) => error.fmt(f),
            ClientError::Protocol(error) => error.fmt(f),
            ClientError::Server(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> ClientError {
        ClientError::Io(error)
    }
}

impl From<Malformed> for ClientError {
    fn from(error: Malformed) -> ClientError {
        ClientError::Protocol(ScanError::Malformed(error))
    }
}

impl From<FrameError> for ClientError {
    fn from(error: FrameError) -> ClientError {
        ClientError::Protocol(ScanError::Frame(error))
    }
}

/// How to connect.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    pub user: String,
    pub password: String,
    pub database: Option<String>,
    /// True if nobody can listen on the stream, as on a unix socket. Then some methods send the password as
    /// it is. An encrypted stream counts as such without this.
    pub is_secure: bool,
    /// Flags of [`capability`]. CONNECT_WITH_DB is added if there is a database.
    pub capabilities: u64,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            user: "root".to_string(),
            password: String::new(),
            database: None,
            is_secure: false,
            capabilities: capability::CLIENT,
        }
    }
}

/// A column of a [`QueryResult`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedColumn {
    pub database: String,
    pub table: String,
    pub name: String,
    pub wire_type: WireType,
    pub charset: u16,
    pub length: u32,
    pub flags: u16,
    pub decimals: u8,
}

/// A value that owns its bytes. Text rows have only `Null` and `Bytes`.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
    Date(DateTime),
    DateTime(DateTime),
    Time(Time),
}

impl Value {
    /// The value as text for tests and tools: `NULL` for NULL, numbers in digits.
    pub fn to_text(&self) -> String {
        match self {
            Value::Null => "NULL".to_string(),
            Value::Int(value) => value.to_string(),
            Value::UInt(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Double(value) => value.to_string(),
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Date(d) => format!("{:04}-{:02}-{:02}", d.year, d.month, d.day),
            Value::DateTime(d) => {
                let fraction =
                    if d.microsecond == 0 { String::new() } else { format!(".{:06}", d.microsecond) };
                format!(
                    "{:04}-{:02}-{:02} {:02}:{:02}:{:02}{fraction}",
                    d.year, d.month, d.day, d.hour, d.minute, d.second
                )
            }
            Value::Time(t) => {
                let fraction =
                    if t.microsecond == 0 { String::new() } else { format!(".{:06}", t.microsecond) };
                let sign = if t.negative { "-" } else { "" };
                let hours = u64::from(t.days) * 24 + u64::from(t.hour);
                format!("{sign}{hours:02}:{:02}:{:02}{fraction}", t.minute, t.second)
            }
        }
    }
}

impl From<WireValue<'_>> for Value {
    fn from(value: WireValue<'_>) -> Value {
        match value {
            WireValue::Null => Value::Null,
            WireValue::Int(value) => Value::Int(value),
            WireValue::UInt(value) => Value::UInt(value),
            WireValue::Float(value) => Value::Float(value),
            WireValue::Double(value) => Value::Double(value),
            WireValue::Text(bytes) | WireValue::Binary(bytes) | WireValue::Decimal(bytes) => {
                Value::Bytes(bytes.to_vec())
            }
            WireValue::Date(date) => Value::Date(date),
            WireValue::DateTime(date) | WireValue::ZonedDateTime(date, _) => Value::DateTime(date),
            WireValue::Time(time) => Value::Time(time),
        }
    }
}

/// One result of a statement: rows, or how many rows it changed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QueryResult {
    /// Empty if the statement has no result set.
    pub columns: Vec<OwnedColumn>,
    /// How the server sent `columns`.
    pub definitions: Definitions,
    pub rows: Vec<Vec<Value>>,
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub status: u16,
    pub warnings: u16,
    pub info: String,
}

impl QueryResult {
    /// Rows as text, see [`Value::to_text`].
    pub fn to_text(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(|row| row.iter().map(Value::to_text).collect()).collect()
    }
}

/// A prepared statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prepared {
    pub id: u32,
    pub params: u16,
    pub columns: Vec<OwnedColumn>,
}

/// How far a statement was: see [`ProgressReport`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub stage: u8,
    pub stages: u8,
    pub done: u32,
    pub what: String,
}

impl From<ProgressReport<'_>> for Report {
    fn from(report: ProgressReport<'_>) -> Report {
        let what = String::from_utf8_lossy(report.what).into_owned();
        Report { stage: report.stage, stages: report.stages, done: report.done, what }
    }
}

/// The size of a packet of a local file: as much as a socket's buffer holds.
const LOCAL_PART_BYTES: usize = 128 << 10;

/// A connection past its handshake.
#[derive(Debug)]
pub struct Connection<S> {
    stream: S,
    pub(super) reader: PacketReader,
    pub(super) writer: PacketWriter,
    pub(super) greeting: Greeting,
    pub(super) capabilities: u64,
    /// The columns of prepared statements, as the server sent them last. Empty without CACHE_METADATA.
    kept: HashMap<u32, Vec<OwnedColumn>>,
    pub(super) login_info: Vec<u8>,
    reports: Vec<Report>,
}

impl<S: Read + Write> Connection<S> {
    /// Does the handshake over a fresh stream.
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn connect(stream: S, options: &ConnectOptions) -> Result<Connection<S>, ClientError> {
        let mut connection = Connection::greeted(stream, options)?;
        connection.log_in(options, options.is_secure)?;
        Ok(connection)
    }

    /// The same over TLS: `encrypt` makes the encrypted stream of a plain one.
    ///
    /// # Errors
    /// As [`Connection::connect`], and if the server has no TLS.
    pub fn connect_encrypted<T: Read + Write>(
        stream: T,
        options: &ConnectOptions,
        encrypt: impl FnOnce(T) -> io::Result<S>,
    ) -> Result<Connection<S>, ClientError> {
        let mut plain = Connection::greeted(stream, options)?;
        if plain.greeting.capabilities & capability::SSL == 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the server has no TLS").into());
        }
        plain.capabilities |= capability::SSL;
        plain.writer.set_sequence(plain.reader.sequence());
        plain.response(options, plugin_of(&plain.greeting), b"").write_tls_request(plain.writer.begin());
        plain.writer.finish();
        plain.send()?;
        plain.reader.set_sequence(plain.writer.sequence());
        let mut connection = Connection {
            stream: encrypt(plain.stream)?,
            reader: plain.reader,
            writer: plain.writer,
            greeting: plain.greeting,
            capabilities: plain.capabilities,
            kept: HashMap::new(),
            reports: Vec::new(),
            login_info: Vec::new(),
        };
        connection.log_in(options, true)?;
        Ok(connection)
    }

    /// A connection that has read the server's greeting.
    fn greeted(stream: S, options: &ConnectOptions) -> Result<Connection<S>, ClientError> {
        let mut connection = Connection {
            stream,
            reader: PacketReader::new(usize::MAX),
            writer: PacketWriter::new(),
            greeting: Greeting {
                server_version: String::new(),
                connection_id: 0,
                scramble: [0; auth::SCRAMBLE_BYTES],
                capabilities: 0,
                charset: 0,
                status: 0,
                auth_plugin: String::new(),
            },
            capabilities: 0,
            kept: HashMap::new(),
            reports: Vec::new(),
            login_info: Vec::new(),
        };
        let packet = connection.read_packet()?;
        let payload = connection.reader.payload(&packet);
        if payload.first() == Some(&0xff) {
            return Err(ClientError::Server(ServerError::parse(payload)?));
        }
        connection.greeting = Greeting::parse(payload)?;
        let mut wanted = options.capabilities;
        if options.database.is_some() {
            wanted |= capability::CONNECT_WITH_DB;
        }
        connection.capabilities = wanted & connection.greeting.capabilities;
        Ok(connection)
    }

    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// The text of the packet that ended the login.
    pub fn login_info(&self) -> &[u8] {
        &self.login_info
    }

    /// What both sides agreed on.
    pub fn capabilities(&self) -> u64 {
        self.capabilities
    }

    pub fn deprecate_eof(&self) -> bool {
        self.capabilities & capability::DEPRECATE_EOF != 0
    }

    fn keeps_definitions(&self) -> bool {
        self.capabilities & capability::CACHE_METADATA != 0
    }

    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream, for callers that send and receive packets themselves from here on. No bytes are pending.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Runs a statement and returns its only (or first) result.
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn query(&mut self, sql: &str) -> Result<QueryResult, ClientError> {
        Ok(self.query_all(sql.as_bytes())?.swap_remove(0))
    }

    /// Runs one or more statements and returns all their results (at least one).
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn query_all(&mut self, sql: &[u8]) -> Result<Vec<QueryResult>, ClientError> {
        encode::query(&mut self.writer, sql);
        self.send()?;
        self.results(None)
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, ClientError> {
        encode::prepare(&mut self.writer, sql.as_bytes());
        self.send()?;
        let packet = self.read_response()?;
        let ok = PrepareOk::parse(self.reader.payload(&packet))?;
        self.definitions(ok.params.into())?;
        let columns = self.definitions(ok.columns.into())?;
        if self.keeps_definitions() {
            self.kept.insert(ok.statement, columns.clone());
        }
        Ok(Prepared { id: ok.statement, params: ok.params, columns })
    }

    /// Executes a prepared statement.
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn execute(&mut self, statement: u32, params: &[WireValue<'_>]) -> Result<QueryResult, ClientError> {
        encode::execute(&mut self.writer, statement, params);
        self.send()?;
        Ok(self.results(Some(statement))?.swap_remove(0))
    }

    /// Executes after parts were sent by [`Connection::long_data`].
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn execute_except(
        &mut self,
        statement: u32,
        params: &[WireValue<'_>],
        is_long_data: impl Fn(usize) -> bool,
    ) -> Result<QueryResult, ClientError> {
        encode::execute_except(&mut self.writer, statement, params, is_long_data);
        self.send()?;
        Ok(self.results(Some(statement))?.swap_remove(0))
    }

    /// Sends a part of a parameter's value before the statement is executed.
    ///
    /// # Errors
    /// If sending fails. The server does not answer this command.
    pub fn long_data(&mut self, statement: u32, param: u16, data: &[u8]) -> Result<(), ClientError> {
        encode::long_data(&mut self.writer, statement, param, data);
        self.send()
    }

    /// Closes a prepared statement.
    ///
    /// # Errors
    /// If sending fails. The server does not answer this command.
    pub fn close_statement(&mut self, statement: u32) -> Result<(), ClientError> {
        self.kept.remove(&statement);
        encode::close_statement(&mut self.writer, statement);
        self.send()
    }

    /// Asks whether the server answers.
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn ping(&mut self) -> Result<(), ClientError> {
        self.command(com::PING, b"").map(drop)
    }

    /// Sends a command of one byte and some bytes that is answered by OK, an error, or result sets.
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn command(&mut self, command: u8, rest: &[u8]) -> Result<QueryResult, ClientError> {
        encode::simple(&mut self.writer, command, rest);
        self.send()?;
        Ok(self.results(None)?.swap_remove(0))
    }

    /// Sends a command and returns the payload of the one packet that answers it.
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn command_raw(&mut self, command: u8, rest: &[u8]) -> Result<Vec<u8>, ClientError> {
        encode::simple(&mut self.writer, command, rest);
        self.send()?;
        let packet = self.read_response()?;
        Ok(self.reader.payload(&packet).to_vec())
    }

    /// Runs a statement, and returns only a summary of its answer.
    ///
    /// # Errors
    /// If the exchange fails, the answer does not follow the protocol, or the server answers with an error.
    pub fn query_summary(&mut self, sql: &[u8]) -> Result<Summary, ClientError> {
        encode::query(&mut self.writer, sql);
        self.send()?;
        let mut scanner = ResponseScanner::new(self.deprecate_eof());
        scanner.expect(ResponseKind::Results);
        self.reader.set_sequence(1);
        while !scanner.advance(&mut self.reader).map_err(ClientError::Protocol)? {
            self.receive()?;
        }
        match &scanner.summary().error {
            Some(error) => Err(ClientError::Server(error.clone())),
            None => Ok(scanner.summary().clone()),
        }
    }

    /// Runs a `LOAD DATA LOCAL INFILE`. The file's contents come from `source`, and the name in the statement
    /// is ignored. The options must have [`capability::LOCAL_FILES`]. If the source fails, the file ends
    /// early and the failure is returned. The server keeps what it was sent, as it does with every client.
    ///
    /// # Errors
    /// If the source fails, the exchange fails, the answer does not follow the protocol, or the server
    /// answers with an error.
    pub fn load_local(&mut self, sql: &[u8], source: &mut impl Read) -> Result<QueryResult, ClientError> {
        encode::query(&mut self.writer, sql);
        self.send()?;
        let packet = self.read_response()?;
        let payload = self.reader.payload(&packet);
        if payload.first() != Some(&0xfb) {
            return Err(Malformed::new("the server asked for no file").into());
        }
        self.writer.set_sequence(self.reader.sequence());
        let sent = self.send_file(source);
        self.writer.packet(b"");
        self.send()?;
        let result = self.result(None)?;
        sent.map(|()| result)
    }

    fn send_file(&mut self, source: &mut impl Read) -> Result<(), ClientError> {
        let mut part = vec![0; LOCAL_PART_BYTES];
        loop {
            match source.read(&mut part) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    self.writer.packet(&part[..count]);
                    self.send()?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends COM_QUIT.
    ///
    /// # Errors
    /// If sending fails. The server does not answer this command.
    pub fn quit(mut self) -> Result<(), ClientError> {
        encode::simple(&mut self.writer, com::QUIT, b"");
        self.send()
    }

    pub(super) fn send(&mut self) -> Result<(), ClientError> {
        let sent = self.stream.write_all(self.writer.bytes());
        self.writer.clear();
        self.reader.set_sequence(self.writer.sequence());
        Ok(sent?)
    }

    fn receive(&mut self) -> Result<(), ClientError> {
        loop {
            match self.stream.read(self.reader.space()) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(count) => {
                    self.reader.received(count);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) fn read_packet(&mut self) -> Result<Packet, ClientError> {
        loop {
            if let Some(packet) = self.reader.next_packet()? {
                return Ok(packet);
            }
            self.receive()?;
        }
    }

    /// The next packet. An error packet of the server becomes an `Err`.
    fn read_response(&mut self) -> Result<Packet, ClientError> {
        loop {
            let packet = self.read_packet()?;
            let payload = self.reader.payload(&packet);
            if payload.first() != Some(&0xff) {
                return Ok(packet);
            }
            match ProgressReport::parse(payload)? {
                Some(report) => self.reports.push(Report::from(report)),
                None => return Err(ClientError::Server(ServerError::parse(payload)?)),
            }
        }
    }

    /// The reports of progress that have come since they were taken last.
    pub fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    fn definitions(&mut self, count: u64) -> Result<Vec<OwnedColumn>, ClientError> {
        let mut columns = Vec::new();
        for _ in 0..count {
            let packet = self.read_response()?;
            let definition = ColumnDefinition::parse(self.reader.payload(&packet))?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            columns.push(OwnedColumn {
                database: text(definition.database),
                table: text(definition.table),
                name: text(definition.name),
                wire_type: definition.wire_type(),
                charset: definition.charset,
                length: definition.length,
                flags: definition.flags,
                decimals: definition.decimals,
            });
        }
        if count > 0 {
            self.definitions_end()?;
        }
        Ok(columns)
    }

    fn definitions_end(&mut self) -> Result<(), ClientError> {
        if !self.deprecate_eof() {
            let packet = self.read_response()?;
            OkFields::parse_eof(self.reader.payload(&packet))?;
        }
        Ok(())
    }

    /// `prepared`: the statement that was executed, if it was a prepared one.
    fn results(&mut self, prepared: Option<u32>) -> Result<Vec<QueryResult>, ClientError> {
        let mut results = Vec::new();
        loop {
            let result = self.result(prepared)?;
            let more = result.status & status::MORE_RESULTS != 0;
            results.push(result);
            if !more {
                return Ok(results);
            }
        }
    }

    fn result(&mut self, prepared: Option<u32>) -> Result<QueryResult, ClientError> {
        let mut result = QueryResult::default();
        let packet = self.read_response()?;
        let payload = self.reader.payload(&packet);
        if payload.first() == Some(&0) {
            take_end(&mut result, &OkFields::parse(payload)?);
            return Ok(result);
        }
        if payload.first() == Some(&0xfe) && payload.len() < 9 {
            take_end(&mut result, &OkFields::parse_eof(payload)?);
            return Ok(result);
        }
        let (count, definitions) = parse_column_count(payload, self.capabilities)?;
        result.definitions = definitions;
        let kept = prepared.filter(|_| self.keeps_definitions());
        if definitions == Definitions::Omitted {
            self.definitions_end()?;
            let columns = kept.and_then(|statement| self.kept.get(&statement)).cloned();
            let columns = columns.filter(|columns| columns.len() as u64 == count);
            result.columns = columns.ok_or(Malformed::new("definitions of columns are missing"))?;
        } else {
            result.columns = self.definitions(count)?;
            if let Some(statement) = kept {
                self.kept.insert(statement, result.columns.clone());
            }
        }
        loop {
            let packet = self.read_response()?;
            let payload = self.reader.payload(&packet);
            if payload.first() == Some(&0xfe) {
                if !self.deprecate_eof() && payload.len() < 9 {
                    take_end(&mut result, &OkFields::parse_eof(payload)?);
                    return Ok(result);
                }
                if self.deprecate_eof() && payload.len() < crate::frame::PART_BYTES_MAX {
                    take_end(&mut result, &OkFields::parse(payload)?);
                    return Ok(result);
                }
            }
            let row = if prepared.is_some() {
                let mut row = BinaryRowReader::new(payload, result.columns.len())?;
                let value = |column: &OwnedColumn| row.value(column.wire_type).map(Value::from);
                result.columns.iter().map(value).collect::<Result<Vec<_>, _>>()?
            } else {
                let mut cursor = Cursor::new(payload);
                let value = |_| {
                    let bytes = cursor.lenenc_bytes_or_null("value of a row")?;
                    Ok::<_, Malformed>(bytes.map_or(Value::Null, |bytes| Value::Bytes(bytes.to_vec())))
                };
                result.columns.iter().map(value).collect::<Result<Vec<_>, _>>()?
            };
            result.rows.push(row);
        }
    }
}

fn take_end(result: &mut QueryResult, ok: &OkFields<'_>) {
    result.affected_rows = ok.affected_rows;
    result.last_insert_id = ok.last_insert_id;
    result.status = ok.status;
    result.warnings = ok.warnings;
    result.info = String::from_utf8_lossy(ok.info).into_owned();
}

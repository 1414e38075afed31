//! Commands and their answers.

use super::attributes;
use super::authenticate::{self, Claim};
use super::client_file::FileLimits;
use super::settings::Settings;
use super::sink::{Encoding, FLUSH_BYTES, Form, Scratch, WireSink};
use super::statements::{KeptDefinitions, Statements};
use super::{Channel, Connection, End, Output, Runner, cells, columns, malformed};
use crate::shared::Shared;
use sql::{ErrorKind, Session, SqlError};
use std::borrow::Cow;
use types::ValueRef;
use wire::command::CURSOR_READ_ONLY;
use wire::constants::{capability, status};
use wire::frame::Packet;
use wire::response::{self, OkFields, OkHeader, PrepareOk};
use wire::{Command, CommandKind, PacketWriter, WireValue, params};

/// Whether a command may have changed the session's variables or its default database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    Unchanged,
    MayHaveChanged,
}

impl<'s> Connection<'s> {
    pub(super) fn new(shared: &'s Shared, channel: Channel, session: Session) -> Connection<'s> {
        let settings = Settings::of(&session);
        let runner = Runner {
            interrupt: session.interrupt().clone(),
            session,
            statements: Statements::default(),
            scratch: Scratch::default(),
            settings,
        };
        let mut connection = Connection { shared, channel, database: None, runner };
        connection.apply_settings();
        connection.note_database();
        connection
    }

    /// Errors are ignored here: a broken socket fails when it is used next.
    fn apply_settings(&mut self) {
        self.channel.idle_timeout = self.runner.settings.wait_timeout;
        self.channel.read_timeout = self.runner.settings.read_timeout;
        let stream = &self.channel.output.entry.stream;
        let _ = stream.set_read_timeout(self.runner.settings.wait_timeout);
        let _ = stream.set_write_timeout(self.runner.settings.write_timeout);
    }

    /// Called after commands that may have changed the session.
    fn after_change(&mut self) {
        let now = Settings::of(&self.runner.session);
        if now != self.runner.settings {
            self.runner.settings = now;
            self.apply_settings();
        }
        self.note_database();
    }

    /// Tells the process list if the default database changed.
    fn note_database(&mut self) {
        let now = self.runner.session.database();
        let same = match (now, &self.database) {
            (Some(now), Some(before)) => base::sync::Arc::ptr_eq(now, before),
            (None, None) => true,
            _ => false,
        };
        if !same {
            self.database = now.cloned();
            self.channel.output.entry.set_database(now);
        }
    }

    /// Runs one command; its answer is in the writer, or sent already.
    pub(super) fn command(&mut self, packet: &Packet) -> Result<(), End> {
        let Connection { shared, channel, runner, .. } = self;
        let Channel { reader, output, .. } = channel;
        let after = match Command::parse(reader.payload(packet)).map_err(malformed)? {
            Command::Query(contents) => {
                let (given, text) = attributes::of_query(output.capabilities, contents, &runner.session)?;
                runner.session.set_query_attributes(given);
                runner.query(shared, output, text)?
            }
            Command::StmtExecute { statement, flags, params } => {
                runner.execute(shared, output, statement, flags, params)?
            }
            Command::StmtBulkExecute { statement, flags, params } => {
                runner.execute_bulk(shared, output, statement, flags, params)?
            }
            Command::StmtPrepare(text) => runner.prepare(output, text),
            Command::Quit => return Err(End::Quit),
            Command::InitDb(name) => runner.change_database(output, name),
            Command::FieldList { table, pattern } => runner.list_fields(output, table, pattern),
            refused @ (Command::CreateDb | Command::DropDb | Command::Refresh | Command::Shutdown) => {
                output.refuse(refused.kind().map_or("", CommandKind::name))
            }
            Command::Statistics => {
                output.entry.begin(CommandKind::Statistics, b"");
                output.writer.packet(shared.statistics().as_bytes());
                After::Unchanged
            }
            Command::Debug => {
                output.entry.begin(CommandKind::Debug, b"");
                match runner.session.check_super() {
                    Ok(()) => {
                        shared.log.note(&format!("status: {}", shared.statistics()));
                        output.end_of_rows(runner.session.status_flags());
                        After::Unchanged
                    }
                    Err(error) => output.answer(Err(error), &mut runner.session),
                }
            }
            Command::ProcessInfo => runner.run_for_client(output, b"SHOW PROCESSLIST")?,
            Command::ProcessKill(id) => runner.run_for_client(output, format!("KILL {id}").as_bytes())?,
            Command::Ping => {
                output.entry.begin(CommandKind::Ping, b"");
                output.answer(Ok(()), &mut runner.session)
            }
            Command::ChangeUser(request) => {
                let claim = Claim::of_change(request);
                self.change_user(&claim)?
            }
            Command::StmtSendLongData { statement, param, data } => {
                runner.keep_long_data(statement, param, data);
                After::Unchanged
            }
            Command::StmtClose(statement) => {
                runner.session.close_statement(runner.statements.remove(statement));
                After::Unchanged
            }
            Command::StmtReset(statement) => runner.reset_statement(output, statement),
            Command::StmtFetch { statement, rows } => runner.fetch(output, statement, rows)?,
            Command::SetOption(option @ (0 | 1)) => runner.set_multi_statements(output, option == 0),
            Command::ResetConnection => runner.reset(output),
            Command::Sleep | Command::SetOption(_) | Command::Unknown(_) => {
                output.error(&SqlError::new(ErrorKind::UnknownCommand, "Unknown command"))
            }
        };
        if after == After::MayHaveChanged {
            self.after_change();
        }
        Ok(())
    }

    /// `claim` is a copy of the packet's fields, because the reader must be free for the packets that follow.
    fn change_user(&mut self, claim: &Claim) -> Result<After, End> {
        self.channel.output.entry.begin(CommandKind::ChangeUser, b"");
        self.runner.session = authenticate::change_user(self.shared, &mut self.channel, claim)?;
        self.runner.interrupt = self.runner.session.interrupt().clone();
        self.runner.statements.clear();
        Ok(After::MayHaveChanged)
    }
}

impl Output {
    /// Answers with OK or with the error.
    fn answer(&mut self, result: Result<(), SqlError>, session: &mut Session) -> After {
        match result {
            Ok(()) => {
                self.changes.add(session);
                let status = session.status_flags();
                let fields = OkFields { status, changes: self.changes.encoded(), ..OkFields::default() };
                response::ok(&mut self.writer, OkHeader::Statement, &fields);
                self.changes.clear();
                After::Unchanged
            }
            Err(error) => self.error(&error),
        }
    }

    fn error(&mut self, error: &SqlError) -> After {
        response::error(&mut self.writer, error.code(), Some(error.sqlstate()), &error.message);
        After::Unchanged
    }

    /// Ends the rows of an answer.
    fn end_of_rows(&mut self, status: u16) {
        if self.capabilities & capability::DEPRECATE_EOF == 0 {
            response::eof(&mut self.writer, status, 0);
        } else {
            let fields = OkFields { status, ..OkFields::default() };
            response::ok(&mut self.writer, OkHeader::EndOfRows, &fields);
        }
    }

    /// Answers a command that this server does not run.
    fn refuse(&mut self, what: &str) -> After {
        let message = format!("This version of Latchwork doesn't support {what}");
        self.error(&SqlError::new(ErrorKind::NotSupported, message))
    }
}

impl Runner {
    fn query(&mut self, shared: &Shared, output: &mut Output, text: &[u8]) -> Result<After, End> {
        let Runner { session, interrupt, scratch, settings, .. } = self;
        let Output { writer, entry, capabilities, changes } = output;
        entry.begin(CommandKind::Query, text);
        let text = settings.statement(text);
        let form = form(*capabilities, session, settings, Encoding::Text);
        let mut sink = WireSink::new(writer, entry, interrupt, scratch, changes, form);
        let result = session.query(&text, &mut sink);
        note_storage_error(shared, &result);
        let may_have_changed = result.is_err() || sink.had_other_than_rows();
        sink.finish(result, session)?;
        Ok(if may_have_changed { After::MayHaveChanged } else { After::Unchanged })
    }

    /// COM_STMT_EXECUTE; `encoded` has the parameters, and perhaps attributes.
    fn execute(
        &mut self,
        shared: &Shared,
        output: &mut Output,
        id: u32,
        flags: u8,
        encoded: &[u8],
    ) -> Result<After, End> {
        let Runner { session, interrupt, statements, scratch, settings } = self;
        let Output { writer, entry, capabilities, changes } = output;
        let id = statements.number(id);
        let statement = match statements.get(id, "mysqld_stmt_execute") {
            Ok(statement) => statement,
            Err(error) => {
                write_error(writer, &error);
                return Ok(After::Unchanged);
            }
        };
        entry.begin_prepared(&statement.text);
        if let Some(error) = statement.long_data.take_error() {
            statement.long_data.clear();
            write_error(writer, &error);
            return Ok(After::Unchanged);
        }
        let (given, encoded) = attributes::of_execution(*capabilities, encoded, flags, statement, session)?;
        session.set_query_attributes(given);
        let zone = session.variables().zone();
        let long_data = &statement.long_data;
        // Texts in UTF-8. There are none unless the client sends others.
        let mut texts = Vec::new();
        let mut values = scratch.take_params();
        let mut incorrect = Vec::new();
        let read = params::read(
            &encoded,
            statement.params,
            &mut statement.types,
            |param| long_data.get(param),
            |value| match value {
                WireValue::Int(number) => values.push(ValueRef::Int(number)),
                value => {
                    incorrect.extend(cells::incorrect(&value));
                    values.push(cells::parameter(value, zone));
                }
            },
        );
        if read.is_err() {
            // As in MariaDB, the connection goes on: the packet has an end, and the next one follows it.
            statement.long_data.clear();
            write_error(writer, &SqlError::wrong_arguments("mysqld_stmt_execute"));
            return Ok(After::Unchanged);
        }
        session.set_parameter_warnings(incorrect);
        if settings.converts_texts() {
            texts.extend(values.iter().map(|value| match value {
                ValueRef::Text(text) => settings.statement(text),
                _ => Cow::Borrowed(&b""[..]),
            }));
            for (value, text) in values.iter_mut().zip(&texts) {
                if matches!(value, ValueRef::Text(_)) {
                    *value = ValueRef::Text(text);
                }
            }
        }
        // What an earlier execution left to be fetched is gone.
        statement.cursor = None;
        let form = form(*capabilities, session, settings, Encoding::Binary);
        let cursor = (flags & CURSOR_READ_ONLY != 0).then(|| session.keep_rows());
        let mut sink = WireSink::new(writer, entry, interrupt, scratch, changes, form)
            .of_prepared(&mut statement.kept)
            .with_cursor(cursor);
        let mut result = session.execute(id, &values, &mut sink);
        note_storage_error(shared, &result);
        match sink.take_cursor() {
            Some(Ok(rows)) if result.is_ok() => statement.cursor = Some(rows),
            Some(Err(error)) if result.is_ok() => result = Err(error),
            _ => {}
        }
        let may_have_changed = result.is_err() || sink.had_other_than_rows();
        sink.finish(result, session)?;
        scratch.keep_params(values);
        statement.long_data.clear();
        Ok(if may_have_changed { After::MayHaveChanged } else { After::Unchanged })
    }

    /// COM_STMT_FETCH.
    fn fetch(&mut self, output: &mut Output, id: u32, rows: u32) -> Result<After, End> {
        let Runner { session, interrupt, statements, .. } = self;
        output.entry.begin(CommandKind::StmtFetch, b"");
        session.begin_fetch();
        let statement = match statements.get(id, "mysqld_stmt_fetch") {
            Ok(statement) => statement,
            Err(error) => return Ok(output.error(&error)),
        };
        let Some(cursor) = &mut statement.cursor else {
            let message = format!("The statement ({id}) has no open cursor.");
            return Ok(output.error(&SqlError::new(ErrorKind::StatementHasNoOpenCursor, message)));
        };
        let mut state = status::CURSOR_EXISTS;
        for _ in 0..rows {
            let next = interrupt.check().and_then(|()| cursor.next_row());
            match next {
                Ok(Some(row)) => output.writer.packet(row),
                Ok(None) => {
                    state = status::LAST_ROW_SENT;
                    break;
                }
                Err(error) => {
                    statement.cursor = None;
                    return Ok(output.error(&error));
                }
            }
            if output.writer.len() >= FLUSH_BYTES {
                output.send()?;
            }
        }
        if state == status::LAST_ROW_SENT {
            statement.cursor = None;
        }
        output.end_of_rows(session.status_flags() | state);
        Ok(After::Unchanged)
    }

    fn prepare(&mut self, output: &mut Output, text: &[u8]) -> After {
        let Runner { session, statements, settings, .. } = self;
        let Output { writer, entry, capabilities, .. } = output;
        entry.begin(CommandKind::StmtPrepare, text);
        let text = settings.statement(text);
        statements.forget_last();
        let prepared = match session.prepare(&text) {
            Ok(prepared) => prepared,
            Err(error) => {
                write_error(writer, &error);
                return After::Unchanged;
            }
        };
        let Ok(columns) = u16::try_from(prepared.columns.len()) else {
            session.close_statement(prepared.id);
            write_error(writer, &SqlError::new(ErrorKind::TooManyColumns, "Too many columns"));
            return After::Unchanged;
        };
        let keeps = *capabilities & capability::CACHE_METADATA != 0 && !prepared.columns.is_empty();
        let kept =
            keeps.then(|| KeptDefinitions { columns: prepared.columns.clone(), charset: settings.results });
        statements.add(prepared.id, prepared.params.into(), &text, kept);
        let answer = PrepareOk { statement: prepared.id, columns, params: prepared.params, warnings: 0 };
        answer.write(writer);
        let eof = |writer: &mut PacketWriter| {
            if *capabilities & capability::DEPRECATE_EOF == 0 {
                response::eof(writer, session.status_flags(), 0);
            }
        };
        if prepared.params > 0 {
            for _ in 0..prepared.params {
                columns::write_parameter(writer);
            }
            eof(writer);
        }
        if !prepared.columns.is_empty() {
            for column in prepared.columns.iter() {
                columns::write(writer, column, settings.results);
            }
            eof(writer);
        }
        After::Unchanged
    }

    fn list_fields(&mut self, output: &mut Output, table: &[u8], pattern: &[u8]) -> After {
        output.entry.begin(CommandKind::FieldList, b"");
        let (table, pattern) = (self.settings.statement(table), self.settings.statement(pattern));
        let fields = match self.session.list_fields(&table, &pattern) {
            Ok(fields) => fields,
            Err(error) => return output.error(&error),
        };
        for (column, default) in fields.columns.iter().zip(&fields.defaults) {
            let charset = self.settings.results;
            columns::write_with_default(&mut output.writer, column, charset, &default.as_ref());
        }
        output.end_of_rows(self.session.status_flags());
        After::Unchanged
    }

    fn change_database(&mut self, output: &mut Output, name: &[u8]) -> After {
        output.entry.begin(CommandKind::InitDb, b"");
        let result = self.session.change_database(&String::from_utf8_lossy(name));
        output.answer(result, &mut self.session);
        After::MayHaveChanged
    }

    fn reset(&mut self, output: &mut Output) -> After {
        output.entry.begin(CommandKind::ResetConnection, b"");
        self.session.reset();
        self.statements.clear();
        output.answer(Ok(()), &mut self.session);
        After::MayHaveChanged
    }

    fn set_multi_statements(&mut self, output: &mut Output, on: bool) -> After {
        self.session.set_multi_statements(on);
        let status = self.session.status_flags();
        output.end_of_rows(status);
        After::Unchanged
    }

    /// An unknown statement is ignored, because this command has no answer that could report it.
    fn keep_long_data(&mut self, statement: u32, param: u16, data: &[u8]) {
        let bytes_max = self.session.variables().common.max_allowed_packet as usize;
        if let Ok(statement) = self.statements.get(statement, "") {
            statement.long_data.append(param.into(), statement.params, data, bytes_max);
        }
    }

    fn reset_statement(&mut self, output: &mut Output, statement: u32) -> After {
        let statement = self.statements.get(statement, "mysqld_stmt_reset");
        let result = statement.map(|statement| {
            statement.long_data.clear();
            statement.cursor = None;
        });
        output.answer(result, &mut self.session)
    }

    /// A command that is an old form of a statement.
    fn run_for_client(&mut self, output: &mut Output, text: &[u8]) -> Result<After, End> {
        let Runner { session, interrupt, scratch, settings, .. } = self;
        let Output { writer, entry, capabilities, changes } = output;
        entry.begin(CommandKind::Query, text);
        let form = form(*capabilities, session, settings, Encoding::Text);
        let mut sink = WireSink::new(writer, entry, interrupt, scratch, changes, form);
        let result = session.query(text, &mut sink);
        sink.finish(result, session)?;
        Ok(After::Unchanged)
    }
}

pub(super) fn form(capabilities: u64, session: &Session, settings: &Settings, encoding: Encoding) -> Form {
    Form {
        encoding,
        deprecate_eof: capabilities & capability::DEPRECATE_EOF != 0,
        cache_metadata: capabilities & capability::CACHE_METADATA != 0,
        charset: settings.results,
        status: session.status_flags(),
        progress: capabilities & capability::PROGRESS != 0,
        files: (capabilities & capability::LOCAL_FILES != 0).then(|| FileLimits {
            packet_bytes_max: session.variables().common.max_allowed_packet as usize,
            read_timeout: settings.read_timeout,
            idle_timeout: settings.wait_timeout,
        }),
    }
}

/// Logs the errors that the operator must know about, not only the client that got them.
pub(super) fn note_storage_error(shared: &Shared, result: &Result<(), SqlError>) {
    /// Disk full, I/O errors, damaged pages, internal errors, and changes refused after one of these.
    const CODES: [u16; 5] = [1021, 1030, 1034, 1105, 1290];
    if let Err(error) = result
        && CODES.contains(&error.code())
    {
        shared.log.storage_error(&error.message);
    }
}

pub(super) fn write_error(writer: &mut PacketWriter, error: &SqlError) {
    response::error(writer, error.code(), Some(error.sqlstate()), &error.message);
}

//! Commands and their answers.

use super::client_file::FileLimits;
use super::settings::Settings;
use super::sink::{Encoding, Form, Scratch, WireSink};
use super::statements::{KeptDefinitions, Statements};
use super::{Channel, Connection, End, authenticate, cells, columns, malformed};
use crate::registry::CommandName;
use crate::shared::Shared;
use sql::{ErrorKind, Session, SqlError};
use types::ValueRef;
use wire::constants::capability;
use wire::frame::Packet;
use wire::handshake::ChangeUser;
use wire::response::{self, OkFields, OkHeader, PrepareOk};
use wire::{Command, PacketWriter, WireValue, params};

impl<'s> Connection<'s> {
    pub(super) fn new(shared: &'s Shared, channel: Channel, session: Session) -> Connection<'s> {
        let settings = Settings::of(&session);
        let mut connection = Connection {
            shared,
            channel,
            interrupt: session.interrupt().clone(),
            session,
            statements: Statements::default(),
            database: None,
            scratch: Scratch::default(),
            settings,
        };
        connection.apply_settings();
        connection.note_database();
        connection
    }

    /// Errors of the socket show when it is next used.
    fn apply_settings(&mut self) {
        self.channel.idle_timeout = self.settings.wait_timeout;
        self.channel.read_timeout = self.settings.read_timeout;
        let stream = &self.channel.entry.stream;
        let _ = stream.set_read_timeout(self.settings.wait_timeout);
        let _ = stream.set_write_timeout(self.settings.write_timeout);
    }

    /// Called after commands that may have changed the session.
    fn after_change(&mut self) {
        let now = Settings::of(&self.session);
        if now != self.settings {
            self.settings = now;
            self.apply_settings();
        }
        self.note_database();
    }

    /// Tells the process list if the default database changed.
    fn note_database(&mut self) {
        let now = self.session.database();
        let same = match (now, &self.database) {
            (Some(now), Some(before)) => base::sync::Arc::ptr_eq(now, before),
            (None, None) => true,
            _ => false,
        };
        if !same {
            self.database = now.cloned();
            self.channel.entry.set_database(now);
        }
    }

    /// Runs one command; its answer is in the writer, or sent already.
    pub(super) fn command(&mut self, packet: &Packet) -> Result<(), End> {
        match Command::parse(self.channel.reader.payload(packet)).map_err(malformed)? {
            Command::Query(_) => self.query(packet),
            Command::StmtExecute { .. } => self.execute(packet),
            Command::StmtPrepare(_) => self.prepare(packet),
            Command::ChangeUser(_) => self.change_user(packet),
            _ => self.small_command(packet),
        }
    }

    fn query(&mut self, packet: &Packet) -> Result<(), End> {
        let Connection { channel, session, interrupt, scratch, settings, shared, .. } = self;
        let Channel { reader, writer, entry, capabilities, .. } = channel;
        let Ok(Command::Query(text)) = Command::parse(reader.payload(packet)) else { return Ok(()) };
        entry.begin(CommandName::Query, text);
        let text = settings.statement(text);
        let form = form(*capabilities, session, settings, Encoding::Text);
        let mut sink = WireSink::new(writer, entry, interrupt, scratch, form);
        let result = session.query(&text, &mut sink);
        note_storage_error(shared, &result);
        let may_have_changed = result.is_err() || sink.had_other_than_rows();
        sink.finish(result, session.status_flags())?;
        if may_have_changed {
            self.after_change();
        }
        Ok(())
    }

    fn execute(&mut self, packet: &Packet) -> Result<(), End> {
        let Connection { channel, session, interrupt, statements, scratch, settings, shared, .. } = self;
        let Channel { reader, writer, entry, capabilities, .. } = channel;
        let Ok(Command::StmtExecute { statement: id, params: encoded, .. }) =
            Command::parse(reader.payload(packet))
        else {
            return Ok(());
        };
        let statement = match statements.get(id, "mysqld_stmt_execute") {
            Ok(statement) => statement,
            Err(error) => {
                write_error(writer, &error);
                return Ok(());
            }
        };
        entry.begin_prepared(&statement.text);
        if let Some(error) = statement.long_data.take_error() {
            statement.long_data.clear();
            write_error(writer, &error);
            return Ok(());
        }
        let long_data = &statement.long_data;
        let mut values = scratch.take_params();
        params::read(
            encoded,
            statement.params,
            &mut statement.types,
            |param| long_data.get(param),
            |value| match value {
                WireValue::Int(number) => values.push(ValueRef::Int(number)),
                value => values.push(cells::parameter(value)),
            },
        )
        .map_err(malformed)?;
        let form = form(*capabilities, session, settings, Encoding::Binary);
        let mut sink =
            WireSink::new(writer, entry, interrupt, scratch, form).of_prepared(&mut statement.kept);
        let result = session.execute(id, &values, &mut sink);
        note_storage_error(shared, &result);
        let may_have_changed = result.is_err() || sink.had_other_than_rows();
        sink.finish(result, session.status_flags())?;
        scratch.keep_params(values);
        statement.long_data.clear();
        if may_have_changed {
            self.after_change();
        }
        Ok(())
    }

    fn prepare(&mut self, packet: &Packet) -> Result<(), End> {
        let Connection { channel, session, statements, settings, shared, .. } = self;
        let Channel { reader, writer, entry, capabilities, .. } = channel;
        let Ok(Command::StmtPrepare(text)) = Command::parse(reader.payload(packet)) else { return Ok(()) };
        entry.begin(CommandName::Prepare, text);
        let statements_max = shared.instance.globals().values().unsigned("max_prepared_stmt_count") as usize;
        if statements.len() >= statements_max {
            let message = format!(
                "Can't create more than max_prepared_stmt_count statements (current value: {statements_max})"
            );
            write_error(writer, &SqlError::new(ErrorKind::TooManyStatements, message));
            return Ok(());
        }
        let text = settings.statement(text);
        let prepared = match session.prepare(&text) {
            Ok(prepared) => prepared,
            Err(error) => {
                write_error(writer, &error);
                return Ok(());
            }
        };
        let keeps = *capabilities & capability::CACHE_METADATA != 0 && !prepared.columns.is_empty();
        let kept =
            keeps.then(|| KeptDefinitions { columns: prepared.columns.clone(), charset: settings.results });
        statements.add(prepared.id, prepared.params.into(), &text, kept);
        let answer = PrepareOk {
            statement: prepared.id,
            columns: prepared.columns.len() as u16,
            params: prepared.params,
            warnings: 0,
        };
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
        Ok(())
    }

    fn change_user(&mut self, packet: &Packet) -> Result<(), End> {
        // Further packets follow, which the reader must be free for.
        let request = self.channel.reader.payload(packet)[1..].to_vec();
        let request = ChangeUser::parse(&request).map_err(malformed)?;
        self.channel.entry.begin(CommandName::ChangeUser, b"");
        self.session = authenticate::change_user(self.shared, &mut self.channel, request)?;
        self.interrupt = self.session.interrupt().clone();
        self.statements.clear();
        self.after_change();
        Ok(())
    }

    /// Commands that are answered with a packet, or not at all.
    fn small_command(&mut self, packet: &Packet) -> Result<(), End> {
        let Connection { channel, session, statements, shared, .. } = self;
        let Channel { reader, writer, entry, capabilities, .. } = channel;
        let command = Command::parse(reader.payload(packet)).map_err(malformed)?;
        let begin = |name| entry.begin(name, b"");
        let mut changed = false;
        let result = match command {
            Command::Quit => return Err(End::Quit),
            Command::Ping => {
                begin(CommandName::Ping);
                Ok(())
            }
            Command::InitDb(name) => {
                begin(CommandName::InitDb);
                changed = true;
                session.use_database(&String::from_utf8_lossy(name))
            }
            Command::ResetConnection => {
                begin(CommandName::ResetConnection);
                session.reset();
                statements.clear();
                changed = true;
                Ok(())
            }
            Command::Statistics => {
                begin(CommandName::Statistics);
                writer.packet(shared.statistics().as_bytes());
                return Ok(());
            }
            Command::SetMultiStatements(on) => {
                session.set_multi_statements(on);
                if *capabilities & capability::DEPRECATE_EOF == 0 {
                    response::eof(writer, session.status_flags(), 0);
                } else {
                    let fields = OkFields { status: session.status_flags(), ..OkFields::default() };
                    response::ok(writer, OkHeader::EndOfRows, &fields);
                }
                return Ok(());
            }
            Command::StmtSendLongData { statement, param, data } => {
                let bytes_max = session.variables().common.max_allowed_packet as usize;
                // Without an answer there is nobody to tell of an unknown statement.
                if let Ok(statement) = statements.get(statement, "") {
                    statement.long_data.append(param.into(), statement.params, data, bytes_max);
                }
                return Ok(());
            }
            Command::StmtClose(statement) => {
                session.close_statement(statement);
                statements.remove(statement);
                return Ok(());
            }
            Command::StmtReset(statement) => {
                statements.get(statement, "mysqld_stmt_reset").map(|statement| statement.long_data.clear())
            }
            Command::StmtFetch { statement, .. } => {
                let message = format!("The statement ({statement}) has no open cursor.");
                Err(SqlError::new(ErrorKind::StatementHasNoOpenCursor, message))
            }
            Command::ProcessInfo => return self.run_for_client(b"SHOW PROCESSLIST"),
            Command::ProcessKill(id) => return self.run_for_client(format!("KILL {id}").as_bytes()),
            Command::FieldList => Err(refused("COM_FIELD_LIST; SHOW COLUMNS tells the same")),
            Command::Refused(name) => Err(refused(name)),
            Command::Unknown(_) => Err(SqlError::new(ErrorKind::UnknownCommand, "Unknown command")),
            Command::Query(_)
            | Command::StmtExecute { .. }
            | Command::StmtPrepare(_)
            | Command::ChangeUser(_) => Ok(()),
        };
        match result {
            Ok(()) => {
                let fields = OkFields { status: session.status_flags(), ..OkFields::default() };
                response::ok(writer, OkHeader::Statement, &fields);
            }
            Err(error) => write_error(writer, &error),
        }
        if changed {
            self.after_change();
        }
        Ok(())
    }

    /// A command that is an old form of a statement.
    fn run_for_client(&mut self, text: &[u8]) -> Result<(), End> {
        let Connection { channel, session, interrupt, scratch, settings, .. } = self;
        let Channel { writer, entry, capabilities, .. } = channel;
        entry.begin(CommandName::Query, text);
        let form = form(*capabilities, session, settings, Encoding::Text);
        let mut sink = WireSink::new(writer, entry, interrupt, scratch, form);
        let result = session.query(text, &mut sink);
        sink.finish(result, session.status_flags())?;
        Ok(())
    }
}

fn form(capabilities: u64, session: &Session, settings: &Settings, encoding: Encoding) -> Form {
    Form {
        encoding,
        deprecate_eof: capabilities & capability::DEPRECATE_EOF != 0,
        cache_metadata: capabilities & capability::CACHE_METADATA != 0,
        charset: settings.results,
        status: session.status_flags(),
        files: (capabilities & capability::LOCAL_FILES != 0).then(|| FileLimits {
            packet_bytes_max: session.variables().common.max_allowed_packet as usize,
            read_timeout: settings.read_timeout,
            idle_timeout: settings.wait_timeout,
        }),
    }
}

/// Errors that an operator has to hear of, not only the client who met them.
fn note_storage_error(shared: &Shared, result: &Result<(), SqlError>) {
    /// Disk full, I/O errors, damaged pages, what should not happen at all, and changes refused after one of these.
    const CODES: [u16; 5] = [1021, 1030, 1034, 1105, 1290];
    if let Err(error) = result
        && CODES.contains(&error.code())
    {
        shared.log.storage_error(&error.message);
    }
}

fn write_error(writer: &mut PacketWriter, error: &SqlError) {
    response::error(writer, error.code(), Some(error.sqlstate()), &error.message);
}

fn refused(what: &str) -> SqlError {
    SqlError::new(ErrorKind::NotSupported, format!("This version of Latchwork doesn't support {what}"))
}

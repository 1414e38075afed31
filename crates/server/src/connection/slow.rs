//! Which statements go to the slow query log.

use super::{Connection, attributes, cells};
use crate::slow_log::SlowStatement;
use std::time::SystemTime;
use wire::frame::Packet;
use wire::{Command, params};

impl Connection<'_> {
    /// Counts the statement that was just answered as slow and logs it, if the variables ask for that.
    #[cold]
    pub(super) fn note_slow(&mut self, packet: &Packet, micros: u64, is_slow: bool) {
        let figures = self.runner.session.figures();
        let values = self.runner.session.variables().values();
        let is_wanted = is_slow || figures.scanned_whole;
        if !is_wanted || figures.rows_examined < values.unsigned("min_examined_row_limit") {
            return;
        }
        if is_slow {
            self.runner.session.count_slow();
        }
        let globals = self.shared.instance.globals().values();
        let to_file = globals.text("log_output").split(',').any(|output| output == "FILE");
        if !(to_file && globals.boolean("log_slow_query") && values.boolean("log_slow_query")) {
            return;
        }
        // A relative path begins in the data directory.
        let path = self.shared.instance.engine().dir().join(globals.text("log_slow_query_file"));
        let process = self.channel.output.entry.process();
        let statement = SlowStatement {
            user: &process.user,
            host: &process.host,
            connection: process.id,
            database: process.database.as_deref(),
            ended: SystemTime::now(),
            micros,
            figures,
            text: &self.statement_text(packet),
        };
        if let Err(error) = self.shared.slow_log.write(&path, &statement) {
            self.shared
                .log
                .storage_error(&format!("cannot write the slow query log {}: {error}", path.display()));
        }
    }

    /// The text of the statement in a packet. A prepared statement is shown with its values, except those
    /// that were sent ahead as long data.
    fn statement_text(&self, packet: &Packet) -> Vec<u8> {
        let capabilities = self.channel.output.capabilities;
        match Command::parse(self.channel.reader.payload(packet)) {
            Ok(Command::Query(contents)) => {
                let (_, text) =
                    attributes::of_query(capabilities, contents, &self.runner.session).unwrap_or_default();
                self.runner.settings.statement(text).into_owned()
            }
            Ok(Command::StmtExecute { statement, flags, params: encoded }) => {
                let Some(statement) = self.runner.statements.find(statement) else { return Vec::new() };
                let (_, encoded) =
                    attributes::of_execution(capabilities, encoded, flags, statement, &self.runner.session)
                        .unwrap_or_default();
                let zone = self.runner.session.variables().zone();
                let mut values = Vec::new();
                let mut types = statement.types.clone();
                let read = params::read(
                    &encoded,
                    statement.params,
                    &mut types,
                    |_| None,
                    |value| values.push(cells::parameter(value, zone)),
                );
                match read {
                    Ok(()) => {
                        sql::with_values(&statement.text, self.runner.session.lexical(), &values).into_bytes()
                    }
                    Err(_) => statement.text.to_vec(),
                }
            }
            _ => Vec::new(),
        }
    }
}

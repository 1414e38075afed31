//! COM_STMT_BULK_EXECUTE: a prepared statement with many rows of parameters.

use super::commands::{After, form, note_storage_error, write_error};
use super::sink::{Encoding, WireSink};
use super::{End, Output, Runner, cells, malformed};
use crate::shared::Shared;
use sql::variables::Zone;
use sql::{BulkParam, ErrorKind, ParameterRows, SqlError};
use wire::command::BULK_HAS_TYPES;
use wire::constants::capability;
use wire::params::{BulkRows, BulkValue, read_types};

/// The rows of a packet, as the session reads them.
struct PacketRows<'a> {
    rows: BulkRows<'a>,
    /// See [`cells::parameter`].
    zone: Zone,
}

impl<'a> ParameterRows<'a> for PacketRows<'a> {
    fn rewind(&mut self) {
        self.rows.rewind();
    }

    fn next_row(&mut self, row: &mut Vec<BulkParam<'a>>) -> bool {
        row.clear();
        let zone = &self.zone;
        self.rows.next_row(|value| {
            row.push(match value {
                BulkValue::Value(value) => BulkParam::Value(cells::parameter(value, zone)),
                BulkValue::Default => BulkParam::Default,
                BulkValue::Ignore => BulkParam::Ignore,
            });
        })
    }
}

impl Runner {
    /// `encoded` has the types of the parameters, if the flags say so, and their rows.
    pub(super) fn execute_bulk(
        &mut self,
        shared: &Shared,
        output: &mut Output,
        id: u32,
        flags: u16,
        encoded: &[u8],
    ) -> Result<After, End> {
        let Runner { session, interrupt, statements, scratch, settings } = self;
        let Output { writer, entry, capabilities, changes } = output;
        let id = statements.number(id);
        let statement = match statements.get(id, "mysqld_stmt_bulk_execute") {
            Ok(statement) => statement,
            Err(error) => {
                write_error(writer, &error);
                return Ok(After::Unchanged);
            }
        };
        entry.begin_prepared(&statement.text);
        statement.long_data.clear();
        statement.cursor = None;
        // MariaDB knows a flag that asks for the number of each row, and refuses it like this.
        let is_known = flags & !BULK_HAS_TYPES == 0;
        if !is_known || statement.params == 0 || *capabilities & capability::STMT_BULK_OPERATIONS == 0 {
            let text = "This command is not supported in the prepared statement protocol yet";
            write_error(writer, &SqlError::new(ErrorKind::NotPreparable, text));
            return Ok(After::Unchanged);
        }
        let encoded = match flags & BULK_HAS_TYPES {
            0 => encoded,
            _ => read_types(encoded, statement.params, &mut statement.types).map_err(malformed)?,
        };
        let rows = BulkRows::new(encoded, &statement.types).map_err(malformed)?;
        let in_utf8;
        let rows = match settings.converts_texts() {
            true => {
                in_utf8 = rows.with_texts(|text| settings.statement(text));
                BulkRows::new(&in_utf8, &statement.types).map_err(malformed)?
            }
            false => rows,
        };
        let form = form(*capabilities, session, settings, Encoding::Binary);
        let mut sink = WireSink::new(writer, entry, interrupt, scratch, changes, form);
        let zone = session.variables().zone().clone();
        let result = session.execute_bulk(id, &mut PacketRows { rows, zone }, &mut sink);
        note_storage_error(shared, &result);
        sink.finish(result, session)?;
        Ok(After::MayHaveChanged)
    }
}

//! Writing commands. Each is one packet, appended to a writer whose sequence starts over.

use crate::command::com;
use crate::value::WireValue;
use crate::{PacketWriter, params};

/// A command that is one byte and perhaps some text: COM_PING, COM_INIT_DB, COM_QUIT...
pub fn simple(writer: &mut PacketWriter, command: u8, text: &[u8]) {
    writer.set_sequence(0);
    let out = writer.begin();
    out.push(command);
    out.extend_from_slice(text);
    writer.finish();
}

pub fn query(writer: &mut PacketWriter, sql: &[u8]) {
    simple(writer, com::QUERY, sql);
}

pub fn prepare(writer: &mut PacketWriter, sql: &[u8]) {
    simple(writer, com::STMT_PREPARE, sql);
}

/// Executes with parameters and their types. Most of the work is appending the values: see
/// [`WireValue::write`].
pub fn execute(writer: &mut PacketWriter, statement: u32, values: &[WireValue<'_>]) {
    execute_except(writer, statement, values, |_| false);
}

/// As [`execute`], for a statement with parameters that were sent by [`long_data`].
pub fn execute_except(
    writer: &mut PacketWriter,
    statement: u32,
    values: &[WireValue<'_>],
    is_long_data: impl Fn(usize) -> bool,
) {
    writer.set_sequence(0);
    let out = writer.begin();
    out.push(com::STMT_EXECUTE);
    out.extend_from_slice(&statement.to_le_bytes());
    out.push(0);
    out.extend_from_slice(&1u32.to_le_bytes());
    params::write_except(out, values, is_long_data);
    writer.finish();
}

/// Sends a part of a parameter's value ahead. The server does not answer.
pub fn long_data(writer: &mut PacketWriter, statement: u32, param: u16, data: &[u8]) {
    writer.set_sequence(0);
    let out = writer.begin();
    out.push(com::STMT_SEND_LONG_DATA);
    out.extend_from_slice(&statement.to_le_bytes());
    out.extend_from_slice(&param.to_le_bytes());
    out.extend_from_slice(data);
    writer.finish();
}

/// The server does not answer.
pub fn close_statement(writer: &mut PacketWriter, statement: u32) {
    simple(writer, com::STMT_CLOSE, &statement.to_le_bytes());
}

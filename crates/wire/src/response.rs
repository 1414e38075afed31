//! The packets that end a response: OK, ERR, EOF.

use crate::constants::{capability, status};
use crate::cursor::Cursor;
use crate::{Malformed, PacketWriter, put};

/// The fields of an OK packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OkFields<'a> {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub status: u16,
    pub warnings: u16,
    pub info: &'a [u8],
    /// What has changed in the session: see [`StateChange`]. Only for clients with
    /// [`capability::SESSION_TRACK`].
    pub changes: &'a [u8],
}

/// A change of the session, as OK packets tell of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateChange<'a> {
    /// A system variable has this value.
    Variable { name: &'a [u8], value: &'a [u8] },
    /// The default database.
    Schema(&'a [u8]),
    /// Something that another session would not have.
    State,
    /// The statements that would begin such a transaction.
    TransactionCharacteristics(&'a [u8]),
    /// Eight letters.
    TransactionState(&'a [u8]),
}

impl StateChange<'_> {
    /// Appends it to the changes of an OK packet: its kind, the length of what follows, and that.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        let kind = match self {
            StateChange::Variable { name, value } => {
                put::lenenc_bytes(&mut data, name);
                put::lenenc_bytes(&mut data, value);
                0
            }
            StateChange::Schema(name) => {
                put::lenenc_bytes(&mut data, name);
                1
            }
            StateChange::State => {
                data.push(b'1');
                2
            }
            StateChange::TransactionCharacteristics(text) => {
                put::lenenc_bytes(&mut data, text);
                4
            }
            StateChange::TransactionState(letters) => {
                put::lenenc_bytes(&mut data, letters);
                5
            }
        };
        out.push(kind);
        put::lenenc_bytes(out, &data);
    }
}

/// The first byte of an OK packet: the ordinary one, or that of the OK which ends a result set for clients
/// that asked for no EOF packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OkHeader {
    Statement = 0x00,
    EndOfRows = 0xfe,
}

/// The first byte of a packet that asks for a file. No result set has so many columns: as a number it is
/// NULL.
pub const FILE_REQUEST: u8 = 0xfb;

pub fn ok(writer: &mut PacketWriter, header: OkHeader, fields: &OkFields<'_>) {
    let out = writer.begin();
    out.push(header as u8);
    put::lenenc(out, fields.affected_rows);
    put::lenenc(out, fields.last_insert_id);
    let changed = if fields.changes.is_empty() { 0 } else { status::SESSION_STATE_CHANGED };
    out.extend_from_slice(&(fields.status | changed).to_le_bytes());
    out.extend_from_slice(&fields.warnings.to_le_bytes());
    // The documentation says that the text is the rest of the packet, but servers and clients use a length
    // before it.
    if !fields.info.is_empty() || !fields.changes.is_empty() {
        put::lenenc_bytes(out, fields.info);
    }
    if !fields.changes.is_empty() {
        put::lenenc_bytes(out, fields.changes);
    }
    writer.finish();
}

pub fn eof(writer: &mut PacketWriter, status: u16, warnings: u16) {
    let out = writer.begin();
    out.push(0xfe);
    out.extend_from_slice(&warnings.to_le_bytes());
    out.extend_from_slice(&status.to_le_bytes());
    writer.finish();
}

/// An error. `sqlstate` is `None` while the client has not yet said which protocol it speaks.
pub fn error(writer: &mut PacketWriter, code: u16, sqlstate: Option<&[u8; 5]>, message: &str) {
    let out = writer.begin();
    out.push(0xff);
    out.extend_from_slice(&code.to_le_bytes());
    if let Some(sqlstate) = sqlstate {
        out.push(b'#');
        out.extend_from_slice(sqlstate);
    }
    // Clients keep errors in buffers of 512 bytes.
    let mut end = message.len().min(511);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&message.as_bytes()[..end]);
    writer.finish();
}

/// The number in place of an error's in a report of progress.
const PROGRESS: u16 = 0xffff;

/// How far a statement is. It looks like an error, comes before the answer, and is for clients with
/// [`capability::PROGRESS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgressReport<'a> {
    /// From 1 on.
    pub stage: u8,
    pub stages: u8,
    /// How much of the stage is done, in thousandths of a percent.
    pub done: u32,
    /// What the statement does in this stage.
    pub what: &'a [u8],
}

impl<'a> ProgressReport<'a> {
    pub fn write(&self, writer: &mut PacketWriter) {
        let out = writer.begin();
        out.push(0xff);
        out.extend_from_slice(&PROGRESS.to_le_bytes());
        // How many texts there are.
        out.push(1);
        out.extend_from_slice(&[self.stage, self.stages]);
        out.extend_from_slice(&self.done.to_le_bytes()[..3]);
        put::lenenc_bytes(out, self.what);
        writer.finish();
    }

    /// Reads a report. `None` if the payload is none, but an error or something else.
    ///
    /// # Errors
    /// If the payload ends too soon.
    pub fn parse(payload: &'a [u8]) -> Result<Option<ProgressReport<'a>>, Malformed> {
        let Some(rest) = payload.strip_prefix(&[0xff, 0xff, 0xff]) else { return Ok(None) };
        let mut cursor = Cursor::new(rest);
        cursor.u8("number of texts")?;
        let (stage, stages) = (cursor.u8("stage")?, cursor.u8("stages")?);
        let done = cursor.bytes(3, "progress")?;
        let done = u32::from_le_bytes([done[0], done[1], done[2], 0]);
        Ok(Some(ProgressReport { stage, stages, done, what: cursor.lenenc_bytes("stage")? }))
    }
}

/// Asks the client for a file. The client sends it in packets, with an empty one at the end.
pub fn file_request(writer: &mut PacketWriter, name: &str) {
    let out = writer.begin();
    out.push(FILE_REQUEST);
    out.extend_from_slice(name.as_bytes());
    writer.finish();
}

/// Whether column definitions follow their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Definitions {
    /// They follow, and the packet does not say so: without [`capability::CACHE_METADATA`] they always
    /// follow.
    #[default]
    Implied,
    Follow,
    /// They do not follow, because the client keeps those that were sent before. The EOF packet after them is
    /// still sent.
    Omitted,
}

/// The first packet of a result set.
pub fn column_count(writer: &mut PacketWriter, columns: usize, definitions: Definitions) {
    let out = writer.begin();
    put::lenenc(out, columns as u64);
    match definitions {
        Definitions::Implied => {}
        Definitions::Follow => out.push(1),
        Definitions::Omitted => out.push(0),
    }
    writer.finish();
}

/// Reads [`column_count`]'s packet; `capabilities` are those of both sides.
///
/// # Errors
/// If the payload ends too soon or does not follow the protocol.
pub fn parse_column_count(payload: &[u8], capabilities: u64) -> Result<(u64, Definitions), Malformed> {
    let mut cursor = Cursor::new(payload);
    let columns = cursor.lenenc("number of columns")?;
    if capabilities & capability::CACHE_METADATA == 0 {
        return Ok((columns, Definitions::Implied));
    }
    let follow = cursor.u8("whether definitions follow")? != 0;
    Ok((columns, if follow { Definitions::Follow } else { Definitions::Omitted }))
}

/// The answer to COM_STMT_PREPARE, before the definitions of parameters and columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrepareOk {
    pub statement: u32,
    pub columns: u16,
    pub params: u16,
    pub warnings: u16,
}

impl PrepareOk {
    pub fn write(&self, writer: &mut PacketWriter) {
        let out = writer.begin();
        out.push(0);
        out.extend_from_slice(&self.statement.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        out.extend_from_slice(&self.params.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        writer.finish();
    }

    /// Reads the first packet of the answer to COM_STMT_PREPARE.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn parse(payload: &[u8]) -> Result<PrepareOk, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("answer to prepare")? != 0 {
            return Err(Malformed::new("answer to prepare"));
        }
        let statement = cursor.u32("statement id")?;
        let columns = cursor.u16("number of columns")?;
        let params = cursor.u16("number of parameters")?;
        cursor.u8("filler")?;
        Ok(PrepareOk { statement, columns, params, warnings: cursor.u16("warnings")? })
    }
}

impl<'a> OkFields<'a> {
    /// Reads an OK packet with either header.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn parse(payload: &'a [u8]) -> Result<OkFields<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        if !matches!(cursor.u8("OK packet")?, 0x00 | 0xfe) {
            return Err(Malformed::new("OK packet"));
        }
        let affected_rows = cursor.lenenc("affected rows")?;
        let last_insert_id = cursor.lenenc("last insert id")?;
        let status = cursor.u16("status")?;
        let warnings = cursor.u16("warnings")?;
        let info = if cursor.is_empty() { b"" } else { cursor.lenenc_bytes("text of an OK packet")? };
        let changes = match status & status::SESSION_STATE_CHANGED {
            0 => b"",
            _ => cursor.lenenc_bytes("changes of the session")?,
        };
        Ok(OkFields { affected_rows, last_insert_id, status, warnings, info, changes })
    }

    /// Reads an EOF packet, whose fields are fewer.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn parse_eof(payload: &'a [u8]) -> Result<OkFields<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("EOF packet")? != 0xfe {
            return Err(Malformed::new("EOF packet"));
        }
        let warnings = cursor.u16("warnings")?;
        Ok(OkFields { warnings, status: cursor.u16("status")?, ..OkFields::default() })
    }
}

/// An ERR packet, as a client reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerError {
    pub code: u16,
    /// Empty in errors sent before the handshake.
    pub sqlstate: String,
    pub message: String,
}

impl ServerError {
    /// Reads an ERR packet.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn parse(payload: &[u8]) -> Result<ServerError, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("ERR packet")? != 0xff {
            return Err(Malformed::new("ERR packet"));
        }
        let code = cursor.u16("error code")?;
        let mut sqlstate = String::new();
        if cursor.peek() == Some(b'#') {
            sqlstate = String::from_utf8_lossy(&cursor.bytes(6, "sqlstate")?[1..]).into_owned();
        }
        Ok(ServerError { code, sqlstate, message: String::from_utf8_lossy(cursor.rest()).into_owned() })
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code, self.sqlstate, self.message)
    }
}

impl std::error::Error for ServerError {}

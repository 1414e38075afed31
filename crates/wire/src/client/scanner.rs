//! Follows responses without looking into rows.

use crate::constants::status;
use crate::cursor::Cursor;
use crate::response::{OkFields, PrepareOk, ProgressReport, ServerError};
use crate::{FrameError, Malformed, PacketReader};

/// The kind of the request, because a response does not say what it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseKind {
    /// COM_QUERY, COM_STMT_EXECUTE, COM_PING and the others that give OK, an error, or result sets.
    Results,
    /// COM_STMT_PREPARE.
    Prepare,
}

/// The figures of a response.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Rows of all result sets.
    pub rows: u64,
    /// Payload bytes of those rows.
    pub row_bytes: u64,
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub warnings: u16,
    /// The answer to a prepare.
    pub prepared: Option<PrepareOk>,
    pub error: Option<ServerError>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    First,
    /// Definitions of columns (or of parameters and columns) to skip. Each list ends with an EOF packet if
    /// the flag says so.
    Definitions {
        left: u64,
        then_columns: u64,
        in_prepare: bool,
    },
    DefinitionsEof {
        then_columns: u64,
        in_prepare: bool,
    },
    Rows,
}

/// Follows one response at a time, packet by packet. Rows cost a look at their first byte.
#[derive(Clone, Debug)]
pub struct ResponseScanner {
    kind: ResponseKind,
    step: Step,
    eof_packets: bool,
    summary: Summary,
}

impl ResponseScanner {
    /// `deprecate_eof` is what both sides agreed on in the handshake. If they agreed on CACHE_METADATA, this
    /// cannot follow the responses to executions.
    pub fn new(deprecate_eof: bool) -> ResponseScanner {
        ResponseScanner {
            kind: ResponseKind::Results,
            step: Step::First,
            eof_packets: !deprecate_eof,
            summary: Summary::default(),
        }
    }

    /// Gets ready for the response to a new command.
    pub fn expect(&mut self, kind: ResponseKind) {
        self.kind = kind;
        self.step = Step::First;
        self.summary = Summary::default();
    }

    /// Takes packets from `reader` as long as there are any. True when the response is complete.
    ///
    /// # Errors
    /// If a packet is malformed or out of sequence.
    pub fn advance(&mut self, reader: &mut PacketReader) -> Result<bool, ScanError> {
        while let Some(packet) = reader.next_packet().map_err(ScanError::Frame)? {
            if self.packet(reader.payload(&packet)).map_err(ScanError::Malformed)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The figures so far. They are complete once [`ResponseScanner::advance`] or [`ResponseScanner::packet`]
    /// has returned true.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Takes one payload. True when the response is complete.
    ///
    /// # Errors
    /// If the payload does not follow the protocol.
    pub fn packet(&mut self, payload: &[u8]) -> Result<bool, Malformed> {
        if payload.first() == Some(&0xff) {
            if ProgressReport::parse(payload)?.is_some() {
                return Ok(false);
            }
            self.summary.error = Some(ServerError::parse(payload)?);
            return Ok(true);
        }
        match self.step {
            Step::First => self.first(payload),
            Step::Definitions { left, then_columns, in_prepare } => {
                self.step = match left - 1 {
                    0 if self.eof_packets => Step::DefinitionsEof { then_columns, in_prepare },
                    0 => return Ok(self.after_definitions(then_columns, in_prepare)),
                    left => Step::Definitions { left, then_columns, in_prepare },
                };
                Ok(false)
            }
            Step::DefinitionsEof { then_columns, in_prepare } => {
                OkFields::parse_eof(payload)?;
                Ok(self.after_definitions(then_columns, in_prepare))
            }
            Step::Rows => self.row(payload),
        }
    }

    fn first(&mut self, payload: &[u8]) -> Result<bool, Malformed> {
        if self.kind == ResponseKind::Prepare {
            let prepared = PrepareOk::parse(payload)?;
            self.summary.prepared = Some(prepared);
            let (params, columns) = (u64::from(prepared.params), u64::from(prepared.columns));
            let (left, then_columns) = if params > 0 { (params, columns) } else { (columns, 0) };
            if left == 0 {
                return Ok(true);
            }
            self.step = Step::Definitions { left, then_columns, in_prepare: true };
            return Ok(false);
        }
        match payload.first() {
            Some(0) => self.end(OkFields::parse(payload)?),
            Some(0xfe) if payload.len() < 9 => self.end(OkFields::parse_eof(payload)?),
            Some(0xfb) => Err(Malformed::new("LOCAL INFILE was not agreed on")),
            _ => {
                let left = Cursor::new(payload).lenenc("number of columns")?;
                if left == 0 {
                    return Err(Malformed::new("number of columns"));
                }
                self.step = Step::Definitions { left, then_columns: 0, in_prepare: false };
                Ok(false)
            }
        }
    }

    fn after_definitions(&mut self, then_columns: u64, in_prepare: bool) -> bool {
        if then_columns > 0 {
            self.step = Step::Definitions { left: then_columns, then_columns: 0, in_prepare };
            return false;
        }
        self.step = Step::Rows;
        in_prepare
    }

    fn row(&mut self, payload: &[u8]) -> Result<bool, Malformed> {
        if payload.first() == Some(&0xfe) {
            if self.eof_packets && payload.len() < 9 {
                return self.end(OkFields::parse_eof(payload)?);
            }
            if !self.eof_packets && payload.len() < crate::frame::PART_BYTES_MAX {
                return self.end(OkFields::parse(payload)?);
            }
        }
        self.summary.rows += 1;
        self.summary.row_bytes += payload.len() as u64;
        Ok(false)
    }

    fn end(&mut self, ok: OkFields<'_>) -> Result<bool, Malformed> {
        self.summary.affected_rows += ok.affected_rows;
        self.summary.last_insert_id = ok.last_insert_id;
        self.summary.warnings = ok.warnings;
        self.step = Step::First;
        Ok(ok.status & status::MORE_RESULTS == 0)
    }
}

/// Why a response cannot be followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanError {
    Frame(FrameError),
    Malformed(Malformed),
}

impl std::fmt::Display for ScanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScanError::Frame(error) => error.fmt(f),
            ScanError::Malformed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ScanError {}

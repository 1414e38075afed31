//! One connection of the lab's own clients: a packet out, an answer in, counted by the headers of its rows.

use super::socket::Socket;
use crate::error::{Error, Result};
use std::io::{ErrorKind, Read, Write};
use wire::PacketReader;
use wire::client::{Connection, ResponseKind, ResponseScanner, ScanError, Summary};

#[derive(Debug)]
pub(crate) struct Exchange {
    target: String,
    socket: Socket,
    reader: PacketReader,
    scanner: ResponseScanner,
}

impl Exchange {
    pub(crate) fn new(target: &str, connection: Connection<Socket>) -> Exchange {
        Exchange {
            target: target.to_string(),
            reader: PacketReader::new(usize::MAX),
            scanner: ResponseScanner::new(connection.deprecate_eof()),
            socket: connection.into_stream(),
        }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.scanner.expect(ResponseKind::Results);
        self.reader.set_sequence(1);
        // The packet is small, and nothing else is under way: it fits into the socket's buffer.
        self.socket.write_all(packet).map_err(Error::io(format!("{} went away", self.target)))
    }

    /// Takes what has arrived. True once the answer is complete. `row` gets each row's bytes and says whether
    /// the row may be in the answer.
    pub(crate) fn receive(&mut self, mut row: impl FnMut(&[u8]) -> bool) -> Result<bool> {
        loop {
            let is_complete = self.receive_once(&mut row)?;
            // A caller that waits for the operating system would wait for ever.
            if is_complete || !self.socket.holds_bytes() {
                return Ok(is_complete);
            }
        }
    }

    fn receive_once(&mut self, row: &mut impl FnMut(&[u8]) -> bool) -> Result<bool> {
        let count = match self.socket.read(self.reader.space()) {
            Ok(0) => return Err(self.protocol("it closed the connection in the middle of an answer")),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(Error::io(format!("{} went away", self.target))(error)),
        };
        self.reader.received(count);
        loop {
            let packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return Ok(false),
                Err(error) => return Err(self.protocol(&ScanError::Frame(error).to_string())),
            };
            let payload = self.reader.payload(&packet);
            let rows = self.scanner.summary().rows;
            match self.scanner.packet(payload) {
                Ok(true) => return Ok(true),
                Ok(false) if self.scanner.summary().rows > rows && !row(payload) => {
                    return Err(self.wrong_answer("a row that was not asked for".to_string()));
                }
                Ok(false) => {}
                Err(error) => return Err(self.protocol(&error.to_string())),
            }
        }
    }

    /// Of the answer that is complete.
    pub(crate) fn summary(&self) -> &Summary {
        self.scanner.summary()
    }

    pub(crate) fn refused(&self, statement: &str, error: &wire::response::ServerError) -> Error {
        Error::Sql {
            target: self.target.clone(),
            statement: statement.to_string(),
            code: error.code,
            message: error.message.clone(),
        }
    }

    pub(crate) fn wrong_answer(&self, why: String) -> Error {
        Error::WrongAnswer { target: self.target.clone(), why }
    }

    fn protocol(&self, why: &str) -> Error {
        Error::Protocol { target: self.target.clone(), why: why.to_string() }
    }
}

//! A file that the client sends: LOAD DATA LOCAL.
//!
//! The client answers the request for the file with packets and an empty one at the end, even if the
//! statement has failed meanwhile. So the file is always read to its end: only then does the client read the
//! answer.

use super::sink::WireSink;
use sql::{ErrorKind, FileParts, SqlError};
use std::io;
use std::time::Duration;
use wire::{FrameError, PacketReader};

/// Packets are collected until a part has about this many bytes.
const PART_BYTES: usize = 256 << 10;

/// How a client's file is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileLimits {
    pub packet_bytes_max: usize,
    /// How long the next bytes may take while a file is sent.
    pub read_timeout: Duration,
    /// How long they may take between commands.
    pub idle_timeout: Duration,
}

/// A file on its way.
pub(super) struct ClientFile<'f, 'c> {
    sink: &'f mut WireSink<'c>,
    packets: PacketReader,
    limits: FileLimits,
    /// The empty packet has come, or nothing will come any more.
    ended: bool,
}

impl<'f, 'c> ClientFile<'f, 'c> {
    /// To be called after the file was asked for.
    pub(super) fn new(sink: &'f mut WireSink<'c>, limits: FileLimits) -> ClientFile<'f, 'c> {
        // The file has a reader of its own. A client that sends a command at the same time breaks the
        // protocol.
        let mut packets = PacketReader::new(limits.packet_bytes_max);
        packets.set_sequence(sink.writer.sequence());
        let mut file = ClientFile { sink, packets, limits, ended: false };
        if let Err(error) = file.sink.stream.set_read_timeout(limits.read_timeout) {
            file.fail(error);
        }
        file
    }

    /// Appends the next packet to `buffer`. False at the end of the file.
    fn packet(&mut self, buffer: &mut Vec<u8>) -> Result<bool, SqlError> {
        loop {
            match self.packets.next_packet() {
                Ok(Some(packet)) => {
                    self.ended = packet.is_empty();
                    buffer.extend_from_slice(self.packets.payload(&packet));
                    return Ok(!self.ended);
                }
                Ok(None) => self.receive()?,
                Err(FrameError::TooLarge) => {
                    let text = "Got a packet bigger than 'max_allowed_packet' bytes";
                    return Err(SqlError::new(ErrorKind::PacketTooLarge, text));
                }
                Err(error @ FrameError::OutOfOrder { .. }) => {
                    self.fail(io::Error::new(io::ErrorKind::InvalidData, error));
                    return Err(SqlError::new(ErrorKind::PacketsOutOfOrder, "Got packets out of order"));
                }
            }
        }
    }

    fn receive(&mut self) -> Result<(), SqlError> {
        let (stream, packets) = (self.sink.stream, &mut self.packets);
        let mut read = Ok(0);
        // While it waits for a slow client, the statement does not count against `thread_concurrency`. The
        // bytes are taken even if the return to the queue fails.
        let back = self.sink.interrupt.outside(|| read = stream.read(packets.space()));
        let error = match read {
            Ok(0) => {
                io::Error::new(io::ErrorKind::UnexpectedEof, "the client vanished in the middle of a file")
            }
            Ok(count) => {
                self.packets.received(count);
                self.sink.entry.count_received(count);
                return back;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return back,
            Err(error) => error,
        };
        self.fail(error);
        Err(SqlError::new(ErrorKind::NetworkReadFailed, "Got an error reading communication packets"))
    }

    /// The connection is of no use any more.
    fn fail(&mut self, error: io::Error) {
        self.ended = true;
        self.sink.failed = Some(error);
    }
}

impl FileParts for ClientFile<'_, '_> {
    fn next_part(&mut self, buffer: &mut Vec<u8>) -> Result<bool, SqlError> {
        let start = buffer.len();
        while !self.ended && buffer.len() - start < PART_BYTES && self.packet(buffer)? {}
        Ok(buffer.len() > start)
    }
}

impl Drop for ClientFile<'_, '_> {
    fn drop(&mut self) {
        let mut unwanted = Vec::new();
        while !self.ended {
            unwanted.clear();
            // The statement is over, so errors of packets no longer matter. A failed connection has set
            // `ended`.
            let _ = self.packet(&mut unwanted);
        }
        self.sink.writer.set_sequence(self.packets.sequence());
        if let Err(error) = self.sink.stream.set_read_timeout(self.limits.idle_timeout)
            && self.sink.failed.is_none()
        {
            self.sink.failed = Some(error);
        }
    }
}

//! Reading packets.

use super::{HEADER_BYTES, PART_BYTES_MAX, header};
use std::fmt;
use std::ops::Range;

/// Why a packet cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// The sequence number does not follow its predecessor. The stream cannot be trusted any more.
    OutOfOrder { expected: u8, got: u8 },
    /// The packet is longer than the limit. It was skipped to its end, and the next packet can be read.
    TooLarge,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::OutOfOrder { expected, got } => {
                write!(f, "packet number {got} where {expected} was due")
            }
            FrameError::TooLarge => f.write_str("packet larger than allowed"),
        }
    }
}

impl std::error::Error for FrameError {}

/// The place of a packet's payload in its reader. It is valid until bytes are next received into the reader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    range: Range<usize>,
}

impl Packet {
    pub fn len(&self) -> usize {
        self.range.len()
    }

    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

/// Turns received bytes into payloads. Split packets are joined inside the buffer. An unsplit packet, which
/// is the usual case, is neither copied nor allocated for.
#[derive(Debug)]
pub struct PacketReader {
    buffer: Vec<u8>,
    /// Bytes received: `buffer[..end]`.
    end: usize,
    /// The position of the next header.
    scan: usize,
    /// The complete parts of the current packet, joined. Empty if there are none.
    joined: Range<usize>,
    state: State,
    expected: u8,
    checks_numbers: bool,
    payload_bytes_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// At the header of a packet's first part.
    First,
    /// At the header of a further part.
    Further,
    /// Inside a part of a packet that is too large: the bytes left of it, and whether parts follow.
    Skipping { bytes: usize, more: bool },
}

const BUFFER_BYTES_MIN: usize = 4096;

impl PacketReader {
    pub fn new(payload_bytes_max: usize) -> PacketReader {
        PacketReader {
            buffer: Vec::new(),
            end: 0,
            scan: 0,
            joined: 0..0,
            state: State::First,
            expected: 0,
            checks_numbers: true,
            payload_bytes_max,
        }
    }

    pub fn set_payload_bytes_max(&mut self, bytes: usize) {
        self.payload_bytes_max = bytes;
    }

    /// The number that the next packet must have. The answer to the last packet begins with the same number.
    pub fn sequence(&self) -> u8 {
        self.expected
    }

    /// From now on packets may have any numbers: in the compressed protocol the frames are numbered, and
    /// MariaDB's client library gives all parts of a packet the number 0.
    pub fn ignore_sequences(&mut self) {
        self.checks_numbers = false;
    }

    pub fn set_sequence(&mut self, expected: u8) {
        self.expected = expected;
    }

    /// Room to receive into. Never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.end == self.keep_from() && self.state == State::First {
            // No bytes are waiting: start again at the front.
            self.end = 0;
            self.scan = 0;
        }
        if self.buffer.len() - self.end < self.buffer.len() / 4 || self.buffer.len() == self.end {
            self.make_room();
        }
        &mut self.buffer[self.end..]
    }

    fn keep_from(&self) -> usize {
        if self.joined.is_empty() { self.scan } else { self.joined.start }
    }

    fn make_room(&mut self) {
        let keep_from = self.keep_from();
        if keep_from > 0 {
            self.buffer.copy_within(keep_from..self.end, 0);
            self.end -= keep_from;
            self.scan -= keep_from;
            self.joined = if self.joined.is_empty() { 0..0 } else { 0..self.joined.len() };
        }
        // The buffer doubles as bytes arrive, so a header that announces a long packet does not make it grow.
        if self.buffer.len() - self.end < self.buffer.len() / 2 || self.buffer.is_empty() {
            let length = (self.buffer.len() * 2).max(BUFFER_BYTES_MIN);
            self.buffer.resize(length, 0);
        }
    }

    /// Notes that the first `count` bytes of [`PacketReader::space`] were received.
    pub fn received(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// Appends bytes that the caller has already, as `space` and `received` do for a socket.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.received(count);
            bytes = &bytes[count..];
        }
    }

    /// The next whole packet. `None` if more bytes must be received first.
    ///
    /// # Errors
    /// The packet is out of order, or too large: see [`FrameError`].
    pub fn next_packet(&mut self) -> Result<Option<Packet>, FrameError> {
        loop {
            if let State::Skipping { bytes, more } = self.state {
                let skipped = bytes.min(self.end - self.scan);
                self.scan += skipped;
                self.state = State::Skipping { bytes: bytes - skipped, more };
                if skipped < bytes {
                    return Ok(None);
                }
                if !more {
                    self.state = State::First;
                    return Err(FrameError::TooLarge);
                }
            }
            let waiting = &self.buffer[self.scan..self.end];
            if waiting.len() < HEADER_BYTES {
                return Ok(None);
            }
            let (length, sequence) = header(waiting);
            if self.checks_numbers && sequence != self.expected {
                return Err(FrameError::OutOfOrder { expected: self.expected, got: sequence });
            }
            let more = length == PART_BYTES_MAX;
            let skipping = matches!(self.state, State::Skipping { .. });
            if skipping || self.joined.len() + length > self.payload_bytes_max {
                self.joined = 0..0;
                self.scan += HEADER_BYTES;
                self.expected = self.expected.wrapping_add(1);
                self.state = State::Skipping { bytes: length, more };
                continue;
            }
            if waiting.len() < HEADER_BYTES + length {
                return Ok(None);
            }
            let part = self.scan + HEADER_BYTES..self.scan + HEADER_BYTES + length;
            self.scan = part.end;
            self.expected = self.expected.wrapping_add(1);
            let payload = if self.state == State::First {
                part
            } else {
                let joined_end = self.joined.end + length;
                self.buffer.copy_within(part, self.joined.end);
                self.joined.start..joined_end
            };
            if more {
                self.joined = payload;
                self.state = State::Further;
                continue;
            }
            self.joined = 0..0;
            self.state = State::First;
            return Ok(Some(Packet { range: payload }));
        }
    }

    /// The payload of the packet that [`PacketReader::next_packet`] gave last.
    pub fn payload(&self, packet: &Packet) -> &[u8] {
        &self.buffer[packet.range.clone()]
    }

    /// The bytes behind the last packet. They are no longer the reader's: what follows is not framed as
    /// before.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.buffer[self.scan..self.end].to_vec();
        self.end = self.scan;
        rest
    }

    /// True if there are bytes of a packet that has not been returned yet.
    pub fn has_partial(&self) -> bool {
        self.end > self.scan || self.state != State::First
    }

    /// Frees memory beyond `bytes_max` if no bytes are waiting. For idle connections.
    pub fn shrink(&mut self, bytes_max: usize) {
        if self.buffer.len() > bytes_max && !self.has_partial() {
            self.end = 0;
            self.scan = 0;
            self.buffer.truncate(bytes_max);
            self.buffer.shrink_to_fit();
        }
    }

    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }
}

//! Packets on their way in.

use super::{HEADER_BYTES, PART_BYTES_MAX, header};
use std::fmt;
use std::ops::Range;

/// Why a packet cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// A sequence number that does not follow its predecessor. The stream cannot be trusted any more.
    OutOfOrder { expected: u8, got: u8 },
    /// A packet longer than the limit. It was skipped to its end; the next packet can be read.
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

/// Where the payload of a packet lies in its reader, until the reader is next written to.
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

/// Turns bytes as they arrive into payloads. Split packets are joined inside the buffer; an unsplit
/// packet, the usual case, is neither copied nor allocated for.
#[derive(Debug)]
pub struct PacketReader {
    buffer: Vec<u8>,
    /// Bytes received: `buffer[..end]`.
    end: usize,
    /// The next header to look at.
    scan: usize,
    /// The parts of the current packet that are complete, joined. Empty (and meaningless) if there are none.
    joined: Range<usize>,
    state: State,
    expected: u8,
    payload_bytes_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// At the header of a packet's first part.
    First,
    /// At the header of a further part.
    Further,
    /// Inside a part of a packet that is too large: so many bytes left, and whether parts follow.
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
            payload_bytes_max,
        }
    }

    pub fn set_payload_bytes_max(&mut self, bytes: usize) {
        self.payload_bytes_max = bytes;
    }

    /// The number that the next packet must have; also that of the answer to the last one.
    pub fn sequence(&self) -> u8 {
        self.expected
    }

    pub fn set_sequence(&mut self, expected: u8) {
        self.expected = expected;
    }

    /// Room to receive into. Never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.end == self.keep_from() && self.state == State::First {
            // Nothing is waiting: start over at the front.
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
        // Grows by doubling with what really arrives: a header alone cannot make it take memory.
        if self.buffer.len() - self.end < self.buffer.len() / 2 || self.buffer.is_empty() {
            let length = (self.buffer.len() * 2).max(BUFFER_BYTES_MIN);
            self.buffer.resize(length, 0);
        }
    }

    /// Tells that the first `count` bytes of [`PacketReader::space`] were received.
    pub fn received(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// Appends bytes: `space` and `received` for those who have them already.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.received(count);
            bytes = &bytes[count..];
        }
    }

    /// The next whole packet; `None` until more bytes arrive.
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
            if sequence != self.expected {
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

    /// True if bytes are waiting that belong to no packet yet given out.
    pub fn has_partial(&self) -> bool {
        self.end > self.scan || self.state != State::First
    }

    /// Gives back memory beyond `bytes_max` if no bytes are waiting. For idle connections.
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

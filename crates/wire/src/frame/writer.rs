//! Writing packets.

use super::{HEADER_BYTES, PART_BYTES_MAX, header_bytes};

/// Collects packets in one buffer, which one call can write to the socket.
#[derive(Debug, Default)]
pub struct PacketWriter {
    buffer: Vec<u8>,
    /// The position of the header of the packet that is being written.
    open: Option<usize>,
    sequence: u8,
}

impl PacketWriter {
    pub fn new() -> PacketWriter {
        PacketWriter::default()
    }

    /// Sets the number of the next packet. It is 0 at the start of a command. In an answer it is one more
    /// than that of the last packet received.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Starts a packet. Its payload is what is appended to the buffer until [`PacketWriter::finish`]. The
    /// caller must not change what is in the buffer already.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.open.is_none(), "the last packet was not finished");
        self.open = Some(self.buffer.len());
        self.buffer.extend_from_slice(&[0; HEADER_BYTES]);
        &mut self.buffer
    }

    /// The buffer, to append more payload.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.open.is_some(), "no packet was begun");
        &mut self.buffer
    }

    /// Ends the packet, and splits it if it is too long for one header.
    pub fn finish(&mut self) {
        let Some(start) = self.open.take() else { return };
        let length = self.buffer.len() - start - HEADER_BYTES;
        if length < PART_BYTES_MAX {
            let header = header_bytes(length, self.sequence);
            self.buffer[start..start + HEADER_BYTES].copy_from_slice(&header);
            self.sequence = self.sequence.wrapping_add(1);
        } else {
            self.split(start, length);
        }
    }

    /// Makes room for the headers between the parts. The last part is moved first.
    fn split(&mut self, start: usize, length: usize) {
        let further_parts = length / PART_BYTES_MAX;
        self.buffer.resize(self.buffer.len() + further_parts * HEADER_BYTES, 0);
        let payload = start + HEADER_BYTES;
        for part in (0..=further_parts).rev() {
            let from = payload + part * PART_BYTES_MAX;
            let bytes = (length - part * PART_BYTES_MAX).min(PART_BYTES_MAX);
            let to = from + part * HEADER_BYTES;
            self.buffer.copy_within(from..from + bytes, to);
            let header = header_bytes(bytes, self.sequence.wrapping_add(part as u8));
            self.buffer[to - HEADER_BYTES..to].copy_from_slice(&header);
        }
        self.sequence = self.sequence.wrapping_add(further_parts as u8).wrapping_add(1);
    }

    /// Drops the packet that is being written, as if it had not been begun.
    pub fn abandon(&mut self) {
        if let Some(start) = self.open.take() {
            self.buffer.truncate(start);
        }
    }

    /// Writes a whole packet.
    pub fn packet(&mut self, payload: &[u8]) {
        self.begin().extend_from_slice(payload);
        self.finish();
    }

    /// The finished packets since the last [`PacketWriter::clear`].
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.open.unwrap_or(self.buffer.len())]
    }

    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Drops everything that was written. The memory and the sequence number stay.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.open = None;
    }

    /// Drops the packets beyond the first `length` bytes, and sets the sequence number back: for a result
    /// that becomes an error before any of it was sent.
    pub fn rewind(&mut self, length: usize, sequence: u8) {
        self.open = None;
        self.buffer.truncate(length);
        self.sequence = sequence;
    }

    /// Goes on in the memory of `buffer`. Packets that were not sent are dropped.
    pub fn use_memory(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.buffer = buffer;
        self.open = None;
    }

    /// Gives the memory to the caller. Packets that were not sent are dropped.
    pub fn take_memory(&mut self) -> Vec<u8> {
        self.open = None;
        std::mem::take(&mut self.buffer)
    }
}

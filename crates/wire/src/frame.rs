//! Packets: a 3-byte length, a sequence number, a payload. A payload of 16 MiB - 1 bytes or more is split.
//! The last part is the one that is shorter than 16 MiB - 1, and it may be empty.

mod reader;
mod writer;

pub use reader::{FrameError, Packet, PacketReader};
pub use writer::PacketWriter;

/// Bytes before every part of a packet.
pub const HEADER_BYTES: usize = 4;
/// A part of this length is followed by another part.
pub const PART_BYTES_MAX: usize = 0xff_ffff;

/// Length of the part and sequence number.
fn header(bytes: &[u8]) -> (usize, u8) {
    (usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16, bytes[3])
}

fn header_bytes(length: usize, sequence: u8) -> [u8; HEADER_BYTES] {
    debug_assert!(length <= PART_BYTES_MAX);
    [length as u8, (length >> 8) as u8, (length >> 16) as u8, sequence]
}

#[cfg(test)]
mod tests;

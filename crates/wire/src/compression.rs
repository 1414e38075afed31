//! The compressed protocol: the packets of both sides, in frames that may be compressed (zlib).
//!
//! ```text
//! frame: length u24 | sequence u8 | length of the plain bytes u24 | bytes
//! ```
//!
//! A plain length of nought says that the bytes are plain. Frames and packets have nothing to do with each
//! other: a frame may have several packets, or a part of one. The numbers of frames begin with 0 at each
//! command, and the answer goes on with them.

use crate::Malformed;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

const HEADER_BYTES: usize = 7;
/// The most that three bytes can tell.
const FRAME_BYTES_MAX: usize = 0xff_ffff;
/// What is shorter is sent as it is, as MariaDB does.
const COMPRESSED_BYTES_MIN: usize = 50;
const READ_BYTES: usize = 16 << 10;
/// Memory beyond this is given back when all of it has been read.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Makes plain bytes of received frames.
#[derive(Debug)]
pub struct Inflater {
    /// Received and not yet taken apart: `received[..end]`.
    received: Vec<u8>,
    end: usize,
    plain: Vec<u8>,
    /// How much of `plain` has been read.
    read: usize,
    sequence: u8,
    zlib: Decompress,
}

impl Default for Inflater {
    fn default() -> Inflater {
        let zlib = Decompress::new(true);
        Inflater { received: Vec::new(), end: 0, plain: Vec::new(), read: 0, sequence: 0, zlib }
    }
}

impl Inflater {
    /// Room to receive into. Never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.received.len() - self.end < READ_BYTES {
            // It doubles as bytes arrive, so a header that announces much does not make it grow.
            self.received.resize((self.end * 2).max(2 * READ_BYTES), 0);
        }
        &mut self.received[self.end..]
    }

    /// Notes that the first `count` bytes of [`Inflater::space`] were received.
    ///
    /// # Errors
    /// If a frame cannot be decompressed, or has not the length that it tells.
    pub fn received(&mut self, count: usize) -> Result<(), Malformed> {
        self.end = (self.end + count).min(self.received.len());
        let mut at = 0;
        while let Some(header) = self.received[at..self.end].first_chunk::<HEADER_BYTES>() {
            let length = u24(&header[..3]);
            let plain_length = u24(&header[4..]);
            let frame = at + HEADER_BYTES..at + HEADER_BYTES + length;
            if frame.end > self.end {
                break;
            }
            self.sequence = header[3].wrapping_add(1);
            at = frame.end;
            let bytes = &self.received[frame];
            match plain_length {
                0 => self.plain.extend_from_slice(bytes),
                length => inflate(&mut self.zlib, bytes, length, &mut self.plain)?,
            }
        }
        self.received.copy_within(at..self.end, 0);
        self.end -= at;
        if self.end == 0 && self.received.len() > KEPT_BYTES_MAX {
            self.received = Vec::new();
        }
        Ok(())
    }

    /// True if there are plain bytes to be read.
    pub fn has_plain(&self) -> bool {
        self.read < self.plain.len()
    }

    /// Moves plain bytes to `space`, as many as there are and have room. Returns how many.
    pub fn read(&mut self, space: &mut [u8]) -> usize {
        let left = &self.plain[self.read..];
        let count = left.len().min(space.len());
        space[..count].copy_from_slice(&left[..count]);
        self.read += count;
        if self.read == self.plain.len() {
            self.read = 0;
            self.plain.clear();
            if self.plain.capacity() > KEPT_BYTES_MAX {
                self.plain = Vec::new();
            }
        }
        count
    }

    /// The number that follows the last received frame's: the first one of the answer.
    pub fn next_sequence(&self) -> u8 {
        self.sequence
    }
}

/// Appends what is decompressed. It must have exactly the length that the frame tells.
fn inflate(zlib: &mut Decompress, bytes: &[u8], length: usize, plain: &mut Vec<u8>) -> Result<(), Malformed> {
    zlib.reset(true);
    let start = plain.len();
    plain.resize(start + length, 0);
    let done = zlib.decompress(bytes, &mut plain[start..], FlushDecompress::Finish);
    let is_whole = matches!(done, Ok(Status::StreamEnd)) && zlib.total_out() == length as u64;
    if is_whole { Ok(()) } else { Err(Malformed::new("compressed frame")) }
}

fn u24(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16
}

/// Makes frames of plain bytes.
#[derive(Debug)]
pub struct Deflater {
    zlib: Compress,
    frames: Vec<u8>,
}

impl Default for Deflater {
    fn default() -> Deflater {
        Deflater { zlib: Compress::new(Compression::default(), true), frames: Vec::new() }
    }
}

impl Deflater {
    /// The frames of these bytes, numbered from `sequence` on, which becomes the number behind them.
    pub fn frames(&mut self, plain: &[u8], sequence: &mut u8) -> &[u8] {
        self.frames.clear();
        if self.frames.capacity() > KEPT_BYTES_MAX && plain.len() < KEPT_BYTES_MAX {
            self.frames = Vec::new();
        }
        for part in plain.chunks(FRAME_BYTES_MAX) {
            let header = self.frames.len();
            self.frames.resize(header + HEADER_BYTES, 0);
            let plain_length = match self.deflate(part) {
                true => part.len(),
                false => {
                    self.frames.truncate(header + HEADER_BYTES);
                    self.frames.extend_from_slice(part);
                    0
                }
            };
            let length = self.frames.len() - header - HEADER_BYTES;
            let header = &mut self.frames[header..header + HEADER_BYTES];
            header[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
            header[3] = *sequence;
            header[4..].copy_from_slice(&(plain_length as u32).to_le_bytes()[..3]);
            *sequence = sequence.wrapping_add(1);
        }
        &self.frames
    }

    /// Appends the compressed bytes. False if they would not be shorter.
    fn deflate(&mut self, part: &[u8]) -> bool {
        if part.len() < COMPRESSED_BYTES_MIN {
            return false;
        }
        let start = self.frames.len();
        // Room for one byte less than there are: what does not fit is not worth it.
        self.frames.resize(start + part.len() - 1, 0);
        self.zlib.reset();
        let done = self.zlib.compress(part, &mut self.frames[start..], FlushCompress::Finish);
        if !matches!(done, Ok(Status::StreamEnd)) {
            return false;
        }
        self.frames.truncate(start + self.zlib.total_out() as usize);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds frames in pieces of `step` bytes, and reads them again.
    fn round_trip(writes: &[Vec<u8>], step: usize) -> Vec<u8> {
        let mut deflater = Deflater::default();
        let mut inflater = Inflater::default();
        let mut sequence = 7;
        let mut got = Vec::new();
        for plain in writes {
            for piece in deflater.frames(plain, &mut sequence).chunks(step) {
                inflater.space()[..piece.len()].copy_from_slice(piece);
                inflater.received(piece.len()).unwrap();
                let mut space = [0; 1000];
                while inflater.has_plain() {
                    let count = inflater.read(&mut space);
                    got.extend_from_slice(&space[..count]);
                }
            }
            assert!(plain.is_empty() || inflater.next_sequence() == sequence);
        }
        got
    }

    #[test]
    fn bytes_come_back_whatever_their_length() {
        for length in [0, 1, 49, 50, 51, 1000, 100_000, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 1] {
            let even = vec![b'x'; length];
            let mixed: Vec<u8> = (0..length).map(|at| (at * at % 251) as u8 ^ (at >> 7) as u8).collect();
            assert!(round_trip(&[even.clone(), mixed.clone()], 10_000) == [even, mixed].concat(), "{length}");
        }
    }

    #[test]
    fn what_compresses_is_shorter_and_what_does_not_is_sent_as_it_is() {
        let mut deflater = Deflater::default();
        let mut sequence = 255;
        let frames = deflater.frames(&[b'a'; 10_000], &mut sequence);
        assert!(frames.len() < 100 && u24(&frames[4..7]) == 10_000 && frames[3] == 255 && sequence == 0);
        let mut random = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        })
        .take(5_000)
        .collect();
        let frames = deflater.frames(&noise, &mut sequence);
        assert!(frames[HEADER_BYTES..] == noise && u24(&frames[4..7]) == 0);
    }

    #[test]
    fn a_frame_that_lies_about_its_length_is_refused() {
        let mut deflater = Deflater::default();
        for lie in [9_999, 10_001, FRAME_BYTES_MAX] {
            let mut frames = deflater.frames(&[b'a'; 10_000], &mut 0).to_vec();
            frames[4..7].copy_from_slice(&(lie as u32).to_le_bytes()[..3]);
            let mut inflater = Inflater::default();
            inflater.space()[..frames.len()].copy_from_slice(&frames);
            assert!(inflater.received(frames.len()).is_err(), "{lie}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_plain_bytes_or_an_error(frames in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut inflater = Inflater::default();
            inflater.space()[..frames.len()].copy_from_slice(&frames);
            let _ = inflater.received(frames.len());
            let mut space = [0; 64];
            while inflater.has_plain() {
                prop_assert!(inflater.read(&mut space) > 0);
            }
        }

        #[test]
        fn drawn_bytes_come_back(
            writes in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..400), 0..8),
            step in 1usize..200,
        ) {
            prop_assert_eq!(round_trip(&writes, step), writes.concat());
        }
    }
}

//! The compressed protocol: the packets of both sides, in frames that may be compressed, by zlib or zstd.
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
use std::fmt;
use zstd_safe::{CCtx, CParameter, DCtx};

const HEADER_BYTES: usize = 7;
/// The most that three bytes can tell.
const FRAME_BYTES_MAX: usize = 0xff_ffff;
/// What is shorter is sent as it is, as MariaDB does.
const COMPRESSED_BYTES_MIN: usize = 50;
const READ_BYTES: usize = 16 << 10;
/// Memory beyond this is given back when all of it has been read.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// How frames are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    #[default]
    Zlib,
    /// The level is the client's choice: 1 to 22.
    Zstd { level: u8 },
}

/// The levels of zstd that a client may ask for.
pub const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;

/// A decompressor. Each frame is compressed by itself, so it keeps memory and nothing else.
enum Decoder {
    Zlib(Decompress),
    Zstd(DCtx<'static>),
}

/// A compressor, as [`Decoder`].
enum Encoder {
    Zlib(Compress),
    Zstd(CCtx<'static>),
}

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
    decoder: Decoder,
}

impl Inflater {
    pub fn new(method: Method) -> Inflater {
        let decoder = match method {
            Method::Zlib => Decoder::Zlib(Decompress::new(true)),
            Method::Zstd { .. } => Decoder::Zstd(DCtx::create()),
        };
        Inflater { received: Vec::new(), end: 0, plain: Vec::new(), read: 0, sequence: 0, decoder }
    }

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
                length => {
                    let start = self.plain.len();
                    self.plain.resize(start + length, 0);
                    if !self.decoder.decompress(bytes, &mut self.plain[start..]) {
                        return Err(Malformed::new("compressed frame"));
                    }
                }
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

impl Decoder {
    /// True if the bytes are a whole frame of exactly `plain.len()` plain bytes.
    fn decompress(&mut self, bytes: &[u8], plain: &mut [u8]) -> bool {
        match self {
            Decoder::Zlib(zlib) => {
                zlib.reset(true);
                let done = zlib.decompress(bytes, plain, FlushDecompress::Finish);
                matches!(done, Ok(Status::StreamEnd)) && zlib.total_out() == plain.len() as u64
            }
            Decoder::Zstd(zstd) => zstd.decompress(plain, bytes) == Ok(plain.len()),
        }
    }
}

impl Encoder {
    /// How many of the bytes of `space` the compressed bytes take. `None` if there is not enough room.
    fn compress(&mut self, plain: &[u8], space: &mut [u8]) -> Option<usize> {
        match self {
            Encoder::Zlib(zlib) => {
                zlib.reset();
                let done = zlib.compress(plain, space, FlushCompress::Finish);
                matches!(done, Ok(Status::StreamEnd)).then_some(zlib.total_out() as usize)
            }
            Encoder::Zstd(zstd) => zstd.compress2(space, plain).ok(),
        }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Decoder::Zlib(_)) { "zlib" } else { "zstd" })
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Encoder::Zlib(_)) { "zlib" } else { "zstd" })
    }
}

fn u24(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16
}

/// Makes frames of plain bytes.
#[derive(Debug)]
pub struct Deflater {
    encoder: Encoder,
    frames: Vec<u8>,
}

impl Deflater {
    pub fn new(method: Method) -> Deflater {
        let encoder = match method {
            Method::Zlib => Encoder::Zlib(Compress::new(Compression::default(), true)),
            Method::Zstd { level } => {
                let mut zstd = CCtx::create();
                // A level that there is not is cut to one that there is, so this cannot fail.
                let _ = zstd.set_parameter(CParameter::CompressionLevel(level.into()));
                Encoder::Zstd(zstd)
            }
        };
        Deflater { encoder, frames: Vec::new() }
    }

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
        let Some(count) = self.encoder.compress(part, &mut self.frames[start..]) else { return false };
        self.frames.truncate(start + count);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const METHODS: [Method; 4] =
        [Method::Zlib, Method::Zstd { level: 1 }, Method::Zstd { level: 3 }, Method::Zstd { level: 22 }];

    /// Feeds frames in pieces of `step` bytes, and reads them again.
    fn round_trip(method: Method, writes: &[Vec<u8>], step: usize) -> Vec<u8> {
        let mut deflater = Deflater::new(method);
        let mut inflater = Inflater::new(method);
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
            // The highest level takes seconds for as much as a frame can hold.
            for method in METHODS.into_iter().take(if length > 100_000 { 2 } else { METHODS.len() }) {
                let got = round_trip(method, &[even.clone(), mixed.clone()], 10_000);
                assert!(got == [&even[..], &mixed].concat(), "{method:?} {length}");
            }
        }
    }

    #[test]
    fn what_compresses_is_shorter_and_what_does_not_is_sent_as_it_is() {
        let mut random = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        })
        .take(5_000)
        .collect();
        for method in METHODS {
            let mut deflater = Deflater::new(method);
            let mut sequence = 255;
            let frames = deflater.frames(&[b'a'; 10_000], &mut sequence);
            assert!(frames.len() < 100 && u24(&frames[4..7]) == 10_000 && frames[3] == 255 && sequence == 0);
            let frames = deflater.frames(&noise, &mut sequence);
            assert!(frames[HEADER_BYTES..] == noise && u24(&frames[4..7]) == 0);
        }
    }

    #[test]
    fn a_frame_that_lies_about_its_length_is_refused() {
        for method in METHODS {
            for lie in [9_999, 10_001, FRAME_BYTES_MAX] {
                let mut frames = Deflater::new(method).frames(&[b'a'; 10_000], &mut 0).to_vec();
                frames[4..7].copy_from_slice(&(lie as u32).to_le_bytes()[..3]);
                let mut inflater = Inflater::new(method);
                inflater.space()[..frames.len()].copy_from_slice(&frames);
                assert!(inflater.received(frames.len()).is_err(), "{method:?} {lie}");
            }
        }
    }

    #[test]
    fn the_methods_are_not_taken_for_each_other() {
        for [from, to] in [[METHODS[0], METHODS[1]], [METHODS[1], METHODS[0]]] {
            let frames = Deflater::new(from).frames(&[b'a'; 1000], &mut 0).to_vec();
            let mut inflater = Inflater::new(to);
            inflater.space()[..frames.len()].copy_from_slice(&frames);
            assert!(inflater.received(frames.len()).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_plain_bytes_or_an_error(
            mut frames in proptest::collection::vec(any::<u8>(), 0..300),
            is_zstd in any::<bool>(),
            begins_well in any::<bool>(),
        ) {
            // Few drawn bytes are a frame, and none begins as those of zstd do.
            if begins_well && frames.len() > HEADER_BYTES + 4 {
                let length = frames.len() - HEADER_BYTES;
                frames[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
                frames[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&0xfd2f_b528_u32.to_le_bytes());
            }
            let mut inflater = Inflater::new(if is_zstd { METHODS[1] } else { Method::Zlib });
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
            for method in METHODS.into_iter().take(3) {
                prop_assert_eq!(round_trip(method, &writes, step), writes.concat());
            }
        }
    }
}

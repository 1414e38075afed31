//! Compressed texts.

use super::arguments::{Arguments, Result, int};
use super::text::too_long;
use crate::ErrorKind;
use crate::expr::result_type::Typed;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use types::{Collation, ValueRef};

functions! {
    "Compression";

    COMPRESS {
        name: "compress",
        arguments: "text",
        arity: 1..=1,
        typing: |t| {
            let bytes = u64::from(t.bytes(0)) * 120 / 100 + 12;
            Ok(Typed::text(bytes.min(u32::MAX.into()) as u32, Collation::Binary, true))
        },
        evaluate: |a| {
            let text = or_null!(a.text(0)?);
            let packed = compress(text);
            Ok(if a.is_too_long(packed.len()) { too_long(a) } else { a.give_binary(&packed) })
        },
        help: "Gives a text compressed with zlib: its length in four bytes, then the compressed bytes.",
        example: "UNCOMPRESS(COMPRESS('abc'))" => "abc",
    }
    UNCOMPRESS {
        name: "uncompress",
        arguments: "bytes",
        arity: 1..=1,
        typing: |_| Ok(Typed::text(PACKET_BYTES, Collation::Binary, true)),
        evaluate: uncompress,
        help: "Gives the text of which COMPRESS made these bytes, or NULL with a warning for other bytes.",
        example: "UNCOMPRESS(COMPRESS('abc'))" => "abc",
    }
    UNCOMPRESSED_LENGTH {
        name: "uncompressed_length",
        arguments: "bytes",
        arity: 1..=1,
        typing: |_| Ok(Typed::int(4, false, true).with_display(10)),
        evaluate: |a| match or_null!(a.text(0)?) {
            [] => int(0),
            bytes => int(i64::from(or_null!(announced(a, bytes)))),
        },
        help: "Gives the length that a text had before COMPRESS, in bytes.",
        example: "UNCOMPRESSED_LENGTH(COMPRESS('abc'))" => "3",
    }
}

/// The length of what UNCOMPRESS gives, as clients are told: the default of `max_allowed_packet`.
const PACKET_BYTES: u32 = 16 << 20;
/// The bytes of the length that a compressed text begins with.
const LENGTH_BYTES: usize = 4;
/// The bits of this length.
const LENGTH_MASK: u32 = 0x3fff_ffff;

fn compress(text: &[u8]) -> Vec<u8> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut packed = (text.len() as u32 & LENGTH_MASK).to_le_bytes().to_vec();
    let mut stream = Compress::new(Compression::default(), true);
    let mut read = 0;
    loop {
        packed.reserve(text.len() / 2 + 64);
        // Deflating to memory does not fail.
        let Ok(status) = stream.compress_vec(&text[read..], &mut packed, FlushCompress::Finish) else {
            break;
        };
        read = stream.total_in() as usize;
        if status == Status::StreamEnd {
            break;
        }
    }
    // A column of fixed length would lose spaces at the end.
    if packed.last() == Some(&b' ') {
        packed.push(b'.');
    }
    packed
}

/// The length that the bytes begin with; `None` with a warning if there is nothing behind it.
fn announced(arguments: &Arguments<'_, '_>, bytes: &[u8]) -> Option<u32> {
    match bytes.split_first_chunk::<LENGTH_BYTES>() {
        Some((length, rest)) if !rest.is_empty() => Some(u32::from_le_bytes(*length) & LENGTH_MASK),
        _ => {
            warn_corrupted(arguments);
            None
        }
    }
}

fn warn_corrupted(arguments: &Arguments<'_, '_>) {
    let message = "ZLIB: Input data corrupted".to_string();
    arguments.context.environment.warn(ErrorKind::ZlibInputCorrupted, message);
}

fn uncompress<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let bytes = or_null!(arguments.text(0)?);
    if bytes.is_empty() {
        return Ok(arguments.give_binary(b""));
    }
    let length = or_null!(announced(arguments, bytes)) as usize;
    let environment = arguments.context.environment;
    if length > arguments.bytes_max() {
        let message = format!(
            "Uncompressed data size too large; the maximum size is {} (probably, length of uncompressed data was \
             corrupted)",
            arguments.bytes_max()
        );
        environment.warn(ErrorKind::UncompressedTooLarge, message);
        return Ok(ValueRef::Null);
    }
    // Deflate packs 1032 bytes into one at most: a length that is made up takes no memory.
    const RATIO_MAX: usize = 1032;
    let packed = &bytes[LENGTH_BYTES..];
    let room = length.min(packed.len().saturating_mul(RATIO_MAX));
    let mut text = Vec::with_capacity(room);
    let mut stream = Decompress::new(true);
    let status = stream.decompress_vec(packed, &mut text, FlushDecompress::Finish);
    match status {
        Ok(Status::StreamEnd) => Ok(arguments.give_binary(&text)),
        Ok(Status::Ok | Status::BufError) if text.len() == room && room == length => {
            let message = "ZLIB: Not enough room in the output buffer (probably, length of uncompressed data was \
                           corrupted)";
            environment.warn(ErrorKind::ZlibOutputTooSmall, message.to_string());
            Ok(ValueRef::Null)
        }
        Ok(Status::Ok | Status::BufError) | Err(_) => {
            warn_corrupted(arguments);
            Ok(ValueRef::Null)
        }
    }
}

//! The bytes of records and of file headers, all little-endian.
//!
//! A record; it begins at a multiple of 8 and is padded with zeroes to a multiple of 8:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 4 | length of header and payload, without the padding |
//! | 4 | 4 | checksum of bytes 0..4 and of bytes 8 to the end, padding included, combined with the LSN |
//! | 8 | 1 | kind, the owner's |
//! | 9 | length - 9 | payload, the owner's |
//!
//! A record may cross the border between two files. The checksum includes the LSN, so a record is believed at
//! one position of the log only: old records in a recycled file, and bytes that were written to a wrong
//! position, fail the check.
//!
//! A file begins with a block of 4096 bytes, of which 64 are used and the rest are zero; byte 4096 holds the
//! file's first LSN:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `LWLOG\0\0\1` |
//! | 8 | 4 | format, 1 |
//! | 12 | 4 | zero |
//! | 16 | 8 | number of the file, from 1; also in its name |
//! | 24 | 8 | first LSN |
//! | 32 | 8 | capacity: bytes of log in the file, a multiple of 4096 |
//! | 40 | 20 | zero |
//! | 60 | 4 | checksum of bytes 0..60 |
//!
//! The next file's first LSN is this one's plus its capacity: headers take no room among the LSNs.

use base::Lsn;
use base::checksum::checksum;

/// Where the log begins. It is not 0, which means "never logged", and it is a whole block, so that blocks of
/// the log are blocks of the file.
pub const FIRST_LSN: Lsn = Lsn(4096);

/// Bytes of the longest payload: far above what any owner logs at once, far below what would make a damaged
/// length cost the reader much memory.
pub const PAYLOAD_MAX: usize = 1 << 30;

/// Bytes of a record before its payload.
pub const RECORD_HEADER_BYTES: usize = 9;
/// Records begin at multiples of this many bytes: the words of the ring buffer.
pub const ALIGNMENT: u64 = 8;
/// Bytes of a file before its first LSN.
pub const FILE_HEADER_BYTES: u64 = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"LWLOG\0\0\x01");
pub(crate) const FORMAT: u32 = 1;
/// Bytes of a file's header that are used.
pub(crate) const HEADER_USED: usize = 64;
const HEADER_CHECKSUM_AT: usize = 60;

const _: () = assert!(RECORD_HEADER_BYTES == 4 + 4 + 1);
const _: () = assert!(HEADER_CHECKSUM_AT + 4 == HEADER_USED);
const _: () = assert!(HEADER_USED as u64 <= FILE_HEADER_BYTES);
const _: () =
    assert!(FILE_HEADER_BYTES.is_multiple_of(ALIGNMENT) && FIRST_LSN.0.is_multiple_of(FILE_HEADER_BYTES));
const _: () = assert!(PAYLOAD_MAX + RECORD_HEADER_BYTES + ALIGNMENT as usize <= u32::MAX as usize);

/// Bytes that a record with this payload takes in the log.
pub const fn record_bytes(payload: usize) -> u64 {
    ((RECORD_HEADER_BYTES + payload) as u64).next_multiple_of(ALIGNMENT)
}

/// Continues a checksum where `sum` ended. The result is the same for bytes in one part or in many.
fn resume(sum: u32, bytes: &[u8]) -> u32 {
    // The checksum of nothing is its start value; seeds are combined with that.
    checksum(sum ^ checksum(0, &[]), bytes)
}

/// The part of a record's checksum that can be computed before its LSN is known.
pub(crate) fn body_sum(kind: u8, parts: &[&[u8]], payload: usize) -> u32 {
    let length = (RECORD_HEADER_BYTES + payload) as u32;
    let mut sum = checksum(0, &length.to_le_bytes());
    sum = resume(sum, &[kind]);
    for part in parts {
        sum = resume(sum, part);
    }
    let padding = record_bytes(payload) as usize - RECORD_HEADER_BYTES - payload;
    resume(sum, &[0; ALIGNMENT as usize][..padding])
}

/// Combines the checksum of the body with the LSN. A CRC is linear, so this is as good as a CRC that starts
/// from the LSN, and the body's checksum can be computed before the LSN is reserved.
pub(crate) fn place_sum(body: u32, lsn: Lsn) -> u32 {
    body ^ checksum(0, &lsn.0.to_le_bytes())
}

pub(crate) fn record_header(length: u32, checksum: u32, kind: u8) -> [u8; RECORD_HEADER_BYTES] {
    let mut bytes = [0; RECORD_HEADER_BYTES];
    bytes[0..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    bytes[8] = kind;
    bytes
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// What a record's first four bytes say about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    /// Zeroes: nothing was written here yet.
    Nothing,
    /// No record is so short or so long.
    Impossible,
    /// Bytes of the payload.
    Payload(usize),
}

pub(crate) fn parse_length(length: u32) -> Length {
    match (length as usize).checked_sub(RECORD_HEADER_BYTES) {
        None if length == 0 => Length::Nothing,
        Some(payload) if payload <= PAYLOAD_MAX => Length::Payload(payload),
        _ => Length::Impossible,
    }
}

/// Whether `bytes`, a record with its padding, was written at this place and is whole.
pub(crate) fn is_whole(bytes: &[u8], lsn: Lsn) -> bool {
    let body = resume(checksum(0, &bytes[0..4]), &bytes[8..]);
    place_sum(body, lsn) == u32_at(bytes, 4)
}

/// What a file says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileHeader {
    pub number: u64,
    pub first: Lsn,
    pub capacity: u64,
}

/// Why a file's header cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderFault {
    /// Not a log file's, or damaged.
    Damaged,
    /// Whole, of a format that this build does not read.
    Format(u32),
}

impl FileHeader {
    pub fn encode(&self) -> [u8; HEADER_USED] {
        let mut bytes = [0; HEADER_USED];
        bytes[0..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.capacity.to_le_bytes());
        let sum = checksum(0, &bytes[..HEADER_CHECKSUM_AT]);
        bytes[HEADER_CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; HEADER_USED]) -> Result<FileHeader, HeaderFault> {
        let sum = checksum(0, &bytes[..HEADER_CHECKSUM_AT]);
        if u64_at(bytes, 0) != MAGIC || u32_at(bytes, HEADER_CHECKSUM_AT) != sum {
            return Err(HeaderFault::Damaged);
        }
        let format = u32_at(bytes, 8);
        if format != FORMAT {
            return Err(HeaderFault::Format(format));
        }
        let (first, capacity) = (u64_at(bytes, 24), u64_at(bytes, 32));
        // What a file claims must at least be a place in the log.
        if capacity == 0
            || !capacity.is_multiple_of(FILE_HEADER_BYTES)
            || !first.is_multiple_of(ALIGNMENT)
            || first.checked_add(capacity).is_none()
        {
            return Err(HeaderFault::Damaged);
        }
        Ok(FileHeader { number: u64_at(bytes, 16), first: Lsn(first), capacity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lsn: Lsn, kind: u8, parts: &[&[u8]]) -> Vec<u8> {
        let payload: usize = parts.iter().map(|part| part.len()).sum();
        let sum = place_sum(body_sum(kind, parts, payload), lsn);
        let mut bytes = record_header((RECORD_HEADER_BYTES + payload) as u32, sum, kind).to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.resize(record_bytes(payload) as usize, 0);
        bytes
    }

    /// As a reader goes about it: the length first, then the rest.
    fn is_believed(log: &[u8], lsn: Lsn) -> bool {
        match parse_length(u32_at(log, 0)) {
            Length::Payload(payload) => {
                let bytes = record_bytes(payload);
                bytes <= log.len() as u64 && is_whole(&log[..bytes as usize], lsn)
            }
            _ => false,
        }
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_found() {
        for payload in [0, 1, 6, 7, 8, 63, 500] {
            let text: Vec<u8> = (0..payload).map(|i| i as u8).collect();
            let mut log = record(Lsn(8192), 3, &[&text]);
            let record_length = log.len();
            // A longer length finds more log to read.
            log.resize(record_length + 4096, 0);
            assert!(is_believed(&log, Lsn(8192)));
            for bit in 0..record_length * 8 {
                log[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_believed(&log, Lsn(8192)), "payload of {payload}, bit {bit}");
                log[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn a_record_is_believed_at_its_own_place_only() {
        let bytes = record(Lsn(8192), 3, &[b"payload"]);
        for lsn in (4096..1 << 20).step_by(8) {
            assert_eq!(is_believed(&bytes, Lsn(lsn)), lsn == 8192, "{lsn}");
        }
    }

    #[test]
    fn the_parts_of_a_payload_leave_no_trace() {
        let whole = record(Lsn(8), 3, &[b"abcdefghij"]);
        assert_eq!(record(Lsn(8), 3, &[b"abc", b"", b"defghi", b"j"]), whole);
    }

    #[test]
    fn every_flipped_bit_of_a_file_header_is_found() {
        let header = FileHeader { number: 7, first: Lsn(4096 * 9), capacity: 1 << 20 };
        let mut bytes = header.encode();
        assert_eq!(FileHeader::decode(&bytes), Ok(header));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&bytes), Err(HeaderFault::Damaged), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn another_format_is_named_and_not_taken_for_damage() {
        let mut bytes = FileHeader { number: 1, first: Lsn(8), capacity: 4096 }.encode();
        bytes[8] = 9;
        let sum = checksum(0, &bytes[..HEADER_CHECKSUM_AT]);
        bytes[HEADER_CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(FileHeader::decode(&bytes), Err(HeaderFault::Format(9)));
    }

    #[test]
    fn zeroes_are_no_record() {
        assert_eq!(parse_length(0), Length::Nothing);
        assert_eq!(parse_length(8), Length::Impossible);
        assert_eq!(parse_length(9), Length::Payload(0));
        assert_eq!(parse_length(u32::MAX), Length::Impossible);
    }
}

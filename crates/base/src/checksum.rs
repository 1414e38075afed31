//! The checksum of pages and records: CRC-32 (ISO-HDLC), seeded so that a page of zeroes does not
//! have the checksum zero.

/// The checksum of `bytes`, continued from `seed`.
pub fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed ^ 0x4c57_4b31);
    hasher.update(bytes);
    hasher.finalize()
}

/// Plain CRC-32 (ISO-HDLC), as SQL's CRC32() gives it.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

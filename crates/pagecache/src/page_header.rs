//! The prefix of a page's header: the fields that the cache fills in and checks.

use base::PageId;
use base::checksum::checksum;

/// Byte offsets in the prefix of a page's header. The cache knows these fields. The rest of a page is its
/// owner's.
///
/// | byte | size | field    | filled by | checked                                              |
/// |------|------|----------|-----------|------------------------------------------------------|
/// | 0    | 4    | checksum | the cache | on read: CRC-32 of bytes 4.. of the page             |
/// | 4    | 1    | format   | the owner | no                                                   |
/// | 5    | 1    | type     | the owner | no                                                   |
/// | 6    | 1    | level    | the owner | no                                                   |
/// | 7    | 1    | flags    | the owner | no                                                   |
/// | 8    | 8    | lsn      | the owner | no; named in errors                                  |
/// | 16   | 4    | page_no  | the cache | on read: a page of another place was misdirected     |
/// | 20   | 4    | file_id  | the cache | on read: as above                                    |
pub mod header {
    pub const CHECKSUM: usize = 0;
    pub const FORMAT: usize = 4;
    pub const TYPE: usize = 5;
    pub const LEVEL: usize = 6;
    pub const FLAGS: usize = 7;
    pub const LSN: usize = 8;
    pub const PAGE_NO: usize = 16;
    pub const FILE_ID: usize = 20;
    /// Bytes of the prefix.
    pub const LEN: usize = 24;

    const _: () = assert!(LEN == FILE_ID + 4 && PAGE_NO == LSN + 8 && LSN == FORMAT + 4);
}

pub fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a page is longer than its header")
}

/// Fills in the fields of the header that are the cache's.
pub fn seal(bytes: &mut [u8], id: PageId) {
    bytes[header::PAGE_NO..][..4].copy_from_slice(&id.page.0.to_le_bytes());
    bytes[header::FILE_ID..][..4].copy_from_slice(&id.file.0.to_le_bytes());
    let sum = checksum(0, &bytes[header::FORMAT..]);
    bytes[header::CHECKSUM..][..4].copy_from_slice(&sum.to_le_bytes());
}

/// Checks a page that was read for `id` or found in the doublewrite file.
///
/// # Errors
///
/// What is wrong with it.
pub fn verify(bytes: &[u8], id: PageId) -> Result<(), String> {
    let stored = u32::from_le_bytes(array(bytes, header::CHECKSUM));
    let computed = checksum(0, &bytes[header::FORMAT..]);
    if stored != computed {
        if bytes.iter().all(|&byte| byte == 0) {
            return Err("the page is all zeroes: it was never written, or its write was lost".to_owned());
        }
        return Err(format!("checksum {stored:08x} stored, {computed:08x} computed"));
    }
    let page = u32::from_le_bytes(array(bytes, header::PAGE_NO));
    let file = u32::from_le_bytes(array(bytes, header::FILE_ID));
    if (page, file) != (id.page.0, id.file.0) {
        return Err(format!("a write went astray: this is page {page} of file {file}"));
    }
    Ok(())
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use base::{FileId, PageNo};

    #[test]
    fn a_sealed_page_verifies_in_its_place_only_and_only_unchanged() {
        let id = PageId::new(FileId(2), PageNo(9));
        let mut bytes: Vec<u8> = (0..1024).map(|i| i as u8).collect();
        seal(&mut bytes, id);
        verify(&bytes, id).unwrap();
        assert!(verify(&bytes, PageId::new(FileId(2), PageNo(8))).unwrap_err().contains("astray"));
        assert!(verify(&bytes, PageId::new(FileId(1), PageNo(9))).unwrap_err().contains("astray"));
        bytes[1000] ^= 1;
        assert!(verify(&bytes, id).unwrap_err().contains("checksum"));
        assert!(verify(&[0; 1024], id).unwrap_err().contains("zeroes"));
    }
}

//! The header of a file of pages.
//!
//! ```text
//! file header, page 0 (after the 24 bytes that all pages share)
//! 24 zero u64 | 32 magic u64 | 40 page size u32 | 44 groups that have a free map u32 | 48 in doubt u32 |
//! 52 compressed u32 | 56 zero ..
//! 64 rows u64 | 72 next AUTO_INCREMENT u64 | 80 next row id u64 | 88 next chain u64
//! 96 garbage u64: 0, or 1 if deleted rows and old index entries may be left that purge has no list of
//! ```
//! The last five are as of the last checkpoint or clean shutdown. *In doubt* is a file with changes under way
//! that take more than one record of the log, such as a row in overflow pages: after a crash some of its
//! pages may be marked as used and belong to nothing, which the next start finds by walking through the file.

use super::layout::{FILE_ID, FORMAT, FORMAT_AT, LSN, PAGE_NO, PageType, TYPE};
use base::{Lsn, PageId};
use pagecache::FileFormat;
use pagecache::page::{Page, PageMut};
use vfs::File;

const MAGIC: u64 = u64::from_le_bytes(*b"LATCHTS\x02");
const MAGIC_AT: usize = 32;
const PAGE_SIZE_AT: usize = 40;
const GROUPS_AT: usize = 44;
const DOUBT_AT: usize = 48;
const COMPRESSED_AT: usize = 52;
const ROWS_AT: usize = 64;
const AUTO_INCREMENT_AT: usize = 72;
const ROW_ID_AT: usize = 80;
const CHAIN_AT: usize = 88;
const GARBAGE_AT: usize = 96;
/// Bytes of the header page that are used.
pub(crate) const HEADER_USED: usize = 104;
const _: () = assert!(GARBAGE_AT + 8 == HEADER_USED && HEADER_USED <= pagecache::page::PAGE_SIZE_MIN);

/// What a file's header remembers for its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TableNumbers {
    pub rows: u64,
    pub next_auto_increment: u64,
    pub next_row_id: u64,
    /// Numbers overflow chains, so that a page of an older chain is told from one of a newer.
    pub next_chain: u64,
    /// Not 0: deleted rows and old index entries may be left that nobody has a list of.
    pub garbage: u64,
}

impl Default for TableNumbers {
    fn default() -> TableNumbers {
        TableNumbers { rows: 0, next_auto_increment: 1, next_row_id: 1, next_chain: 1, garbage: 0 }
    }
}

/// The length of [`Counters`] in the log, in bytes.
pub(crate) const COUNTERS_BYTES: usize = 24;

/// Numbers of a table that must not be given out again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counters {
    pub next_auto_increment: u64,
    pub next_row_id: u64,
    pub next_chain: u64,
}

impl Counters {
    pub(crate) fn to_bytes(self) -> [u8; COUNTERS_BYTES] {
        let mut bytes = [0; 24];
        let words = [self.next_auto_increment, self.next_row_id, self.next_chain];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn raise(&mut self, other: Counters) {
        self.next_auto_increment = self.next_auto_increment.max(other.next_auto_increment);
        self.next_row_id = self.next_row_id.max(other.next_row_id);
        self.next_chain = self.next_chain.max(other.next_chain);
    }
}

/// A file header, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub page_size: u32,
    pub is_compressed: bool,
    /// Groups of pages that have a free map.
    pub groups: u32,
    pub in_doubt: bool,
    pub numbers: TableNumbers,
}

pub(crate) fn write_header(page: &mut PageMut<'_>, id: PageId, header: &Header) {
    page.clear();
    page.set_u8(FORMAT_AT, FORMAT);
    page.set_u8(TYPE, PageType::FileHeader as u8);
    page.set_u32(PAGE_NO, id.page.0);
    page.set_u32(FILE_ID, id.file.0);
    page.set_u64(MAGIC_AT, MAGIC);
    page.set_u32(PAGE_SIZE_AT, header.page_size);
    page.set_u32(GROUPS_AT, header.groups);
    page.set_u32(DOUBT_AT, u32::from(header.in_doubt));
    page.set_u32(COMPRESSED_AT, u32::from(header.is_compressed));
    page.set_u64(ROWS_AT, header.numbers.rows);
    page.set_u64(AUTO_INCREMENT_AT, header.numbers.next_auto_increment);
    page.set_u64(ROW_ID_AT, header.numbers.next_row_id);
    page.set_u64(CHAIN_AT, header.numbers.next_chain);
    page.set_u64(GARBAGE_AT, header.numbers.garbage);
}

fn has_type(page: Page<'_>, page_type: PageType) -> bool {
    page.u8_at(FORMAT_AT) == FORMAT && page.u8_at(TYPE) == page_type as u8
}

/// How a file lies on the device, by the first bytes of its header.
pub(crate) fn format_in(header: &[u8]) -> Option<FileFormat> {
    let magic = u64::from_le_bytes(*header.get(MAGIC_AT..)?.first_chunk()?);
    let number = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
    let format =
        FileFormat { page_size: number(PAGE_SIZE_AT)? as usize, is_compressed: number(COMPRESSED_AT)? != 0 };
    (magic == MAGIC).then_some(format)
}

/// How a file lies on the device, if its header is on the device. Whatever a crash did to the rest of the
/// header, these bytes are old or new, and the same.
pub(crate) fn format_of(file: &dyn File) -> std::io::Result<Option<FileFormat>> {
    let mut bytes = [0; HEADER_USED];
    match file.read_at(&mut bytes, 0) {
        Ok(()) => Ok(format_in(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// The highest LSN among the first pages of a file, as they lie on the device; 0 if it has no header.
/// Compressed pages do not count: page 0 never is one.
pub(crate) fn newest_lsn(file: &dyn File) -> std::io::Result<Lsn> {
    const PAGES: u64 = 64;
    let Some(format) = format_of(file)? else { return Ok(Lsn(0)) };
    let mut newest = 0;
    for page in 0..if format.is_compressed { 1 } else { PAGES } {
        let mut word = [0; 8];
        match file.read_at(&mut word, page * format.page_size as u64 + LSN as u64) {
            Ok(()) => newest = newest.max(u64::from_le_bytes(word)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Lsn(newest))
}

/// Reads a file header; the error says what is wrong with it.
pub(crate) fn parse_header(page: Page<'_>, page_size: usize) -> Result<Header, String> {
    if !has_type(page, PageType::FileHeader) || page.u64_at(MAGIC_AT) != MAGIC {
        return Err("page 0 is not a file header".to_string());
    }
    let header = Header {
        page_size: page.u32_at(PAGE_SIZE_AT),
        is_compressed: page.u32_at(COMPRESSED_AT) != 0,
        groups: page.u32_at(GROUPS_AT),
        in_doubt: page.u32_at(DOUBT_AT) != 0,
        numbers: TableNumbers {
            rows: page.u64_at(ROWS_AT),
            next_auto_increment: page.u64_at(AUTO_INCREMENT_AT),
            next_row_id: page.u64_at(ROW_ID_AT),
            next_chain: page.u64_at(CHAIN_AT),
            garbage: page.u64_at(GARBAGE_AT),
        },
    };
    if header.page_size as usize != page_size {
        return Err(format!("the file has pages of {} bytes, expected {page_size}", header.page_size));
    }
    Ok(header)
}

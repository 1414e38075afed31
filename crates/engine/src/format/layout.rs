//! Where everything lies in a page: the byte table of tree pages, and its constants.
//!
//! ```text
//! header, 64 bytes, little-endian; the first 24 bytes are shared with the page cache
//!  0  checksum      u32   of bytes 4.. of the page, filled when the page is written out
//!  4  format        u8    FORMAT
//!  5  type          u8    PageType
//!  6  level         u8    0 = leaf
//!  7  flags         u8    1 = cells keep whole keys, the prefix length is 0
//!  8  lsn           u64   the end of the last log record that changed the page; 0 = never logged
//! 16  page number   u32   identity: tells a misdirected write
//! 20  file id       u32   identity
//! 24  stamp_max     u64   the newest row stamp in the page
//! 32  slots         u16   number of slots
//! 34  heap start    u16   the lowest byte of the cell heap; 0 stands for 65,536
//! 36  dead bytes    u16   bytes of the heap that compaction would give back
//! 38  prefix length u16   bytes that all keys of the page share, kept only in the lower fence
//! 40  lower fence   u16 offset, u16 length   inclusive; length 0 = minus infinity
//! 44  upper fence   u16 offset, u16 length   exclusive; offset 0 = plus infinity
//! 48  tree          u32   the tree that the page belongs to, unique in its file
//! 52  first child   u32   inner page: the child left of slot 0; overflow page: the next page
//! 56  reserved      u64   0; old versions of rows are kept in memory, by crate `transactions`
//! 64  slots, 8 bytes each, one aligned word, in key order:
//!     cell offset u16 | key length u16 (without the prefix) | head u32
//!     The head is the first four bytes of the key behind the prefix as a number of big-endian
//!     order, missing bytes zero: one word load a step of the binary search.
//! ..  free space
//! ..  heap: cells and fences, growing downward from the end of the page
//!     leaf cell:  value length u16 | key suffix | value
//!     inner cell: child u32 | key suffix
//! ```

/// The format that this build writes.
pub(crate) const FORMAT: u8 = 2;

pub(crate) const FORMAT_AT: usize = 4;
pub(crate) const TYPE: usize = 5;
pub(crate) const LEVEL: usize = 6;
pub(crate) const FLAGS: usize = 7;
/// In the flags: cells keep whole keys, and the prefix is empty.
pub(crate) const WHOLE_KEYS: u8 = 1;
pub(crate) const LSN: usize = 8;
pub(crate) const PAGE_NO: usize = 16;
pub(crate) const FILE_ID: usize = 20;
pub(crate) const STAMP_MAX: usize = 24;
pub(crate) const SLOT_COUNT: usize = 32;
pub(crate) const HEAP_START: usize = 34;
pub(crate) const DEAD_BYTES: usize = 36;
pub(crate) const PREFIX_LEN: usize = 38;
pub(crate) const LOWER_FENCE: usize = 40;
pub(crate) const UPPER_FENCE: usize = 44;
pub(crate) const TREE: usize = 48;
pub(crate) const FIRST_CHILD: usize = 52;
pub(crate) const RESERVED: usize = 56;
pub(crate) const HEADER_BYTES: usize = 64;

pub(crate) const SLOT_BYTES: usize = 8;
/// The value length before a leaf cell's key.
pub(crate) const LEAF_CELL_HEADER: usize = 2;
/// The child number before an inner cell's key.
pub(crate) const INNER_CELL_HEADER: usize = 4;

const _: () = assert!(RESERVED + 8 == HEADER_BYTES);
const _: () = assert!(HEADER_BYTES.is_multiple_of(SLOT_BYTES), "slots are aligned words");
const _: () = assert!(SLOT_COUNT.is_multiple_of(8) && TREE.is_multiple_of(8));

/// What a page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageType {
    /// Page 0 of a file.
    FileHeader = 1,
    Leaf = 2,
    Inner = 3,
    /// A piece of a row that is too large for a leaf.
    Overflow = 4,
    /// Says which pages are free.
    FreeMap = 5,
}

impl PageType {
    pub const fn from_u8(value: u8) -> Option<PageType> {
        Some(match value {
            1 => PageType::FileHeader,
            2 => PageType::Leaf,
            3 => PageType::Inner,
            4 => PageType::Overflow,
            5 => PageType::FreeMap,
            _ => return None,
        })
    }
}

/// The longest key of a tree, in bytes: 3/16 of a page (3,072 bytes with 16 KiB pages, as InnoDB has it).
///
/// Two fences and two cells of the largest size then always fit one page, which is
/// what a split needs in order to succeed: 2 x 3/16 + 2 x 1/4 = 7/8 of a page, and the header fits the rest.
pub const fn key_bytes_max(page_size: usize) -> usize {
    page_size / 16 * 3
}

/// The largest cell with its slot, in bytes: a quarter of a page.
pub(crate) const fn cell_bytes_max(page_size: usize) -> usize {
    page_size / 4
}

const _: () = {
    let mut size = pagecache::page::PAGE_SIZE_MIN;
    while size <= pagecache::page::PAGE_SIZE_MAX {
        assert!(HEADER_BYTES + 2 * key_bytes_max(size) + 2 * cell_bytes_max(size) <= size);
        // The longest key leaves room for a row header and a reference to an overflow chain.
        assert!(key_bytes_max(size) + SLOT_BYTES + LEAF_CELL_HEADER + 36 <= cell_bytes_max(size));
        size *= 2;
    }
};

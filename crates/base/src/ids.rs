//! Ids as newtypes, so that the compiler tells a page number from a file number.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// A file of the data directory. Stable across restarts; never reused.
    FileId(u32)
);
id!(
    /// The number of a page inside its file, counted from 0 in units of the file's page size.
    PageNo(u32)
);
id!(
    /// A log sequence number: a byte position in the write-ahead log. 0 = never logged.
    Lsn(u64)
);
id!(
    /// The stamp of the transaction that wrote a row. 48 bits are stored. 0 = visible to everyone.
    Stamp(u64)
);
id!(
    /// A table, stable across restarts and renames; never reused.
    TableId(u32)
);
id!(
    /// An index inside its table; 0 is the clustered index.
    IndexId(u16)
);

/// A page of a file: what the page cache finds frames by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId {
    pub file: FileId,
    pub page: PageNo,
}

impl PageId {
    pub const fn new(file: FileId, page: PageNo) -> PageId {
        PageId { file, page }
    }

    /// The id as one word, file in the upper half.
    pub const fn to_word(self) -> u64 {
        (self.file.0 as u64) << 32 | self.page.0 as u64
    }

    pub const fn from_word(word: u64) -> PageId {
        PageId { file: FileId((word >> 32) as u32), page: PageNo(word as u32) }
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} page {}", self.file, self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_id_survives_its_word() {
        let id = PageId::new(FileId(7), PageNo(u32::MAX));
        assert_eq!(PageId::from_word(id.to_word()), id);
    }
}

//! Which pages of a file are free: a bit for each, in pages of their own.
//!
//! A file is divided into groups of as many pages as a page has bits behind its header. The first page of
//! each group is the group's map, but in the first group, where that is the file header, page 1. A set bit
//! means that the page is in use. The bits change in the record of the change that takes a page or gives it
//! back, so a page that was set aside and not used is free after a crash by itself.
//!
//! ```text
//! free map page (after the 24 bytes that all pages share)
//! 24 zero .. | 52 number of the group u32 | 56 zero u64 |
//! 64 bits, the lowest of the first byte for the group's first page
//! ```

use crate::format::layout::{FILE_ID, FIRST_CHILD, FORMAT, FORMAT_AT, HEADER_BYTES, PAGE_NO, PageType, TYPE};
use base::{PageId, PageNo};
use pagecache::page::{Page, PageMut};

const GROUP_AT: usize = FIRST_CHILD;

const _: () =
    assert!(GROUP_AT + 4 <= HEADER_BYTES && HEADER_BYTES.is_multiple_of(8), "bits are read by words");

/// Pages in a group.
pub(crate) const fn group_pages(page_size: usize) -> u32 {
    ((page_size - HEADER_BYTES) * 8) as u32
}

pub(crate) const fn group_of(page: PageNo, page_size: usize) -> u32 {
    page.0 / group_pages(page_size)
}

/// The page with the bit of `page`.
pub(crate) const fn map_page_of(page: PageNo, page_size: usize) -> PageNo {
    map_page(group_of(page, page_size), page_size)
}

/// The map of a group.
pub(crate) const fn map_page(group: u32, page_size: usize) -> PageNo {
    PageNo(if group == 0 { 1 } else { group * group_pages(page_size) })
}

/// True if the page is a map itself.
pub(crate) fn is_map_page(page: PageNo, page_size: usize) -> bool {
    page == map_page_of(page, page_size)
}

/// The used pages that a map names, ascending; an error if the page is no map of that group.
pub(crate) fn used_pages(page: Page<'_>, group: u32) -> Result<impl Iterator<Item = PageNo> + '_, String> {
    let is_map = page.u8_at(FORMAT_AT) == FORMAT && page.u8_at(TYPE) == PageType::FreeMap as u8;
    if !is_map || page.u32_at(GROUP_AT) != group {
        return Err(format!("not the free map of group {group}"));
    }
    let first = group * group_pages(page.size());
    Ok((HEADER_BYTES / 8..page.size() / 8).flat_map(move |word| {
        let mut bits = page.word_at(word * 8);
        let at = first + ((word - HEADER_BYTES / 8) * 64) as u32;
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(PageNo(at + bit))
        })
    }))
}

/// A page of the map, held exclusively.
#[derive(Debug)]
pub(crate) struct FreeMapPage<'a> {
    page: PageMut<'a>,
}

impl<'a> FreeMapPage<'a> {
    pub(crate) fn new(page: PageMut<'a>) -> FreeMapPage<'a> {
        FreeMapPage { page }
    }

    /// Makes the page a map on which only the map itself is used, and in the first group the file header.
    pub(crate) fn init(&mut self, id: PageId) {
        self.page.clear();
        self.page.set_u8(FORMAT_AT, FORMAT);
        self.page.set_u8(TYPE, PageType::FreeMap as u8);
        self.page.set_u32(PAGE_NO, id.page.0);
        self.page.set_u32(FILE_ID, id.file.0);
        let group = group_of(id.page, self.page.size());
        self.page.set_u32(GROUP_AT, group);
        self.set(id.page, true);
        if group == 0 {
            self.set(PageNo(0), true);
        }
    }

    pub(crate) fn is_one(&self) -> bool {
        let page = self.page.as_page();
        page.u8_at(FORMAT_AT) == FORMAT && page.u8_at(TYPE) == PageType::FreeMap as u8
    }

    /// True if the page's bit is here.
    pub(crate) fn covers(&self, page: PageNo) -> bool {
        group_of(page, self.page.size()) == self.page.as_page().u32_at(GROUP_AT)
    }

    pub(crate) fn set(&mut self, page: PageNo, used: bool) {
        let bit = (page.0 % group_pages(self.page.size())) as usize;
        let at = HEADER_BYTES + bit / 8;
        let (byte, mask) = (self.page.as_page().u8_at(at), 1 << (bit % 8));
        self.page.set_u8(at, if used { byte | mask } else { byte & !mask });
    }

    pub(crate) fn into_page(self) -> PageMut<'a> {
        self.page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FileId;
    use pagecache::page::PageBuf;

    #[test]
    fn a_map_names_the_pages_of_its_group_that_are_used() {
        for group in [0, 1, 7] {
            let size = 1024;
            let first = group * group_pages(size);
            let id = PageId::new(FileId(2), map_page(group, size));
            let mut buffer = PageBuf::new(size);
            let mut map = FreeMapPage::new(buffer.page_mut());
            map.init(id);
            let last = first + group_pages(size) - 1;
            for page in [first + 8, first + 63, first + 64, last] {
                assert_eq!(map_page_of(PageNo(page), size), id.page);
                assert!(map.covers(PageNo(page)) && !map.covers(PageNo(last + 1)));
                map.set(PageNo(page), true);
            }
            map.set(PageNo(first + 63), false);
            let used: Vec<u32> = used_pages(buffer.page(), group).unwrap().map(|page| page.0).collect();
            let by_itself = if group == 0 { vec![0, 1] } else { vec![first] };
            assert_eq!(used, [by_itself, vec![first + 8, first + 64, last]].concat());
            assert!(is_map_page(id.page, size) && !is_map_page(PageNo(first + 8), size));
            assert!(used_pages(buffer.page(), group + 1).is_err());
        }
    }
}

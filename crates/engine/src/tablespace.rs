//! A file of pages: its header, and which of its pages are free.
//!
//! The free list lives in memory while the file is open, so that taking a page touches no page; a
//! clean shutdown writes it into some of the free pages themselves (trunks), and the header names the
//! first. Byte tables:
//!
//! ```text
//! file header, page 0 (after the 24 bytes that all pages share)
//! 24 zero u64 | 32 magic u64 | 40 page size u32 | 44 pages u32 | 48 zero u32 | 52 first trunk u32 (0 = none)
//! 56 free pages u64 | 64 rows u64 | 72 next AUTO_INCREMENT u64 | 80 next row id u64 | 88 next chain u64
//!
//! trunk (after the 24 bytes that all pages share)
//! 24 zero | 52 next trunk u32 (0 = last) | 56 zero | 64 entries u32 | 68 zero u32 | 72 page numbers u32 ...
//! ```

use crate::node::layout::{FILE_ID, FIRST_CHILD, FORMAT, FORMAT_AT, LSN, PAGE_NO, PageType, TYPE};
use crate::tree::retry;
use crate::{Error, Result};
use base::sync::{Arc, Mutex};
use base::{FileId, PageId, PageNo};
use pagecache::page::{Page, PageMut};
use pagecache::{Detach, PageCache};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use vfs::File;

const MAGIC: u64 = u64::from_le_bytes(*b"LATCHTS\x01");
const MAGIC_AT: usize = 32;
const PAGE_SIZE_AT: usize = 40;
const PAGES_AT: usize = 44;
const FIRST_TRUNK_AT: usize = FIRST_CHILD;
const FREE_AT: usize = 56;
const ROWS_AT: usize = 64;
const AUTO_INCREMENT_AT: usize = 72;
const ROW_ID_AT: usize = 80;
const CHAIN_AT: usize = 88;

const NEXT_TRUNK_AT: usize = FIRST_CHILD;
const TRUNK_COUNT_AT: usize = 64;
const TRUNK_ENTRIES_AT: usize = 72;

/// A file grows by an eighth of its size, and at least by these many pages, at most by these many bytes:
/// one system call for many pages, and little waste in small tables.
const GROW_PAGES_MIN: u32 = 4;
const GROW_BYTES_MAX: usize = 16 << 20;

/// What a file's header remembers for its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableNumbers {
    pub rows: u64,
    pub next_auto_increment: u64,
    pub next_row_id: u64,
    /// Numbers overflow chains, so that a page of an older chain is told from one of a newer.
    pub next_chain: u64,
}

impl Default for TableNumbers {
    fn default() -> TableNumbers {
        TableNumbers { rows: 0, next_auto_increment: 1, next_row_id: 1, next_chain: 1 }
    }
}

/// A file header, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    pub page_size: u32,
    pub pages: u32,
    pub first_trunk: u32,
    pub free_pages: u64,
    pub numbers: TableNumbers,
}

/// An open file of pages.
#[derive(Debug)]
pub struct Tablespace {
    cache: Arc<PageCache>,
    file_id: FileId,
    path: PathBuf,
    page_size: usize,
    space: Mutex<Space>,
}

#[derive(Debug)]
struct Space {
    /// `None` once the file is closed or dropped.
    file: Option<Arc<dyn File>>,
    /// Pages that have been handed out or are free; those behind were never used.
    pages: u32,
    /// Pages that the file is long enough for.
    file_pages: u32,
    free: Vec<PageNo>,
}

impl Tablespace {
    /// Makes a new file of one header page.
    pub fn create(
        cache: Arc<PageCache>,
        file_id: FileId,
        path: &Path,
        file: Arc<dyn File>,
        page_size: usize,
    ) -> Result<Arc<Tablespace>> {
        cache.attach(file_id, path.to_path_buf(), file.clone())?;
        let space = Space { file: Some(file), pages: 1, file_pages: 0, free: Vec::new() };
        let space =
            Tablespace { cache, file_id, path: path.to_path_buf(), page_size, space: Mutex::new(space) };
        if let Err(error) = space.write_first_header() {
            // Nothing of a file that could not be made stays behind.
            let _ = space.close(Detach::Discard);
            return Err(error);
        }
        Ok(Arc::new(space))
    }

    fn write_first_header(&self) -> Result<()> {
        self.space.lock().grow(GROW_PAGES_MIN, self.page_size)?;
        retry(&self.cache, |_| {
            drop(self.cache.create(self.page_id(PageNo(0)))?);
            Ok(())
        })?;
        self.save(&TableNumbers::default())
    }

    /// Opens a file that [`Tablespace::save`] has written.
    pub fn open(
        cache: Arc<PageCache>,
        file_id: FileId,
        path: &Path,
        file: Arc<dyn File>,
        page_size: usize,
    ) -> Result<(Arc<Tablespace>, TableNumbers)> {
        let file_pages = (file.len()? / page_size as u64).min(u64::from(u32::MAX)) as u32;
        cache.attach(file_id, path.to_path_buf(), file.clone())?;
        let space = Space { file: Some(file), pages: 1, file_pages, free: Vec::new() };
        let space = Arc::new(Tablespace {
            cache,
            file_id,
            path: path.to_path_buf(),
            page_size,
            space: Mutex::new(space),
        });
        match space.load() {
            Ok(numbers) => Ok((space, numbers)),
            Err(error) => {
                let _ = space.close(Detach::Discard);
                Err(error)
            }
        }
    }

    fn load(&self) -> Result<TableNumbers> {
        let header = self.read_page(PageNo(0), |page| parse_header(page, self.page_size))?;
        let header = header.map_err(|why| self.corrupt(0, &why))?;
        {
            let space = self.space.lock();
            if header.pages > space.file_pages {
                return Err(self.corrupt(0, "the file is shorter than its header says"));
            }
        }
        let mut free = Vec::new();
        let mut trunk = header.first_trunk;
        let mut seen = BTreeSet::new();
        while trunk != 0 {
            if !seen.insert(trunk) {
                return Err(self.corrupt(trunk, "the free list runs in a circle"));
            }
            let (next, entries) =
                self.read_page(PageNo(trunk), parse_trunk)?.map_err(|why| self.corrupt(trunk, &why))?;
            free.push(PageNo(trunk));
            free.extend(entries);
            trunk = next;
        }
        if free.len() as u64 != header.free_pages || free.iter().any(|page| page.0 >= header.pages) {
            return Err(self.corrupt(0, "the free list does not have the length that the header says"));
        }
        let mut space = self.space.lock();
        space.pages = header.pages;
        space.free = free;
        Ok(header.numbers)
    }

    fn read_page<T>(&self, page: PageNo, read: impl Fn(Page<'_>) -> T) -> Result<T> {
        retry(&self.cache, |_| {
            let guard = self.cache.read_shared(self.page_id(page))?;
            Ok(read(guard.page()))
        })
    }

    /// Writes header and free list into pages of the cache; a flush makes them durable.
    /// Nothing else changes the file meanwhile.
    pub fn save(&self, numbers: &TableNumbers) -> Result<()> {
        let (pages, free) = {
            let space = self.space.lock();
            (space.pages, space.free.clone())
        };
        let per_trunk = entries_per_trunk(self.page_size);
        // Each trunk is itself free: it names up to `per_trunk` others.
        let trunks = free.len().div_ceil(per_trunk + 1);
        let (trunk_pages, entries) = free.split_at(trunks);
        for (index, trunk) in trunk_pages.iter().enumerate() {
            let next = trunk_pages.get(index + 1).map_or(0, |page| page.0);
            let from = (index * per_trunk).min(entries.len());
            let mine = &entries[from..(from + per_trunk).min(entries.len())];
            retry(&self.cache, |_| {
                let mut guard = self.cache.create(self.page_id(*trunk))?;
                write_trunk(&mut guard.page_mut(), self.page_id(*trunk), next, mine);
                Ok(())
            })?;
        }
        let header = Header {
            page_size: self.page_size as u32,
            pages,
            first_trunk: trunk_pages.first().map_or(0, |page| page.0),
            free_pages: free.len() as u64,
            numbers: *numbers,
        };
        retry(&self.cache, |_| {
            let mut guard = self.cache.write(self.page_id(PageNo(0)))?;
            write_header(&mut guard.page_mut(), self.page_id(PageNo(0)), &header);
            Ok(())
        })
    }

    /// A page that belongs to the caller from now on. Its contents are anything.
    /// [`Error::Full`] if the file cannot grow. Not to be called under a latch: it may wait for the device.
    pub fn allocate(&self) -> Result<PageNo> {
        let mut space = self.space.lock();
        if let Some(page) = space.free.pop() {
            return Ok(page);
        }
        if space.pages == space.file_pages {
            let step = (space.pages / 8).clamp(GROW_PAGES_MIN, (GROW_BYTES_MAX / self.page_size) as u32);
            space.grow(step, self.page_size)?;
        }
        let page = PageNo(space.pages);
        space.pages += 1;
        Ok(page)
    }

    /// Gives a page back. Nothing refers to it any more, and its frame has been freed.
    pub fn release(&self, page: PageNo) {
        self.space.lock().free.push(page);
    }

    /// The number of pages in use or free, and the free ones: what `check` compares with the trees.
    pub fn occupancy(&self) -> (u32, Vec<PageNo>) {
        let space = self.space.lock();
        (space.pages, space.free.clone())
    }

    /// Lets the cache go of the file. Later accesses fail.
    pub fn close(&self, detach: Detach) -> Result<()> {
        let result = self.cache.detach(self.file_id, detach);
        self.space.lock().file = None;
        Ok(result?)
    }

    pub fn cache(&self) -> &PageCache {
        &self.cache
    }

    pub fn file_id(&self) -> FileId {
        self.file_id
    }

    pub fn page_id(&self, page: PageNo) -> PageId {
        PageId::new(self.file_id, page)
    }

    pub fn page_size(&self) -> usize {
        self.page_size
    }

    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    pub(crate) fn corrupt(&self, page: u32, why: &str) -> Error {
        Error::Corrupt { path: self.path(), page, lsn: 0, why: why.to_string() }
    }
}

impl Space {
    fn grow(&mut self, pages: u32, page_size: usize) -> Result<()> {
        let file = self.file.as_ref().ok_or(Error::NoSuchTable)?;
        // One step of the largest size short of 2^32, so that page numbers never wrap.
        let target = self.file_pages.checked_add(pages).ok_or(Error::Full)?;
        // Before a page is handed out: a full disk is found here, not when a row has been acknowledged.
        match file.reserve(u64::from(target) * page_size as u64) {
            Ok(()) => {
                self.file_pages = target;
                Ok(())
            }
            Err(error) if is_disk_full(&error) => Err(Error::Full),
            Err(error) => Err(error.into()),
        }
    }
}

/// True if the device, or the user's share of it, has no room left.
pub fn is_disk_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge | ErrorKind::WriteZero
    )
}

fn entries_per_trunk(page_size: usize) -> usize {
    (page_size - TRUNK_ENTRIES_AT) / 4
}

fn start_page(page: &mut PageMut<'_>, id: PageId, page_type: PageType) {
    page.clear();
    page.set_u8(FORMAT_AT, FORMAT);
    page.set_u8(TYPE, page_type as u8);
    page.set_u64(LSN, 0);
    page.set_u32(PAGE_NO, id.page.0);
    page.set_u32(FILE_ID, id.file.0);
}

fn write_header(page: &mut PageMut<'_>, id: PageId, header: &Header) {
    start_page(page, id, PageType::FileHeader);
    page.set_u64(MAGIC_AT, MAGIC);
    page.set_u32(PAGE_SIZE_AT, header.page_size);
    page.set_u32(PAGES_AT, header.pages);
    page.set_u32(FIRST_TRUNK_AT, header.first_trunk);
    page.set_u64(FREE_AT, header.free_pages);
    page.set_u64(ROWS_AT, header.numbers.rows);
    page.set_u64(AUTO_INCREMENT_AT, header.numbers.next_auto_increment);
    page.set_u64(ROW_ID_AT, header.numbers.next_row_id);
    page.set_u64(CHAIN_AT, header.numbers.next_chain);
}

fn has_type(page: Page<'_>, page_type: PageType) -> bool {
    page.u8_at(FORMAT_AT) == FORMAT && page.u8_at(TYPE) == page_type as u8
}

/// Reads a file header; the error says what is wrong with it.
pub fn parse_header(page: Page<'_>, page_size: usize) -> Result<Header, String> {
    if !has_type(page, PageType::FileHeader) || page.u64_at(MAGIC_AT) != MAGIC {
        return Err("page 0 is not a file header".to_string());
    }
    let header = Header {
        page_size: page.u32_at(PAGE_SIZE_AT),
        pages: page.u32_at(PAGES_AT),
        first_trunk: page.u32_at(FIRST_TRUNK_AT),
        free_pages: page.u64_at(FREE_AT),
        numbers: TableNumbers {
            rows: page.u64_at(ROWS_AT),
            next_auto_increment: page.u64_at(AUTO_INCREMENT_AT),
            next_row_id: page.u64_at(ROW_ID_AT),
            next_chain: page.u64_at(CHAIN_AT),
        },
    };
    if header.page_size as usize != page_size {
        return Err(format!("the file has pages of {} bytes, expected {page_size}", header.page_size));
    }
    Ok(header)
}

fn write_trunk(page: &mut PageMut<'_>, id: PageId, next: u32, entries: &[PageNo]) {
    start_page(page, id, PageType::FreeTrunk);
    page.set_u32(NEXT_TRUNK_AT, next);
    page.set_u32(TRUNK_COUNT_AT, entries.len() as u32);
    for (index, entry) in entries.iter().enumerate() {
        page.set_u32(TRUNK_ENTRIES_AT + index * 4, entry.0);
    }
}

/// Reads a page of the free list: the next one and the free pages it names.
pub fn parse_trunk(page: Page<'_>) -> Result<(u32, Vec<PageNo>), String> {
    if !has_type(page, PageType::FreeTrunk) {
        return Err("a page of the free list is something else".to_string());
    }
    let count = page.u32_at(TRUNK_COUNT_AT) as usize;
    if count > entries_per_trunk(page.size()) {
        return Err("a page of the free list names more pages than fit it".to_string());
    }
    let entries = (0..count).map(|index| PageNo(page.u32_at(TRUNK_ENTRIES_AT + index * 4))).collect();
    Ok((page.u32_at(NEXT_TRUNK_AT), entries))
}

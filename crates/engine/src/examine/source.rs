//! Where the pages come from: a file nobody has open, or the cache.

use crate::format::file_header::Header;
use crate::format::free_map::{map_page, used_pages};
use crate::space::retry::retry;
use crate::space::tablespace::Tablespace;
use base::sync::Arc;
use base::{FileId, PageId, PageNo};
use pagecache::page::PageBuf;
use pagecache::unseal;
use vfs::File;

/// Gives copies of a file's pages, verified as far as the page itself goes.
pub(crate) trait PageSource {
    /// The page, or what is wrong with it.
    fn page(&mut self, page: PageNo) -> Result<PageBuf, String>;
}

/// Reads and verifies pages of a file.
pub(super) struct FileSource {
    file: Arc<dyn File>,
    file_id: FileId,
    bytes: Vec<u8>,
}

impl FileSource {
    pub(super) fn new(file: Arc<dyn File>, file_id: FileId, page_size: usize) -> FileSource {
        FileSource { file, file_id, bytes: vec![0; page_size] }
    }

    /// What the file's free map says.
    pub(super) fn free_map(&mut self, header: &Header) -> Result<FreeMap, (u32, String)> {
        let mut map = FreeMap { pages: 1, free: Vec::new() };
        for group in 0..header.groups {
            let number = map_page(group, self.bytes.len());
            let page = self.page(number).map_err(|why| (number.0, why))?;
            for used in used_pages(page.page(), group).map_err(|why| (number.0, why))? {
                map.free.extend((map.pages..used.0).map(PageNo));
                map.pages = map.pages.max(used.0.saturating_add(1));
            }
        }
        Ok(map)
    }
}

/// What a file's free map says.
pub(super) struct FreeMap {
    /// The number of pages up to the last in use.
    pub pages: u32,
    /// The free ones among them.
    pub free: Vec<PageNo>,
}

impl PageSource for FileSource {
    fn page(&mut self, page: PageNo) -> Result<PageBuf, String> {
        let offset = u64::from(page.0) * self.bytes.len() as u64;
        self.file.read_at(&mut self.bytes, offset).map_err(|error| format!("cannot be read: {error}"))?;
        unseal(&mut self.bytes, PageId::new(self.file_id, page))?;
        let mut buffer = PageBuf::new(self.bytes.len());
        buffer.page_mut().write(0, &self.bytes);
        Ok(buffer)
    }
}

/// Copies pages out of the cache, which has verified what it read.
pub(crate) struct CacheSource<'s>(pub(crate) &'s Tablespace);

impl PageSource for CacheSource<'_> {
    fn page(&mut self, page: PageNo) -> Result<PageBuf, String> {
        let mut buffer = PageBuf::new(self.0.page_size());
        let copied = retry(self.0.file(), |_| {
            let guard = self.0.pool().read_shared(self.0.page_id(page))?;
            buffer.page_mut().copy_from(guard.page());
            Ok(())
        });
        copied.map(|()| buffer).map_err(|error| error.to_string())
    }
}

//! A file of pages: which of its pages are free, and how its header and its free map change.
//!
//! The free pages are listed in memory while the file is open, so that taking a page touches no page. After a
//! crash the free map counts (`format::free_map`): a record that uses a page or gives it back changes the
//! map, too. The header is in `format::file_header`.

use super::retry::{Attempt, retry};
use crate::error::is_disk_full;
use crate::format::file_header::{HEADER_USED, Header, TableNumbers, parse_header, write_header};
use crate::format::free_map::{FreeMapPage, group_of, is_map_page, map_page, map_page_of, used_pages};
use crate::format::node::with_scratch;
use crate::format::redo::{Changes, set_lsn};
use crate::journal::Journal;
use crate::space::row_share::RowShare;
use crate::{Error, Result};
use base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use base::sync::{Arc, Mutex, OnceLock};
use base::{FileId, Lsn, PageId, PageNo};
use pagecache::page::{Page, PageMut};
use pagecache::{CachedFile, Caches, Detach, FileFormat, NamedCache, Pool, WriteGuard};
use rowtier::Announced;
use std::path::{Path, PathBuf};
use vfs::File;

base::latch_class!(pub SpaceLatch, "space map");

/// A file grows by an eighth of its size, and at least by these many pages, at most by these many bytes:
/// one system call for many pages, and little waste in small tables.
const GROW_PAGES_MIN: u32 = 4;
const GROW_BYTES_MAX: usize = 16 << 20;

/// The row tier, and how it is used.
#[derive(Clone, Debug)]
pub(crate) struct RowCache {
    pub share: Arc<RowShare>,
    /// See `Options::row_tier_first`.
    pub is_first: bool,
}

/// Where the pages of a file are kept in memory, and what describes their changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home<'h> {
    pub caches: &'h Arc<Caches>,
    pub cache: &'h Arc<NamedCache>,
    pub journal: &'h Arc<Journal>,
    pub format: FileFormat,
}

/// An open file of pages.
#[derive(Debug)]
pub(crate) struct Tablespace {
    file: Arc<CachedFile>,
    journal: Arc<Journal>,
    path: PathBuf,
    /// As in the header, or false while a checkpoint looks whether the doubt can end.
    in_doubt: AtomicBool,
    /// Operations under way that take more than one record, and those that were cut short.
    operations: AtomicUsize,
    /// The table's numbers as they are in the header. Changed under the header's latch.
    saved: Mutex<TableNumbers>,
    space: Mutex<Space, SpaceLatch>,
    /// For tables' files: what keeps their rows, and whether it may have kept any.
    row_tier: OnceLock<RowCache>,
    kept: Announced,
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
    /// Makes a new file of a header page and the first free map.
    pub(crate) fn create(
        home: Home<'_>,
        file_id: FileId,
        path: &Path,
        file: Arc<dyn File>,
    ) -> Result<Arc<Tablespace>> {
        let space = Tablespace::attach(home, file_id, path, file, 0)?;
        if let Err(error) = space.write_first_pages() {
            // Nothing of a file that could not be made stays behind.
            let _ = space.close(Detach::Discard);
            return Err(error);
        }
        Ok(Arc::new(space))
    }

    fn attach(
        home: Home<'_>,
        file_id: FileId,
        path: &Path,
        file: Arc<dyn File>,
        file_pages: u32,
    ) -> Result<Tablespace> {
        let path = path.to_path_buf();
        let cached = home.caches.attach(home.cache, file_id, path.clone(), file.clone(), home.format)?;
        let space = Space { file: Some(file), pages: 1, file_pages, free: Vec::new() };
        Ok(Tablespace {
            file: cached,
            journal: home.journal.clone(),
            path,
            in_doubt: AtomicBool::new(false),
            operations: AtomicUsize::new(0),
            saved: Mutex::new(TableNumbers::default()),
            space: Mutex::of_class(space),
            row_tier: OnceLock::new(),
            kept: Announced::default(),
        })
    }

    fn write_first_pages(&self) -> Result<()> {
        self.space.lock().grow(GROW_PAGES_MIN, self.page_size())?;
        retry(&self.file, |_| {
            let mut guard = self.pool().create(self.page_id(PageNo(0)))?;
            let header = Header {
                page_size: self.page_size() as u32,
                is_compressed: self.file.format().is_compressed,
                groups: 0,
                in_doubt: false,
                numbers: TableNumbers::default(),
            };
            write_header(&mut guard.page_mut(), self.page_id(PageNo(0)), &header);
            self.add_map(0, guard)
        })?;
        self.space.lock().pages = map_page(0, self.page_size()).0 + 1;
        Ok(())
    }

    /// Opens a file whose pages are as the log has them.
    pub(crate) fn open(
        home: Home<'_>,
        file_id: FileId,
        path: &Path,
        file: Arc<dyn File>,
    ) -> Result<(Arc<Tablespace>, TableNumbers)> {
        let file_pages = (file.len()? / home.format.page_size as u64).min(u64::from(u32::MAX)) as u32;
        let space = Tablespace::attach(home, file_id, path, file, file_pages)?;
        match space.load() {
            Ok(numbers) => Ok((Arc::new(space), numbers)),
            Err(error) => {
                let _ = space.close(Detach::Discard);
                Err(error)
            }
        }
    }

    /// Rows of this file may be kept in `tier`. To be called before anyone else has the tablespace.
    pub(crate) fn set_row_tier(&self, rows: &RowCache) {
        let _ = self.row_tier.set(rows.clone());
    }

    #[inline(always)]
    pub(crate) fn row_tier(&self) -> Option<&RowCache> {
        self.row_tier.get()
    }

    #[inline(always)]
    pub(crate) fn kept(&self) -> &Announced {
        &self.kept
    }

    fn load(&self) -> Result<TableNumbers> {
        let header = self.read_page(PageNo(0), |page| parse_header(page, self.page_size()))?;
        let header = header.map_err(|why| self.corrupt(0, &why))?;
        // ORDER: nobody else uses the file yet.
        self.in_doubt.store(header.in_doubt, Ordering::Relaxed);
        // What was cut short, until `end_doubt`.
        self.operations.store(usize::from(header.in_doubt), Ordering::Relaxed);
        let mut pages = 1;
        let mut free = Vec::new();
        for group in 0..header.groups {
            let map = map_page(group, self.page_size());
            self.read_page(map, |page| {
                for used in used_pages(page, group)? {
                    free.extend((pages..used.0).map(PageNo));
                    pages = pages.max(used.0.saturating_add(1));
                }
                Ok(())
            })?
            .map_err(|why: String| self.corrupt(map.0, &why))?;
        }
        let mut space = self.space.lock();
        // CRASH: the file's growth may have been lost with everything that was in it then.
        let missing = pages.saturating_sub(space.file_pages);
        space.grow(missing, self.page_size())?;
        space.pages = pages;
        space.free = free;
        drop(space);
        *self.saved.lock() = header.numbers;
        Ok(header.numbers)
    }

    fn read_page<T>(&self, page: PageNo, mut read: impl FnMut(Page<'_>) -> T) -> Result<T> {
        retry(&self.file, |_| {
            let guard = self.pool().read_shared(self.page_id(page))?;
            Ok(read(guard.page()))
        })
    }

    /// Puts the table's numbers into the header, for the next start after a shutdown or a checkpoint. If they
    /// are there already the header is not read: a checkpoint saves every table's, and most tables have not
    /// changed.
    pub(crate) fn save(&self, numbers: &TableNumbers) -> Result<()> {
        if *self.saved.lock() == *numbers {
            return Ok(());
        }
        self.update_header(|header| header.numbers = *numbers)
    }

    fn update_header(&self, change: impl Fn(&mut Header)) -> Result<()> {
        retry(&self.file, |_| {
            let mut guard = self.pool().write(self.page_id(PageNo(0)))?;
            let old = parse_header(guard.page(), self.page_size()).map_err(|why| self.corrupt(0, &why))?;
            let mut header = old.clone();
            change(&mut header);
            if header != old {
                let lsn = self.log_header(&mut guard, &header, |_| ())?;
                self.change_header(&mut guard, &header, lsn);
            }
            *self.saved.lock() = header.numbers;
            Ok(())
        })
    }

    /// To be called before a change that takes more than one record, whose end is told by
    /// [`Tablespace::end_operation`].
    #[inline]
    pub(crate) fn doubt(&self) -> Result<Operation> {
        // ORDER: SeqCst: this count and the look at the flag are in the one order with a checkpoint's store
        // to the flag and its look at the count (`end_doubt_if_idle`). So the checkpoint finds the operation,
        // or the operation finds the flag cleared, and sets it again under the header's latch, behind the
        // checkpoint's record.
        self.operations.fetch_add(1, Ordering::SeqCst);
        let operation = Operation(());
        if !self.in_doubt.load(Ordering::SeqCst)
            && let Err(error) = self.begin_doubt()
        {
            self.end_operation(operation);
            return Err(error);
        }
        Ok(operation)
    }

    #[cold]
    fn begin_doubt(&self) -> Result<()> {
        self.update_header(|header| header.in_doubt = true)?;
        // ORDER: as in `doubt`; behind the record.
        self.in_doubt.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// All records of the operation have been appended, and every page that it used belongs to something.
    pub(crate) fn end_operation(&self, operation: Operation) {
        let Operation(()) = operation;
        // ORDER: a checkpoint that sees this comes behind the operation's records.
        self.operations.fetch_sub(1, Ordering::SeqCst);
    }

    /// Ends the doubt unless an operation is under way, or one was cut short.
    ///
    /// CRASH: between two operations no used page belongs to nothing. The record says so for the log before
    /// it; an operation that begins later logs its doubt behind it.
    pub(crate) fn end_doubt_if_idle(&self) -> Result<()> {
        // ORDER: looked at again below.
        if !self.is_in_doubt() || self.operations.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
        retry(&self.file, |_| {
            let mut guard = self.pool().write(self.page_id(PageNo(0)))?;
            let old = parse_header(guard.page(), self.page_size()).map_err(|why| self.corrupt(0, &why))?;
            // ORDER: see `doubt`. The flag is set only while the header says so, too: under its latch.
            self.in_doubt.store(false, Ordering::SeqCst);
            if !old.in_doubt {
                // Another checkpoint has ended it.
                return Ok(());
            }
            if self.operations.load(Ordering::SeqCst) > 0 {
                self.in_doubt.store(true, Ordering::SeqCst);
                return Ok(());
            }
            let header = Header { in_doubt: false, ..old };
            match self.log_header(&mut guard, &header, |_| ()) {
                Ok(lsn) => {
                    self.change_header(&mut guard, &header, lsn);
                    Ok(())
                }
                Err(error) => {
                    self.in_doubt.store(true, Ordering::SeqCst);
                    Err(error.into())
                }
            }
        })
    }

    /// Every used page belongs to something, and nobody changes the file meanwhile.
    pub(crate) fn end_doubt(&self) -> Result<()> {
        // ORDER: nobody else uses it meanwhile.
        self.operations.store(0, Ordering::Relaxed);
        self.in_doubt.store(false, Ordering::Relaxed);
        self.update_header(|header| header.in_doubt = false)
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        // ORDER: as in `doubt`.
        self.in_doubt.load(Ordering::Acquire)
    }

    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn header_is_in_doubt(&self) -> bool {
        let header = self.read_page(PageNo(0), |page| parse_header(page, self.page_size()));
        header.unwrap().unwrap().in_doubt
    }

    /// Logs the header, with what `more` adds to the record.
    fn log_header(
        &self,
        guard: &mut WriteGuard<'_>,
        header: &Header,
        more: impl FnOnce(&mut Changes),
    ) -> Result<Lsn> {
        // Dirty before it is logged: see `Journal`.
        guard.page_mut();
        let mut changes = Changes::new(self.file_id());
        with_scratch(self.page_size(), |page| {
            write_header(&mut page.page_mut(), self.page_id(PageNo(0)), header);
            changes.image(PageNo(0), page.page(), HEADER_USED, 0);
        });
        more(&mut changes);
        changes.log(&self.journal)
    }

    fn change_header(&self, guard: &mut WriteGuard<'_>, header: &Header, lsn: Lsn) {
        write_header(&mut guard.page_mut(), self.page_id(PageNo(0)), header);
        set_lsn(&mut guard.page_mut(), lsn);
    }

    /// Gives a group its free map, unless it has one. `header_guard` is the file header.
    fn add_map(&self, group: u32, mut header_guard: WriteGuard<'_>) -> Attempt<()> {
        let header =
            parse_header(header_guard.page(), self.page_size()).map_err(|why| self.corrupt(0, &why))?;
        if header.groups > group {
            return Ok(());
        }
        let id = self.page_id(map_page(group, self.page_size()));
        let mut guard = self.pool().create(id)?;
        FreeMapPage::new(guard.page_mut()).init(id);
        let header = Header { groups: group + 1, ..header };
        let logged = self.log_header(&mut header_guard, &header, |changes| {
            changes.image(id.page, guard.page(), self.page_size(), 0);
        });
        match logged {
            Ok(lsn) => {
                set_lsn(&mut guard.page_mut(), lsn);
                self.change_header(&mut header_guard, &header, lsn);
                Ok(())
            }
            Err(error) => {
                guard.free();
                Err(error.into())
            }
        }
    }

    /// Latches the maps that these pages belong to, after all tree pages.
    pub(crate) fn latch_maps(&self, pages: &[PageNo]) -> Attempt<Maps<'_>> {
        let mut numbers: Vec<PageNo> =
            pages.iter().map(|page| map_page_of(*page, self.page_size())).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut guards = Vec::with_capacity(numbers.len());
        for number in numbers {
            guards.push(self.pool().write(self.page_id(number))?);
        }
        Ok(Maps { guards })
    }

    /// Makes a tree page out of an allocated one: `build` fills it, and log and free map know of it from then
    /// on.
    pub(crate) fn create_node(&self, page: PageNo, build: impl Fn(PageMut<'_>, PageId)) -> Result<()> {
        self.create_page(page, build, |changes, page, content| changes.node_image(page, content))
    }

    /// As [`Tablespace::create_node`], for a page of any kind; `describe` adds its image to the record.
    pub(crate) fn create_page(
        &self,
        page: PageNo,
        build: impl Fn(PageMut<'_>, PageId),
        describe: impl Fn(&mut Changes, PageNo, Page<'_>),
    ) -> Result<()> {
        let id = self.page_id(page);
        retry(&self.file, |_| {
            let mut maps = self.latch_maps(&[page])?;
            let mut guard = self.pool().create(id)?;
            build(guard.page_mut(), id);
            let mut changes = Changes::new(self.file_id());
            describe(&mut changes, page, guard.page());
            maps.describe(&mut changes, true, &[page]);
            match changes.log(&self.journal) {
                Ok(lsn) => {
                    set_lsn(&mut guard.page_mut(), lsn);
                    maps.change(true, &[page], lsn);
                    Ok(())
                }
                Err(error) => {
                    guard.free();
                    Err(error.into())
                }
            }
        })
    }

    /// Notes that pages are free, which nothing refers to any more, and gives them back.
    pub(crate) fn free_pages(&self, pages: &[PageNo]) -> Result<()> {
        for some in pages.chunk_by(|one, other| {
            map_page_of(*one, self.page_size()) == map_page_of(*other, self.page_size())
        }) {
            retry(&self.file, |_| {
                let mut maps = self.latch_maps(&some[..1])?;
                let mut changes = Changes::new(self.file_id());
                maps.describe(&mut changes, false, some);
                let lsn = changes.log(&self.journal)?;
                maps.change(false, some, lsn);
                Ok(())
            })?;
        }
        for page in pages {
            retry(&self.file, |_| {
                self.pool().create(self.page_id(*page))?.free();
                Ok(())
            })?;
            self.release(*page);
        }
        Ok(())
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// A page that belongs to the caller from now on. Its contents are anything.
    /// [`Error::Full`] if the file cannot grow. Not to be called under a latch: it may wait for the device.
    pub(crate) fn allocate(&self) -> Result<PageNo> {
        loop {
            let map = {
                let mut space = self.space.lock();
                if let Some(page) = space.free.pop() {
                    return Ok(page);
                }
                if space.pages == space.file_pages {
                    let step =
                        (space.pages / 8).clamp(GROW_PAGES_MIN, (GROW_BYTES_MAX / self.page_size()) as u32);
                    space.grow(step, self.page_size())?;
                }
                let page = PageNo(space.pages);
                if !is_map_page(page, self.page_size()) {
                    space.pages += 1;
                    return Ok(page);
                }
                page
            };
            // Not under the mutex: that could wait for a frame, which a thread that waits for the mutex may
            // hold.
            let group = group_of(map, self.page_size());
            retry(&self.file, |_| self.add_map(group, self.pool().write(self.page_id(PageNo(0)))?))?;
            let mut space = self.space.lock();
            if space.pages == map.0 {
                space.pages += 1;
            }
        }
    }

    /// Gives a page back. Nothing refers to it any more, and its frame has been freed.
    pub(crate) fn release(&self, page: PageNo) {
        self.space.lock().free.push(page);
    }

    /// The number of pages in use or free, and the free ones: what `check` compares with the trees.
    pub(crate) fn occupancy(&self) -> (u32, Vec<PageNo>) {
        let space = self.space.lock();
        (space.pages, space.free.clone())
    }

    /// Lets the cache go of the file. Later accesses fail.
    pub(crate) fn close(&self, detach: Detach) -> Result<()> {
        let result = self.file.close(detach);
        let mut space = self.space.lock();
        space.file = None;
        if result.is_ok() {
            // A table keeps the states that it had until it goes, for readers that may be in them.
            space.free = Vec::new();
        }
        Ok(result?)
    }

    /// The pool that has the file's pages: it may be another at the next attempt.
    #[inline(always)]
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.file.pool()
    }

    pub(crate) fn file(&self) -> &CachedFile {
        &self.file
    }

    #[inline(always)]
    pub(crate) fn file_id(&self) -> FileId {
        self.file.id()
    }

    #[inline(always)]
    pub(crate) fn page_id(&self, page: PageNo) -> PageId {
        PageId::new(self.file_id(), page)
    }

    #[inline(always)]
    pub(crate) fn page_size(&self) -> usize {
        self.file.page_size()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    pub(crate) fn corrupt(&self, page: u32, why: &str) -> Error {
        Error::Corrupt { path: self.path(), page, lsn: 0, why: why.to_string() }
    }
}

/// A change under way that takes more than one record. If it is dropped before
/// [`Tablespace::end_operation`], because something failed, the file stays in doubt: the next start looks for
/// pages that belong to nothing.
#[derive(Debug)]
#[must_use]
pub(crate) struct Operation(());

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

/// Pages of the free map, latched.
#[derive(Debug)]
pub(crate) struct Maps<'c> {
    guards: Vec<WriteGuard<'c>>,
}

impl Maps<'_> {
    /// Adds to a record that `pages` are used or free from here on.
    pub(crate) fn describe(&mut self, changes: &mut Changes, used: bool, pages: &[PageNo]) {
        for guard in &mut self.guards {
            let number = guard.page_id().page;
            let map = FreeMapPage::new(guard.page_mut());
            let mine: Vec<PageNo> = pages.iter().copied().filter(|page| map.covers(*page)).collect();
            changes.occupy(number, guard.page(), used, &mine);
        }
    }

    /// Does what was described, in the record that ends at `lsn`.
    pub(crate) fn change(&mut self, used: bool, pages: &[PageNo], lsn: Lsn) {
        for guard in &mut self.guards {
            let mut map = FreeMapPage::new(guard.page_mut());
            for page in pages {
                if map.covers(*page) {
                    map.set(*page, used);
                }
            }
            set_lsn(&mut map.into_page(), lsn);
        }
    }
}

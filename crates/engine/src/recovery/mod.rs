//! From what a crash left to what the log says.
//!
//! 1. The log is read from its checkpoint to its end and made durable; from here on it accepts appends.
//! 2. Pages that the crash tore are taken from the doublewrite file.
//! 3. Records are read again: changes of pages are redone where the page is older, the others go to
//!    [`Logical`]. An old transaction may keep records of pages that the checkpoint knows to be on the
//!    device ([`NextIds::pages_from`]). Those are passed over.
//! 4. All pages are written and synced. The database opens its tables.
//! 5. [`Logical::finish`] ends what was unfinished.
//!
//! CRASH: at any point of this it may begin anew: redo leaves alone what it finds done, and the checkpoint
//! stays until the end. After a clean shutdown there is nothing behind the checkpoint, and only the first
//! step is left.

mod leftovers;
mod logical;

#[cfg(test)]
mod tests;

pub(crate) use logical::Logical;

use crate::format::control::NextIds;
use crate::format::file_header::format_of;
use crate::format::layout::LSN;
use crate::format::redo::{Change, changes_of, set_lsn};
use crate::journal::{Journal, kind};
use crate::names::{DOUBLEWRITE_NAME, LOG_DIR, path_of};
use crate::space::files::Files;
use crate::space::retry::retry;
use crate::write::scratch::Place;
use crate::{Error, Result};
use base::sync::Arc;
use base::{FileId, Lsn, PageId, PageNo};
use pagecache::{CachedFile, Caches, Detach};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use vfs::{Create, File, Vfs};
use wal::{Checkpoint, End, Reader};

/// What opening a directory had to do. All zero after a clean shutdown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Recovery {
    /// Log records that were read for it.
    pub records: u64,
    /// Pages taken from the doublewrite file, because a crash had torn them.
    pub repaired_pages: u64,
    /// Transactions that had not ended, and how many changes of theirs were taken back.
    pub rolled_back: u64,
    pub changes_taken_back: u64,
}

/// A log before anything is done with it.
#[derive(Debug)]
pub(crate) struct Start {
    pub checkpoint: Checkpoint,
    /// Where its records end.
    pub end: Lsn,
    /// Why they do.
    pub why: End,
    /// Records behind the checkpoint: without any, the pages are as they should be.
    pub records: u64,
}

impl Start {
    /// Reads the log in `dir`. Nothing is changed.
    pub(crate) fn read(vfs: &dyn Vfs, dir: &Path, page_size: usize) -> Result<Start> {
        let log = dir.join(LOG_DIR);
        let checkpoint = Checkpoint::read(vfs, &log)?
            .ok_or_else(|| Error::Log { why: format!("'{}' has no checkpoint", log.display()) })?;
        let mut reader = Reader::open(vfs, &log, checkpoint.needed)?;
        let mut records = 0;
        while reader.read_next()?.is_some() {
            records += 1;
        }
        let (end, why) = (reader.position(), reader.end().unwrap_or(End::Nothing));
        let start = Start { checkpoint, end, why, records };
        start.check_end(&log, checkpoint.lsn, "its last checkpoint was taken")?;
        if let Some(lsn) = newest_copy(vfs, dir, page_size)? {
            start.check_end(&log, lsn, "a page was written that needs it")?;
        }
        Ok(start)
    }

    /// Refuses a log that was durable up to `lsn` and is not any more. What it has lost was promised, pages
    /// may have some of it, and what is logged from here on would be older than they are.
    fn check_end(&self, log: &Path, lsn: Lsn, when: &str) -> Result<()> {
        if lsn <= self.end {
            return Ok(());
        }
        let Start { end, why, .. } = self;
        let log = log.display();
        let why = format!(
            "the log in '{log}' ends at {end} ({why}), but it was durable up to {lsn} when {when}: it is \
             damaged, or of another time than the other files"
        );
        Err(Error::Log { why })
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.records == 0
    }
}

/// Where the log has to reach at least, as the copies in the doublewrite file say.
fn newest_copy(vfs: &dyn Vfs, dir: &Path, page_size: usize) -> Result<Option<Lsn>> {
    match open_existing(vfs, &dir.join(DOUBLEWRITE_NAME))? {
        Some(file) => Ok(pagecache::newest_lsn(&*file, page_size)?),
        None => Ok(None),
    }
}

/// Takes torn pages from the doublewrite file; gives their number.
pub(crate) fn repair_torn_pages(vfs: &dyn Vfs, dir: &Path, page_size: usize) -> Result<usize> {
    let path = dir.join(DOUBLEWRITE_NAME);
    if !vfs.exists(&path)? {
        return Ok(0);
    }
    let doublewrite = vfs.open(&path, Create::Never)?;
    let open = |file: FileId| open_existing(vfs, &path_of(dir, file));
    Ok(pagecache::repair(&*doublewrite, page_size, open)?)
}

/// The file, unless there is none.
fn open_existing(vfs: &dyn Vfs, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
    match vfs.open(path, Create::Never) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What redo came to.
#[derive(Debug)]
pub(crate) struct Redone {
    pub next: NextIds,
    pub logical: Logical,
    /// Pages that miss a change that the log does not have any more. In a file that the catalogue names there
    /// are none.
    pub broken: BTreeMap<PageId, String>,
}

/// Brings the pages of all files to what the log says, on the device.
pub(crate) fn redo(
    from: &Files,
    dir: &Path,
    caches: &Arc<Caches>,
    journal: &Journal,
    start: &Start,
    scratch: Place,
) -> Result<Redone> {
    let mut redo = Redo {
        from,
        dir,
        caches,
        files: BTreeMap::new(),
        redone: Redone {
            next: NextIds::from_words(&start.checkpoint.owner),
            logical: Logical::new(scratch, NextIds::lists_garbage(&start.checkpoint.owner)),
            broken: BTreeMap::new(),
        },
    };
    let pages_from = NextIds::pages_from(&start.checkpoint.owner);
    let mut reader = journal.log().read_from(start.checkpoint.needed)?;
    let result = (|| {
        while let Some(record) = reader.read_next()? {
            journal.set_redoing(Some(record.lsn));
            match record.kind {
                // What is older is there for the transactions' records beside it.
                kind::PAGES if record.lsn < pages_from => {}
                kind::PAGES => redo.pages(record.lsn, record.end, record.payload)?,
                kind @ kind::LOGICAL.. => {
                    redo.redone.logical.record(kind, record.lsn..record.end, record.payload)?;
                }
                kind => {
                    let why = format!("the record at {} is of the unknown kind {kind}", record.lsn);
                    return Err(Error::Log { why });
                }
            }
        }
        redo.close(Detach::Flush)
    })();
    if result.is_err() {
        let _ = redo.close(Detach::Discard);
    }
    journal.set_redoing(None);
    result?;
    let mut redone = redo.redone;
    redone.next.stamp = redone.next.stamp.max(redone.logical.next_stamp());
    // A table is not made without a file.
    redone.next.table = redone.next.table.max(redone.next.file - 1);
    Ok(redone)
}

struct Redo<'r> {
    from: &'r Files,
    dir: &'r Path,
    caches: &'r Arc<Caches>,
    /// `None` if the file is not there.
    files: BTreeMap<FileId, Option<Arc<CachedFile>>>,
    redone: Redone,
}

impl Redo<'_> {
    fn pages(&mut self, lsn: Lsn, end: Lsn, payload: &[u8]) -> Result<()> {
        let Some((file, changes)) = changes_of(payload) else {
            return Err(Error::Log { why: format!("the record at {lsn} cannot be read") });
        };
        let next = &mut self.redone.next;
        next.file = next.file.max(file.0.saturating_add(1));
        for change in &changes {
            next.stamp = next.stamp.max(change.stamp() + 1);
        }
        let Some(pages) = self.attach(file, &changes)? else {
            // Dropped since, or its making was cut short.
            return Ok(());
        };
        // The changes of one record in one page are redone together or not at all: the page's LSN tells
        // records apart, not changes.
        for of_page in changes.chunk_by(|one, other| one.page == other.page) {
            self.redo(&pages, of_page, end)?;
            for page in of_page.iter().flat_map(Change::freed) {
                self.redone.broken.remove(&PageId::new(file, *page));
            }
        }
        Ok(())
    }

    /// `changes`: those of the first record of the file that is met.
    fn attach(&mut self, file: FileId, changes: &[Change<'_>]) -> Result<Option<Arc<CachedFile>>> {
        if let Some(known) = self.files.get(&file) {
            return Ok(known.clone());
        }
        let path = path_of(self.dir, file);
        let attached = match open_existing(self.from.vfs(), &path)? {
            Some(opened) => {
                // CRASH: without a header on the device, the record that made the file is still there, and is
                // its first.
                let from_log = || changes.iter().find_map(Change::format);
                match format_of(&*opened)?.or_else(from_log) {
                    Some(format) => {
                        let opened = self.from.open_pages(&path, Create::Never, format.page_size)?;
                        Some(self.caches.attach(self.caches.default_cache(), file, path, opened, format)?)
                    }
                    None => {
                        // CRASH: the pages of a file that is being dropped are not written any more, its
                        // header neither, and a checkpoint does not wait for them. The log says how to change
                        // its pages, but nobody knows where they lie. If the catalogue still names the file,
                        // it is damaged.
                        let why = "the file has no header".to_string();
                        self.redone.broken.insert(PageId::new(file, PageNo(0)), why);
                        None
                    }
                }
            }
            None => None,
        };
        self.files.insert(file, attached.clone());
        Ok(attached)
    }

    fn redo(&mut self, file: &CachedFile, changes: &[Change<'_>], end: Lsn) -> Result<()> {
        let id = PageId::new(file.id(), changes[0].page);
        let (is_image, base) = (changes[0].is_image(), changes[0].base);
        if !is_image && self.redone.broken.contains_key(&id) {
            return Ok(());
        }
        let redone = retry(file, |_| {
            let mut guard = if is_image {
                // The records behind this one bring the page to its newest state, whatever it had before.
                file.pool().create(id)?
            } else {
                file.pool().write(id)?
            };
            let found = Lsn(guard.page().u64_at(LSN));
            if !is_image && found >= end {
                return Ok(Ok(()));
            }
            if !is_image && found != base {
                return Ok(Err(format!("a change of LSN {base} is missing, the page has {found}")));
            }
            let applied = changes.iter().try_for_each(|change| change.apply(id, guard.page_mut()));
            if applied.is_ok() {
                set_lsn(&mut guard.page_mut(), end);
            }
            Ok(applied)
        });
        let why = match redone {
            Ok(Ok(())) => {
                self.redone.broken.remove(&id);
                return Ok(());
            }
            Ok(Err(why)) => why,
            Err(Error::Corrupt { why, .. }) => why,
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => error.to_string(),
            Err(error) => return Err(error),
        };
        self.redone.broken.insert(id, format!("{why}; to be redone: the record that ends at {end}"));
        Ok(())
    }

    fn close(&mut self, how: Detach) -> Result<()> {
        let mut first = Ok(());
        for (id, file) in std::mem::take(&mut self.files) {
            let Some(file) = file else { continue };
            let closed = file.close(how);
            if closed.is_err() && how == Detach::Flush {
                // To be given up by the caller.
                self.files.insert(id, Some(file));
            }
            first = first.and(closed.map_err(Error::from));
        }
        first
    }
}

impl Redone {
    /// Refuses a file that misses a change.
    pub(crate) fn check_whole(&self, dir: &Path, file: FileId) -> Result<()> {
        match self.broken.iter().find(|(id, _)| id.file == file) {
            Some((id, why)) => {
                Err(Error::Corrupt { path: path_of(dir, file), page: id.page.0, lsn: 0, why: why.clone() })
            }
            None => Ok(()),
        }
    }
}

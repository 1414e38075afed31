//! The doublewrite file: what makes a torn page whole again.
//!
//! A device may write part of a page and lose its power. So each batch of pages is written here first, one
//! behind the other, and synced; then the pages are written in their places. A start after a crash looks for
//! pages in their places that are not whole, and takes them from here ([`repair`]).
//!
//! Batches are written one behind the other, one at a time. When there is no room for the next, the data
//! files are synced and the batch goes to the beginning of the file, with a new lap number. What older laps
//! hold is of no use any more.
//!
//! A batch is a block with a header, then pages of one size, then zeroes up to a whole number of blocks of
//! 4096 bytes. The header, little-endian:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 8 | magic |
//! | 8 | 8 | lap |
//! | 16 | 4 | number of pages |
//! | 20 | 4 | page size |
//! | 24 | 4 | checksum of bytes 0..24 |
//! | 28 | | zero |
//!
//! In data directories of format 2 the page size field is 0 and means the directory's page size, the header
//! takes as much room as a page, and no zeroes follow the pages. Such batches are only read: by the first
//! start after a crash of a build that wrote them.

use crate::error::Error;
use crate::files::{OpenFile, unseal};
use crate::outgoing::Outgoing;
use crate::page::PAGE_SIZE_MAX;
use crate::page_header::{array, header, verify};
use base::checksum::checksum;
use base::sync::{Arc, Mutex};
use base::{FileId, Lsn, PageId, PageNo};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use vfs::{AlignedBuffer, File};

base::latch_class!(pub DoublewriteLatch, "doublewrite");

const MAGIC: u64 = u64::from_le_bytes(*b"LWDOUBL\x01");
const LAP_AT: usize = 8;
const COUNT_AT: usize = 16;
const PAGE_SIZE_AT: usize = 20;
const CHECKSUM_AT: usize = 24;
const _: () =
    assert!(COUNT_AT == LAP_AT + 8 && PAGE_SIZE_AT == COUNT_AT + 4 && CHECKSUM_AT == PAGE_SIZE_AT + 4);
const _: () = assert!(CHECKSUM_AT + 4 <= BLOCK);

/// Every batch takes whole blocks of so many bytes, so that the file can be written past the operating
/// system's cache with any page size.
pub const BLOCK: usize = 4096;

/// The file has room for as many pages as the first cache has frames, within these bounds. The data files are
/// synced once for so many pages. When little is written checkpoints sync them more often.
const PAGES_MIN: usize = 32;
const PAGES_MAX: usize = 512;
/// The least bytes of the file: room for a page of any size.
const BYTES_MIN: usize = BLOCK + PAGE_SIZE_MAX;

#[derive(Debug)]
pub(crate) struct Doublewrite {
    file: Arc<dyn File>,
    bytes: usize,
    /// Held while a batch is written, here and in its places.
    turn: Mutex<Turn, DoublewriteLatch>,
}

#[derive(Debug)]
struct Turn {
    /// 0 until the first batch since the file was opened.
    lap: u64,
    /// The offset of the next batch.
    next: usize,
    /// A sync of the doublewrite file failed, and said this. Nothing may be written any more.
    failure: Option<(io::ErrorKind, String)>,
    /// Files that were written to in this lap.
    files: BTreeMap<FileId, Arc<OpenFile>>,
    /// The header and the pages of a batch. As long as the longest batch so far.
    buffer: AlignedBuffer,
}

impl Doublewrite {
    /// `frames`: of the cache.
    pub fn new(file: Arc<dyn File>, page_size: usize, frames: usize) -> io::Result<Doublewrite> {
        let bytes = (frames.clamp(PAGES_MIN, PAGES_MAX) * page_size).max(BYTES_MIN).next_multiple_of(BLOCK);
        // Reserved now, so that a disk that becomes full later does not keep pages from being written.
        file.reserve(bytes as u64)?;
        let turn =
            Turn { lap: 0, next: 0, failure: None, files: BTreeMap::new(), buffer: AlignedBuffer::new(0) };
        Ok(Doublewrite { file, bytes, turn: Mutex::of_class(turn) })
    }

    /// Writes a batch of pages of one size here and then, by `in_place`, each page in its place. Gives the
    /// result for each page. `in_place` gets a range of the batch at a time. `sync_failed` is called if a
    /// sync failed, of this file or of a data file.
    pub fn write(
        &self,
        batch: &[Outgoing],
        in_place: impl Fn(Range<usize>) -> Vec<Result<(), Error>>,
        sync_failed: impl Fn(String),
    ) -> Vec<Result<(), Error>> {
        let mut turn = self.turn.lock();
        let mut results = Vec::with_capacity(batch.len());
        let page_size = batch.first().map_or(1, |page| page.copy.len());
        for some in batch.chunks((self.bytes - BLOCK) / page_size) {
            match self.store(&mut turn, some, &sync_failed) {
                Ok(()) => {
                    for page in some {
                        // A file that was attached under this number before has been synced, or is deleted.
                        turn.files.insert(page.id.file, page.file.clone());
                    }
                    results.extend(in_place(results.len()..results.len() + some.len()));
                }
                Err(error) => results.extend(some.iter().map(|page| {
                    let source = io::Error::new(error.kind(), error.to_string());
                    Err(page.file.io_error(Some(page.id), source))
                })),
            }
        }
        results
    }

    /// The file is going to be deleted, and nothing is on its way to it. It is not kept open until the lap
    /// ends: on an idle server that may take for ever, and the system gives the file's room back when nobody
    /// has it open.
    pub fn forget_file(&self, id: FileId) {
        self.turn.lock().files.remove(&id);
    }

    fn store(&self, turn: &mut Turn, batch: &[Outgoing], sync_failed: &impl Fn(String)) -> io::Result<()> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("the doublewrite file: {error}"));
        if let Some((kind, why)) = &turn.failure {
            // CRASH: this thread waited for its turn behind the one whose sync failed. A second sync would
            // succeed, whatever became of the copies.
            return Err(io::Error::new(*kind, format!("the doublewrite file: a sync failed before: {why}")));
        }
        if turn.lap == 0 {
            // The first batch since the file was opened. A repair has come before, so nothing in the file is
            // needed.
            turn.lap = last_lap(&*self.file).map_err(named)? + 1;
        }
        let page_size = batch[0].copy.len();
        let bytes = (BLOCK + batch.len() * page_size).next_multiple_of(BLOCK);
        if turn.next + bytes > self.bytes {
            // CRASH: copies are overwritten only when the pages in their places are durable. A file whose
            // sync has failed stays in the list and keeps every later batch out (pagecache R18).
            for file in turn.files.values() {
                file.sync_if_written().map_err(|error| {
                    sync_failed(error.to_string());
                    io::Error::other(error.to_string())
                })?;
            }
            turn.files.clear();
            turn.lap += 1;
            turn.next = 0;
        }
        if turn.buffer.len() < bytes {
            turn.buffer = AlignedBuffer::new(bytes);
        }
        let (head, pages) = turn.buffer[..bytes].split_at_mut(BLOCK);
        head[..8].copy_from_slice(&MAGIC.to_le_bytes());
        head[LAP_AT..][..8].copy_from_slice(&turn.lap.to_le_bytes());
        head[COUNT_AT..][..4].copy_from_slice(&(batch.len() as u32).to_le_bytes());
        head[PAGE_SIZE_AT..][..4].copy_from_slice(&(page_size as u32).to_le_bytes());
        let sum = checksum(0, &head[..CHECKSUM_AT]);
        head[CHECKSUM_AT..][..4].copy_from_slice(&sum.to_le_bytes());
        for (place, page) in pages.chunks_exact_mut(page_size).zip(batch) {
            place.copy_from_slice(&page.copy);
        }
        // CRASH: while a batch is not whole here, none of its pages has been written in its place.
        self.file.write_at(&turn.buffer[..bytes], turn.next as u64).map_err(named)?;
        self.file.sync().map_err(|error| {
            turn.failure = Some((error.kind(), error.to_string()));
            let error = named(error);
            sync_failed(error.to_string());
            error
        })?;
        turn.next += bytes;
        Ok(())
    }
}

/// What a batch's header says.
#[derive(Clone, Copy, Debug)]
struct Head {
    lap: u64,
    pages: usize,
    /// 0 in format 2.
    page_size: usize,
}

fn parse(bytes: &[u8]) -> Option<Head> {
    let u32_at = |at| u32::from_le_bytes(array(bytes, at));
    let is_header = u64::from_le_bytes(array(bytes, 0)) == MAGIC
        && u32_at(CHECKSUM_AT) == checksum(0, &bytes[..CHECKSUM_AT]);
    is_header.then(|| Head {
        lap: u64::from_le_bytes(array(bytes, LAP_AT)),
        pages: u32_at(COUNT_AT) as usize,
        page_size: u32_at(PAGE_SIZE_AT) as usize,
    })
}

/// Fills `bytes` from the file; false behind its end.
fn read(file: &dyn File, offset: u64, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_at(bytes, offset) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn last_lap(file: &dyn File) -> io::Result<u64> {
    let mut bytes = AlignedBuffer::new(BLOCK);
    let head = if read(file, 0, &mut bytes)? { parse(&bytes) } else { None };
    Ok(head.map_or(0, |head| head.lap))
}

/// A page's newest copy.
#[derive(Clone, Copy, Debug)]
struct Copied {
    lsn: Lsn,
    offset: u64,
    page_size: usize,
}

/// Repairs the pages that a crash tore. `open` gives a file by its number, or `None` if there is none any
/// more. `page_size` is the directory's. Gives the number of pages repaired, which are durable then. Nobody
/// may use the files meanwhile.
///
/// # Errors
/// Those of the device. It may be called again.
pub fn repair(
    doublewrite: &dyn File,
    page_size: usize,
    mut open: impl FnMut(FileId) -> io::Result<Option<Arc<dyn File>>>,
) -> io::Result<usize> {
    let newest = newest_copies(doublewrite, page_size)?;
    let mut repaired = 0;
    let mut current: Option<(FileId, Option<Arc<dyn File>>)> = None;
    for (id, copied) in newest {
        if current.as_ref().is_none_or(|(file, _)| *file != id.file) {
            if let Some((_, Some(file))) = &current {
                file.sync()?;
            }
            current = Some((id.file, open(id.file)?));
        }
        let Some((_, Some(file))) = &current else { continue };
        let mut bytes = AlignedBuffer::new(copied.page_size);
        let place = u64::from(id.page.0) * copied.page_size as u64;
        let is_whole = read(&**file, place, &mut bytes)? && unseal(&mut bytes, id).is_ok();
        if !is_whole && read(doublewrite, copied.offset, &mut bytes)? {
            file.write_at(&bytes, place)?;
            repaired += 1;
        }
    }
    if let Some((_, Some(file))) = &current {
        file.sync()?;
    }
    Ok(repaired)
}

/// The highest LSN of a page whose copy is in the doublewrite file, of its last lap. The log was durable up
/// to there when the copy was written.
///
/// # Errors
/// Those of the device.
pub fn newest_lsn(doublewrite: &dyn File, page_size: usize) -> io::Result<Option<Lsn>> {
    Ok(newest_copies(doublewrite, page_size)?.values().map(|copied| copied.lsn).max())
}

/// The newest whole copy of each page, of the last lap.
fn newest_copies(doublewrite: &dyn File, default_page_size: usize) -> io::Result<BTreeMap<PageId, Copied>> {
    let mut newest: BTreeMap<PageId, Copied> = BTreeMap::new();
    let mut lap = None;
    let mut offset = 0;
    let mut head_bytes = [0; CHECKSUM_AT + 4];
    while read(doublewrite, offset, &mut head_bytes)? {
        let Some(head) = parse(&head_bytes).filter(|head| lap.is_none_or(|lap| lap == head.lap)) else {
            break;
        };
        lap = Some(head.lap);
        let (page_size, head_len) = if head.page_size == 0 {
            (default_page_size, default_page_size)
        } else {
            (head.page_size, BLOCK)
        };
        let mut bytes = AlignedBuffer::new(page_size);
        let mut end = offset + head_len as u64;
        for _ in 0..head.pages {
            if !read(doublewrite, end, &mut bytes)? {
                break;
            }
            let page = PageNo(u32::from_le_bytes(array(&bytes, header::PAGE_NO)));
            let file = FileId(u32::from_le_bytes(array(&bytes, header::FILE_ID)));
            let (id, lsn) = (PageId::new(file, page), Lsn(u64::from_le_bytes(array(&bytes, header::LSN))));
            if verify(&bytes, id).is_ok() && newest.get(&id).is_none_or(|other| other.lsn <= lsn) {
                newest.insert(id, Copied { lsn, offset: end, page_size });
            }
            end += page_size as u64;
        }
        offset = if head.page_size == 0 { end } else { end.next_multiple_of(BLOCK as u64) };
    }
    Ok(newest)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::files::FileFormat;
    use crate::frames::FrameNo;
    use std::path::Path;
    use vfs::{Create, Fault, FaultyVfs, MemVfs, Operation, Vfs};

    const PAGE_SIZE: usize = 1024;

    fn open(vfs: &FaultyVfs, name: &str) -> Arc<dyn File> {
        vfs.open(Path::new(name), Create::IfMissing).unwrap()
    }

    #[test]
    fn copies_stay_if_their_pages_could_not_be_synced_however_many_want_their_place() {
        let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
        let doublewrite = Doublewrite::new(open(&vfs, "doublewrite"), PAGE_SIZE, 0).unwrap();
        let format = FileFormat::plain(PAGE_SIZE);
        let file = OpenFile::new(FileId(7), "data".into(), open(&vfs, "data"), format);
        let file = Arc::new(file);
        let write = |page: u32| {
            let id = PageId::new(FileId(7), PageNo(page));
            let mut copy = AlignedBuffer::new(PAGE_SIZE);
            crate::page_header::seal(&mut copy, id);
            let batch = [Outgoing { frame: FrameNo(0), id, file: file.clone(), copy }];
            let in_place = |_: Range<usize>| vec![file.write_page(id, &batch[0].copy)];
            doublewrite.write(&batch, in_place, |_| {}).remove(0)
        };
        vfs.faults().fail_file_from(
            Path::new("data"),
            Operation::Sync,
            1,
            Fault::Error(io::ErrorKind::Other),
        );
        let written = (0..).take_while(|page| write(*page).is_ok()).count();
        assert!(written > 1);
        vfs.faults().heal();
        // A thread that was waiting for its turn.
        assert!(write(1_000).is_err(), "a new lap over copies that are needed");
        let newest = newest_copies(&*open(&vfs, "doublewrite"), PAGE_SIZE).unwrap();
        assert_eq!(newest.len(), written);
    }

    #[test]
    fn after_a_failed_sync_of_the_copies_no_page_is_written_in_its_place() {
        let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
        let doublewrite = Doublewrite::new(open(&vfs, "doublewrite"), PAGE_SIZE, 0).unwrap();
        let format = FileFormat::plain(PAGE_SIZE);
        let file = Arc::new(OpenFile::new(FileId(7), "data".into(), open(&vfs, "data"), format));
        vfs.faults().fail_nth(Operation::Sync, 1, Fault::Error(io::ErrorKind::Other));
        for _ in 0..2 {
            let id = PageId::new(FileId(7), PageNo(0));
            let copy = AlignedBuffer::new(PAGE_SIZE);
            let batch = [Outgoing { frame: FrameNo(0), id, file: file.clone(), copy }];
            let in_place = |_: Range<usize>| -> Vec<Result<(), Error>> { panic!("without a copy") };
            assert!(doublewrite.write(&batch, in_place, |_| {}).remove(0).is_err());
        }
    }
}

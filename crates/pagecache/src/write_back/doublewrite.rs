//! The doublewrite file: what makes a torn page whole again.
//!
//! A device may write part of a page and lose its power. So each batch of pages is written here first, one behind the other, and
//! synced; then the pages are written in their places. A start after a crash looks for pages in their places that are not
//! whole, and takes them from here ([`repair`]).
//!
//! Batches are written one behind the other. When there is no room for the next, the data files are synced, and it goes to the
//! beginning, with a new lap number: what older laps hold is of no use any more. One batch is under way at a time.
//!
//! ```text
//! batch: a page of header, then the pages
//! header: 0 magic u64 | 8 lap u64 | 16 pages u32 | 20 zero u32 | 24 checksum u32 of bytes 0..24 | 28 zero ..
//! ```

use super::Outgoing;
use crate::error::Error;
use crate::files::{OpenFile, array, header, unseal, verify};
use base::checksum::checksum;
use base::sync::{Arc, Mutex};
use base::{FileId, Lsn, PageId, PageNo};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use vfs::{AlignedBuffer, File};

const MAGIC: u64 = u64::from_le_bytes(*b"LWDOUBL\x01");
const LAP_AT: usize = 8;
const COUNT_AT: usize = 16;
const CHECKSUM_AT: usize = 24;

/// Pages in the file: as many as the cache has, within these bounds. The data files are synced once for so many; a checkpoint does
/// it more often when little is written.
const PAGES_MIN: usize = 32;
const PAGES_MAX: usize = 512;

#[derive(Debug)]
pub(crate) struct Doublewrite {
    file: Arc<dyn File>,
    page_size: usize,
    pages: usize,
    /// Held for a whole batch.
    turn: Mutex<Turn>,
}

#[derive(Debug)]
struct Turn {
    /// 0 until the first batch since the file was opened.
    lap: u64,
    /// In pages, where the next batch goes.
    next: usize,
    /// Written to in this lap.
    files: BTreeMap<FileId, Arc<OpenFile>>,
    /// A batch's header and pages, as long as the longest so far.
    buffer: AlignedBuffer,
}

impl Doublewrite {
    /// `frames`: of the cache.
    pub fn new(file: Arc<dyn File>, page_size: usize, frames: usize) -> io::Result<Doublewrite> {
        let pages = frames.clamp(PAGES_MIN, PAGES_MAX);
        // A disk that is full later does not keep pages from being written.
        file.reserve((pages * page_size) as u64)?;
        let turn = Turn { lap: 0, next: 0, files: BTreeMap::new(), buffer: AlignedBuffer::new(0) };
        Ok(Doublewrite { file, page_size, pages, turn: Mutex::new(turn) })
    }

    /// Writes a batch here and then, by `in_place`, each page where it belongs; gives the result for each. `in_place` gets a range
    /// of the batch at a time, and `sync_failed`
    /// hears of a sync that failed, here or of a data file.
    pub fn write(
        &self,
        batch: &[Outgoing],
        in_place: impl Fn(Range<usize>) -> Vec<Result<(), Error>>,
        sync_failed: impl Fn(String),
    ) -> Vec<Result<(), Error>> {
        let mut turn = self.turn.lock();
        let mut results = Vec::with_capacity(batch.len());
        for some in batch.chunks(self.pages - 1) {
            match self.store(&mut turn, some, &sync_failed) {
                Ok(()) => {
                    for page in some {
                        // One that was attached before under this number has been synced, or nobody wants it any more.
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

    fn store(&self, turn: &mut Turn, batch: &[Outgoing], sync_failed: &impl Fn(String)) -> io::Result<()> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("the doublewrite file: {error}"));
        if turn.lap == 0 {
            // After a repair nothing in the file is needed.
            turn.lap = last_lap(&*self.file, self.page_size).map_err(named)? + 1;
        } else if turn.next + 1 + batch.len() > self.pages {
            // CRASH: the copies are given up only when what they are copies of is durable.
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
        let bytes = (1 + batch.len()) * self.page_size;
        if turn.buffer.len() < bytes {
            turn.buffer = AlignedBuffer::new(bytes);
        }
        let (head, pages) = turn.buffer[..bytes].split_at_mut(self.page_size);
        head[..8].copy_from_slice(&MAGIC.to_le_bytes());
        head[LAP_AT..][..8].copy_from_slice(&turn.lap.to_le_bytes());
        head[COUNT_AT..][..4].copy_from_slice(&(batch.len() as u32).to_le_bytes());
        let sum = checksum(0, &head[..CHECKSUM_AT]);
        head[CHECKSUM_AT..][..4].copy_from_slice(&sum.to_le_bytes());
        for (place, page) in pages.chunks_exact_mut(self.page_size).zip(batch) {
            place.copy_from_slice(&page.copy);
        }
        let offset = (turn.next * self.page_size) as u64;
        // CRASH: a batch that is not whole here has not been begun in its places.
        self.file.write_at(&turn.buffer[..bytes], offset).map_err(named)?;
        self.file.sync().map_err(named).inspect_err(|error| sync_failed(error.to_string()))?;
        turn.next += 1 + batch.len();
        Ok(())
    }
}

/// The lap and the number of pages that a batch's header names.
fn parse(bytes: &[u8]) -> Option<(u64, usize)> {
    let is_header = u64::from_le_bytes(array(bytes, 0)) == MAGIC
        && u32::from_le_bytes(array(bytes, CHECKSUM_AT)) == checksum(0, &bytes[..CHECKSUM_AT]);
    let count = u32::from_le_bytes(array(bytes, COUNT_AT)) as usize;
    is_header.then(|| (u64::from_le_bytes(array(bytes, LAP_AT)), count))
}

/// Reads a page of the file; false behind its end.
fn read(file: &dyn File, number: usize, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_at(bytes, (number * bytes.len()) as u64) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn last_lap(file: &dyn File, page_size: usize) -> io::Result<u64> {
    let mut bytes = AlignedBuffer::new(page_size);
    let lap = if read(file, 0, &mut bytes)? { parse(&bytes) } else { None };
    Ok(lap.map_or(0, |(lap, _)| lap))
}

/// Makes the pages whole that a crash tore: `open` gives a file by its number, `None` if there is none any more. Gives the
/// number of pages repaired, which are durable then. Nobody uses the files meanwhile.
///
/// # Errors
/// Those of the device. It may be called again.
pub fn repair(
    doublewrite: &dyn File,
    page_size: usize,
    mut open: impl FnMut(FileId) -> io::Result<Option<Arc<dyn File>>>,
) -> io::Result<usize> {
    let mut bytes = AlignedBuffer::new(page_size);
    let mut newest: BTreeMap<PageId, (Lsn, usize)> = BTreeMap::new();
    let mut lap = None;
    let mut number = 0;
    while read(doublewrite, number, &mut bytes)? {
        let Some((this, count)) = parse(&bytes).filter(|(this, _)| lap.is_none_or(|lap| lap == *this)) else {
            break;
        };
        lap = Some(this);
        for place in number + 1..=number + count {
            if !read(doublewrite, place, &mut bytes)? {
                break;
            }
            let page = PageNo(u32::from_le_bytes(array(&bytes, header::PAGE_NO)));
            let file = FileId(u32::from_le_bytes(array(&bytes, header::FILE_ID)));
            let (id, lsn) = (PageId::new(file, page), Lsn(u64::from_le_bytes(array(&bytes, header::LSN))));
            if verify(&bytes, id).is_ok() && newest.get(&id).is_none_or(|(other, _)| *other <= lsn) {
                newest.insert(id, (lsn, place));
            }
        }
        number += 1 + count;
    }
    let mut repaired = 0;
    let mut current: Option<(FileId, Option<Arc<dyn File>>)> = None;
    for (id, (_, place)) in newest {
        if current.as_ref().is_none_or(|(file, _)| *file != id.file) {
            if let Some((_, Some(file))) = &current {
                file.sync()?;
            }
            current = Some((id.file, open(id.file)?));
        }
        let Some((_, Some(file))) = &current else { continue };
        let is_whole = read(&**file, id.page.0 as usize, &mut bytes)? && unseal(&mut bytes, id).is_ok();
        if !is_whole && read(doublewrite, place, &mut bytes)? {
            file.write_at(&bytes, u64::from(id.page.0) * page_size as u64)?;
            repaired += 1;
        }
    }
    if let Some((_, Some(file))) = &current {
        file.sync()?;
    }
    Ok(repaired)
}

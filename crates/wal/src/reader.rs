//! Reading the log: record by record, up to the first that is not whole.

use crate::error::{Error, Result};
use crate::files::{LogFile, chain_from, scan};
use crate::format::{ALIGNMENT, Length, RECORD_HEADER_BYTES, is_whole, parse_length, record_bytes, u32_at};
use base::Lsn;
use std::fmt;
use std::io;
use std::path::Path;
use vfs::Vfs;

/// The most bytes read at once: so many that the device's latency does not count.
const WINDOW: u64 = 256 << 10;

/// A record as it was appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'r> {
    /// Where it begins.
    pub lsn: Lsn,
    /// Where the next one begins: what to flush up to, to have this one on the device.
    pub end: Lsn,
    /// The owner's.
    pub kind: u8,
    /// The owner's.
    pub payload: &'r [u8],
}

/// Why the records ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Zeroes: nothing was written there. How a log ends after a clean stop.
    Nothing,
    /// A length that no record has: an old record of a recycled file, or a torn one.
    Length(u32),
    /// The checksum is wrong: an old record of a recycled file, or a torn one.
    Checksum,
    /// The record, or the next one, would be in a file that is missing, cut, or not whole itself.
    File,
    /// A log in use was not written further when reading began.
    Written,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Nothing => write!(f, "nothing was written there"),
            End::Length(length) => write!(f, "no record is {length} bytes long"),
            End::Checksum => write!(f, "the checksum is wrong"),
            End::File => write!(f, "the file it would be in is missing or cut"),
            End::Written => write!(f, "the log was not written further"),
        }
    }
}

/// Gives the records of a log in their order.
#[derive(Debug)]
pub struct Reader {
    files: Vec<LogFile>,
    /// The next record begins here.
    position: u64,
    /// What is there to be read, and what it means to get there.
    limit: (u64, End),
    end: Option<End>,
    window: Vec<u8>,
    /// The position of the window's first byte.
    window_at: u64,
}

impl Reader {
    /// Reads the log in `dir` from `lsn` on, which is where a record begins, or the end. The log is not in
    /// use; see [`crate::Log::read_from`] for one that is.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if no whole file of the log holds `lsn`: an absent beginning is not taken for an
    /// empty log. [`Error::Io`]; [`Error::WrongFormat`] for files of another format.
    pub fn open(vfs: &dyn Vfs, dir: &Path, lsn: Lsn) -> Result<Reader> {
        let mut files = scan(vfs, dir)?;
        // A position at the border belongs to the file behind it, which need not have been made.
        if let Some(last) = files.last()
            && last.end() == lsn.0
        {
            return Ok(Reader::new(Vec::new(), lsn, (lsn.0, End::File)));
        }
        files = chain_from(files, lsn.0);
        let mut readable = match files.first() {
            Some(first) => first.first(),
            None => return Err(Error::Missing { dir: dir.to_path_buf(), lsn }),
        };
        for file in &files {
            if readable == file.first() {
                readable += file.readable;
            }
        }
        Ok(Reader::new(files, lsn, (readable, End::File)))
    }

    pub(crate) fn new(files: Vec<LogFile>, lsn: Lsn, limit: (u64, End)) -> Reader {
        Reader { files, position: lsn.0, limit, end: None, window: Vec::new(), window_at: lsn.0 }
    }

    /// The next record. `None` at the first position without a whole record, and from then on.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the device fails: that is not the end of the log, and the same record may be asked
    /// for again.
    pub fn read_next(&mut self) -> Result<Option<Record<'_>>> {
        if self.end.is_some() {
            return Ok(None);
        }
        match self.find()? {
            Err(end) => {
                self.end = Some(end);
                Ok(None)
            }
            Ok(payload) => {
                let lsn = self.position;
                let start = (lsn - self.window_at) as usize;
                let bytes = &self.window[start..start + RECORD_HEADER_BYTES + payload];
                self.position += record_bytes(payload);
                Ok(Some(Record {
                    lsn: Lsn(lsn),
                    end: Lsn(self.position),
                    kind: bytes[RECORD_HEADER_BYTES - 1],
                    payload: &bytes[RECORD_HEADER_BYTES..],
                }))
            }
        }
    }

    /// Where the next record would begin. Once `read_next` has given `None`: where the log ends, and goes on.
    pub fn position(&self) -> Lsn {
        Lsn(self.position)
    }

    /// Why there was no further record; `None` while there are some.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Has the record at the position in the window; gives the length of its payload.
    fn find(&mut self) -> Result<std::result::Result<usize, End>> {
        let (limit, at_limit) = self.limit;
        let there = limit.saturating_sub(self.position);
        if there < record_bytes(0) {
            // Eight bytes at the end of a cut file hold no record, and need not be looked at.
            return Ok(Err(if there < ALIGNMENT { at_limit } else { self.short_end(at_limit)? }));
        }
        self.fill(record_bytes(0))?;
        let start = (self.position - self.window_at) as usize;
        let length = u32_at(&self.window, start);
        let payload = match parse_length(length) {
            Length::Nothing => return Ok(Err(End::Nothing)),
            Length::Impossible => return Ok(Err(End::Length(length))),
            Length::Payload(payload) => payload,
        };
        let bytes = record_bytes(payload);
        if bytes > there {
            return Ok(Err(at_limit));
        }
        self.fill(bytes)?;
        let start = (self.position - self.window_at) as usize;
        let is_whole = is_whole(&self.window[start..start + bytes as usize], Lsn(self.position));
        Ok(if is_whole { Ok(payload) } else { Err(End::Checksum) })
    }

    /// How the log ends if only eight bytes are left: with zeroes, or with the beginning of a record that is
    /// not all there.
    fn short_end(&mut self, at_limit: End) -> Result<End> {
        self.fill(ALIGNMENT)?;
        let start = (self.position - self.window_at) as usize;
        Ok(if u32_at(&self.window, start) == 0 { End::Nothing } else { at_limit })
    }

    /// Has `bytes` from the position on in the window; there are so many.
    fn fill(&mut self, bytes: u64) -> Result<()> {
        let (from, to) = (self.position, self.position + bytes);
        if to <= self.window_at + self.window.len() as u64 {
            return Ok(());
        }
        let to = to.max(self.limit.0.min(from + WINDOW));
        let mut window = vec![0; (to - from) as usize];
        let mut at = from;
        // Files are read in the order of the log, each up to its border.
        for file in &self.files {
            if at < to && file.holds(at) {
                let end = to.min(file.end());
                let part = &mut window[(at - from) as usize..(end - from) as usize];
                match file.file.read_at(part, file.offset(at)) {
                    Ok(()) => at = end,
                    Err(source) => return Err(file.error(source)),
                }
            }
        }
        if at < to {
            let dir = self.files.first().and_then(|file| file.path.parent()).unwrap_or(Path::new(""));
            return Err(Error::io(dir, io::ErrorKind::UnexpectedEof.into()));
        }
        (self.window, self.window_at) = (window, from);
        Ok(())
    }
}

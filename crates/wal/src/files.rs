//! The files of the log: made ahead, found again, removed or used again when no longer needed.

use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::format::{FILE_HEADER_BYTES, FORMAT, FileHeader, HEADER_USED, HeaderFault};
use crate::reserve::Reserve;
use base::Lsn;
use base::sync::{Arc, Mutex};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use vfs::{Create, File, Vfs};

base::latch_class!(pub LogFilesLatch, "log files");
base::latch_class!(pub LogFileChangeLatch, "log file change");

/// Bytes of zeroes written at once.
const ZEROES: usize = 1 << 20;
/// The end of a file's name until the file is whole.
const NEW_SUFFIX: &str = "new";

/// An open file of the log.
#[derive(Clone, Debug)]
pub(crate) struct LogFile {
    pub header: FileHeader,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
    /// Bytes of log that are there: less than the capacity if the file was cut.
    pub readable: u64,
}

impl LogFile {
    pub fn first(&self) -> u64 {
        self.header.first.0
    }

    /// The first position of the next file.
    pub fn end(&self) -> u64 {
        self.first() + self.header.capacity
    }

    pub fn holds(&self, lsn: u64) -> bool {
        (self.first()..self.end()).contains(&lsn)
    }

    /// Where in the file a position is.
    pub fn offset(&self, lsn: u64) -> u64 {
        lsn - self.first() + FILE_HEADER_BYTES
    }

    pub fn error(&self, source: io::Error) -> Error {
        Error::io(&self.path, source)
    }
}

fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("L{number:010}.lwl"))
}

/// The number in a log file's name.
fn number_of(name: &Path) -> Option<u64> {
    name.to_str()?.strip_prefix('L')?.strip_suffix(".lwl")?.parse().ok()
}

/// All files of the folder whose header is whole and fits the name, by number.
pub(crate) fn scan(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<LogFile>> {
    let mut files = Vec::new();
    for name in vfs.list(dir).map_err(|source| Error::io(dir, source))? {
        let Some(number) = number_of(&name) else { continue };
        let path = dir.join(&name);
        let io = |source| Error::io(&path, source);
        let file = vfs.open(&path, Create::Never).map_err(io)?;
        let mut bytes = [0; HEADER_USED];
        match file.read_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => continue,
            Err(error) => return Err(io(error)),
        }
        match FileHeader::decode(&bytes) {
            Ok(header) if header.number == number => {
                let length = file.len().map_err(io)?;
                let readable = length.saturating_sub(FILE_HEADER_BYTES).min(header.capacity);
                files.push(LogFile { header, path, file, readable });
            }
            // The file is damaged, or was being renamed. If its part of the log is needed the reader says
            // that it is missing.
            Ok(_) | Err(HeaderFault::Damaged) => {}
            Err(HeaderFault::Format(format)) => {
                let why = format!("its format is {format}, this build reads {FORMAT}");
                return Err(Error::WrongFormat { path, why });
            }
        }
    }
    files.sort_by_key(|file| file.header.number);
    Ok(files)
}

/// Of `files`, the one that holds `lsn` and those that follow without a gap. Empty if none holds it.
pub(crate) fn chain_from(files: Vec<LogFile>, lsn: u64) -> Vec<LogFile> {
    let mut chain: Vec<LogFile> = Vec::new();
    for file in files {
        let fits = match chain.last() {
            None => file.holds(lsn),
            Some(last) => file.header.number == last.header.number + 1 && file.first() == last.end(),
        };
        if fits {
            chain.push(file);
        } else if !chain.is_empty() {
            break;
        }
    }
    chain
}

pub(crate) fn sync_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    vfs.sync_dir(dir).map_err(|source| Error::io(dir, source))
}

/// The files of a log that is written to.
#[derive(Debug)]
pub(crate) struct Files {
    vfs: Arc<dyn Vfs>,
    config: LogConfig,
    /// Held by a thread that makes or removes a file, also while the device works (wal R8).
    changing: Mutex<(), LogFileChangeLatch>,
    /// By number, without a gap. Held for a look or a change only.
    list: Mutex<VecDeque<LogFile>, LogFilesLatch>,
    pub reserve: Reserve,
}

impl Files {
    pub fn new(vfs: Arc<dyn Vfs>, config: LogConfig, list: Vec<LogFile>) -> Files {
        let reserve = Reserve::new(vfs.clone(), &config.dir);
        Files { vfs, config, changing: Mutex::of_class(()), list: Mutex::of_class(list.into()), reserve }
    }

    pub fn dir(&self) -> &Path {
        &self.config.dir
    }

    pub fn list(&self) -> Vec<LogFile> {
        self.list.lock().iter().cloned().collect()
    }

    /// The end of the last file, if there is one.
    pub fn end(&self) -> Option<u64> {
        self.list.lock().back().map(LogFile::end)
    }

    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// The file that holds `lsn`. If it is the next file and does not exist yet, it is made now.
    pub fn holding(&self, lsn: u64) -> Result<LogFile> {
        if let Some(file) = self.find(lsn) {
            return Ok(file);
        }
        let _changing = self.changing.lock();
        match self.find(lsn) {
            Some(file) => Ok(file),
            None => self.make_next(),
        }
    }

    fn find(&self, lsn: u64) -> Option<LogFile> {
        self.list.lock().iter().rev().find(|file| file.holds(lsn)).cloned()
    }

    /// Makes sure that there is a file behind the one that holds `lsn`.
    pub fn prepare_behind(&self, lsn: u64) -> Result<()> {
        let _changing = self.changing.lock();
        if self.ahead_of(lsn) == 0 { self.make_next().map(drop) } else { Ok(()) }
    }

    /// Files wholly behind `lsn`.
    fn ahead_of(&self, lsn: u64) -> usize {
        self.list.lock().iter().filter(|file| file.first() > lsn).count()
    }

    /// Where the next file begins, and its number.
    fn next_header(&self) -> FileHeader {
        let list = self.list.lock();
        let (number, first) = match list.back() {
            Some(last) => (last.header.number + 1, Lsn(last.end())),
            None => (1, crate::format::FIRST_LSN),
        };
        FileHeader { number, first, capacity: self.config.capacity() }
    }

    /// Under `changing`: a new file at the end of the list, durable under its name.
    fn make_next(&self) -> Result<LogFile> {
        let header = self.next_header();
        let path = path_of(&self.config.dir, header.number);
        let new = path.with_extension(NEW_SUFFIX);
        let file = self.vfs.open(&new, Create::IfMissing).and_then(|file| {
            // CRASH: until the rename the name says that the file is not whole, and the next start removes
            // it. Zeroes are written instead of only reserving the room, so that a sync of the log has no
            // metadata to write.
            let zeroes = vec![0; ZEROES.min(self.config.file_size as usize)];
            let mut at = 0;
            while at < self.config.file_size {
                let bytes = (self.config.file_size - at).min(zeroes.len() as u64);
                file.write_at(&zeroes[..bytes as usize], at)?;
                at += bytes;
            }
            file.write_at(&header.encode(), 0)?;
            file.sync()?;
            self.vfs.rename(&new, &path)?;
            // CRASH: a record in the file may be called durable only when the folder's entry is durable.
            self.vfs.sync_dir(&self.config.dir)?;
            Ok(file)
        });
        if file.is_err() {
            // On a full disk the part of it that fitted would keep the room from those who need less.
            let _ = self.vfs.remove(&new);
        }
        let file = file.map_err(|source| Error::io(&path, source))?;
        let made = LogFile { header, path, file, readable: header.capacity };
        self.list.lock().push_back(made.clone());
        Ok(made)
    }

    /// Gives up the files wholly below `lsn`, and gives their number. Some become the next files, the others
    /// are removed. `written` is where the log is now. After an error the file concerned is out of the log,
    /// and the next start removes it (wal R9).
    pub fn remove_below(&self, lsn: u64, written: u64) -> Result<usize> {
        let _changing = self.changing.lock();
        let mut count = 0;
        loop {
            let file = {
                let mut list = self.list.lock();
                // The last file stays, because the next one takes its number from it.
                match list.front() {
                    Some(file) if file.end() <= lsn && list.len() > 1 => list.pop_front(),
                    _ => None,
                }
            };
            let Some(file) = file else { break };
            count += 1;
            let fits =
                file.header.capacity == self.config.capacity() && file.readable == file.header.capacity;
            if fits && self.ahead_of(written) < self.config.spare_files {
                self.recycle(file)?;
            } else {
                self.vfs.remove(&file.path).map_err(|source| file.error(source))?;
            }
        }
        if count > 0 {
            sync_dir(&*self.vfs, &self.config.dir)?;
        }
        Ok(count)
    }

    /// Under `changing`: makes a file that is not needed the last of the list. Its old records stay, and fail
    /// their checksums.
    fn recycle(&self, file: LogFile) -> Result<()> {
        let header = self.next_header();
        let path = path_of(&self.config.dir, header.number);
        // CRASH: between header and rename the name does not fit the header. Then the file is not part of the
        // log, and the next start removes it. The entry is durable before the file is in the list, as for a
        // new one.
        let renamed = file
            .file
            .write_at(&header.encode(), 0)
            .and_then(|()| file.file.sync())
            .and_then(|()| self.vfs.rename(&file.path, &path))
            .and_then(|()| self.vfs.sync_dir(&self.config.dir));
        renamed.map_err(|source| file.error(source))?;
        self.list.lock().push_back(LogFile { header, path, ..file });
        Ok(())
    }
}

/// Removes every file of the log in the folder that is not in `needed`: what a stop that was not clean left
/// behind.
pub(crate) fn remove_others(vfs: &dyn Vfs, dir: &Path, needed: &[LogFile]) -> Result<()> {
    for name in vfs.list(dir).map_err(|source| Error::io(dir, source))? {
        let is_unfinished = name.extension().is_some_and(|extension| extension == NEW_SUFFIX)
            && number_of(&name.with_extension("lwl")).is_some();
        let path = dir.join(&name);
        let is_other = number_of(&name).is_some() && needed.iter().all(|file| file.path != path);
        if is_unfinished || is_other {
            vfs.remove(&path).map_err(|source| Error::io(&path, source))?;
        }
    }
    sync_dir(vfs, dir)
}

/// True if the folder has files of a log.
pub(crate) fn exist(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    let names = vfs.list(dir).map_err(|source| Error::io(dir, source))?;
    Ok(names.iter().any(|name| number_of(name).is_some()))
}

/// Makes the file all zero from `lsn` on, and durable. What is zero already is not written.
pub(crate) fn clear_from(file: &LogFile, lsn: u64) -> Result<()> {
    let io = |source| file.error(source);
    let mut buffer = vec![0; ZEROES.min(file.header.capacity as usize)];
    let zeroes = vec![0; buffer.len()];
    let mut at = lsn;
    while at < file.end() {
        let bytes = (file.end() - at).min(buffer.len() as u64) as usize;
        file.file.read_at(&mut buffer[..bytes], file.offset(at)).map_err(io)?;
        if buffer[..bytes] != zeroes[..bytes] {
            file.file.write_at(&zeroes[..bytes], file.offset(at)).map_err(io)?;
        }
        at += bytes as u64;
    }
    file.file.sync().map_err(io)
}

//! The control file: what a data directory says about itself, and the lock that keeps a second process out.
//!
//! ```text
//! latchwork.control, 64 bytes, little-endian
//!  0 magic u64 | 8 format u32 | 12 page size u32 | 16 zero .. | 60 checksum u32 of bytes 0..60
//! ```
//! CRASH: it is made once, when everything else of a new directory is durable: written beside, synced,
//! renamed. What changes while the directory is in use (the next ids) lives with the log's checkpoints.

use crate::{Error, Result};
use base::checksum::checksum;
use base::sync::Arc;
use base::{FileId, Lsn};
use std::path::{Path, PathBuf};
use vfs::{Create, File, Vfs};
use wal::OWNER_WORDS;

const CONTROL_NAME: &str = "latchwork.control";
const CONTROL_NEW_NAME: &str = "latchwork.control.new";
const LOCK_NAME: &str = "latchwork.lock";
const MAGIC: u64 = u64::from_le_bytes(*b"LATCHWK\x01");
/// The format of the whole directory.
const FORMAT: u32 = 6;
/// The oldest that is read. It has one page size for all tables; a start makes it the newest. In format 3
/// the log does not list what is to be purged, and checkpoints do not say that it does
/// ([`NextIds::lists_garbage`]). In format 4 no table has constraints, and in format 5 no column is an ENUM,
/// SET, BIT, UUID, INET6 or INET4, and a collation is one of seven.
const FORMAT_OLDEST: u32 = 2;
const BYTES: usize = 64;
const CHECKSUM_AT: usize = 60;
const _: () = assert!(CHECKSUM_AT + 4 == BYTES);

/// In a checkpoint's fourth word.
const LISTS_GARBAGE: u64 = 1;

/// The first id that tables and their files get; file 1 is the catalogue.
const FILE_FIRST: u32 = 2;

/// The next ids, as a checkpoint keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NextIds {
    pub file: u32,
    pub table: u32,
    pub stamp: u64,
}

impl Default for NextIds {
    fn default() -> NextIds {
        NextIds { file: FILE_FIRST, table: 1, stamp: 1 }
    }
}

impl NextIds {
    /// What a checkpoint keeps for the engine. All changes of pages below `pages_from` are on the device.
    pub(crate) fn to_words(self, pages_from: Lsn) -> [u64; OWNER_WORDS] {
        let mut words = [0; OWNER_WORDS];
        let ids = [self.file.into(), self.table.into(), self.stamp];
        words[..3].copy_from_slice(&ids);
        words[3..5].copy_from_slice(&[LISTS_GARBAGE, pages_from.0]);
        words
    }

    /// Whether the log behind a checkpoint lists what is to be purged, but for tables whose headers say
    /// that it does not.
    pub(crate) fn lists_garbage(words: &[u64; OWNER_WORDS]) -> bool {
        words[3] == LISTS_GARBAGE
    }

    /// The first record of pages that a start has to redo. 0 in checkpoints of older builds: all that are
    /// there.
    pub(crate) fn pages_from(words: &[u64; OWNER_WORDS]) -> Lsn {
        Lsn(words[4])
    }

    pub(crate) fn from_words(words: &[u64; OWNER_WORDS]) -> NextIds {
        NextIds { file: words[0] as u32, table: words[1] as u32, stamp: words[2] }
    }
}

/// The directory's identity and lock, and the ids of what is in it.
#[derive(Debug)]
pub(crate) struct Control {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    page_size: usize,
    next: NextIds,
    /// Held as long as the directory is open.
    lock: Option<Arc<dyn File>>,
}

impl Control {
    /// Takes the directory's lock and reads its control file. True if the directory is new and `create`
    /// allows that: it is locked then and has no control file, which [`Control::finish_creation`] makes.
    pub(crate) fn open(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        page_size: usize,
        create: bool,
    ) -> Result<(Control, bool)> {
        if create {
            create_durable_dir(&*vfs, dir)?;
        }
        let has_control = vfs.exists(&dir.join(CONTROL_NAME))?;
        if !has_control && !create {
            let why = "there is no control file in it".to_string();
            return Err(Error::WrongFormat { path: dir.to_path_buf(), why });
        }
        if !has_control {
            // Before the lock, whose file a folder of something else should not get.
            refuse_foreign_files(&*vfs, dir)?;
        }
        let lock = Some(lock(&*vfs, dir)?);
        // Only now: another process may have made the directory meanwhile.
        let is_new = !vfs.exists(&dir.join(CONTROL_NAME))?;
        let (format, page_size) = if is_new { (FORMAT, page_size) } else { read(&*vfs, dir)? };
        let control = Control { vfs, dir: dir.to_path_buf(), page_size, next: NextIds::default(), lock };
        if format < FORMAT {
            // CRASH: before anything of the newer format is written, an older build is to know.
            control.write()?;
        }
        Ok((control, is_new))
    }

    pub(crate) fn page_size(&self) -> usize {
        self.page_size
    }

    pub(crate) fn next_ids(&self) -> NextIds {
        self.next
    }

    pub(crate) fn set_next_ids(&mut self, next: NextIds) {
        self.next = next;
    }

    /// The id has been given to a file, though the log says nothing of it.
    pub(crate) fn skip_file_id(&mut self, file: FileId) {
        self.next.file = self.next.file.max(file.0.saturating_add(1));
    }

    /// An id that no file has had.
    pub(crate) fn take_file_id(&mut self) -> Result<FileId> {
        let id = self.next.file;
        self.next.file = id.checked_add(1).ok_or(Error::Full)?;
        Ok(FileId(id))
    }

    /// An id that no table has had.
    pub(crate) fn take_table_id(&mut self) -> Result<base::TableId> {
        let id = self.next.table;
        self.next.table = id.checked_add(1).ok_or(Error::Full)?;
        Ok(base::TableId(id))
    }

    /// Lets another process open the directory.
    pub(crate) fn unlock(&mut self) {
        self.lock = None;
    }

    pub(crate) fn is_unlocked(&self) -> bool {
        self.lock.is_none()
    }

    /// Everything else of a new directory is durable: from here on it is one.
    pub(crate) fn finish_creation(&self) -> Result<()> {
        self.write()
    }

    fn write(&self) -> Result<()> {
        let new = self.dir.join(CONTROL_NEW_NAME);
        let file = self.vfs.open(&new, Create::IfMissing)?;
        file.set_len(BYTES as u64)?;
        file.write_at(&encode(self.page_size), 0)?;
        file.sync()?;
        drop(file);
        self.vfs.rename(&new, &self.dir.join(CONTROL_NAME))?;
        self.vfs.sync_dir(&self.dir)?;
        Ok(())
    }
}

/// Makes a folder and what is missing above it.
fn create_durable_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let mut missing = Vec::new();
    for folder in dir.ancestors() {
        if folder.as_os_str().is_empty() || vfs.exists(folder)? {
            break;
        }
        missing.push(folder);
    }
    vfs.create_dir_all(dir)?;
    // CRASH: a folder whose parent was not synced may be gone after a power failure, with every table in it.
    for folder in missing {
        if let Some(parent) = folder.parent() {
            let is_current = parent.as_os_str().is_empty();
            vfs.sync_dir(if is_current { Path::new(".") } else { parent })?;
        }
    }
    Ok(())
}

fn lock(vfs: &dyn Vfs, dir: &Path) -> Result<Arc<dyn File>> {
    let lock = vfs.open(&dir.join(LOCK_NAME), Create::IfMissing)?;
    match lock.try_lock_exclusive() {
        Ok(()) => Ok(lock),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(Error::AlreadyOpen { path: dir.to_path_buf() })
        }
        Err(error) => Err(error.into()),
    }
}

/// A directory that already holds other things is not taken over. What a creation that was cut short left
/// behind is ours.
fn refuse_foreign_files(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    for path in vfs.list(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours = [
            LOCK_NAME,
            CONTROL_NEW_NAME,
            crate::names::CATALOGUE_NAME,
            crate::names::DOUBLEWRITE_NAME,
            crate::names::LOG_DIR,
            crate::names::TABLES_DIR,
        ];
        if !ours.contains(&name.as_str()) && name != "lost+found" {
            let why = format!("it has no control file, and '{name}' is in it");
            return Err(Error::WrongFormat { path: dir.to_path_buf(), why });
        }
    }
    // A making cut short leaves no tables behind; tables without a control file are somebody's rows.
    let tables = dir.join(crate::names::TABLES_DIR);
    if vfs.exists(&tables)? && !vfs.list(&tables)?.is_empty() {
        let why = "it has tables but no control file".to_string();
        return Err(Error::WrongFormat { path: dir.to_path_buf(), why });
    }
    Ok(())
}

fn encode(page_size: usize) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[0..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[12..16].copy_from_slice(&(page_size as u32).to_le_bytes());
    let sum = checksum(0, &bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn u32_at(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The format and the page size that the control file names.
fn read(vfs: &dyn Vfs, dir: &Path) -> Result<(u32, usize)> {
    let path = dir.join(CONTROL_NAME);
    let wrong = |why: String| Error::WrongFormat { path: path.clone(), why };
    let file = vfs.open(&path, Create::Never)?;
    let mut bytes = [0; BYTES];
    match file.read_at(&mut bytes, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            return Err(wrong("the control file is too short".to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    if u64_at(&bytes, 0) != MAGIC {
        return Err(wrong("the control file is not one of Latchwork's".to_string()));
    }
    if u32_at(&bytes, CHECKSUM_AT) != checksum(0, &bytes[..CHECKSUM_AT]) {
        return Err(wrong("the control file's checksum is wrong".to_string()));
    }
    let format = u32_at(&bytes, 8);
    if !(FORMAT_OLDEST..=FORMAT).contains(&format) {
        return Err(wrong(format!("its format is {format}, this build reads {FORMAT_OLDEST} to {FORMAT}")));
    }
    Ok((format, u32_at(&bytes, 12) as usize))
}

//! The control file: what a data directory says about itself, and the lock that keeps a second process out.
//!
//! ```text
//! latchwork.control, 64 bytes, little-endian
//!  0 magic u64 | 8 format u32 | 12 page size u32 | 16 clean u32 (1 = shut down cleanly) | 20 next file id u32
//! 24 next table id u32 | 28 zero u32 | 32 next stamp u64 | 40 zero .. | 60 checksum u32 of bytes 0..60
//! ```
//! CRASH: it is replaced as a whole (written beside, synced, renamed), so that it is always the old one
//! or the new one.

use crate::{Error, Result};
use base::FileId;
use base::checksum::checksum;
use base::sync::Arc;
use std::path::{Path, PathBuf};
use vfs::{Create, File, Vfs};

const CONTROL_NAME: &str = "latchwork.control";
const CONTROL_NEW_NAME: &str = "latchwork.control.new";
const LOCK_NAME: &str = "latchwork.lock";
const MAGIC: u64 = u64::from_le_bytes(*b"LATCHWK\x01");
/// The format of the whole directory.
const FORMAT: u32 = 1;
const BYTES: usize = 64;
const CHECKSUM_AT: usize = 60;

/// The first id that tables and their files get; file 1 is the catalogue.
const FILE_FIRST: u32 = 2;

/// What stands in the control file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Contents {
    page_size: u32,
    clean: bool,
    next_file: u32,
    next_table: u32,
    next_stamp: u64,
}

/// The control file of an open directory.
#[derive(Debug)]
pub(crate) struct Control {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    contents: Contents,
    /// Held as long as the directory is open.
    lock: Option<Arc<dyn File>>,
}

impl Control {
    /// Takes the directory's lock and reads its control file; makes both if the directory is new and `create` allows
    /// it. True if it is new.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, page_size: usize, create: bool) -> Result<(Control, bool)> {
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
        let lock = lock(&*vfs, dir)?;
        // Only now: another process may have made the directory meanwhile.
        if !vfs.exists(&dir.join(CONTROL_NAME))? {
            let contents = Contents {
                page_size: page_size as u32,
                clean: true,
                next_file: FILE_FIRST,
                next_table: 1,
                next_stamp: 1,
            };
            return Ok((Control { vfs, dir: dir.to_path_buf(), contents, lock: Some(lock) }, true));
        }
        let contents = read(&*vfs, dir)?;
        if !contents.clean {
            return Err(Error::UncleanShutdown { path: dir.to_path_buf() });
        }
        Ok((Control { vfs, dir: dir.to_path_buf(), contents, lock: Some(lock) }, false))
    }

    /// Takes the lock of a directory that is to be examined; true if it was shut down cleanly.
    pub fn open_for_check(vfs: Arc<dyn Vfs>, dir: &Path) -> Result<(Control, bool)> {
        if !vfs.exists(&dir.join(CONTROL_NAME))? {
            let why = "there is no control file in it".to_string();
            return Err(Error::WrongFormat { path: dir.to_path_buf(), why });
        }
        let lock = lock(&*vfs, dir)?;
        let contents = read(&*vfs, dir)?;
        Ok((Control { vfs, dir: dir.to_path_buf(), contents, lock: Some(lock) }, contents.clean))
    }

    pub fn page_size(&self) -> usize {
        self.contents.page_size as usize
    }

    pub fn next_stamp(&self) -> u64 {
        self.contents.next_stamp
    }

    /// An id that no file has had.
    pub fn take_file_id(&mut self) -> Result<FileId> {
        let id = self.contents.next_file;
        self.contents.next_file = id.checked_add(1).ok_or(Error::Full)?;
        Ok(FileId(id))
    }

    /// An id that no table has had.
    pub fn take_table_id(&mut self) -> Result<base::TableId> {
        let id = self.contents.next_table;
        self.contents.next_table = id.checked_add(1).ok_or(Error::Full)?;
        Ok(base::TableId(id))
    }

    /// From here on a start after a crash refuses.
    pub fn mark_in_use(&mut self) -> Result<()> {
        if self.contents.clean {
            self.write(Contents { clean: false, ..self.contents })?;
            self.contents.clean = false;
        }
        Ok(())
    }

    /// Everything is on disk.
    pub fn mark_clean(&mut self, next_stamp: u64) -> Result<()> {
        let contents = Contents { clean: true, next_stamp, ..self.contents };
        self.write(contents)?;
        self.contents = contents;
        Ok(())
    }

    /// Lets another process open the directory.
    pub fn unlock(&mut self) {
        self.lock = None;
    }

    pub fn is_unlocked(&self) -> bool {
        self.lock.is_none()
    }

    fn write(&self, contents: Contents) -> Result<()> {
        let new = self.dir.join(CONTROL_NEW_NAME);
        let file = self.vfs.open(&new, Create::IfMissing)?;
        file.set_len(BYTES as u64)?;
        file.write_at(&encode(&contents), 0)?;
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

/// A directory that already holds other things is not taken over. What a creation that was cut short left behind is ours.
fn refuse_foreign_files(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    for path in vfs.list(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours =
            [LOCK_NAME, CONTROL_NEW_NAME, crate::database::CATALOGUE_NAME, crate::database::TABLES_DIR];
        if !ours.contains(&name.as_str()) && name != "lost+found" {
            let why = format!("it has no control file, and '{name}' is in it");
            return Err(Error::WrongFormat { path: dir.to_path_buf(), why });
        }
    }
    // A making cut short leaves no tables behind; tables without a control file are somebody's rows.
    let tables = dir.join(crate::database::TABLES_DIR);
    if vfs.exists(&tables)? && !vfs.list(&tables)?.is_empty() {
        let why = "it has tables but no control file".to_string();
        return Err(Error::WrongFormat { path: dir.to_path_buf(), why });
    }
    Ok(())
}

fn encode(contents: &Contents) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[0..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[12..16].copy_from_slice(&contents.page_size.to_le_bytes());
    bytes[16..20].copy_from_slice(&u32::from(contents.clean).to_le_bytes());
    bytes[20..24].copy_from_slice(&contents.next_file.to_le_bytes());
    bytes[24..28].copy_from_slice(&contents.next_table.to_le_bytes());
    bytes[32..40].copy_from_slice(&contents.next_stamp.to_le_bytes());
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

fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Contents> {
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
    if format != FORMAT {
        return Err(wrong(format!("its format is {format}, this build reads {FORMAT}")));
    }
    Ok(Contents {
        page_size: u32_at(&bytes, 12),
        clean: u32_at(&bytes, 16) != 0,
        next_file: u32_at(&bytes, 20),
        next_table: u32_at(&bytes, 24),
        next_stamp: u64_at(&bytes, 32),
    })
}

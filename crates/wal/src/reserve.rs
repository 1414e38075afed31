//! Room on the disk that is set aside, so that what must go on can go on when the disk is full.

use crate::error::{Error, Result};
use base::sync::{Arc, Mutex};
use std::io;
use std::path::{Path, PathBuf};
use vfs::{Create, File, Vfs};

base::latch_class!(pub LogReserveLatch, "log reserve");

const NAME: &str = "reserve";

/// A file whose content is nothing: only its length counts. It lasts as long as the process: the next start
/// removes it before it does anything else, so that it has that room.
#[derive(Debug)]
pub(crate) struct Reserve {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    held: Mutex<Held, LogReserveLatch>,
}

#[derive(Debug, Default)]
struct Held {
    file: Option<Arc<dyn File>>,
    bytes: u64,
}

impl Reserve {
    pub fn new(vfs: Arc<dyn Vfs>, dir: &Path) -> Reserve {
        Reserve { vfs, path: dir.join(NAME), held: Mutex::of_class(Held::default()) }
    }

    /// Removes what the last process had set aside.
    pub fn remove(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        match vfs.remove(&dir.join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&dir.join(NAME), error)),
            _ => Ok(()),
        }
    }

    /// At least `bytes` are set aside.
    pub fn keep(&self, bytes: u64) -> Result<()> {
        let mut held = self.held.lock();
        if bytes <= held.bytes {
            return Ok(());
        }
        let io = |error| Error::io(&self.path, error);
        if held.file.is_none() {
            let file = self.vfs.open(&self.path, Create::IfMissing).map_err(io)?;
            file.set_len(0).map_err(io)?;
            held.file = Some(file);
        }
        let Held { file: Some(file), bytes: held } = &mut *held else { return Ok(()) };
        file.reserve(bytes).map_err(io)?;
        *held = bytes;
        Ok(())
    }

    /// No more than `bytes` are set aside.
    pub fn trim(&self, bytes: u64) -> Result<()> {
        let mut held = self.held.lock();
        let Held { file: Some(file), bytes: held } = &mut *held else { return Ok(()) };
        if *held > bytes {
            file.set_len(bytes).map_err(|error| Error::io(&self.path, error))?;
            *held = bytes;
        }
        Ok(())
    }

    /// Gives up to `bytes` back to the disk; false if none are left.
    pub fn give(&self, bytes: u64) -> bool {
        let left = match self.bytes() {
            0 => return false,
            held => held.saturating_sub(bytes),
        };
        self.trim(left).is_ok()
    }

    pub fn bytes(&self) -> u64 {
        self.held.lock().bytes
    }
}

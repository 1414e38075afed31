//! Scratch files: for what is too much for memory and worth nothing after a crash. They have no names, so
//! nothing stays of them.

use crate::Result;
use base::checksum::crc32;
use base::sync::{Arc, Mutex};
use std::io;
use std::path::Path;
use transactions::{VersionFile, VersionFiles};
use vfs::{File, Vfs};

/// About how many bytes go to a file together. Tests write small blocks, so that they write some.
pub(crate) const BLOCK_BYTES: u64 = if cfg!(test) { 4 << 10 } else { 1 << 20 };
/// A file takes so many blocks. It goes when the last of them is no longer needed, so a list that never ends
/// keeps no more than it needs.
const FILE_BLOCKS: u64 = 64;

/// Where scratch files are made.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    vfs: Arc<dyn Vfs>,
    dir: Arc<Path>,
}

/// A file of old versions of rows.
#[derive(Debug)]
struct OfVersions(Arc<dyn File>);

/// Takes blocks of bytes.
#[derive(Debug)]
pub(crate) struct Scratch {
    place: Place,
    current: Mutex<Option<Filling>>,
}

/// A file that takes more blocks.
#[derive(Debug)]
struct Filling {
    file: Arc<dyn File>,
    bytes: u64,
    blocks: u64,
}

/// A block of bytes in a file. The file goes with the last of its blocks.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    file: Arc<dyn File>,
    start: u64,
    bytes: usize,
    checksum: u32,
}

impl Place {
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: &Path) -> Place {
        Place { vfs, dir: dir.into() }
    }
}

impl VersionFiles for Place {
    fn create(&self) -> io::Result<Arc<dyn VersionFile>> {
        Ok(Arc::new(OfVersions(self.vfs.open_unnamed(&self.dir)?)))
    }
}

impl VersionFile for OfVersions {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(buffer, offset)
    }
}

impl Scratch {
    /// Makes its files when they are needed.
    pub(crate) fn new(place: Place) -> Scratch {
        Scratch { place, current: Mutex::default() }
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Result<Piece> {
        let mut current = self.current.lock();
        let Filling { file, bytes: start, blocks } = match current.take() {
            Some(filling) if filling.blocks < FILE_BLOCKS => filling,
            _ => Filling { file: self.place.vfs.open_unnamed(&self.place.dir)?, bytes: 0, blocks: 0 },
        };
        file.write_at(bytes, start)?;
        let end = start + bytes.len() as u64;
        *current = Some(Filling { file: file.clone(), bytes: end, blocks: blocks + 1 });
        Ok(Piece { file, start, bytes: bytes.len(), checksum: crc32(bytes) })
    }

    /// Nothing of what was written is needed any more.
    pub(crate) fn clear(&self) {
        *self.current.lock() = None;
    }
}

impl Piece {
    /// Its size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// # Errors
    /// [`crate::Error::Io`], also if the file does not give back what was written.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes];
        self.file.read_at(&mut bytes, self.start)?;
        if crc32(&bytes) == self.checksum { Ok(bytes) } else { Err(changed().into()) }
    }

    pub(crate) fn is_same(&self, other: &Piece) -> bool {
        Arc::ptr_eq(&self.file, &other.file) && self.start == other.start
    }
}

/// A file does not give back what was written.
pub(crate) fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a scratch file has changed")
}

//! A file tree that keeps what is written to it in memory, above another that stays as it is.

use crate::{Create, File, Vfs};
use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
use base::sync::{Arc, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Bytes of a block: so many are copied when one of them is written.
const BLOCK: usize = 4096;

/// Another file tree, read only: writes, lengths, new names and removals stay in memory, block by block, and
/// are gone with the last clone. Nothing of them is durable, so syncs do nothing. The tree below must not
/// change meanwhile. Advisory locks, which are passed on to the tree below, can prevent that.
#[derive(Clone, Debug)]
pub struct Overlay {
    base: Arc<dyn Vfs>,
    /// What differs from the base, and the base's files that have been opened.
    names: Arc<Mutex<BTreeMap<PathBuf, Node>>>,
}

#[derive(Clone, Debug)]
enum Node {
    File(Arc<Content>),
    Folder,
    /// The base may have the file, but here it has been removed.
    Gone,
}

#[derive(Debug)]
struct Content {
    /// The file below, and its name there.
    base: Option<(Arc<dyn File>, PathBuf)>,
    bytes: Mutex<Bytes>,
    /// For a file that is only here.
    locked: AtomicBool,
}

#[derive(Debug)]
struct Bytes {
    len: u64,
    /// So many bytes of the base can still be seen, where no block covers them.
    base_len: u64,
    /// Blocks that were written; `None` is one of zeroes.
    blocks: BTreeMap<u64, Option<Box<[u8]>>>,
}

impl Overlay {
    pub fn new(base: Arc<dyn Vfs>) -> Overlay {
        Overlay { base, names: Arc::default() }
    }

    /// Memory that written blocks take, in bytes; blocks of zeroes take none.
    pub fn bytes_held(&self) -> u64 {
        let names = self.names.lock();
        let contents = names.values().filter_map(|node| match node {
            Node::File(content) => Some(content.bytes.lock().blocks.values().flatten().count()),
            Node::Folder | Node::Gone => None,
        });
        contents.sum::<usize>() as u64 * BLOCK as u64
    }

    fn is_folder(&self, names: &BTreeMap<PathBuf, Node>, path: &Path) -> bool {
        match names.get(path) {
            Some(node) => matches!(node, Node::Folder),
            None => path.parent().is_none() || path.as_os_str().is_empty() || self.base.list(path).is_ok(),
        }
    }

    fn check_parent(&self, names: &BTreeMap<PathBuf, Node>, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if !self.is_folder(names, parent) => Err(missing(parent)),
            _ => Ok(()),
        }
    }

    /// The file of that name, opened below if it has to be.
    fn find(&self, names: &mut BTreeMap<PathBuf, Node>, path: &Path) -> io::Result<Arc<Content>> {
        match names.get(path) {
            Some(Node::File(content)) => Ok(content.clone()),
            Some(Node::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            Some(Node::Gone) => Err(missing(path)),
            None => {
                let file = self.base.open(path, Create::Never)?;
                let content = Arc::new(Content::new(Some((file, path.to_path_buf())))?);
                names.insert(path.to_path_buf(), Node::File(content.clone()));
                Ok(content)
            }
        }
    }

    fn list(&self, names: &BTreeMap<PathBuf, Node>, dir: &Path) -> io::Result<BTreeSet<PathBuf>> {
        let mut listed: BTreeSet<PathBuf> = match names.get(dir) {
            Some(Node::Folder) => BTreeSet::new(),
            Some(_) => return Err(missing(dir)),
            None => self.base.list(dir)?.into_iter().collect(),
        };
        for (path, node) in names.iter().filter(|(path, _)| path.parent() == Some(dir)) {
            let Some(name) = path.file_name().map(PathBuf::from) else { continue };
            match node {
                Node::Gone => listed.remove(&name),
                Node::File(_) | Node::Folder => listed.insert(name),
            };
        }
        Ok(listed)
    }
}

/// The path without `.` components, so that `./a` and `a` are one file.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file or folder", path.display()))
}

impl Vfs for Overlay {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        let path = normal(path);
        let mut names = self.names.lock();
        let content = match (self.find(&mut names, &path), create) {
            (Ok(_), Create::New) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(content), _) => content,
            (Err(error), Create::IfMissing | Create::New) if error.kind() == io::ErrorKind::NotFound => {
                self.check_parent(&names, &path)?;
                let content = Arc::new(Content::new(None)?);
                names.insert(path, Node::File(content.clone()));
                content
            }
            (Err(error), _) => return Err(error),
        };
        Ok(Arc::new(OverlayFile { content, base: self.base.clone(), lock: Mutex::new(Lock::None) }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let path = normal(path);
        match self.names.lock().get(&path) {
            Some(node) => Ok(!matches!(node, Node::Gone)),
            None => self.base.exists(&path),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut names = self.names.lock();
        self.find(&mut names, &path)?;
        names.insert(path, Node::Gone);
        Ok(())
    }

    /// Files only: moving a folder is `Unsupported`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normal(from), normal(to));
        let mut names = self.names.lock();
        if self.is_folder(&names, &from) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if self.is_folder(&names, &to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let content = self.find(&mut names, &from)?;
        self.check_parent(&names, &to)?;
        names.insert(from, Node::Gone);
        names.insert(to, Node::File(content));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let names = self.names.lock();
        Ok(self.list(&names, &normal(dir))?.into_iter().collect())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        let mut names = self.names.lock();
        for folder in dir.ancestors() {
            if self.is_folder(&names, folder) {
                break;
            }
            match names.get(folder) {
                Some(Node::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                None if self.base.exists(folder)? => return Err(io::ErrorKind::AlreadyExists.into()),
                _ => {}
            }
            names.insert(folder.to_path_buf(), Node::Folder);
        }
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        let mut names = self.names.lock();
        if !self.list(&names, &dir)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        names.insert(dir, Node::Gone);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        if self.is_folder(&self.names.lock(), &dir) { Ok(()) } else { Err(missing(&dir)) }
    }
}

impl Content {
    fn new(base: Option<(Arc<dyn File>, PathBuf)>) -> io::Result<Content> {
        let len = base.as_ref().map_or(Ok(0), |(file, _)| file.len())?;
        let bytes = Bytes { len, base_len: len, blocks: BTreeMap::new() };
        Ok(Content { base, bytes: Mutex::new(bytes), locked: AtomicBool::new(false) })
    }

    /// Fills `buffer` with what lies below the blocks.
    fn read_base(&self, base_len: u64, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let there = base_len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let (old, zeroes) = buffer.split_at_mut(there);
        zeroes.fill(0);
        match &self.base {
            Some((file, _)) if !old.is_empty() => file.read_at(old, offset),
            _ => Ok(()),
        }
    }
}

/// The parts of `len` bytes from `offset` on by their block: its number, where in it the part begins, where
/// in the bytes, how long it is.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK as u64) as usize;
        let bytes = (len - done).min(BLOCK - within);
        let part = (at / BLOCK as u64, within, done, bytes);
        done += bytes;
        (bytes > 0).then_some(part)
    })
}

#[derive(Debug)]
struct OverlayFile {
    content: Arc<Content>,
    base: Arc<dyn Vfs>,
    lock: Mutex<Lock>,
}

/// The advisory lock, as this handle has it.
#[derive(Debug)]
enum Lock {
    None,
    /// On the file below.
    Base {
        _file: Arc<dyn File>,
    },
    /// On a file that is only here.
    Own,
}

impl File for OverlayFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.content.bytes.lock();
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > bytes.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.content.read_base(bytes.base_len, buffer, offset)?;
        for (number, within, done, len) in parts(offset, buffer.len()) {
            match bytes.blocks.get(&number) {
                Some(Some(block)) => buffer[done..done + len].copy_from_slice(&block[within..within + len]),
                Some(None) => buffer[done..done + len].fill(0),
                None => {}
            }
        }
        Ok(())
    }

    fn write_at(&self, written: &[u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(written.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut bytes = self.content.bytes.lock();
        for (number, within, done, len) in parts(offset, written.len()) {
            let mut block = match bytes.blocks.remove(&number) {
                Some(Some(block)) => block,
                Some(None) => vec![0; BLOCK].into(),
                None => {
                    let mut block = vec![0; BLOCK].into_boxed_slice();
                    if len < BLOCK {
                        self.content.read_base(bytes.base_len, &mut block, number * BLOCK as u64)?;
                    }
                    block
                }
            };
            block[within..within + len].copy_from_slice(&written[done..done + len]);
            let has_content = block.iter().any(|byte| *byte != 0);
            bytes.blocks.insert(number, has_content.then_some(block));
        }
        bytes.len = bytes.len.max(end);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.bytes.lock().len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.content.bytes.lock();
        bytes.base_len = bytes.base_len.min(len);
        // What was cut off does not come back when the file grows again.
        let (last, within) = (len / BLOCK as u64, (len % BLOCK as u64) as usize);
        bytes.blocks.split_off(&len.div_ceil(BLOCK as u64));
        if let Some(Some(block)) = bytes.blocks.get_mut(&last) {
            block[within..].fill(0);
        }
        bytes.len = len;
        Ok(())
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.content.bytes.lock();
        bytes.len = bytes.len.max(len);
        Ok(())
    }

    /// On the file below, if there is one: so another process is kept out, or keeps this one out.
    fn try_lock_exclusive(&self) -> io::Result<()> {
        let mut lock = self.lock.lock();
        if !matches!(*lock, Lock::None) {
            return Ok(());
        }
        *lock = match &self.content.base {
            Some((_, path)) => {
                // A handle of its own, so that the lock ends with this one.
                let file = self.base.open(path, Create::Never)?;
                file.try_lock_exclusive()?;
                Lock::Base { _file: file }
            }
            // ORDER: the lock guards no memory of this process, so nothing needs to be ordered by it.
            None if self.content.locked.swap(true, Relaxed) => return Err(io::ErrorKind::WouldBlock.into()),
            None => Lock::Own,
        };
        Ok(())
    }
}

impl Drop for OverlayFile {
    fn drop(&mut self) {
        if matches!(*self.lock.lock(), Lock::Own) {
            // ORDER: see `try_lock_exclusive`.
            self.content.locked.store(false, Relaxed);
        }
    }
}

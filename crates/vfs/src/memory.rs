//! Files in memory: for tests, for models, and for measuring without a device.

use crate::{Create, File, Vfs};
use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
use base::sync::{Arc, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

/// A file tree in memory. Clones share the tree. Folders must be made before files, as on a disk.
#[derive(Clone, Debug, Default)]
pub struct MemVfs {
    tree: Arc<Mutex<Tree>>,
}

#[derive(Debug, Default)]
struct Tree {
    files: BTreeMap<PathBuf, Arc<Content>>,
    folders: BTreeSet<PathBuf>,
}

#[derive(Debug, Default)]
struct Content {
    bytes: Mutex<Vec<u8>>,
    locked: AtomicBool,
}

/// One handle; the advisory lock belongs to it.
#[derive(Debug)]
struct MemFile {
    content: Arc<Content>,
    holds_lock: AtomicBool,
}

impl MemVfs {
    pub fn new() -> MemVfs {
        MemVfs::default()
    }
}

/// The path without `.` components, so that `./a` and `a` are one file.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file or folder", path.display()))
}

impl Tree {
    fn has_folder(&self, dir: &Path) -> bool {
        dir.as_os_str().is_empty() || dir == Path::new("/") || self.folders.contains(dir)
    }

    fn check_parent(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if !self.has_folder(parent) => Err(missing(parent)),
            _ => Ok(()),
        }
    }
}

impl Vfs for MemVfs {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        let path = normal(path);
        let mut tree = self.tree.lock();
        let content = match (tree.files.get(&path), create) {
            (Some(_), Create::New) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(content), _) => content.clone(),
            (None, Create::Never) => return Err(missing(&path)),
            (None, Create::IfMissing | Create::New) => {
                tree.check_parent(&path)?;
                let content = Arc::new(Content::default());
                tree.files.insert(path, content.clone());
                content
            }
        };
        Ok(Arc::new(MemFile { content, holds_lock: AtomicBool::new(false) }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let path = normal(path);
        let tree = self.tree.lock();
        Ok(tree.files.contains_key(&path) || tree.has_folder(&path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        self.tree.lock().files.remove(&path).map(drop).ok_or_else(|| missing(&path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (normal(from), normal(to));
        let mut tree = self.tree.lock();
        tree.check_parent(&to)?;
        let content = tree.files.remove(&from).ok_or_else(|| missing(&from))?;
        tree.files.insert(to, content);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let dir = normal(dir);
        let tree = self.tree.lock();
        if !tree.has_folder(&dir) {
            return Err(missing(&dir));
        }
        let mut names: Vec<PathBuf> = (tree.files.keys().chain(&tree.folders))
            .filter(|path| path.parent() == Some(&dir))
            .filter_map(|path| path.file_name().map(PathBuf::from))
            .collect();
        names.sort();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut tree = self.tree.lock();
        for folder in normal(dir).ancestors() {
            if tree.files.contains_key(folder) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            tree.folders.insert(folder.to_path_buf());
        }
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir);
        if !self.list(&dir)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.tree.lock().folders.remove(&dir);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.list(dir).map(drop)
    }
}

impl File for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.content.bytes.lock();
        let source = usize::try_from(offset)
            .ok()
            .and_then(|start| bytes.get(start..start.checked_add(buffer.len())?))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(source);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let end = start.checked_add(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut content = self.content.bytes.lock();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.bytes.lock().len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.content.bytes.lock().resize(len, 0);
        Ok(())
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut content = self.content.bytes.lock();
        if content.len() < len {
            content.resize(len, 0);
        }
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut content = self.content.bytes.lock();
        let end = offset.saturating_add(len).min(content.len() as u64) as usize;
        if let Some(bytes) = content.get_mut(offset as usize..end) {
            bytes.fill(0);
        }
        Ok(())
    }

    fn try_lock_exclusive(&self) -> io::Result<()> {
        if self.holds_lock.load(Relaxed) {
            return Ok(());
        }
        // ORDER: the lock guards no memory of this process, so nothing needs to be ordered by it.
        if self.content.locked.swap(true, Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.holds_lock.store(true, Relaxed);
        Ok(())
    }
}

impl Drop for MemFile {
    fn drop(&mut self) {
        if self.holds_lock.load(Relaxed) {
            // ORDER: see `try_lock_exclusive`.
            self.content.locked.store(false, Relaxed);
        }
    }
}

//! Folders that go away with whoever made them.

use crate::error::{Error, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What `st_blocks` counts in.
const BLOCK_BYTES: u64 = 512;

/// A folder that is removed with everything in it when this is dropped, also by a panic.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder under `parent`, which is made if it is missing. Its path is absolute: servers have working folders of their own.
    pub fn create(parent: &Path) -> Result<Scratch> {
        fs::create_dir_all(parent).map_err(Error::path("create", parent))?;
        let parent = std::path::absolute(parent).map_err(Error::path("find", parent))?;
        let pid = std::process::id();
        for attempt in 0u32.. {
            let path = parent.join(format!("latchwork-lab-{pid}-{attempt}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::path("create", &path)(error)),
            }
        }
        unreachable!("some number is free")
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A new folder inside.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        fs::create_dir(&path).map_err(Error::path("create", &path))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// What the files directly inside a folder take on the device: holes count nothing.
pub fn bytes_under(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * BLOCK_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_scratch_folder_holds_in_every_working_folder() {
        assert!(Scratch::create(Path::new(".")).unwrap().path().is_absolute());
    }

    #[test]
    fn a_scratch_folder_goes_away_even_in_a_panic() {
        let parent = tempfile::tempdir().unwrap();
        let unwound = std::panic::catch_unwind(|| {
            let first = Scratch::create(parent.path()).unwrap();
            let second = Scratch::create(parent.path()).unwrap();
            assert_ne!(first.path(), second.path());
            fs::write(first.folder("data").unwrap().join("file"), "x").unwrap();
            panic!("on purpose");
        });
        assert!(unwound.is_err());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}

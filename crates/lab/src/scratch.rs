//! Folders that are removed when their owner is dropped.

use crate::error::{Error, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What `st_blocks` counts in.
const BLOCK_BYTES: u64 = 512;

/// A folder that is removed with everything in it when this value is dropped, also by a panic.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new folder under `parent`, and `parent` itself if it is missing. Its path is absolute, since
    /// servers change their working folder.
    pub(crate) fn create(parent: &Path) -> Result<Scratch> {
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

    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A new folder inside.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
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

/// How many bytes the files directly inside a folder occupy on the device. Holes count nothing.
pub(crate) fn bytes_under(folder: &Path) -> u64 {
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

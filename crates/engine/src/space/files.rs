//! How the files of an open directory are opened.

use crate::Result;
use crate::definition::{FlushMethod, Options};
use crate::names::DOUBLEWRITE_NAME;
use base::sync::Arc;
use pagecache::DOUBLEWRITE_BLOCK;
use std::path::Path;
use vfs::{Create, FewOpen, File, Vfs};

/// Where an open directory's files are.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub vfs: Arc<dyn Vfs>,
    /// The same, for files of pages: there are as many of them as there are tables.
    pages: FewOpen,
    /// In effect. If it is [`FlushMethod::ODirect`], that is how files of pages and the doublewrite file are
    /// opened.
    pub flush_method: FlushMethod,
}

impl Files {
    /// The directory is there and locked.
    pub(crate) fn new(dir: &Path, options: &Options) -> Result<Files> {
        let most = options.open_files.unwrap_or_else(|| base::machine::descriptors() / 4 * 3);
        let pages = FewOpen::new(options.vfs.clone(), most);
        let mut files = Files { vfs: options.vfs.clone(), pages, flush_method: options.flush_method };
        if files.flush_method == FlushMethod::ODirect {
            // The first file that is opened so anyway.
            let first =
                files.vfs.open_direct(&dir.join(DOUBLEWRITE_NAME), Create::IfMissing, DOUBLEWRITE_BLOCK);
            match first {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                    files.flush_method = FlushMethod::Fsync;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(files)
    }

    /// Opens a file that is read and written by pages of `page_size` bytes. Past the system's cache, if that
    /// is the way and the device takes pieces so small.
    pub(crate) fn open_pages(
        &self,
        path: &Path,
        create: Create,
        page_size: usize,
    ) -> std::io::Result<Arc<dyn File>> {
        if self.flush_method != FlushMethod::ODirect {
            return self.pages.open(path, create);
        }
        match self.pages.open_direct(path, create, page_size) {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                // It may have been made in the attempt.
                self.pages.open(path, if create == Create::Never { create } else { Create::IfMissing })
            }
            opened => opened,
        }
    }

    pub(crate) fn vfs(&self) -> &dyn Vfs {
        &*self.vfs
    }
}

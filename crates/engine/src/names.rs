//! The names of the files in a data directory: see the README, "Files".

use base::FileId;
use std::path::{Path, PathBuf};

/// The catalogue's file is told from tables' by its number.
pub(crate) const CATALOGUE_FILE: FileId = FileId(1);

pub(crate) const CATALOGUE_NAME: &str = "catalogue.lwt";
pub(crate) const TABLES_DIR: &str = "tables";
pub(crate) const LOG_DIR: &str = "log";
pub(crate) const DOUBLEWRITE_NAME: &str = "latchwork.doublewrite";

/// Where a table's file lies.
pub(crate) fn table_path(dir: &Path, file: FileId) -> PathBuf {
    dir.join(TABLES_DIR).join(format!("T{file}.lwt"))
}

/// The number of the table's file with this name; `None` if it is something else.
pub(crate) fn file_of(name: &Path) -> Option<FileId> {
    let number = name.to_str()?.strip_prefix('T')?.strip_suffix(".lwt")?;
    number.parse().ok().map(FileId)
}

/// Where a file of pages lies.
pub(crate) fn path_of(dir: &Path, file: FileId) -> PathBuf {
    if file == CATALOGUE_FILE { dir.join(CATALOGUE_NAME) } else { table_path(dir, file) }
}

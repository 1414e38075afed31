//! Files of the server that LOAD DATA reads.

use crate::error::PRODUCT;
use crate::host::Interrupt;
use crate::{ErrorKind, FileParts, Session, SqlError};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many bytes are read at a time.
const PART_BYTES: usize = 1 << 20;

/// A file on the server's machine.
#[derive(Debug)]
pub(super) struct ServerFile {
    file: File,
    /// The size when it was opened.
    bytes: u64,
    bytes_read: u64,
    /// Through this, other sessions see how much has been read.
    interrupt: Arc<Interrupt>,
}

impl FileParts for ServerFile {
    fn next_part(&mut self, buffer: &mut Vec<u8>) -> Result<bool, SqlError> {
        let start = buffer.len();
        buffer.resize(start + PART_BYTES, 0);
        let read = loop {
            match self.file.read(&mut buffer[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        buffer.truncate(start + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(count) => {
                self.bytes_read += count as u64;
                self.interrupt.note_progress(self.bytes_read, self.bytes);
                Ok(count > 0)
            }
            Err(error) => Err(SqlError::new(
                ErrorKind::CannotReadFile,
                format!("Error reading the file ({})", told(&error)),
            )),
        }
    }
}

impl Drop for ServerFile {
    fn drop(&mut self) {
        self.interrupt.note_progress(0, self.bytes);
    }
}

/// Opens a file that LOAD DATA names. A name without a folder means the folder of the default database. A
/// relative folder is in the data directory.
///
/// # Errors
/// 13, 29, 1085, 1290.
pub(super) fn open(session: &Session, name: &str) -> Result<ServerFile, SqlError> {
    let globals = &session.instance.globals;
    let path = located(session, Path::new(name));
    let allowed = globals.values().text("secure_file_priv");
    let shown = path.display();
    if !allowed.is_empty() && !is_inside(&path, Path::new(&allowed)) {
        return Err(SqlError::new(
            ErrorKind::OptionPreventsStatement,
            format!(
                "The {PRODUCT} server is running with the --secure-file-priv option so it cannot execute this statement"
            ),
        ));
    }
    let metadata = std::fs::metadata(&path).map_err(|error| {
        SqlError::new(ErrorKind::CannotStatFile, format!("Can't get stat of '{shown}' ({})", told(&error)))
    })?;
    if !metadata.is_file() {
        let text = format!("The file '{shown}' must be in the database directory or be readable by all");
        return Err(SqlError::new(ErrorKind::FileNotReadable, text));
    }
    let file = File::open(&path).map_err(|error| {
        SqlError::new(ErrorKind::FileNotFound, format!("File '{shown}' not found ({})", told(&error)))
    })?;
    Ok(ServerFile { file, bytes: metadata.len(), bytes_read: 0, interrupt: session.interrupt.clone() })
}

fn located(session: &Session, name: &Path) -> PathBuf {
    let data = PathBuf::from(session.instance.globals.values().text("datadir"));
    let is_bare = name.parent().is_none_or(|parent| parent.as_os_str().is_empty());
    let path = match session.database() {
        Some(database) if is_bare => data.join(&**database).join(name),
        _ => data.join(name),
    };
    plain(&path)
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// True for a file in a folder or below it, after links are followed. A file that does not exist is in no
/// folder.
fn is_inside(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// An error of the operating system, in the form of MariaDB's messages.
fn told(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("Errcode: {} \"{text}\"", error.raw_os_error().unwrap_or_default())
}

//! Files of the server that LOAD DATA reads.

use crate::error::PRODUCT;
use crate::session::ProgressMeter;
use crate::{ErrorKind, FileParts, ResultSink, Session, SqlError};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How many bytes are read at a time.
const PART_BYTES: usize = 1 << 20;

/// A file on the server's machine.
pub(super) struct ServerFile<'s> {
    file: File,
    /// The size when it was opened.
    bytes: u64,
    bytes_read: u64,
    meter: ProgressMeter<'s>,
}

impl FileParts for ServerFile<'_> {
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
                self.meter.note(self.bytes_read, self.bytes)?;
                Ok(count > 0)
            }
            Err(error) => Err(SqlError::new(
                ErrorKind::CannotReadFile,
                format!("Error reading the file ({})", told(&error)),
            )),
        }
    }
}

/// Opens a file that LOAD DATA names. A name without a folder means the folder of the default database. A
/// relative folder is in the data directory.
///
/// # Errors
/// 13, 29, 1085, 1290.
pub(super) fn open<'s>(
    session: &Session,
    name: &str,
    sink: &'s mut dyn ResultSink,
) -> Result<ServerFile<'s>, SqlError> {
    let globals = &session.instance.globals;
    let path = located(session, Path::new(name));
    let allowed = globals.values().text("secure_file_priv");
    let allowed = Some(Path::new(&allowed)).filter(|folder| !folder.as_os_str().is_empty());
    let (file, bytes) = open_within(&path, allowed)?;
    let mut meter = ProgressMeter::new(session, 1, sink);
    meter.next_stage("Reading file");
    Ok(ServerFile { file, bytes, bytes_read: 0, meter })
}

/// Opens a file, which has to be in this folder if there is one. Gives its size too.
///
/// The path is checked first, because opening may have effects: a pipe waits for its writer, a device begins
/// to work. But whoever may write to the folder can put a link there between the check and the opening. So
/// what was opened is checked again.
fn open_within(path: &Path, allowed: Option<&Path>) -> Result<(File, u64), SqlError> {
    /// O_NONBLOCK: a pipe that came behind the check does not wait for its writer. Files do not care.
    const NO_WAIT: i32 = 0o4000;
    let shown = path.display();
    let forbidden = || {
        let text = format!(
            "The {PRODUCT} server is running with the --secure-file-priv option so it cannot execute this statement"
        );
        Err(SqlError::new(ErrorKind::OptionPreventsStatement, text))
    };
    let not_a_file = || {
        let text = format!("The file '{shown}' must be in the database directory or be readable by all");
        Err(SqlError::new(ErrorKind::FileNotReadable, text))
    };
    let no_stat = |error: io::Error| {
        SqlError::new(ErrorKind::CannotStatFile, format!("Can't get stat of '{shown}' ({})", told(&error)))
    };
    if allowed.is_some_and(|folder| !is_inside(path, folder)) {
        return forbidden();
    }
    if !std::fs::metadata(path).map_err(no_stat)?.is_file() {
        return not_a_file();
    }
    let file = File::options().read(true).custom_flags(NO_WAIT).open(path).map_err(|error| {
        SqlError::new(ErrorKind::FileNotFound, format!("File '{shown}' not found ({})", told(&error)))
    })?;
    // Where the kernel says that the open file is. It says so even if the name has another file by now.
    let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let is_within = |folder: &Path| match (&place, folder.canonicalize()) {
        (Ok(place), Ok(folder)) => place.starts_with(folder),
        _ => false,
    };
    if !allowed.is_none_or(is_within) {
        return forbidden();
    }
    let metadata = file.metadata().map_err(no_stat)?;
    if metadata.is_file() { Ok((file, metadata.len())) } else { not_a_file() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_link_that_is_swapped_in_does_not_lead_out() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("files");
        fs::create_dir(&folder).unwrap();
        let outside = scratch.path().join("secret");
        fs::write(&outside, "outside").unwrap();
        let (path, file, link) = (folder.join("f"), folder.join("file"), folder.join("link"));
        fs::write(&path, "inside").unwrap();
        let is_over = AtomicBool::new(false);
        let (mut opened, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // ORDER: a flag that carries no data.
                while !is_over.load(Ordering::Relaxed) {
                    std::os::unix::fs::symlink(&outside, &link).unwrap();
                    fs::rename(&link, &path).unwrap();
                    fs::write(&file, "inside").unwrap();
                    fs::rename(&file, &path).unwrap();
                }
            });
            let mut rounds = 0;
            while rounds < 20_000 || opened == 0 || refused == 0 {
                rounds += 1;
                match open_within(&path, Some(&folder)) {
                    Ok((mut file, bytes)) => {
                        let mut text = String::new();
                        file.read_to_string(&mut text).unwrap();
                        opened += 1;
                        if text != "inside" || bytes != 6 {
                            is_over.store(true, Ordering::Relaxed);
                            panic!("{text} after {rounds} rounds");
                        }
                    }
                    Err(error) => {
                        refused += 1;
                        assert_eq!(error.kind, ErrorKind::OptionPreventsStatement, "{error}");
                    }
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_pipe_is_no_file() {
        let scratch = tempfile::tempdir().unwrap();
        let socket = scratch.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let error = open_within(&socket, None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::FileNotReadable);
        assert_eq!(open_within(Path::new("/dev/zero"), None).unwrap_err().kind, ErrorKind::FileNotReadable);
    }
}

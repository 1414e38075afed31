//! The file of the audit log: appended to, synced, rotated.

use super::Settings;
use base::sync::Mutex;
use base::sync::atomic::{AtomicU64, Ordering};
use base::{SharedSync, Written};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The latch is held while lines are appended or the file is replaced, and not while it is synced.
#[derive(Debug, Default)]
pub(super) struct LogFile {
    current: Mutex<Option<Current>>,
    failures: AtomicU64,
    last_error: Mutex<String>,
}

#[derive(Debug)]
struct Current {
    open: Arc<Open>,
    bytes: u64,
}

/// A file, which those who wait for a sync keep open.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    sync: SharedSync,
}

/// What SHOW STATUS says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct AuditFigures {
    pub is_on: bool,
    /// Where it is written, or was written last.
    pub path: Option<PathBuf>,
    pub last_error: String,
    pub writes_failed: u64,
}

impl Current {
    fn open(path: &Path) -> io::Result<Current> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Current {
            open: Arc::new(Open { path: path.to_owned(), file, sync: SharedSync::default() }),
            bytes,
        })
    }

    /// Appends all of it or nothing.
    fn append(&mut self, lines: &[u8]) -> io::Result<Written> {
        let mut file = &self.open.file;
        if let Err(error) = file.write_all(lines) {
            // If that fails, too, the next line begins behind a part of this one.
            let _ = file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += lines.len() as u64;
        Ok(self.open.sync.written())
    }

    /// Gives the file the number 1 and those before it one more, and begins a new one.
    fn rotate(&mut self, rotations: u64) -> io::Result<()> {
        let path = self.open.path.clone();
        let width = rotations.to_string().len();
        let numbered = |number: u64| {
            let mut name = path.clone().into_os_string();
            name.push(format!(".{number:0width$}"));
            PathBuf::from(name)
        };
        for number in (1..rotations).rev() {
            match std::fs::rename(numbered(number), numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if rotations > 0 {
            std::fs::rename(&path, numbered(1))?;
        }
        *self = Current::open(&path)?;
        Ok(())
    }
}

impl Open {
    fn make_durable(&self, write: Written) -> io::Result<()> {
        self.sync.wait(write, || self.file.sync_data())
    }

    /// A new name is durable once its folder is.
    fn sync_folder(&self) -> io::Result<()> {
        match self.path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

impl LogFile {
    /// Goes on in this file.
    pub(super) fn open(&self, path: &Path) -> io::Result<()> {
        let current = Current::open(path)?;
        current.open.sync_folder()?;
        *self.current.lock() = Some(current);
        Ok(())
    }

    /// `server_audit_file_rotate_now`. With `server_audit_file_rotations=0` the file is only opened again, as
    /// after another program has renamed it.
    pub(super) fn rotate(&self, settings: &Settings) {
        if let Some(current) = &mut *self.current.lock() {
            self.rotate_current(current, settings);
        }
    }

    fn rotate_current(&self, current: &mut Current, settings: &Settings) {
        let old = current.open.clone();
        let write = old.sync.written();
        let result = current.rotate(settings.rotations).and_then(|()| match settings.syncs {
            true => old.make_durable(write).and_then(|()| current.open.sync_folder()),
            false => Ok(()),
        });
        self.note(result);
    }

    /// Appends lines with one write. A file that is full is replaced first.
    pub(super) fn write(&self, lines: &[u8], settings: &Settings) {
        let mut latch = self.current.lock();
        let Some(current) = &mut *latch else { return };
        if settings.rotations > 0 && current.bytes >= settings.rotate_bytes {
            self.rotate_current(current, settings);
        }
        let result = current.append(lines);
        let open = current.open.clone();
        drop(latch);
        self.note(result.and_then(|write| if settings.syncs { open.make_durable(write) } else { Ok(()) }));
    }

    fn note(&self, result: io::Result<()>) {
        if let Err(error) = result {
            // ORDER: statistics.
            self.failures.fetch_add(1, Ordering::Relaxed);
            *self.last_error.lock() = error.to_string();
        }
    }

    pub(super) fn figures(&self) -> AuditFigures {
        AuditFigures {
            is_on: false,
            path: self.current.lock().as_ref().map(|current| current.open.path.clone()),
            last_error: self.last_error.lock().clone(),
            // ORDER: statistics.
            writes_failed: self.failures.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(path: PathBuf) -> String {
        std::fs::read_to_string(path).unwrap_or_else(|error| error.kind().to_string())
    }

    #[test]
    fn a_full_file_gets_a_number_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = LogFile::default();
        file.open(&folder.path().join("a.log")).unwrap();
        let settings = Settings { rotations: 2, rotate_bytes: 4, syncs: true, ..Settings::default() };
        for lines in ["a\n", "b\n", "c\nc\n", "d\nd\n", "e\n"] {
            file.write(lines.as_bytes(), &settings);
        }
        let at = |name: &str| content(folder.path().join(name));
        assert_eq!(
            (at("a.log"), at("a.log.1"), at("a.log.2")),
            ("e\n".into(), "d\nd\n".into(), "c\nc\n".into())
        );
        assert_eq!(at("a.log.3"), io::ErrorKind::NotFound.to_string());
        // Numbers have as many digits as the largest.
        file.rotate(&Settings { rotations: 10, ..Settings::default() });
        assert_eq!((at("a.log"), at("a.log.01")), (String::new(), "e\n".into()));
        assert_eq!(file.figures().writes_failed, 0);
    }

    #[test]
    fn without_rotations_the_file_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, renamed) = (folder.path().join("a.log"), folder.path().join("old"));
        let file = LogFile::default();
        file.open(&path).unwrap();
        let settings = Settings { rotate_bytes: 1, ..Settings::default() };
        file.write(b"a\n", &settings);
        file.write(b"b\n", &settings);
        std::fs::rename(&path, &renamed).unwrap();
        file.rotate(&settings);
        file.write(b"c\n", &settings);
        assert_eq!((content(renamed), content(path)), ("a\nb\n".into(), "c\n".into()));
    }

    #[test]
    fn a_device_that_is_full_is_counted_and_stops_nobody() {
        let file = LogFile::default();
        file.open(Path::new("/dev/full")).unwrap();
        file.write(b"a\n", &Settings::default());
        let figures = file.figures();
        assert_eq!(figures.writes_failed, 1);
        assert!(figures.last_error.contains("space"), "{}", figures.last_error);
    }
}

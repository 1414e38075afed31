//! The file of `--pid-file`: the id of the server's process, for programs that watch or stop the server.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file with this process's id. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file. A file that is there already is replaced: a server that was killed left it. Readers
    /// see the old contents or the new, because the new file is written beside it and renamed.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub(crate) fn write(path: &Path) -> io::Result<PidFile> {
        let id = std::process::id();
        let mut temporary = path.as_os_str().to_os_string();
        temporary.push(format!(".{id}"));
        let written =
            write_new(Path::new(&temporary), &format!("{id}\n")).and_then(|()| fs::rename(&temporary, path));
        if let Err(error) = written {
            // There may be no such file, and the first error says more.
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        Ok(PidFile(path.to_path_buf()))
    }
}

/// Writes a file that the server's group may read, whatever the umask, and others may not.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o640))?;
    file.write_all(text.as_bytes())
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another server may have replaced the file since.
        let own = fs::read_to_string(&self.0).is_ok_and(|text| text.trim() == std::process::id().to_string());
        if own {
            // If it cannot be removed, it stays, as it does after a crash.
            let _ = fs::remove_file(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_left_is_replaced_and_another_servers_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latchwork.pid");
        fs::write(&path, "1\n").unwrap();
        let file = PidFile::write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        drop(file);
        assert!(!path.exists());
        let file = PidFile::write(&path).unwrap();
        fs::write(&path, "1\n").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        assert!(PidFile::write(&folder.path().join("none/pid")).is_err());
        // A folder cannot be replaced by a file.
        let path = folder.path().join("pid");
        fs::create_dir(&path).unwrap();
        assert!(PidFile::write(&path).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

//! What a server spends on old versions: memory, files, and what it counts itself.

use crate::driver::socket::Client;
use crate::error::Result;
use crate::experiment::instance::Instance;
use crate::measure::{MEMORY, Process, resident_mib};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(crate) const FILES: &str = "files of old versions, MiB";
const FOLDER: &str = "data folder, MiB";
const MIB: f64 = 1_048_576.0;
/// What `st_blocks` counts in.
const BLOCK_BYTES: f64 = 512.0;

/// Status variables, the names that their figures have, and what the figures count in.
const COUNTERS: [(&str, &str, f64); 4] = [
    ("Latchwork_version_bytes", "old versions in memory, MiB", MIB),
    ("Latchwork_version_file_bytes", "old versions in files, MiB", MIB),
    ("Latchwork_versions_in_files", "old versions in files", 1.0),
    ("Innodb_history_list_length", "length of the history list", 1.0),
];

/// Reads the figures of one server.
pub(crate) struct Costs {
    /// Counters come by a connection that is opened before the updates begin.
    client: Client,
    process: Option<Process>,
    /// The data folder, if the lab started the server.
    data: PathBuf,
}

impl Costs {
    /// `folder` is the one that the server was started in.
    pub(crate) fn new(instance: &Instance, folder: &Path) -> Result<Costs> {
        let client = instance.login.connect()?;
        Ok(Costs { client, process: instance.process(), data: folder.join("data") })
    }

    pub(crate) fn read(&mut self) -> Result<Vec<(String, f64)>> {
        let mut figures = Vec::new();
        let mut add = |name: &str, value: f64| figures.push((name.to_string(), value));
        if let Some(process) = &self.process {
            resident_mib(process).into_iter().for_each(|memory| add(MEMORY, memory));
            let unnamed = match process {
                Process::Other(pid) => bytes_without_names(&descriptors(*pid)),
                _ => 0.0,
            };
            add(FILES, (unnamed + bytes_in(&self.data, &is_undo)) / MIB);
            add(FOLDER, bytes_in(&self.data, &|_| true) / MIB);
        }
        for (variable, name, unit) in COUNTERS {
            let rows = self.client.rows(&format!("SHOW GLOBAL STATUS LIKE '{variable}'"))?;
            let value = rows.first().and_then(|row| row.get(1)?.parse::<f64>().ok());
            value.into_iter().for_each(|value| add(name, value / unit));
        }
        Ok(figures)
    }
}

/// InnoDB's tablespaces of undo, and the system tablespace, which takes it where there are none.
fn is_undo(name: &str) -> bool {
    name.starts_with("undo") || name.starts_with("ibdata")
}

/// The bytes on the device of the files whose names are `wanted`, in a folder and below it.
fn bytes_in(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> f64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path(), wanted),
        Ok(metadata) if wanted(&entry.file_name().to_string_lossy()) => {
            metadata.blocks() as f64 * BLOCK_BYTES
        }
        // Files come and go while a server runs.
        _ => 0.0,
    });
    bytes.sum()
}

/// The descriptors of a process, as files.
fn descriptors(pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The bytes on the device of those open files that no folder lists. Latchwork's files of old versions and of
/// the queue of the purge are such.
fn bytes_without_names(descriptors: &[PathBuf]) -> f64 {
    let mut seen = Vec::new();
    let mut bytes = 0.0;
    for descriptor in descriptors {
        // This follows the link to the open file itself.
        let Ok(metadata) = fs::metadata(descriptor) else { continue };
        let file = (metadata.dev(), metadata.ino());
        if metadata.is_file() && metadata.nlink() == 0 && !seen.contains(&file) {
            seen.push(file);
            bytes += metadata.blocks() as f64 * BLOCK_BYTES;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn files_with_names_and_without_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("tables");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("undo001"), vec![1; 1 << 20]).unwrap();
        fs::write(below.join("t.ibd"), vec![1; 1 << 20]).unwrap();
        assert!(bytes_in(folder.path(), &is_undo) >= MIB);
        assert!(bytes_in(folder.path(), &|_| true) >= 2.0 * MIB);
        let mut unnamed = tempfile::tempfile_in(folder.path()).unwrap();
        unnamed.write_all(&vec![1; 4 << 20]).unwrap();
        unnamed.sync_all().unwrap();
        let files = [unnamed.try_clone().unwrap(), unnamed, File::open(below.join("t.ibd")).unwrap()];
        let paths = files.each_ref().map(|file| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())));
        let bytes = bytes_without_names(&paths);
        assert!((4.0 * MIB..5.0 * MIB).contains(&bytes), "an open file counts once: {bytes}");
        assert!(!descriptors(std::process::id()).is_empty());
    }
}

//! The slow query log: statements that took longer than `long_query_time`. It has MariaDB's form, which
//! `mysqldumpslow` and `pt-query-digest` can read.

use base::sync::Mutex;
use sql::StatementFigures;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(crate) struct SlowLog {
    /// The lines at the beginning of a file, which readers skip.
    head: String,
    /// The open file, if there is one.
    open: Mutex<Option<(PathBuf, File)>>,
}

/// A statement that was slow.
#[derive(Debug)]
pub(crate) struct SlowStatement<'a> {
    pub user: &'a str,
    pub host: &'a str,
    pub connection: u64,
    pub database: Option<&'a str>,
    /// When it ended.
    pub ended: SystemTime,
    pub micros: u64,
    pub figures: StatementFigures,
    pub text: &'a [u8],
}

impl SlowLog {
    /// The log of a server that listens at this port and socket. Port 0 means that it listens at the socket
    /// only.
    pub(crate) fn new(port: u16, socket: &Path) -> SlowLog {
        // Readers expect a path here.
        let head = format!(
            "/latchwork, Version: {}. started with:\nTcp port: {port}  Unix socket: {}\n\
             Time                 Id Command    Argument\n",
            env!("CARGO_PKG_VERSION"),
            socket.display()
        );
        SlowLog { head, open: Mutex::new(None) }
    }

    /// Appends an entry to this file, with one write.
    pub(crate) fn write(&self, path: &Path, statement: &SlowStatement<'_>) -> io::Result<()> {
        let entry = statement.entry();
        let mut open = self.open.lock();
        if open.as_ref().is_none_or(|(now, _)| now != path) {
            *open = None;
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            *open = Some((path.to_path_buf(), file));
        }
        let Some((_, file)) = &mut *open else { return Ok(()) };
        if file.metadata()?.len() == 0 {
            file.write_all(&[self.head.as_bytes(), &entry].concat())
        } else {
            file.write_all(&entry)
        }
    }

    /// FLUSH SLOW LOGS: the file may have been renamed, so the next entry opens it again.
    pub(crate) fn reopen(&self) {
        *self.open.lock() = None;
    }
}

/// A time as these files write it, in UTC: `260229  3:04:05`.
fn short_time(seconds: u64) -> String {
    let utc = crate::log::utc(seconds);
    let hour = utc[11..13].trim_start_matches('0');
    format!(
        "{}{}{} {:>2}{}",
        &utc[2..4],
        &utc[5..7],
        &utc[8..10],
        if hour.is_empty() { "0" } else { hour },
        &utc[13..19]
    )
}

impl SlowStatement<'_> {
    fn entry(&self) -> Vec<u8> {
        let ended = self.ended.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let SlowStatement { host, connection, .. } = self;
        let user = crate::log::printable(self.user);
        // A name with a line break would forge lines.
        let database = self.database.map(crate::log::printable);
        let StatementFigures { rows_sent, rows_examined, lock_micros, .. } = self.figures;
        let mut entry = format!(
            "# Time: {}\n# User@Host: {user}[{user}] @ {host} []\n\
             # Thread_id: {connection}  Schema: {}  QC_hit: No\n\
             # Query_time: {}  Lock_time: {}  Rows_sent: {rows_sent}  Rows_examined: {rows_examined}\n",
            short_time(ended.as_secs()),
            database.as_deref().unwrap_or_default(),
            seconds(self.micros),
            seconds(lock_micros),
        );
        if let Some(database) = &database {
            // Writing into a string does not fail.
            let _ = writeln!(entry, "use {database};");
        }
        let begun = ended.as_micros().saturating_sub(u128::from(self.micros)) / 1_000_000;
        let _ = writeln!(entry, "SET timestamp={begun};");
        let mut entry = entry.into_bytes();
        let text = self.text.trim_ascii_end();
        let text = text.strip_suffix(b";").unwrap_or(text);
        entry.extend_from_slice(&sql::parse::bytes_without_secrets(text));
        entry.extend_from_slice(b";\n");
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_entry_has_mariadbs_form_and_the_file_is_made_anew_after_it_was_renamed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("slow.log");
        let log = SlowLog::new(3306, Path::new("/run/latchwork.sock"));
        let head = concat!(
            "/latchwork, Version: ",
            env!("CARGO_PKG_VERSION"),
            ". started with:\nTcp port: 3306  Unix socket: /run/latchwork.sock\nTime                 Id Command    Argument\n"
        );
        let statement = SlowStatement {
            user: "root",
            host: "localhost",
            connection: 7,
            database: Some("d"),
            ended: UNIX_EPOCH + Duration::from_micros(951_782_402_500_000),
            micros: 1_250_001,
            figures: StatementFigures {
                rows_sent: 1,
                rows_examined: 20,
                lock_micros: 3,
                scanned_whole: true,
            },
            text: b"SELECT 1\nFROM t;\n",
        };
        let entry = "# Time: 000229  0:00:02\n# User@Host: root[root] @ localhost []\n\
                     # Thread_id: 7  Schema: d  QC_hit: No\n\
                     # Query_time: 1.250001  Lock_time: 0.000003  Rows_sent: 1  Rows_examined: 20\n\
                     use d;\nSET timestamp=951782401;\nSELECT 1\nFROM t;\n";
        log.write(&path, &statement).unwrap();
        log.write(&path, &statement).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{head}{entry}{entry}"));
        let renamed = scratch.path().join("slow.log.1");
        std::fs::rename(&path, &renamed).unwrap();
        log.reopen();
        log.write(&path, &statement).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{head}{entry}"));
        let folder = scratch.path().to_path_buf();
        assert!(log.write(&folder, &statement).is_err());
    }
}

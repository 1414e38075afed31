//! The error log: a line for each event, to standard error or to the file of `--log-error`.

use base::sync::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where events for the operator are written.
#[derive(Debug)]
pub struct Log {
    /// `None` is standard error.
    file: Mutex<Option<File>>,
    /// The last storage error, and when it was written.
    storage: Mutex<Option<(String, Instant)>>,
    refusals: Mutex<Refusals>,
}

/// The refused connections of the present minute.
#[derive(Debug, Default)]
struct Refusals {
    since: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Refusals {
    /// Counts a refusal. Returns how many were left out of the minute before, at the begin of a minute, and
    /// whether this one is written.
    fn next(&mut self) -> (u64, bool) {
        let mut left_out = 0;
        if self.since.is_none_or(|since| since.elapsed() >= REPEAT) {
            left_out = self.left_out;
            *self = Refusals { since: Some(Instant::now()), ..Refusals::default() };
        }
        let is_written = self.written < REFUSALS_MAX;
        self.written += u32::from(is_written);
        self.left_out += u64::from(!is_written);
        (left_out, is_written)
    }
}

/// So many refused connections are written in a minute. The others are counted.
const REFUSALS_MAX: u32 = 30;
/// A longer line is cut here, in bytes.
const LINE_BYTES_MAX: usize = 4096;

/// The same storage error is written at most once in this time.
const REPEAT: Duration = Duration::from_secs(60);

impl Log {
    pub fn to_stderr() -> Log {
        Log::on(None)
    }

    /// Appends to a file. If it is missing, it is made, and only the server's user may read it.
    pub fn to_file(path: &Path) -> io::Result<Log> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Log::on(Some(file)))
    }

    fn on(file: Option<File>) -> Log {
        Log { file: Mutex::new(file), storage: Mutex::new(None), refusals: Mutex::default() }
    }

    /// A connection that was refused. Strangers cause these, so only some are written each minute.
    pub(crate) fn refusal(&self, text: &str) {
        let (left_out, is_written) = self.refusals.lock().next();
        if left_out > 0 {
            self.warning(&format!("{left_out} more connection(s) were refused"));
        }
        if is_written {
            self.warning(text);
        }
    }

    pub fn note(&self, text: &str) {
        self.line("Note", text);
    }

    pub fn warning(&self, text: &str) {
        self.line("Warning", text);
    }

    pub fn error(&self, text: &str) {
        self.line("ERROR", text);
    }

    /// An error of the storage, such as a damaged page or a failing device. Each statement that meets it
    /// reports it, but the log repeats it only once a minute.
    pub fn storage_error(&self, text: &str) {
        let mut last = self.storage.lock();
        let repeats = last.as_ref().is_some_and(|(said, when)| said == text && when.elapsed() < REPEAT);
        if !repeats {
            *last = Some((text.to_string(), Instant::now()));
            self.error(text);
        }
    }

    fn line(&self, level: &str, text: &str) {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let line = format!("{} [{level}] {}\n", utc(seconds), printable(text));
        let mut file = self.file.lock();
        // If the log itself cannot be written, there is no other place to report that.
        let _ = match &mut *file {
            Some(file) => file.write_all(line.as_bytes()),
            None => io::stderr().write_all(line.as_bytes()),
        };
    }
}

/// The text on one line, without characters that a terminal or a reader of logs would act on.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LINE_BYTES_MAX));
    for character in text.chars() {
        if line.len() >= LINE_BYTES_MAX {
            line.push_str("...");
            break;
        }
        match character {
            '\n' => line.push(' '),
            control if control.is_control() => line.extend(control.escape_default()),
            other => line.push(other),
        }
    }
    line
}

/// `2026-11-21T10:12:45Z` from seconds since 1970.
pub(crate) fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01. Years begin in March here, so that the leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_error_that_repeats_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::to_file(&path).unwrap();
        for text in ["Corrupt page 1", "Corrupt page 1", "Corrupt page 2"] {
            log.storage_error(text);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn seconds_print_as_the_date_they_are() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(utc(1_795_255_965), "2026-11-21T10:12:45Z");
    }
}

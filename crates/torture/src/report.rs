//! What is said on the way, and what stays of a run.

use crate::simulation::Tally;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// A line on standard error that is written anew now and then.
#[derive(Debug)]
pub(crate) struct Progress {
    is_terminal: bool,
    shown: Instant,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { is_terminal: std::io::stderr().is_terminal(), shown: Instant::now() }
    }

    pub(crate) fn show(&mut self, line: &str) {
        let pause = Duration::from_secs(if self.is_terminal { 1 } else { 60 });
        if self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        let mut out = std::io::stderr().lock();
        // Nobody may be listening.
        let _ = if self.is_terminal {
            write!(out, "\r\x1b[2K{line}").and_then(|()| out.flush())
        } else {
            writeln!(out, "{line}")
        };
    }

    /// Clears the line before something else is said.
    pub(crate) fn clear(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) time: Duration,
    pub(crate) histories: u64,
    pub(crate) tally: Tally,
    pub(crate) faults: u64,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Run { seed, time, histories, tally, faults } = self;
        let cuts = tally.cuts + tally.cuts_of_recoveries;
        write!(
            f,
            "seed {seed}, {:.0} s: {histories} histories, {} steps, {} events, {cuts} cuts ({} of them in \
             recoveries), {} errors of the device, {} restarts, {faults} faults",
            time.as_secs_f64(),
            tally.steps,
            tally.events,
            tally.cuts_of_recoveries,
            tally.device_errors,
            tally.restarts,
        )
    }
}

impl Run {
    /// Appends the line of a table.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn append(&self, file: &Path) -> std::io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let line = format!(
            "| {} | {} | {} | {:.2} | {} | {} | {} |\n",
            date(now.as_secs() / 86_400),
            commit(),
            self.seed,
            self.time.as_secs_f64() / 3_600.0,
            self.histories,
            self.tally.cuts + self.tally.cuts_of_recoveries,
            self.faults
        );
        std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
    }
}

/// The sources' commit, where there are sources.
fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.and_then(|text| String::from_utf8(text).ok()).map(|text| text.trim().to_string());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_string())
}

/// The date of a day since 1970-01-01, in UTC. Source: Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms".
fn date(day: u64) -> String {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let dates = [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_780, "2026-11-23")];
        dates.iter().for_each(|(day, text)| assert_eq!(date(*day), *text));
    }
}

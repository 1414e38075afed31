//! Progress on stderr. On a terminal it is a bar that rewrites its line; elsewhere it is a plain line now and
//! then.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const BAR_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(5);
const BAR_CHARACTERS: usize = 24;

#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    quiet: bool,
    stage: String,
    total: u64,
    started: Instant,
    shown: Option<Instant>,
}

impl Progress {
    pub(crate) fn stderr() -> Progress {
        Progress::new(std::io::stderr().is_terminal(), false)
    }

    /// Shows nothing: for tests.
    #[cfg(test)]
    pub(crate) fn quiet() -> Progress {
        Progress::new(false, true)
    }

    fn new(terminal: bool, quiet: bool) -> Progress {
        Progress { terminal, quiet, stage: String::new(), total: 0, started: Instant::now(), shown: None }
    }

    /// Starts a stage of `total` steps.
    pub(crate) fn stage(&mut self, name: impl Into<String>, total: u64) {
        self.finish();
        self.stage = name.into();
        self.total = total;
        self.started = Instant::now();
        self.shown = None;
        if !self.terminal {
            self.line(&format!("{} ...", self.stage));
            self.shown = Some(Instant::now());
        }
    }

    /// `done` steps of the stage are done; `detail` says what happens now.
    pub(crate) fn at(&mut self, done: u64, detail: &str) {
        let interval = if self.terminal { BAR_INTERVAL } else { LINE_INTERVAL };
        if self.quiet || self.shown.is_some_and(|shown| shown.elapsed() < interval) {
            return;
        }
        self.shown = Some(Instant::now());
        let text = render(&self.stage, done, self.total, self.started.elapsed(), detail);
        if self.terminal {
            let bar = bar(done, self.total);
            self.write(&format!("\r\x1b[2K{bar} {text}"));
        } else {
            self.line(&text);
        }
    }

    /// Ends the stage and leaves a clean line.
    pub(crate) fn finish(&mut self) {
        if self.terminal && self.shown.is_some() {
            self.write("\r\x1b[2K");
        }
        self.shown = None;
    }

    /// A message that stays.
    pub(crate) fn note(&mut self, text: &str) {
        self.finish();
        self.line(text);
    }

    fn line(&self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    fn write(&self, text: &str) {
        if !self.quiet {
            // A closed stderr is no reason to stop measuring.
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn bar(done: u64, total: u64) -> String {
    let filled = if total == 0 { 0 } else { (done.min(total) as usize * BAR_CHARACTERS) / total as usize };
    format!("[{}{}]", "#".repeat(filled), "-".repeat(BAR_CHARACTERS - filled))
}

fn render(stage: &str, done: u64, total: u64, elapsed: Duration, detail: &str) -> String {
    let percent = (done.min(total) * 100).checked_div(total).unwrap_or(0);
    let left = if done == 0 || done >= total {
        String::new()
    } else {
        let seconds = elapsed.as_secs_f64() / done as f64 * (total - done) as f64;
        format!(", {} left", duration(Duration::from_secs_f64(seconds)))
    };
    let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
    format!("{stage} {percent} %{left}{detail}")
}

/// `45 s`, `3 min 05 s`, `2 h 10 min`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tells_share_and_time_left() {
        let text = render("measuring", 25, 100, Duration::from_secs(10), "32, 8 threads");
        assert_eq!(text, "measuring 25 %, 30 s left: 32, 8 threads");
        assert_eq!(render("loading", 0, 0, Duration::ZERO, ""), "loading 0 %");
        assert_eq!(bar(50, 100), format!("[{}{}]", "#".repeat(12), "-".repeat(12)));
    }

    #[test]
    fn durations_are_told_in_the_units_people_use() {
        assert_eq!(duration(Duration::from_secs(59)), "59 s");
        assert_eq!(duration(Duration::from_secs(65)), "1 min 05 s");
        assert_eq!(duration(Duration::from_secs(7_800)), "2 h 10 min");
    }
}

//! How far a long statement is: other sessions see it in the process list, and its own client is told.

use crate::host::Interrupt;
use crate::progress::{Progress, WHOLE};
use crate::{ResultSink, Session, SqlError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tells how far a statement is, while it lives.
pub(crate) struct ProgressMeter<'s> {
    interrupt: Arc<Interrupt>,
    sink: &'s mut dyn ResultSink,
    now: Progress,
    what: &'static str,
    /// How long after a report the next one may come. `None` if there are to be none.
    every: Option<Duration>,
    /// When the next report may come.
    next: Instant,
}

impl<'s> ProgressMeter<'s> {
    /// A statement of so many stages. It is in none of them yet.
    pub(crate) fn new(session: &Session, stages: usize, sink: &'s mut dyn ResultSink) -> ProgressMeter<'s> {
        let own = session.variables.values().unsigned("progress_report_time");
        let of_all = session.instance.globals.values().unsigned("progress_report_time");
        let is_on = own > 0 && of_all > 0;
        ProgressMeter {
            interrupt: session.interrupt.clone(),
            sink,
            now: Progress { stage: 0, stages: stages.min(127) as u8, done: 0 },
            what: "",
            every: is_on.then(|| Duration::from_secs(own.max(of_all))),
            next: Instant::now(),
        }
    }

    /// The next stage begins: it does `what`.
    pub(crate) fn next_stage(&mut self, what: &'static str) {
        self.now = Progress { stage: (self.now.stage + 1).min(self.now.stages), done: 0, ..self.now };
        self.what = what;
        self.interrupt.note_progress(self.now);
    }

    /// So much of the stage is done. To be called every few thousand rows.
    ///
    /// # Errors
    /// Those of sending, and 1317 and 1927 after KILL.
    pub(crate) fn note(&mut self, done: u64, whole: u64) -> Result<(), SqlError> {
        let share = u128::from(done.min(whole)) * u128::from(WHOLE) / u128::from(whole.max(1));
        self.now.done = share as u32;
        self.interrupt.note_progress(self.now);
        self.interrupt.check()?;
        let Some(every) = self.every else { return Ok(()) };
        let now = Instant::now();
        if now >= self.next {
            self.next = now + every;
            self.sink.progress(self.now, self.what)?;
        }
        Ok(())
    }
}

impl Drop for ProgressMeter<'_> {
    fn drop(&mut self) {
        self.interrupt.note_progress(Progress::default());
    }
}

//! Sessions that update single rows without a pause, as sysbench's `oltp_update_index` and
//! `oltp_update_non_index` do in turn.

use crate::driver::oltp::TRY_AGAIN;
use crate::driver::socket::{Client, Login, explained};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::Recorder;
use crate::workload::oltp::Step;
use crate::workload::random_c;
use base::random::{Random, Zipf};
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Arc, Mutex, thread};
use std::time::{Duration, Instant};
use wire::value::WireValue;

/// How often the watcher looks whether a session has failed.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// The skew of the keys by Zipf.
const SKEW: f64 = 0.99;
/// A prime: ranks times it, modulo the rows, are other rows each.
const SCATTERING: u64 = 2_147_483_647;

/// Which rows are updated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keys {
    Uniform,
    /// A few rows again and again. They lie all over the table.
    Zipf,
}

impl Keys {
    pub(crate) const ALL: [Keys; 2] = [Keys::Uniform, Keys::Zipf];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Keys::Uniform => "uniform",
            Keys::Zipf => "zipf",
        }
    }
}

/// Draws the ids of rows.
#[derive(Clone)]
pub(crate) struct Ids {
    rows: u32,
    zipf: Option<Arc<Zipf>>,
}

impl Ids {
    pub(crate) fn new(keys: Keys, rows: u32) -> Ids {
        Ids { rows, zipf: (keys == Keys::Zipf).then(|| Arc::new(Zipf::new(rows, SKEW))) }
    }

    /// From 1 to the number of rows.
    fn draw(&self, random: &mut Random) -> u32 {
        match &self.zipf {
            None => 1 + random.below(self.rows),
            Some(zipf) => 1 + (u64::from(zipf.draw(random)) * SCATTERING % u64::from(self.rows)) as u32,
        }
    }
}

/// A connection with its two statements.
pub(crate) struct Session {
    target: String,
    client: Client,
    statements: [(u32, String); 2],
    ids: Ids,
    random: Random,
    turn: usize,
    /// Updates of `k` so far. Each has added one to a row's `k`.
    pub added: u64,
}

impl Session {
    pub(crate) fn connect(login: &Login, ids: &Ids, seed: u64, number: u32) -> Result<Session> {
        let mut client = login.connect()?;
        let mut prepare = |step: Step| {
            let sql = step.sql();
            let prepared = client.connection().prepare(&sql);
            let prepared = prepared.map_err(|error| explained(&login.target, &sql, error))?;
            Ok::<_, Error>((prepared.id, sql))
        };
        let statements = [prepare(Step::IndexUpdate)?, prepare(Step::OtherUpdate)?];
        Ok(Session {
            target: login.target.clone(),
            client,
            statements,
            ids: ids.clone(),
            random: Random::new(seed, number.into()),
            turn: 0,
            added: 0,
        })
    }

    fn work(&mut self, counts: &Counts, number: usize) -> Result<()> {
        // Also when the session fails or panics: the watcher must not wait until the end of the run.
        let _stop = Stop(counts);
        let mut started = Instant::now();
        while !counts.is_stopped() {
            let is_done = self.update()?;
            let ended = Instant::now();
            if is_done {
                counts.recorders[number].lock().query(ended - started, 1);
            }
            started = ended;
        }
        Ok(())
    }

    /// Updates a row. False if the server gave the statement up, as by a deadlock.
    fn update(&mut self) -> Result<bool> {
        self.turn = 1 - self.turn;
        let id = WireValue::UInt(self.ids.draw(&mut self.random).into());
        let c = random_c(&mut self.random);
        let (statement, sql) = &self.statements[self.turn];
        let connection = self.client.connection();
        let result = match self.turn {
            0 => connection.execute(*statement, &[id]),
            _ => connection.execute(*statement, &[WireValue::Text(&c), id]),
        };
        match result.map_err(|error| explained(&self.target, sql, error)) {
            Ok(_) => {
                self.added += u64::from(self.turn == 0);
                Ok(true)
            }
            Err(Error::Sql { code, .. }) if TRY_AGAIN.contains(&code) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What the sessions have done since somebody asked last.
pub(crate) struct Counts {
    recorders: Vec<Mutex<Recorder>>,
    stopped: AtomicBool,
}

impl Counts {
    fn is_stopped(&self) -> bool {
        // ORDER: a flag on its own; what sessions did is published by their mutexes and by joining them.
        self.stopped.load(Ordering::Relaxed)
    }

    /// Updates and latencies since the last call.
    pub(crate) fn take(&self) -> Recorder {
        let mut total = Recorder::default();
        self.recorders.iter().for_each(|recorder| total.merge(&std::mem::take(&mut *recorder.lock())));
        total
    }

    /// # Errors
    /// An interrupt, and sessions that have ended before the time.
    pub(crate) fn wait_until(&self, deadline: Instant, interrupt: &Interrupt) -> Result<()> {
        while Instant::now() < deadline {
            if self.is_stopped() {
                return Err(Error::Driver { driver: "builtin", why: "a session ended early".to_string() });
            }
            interrupt.sleep_until(deadline.min(Instant::now() + LOOK_INTERVAL))?;
        }
        Ok(())
    }
}

/// Stops all sessions when it is dropped.
struct Stop<'a>(&'a Counts);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        // ORDER: see `Counts::is_stopped`.
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}

/// Runs the sessions, each in a thread of its own, for as long as `watch` takes.
///
/// # Errors
/// That of a session which failed, or that of `watch`.
pub(crate) fn run(sessions: &mut [Session], watch: impl FnOnce(&Counts) -> Result<()>) -> Result<()> {
    let recorders = sessions.iter().map(|_| Mutex::new(Recorder::default())).collect();
    let counts = Counts { recorders, stopped: AtomicBool::new(false) };
    thread::scope(|scope| {
        let counts = &counts;
        let sessions = sessions.iter_mut().enumerate();
        let handles: Vec<_> =
            sessions.map(|(number, session)| scope.spawn(move || session.work(counts, number))).collect();
        let watched = {
            let _stop = Stop(counts);
            watch(counts)
        };
        let panicked = || Error::Driver { driver: "builtin", why: "a client thread panicked".to_string() };
        let worked: Vec<Result<()>> =
            handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| Err(panicked()))).collect();
        worked.into_iter().collect::<Result<()>>().and(watched)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_turn_and_a_few_have_most_of_them() {
        for keys in Keys::ALL {
            let (ids, mut random) = (Ids::new(keys, 1_000), Random::new(303, 0));
            let mut counts = [0u32; 1_000];
            for _ in 0..100_000 {
                counts[ids.draw(&mut random) as usize - 1] += 1;
            }
            let touched = counts.iter().filter(|count| **count > 0).count();
            counts.sort_unstable();
            let hottest: u32 = counts[990..].iter().sum();
            let expected = if keys == Keys::Zipf { 30_000..50_000 } else { 1_000..2_000 };
            assert!(expected.contains(&hottest) && touched > 950, "{keys:?}: {hottest} {touched}");
        }
    }
}

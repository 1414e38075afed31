//! Runs one thread a client and combines what they recorded.

use super::Window;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::{Phase, Phases, Process, Recorder, Usage};
use crate::results::Sample;
use base::sync::thread;
use std::time::{Duration, Instant};

/// The processes whose resources a sample reports, and the latch waits so far, if the target counts them.
pub(crate) struct Observed<'a> {
    pub server: Option<Process>,
    pub client: Option<Process>,
    pub latch_waits: &'a dyn Fn() -> Option<u64>,
}

/// A reading of everything that is observed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    at: Instant,
    server: Option<Usage>,
    client: Option<Usage>,
    latch_waits: Option<u64>,
}

impl Observed<'_> {
    pub(crate) fn read(&self) -> Reading {
        Reading {
            at: Instant::now(),
            latch_waits: (self.latch_waits)(),
            server: self.server.as_ref().and_then(Usage::of),
            client: self.client.as_ref().and_then(Usage::of),
        }
    }
}

/// Stack of a thread. It is small, since a run may start thousands of threads.
const STACK_BYTES: usize = 512 << 10;

/// Runs `workers`, each in a thread of its own, from warm-up to the end of the measured window. A worker gets
/// the phases to look at after every query and returns what it recorded.
pub(crate) fn run<W>(
    workers: Vec<W>,
    window: &Window,
    observed: &Observed<'_>,
    interrupt: &Interrupt,
) -> Result<Sample>
where
    W: FnOnce(&Phases) -> Result<Recorder> + Send,
{
    let phases = Phases::default();
    let (conducted, recorders) = thread::scope(|scope| {
        let mut handles = Vec::with_capacity(workers.len());
        let mut failed_to_start = None;
        for (number, worker) in workers.into_iter().enumerate() {
            let phases = &phases;
            let work = move || {
                // Also when the worker panics: the others must not go on until the end of the window.
                let guard = StopUnlessDone { phases, done: false };
                let result = worker(phases);
                let mut guard = guard;
                guard.done = result.is_ok();
                result
            };
            let builder = thread::Builder::new().name(format!("client {number}")).stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, work) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    phases.stop();
                    failed_to_start = Some(Error::io("cannot start a client thread")(error));
                    break;
                }
            }
        }
        let conducted = match failed_to_start {
            Some(error) => Err(error),
            None => phases.conduct(window.warmup, window.measure, interrupt, || observed.read()),
        };
        let recorders: Vec<Result<Recorder>> =
            handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| Err(panicked()))).collect();
        (conducted, recorders)
    });
    let (length, before, after) = conducted?;
    let mut total = Recorder::default();
    for recorder in recorders {
        total.merge(&recorder?);
    }
    Ok(sample(&total, window.round, length, &before, &after))
}

/// A loop for workers: `query` runs one query and gives the number of its rows.
pub(crate) fn repeat(phases: &Phases, mut query: impl FnMut() -> Result<u64>) -> Result<Recorder> {
    let mut recorder = Recorder::default();
    let mut started = Instant::now();
    loop {
        let rows = query()?;
        let ended = Instant::now();
        match phases.now() {
            Phase::Warming => {}
            Phase::Measuring => recorder.query(ended - started, rows),
            Phase::Stopped => return Ok(recorder),
        }
        started = ended;
    }
}

/// Makes a sample of counts and readings.
pub(crate) fn sample(
    total: &Recorder,
    round: u32,
    window: Duration,
    before: &Reading,
    after: &Reading,
) -> Sample {
    let seconds = window.as_secs_f64();
    let per_second = total.queries as f64 / seconds;
    let spent = |from: Option<Usage>, to: Option<Usage>| from.zip(to).and_then(|(from, to)| from.until(&to));
    let server = spent(before.server, after.server);
    let client = spent(before.client, after.client);
    let us_per_query = |cpus: f64| (per_second > 0.0).then(|| cpus * 1e6 / per_second);
    let between = (after.at - before.at).as_secs_f64();
    Sample {
        round,
        value: per_second,
        seconds,
        queries: total.queries,
        rows: total.rows,
        latency: total.latency(),
        server_cpu_us_per_query: server.and_then(|spent| us_per_query(spent.cpus)),
        client_cpu_us_per_query: client.and_then(|spent| us_per_query(spent.cpus)),
        server_cpus: server.map(|spent| spent.cpus),
        client_cpus: client.map(|spent| spent.cpus),
        context_switches_per_s: server.map(|spent| spent.context_switches_per_s),
        latch_waits_per_s: before
            .latch_waits
            .zip(after.latch_waits)
            .map(|(before, after)| after.saturating_sub(before) as f64 / between),
        extra: Vec::new(),
    }
}

struct StopUnlessDone<'a> {
    phases: &'a Phases,
    done: bool,
}

impl Drop for StopUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.phases.stop();
        }
    }
}

fn panicked() -> Error {
    Error::Driver { driver: "builtin", why: "a client thread panicked".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(measure: Duration) -> Window {
        Window { warmup: Duration::ZERO, measure, round: 3 }
    }

    const OBSERVED: Observed<'_> =
        Observed { server: Some(Process::Own), client: None, latch_waits: &|| Some(0) };

    #[test]
    fn queries_of_all_workers_are_counted_over_the_window() {
        let worker = |phases: &Phases| {
            repeat(phases, || {
                std::thread::sleep(Duration::from_micros(100));
                Ok(2)
            })
        };
        // On a busy machine the workers may come too late for a short window.
        let sample = (0..10)
            .map(|doublings| {
                let window = window(Duration::from_millis(30 << doublings));
                run(vec![worker, worker], &window, &OBSERVED, &Interrupt::default()).unwrap()
            })
            .find(|sample| sample.queries > 0)
            .unwrap();
        assert_eq!(sample.round, 3);
        assert_eq!(sample.rows, sample.queries * 2);
        assert_eq!(sample.value, sample.queries as f64 / sample.seconds);
        assert!(sample.latency.unwrap().p50 >= 100.0);
        assert!(sample.server_cpus.is_some() && sample.client_cpus.is_none());
        assert_eq!(sample.latch_waits_per_s, Some(0.0));
    }

    #[test]
    fn a_failing_or_panicking_worker_ends_the_sample_for_all() {
        type Worker = Box<dyn FnOnce(&Phases) -> Result<Recorder> + Send>;
        let fine = || -> Worker {
            Box::new(|phases| {
                repeat(phases, || {
                    std::thread::yield_now();
                    Ok(1)
                })
            })
        };
        let failing: Worker = Box::new(|_| Err(Error::Usage("no luck".to_string())));
        let panicking: Worker = Box::new(|_| panic!("on purpose"));
        let ages = window(Duration::from_secs(3_600));
        let result = run(vec![fine(), failing], &ages, &OBSERVED, &Interrupt::default());
        assert!(matches!(result, Err(Error::Usage(_))));
        let result = run(vec![fine(), panicking], &ages, &OBSERVED, &Interrupt::default());
        assert!(matches!(result, Err(Error::Driver { .. })));
    }
}

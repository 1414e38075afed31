//! Runs workers that each come to an end. All begin at once; the time until the last one is done counts.

use super::socket::{Client, Socket};
use super::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::Recorder;
use crate::results::Sample;
use base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use base::sync::thread;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// How often the interrupt is looked at, and progress told.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Handles of connections, to end a statement that takes too long after an interrupt.
#[derive(Default, Debug)]
pub(crate) struct Lines(Vec<Socket>);

impl Lines {
    pub(crate) fn add(&mut self, client: &mut Client) -> Result<()> {
        let socket = client.connection().stream().try_clone();
        self.0.push(socket.map_err(Error::io("cannot copy a socket"))?);
        Ok(())
    }

    pub(crate) fn hang_up(&self) {
        self.0.iter().for_each(Socket::hang_up);
    }
}

/// When it is dropped, counts a worker that is done, also one that panicked.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        // ORDER: what workers did is published by joining them.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `workers`, each in a thread of its own. Threads and connections must last until the processes have
/// been observed: a thread that ends takes its counters with it, and so does a server's thread whose
/// connection ends. So the threads wait, and a worker returns what has to stay open. `watch` is called while
/// they run. The sample's value is the number of seconds.
pub(crate) fn run<W, K>(
    workers: Vec<W>,
    lines: &Lines,
    round: u32,
    observed: &Observed<'_>,
    interrupt: &Interrupt,
    watch: &mut dyn FnMut(),
) -> Result<Sample>
where
    W: FnOnce() -> Result<(Recorder, K)> + Send,
    K: Send,
{
    let gate = Barrier::new(workers.len() + 1);
    let (done, looked_at) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (gate, done, looked_at) = (&gate, &done, &looked_at);
        let handles: Vec<_> = workers
            .into_iter()
            .map(|worker| {
                scope.spawn(move || {
                    let counted = Done(done);
                    gate.wait();
                    let started = Instant::now();
                    let result = worker();
                    let ended = Instant::now();
                    drop(counted);
                    // ORDER: a flag on its own.
                    while !looked_at.load(Ordering::Relaxed) {
                        std::thread::sleep(LOOK_INTERVAL);
                    }
                    (result, started, ended)
                })
            })
            .collect();
        let before = observed.read();
        gate.wait();
        // ORDER: see `Done`.
        while done.load(Ordering::Relaxed) < handles.len() {
            if interrupt.is_raised() {
                lines.hang_up();
            }
            watch();
            std::thread::sleep(LOOK_INTERVAL);
        }
        let after = observed.read();
        // ORDER: a flag on its own.
        looked_at.store(true, Ordering::Relaxed);
        let mut total = Recorder::default();
        // The workers read the clock themselves: this thread may get a processor only long after they began.
        let (mut first, mut last): (Option<Instant>, Option<Instant>) = (None, None);
        for handle in handles {
            let panicked =
                || Error::Driver { driver: "builtin", why: "a client thread panicked".to_string() };
            let (result, started, ended) = handle.join().map_err(|_| panicked())?;
            let (recorder, _) = result?;
            total.merge(&recorder);
            first = Some(first.map_or(started, |first| first.min(started)));
            last = last.max(Some(ended));
        }
        interrupt.check()?;
        let took = last.zip(first).map_or(Duration::ZERO, |(last, first)| last - first);
        let sample = workers::sample(&total, round, took, &before, &after);
        Ok(Sample { value: took.as_secs_f64(), ..sample })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Process;

    const NOTHING: Observed<'_> = Observed { server: None, client: None, latch_waits: &|| None };

    #[test]
    fn the_last_worker_decides_and_a_failed_one_fails_the_sample() {
        let worker = |milliseconds: u64| {
            move || {
                let started = Instant::now();
                std::thread::sleep(Duration::from_millis(milliseconds));
                let mut recorder = Recorder::default();
                recorder.query(started.elapsed(), 1);
                Ok((recorder, ()))
            }
        };
        let busy = |_| {
            move || {
                let started = Instant::now();
                while started.elapsed() < Duration::from_millis(30) {
                    std::hint::spin_loop();
                }
                Ok((Recorder::default(), ()))
            }
        };
        let own = Observed { server: Some(Process::Own), client: None, latch_waits: &|| None };
        let busy = (0..2).map(busy).collect();
        let sample = run(busy, &Lines::default(), 0, &own, &Interrupt::default(), &mut || ()).unwrap();
        assert!(sample.server_cpus.unwrap() > 0.0, "threads that are done are counted");
        let mut looks = 0;
        let workers = vec![worker(1), worker(40)];
        let watch = &mut || looks += 1;
        let sample = run(workers, &Lines::default(), 2, &NOTHING, &Interrupt::default(), watch).unwrap();
        assert!(sample.value >= 0.04 && (sample.round, sample.queries, sample.rows) == (2, 2, 2));
        assert!(looks > 0);
        let failing = || Err::<(Recorder, ()), _>(Error::Usage("no luck".to_string()));
        let result = run(vec![failing], &Lines::default(), 0, &NOTHING, &Interrupt::default(), &mut || ());
        assert!(matches!(result, Err(Error::Usage(_))));
    }
}

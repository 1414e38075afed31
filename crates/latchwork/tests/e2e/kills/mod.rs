//! SIGKILL under load, at random moments, many times on the same directory. What was acknowledged must be
//! there, and nothing may be there in part.
//!
//! `LATCHWORK_KILL_ROUNDS=n` sets the number of kills, and `LATCHWORK_SEED=n` what the sessions intend.

mod audit;
mod bank;
mod clerks;
mod ddl;
mod huge;
mod sysbench;

use crate::support::latchwork::run;
use crate::support::target::{Server, Target};
use crate::support::{text, wait_until};
use base::random::Random;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The default number of rounds. Each takes a few seconds.
const ROUNDS: u64 = 5;
/// The longest time between the start of the load, or of a restart, and the kill.
const DELAY_MAX: Duration = Duration::from_millis(300);

fn number_from(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
        Err(_) => default,
    }
}

fn rounds() -> u64 {
    number_from("LATCHWORK_KILL_ROUNDS", ROUNDS)
}

fn random() -> Random {
    Random::new(number_from("LATCHWORK_SEED", 1), 0)
}

/// What the sessions of one round share with the thread that kills.
#[derive(Debug, Default)]
struct Round {
    /// The number of acknowledged commits.
    done: AtomicU64,
    killed: AtomicBool,
}

impl Round {
    fn acknowledged(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// True if a lost connection is the effect of the kill.
    fn lost(&self, statement: &str, error: &dyn std::fmt::Display) {
        assert!(self.killed.load(Ordering::SeqCst), "{statement}: {error}, and nobody had killed the server");
    }

    /// Waits for a random amount of work, and kills.
    fn kill(&self, mut server: Server, random: &mut Random) {
        let wanted = [0, 1, 50, 500][random.below(4) as usize];
        // On a slow device the wait may end first. Then there is less to find after the restart.
        wait_until(|| {
            assert!(server.is_running(), "the server has ended by itself");
            self.done.load(Ordering::Relaxed) >= wanted
        });
        std::thread::sleep(some_of(DELAY_MAX, random));
        self.killed.store(true, Ordering::SeqCst);
        server.kill();
    }
}

fn some_of(time: Duration, random: &mut Random) -> Duration {
    Duration::from_micros(random.below_u64(time.as_micros() as u64 + 1))
}

/// Starts the server after a kill. Sometimes the restart is killed once first.
#[derive(Debug, Default)]
struct Restarts {
    /// How long the last restart took, so that kills happen in the middle of the next one.
    took: Duration,
}

impl Restarts {
    fn restart(&mut self, target: Target, folder: &Path, random: &mut Random) -> Server {
        let cache = if random.below(2) == 0 { vec![target.small_cache()] } else { Vec::new() };
        for _ in 0..random.below(3) {
            let server = target.begin_again(folder, &cache);
            std::thread::sleep(some_of(self.took, random));
            server.kill();
        }
        let begin = Instant::now();
        let server = target.start_again(folder, &cache);
        self.took = begin.elapsed();
        server
    }
}

/// Stops the server in order, checks the directory if there is a program for that, and starts the server
/// again.
fn stop_and_check(target: Target, server: Server, folder: &Path) -> Server {
    server.stop();
    if target == Target::Latchwork {
        let data = folder.join("data");
        let verdict = run(&["check", data.to_str().unwrap()]);
        assert!(verdict.status.success(), "{}{}", text(&verdict.stdout), text(&verdict.stderr));
    }
    target.start_again(folder, &[])
}

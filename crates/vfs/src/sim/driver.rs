//! The loop around a crash test: run, stop, look; a step later, again.

use super::{Cut, Event, Plan, SimVfs};
use base::sync::thread;
use std::ops::Range;

/// Where [`every_cut`] stops the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Points {
    /// After each event. Thorough, and its time grows with the square of the workload.
    Events,
    /// Before each sync: a sample of the states between two syncs is then drawn by the seeds.
    Syncs,
}

/// Runs `workload` again and again on an empty [`SimVfs`], stopped one point later each time until it runs to
/// its end; after each run, `check` sees what the workload returned (what it may rely on, usually) and the
/// file system that a crash left, once for each of `seeds`. Gives the number of runs.
///
/// The workload must come to an end, whatever fails. Before the panic of a `check` a line says the point and
/// the seed. With them the case can be run alone:
///
/// ```
/// # use latchwork_vfs::sim::{Cut, Plan, SimVfs};
/// # fn workload(_: &SimVfs) {}
/// let vfs = SimVfs::with_plan(Plan { cut: Some(Cut::AfterEvent(17)), ..Plan::default() });
/// workload(&vfs);
/// let left = vfs.crash(3);
/// ```
pub fn every_cut<R>(
    points: Points,
    seeds: Range<u64>,
    mut workload: impl FnMut(&SimVfs) -> R,
    mut check: impl FnMut(&R, SimVfs),
) -> u64 {
    let mut runs = 0;
    loop {
        let cut = match points {
            Points::Events => Cut::AfterEvent(runs),
            Points::Syncs => Cut::BeforeSync(runs + 1),
        };
        runs += 1;
        let vfs = SimVfs::with_plan(Plan { cut: Some(cut), ..Plan::default() });
        let result = workload(&vfs);
        for seed in seeds.clone() {
            let _context = Context { cut, seed, last: vfs.last_event() };
            check(&result, vfs.crash(seed));
        }
        if !vfs.stopped() {
            return runs;
        }
    }
}

/// Prints which crash it was if its check panics.
struct Context {
    cut: Cut,
    seed: u64,
    last: Option<Event>,
}

impl Drop for Context {
    fn drop(&mut self) {
        if thread::panicking() {
            let last = self.last.as_ref().map_or("nothing".to_string(), Event::to_string);
            eprintln!("crash {:?}, seed {}, after {last}", self.cut, self.seed);
        }
    }
}

//! Statements with a limit of time, and the thread that ends them.

extern crate latchwork_orderings as base;

#[allow(dead_code, reason = "models need a part of each source")]
#[path = "../../../../crates/sql/src/deadline.rs"]
mod deadline;

use base::runner::{Canary, Excused, Model};
use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
use base::sync::{Arc, Condvar, Mutex, thread};
use deadline::{Alarm, Deadline, NEVER};
use std::process::ExitCode;

/// A session and the timer, as in `session/timer.rs`. Time is what the thread sleeps until.
struct Timer {
    deadline: Deadline,
    alarm: Alarm,
    is_over: Mutex<bool>,
    bell: Condvar,
    /// The statement that is under way has been ended.
    raised: AtomicBool,
    ended: (Mutex<bool>, Condvar),
}

/// What a canary does in another way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// The thread announces what it expects only after it has looked.
    Announcement,
    /// A statement is ended after the deadline's latch was given back.
    Latch,
    /// A statement asks when the thread wakes before it sets its deadline.
    Order,
}

impl Timer {
    fn new() -> Arc<Timer> {
        Arc::new(Timer {
            deadline: Deadline::default(),
            alarm: Alarm::new(),
            is_over: Mutex::new(false),
            bell: Condvar::new(),
            raised: AtomicBool::new(false),
            ended: (Mutex::new(false), Condvar::new()),
        })
    }

    fn begin(&self, end: u64, wrong: Wrong) {
        let asked = self.alarm.rings_by(end);
        self.deadline.set(end);
        let rings = if wrong == Wrong::Order { asked } else { self.alarm.rings_by(end) };
        if !rings {
            let _state = self.is_over.lock();
            self.bell.notify_one();
        }
    }

    fn end(&self) {
        self.raised.store(true, Relaxed);
        *self.ended.0.lock() = true;
        self.ended.1.notify_one();
    }

    /// The earliest deadline; ends the statement if that is over.
    fn look(&self, now: u64, wrong: Wrong) -> u64 {
        if wrong == Wrong::Latch {
            let mut is_over = false;
            let next = self.deadline.end_if_over(now, || is_over = true);
            if is_over {
                self.end();
            }
            return next.unwrap_or(NEVER);
        }
        self.deadline.end_if_over(now, || self.end()).unwrap_or(NEVER)
    }

    /// The thread: sleeps until the moment that it expects, or until it is woken.
    fn watch(&self, wrong: Wrong) {
        let mut now = 1;
        let mut is_over = self.is_over.lock();
        while !*is_over {
            let next = if wrong == Wrong::Announcement {
                let next = self.look(now, wrong);
                self.alarm.set(|| next)
            } else {
                self.alarm.set(|| self.look(now, wrong))
            };
            if next == NEVER {
                is_over = self.bell.wait(is_over);
            } else {
                // The sleep is over.
                drop(is_over);
                now = now.max(next);
                is_over = self.is_over.lock();
            }
        }
    }

    fn stop(&self) {
        *self.is_over.lock() = true;
        self.bell.notify_one();
    }

    /// A wake-up that is lost is a deadlock, which the checker reports.
    fn wait_until_ended(&self) {
        let mut ended = self.ended.0.lock();
        while !*ended {
            ended = self.ended.1.wait(ended);
        }
        *ended = false;
    }
}

fn with_thread(wrong: Wrong, session: fn(&Timer, Wrong)) {
    let timer = Timer::new();
    let others = timer.clone();
    let thread = thread::spawn(move || others.watch(wrong));
    session(&timer, wrong);
    timer.stop();
    thread.join().expect("a panic ends the model");
}

/// Two statements whose time is over.
fn two_long_statements(timer: &Timer, wrong: Wrong) {
    for end in [5, 7] {
        timer.begin(end, wrong);
        timer.wait_until_ended();
    }
}

/// The first is short, but the thread wakes for it. For the second it has to wake once more.
fn a_short_and_a_long_statement(timer: &Timer, wrong: Wrong) {
    timer.begin(5, wrong);
    timer.deadline.set(0);
    timer.begin(7, wrong);
    timer.wait_until_ended();
}

/// A statement ends in time or is ended. The one behind it has no limit.
fn a_statement_and_the_next(timer: &Timer, wrong: Wrong) {
    timer.begin(1, wrong);
    // It ends, and forgets what came too late.
    timer.deadline.set(0);
    timer.raised.store(false, Relaxed);
    thread::yield_now();
    assert!(!timer.raised.load(Relaxed), "the next statement was ended");
}

fn a_statement_whose_time_is_over_is_ended() {
    with_thread(Wrong::Nothing, two_long_statements);
}

fn a_statement_behind_a_short_one_is_ended() {
    with_thread(Wrong::Nothing, a_short_and_a_long_statement);
}

fn the_statement_behind_is_not_meant() {
    with_thread(Wrong::Nothing, a_statement_and_the_next);
}

fn a_thread_that_announces_after_it_has_looked_sleeps_on() {
    with_thread(Wrong::Announcement, two_long_statements);
}

fn a_statement_that_asks_before_it_sets_its_deadline_runs_on() {
    with_thread(Wrong::Order, a_short_and_a_long_statement);
}

fn a_thread_that_ends_a_statement_without_its_latch_means_the_next() {
    with_thread(Wrong::Latch, a_statement_and_the_next);
}

const MODELS: &[Model] = base::models![
    a_statement_whose_time_is_over_is_ended: Some(2),
    a_statement_behind_a_short_one_is_ended: Some(3),
    the_statement_behind_is_not_meant: Some(2),
];

const CANARIES: &[Canary] = base::canaries![
    a_thread_that_announces_after_it_has_looked_sleeps_on: Some(2),
    a_statement_that_asks_before_it_sets_its_deadline_runs_on: Some(3),
    a_thread_that_ends_a_statement_without_its_latch_means_the_next: Some(2),
];

const EXCUSED: &[Excused] = &[];

fn main() -> ExitCode {
    base::runner::main(MODELS, CANARIES, EXCUSED)
}

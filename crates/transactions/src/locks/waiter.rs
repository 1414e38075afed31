//! Where a session sleeps until it is granted what it waits for, chosen as a victim, or interrupted.

use crate::gate::{Gate, Visit};
use base::phases;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use base::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

base::latch_class!(pub WaiterLatch, "lock wait");

/// How far a wait has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    #[default]
    Idle,
    Waiting,
    /// What was waited for has been given.
    Granted,
    /// Chosen to break a deadlock.
    Victim,
}

/// Why a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    Granted,
    Victim,
    Interrupted,
    #[cfg_attr(feature = "shuttle", allow(dead_code, reason = "the model checker knows no time"))]
    TimedOut,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    interrupted: bool,
}

/// One for each session, which waits for one thing at a time.
#[derive(Debug, Default)]
pub struct Waiter {
    state: Mutex<State, WaiterLatch>,
    changed: Condvar,
    /// The session's write transaction; 0 for none. Only the session writes this and the fields below.
    transaction: AtomicU64,
    /// Rows that the transaction has changed: what its rollback would cost.
    rows_changed: AtomicU64,
    /// Rows and tables that it has locked.
    rows_locked: AtomicU64,
    tables_locked: AtomicU64,
    waited_micros: AtomicU64,
    /// The gate, which a session leaves while it sleeps.
    gate: Arc<Gate>,
    pub visit: Visit,
}

/// Explicit locks of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holds {
    pub rows: u64,
    pub tables: u64,
}

impl Waiter {
    pub fn new(gate: Arc<Gate>) -> Waiter {
        Waiter { gate, ..Waiter::default() }
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    pub fn begin(&self) {
        let mut state = self.state.lock();
        assert_eq!(state.phase, Phase::Idle, "a session waits for one thing at a time");
        state.phase = Phase::Waiting;
    }

    /// Ends a wait and gives the phase that it had reached.
    pub fn finish(&self) -> Phase {
        std::mem::take(&mut self.state.lock().phase)
    }

    /// Grants what is waited for. False if the session has been made a victim before.
    #[must_use]
    pub fn grant(&self) -> bool {
        self.decide(Phase::Granted)
    }

    /// Makes the session a victim.
    pub fn condemn(&self) {
        let condemned = self.decide(Phase::Victim);
        assert!(condemned, "who is in the graph is waiting");
    }

    fn decide(&self, phase: Phase) -> bool {
        let mut state = self.state.lock();
        let is_waiting = state.phase == Phase::Waiting;
        if is_waiting {
            state.phase = phase;
            self.changed.notify_one();
        }
        is_waiting
    }

    pub fn interrupt(&self) {
        self.state.lock().interrupted = true;
        self.changed.notify_one();
    }

    pub fn clear_interrupt(&self) {
        self.state.lock().interrupted = false;
    }

    /// True while what the session waits for has not been given, as other threads see it.
    pub fn is_waiting(&self) -> bool {
        self.state.lock().phase == Phase::Waiting
    }

    pub fn is_interrupted(&self) -> bool {
        self.state.lock().interrupted
    }

    /// Sleeps until the wait is decided, the session is interrupted, or the time is over. A session that
    /// sleeps is not inside the gate.
    pub fn sleep(&self, deadline: Option<Instant>) -> Woken {
        let _waiting = phases::enter(phases::Phase::LockWait);
        self.gate.leave(self);
        let begun = Instant::now();
        let woken = self.doze(deadline);
        // ORDER: the session's own, here and below.
        let waited = self.waited_micros.load(Relaxed) + begun.elapsed().as_micros() as u64;
        self.waited_micros.store_owned(waited, Relaxed);
        woken
    }

    /// How long the session has slept for rows, in microseconds.
    pub fn waited_micros(&self) -> u64 {
        self.waited_micros.load(Relaxed)
    }

    /// The same for a session that queues at the gate. It may be let in before it sleeps.
    pub fn doze(&self, deadline: Option<Instant>) -> Woken {
        let mut state = self.state.lock();
        loop {
            match state.phase {
                Phase::Granted => return Woken::Granted,
                Phase::Victim => return Woken::Victim,
                Phase::Idle | Phase::Waiting if state.interrupted => return Woken::Interrupted,
                Phase::Idle | Phase::Waiting => {}
            }
            state = match deadline {
                #[cfg(not(feature = "shuttle"))]
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Woken::TimedOut;
                    }
                    self.changed.wait_timeout(state, left).0
                }
                // The model checker has no clock, so there is no limit.
                _ => self.changed.wait(state),
            };
        }
    }

    /// A transaction begins, or with 0 the last one has ended.
    pub fn set_transaction(&self, id: u64) {
        // ORDER: Relaxed, here and below: for display, and to weigh one victim against another.
        for counter in [&self.rows_changed, &self.rows_locked, &self.tables_locked] {
            counter.store_owned(0, Relaxed);
        }
        self.transaction.store_owned(id, Relaxed);
    }

    pub fn transaction(&self) -> u64 {
        // ORDER: as above.
        self.transaction.load(Relaxed)
    }

    pub fn holds(&self) -> Holds {
        // ORDER: as above.
        Holds { rows: self.rows_locked.load(Relaxed), tables: self.tables_locked.load(Relaxed) }
    }

    pub fn set_holds(&self, holds: Holds) {
        // ORDER: as above.
        self.rows_locked.store_owned(holds.rows, Relaxed);
        self.tables_locked.store_owned(holds.tables, Relaxed);
    }

    pub fn rows_changed(&self) -> u64 {
        // ORDER: Relaxed: it only weighs one victim against another.
        self.rows_changed.load(Relaxed)
    }

    pub fn set_rows_changed(&self, rows: u64) {
        // ORDER: Relaxed: as above; the session's own.
        self.rows_changed.store_owned(rows, Relaxed);
    }
}

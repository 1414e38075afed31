//! The gate lets at most `thread_concurrency` statements run at a time, as InnoDB's setting of that name.
//!
//! A statement enters, or joins the end of a queue and is let in when its turn comes. A session that sleeps
//! is not inside: if it waits for a row, or for its client, it leaves the gate, and comes back later. To come
//! back costs a ticket, and goes before statements that come for the first time. A statement without tickets
//! joins the end of the queue. So no statement is kept out forever: the first in the queue lets pass at most
//! as many returns as the absent statements have tickets.
//!
//! Access rules. A session's standing and the number of sessions inside change under the gate's latch only.
//! When a session leaves, another is let in under the same latch, so nobody overtakes. A session that queues
//! holds no latch of anything else. Latches: the gate, then a waiter's mutex.

use crate::error::LockError;
use crate::locks::{Patience, Waiter, Woken};
use base::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use base::sync::{Arc, Mutex};
use std::collections::VecDeque;

base::latch_class!(pub GateLatch, "thread_concurrency");

/// How often a statement may come back without queueing anew: InnoDB's `innodb_concurrency_tickets` of its
/// time.
pub const TICKETS: u32 = 500;

/// See the module.
#[derive(Debug)]
pub struct Gate {
    /// 0 = no limit, and then nothing else is looked at.
    limit: AtomicU32,
    tickets: AtomicU32,
    state: Mutex<State, GateLatch>,
}

#[derive(Debug, Default)]
struct State {
    inside: usize,
    /// Sessions that come back and have paid a ticket.
    returning: VecDeque<Arc<Waiter>>,
    queue: VecDeque<Arc<Waiter>>,
}

/// A session's standing at the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Standing {
    /// It runs no statement, or was let in while there was no limit.
    #[default]
    Outside,
    Queued,
    Inside,
    /// It has left to wait for something, and is to come back.
    Away,
}

/// A session's standing, and the tickets of its statement.
#[derive(Debug, Default)]
pub struct Visit {
    standing: AtomicU8,
    tickets: AtomicU32,
}

impl Visit {
    pub fn standing(&self) -> Standing {
        // ORDER: read for display, or by the session itself. Changes are made under the gate's latch.
        match self.standing.load(Relaxed) {
            1 => Standing::Queued,
            2 => Standing::Inside,
            3 => Standing::Away,
            _ => Standing::Outside,
        }
    }

    fn set(&self, standing: Standing) {
        // ORDER: as above.
        self.standing.store(standing as u8, Relaxed);
    }

    /// Uses a ticket up, if there is one.
    fn pay(&self) -> bool {
        // ORDER: the session's own.
        let tickets = self.tickets.load(Relaxed);
        self.tickets.store(tickets.saturating_sub(1), Relaxed);
        tickets > 0
    }
}

/// How many statements are where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GateCounts {
    /// 0 while there is no limit.
    pub inside: u64,
    pub queued: u64,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { limit: AtomicU32::new(0), tickets: AtomicU32::new(TICKETS), state: Mutex::default() }
    }
}

impl Gate {
    /// How many statements may be inside; 0 = any number. Statements that are inside stay until they leave.
    pub fn set_limit(&self, limit: u32) {
        let mut state = self.state.lock();
        // ORDER: changed under the latch; read without it only to see whether there is a limit.
        self.limit.store(limit, Relaxed);
        self.admit(&mut state);
    }

    /// How often a statement that begins from now on may come back before others.
    pub fn set_tickets(&self, tickets: u32) {
        // ORDER: Relaxed: no other memory depends on it.
        self.tickets.store(tickets, Relaxed);
    }

    pub fn counts(&self) -> GateCounts {
        let state = self.state.lock();
        let queued = state.returning.len() + state.queue.len();
        GateCounts { inside: state.inside as u64, queued: queued as u64 }
    }

    /// A statement begins. It holds no latch.
    ///
    /// # Errors
    /// [`LockError::Interrupted`], [`LockError::LockWaitTimeout`]: it did not come in.
    #[inline]
    pub fn enter(&self, waiter: &Arc<Waiter>, patience: Patience) -> Result<(), LockError> {
        // ORDER: Relaxed: a statement that begins while the limit changes may use the old value.
        if self.limit.load(Relaxed) == 0 {
            return Ok(());
        }
        // ORDER: the session's own.
        waiter.visit.tickets.store(self.tickets.load(Relaxed), Relaxed);
        self.join(waiter, patience, false)
    }

    /// The session sleeps, or its statement has ended: another session may come in.
    #[inline]
    pub fn leave(&self, waiter: &Waiter) {
        if waiter.visit.standing() == Standing::Inside {
            self.step_out(waiter);
        }
    }

    /// The wait for which the session left is over. Nothing happens if the session has not left.
    ///
    /// # Errors
    /// As [`Gate::enter`].
    #[inline]
    pub fn come_back(&self, waiter: &Arc<Waiter>, patience: Patience) -> Result<(), LockError> {
        if waiter.visit.standing() != Standing::Away {
            return Ok(());
        }
        self.join(waiter, patience, waiter.visit.pay())
    }

    /// The statement is over, wherever it is.
    #[inline]
    pub fn exit(&self, waiter: &Waiter) {
        self.leave(waiter);
        if waiter.visit.standing() == Standing::Away {
            waiter.visit.set(Standing::Outside);
        }
    }

    #[cold]
    fn step_out(&self, waiter: &Waiter) {
        let mut state = self.state.lock();
        if waiter.visit.standing() == Standing::Inside {
            waiter.visit.set(Standing::Away);
            state.inside -= 1;
            self.admit(&mut state);
        }
    }

    #[cold]
    fn join(&self, waiter: &Arc<Waiter>, patience: Patience, is_returning: bool) -> Result<(), LockError> {
        let mut state = self.state.lock();
        if self.has_room(&state) {
            self.let_in(&mut state, waiter);
            return Ok(());
        }
        waiter.begin();
        waiter.visit.set(Standing::Queued);
        let queue = if is_returning { &mut state.returning } else { &mut state.queue };
        queue.push_back(waiter.clone());
        drop(state);
        let woken = waiter.doze(patience.deadline());
        let mut state = self.state.lock();
        waiter.finish();
        if waiter.visit.standing() != Standing::Queued {
            // The session has been let in, though only after its sleep had ended.
            return Ok(());
        }
        waiter.visit.set(Standing::Outside);
        state.returning.retain(|queued| !Arc::ptr_eq(queued, waiter));
        state.queue.retain(|queued| !Arc::ptr_eq(queued, waiter));
        Err(if woken == Woken::Interrupted { LockError::Interrupted } else { LockError::LockWaitTimeout })
    }

    fn has_room(&self, state: &State) -> bool {
        // ORDER: changed under the latch that is held, here and below.
        let limit = self.limit.load(Relaxed) as usize;
        limit == 0 || state.inside < limit
    }

    fn let_in(&self, state: &mut State, waiter: &Waiter) {
        if self.limit.load(Relaxed) == 0 {
            waiter.visit.set(Standing::Outside);
        } else {
            waiter.visit.set(Standing::Inside);
            state.inside += 1;
        }
    }

    /// Lets in as many sessions as there is room for. While there is room nobody queues.
    fn admit(&self, state: &mut State) {
        while self.has_room(state) {
            let Some(next) = state.returning.pop_front().or_else(|| state.queue.pop_front()) else { return };
            self.let_in(state, &next);
            let granted = next.grant();
            assert!(granted, "nobody but the gate decides about who is queued there");
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

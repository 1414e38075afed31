//! `max_statement_time`: a thread ends statements whose time is over.
//!
//! A statement writes when its time is over into its session's [`Interrupt`], and 0 when it ends. The thread
//! sleeps until the earliest of these moments. It looks for it only when it wakes, so a statement wakes it
//! only if its own time is over earlier than the thread expects one. That is so for the first statement after
//! a while.
//! `deadline` has the hand-over.

use crate::deadline::{Alarm, NEVER};
use crate::host::Interrupt;
use crate::{ErrorKind, SqlError};
use base::sync::{Condvar, Mutex};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// The timer of an instance. Its thread runs from the first statement with a limit on.
#[derive(Debug)]
pub(crate) struct StatementTimer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    bell: Condvar,
    /// In microseconds of [`now`].
    alarm: Alarm,
}

#[derive(Debug, Default)]
struct State {
    sessions: Vec<Weak<Interrupt>>,
    is_running: bool,
    is_over: bool,
}

/// Microseconds since the first call, and one.
fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64 + 1
}

impl Default for StatementTimer {
    fn default() -> StatementTimer {
        StatementTimer(Arc::new(Shared {
            state: Mutex::new(State::default()),
            bell: Condvar::new(),
            alarm: Alarm::new(),
        }))
    }
}

impl StatementTimer {
    /// Limits the statement that begins. `is_known` says whether the session had a limit before.
    ///
    /// # Errors
    /// 1135 if there is no thread to watch the time.
    pub(crate) fn begin(
        &self,
        interrupt: &Arc<Interrupt>,
        is_known: &mut bool,
        micros: u64,
    ) -> Result<(), SqlError> {
        let end = now().saturating_add(micros).min(NEVER - 1);
        interrupt.set_end(end);
        if *is_known && self.0.alarm.rings_by(end) {
            return Ok(());
        }
        let mut state = self.0.state.lock();
        if !std::mem::replace(is_known, true) {
            state.sessions.push(Arc::downgrade(interrupt));
        }
        if !state.is_running {
            let shared = self.0.clone();
            let run = move || watch(&shared);
            std::thread::Builder::new().name("statement timer".to_owned()).spawn(run).map_err(|error| {
                let text = format!("Can't create a new thread ({error})");
                SqlError::new(ErrorKind::CannotCreateThread, text)
            })?;
            state.is_running = true;
        }
        self.0.bell.notify_one();
        Ok(())
    }
}

impl Drop for StatementTimer {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.bell.notify_one();
    }
}

/// The thread.
fn watch(shared: &Shared) {
    let mut state = shared.state.lock();
    while !state.is_over {
        let sessions = &mut state.sessions;
        let next = shared.alarm.set(|| {
            let mut next = NEVER;
            sessions.retain(|session| match session.upgrade() {
                Some(interrupt) => {
                    next = next.min(interrupt.end_if_over(now()).unwrap_or(NEVER));
                    true
                }
                None => false,
            });
            next
        });
        let sleep = match next {
            NEVER => Duration::from_secs(3600),
            next => Duration::from_micros(next.saturating_sub(now())),
        };
        state = shared.bell.wait_timeout(state, sleep).0;
    }
}

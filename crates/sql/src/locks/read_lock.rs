//! FLUSH TABLES WITH READ LOCK: while it is held, no session changes or commits anything.

use super::Request;
use crate::SqlError;
use crate::host::{Interrupt, WaitsFor};
use base::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use base::sync::{Arc, CachePadded, Mutex};

/// What a session is doing that a read lock has to wait for. It lies on a cache line of its own. So while no
/// read lock is held, a writer writes to no memory that other threads read.
pub(crate) type WritingFlag = Arc<CachePadded<AtomicU8>>;

/// The session runs a statement that changes something.
const STATEMENT: u8 = 1;
/// The session commits a transaction. The read lock first waits for statements, and commits still go through
/// meanwhile, because a statement may be waiting for one of them.
const COMMIT: u8 = 2;

/// The lock on everything.
#[derive(Debug, Default)]
pub(crate) struct ReadLock {
    /// How many sessions keep statements out.
    keeps_statements_out: AtomicU64,
    /// How many of them keep commits out too.
    keeps_commits_out: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: Vec<WritingFlag>,
    /// The waiters to wake when something changes.
    waiting: Vec<Arc<Interrupt>>,
}

/// Proof that no read lock can be taken until it is dropped.
#[derive(Debug)]
pub(crate) struct Writing<'l> {
    lock: &'l ReadLock,
    flag: WritingFlag,
    /// The value of the flag before.
    before: u8,
}

impl ReadLock {
    /// The flag of a new session.
    pub(crate) fn register(&self) -> WritingFlag {
        let flag = WritingFlag::default();
        self.state.lock().sessions.push(flag.clone());
        flag
    }

    pub(crate) fn retire(&self, flag: &WritingFlag) {
        self.state.lock().sessions.retain(|known| !Arc::ptr_eq(known, flag));
    }

    /// Waits until statements may change something. No read lock is granted until the returned value is
    /// dropped.
    ///
    /// # Errors
    /// 1205, 1317, 1927.
    pub(crate) fn write(&self, flag: &WritingFlag, request: &Request<'_>) -> Result<Writing<'_>, SqlError> {
        self.enter(flag, STATEMENT, &self.keeps_statements_out, request)
    }

    /// Waits until transactions may be committed. No read lock is granted until the returned value is
    /// dropped.
    ///
    /// # Errors
    /// 1205, 1317, 1927.
    pub(crate) fn commit(&self, flag: &WritingFlag, request: &Request<'_>) -> Result<Writing<'_>, SqlError> {
        self.enter(flag, COMMIT, &self.keeps_commits_out, request)
    }

    fn enter(
        &self,
        flag: &WritingFlag,
        doing: u8,
        kept_out: &AtomicU64,
        request: &Request<'_>,
    ) -> Result<Writing<'_>, SqlError> {
        // ORDER: only this session's thread writes its flag.
        let before = flag.load(Ordering::Relaxed);
        let writing = Writing { lock: self, flag: flag.clone(), before };
        if before != 0 {
            // This is part of a statement that already has permission.
            return Ok(writing);
        }
        loop {
            // ORDER: raise the flag before reading the counter. `lock` does the reverse: it raises the
            // counter before it reads the flags. So at least one of the two sees the other.
            flag.store(doing, Ordering::SeqCst);
            if kept_out.load(Ordering::SeqCst) == 0 {
                return Ok(writing);
            }
            self.lower(flag);
            self.wait(request, || kept_out.load(Ordering::SeqCst) == 0)?;
        }
    }

    fn lower(&self, flag: &WritingFlag) {
        // ORDER: as in `enter`: a session that waits for the flag has raised the counter before it looked at
        // the flag.
        flag.store(0, Ordering::SeqCst);
        if self.keeps_statements_out.load(Ordering::SeqCst) != 0 {
            self.ring();
        }
    }

    fn ring(&self) {
        self.state.lock().waiting.iter().for_each(|waiting| waiting.ring());
    }

    /// Takes the lock once no session changes or commits anything.
    ///
    /// # Errors
    /// 1205, 1317, 1927.
    pub(crate) fn lock(&self, request: &Request<'_>) -> Result<(), SqlError> {
        let nobody = |doing: u8| {
            let sessions = self.state.lock().sessions.clone();
            // ORDER: see `enter`.
            !sessions.iter().any(|flag| flag.load(Ordering::SeqCst) == doing)
        };
        // ORDER: see `enter`.
        self.keeps_statements_out.fetch_add(1, Ordering::SeqCst);
        let statements = self.wait(request, || nobody(STATEMENT));
        self.keeps_commits_out.fetch_add(1, Ordering::SeqCst);
        let result = statements.and_then(|()| self.wait(request, || nobody(COMMIT)));
        if result.is_err() {
            self.unlock();
        }
        result
    }

    pub(crate) fn unlock(&self) {
        // ORDER: see `enter`.
        self.keeps_commits_out.fetch_sub(1, Ordering::SeqCst);
        self.keeps_statements_out.fetch_sub(1, Ordering::SeqCst);
        self.ring();
    }

    /// Sleeps until `done` returns true.
    fn wait(&self, request: &Request<'_>, done: impl Fn() -> bool) -> Result<(), SqlError> {
        if done() {
            return Ok(());
        }
        let interrupt = request.interrupt;
        self.state.lock().waiting.push(interrupt.clone());
        let mut result = Ok(());
        while result.is_ok() && !done() {
            result = interrupt.sleep(request.until, WaitsFor::ReadLock);
        }
        self.state.lock().waiting.retain(|waiting| !Arc::ptr_eq(waiting, interrupt));
        result
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.before == 0 {
            self.lock.lower(&self.flag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_read_lock_waits_for_writers_and_keeps_others_out() {
        let lock = ReadLock::default();
        let interrupt = Arc::new(Interrupt::default());
        let soon = || Instant::now() + Duration::from_millis(20);
        let request = |until| Request { owner: 1, interrupt: &interrupt, until };
        let (first, second) = (lock.register(), lock.register());
        let writing = lock.write(&first, &request(soon())).expect("free");
        assert_eq!(lock.lock(&request(soon())).unwrap_err().code(), 1205);
        drop(writing);
        let commit = lock.commit(&first, &request(soon())).expect("free");
        assert_eq!(lock.lock(&request(soon())).unwrap_err().code(), 1205);
        drop(commit);
        lock.lock(&request(soon())).expect("nobody writes");
        assert_eq!(lock.write(&second, &request(soon())).unwrap_err().code(), 1205);
        std::thread::scope(|scope| {
            let interrupt = Arc::new(Interrupt::default());
            let waiting = scope.spawn({
                let interrupt = interrupt.clone();
                let (lock, second) = (&lock, &second);
                move || {
                    let until = Instant::now() + Duration::from_secs(60);
                    lock.write(second, &Request { owner: 2, interrupt: &interrupt, until }).map(drop)
                }
            });
            while interrupt.waits_for().is_empty() {
                std::thread::yield_now();
            }
            lock.unlock();
            waiting.join().expect("no panic").expect("let in");
        });
        lock.retire(&first);
        lock.retire(&second);
    }
}

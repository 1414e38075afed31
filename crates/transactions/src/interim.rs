//! What rows were between two changes of a transaction under way.
//!
//! ROLLBACK TO may make a row again what it was then. So its index entries of that time stay, and its unique
//! keys are taken. Readers do not ask for it: for them it never was (transactions R15).

use base::hash::{HashMap, spread};
use base::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use base::sync::{Arc, CachePadded, Mutex};

base::latch_class!(pub InterimLatch, "rows changed twice");

/// As many as the version store has.
const SHARDS: usize = if cfg!(feature = "shuttle") { 2 } else { 64 };

/// By table and key: the states of a row, oldest first.
type Rows = HashMap<(u64, Box<[u8]>), Vec<Arc<[u8]>>>;

#[derive(Debug)]
pub struct Interim {
    /// Rows that have such states.
    rows: AtomicUsize,
    shards: Box<[CachePadded<Mutex<Rows, InterimLatch>>]>,
}

impl Interim {
    pub fn new() -> Interim {
        Interim { rows: AtomicUsize::new(0), shards: (0..SHARDS).map(|_| CachePadded::default()).collect() }
    }

    fn shard(&self, row: (u64, &[u8])) -> &Mutex<Rows, InterimLatch> {
        &self.shards[spread(&row) as usize % SHARDS]
    }

    /// Adds a state. True if the row is new here: it stays until it is removed.
    pub fn add(&self, (table, key): (u64, &[u8]), state: Arc<[u8]>) -> bool {
        let mut rows = self.shard((table, key)).lock();
        let known = rows.len();
        rows.entry((table, key.into())).or_default().push(state);
        let is_new = rows.len() > known;
        if is_new {
            // ORDER: whoever has to find the state comes behind the caller by the row's latch.
            self.rows.fetch_add(1, Relaxed);
        }
        is_new
    }

    /// Removes the newest state of a row if it is this one.
    pub fn take_back(&self, (table, key): (u64, &[u8]), state: &[u8]) {
        // ORDER: see `of`. It is the caller's own.
        if self.rows.load(Relaxed) > 0
            && let Some(states) = self.shard((table, key)).lock().get_mut(&(table, Box::from(key)))
        {
            states.pop_if(|last| **last == *state);
        }
    }

    /// Removes all of a row.
    pub fn remove(&self, row: (u64, Box<[u8]>)) {
        self.shard((row.0, &row.1)).lock().remove(&row);
        // ORDER: a hint: too many cost a look.
        self.rows.fetch_sub(1, Relaxed);
    }

    /// The states of a row. The caller holds the row's latch.
    #[inline]
    pub fn of(&self, row: (u64, &[u8])) -> Vec<Arc<[u8]>> {
        // ORDER: see `add`.
        if self.rows.load(Relaxed) == 0 { Vec::new() } else { self.look_up(row) }
    }

    #[cold]
    fn look_up(&self, (table, key): (u64, &[u8])) -> Vec<Arc<[u8]>> {
        let rows = self.shard((table, key)).lock();
        rows.get(&(table, Box::from(key))).cloned().unwrap_or_default()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn states_are_found_until_they_are_taken_back_or_their_row_is_removed() {
        let interim = Interim::new();
        let state = |byte: u8| Arc::from([byte].as_slice());
        let row = (1, b"key".as_slice());
        assert!(interim.of(row).is_empty());
        assert!(interim.add(row, state(1)));
        assert!(!interim.add(row, state(2)));
        assert_eq!(interim.of(row), [state(1), state(2)]);
        assert!(interim.of((2, row.1)).is_empty());
        // The change that is taken back left no state.
        interim.take_back(row, &[1]);
        assert_eq!(interim.of(row), [state(1), state(2)]);
        interim.take_back(row, &[2]);
        interim.take_back(row, &[1]);
        assert!(interim.of(row).is_empty());
        assert!(!interim.add(row, state(3)), "its transaction knows it");
        interim.remove((1, b"key".as_slice().into()));
        assert!(interim.of(row).is_empty());
        assert_eq!(interim.rows.load(Relaxed), 0);
    }
}

//! Transactions: snapshots that are opened while old versions are given up, and the table of statuses.

extern crate latchwork_orderings as base;

#[allow(dead_code, reason = "models need a part of each source")]
#[path = "../../../../crates/transactions/src"]
mod sources {
    pub mod error;
    pub mod interim;
    pub mod registry;
    pub mod status;
}

use base::runner::{Canary, Excused, Model};
use base::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use base::sync::{Arc, Mutex, thread};
use sources::interim::Interim;
use sources::registry::{Hold, Registry};
use sources::status::{Outcome, Status, StatusTable};
use sources::{error, registry};
use std::process::ExitCode;

/// A clock that goes on, and a reclaimer that gives up what is older than its horizon.
struct Horizon {
    registry: Registry,
    clock: AtomicU64,
}

impl Horizon {
    fn new() -> Arc<Horizon> {
        Arc::new(Horizon { registry: Registry::new(), clock: AtomicU64::new(1) })
    }

    fn now(&self) -> u64 {
        self.clock.load(Acquire)
    }

    /// A transaction ends, and what only snapshots below the horizon need is given up.
    fn advance_and_reclaim(&self) -> u64 {
        self.clock.fetch_add(1, Release);
        self.registry.live(|| self.now()).horizon()
    }
}

fn spawn<R: 'static>(
    horizon: &Arc<Horizon>,
    run: impl FnOnce(&Horizon) -> R + 'static,
) -> thread::JoinHandle<R> {
    let horizon = horizon.clone();
    thread::spawn(move || run(&horizon))
}

fn join<R>(thread: thread::JoinHandle<R>) -> R {
    thread.join().expect("a panic ends the model")
}

fn what_an_open_snapshot_needs_is_kept() {
    let horizon = Horizon::new();
    let entry = horizon.registry.register(Hold::UntilClosed);
    let reclaimer = spawn(&horizon, Horizon::advance_and_reclaim);
    let snapshot = horizon.registry.open(&entry, || (0, horizon.now()));
    let given_up = join(reclaimer);
    assert!(given_up <= snapshot.number, "what {snapshot:?} needs was given up below {given_up}");
}

/// As above, for an entry that has left the list of those that reclaimers read, or is about to.
fn what_an_idle_sessions_next_snapshot_needs_is_kept() {
    let horizon = Horizon::new();
    let entry = horizon.registry.register(Hold::UntilClosed);
    let reclaimer = spawn(&horizon, |horizon| {
        horizon.advance_and_reclaim();
        horizon.advance_and_reclaim()
    });
    let snapshot = horizon.registry.open(&entry, || (0, horizon.now()));
    let given_up = join(reclaimer);
    assert!(given_up <= snapshot.number, "what {snapshot:?} needs was given up below {given_up}");
}

fn a_cancelled_snapshot_is_not_read_by_after_a_pause() {
    let horizon = Horizon::new();
    let entry = horizon.registry.register(Hold::UntilCancelled);
    let snapshot = horizon.registry.open(&entry, || (0, horizon.now()));
    entry.pause();
    let reclaimer = spawn(&horizon, |horizon| {
        horizon.registry.cancel_until(1);
        horizon.advance_and_reclaim()
    });
    let reads = entry.resume(&snapshot);
    let given_up = join(reclaimer);
    assert!(!reads || given_up <= snapshot.number, "what a session reads was given up");
}

/// As above; another thread cancels while the reclaimer is about to read the entries.
fn a_snapshot_that_others_cancel_is_not_read_by_after_a_pause() {
    let horizon = Horizon::new();
    let entry = horizon.registry.register(Hold::UntilCancelled);
    let snapshot = horizon.registry.open(&entry, || (0, horizon.now()));
    entry.pause();
    let canceller = spawn(&horizon, |horizon| horizon.registry.cancel_until(1));
    let reclaimer = spawn(&horizon, Horizon::advance_and_reclaim);
    let reads = entry.resume(&snapshot);
    join(canceller);
    let given_up = join(reclaimer);
    assert!(!reads || given_up <= snapshot.number, "what a session reads was given up");
}

/// To cancel one snapshot of an entry is not to cancel the next.
fn only_the_snapshot_that_was_meant_is_cancelled() {
    let horizon = Horizon::new();
    let entry = horizon.registry.register(Hold::UntilCancelled);
    horizon.registry.open(&entry, || (0, 1));
    let canceller = spawn(&horizon, |horizon| horizon.registry.cancel_until(1));
    let next = horizon.registry.open(&entry, || (0, 5));
    assert!(!entry.is_cancelled(&next), "a snapshot was cancelled for another");
    join(canceller);
    assert!(!entry.is_cancelled(&next), "a snapshot was cancelled for another");
}

/// Statuses of ids 2 and 3, which share a chunk, and of what comes after them.
struct Table {
    table: StatusTable,
    registry: Registry,
}

impl Table {
    /// With so many ids given out, from 2 on.
    fn new(begun: u64) -> Arc<Table> {
        let table = Table { table: StatusTable::new(2, 2), registry: Registry::new() };
        (0..begun).for_each(|_| table.begin());
        Arc::new(table)
    }

    fn begin(&self) {
        self.table.begin(&self.registry).expect("there are ids");
    }
}

fn with_table<R: 'static>(
    table: &Arc<Table>,
    run: impl FnOnce(&Table) -> R + 'static,
) -> thread::JoinHandle<R> {
    let table = table.clone();
    thread::spawn(move || run(&table))
}

fn a_number_is_seen_with_the_status_of_its_transaction() {
    let table = Table::new(1);
    let writer = with_table(&table, |table| table.table.finish(2, Outcome::Committed));
    if table.table.clock() == 1 {
        assert_eq!(table.table.status(2), Status::Committed(1), "a commit is seen in part");
    }
    join(writer);
}

/// What a snapshot does not look up has a number that the snapshot sees.
fn what_is_below_the_lowest_unfinished_id_is_within_the_clock() {
    let table = Table::new(2);
    let writer = with_table(&table, |table| table.table.finish(2, Outcome::Committed));
    let low = table.table.low();
    let clock = table.table.clock();
    assert!(low == 2 || clock == 1, "an id below the lowest is not within the clock");
    join(writer);
}

fn an_id_that_was_given_out_is_known() {
    let table = Table::new(2);
    let writer = with_table(&table, Table::begin);
    if table.table.next() == 5 {
        assert_eq!(table.table.status(4), Status::Active, "an id is not known");
    }
    join(writer);
}

/// A chunk collapses and is settled, and its slot and buffer are used again, while a reader is in them.
fn a_finished_status_stays_when_its_buffer_is_used_again() {
    let table = Table::new(2);
    table.table.finish(2, Outcome::Committed);
    table.table.finish(3, Outcome::Committed);
    let writer = with_table(&table, Table::begin);
    let status = table.table.status(2);
    assert!(matches!(status, Status::Committed(0..=2)), "{status:?} of a committed id");
    join(writer);
}

/// As above, and the chunk that takes the buffer has a transaction that was rolled back.
fn a_finished_status_stays_when_another_chunk_takes_the_buffer() {
    let table = Table::new(2);
    table.table.finish(2, Outcome::Committed);
    table.table.finish(3, Outcome::Committed);
    let writer = with_table(&table, |table| {
        table.begin();
        table.table.finish(4, Outcome::RolledBack);
    });
    let status = table.table.status(2);
    assert!(matches!(status, Status::Committed(0..=2)), "{status:?} of a committed id");
    join(writer);
}

/// An open snapshot keeps the first chunk from being settled, so the ring of slots grows.
fn a_finished_status_stays_when_the_ring_grows() {
    let table = Table::new(2);
    let entry = table.registry.register(Hold::UntilClosed);
    table.registry.open(&entry, || (2, 0));
    table.table.finish(2, Outcome::Committed);
    let writer = with_table(&table, Table::begin);
    assert_eq!(table.table.status(2), Status::Committed(1));
    join(writer);
}

/// Buffers, too: a new chunk's words are not those of the chunk that had the buffer.
fn an_id_of_a_new_chunk_is_not_taken_for_one_of_the_chunk_before() {
    let table = Table::new(2);
    table.table.finish(2, Outcome::Committed);
    table.table.finish(3, Outcome::Committed);
    let writer = with_table(&table, Table::begin);
    let status = table.table.status(4);
    assert!(matches!(status, Status::Unborn | Status::Active), "{status:?} of an active id");
    join(writer);
}

/// The chunk collapses in the new ring, when its slot in the old one is not changed any more.
fn a_finished_status_stays_for_a_reader_in_the_former_ring() {
    let table = Table::new(2);
    table.table.finish(2, Outcome::Committed);
    let writer = with_table(&table, |table| {
        table.begin();
        table.table.finish(3, Outcome::Committed);
        table.begin();
        table.begin();
    });
    let status = table.table.status(2);
    assert!(matches!(status, Status::Committed(0..=2)), "{status:?} of a committed id");
    join(writer);
}

const ROW: (u64, &[u8]) = (1, b"key");

/// A row is changed again, and whoever comes behind that looks for what it was in between.
fn change_and_look(changed: impl FnOnce(&Interim) + 'static, comes_behind: impl FnOnce() -> bool) {
    let interim = Arc::new(Interim::new());
    let changing = interim.clone();
    let changing = thread::spawn(move || changed(&changing));
    if comes_behind() {
        assert_eq!(interim.of(ROW).len(), 1, "what the row was is not found");
    }
    join(changing);
}

fn whoever_comes_behind_by_the_rows_latch_finds_what_it_was() {
    let latch = Arc::new(Mutex::<bool>::default());
    let own = latch.clone();
    let changed = move |interim: &Interim| {
        let mut changed = own.lock();
        interim.add(ROW, Arc::from([1].as_slice()));
        *changed = true;
    };
    change_and_look(changed, || *latch.lock());
}

fn whoever_comes_without_the_latch_does_not() {
    let flag = Arc::new(AtomicU64::new(0));
    let own = flag.clone();
    let changed = move |interim: &Interim| {
        interim.add(ROW, Arc::from([1].as_slice()));
        own.store(1, Relaxed);
    };
    change_and_look(changed, || flag.load(Relaxed) == 1);
}

const MODELS: &[Model] = base::models![
    what_an_open_snapshot_needs_is_kept: Some(2),
    what_an_idle_sessions_next_snapshot_needs_is_kept: Some(2),
    a_cancelled_snapshot_is_not_read_by_after_a_pause: Some(2),
    a_snapshot_that_others_cancel_is_not_read_by_after_a_pause: Some(2),
    only_the_snapshot_that_was_meant_is_cancelled: Some(2),
    a_number_is_seen_with_the_status_of_its_transaction: Some(2),
    what_is_below_the_lowest_unfinished_id_is_within_the_clock: Some(2),
    an_id_that_was_given_out_is_known: Some(2),
    a_finished_status_stays_when_its_buffer_is_used_again: Some(2),
    a_finished_status_stays_when_another_chunk_takes_the_buffer: Some(1),
    a_finished_status_stays_when_the_ring_grows: Some(2),
    an_id_of_a_new_chunk_is_not_taken_for_one_of_the_chunk_before: Some(2),
    a_finished_status_stays_for_a_reader_in_the_former_ring: Some(1),
    whoever_comes_behind_by_the_rows_latch_finds_what_it_was: Some(2),
];

const CANARIES: &[Canary] = base::canaries![
    whoever_comes_without_the_latch_does_not: Some(2),
];

const LOADS: &str = "it keeps earlier loads before it, and loom lets no load see what is stored later";
const LATCHED: &str = "versions are purged and looked up under the latch of their shard, which publishes it";

const OVERLOOKED: &str = "only a snapshot whose fence comes after the reclaimer's is read wrong, and such a one sees \
                          what was announced";
const AGAIN: &str = "who does not see it yet finds another chunk in the slot, and looks again";
const ORDERED: &str = "the load of the status, with Acquire, orders the looks that follow it";

const EXCUSED: &[Excused] = &[
    ("registry.rs read: `let ticket = entry.ticket.load(Acquire);` -> Relaxed", OVERLOOKED),
    ("registry.rs read: `let number = entry.number.load(Acquire);` -> Relaxed", OVERLOOKED),
    ("registry.rs read: `return (number, entry.cancelled.load(Acquire) == ticket);` -> Relaxed", LATCHED),
    (
        "ring.rs assign: `self.chunk.store(NO_CHUNK, Release);` -> Relaxed",
        "the store of the word that follows publishes it",
    ),
    ("ring.rs is_current: `self.current.load(Acquire) == slots.ring` -> Relaxed", ORDERED),
    (
        "status.rs status: `let word = slot.word.load(Acquire);` -> Relaxed",
        "the second look at the word, with Acquire, comes before the second look at the chunk",
    ),
    ("status.rs status: `&& slot.chunk.load(Acquire) == chunk` -> Relaxed", ORDERED),
    ("status.rs begin: `self.next.store(id + 1, Release);` -> Relaxed", AGAIN),
    ("status.rs next: `self.next.load(Acquire)` -> Relaxed", AGAIN),
    (
        "status.rs reclaim_in: `self.settled_below.store(core.first_chunk << self.chunk_bits, Release);` -> Relaxed",
        AGAIN,
    ),
    ("status.rs status: `if id < self.settled_below.load(Acquire) {` -> Relaxed", AGAIN),
    (
        "status.rs reclaim_in: `slots.slot(*number).word.store(Word::Collapsed(chunk.last_end).encode(), Release);` \
         -> Relaxed",
        "the stores that use the buffer again publish it",
    ),
    ("registry.rs cancel_until: `entry.cancelled.store(ticket, Release);` -> Relaxed", LATCHED),
    ("registry.rs is_cancelled: `self.cancelled.load(Acquire) == snapshot.ticket` -> Relaxed", LATCHED),
    (
        "registry.rs cancel_until: `let ticket = entry.ticket.load(Acquire);` -> Relaxed",
        "`read`, which follows, loads the ticket with Acquire again",
    ),
    (
        "registry.rs live: `let announced = clock.max(self.announced.fetch_max(clock, SeqCst));` -> Relaxed",
        "the fence beside it orders it; loom takes SeqCst for AcqRel",
    ),
    ("registry.rs open: `entry.number.store_owned(NONE, Release);` -> Relaxed", LOADS),
    ("registry.rs pause: `self.paused.store_owned(1, Release);` -> Relaxed", LOADS),
    (
        "registry.rs open: `fence(Acquire);` -> nothing",
        "a precaution: what a snapshot reads is published by the clock and by latches",
    ),
    (
        "registry.rs read: `if entry.ticket.load(Acquire) == ticket {` -> Relaxed",
        "what was cancelled is compared with the ticket, so an old value says that it was not",
    ),
];

fn main() -> ExitCode {
    base::runner::main(MODELS, CANARIES, EXCUSED)
}

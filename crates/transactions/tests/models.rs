//! Models: every interleaving that a randomised scheduler finds, of the few steps that matter.
//!
//! `cargo test -p latchwork-transactions --features shuttle`
//!
//! The scheduler switches threads at every atomic, mutex and condition variable, and reports a deadlock when
//! nobody can go on: that is how a lost wake-up shows. It runs sequentially consistent memory only; the weak
//! orderings are argued beside each in the code. Canaries at the end show that the models can fail.
#![cfg(feature = "shuttle")]

mod files;

use base::Stamp;
use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, Mutex, find_fault, shuttle, thread};
use files::Files;
use latchwork_transactions::{
    Config, DEFINITIONS, Found, LockError, LockMode, LockUsage, Patience, SnapshotTooOld, Transaction,
    Transactions, VersionFiles, View,
};

const TABLE: u64 = 1;
const KEY: &[u8] = b"k";

/// Interleavings a model, times its weight. All models together take about ten seconds of processor time.
const ITERATIONS: usize = 1000;

fn explore(weight: usize, model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let (random, priorities) = (model.clone(), model);
    shuttle::check_random(move || random(), ITERATIONS * weight);
    // Priorities with a few changes find failures in which one thread stands still while another runs far.
    shuttle::check_pct(move || priorities(), ITERATIONS * weight, 3);
}

fn new() -> Arc<Transactions> {
    Transactions::new(&Config { chunk_ids: 2, ..Config::default() })
}

/// Runs `body` in a thread of the model.
fn spawn(
    transactions: &Arc<Transactions>,
    body: impl FnOnce(Arc<Transactions>) + Send + 'static,
) -> thread::JoinHandle<()> {
    let transactions = transactions.clone();
    thread::spawn(move || body(transactions))
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A page with one row: its stamp, which is also its content.
#[derive(Debug, Default)]
struct Page(AtomicU64);

impl Page {
    /// Reads as the engine does: the page, then the versions, then perhaps the page again.
    fn read(&self, view: View<'_>) -> Result<u64, SnapshotTooOld> {
        loop {
            let stamp = self.0.load(SeqCst);
            if view.sees(Stamp(stamp)) {
                return Ok(stamp);
            }
            let found = match view.find_version(TABLE, KEY)? {
                Found::Spilled(spilled) => view.read_spilled(&spilled).unwrap(),
                found => found,
            };
            match found {
                Found::Spilled(_) => panic!("it has been read"),
                Found::Row(cell) => return Ok(u64::from_le_bytes(cell[..].try_into().unwrap())),
                Found::NoRow => panic!("the row was always there"),
                Found::Newest => {
                    assert_ne!(self.0.load(SeqCst), stamp, "a version is missing");
                }
            }
        }
    }

    /// Replaces the row, by a transaction that commits or rolls back.
    fn update(&self, transactions: &Arc<Transactions>, commit: bool) {
        let mut session = transactions.session();
        let mut transaction = session.begin().unwrap();
        let before = self.0.load(SeqCst);
        transaction.add_version(TABLE, KEY, Stamp(before), Some(before.to_le_bytes()[..].into()));
        self.0.store(transaction.id().0, SeqCst);
        if commit {
            transaction.commit();
        } else {
            self.0.store(before, SeqCst);
            transaction.roll_back();
        }
    }
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all_and_for_good() {
    explore(10, || {
        let transactions = new();
        let mut writer = transactions.session();
        let (first, second) = (writer.begin().unwrap(), writer.begin().unwrap());
        let stamps = [first.id(), second.id()];
        let commits = [first, second].map(|transaction| {
            spawn(&transactions, move |_| {
                transaction.commit();
            })
        });
        let mut reader = transactions.session();
        let mut before = [false; 2];
        for _ in 0..2 {
            let view = reader.open();
            let seen = stamps.map(|stamp| view.sees(stamp));
            // Another row of the same transaction, read later.
            assert_eq!(stamps.map(|stamp| view.sees(stamp)), seen, "half a transaction");
            assert!((0..2).all(|n| seen[n] || !before[n]), "a snapshot went back");
            before = seen;
        }
        join(commits);
        let view = reader.open();
        assert!(stamps.iter().all(|stamp| view.sees(*stamp)));
    });
}

#[test]
fn what_is_rolled_back_is_never_seen() {
    explore(10, || {
        let transactions = new();
        let mut writer = transactions.session();
        let (early, late) = (writer.begin().unwrap(), writer.begin().unwrap());
        let stamp = early.id();
        let mut reader = transactions.session();
        // Copied from a page before the rollback, tested while its chunk is on its way out.
        reader.open();
        let ender = spawn(&transactions, move |transactions| {
            late.commit();
            early.roll_back();
            transactions.purge();
            transactions.session().begin().unwrap().commit();
            transactions.purge();
        });
        let view = reader.view().unwrap();
        for _ in 0..2 {
            assert!(!view.sees(stamp));
        }
        join([ender]);
        assert!(!view.sees(stamp));
    });
}

#[test]
fn a_version_that_a_live_snapshot_needs_is_never_purged() {
    explore(10, || {
        let transactions = new();
        let page = Arc::new(Page::default());
        let writing = page.clone();
        let writer = spawn(&transactions, move |transactions| {
            (0..3).for_each(|_| writing.update(&transactions, true));
        });
        let purger = spawn(&transactions, |transactions| (0..2).for_each(|_| transactions.purge()));
        let mut reader = transactions.session();
        for _ in 0..2 {
            let view = reader.open();
            let value = page.read(view).unwrap();
            assert_eq!(page.read(view), Ok(value), "a snapshot changed");
        }
        join([writer, purger]);
        reader.close();
        transactions.purge();
        assert_eq!(transactions.version_bytes(), 0);
    });
}

#[test]
fn a_rollback_under_readers_shows_the_row_as_it_was() {
    explore(10, || {
        let transactions = new();
        let page = Arc::new(Page::default());
        let writing = page.clone();
        let writer = spawn(&transactions, move |transactions| {
            writing.update(&transactions, false);
            transactions.purge();
        });
        let mut reader = transactions.session();
        assert_eq!(page.read(reader.open()), Ok(0));
        assert_eq!(page.read(reader.open()), Ok(0));
        join([writer]);
        assert_eq!(transactions.version_bytes(), 0);
    });
}

#[test]
fn a_cancelled_snapshot_finds_the_truth_or_an_error() {
    explore(10, || {
        let transactions =
            Transactions::new(&Config { chunk_ids: 2, version_limit_bytes: 0, ..Config::default() });
        let page = Arc::new(Page::default());
        let mut reader = transactions.session();
        reader.open();
        let writing = page.clone();
        let writer = spawn(&transactions, move |transactions| {
            (0..2).for_each(|_| writing.update(&transactions, true));
        });
        let view = reader.view().unwrap();
        for _ in 0..2 {
            if let Ok(value) = page.read(view) {
                assert_eq!(value, 0);
            }
        }
        join([writer]);
        assert_eq!(page.read(view), Err(SnapshotTooOld));
        assert_eq!(transactions.version_bytes(), 0);
    });
}

/// Everything that may go to a file does so at each commit.
fn spilling() -> Arc<Transactions> {
    let version_files: Option<Arc<dyn VersionFiles>> = Some(Arc::new(Files::default()));
    Transactions::new(&Config { chunk_ids: 2, version_limit_bytes: 0, version_files, ..Config::default() })
}

/// A snapshot from before `write` begins, and one from while it runs, see the page as it was, whatever
/// happens to the files, and nothing is left when they have gone.
fn snapshots_stay(weight: usize, write: impl Fn(&Page, Arc<Transactions>) + Clone + Send + Sync + 'static) {
    explore(weight, move || {
        let transactions = spilling();
        let page = Arc::new(Page::default());
        let [mut old, mut young] = [(); 2].map(|()| transactions.session());
        old.open();
        let (writing, write) = (page.clone(), write.clone());
        let writer = spawn(&transactions, move |transactions| write(&writing, transactions));
        let purger = spawn(&transactions, |transactions| {
            (0..2).for_each(|_| {
                transactions.merge_version_files(|| true);
                transactions.purge();
            });
        });
        assert_eq!(page.read(old.view().unwrap()), Ok(0));
        let value = page.read(young.open());
        assert_eq!(page.read(old.view().unwrap()), Ok(0));
        assert_eq!(page.read(young.view().unwrap()), value, "a snapshot changed");
        join([writer, purger]);
        assert_eq!(page.read(old.view().unwrap()), Ok(0));
        assert_eq!(page.read(young.view().unwrap()), value, "a snapshot changed");
        drop((old, young));
        transactions.purge();
        assert_eq!((transactions.version_bytes(), transactions.usage().spilled.files), (0, 0));
    });
}

#[test]
fn a_version_that_goes_to_a_file_is_never_missed() {
    snapshots_stay(5, |page, transactions| (0..3).for_each(|_| page.update(&transactions, true)));
}

#[test]
fn a_snapshot_that_is_cancelled_while_its_versions_are_in_files_finds_the_truth_or_an_error() {
    explore(5, || {
        let transactions = spilling();
        let page = Arc::new(Page::default());
        let mut reader = transactions.session();
        reader.open();
        let writing = page.clone();
        let writer = spawn(&transactions, move |transactions| {
            (0..2).for_each(|_| writing.update(&transactions, true));
            transactions.give_up_oldest_snapshot();
            transactions.purge();
        });
        let view = reader.view().unwrap();
        for _ in 0..3 {
            if let Ok(value) = page.read(view) {
                assert_eq!(value, 0);
            }
        }
        join([writer]);
        assert_eq!(page.read(view), Err(SnapshotTooOld));
        assert_eq!((transactions.version_bytes(), transactions.usage().spilled.files), (0, 0));
    });
}

/// Changes a row whose page nobody looks at, and then the page, and both go to files of their own.
fn change_and_spill(page: &Page, transaction: &mut Transaction) {
    transaction.add_version(TABLE, b"j", Stamp(0), Some(KEY.into()));
    transaction.count_change();
    transaction.spill_versions();
    let before = page.0.load(SeqCst);
    transaction.add_version(TABLE, KEY, Stamp(before), Some(before.to_le_bytes()[..].into()));
    page.0.store(transaction.id().0, SeqCst);
    transaction.count_change();
    transaction.spill_versions();
}

fn end(transaction: Transaction, commits: bool) {
    if commits {
        transaction.commit();
    } else {
        transaction.roll_back();
    }
}

#[test]
fn what_a_transaction_under_way_leaves_in_files_holds_until_it_is_taken_back() {
    for commits in [true, false] {
        snapshots_stay(3, move |page, transactions| {
            let mut session = transactions.session();
            let mut transaction = session.begin().unwrap();
            change_and_spill(page, &mut transaction);
            page.0.store(0, SeqCst);
            transaction.take_back_versions(1);
            // The row is free.
            (0..2).for_each(|_| page.update(&transactions, true));
            end(transaction, commits);
        });
    }
}

#[test]
fn a_transaction_ends_while_what_it_has_left_in_files_is_merged() {
    for commits in [true, false] {
        snapshots_stay(3, move |page, transactions| {
            let mut session = transactions.session();
            let mut transaction = session.begin().unwrap();
            change_and_spill(page, &mut transaction);
            if !commits {
                page.0.store(0, SeqCst);
                transaction.take_back_versions(1);
            }
            end(transaction, commits);
        });
    }
}

/// The versions leave the files before the page is what it was.
#[test]
#[should_panic(expected = "a version is missing")]
fn canary_versions_in_files_that_are_taken_back_too_early() {
    find_fault(|| {
        let transactions = spilling();
        let page = Arc::new(Page::default());
        let mut reader = transactions.session();
        reader.open();
        let writing = page.clone();
        let writer = spawn(&transactions, move |transactions| {
            let mut session = transactions.session();
            let mut transaction = session.begin().unwrap();
            change_and_spill(&writing, &mut transaction);
            transaction.take_back_versions(1);
            writing.0.store(0, SeqCst);
            transaction.roll_back();
        });
        assert_eq!(page.read(reader.view().unwrap()), Ok(0));
        join([writer]);
    });
}

#[test]
#[should_panic(expected = "a version is missing")]
fn canary_a_reader_that_does_not_look_into_files() {
    find_fault(|| {
        let transactions = spilling();
        let page = Arc::new(Page::default());
        let mut reader = transactions.session();
        reader.open();
        let writing = page.clone();
        let writer = spawn(&transactions, move |transactions| writing.update(&transactions, true));
        let stamp = page.0.load(SeqCst);
        if stamp != 0 {
            let found = reader.view().unwrap().find_version(TABLE, KEY);
            assert!(matches!(found, Ok(Found::Row(_))), "a version is missing");
        }
        join([writer]);
    });
}

/// Row and reclaimer as the engine has them: a deleted row is removed from its page, which nobody undoes,
/// once every snapshot that counts has seen the deletion.
fn remove_what_the_horizon_allows(transactions: &Transactions, stamp: Stamp, page: &AtomicU64) {
    if transactions.is_seen_by_all(stamp, transactions.horizon()) {
        page.store(REMOVED, SeqCst);
    }
}

const REMOVED: u64 = u64::MAX;

/// A session that pauses and resumes reads the row while it is there, or not at all.
fn read_between_pauses(is_careful: bool) {
    let transactions = new();
    let page = Arc::new(AtomicU64::new(0));
    let mut reader = transactions.session();
    reader.open();
    reader.pause();
    let deleting = page.clone();
    let deleter = spawn(&transactions, move |transactions| {
        let mut session = transactions.session();
        let transaction = session.begin().unwrap();
        let stamp = transaction.id();
        deleting.store(stamp.0, SeqCst);
        transaction.commit();
        transactions.give_up_oldest_snapshot();
        remove_what_the_horizon_allows(&transactions, stamp, &deleting);
    });
    for _ in 0..2 {
        if reader.resume().is_ok() || !is_careful {
            assert_ne!(page.load(SeqCst), REMOVED, "a row was removed under its reader");
            assert_ne!(page.load(SeqCst), REMOVED, "a row was removed under its reader");
        }
        reader.pause();
    }
    join([deleter]);
    reader.close();
}

#[test]
fn the_horizon_passes_a_cancelled_snapshot_between_statements_and_never_in_one() {
    explore(10, || read_between_pauses(true));
}

#[test]
#[should_panic(expected = "removed under its reader")]
fn canary_a_session_that_does_not_ask_when_it_resumes() {
    find_fault(|| read_between_pauses(false));
}

#[test]
fn chunks_are_used_again_under_their_readers() {
    explore(10, || {
        let transactions = new();
        let mut writer = transactions.session();
        let (first, second) = (writer.begin().unwrap(), writer.begin().unwrap());
        let stamps = [first.id(), second.id()];
        first.commit();
        let mut reader = transactions.session();
        let seen = reader.open();
        // The chunk of the first two collapses, settles or keeps its words as the threads meet.
        let recycler = spawn(&transactions, move |transactions| {
            second.commit();
            let mut session = transactions.session();
            (0..5).for_each(|_| {
                session.begin().unwrap().commit();
            });
        });
        for _ in 0..2 {
            assert_eq!(stamps.map(|stamp| seen.sees(stamp)), [true, false]);
            assert!(!transactions.is_active(stamps[0]));
        }
        reader.close();
        let view = reader.open();
        let second_seen = view.sees(stamps[1]);
        assert_eq!([view.sees(stamps[0]), view.sees(stamps[1])], [true, second_seen]);
        join([recycler]);
    });
}

#[test]
fn no_wake_up_is_lost_between_a_release_and_a_wait() {
    explore(10, || {
        let transactions = new();
        let held = Arc::new(AtomicU64::new(0));
        let threads = [LockMode::Exclusive, LockMode::Shared, LockMode::Exclusive].map(|mode| {
            let held = held.clone();
            spawn(&transactions, move |transactions| {
                let mut session = transactions.session();
                let mut transaction = session.begin().unwrap();
                transaction.lock(TABLE, KEY, mode, Patience::Endless).unwrap();
                assert_eq!(held.fetch_add(1, SeqCst), 0, "two hold what excludes");
                held.fetch_sub(1, SeqCst);
                transaction.commit();
            })
        });
        join(threads);
        assert_eq!(transactions.usage().locks, LockUsage::default());
    });
}

#[test]
fn no_wake_up_is_lost_at_wide_locks() {
    // Without any memory for locks each transaction with a few has wide ones.
    let config = || Config { chunk_ids: 2, lock_limit_bytes: 0, ..Config::default() };
    explore(5, move || {
        let transactions = Transactions::new(&config());
        let held: Arc<[AtomicU64; 4]> = Arc::default();
        let threads = [LockMode::Exclusive, LockMode::Shared, LockMode::Exclusive].map(|mode| {
            let held = held.clone();
            spawn(&transactions, move |transactions| {
                let mut session = transactions.session();
                let mut transaction = session.begin().unwrap();
                let mut own = Vec::new();
                for key in 0..4u8 {
                    match transaction.lock(TABLE, &[key], mode, Patience::Endless) {
                        // There is no memory for it, but it has it.
                        Ok(()) | Err(LockError::TableFull) => {}
                        Err(LockError::Deadlock) => break,
                        Err(error) => panic!("{error}"),
                    }
                    assert_eq!(held[usize::from(key)].fetch_add(1, SeqCst), 0, "two hold what excludes");
                    own.push(usize::from(key));
                }
                for key in own {
                    held[key].fetch_sub(1, SeqCst);
                }
                transaction.commit();
            })
        });
        join(threads);
        assert_eq!(transactions.usage().locks, LockUsage::default());
        assert_eq!(transactions.lock_bytes(), 0);
    });
}

#[test]
fn no_wake_up_is_lost_between_an_end_and_a_wait_for_it() {
    explore(10, || {
        let transactions = new();
        let mut session = transactions.session();
        let blocker = session.begin().unwrap();
        let stamp = blocker.id();
        let waiters = [0; 2].map(|_| {
            spawn(&transactions, move |transactions| {
                let mut session = transactions.session();
                let mut transaction = session.begin().unwrap();
                transaction.wait_for_end(stamp, 1, b"row", LockMode::Exclusive, Patience::Endless).unwrap();
                assert!(session.open().sees(stamp));
                transaction.commit();
            })
        });
        blocker.commit();
        join(waiters);
        assert_eq!(transactions.usage().locks, LockUsage::default());
    });
}

#[test]
fn an_interrupted_wait_ends_once_and_leaves_no_trace() {
    explore(10, || {
        let transactions = new();
        let mut session = transactions.session();
        let mut holder = session.begin().unwrap();
        holder.lock(TABLE, KEY, LockMode::Exclusive, Patience::Endless).unwrap();
        let mut session = transactions.session();
        let interrupter = session.interrupter();
        let waiter = spawn(&transactions, move |_| {
            let mut transaction = session.begin().unwrap();
            // The lock was granted while the thread gave up: it is held, and is released with the
            // transaction.
            let result = transaction.lock(TABLE, KEY, LockMode::Exclusive, Patience::Endless);
            assert!(matches!(result, Ok(()) | Err(LockError::Interrupted)));
            transaction.commit();
        });
        let behind = spawn(&transactions, |transactions| {
            let mut session = transactions.session();
            let mut transaction = session.begin().unwrap();
            transaction.lock(TABLE, KEY, LockMode::Shared, Patience::Endless).unwrap();
            transaction.commit();
        });
        let killer = thread::spawn(move || interrupter.interrupt());
        holder.commit();
        join([waiter, behind, killer]);
        assert_eq!(transactions.usage().locks, LockUsage::default());
    });
}

#[test]
fn of_a_stamp_and_an_explicit_lock_one_sees_the_other() {
    explore(10, || {
        let transactions = new();
        let (latch, changed) = (Arc::new(Mutex::new(0)), Arc::new(AtomicU64::new(0)));
        let (row, changing) = (latch.clone(), changed.clone());
        let stamper = spawn(&transactions, move |transactions| {
            let mut session = transactions.session();
            let mut transaction = session.begin().unwrap();
            loop {
                let mut stamp = row.lock();
                if !transaction.is_locked_by_others(TABLE, KEY) {
                    *stamp = transaction.id().0;
                    break;
                }
                drop(stamp);
                transaction.lock(TABLE, KEY, LockMode::Exclusive, Patience::Endless).unwrap();
            }
            changing.fetch_add(1, SeqCst);
            transaction.commit();
        });
        let mut session = transactions.session();
        let mut locker = session.begin().unwrap();
        locker.lock(TABLE, KEY, LockMode::Exclusive, Patience::Endless).unwrap();
        let stamp = Stamp(*latch.lock());
        locker.wait_for_end(stamp, 1, b"row", LockMode::Exclusive, Patience::Endless).unwrap();
        let (before, _) = (changed.load(SeqCst), thread::yield_now());
        assert_eq!(changed.load(SeqCst), before, "changed under an explicit lock");
        locker.commit();
        join([stamper]);
    });
}

#[test]
fn who_gives_up_lets_those_behind_pass() {
    explore(10, || {
        let transactions = new();
        let mut session = transactions.session();
        let mut holder = session.begin().unwrap();
        holder.lock(TABLE, KEY, LockMode::Shared, Patience::Endless).unwrap();
        let mut session = transactions.session();
        let interrupter = session.interrupter();
        let waiter = spawn(&transactions, move |_| {
            let mut transaction = session.begin().unwrap();
            let result = transaction.lock(TABLE, KEY, LockMode::Exclusive, Patience::Endless);
            assert_eq!(result, Err(LockError::Interrupted));
            transaction.roll_back();
        });
        let behind = spawn(&transactions, |transactions| {
            let mut session = transactions.session();
            let mut transaction = session.begin().unwrap();
            transaction.lock(TABLE, KEY, LockMode::Shared, Patience::Endless).unwrap();
            transaction.commit();
        });
        interrupter.interrupt();
        // The holder stays until the one behind has the lock beside it.
        join([waiter, behind]);
        holder.commit();
        assert_eq!(transactions.usage().locks, LockUsage::default());
    });
}

/// Locks two keys in a thread of its own. Counts itself among the victims if it was one.
fn crossing(
    transactions: &Arc<Transactions>,
    keys: [u8; 2],
    victims: &Arc<AtomicU64>,
    met: &Arc<AtomicU64>,
) -> thread::JoinHandle<()> {
    let (victims, met) = (victims.clone(), met.clone());
    spawn(transactions, move |transactions| {
        let mut session = transactions.session();
        let mut transaction = session.begin().unwrap();
        transaction.lock(TABLE, &keys[..1], LockMode::Exclusive, Patience::Endless).unwrap();
        met.fetch_add(1, SeqCst);
        while met.load(SeqCst) < 2 {
            thread::yield_now();
        }
        match transaction.lock(TABLE, &keys[1..], LockMode::Exclusive, Patience::Endless) {
            Ok(()) => {
                transaction.commit();
            }
            Err(LockError::Deadlock) => {
                victims.fetch_add(1, SeqCst);
                transaction.roll_back();
            }
            Err(error) => panic!("{error}"),
        }
    })
}

#[test]
fn a_deadlock_of_two_has_exactly_one_victim() {
    explore(10, || {
        let transactions = new();
        let (victims, met) = (Arc::default(), Arc::default());
        let threads = [[1, 2], [2, 1]].map(|keys| crossing(&transactions, keys, &victims, &met));
        join(threads);
        assert_eq!(victims.load(SeqCst), 1);
        assert_eq!(transactions.usage().locks, LockUsage::default());
    });
}

#[test]
fn a_deadlock_meets_an_interrupt_and_somebody_always_goes_on() {
    explore(10, || {
        let transactions = new();
        let mut sessions = [0; 3].map(|_| transactions.session());
        let interrupter = sessions[0].interrupter();
        let begun = sessions.each_mut().map(|session| session.begin().unwrap());
        let mut n = 0;
        let threads = begun.map(|mut transaction| {
            let keys = [n, (n + 1) % 3];
            n += 1;
            spawn(&transactions, move |_| {
                let locked = keys.iter().try_for_each(|key| {
                    transaction.lock(TABLE, &[*key], LockMode::Shared, Patience::Endless)?;
                    transaction.lock(TABLE, &[*key], LockMode::Exclusive, Patience::Endless)
                });
                match locked {
                    Ok(()) => {
                        transaction.commit();
                    }
                    Err(_) => transaction.roll_back(),
                }
            })
        });
        let killer = thread::spawn(move || interrupter.interrupt());
        join(threads);
        join([killer]);
        assert_eq!(transactions.usage().locks, LockUsage::default());
    });
}

/// Of three transactions one holds nothing but its place in a queue, and a shared lock of a definition that a
/// change of the definition waits for. Each order of events has circles, and each is broken.
#[test]
fn a_circle_through_one_that_only_queues_is_broken() {
    explore(10, || {
        let transactions = new();
        let mut sessions = [0; 4].map(|_| transactions.session());
        let begun = sessions.each_mut().map(|session| session.begin().unwrap());
        let plans: [&[(u64, &[u8], LockMode)]; 4] = [
            &[(TABLE, b"a", LockMode::Exclusive), (TABLE, b"b", LockMode::Exclusive)],
            &[(TABLE, b"b", LockMode::Exclusive), (DEFINITIONS, b"t", LockMode::Shared)],
            &[(DEFINITIONS, b"t", LockMode::Shared), (TABLE, b"a", LockMode::Exclusive)],
            &[(DEFINITIONS, b"t", LockMode::Exclusive)],
        ];
        let threads = begun.into_iter().zip(plans).map(|(mut transaction, plan)| {
            spawn(&transactions, move |_| {
                let locked = plan.iter().try_for_each(|(table, key, mode)| {
                    transaction.lock(*table, key, *mode, Patience::Endless)
                });
                match locked {
                    Ok(()) => {
                        transaction.commit();
                    }
                    Err(error) => {
                        assert_eq!(error, LockError::Deadlock);
                        transaction.roll_back();
                    }
                }
            })
        });
        join(threads.collect::<Vec<_>>());
        assert_eq!(transactions.usage().locks, LockUsage::default());
    });
}

/// The canary: a reader that takes a snapshot for each row sees half a transaction, and is caught.
#[test]
#[should_panic(expected = "half a transaction")]
fn a_reader_with_a_snapshot_for_each_row_is_caught() {
    find_fault(|| {
        let transactions = new();
        let mut writer = transactions.session();
        let transaction = writer.begin().unwrap();
        let stamp = transaction.id();
        let commit = spawn(&transactions, move |_| {
            transaction.commit();
        });
        let mut reader = transactions.session();
        let first = reader.open().sees(stamp);
        assert_eq!(reader.open().sees(stamp), first, "half a transaction, as it must be");
        join([commit]);
    });
}

/// The canary for purge: a reader that closes its snapshot between two reads finds the row changed, and is
/// caught.
#[test]
#[should_panic(expected = "a snapshot changed")]
fn a_reader_that_lets_its_snapshot_go_is_caught() {
    find_fault(|| {
        let transactions = new();
        let page = Arc::new(Page::default());
        let writing = page.clone();
        let writer = spawn(&transactions, move |transactions| {
            writing.update(&transactions, true);
            transactions.purge();
        });
        let mut reader = transactions.session();
        let value = page.read(reader.open()).unwrap();
        reader.close();
        assert_eq!(page.read(reader.open()), Ok(value), "a snapshot changed, as it must");
        join([writer]);
    });
}

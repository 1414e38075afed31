//! Row locks with real threads. No test asserts a time: `usage` shows that a thread that should wait does
//! wait.
#![cfg(not(feature = "shuttle"))]

use base::Stamp;
use base::sync::{Arc, Mutex, thread};
use latchwork_transactions::{
    Config, LockError, LockMode, LockUsage, Patience, SavepointLocks, Session, Transaction, Transactions,
};
use std::time::Duration;

use LockMode::{Exclusive, Shared};

const TABLE: u64 = 1;

fn new() -> Arc<Transactions> {
    Transactions::new(&Config::default())
}

fn begin(transactions: &Arc<Transactions>) -> (Session, Transaction) {
    let mut session = transactions.session();
    let transaction = session.begin().unwrap();
    (session, transaction)
}

fn lock(transaction: &mut Transaction, key: &[u8], mode: LockMode) -> Result<(), LockError> {
    transaction.lock(TABLE, key, mode, Patience::Endless)
}

fn try_lock(transaction: &mut Transaction, key: &[u8], mode: LockMode) -> Result<(), LockError> {
    transaction.lock(TABLE, key, mode, Patience::None)
}

/// Returns when so many transactions wait.
fn until_waiting(transactions: &Transactions, count: usize) {
    while transactions.usage().locks.waiting != count {
        thread::yield_now();
    }
}

#[test]
fn shared_locks_are_shared_and_exclusive_ones_are_not() {
    let transactions = new();
    let [(_a, mut a), (_b, mut b), (_c, mut c)] = [0; 3].map(|_| begin(&transactions));
    assert_eq!(try_lock(&mut a, b"k", Shared), Ok(()));
    assert_eq!(try_lock(&mut b, b"k", Shared), Ok(()));
    assert_eq!(try_lock(&mut c, b"k", Exclusive), Err(LockError::WouldBlock));
    assert!(a.is_locked_by_others(TABLE, b"k") && c.is_locked_by_others(TABLE, b"k"));
    assert!(!c.is_locked_by_others(TABLE, b"other"));
    assert_eq!(c.lock(TABLE + 1, b"k", Exclusive, Patience::None), Ok(()), "another table, another key");
    assert_eq!(try_lock(&mut a, b"k", Exclusive), Err(LockError::WouldBlock));
    b.commit();
    assert!(!a.is_locked_by_others(TABLE, b"k"));
    assert_eq!(try_lock(&mut a, b"k", Exclusive), Ok(()), "the only holder upgrades at once");
    assert_eq!(try_lock(&mut a, b"k", Shared), Ok(()), "the stronger lock is enough");
    assert_eq!(try_lock(&mut c, b"k", Shared), Err(LockError::WouldBlock));
    a.roll_back();
    assert_eq!(try_lock(&mut c, b"k", Shared), Ok(()));
    c.commit();
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

#[test]
fn a_waiter_gets_the_lock_when_the_holder_ends() {
    for (held, wanted) in [(Shared, Exclusive), (Exclusive, Shared), (Exclusive, Exclusive)] {
        let transactions = new();
        let (_holder, mut holder) = begin(&transactions);
        lock(&mut holder, b"k", held).unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let (_session, mut waiter) = begin(&transactions);
                lock(&mut waiter, b"k", wanted).map(|()| waiter.commit())
            });
            until_waiting(&transactions, 1);
            let number = holder.commit();
            assert!(waiter.join().unwrap().unwrap() > number);
        });
        assert_eq!(transactions.usage().locks, LockUsage::default());
    }
}

#[test]
fn an_upgrade_waits_for_the_other_holders_and_goes_before_the_queue() {
    let transactions = new();
    let [(_a, mut a), (_b, mut b)] = [0; 2].map(|_| begin(&transactions));
    lock(&mut a, b"k", Shared).unwrap();
    lock(&mut b, b"k", Shared).unwrap();
    let order = Mutex::new(Vec::<_>::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let (_session, mut other) = begin(&transactions);
            lock(&mut other, b"k", Exclusive).unwrap();
            order.lock().push("queued");
            other.commit();
        });
        until_waiting(&transactions, 1);
        scope.spawn(|| {
            lock(&mut a, b"k", Exclusive).unwrap();
            order.lock().push("upgraded");
            a.commit();
        });
        until_waiting(&transactions, 2);
        b.commit();
    });
    assert_eq!(*order.lock(), ["upgraded", "queued"]);
}

#[test]
fn of_two_who_upgrade_the_same_lock_one_gives_way() {
    let transactions = new();
    let [(_a, mut a), (_b, mut b)] = [0; 2].map(|_| begin(&transactions));
    lock(&mut a, b"k", Shared).unwrap();
    lock(&mut b, b"k", Shared).unwrap();
    b.count_row_changed();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let result = lock(&mut a, b"k", Exclusive);
            a.roll_back();
            result
        });
        until_waiting(&transactions, 1);
        // b has changed a row and a has not: a gives way although b closes the circle.
        assert_eq!(lock(&mut b, b"k", Exclusive), Ok(()));
        assert_eq!(waiting.join().unwrap(), Err(LockError::Deadlock));
    });
    b.commit();
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

#[test]
fn a_circle_of_three_has_one_victim_the_youngest() {
    let transactions = new();
    let mut three: Vec<(Session, Transaction)> = (0..3).map(|_| begin(&transactions)).collect();
    for (n, (_, transaction)) in three.iter_mut().enumerate() {
        lock(transaction, &[n as u8], Exclusive).unwrap();
    }
    let results = thread::scope(|scope| {
        let threads: Vec<_> = three
            .into_iter()
            .enumerate()
            .map(|(n, (_session, mut transaction))| {
                scope.spawn(move || {
                    let result = lock(&mut transaction, &[(n as u8 + 1) % 3], Exclusive);
                    match result {
                        Ok(()) => {
                            transaction.commit();
                        }
                        Err(_) => transaction.roll_back(),
                    }
                    result
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(results, [Ok(()), Ok(()), Err(LockError::Deadlock)]);
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

#[test]
fn a_circle_through_a_row_stamp_and_a_lock_is_found() {
    let transactions = new();
    let [(_a, mut a), (_b, mut b)] = [0; 2].map(|_| begin(&transactions));
    lock(&mut a, b"k", Exclusive).unwrap();
    let stamp = b.id();
    a.count_row_changed();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let result = a.wait_for_end(stamp, 1, b"row", LockMode::Exclusive, Patience::Endless);
            a.commit();
            result
        });
        until_waiting(&transactions, 1);
        assert_eq!(lock(&mut b, b"k", Exclusive), Err(LockError::Deadlock));
        b.roll_back();
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

#[test]
fn the_end_of_a_transaction_wakes_all_who_wait_for_it() {
    let transactions = new();
    let (_blocker, blocker) = begin(&transactions);
    let stamp = blocker.id();
    let (_other, mut other) = begin(&transactions);
    assert_eq!(
        other.wait_for_end(stamp, 1, b"row", LockMode::Exclusive, Patience::None),
        Err(LockError::WouldBlock)
    );
    assert_eq!(
        other.wait_for_end(other.id(), 1, b"row", LockMode::Exclusive, Patience::None),
        Ok(()),
        "nobody waits for itself"
    );
    assert_eq!(
        other.wait_for_end(Stamp(1 << 40), 1, b"row", LockMode::Exclusive, Patience::None),
        Ok(()),
        "nobody has this stamp"
    );
    thread::scope(|scope| {
        let waiters = [0; 4].map(|_| {
            scope.spawn(|| {
                let (_session, mut waiter) = begin(&transactions);
                waiter
                    .wait_for_end(stamp, 1, b"row", LockMode::Exclusive, Patience::Endless)
                    .map(|()| waiter.commit())
            })
        });
        until_waiting(&transactions, 4);
        blocker.roll_back();
        waiters.into_iter().for_each(|waiter| assert!(waiter.join().unwrap().is_ok()));
    });
    assert_eq!(other.wait_for_end(stamp, 1, b"row", LockMode::Exclusive, Patience::None), Ok(()));
    other.commit();
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

#[test]
fn a_timeout_leaves_no_trace_and_lets_those_behind_pass() {
    let transactions = new();
    let [(_a, mut a), (session, mut b), (_c, mut c)] = [0; 3].map(|_| begin(&transactions));
    let limit = Patience::Limit(Duration::from_millis(5));
    lock(&mut a, b"k", Shared).unwrap();
    assert_eq!(b.lock(TABLE, b"k", Exclusive, limit), Err(LockError::LockWaitTimeout));
    assert_eq!(
        b.wait_for_end(a.id(), 1, b"row", LockMode::Exclusive, limit),
        Err(LockError::LockWaitTimeout)
    );
    assert_eq!(transactions.usage().locks, LockUsage { keys: 1, awaited: 0, waiting: 0 });
    assert_eq!(try_lock(&mut c, b"k", Shared), Ok(()), "nobody is queued any more");
    // A shared request behind an exclusive one is let through when that one gives up.
    thread::scope(|scope| {
        let interrupter = session.interrupter();
        let exclusive = scope.spawn(|| lock(&mut b, b"k", Exclusive));
        until_waiting(&transactions, 1);
        let shared = scope.spawn(|| {
            let (_session, mut behind) = begin(&transactions);
            lock(&mut behind, b"k", Shared).map(|()| behind.commit())
        });
        until_waiting(&transactions, 2);
        interrupter.interrupt();
        assert_eq!(exclusive.join().unwrap(), Err(LockError::Interrupted));
        assert!(shared.join().unwrap().is_ok());
    });
    assert!(session.is_interrupted());
    assert_eq!(lock(&mut b, b"k", Exclusive), Err(LockError::Interrupted), "until it is cleared");
    session.clear_interrupt();
    a.commit();
    c.commit();
    assert_eq!(lock(&mut b, b"k", Exclusive), Ok(()));
    b.commit();
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

#[test]
fn locks_are_granted_in_the_order_of_asking() {
    let transactions = new();
    let (_holder, mut holder) = begin(&transactions);
    lock(&mut holder, b"k", Shared).unwrap();
    let order = Mutex::new(Vec::<_>::new());
    thread::scope(|scope| {
        for n in 0..6_usize {
            let (transactions, order) = (&transactions, &order);
            scope.spawn(move || {
                let (_session, mut waiter) = begin(transactions);
                // Shared requests would fit beside the holder, but the exclusive one that is first must not
                // starve.
                lock(&mut waiter, b"k", if n % 2 == 0 { Exclusive } else { Shared }).unwrap();
                order.lock().push(n);
                waiter.commit();
            });
            until_waiting(transactions, n + 1);
        }
        holder.commit();
    });
    assert_eq!(*order.lock(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn locks_taken_since_a_savepoint_stay_as_in_innodb_or_go_if_configured() {
    for release in [SavepointLocks::Keep, SavepointLocks::Release] {
        let transactions = Transactions::new(&Config { savepoint_locks: release, ..Config::default() });
        let [(_a, mut a), (_b, mut b)] = [0; 2].map(|_| begin(&transactions));
        lock(&mut a, b"before", Shared).unwrap();
        let mark = a.lock_mark();
        lock(&mut a, b"before", Exclusive).unwrap();
        lock(&mut a, b"since", Exclusive).unwrap();
        a.roll_back_locks(mark);
        let since = match release {
            SavepointLocks::Keep => Err(LockError::WouldBlock),
            SavepointLocks::Release => Ok(()),
        };
        assert_eq!(try_lock(&mut b, b"since", Exclusive), since);
        assert_eq!(try_lock(&mut b, b"before", Shared), since, "the upgrade is taken back, or not");
        assert_eq!(try_lock(&mut b, b"before", Exclusive), Err(LockError::WouldBlock));
        a.commit();
        assert_eq!(try_lock(&mut b, b"before", Exclusive), Ok(()));
        b.commit();
        assert_eq!(transactions.usage().locks, LockUsage::default());
    }
}

#[test]
fn many_threads_on_few_keys_exclude_each_other_and_all_finish() {
    const THREADS: u64 = 6;
    const ROUNDS: u64 = 200;
    let transactions = new();
    let sums = [const { Mutex::new(0_u64) }; 3];
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (transactions, sums) = (&transactions, &sums);
            scope.spawn(move || {
                let mut session = transactions.session();
                for round in 0..ROUNDS {
                    // Some orders of locking run into deadlocks: the victim rolls back and tries again.
                    let keys = [(thread + round) as usize % 3, (thread * 2 + round * 5) as usize % 3];
                    loop {
                        let mut transaction = session.begin().unwrap();
                        let locked = keys.iter().try_for_each(|key| {
                            lock(&mut transaction, &[*key as u8], Shared)?;
                            lock(&mut transaction, &[*key as u8], Exclusive)
                        });
                        match locked {
                            Ok(()) => {
                                let sum = sums[keys[1]]
                                    .try_lock()
                                    .expect("the row lock excludes others")
                                    .to_owned();
                                thread::yield_now();
                                *sums[keys[1]].try_lock().expect("the row lock excludes others") = sum + 1;
                                transaction.commit();
                                break;
                            }
                            Err(LockError::Deadlock) => transaction.roll_back(),
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(sums.iter().map(|sum| *sum.lock()).sum::<u64>(), THREADS * ROUNDS);
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

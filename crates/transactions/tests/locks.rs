//! Row locks with real threads. No test asserts a time: `usage` shows that a thread that should wait does
//! wait.
#![cfg(not(feature = "shuttle"))]

use base::Stamp;
use base::sync::{Arc, Mutex, thread};
use latchwork_transactions::{
    Config, LockError, LockMode, LockUsage, Patience, Session, Transaction, Transactions,
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
    b.count_change();
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
    a.count_change();
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
fn locks_taken_since_a_mark_are_given_back_and_upgrades_of_others_taken_back() {
    let transactions = new();
    let [(_a, mut a), (_b, mut b)] = [0; 2].map(|_| begin(&transactions));
    lock(&mut a, b"before", Shared).unwrap();
    let mark = a.lock_mark();
    lock(&mut a, b"before", Exclusive).unwrap();
    lock(&mut a, b"since", Exclusive).unwrap();
    a.give_back_locks(mark);
    assert_eq!(try_lock(&mut b, b"since", Exclusive), Ok(()));
    assert_eq!(try_lock(&mut b, b"before", Shared), Ok(()));
    assert_eq!(try_lock(&mut b, b"before", Exclusive), Err(LockError::WouldBlock));
    a.commit();
    assert_eq!(try_lock(&mut b, b"before", Exclusive), Ok(()));
    b.commit();
    assert_eq!(transactions.usage().locks, LockUsage::default());
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

/// A lock table of so little memory that a transaction with some hundred locks has wide ones.
fn small() -> Arc<Transactions> {
    Transactions::new(&Config { lock_limit_bytes: 1 << 10, ..Config::default() })
}

/// Keys enough for a transaction to tell about its memory.
const MANY: u32 = 2_000;
/// What refuses it more: so small a limit has no room for what is not told yet.
const ROOMY: u64 = 100 << 10;

#[test]
fn very_many_locks_become_wide_ones_that_others_meet_key_by_key() {
    for mode in [Shared, Exclusive] {
        let transactions = Transactions::new(&Config { lock_limit_bytes: ROOMY, ..Config::default() });
        let [(_a, mut a), (_b, mut b)] = [0; 2].map(|_| begin(&transactions));
        for key in 0..MANY {
            lock(&mut a, &key.to_be_bytes(), mode).unwrap();
        }
        assert!(transactions.usage().locks.keys < MANY as usize / 2, "{:?}", transactions.usage().locks);
        assert!(transactions.lock_bytes() <= ROOMY);
        for key in 0..MANY {
            let key = key.to_be_bytes();
            assert!(b.is_locked_by_others(TABLE, &key));
            assert_eq!(try_lock(&mut b, &key, Exclusive), Err(LockError::WouldBlock));
        }
        assert!(transactions.usage().locks.keys < MANY as usize / 2, "what was refused leaves nothing");
        let shared = try_lock(&mut b, &7u32.to_be_bytes(), Shared);
        assert_eq!(shared.is_ok(), mode == Shared);
        assert_eq!(b.lock(TABLE + 1, &7u32.to_be_bytes(), Exclusive, Patience::None), Ok(()));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&mut b, &9u32.to_be_bytes(), Exclusive).map(|()| b.commit()));
            until_waiting(&transactions, 1);
            let number = a.commit();
            assert!(waiting.join().unwrap().unwrap() > number);
        });
        assert_eq!(transactions.usage().locks, LockUsage::default());
        assert_eq!(transactions.lock_bytes(), 0);
    }
}

#[test]
fn many_may_share_wide_locks_and_who_wants_one_key_alone_waits_for_them_all() {
    let transactions = Transactions::new(&Config { lock_limit_bytes: ROOMY, ..Config::default() });
    let [(_a, mut a), (_b, mut b), (_c, mut c)] = [0; 3].map(|_| begin(&transactions));
    for holder in [&mut a, &mut b] {
        for key in 0..MANY {
            lock(holder, &key.to_be_bytes(), Shared).unwrap();
        }
    }
    let key = 11u32.to_be_bytes();
    assert_eq!(try_lock(&mut a, &key, Exclusive), Err(LockError::WouldBlock));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| lock(&mut c, &key, Exclusive).map(|()| c));
        until_waiting(&transactions, 1);
        a.commit();
        until_waiting(&transactions, 1);
        b.commit();
        waiting.join().unwrap().unwrap().commit();
    });
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

#[test]
fn locks_on_keys_that_others_hold_or_wait_for_stay_as_they_are() {
    let transactions = Transactions::new(&Config { lock_limit_bytes: ROOMY, ..Config::default() });
    let [(_a, mut a), (_b, mut b), (_c, mut c)] = [0; 3].map(|_| begin(&transactions));
    lock(&mut b, b"b", Exclusive).unwrap();
    lock(&mut a, b"a", Exclusive).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| lock(&mut c, b"a", Exclusive).map(|()| c.commit()));
        until_waiting(&transactions, 1);
        for key in 0..MANY {
            lock(&mut a, &key.to_be_bytes(), Shared).unwrap();
        }
        assert!(transactions.usage().locks.keys < MANY as usize / 2);
        assert_eq!(try_lock(&mut a, b"b", Shared), Err(LockError::WouldBlock));
        assert_eq!(try_lock(&mut b, b"a", Shared), Err(LockError::WouldBlock), "of a, alone");
        assert_eq!(transactions.usage().locks.waiting, 1);
        a.roll_back();
        waiting.join().unwrap().unwrap();
    });
    b.commit();
    assert_eq!(transactions.usage().locks, LockUsage::default());
}

#[test]
fn what_wide_locks_have_replaced_is_not_given_back_and_what_came_later_is() {
    let transactions = Transactions::new(&Config { lock_limit_bytes: ROOMY, ..Config::default() });
    let [(_a, mut a), (_b, mut b)] = [0; 2].map(|_| begin(&transactions));
    let first = a.lock_mark();
    for key in 0..MANY {
        lock(&mut a, &key.to_be_bytes(), Shared).unwrap();
    }
    let mark = a.lock_mark();
    a.lock(TABLE + 1, b"later", Exclusive, Patience::None).unwrap();
    a.give_back_locks(mark);
    assert_eq!(b.lock(TABLE + 1, b"later", Exclusive, Patience::None), Ok(()));
    a.give_back_locks(first);
    assert_eq!(try_lock(&mut b, &1u32.to_be_bytes(), Exclusive), Err(LockError::WouldBlock));
    a.commit();
    b.commit();
    assert_eq!(transactions.usage().locks, LockUsage::default());
    assert_eq!(transactions.lock_bytes(), 0);
}

#[test]
fn more_locks_than_there_is_memory_for_are_refused_and_the_transaction_can_end() {
    let transactions = small();
    let [(_a, mut a), (_b, mut b)] = [0; 2].map(|_| begin(&transactions));
    // Of tables with one row each no large part can be locked.
    let refused = (0..MANY).map(|n| a.lock(100 + u64::from(n), b"k", Shared, Patience::None));
    assert!(refused.filter(|result| *result == Err(LockError::TableFull)).count() > 0);
    a.roll_back();
    assert_eq!(try_lock(&mut b, b"k", Exclusive), Ok(()));
    b.commit();
    assert_eq!(transactions.usage().locks, LockUsage::default());
    assert_eq!(transactions.lock_bytes(), 0);
}

/// Draws requests with so little memory that wide locks come and go, and compares with a map of who was given
/// what: nobody is given what another holds in the way.
#[test]
fn wide_locks_never_give_two_what_excludes() {
    use base::random::Random;
    use std::collections::BTreeMap;
    for seed in 0..6 {
        let mut random = Random::new(seed, 0);
        let transactions = Transactions::new(&Config { lock_limit_bytes: ROOMY, ..Config::default() });
        let mut sessions: Vec<(Session, Option<Transaction>)> =
            (0..4).map(|_| (transactions.session(), None)).collect();
        let mut given: BTreeMap<((usize, u32), usize), LockMode> = BTreeMap::new();
        let (mut grants, mut fewest) = (0, 0);
        for step in 0..30_000 {
            let who = random.index(sessions.len());
            let (session, transaction) = &mut sessions[who];
            let transaction = transaction.get_or_insert_with(|| session.begin().unwrap());
            if random.below(3_000) == 0 {
                given.retain(|(_, owner), _| *owner != who);
                sessions[who].1.take().unwrap().commit();
                continue;
            }
            // Each has a table of its own, and is in another's now and then.
            let visits = random.below(50) == 0;
            let table = if visits { random.index(4) } else { who };
            let key = (table, if visits { random.below(step + 1) } else { step });
            let mode = if random.below(4) == 0 { Exclusive } else { Shared };
            let got = transaction.lock(table as u64, &key.1.to_be_bytes(), mode, Patience::None);
            if got.is_ok() {
                grants += 1;
                for ((_, other), theirs) in given.range((key, 0)..=(key, usize::MAX)) {
                    let both_shared = mode == Shared && *theirs == Shared;
                    assert!(*other == who || both_shared, "seed {seed}, step {step}");
                }
                let own = given.entry((key, who)).or_insert(mode);
                *own = (*own).max(mode);
            }
            if given.len() > transactions.usage().locks.keys + 2_000 {
                fewest += 1;
            }
        }
        assert!(grants > 10_000 && fewest > 0, "{grants} {fewest}");
        for (_, transaction) in &mut sessions {
            transaction.take().map(Transaction::commit);
        }
        assert_eq!(transactions.usage().locks, LockUsage::default());
        assert_eq!(transactions.lock_bytes(), 0);
    }
}

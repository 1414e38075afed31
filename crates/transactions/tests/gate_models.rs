//! Models of the gate: `cargo test -p latchwork-transactions --features shuttle --test gate_models`
//!
//! The scheduler reports a deadlock when no thread can go on. A statement that the gate never lets in shows
//! that way.
#![cfg(feature = "shuttle")]

use base::sync::atomic::{AtomicU32, Ordering::SeqCst};
use base::sync::{Arc, shuttle, thread};
use latchwork_transactions::{Config, LockError, LockMode, Patience, Session, Transactions};

const ITERATIONS: usize = 2_000;

fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), ITERATIONS);
    shuttle::check_pct(model, ITERATIONS, 3);
}

/// Counts who is inside, apart from the gate.
#[derive(Debug, Default)]
struct Room(AtomicU32);

impl Room {
    fn come_in(&self, limit: u32) {
        let inside = self.0.fetch_add(1, SeqCst) + 1;
        assert!(inside <= limit, "{inside} are inside, and {limit} may be");
        thread::yield_now();
    }

    fn go_out(&self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn spawn(
    transactions: &Arc<Transactions>,
    room: &Arc<Room>,
    body: impl FnOnce(Session, &Room) + Send + 'static,
) -> thread::JoinHandle<()> {
    let (session, room) = (transactions.session(), room.clone());
    thread::spawn(move || body(session, &room))
}

fn finish(transactions: &Transactions, threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let counts = transactions.gate_counts();
    assert_eq!((counts.inside, counts.queued), (0, 0));
}

#[test]
fn no_more_than_the_limit_are_inside_and_everybody_gets_in() {
    for limit in [1, 2] {
        explore(move || {
            let (transactions, room) = (Transactions::new(&Config::default()), Arc::new(Room::default()));
            transactions.set_concurrency(limit);
            // Two returns, and a ticket for one.
            transactions.set_concurrency_tickets(1);
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    spawn(&transactions, &room, move |session, room| {
                        session.enter(Patience::Endless).unwrap();
                        room.come_in(limit);
                        for _ in 0..2 {
                            room.go_out();
                            session.outside(Patience::Endless, thread::yield_now).unwrap();
                            room.come_in(limit);
                        }
                        room.go_out();
                        session.exit();
                    })
                })
                .collect();
            finish(&transactions, threads);
        });
    }
}

#[test]
fn who_waits_for_a_row_is_not_inside_and_lets_its_holder_in() {
    explore(|| {
        let (transactions, room) = (Transactions::new(&Config::default()), Arc::new(Room::default()));
        transactions.set_concurrency(1);
        // Each takes the row in a statement of its own and then runs another: the holder has to get in while
        // others wait for the row.
        let threads: Vec<_> = (0..2)
            .map(|_| {
                spawn(&transactions, &room, |mut session, room| {
                    session.enter(Patience::Endless).unwrap();
                    let mut transaction = session.begin().unwrap();
                    transaction.lock(1, b"row", LockMode::Exclusive, Patience::Endless).unwrap();
                    room.come_in(1);
                    room.go_out();
                    session.exit();
                    session.enter(Patience::Endless).unwrap();
                    room.come_in(1);
                    room.go_out();
                    session.exit();
                    transaction.commit();
                })
            })
            .collect();
        finish(&transactions, threads);
    });
}

#[test]
fn the_limit_may_change_while_statements_come_and_go() {
    explore(|| {
        let (transactions, room) = (Transactions::new(&Config::default()), Arc::new(Room::default()));
        transactions.set_concurrency(2);
        let mut threads: Vec<_> = (0..3)
            .map(|_| {
                spawn(&transactions, &room, |session, room| {
                    session.enter(Patience::Endless).unwrap();
                    room.come_in(2);
                    room.go_out();
                    session.exit();
                })
            })
            .collect();
        let changes = transactions.clone();
        threads.push(thread::spawn(move || {
            [1, 2, 1].into_iter().for_each(|limit| changes.set_concurrency(limit))
        }));
        finish(&transactions, threads);
    });
}

#[test]
fn taking_the_limit_away_leaves_nobody_in_the_queue() {
    explore(|| {
        let (transactions, room) = (Transactions::new(&Config::default()), Arc::new(Room::default()));
        transactions.set_concurrency(1);
        let mut threads: Vec<_> = (0..3)
            .map(|_| {
                spawn(&transactions, &room, |session, _| {
                    session.enter(Patience::Endless).unwrap();
                    session.outside(Patience::Endless, thread::yield_now).unwrap();
                    session.exit();
                })
            })
            .collect();
        let changes = transactions.clone();
        threads.push(thread::spawn(move || changes.set_concurrency(0)));
        finish(&transactions, threads);
    });
}

#[test]
fn who_is_killed_in_the_queue_leaves_it_to_the_others() {
    explore(|| {
        let (transactions, room) = (Transactions::new(&Config::default()), Arc::new(Room::default()));
        transactions.set_concurrency(1);
        let victim = transactions.session();
        let interrupter = victim.interrupter();
        let mut threads: Vec<_> = (0..2)
            .map(|_| {
                spawn(&transactions, &room, |session, room| {
                    session.enter(Patience::Endless).unwrap();
                    room.come_in(1);
                    room.go_out();
                    session.exit();
                })
            })
            .collect();
        let shared = room.clone();
        threads.push(thread::spawn(move || match victim.enter(Patience::Endless) {
            Ok(()) => {
                shared.come_in(1);
                shared.go_out();
                victim.exit();
            }
            Err(error) => assert_eq!(error, LockError::Interrupted),
        }));
        interrupter.interrupt();
        finish(&transactions, threads);
    });
}

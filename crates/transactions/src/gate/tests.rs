use super::*;
use std::sync::mpsc;
use std::time::Duration;

const FOREVER: Patience = Patience::Endless;

struct Fixture {
    gate: Arc<Gate>,
}

impl Fixture {
    fn new(limit: u32) -> Fixture {
        let gate = Arc::new(Gate::default());
        gate.set_limit(limit);
        Fixture { gate }
    }

    fn waiter(&self) -> Arc<Waiter> {
        Arc::new(Waiter::new(self.gate.clone()))
    }

    fn counts(&self) -> (u64, u64) {
        let GateCounts { inside, queued } = self.gate.counts();
        (inside, queued)
    }

    fn until_queued(&self, queued: u64) {
        while self.gate.counts().queued != queued {
            std::thread::yield_now();
        }
    }
}

#[test]
fn without_a_limit_nobody_is_counted_and_nobody_waits() {
    let fixture = Fixture::new(0);
    let waiter = fixture.waiter();
    fixture.gate.enter(&waiter, FOREVER).unwrap();
    assert_eq!(fixture.counts(), (0, 0));
    // A limit that comes meanwhile counts from the next statement on.
    fixture.gate.set_limit(1);
    let next = fixture.waiter();
    fixture.gate.enter(&next, FOREVER).unwrap();
    fixture.gate.exit(&waiter);
    assert_eq!(fixture.counts(), (1, 0));
    fixture.gate.exit(&next);
    assert_eq!(fixture.counts(), (0, 0));
}

#[test]
fn the_queue_is_served_in_order_and_returns_go_first_while_they_have_tickets() {
    let fixture = Fixture::new(1);
    fixture.gate.set_tickets(1);
    let first = fixture.waiter();
    fixture.gate.enter(&first, FOREVER).unwrap();
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for name in ["second", "third"] {
            let (waiter, gate, send) = (fixture.waiter(), fixture.gate.clone(), send.clone());
            scope.spawn(move || {
                gate.enter(&waiter, FOREVER).unwrap();
                send.send((name, waiter)).unwrap();
            });
            fixture.until_queued(if name == "second" { 1 } else { 2 });
        }
        fixture.gate.leave(&first);
        let (name, second) = receive.recv().unwrap();
        assert_eq!(name, "second");
        let gate = fixture.gate.clone();
        let back = scope.spawn(move || {
            gate.come_back(&first, FOREVER).unwrap();
            assert_eq!(first.visit.standing(), Standing::Inside);
            first
        });
        fixture.until_queued(2);
        fixture.gate.exit(&second);
        let first = back.join().unwrap();
        assert!(receive.try_recv().is_err(), "the third came after the first, who had a ticket");
        // The ticket is used up: from now on the first queues behind those that are there.
        fixture.gate.leave(&first);
        let (name, third) = receive.recv().unwrap();
        assert_eq!(name, "third");
        let (fourth, gate) = (fixture.waiter(), fixture.gate.clone());
        let fourth_entered = scope.spawn({
            let fourth = fourth.clone();
            move || gate.enter(&fourth, FOREVER).unwrap()
        });
        fixture.until_queued(1);
        let gate = fixture.gate.clone();
        let back = scope.spawn(move || {
            gate.come_back(&first, FOREVER).unwrap();
            first
        });
        fixture.until_queued(2);
        fixture.gate.exit(&third);
        fourth_entered.join().unwrap();
        assert_eq!(fixture.counts(), (1, 1));
        fixture.gate.exit(&fourth);
        fixture.gate.exit(&back.join().unwrap());
    });
    assert_eq!(fixture.counts(), (0, 0));
}

#[test]
fn whoever_is_killed_or_has_waited_long_enough_leaves_the_queue() {
    let fixture = Fixture::new(1);
    let first = fixture.waiter();
    fixture.gate.enter(&first, FOREVER).unwrap();
    let late = fixture.waiter();
    let soon = Patience::Limit(Duration::from_millis(1));
    assert_eq!(fixture.gate.enter(&late, soon), Err(LockError::LockWaitTimeout));
    assert_eq!((fixture.counts(), late.visit.standing()), ((1, 0), Standing::Outside));
    std::thread::scope(|scope| {
        let killed = fixture.waiter();
        let waits = scope.spawn({
            let (gate, killed) = (fixture.gate.clone(), killed.clone());
            move || gate.enter(&killed, FOREVER)
        });
        fixture.until_queued(1);
        killed.interrupt();
        assert_eq!(waits.join().unwrap(), Err(LockError::Interrupted));
    });
    // A session that is away may be killed when it comes back, and still learns of it.
    fixture.gate.leave(&first);
    let other = fixture.waiter();
    fixture.gate.enter(&other, FOREVER).unwrap();
    first.interrupt();
    assert_eq!(fixture.gate.come_back(&first, FOREVER), Err(LockError::Interrupted));
    fixture.gate.exit(&first);
    fixture.gate.exit(&other);
    assert_eq!(fixture.counts(), (0, 0));
}

#[test]
fn taking_the_limit_away_lets_everybody_in() {
    let fixture = Fixture::new(1);
    let first = fixture.waiter();
    fixture.gate.enter(&first, FOREVER).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (waiter, gate) = (fixture.waiter(), fixture.gate.clone());
            scope.spawn(move || gate.enter(&waiter, FOREVER).map(|()| gate.exit(&waiter)).unwrap());
        }
        fixture.until_queued(3);
        fixture.gate.set_limit(0);
    });
    fixture.gate.exit(&first);
    assert_eq!(fixture.counts(), (0, 0));
}

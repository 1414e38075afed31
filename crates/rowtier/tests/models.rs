//! Models: every interleaving that a randomised scheduler finds, of the few steps that matter.
//!
//! `cargo test -p latchwork-rowtier --features shuttle`
//!
//! The scheduler switches threads at every atomic and mutex. It runs sequentially consistent memory only; the
//! weak orderings are argued beside each in the code. Canaries at the end show that the models can fail.
#![cfg(feature = "shuttle")]

use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, Mutex, find_fault, shuttle, thread};
use latchwork_rowtier::{Announced, Config, Lease, RowTier};

const ITERATIONS: usize = 5_000;
/// How many changes of priority a schedule has, and one more. With 3 a fault that needs three is not found.
const DEPTHS: [usize; 2] = [3, 5];
const OWNER: u64 = 5;
/// Room for three blocks of some entries each, beside the two buckets of models.
const SMALL: usize = 4 * 16 * 8 + 2 * 128;

/// A page with two values under one latch, and the tier before it.
struct Model {
    tier: RowTier,
    kept: Announced,
    pages: [Mutex<u64>; 4],
    /// The newest published value of each key: a reader that begins later must see it.
    published: [AtomicU64; 4],
}

/// What a broken variant leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The lease is taken after the page was read.
    LateLease,
    /// The writer says what it changes after it has let go of the page.
    LateInvalidation,
    /// The writer's own lease is taken after that.
    LateReplacement,
}

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

impl Model {
    fn new(bytes: usize) -> Arc<Model> {
        let config = Config { block_words: 16, ..Config::new(4 << 10) };
        let tier = RowTier::with_config(config).unwrap();
        tier.resize(bytes);
        assert!(tier.is_on());
        Arc::new(Model {
            tier,
            kept: Announced::default(),
            pages: Default::default(),
            published: Default::default(),
        })
    }

    fn found(&self, number: usize) -> Option<u64> {
        let mut out = Vec::new();
        let key = key(number);
        self.tier.get(self.tier.probe(OWNER, &key), &key, &mut out).then(|| {
            assert_eq!(out[..8], out[8..], "a value is torn");
            u64::from_le_bytes(out[..8].try_into().unwrap())
        })
    }

    fn put(&self, lease: Option<Lease>, number: usize, value: u64) {
        if let Some(lease) = lease {
            self.tier.put(lease, &key(number), &[&value.to_le_bytes(), &value.to_le_bytes()]);
        }
    }

    fn read(&self, number: usize, fault: Fault) -> u64 {
        let at_least = self.published[number].load(SeqCst);
        let value = self.found(number).unwrap_or_else(|| {
            let lease = || self.tier.lease(OWNER, &key(number), &self.kept);
            let early = lease();
            let value = *self.pages[number].lock();
            self.put(if fault == Fault::LateLease { lease() } else { early }, number, value);
            value
        });
        assert!(value >= at_least, "old: a reader finds {value} after {at_least} was there");
        value
    }

    fn write(&self, number: usize, value: u64, fault: Fault) {
        self.change(number, |_| value, fault);
    }

    fn add_one(&self, number: usize, fault: Fault) {
        self.change(number, |value| value + 1, fault);
    }

    fn change(&self, number: usize, change: impl FnOnce(u64) -> u64, fault: Fault) {
        let invalidate = || self.tier.invalidate(OWNER, || key(number), &self.kept);
        let lease = || self.tier.lease_to_replace(OWNER, &key(number), &self.kept);
        let mut page = self.pages[number].lock();
        let was_kept = fault != Fault::LateInvalidation && invalidate();
        let value = change(*page);
        *page = value;
        let mut replacement = was_kept.then(lease).flatten();
        if fault == Fault::LateInvalidation {
            // Others may come, for what the page says is what is true.
            self.published[number].store(value, SeqCst);
        }
        drop(page);
        self.published[number].fetch_max(value, SeqCst);
        if fault == Fault::LateInvalidation {
            invalidate();
        }
        if fault == Fault::LateReplacement {
            replacement = was_kept.then(lease).flatten();
        }
        self.put(replacement, number, value);
    }

    /// The tier says what the pages say.
    fn end(&self) {
        for number in 0..4 {
            let truth = *self.pages[number].lock();
            assert!(
                self.found(number).is_none_or(|value| value == truth),
                "old: the tier is not what the page is"
            );
        }
        let status = self.tier.status();
        assert!(status.bytes <= status.size, "{status:?}");
        assert_eq!(status.entries, (0..4).filter(|number| self.found(*number).is_some()).count());
    }
}

fn check(run: impl Fn() + Send + Sync + 'static) {
    let run = Arc::new(run);
    for depth in DEPTHS {
        let run = run.clone();
        shuttle::check_pct(move || run(), ITERATIONS, depth);
    }
    shuttle::check_random(move || run(), ITERATIONS);
}

fn spawn(model: &Arc<Model>, run: impl FnOnce(&Model) + Send + 'static) -> thread::JoinHandle<()> {
    let model = model.clone();
    thread::spawn(move || run(&model))
}

fn all(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn readers_and_a_writer(fault: Fault) {
    let model = Model::new(SMALL);
    all([
        spawn(&model, move |model| {
            model.read(1, fault);
            model.read(1, fault);
        }),
        spawn(&model, move |model| {
            model.write(1, 1, fault);
            model.write(1, 2, fault);
        }),
        spawn(&model, move |model| {
            model.read(1, fault);
        }),
    ]);
    model.end();
}

#[test]
fn a_reader_never_finds_what_a_writer_has_changed() {
    check(|| readers_and_a_writer(Fault::None));
}

/// Writers of a value that is kept, each of which puts its own in the old one's place.
fn writers_that_replace(fault: Fault) {
    let model = Model::new(SMALL);
    model.read(1, Fault::None);
    let writer = || {
        spawn(&model, move |model| {
            model.add_one(1, fault);
            model.add_one(1, fault);
        })
    };
    all([
        writer(),
        writer(),
        spawn(&model, move |model| {
            model.read(1, fault);
        }),
    ]);
    model.end();
}

#[test]
fn what_writers_put_in_place_of_what_was_kept_is_what_the_page_says() {
    check(|| writers_that_replace(Fault::None));
}

#[test]
#[should_panic(expected = "old:")]
fn a_canary_that_takes_its_lease_to_replace_too_late_is_caught() {
    find_fault(|| writers_that_replace(Fault::LateReplacement));
}

#[test]
fn the_first_reader_of_all_and_a_writer_see_each_other() {
    // Nothing is announced yet: the writer may find that it need not say anything.
    check(|| {
        let model = Model::new(SMALL);
        all([
            spawn(&model, |model| {
                model.read(0, Fault::None);
            }),
            spawn(&model, |model| model.write(0, 1, Fault::None)),
        ]);
        model.end();
    });
}

#[test]
fn evictions_take_no_value_apart_under_a_reader() {
    check(|| {
        let model = Model::new(SMALL);
        (0..4).for_each(|number| model.write(number, 10 + number as u64, Fault::None));
        all([
            spawn(&model, |model| {
                for number in [0, 1, 2, 3, 0] {
                    assert_eq!(model.read(number, Fault::None), 10 + number as u64);
                }
            }),
            spawn(&model, |model| {
                for round in 0..3 {
                    // Fills that are read by nobody, and push the others out.
                    for number in 100..106 {
                        model.put(model.tier.lease(OWNER, &key(number), &model.kept), number, round);
                    }
                    assert_eq!(model.read(0, Fault::None), 10);
                }
            }),
        ]);
        for number in 100..106 {
            model.tier.invalidate(OWNER, || key(number), &model.kept);
        }
        model.end();
    });
}

#[test]
fn the_size_changes_under_readers_and_writers() {
    check(|| {
        let model = Model::new(SMALL);
        all([
            spawn(&model, |model| {
                model.read(0, Fault::None);
                model.read(1, Fault::None);
                model.read(0, Fault::None);
            }),
            spawn(&model, |model| {
                model.write(0, 1, Fault::None);
                model.write(0, 2, Fault::None);
            }),
            spawn(&model, |model| {
                model.tier.resize(0);
                model.tier.resize(2 * SMALL);
                model.tier.resize(SMALL);
            }),
        ]);
        model.end();
    });
}

#[test]
fn a_lease_that_is_taken_while_the_tier_is_switched_off_is_refused() {
    // A reader may have seen the tier on, and take its lease after the tier has gone off. The writer says
    // nothing then, and the tier is on again when the reader puts what it read before the change.
    check(|| {
        let model = Model::new(SMALL);
        all([
            spawn(&model, |model| {
                let lease = model.tier.lease(OWNER, &key(0), &model.kept);
                let value = *model.pages[0].lock();
                model.put(lease, 0, value);
            }),
            spawn(&model, |model| {
                model.tier.resize(0);
                model.write(0, 1, Fault::None);
                model.tier.resize(SMALL);
            }),
        ]);
        model.end();
    });
}

#[test]
fn buckets_split_and_merge_under_readers_and_writers() {
    check(|| {
        let model = Model::new(3 << 10);
        (0..4).for_each(|number| model.write(number, 1, Fault::None));
        all([
            spawn(&model, |model| {
                for number in [0, 1, 2, 3, 0, 1] {
                    model.read(number, Fault::None);
                }
            }),
            spawn(&model, |model| {
                for number in 100..112 {
                    model.put(model.tier.lease(OWNER, &key(number), &model.kept), number, 0);
                }
                for number in 100..112 {
                    model.tier.invalidate(OWNER, || key(number), &model.kept);
                }
                model.tier.resize(SMALL);
            }),
            spawn(&model, |model| {
                model.write(0, 2, Fault::None);
                model.write(3, 2, Fault::None);
            }),
        ]);
        model.end();
    });
}

#[test]
#[should_panic(expected = "old:")]
fn a_canary_that_takes_its_lease_too_late_is_caught() {
    find_fault(|| readers_and_a_writer(Fault::LateLease));
}

#[test]
#[should_panic(expected = "old:")]
fn a_canary_that_invalidates_without_the_latch_is_caught() {
    find_fault(|| readers_and_a_writer(Fault::LateInvalidation));
}

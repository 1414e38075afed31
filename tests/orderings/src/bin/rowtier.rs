//! The row tier: buckets and entries that are read without a latch, owners that are announced.

extern crate latchwork_orderings as base;

#[allow(dead_code, reason = "models need a part of each source")]
#[path = "../../../../crates/rowtier/src"]
mod sources {
    pub mod announced;
    pub mod entry;
    pub mod hash;
    pub mod index;
    pub mod slot;
    pub mod store;
}

use base::region::Region;
use base::runner::{Excused, Model};
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use base::sync::{Arc, Mutex, thread};
use sources::announced::Announced;
use sources::hash::Hash;
use sources::index::{Index, STRIPES};
use sources::{entry, hash, index, slot, store};
use std::process::ExitCode;

const OWNER: u64 = 5;
const KEY: &[u8] = b"k";

/// A tier with room for one entry, whose value is sixteen bytes of the same number.
struct Tier {
    index: Index,
    words: Region<AtomicU64>,
}

fn hash_of(key: &[u8]) -> Hash {
    Hash::of(OWNER, key)
}

impl Tier {
    fn new() -> Arc<Tier> {
        let tier = Tier { index: Index::new(3).expect("boxes"), words: Region::new(4).expect("a box") };
        tier.index.switch_on();
        Arc::new(tier)
    }

    fn put(&self, key: &[u8], value: u8) {
        store::write(&self.words, 0, OWNER, key, &[&[value; 16]]);
        let mut bucket = self.index.latch(hash_of(key).low()).expect("the tier is on");
        bucket.insert(hash_of(key), 0, false, 0);
    }

    fn invalidate(&self, key: &[u8]) {
        let mut bucket = self.index.latch(hash_of(key).low()).expect("the tier is on");
        assert!(bucket.invalidate(hash_of(key)));
    }

    /// As a look-up in the tier.
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (_, bucket) = self.index.bucket_of(hash_of(key))?;
        let version = bucket.version()?;
        let (_, slot) = bucket.find(hash_of(key))?;
        let mut value = Vec::new();
        let is_found = entry::read(&self.words, slot.place(), OWNER, key, &mut value);
        (is_found && bucket.is_still(version)).then_some(value)
    }
}

fn spawn(tier: &Arc<Tier>, run: impl FnOnce(&Tier) + 'static) -> thread::JoinHandle<()> {
    let tier = tier.clone();
    thread::spawn(move || run(&tier))
}

/// What a look-up gives is one of these values, whole.
fn assert_whole(value: Option<Vec<u8>>, allowed: &[u8]) {
    if let Some(value) = value {
        assert!(allowed.iter().any(|byte| value == [*byte; 16]), "a wrong value was believed: {value:?}");
    }
}

fn an_entry_that_comes_is_whole() {
    let tier = Tier::new();
    let writer = spawn(&tier, |tier| tier.put(KEY, 2));
    assert_whole(tier.get(KEY), &[2]);
    writer.join().expect("a panic ends the model");
}

/// The place of an entry is used again, as that of a block that was swept.
fn an_entry_whose_place_is_used_again_is_not_believed() {
    let tier = Tier::new();
    tier.put(KEY, 1);
    let writer = spawn(&tier, |tier| {
        tier.invalidate(KEY);
        tier.put(KEY, 2);
    });
    assert_whole(tier.get(KEY), &[1, 2]);
    writer.join().expect("a panic ends the model");
}

/// As above. One thread sweeps, and another, which has the store's latch after it, uses the place.
fn an_entry_whose_place_another_thread_uses_is_not_believed() {
    let tier = Tier::new();
    tier.put(KEY, 1);
    let is_free = Arc::new(Mutex::new(false));
    let sweepers = is_free.clone();
    let sweeper = spawn(&tier, move |tier| {
        let mut is_free = sweepers.lock();
        tier.invalidate(KEY);
        *is_free = true;
    });
    let writer = spawn(&tier, move |tier| {
        if *is_free.lock() {
            tier.put(KEY, 2);
        }
    });
    assert_whole(tier.get(KEY), &[1, 2]);
    [sweeper, writer].into_iter().for_each(|thread| thread.join().expect("a panic ends the model"));
}

/// A bucket is split while a reader is in it, and the place of the entry that moved is used again.
fn an_entry_that_moves_to_a_new_bucket_is_not_believed_in_the_old() {
    let tier = Tier::new();
    // The bucket of such a key is the parent of the next bucket.
    let key = (0..=255_u8).map(|byte| [byte]).find(|key| hash_of(key).low() as usize % 4 == STRIPES);
    let key = key.expect("one key in four");
    tier.put(&key, 1);
    let low = hash_of(&key).low();
    tier.index.latch(low).expect("the tier is on").counts.entries += 8;
    let writer = spawn(&tier, move |tier| {
        tier.index.grow_if_crowded(low, |_| low);
        assert_eq!(tier.index.count(), STRIPES + 1);
        tier.invalidate(&key);
        tier.put(&key, 2);
    });
    assert_whole(tier.get(&key), &[1, 2]);
    writer.join().expect("a panic ends the model");
}

fn a_reader_sees_the_writers_latch_or_the_writer_the_announcement() {
    let (latch, announced) = (Arc::new(AtomicU64::new(0)), Arc::new(Announced::default()));
    let (readers_latch, readers_announced) = (latch.clone(), announced.clone());
    let reader = thread::spawn(move || {
        readers_announced.announce(OWNER);
        readers_latch.load(Relaxed) == 1
    });
    latch.store(1, Relaxed);
    let is_announced = announced.is_announced(OWNER);
    let sees_latch = reader.join().expect("a panic ends the model");
    assert!(is_announced || sees_latch, "neither saw the other");
}

const MODELS: &[Model] = base::models![
    an_entry_that_comes_is_whole: Some(2),
    an_entry_whose_place_is_used_again_is_not_believed: Some(2),
    an_entry_whose_place_another_thread_uses_is_not_believed: Some(2),
    an_entry_that_moves_to_a_new_bucket_is_not_believed_in_the_old: Some(1),
    a_reader_sees_the_writers_latch_or_the_writer_the_announcement: None,
];

const FENCED: &str = "the fence beside it orders it; loom takes SeqCst for AcqRel";
const BUCKETS: &str = "an old number leads to a bucket whose version tells; what SeqCst adds is for a writer that finds \
                       the tier off behind its fence, and loom takes SeqCst for AcqRel";

const EXCUSED: &[Excused] = &[
    ("announced.rs announce: `if self.0.load(Ordering::SeqCst) & bit == 0 {` -> Relaxed", FENCED),
    ("announced.rs announce: `self.0.fetch_or(bit, Ordering::SeqCst);` -> Relaxed", FENCED),
    (
        "announced.rs is_announced: `self.0.load(Ordering::SeqCst) & Announced::bit(owner) != 0` -> Relaxed",
        FENCED,
    ),
    ("index.rs count: `self.count.load(Ordering::SeqCst)` -> Relaxed", BUCKETS),
    ("index.rs grow: `self.count.store(count + 1, Ordering::SeqCst);` -> Relaxed", BUCKETS),
    ("index.rs switch_on: `self.count.store(STRIPES, Ordering::SeqCst);` -> Relaxed", BUCKETS),
];

fn main() -> ExitCode {
    base::runner::main(MODELS, &[], EXCUSED)
}

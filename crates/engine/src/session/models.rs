//! Models: a row that is claimed by whoever changes it, against an explicit lock on it, and a unique key, against who gives it up or takes
//! it and takes that back, under a randomised scheduler.
//!
//! `cargo test -p latchwork-engine --features shuttle --lib models`

use crate::testing::{CacheSize, Row, int_key, options, table_def};
use crate::{Database, Error, HitPath, Isolation, LockMode, LockWait, Session, Table, WriteBack};
use base::IndexId;
use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, shuttle, thread};
use std::path::Path;
use vfs::MemVfs;

const ITERATIONS: usize = 150;
/// How many changes of priority a schedule has.
const DEPTH: usize = 3;

/// A table with one row, and whose the row is.
struct Model {
    database: Arc<Database>,
    table: Arc<Table>,
    owner: AtomicU64,
}

fn row(k: i32) -> Row {
    Row { id: 1, k, u: None, c: Vec::new() }
}

impl Model {
    fn new() -> Arc<Model> {
        let mut options = options(Arc::new(MemVfs::new()), 1_024, HitPath::Optimistic, CacheSize::Smallest);
        options.cache.segments = 1;
        options.cache.write_back = WriteBack::AtEvictionOnly;
        let database = Database::open(Path::new("data"), options).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let mut statement = database.begin_write().unwrap();
        statement.insert(&table, &row(0).image(&table)).unwrap();
        statement.commit().unwrap();
        Arc::new(Model { database, table, owner: AtomicU64::new(0) })
    }

    /// `who` has the row now; nobody else had it.
    fn take(&self, who: u64) {
        assert_eq!(self.owner.swap(who, SeqCst), 0, "a row has two owners");
    }

    /// `who` is about to end its transaction.
    fn give_back(&self, who: u64) {
        assert_eq!(self.owner.swap(0, SeqCst), who, "a row was taken from its owner");
    }

    /// Adds one to the row, once the transaction has it; with `has_it` it has it already. What it was before.
    fn add_one(&self, session: &mut Session, who: u64, has_it: bool) -> i32 {
        let mut before = 0;
        let mut statement = session.write().unwrap();
        let changed = statement.update(&self.table, &int_key(1), &mut |image, out| {
            if !has_it {
                self.take(who);
            }
            before = Row::read(&self.table, image).k;
            out.extend_from_slice(&row(before + 1).image(&self.table));
            true
        });
        assert!(changed.unwrap(), "the row is there");
        statement.commit().unwrap();
        before
    }

    /// A transaction that changes the row and then ends.
    fn write(&self, who: u64, keep: bool) {
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        self.add_one(&mut session, who, false);
        self.give_back(who);
        if keep { session.commit() } else { session.roll_back() }.unwrap();
    }

    /// A transaction that locks the row, looks at it, and perhaps changes it by what it saw.
    fn lock(&self, who: u64, mode: LockMode, changes: bool) {
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut seen = 0;
        let mut statement = session.write().unwrap();
        let locked = statement.split().1.lock(&self.table, &int_key(1), mode, LockWait::Wait, &mut |image| {
            seen = Row::read(&self.table, image).k;
            true
        });
        assert!(locked.unwrap(), "the row is there");
        statement.commit().unwrap();
        self.take(who);
        if changes {
            assert_eq!(self.add_one(&mut session, who, true), seen, "somebody changed a locked row");
        }
        self.give_back(who);
        session.commit().unwrap();
    }

    /// Every change that was kept is there, and nothing is left of those who waited.
    fn end(&self, changes: i32) {
        let mut image = Vec::new();
        let mut session = self.database.session();
        assert!(self.table.get(session.read().reader(), &int_key(1), &mut image).unwrap());
        assert_eq!(Row::read(&self.table, &image).k, changes, "an update was lost");
        assert_eq!(self.database.lock_waits(), []);
        let waits = self.database.status().lock_waits;
        assert_eq!((waits.waiting, waits.deadlocks), (0, 0));
    }
}

fn check(run: impl Fn() + Send + Sync + 'static) {
    let run = Arc::new(run);
    let again = run.clone();
    shuttle::check_random(move || run(), ITERATIONS);
    shuttle::check_pct(move || again(), ITERATIONS, DEPTH);
}

fn spawn(model: &Arc<Model>, run: impl FnOnce(&Model) + Send + 'static) -> thread::JoinHandle<()> {
    let model = model.clone();
    thread::spawn(move || run(&model))
}

#[test]
fn two_writers_and_a_locking_reader_have_the_row_in_turn() {
    check(|| {
        let model = Model::new();
        let threads = [
            spawn(&model, |model| model.write(1, true)),
            spawn(&model, |model| model.write(2, true)),
            spawn(&model, |model| model.lock(3, LockMode::Exclusive, true)),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        model.end(3);
    });
}

#[test]
fn a_writer_that_rolls_back_wakes_those_who_wait_and_leaves_them_the_row_as_it_was() {
    check(|| {
        let model = Model::new();
        let threads = [
            spawn(&model, |model| model.write(1, false)),
            spawn(&model, |model| model.write(2, true)),
            spawn(&model, |model| model.lock(3, LockMode::Exclusive, true)),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        model.end(2);
    });
}

#[test]
fn a_row_that_is_read_in_share_mode_is_nobodys_to_change() {
    check(|| {
        let model = Model::new();
        let threads = [
            spawn(&model, |model| model.write(1, true)),
            spawn(&model, |model| model.lock(2, LockMode::Shared, false)),
            spawn(&model, |model| model.write(3, false)),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        model.end(1);
    });
}

/// The `u` of the model's row where it has one, and another.
const TAKEN: i32 = 7;
const FREE: i32 = 5;

impl Model {
    /// Runs `change` and takes it back.
    fn take_back(&self, change: impl FnOnce(&mut crate::WriteStatement<'_>, &Table)) {
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut statement = session.write().unwrap();
        change(&mut statement, &self.table);
        statement.commit().unwrap();
        session.roll_back().unwrap();
    }

    /// Inserts a row with this `u`; true if nobody else has it.
    fn insert(&self, id: i32, u: i32) -> bool {
        let mut statement = self.database.begin_write().unwrap();
        let row = Row { id, k: 0, u: Some(u), c: Vec::new() };
        match statement.insert(&self.table, &row.image(&self.table)) {
            Ok(()) => {
                statement.commit().unwrap();
                true
            }
            Err(Error::DuplicateKey { index: IndexId(2) }) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Gives the model's row another key, or finds that somebody else has it.
fn update_u(statement: &mut crate::WriteStatement<'_>, table: &Table, u: i32) {
    let changed = statement.update(table, &int_key(1), &mut |image, out| {
        out.extend_from_slice(&Row { u: Some(u), ..Row::read(table, image) }.image(table));
        true
    });
    match changed {
        Ok(true) | Err(Error::DuplicateKey { index: IndexId(2) }) => {}
        other => panic!("{other:?}"),
    }
}

/// The model's row has the key [`TAKEN`]; `change` is taken back while others insert rows with that key and with [`FREE`].
fn keys_are_as_they_were(change: fn(&mut crate::WriteStatement<'_>, &Table)) {
    check(move || {
        let model = Model::new();
        let mut statement = model.database.begin_write().unwrap();
        update_u(&mut statement, &model.table, TAKEN);
        statement.commit().unwrap();
        let threads = [
            spawn(&model, move |model| model.take_back(change)),
            spawn(&model, |model| assert!(!model.insert(2, TAKEN), "two rows have one unique key")),
            spawn(&model, |model| assert!(model.insert(3, FREE), "a key that nobody has is taken")),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        model.end(0);
    });
}

#[test]
fn a_unique_key_that_a_row_did_not_give_up_after_all_is_still_taken() {
    keys_are_as_they_were(|statement, table| {
        assert!(statement.delete(table, &int_key(1), &mut |_| true).unwrap(), "the row is there");
    });
}

#[test]
fn a_row_that_did_not_change_its_unique_key_after_all_has_the_old_one_and_not_the_new() {
    keys_are_as_they_were(|statement, table| update_u(statement, table, FREE));
}

#[test]
fn a_unique_key_that_a_row_did_not_take_after_all_is_still_free() {
    keys_are_as_they_were(|statement, table| {
        let row = Row { id: 4, k: 0, u: Some(FREE), c: Vec::new() };
        match statement.insert(table, &row.image(table)) {
            // Who was faster has it.
            Ok(()) | Err(Error::DuplicateKey { index: IndexId(2) }) => {}
            Err(error) => panic!("{error}"),
        }
    });
}

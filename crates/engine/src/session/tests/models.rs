//! Models under a randomised scheduler: a row that one transaction claims to change it and another locks
//! explicitly; a unique key that one transaction wants and another gives up, or takes and gives back.
//!
//! `cargo test -p latchwork-engine --features shuttle --lib models`

use crate::tests::{CacheSize, Row, int_key, options, table_def};
use crate::{
    Database, Direction, Error, HitPath, Isolation, KeyRange, LockMode, LockWait, Session, Table, WriteBack,
    WriteStatement,
};
use base::IndexId;
use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, find_fault, shuttle, thread};
use std::path::Path;
use vfs::MemVfs;

const ITERATIONS: usize = 150;
/// Three pages, and the map of free ones of their file.
const SPLIT_FRAMES: usize = 5;
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
        let mut statement = session.write().unwrap();
        let locked = statement.split().1.lock(&self.table, &int_key(1), mode, LockWait::Wait);
        let seen = Row::read(&self.table, &locked.unwrap().expect("the row is there").image).k;
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
        assert!(self.table.get(session.read().unwrap().reader(), &int_key(1), &mut image).unwrap());
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

/// The `u` of the model's row where it has one.
const TAKEN: i32 = 7;
/// A change of whose row a key is, so many times in each schedule: what is to be met by chance is a step
/// between two of the other's.
const ROUNDS: i32 = 8;

impl Model {
    /// A transaction that has made `change`.
    fn changed(&self, change: impl FnOnce(&mut WriteStatement<'_>, &Table)) -> Session {
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut statement = session.write().unwrap();
        change(&mut statement, &self.table);
        statement.commit().unwrap();
        session
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

/// Gives the model's row another unique key.
fn update_u(statement: &mut WriteStatement<'_>, table: &Table, u: i32) {
    let changed = statement.update(table, &int_key(1), &mut |image, out| {
        out.extend_from_slice(&Row { u: Some(u), ..Row::read(table, image) }.image(table));
        true
    });
    assert!(changed.unwrap(), "the row is there");
}

/// The model's row has the key [`TAKEN`]. What `change` does in a round is taken back while another row is
/// inserted with the key that `key` names: whether that is free is what it was before.
fn keys_are_as_they_were(change: fn(&mut WriteStatement<'_>, &Table, i32), key: fn(i32) -> i32) {
    let run = move || {
        let model = Model::new();
        model.changed(|statement, table| update_u(statement, table, TAKEN)).commit().unwrap();
        for round in 1..=ROUNDS {
            let mut session = model.changed(|statement, table| change(statement, table, round));
            let other = spawn(&model, move |model| {
                assert_eq!(
                    model.insert(10 + round, key(round)),
                    key(round) != TAKEN,
                    "a key is free that was not, or the other way"
                );
            });
            session.roll_back().unwrap();
            other.join().unwrap();
        }
        model.end(0);
    };
    shuttle::check_random(run, ITERATIONS);
    // A change of priority or two in each round.
    shuttle::check_pct(run, ITERATIONS, DEPTH * ROUNDS as usize);
}

#[test]
fn a_unique_key_that_a_row_did_not_give_up_after_all_is_still_taken() {
    keys_are_as_they_were(
        |statement, table, _| {
            assert!(statement.delete(table, &int_key(1), &mut |_| true).unwrap(), "the row is there");
        },
        |_| TAKEN,
    );
}

#[test]
fn a_unique_key_that_a_row_did_not_take_after_all_is_still_free() {
    keys_are_as_they_were(
        |statement, table, round| update_u(statement, table, 100 + round),
        |round| 100 + round,
    );
}

#[test]
fn the_unique_key_of_a_row_that_was_not_inserted_after_all_is_still_free() {
    keys_are_as_they_were(
        |statement, table, round| {
            let row = Row { id: 2, k: 0, u: Some(100 + round), c: Vec::new() };
            statement.insert(table, &row.image(table)).unwrap();
        },
        |round| 100 + round,
    );
}

/// The row is at a state of its transaction's own, by entries that were garbage before, and comes back to
/// that state from another while purge is at work and somebody inserts a row with its unique key.
#[test]
fn what_a_savepoint_brings_back_has_its_entries_and_its_unique_key() {
    check(|| {
        let model = Model::new();
        let became = |k: i32, u: i32| {
            move |statement: &mut WriteStatement<'_>, table: &Table| {
                let changed = statement.update(table, &int_key(1), &mut |_, out| {
                    out.extend_from_slice(&Row { u: Some(u), ..row(k) }.image(table));
                    true
                });
                assert!(changed.unwrap(), "the row is there");
            }
        };
        model.changed(became(1, TAKEN)).commit().unwrap();
        model.changed(became(2, TAKEN + 1)).commit().unwrap();
        let mut session = model.changed(became(1, TAKEN));
        let purge = spawn(&model, |model| {
            model.database.core().purge.drain(model.database.core());
        });
        let savepoint = session.savepoint();
        let other = spawn(&model, |model| assert!(!model.insert(2, TAKEN), "the key is free"));
        let mut statement = session.write().unwrap();
        became(3, TAKEN + 2)(&mut statement, &model.table);
        statement.commit().unwrap();
        session.roll_back_to(savepoint).unwrap();
        session.commit().unwrap();
        [purge, other].into_iter().for_each(|thread| thread.join().unwrap());
        assert!(model.database.check().unwrap().is_clean());
        model.end(1);
    });
}

/// Leaves and their parents are split in the fewest frames that hold a split, which are more than a model's
/// smallest cache has.
#[test]
fn rows_of_one_statement_split_their_leaf_while_one_of_them_is_looked_for() {
    check(|| {
        let mut options = options(Arc::new(MemVfs::new()), 1_024, HitPath::Optimistic, CacheSize::Smallest);
        options.cache.size_bytes = pagecache::size_for_frames(SPLIT_FRAMES, 1_024);
        options.cache.segments = 1;
        options.cache.write_back = WriteBack::AtEvictionOnly;
        let database = Database::open(Path::new("data"), options).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let reader = {
            let (database, table) = (database.clone(), table.clone());
            thread::spawn(move || {
                let mut image = Vec::new();
                if table.get(database.session().read().unwrap().reader(), &int_key(8), &mut image).unwrap() {
                    assert_eq!(Row::read(&table, &image).k, 8);
                }
            })
        };
        let mut statement = database.begin_write().unwrap();
        for id in 1..16 {
            let row = Row { id, k: id, u: None, c: vec![1; 60] };
            statement.insert(&table, &row.image(&table)).unwrap();
        }
        statement.commit().unwrap();
        reader.join().unwrap();
        let mut session = database.session();
        for id in 1..16 {
            let mut image = Vec::new();
            assert!(
                table.get(session.read().unwrap().reader(), &int_key(id), &mut image).unwrap(),
                "row {id}"
            );
        }
    });
}

/// Two transactions look for rows by an index, find none but the first, and each inserts one.
fn insert_if_there_is_none(isolation: Isolation) {
    let model = Model::new();
    let insert = move |model: &Model, id: i32| {
        let mut session = model.database.session();
        session.begin(isolation).unwrap();
        let found = rows_by_k(model, &mut session);
        let inserted = found.and_then(|found| {
            if found > 1 {
                return Ok(());
            }
            let mut statement = session.write()?;
            statement.insert(&model.table, &Row { id, ..row(7) }.image(&model.table))?;
            statement.commit()
        });
        match inserted {
            Ok(()) => session.commit().unwrap(),
            Err(Error::Deadlock) => session.roll_back().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    };
    let other = spawn(&model, move |model| insert(model, 2));
    insert(&model, 3);
    other.join().unwrap();
    let mut session = model.database.session();
    assert!(rows_by_k(&model, &mut session).unwrap() <= 2, "each found nothing and inserted a row");
}

/// How many rows a locking read finds by the index.
fn rows_by_k(model: &Model, session: &mut Session) -> crate::Result<usize> {
    let mut statement = session.write()?;
    let (readers, mut writer) = statement.split();
    let mut keys = Vec::new();
    {
        let mut scan = model.table.scan(readers.current, IndexId(1), KeyRange::all(), Direction::Forward);
        while let Some(image) = scan.next_row()? {
            keys.push(int_key(Row::read(&model.table, image).id));
        }
    }
    keys.dedup();
    let mut rows = 0;
    for key in keys {
        rows += usize::from(writer.lock(&model.table, &key, LockMode::Shared, LockWait::Wait)?.is_some());
    }
    statement.commit()?;
    Ok(rows)
}

#[test]
fn at_serializable_nobody_inserts_into_what_another_has_read() {
    check(|| insert_if_there_is_none(Isolation::Serializable));
}

#[test]
#[should_panic(expected = "each found nothing and inserted a row")]
fn canary_at_repeatable_read_both_insert() {
    find_fault(|| insert_if_there_is_none(Isolation::RepeatableRead));
}

//! Models: the row tier between readers, writers, rollbacks, evictions and definitions, under a randomised
//! scheduler.
//!
//! `cargo test -p latchwork-engine --features shuttle --lib models`

use crate::tests::{CacheSize, Row, int_key, options, table_def};
use crate::{
    Database, Error, HitPath, IndexDef, Isolation, KeyList, Options, Reader, Session, Table, WriteBack,
};
use base::IndexId;
use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, shuttle, thread};
use std::path::Path;
use types::ValueRef;
use vfs::MemVfs;

const ITERATIONS: usize = 150;
/// How many changes of priority a schedule has.
const DEPTH: usize = 3;
const ROWS: i32 = 7;
/// The smallest row tier that there is: it has no room for what a model looks up.
const TIER_BYTES: usize = 1_280;

const BY_K: IndexId = IndexId(1);
const BY_U: IndexId = IndexId(2);

struct Model {
    database: Arc<Database>,
    table: Arc<Table>,
    /// The `k` of each row that has been committed: who begins later sees it, or a newer one.
    committed: [AtomicU64; ROWS as usize],
}

/// In state `k` a row has another `u` than in any other state, and than any other row.
fn row(id: i32, k: i32) -> Row {
    Row { id, k, u: Some(unique(id, k)), c: vec![k as u8; 8] }
}

fn unique(id: i32, k: i32) -> i32 {
    10 * id + k
}

impl Model {
    fn new() -> Arc<Model> {
        let mut options = options(Arc::new(MemVfs::new()), 1_024, HitPath::Optimistic, CacheSize::Smallest);
        options.cache.segments = 1;
        options.cache.write_back = WriteBack::AtEvictionOnly;
        let options = Options { row_tier_bytes: Some(TIER_BYTES), row_tier_first: true, ..options };
        let database = Database::open(Path::new("data"), options).unwrap();
        assert!(database.row_tier_status().size > 0);
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let mut statement = database.begin_write().unwrap();
        (0..ROWS).for_each(|id| statement.insert(&table, &row(id, 0).image(&table)).unwrap());
        statement.commit().unwrap();
        Arc::new(Model { database, table, committed: Default::default() })
    }

    /// The tier is full of rows that have been looked up: what it keeps from now on pushes something out.
    fn full() -> Arc<Model> {
        let model = Model::new();
        (0..ROWS).for_each(|id| model.read(id));
        assert!(model.database.row_tier_status().evictions > 0, "{:?}", model.database.row_tier_status());
        model
    }

    /// A row as a new snapshot sees it, by `get` and by `multi_get`, which agree.
    fn read(&self, id: i32) {
        let at_least = self.committed[id as usize].load(SeqCst);
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let first = self.look(&mut session, id);
        assert!(first.k as u64 >= at_least, "old: row {id} is {} after {at_least} was there", first.k);
        assert_eq!(self.look(&mut session, id), first, "a snapshot sees one row in two states");
        assert_eq!(first.c, vec![first.k as u8; 8], "a row is torn");
        session.commit().unwrap();
    }

    fn look(&self, session: &mut Session, id: i32) -> Row {
        let statement = session.read().unwrap();
        let mut image = Vec::new();
        assert!(self.table.get(statement.reader(), &int_key(id), &mut image).unwrap());
        let row = Row::read(&self.table, &image);
        let mut keys = KeyList::default();
        keys.push(&int_key(id));
        keys.push(&int_key(id + 10 * ROWS));
        let mut found = Vec::new();
        let mut each = |position: usize, _: &[u8], image: &[u8]| {
            assert_eq!(position, 0, "there is no such row");
            found.push(Row::read(&self.table, image));
            true
        };
        let mut batch = crate::Batch::default();
        self.table.multi_get(statement.reader(), IndexId(0), &keys, &mut batch, &mut each).unwrap();
        assert_eq!(found, std::slice::from_ref(&row));
        let reader = statement.reader();
        assert_eq!(self.by(reader, BY_U, row.u.unwrap()), std::slice::from_ref(&row), "by the unique index");
        assert_eq!(self.by(reader, BY_U, unique(id, row.k + 1)), [], "a snapshot sees one row in two states");
        assert!(self.by(reader, BY_K, row.k).contains(&row), "by the other index");
        row
    }

    /// The rows that an index leads to.
    fn by(&self, reader: Reader<'_>, index: IndexId, value: i32) -> Vec<Row> {
        self.try_by(reader, index, value).unwrap()
    }

    fn try_by(&self, reader: Reader<'_>, index: IndexId, value: i32) -> crate::Result<Vec<Row>> {
        let (mut key, mut keys, mut found) = (Vec::new(), KeyList::default(), Vec::new());
        self.table.key_codec(index).encode_prefix(&[ValueRef::Int(value.into())], &mut key);
        keys.push(&key);
        let mut each = |_: usize, _: &[u8], image: &[u8]| {
            found.push(Row::read(&self.table, image));
            true
        };
        self.table.multi_get(reader, index, &keys, &mut crate::Batch::default(), &mut each)?;
        Ok(found)
    }

    /// Changes a row, and keeps the change or takes it back.
    fn write(&self, id: i32, k: i32, keep: bool) {
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut statement = session.write().unwrap();
        let changed = statement.update(&self.table, &int_key(id), &mut |_, out| {
            out.extend_from_slice(&row(id, k).image(&self.table));
            true
        });
        assert!(changed.unwrap(), "the row is there");
        statement.commit().unwrap();
        if keep {
            session.commit().unwrap();
            self.committed[id as usize].store(k as u64, SeqCst);
        } else {
            session.roll_back().unwrap();
        }
    }

    /// Adds a row, and keeps it or takes it back.
    fn insert(&self, row: &Row, keep: bool) {
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut statement = session.write().unwrap();
        statement.insert(&self.table, &row.image(&self.table)).unwrap();
        statement.commit().unwrap();
        if keep { session.commit() } else { session.roll_back() }.unwrap();
    }

    fn delete(&self, id: i32) {
        let mut statement = self.database.begin_write().unwrap();
        assert!(statement.delete(&self.table, &int_key(id), &mut |_| true).unwrap(), "the row is there");
        statement.commit().unwrap();
    }

    fn purge(&self) {
        let core = self.database.core();
        core.purge.drain(core);
    }

    fn end(&self) {
        (0..ROWS).for_each(|id| self.read(id));
        self.end_as_pages_are();
    }

    /// The tier says what the pages say.
    fn end_as_pages_are(&self) {
        let all = || {
            let mut session = self.database.session();
            let statement = session.read().unwrap();
            let (reader, mut all) = (statement.reader(), Vec::new());
            for value in 0..unique(2 * ROWS, 0) {
                let mut image = Vec::new();
                let is_there = self.table.get(reader, &int_key(value), &mut image).unwrap();
                all.extend(is_there.then(|| Row::read(&self.table, &image)));
                all.extend(self.by(reader, BY_U, value));
                all.extend(self.by(reader, BY_K, value));
            }
            all
        };
        let with = all();
        self.database.resize_row_tier(Some(0)).unwrap();
        assert_eq!(all(), with, "the tier is not what the pages are");
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

fn all(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn readers_find_what_they_should_while_rows_are_changed_and_changes_are_taken_back() {
    check(|| {
        let model = Model::new();
        all([
            spawn(&model, |model| {
                model.read(0);
                model.read(1);
                model.read(0);
            }),
            spawn(&model, |model| {
                model.write(0, 1, true);
                model.write(1, 2, false);
            }),
            spawn(&model, |model| {
                model.write(0, 3, false);
                model.read(1);
            }),
        ]);
        model.end();
    });
}

#[test]
fn readers_find_what_they_should_while_others_push_it_out() {
    check(|| {
        let model = Model::full();
        all([
            spawn(&model, |model| {
                model.read(0);
                model.read(0);
            }),
            spawn(&model, |model| {
                model.write(0, 1, true);
                model.write(0, 2, false);
            }),
            spawn(&model, |model| (1..ROWS).for_each(|id| model.read(id))),
        ]);
        model.end();
    });
}

#[test]
fn readers_find_what_they_should_while_the_tier_comes_and_goes() {
    check(|| {
        let model = Model::new();
        all([
            spawn(&model, |model| {
                model.read(0);
                model.read(0);
            }),
            spawn(&model, |model| {
                model.write(0, 1, true);
                model.write(0, 2, true);
            }),
            spawn(&model, |model| {
                model.database.resize_row_tier(Some(0)).unwrap();
                model.database.resize_row_tier(Some(TIER_BYTES)).unwrap();
                model.read(0);
            }),
        ]);
        model.end();
    });
}

#[test]
fn rows_that_come_under_a_key_that_others_have_are_found() {
    check(|| {
        let model = Model::full();
        let committed = Arc::new(AtomicU64::new(ROWS as u64));
        let reader = || {
            let committed = committed.clone();
            spawn(&model, move |model| {
                for _ in 0..2 {
                    let at_least = committed.load(SeqCst);
                    let mut session = model.database.session();
                    let found = model.by(session.read().unwrap().reader(), BY_K, 0);
                    assert!(found.len() as u64 >= at_least, "{found:?} after {at_least} were there");
                }
            })
        };
        let writer = {
            let committed = committed.clone();
            spawn(&model, move |model| {
                model.insert(&row(ROWS, 0), true);
                committed.store(ROWS as u64 + 1, SeqCst);
            })
        };
        all([reader(), writer, spawn(&model, |model| model.insert(&row(ROWS + 1, 0), false)), reader()]);
        let mut session = model.database.session();
        assert_eq!(model.by(session.read().unwrap().reader(), BY_K, 0).len(), ROWS as usize + 1);
        drop(session);
        model.end();
    });
}

#[test]
fn a_unique_key_leads_to_whoever_has_it_last() {
    check(|| {
        let model = Model::full();
        let heir = Row { u: row(0, 0).u, ..row(ROWS, 1) };
        let states = Arc::new([vec![row(0, 0)], vec![], vec![heir.clone()]]);
        let committed = Arc::new(AtomicU64::new(0));
        let reader = || {
            let (states, committed) = (states.clone(), committed.clone());
            spawn(&model, move |model| {
                for _ in 0..2 {
                    let at_least = committed.load(SeqCst) as usize;
                    let mut session = model.database.session();
                    let found = model.by(session.read().unwrap().reader(), BY_U, unique(0, 0));
                    assert!(states[at_least..].contains(&found), "{found:?} after {at_least} changes");
                }
            })
        };
        let committed = committed.clone();
        let writer = spawn(&model, move |model| {
            model.delete(0);
            committed.store(1, SeqCst);
            model.insert(&heir, true);
            committed.store(2, SeqCst);
        });
        all([reader(), writer, spawn(&model, Model::purge), reader()]);
        model.end_as_pages_are();
    });
}

#[test]
fn an_index_that_is_dropped_and_made_again_leads_to_the_rows_of_today() {
    let heir = || Row { u: row(0, 0).u, ..row(ROWS, 0) };
    check(move || {
        let model = Model::new();
        let reader = spawn(&model, move |model| {
            for _ in 0..3 {
                let mut session = model.database.session();
                match model.try_by(session.read().unwrap().reader(), BY_U, unique(0, 0)) {
                    Ok(found) => assert!(found == [row(0, 0)] || found == [heir()], "{found:?}"),
                    Err(Error::TableChanged | Error::NoSuchIndex) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let definer = spawn(&model, move |model| {
            let index: IndexDef = model.table.def().indexes[1].clone();
            model.database.drop_index(&model.table, &index.name).unwrap();
            // Nobody says what changes in an index that is not there.
            model.delete(0);
            model.insert(&heir(), true);
            model.database.create_index(&model.table, index).unwrap();
        });
        all([reader, definer]);
        model.end_as_pages_are();
    });
}

#[test]
fn a_table_that_is_emptied_leaves_nothing_that_is_found() {
    check(|| {
        let model = Model::new();
        model.read(0);
        let reader = spawn(&model, |model| {
            for _ in 0..2 {
                let mut image = Vec::new();
                let mut session = model.database.session();
                match model.table.get(session.read().unwrap().reader(), &int_key(0), &mut image) {
                    Ok(true) => assert_eq!(Row::read(&model.table, &image), row(0, 0)),
                    // Its file is new, and older snapshots do not find their rows in it.
                    Ok(false) | Err(crate::Error::TableChanged) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        model.database.truncate(&model.table).unwrap();
        let mut image = Vec::new();
        let mut session = model.database.session();
        assert!(!model.table.get(session.read().unwrap().reader(), &int_key(0), &mut image).unwrap());
        reader.join().unwrap();
    });
}

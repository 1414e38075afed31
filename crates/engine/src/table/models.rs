//! Models: the row tier between readers, writers, rollbacks, evictions and definitions, under a randomised scheduler.
//!
//! `cargo test -p latchwork-engine --features shuttle --lib models`

use crate::testing::{CacheSize, Row, int_key, options, table_def};
use crate::{Database, HitPath, Isolation, KeyList, Options, Session, Table, WriteBack};
use base::IndexId;
use base::sync::atomic::{AtomicU64, Ordering::SeqCst};
use base::sync::{Arc, shuttle, thread};
use std::path::Path;
use vfs::MemVfs;

const ITERATIONS: usize = 150;
/// How many changes of priority a schedule has.
const DEPTH: usize = 3;
const ROWS: i32 = 3;
/// The smallest row tier that there is, nearly.
const TIER_BYTES: usize = 300 << 10;

struct Model {
    database: Arc<Database>,
    table: Arc<Table>,
    /// The `k` of each row that has been committed: who begins later sees it, or a newer one.
    committed: [AtomicU64; ROWS as usize],
}

fn row(id: i32, k: i32) -> Row {
    Row { id, k, u: None, c: vec![k as u8; 40] }
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

    /// A row as a new snapshot sees it, by `get` and by `multi_get`, which agree.
    fn read(&self, id: i32) {
        let at_least = self.committed[id as usize].load(SeqCst);
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).unwrap();
        let first = self.look(&mut session, id);
        assert!(first.k as u64 >= at_least, "old: row {id} is {} after {at_least} was there", first.k);
        assert_eq!(self.look(&mut session, id), first, "a snapshot sees one row in two states");
        assert_eq!(first.c, vec![first.k as u8; 40], "a row is torn");
        session.commit().unwrap();
    }

    fn look(&self, session: &mut Session, id: i32) -> Row {
        let statement = session.read();
        let mut image = Vec::new();
        assert!(self.table.get(statement.reader(), &int_key(id), &mut image).unwrap());
        let row = Row::read(&self.table, &image);
        let mut keys = KeyList::default();
        keys.push(&int_key(id));
        keys.push(&int_key(id + ROWS));
        let mut found = Vec::new();
        let mut each = |position: usize, _: &[u8], image: &[u8]| {
            assert_eq!(position, 0, "there is no such row");
            found.push(Row::read(&self.table, image));
            true
        };
        let mut batch = crate::Batch::default();
        self.table.multi_get(statement.reader(), IndexId(0), &keys, &mut batch, &mut each).unwrap();
        assert_eq!(found, [row.clone()]);
        row
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

    fn end(&self) {
        (0..ROWS).for_each(|id| self.read(id));
        // What the pages say, and nothing else.
        let with = self.all();
        self.database.resize_row_tier(Some(0)).unwrap();
        assert_eq!(self.all(), with, "the tier is not what the pages are");
    }

    fn all(&self) -> Vec<Row> {
        let mut session = self.database.session();
        (0..ROWS).map(|id| self.look(&mut session, id)).collect()
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
fn a_table_that_is_emptied_leaves_nothing_that_is_found() {
    check(|| {
        let model = Model::new();
        model.read(0);
        let reader = spawn(&model, |model| {
            for _ in 0..2 {
                let mut image = Vec::new();
                let mut session = model.database.session();
                match model.table.get(session.read().reader(), &int_key(0), &mut image) {
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
        assert!(!model.table.get(session.read().reader(), &int_key(0), &mut image).unwrap());
        reader.join().unwrap();
    });
}

//! Transactions against crashes: what was acknowledged is there, what was not is wholly there or not at all.
//!
//! The machine is stopped before each sync and, at steps, after an event; what a power failure then leaves is
//! drawn by seeds (`vfs::sim`). Each image is recovered, compared, checked, used a little, and crashed again.

use crate::tests::{CacheSize, Row, column, int, int_key, options, table_def};
use crate::{
    CacheOptions, Database, Direction, HitPath, Isolation, KeyList, KeyRange, LogOptions, Options, Reader,
    Session, Table, TableDef, WriteBack,
};
use base::IndexId;
use base::random::Random;
use base::sync::Arc;
use std::collections::BTreeMap;
use std::path::Path;
use types::ValueRef;
use vfs::SimVfs;
use vfs::sim::{Cut, Plan};

type Rows = BTreeMap<i32, Row>;

/// What a workload was promised when the machine stopped.
#[derive(Clone, Default, Debug)]
struct Promised {
    /// The table was made.
    table: bool,
    committed: Rows,
    /// The state after the commit that was under way.
    perhaps: Option<Rows>,
}

fn small(vfs: &SimVfs, write_back: WriteBack) -> Options {
    let options = options(Arc::new(vfs.clone()), 1_024, HitPath::Optimistic, CacheSize::Smallest);
    Options {
        cache: CacheOptions { write_back, ..options.cache },
        log: LogOptions { file_size: 64 << 10, buffer_size: 16 << 10, capacity: 128 << 10, ..options.log },
        ..options
    }
}

fn random_row(random: &mut Random, id: i32) -> Row {
    let len = [5, 20, 60, 120, 700][random.below(5) as usize];
    let u = [None, Some(2 * id), Some(2 * id + 1)][random.below(3) as usize];
    Row { id, k: random.below(5) as i32, u, c: vec![random.below(256) as u8; len] }
}

/// Changes one or many rows in a statement, in the database and in `rows`.
fn statement(
    session: &mut Session,
    table: &Table,
    random: &mut Random,
    rows: &mut Rows,
) -> crate::Result<()> {
    const IDS: u32 = 60;
    let mut statement = session.write()?;
    let id = random.below(IDS) as i32;
    let new = random_row(random, id);
    match random.below(6) {
        0 => {
            let mut images = KeyList::default();
            for id in (id..IDS as i32).filter(|id| !rows.contains_key(id)).take(12).collect::<Vec<_>>() {
                let row = random_row(random, id);
                images.push(&row.image(table));
                rows.insert(id, row);
            }
            statement.insert_many(table, &images).map_err(|(_, error)| error)?;
        }
        1 | 2 if rows.contains_key(&id) => {
            assert!(statement.delete(table, &int_key(id), &mut |_| true)?);
            rows.remove(&id);
        }
        3 if rows.contains_key(&id) && !rows.contains_key(&(id + 100)) => {
            let moved = Row { id: id + 100, u: None, ..new };
            statement.update(table, &int_key(id), &mut |_, out| {
                out.extend_from_slice(&moved.image(table));
                true
            })?;
            rows.remove(&id);
            rows.insert(moved.id, moved);
        }
        _ if rows.contains_key(&id) => {
            statement.update(table, &int_key(id), &mut |_, out| {
                out.extend_from_slice(&new.image(table));
                true
            })?;
            rows.insert(id, new);
        }
        _ => {
            statement.insert(table, &new.image(table))?;
            rows.insert(id, new);
        }
    }
    statement.commit()
}

/// Runs random transactions until the machine stops, or `transactions` of them.
fn workload(vfs: &SimVfs, seed: u64, transactions: u64, promised: &mut Promised) -> crate::Result<()> {
    let write_back = if seed.is_multiple_of(2) { WriteBack::Background } else { WriteBack::AtEvictionOnly };
    let database = Database::open(Path::new("data"), small(vfs, write_back))?;
    if database.table("d", "t").is_err() {
        if database.databases().is_empty() {
            database.create_database("d", b"")?;
        }
        // Beside the catalogue's pages, larger ones.
        // The compressed one has pages of several blocks, so that there is something to give back.
        let page_size = [None, Some(2_048), Some(4_096), Some(16_384)][(seed % 4) as usize];
        let compressed = page_size == Some(16_384);
        database.create_table(TableDef { page_size, compressed, ..table_def() })?;
    }
    promised.table = true;
    let table = database.table("d", "t")?;
    let mut random = Random::new(seed, 0);
    // An older snapshot that keeps purge from its work now and then, and a transaction that never ends.
    let mut reader = database.session();
    let mut idle = database.session();
    for number in 0..transactions {
        if random.below(8) == 0 {
            reader.begin(Isolation::RepeatableRead)?;
            reader.open_snapshot();
        }
        // What the idle transaction does, it does between checkpoints that log it again.
        let since = number as i64 - transactions as i64 / 2;
        match since {
            0 => {
                idle.begin(Isolation::RepeatableRead)?;
                insert_long(&mut idle, &table, 5_000)?;
            }
            30 => {
                let savepoint = idle.savepoint();
                insert_long(&mut idle, &table, 5_001)?;
                let mut statement = idle.write()?;
                assert!(statement.delete(&table, &int_key(5_000), &mut |_| true)?);
                statement.commit()?;
                idle.roll_back_to(savepoint)?;
            }
            60 => insert_long(&mut idle, &table, 5_002)?,
            90 => {
                idle.roll_back()?;
                idle.begin(Isolation::RepeatableRead)?;
                insert_long(&mut idle, &table, 5_003)?;
            }
            _ => {}
        }
        let mut session = database.session();
        let mut rows = promised.committed.clone();
        if random.below(3) > 0 {
            session.begin(Isolation::RepeatableRead)?;
            for _ in 0..=random.below(5) {
                let before = rows.clone();
                let savepoint = session.savepoint();
                statement(&mut session, &table, &mut random, &mut rows)?;
                if random.below(5) == 0 {
                    session.roll_back_to(savepoint)?;
                    rows = before;
                }
            }
            if random.below(5) == 0 {
                session.roll_back()?;
                continue;
            }
            promised.perhaps = Some(rows.clone());
            session.commit()?;
        } else {
            // What the statement will be is known only afterwards: it is run once more on the side.
            let mut ahead = random.clone();
            promised.perhaps = Some(imagine(&table, &mut ahead, rows.clone()));
            statement(&mut session, &table, &mut random, &mut rows)?;
        }
        promised.committed = rows;
        promised.perhaps = None;
        if random.below(10) == 0 {
            database.checkpoint()?;
        }
    }
    drop((reader, idle));
    database.close()
}

fn insert_long(session: &mut Session, table: &Table, id: i32) -> crate::Result<()> {
    let mut statement = session.write()?;
    statement.insert(table, &Row { id, k: 1, u: None, c: vec![9; 700] }.image(table))?;
    statement.commit()
}

/// What a statement will make of the rows.
fn imagine(table: &Table, random: &mut Random, rows: Rows) -> Rows {
    let vfs = SimVfs::new();
    let database = Database::open(Path::new("side"), small(&vfs, WriteBack::AtEvictionOnly)).unwrap();
    database.create_database("d", b"").unwrap();
    let side = database.create_table((*table.def()).clone()).unwrap();
    let mut session = database.session();
    let mut images = KeyList::default();
    rows.values().for_each(|row| images.push(&row.image(&side)));
    let mut load = session.write().unwrap();
    load.insert_many(&side, &images).unwrap();
    load.commit().unwrap();
    let mut rows = rows;
    statement(&mut session, &side, random, &mut rows).unwrap();
    rows
}

fn rows_of(table: &Table, index: u16) -> Rows {
    let mut scan = table.scan(Reader::newest(), IndexId(index), KeyRange::all(), Direction::Forward);
    let mut rows = Rows::new();
    while let Some(image) = scan.next_row().unwrap() {
        let row = Row::read(table, image);
        assert!(rows.insert(row.id, row).is_none());
    }
    rows
}

/// Recovers what a crash left and compares it with what was promised; gives what it holds now.
fn recover(left: &SimVfs, promised: &Promised) -> Rows {
    let database = Database::open(Path::new("data"), small(left, WriteBack::AtEvictionOnly)).unwrap();
    let Ok(table) = database.table("d", "t") else {
        assert!(!promised.table, "the table is gone");
        return Rows::new();
    };
    let rows = rows_of(&table, 0);
    let is_as_promised = rows == promised.committed || Some(&rows) == promised.perhaps.as_ref();
    assert!(is_as_promised, "{:?}\n{:?}", ids(&rows), ids(&promised.committed));
    for index in 1..3 {
        assert_eq!(rows_of(&table, index), rows, "by index {index}");
    }
    let mut session = database.session();
    assert_eq!(session.read().unwrap().reader().rows(&table), rows, "by a snapshot");
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.garbage, 0, "{report}");
    database.close().unwrap();
    rows
}

fn ids(rows: &Rows) -> Vec<(i32, i32, usize)> {
    rows.values().map(|row| (row.id, row.k, row.c.len())).collect()
}

impl Reader<'_> {
    fn rows(self, table: &Table) -> Rows {
        let mut scan = table.scan(self, IndexId(1), KeyRange::all(), Direction::Backward);
        let mut rows = Rows::new();
        while let Some(image) = scan.next_row().unwrap() {
            let row = Row::read(table, image);
            rows.insert(row.id, row);
        }
        rows
    }
}

/// Crashes a run of `transactions` at `cut`, recovers with further crashes, goes on, and recovers again.
fn crash_and_recover(cut: Cut, seed: u64, transactions: u64) -> bool {
    let context = format!("cut {cut:?}, seed {seed}, {transactions} transactions");
    let _said = Said(&context);
    let vfs = SimVfs::with_plan(Plan { cut: Some(cut), ..Plan::default() });
    let mut promised = Promised::default();
    let outcome = workload(&vfs, seed, transactions, &mut promised);
    assert!(outcome.is_ok() || vfs.stopped(), "{outcome:?}");
    let mut left = vfs.crash(seed);
    // The first recovery may itself be cut short, more than once.
    let mut random = Random::new(seed, 1);
    for _ in 0..random.below(3) {
        left.set_plan(Plan { cut: Some(Cut::AfterEvent(random.below_u64(60))), ..Plan::default() });
        drop(Database::open(Path::new("data"), small(&left, WriteBack::AtEvictionOnly)));
        left = left.crash(random.next_u64());
    }
    left.set_plan(Plan::default());
    let rows = recover(&left, &promised);
    // Life goes on, also after the crash of what has been recovered.
    let mut promised = Promised { table: promised.table, committed: rows, perhaps: None };
    left.set_plan(Plan { cut: Some(Cut::BeforeSync(random.below_u64(25))), ..Plan::default() });
    let outcome = workload(&left, seed + 1, 6, &mut promised);
    assert!(outcome.is_ok() || left.stopped(), "{outcome:?}");
    recover(&left.crash(seed + 1), &promised);
    vfs.stopped()
}

struct Said<'s>(&'s str);

impl Drop for Said<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("crash: {}", self.0);
        }
    }
}

#[test]
fn whatever_was_committed_survives_a_power_failure_before_any_sync() {
    for seed in 1..=4 {
        let mut sync = 1;
        while crash_and_recover(Cut::BeforeSync(sync), seed, 24) {
            sync += 1;
        }
    }
}

#[test]
fn whatever_was_committed_survives_a_power_failure_after_any_event() {
    for seed in 11..=14 {
        let mut event = seed % 5;
        while crash_and_recover(Cut::AfterEvent(event), seed, 24) {
            event += 5;
        }
    }
}

#[test]
fn a_transaction_that_was_logged_again_is_taken_back_after_any_event() {
    const TRANSACTIONS: u64 = 260;
    // Where the idle transaction has begun, and where its first records have left the log.
    let of_half = {
        let vfs = SimVfs::new();
        workload(&vfs, 21, TRANSACTIONS / 2, &mut Promised::default()).unwrap();
        vfs.events()
    };
    for seed in 21..=22 {
        let mut event = of_half;
        while crash_and_recover(Cut::AfterEvent(event), seed, TRANSACTIONS) {
            event += 37;
        }
    }
}

#[test]
fn a_transaction_that_stays_open_does_not_hold_the_log() {
    let vfs = SimVfs::new();
    let database = Database::open(Path::new("data"), small(&vfs, WriteBack::AtEvictionOnly)).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let log_bytes = || {
        let files = vfs::Vfs::list(&vfs, Path::new("data/log")).unwrap();
        let len = |path: &std::path::PathBuf| {
            vfs::Vfs::open(&vfs, &Path::new("data/log").join(path), vfs::Create::Never)
                .unwrap()
                .len()
                .unwrap()
        };
        // What is set aside on the disk is beside the log.
        files.iter().filter(|path| path.as_os_str() != "reserve").map(len).sum::<u64>()
    };
    // A reader of old versions keeps overflow pages from being freed, and they their records.
    let mut reader = database.session();
    let mut idle = database.session();
    insert_long(&mut idle, &table, 1).unwrap();
    reader.begin(Isolation::RepeatableRead).unwrap();
    reader.open_snapshot();
    idle.begin(Isolation::RepeatableRead).unwrap();
    let long = |c: u8| Row { id: 1, k: 1, u: None, c: vec![c; 700] };
    let mut statement = idle.write().unwrap();
    statement
        .update(&table, &int_key(1), &mut |_, out| {
            out.extend_from_slice(&long(2).image(&table));
            true
        })
        .unwrap();
    statement.commit().unwrap();
    let mut busy = database.session();
    let mut most = 0;
    for round in 0..2_000 {
        insert_long(&mut busy, &table, 2).unwrap();
        let mut statement = busy.write().unwrap();
        assert!(statement.delete(&table, &int_key(2), &mut |_| true).unwrap());
        statement.commit().unwrap();
        if round == 700 {
            idle.commit().unwrap();
            insert_long(&mut idle, &table, 3).unwrap();
        }
        if round % 50 == 0 {
            database.checkpoint().unwrap();
            most = most.max(log_bytes());
        }
    }
    let written = database.status().log_end.0;
    assert!(written > 6 * most, "{most} bytes at most of {written} written");
    assert!(most <= 6 * (64 << 10), "{most} bytes");
    // The chain that the reader keeps is freed by the start after a crash.
    drop((busy, idle));
    let left = vfs.crash(1);
    drop(reader);
    let database = Database::open(Path::new("data"), small(&left, WriteBack::AtEvictionOnly)).unwrap();
    let table = database.table("d", "t").unwrap();
    let rows = rows_of(&table, 0);
    assert_eq!(rows.values().cloned().collect::<Vec<_>>(), [long(2), Row { id: 3, ..long(9) }]);
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_row_that_was_changed_there_and_back_keeps_its_index_entries_when_that_is_taken_back() {
    let row = |id, k, u, c| Row { id, k, u, c: vec![c; 20] };
    // The first and the last have entries alike; what is between has others, or is a deleted row.
    let changes: [[Option<Row>; 2]; 3] = [
        [Some(row(1, 7, Some(8), 2)), Some(row(1, 1, Some(3), 3))],
        [Some(row(1, 7, None, 2)), Some(row(1, 1, Some(3), 3))],
        [None, Some(row(1, 1, Some(3), 3))],
    ];
    for (seed, changes) in (1..).zip(changes) {
        let vfs = SimVfs::new();
        let database = Database::open(Path::new("data"), small(&vfs, WriteBack::AtEvictionOnly)).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        let insert = |session: &mut Session, row: &Row| {
            let mut statement = session.write().unwrap();
            statement.insert(&table, &row.image(&table)).unwrap();
            statement.commit().unwrap();
        };
        let (mut open, mut other) = (database.session(), database.session());
        insert(&mut open, &row(1, 1, Some(3), 1));
        open.begin(Isolation::RepeatableRead).unwrap();
        let mut is_there = true;
        for new in &changes {
            let mut statement = open.write().unwrap();
            match new {
                Some(new) if is_there => {
                    let mut change = |_: &[u8], out: &mut Vec<u8>| {
                        out.extend_from_slice(&new.image(&table));
                        true
                    };
                    assert!(statement.update(&table, &int_key(1), &mut change).unwrap());
                }
                Some(new) => statement.insert(&table, &new.image(&table)).unwrap(),
                None => assert!(statement.delete(&table, &int_key(1), &mut |_| true).unwrap()),
            }
            is_there = new.is_some();
            statement.commit().unwrap();
        }
        // Makes the log durable.
        insert(&mut other, &row(2, 1, None, 1));
        let committed = [row(1, 1, Some(3), 1), row(2, 1, None, 1)].map(|row| (row.id, row)).into();
        recover(&vfs.crash(seed), &Promised { table: true, committed, perhaps: None });
    }
}

/// Runs `define` on two tables of two rows each, cut at every event, and says what there is afterwards: the
/// tables' names, each with its columns and rows. It has to be what there was `before` or `after`.
fn cut_definitions(define: impl Fn(&Database) -> crate::Result<()>, expected: [&[(&str, usize, usize)]; 2]) {
    let prepare = |vfs: &SimVfs| {
        let database = Database::open(Path::new("data"), small(vfs, WriteBack::AtEvictionOnly))?;
        database.create_database("d", b"")?;
        for name in ["a", "b"] {
            let table = database.create_table(TableDef { name: name.into(), ..table_def() })?;
            let mut statement = database.begin_write()?;
            for id in 0..2 {
                statement.insert(&table, &Row { id, k: 1, u: None, c: vec![1; 700] }.image(&table))?;
            }
            statement.commit()?;
        }
        Ok::<_, crate::Error>(database)
    };
    let first = {
        let vfs = SimVfs::new();
        let _database = prepare(&vfs).unwrap();
        vfs.events()
    };
    let mut seen = [0, 0];
    for event in 0.. {
        let vfs = SimVfs::with_plan(Plan { cut: Some(Cut::AfterEvent(first + event)), ..Plan::default() });
        let done = prepare(&vfs).and_then(|database| define(&database).map(|()| database));
        for seed in 0..8 {
            let context = format!("event {event}, seed {seed}");
            let _said = Said(&context);
            let left = vfs.crash(seed);
            let database =
                Database::open(Path::new("data"), small(&left, WriteBack::AtEvictionOnly)).unwrap();
            let tables = database.tables("d").unwrap_or_default();
            let found: Vec<(String, usize, usize)> = tables
                .iter()
                .map(|table| (table.def().name.clone(), table.def().columns.len(), count(table)))
                .collect();
            let is = |expected: &[(&str, usize, usize)]| {
                found
                    .iter()
                    .map(|(name, columns, rows)| (name.as_str(), *columns, *rows))
                    .eq(expected.iter().copied())
            };
            let state = expected.iter().position(|expected| is(expected));
            let state = state.unwrap_or_else(|| panic!("neither the old state nor the new: {found:?}"));
            assert!(state == 1 || done.is_err(), "{context}: acknowledged, and the state is the old one");
            seen[state] += 1;
            let files = vfs::Vfs::list(&left, Path::new("data/tables")).unwrap();
            assert_eq!(files.len(), tables.len(), "{context}: {files:?}");
            let report = database.check().unwrap();
            assert!(report.is_clean(), "{context}: {report}");
            drop(tables);
            database.close().unwrap();
        }
        if done.is_ok() {
            break;
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

fn count(table: &Table) -> usize {
    let mut scan = table.scan(Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
    std::iter::from_fn(|| scan.next_key().unwrap().map(drop)).count()
}

#[test]
fn a_database_is_dropped_wholly_or_not_at_all() {
    cut_definitions(|database| database.drop_database("d"), [&[("a", 4, 2), ("b", 4, 2)], &[]]);
}

#[test]
fn a_table_takes_the_place_of_another_at_one_moment() {
    let replace = |database: &Database| {
        let mut def = TableDef { name: "a".into(), ..table_def() };
        def.columns.push(column("more", int(), true));
        let new = database.create_replacement(def)?;
        let mut statement = database.begin_write()?;
        let mut image = Vec::new();
        let values =
            [ValueRef::Int(7), ValueRef::Int(7), ValueRef::Null, ValueRef::Binary(b"x"), ValueRef::Null];
        new.row_codec().encode(&values, &mut image);
        statement.insert(&new, &image)?;
        statement.commit()?;
        let old = database.table("d", "a")?;
        database.replace_table(&old, &new)
    };
    cut_definitions(replace, [&[("a", 4, 2), ("b", 4, 2)], &[("a", 5, 1), ("b", 4, 2)]]);
}

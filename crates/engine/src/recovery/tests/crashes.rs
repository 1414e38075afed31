//! Machines that stop: a workload of random statements, cut at every sync or between, on a device that loses,
//! tears and reorders what was not synced; then a start, which may be cut as well.
//!
//! What fails is repeated by `LATCHWORK_CRASH=<seed> cargo test -p latchwork-engine recovery`, which runs
//! that workload only.

use crate::tests::{CacheSize, column, int, int_key, options, part};
use crate::{
    Database, Direction, Error, FlushLog, HitPath, IndexDef, KeyList, KeyRange, LogOptions, Options,
    TableDef, WriteBack,
};
use base::IndexId;
use base::random::Random;
use base::sync::Arc;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use types::{ColumnType, ValueRef};
use vfs::sim::{Cut, Dirty, FailedSync, Plan};
use vfs::{Create, SimVfs, Vfs};

const DIR: &str = "data";
const PAGE_SIZE: usize = 1024;

pub(super) type Rows = BTreeMap<i32, Vec<u8>>;
pub(super) type Tables = BTreeMap<String, Rows>;

thread_local! {
    /// How many files of pages the databases of this test may have open.
    static OPEN_FILES: Cell<Option<usize>> = const { Cell::new(None) };
    /// `Options::taken_back_at_start_max` of them.
    pub(super) static AT_START_MAX: Cell<usize> = const { Cell::new(10_000) };
}

pub(super) fn open(vfs: &SimVfs) -> crate::Result<Arc<Database>> {
    // One thread, so that a seed and a cut are the whole story; a log that is full every few statements.
    let mut options = options(Arc::new(vfs.clone()), PAGE_SIZE, HitPath::Optimistic, CacheSize::Smallest);
    options.cache.write_back = WriteBack::AtEvictionOnly;
    let log = LogOptions {
        flush: FlushLog::AtCommit,
        file_size: 16 << 10,
        buffer_size: 8 << 10,
        capacity: 48 << 10,
    };
    let taken_back_at_start_max = AT_START_MAX.get();
    Database::open(
        Path::new(DIR),
        Options { log, open_files: OPEN_FILES.get(), taken_back_at_start_max, ..options },
    )
}

/// Tables by their names have pages of 1, 2 or 4 KiB.
pub(super) fn def(name: &str) -> TableDef {
    let page_size = [None, Some(2_048), Some(4_096)][name.bytes().map(usize::from).sum::<usize>() % 3];
    TableDef {
        page_size,
        database: "d".into(),
        name: name.into(),
        columns: vec![
            column("id", int(), false),
            column("k", int(), false),
            column("c", ColumnType::Blob { bytes_max: u32::MAX }, false),
        ],
        primary: Some(vec![part(0)]),
        indexes: Vec::new(),
        auto_increment: None,
        sql_metadata: vec![7; 600],
        ..TableDef::default()
    }
}

pub(super) fn image(table: &crate::Table, id: i32, bytes: &[u8]) -> Vec<u8> {
    let mut image = Vec::new();
    let values = [ValueRef::Int(id.into()), ValueRef::Int((id % 7).into()), ValueRef::Binary(bytes)];
    table.row_codec().encode(&values, &mut image);
    image
}

/// Mostly rows that fit a leaf, some that take pages of their own.
pub(super) fn some_bytes(random: &mut Random) -> Vec<u8> {
    let len = match random.below(8) {
        0 => 300 + random.below(3_000),
        1 => 0,
        _ => 10 + random.below(150),
    };
    let first = random.below(256) as u8;
    (0..len).map(|i| first.wrapping_add(i as u8)).collect()
}

/// What a statement does.
#[derive(Debug)]
pub(super) enum Step {
    CreateTable(String),
    DropTable(String),
    Truncate(String),
    Index(String),
    Insert(String, Rows),
    Update(String, i32, Vec<u8>),
    Delete(String, i32),
    Purge,
    Checkpoint,
}

impl Step {
    pub(super) fn random(random: &mut Random, tables: &Tables) -> Step {
        let name = |random: &mut Random| {
            let at = random.index(tables.len());
            tables.keys().nth(at).expect("there is always a table").clone()
        };
        let row = |random: &mut Random, table: &String| {
            let rows = &tables[table];
            let at = random.index(rows.len().max(1));
            rows.keys().nth(at).copied().unwrap_or(1)
        };
        match random.below(40) {
            0 if tables.len() < 3 => Step::CreateTable(format!("t{}", random.below(1_000))),
            1 if tables.len() > 1 => Step::DropTable(name(random)),
            2 => Step::Truncate(name(random)),
            3 => Step::Index(name(random)),
            4 | 5 => Step::Purge,
            6 => Step::Checkpoint,
            7..=14 => {
                let table = name(random);
                let id = row(random, &table);
                Step::Update(table, id, some_bytes(random))
            }
            15..=24 => {
                let table = name(random);
                let id = row(random, &table);
                Step::Delete(table, id)
            }
            _ => {
                let count = if random.below(4) == 0 { 1 + random.below(12) } else { 1 };
                let rows = (0..count).map(|_| (random.below(400) as i32, some_bytes(random))).collect();
                Step::Insert(name(random), rows)
            }
        }
    }

    /// What is there afterwards.
    pub(super) fn after(&self, tables: &Tables) -> Tables {
        let mut tables = tables.clone();
        fn rows<'t>(tables: &'t mut Tables, name: &str) -> &'t mut Rows {
            tables.get_mut(name).expect("a table that is there")
        }
        match self {
            Step::CreateTable(name) => drop(tables.entry(name.clone()).or_default()),
            Step::DropTable(name) => drop(tables.remove(name)),
            Step::Truncate(name) => rows(&mut tables, name).clear(),
            Step::Insert(name, new) => new.iter().for_each(|(id, bytes)| {
                rows(&mut tables, name).entry(*id).or_insert_with(|| bytes.clone());
            }),
            Step::Update(name, id, bytes) => {
                if let Some(row) = rows(&mut tables, name).get_mut(id) {
                    row.clone_from(bytes);
                }
            }
            Step::Delete(name, id) => drop(rows(&mut tables, name).remove(id)),
            Step::Index(_) | Step::Purge | Step::Checkpoint => {}
        }
        tables
    }

    pub(super) fn run(&self, database: &Database, tables: &Tables) -> crate::Result<()> {
        let table = |name: &String| database.table("d", name);
        match self {
            Step::CreateTable(name) => match database.create_table(def(name)) {
                Ok(_) | Err(Error::TableExists) => Ok(()),
                Err(error) => Err(error),
            },
            Step::DropTable(name) => database.drop_table("d", name),
            Step::Truncate(name) => database.truncate(&*table(name)?),
            Step::Index(name) => {
                let index = IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] };
                match database.create_index(&*table(name)?, index) {
                    // Of a step that a crash cut in two.
                    Ok(()) | Err(Error::IndexExists) => {}
                    Err(error) => return Err(error),
                }
                database.drop_index(&*table(name)?, "k")
            }
            Step::Insert(name, new) => {
                let table = table(name)?;
                let mut list = KeyList::default();
                for (id, bytes) in new.iter().filter(|(id, _)| !tables[name].contains_key(id)) {
                    list.push(&image(&table, *id, bytes));
                }
                let mut statement = database.begin_write()?;
                statement.insert_many(&table, &list).map_err(|(_, error)| error)?;
                statement.commit()
            }
            Step::Update(name, id, bytes) => {
                let table = table(name)?;
                let mut statement = database.begin_write()?;
                let new = image(&table, *id, bytes);
                statement.update(&table, &int_key(*id), &mut |_, out| {
                    out.extend_from_slice(&new);
                    true
                })?;
                statement.commit()
            }
            Step::Delete(name, id) => {
                let table = table(name)?;
                let mut statement = database.begin_write()?;
                statement.delete(&table, &int_key(*id), &mut |_| true)?;
                statement.commit()
            }
            Step::Purge => {
                database.core().purge.drain(database.core());
                Ok(())
            }
            Step::Checkpoint => database.checkpoint(),
        }
    }
}

/// What a workload came to: what it was promised, and what it asked for last.
pub(super) struct Outcome {
    pub(super) opened: bool,
    pub(super) before: Tables,
    pub(super) after: Tables,
    pub(super) error: Option<Error>,
    /// The last statement.
    pub(super) last: Option<String>,
}

fn describe(bytes: &[u8]) -> String {
    format!("{} bytes from {:?}", bytes.len(), bytes.first())
}

fn workload(vfs: &SimVfs, seed: u64, steps: usize) -> Outcome {
    go_on(vfs, seed, steps, Tables::new())
}

/// Works on a directory in which `found` was found.
fn go_on(vfs: &SimVfs, seed: u64, steps: usize, found: Tables) -> Outcome {
    let mut random = Random::new(seed, 0);
    let empty = found.clone();
    let unopened =
        |error| Outcome { opened: false, before: empty.clone(), after: empty.clone(), error, last: None };
    let database = match open(vfs) {
        Ok(database) => database,
        Err(error) => return unopened(Some(error)),
    };
    let mut before = found;
    let mut first = before.clone();
    first.entry("t".to_string()).or_default();
    let stop = |database: &Database, error, before: &Tables, after: &Tables, last: Option<&Step>| {
        // A machine that has stopped says so at every turn.
        let _ = database.close();
        let last = last.map(|step| format!("{step:?}").chars().take(200).collect());
        Outcome { opened: true, before: before.clone(), after: after.clone(), error, last }
    };
    if first != before {
        let made = match database.create_database("d", b"") {
            Ok(()) | Err(Error::DatabaseExists) => database.create_table(def("t")).map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = made {
            return stop(&database, Some(error), &before, &first, None);
        }
    }
    before = first;
    for _ in 0..steps {
        let step = Step::random(&mut random, &before);
        let after = step.after(&before);
        if let Err(error) = step.run(&database, &before) {
            return stop(&database, Some(error), &before, &after, Some(&step));
        }
        before = after;
    }
    match database.close() {
        Ok(()) => Outcome { opened: true, after: before.clone(), before, error: None, last: None },
        Err(error) => stop(&database, Some(error), &before, &before, None),
    }
}

pub(super) fn contents(database: &Database) -> Tables {
    let mut tables = Tables::new();
    let named = match database.tables("d") {
        Ok(named) => named,
        Err(Error::NoSuchDatabase) => return tables,
        Err(error) => panic!("{error}"),
    };
    for table in named {
        let mut rows = Rows::new();
        let session = &mut database.session();
        let statement = session.read().unwrap();
        let mut scan = table.scan(statement.reader(), IndexId(0), KeyRange::all(), Direction::Forward);
        while let Some(image) = scan.next_row().unwrap() {
            let row = table.row_codec().view(image);
            let (ValueRef::Int(id), ValueRef::Binary(bytes)) = (row.get(0), row.get(2)) else {
                panic!("not a row of the table")
            };
            rows.insert(id as i32, bytes.to_vec());
        }
        tables.insert(table.def().name.clone(), rows);
    }
    tables
}

/// A start finds what was promised, and perhaps what was asked for last, and everything in order.
pub(super) fn verify(outcome: &Outcome, left: &SimVfs) -> Tables {
    let database = open(left).unwrap_or_else(|error| panic!("it does not open: {error}"));
    let found = contents(&database);
    if !outcome.opened {
        assert_eq!(found, outcome.before, "nothing was asked for");
    } else {
        for (name, rows) in &found {
            let (before, after) = (outcome.before.get(name), outcome.after.get(name));
            assert!(before.is_some() || after.is_some(), "table {name} was never asked for");
            for (id, bytes) in rows {
                let is_expected =
                    [before, after].into_iter().flatten().any(|rows| rows.get(id) == Some(bytes));
                let of =
                    |rows: Option<&Rows>| rows.and_then(|rows| rows.get(id)).map(|bytes| describe(bytes));
                assert!(
                    is_expected,
                    "row {id} of {name}: found {}, was {:?}, asked for {:?}; {:?}",
                    describe(bytes),
                    of(before),
                    of(after),
                    outcome.last
                );
            }
        }
        for (name, rows) in outcome.before.iter().filter(|(name, _)| outcome.after.contains_key(*name)) {
            let is_kept = |id: &i32| !outcome.after[name].contains_key(id) || found[name].contains_key(id);
            assert!(rows.keys().all(is_kept), "a row of {name} that was promised is gone");
        }
    }
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
    found
}

/// Every file there is, with its bytes.
fn everything(vfs: &SimVfs) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::from(DIR)];
    while let Some(folder) = folders.pop() {
        for name in vfs.list(&folder).unwrap_or_default() {
            let path = folder.join(name);
            match vfs.open(&path, Create::Never) {
                Ok(file) => {
                    let mut bytes = vec![0; file.len().unwrap() as usize];
                    file.read_at(&mut bytes, 0).unwrap();
                    files.insert(path, bytes);
                }
                Err(_) => folders.push(path),
            }
        }
    }
    files
}

/// `check` of what a crash left says of it what a start finds, and changes nothing. Gives the number of rows;
/// `None` if the making of the directory was cut short.
fn check_untouched(left: &SimVfs) -> Option<u64> {
    let before = (everything(left), left.events());
    let report = match crate::check(Path::new(DIR), Arc::new(left.clone())) {
        Ok(report) => report,
        Err(Error::WrongFormat { .. })
            if !left.exists(&Path::new(DIR).join("latchwork.control")).unwrap() =>
        {
            return None;
        }
        Err(error) => panic!("it cannot be examined: {error}"),
    };
    assert!(report.is_clean(), "{report}");
    assert!((everything(left), left.events()) == before, "something was written");
    Some(report.rows)
}

/// A crash, a start, and crashes within starts: all find the same.
fn check_crash(outcome: &Outcome, vfs: &SimVfs, seed: u64) {
    let left = vfs.crash(seed);
    let again = left.crash(seed ^ 1);
    let examined = seed.is_multiple_of(2).then(|| check_untouched(&left)).flatten();
    let found = verify(outcome, &left);
    if let Some(rows) = examined {
        assert_eq!(rows, found.values().map(|rows| rows.len() as u64).sum::<u64>());
    }
    // A start that is itself cut, somewhere.
    let mut random = Random::new(seed, 0);
    again.set_plan(Plan { cut: Some(Cut::AfterEvent(random.below_u64(60))), ..Plan::default() });
    drop(open(&again));
    let again = again.crash(seed ^ 2);
    assert_eq!(verify(outcome, &again), found, "a start after a start that was cut finds the same");
    // A process that is killed after its start: what it wrote is there, and not durable.
    drop(open(&left));
    assert_eq!(verify(outcome, &left.crash(seed ^ 3)), found, "and so does one after one that was killed");
    // Life goes on, to the next crash.
    left.set_plan(Plan { cut: Some(Cut::AfterEvent(random.below_u64(400))), ..Plan::default() });
    let next = go_on(&left, seed, 15, found);
    assert!(next.error.is_none() || left.stopped(), "{:?} of {:?}", next.error, next.last);
    verify(&next, &left.crash(seed ^ 4));
}

pub(super) struct Context(pub(super) u64, pub(super) String);

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("LATCHWORK_CRASH={}, {}", self.0, self.1);
        }
    }
}

pub(super) fn seeds(default: std::ops::Range<u64>) -> std::ops::Range<u64> {
    match std::env::var("LATCHWORK_CRASH").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => default,
    }
}

#[test]
fn a_machine_that_stops_anywhere_keeps_what_it_acknowledged() {
    stop_anywhere(seeds(0..24));
}

#[test]
fn a_machine_that_stops_anywhere_keeps_it_with_two_open_files() {
    OPEN_FILES.set(Some(2));
    stop_anywhere(seeds(24..32));
}

fn stop_anywhere(seeds: std::ops::Range<u64>) {
    let mut cuts = 0;
    for seed in seeds {
        let whole = SimVfs::new();
        let outcome = workload(&whole, seed, 60);
        assert!(outcome.error.is_none(), "seed {seed}: {:?}", outcome.error);
        let mut random = Random::new(seed, 0);
        let mut at = 0;
        while at < whole.events() {
            let cut = Cut::AfterEvent(at);
            let vfs = SimVfs::with_plan(Plan { cut: Some(cut), ..Plan::default() });
            let _context = Context(seed, format!("{cut:?}"));
            let outcome = workload(&vfs, seed, 60);
            assert!(outcome.error.is_none() || vfs.stopped(), "{:?} of {:?}", outcome.error, outcome.last);
            for crash in 0..2 {
                let _context = Context(seed, format!("crash {crash}"));
                check_crash(&outcome, &vfs, at << 8 | crash);
                cuts += 1;
            }
            at += 1 + random.below_u64(30);
        }
    }
    println!("{cuts} crashes");
}

#[test]
fn a_full_disk_or_a_failed_sync_loses_nothing_that_was_acknowledged() {
    for seed in seeds(0..20) {
        let mut random = Random::new(seed, 0);
        let plan = if seed % 2 == 0 {
            Plan { free_bytes: Some(700_000 + random.below_u64(120_000)), ..Plan::default() }
        } else {
            let dirty = if random.below(2) == 0 {
                Dirty::Kept
            } else {
                Dirty::Forgotten { seed: random.below_u64(1_000) }
            };
            Plan {
                failed_sync: Some(FailedSync { nth: 1 + random.below_u64(150), dirty }),
                ..Plan::default()
            }
        };
        let _context = Context(seed, format!("{plan:?}"));
        let vfs = SimVfs::with_plan(plan);
        let outcome = workload(&vfs, seed, 60);
        for crash in 0..4 {
            let _context = Context(seed, format!("crash {crash}"));
            check_crash(&outcome, &vfs, crash);
        }
    }
}

/// As `workload` on a device of which one operation fails: statements that fail are undone or done, as a
/// whole, and those after them go on, unless the engine refuses changes from then on.
fn workload_with_a_failure(vfs: &SimVfs, seed: u64, steps: usize) -> Outcome {
    let mut random = Random::new(seed, 0);
    let nothing = |error| Outcome {
        opened: false,
        before: Tables::new(),
        after: Tables::new(),
        error: Some(error),
        last: None,
    };
    let database = match open(vfs) {
        Ok(database) => database,
        Err(error) => return nothing(error),
    };
    let mut present = Tables::new();
    let made = database.create_database("d", b"").and_then(|()| database.create_table(def("t")).map(drop));
    let mut first_error = made.err();
    if first_error.is_some() {
        // Once more: an error of the device is over.
        match database.create_database("d", b"") {
            Ok(()) | Err(Error::DatabaseExists) => {}
            Err(error) => return nothing(error),
        }
        match database.create_table(def("t")).map(drop) {
            Ok(()) | Err(Error::TableExists) => {}
            Err(error) => return nothing(error),
        }
    }
    present.insert("t".into(), Rows::new());
    let mut outcome =
        Outcome { opened: true, before: present.clone(), after: present.clone(), error: None, last: None };
    for _ in 0..steps {
        let step = Step::random(&mut random, &present);
        let after = step.after(&present);
        match step.run(&database, &present) {
            // It changed something: so it is durable, and all that was before it.
            Ok(()) if after != present => {
                present = after;
                (outcome.before, outcome.after) = (present.clone(), present.clone());
            }
            Ok(()) => {}
            Err(error) => {
                assert!(!matches!(error, Error::LockWaitTimeout), "{step:?} waited for what cannot end");
                let found = contents(&database);
                assert!(found == present || found == after, "half of {step:?} is there after {error}");
                if first_error.is_none() {
                    (outcome.before, outcome.after) = (present, after);
                    outcome.last = Some(format!("{step:?}").chars().take(200).collect());
                    first_error = Some(error);
                } else {
                    assert_eq!(found, present, "{step:?} after {first_error:?}: {error}");
                }
                present = found;
            }
        }
    }
    if seed.is_multiple_of(2) && database.close().is_err() {
        // The next start is after a crash.
    }
    outcome.error = first_error;
    outcome
}

#[test]
fn each_operation_of_the_device_fails_once_and_nothing_acknowledged_is_lost() {
    const STEPS: usize = 30;
    let (mut failures, mut errors) = (0, 0);
    for seed in seeds(0..6) {
        let whole = SimVfs::new();
        let outcome = workload_with_a_failure(&whole, seed, STEPS);
        assert!(outcome.error.is_none(), "seed {seed}: {:?}", outcome.error);
        for nth in 1..=whole.operations() {
            let _context = Context(seed, format!("operation {nth}"));
            let vfs = SimVfs::with_plan(Plan { failed_operation: Some(nth), ..Plan::default() });
            let outcome = workload_with_a_failure(&vfs, seed, STEPS);
            failures += 1;
            errors += u32::from(outcome.error.is_some());
            verify(&outcome, &vfs.crash(nth));
        }
        // The same of a start after a crash: it fails or not, and the next one works.
        let vfs =
            SimVfs::with_plan(Plan { cut: Some(Cut::AfterEvent(whole.events() * 3 / 4)), ..Plan::default() });
        let outcome = workload(&vfs, seed, STEPS);
        let left = vfs.crash(seed);
        let found = verify(&outcome, &vfs.crash(seed));
        let counted = vfs.crash(seed);
        drop(open(&counted).unwrap());
        for nth in 1..=counted.operations() {
            let _context = Context(seed, format!("operation {nth} of a start"));
            let again = left.crash(seed);
            again.set_plan(Plan { failed_operation: Some(nth), ..Plan::default() });
            let opened = open(&again).is_ok();
            failures += 1;
            errors += u32::from(!opened);
            assert_eq!(verify(&outcome, &again.crash(nth)), found);
        }
    }
    println!("{failures} failures, {errors} of them seen by a statement or a start");
}

/// Rows that a thread was promised, and the one that it asked for last: its key, and what it was to become.
type Own = (Rows, Option<(i32, Option<Vec<u8>>)>);

/// Inserts, updates and deletes rows of its own until the machine stops.
fn work(database: &Database, thread: i32, seed: u64) -> Own {
    let mut random = Random::new(seed, 0);
    let mut rows = Rows::new();
    let Ok(table) = database.table("d", "t") else { return (rows, None) };
    loop {
        let id = thread * 1_000 + random.below(120) as i32;
        let new =
            if rows.contains_key(&id) && random.below(3) == 0 { None } else { Some(some_bytes(&mut random)) };
        let run = || {
            let mut statement = database.begin_write()?;
            match &new {
                None => assert!(statement.delete(&table, &int_key(id), &mut |_| true)?),
                Some(bytes) if rows.contains_key(&id) => {
                    let new = image(&table, id, bytes);
                    let change = &mut |_: &[u8], out: &mut Vec<u8>| {
                        out.extend_from_slice(&new);
                        true
                    };
                    assert!(statement.update(&table, &int_key(id), change)?);
                }
                Some(bytes) => statement.insert(&table, &image(&table, id, bytes))?,
            }
            statement.commit()
        };
        let done: crate::Result<()> = run();
        match (done, new) {
            (Err(_), new) => return (rows, Some((id, new))),
            (Ok(()), None) => drop(rows.remove(&id)),
            (Ok(()), Some(bytes)) => drop(rows.insert(id, bytes)),
        }
    }
}

#[test]
fn many_threads_keep_what_was_acknowledged_while_pages_are_written_and_checkpoints_taken() {
    const THREADS: i32 = 4;
    for seed in seeds(0..12) {
        let _context = Context(seed, "threads".to_string());
        let vfs = SimVfs::new();
        let mut options =
            options(Arc::new(vfs.clone()), PAGE_SIZE, HitPath::Optimistic, CacheSize::from_environment());
        options.log = LogOptions { capacity: 96 << 10, file_size: 32 << 10, ..options.log };
        let database = Database::open(Path::new(DIR), options).unwrap();
        database.create_database("d", b"").unwrap();
        database.create_table(def("t")).unwrap();
        let mut random = Random::new(seed, 0);
        vfs.set_plan(Plan { cut: Some(Cut::AfterEvent(20 + random.below_u64(2_000))), ..Plan::default() });
        let owns: Vec<Own> = std::thread::scope(|scope| {
            let spawn = |thread| {
                let database = &database;
                scope.spawn(move || work(database, thread, seed << 8 | thread as u64))
            };
            let threads: Vec<_> = (0..THREADS).map(spawn).collect();
            while !vfs.stopped() {
                // As often as it can.
                let _ = database.checkpoint();
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        drop(database);
        for crash in 0..2 {
            let left = open(&vfs.crash(crash)).unwrap_or_else(|error| panic!("it does not open: {error}"));
            let mut found = contents(&left).remove("t").unwrap();
            for (mut rows, asked) in owns.clone() {
                if let Some((id, new)) = asked
                    && found.get(&id) != rows.get(&id)
                {
                    match new {
                        Some(bytes) => drop(rows.insert(id, bytes)),
                        None => drop(rows.remove(&id)),
                    }
                }
                for (id, bytes) in rows {
                    assert_eq!(
                        found.remove(&id).as_deref().map(describe),
                        Some(describe(&bytes)),
                        "row {id}"
                    );
                }
            }
            assert_eq!(found.keys().next(), None, "a row that is gone, or was never asked for");
            let report = left.check().unwrap();
            assert!(report.is_clean(), "{report}");
        }
    }
}

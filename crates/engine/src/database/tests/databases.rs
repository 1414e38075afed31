//! Directories: who may open them, what a crash leaves, what failing devices do.

use crate::Reader;
use crate::tests::{CacheSize, Row, int_key, matrix, options, table_def};
use crate::{Database, Error, HitPath, KeyRange, Options, Table, WriteBack, check};
use base::IndexId;
use base::sync::{Arc, Condvar, Mutex, thread};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vfs::{Clock, Create, Fault, FaultyVfs, Limits, MemVfs, Operation, Throttled, Vfs};

const DIR: &str = "data";
const PAGE_SIZE: usize = 1024;

fn open(vfs: Arc<dyn Vfs>) -> crate::Result<Arc<Database>> {
    open_with(vfs, HitPath::Optimistic, CacheSize::from_environment())
}

fn open_with(vfs: Arc<dyn Vfs>, path: HitPath, size: CacheSize) -> crate::Result<Arc<Database>> {
    Database::open(Path::new(DIR), options(vfs, PAGE_SIZE, path, size))
}

fn with_table(vfs: Arc<dyn Vfs>) -> (Arc<Database>, Arc<Table>) {
    let database = open(vfs).unwrap();
    database.create_database("d", b"about d").unwrap();
    let table = database.create_table(table_def()).unwrap();
    (database, table)
}

fn row(id: i32) -> Row {
    Row { id, k: id % 10, u: Some(-id), c: vec![id as u8; 60] }
}

fn insert(database: &Database, table: &Table, row: &Row) -> crate::Result<()> {
    let mut statement = database.begin_write()?;
    statement.insert(table, &row.image(table))?;
    statement.commit()
}

fn has(table: &Table, row: &Row) -> bool {
    let mut image = Vec::new();
    table.get(Reader::newest(), &int_key(row.id), &mut image).unwrap() && Row::read(table, &image) == *row
}

fn table_file(vfs: &dyn Vfs) -> PathBuf {
    let tables = Path::new(DIR).join("tables");
    let names = vfs.list(&tables).unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    tables.join(&names[0])
}

fn flip_byte(vfs: &dyn Vfs, path: &Path, at: u64) {
    let file = vfs.open(path, Create::Never).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[byte[0] ^ 0x40], at).unwrap();
}

#[test]
fn a_clean_shutdown_loses_nothing() {
    for (hit_path, size) in matrix() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let database = open_with(vfs.clone(), hit_path, size).unwrap();
        database.create_database("d", b"about d").unwrap();
        let table = database.create_table(table_def()).unwrap();
        (0..500).for_each(|id| insert(&database, &table, &row(id)).unwrap());
        database.close().unwrap();
        assert!(matches!(insert(&database, &table, &row(1_000)), Err(Error::Closed)));
        assert!(matches!(table.get(Reader::newest(), &int_key(1), &mut Vec::new()), Err(Error::Closed)));
        database.close().unwrap();
        let report = check(Path::new(DIR), vfs.clone()).unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.rows, 500);
        let database = open_with(vfs, hit_path, size).unwrap();
        assert_eq!(database.databases(), [("d".to_string(), b"about d".to_vec())]);
        let table = database.table("d", "t").unwrap();
        assert_eq!(*table.def(), table_def());
        assert!((0..500).all(|id| has(&table, &row(id))));
    }
}

#[test]
fn after_a_crash_the_directory_recovers_what_was_acknowledged() {
    for (hit_path, size) in matrix() {
        let vfs = Arc::new(MemVfs::new());
        let database = open_with(vfs.clone(), hit_path, size).unwrap();
        database.create_database("d", b"about d").unwrap();
        let table = database.create_table(table_def()).unwrap();
        (0..500).for_each(|id| insert(&database, &table, &row(id)).unwrap());
        drop((database, table));
        let report = check(Path::new(DIR), vfs.clone()).unwrap();
        assert!(report.to_string().contains("not shut down cleanly"), "{report}");
        assert!(report.is_clean() && report.rows == 500, "{report}");
        let database = open_with(vfs.clone(), hit_path, size).unwrap();
        let table = database.table("d", "t").unwrap();
        assert!((0..500).all(|id| has(&table, &row(id))));
        let report = database.check().unwrap();
        assert!(report.is_clean() && report.rows == 500, "{report}");
        insert(&database, &table, &row(500)).unwrap();
        database.close().unwrap();
        drop((database, table));
        let report = check(Path::new(DIR), vfs).unwrap();
        assert!(report.is_clean() && report.rows == 501, "{report}");
    }
}

/// Stops the thread of checkpoints at the device until it is let go.
#[derive(Default, Debug)]
struct Barrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct BarrierState {
    is_closed: bool,
    is_reached: bool,
}

impl Barrier {
    fn set(&self, is_closed: bool) {
        self.state.lock().is_closed = is_closed;
        self.changed.notify_all();
    }

    fn wait_until_reached(&self) {
        let mut state = self.state.lock();
        while !state.is_reached {
            state = self.changed.wait(state);
        }
    }
}

impl Clock for Barrier {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _: Duration) {
        if thread::current().name() != Some("checkpoint") {
            return;
        }
        let mut state = self.state.lock();
        state.is_reached = state.is_closed;
        self.changed.notify_all();
        while state.is_closed {
            state = self.changed.wait(state);
        }
    }
}

#[test]
fn a_directory_can_be_opened_as_soon_as_its_last_owner_has_dropped_it() {
    let memory = Arc::new(MemVfs::new());
    let barrier = Arc::new(Barrier::default());
    let slow = Throttled::with_clock(memory.clone(), Limits::default(), barrier.clone());
    let (database, table) = with_table(Arc::new(slow));
    insert(&database, &table, &row(1)).unwrap();
    barrier.set(true);
    // An idle log makes the thread of checkpoints take one.
    barrier.wait_until_reached();
    let opener = {
        let barrier = barrier.clone();
        thread::spawn(move || {
            // Whoever comes first: the thread must have gone when the database has.
            thread::sleep(Duration::from_millis(50));
            barrier.set(false);
        })
    };
    drop((database, table));
    let (database, table) = match open(memory) {
        Ok(database) => (database.clone(), database.table("d", "t").unwrap()),
        Err(error) => panic!("the database has been dropped, and does not open: {error}"),
    };
    assert!(has(&table, &row(1)));
    drop(database);
    opener.join().unwrap();
}

/// The table keeps the state for readers that may be in it, but not the list of the file's free pages, which
/// can be long.
#[test]
fn a_file_that_a_table_has_left_has_no_list_of_free_pages() {
    let (database, table) = with_table(Arc::new(MemVfs::new()));
    (0..500).for_each(|id| insert(&database, &table, &row(id)).unwrap());
    let mut statement = database.begin_write().unwrap();
    (0..500).for_each(|id| assert!(statement.delete(&table, &int_key(id), &mut |_| true).unwrap()));
    statement.commit().unwrap();
    database.core().purge.drain(database.core());
    let old = table.state();
    assert!(!old.space.occupancy().1.is_empty());
    database.truncate(&table).unwrap();
    assert!(old.space.occupancy().1.is_empty());
    insert(&database, &table, &row(1)).unwrap();
    assert!(has(&table, &row(1)));
}

#[test]
fn a_directory_that_was_only_read_needs_no_shutdown() {
    let vfs = Arc::new(MemVfs::new());
    let (database, table) = with_table(vfs.clone());
    insert(&database, &table, &row(1)).unwrap();
    database.close().unwrap();
    drop((database, table));
    for _ in 0..2 {
        let database = open(vfs.clone()).unwrap();
        assert!(has(&database.table("d", "t").unwrap(), &row(1)));
    }
}

#[test]
fn a_second_opener_is_kept_out() {
    let vfs = Arc::new(MemVfs::new());
    let _database = open(vfs.clone()).unwrap();
    assert!(matches!(open(vfs.clone()), Err(Error::AlreadyOpen { .. })));
    assert!(matches!(check(Path::new(DIR), vfs), Err(Error::AlreadyOpen { .. })));
}

#[test]
fn a_directory_that_is_none_of_ours_is_left_alone() {
    let vfs = Arc::new(MemVfs::new());
    let missing =
        Options { create: false, ..options(vfs.clone(), PAGE_SIZE, HitPath::Optimistic, CacheSize::Normal) };
    assert!(matches!(Database::open(Path::new(DIR), missing), Err(Error::WrongFormat { .. })));
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    let stranger = Path::new(DIR).join("thesis.txt");
    vfs.open(&stranger, Create::New).unwrap();
    let error = open(vfs.clone()).unwrap_err();
    assert!(error.to_string().contains("thesis.txt"), "{error}");
    assert!(vfs.exists(&stranger).unwrap());
    let odd = Options { page_size: 3_000, ..options(vfs, PAGE_SIZE, HitPath::Optimistic, CacheSize::Normal) };
    assert!(matches!(Database::open(Path::new(DIR), odd), Err(Error::BadOption { .. })));
}

#[test]
fn a_directory_of_the_format_before_is_taken_over_and_others_are_refused() {
    let vfs = Arc::new(MemVfs::new());
    open(vfs.clone()).unwrap().close().unwrap();
    let format = || {
        let control = vfs.open(&Path::new(DIR).join("latchwork.control"), Create::Never).unwrap();
        let mut bytes = [0; 64];
        control.read_at(&mut bytes, 0).unwrap();
        (bytes, bytes[8])
    };
    for (found, is_read) in [(2, true), (3, true), (4, true), (5, true), (1, false), (7, false)] {
        let (mut bytes, _) = format();
        bytes[8] = found;
        let sum = base::checksum::checksum(0, &bytes[..60]);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        let control = vfs.open(&Path::new(DIR).join("latchwork.control"), Create::Never).unwrap();
        control.write_at(&bytes, 0).unwrap();
        match open(vfs.clone()) {
            Ok(database) => {
                assert!(is_read, "format {found}");
                // A build that knows only the old format would be wrong from here on.
                assert_eq!(format().1, 6);
                database.close().unwrap();
            }
            Err(error) => assert!(!is_read && error.to_string().contains("format"), "{error}"),
        }
    }
}

#[test]
fn a_damaged_control_file_is_named() {
    let vfs = Arc::new(MemVfs::new());
    let database = open(vfs.clone()).unwrap();
    database.close().unwrap();
    drop(database);
    flip_byte(&*vfs, &Path::new(DIR).join("latchwork.control"), 20);
    let error = open(vfs).unwrap_err();
    assert!(
        matches!(&error, Error::WrongFormat { path, .. } if path.ends_with("latchwork.control")),
        "{error}"
    );
}

/// Somebody's rows are in there: a start must neither make a new database over them nor guess.
#[test]
fn tables_whose_control_file_is_missing_or_not_ours_are_refused_and_left_alone() {
    let control = Path::new(DIR).join("latchwork.control");
    let write = |vfs: &MemVfs, bytes: &[u8]| {
        let file = vfs.open(&control, Create::IfMissing).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        file.write_at(bytes, 0).unwrap();
    };
    type Damage<'d> = (&'d str, &'d dyn Fn(&MemVfs));
    let damages: [Damage<'_>; 3] = [
        ("no control file", &|vfs| vfs.remove(&control).unwrap()),
        ("too short", &|vfs| write(vfs, b"cut")),
        ("not one of", &|vfs| write(vfs, &[7; 64])),
    ];
    for (expected, damage) in damages {
        let vfs = Arc::new(MemVfs::new());
        let (database, table) = with_table(vfs.clone());
        insert(&database, &table, &row(1)).unwrap();
        database.close().unwrap();
        drop((database, table));
        let mut whole = [0; 64];
        vfs.open(&control, Create::Never).unwrap().read_at(&mut whole, 0).unwrap();
        damage(&vfs);
        for _ in 0..2 {
            let error = open(vfs.clone()).unwrap_err();
            assert!(matches!(error, Error::WrongFormat { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        write(&vfs, &whole);
        assert!(has(&open(vfs).unwrap().table("d", "t").unwrap(), &row(1)), "{expected}");
    }
}

/// A record that a later build wrote changes something: without it what follows would be wrong.
#[test]
fn a_log_with_a_record_of_an_unknown_kind_is_refused() {
    let vfs = Arc::new(MemVfs::new());
    let (database, table) = with_table(vfs.clone());
    insert(&database, &table, &row(1)).unwrap();
    database.core.journal.log().append(2, &[b"of a later build"]).unwrap();
    insert(&database, &table, &row(2)).unwrap();
    drop((database, table));
    for _ in 0..2 {
        let error = open(vfs.clone()).unwrap_err();
        assert!(matches!(&error, Error::Log { why } if why.contains("unknown kind 2")), "{error}");
    }
}

#[test]
fn a_corrupt_page_is_named_by_reads_and_by_check_and_the_rest_goes_on() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let (database, table) = with_table(vfs.clone());
    (0..250).for_each(|id| insert(&database, &table, &row(id)).unwrap());
    database.close().unwrap();
    drop((database, table));
    let path = table_file(&*vfs);
    // The page of the last row: the leaf that the ascending load left at the right edge of the clustered
    // index.
    let file = vfs.open(&path, Create::Never).unwrap();
    let needle = row(249).c;
    let pages = file.len().unwrap() / PAGE_SIZE as u64;
    let mut bytes = vec![0; PAGE_SIZE];
    let page = (0..pages)
        .find(|page| {
            file.read_at(&mut bytes, page * PAGE_SIZE as u64).unwrap();
            bytes.windows(needle.len()).any(|window| window == needle)
        })
        .expect("a page has the row");
    flip_byte(&*vfs, &path, page * PAGE_SIZE as u64 + 500);
    let report = check(Path::new(DIR), vfs.clone()).unwrap();
    assert!(report.findings.iter().any(|f| f.page == Some(page as u32) && f.path == path), "{report}");
    let database = open(vfs).unwrap();
    let table = database.table("d", "t").unwrap();
    let error = table.get(Reader::newest(), &int_key(249), &mut Vec::new()).unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { page: p, path: f, .. } if u64::from(*p) == page && *f == path),
        "{error}"
    );
    assert!(has(&table, &row(0)));
}

#[test]
fn a_missing_entry_is_found_and_one_without_a_row_is_garbage() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let (database, table) = with_table(vfs);
    (0..100).for_each(|id| insert(&database, &table, &row(id)).unwrap());
    let index = &table.state().indexes[1].tree;
    let entry = |k: i32, id: i32| [int_key(k), int_key(id)].concat();
    assert!(index.remove(&entry(7, 17)).unwrap());
    assert!(index.insert(&entry(7, 4_000), &[], base::Stamp(1)).unwrap());
    let report = database.check().unwrap();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.to_string().contains("is missing"), "{report}");
    assert_eq!(report.garbage, 1);
    assert_eq!(report.findings[0].index.as_deref(), Some("d.t, k"));
}

#[test]
fn a_full_disk_refuses_rows_and_loses_none_that_were_acknowledged() {
    for (hit_path, size) in matrix() {
        let vfs = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
        let database = open_with(vfs.clone(), hit_path, size).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(table_def()).unwrap();
        vfs.faults().set_free_bytes(Some(40_000));
        let mut acknowledged = Vec::new();
        let mut refusals = 0;
        for id in 0..2_000 {
            match insert(&database, &table, &row(id)) {
                Ok(()) => acknowledged.push(id),
                Err(Error::Full | Error::ReadOnly { .. }) => refusals += 1,
                Err(error) => panic!("{error:?}"),
            }
            if refusals == 20 {
                break;
            }
        }
        assert_eq!(refusals, 20);
        assert!(acknowledged.iter().all(|id| has(&table, &row(*id))), "reads go on");
        vfs.faults().heal();
        insert(&database, &table, &row(5_000)).unwrap();
        let report = database.check().unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.rows, acknowledged.len() as u64 + 1);
        database.close().unwrap();
        drop((database, table));
        let database = open_with(vfs, hit_path, size).unwrap();
        let table = database.table("d", "t").unwrap();
        assert!(acknowledged.iter().all(|id| has(&table, &row(*id))));
    }
}

#[test]
fn while_pages_cannot_be_written_writes_are_refused_and_reads_go_on() {
    let vfs = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
    let mut options = options(vfs.clone(), PAGE_SIZE, HitPath::Optimistic, CacheSize::Normal);
    options.cache.write_back = WriteBack::AtEvictionOnly;
    let database = Database::open(Path::new(DIR), options).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    (0..200).for_each(|id| insert(&database, &table, &row(id)).unwrap());
    vfs.faults().fail_from(Operation::Write, 1, Fault::Error(ErrorKind::Other));
    assert!(database.caches().flush_all().is_err());
    assert!(matches!(insert(&database, &table, &row(900)), Err(Error::ReadOnly { .. })));
    assert!((0..200).all(|id| has(&table, &row(id))));
    assert!(database.close().is_err(), "nothing is called clean that is not on the device");
    drop((database, table));
    vfs.faults().heal();
    let table = open(vfs).unwrap().table("d", "t").unwrap();
    assert!((0..200).all(|id| has(&table, &row(id))));
}

#[test]
fn after_a_shutdown_that_failed_the_next_start_recovers() {
    let vfs = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
    let (database, table) = with_table(vfs.clone());
    (0..200).for_each(|id| insert(&database, &table, &row(id)).unwrap());
    vfs.faults().fail_from(Operation::Write, 1, Fault::Error(ErrorKind::StorageFull));
    assert!(database.close().is_err());
    drop((database, table));
    vfs.faults().heal();
    let table = open(vfs).unwrap().table("d", "t").unwrap();
    assert!((0..200).all(|id| has(&table, &row(id))));
}

#[test]
fn writes_are_taken_again_once_the_device_writes_again() {
    let vfs = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
    let (database, table) = with_table(vfs.clone());
    (0..200).for_each(|id| insert(&database, &table, &row(id)).unwrap());
    vfs.faults().fail_from(Operation::Write, 1, Fault::Error(ErrorKind::Other));
    let _ = database.caches().flush_all();
    vfs.faults().heal();
    database.caches().flush_all().unwrap();
    insert(&database, &table, &row(900)).unwrap();
    database.close().unwrap();
    drop((database, table));
    let database = open(vfs).unwrap();
    let table = database.table("d", "t").unwrap();
    assert!((0..200).chain([900]).all(|id| has(&table, &row(id))));
}

#[test]
fn a_failed_sync_at_shutdown_does_not_mark_the_directory_clean() {
    let vfs = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
    let (database, table) = with_table(vfs.clone());
    insert(&database, &table, &row(1)).unwrap();
    vfs.faults().fail_from(Operation::Sync, 1, Fault::Error(ErrorKind::Other));
    assert!(database.close().is_err());
    vfs.faults().heal();
    assert!(has(&table, &row(1)), "reads go on");
    assert!(database.close().is_err(), "what the device holds stays unknown");
    drop((database, table));
    let table = open(vfs).unwrap().table("d", "t").unwrap();
    assert!(has(&table, &row(1)));
}

#[test]
fn a_failing_device_makes_a_read_fail_and_a_later_one_succeed() {
    let vfs = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
    let (database, table) = with_table(vfs.clone());
    (0..200).for_each(|id| insert(&database, &table, &row(id)).unwrap());
    database.close().unwrap();
    drop((database, table));
    let database = open(vfs.clone()).unwrap();
    let table = database.table("d", "t").unwrap();
    vfs.faults().fail_nth(Operation::Read, 1, Fault::Error(ErrorKind::Other));
    let mut scan = table.scan(Reader::newest(), IndexId(0), KeyRange::all(), crate::Direction::Forward);
    assert!(matches!(scan.next_row(), Err(Error::Io(_))));
    assert!(has(&table, &row(150)));
}

#[test]
fn a_table_that_cannot_be_made_leaves_nothing_behind() {
    let vfs = Arc::new(FaultyVfs::new(Arc::new(MemVfs::new())));
    let (database, table) = with_table(vfs.clone());
    vfs.faults().set_free_bytes(Some(0));
    let other = crate::TableDef { name: "other".into(), ..table_def() };
    assert!(database.create_table(other.clone()).is_err());
    assert_eq!(database.tables("d").unwrap().len(), 1);
    vfs.faults().heal();
    database.create_table(other).unwrap();
    insert(&database, &table, &row(1)).unwrap();
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_clean_shutdown_survives_a_power_failure() {
    let vfs = vfs::SimVfs::new();
    let (database, table) = with_table(Arc::new(vfs.clone()));
    for id in 0..200 {
        insert(&database, &table, &row(id)).unwrap();
    }
    drop(table);
    database.close().unwrap();
    drop(database);
    for seed in 0..60 {
        let database = open(Arc::new(vfs.crash(seed))).unwrap();
        let table = database.table("d", "t").unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for id in 0..200 {
            assert!(has(&table, &row(id)), "seed {seed}: row {id}");
        }
    }
}

/// Damages the file of a table in a directory that nobody has open.
type Damage = fn(&dyn Vfs, &Path);

#[test]
fn a_damaged_file_closes_its_table_and_everything_else_serves() {
    let zero_header: Damage = |vfs, path| {
        let file = vfs.open(path, Create::Never).unwrap();
        file.write_at(&[0; PAGE_SIZE], 0).unwrap();
    };
    let flip_free_map: Damage = |vfs, path| flip_byte(vfs, path, PAGE_SIZE as u64 + 700);
    let remove: Damage = |vfs, path| vfs.remove(path).unwrap();
    let cut: Damage = |vfs, path| vfs.open(path, Create::Never).unwrap().set_len(100).unwrap();
    for (number, damage) in [zero_header, flip_free_map, remove, cut].into_iter().enumerate() {
        for is_clean in [true, false] {
            let what = format!("{number}, {is_clean}");
            let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
            let (database, table) = with_table(vfs.clone());
            let other = crate::TableDef { name: "other".into(), ..table_def() };
            let other = database.create_table(other).unwrap();
            (0..50).for_each(|id| insert(&database, &table, &row(id)).unwrap());
            (0..50).for_each(|id| insert(&database, &other, &row(id)).unwrap());
            let path = table.state().space.path();
            // The second finds nothing of the table to be redone.
            for _ in 0..2 {
                database.core().caches.flush_all().unwrap();
                database.checkpoint().unwrap();
            }
            insert(&database, &other, &row(50)).unwrap();
            if is_clean {
                database.close().unwrap();
            }
            drop((database, table, other));
            damage(&*vfs, &path);
            // Otherwise a start after a crash takes the page from there.
            let copies = Path::new(DIR).join("latchwork.doublewrite");
            vfs.open(&copies, Create::Never).unwrap().set_len(0).unwrap();
            let database = open(vfs.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
            let damaged = database.damaged_tables();
            assert_eq!(damaged.len(), 1, "{what}");
            assert!(damaged[0].name == "t" && damaged[0].why.contains("T2.lwt"), "{what}: {damaged:?}");
            let error = database.table("d", "t").unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{what}: {error}");
            assert!(matches!(database.create_table(table_def()), Err(Error::TableExists)));
            let other = database.table("d", "other").unwrap();
            assert!(has(&other, &row(50)));
            insert(&database, &other, &row(51)).unwrap();
            assert_eq!(vfs.exists(&path).unwrap(), number != 2, "what is left of it stays");
            let report = database.check().unwrap();
            assert!(report.findings.len() == 1 && report.to_string().contains("d.t"), "{report}");
            if is_clean {
                database.drop_table("d", "t").unwrap();
                assert!(!vfs.exists(&path).unwrap());
                insert(&database, &database.create_table(table_def()).unwrap(), &row(1)).unwrap();
            }
            database.close().unwrap();
            drop((database, other));
            let database = open(vfs).unwrap();
            assert_eq!(database.damaged_tables().len(), usize::from(!is_clean), "{what}");
            assert!(has(&database.table("d", "other").unwrap(), &row(51)));
            database.drop_database("d").unwrap();
        }
    }
}

/// How many files below `dir` the process has open whose name ends in `suffix`, removed ones included.
fn open_files(dir: &Path, suffix: &str) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let target = std::fs::read_link(entry.ok()?.path()).ok()?.to_string_lossy().into_owned();
        let name = target.trim_end_matches(" (deleted)");
        (name.starts_with(&*dir.to_string_lossy()) && name.ends_with(suffix)).then_some(())
    });
    open.count()
}

#[test]
fn a_file_that_no_table_has_any_more_is_not_kept_open() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().canonicalize().unwrap().join("data");
    let options = options(Arc::new(vfs::OsVfs), PAGE_SIZE, HitPath::Optimistic, CacheSize::Normal);
    let database = Database::open(&dir, options).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(table_def()).unwrap();
    let fill = |table: &Table| {
        (0..50).for_each(|id| insert(&database, table, &row(id)).unwrap());
        // Through the doublewrite file, which has room for many more pages.
        database.core().caches.flush_all().unwrap();
        assert_eq!(open_files(&dir, ".lwt"), 2, "the catalogue's and the table's");
    };
    fill(&table);
    database.truncate(&table).unwrap();
    fill(&table);
    let new = database.create_replacement(table_def()).unwrap();
    database.replace_table(&table, &new).unwrap();
    drop(table);
    fill(&new);
    database.drop_table("d", "t").unwrap();
    // Plans and statistics may hold the table for a while, and a checkpoint that syncs the file holds that.
    while open_files(&dir, ".lwt") > 1 {
        thread::sleep(Duration::from_millis(10));
    }
    drop(new);
}

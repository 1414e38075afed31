//! Scans are read ahead for if they wait for the device, and only then.
#![cfg(not(feature = "shuttle"))]

use base::IndexId;
use base::sync::{Arc, thread};
use latchwork_engine::{
    CacheOptions, Database, Direction, IoOptions, KeyList, KeyRange, Options, Reader, Table, TableDef,
};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Duration;
use types::{Column, ColumnType, KeyPart, ValueRef};
use vfs::{Create, File, MemVfs, Vfs};

const ROWS: i64 = 40_000;
/// The test's own reads take so long that others get on meanwhile.
const SLOW: Duration = Duration::from_millis(2);

/// Memory, slow for everybody but the threads that read ahead.
#[derive(Clone, Debug)]
struct SlowVfs(MemVfs);

#[derive(Debug)]
struct SlowFile(Arc<dyn File>);

impl Vfs for SlowVfs {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(SlowFile(self.0.open(path, create)?)))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.create_dir_all(dir)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.remove_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

impl File for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if thread::current().name() == Some("scan") {
            thread::sleep(SLOW);
        }
        self.0.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn reserve(&self, len: u64) -> io::Result<()> {
        self.0.reserve(len)
    }
    fn try_lock_exclusive(&self) -> io::Result<()> {
        self.0.try_lock_exclusive()
    }
}

fn open(vfs: &SlowVfs, read_threads: u32) -> (Arc<Database>, Option<Arc<Table>>) {
    let options = Options {
        // Not the smallest cache in any run: the tests count reads from the device, and a second scan must
        // find everything in memory.
        cache: CacheOptions { size_bytes: 16 << 20, ..CacheOptions::default() },
        io: IoOptions { read_threads, ..IoOptions::default() },
        page_size: 1 << 10,
        create: true,
        vfs: Arc::new(vfs.clone()),
        ..Options::default()
    };
    let database = Database::open(Path::new("data"), options).unwrap();
    let table = database.table("d", "t").ok();
    (database, table)
}

fn filled() -> SlowVfs {
    let vfs = SlowVfs(MemVfs::new());
    let (database, _) = open(&vfs, 0);
    database.create_database("d", b"").unwrap();
    let int = ColumnType::Int { bytes: 4, unsigned: false };
    let column = |name: &str| Column { name: name.into(), column_type: int.clone(), nullable: false };
    let def = TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![column("id"), column("k")],
        primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
        indexes: vec![],
        auto_increment: None,
        sql_metadata: Vec::new(),
        ..TableDef::default()
    };
    let table = database.create_table(def).unwrap();
    let mut rows = KeyList::default();
    for id in 0..ROWS {
        let mut image = Vec::new();
        table.row_codec().encode(&[ValueRef::Int(id), ValueRef::Int(id % 100)], &mut image);
        rows.push(&image);
    }
    let mut statement = database.begin_write().unwrap();
    statement.insert_many(&table, &rows).unwrap();
    statement.commit().unwrap();
    database.close().unwrap();
    vfs
}

fn key(id: i64) -> Vec<u8> {
    (id as u32 ^ 1 << 31).to_be_bytes().to_vec()
}

/// Reads rows on a thread that the device is slow for; gives how many pages that thread waited for.
fn scan(table: &Arc<Table>, range: KeyRange, direction: Direction, limit: i64) -> u64 {
    let table = table.clone();
    let run = move || {
        let before = pagecache::loads_of_this_thread();
        let mut scan = table.scan(Reader::newest(), IndexId(0), range, direction);
        let mut rows = 0;
        while rows < limit && scan.next_row().unwrap().is_some() {
            rows += 1;
        }
        assert!(rows == limit || limit == i64::MAX);
        pagecache::loads_of_this_thread() - before
    };
    thread::Builder::new().name("scan".to_string()).spawn(run).unwrap().join().unwrap()
}

#[test]
fn a_scan_of_a_table_on_the_device_waits_for_few_of_its_pages() {
    let vfs = filled();
    let (database, table) = open(&vfs, 4);
    let table = table.unwrap();
    let before = database.caches().default_cache().status();
    let waited = scan(&table, KeyRange::all(), Direction::Forward, i64::MAX);
    let after = database.caches().default_cache().status();
    let (reads, ahead) = (after.counters.reads - before.counters.reads, after.read_ahead_pages);
    assert!(reads > 700, "{reads} pages are no scan to speak of");
    // Nearly all, unless the threads that read ahead had to wait for a processor.
    assert!(ahead > reads / 10 && waited < reads * 9 / 10, "waited for {waited} of {reads}, {ahead} ahead");
    // The next finds everything, and does not even ask.
    assert_eq!(scan(&table, KeyRange::all(), Direction::Forward, i64::MAX), 0);
    let again = database.caches().default_cache().status();
    assert_eq!(
        (again.read_ahead_calls, again.counters.reads),
        (after.read_ahead_calls, after.counters.reads)
    );
    database.close().unwrap();
    // Without the threads it reads what it reads by itself.
    let (database, table) = open(&vfs, 0);
    let waited = scan(&table.unwrap(), KeyRange::all(), Direction::Forward, i64::MAX);
    assert!(waited >= reads, "{waited} of {reads}");
    assert_eq!(database.caches().default_cache().status().read_ahead_calls, 0);
    database.close().unwrap();
}

#[test]
fn short_scans_ask_for_nothing_and_ranges_for_nothing_behind_them() {
    let vfs = filled();
    let (database, table) = open(&vfs, 4);
    let table = table.unwrap();
    scan(&table, KeyRange::all(), Direction::Forward, 30);
    let from = |id| KeyRange { lower: Bound::Included(key(id)), upper: Bound::Unbounded };
    scan(&table, from(9_000), Direction::Forward, 30);
    scan(&table, KeyRange::all(), Direction::Backward, 2_000);
    assert_eq!(database.caches().default_cache().status().read_ahead_calls, 0);
    let range = KeyRange { lower: Bound::Included(key(20_000)), upper: Bound::Included(key(20_400)) };
    let before = database.caches().default_cache().status();
    scan(&table, range, Direction::Forward, i64::MAX);
    let after = database.caches().default_cache().status();
    // A leaf has some forty rows: eleven leaves at most, and the way down to them.
    assert!(after.counters.reads - before.counters.reads < 30, "{after:?}");
    database.close().unwrap();
}

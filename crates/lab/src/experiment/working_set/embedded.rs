//! The engine in this process, over direct I/O on a throttled file tree.

use super::data::{C_CHARS, Data, TABLE};
use super::series::{
    Asked, Choice, Opened, Pages, READS, RowsAndColdPages, Setup, Swept, Variant, not_compressed,
};
use crate::driver::Window;
use crate::driver::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::measure::{MEMORY, Phases, Process, Recorder, resident_mib};
use crate::results::Sample;
use crate::workload::DATABASE;
use base::IndexId;
use base::sync::Arc;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use engine::{CacheOptions, Database, FlushLog, FlushMethod, KeyList, LogOptions, Options, Table, TableDef};
use std::ops::RangeInclusive;
use std::path::Path;
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};
use vfs::{Create, Limits, MemVfs, OsVfs, Throttled, Vfs};

const ROWS_PER_STATEMENT: u32 = 10_000;
const K_COLUMN: usize = 1;

pub(crate) struct Embedded {
    database: Arc<Database>,
    table: Arc<Table>,
    device: Throttled,
    setup: Setup,
    folder_is_direct: bool,
    updates: AtomicU64,
}

pub(crate) fn open(variant: Variant, setup: &Setup, folder: &Path, run: &mut Run<'_>) -> Result<Opened> {
    let device = Throttled::new(Arc::new(OsVfs), Limits::default());
    let cache = CacheOptions { size_bytes: setup.cache_bytes as usize, ..CacheOptions::default() };
    let options = Options {
        cache,
        log: LogOptions { flush: FlushLog::WriteAtCommit, ..LogOptions::default() },
        flush_method: FlushMethod::ODirect,
        row_tier_bytes: variant.row_tier.bytes(setup),
        page_size: variant.pages.size(),
        create: true,
        vfs: Arc::new(device.clone()),
        ..Options::default()
    };
    let database = Database::open(folder, options)?;
    database.create_database(DATABASE, b"")?;
    let compressed = variant.pages == Pages::Compressed;
    let table = database.create_table(TableDef { compressed, ..definition(&setup.data) })?;
    load(&database, &table, &setup.data, run)?;
    database.caches().flush_all().map_err(engine::Error::from)?;
    if compressed && let Some(why) = not_compressed(folder, setup) {
        drop(table);
        database.close()?;
        return Ok(Opened::LeftOut(why));
    }
    let folder_is_direct = database.flush_method() == FlushMethod::ODirect;
    if !folder_is_direct {
        run.progress.note("embedded: the file system cannot do direct I/O; the system's cache takes part");
    }
    let updates = AtomicU64::new(0);
    let opened = Embedded { database, table, device, setup: *setup, folder_is_direct, updates };
    Ok(Opened::Ready(Box::new(opened)))
}

/// How well pages of these data compress, as the engine compresses them: the size of a page over its
/// compressed size, as the median of some pages. The pages are made in a table in memory.
pub(crate) fn compression(data: &Data) -> Result<f64> {
    const ROWS: u32 = 2_000;
    let files = Arc::new(MemVfs::new());
    let folder = Path::new("/compression");
    let cache = CacheOptions { size_bytes: 8 << 20, ..CacheOptions::default() };
    let options = Options { cache, create: true, vfs: files.clone(), ..Options::default() };
    let page_size = options.page_size;
    let database = Database::open(folder, options)?;
    database.create_database(DATABASE, b"")?;
    let table = database.create_table(definition(data))?;
    insert(&database, &table, data, 1..=ROWS)?;
    drop(table);
    database.close()?;
    let unreadable = |error| Error::io("cannot read a table in memory")(error);
    let mut compressed_sizes = Vec::new();
    for name in files.list(&folder.join("tables")).map_err(unreadable)? {
        let file = files.open(&folder.join("tables").join(name), Create::Never).map_err(unreadable)?;
        let mut page = vec![0; page_size];
        for number in 0..file.len().map_err(unreadable)? / page_size as u64 {
            file.read_at(&mut page, number * page_size as u64).map_err(unreadable)?;
            compressed_sizes.push(lz4_flex::block::compress(&page).len() as f64);
        }
    }
    Ok(page_size as f64 / crate::stats::median(&compressed_sizes).unwrap_or(page_size as f64))
}

/// Chooses how many random characters each row has, so that the pages compress about `wanted` to one.
pub(crate) fn compressible(data: Data, wanted: f64) -> Result<Data> {
    let with = |own_chars| Data { own_chars, ..data };
    // More random characters compress worse.
    let (mut few, mut many) = (1, data.chars());
    let best = compression(&with(few))?;
    if best < wanted {
        return Err(Error::Usage(format!(
            "--compressible {wanted}: rows of this size compress {best:.1} to one at most"
        )));
    }
    while few + 1 < many {
        let middle = few.midpoint(many);
        if compression(&with(middle))? < wanted {
            many = middle;
        } else {
            few = middle;
        }
    }
    Ok(with(few))
}

fn definition(data: &Data) -> TableDef {
    let int = ColumnType::Int { bytes: 4, unsigned: true };
    let collation = Collation::Latin1SwedishCi;
    let column = |name: &str, column_type| Column { name: name.to_string(), column_type, nullable: false };
    TableDef {
        database: DATABASE.to_string(),
        name: TABLE.to_string(),
        columns: vec![
            column("id", int.clone()),
            column("k", int),
            column("c", ColumnType::Char { chars: C_CHARS as u32, collation }),
            column("pad", ColumnType::Varchar { chars: data.pad_chars() as u32, collation }),
        ],
        primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
        ..TableDef::default()
    }
}

fn load(database: &Database, table: &Table, data: &Data, run: &mut Run<'_>) -> Result<()> {
    run.progress.stage(format!("embedded: loading {} rows", data.rows), data.rows.into());
    let mut next = 1;
    while next <= data.rows {
        run.interrupt.check()?;
        run.progress.at(u64::from(next), "");
        let last = data.rows.min(next + ROWS_PER_STATEMENT - 1);
        insert(database, table, data, next..=last)?;
        next = last + 1;
    }
    Ok(())
}

fn insert(database: &Database, table: &Table, data: &Data, ids: RangeInclusive<u32>) -> Result<()> {
    let codec = table.row_codec();
    let mut rows = KeyList::default();
    for id in ids {
        let (c, pad) = data.texts(id);
        let values = [ValueRef::UInt(id.into()), ValueRef::UInt(0), ValueRef::Text(&c), ValueRef::Text(&pad)];
        codec.encode(&values, &mut rows.bytes);
        rows.ends.push(rows.bytes.len() as u32);
    }
    let mut statement = database.begin_write()?;
    statement.insert_many(table, &rows).map_err(|(_, error)| error)?;
    Ok(statement.commit()?)
}

impl Embedded {
    fn limit(&self, limited: bool) {
        let limit = self.setup.operations_per_second.filter(|_| limited);
        let limits = Limits { operations_per_second: limit.map(f64::from), ..Limits::default() };
        self.device.set_limits(limits);
    }
}

impl Swept for Embedded {
    fn facts(&self) -> Vec<(String, String)> {
        let direct =
            if self.folder_is_direct { "past the system's cache" } else { "through the system's cache" };
        vec![
            ("version".to_string(), crate::doctor::machine::version()),
            ("files".to_string(), format!("{direct}, throttled in process, reads and writes in one queue")),
        ]
    }

    fn touch(&mut self, keys: &[u32]) -> Result<u64> {
        self.limit(false);
        let (database, table) = (&self.database, &self.table);
        let share = keys.len().div_ceil(self.setup.clients as usize);
        base::sync::thread::scope(|scope| {
            let handles: Vec<_> = keys
                .chunks(share)
                .map(|keys| {
                    scope.spawn(move || {
                        let mut client = Client::new(database, table);
                        keys.iter().try_fold(0, |sum, &id| Ok(sum + client.read(id)?))
                    })
                })
                .collect();
            handles.into_iter().map(|handle| handle.join().expect("a reader panicked")).sum()
        })
    }

    fn updates(&self) -> u64 {
        // ORDER: read after the threads that count have been joined.
        self.updates.load(Relaxed)
    }

    fn sample(&mut self, asked: Asked<'_>, window: &Window, run: &Run<'_>) -> Result<Sample> {
        self.limit(asked.limited);
        let clients = (0..self.setup.clients)
            .map(|number| {
                let mut client = Client::new(&self.database, &self.table);
                let mut choice = Choice::new(self.setup.data.seed, asked.turn, number, asked.writes);
                let updates = &self.updates;
                move |phases: &Phases| -> Result<Recorder> {
                    workers::repeat(phases, || {
                        let (id, write) = choice.next(asked.keys);
                        if write {
                            client.write(id)?;
                            // ORDER: see `Swept::updates`.
                            updates.fetch_add(1, Relaxed);
                        } else {
                            client.read(id)?;
                        }
                        Ok(1)
                    })
                }
            })
            .collect();
        let observed = Observed { server: Some(Process::Own), client: None, latch_waits: &|| None };
        let before = self.device.usage().reads;
        let started = std::time::Instant::now();
        let sampled = workers::run(clients, window, &observed, run.interrupt);
        let elapsed = started.elapsed().as_secs_f64();
        let reads = self.device.usage().reads - before;
        self.limit(false);
        let mut sample = sampled?;
        // The warm-up is as fast as the window, and is counted with it.
        let lookups = (sample.value * elapsed).max(1.0);
        sample.extra.push((READS.to_string(), reads as f64 / lookups));
        sample.extra.extend(resident_mib(&Process::Own).map(|memory| (MEMORY.to_string(), memory)));
        let rows = self.database.row_tier_status();
        let held = RowsAndColdPages {
            rows: rows.entries as u64,
            row_bytes: rows.bytes as u64,
            cold_page_bytes: self.database.caches().cold_pages().0 as u64,
        };
        sample.extra.extend(held.extras());
        Ok(sample)
    }

    fn stop(&mut self) -> Result<()> {
        Ok(self.database.close()?)
    }
}

struct Client<'a> {
    session: engine::Session,
    table: &'a Table,
    codec: Arc<types::KeyCodec>,
    key: Vec<u8>,
    row: Vec<u8>,
}

impl<'a> Client<'a> {
    fn new(database: &Database, table: &'a Table) -> Client<'a> {
        let codec = table.key_codec(IndexId(0));
        Client { session: database.session(), table, codec, key: Vec::new(), row: Vec::new() }
    }

    fn key_of(&mut self, id: u32) {
        self.key.clear();
        self.codec.encode_prefix(&[ValueRef::UInt(id.into())], &mut self.key);
    }

    /// Gives the row's `k`.
    fn read(&mut self, id: u32) -> Result<u64> {
        self.key_of(id);
        self.row.clear();
        let read = self.session.read()?;
        if !self.table.get(read.reader(), &self.key, &mut self.row)? {
            return Err(wrong(id));
        }
        let view = self.table.row_codec().view(&self.row);
        match (view.get(0), view.get(K_COLUMN)) {
            (ValueRef::UInt(found), ValueRef::UInt(k)) if found == u64::from(id) => Ok(k),
            _ => Err(wrong(id)),
        }
    }

    /// `UPDATE sbtest1 SET k = k + 1 WHERE id = ...`.
    fn write(&mut self, id: u32) -> Result<()> {
        self.key_of(id);
        let codec = self.table.row_codec();
        let mut statement = self.session.write()?;
        let changed = statement.update(self.table, &self.key, &mut |old, new| {
            let view = codec.view(old);
            let ValueRef::UInt(k) = view.get(K_COLUMN) else { return false };
            let values = [view.get(0), ValueRef::UInt((k + 1) & 0xffff_ffff), view.get(2), view.get(3)];
            codec.encode(&values, new);
            true
        })?;
        statement.commit()?;
        if changed { Ok(()) } else { Err(wrong(id)) }
    }
}

fn wrong(id: u32) -> Error {
    Error::WrongAnswer {
        target: "embedded".to_string(),
        why: format!("no row {id}, or another in its place"),
    }
}

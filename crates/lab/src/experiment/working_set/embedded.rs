//! The engine in this process, over direct I/O on a throttled file tree.

use super::data::{C_CHARS, Data, TABLE};
use super::series::{Choice, MEMORY, Opened, Pages, READS, Setup, Swept, Variant, not_compressed, resident};
use crate::driver::Window;
use crate::driver::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::measure::{Phases, Process, Recorder};
use crate::results::Sample;
use crate::workload::DATABASE;
use base::IndexId;
use base::sync::Arc;
use engine::{CacheOptions, Database, FlushLog, FlushMethod, KeyList, LogOptions, Options, Table, TableDef};
use std::path::Path;
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};
use vfs::{Limits, OsVfs, Throttled};

const ROWS_PER_STATEMENT: u32 = 10_000;
const K_COLUMN: usize = 1;

pub struct Embedded {
    database: Arc<Database>,
    table: Arc<Table>,
    device: Throttled,
    setup: Setup,
    folder_is_direct: bool,
}

pub fn open(variant: Variant, setup: &Setup, folder: &Path, run: &mut Run<'_>) -> Result<Opened> {
    let device = Throttled::new(Arc::new(OsVfs), Limits::default());
    let row_bytes = if variant.row_tier { setup.row_bytes } else { 0 };
    let cache = CacheOptions { size_bytes: setup.cache_bytes as usize, ..CacheOptions::default() };
    let options = Options {
        cache,
        log: LogOptions { flush: FlushLog::WriteAtCommit, ..LogOptions::default() },
        flush_method: FlushMethod::ODirect,
        row_tier_bytes: Some(row_bytes as usize),
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
    Ok(Opened::Ready(Box::new(Embedded { database, table, device, setup: *setup, folder_is_direct })))
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
    let codec = table.row_codec();
    let mut rows = KeyList::default();
    let mut next = 1;
    while next <= data.rows {
        run.interrupt.check()?;
        run.progress.at(u64::from(next), "");
        let last = data.rows.min(next + ROWS_PER_STATEMENT - 1);
        rows.clear();
        for id in next..=last {
            let (c, pad) = data.texts(id);
            let values =
                [ValueRef::UInt(id.into()), ValueRef::UInt(0), ValueRef::Text(&c), ValueRef::Text(&pad)];
            codec.encode(&values, &mut rows.bytes);
            rows.ends.push(rows.bytes.len() as u32);
        }
        let mut statement = database.begin_write()?;
        statement.insert_many(table, &rows).map_err(|(_, error)| error)?;
        statement.commit()?;
        next = last + 1;
    }
    Ok(())
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

    fn touch(&mut self, keys: &[u32]) -> Result<()> {
        self.limit(false);
        let (database, table) = (&self.database, &self.table);
        let share = keys.len().div_ceil(self.setup.clients as usize);
        base::sync::thread::scope(|scope| {
            let handles: Vec<_> = keys
                .chunks(share)
                .map(|keys| {
                    scope.spawn(move || {
                        let mut client = Client::new(database, table);
                        keys.iter().try_for_each(|&id| client.read(id))
                    })
                })
                .collect();
            handles.into_iter().try_for_each(|handle| handle.join().expect("a reader panicked"))
        })
    }

    fn sample(&mut self, keys: &[u32], writes: bool, window: &Window, run: &Run<'_>) -> Result<Sample> {
        self.limit(true);
        let clients = (0..self.setup.clients)
            .map(|number| {
                let mut client = Client::new(&self.database, &self.table);
                let mut choice = Choice::new(self.setup.data.seed, number, writes);
                move |phases: &Phases| -> Result<Recorder> {
                    workers::repeat(phases, || {
                        let (id, write) = choice.next(keys);
                        if write {
                            client.write(id)?
                        } else {
                            client.read(id)?
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
        // The warm-up asks as fast as the window does, and is counted with it.
        let lookups = (sample.value * elapsed).max(1.0);
        sample.extra.push((READS.to_string(), reads as f64 / lookups));
        sample.extra.extend(resident("self").map(|memory| (MEMORY.to_string(), memory)));
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

    fn read(&mut self, id: u32) -> Result<()> {
        self.key_of(id);
        self.row.clear();
        let read = self.session.read();
        let found = self.table.get(read.reader(), &self.key, &mut self.row)?;
        let right = found
            && matches!(self.table.row_codec().view(&self.row).get(0), ValueRef::UInt(found) if found == u64::from(id));
        if right { Ok(()) } else { Err(wrong(id)) }
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

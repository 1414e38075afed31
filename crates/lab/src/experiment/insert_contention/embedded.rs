//! The engine in this process.

use super::tables::{
    Arrangement, CALLS_PER_USER, MAIL_CHARS, NAME_CHARS, ReadersCase, Rows, cache, calls, table, user_of,
    users,
};
use super::{Contended, Setup};
use crate::driver::Window;
use crate::driver::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::measure::{Phases, Process, Recorder};
use crate::results::Sample;
use crate::workload::DATABASE;
use base::IndexId;
use base::random::Random;
use base::sync::Arc;
use engine::{
    CacheChange, CacheOptions, Database, Direction, FlushLog, IndexDef, KeyList, KeyRange, LogOptions,
    Options, PackKeys, Table, TableDef,
};
use std::ops::Bound;
use std::path::Path;
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};

const ROWS_PER_STATEMENT: u32 = 10_000;
const BY_USER: IndexId = IndexId(1);

pub(crate) struct Embedded {
    database: Arc<Database>,
    tables: Vec<Arc<Table>>,
    calls: Vec<Arc<Table>>,
    setup: Setup,
}

pub(crate) fn open(setup: &Setup, folder: &Path) -> Result<Box<dyn Contended>> {
    let defaults = CacheOptions::default();
    let cache = CacheOptions {
        size_bytes: setup.cache_bytes as usize,
        segments: setup.segments.unwrap_or(defaults.segments),
        hit_path: setup.hit_path.unwrap_or(defaults.hit_path),
        ..defaults
    };
    let log = LogOptions { flush: FlushLog::WriteAtCommit, ..LogOptions::default() };
    let database = Database::open(folder, Options { cache, log, create: true, ..Options::default() })?;
    database.create_database(DATABASE, b"")?;
    Ok(Box::new(Embedded { database, tables: Vec::new(), calls: Vec::new(), setup: *setup }))
}

fn column(name: &str, column_type: ColumnType) -> Column {
    Column { name: name.to_string(), column_type, nullable: false }
}

fn part(column: usize) -> KeyPart {
    KeyPart { column, prefix_chars: None, descending: false }
}

fn int() -> ColumnType {
    ColumnType::Int { bytes: 4, unsigned: true }
}

fn index(name: &str, columns: &[usize]) -> IndexDef {
    IndexDef {
        name: name.to_string(),
        unique: false,
        parts: columns.iter().map(|&column| part(column)).collect(),
    }
}

fn definition(name: String, columns: Vec<Column>, indexes: Vec<IndexDef>) -> TableDef {
    TableDef {
        database: DATABASE.to_string(),
        name,
        columns,
        primary: Some(vec![part(0)]),
        indexes,
        ..TableDef::default()
    }
}

impl Embedded {
    /// Latch waits of each segment of all caches that the tables are in.
    fn waits_by_segment(&self) -> Vec<u64> {
        let caches = self.database.caches().list();
        let segments =
            caches.iter().filter(|cache| cache.is_enabled()).flat_map(|cache| cache.segment_status());
        segments.map(|segment| segment.counters.latch_waits).collect()
    }
}

impl Contended for Embedded {
    fn facts(&self) -> Vec<(String, String)> {
        vec![("version".to_string(), crate::doctor::machine::version())]
    }

    fn set_up(&mut self, arrangement: Arrangement, writers: u32) -> Result<Option<String>> {
        for number in 0..self.tables.len() as u32 {
            self.database.drop_table(DATABASE, &table(number))?;
        }
        self.tables.clear();
        let collation = Collation::Utf8mb4GeneralCi;
        for number in 0..writers {
            let columns = vec![
                column("id", int()),
                column("name", ColumnType::Char { chars: NAME_CHARS as u32, collation }),
                column("mail", ColumnType::Varchar { chars: MAIL_CHARS as u32, collation }),
            ];
            let pack_keys = if arrangement.unpacked { PackKeys::Never } else { PackKeys::Default };
            let indexes = vec![index("name", &[1]), index("mail", &[2])];
            let created = self
                .database
                .create_table(TableDef { pack_keys, ..definition(table(number), columns, indexes) })?;
            if arrangement.cache_per_table {
                let size = self.setup.cache_bytes / u64::from(writers);
                let change = CacheChange { size_bytes: Some(size as usize), ..CacheChange::default() };
                self.database.set_cache(&cache(number), change)?;
                self.database.assign(&created, &cache(number))?;
            }
            self.tables.push(created);
        }
        Ok(None)
    }

    fn insert(&mut self, writers: u32, window: &Window, run: &Run<'_>) -> Result<Sample> {
        let rows_each = self.setup.rows_per_statement;
        let before = self.waits_by_segment();
        let clients = (0..writers)
            .map(|number| {
                let table = self.tables[number as usize].clone();
                let mut session = self.database.session();
                let mut source = Rows::new(self.setup.seed, number);
                // Later samples go on where the earlier ones ended.
                source.next_id = table.row_count() as u32 + 1;
                let mut rows = KeyList::default();
                let (mut name, mut mail) = (Vec::new(), Vec::new());
                move |phases: &Phases| -> Result<Recorder> {
                    workers::repeat(phases, || {
                        rows.clear();
                        for _ in 0..rows_each {
                            let id = source.next(&mut name, &mut mail);
                            let values =
                                [ValueRef::UInt(id.into()), ValueRef::Text(&name), ValueRef::Text(&mail)];
                            table.row_codec().encode(&values, &mut rows.bytes);
                            rows.ends.push(rows.bytes.len() as u32);
                        }
                        let mut statement = session.write()?;
                        statement.insert_many(&table, &rows).map_err(|(_, error)| error)?;
                        statement.commit()?;
                        Ok(rows_each.into())
                    })
                }
            })
            .collect();
        let latch_waits = || Some(self.waits_by_segment().iter().sum());
        let observed = Observed { server: Some(Process::Own), client: None, latch_waits: &latch_waits };
        let mut sample = workers::run(clients, window, &observed, run.interrupt)?;
        let after = self.waits_by_segment();
        let busiest = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before)).max();
        let seconds = (window.warmup + window.measure).as_secs_f64();
        sample.extra.extend(busiest.map(|waits| (super::BUSIEST.to_string(), waits as f64 / seconds)));
        Ok(sample)
    }

    fn bytes_a_row(&mut self) -> Result<Option<f64>> {
        let mut pages = 0;
        for table in &self.tables {
            let found = self.database.preload(table, false)?;
            pages += found.inner + found.leaves;
        }
        let bytes = pages * Options::default().page_size as u64;
        let rows: u64 = self.tables.iter().map(|table| table.row_count()).sum();
        Ok((rows > 0).then(|| bytes as f64 / rows as f64))
    }

    fn load_calls(&mut self, rows: u32, run: &mut Run<'_>) -> Result<()> {
        for number in 0..2 {
            run.progress.stage(format!("embedded: loading {rows} calls"), rows.into());
            let columns = vec![column("id", int()), column("user_id", int()), column("call_id", int())];
            let indexes = vec![index("user_call", &[1, 2])];
            let table = self.database.create_table(definition(calls(number), columns, indexes))?;
            let mut list = KeyList::default();
            let mut next = 1;
            while next <= rows {
                run.interrupt.check()?;
                let last = rows.min(next + ROWS_PER_STATEMENT - 1);
                list.clear();
                for id in next..=last {
                    let values = [id, user_of(id, users(rows)), id].map(|value| ValueRef::UInt(value.into()));
                    table.row_codec().encode(&values, &mut list.bytes);
                    list.ends.push(list.bytes.len() as u32);
                }
                let mut statement = self.database.begin_write()?;
                statement.insert_many(&table, &list).map_err(|(_, error)| error)?;
                statement.commit()?;
                next = last + 1;
            }
            self.calls.push(table);
        }
        Ok(())
    }

    fn read(&mut self, case: ReadersCase, rows: u32, window: &Window, run: &Run<'_>) -> Result<Sample> {
        let clients = (0..case.threads)
            .map(|thread| {
                let tables = &self.calls;
                let mut session = self.database.session();
                let mut random = Random::new(self.setup.seed, thread.into());
                let mut query = 0;
                move |phases: &Phases| -> Result<Recorder> {
                    workers::repeat(phases, || {
                        query += 1;
                        let table = &tables[case.table_of(thread, query) as usize];
                        let user = random.below(users(rows));
                        let count = count_calls(&mut session, table, user)?;
                        if count.abs_diff(CALLS_PER_USER) <= 1 || rows < CALLS_PER_USER {
                            return Ok(count.into());
                        }
                        let why = format!("{count} calls of a user who made about {CALLS_PER_USER}");
                        Err(Error::WrongAnswer { target: "embedded".to_string(), why })
                    })
                }
            })
            .collect();
        let latch_waits = || Some(self.waits_by_segment().iter().sum());
        let observed = Observed { server: Some(Process::Own), client: None, latch_waits: &latch_waits };
        workers::run(clients, window, &observed, run.interrupt)
    }

    fn stop(&mut self) -> Result<()> {
        self.tables.clear();
        self.calls.clear();
        Ok(self.database.close()?)
    }
}

fn count_calls(session: &mut engine::Session, table: &Table, user: u32) -> Result<u32> {
    let bound = |user: u32| {
        let mut key = Vec::new();
        table.key_codec(BY_USER).encode_prefix(&[ValueRef::UInt(user.into())], &mut key);
        key
    };
    let range = KeyRange { lower: Bound::Included(bound(user)), upper: Bound::Excluded(bound(user + 1)) };
    let read = session.read()?;
    let mut scan = table.scan(read.reader(), BY_USER, range, Direction::Forward);
    let mut count = 0;
    while scan.next_key()?.is_some() {
        count += 1;
    }
    Ok(count)
}

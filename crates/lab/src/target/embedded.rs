//! The engine in this process: no sockets, no SQL, nothing but tables and their cache.

use super::{Context, Segments, Series, SeriesPlan, Setting, Target};
use crate::driver::Load;
use crate::driver::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::measure::{Phases, Process, Recorder};
use crate::results::Sample;
use crate::workload::{DATABASE, Row, Sbtest, Script, Statement, TABLE, Workload};
use base::IndexId;
use base::sync::Arc;
use engine::{
    Batch, CacheChange, CacheOptions, Database, Direction, IndexDef, KeyList, KeyRange, Options, Reader,
    Session, Table, TableDef,
};
use std::hint::black_box;
use std::ops::Bound;
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};

/// Rows of a statement of the bulk load.
const ROWS_PER_STATEMENT: u32 = 10_000;
/// Random queries whose answers are compared with the data's definition before anything is measured.
const VERIFIED_POINTS: usize = 200;
pub(crate) const PRIMARY: IndexId = IndexId(0);
const BY_K: IndexId = IndexId(1);
const K_COLUMN: usize = 1;

#[derive(Debug)]
pub(crate) struct Embedded {
    cache_bytes: u64,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    database: Arc<Database>,
    table: Arc<Table>,
}

impl Embedded {
    pub(crate) fn new(cache_bytes: u64) -> Embedded {
        Embedded { cache_bytes, open: None }
    }

    fn options(&self) -> Options {
        let cache = CacheOptions { size_bytes: self.cache_bytes as usize, ..CacheOptions::default() };
        Options { cache, create: true, ..Options::default() }
    }

    fn open(&self) -> Result<&Open> {
        self.open.as_ref().ok_or_else(|| wrong("not started"))
    }
}

/// The engine's choice for this machine.
fn automatic_segments() -> u32 {
    CacheOptions::default().segments
}

impl Target for Embedded {
    fn name(&self) -> &str {
        "embedded"
    }

    fn series(&self, asked: &[Setting]) -> SeriesPlan {
        super::all_settings(asked)
    }

    fn start(&mut self, table: &Sbtest, context: &mut Context<'_>) -> Result<()> {
        let database = Database::open(context.folder, self.options())?;
        let table = make_sbtest(&database, table, context)?;
        self.open = Some(Open { database, table });
        Ok(())
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![
            ("version".to_string(), crate::doctor::machine::version()),
            ("page bytes".to_string(), Options::default().page_size.to_string()),
            ("cache bytes".to_string(), self.cache_bytes.to_string()),
            ("automatic segments".to_string(), automatic_segments().to_string()),
        ]
    }

    fn apply(&mut self, series: &Series, context: &mut Context<'_>) -> Result<()> {
        let open = self.open()?;
        if let Some(setting) = series.setting {
            let segments = match setting.segments {
                Segments::Count(count) => count,
                Segments::Auto => automatic_segments(),
            };
            let hit_path = Some(setting.hit_path);
            let change = CacheChange { segments: Some(segments), hit_path, ..CacheChange::default() };
            let failed = |error: &dyn std::fmt::Display| wrong(&format!("the cache cannot be set: {error}"));
            open.database.set_cache(engine::DEFAULT_CACHE, change).map_err(|error| failed(&error))?;
        }
        // Pages stay in the cache through a change of settings. This reads again those that were evicted.
        warm(&open.table, context)
    }

    fn sample(&mut self, load: &Load, context: &mut Context<'_>) -> Result<Sample> {
        let open = self.open()?;
        let clients = (0..load.clients)
            .map(|client| {
                let script = load.workload.script(client, load.clients, load.seed);
                let mut client =
                    Client::new(&open.database, open.table.clone(), load.workload.statement, script);
                move |phases: &Phases| -> Result<Recorder> { workers::repeat(phases, || client.query()) }
            })
            .collect();
        let latch_waits = || Some(open.database.caches().default_cache().status().counters.latch_waits);
        let observed = Observed { server: Some(Process::Own), client: None, latch_waits: &latch_waits };
        workers::run(clients, &load.window(), &observed, context.interrupt)
    }

    fn stop(&mut self) -> Result<()> {
        match self.open.take() {
            Some(open) => Ok(open.database.close()?),
            None => Ok(()),
        }
    }
}

/// Makes sbtest in an empty database, loads it, and makes sure that its rows are found.
pub(crate) fn make_sbtest(
    database: &Arc<Database>,
    source: &Sbtest,
    context: &mut Context<'_>,
) -> Result<Arc<Table>> {
    database.create_database(DATABASE, b"")?;
    let table = database.create_table(definition())?;
    load(database, &table, source, context)?;
    context.progress.stage("embedded: building index k", 0);
    database.create_index(&table, by_k())?;
    verify(database, &table, source)?;
    Ok(table)
}

fn definition() -> TableDef {
    let int = ColumnType::Int { bytes: 4, unsigned: true };
    let char = |chars| ColumnType::Char { chars, collation: Collation::Utf8mb4GeneralCi };
    let column = |name: &str, column_type| Column { name: name.to_string(), column_type, nullable: false };
    TableDef {
        database: DATABASE.to_string(),
        name: TABLE.to_string(),
        columns: vec![
            column("id", int.clone()),
            column("k", int),
            column("c", char(120)),
            column("pad", char(60)),
        ],
        primary: Some(vec![part(0)]),
        indexes: Vec::new(),
        auto_increment: Some(0),
        sql_metadata: Vec::new(),
        ..TableDef::default()
    }
}

fn by_k() -> IndexDef {
    IndexDef { name: "k".to_string(), unique: false, parts: vec![part(K_COLUMN)] }
}

fn part(column: usize) -> KeyPart {
    KeyPart { column, prefix_chars: None, descending: false }
}

fn load(database: &Database, table: &Table, source: &Sbtest, context: &mut Context<'_>) -> Result<()> {
    context.progress.stage(format!("embedded: loading {} rows", source.rows), source.rows.into());
    let codec = table.row_codec();
    let mut rows = KeyList::default();
    let mut next = 1;
    while next <= source.rows {
        context.interrupt.check()?;
        context.progress.at(u64::from(next), "");
        let last = source.rows.min(next + ROWS_PER_STATEMENT - 1);
        rows.clear();
        for id in next..=last {
            let row = source.row(id);
            codec.encode(&sbtest_values(&row), &mut rows.bytes);
            rows.ends.push(rows.bytes.len() as u32);
        }
        let mut statement = database.begin_write()?;
        statement.insert_many(table, &rows).map_err(|(_, error)| error)?;
        statement.commit()?;
        next = last + 1;
    }
    Ok(())
}

/// A row of sbtest as the engine takes it.
pub(crate) fn sbtest_values(row: &Row) -> [ValueRef<'_>; 4] {
    [
        ValueRef::UInt(row.id.into()),
        ValueRef::UInt(row.k.into()),
        ValueRef::Text(&row.c),
        ValueRef::Text(&row.pad),
    ]
}

/// Looks up random points and compares the rows with those that the data's definition gives.
fn verify(database: &Database, table: &Arc<Table>, source: &Sbtest) -> Result<()> {
    let points = source.verification_points(VERIFIED_POINTS);
    let expected = source.rows_with(&points);
    let mut images: Vec<Vec<u8>> = Vec::new();
    let statement = Statement::PointsByK { points: points.len() as u32 };
    let script = Workload { table: *source, statement }.script(0, 1, 0);
    let mut client = Client::new(database, table.clone(), statement, script);
    client.parameters.copy_from_slice(&points);
    client.encode_keys();
    let read = client.session.read()?;
    table.multi_get(read.reader(), BY_K, &client.keys, &mut client.batch, &mut |_, _, image| {
        images.push(image.to_vec());
        true
    })?;
    drop(read);
    let codec = table.row_codec();
    let mut wanted: Vec<Vec<u8>> = expected
        .iter()
        .map(|row| {
            let mut image = Vec::new();
            codec.encode(&sbtest_values(row), &mut image);
            image
        })
        .collect();
    images.sort();
    wanted.sort();
    if images != wanted {
        let why = format!(
            "{} rows for {} points, or others than the {} loaded",
            images.len(),
            points.len(),
            wanted.len()
        );
        return Err(wrong(&why));
    }
    Ok(())
}

/// Reads every page once.
fn warm(table: &Table, context: &mut Context<'_>) -> Result<()> {
    for index in [PRIMARY, BY_K] {
        let everything = KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded };
        let mut scan = table.scan(Reader::newest(), index, everything, Direction::Forward);
        let mut rows = 0u64;
        while scan.next_key()?.is_some() {
            rows += 1;
            if rows.is_multiple_of(100_000) {
                context.interrupt.check()?;
            }
        }
    }
    Ok(())
}

/// One client's state.
struct Client {
    session: Session,
    table: Arc<Table>,
    key_codec: Arc<types::KeyCodec>,
    script: Script,
    parameters: Vec<u32>,
    keys: KeyList,
    batch: Batch,
    row: Vec<u8>,
}

impl Client {
    fn new(database: &Database, table: Arc<Table>, statement: Statement, script: Script) -> Client {
        let key_codec = table.key_codec(BY_K);
        Client {
            session: database.session(),
            key_codec,
            script,
            parameters: vec![0; statement.parameters()],
            keys: KeyList::default(),
            batch: Batch::default(),
            row: Vec::new(),
            table,
        }
    }

    /// Runs one query of the workload and returns the number of its rows. The only shared state that it uses
    /// is the table.
    fn query(&mut self) -> Result<u64> {
        self.script.next(&mut self.parameters);
        self.encode_keys();
        let Client { session, table, script, keys, batch, row, .. } = self;
        let read = session.read()?;
        let codec = table.row_codec();
        let mut rows = 0u64;
        let mut astray = false;
        table.multi_get(read.reader(), BY_K, keys, batch, &mut |_, _, image| {
            // The row is copied out, as a server does before it sends the row.
            row.clear();
            row.extend_from_slice(image);
            astray |= !matches!(codec.view(row).get(K_COLUMN), ValueRef::UInt(k) if script.expects(k as u32));
            rows += 1;
            true
        })?;
        black_box(row);
        if astray { Err(wrong("a row that was not asked for")) } else { Ok(rows) }
    }

    /// The keys of the parameters, sorted, each distinct one once.
    fn encode_keys(&mut self) {
        self.parameters.sort_unstable();
        self.keys.clear();
        let mut last = None;
        for &k in &self.parameters {
            if last != Some(k) {
                self.key_codec.encode_prefix(&[ValueRef::UInt(k.into())], &mut self.keys.bytes);
                self.keys.ends.push(self.keys.bytes.len() as u32);
                last = Some(k);
            }
        }
    }
}

fn wrong(why: &str) -> Error {
    Error::WrongAnswer { target: "embedded".to_string(), why: why.to_string() }
}

//! `readwrite`, `readonly`, `points` and `inserts` on the engine in this process.

use super::Bench;
use super::inserts::{Rows, table as table_name};
use crate::driver::Window;
use crate::driver::oltp::{FAILED, Oltp};
use crate::driver::together::{self, Lines};
use crate::driver::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::experiment::instance::Variant;
use crate::interrupt::Interrupt;
use crate::measure::{MEMORY, Phases, Process, Recorder, resident_mib};
use crate::results::Sample;
use crate::target::cores::Bound;
use crate::target::{Context, PRIMARY, TargetSpec, make_sbtest, sbtest_values};
use crate::workload::oltp::{Parameter, Step, Transactions};
use crate::workload::{DATABASE, Row};
use base::IndexId;
use base::sync::Arc;
use base::sync::atomic::{AtomicU64, Ordering};
use engine::{
    CacheOptions, Database, Direction, FlushLog, IndexDef, Isolation, KeyList, KeyRange, LogOptions, Options,
    Session, Table, TableDef,
};
use std::hint::black_box;
use std::ops::Bound as Limit;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use types::{Column, ColumnType, KeyPart, ValueRef};

/// Gives this process the allocator and the heap of the embedded target's preset, if there is one. This may
/// start the lab again in the same process: it must be called before there is a second thread or anything to
/// clean up. Returns the allocator's name.
pub(crate) fn settle_memory(targets: &[TargetSpec]) -> Result<String> {
    let preset = targets.iter().find_map(|spec| match spec {
        TargetSpec::Embedded(Some(preset)) => Some(preset),
        _ => None,
    });
    let (malloc_lib, use_sys_malloc) = match preset.map(|preset| preset.settings()) {
        Some(settings) => (settings.malloc_lib, settings.use_sys_malloc),
        None => ("system", true),
    };
    heap::settle(malloc_lib, use_sys_malloc).map_err(|why| {
        let target = preset.map_or(String::new(), |preset| format!("embedded:{}: ", preset.name()));
        Error::Usage(format!("{target}{why}"))
    })
}

/// The open engine, with its preset's latches and limit of statements. Heap and allocator belong to the
/// process: see [`settle_memory`].
pub(crate) struct InProcess {
    name: String,
    database: Arc<Database>,
    folder: PathBuf,
    variant: Variant,
    facts: Vec<(String, String)>,
}

impl InProcess {
    pub(crate) fn open(
        spec: &TargetSpec,
        variant: Variant,
        cache_bytes: u64,
        malloc: &str,
        folder: PathBuf,
    ) -> Result<InProcess> {
        let TargetSpec::Embedded(preset) = spec else {
            return Err(Error::Usage(format!("{} is not the engine in this process", spec.name())));
        };
        // Background threads of the engine keep to the same processors as the sessions.
        let _bound = Bound::to_first(variant.cores)?;
        let settings = preset.map(|preset| preset.settings());
        let mut cache = CacheOptions { size_bytes: cache_bytes as usize, ..CacheOptions::default() };
        if let Some(settings) = settings {
            cache.hit_path = settings.hit_path;
        }
        let options = Options {
            cache,
            log: LogOptions { flush: FlushLog::WriteAtCommit, ..LogOptions::default() },
            latches: settings.map(|settings| settings.latches),
            thread_concurrency: settings.map_or(0, |settings| settings.thread_concurrency),
            create: true,
            ..Options::default()
        };
        let shared_heap = settings.is_some_and(|settings| !settings.use_sys_malloc);
        let facts = [
            ("version", crate::doctor::machine::version()),
            ("latches", options.latches.map_or("direct".to_string(), |latches| format!("{latches:?}"))),
            ("hit path", format!("{:?}", options.cache.hit_path)),
            ("thread_concurrency", options.thread_concurrency.to_string()),
            ("heap", if shared_heap { "shared, behind a mutex" } else { "none" }.to_string()),
            ("malloc", malloc.to_string()),
        ];
        let facts = facts.map(|(name, value)| (name.to_string(), value)).to_vec();
        let database = Database::open(&folder, options)?;
        Ok(InProcess { name: spec.name(), database, folder, variant, facts })
    }

    /// Observes a sample of this process, whose workers are bound as they start.
    fn observe(&self, measure: impl FnOnce(&Observed<'_>) -> Result<Sample>) -> Result<Sample> {
        let latch_waits = || Some(self.database.caches().default_cache().status().counters.latch_waits);
        let observed = Observed { server: Some(Process::Own), client: None, latch_waits: &latch_waits };
        let _bound = Bound::to_first(self.variant.cores)?;
        let mut sample = measure(&observed)?;
        sample.extra.extend(resident_mib(&Process::Own).map(|memory| (MEMORY.to_string(), memory)));
        Ok(sample)
    }

    fn wrong_answer(&self, why: String) -> Error {
        Error::WrongAnswer { target: self.name.clone(), why }
    }
}

pub(crate) struct EmbeddedTransactions {
    pub engine: InProcess,
    pub oltp: Oltp,
    pub warmup: Duration,
    pub time: Duration,
    pub seed: u64,
    pub table: Option<Arc<Table>>,
}

impl Bench for EmbeddedTransactions {
    fn facts(&self) -> Vec<(String, String)> {
        self.engine.facts.clone()
    }

    fn load(&mut self, run: &mut Run<'_>) -> Result<()> {
        let folder = &self.engine.folder;
        let mut context = Context { interrupt: run.interrupt, progress: run.progress, folder };
        self.table = Some(make_sbtest(&self.engine.database, &self.oltp.table, &mut context)?);
        Ok(())
    }

    fn sample(
        &mut self,
        sessions: u32,
        round: u32,
        interrupt: &Interrupt,
        _progress: &mut dyn FnMut(f64, &str),
    ) -> Result<Sample> {
        let table = self.table.as_ref().ok_or_else(|| self.engine.wrong_answer("not loaded".to_string()))?;
        let window = Window { warmup: self.warmup, measure: self.time, round };
        let seed = self.seed.wrapping_add(round.into());
        let given_up = AtomicU64::new(0);
        let started = Instant::now();
        let workers = (0..sessions)
            .map(|number| {
                let oltp = &self.oltp;
                let mut client = Client {
                    session: self.engine.database.session(),
                    table: table.clone(),
                    transactions: Transactions::new(oltp.mix, &oltp.table, oltp.distribution, seed, number),
                    parameters: Vec::new(),
                    row: Vec::new(),
                };
                let given_up = &given_up;
                move |phases: &Phases| workers::repeat(phases, || client.transaction(given_up))
            })
            .collect();
        let mut sample =
            self.engine.observe(|observed| workers::run(workers, &window, observed, interrupt))?;
        // ORDER: the threads that count have been joined.
        let given_up = given_up.load(Ordering::Relaxed);
        if given_up > 0 {
            sample.extra.push((FAILED.to_string(), given_up as f64 / started.elapsed().as_secs_f64()));
        }
        let mut session = self.engine.database.session();
        let found = count(&mut session, table, PRIMARY)?;
        if found != u64::from(self.oltp.table.rows) {
            let why = format!("{found} rows where there are {}", self.oltp.table.rows);
            return Err(self.engine.wrong_answer(why));
        }
        Ok(sample)
    }

    fn stop(&mut self) -> Result<()> {
        self.table = None;
        Ok(self.engine.database.close()?)
    }
}

fn count(session: &mut Session, table: &Table, index: IndexId) -> Result<u64> {
    let read = session.read()?;
    let everything = KeyRange { lower: Limit::Unbounded, upper: Limit::Unbounded };
    let mut scan = table.scan(read.reader(), index, everything, Direction::Forward);
    let mut rows = 0;
    while scan.next_key()?.is_some() {
        rows += 1;
    }
    Ok(rows)
}

/// One session does what a server does with the statements, without the server.
struct Client {
    session: Session,
    table: Arc<Table>,
    transactions: Transactions,
    parameters: Vec<Parameter>,
    row: Vec<u8>,
}

const K: usize = 1;
const C: usize = 2;
const PAD: usize = 3;

impl Client {
    /// Runs a transaction to its end, from the start again if need be; gives the rows that it read.
    fn transaction(&mut self, given_up: &AtomicU64) -> Result<u64> {
        loop {
            match self.attempt() {
                Err(Error::Engine(engine::Error::Deadlock | engine::Error::LockWaitTimeout)) => {
                    self.session.roll_back()?;
                    self.transactions.restart();
                    // ORDER: a count, read when all have ended.
                    given_up.fetch_add(1, Ordering::Relaxed);
                }
                other => return other,
            }
        }
    }

    fn attempt(&mut self) -> Result<u64> {
        let mut rows = 0;
        loop {
            let step = self.transactions.next(&mut self.parameters);
            let found = self.step(step)?;
            match self.transactions.expected_rows(step, &self.parameters) {
                Some(expected) if expected != found => {
                    let why = format!("{found} rows instead of {expected}: {step:?}");
                    return Err(Error::WrongAnswer { target: "embedded".to_string(), why });
                }
                _ => rows += found,
            }
            if self.transactions.is_between() {
                return Ok(rows);
            }
        }
    }

    fn step(&mut self, step: Step) -> Result<u64> {
        let number = |position: usize| match self.parameters.get(position) {
            Some(Parameter::Number(number)) => *number,
            _ => 0,
        };
        let (first, second) = (number(0), number(1));
        match step {
            Step::Begin => self.session.begin(Isolation::RepeatableRead)?,
            Step::Commit => self.session.commit()?,
            Step::Point => {
                let key = self.key(first);
                self.row.clear();
                let read = self.session.read()?;
                return Ok(u64::from(self.table.get(read.reader(), &key, &mut self.row)?));
            }
            Step::Range | Step::Sum | Step::Order | Step::Distinct => return self.range(step, first, second),
            Step::IndexUpdate => self.update(first, None)?,
            Step::OtherUpdate => {
                if let Some(Parameter::C(c)) = self.parameters.first().copied() {
                    self.update(second, Some(&c))?;
                }
            }
            Step::Delete => {
                let key = self.key(first);
                let mut write = self.session.write()?;
                write.delete(&self.table, &key, &mut |_| true)?;
                write.commit()?;
            }
            Step::Insert => {
                if let [_, _, Parameter::C(c), Parameter::Pad(pad)] = self.parameters[..] {
                    let row = Row { id: first, k: second, c, pad };
                    self.row.clear();
                    self.table.row_codec().encode(&sbtest_values(&row), &mut self.row);
                    let mut write = self.session.write()?;
                    write.insert(&self.table, &self.row)?;
                    write.commit()?;
                }
            }
        }
        Ok(0)
    }

    fn key(&self, id: u32) -> Vec<u8> {
        let mut key = Vec::new();
        self.table.key_codec(PRIMARY).encode_prefix(&[ValueRef::UInt(id.into())], &mut key);
        key
    }

    /// Gives a row another `c`, or adds one to its `k`.
    fn update(&mut self, id: u32, c: Option<&[u8]>) -> Result<()> {
        let key = self.key(id);
        let table = &self.table;
        let mut write = self.session.write()?;
        write.update(table, &key, &mut |old, new| {
            let row = table.row_codec().view(old);
            let mut values = [row.get(0), row.get(K), row.get(C), row.get(PAD)];
            match (c, values[K]) {
                (Some(c), _) => values[C] = ValueRef::Text(c),
                (None, ValueRef::UInt(k)) => values[K] = ValueRef::UInt(k + 1),
                (None, _) => {}
            }
            table.row_codec().encode(&values, new);
            true
        })?;
        Ok(write.commit()?)
    }

    /// Reads the rows of a range; gives how many rows the answer has.
    fn range(&mut self, step: Step, first: u32, last: u32) -> Result<u64> {
        let (lower, upper) = (Limit::Included(self.key(first)), Limit::Excluded(self.key(last + 1)));
        let read = self.session.read()?;
        let mut scan = self.table.scan(read.reader(), PRIMARY, KeyRange { lower, upper }, Direction::Forward);
        let codec = self.table.row_codec();
        let mut sum = 0;
        let mut texts: Vec<Vec<u8>> = Vec::new();
        while let Some(image) = scan.next_row()? {
            let row = codec.view(image);
            match (step, row.get(K), row.get(C)) {
                (Step::Sum, ValueRef::UInt(k), _) => sum += k,
                (_, _, ValueRef::Text(c)) => texts.push(c.to_vec()),
                _ => {}
            }
        }
        match step {
            Step::Sum => {
                black_box(sum);
                return Ok(1);
            }
            Step::Order => texts.sort_unstable(),
            Step::Distinct => {
                texts.sort_unstable();
                texts.dedup();
            }
            _ => {}
        }
        Ok(black_box(texts).len() as u64)
    }
}

pub(crate) struct EmbeddedInserts {
    pub engine: InProcess,
    pub rows: u32,
    pub seed: u64,
}

fn definition(name: String) -> TableDef {
    let column = |name: &str, nullable| Column {
        name: name.to_string(),
        column_type: ColumnType::Int { bytes: 4, unsigned: false },
        nullable,
    };
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    TableDef {
        database: DATABASE.to_string(),
        name,
        columns: vec![column("i", false), column("j", true)],
        primary: Some(vec![part(0)]),
        indexes: vec![IndexDef { name: "jx".to_string(), unique: false, parts: vec![part(1)] }],
        ..TableDef::default()
    }
}

impl Bench for EmbeddedInserts {
    fn facts(&self) -> Vec<(String, String)> {
        self.engine.facts.clone()
    }

    fn load(&mut self, _run: &mut Run<'_>) -> Result<()> {
        Ok(self.engine.database.create_database(DATABASE, b"")?)
    }

    fn sample(
        &mut self,
        sessions: u32,
        round: u32,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64, &str),
    ) -> Result<Sample> {
        let database = &self.engine.database;
        let seed = self.seed.wrapping_add(round.into());
        let inserted = AtomicU64::new(0);
        let mut tables = Vec::new();
        for number in 0..sessions {
            tables.push(database.create_table(definition(table_name(number)))?);
        }
        let workers = (0..sessions).zip(&tables).map(|(number, table)| {
            let mut session = database.session();
            let mut rows = Rows::new(seed, number, self.rows);
            let inserted = &inserted;
            move || {
                let mut recorder = Recorder::default();
                let mut images = KeyList::default();
                loop {
                    interrupt.check()?;
                    let statement = rows.statement();
                    if statement.is_empty() {
                        return Ok((recorder, ()));
                    }
                    let started = Instant::now();
                    images.clear();
                    for (i, j) in &statement {
                        let values = [ValueRef::Int((*i).into()), ValueRef::Int((*j).into())];
                        table.row_codec().encode(&values, &mut images.bytes);
                        images.ends.push(images.bytes.len() as u32);
                    }
                    let mut write = session.write()?;
                    write.insert_many(table, &images).map_err(|(_, error)| error)?;
                    write.commit()?;
                    recorder.query(started.elapsed(), statement.len() as u64);
                    // ORDER: shown to a person, nothing more.
                    inserted.fetch_add(statement.len() as u64, Ordering::Relaxed);
                }
            }
        });
        let workers: Vec<_> = workers.collect();
        let total = u64::from(self.rows) * u64::from(sessions);
        let mut watch = || {
            // ORDER: see above.
            progress(inserted.load(Ordering::Relaxed) as f64 / total as f64, "");
        };
        let sample = self.engine.observe(|observed| {
            together::run(workers, &Lines::default(), round, observed, interrupt, &mut watch)
        })?;
        for (number, table) in (0..sessions).zip(&tables) {
            let found = count(&mut database.session(), table, IndexId(1))?;
            if found != u64::from(self.rows) {
                let why = format!("{found} entries in an index of {} rows", self.rows);
                return Err(self.engine.wrong_answer(why));
            }
            database.drop_table(DATABASE, &table_name(number))?;
        }
        Ok(sample)
    }

    fn stop(&mut self) -> Result<()> {
        Ok(self.engine.database.close()?)
    }
}

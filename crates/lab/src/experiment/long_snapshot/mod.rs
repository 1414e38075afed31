//! `long-snapshot`: a transaction that goes on reading the state of its start, while other sessions change
//! the rows without a pause.

mod costs;
mod options;
mod reader;
mod summary;
mod updates;

use super::Experiment;
use super::frame::{self, Run};
use super::instance::{Instance, Settings, Variant};
use super::runner::{self, Grid, Outcome, Schedule, Turn};
use crate::doctor::{Plan, machine};
use crate::driver::workers::{self, Observed, Reading};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::{MEMORY, Process};
use crate::progress::Progress;
use crate::results::{Cell, Results, TargetInfo};
use crate::target::{TargetSpec, cores, load_rows};
use crate::workload::TABLE;
use costs::{Costs, FILES};
use options::Options;
use reader::{FULL_READ, Read, Reader};
use std::time::{Duration, Instant};
use updates::{Counts, Ids, Keys, Session};

/// The snapshot is read at its start, after each tenth of the time, and when the updates have stopped.
const READS: u32 = 10;
/// Connections beside the sessions that update.
const CONNECTIONS_BESIDE: u32 = 16;
const CONNECTIONS_MIN: u32 = 64;
/// Undo in tablespaces of its own, which InnoDB makes smaller again. What it keeps in its system tablespace
/// stays there.
const INNODB_OPTIONS: [&str; 2] = ["--innodb-undo-tablespaces=3", "--innodb-undo-log-truncate=ON"];
/// What a server may write for old versions. InnoDB was seen to write 10 MiB at 27,000 updates.
const BYTES_A_SECOND: u64 = 12 << 20;
/// The name of the parameter that tells the samples with the snapshot from those after it.
pub(crate) const SNAPSHOT: &str = "snapshot";
pub(crate) const HELD: &str = "held";
const CLOSED: &str = "closed";

#[derive(Clone, Copy, Debug)]
pub(crate) struct LongSnapshot;

impl Experiment for LongSnapshot {
    fn name(&self) -> &'static str {
        "long-snapshot"
    }

    fn title(&self) -> &'static str {
        "A long snapshot on a busy server"
    }

    fn question(&self) -> &'static str {
        "A transaction holds its snapshot for a long time while other sessions update all rows of the table, \
         over and over. The server has to keep what the snapshot reads. How many updates does it do meanwhile, what \
         memory and which files does it take, how long does it take to read the old rows, and does all of it come back \
         when the snapshot ends?"
    }

    fn options(&self) -> String {
        options::help()
    }

    fn run(&self, args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()> {
        let options = Options::parse(args).map_err(Error::Usage)?;
        let rows_bytes = u64::from(options.table.rows) * 300;
        let kept_bytes = (options.time + options.after).as_secs() * BYTES_A_SECOND;
        let plan = Plan {
            threads_max: options.sessions,
            memory_bytes: options.cache_bytes + options.version_bytes + (64 << 20),
            disk_bytes: 3 * rows_bytes + kept_bytes + (1 << 30),
            scratch: options.output.scratch.clone(),
        };
        let settings = [
            ("rows", options.table.rows.to_string()),
            ("sessions", options.sessions.to_string()),
            (
                "statements, in turn",
                "UPDATE ... SET k=k+1 WHERE id=?, UPDATE ... SET c=? WHERE id=?".to_string(),
            ),
            ("the snapshot is held", frame::seconds(options.time)),
            ("from one sample to the next", frame::seconds(options.every)),
            ("updates after the snapshot", frame::seconds(options.after)),
            ("cache", machine::bytes(options.cache_bytes)),
            ("Latchwork's memory for old versions", machine::bytes(options.version_bytes)),
            ("seed", options.table.seed.to_string()),
        ];
        let results = Results {
            unit: "updates/s".to_string(),
            block_name: "sessions".to_string(),
            x_name: "seconds".to_string(),
            log_x: false,
            plotted: [MEMORY, FILES, FULL_READ].map(str::to_string).to_vec(),
            ..frame::blank(self, args, &settings, &plan)
        };
        frame::conduct(results, &options.output, interrupt, progress, summary::summaries, |run| {
            runner::run(&mut Lines { options: &options }, run)
        })
    }
}

/// A line is a target, a step the distribution of the keys. A turn is the whole life of a server: it starts,
/// the snapshot is held and closed, and the server stops, so that no server works beside another one.
struct Lines<'a> {
    options: &'a Options,
}

impl Grid for Lines<'_> {
    type Line = usize;
    type Step = Keys;

    fn schedule(&self) -> Schedule {
        let Options { time, table, .. } = *self.options;
        Schedule { seed: table.seed, rounds: 1, warmup: Duration::ZERO, time }
    }

    fn stage(&self) -> String {
        "holding a snapshot".to_string()
    }

    /// The cells come one by one: a run that is cut short has those up to its end.
    fn cells(&self) -> Vec<Cell> {
        Vec::new()
    }

    fn steps(&self) -> Vec<Keys> {
        self.options.keys.clone()
    }

    fn lines(&self, _keys: Keys) -> Vec<usize> {
        (0..self.options.targets.len()).collect()
    }

    fn stream(&self, _round: u32, keys: Keys) -> u64 {
        keys as u64
    }

    fn detail(&self, &line: &usize, keys: Keys) -> String {
        format!("{}, {} keys", self.options.targets[line].name(), keys.name())
    }

    fn measure(&mut self, turn: &Turn<usize, Keys>, run: &mut Run<'_>) -> Result<Outcome> {
        let (options, spec, keys) = (self.options, &self.options.targets[turn.line], turn.step);
        let folder = run.scratch.folder(&format!("{}-{}", turn.line, keys.name()))?;
        let mut instance = open(spec, options, &folder, run)?;
        if run.results.target(&instance.name).is_none() {
            let (name, facts) = (instance.name.clone(), instance.facts());
            run.results.targets.push(TargetInfo { name, baseline: None, facts });
        }
        let mut costs = Costs::new(&instance, &folder)?;
        let ids = Ids::new(keys, options.table.rows);
        let connect = |number| Session::connect(&instance.login, &ids, options.table.seed, number);
        let mut sessions: Vec<Session> = (0..options.sessions).map(connect).collect::<Result<_>>()?;
        let (held, after) = options.samples();
        let seconds = u64::from(held + after) * options.every.as_secs();
        run.progress.stage(format!("{}: holding a snapshot", instance.name), seconds);

        let mut reader = Reader::open(&instance.login, &options.table)?;
        reader.begin();
        let first = reader.finish(run.interrupt)?;
        let mut watch = Watch { options, keys, instance: &instance, costs: &mut costs, number: 0 };
        updates::run(&mut sessions, |counts| watch.held(counts, held, first, &mut reader, run))?;
        watch.last_read(reader, run)?;
        updates::run(&mut sessions, |counts| watch.closed(counts, after, run))?;
        let added = sessions.iter().map(|session| session.added).sum();
        verify(&instance, options, added)?;
        drop((sessions, costs));
        run.progress.stage(format!("{}: stopping", instance.name), 0);
        instance.stop()?;
        // What is left of a long snapshot may be large, and the next server needs the room.
        std::fs::remove_dir_all(&folder).map_err(Error::path("remove", &folder))?;
        Ok(Outcome::Measured(Vec::new()))
    }
}

/// Starts a server and loads the table.
fn open(
    spec: &TargetSpec,
    options: &Options,
    folder: &std::path::Path,
    run: &mut Run<'_>,
) -> Result<Instance> {
    let settings = Settings {
        cache_bytes: options.cache_bytes,
        connections: (options.sessions + CONNECTIONS_BESIDE).max(CONNECTIONS_MIN),
        paper: false,
        nosync: false,
        latches: false,
        mariadb_options: INNODB_OPTIONS.map(str::to_string).to_vec(),
        latchwork_options: vec![format!("--latchwork_version_limit={}", options.version_bytes)],
    };
    let variant = Variant { cores: cores::available(), binary_log: false };
    let mut instance = Instance::open(spec, variant, &settings, folder, run)?;
    let mut client = instance.login.connect()?;
    let create = options.table.create_sql(&instance.engine);
    instance.create(&mut client, TABLE, &create)?;
    load_rows(&mut client, &instance.name, &options.table, run.interrupt, run.progress)?;
    client.run(options.table.index_sql().as_bytes())?;
    client.rows(&format!("ANALYZE TABLE {TABLE}"))?;
    Ok(instance)
}

/// Each update of `k` that a session counted is in the table once.
fn verify(instance: &Instance, options: &Options, added: u64) -> Result<()> {
    let sql = format!("SELECT COUNT(*), SUM(k) FROM {TABLE}");
    let found = instance.login.connect()?.rows(&sql)?.concat();
    let expected = [options.table.rows.to_string(), (reader::sum_of_k(&options.table) + added).to_string()];
    if found == expected {
        return Ok(());
    }
    Err(instance
        .wrong_answer(format!("{TABLE} has {found:?} rows and sum of k at the end, not {expected:?}")))
}

/// Takes the samples of a server.
struct Watch<'a> {
    options: &'a Options,
    keys: Keys,
    instance: &'a Instance,
    costs: &'a mut Costs,
    /// Samples so far.
    number: u32,
}

/// When a sample began.
struct Begun {
    at: Instant,
    reading: Reading,
}

impl Watch<'_> {
    fn begin(&self) -> Begun {
        Begun { at: Instant::now(), reading: self.observed().read() }
    }

    fn observed(&self) -> Observed<'_> {
        Observed { server: self.instance.process(), client: Some(Process::Own), latch_waits: &|| None }
    }

    /// The second at which a sample ends.
    fn x(&self, number: u32) -> u32 {
        number * self.options.every.as_secs() as u32
    }

    /// Samples with the snapshot, which is read after each tenth of them. `first` is how long it took to read
    /// at the start.
    fn held(
        &mut self,
        counts: &Counts,
        samples: u32,
        first: Option<Read>,
        reader: &mut Reader,
        run: &mut Run<'_>,
    ) -> Result<()> {
        let (started, mut begun, mut read) = (Instant::now(), self.begin(), first);
        for number in 1..=samples {
            counts.wait_until(started + self.options.every * number, run.interrupt)?;
            read = reader.finished()?.or(read.take());
            begun = self.sample(counts, begun, HELD, read.take(), run)?;
            if number < samples && number * READS / samples > (number - 1) * READS / samples {
                reader.begin();
            }
        }
        Ok(())
    }

    /// Reads the snapshot once more, beside no updates, for the last sample with the snapshot, and closes it.
    fn last_read(&self, reader: Reader, run: &mut Run<'_>) -> Result<()> {
        run.progress.at(self.x(self.number).into(), "reading the snapshot for the last time");
        let read = reader.close(self.options.patience, run.interrupt)?;
        let (sessions, x) = (self.options.sessions.to_string(), self.x(self.number));
        let cell = run.results.cell_mut(&self.instance.name, self.keys.name(), &sessions, x);
        if let (Some(sample), Some(read)) = (cell.and_then(|cell| cell.samples.last_mut()), read) {
            sample.extra.retain(|(name, _)| read.extras().iter().all(|(other, _)| other != name));
            sample.extra.extend(read.extras());
        }
        run.save()
    }

    fn closed(&mut self, counts: &Counts, samples: u32, run: &mut Run<'_>) -> Result<()> {
        let (started, mut begun) = (Instant::now(), self.begin());
        for number in 1..=samples {
            counts.wait_until(started + self.options.every * number, run.interrupt)?;
            begun = self.sample(counts, begun, CLOSED, None, run)?;
        }
        Ok(())
    }

    /// Keeps what has been done since `begun`.
    fn sample(
        &mut self,
        counts: &Counts,
        begun: Begun,
        snapshot: &str,
        read: Option<Read>,
        run: &mut Run<'_>,
    ) -> Result<Begun> {
        self.number += 1;
        let (done, now) = (counts.take(), self.begin());
        let mut sample = workers::sample(&done, 0, now.at - begun.at, &begun.reading, &now.reading);
        sample.extra.extend(self.costs.read()?);
        sample.extra.extend(read.iter().flat_map(Read::extras));
        let sessions = self.options.sessions.to_string();
        let parameters = vec![
            ("sessions", sessions.clone()),
            ("keys", self.keys.name().to_string()),
            (SNAPSHOT, snapshot.to_string()),
        ];
        let x = self.x(self.number);
        let detail = format!("snapshot {snapshot}, {} keys, {:.0} updates/s", self.keys.name(), sample.value);
        run.progress.at(x.into(), &detail);
        let cell = Cell::new(&self.instance.name, self.keys.name(), &sessions, x, parameters);
        run.results.add(cell.with(sample));
        run.save()?;
        Ok(now)
    }
}

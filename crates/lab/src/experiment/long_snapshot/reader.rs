//! The transaction that keeps its snapshot. Its reads run beside the updates, and their answers never change.

use crate::driver::socket::{Client, Login};
use crate::driver::together::Lines;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::workload::{Sbtest, TABLE};
use base::random::Random;
use base::sync::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Rows that are read by their ids and compared whole.
const SAMPLED_ROWS: u32 = 100;
/// One in so many values of `k` is read by the index on it.
const RANGE_SHARE: u32 = 1_000;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) const FULL_READ: &str = "full read of the snapshot, s";
pub(crate) const FEW_ROWS: &str = "a few rows of the snapshot, ms";

/// 1 if the last full read took too long, and was ended. Then its time is how long it had worked.
pub(crate) const GIVEN_UP: &str = "full read of the snapshot given up";

/// How long the reads of the snapshot took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    full: Duration,
    few: Duration,
}

impl Read {
    pub(crate) fn extras(&self) -> [(String, f64); 2] {
        [
            (FULL_READ.to_string(), self.full.as_secs_f64()),
            (FEW_ROWS.to_string(), self.few.as_secs_f64() * 1_000.0),
        ]
    }
}

/// A connection inside its transaction, and what it has to find.
struct Snapshot {
    target: String,
    client: Client,
    /// By id: `SELECT id, k, c, pad ...`, and its rows.
    few: (String, Vec<Vec<String>>),
    /// By the index on `k`: a count.
    range: (String, String),
    /// Rows and the sum of their `k`, as they were loaded.
    totals: [String; 2],
    /// The checksum of the first full read.
    checksum: Option<String>,
}

impl Snapshot {
    fn open(login: &Login, table: &Sbtest) -> Result<Snapshot> {
        let mut client = login.connect()?;
        let mut random = Random::new(table.seed, u64::MAX - 1);
        let mut ids: Vec<u32> = (0..SAMPLED_ROWS).map(|_| 1 + random.below(table.rows)).collect();
        ids.sort_unstable();
        ids.dedup();
        let rows = ids.iter().map(|&id| {
            let row = table.row(id);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            vec![id.to_string(), row.k.to_string(), text(&row.c), text(&row.pad)]
        });
        let list: Vec<String> = ids.iter().map(u32::to_string).collect();
        let few = format!("SELECT id, k, c, pad FROM {TABLE} WHERE id IN ({}) ORDER BY id", list.join(","));
        let last = (table.rows / RANGE_SHARE).max(1);
        let in_range = (1..=table.rows).filter(|&id| table.k(id) <= last).count();
        let range = format!("SELECT COUNT(*) FROM {TABLE} FORCE INDEX (k) WHERE k BETWEEN 1 AND {last}");
        client.run(b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        client.run(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        Ok(Snapshot {
            target: login.target.clone(),
            client,
            few: (few, rows.collect()),
            range: (range, in_range.to_string()),
            totals: [table.rows.to_string(), sum_of_k(table).to_string()],
            checksum: None,
        })
    }

    fn read(&mut self) -> Result<Read> {
        let started = Instant::now();
        let found = self.client.rows(&self.few.0)?;
        let counted = self.client.rows(&self.range.0)?.concat().concat();
        let few = started.elapsed();
        if found != self.few.1 {
            return Err(self.wrong("rows read by their ids are not as they were loaded"));
        }
        if counted != self.range.1 {
            return Err(self.wrong(&format!("{counted} rows by the index on k, not {}", self.range.1)));
        }
        let started = Instant::now();
        let sql = format!(
            "SELECT COUNT(*), SUM(k), SUM(CRC32(CONCAT_WS('-', id, k, c, pad))) FROM {TABLE} FORCE INDEX (PRIMARY)"
        );
        let answer = self.client.rows(&sql)?.concat();
        let full = started.elapsed();
        let [count, sum, checksum] = &answer[..] else {
            return Err(self.wrong("a sum has no row"));
        };
        if [count, sum] != [&self.totals[0], &self.totals[1]] {
            let [rows, total] = &self.totals;
            return Err(self.wrong(&format!("{count} rows, k adds up to {sum}; not {rows} and {total}")));
        }
        match &self.checksum {
            Some(first) if first != checksum => {
                return Err(self.wrong(&format!("the checksum is {checksum}, and was {first} at the start")));
            }
            _ => self.checksum = Some(checksum.clone()),
        }
        Ok(Read { full, few })
    }

    fn wrong(&self, why: &str) -> Error {
        Error::WrongAnswer { target: self.target.clone(), why: format!("the old snapshot: {why}") }
    }
}

/// Over all rows as they are loaded.
pub(crate) fn sum_of_k(table: &Sbtest) -> u64 {
    (1..=table.rows).map(|id| u64::from(table.k(id))).sum()
}

/// The snapshot, and the thread that reads it now and then.
pub(crate) struct Reader {
    /// `None` while it is being read, and once it is closed.
    idle: Option<Snapshot>,
    reading: Option<JoinHandle<(Snapshot, Result<Read>)>>,
    /// When the last read began.
    began: Instant,
    lines: Lines,
    login: Login,
    /// The connection's number at the server.
    connection: String,
}

/// How the last read ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LastRead {
    Done(Read),
    /// It was ended after this time.
    GivenUp(Duration),
}

impl LastRead {
    pub(crate) fn extras(&self) -> Vec<(String, f64)> {
        match self {
            LastRead::Done(read) => read.extras().to_vec(),
            LastRead::GivenUp(after) => {
                vec![(FULL_READ.to_string(), after.as_secs_f64()), (GIVEN_UP.to_string(), 1.0)]
            }
        }
    }
}

impl Reader {
    /// Opens the snapshot.
    pub(crate) fn open(login: &Login, table: &Sbtest) -> Result<Reader> {
        let mut snapshot = Snapshot::open(login, table)?;
        let mut lines = Lines::default();
        lines.add(&mut snapshot.client)?;
        let connection = snapshot.client.rows("SELECT CONNECTION_ID()")?.concat().concat();
        let (began, login) = (Instant::now(), login.clone());
        Ok(Reader { idle: Some(snapshot), reading: None, began, lines, login, connection })
    }

    /// Begins to read, unless the read before is still under way.
    pub(crate) fn begin(&mut self) {
        if let Some(mut snapshot) = self.idle.take() {
            self.began = Instant::now();
            self.reading = Some(thread::spawn(move || {
                let read = snapshot.read();
                (snapshot, read)
            }));
        }
    }

    /// The read that has come to its end since the last call.
    pub(crate) fn finished(&mut self) -> Result<Option<Read>> {
        match self.reading.take_if(|reading| reading.is_finished()) {
            None => Ok(None),
            Some(reading) => {
                let panicked = |_| Error::Driver {
                    driver: "builtin",
                    why: "the reader of the snapshot panicked".to_string(),
                };
                let (snapshot, read) = reading.join().map_err(panicked)?;
                self.idle = Some(snapshot);
                read.map(Some)
            }
        }
    }

    fn is_reading(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| !reading.is_finished())
    }

    /// Waits for the read under way, if there is one.
    pub(crate) fn finish(&mut self, interrupt: &Interrupt) -> Result<Option<Read>> {
        while self.is_reading() {
            interrupt.sleep_until(Instant::now() + LOOK_INTERVAL)?;
        }
        self.finished()
    }

    /// Reads once more, or waits for the read under way, and ends the transaction. A read that is not done
    /// after `patience` is ended by a KILL.
    pub(crate) fn close(mut self, patience: Duration, interrupt: &Interrupt) -> Result<Option<LastRead>> {
        self.begin();
        let deadline = Instant::now() + patience;
        while self.is_reading() && Instant::now() < deadline {
            interrupt.sleep_until(Instant::now() + LOOK_INTERVAL)?;
        }
        if self.is_reading() {
            let after = self.began.elapsed();
            self.login.connect()?.run(format!("KILL {}", self.connection).as_bytes())?;
            return match self.finish(interrupt) {
                Err(error @ (Error::WrongAnswer { .. } | Error::Interrupted)) => Err(error),
                _ => Ok(Some(LastRead::GivenUp(after))),
            };
        }
        let read = self.finished()?;
        self.idle.take().map_or(Ok(()), |mut snapshot| snapshot.client.run(b"COMMIT"))?;
        Ok(read.map(LastRead::Done))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // After an error or an interrupt a long read ends with its connection.
        if let Some(reading) = self.reading.take() {
            self.lines.hang_up();
            let _ = reading.join();
        }
    }
}

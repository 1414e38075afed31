//! `reload`: a dump of many tables goes into an empty server, several connections at the same time, the
//! largest tables last and alone.

mod dump;
mod tables;

pub(crate) use dump::Dump;

use super::Bench;
use super::options::Form;
use crate::driver::socket::{Client, explained};
use crate::driver::together::{self, Lines};
use crate::error::{Error, Result};
use crate::experiment::frame::Run;
use crate::experiment::instance::Instance;
use crate::interrupt::Interrupt;
use crate::measure::Recorder;
use crate::results::Sample;
use base::sync::{Arc, Mutex, thread};
use dump::Dumped;
use std::io::{BufRead, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A table with more than this share of the dump is loaded alone.
const ALONE: f64 = 0.1;

pub(crate) struct Reload {
    pub instance: Instance,
    pub dump: Arc<Dump>,
    pub form: Form,
}

impl Bench for Reload {
    fn facts(&self) -> Vec<(String, String)> {
        self.instance.facts()
    }

    fn load(&mut self, _run: &mut Run<'_>) -> Result<()> {
        Ok(())
    }

    fn sample(
        &mut self,
        connections: u32,
        round: u32,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(f64, &str),
    ) -> Result<Sample> {
        let mut client = self.instance.login.connect()?;
        for table in &self.dump.tables {
            let sql = table.kind.create_sql(&table.name, &self.instance.engine);
            self.instance.create(&mut client, &table.name, &sql)?;
        }
        let mut lines = Lines::default();
        let mut clients = Vec::new();
        for _ in 0..connections {
            let mut client = self.instance.login.connect()?;
            lines.add(&mut client)?;
            clients.push(client);
        }
        let sent = AtomicU64::new(0);
        let loading = Loading { target: &self.instance.name, dump: &self.dump, form: self.form, sent: &sent };
        let total = self.dump.bytes() as f64;
        let mut watch = || {
            // ORDER: shown to a person, nothing more.
            progress(sent.load(Ordering::Relaxed) as f64 / total, "");
        };
        let sample = self.instance.observe(|observed| {
            let worker = || loading.all(clients);
            together::run(vec![worker], &lines, round, observed, interrupt, &mut watch)
        })?;
        for table in &self.dump.tables {
            interrupt.check()?;
            self.verify(&mut client, table)?;
        }
        Ok(sample)
    }

    fn stop(&mut self) -> Result<()> {
        self.instance.stop()
    }
}

impl Reload {
    fn verify(&self, client: &mut Client, table: &Dumped) -> Result<()> {
        let found = client.rows(&table.kind.checksum_sql(&table.name))?.concat();
        if found == [table.rows.to_string(), table.checksum.to_string()] {
            return Ok(());
        }
        let why = format!(
            "{} has rows and checksum {}, dumped were {} {}",
            table.name,
            found.join(" "),
            table.rows,
            table.checksum
        );
        Err(self.instance.wrong_answer(why))
    }
}

/// State that the connections share.
struct Loading<'a> {
    target: &'a str,
    dump: &'a Dump,
    form: Form,
    /// Bytes of the dump that were read so far.
    sent: &'a AtomicU64,
}

impl Loading<'_> {
    /// Loads everything. Returns the connections, so that they stay open until the server has been observed.
    fn all(&self, mut clients: Vec<Client>) -> Result<(Recorder, Vec<Client>)> {
        let total = self.dump.bytes() as f64;
        let (alone, together): (Vec<&Dumped>, Vec<&Dumped>) =
            self.dump.tables.iter().partition(|table| table.bytes as f64 > total * ALONE);
        let mut recorder = Recorder::default();
        // The largest first: then the connections finish at about the same time.
        let queue = Mutex::new(together.into_iter());
        thread::scope(|scope| {
            let handles: Vec<_> = clients
                .iter_mut()
                .map(|client| {
                    let queue = &queue;
                    scope.spawn(move || {
                        let mut recorder = Recorder::default();
                        loop {
                            let Some(table) = queue.lock().next() else {
                                return Ok::<_, Error>(recorder);
                            };
                            self.table(client, table, &mut recorder)?;
                        }
                    })
                })
                .collect();
            for handle in handles {
                let panicked =
                    |_| Error::Driver { driver: "builtin", why: "a connection panicked".to_string() };
                recorder.merge(&handle.join().map_err(panicked)??);
            }
            Ok::<_, Error>(())
        })?;
        if let Some(client) = clients.first_mut() {
            for table in alone.into_iter().rev() {
                self.table(client, table, &mut recorder)?;
            }
        }
        Ok((recorder, clients))
    }

    fn table(&self, client: &mut Client, table: &Dumped, recorder: &mut Recorder) -> Result<()> {
        let started = Instant::now();
        let mut file = Counted { file: self.dump.open(table, self.form)?, sent: self.sent };
        match self.form {
            Form::Load => {
                let name = &table.name;
                let sql =
                    format!("LOAD DATA LOCAL INFILE '{name}.txt' INTO TABLE {name} CHARACTER SET utf8mb4");
                let result = client.connection().load_local(sql.as_bytes(), &mut file);
                let result = result.map_err(|error| explained(self.target, &sql, error))?;
                if result.affected_rows != table.rows || result.warnings > 0 {
                    let why = format!("`{sql}` of {} rows: {}", table.rows, result.info);
                    return Err(Error::WrongAnswer { target: self.target.to_string(), why });
                }
            }
            Form::Insert => {
                let mut lines = BufReader::new(file);
                let mut line = Vec::new();
                loop {
                    line.clear();
                    let read = lines.read_until(b'\n', &mut line);
                    if read.map_err(Error::io(format!("cannot read the dump of {}", table.name)))? == 0 {
                        break;
                    }
                    let statement = line.strip_suffix(b";\n").unwrap_or(&line);
                    client.run(statement)?;
                }
            }
        }
        recorder.query(started.elapsed(), table.rows);
        Ok(())
    }
}

/// A file that tells how much of it has been read.
struct Counted<'a, R> {
    file: R,
    sent: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        // ORDER: see `sample`.
        self.sent.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

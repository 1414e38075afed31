//! Prints how much more room a table takes than its rows, while random rows are updated, deleted and inserted
//! again.
//!
//! ```text cargo run --release -p latchwork-engine --example space_ratio -- [updates] [rows] [folder] ``` The
//! table is `id INT PRIMARY KEY, k INT, c VARBINARY, KEY k (k)`. Of ten changes eight are updates that make
//! `c` longer or shorter (20 to 220 bytes) and draw a new `k` one time in four, one is a delete, one an
//! insert of a row that was deleted. *Live* is the bytes of the rows and of the index entries alone: keys and
//! images, without headers and pages. A hundred changes are one commit, which waits for no device.

use base::random::Random;
use latchwork_engine::{
    CacheOptions, Database, FlushLog, IndexDef, KeyList, LogOptions, Options, Table, TableDef,
};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;
use types::{Column, ColumnType, KeyPart, ValueRef};

/// Lines of figures.
const INTERVALS: u64 = 20;
const CHANGES_A_COMMIT: u64 = 100;
/// Bytes of `c`.
const LEN_MIN: usize = 20;
const LEN_MAX: usize = 220;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let updates: u64 = arguments.next().map_or(Ok(50_000_000), |text| text.parse())?;
    let rows: usize = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let dir = arguments.next().map_or_else(|| folder.path().join("data"), PathBuf::from);
    let options = Options {
        cache: CacheOptions { size_bytes: (64 << 20) + rows * 400, ..CacheOptions::default() },
        log: LogOptions { flush: FlushLog::Lazily, ..LogOptions::default() },
        create: true,
        ..Options::default()
    };
    let database = Database::open(&dir, options)?;
    database.create_database("d", b"")?;
    let table = database.create_table(definition())?;
    let mut load = Load { random: Random::new(1, 0), lens: vec![None; rows], deleted: Vec::new(), bytes: 0 };
    load.fill(&database, &table)?;
    let start = Instant::now();
    println!(
        "{:>12} {:>12} {:>12} {:>12} {:>8} {:>12}",
        "changes", "live MB", "table MB", "log MB", "ratio", "a second"
    );
    let print = |changes: u64, live: u64| -> Result<(), Box<dyn Error>> {
        let (table, log) = (bytes_in(&dir.join("tables"))?, bytes_in(&dir.join("log"))?);
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let rate = changes as f64 / start.elapsed().as_secs_f64();
        let ratio = table as f64 / live as f64;
        println!(
            "{changes:>12} {:>12.1} {:>12.1} {:>12.1} {ratio:>8.3} {rate:>12.0}",
            mb(live),
            mb(table),
            mb(log)
        );
        Ok(())
    };
    print(0, load.live_bytes())?;
    let commits = updates / CHANGES_A_COMMIT;
    for interval in 0..INTERVALS {
        for _ in commits * interval / INTERVALS..commits * (interval + 1) / INTERVALS {
            load.commit(&database, &table)?;
        }
        print(commits * (interval + 1) / INTERVALS * CHANGES_A_COMMIT, load.live_bytes())?;
    }
    let report = database.check()?;
    println!("{report}");
    Ok(database.close()?)
}

fn bytes_in(dir: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(dir)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

fn definition() -> TableDef {
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    TableDef {
        database: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", int()),
            column("k", int()),
            column("c", ColumnType::Varbinary { bytes: LEN_MAX as u32 }),
        ],
        primary: Some(vec![part(0)]),
        indexes: vec![IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] }],
        auto_increment: None,
        sql_metadata: Vec::new(),
        ..TableDef::default()
    }
}

/// The rows as they are, and what becomes of them.
struct Load {
    random: Random,
    /// The length of each row's image; `None` if it is deleted.
    lens: Vec<Option<u16>>,
    deleted: Vec<usize>,
    /// Of all images.
    bytes: u64,
}

impl Load {
    /// The bytes of rows and index entries alone: for a row its key of 4 bytes and its image, for an entry
    /// its 4 bytes and the primary key.
    fn live_bytes(&self) -> u64 {
        self.bytes + (self.lens.len() - self.deleted.len()) as u64 * (4 + 8)
    }

    fn draw_len(&mut self) -> usize {
        LEN_MIN + self.random.index(LEN_MAX - LEN_MIN + 1)
    }

    fn set(&mut self, id: usize, len: Option<usize>) {
        let old = std::mem::replace(&mut self.lens[id], len.map(|len| len as u16));
        self.bytes = self.bytes + len.unwrap_or(0) as u64 - u64::from(old.unwrap_or(0));
    }

    fn fill(&mut self, database: &Database, table: &Table) -> Result<(), Box<dyn Error>> {
        let (mut images, mut image) = (KeyList::default(), Vec::new());
        for first in (0..self.lens.len()).step_by(4_000) {
            images.clear();
            for id in first..self.lens.len().min(first + 4_000) {
                let k = self.random.index(self.lens.len()) as i64;
                encode(table, id, k, self.draw_len(), &mut image);
                self.set(id, Some(image.len()));
                images.push(&image);
            }
            let mut statement = database.begin_write()?;
            statement.insert_many(table, &images).map_err(|(_, error)| error)?;
            statement.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self, database: &Database, table: &Table) -> Result<(), Box<dyn Error>> {
        let mut statement = database.begin_write()?;
        let mut new = Vec::new();
        for _ in 0..CHANGES_A_COMMIT {
            let id = self.random.index(self.lens.len());
            let (what, k) = (self.random.index(10), self.random.index(self.lens.len()) as i64);
            match (what, self.lens[id]) {
                (0, Some(_)) => {
                    statement.delete(table, &int_key(id), &mut |_| true)?;
                    self.set(id, None);
                    self.deleted.push(id);
                }
                (1, _) if !self.deleted.is_empty() => {
                    let at = self.random.index(self.deleted.len());
                    let id = self.deleted.swap_remove(at);
                    encode(table, id, k, self.draw_len(), &mut new);
                    statement.insert(table, &new)?;
                    self.set(id, Some(new.len()));
                }
                (_, Some(_)) => {
                    let (len, moves) = (self.draw_len(), self.random.index(4) == 0);
                    let mut bytes = 0;
                    statement.update(table, &int_key(id), &mut |old, out| {
                        let ValueRef::Int(old_k) = table.row_codec().view(old).get(1) else { return false };
                        encode(table, id, if moves { k } else { old_k }, len, out);
                        bytes = out.len();
                        true
                    })?;
                    self.set(id, Some(bytes));
                }
                _ => {}
            }
        }
        Ok(statement.commit()?)
    }
}

/// Makes `out` a row's image.
fn encode(table: &Table, id: usize, k: i64, len: usize, out: &mut Vec<u8>) {
    out.clear();
    let c = &[b'a' + (len % 26) as u8; LEN_MAX][..len];
    table.row_codec().encode(&[ValueRef::Int(id as i64), ValueRef::Int(k), ValueRef::Binary(c)], out);
}

fn int_key(id: usize) -> [u8; 4] {
    (id as u32 ^ 1 << 31).to_be_bytes()
}

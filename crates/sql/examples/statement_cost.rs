//! Instructions a statement, counted by callgrind: the same number on a busy machine and on a quiet one.
//!
//! ```sh
//! RUSTFLAGS='--cfg rustix_use_libc' cargo build --release -p latchwork-sql --example statement_cost
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*measured*' \
//!     target/release/examples/statement_cost points_10 200
//! ```
//!
//! A third argument says whose rights the session has: `everything` (the default: nobody's, as in programs
//! that embed the engine), `global` (an account with its rights on everything), `table` or `columns`.
//!
//! "Collected" divided by the number of statements is the figure. Files are in memory and no thread works in
//! the background, so that nothing but the statements counts. Without callgrind it prints only how many rows
//! came back. (rustix asks the vDSO for the number of the core; valgrind has none, hence the flag.)

#[path = "support/null_sink.rs"]
mod null_sink;
#[path = "support/sbtest1.rs"]
mod sbtest1;

use base::random::Random;
use engine::{CacheOptions, Database, FlushLog, LogOptions, Options, WriteBack};
use latchwork_sql::{Instance, Session, SqlError, open_accounts};
use null_sink::NullSink;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use types::ValueRef;

const ROWS: u32 = 20_000;
const KINDS: &str =
    "point_select, text_point_select, points_10, points_100, read_write, insert, text_insert, functions";

/// The number of a row, drawn at random.
fn row(random: &mut Random) -> i64 {
    sbtest1::row(random, ROWS)
}

type Run<'s> = Box<dyn FnMut(&mut Session, &mut NullSink) -> Result<(), SqlError> + 's>;

/// sysbench's `select_random_points`, prepared.
fn points<'s>(session: &mut Session, count: usize) -> Result<Run<'s>, SqlError> {
    let marks = vec!["?"; count].join(",");
    let sql = format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({marks})");
    let id = session.prepare(sql.as_bytes())?.id;
    let mut numbers = Random::new(1, 0);
    Ok(Box::new(move |session, sink| {
        let values: Vec<_> = (0..count).map(|_| ValueRef::Int(row(&mut numbers))).collect();
        session.execute(id, &values, sink)
    }))
}

/// One transaction of sysbench's `oltp_read_write`, prepared.
fn read_write<'s>(session: &mut Session) -> Result<Run<'s>, SqlError> {
    let mut prepare = |sql: &str| session.prepare(sql.as_bytes()).map(|prepared| prepared.id);
    let (begin, commit) = (prepare("BEGIN")?, prepare("COMMIT")?);
    let point = prepare("SELECT c FROM sbtest1 WHERE id=?")?;
    let ranges = [
        prepare("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?")?,
        prepare("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?")?,
        prepare("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c")?,
        prepare("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c")?,
    ];
    let index_update = prepare("UPDATE sbtest1 SET k=k+1 WHERE id=?")?;
    let other_update = prepare("UPDATE sbtest1 SET c=? WHERE id=?")?;
    let delete = prepare("DELETE FROM sbtest1 WHERE id=?")?;
    let insert = prepare("INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)")?;
    let mut numbers = Random::new(1, 0);
    let (c, pad) = ("9876543210-".repeat(10), "jihgfedcba-".repeat(5));
    Ok(Box::new(move |session, sink| {
        let mut int = || ValueRef::Int(row(&mut numbers));
        session.execute(begin, &[], sink)?;
        for _ in 0..10 {
            session.execute(point, &[int()], sink)?;
        }
        for range in ranges {
            let from = row(&mut numbers);
            session.execute(range, &[ValueRef::Int(from), ValueRef::Int(from + 99)], sink)?;
        }
        let mut int = || ValueRef::Int(row(&mut numbers));
        session.execute(index_update, &[int()], sink)?;
        session.execute(other_update, &[ValueRef::Text(c.as_bytes()), int()], sink)?;
        let id = int();
        session.execute(delete, &[id], sink)?;
        let (c, pad) = (ValueRef::Text(c.as_bytes()), ValueRef::Text(pad.as_bytes()));
        session.execute(insert, &[id, int(), c, pad], sink)?;
        session.execute(commit, &[], sink)
    }))
}

fn insert<'s>(session: &mut Session) -> Result<Run<'s>, SqlError> {
    let id = session.prepare(b"INSERT INTO sbtest1 (k, c, pad) VALUES (?, ?, ?)")?.id;
    let mut numbers = Random::new(1, 0);
    let (c, pad) = ("9876543210-".repeat(10), "jihgfedcba-".repeat(5));
    Ok(Box::new(move |session, sink| {
        let (c, pad) = (ValueRef::Text(c.as_bytes()), ValueRef::Text(pad.as_bytes()));
        session.execute(id, &[ValueRef::Int(row(&mut numbers)), c, pad], sink)
    }))
}

fn text<'s>(mut sql: impl FnMut(&mut String) + 's) -> Run<'s> {
    let mut buffer = String::new();
    Box::new(move |session, sink| {
        buffer.clear();
        sql(&mut buffer);
        session.query(buffer.as_bytes(), sink)
    })
}

fn run_of<'s>(kind: &str, session: &mut Session) -> Result<Option<Run<'s>>, SqlError> {
    let mut numbers = Random::new(1, 0);
    Ok(Some(match kind {
        "point_select" => {
            let id = session.prepare(b"SELECT c FROM sbtest1 WHERE id=?")?.id;
            Box::new(move |session, sink| session.execute(id, &[ValueRef::Int(row(&mut numbers))], sink))
        }
        "text_point_select" => text(move |sql| {
            let _ = write!(sql, "SELECT c FROM sbtest1 WHERE id={}", row(&mut numbers));
        }),
        "points_10" => points(session, 10)?,
        "points_100" => points(session, 100)?,
        "read_write" => read_write(session)?,
        "insert" => insert(session)?,
        "text_insert" => text(move |sql| {
            let k = row(&mut numbers);
            let _ = write!(sql, "INSERT INTO sbtest1 (k, c, pad) VALUES ({k}, 'some text', 'some more')");
        }),
        // A function of each kind a row.
        "functions" => text(move |sql| {
            let from = row(&mut numbers);
            let _ = write!(
                sql,
                "SELECT CONCAT(LEFT(c, 10), UPPER(pad)), ROUND(k / 7, 2), IF(k > 9, ABS(k), MOD(id, 7)), \
                 DATE_FORMAT(FROM_DAYS(730000 + k), '%Y-%m-%d'), COALESCE(NULLIF(k, 3), LENGTH(c)), \
                 DATEDIFF('2026-11-22', FROM_DAYS(730000 + id)) \
                 FROM sbtest1 WHERE id BETWEEN {from} AND {}",
                from + 99
            );
        }),
        _ => return Ok(None),
    }))
}

/// What an account is granted, by the third argument.
const GRANTS: [(&str, &str); 3] = [
    ("global", "SELECT, INSERT, UPDATE, DELETE ON *.*"),
    ("table", "SELECT, INSERT, UPDATE, DELETE ON sbtest.sbtest1"),
    ("columns", "SELECT (id, k, c, pad), INSERT (id, k, c, pad), UPDATE (k, c), DELETE ON sbtest.sbtest1"),
];

/// A session of an account that has only these rights.
fn logged_in(grant: &str, own: &mut Session, instance: Arc<Instance>) -> Result<Session, SqlError> {
    let sink = &mut NullSink::default();
    open_accounts(&instance, &[])?;
    own.query(b"CREATE USER ann", sink)?;
    own.query(format!("GRANT {grant} TO ann").as_bytes(), sink)?;
    let account = instance.accounts().find("ann", &["localhost"]).expect("it has just been made");
    let mut session = Session::new(instance, 2, "ann", "localhost");
    session.log_in(&account, &Arc::default(), false);
    session.use_database("sbtest")?;
    Ok(session)
}

/// The part that callgrind counts.
#[inline(never)]
fn measured(
    run: &mut Run<'_>,
    count: usize,
    session: &mut Session,
    sink: &mut NullSink,
) -> Result<(), SqlError> {
    for _ in 0..count {
        run(session, sink)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(200);
    let whose = arguments.next().unwrap_or_else(|| "everything".to_owned());
    let options = Options {
        cache: CacheOptions {
            size_bytes: 64 << 20,
            write_back: WriteBack::AtEvictionOnly,
            ..CacheOptions::default()
        },
        log: LogOptions { flush: FlushLog::Lazily, ..LogOptions::default() },
        create: true,
        vfs: base::sync::Arc::new(vfs::MemVfs::new()),
        ..Options::default()
    };
    let database = Database::open(Path::new("data"), options)?;
    database.create_database("sbtest", &[])?;
    let instance = Instance::new(database);
    let mut session = Session::new(instance.clone(), 1, "root", "localhost");
    session.use_database("sbtest")?;
    let mut sink = NullSink::default();
    sbtest1::load(&mut session, ROWS, &mut sink)?;
    if whose != "everything" {
        let Some((_, grant)) = GRANTS.iter().find(|(name, _)| *name == whose) else {
            return Err(format!("no rights {whose:?}: everything, global, table, columns").into());
        };
        session = logged_in(grant, &mut session, instance)?;
    }
    let Some(mut run) = run_of(&kind, &mut session)? else {
        return Err(format!("no kind of statement {kind:?}: one of {KINDS}, and how many of them").into());
    };
    // Plans are made and pages are visited once before.
    for _ in 0..100 {
        run(&mut session, &mut sink)?;
    }
    sink.values = 0;
    measured(&mut run, count, &mut session, &mut sink)?;
    println!("{kind}: {count} statements, {} values", sink.values);
    Ok(())
}

//! Many clients at once, each with a model of its own rows, under caches of every kind.

use crate::support::latchwork::run;
use crate::support::{Latchwork, text};
use base::random::Random;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wire::WireValue;
use wire::client::{ClientError, ConnectOptions, Connection};

const WRITERS: u64 = 6;
const STEPS: u64 = 400;
const COUNTERS: u64 = 5;

type Client = Connection<UnixStream>;

fn connect(server: &Latchwork) -> Client {
    let stream = UnixStream::connect(&server.socket).unwrap();
    let options = ConnectOptions { database: Some("stress".into()), ..ConnectOptions::default() };
    Connection::connect(stream, &options).unwrap()
}

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).to_text()
}

/// The rows that one writer expects to have, and how often it counted them.
struct Writer {
    owner: u64,
    random: Random,
    model: BTreeMap<u64, String>,
    counted: u64,
}

impl Writer {
    fn some_id(&mut self) -> Option<u64> {
        let skip = self.random.index(self.model.len().max(1));
        self.model.keys().nth(skip).copied()
    }

    fn text(&mut self) -> String {
        let length = if self.random.below(20) == 0 { 3000 } else { self.random.below(60) };
        format!("{}-{}", self.random.below(300), "x".repeat(length as usize))
    }

    fn step(&mut self, client: &mut Client) {
        let owner = self.owner;
        match self.random.below(7) {
            0 | 1 => {
                let texts: Vec<String> = (0..=self.random.below(5)).map(|_| self.text()).collect();
                let values: Vec<String> = texts.iter().map(|text| format!("({owner}, '{text}')")).collect();
                let insert = format!("INSERT INTO things (owner, v) VALUES {}", values.join(", "));
                let done = client.query(&insert).unwrap();
                assert_eq!(done.affected_rows, texts.len() as u64);
                for (position, text) in texts.into_iter().enumerate() {
                    let before = self.model.insert(done.last_insert_id + position as u64, text);
                    assert_eq!(before, None, "AUTO_INCREMENT gave a number twice");
                }
            }
            2 => {
                let Some(id) = self.some_id() else { return };
                let text = self.text();
                client.query(&format!("UPDATE things SET v = '{text}' WHERE id = {id}")).unwrap();
                self.model.insert(id, text);
            }
            3 => {
                let Some(id) = self.some_id() else { return };
                let done = client.query(&format!("DELETE FROM things WHERE id = {id}")).unwrap();
                assert_eq!(done.affected_rows, 1);
                self.model.remove(&id);
            }
            4 => {
                // The second row collides, so the first must not stay.
                let Some(id) = self.some_id() else { return };
                let insert =
                    format!("INSERT INTO things VALUES (NULL, {owner}, 'undone'), ({id}, {owner}, 'twice')");
                match client.query(&insert) {
                    Err(ClientError::Server(error)) => assert_eq!(error.code, 1062),
                    other => panic!("a duplicate went in: {other:?}"),
                }
            }
            5 => {
                let id = self.random.below_u64(COUNTERS);
                let prepared = client.prepare("UPDATE counters SET n = n + ? WHERE id = ?").unwrap();
                let params = [WireValue::UInt(1), WireValue::UInt(id)];
                let done = client.execute(prepared.id, &params).unwrap();
                assert_eq!(done.affected_rows, 1);
                client.close_statement(prepared.id).unwrap();
                self.counted += 1;
            }
            _ => {
                // By every access path, its own rows are as it left them.
                let Some(id) = self.some_id() else { return };
                let text = self.model[&id].clone();
                let found = rows(client, &format!("SELECT owner, v FROM things WHERE id IN (0, {id}, {id})"));
                assert_eq!(found, [[owner.to_string(), text.clone()]], "by primary key {id}");
                let by_value =
                    format!("SELECT id FROM things WHERE v = '{text}' AND owner = {owner} AND id = {id}");
                assert_eq!(rows(client, &by_value), [[id.to_string()]], "by secondary index");
            }
        }
    }
}

/// Reads all rows while they change.
fn watch(server: &Latchwork, stop: &AtomicBool) {
    let mut client = connect(server);
    let mut random = Random::new(99, 0);
    let mut last_sum = 0;
    while !stop.load(Ordering::Relaxed) {
        let sum: u64 = rows(&mut client, "SELECT SUM(n) FROM counters")[0][0].parse().unwrap();
        assert!(sum >= last_sum, "the counters went back");
        last_sum = sum;
        let backward = random.below(2) == 0;
        let order = if backward { "DESC" } else { "ASC" };
        let ids = rows(&mut client, &format!("SELECT id FROM things ORDER BY id {order}"));
        let mut ids: Vec<u64> = ids.iter().map(|row| row[0].parse().unwrap()).collect();
        if backward {
            ids.reverse();
        }
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "a row came twice or out of order");
        let owner = random.below_u64(WRITERS);
        for row in rows(&mut client, &format!("SELECT owner, v FROM things WHERE owner = {owner}")) {
            assert_eq!(row[0], owner.to_string(), "the index led to another owner's row");
            assert_ne!(row[1], "twice");
        }
        let low = random.below(300);
        for row in rows(&mut client, &format!("SELECT v FROM things WHERE v >= '{low}' AND v < '{low}z'")) {
            assert!(row[0].starts_with(&low.to_string()), "{} is not in the range of {low}", row[0]);
        }
    }
}

fn compare(server: &Latchwork, writers: &[Writer]) {
    let mut client = connect(server);
    let mut total = 0;
    for writer in writers {
        let owner = writer.owner;
        let found = rows(&mut client, &format!("SELECT id, v FROM things WHERE owner = {owner} ORDER BY id"));
        let expected: Vec<Vec<String>> =
            writer.model.iter().map(|(id, text)| vec![id.to_string(), text.clone()]).collect();
        assert!(found == expected, "owner {owner}: {} rows, expected {}", found.len(), expected.len());
        total += expected.len();
    }
    let counted: u64 = writers.iter().map(|writer| writer.counted).sum();
    assert_eq!(
        rows(&mut client, "SELECT SUM(n) FROM counters"),
        [[counted.to_string()]],
        "increments were lost"
    );
    for question in [
        "SELECT COUNT(*) FROM things",
        "SELECT COUNT(*) FROM things WHERE owner >= 0",
        "SELECT COUNT(*) FROM things WHERE v >= ''",
        "SELECT COUNT(v) FROM things",
    ] {
        assert_eq!(rows(&mut client, question), [[total.to_string()]], "{question}");
    }
    assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM things WHERE v IN ('undone', 'twice')"), [["0"]]);
}

fn stress(options: &[&str]) {
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), options);
    {
        let stream = UnixStream::connect(&server.socket).unwrap();
        let mut client = Connection::connect(stream, &ConnectOptions::default()).unwrap();
        for statement in [
            "CREATE DATABASE stress",
            "USE stress",
            "CREATE TABLE counters (id INT PRIMARY KEY, n BIGINT NOT NULL)",
            "INSERT INTO counters VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0)",
            "CREATE TABLE things (id INT AUTO_INCREMENT PRIMARY KEY, owner INT, v VARCHAR(4000), KEY (owner), KEY (v(20)))",
        ] {
            client.query(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        }
    }
    let stop = AtomicBool::new(false);
    let indexes_built = AtomicU64::new(0);
    let writers: Vec<Writer> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|owner| {
                let server = &server;
                scope.spawn(move || {
                    let mut client = connect(server);
                    let random = Random::new(owner + 1, 0);
                    let mut writer = Writer { owner, random, model: BTreeMap::new(), counted: 0 };
                    for _ in 0..STEPS {
                        writer.step(&mut client);
                    }
                    writer
                })
            })
            .collect();
        let (server, stop, built) = (&server, &stop, &indexes_built);
        for _ in 0..2 {
            scope.spawn(move || watch(server, stop));
        }
        // Definitions change while sessions use the tables, and a session ends in the middle of each change.
        scope.spawn(move || {
            loop {
                let mut client = connect(server);
                client.query("CREATE INDEX both_columns ON things (owner, id)").unwrap();
                drop(client);
                connect(server).query("DROP INDEX both_columns ON things").unwrap();
                built.fetch_add(1, Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, Ordering::Relaxed);
        results.into_iter().map(|result| result.expect("a writer failed")).collect()
    });
    assert!(indexes_built.load(Ordering::Relaxed) > 0);
    compare(&server, &writers);
    assert!(!server.log().contains("panicked"), "{}", server.log());
    assert_eq!(server.stop().code(), Some(0));
    let data = scratch.path().join("data");
    let verdict = run(&["check", data.to_str().unwrap()]);
    assert_eq!(verdict.status.code(), Some(0), "{}{}", text(&verdict.stdout), text(&verdict.stderr));
    let server = Latchwork::start(scratch.path(), options);
    compare(&server, &writers);
}

#[test]
fn clients_find_their_rows_in_a_roomy_cache() {
    stress(&[]);
}

#[test]
fn clients_find_their_rows_in_the_smallest_cache() {
    stress(&["--key_buffer_size=4096"]);
}

#[test]
fn clients_find_their_rows_in_the_smallest_cache_with_latched_hits() {
    stress(&["--key_buffer_size=4096", "--key_cache_hit_path=locked", "--key_cache_segments=0"]);
}

#[test]
fn clients_find_their_rows_while_many_segments_share_few_frames() {
    stress(&["--key_buffer_size=1M", "--key_cache_segments=64"]);
}

//! One statement changes or deletes a whole table, and the server is killed in its middle. It must open at
//! once, take the statement back behind its clients, and show the table as it was meanwhile.

use super::{Restarts, Round, random, rounds, stop_and_check};
use crate::support::PATIENCE;
use crate::support::target::{Proof, Server, connect, targets};
use base::random::Random;
use std::path::Path;

/// The table has as many rows as there are pairs of these.
const DIGITS: u64 = 200;
const ROWS: u64 = DIGITS * DIGITS;
const FILL: &str =
    "INSERT INTO huge.t SELECT a.id * 200 + b.id, a.id, REPEAT('x', 60) FROM huge.s a, huge.s b";

const TABLES: [&str; 4] = [
    "CREATE DATABASE huge",
    "CREATE TABLE huge.s (id INT PRIMARY KEY)",
    "CREATE TABLE huge.t (id INT PRIMARY KEY, k INT NOT NULL, body VARCHAR(100) NOT NULL, KEY (k))",
    "CREATE TABLE huge.note (id INT PRIMARY KEY)",
];

/// What the table holds: nothing, or all rows, whose `k` was raised so many times.
type Contents = Option<u64>;

struct Owner {
    random: Random,
    contents: Contents,
    /// What the statement that was not answered would have left.
    unanswered: Option<Contents>,
}

impl Owner {
    /// Changes the table until the connection is lost.
    fn work(&mut self, socket: &Path, round: &Round) {
        let Ok(mut client) = connect(socket, Some(PATIENCE)) else { return };
        loop {
            let (sql, after) = match self.contents {
                None => (FILL, Some(0)),
                Some(raised) if self.random.below(2) == 0 => {
                    ("UPDATE huge.t SET k = k + 1", Some(raised + 1))
                }
                Some(_) => ("DELETE FROM huge.t", None),
            };
            self.unanswered = Some(after);
            match client.query(sql) {
                Ok(_) => self.contents = after,
                // It waited for what is being taken back.
                Err(error) if matches!(error.code(), Some(1205 | 1213)) => {}
                Err(error) => return round.lost(sql, &error),
            }
            self.unanswered = None;
        }
    }

    fn verify(&mut self, server: &Server) {
        let mut client = server.connect();
        let mut ask =
            |sql: &str| client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).to_text();
        let whole = ask("SELECT COUNT(*), COALESCE(SUM(k), 0) FROM huge.t");
        let by_index = ask("SELECT COUNT(*), COALESCE(SUM(k), 0) FROM huge.t FORCE INDEX (k) WHERE k >= 0");
        assert_eq!(whole, by_index, "the rows (left) and their index (right)");
        let sums = |contents: Contents| match contents {
            None => ["0".to_string(), "0".to_string()],
            Some(raised) => {
                [ROWS.to_string(), (DIGITS * (DIGITS * (DIGITS - 1) / 2) + raised * ROWS).to_string()]
            }
        };
        let candidates = [Some(self.contents), self.unanswered.take()];
        let found = candidates.into_iter().flatten().find(|contents| whole == [sums(*contents)]);
        self.contents = found.unwrap_or_else(|| panic!("{whole:?} of {candidates:?}"));
    }
}

/// Inserts rows one by one until the connection is lost. `next` is the first that was not acknowledged.
fn take_notes(next: &mut u64, socket: &Path, round: &Round) {
    let Ok(mut client) = connect(socket, Some(PATIENCE)) else { return };
    loop {
        let sql = format!("INSERT INTO huge.note VALUES ({next})");
        match client.query(&sql) {
            Ok(_) => {
                *next += 1;
                round.acknowledged();
            }
            Err(error) => return round.lost(&sql, &error),
        }
    }
}

/// Notes are written at once, whatever is still being taken back.
fn verify_notes(next: &mut u64, server: &Server) {
    let mut client = server.connect();
    let found = client.query("SELECT COUNT(*), COALESCE(MAX(id) + 1, 0) FROM huge.note").unwrap().to_text();
    let may_be = [*next, *next + 1].map(|next| vec![next.to_string(), next.to_string()]);
    assert!(may_be.contains(&found[0]), "{found:?} notes, where {next} were acknowledged");
    *next = found[0][0].parse().unwrap();
    client.query(&format!("INSERT INTO huge.note VALUES ({next})")).unwrap();
    *next += 1;
}

#[test]
fn a_statement_over_a_whole_table_is_kept_or_taken_back_after_a_kill() {
    for target in targets(Proof::KilledStatements) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let mut random = random();
        let mut server = target.start(folder);
        let digits: Vec<String> = (0..DIGITS).map(|id| format!("({id})")).collect();
        let digits = format!("INSERT INTO huge.s VALUES {}", digits.join(", "));
        for sql in TABLES.iter().chain([&digits.as_str(), &FILL]) {
            server.connect().query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let mut owner =
            Owner { random: Random::new(random.next_u64(), 0), contents: Some(0), unanswered: None };
        let (mut next, mut cut) = (0, 0);
        let mut restarts = Restarts::default();
        for _ in 0..rounds() {
            let round = Round::default();
            let socket = server.socket().to_path_buf();
            std::thread::scope(|scope| {
                scope.spawn(|| owner.work(&socket, &round));
                scope.spawn(|| take_notes(&mut next, &socket, &round));
                round.kill(server, &mut random);
            });
            cut += u64::from(owner.unanswered.is_some());
            server = restarts.restart(target, folder, &mut random);
            verify_notes(&mut next, &server);
            owner.verify(&server);
        }
        let server = stop_and_check(target, server, folder);
        owner.verify(&server);
        verify_notes(&mut next, &server);
        println!("{target:?}: {} kills, {cut} of them in a statement over the table, {next} notes", rounds());
    }
}

//! Clerks write several rows a statement with autocommit. Each statement must be kept as a whole or not at
//! all.

use super::{Restarts, Round, random, rounds, stop_and_check};
use crate::support::PATIENCE;
use crate::support::target::{Proof, Server, connect, targets};
use base::random::Random;
use std::collections::BTreeMap;
use std::path::Path;

const CLERKS: u64 = 5;
/// The rows of a batch are inserted, changed and deleted together.
const ROWS: u64 = 7;

const TABLES: [&str; 2] = [
    "CREATE DATABASE office",
    "CREATE TABLE office.paper (clerk INT NOT NULL, batch INT NOT NULL, part INT NOT NULL, version INT NOT NULL, \
     body TEXT NOT NULL, PRIMARY KEY (clerk, batch, part), UNIQUE (part, batch, clerk), KEY (version))",
];

/// The version of a batch. `None` if the batch is not there.
type Version = Option<u64>;

struct Clerk {
    number: u64,
    random: Random,
    /// The state of each batch, by its number.
    batches: Vec<Version>,
    /// The statement that was not answered: its batch, and the state that it would have given it.
    unanswered: Option<(usize, Version)>,
}

impl Clerk {
    /// Writes until the connection is lost.
    fn work(&mut self, socket: &Path, round: &Round) {
        let Ok(mut client) = connect(socket, Some(PATIENCE)) else {
            return;
        };
        loop {
            let (sql, batch, version) = self.next();
            if batch == self.batches.len() {
                self.batches.push(None);
            }
            self.unanswered = Some((batch, version));
            match client.query(&sql) {
                Ok(_) => {
                    self.batches[batch] = version;
                    round.acknowledged();
                }
                // InnoDB's gap locks may form a deadlock.
                Err(error) if error.code() == Some(1213) => {}
                Err(error) => return round.lost(&sql, &error),
            }
            self.unanswered = None;
        }
    }

    /// A statement, its batch, and the state of the batch afterwards.
    fn next(&mut self) -> (String, usize, Version) {
        let clerk = self.number;
        let there: Vec<usize> =
            (0..self.batches.len()).filter(|&batch| self.batches[batch].is_some()).collect();
        if there.len() < 5 || self.random.below(3) == 0 {
            let batch = self.batches.len();
            let length = self.length(200);
            let row = |part| format!("({clerk}, {batch}, {part}, 0, REPEAT('x', {length}))");
            let rows: Vec<String> = (0..ROWS).map(row).collect();
            return (format!("INSERT INTO office.paper VALUES {}", rows.join(", ")), batch, Some(0));
        }
        let batch = there[self.random.index(there.len())];
        let which = format!("WHERE clerk = {clerk} AND batch = {batch}");
        if self.random.below(2) == 0 {
            return (format!("DELETE FROM office.paper {which}"), batch, None);
        }
        let length = self.length(400);
        let update =
            format!("UPDATE office.paper SET version = version + 1, body = REPEAT('y', {length}) {which}");
        (update, batch, self.batches[batch].map(|version| version + 1))
    }

    /// The length of a body. Some are so long that a row needs one or several pages of its own.
    fn length(&mut self, usual: u64) -> u64 {
        match self.random.below(20) {
            0 => 7_000,
            1 => 16_000 + self.random.below_u64(20_000),
            _ => self.random.below_u64(usual),
        }
    }

    fn compare(&mut self, found: &BTreeMap<usize, Vec<u64>>) {
        let clerk = self.number;
        let unanswered = self.unanswered.take();
        for (batch, expected) in self.batches.iter_mut().enumerate() {
            let versions = found.get(&batch).map_or(&[][..], Vec::as_slice);
            let whole = versions.is_empty() || versions.len() as u64 == ROWS;
            let alike = versions.windows(2).all(|pair| pair[0] == pair[1]);
            assert!(whole && alike, "batch {batch} of clerk {clerk} is there by half: versions {versions:?}");
            let got = versions.first().copied();
            let other = unanswered.filter(|(of, _)| *of == batch).map(|(_, version)| version);
            assert!(
                got == *expected || Some(got) == other,
                "batch {batch} of clerk {clerk}: version {got:?}, where {expected:?} was acknowledged"
            );
            *expected = got;
        }
        assert!(found.len() <= self.batches.len(), "clerk {clerk} has batches that it never wrote");
    }
}

fn verify(server: &Server, clerks: &mut [Clerk]) {
    let mut client = server.connect();
    let mut ask = |sql: &str| client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).to_text();
    let rows = ask("SELECT clerk, batch, version, part FROM office.paper ORDER BY clerk, batch, part");
    let mut by_index = ask("SELECT clerk, batch, version, part FROM office.paper WHERE version >= 0");
    let key = |row: &Vec<String>| [0, 1, 3].map(|column| row[column].parse::<u64>().unwrap());
    by_index.sort_by_key(key);
    assert!(rows == by_index, "the index of versions and the rows differ");
    let mut by_unique = Vec::new();
    for part in 0..ROWS {
        by_unique.extend(ask(&format!(
            "SELECT clerk, batch, version, part FROM office.paper WHERE part = {part}"
        )));
    }
    by_unique.sort_by_key(key);
    assert!(rows == by_unique, "the unique index and the rows differ");
    // A body is one repeated character.
    let torn =
        ask("SELECT COUNT(*) FROM office.paper WHERE body <> REPEAT(LEFT(body, 1), CHAR_LENGTH(body))");
    assert_eq!(torn, [["0"]], "a row has bytes of another");
    let mut found: BTreeMap<u64, BTreeMap<usize, Vec<u64>>> = BTreeMap::new();
    for row in rows {
        let number = |column: usize| row[column].parse::<u64>().unwrap();
        found.entry(number(0)).or_default().entry(number(1) as usize).or_default().push(number(2));
    }
    for clerk in clerks {
        clerk.compare(&found.remove(&clerk.number).unwrap_or_default());
    }
}

#[test]
fn each_acknowledged_statement_is_there_after_a_kill_and_no_half_is() {
    for target in targets(Proof::KilledStatements) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let mut random = random();
        let mut server = target.start(folder);
        for sql in TABLES {
            server.connect().query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let mut clerks: Vec<Clerk> = (0..CLERKS)
            .map(|number| Clerk {
                number,
                random: Random::new(random.next_u64(), 0),
                batches: Vec::new(),
                unanswered: None,
            })
            .collect();
        let mut restarts = Restarts::default();
        for _ in 0..rounds() {
            let round = Round::default();
            let socket = server.socket().to_path_buf();
            std::thread::scope(|scope| {
                for clerk in &mut clerks {
                    scope.spawn(|| clerk.work(&socket, &round));
                }
                round.kill(server, &mut random);
            });
            server = restarts.restart(target, folder, &mut random);
            verify(&server, &mut clerks);
        }
        let server = stop_and_check(target, server, folder);
        verify(&server, &mut clerks);
        let batches: usize = clerks.iter().map(|clerk| clerk.batches.len()).sum();
        println!("{target:?}: {} kills, {batches} batches", rounds());
        assert!(batches > 0, "nothing was ever written");
    }
}

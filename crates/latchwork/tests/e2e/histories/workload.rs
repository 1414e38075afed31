//! Sessions that append to lists and read them, at random, and note what they saw.

use super::history::{Deed, Element, Interval, Key, Lists, Outcome, Transaction};
use crate::isolation::Level;
use crate::support::PATIENCE;
use crate::support::target::{Client, Server, connect};
use base::random::Random;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::client::{ClientError, QueryResult};

const SESSIONS: u64 = 6;
const TRANSACTIONS: u64 = 150;
/// Keys in use at a time. They are few, so that sessions conflict.
const KEYS: u32 = 6;
/// After this many appends of all sessions together, the next keys are used, so that lists stay short.
const APPENDS_PER_GENERATION: u64 = 250;
/// Rows come in groups, which are read by a secondary index.
const GROUPS: u32 = 2;

const TABLE: &str = "CREATE TABLE histories.lists (k INT PRIMARY KEY, g INT NOT NULL, n INT NOT NULL, \
                     list VARCHAR(10000) NOT NULL, KEY (g), KEY (n))";

/// What all sessions of a run share.
#[derive(Debug, Default)]
struct Shared {
    clock: AtomicU64,
    appends: AtomicU64,
}

impl Shared {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

/// The history, and the lists when all sessions have ended.
pub fn run(server: &Server, seed: u64) -> (Vec<Transaction>, Lists) {
    let mut client = server.connect();
    for sql in ["DROP DATABASE IF EXISTS histories", "CREATE DATABASE histories", TABLE] {
        client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let shared = Shared::default();
    let history = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|number| {
                let client = connect(server.socket(), Some(PATIENCE)).unwrap();
                let random = Random::new(seed * SESSIONS + number, 0);
                let session =
                    Session { number, client, random, shared: &shared, deeds: Vec::new(), elements: 0 };
                scope.spawn(move || session.run())
            })
            .collect();
        sessions.into_iter().flat_map(|session| session.join().unwrap()).collect()
    });
    let last = read(&client.query("SELECT k, list FROM histories.lists").unwrap(), &[]);
    (history, last)
}

struct Session<'a> {
    number: u64,
    client: Client,
    random: Random,
    shared: &'a Shared,
    deeds: Vec<(Deed, Interval)>,
    elements: u64,
}

/// The server rolled the transaction back, at this time.
struct RolledBack(Interval);

impl Session<'_> {
    fn run(mut self) -> Vec<Transaction> {
        (0..TRANSACTIONS).map(|number| self.transaction(number)).collect()
    }

    fn transaction(&mut self, number: u64) -> Transaction {
        let levels =
            [Level::ReadCommitted, Level::RepeatableRead, Level::RepeatableRead, Level::Serializable];
        let level = levels[self.random.index(levels.len())];
        self.must(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", level.sql()));
        let first_committer_wins = level == Level::RepeatableRead && self.random.below(2) == 0;
        self.must(&format!("SET innodb_snapshot_isolation = {}", u8::from(first_committer_wins)));
        let (outcome, end) = match self.body(level) {
            Err(RolledBack(when)) => {
                self.must("ROLLBACK");
                (Outcome::RolledBack, when)
            }
            Ok(()) if self.random.below(8) == 0 => (Outcome::RolledBack, self.must("ROLLBACK")),
            Ok(()) => (Outcome::Committed, self.must("COMMIT")),
        };
        let name = format!("{}-{number} ({})", self.number, level.short());
        let deeds = std::mem::take(&mut self.deeds);
        Transaction { name, level, first_committer_wins, deeds, outcome, end }
    }

    fn body(&mut self, level: Level) -> Result<(), RolledBack> {
        if level == Level::RepeatableRead && self.random.below(4) == 0 {
            let when = self.must("START TRANSACTION WITH CONSISTENT SNAPSHOT");
            self.deeds.push((Deed::Snapshot, when));
        } else {
            self.must("BEGIN");
        }
        let mut has_savepoint = false;
        for _ in 0..=self.random.below(5) {
            match self.random.below(12) {
                // Not as the first deed: InnoDB's transaction has not begun then, and ROLLBACK TO also drops
                // the snapshot.
                0 if !self.deeds.is_empty() => {
                    let when = self.must("SAVEPOINT here");
                    self.deeds.push((Deed::Savepoint, when));
                    has_savepoint = true;
                }
                1 if has_savepoint => {
                    let when = self.must("ROLLBACK TO here");
                    self.deeds.push((Deed::RollBackToSavepoint, when));
                }
                2..6 => self.append()?,
                _ => self.read()?,
            }
        }
        Ok(())
    }

    fn keys(&self) -> Vec<Key> {
        let generation = (self.shared.appends.load(Ordering::Relaxed) / APPENDS_PER_GENERATION) as u32;
        (0..KEYS).map(|key| generation * KEYS + key).collect()
    }

    fn some_key(&mut self) -> Key {
        let keys = self.keys();
        keys[self.random.index(keys.len())]
    }

    fn append(&mut self) -> Result<(), RolledBack> {
        let key = self.some_key();
        self.shared.appends.fetch_add(1, Ordering::Relaxed);
        self.elements += 1;
        let element = self.number * 1_000_000 + self.elements;
        let change = format!("n = n + 1, list = CONCAT(list, ',{element}')");
        if self.random.below(2) == 0 {
            let (result, when) =
                self.try_to(&format!("UPDATE histories.lists SET {change} WHERE k = {key}"))?;
            if result.affected_rows == 1 {
                self.deeds.push((Deed::Append { key, element }, when));
                return Ok(());
            }
        }
        let group = key % GROUPS;
        let insert = format!("INSERT INTO histories.lists VALUES ({key}, {group}, 1, ',{element}')");
        let (_, when) = self.try_to(&format!("{insert} ON DUPLICATE KEY UPDATE {change}"))?;
        self.deeds.push((Deed::Append { key, element }, when));
        Ok(())
    }

    fn read(&mut self) -> Result<(), RolledBack> {
        let keys = self.keys();
        let (mut locking, condition, keys) = match self.random.below(4) {
            0 => {
                let key = self.some_key();
                (true, format!("k = {key}"), vec![key])
            }
            1 => {
                let keys = vec![self.some_key(), self.some_key()];
                (true, format!("k IN ({}, {})", keys[0], keys[1]), keys)
            }
            2 => {
                let group = self.random.below(GROUPS);
                let keys: Vec<Key> = keys.into_iter().filter(|key| key % GROUPS == group).collect();
                (true, format!("g = {group} AND k BETWEEN {} AND {}", keys[0], keys[keys.len() - 1]), keys)
            }
            // Rows move in this index, so a read of the newest rows may meet one twice or miss it.
            _ => {
                let range = format!("n > 0 AND k BETWEEN {} AND {}", keys[0], keys[keys.len() - 1]);
                (false, range, keys)
            }
        };
        locking &= self.random.below(2) == 0;
        let lock = match self.random.below(2) {
            _ if !locking => "",
            0 => " FOR UPDATE",
            _ => " LOCK IN SHARE MODE",
        };
        let sql = format!("SELECT k, list FROM histories.lists WHERE {condition}{lock}");
        let (result, when) = self.try_to(&sql)?;
        let lists = read(&result, &keys);
        self.deeds.push((Deed::Read { lists, locking }, when));
        Ok(())
    }

    fn ask(&mut self, sql: &str) -> (Result<QueryResult, ClientError>, Interval) {
        let asked = self.shared.tick();
        let result = self.client.query(sql);
        (result, Interval { asked, answered: self.shared.tick() })
    }

    fn must(&mut self, sql: &str) -> Interval {
        let (result, when) = self.ask(sql);
        result.unwrap_or_else(|error| panic!("{sql}: {error}"));
        when
    }

    /// The only errors that may happen are a deadlock, and a row that was changed after a binding snapshot.
    fn try_to(&mut self, sql: &str) -> Result<(QueryResult, Interval), RolledBack> {
        match self.ask(sql) {
            (Ok(result), when) => Ok((result, when)),
            (Err(error), when) if matches!(error.code(), Some(1020 | 1213)) => Err(RolledBack(when)),
            (Err(error), _) => panic!("{sql}: {error}"),
        }
    }
}

/// The lists of rows of keys and lists. Keys without a row have empty lists.
fn read(result: &QueryResult, keys: &[Key]) -> Lists {
    let mut lists: Lists = keys.iter().map(|key| (*key, Vec::new())).collect();
    let mut rows = 0;
    for row in result.to_text() {
        let list: Vec<Element> = row[1].split(',').skip(1).map(|element| element.parse().unwrap()).collect();
        assert!(!list.is_empty());
        rows +=
            usize::from(lists.insert(row[0].parse().unwrap(), list).is_none_or(|before| before.is_empty()));
    }
    assert_eq!(rows, result.rows.len(), "a row came twice");
    lists
}

//! Tellers move money between accounts in transactions of several statements. DDL runs at the same time.
//!
//! Each transfer leaves its two halves in a table, so that the balances show whether one was kept only in
//! part. Each teller remembers the outcome of its transfers, and compares after each restart.

use super::ddl::Builder;
use super::{Restarts, Round, random, rounds, stop_and_check};
use crate::support::PATIENCE;
use crate::support::target::{Client, Proof, Server, connect, targets};
use base::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wire::client::ClientError;

const TELLERS: u64 = 5;
const ACCOUNTS: u64 = 40;
const BALANCE: i64 = 1000;
/// Each teller keeps the rows of this many transfers, and deletes older ones in the same transaction.
const NOTES: u64 = 10;

const TABLES: [&str; 5] = [
    "CREATE DATABASE bank",
    "CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT NOT NULL, KEY (balance))",
    "CREATE TABLE bank.half (number INT AUTO_INCREMENT PRIMARY KEY, teller INT NOT NULL, n INT NOT NULL, \
     account INT NOT NULL, amount INT NOT NULL, UNIQUE (teller, n, account), KEY (account))",
    "CREATE TABLE bank.note (teller INT, n INT, body VARCHAR(12000) NOT NULL, PRIMARY KEY (teller, n))",
    "CREATE TABLE bank.visit (teller INT PRIMARY KEY, n INT NOT NULL)",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Committed,
    RolledBack,
    /// The answer to COMMIT did not come.
    Unknown,
}

struct Teller {
    number: u64,
    random: Random,
    /// By the number of the transfer, from 0.
    fates: Vec<Fate>,
    /// The highest AUTO_INCREMENT number of an acknowledged transfer.
    highest: u64,
}

/// The server rolled the transaction back, or the connection was lost.
enum Trouble {
    Victim,
    Lost,
}

impl Teller {
    /// Makes transfers until the connection is lost.
    fn work(&mut self, socket: &Path, round: &Round) {
        let Ok(mut client) = connect(socket, Some(PATIENCE)) else {
            return;
        };
        loop {
            let n = self.fates.len() as u64;
            self.fates.push(Fate::RolledBack);
            match self.transfer(n, &mut client, round) {
                Ok(()) => {}
                Err(Trouble::Victim) => {
                    if say(&mut client, "ROLLBACK", round).is_err() {
                        return;
                    }
                }
                Err(Trouble::Lost) => return,
            }
        }
    }

    fn transfer(&mut self, n: u64, client: &mut Client, round: &Round) -> Result<(), Trouble> {
        let teller = self.number;
        let from = self.random.below_u64(ACCOUNTS);
        let to = (from + 1 + self.random.below_u64(ACCOUNTS - 1)) % ACCOUNTS;
        let amount = 1 + self.random.below(50);
        say(client, "BEGIN", round)?;
        if self.random.below(4) == 0 {
            let lock = format!("SELECT balance FROM bank.account WHERE id IN ({from}, {to}) FOR UPDATE");
            say(client, &lock, round)?;
        }
        let mut highest = 0;
        for (account, sign) in [(from, "-"), (to, "")] {
            let update =
                format!("UPDATE bank.account SET balance = balance + {sign}{amount} WHERE id = {account}");
            say(client, &update, round)?;
            let half = format!("(NULL, {teller}, {n}, {account}, {sign}{amount})");
            highest = say(client, &format!("INSERT INTO bank.half VALUES {half}"), round)?;
        }
        if self.random.below(5) == 0 {
            say(client, "SAVEPOINT detour", round)?;
            say(client, &format!("UPDATE bank.account SET balance = 0 WHERE id = {from}"), round)?;
            say(client, &format!("DELETE FROM bank.note WHERE teller = {teller}"), round)?;
            say(client, "ROLLBACK TO detour", round)?;
        }
        let length = if self.random.below(10) == 0 { 10_000 } else { self.random.below(300) };
        let old = n.saturating_sub(NOTES);
        say(client, &format!("DELETE FROM bank.note WHERE teller = {teller} AND n < {old}"), round)?;
        let note = format!("INSERT INTO bank.note VALUES ({teller}, {n}, REPEAT('{}', {length}))", n % 10);
        say(client, &note, round)?;
        say(client, &format!("REPLACE INTO bank.visit VALUES ({teller}, {n})"), round)?;
        if self.random.below(10) == 0 {
            say(client, "ROLLBACK", round)?;
            return Ok(());
        }
        self.fates[n as usize] = Fate::Unknown;
        say(client, "COMMIT", round)?;
        self.fates[n as usize] = Fate::Committed;
        self.highest = self.highest.max(highest);
        round.acknowledged();
        Ok(())
    }

    /// Compares the tables with what the teller remembers, and notes the outcomes that it did not know.
    fn compare(
        &mut self,
        halves: &BTreeMap<u64, Vec<(u64, i64)>>,
        notes: &BTreeMap<u64, u64>,
        visit: Option<u64>,
    ) {
        let teller = self.number;
        for (n, fate) in self.fates.iter_mut().enumerate() {
            let there = halves.get(&(n as u64));
            match (*fate, there) {
                (Fate::Committed, None) => {
                    panic!("transfer {n} of teller {teller} is gone, and was acknowledged")
                }
                (Fate::RolledBack, Some(halves)) => {
                    panic!("transfer {n} of teller {teller} is there, and was never committed: {halves:?}")
                }
                (Fate::Unknown, None) => *fate = Fate::RolledBack,
                (Fate::Unknown, Some(_)) => *fate = Fate::Committed,
                (Fate::Committed, Some(_)) | (Fate::RolledBack, None) => {}
            }
            if let Some(halves) = there {
                let sum: i64 = halves.iter().map(|(_, amount)| amount).sum();
                assert!(halves.len() == 2 && sum == 0, "half of transfer {n} of teller {teller}: {halves:?}");
            }
        }
        assert!(halves.len() <= self.fates.len(), "teller {teller} has transfers that it never began");
        let last = halves.keys().next_back().copied();
        assert_eq!(visit, last, "the last visit of teller {teller}");
        let kept = |n: &&u64| **n >= last.unwrap_or(0).saturating_sub(NOTES);
        let expected: BTreeSet<u64> = halves.keys().filter(kept).copied().collect();
        assert_eq!(notes.keys().copied().collect::<BTreeSet<_>>(), expected, "the notes of teller {teller}");
        for (n, digit) in notes {
            assert_eq!(*digit, n % 10, "the note of transfer {n} of teller {teller}");
        }
    }
}

/// Runs the statement. Returns the AUTO_INCREMENT number.
fn say(client: &mut Client, sql: &str, round: &Round) -> Result<u64, Trouble> {
    match client.query(sql) {
        Ok(result) => Ok(result.last_insert_id),
        Err(ClientError::Server(error)) if error.code == 1213 => Err(Trouble::Victim),
        // A server that is being killed may still send this.
        Err(error) => {
            round.lost(sql, &error);
            Err(Trouble::Lost)
        }
    }
}

fn numbers(client: &mut Client, sql: &str) -> Vec<Vec<i64>> {
    let rows = client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).to_text();
    let number = |text: &String| text.parse().unwrap_or_else(|_| panic!("{sql}: {text}"));
    rows.iter().map(|row| row.iter().map(number).collect()).collect()
}

fn verify(server: &Server, tellers: &mut [Teller]) {
    let mut client = server.connect();
    let mut balances: BTreeMap<u64, i64> = (0..ACCOUNTS).map(|account| (account, BALANCE)).collect();
    let mut halves: BTreeMap<u64, BTreeMap<u64, Vec<(u64, i64)>>> = BTreeMap::new();
    for row in numbers(&mut client, "SELECT teller, n, account, amount FROM bank.half") {
        let (teller, n, account, amount) = (row[0] as u64, row[1] as u64, row[2] as u64, row[3]);
        *balances.get_mut(&account).unwrap() += amount;
        halves.entry(teller).or_default().entry(n).or_default().push((account, amount));
    }
    let accounts = numbers(&mut client, "SELECT id, balance FROM bank.account ORDER BY id");
    let accounts: BTreeMap<u64, i64> = accounts.iter().map(|row| (row[0] as u64, row[1])).collect();
    assert_eq!(accounts, balances, "balances (left) and what the transfers make of them (right)");
    let by_index = "SELECT id, balance FROM bank.account WHERE balance > -1000000000";
    let by_index: BTreeMap<u64, i64> =
        numbers(&mut client, by_index).iter().map(|row| (row[0] as u64, row[1])).collect();
    assert_eq!(by_index, accounts, "accounts by the index of balances (left) and by key (right)");
    for account in 0..ACCOUNTS {
        let count = |condition: &str| format!("SELECT COUNT(*) FROM bank.half WHERE {condition}");
        let by_index = numbers(&mut client, &count(&format!("account = {account}")));
        let by_scan = numbers(&mut client, &count(&format!("account + 0 = {account}")));
        assert_eq!(by_index, by_scan, "halves of account {account} by index (left) and by scan (right)");
    }
    let mut notes: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
    let digits = "SELECT teller, n, IF(body = REPEAT(n % 10, LENGTH(body)), n % 10, 99) FROM bank.note";
    for row in numbers(&mut client, digits) {
        notes.entry(row[0] as u64).or_default().insert(row[1] as u64, row[2] as u64);
    }
    let visits = numbers(&mut client, "SELECT teller, n FROM bank.visit");
    for teller in tellers.iter_mut() {
        let visit = visits.iter().find(|row| row[0] as u64 == teller.number).map(|row| row[1] as u64);
        let halves = halves.remove(&teller.number).unwrap_or_default();
        teller.compare(&halves, &notes.remove(&teller.number).unwrap_or_default(), visit);
    }
    let highest = tellers.iter().map(|teller| teller.highest).max().unwrap_or(0);
    client.query("BEGIN").unwrap();
    let probe = "INSERT INTO bank.half VALUES (NULL, 1000, 0, 0, 0)";
    let next = client.query(probe).unwrap().last_insert_id;
    client.query("ROLLBACK").unwrap();
    assert!(next > highest, "AUTO_INCREMENT went back to {next} from {highest}");
}

#[test]
fn acknowledged_transfers_are_there_after_a_kill_and_no_half_is() {
    for target in targets(Proof::KilledTransactions) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        let mut random = random();
        let mut server = target.start(folder);
        let mut client = server.connect();
        let accounts: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
        let accounts = format!("INSERT INTO bank.account VALUES {}", accounts.join(", "));
        for sql in TABLES.iter().chain([&accounts.as_str()]) {
            client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let mut tellers: Vec<Teller> = (0..TELLERS)
            .map(|number| Teller {
                number,
                random: Random::new(random.next_u64(), 0),
                fates: Vec::new(),
                highest: 0,
            })
            .collect();
        let mut builder = Builder::new(folder);
        let mut restarts = Restarts::default();
        for _ in 0..rounds() {
            let round = Round::default();
            let socket = server.socket().to_path_buf();
            std::thread::scope(|scope| {
                for teller in &mut tellers {
                    scope.spawn(|| teller.work(&socket, &round));
                }
                scope.spawn(|| builder.work(&socket, &round));
                round.kill(server, &mut random);
            });
            server = restarts.restart(target, folder, &mut random);
            verify(&server, &mut tellers);
            builder.verify(&server);
        }
        let server = stop_and_check(target, server, folder);
        verify(&server, &mut tellers);
        builder.verify(&server);
        let fates = tellers.iter().flat_map(|teller| &teller.fates);
        let committed = fates.filter(|fate| **fate == Fate::Committed).count();
        println!("{target:?}: {} kills, {committed} transfers, {} tables", rounds(), builder.made());
        assert!(committed > 0, "no transfer was ever committed");
    }
}

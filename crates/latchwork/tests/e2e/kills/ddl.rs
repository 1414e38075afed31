//! A session that creates, fills, indexes and drops tables until the server is killed.

use super::Round;
use crate::support::PATIENCE;
use crate::support::target::{Server, connect};
use std::collections::BTreeMap;
use std::path::Path;

/// The number of tables at a time.
const TABLES: u64 = 3;
const ROWS: i64 = 500;

/// The last statement about a table, and whether it was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    /// CREATE, INSERT, CREATE INDEX, DROP.
    stage: u64,
    answered: bool,
}

const STAGES: u64 = 4;

#[derive(Debug, Default)]
pub struct Builder {
    next: u64,
    states: BTreeMap<u64, State>,
}

impl Builder {
    pub fn made(&self) -> u64 {
        self.next
    }

    pub fn work(&mut self, socket: &Path, round: &Round) {
        let Ok(mut client) = connect(socket, Some(PATIENCE)) else {
            return;
        };
        loop {
            let table = self.next;
            self.next += 1;
            let old = table.checked_sub(TABLES).filter(|old| self.states.contains_key(old));
            let stages = (0..STAGES - 1).map(|stage| (table, stage)).chain(old.map(|old| (old, STAGES - 1)));
            for (table, stage) in stages {
                self.states.insert(table, State { stage, answered: false });
                let sql = statement(table, stage);
                if let Err(error) = client.query(&sql) {
                    round.lost(&sql, &error);
                    return;
                }
                self.states.insert(table, State { stage, answered: true });
            }
        }
    }

    /// A table must be as its last statement left it, or as before if that statement was not answered. Then
    /// all tables are dropped.
    pub fn verify(&mut self, server: &Server) {
        let mut client = server.connect();
        let mut ask =
            |sql: &str| client.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).to_text();
        let mut names: Vec<String> = ask("SHOW TABLES FROM bank").into_iter().flatten().collect();
        names.retain(|name| !["account", "half", "note", "visit"].contains(&name.as_str()));
        for (table, State { stage, answered }) in std::mem::take(&mut self.states) {
            let name = format!("built{table}");
            let there = names.iter().position(|other| *other == name).map(|position| names.remove(position));
            if there.is_none() {
                let gone = stage == STAGES - 1 || (stage == 0 && !answered);
                assert!(gone, "table {name} is gone at stage {stage}, answered: {answered}");
                continue;
            }
            assert!(stage < STAGES - 1 || !answered, "table {name} is there, and was dropped");
            let rows: i64 = ask(&format!("SELECT COUNT(*) FROM bank.{name}"))[0][0].parse().unwrap();
            let sum: i64 =
                ask(&format!("SELECT COALESCE(SUM(id), 0) FROM bank.{name}"))[0][0].parse().unwrap();
            let expected =
                if rows == 0 { stage == 0 || (stage == 1 && !answered) } else { rows == ROWS && stage >= 1 };
            assert!(expected, "table {name} has {rows} rows at stage {stage}, answered: {answered}");
            assert_eq!(sum, rows * (rows - 1) / 2, "the rows of {name}");
            let indexed = ask(&format!("SHOW INDEX FROM bank.{name}")).len() > 1;
            let expected = if indexed { stage >= 2 } else { stage < 2 || (stage == 2 && !answered) };
            assert!(expected, "table {name}, index: {indexed}, at stage {stage}, answered: {answered}");
            if indexed {
                let by_index = format!("SELECT COUNT(*) FROM bank.{name} WHERE v >= 0");
                assert_eq!(ask(&by_index)[0][0], rows.to_string(), "the index of {name}");
            }
            ask(&format!("DROP TABLE bank.{name}"));
        }
        assert!(names.is_empty(), "tables that nobody made: {names:?}");
    }
}

fn statement(table: u64, stage: u64) -> String {
    match stage {
        0 => format!("CREATE TABLE bank.built{table} (id INT PRIMARY KEY, v INT NOT NULL)"),
        1 => {
            let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, {})", id * 7 % 100)).collect();
            format!("INSERT INTO bank.built{table} VALUES {}", rows.join(", "))
        }
        2 => format!("CREATE INDEX by_v ON bank.built{table} (v)"),
        _ => format!("DROP TABLE bank.built{table}"),
    }
}

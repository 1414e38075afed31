//! A session that creates tables, loads them, builds indexes, copies them in another form, empties and drops
//! them until the server is killed.

use super::Round;
use crate::support::PATIENCE;
use crate::support::target::{Server, connect};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The number of tables at a time.
const TABLES: u64 = 3;
const ROWS: i64 = 500;

/// What is done with each table, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    Create,
    /// INSERT or LOAD DATA.
    Fill,
    CreateIndex,
    /// ALTER TABLE that copies the rows.
    Copy,
    DropIndex,
    /// Of every other table.
    Truncate,
    Drop,
}

/// The last statement about a table, and whether it was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    stage: Stage,
    answered: bool,
}

impl State {
    /// Whether the effect of a stage must be there, or may be there, or must not be.
    fn has(self, stage: Stage) -> Option<bool> {
        if self.stage == stage && !self.answered { None } else { Some(self.stage >= stage) }
    }
}

fn fits(expected: Option<bool>, found: bool) -> bool {
    expected.is_none_or(|expected| expected == found)
}

#[derive(Debug)]
pub struct Builder {
    next: u64,
    states: BTreeMap<u64, State>,
    /// The rows for LOAD DATA.
    file: PathBuf,
}

impl Builder {
    /// `folder` gets a file.
    pub fn new(folder: &Path) -> Builder {
        let file = folder.join("rows");
        let rows: String = (0..ROWS).map(|id| format!("{id}\t{}\n", value(id))).collect();
        std::fs::write(&file, rows).unwrap();
        Builder { next: 0, states: BTreeMap::new(), file }
    }

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
            let stages = [Stage::Create, Stage::Fill, Stage::CreateIndex, Stage::Copy, Stage::DropIndex];
            let empties = (!table.is_multiple_of(2)).then_some(Stage::Truncate);
            let stages = stages.into_iter().chain(empties).map(|stage| (table, stage));
            for (table, stage) in stages.chain(old.map(|old| (old, Stage::Drop))) {
                self.states.insert(table, State { stage, answered: false });
                let sql = self.statement(table, stage);
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
        for (table, state) in std::mem::take(&mut self.states) {
            let name = format!("built{table}");
            let position = names.iter().position(|other| *other == name);
            let is_gone = if state.stage == Stage::Drop { state.has(Stage::Drop) } else { Some(false) };
            if position.is_none() {
                let never = state == State { stage: Stage::Create, answered: false };
                assert!(never || fits(is_gone, true), "table {name} is gone: {state:?}");
                continue;
            }
            names.retain(|other| *other != name);
            assert!(fits(is_gone, false), "table {name} is there: {state:?}");
            let rows: i64 = ask(&format!("SELECT COUNT(*) FROM bank.{name}"))[0][0].parse().unwrap();
            let sum = ask(&format!("SELECT COALESCE(SUM(id * v), 0) FROM bank.{name}"));
            let is_emptied = !table.is_multiple_of(2) && state.has(Stage::Truncate) == Some(true);
            let may_be_empty = state.has(Stage::Fill) != Some(true)
                || !table.is_multiple_of(2) && state.has(Stage::Truncate) != Some(false);
            let must_be_empty = state.has(Stage::Fill) == Some(false) || is_emptied;
            let is_expected = if rows == 0 { may_be_empty } else { rows == ROWS && !must_be_empty };
            assert!(is_expected, "table {name} has {rows} rows: {state:?}");
            let expected: i64 = (0..rows).map(|id| id * value(id)).sum();
            assert_eq!(sum, [[expected.to_string()]], "the rows of {name}: {state:?}");
            let is_copied = ask(&format!("SHOW COLUMNS FROM bank.{name}")).len() == 3;
            assert!(fits(state.has(Stage::Copy), is_copied), "table {name}, copied: {is_copied}: {state:?}");
            let indexed = ask(&format!("SHOW INDEX FROM bank.{name}")).len() > 1;
            let expected = match state.has(Stage::DropIndex) {
                Some(false) => state.has(Stage::CreateIndex),
                Some(true) => Some(false),
                None => None,
            };
            assert!(fits(expected, indexed), "table {name}, index: {indexed}: {state:?}");
            if indexed {
                let by_index = format!("SELECT COUNT(*) FROM bank.{name} WHERE v >= 0");
                assert_eq!(ask(&by_index)[0][0], rows.to_string(), "the index of {name}");
            }
            ask(&format!("DROP TABLE bank.{name}"));
        }
        assert!(names.is_empty(), "tables that nobody made: {names:?}");
    }

    fn statement(&self, table: u64, stage: Stage) -> String {
        let name = format!("bank.built{table}");
        match stage {
            Stage::Create => format!("CREATE TABLE {name} (id INT PRIMARY KEY, v INT NOT NULL)"),
            Stage::Fill if table.is_multiple_of(3) => {
                format!("LOAD DATA INFILE '{}' INTO TABLE {name}", self.file.display())
            }
            Stage::Fill => {
                let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, {})", value(id))).collect();
                format!("INSERT INTO {name} VALUES {}", rows.join(", "))
            }
            Stage::CreateIndex => format!("CREATE INDEX by_v ON {name} (v)"),
            Stage::Copy => {
                format!("ALTER TABLE {name} MODIFY v BIGINT NOT NULL, ADD COLUMN w INT NOT NULL DEFAULT 7")
            }
            Stage::DropIndex => format!("DROP INDEX by_v ON {name}"),
            Stage::Truncate => format!("TRUNCATE TABLE {name}"),
            Stage::Drop => format!("DROP TABLE {name}"),
        }
    }
}

fn value(id: i64) -> i64 {
    id * 7 % 100
}

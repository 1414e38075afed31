//! One case on two servers: tables, rows, and statements that both run.

use super::outcome::{Client, Outcome, difference, run};
use super::schema::{Schema, Table, chance, one};
use super::tree::{Protocol, Tree, text};
use base::random::Random;
use wire::client::{QueryResult, Value};
use wire::constants::{charset, kind};

/// A statement, and what is looked at behind it.
#[derive(Clone, Debug)]
pub struct Statement {
    pub tree: Tree,
    pub protocol: Protocol,
    /// The table that it changes.
    pub changes: Option<usize>,
}

/// The rows of each table, as INSERT writes them.
pub type Data = Vec<Vec<String>>;

/// The answers of both servers where they differ first.
#[derive(Clone, Debug)]
pub struct Difference {
    pub kind: String,
    pub expected: Outcome,
    pub got: Outcome,
}

/// Two sessions with the same tables.
pub struct Pair {
    pub judge: Client,
    pub server: Client,
    pub schema: Schema,
    /// What both sessions set first.
    pub settings: Vec<String>,
    /// What only the session of Latchwork sets.
    pub own_settings: Vec<String>,
    /// The types of columns are compared, too.
    pub types: bool,
    /// How MariaDB gets a statement.
    form: Form,
    /// The last statement took too long on one of them, so that there is nothing to compare.
    timed_out: bool,
}

const MODES: &[&str] = &[
    "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
    "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
    "",
    "TRADITIONAL",
    "PIPES_AS_CONCAT,ANSI_QUOTES",
    "NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES",
    "NO_UNSIGNED_SUBTRACTION",
    "HIGH_NOT_PRECEDENCE",
];

const LEVELS: &[&str] =
    &["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "REPEATABLE READ", "SERIALIZABLE"];

/// How MariaDB gets a statement, as far as it differs from how Latchwork gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Same,
    Sent(Protocol),
    OpaqueConditions,
}

/// Other forms of a statement, each with its name. They mean the same, as plans do.
const FORMS: &[(&str, Form)] = &[
    ("conditions IS TRUE", Form::OpaqueConditions),
    ("statements as text", Form::Sent(Protocol::Text)),
    ("prepared statements", Form::Sent(Protocol::Binary)),
    ("parameters", Form::Sent(Protocol::Parameters)),
];

/// Ways for MariaDB to plan a statement, each with its name. What it answers in only some of them is no
/// answer to hold another server to.
const PLANS: &[(&str, &str)] = &[
    ("derived_merge=off", "optimizer_switch = 'derived_merge=off'"),
    ("semijoin=off", "optimizer_switch = 'semijoin=off,firstmatch=off,loosescan=off'"),
    ("materialization=off", "optimizer_switch = 'materialization=off,in_to_exists=on'"),
    ("in_to_exists=off", "optimizer_switch = 'materialization=on,in_to_exists=off,semijoin=off'"),
    ("subquery_cache=off", "optimizer_switch = 'subquery_cache=off'"),
    (
        "condition_pushdown=off",
        "optimizer_switch = 'condition_pushdown_for_derived=off,condition_pushdown_for_subquery=off,\
         condition_pushdown_from_having=off'",
    ),
    ("exists_to_in=off", "optimizer_switch = 'exists_to_in=off'"),
    ("join_cache_level=0", "join_cache_level = 0"),
    ("split_materialized=off", "optimizer_switch = 'split_materialized=off'"),
    (
        "indexes=off",
        "optimizer_switch = 'index_merge=off,mrr=off,index_condition_pushdown=off,not_null_range_scan=off,\
         table_elimination=off,rowid_filter=off,extended_keys=off'",
    ),
    (
        "all=off",
        "optimizer_switch = 'derived_merge=off,semijoin=off,materialization=off,subquery_cache=off,\
         exists_to_in=off,condition_pushdown_for_derived=off,condition_pushdown_for_subquery=off,\
         condition_pushdown_from_having=off,split_materialized=off,index_merge=off,\
         orderby_uses_equalities=off,table_elimination=off'",
    ),
];

/// The parts of TRADITIONAL that MariaDB applies to some uses of a value and not to others, and its other
/// parts.
const ZERO_DATES: &str = "NO_ZERO_DATE and NO_ZERO_IN_DATE";
const TRADITIONAL: &str = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,\
                           NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION";

/// Which joins the planner may not choose, and how small the buffers are.
const OWN_SETTINGS: &[&str] = &[
    "optimizer_switch = ''",
    "optimizer_switch = 'merge_join=off,hash_join=off'",
    "optimizer_switch = 'nested_loop_join=off,hash_join=off'",
    "optimizer_switch = 'nested_loop_join=off,merge_join=off'",
    "sort_buffer_size = 1024, join_buffer_size = 128, tmp_memory_table_size = 0",
];

impl Pair {
    /// Draws settings and tables, makes them on both servers, and fills them.
    ///
    /// # Errors
    /// If a server refuses what it should take.
    pub fn new(judge: Client, server: Client, schema: Schema, random: &mut Random) -> Result<Pair, String> {
        let settings = vec![
            format!("SET sql_mode = '{}'", one(random, MODES)),
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", one(random, LEVELS)),
            "SET time_zone = '+00:00', timestamp = 1700000000".to_owned(),
            // A join of joins can go on for hours.
            "SET max_statement_time = 10".to_owned(),
        ];
        let own_settings = vec![format!("SET {}", one(random, OWN_SETTINGS))];
        let mut pair = Pair {
            judge,
            server,
            schema,
            settings,
            own_settings,
            types: false,
            form: Form::Same,
            timed_out: false,
        };
        for statement in ["DROP DATABASE IF EXISTS fuzz", "CREATE DATABASE fuzz", "USE fuzz"] {
            pair.both(statement)?;
        }
        for statement in pair.settings.clone() {
            pair.both(&statement)?;
        }
        for statement in pair.own_settings.clone() {
            pair.server.query(&statement).map_err(|error| format!("{statement}: {error}"))?;
        }
        // Its cache of subqueries takes values for the same that the subquery tells apart.
        pair.judge.query("SET optimizer_switch = 'subquery_cache=off'").map_err(|error| error.to_string())?;
        for table in pair.schema.tables.clone() {
            pair.both(&table.create())?;
        }
        Ok(pair)
    }

    /// Runs a statement that both must take.
    fn both(&mut self, statement: &str) -> Result<(), String> {
        for client in [&mut self.judge, &mut self.server] {
            client.query(statement).map_err(|error| format!("{statement}: {error}"))?;
        }
        Ok(())
    }

    /// Runs a statement and compares; what it changes is taken back, or kept if there is no difference.
    ///
    /// # Errors
    /// If a server does not begin or end a transaction.
    pub fn compare(&mut self, statement: &Statement, keep: bool) -> Result<Option<Difference>, String> {
        let Some(table) = statement.changes else {
            return Ok(self.step(&statement.tree, statement.protocol));
        };
        self.both("BEGIN")?;
        let mut found = self.step(&statement.tree, statement.protocol);
        if matches!(found, Some(Difference { got: Outcome::Lost(_), .. })) {
            return Ok(found);
        }
        let timed_out = self.timed_out;
        if found.is_none() && !timed_out {
            let rows = text(format!("SELECT * FROM {}", self.schema.tables[table].name));
            found = self
                .step(&rows, Protocol::Text)
                .map(|found| Difference { kind: format!("changed {}", found.kind), ..found });
        }
        let keeps = keep && found.is_none() && !timed_out;
        self.both(if keeps { "COMMIT" } else { "ROLLBACK" })?;
        Ok(found)
    }

    /// What of MariaDB's settings makes the two agree, if that is a choice of plans.
    ///
    /// # Errors
    /// If a server refuses what it should take.
    pub fn excuse(&mut self, statement: &Statement) -> Result<Option<&'static str>, String> {
        for (name, setting) in PLANS {
            let agrees = self.agrees_with(statement, setting)?;
            self.judge("SET optimizer_switch = DEFAULT, join_cache_level = DEFAULT")?;
            if agrees {
                return Ok(Some(name));
            }
        }
        for (name, form) in FORMS {
            self.form = *form;
            let found = self.compare(statement, false);
            self.form = Form::Same;
            if found?.is_none_or(|found| found.kind.ends_with(": digits")) && !self.timed_out {
                return Ok(Some(name));
            }
        }
        let mode = self.settings[0].clone();
        if !mode.contains("TRADITIONAL") {
            return Ok(None);
        }
        let agrees = self.agrees_with(statement, &format!("sql_mode = '{TRADITIONAL}'"))?;
        self.judge(&mode)?;
        Ok(agrees.then_some(ZERO_DATES))
    }

    fn agrees_with(&mut self, statement: &Statement, setting: &str) -> Result<bool, String> {
        self.judge(&format!("SET {setting}"))?;
        let found = self.compare(statement, false)?;
        Ok(!self.timed_out && found.is_none_or(|found| found.kind.ends_with(": digits")))
    }

    fn judge(&mut self, setting: &str) -> Result<(), String> {
        self.judge.query(setting).map(drop).map_err(|error| format!("MariaDB, {setting}: {error}"))
    }

    fn step(&mut self, tree: &Tree, protocol: Protocol) -> Option<Difference> {
        let expected = match self.form {
            Form::Same => run(&mut self.judge, tree, protocol),
            Form::Sent(protocol) => run(&mut self.judge, tree, protocol),
            Form::OpaqueConditions => run(&mut self.judge, &tree.with_opaque_conditions(), protocol),
        };
        let got = run(&mut self.server, tree, protocol);
        self.timed_out = expected.is_timeout() || got.is_timeout();
        let kind = difference(tree, &expected, &got, self.types)?;
        Some(Difference { kind, expected, got })
    }

    /// Compares on other rows than those that are there.
    ///
    /// # Errors
    /// If a server does not take the rows.
    pub fn compare_on(&mut self, data: &Data, statement: &Statement) -> Result<Option<Difference>, String> {
        self.both("BEGIN")?;
        for (table, rows) in self.schema.tables.clone().iter().zip(data) {
            self.both(&format!("DELETE FROM {}", table.name))?;
            if let Some(insert) = insert(table, rows) {
                self.both(&insert)?;
            }
        }
        let mut found = self.step(&statement.tree, statement.protocol);
        let lost = matches!(found, Some(Difference { got: Outcome::Lost(_), .. }));
        if let (None, false, Some(table)) = (&found, self.timed_out, statement.changes) {
            let rows = text(format!("SELECT * FROM {}", self.schema.tables[table].name));
            found = self
                .step(&rows, Protocol::Text)
                .map(|found| Difference { kind: format!("changed {}", found.kind), ..found });
        }
        if !lost {
            self.both("ROLLBACK")?;
        }
        Ok(found)
    }

    /// The rows that are in the tables now.
    ///
    /// # Errors
    /// If MariaDB does not give them.
    pub fn data(&mut self) -> Result<Data, String> {
        let mut data = Vec::new();
        for table in &self.schema.tables {
            let rows = self.judge.query(&format!("SELECT * FROM {}", table.name));
            data.push(literals(&rows.map_err(|error| error.to_string())?));
        }
        Ok(data)
    }

    /// A script that makes the tables, fills them and runs the statement.
    pub fn script(&self, data: &Data, statement: &Statement) -> String {
        let mut script = String::new();
        for setting in self.settings.iter().chain(&self.own_settings) {
            script += &format!("{setting};\n");
        }
        let written = statement.tree.to_text();
        for (table, rows) in self.schema.tables.iter().zip(data) {
            if written.contains(&table.name) {
                script += &format!("{};\n", table.create());
                script += &insert(table, rows).map(|insert| insert + ";\n").unwrap_or_default();
            }
        }
        match statement.protocol {
            Protocol::Text => script + &format!("{written};\n"),
            Protocol::Binary => script + &format!("-- prepared\n{written};\n"),
            Protocol::Parameters => {
                let prepared = statement.tree.write(statement.protocol).text;
                script + &format!("-- prepared as {prepared}\n{written};\n")
            }
        }
    }
}

/// Draws how a statement is sent.
pub fn draw_protocol(random: &mut Random) -> Protocol {
    match chance(random, 3) {
        true => *one(random, &[Protocol::Binary, Protocol::Parameters]),
        false => Protocol::Text,
    }
}

/// The rows as they are, whatever the mode says of them.
fn insert(table: &Table, rows: &[String]) -> Option<String> {
    (!rows.is_empty()).then(|| format!("INSERT IGNORE INTO {} VALUES {}", table.name, rows.join(", ")))
}

fn literals(result: &QueryResult) -> Vec<String> {
    let literal = |(value, column): (&Value, &wire::client::OwnedColumn)| {
        let is_number = matches!(
            column.wire_type.kind,
            kind::TINY
                | kind::SHORT
                | kind::INT24
                | kind::LONG
                | kind::LONGLONG
                | kind::NEWDECIMAL
                | kind::DOUBLE
                | kind::FLOAT
                | kind::YEAR
        );
        match value {
            Value::Null => "NULL".to_owned(),
            Value::Bytes(bytes) if column.charset == charset::BINARY && is_string(column.wire_type.kind) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("x'{digits}'")
            }
            value if is_number => value.to_text(),
            value => format!("'{}'", value.to_text().replace('\'', "''")),
        }
    };
    let row = |row: &Vec<Value>| {
        let values: Vec<String> = row.iter().zip(&result.columns).map(literal).collect();
        format!("({})", values.join(", "))
    };
    result.rows.iter().map(row).collect()
}

fn is_string(of: u8) -> bool {
    matches!(of, kind::STRING | kind::VAR_STRING | kind::VARCHAR | kind::BLOB | kind::TINY_BLOB)
}

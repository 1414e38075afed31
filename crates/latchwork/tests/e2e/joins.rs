//! Random joins and subqueries: every join method gives MariaDB's rows.

use crate::support::transcript::{self, SelectWarnings, Step};
use crate::support::{Latchwork, MariaDb, have, mariadb};
use base::random::Random;

/// The methods that are switched off in turn.
const SWITCHES: [&str; 4] = [
    "",
    "merge_join=off,hash_join=off",
    "nested_loop_join=off,hash_join=off",
    "nested_loop_join=off,merge_join=off",
];

/// Tables whose columns have the same names and almost the same types. They have primary keys of one and two
/// parts, secondary and unique indexes, or no index.
const TABLES: [&str; 5] = [
    "CREATE TABLE t1 (id INT NOT NULL PRIMARY KEY, a INT, b INT, s VARCHAR(10), KEY a (a), KEY s (s))",
    "CREATE TABLE t2 (a INT NOT NULL, id INT NOT NULL, b INT, s VARCHAR(10), PRIMARY KEY (a, id), KEY b (b))",
    "CREATE TABLE t3 (id INT, b BIGINT UNSIGNED, a SMALLINT, s VARCHAR(10), UNIQUE KEY id (id), KEY ab (a, b))",
    "CREATE TABLE t4 (s VARCHAR(10), a INT, b DECIMAL(6,1), id INT)",
    "CREATE TABLE t5 (id INT NOT NULL PRIMARY KEY, s VARCHAR(10) COLLATE utf8mb4_bin, a DOUBLE, b INT, KEY s (s, a))",
];

const COLUMNS: [&str; 4] = ["id", "a", "b", "s"];

/// The queries of a round. `LATCHWORK_JOIN_ROUNDS` asks for more rounds, and `LATCHWORK_JOIN_SEED` for other
/// queries.
const QUERIES: usize = 250;

struct Generator {
    random: Random,
    aliases: usize,
}

impl Generator {
    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.random.index(of.len())]
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random.below(of) == 0
    }

    fn rows(&mut self, table: usize) -> String {
        let count = [9, 14, 12, 8, 11][table];
        let mut values = Vec::new();
        for nth in 0..count {
            let number = |generator: &mut Generator, nullable: bool| match generator.random.below(8) {
                0 if nullable => "NULL".to_string(),
                _ => generator.random.below(7).to_string(),
            };
            let text = match self.random.below(6) {
                0 => "NULL",
                1 => "'a'",
                2 => "'A'",
                3 => "'b '",
                4 => "'2'",
                _ => "'5x'",
            };
            let (a, b) = (number(self, table != 1), number(self, true));
            values.push(match table {
                0 => format!("({nth}, {a}, {b}, {text})"),
                1 => format!("({a}, {nth}, {b}, {text})"),
                2 => {
                    format!("({}, {b}, {a}, {text})", if nth == 3 { "NULL".into() } else { nth.to_string() })
                }
                3 => format!("({text}, {a}, {b}, {})", number(self, true)),
                _ => format!("({nth}, {text}, {a}, {b})"),
            });
        }
        format!("INSERT INTO t{} VALUES {}", table + 1, values.join(", "))
    }

    fn script(&mut self) -> String {
        let mut script = String::new();
        for (table, create) in TABLES.iter().enumerate() {
            script += &format!("DROP TABLE IF EXISTS t{};\n{create};\n{};\n", table + 1, self.rows(table));
        }
        script += "ANALYZE TABLE t1, t2, t3, t4, t5;\n";
        for _ in 0..QUERIES {
            self.aliases = 0;
            let query = self.query();
            script += &format!("{query};\n");
        }
        script
    }

    /// A table or a derived one, and its alias.
    fn table(&mut self) -> (String, String) {
        self.aliases += 1;
        let alias = format!("x{}", self.aliases);
        let table = self.random.below(5) + 1;
        let table = match self.random.below(8) {
            0 => format!("(SELECT id, a, b, s FROM t{table} WHERE a IS NOT NULL) {alias}"),
            1 => format!(
                "(SELECT a, MAX(id) AS id, COUNT(*) AS b, MIN(s) AS s FROM t{table} GROUP BY a) {alias}"
            ),
            _ => format!("t{table} {alias}"),
        };
        (table, alias)
    }

    fn column(&mut self, aliases: &[String]) -> String {
        let alias = &aliases[self.random.index(aliases.len())];
        format!("{alias}.{}", self.one(&COLUMNS))
    }

    /// Joined tables: the text, and the aliases in it. NATURAL and USING come alone, because the columns that
    /// they merge would make the other references ambiguous.
    fn from(&mut self, tables: usize) -> (String, Vec<String>) {
        let (mut text, alias) = self.table();
        let mut aliases = vec![alias];
        while aliases.len() < tables {
            let nested = tables - aliases.len() >= 2 && self.chance(4);
            let (right, others) = if nested {
                let (inner, aliases) = self.from(2);
                (format!("({inner})"), aliases)
            } else {
                let (table, alias) = self.table();
                (table, vec![alias])
            };
            let join = self.one(&[
                "JOIN",
                "LEFT JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "INNER JOIN",
                "CROSS JOIN",
                "STRAIGHT_JOIN",
            ]);
            let (left, right_column) = (self.column(&aliases), self.column(&others));
            let same = self.one(&COLUMNS);
            let mut on = match self.random.below(4) {
                0 => format!("{left} = {right_column}"),
                _ => {
                    let of = |aliases: &[String]| aliases[aliases.len() - 1].clone();
                    format!("{}.{same} = {}.{same}", of(&others), of(&aliases))
                }
            };
            aliases.extend(others);
            if self.chance(4) {
                on = format!("{on} AND {}", self.condition(&aliases, 0));
            }
            text = format!("{text} {join} {right} ON {on}");
        }
        (text, aliases)
    }

    fn condition(&mut self, aliases: &[String], depth: u32) -> String {
        let left = self.column(aliases);
        match self.random.below(if depth > 0 { 13 } else { 7 }) {
            0 => format!("{left} IS NULL"),
            1 => format!("{left} IS NOT NULL"),
            2 => format!("{left} {} {}", self.one(&["<", ">", "<>", ">=", "<=>"]), self.random.below(6)),
            3 => format!("{left} IN (1, 3, {})", self.column(aliases)),
            4 => format!("{left} {} {}", self.one(&["=", "<=>", "<", "="]), self.column(aliases)),
            5 => {
                let or = self.condition(aliases, 0);
                format!("({left} = {} OR {or})", self.random.below(6))
            }
            6 => format!("COALESCE({left}, 3) = {}", self.random.below(5)),
            7 | 8 => {
                let not = self.one(&["", "NOT "]);
                format!("{left} {not}IN ({})", self.subquery(aliases, "", depth - 1))
            }
            9 | 10 => {
                let not = self.one(&["", "NOT "]);
                format!("{not}EXISTS ({})", self.subquery(aliases, "", depth - 1))
            }
            _ => {
                let function = self.one(&["MAX", "MIN", "COUNT", "SUM"]);
                let op = self.one(&["=", "<", ">="]);
                format!("{left} {op} ({})", self.subquery(aliases, function, depth - 1))
            }
        }
    }

    fn subquery(&mut self, outer: &[String], function: &str, depth: u32) -> String {
        let tables = 1 + self.random.below(2) as usize;
        let (from, own) = self.from(tables);
        let column = self.column(&own);
        let mut conditions = Vec::new();
        if !self.chance(3) {
            let (left, right) = (self.column(&own), self.column(outer));
            conditions.push(format!("{left} {} {right}", self.one(&["=", "=", "=", "<", "<=>"])));
        }
        if self.chance(2) {
            let all: Vec<String> = own.iter().chain(outer).cloned().collect();
            conditions.push(self.condition(&all, depth));
        }
        let condition = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        match function {
            "" => format!("SELECT {column} FROM {from}{condition}"),
            function => format!("SELECT {function}({column}) FROM {from}{condition}"),
        }
    }

    fn query(&mut self) -> String {
        if self.chance(10) {
            return self.merged_columns();
        }
        let tables = [1, 2, 2, 2, 3, 3, 4, 5][self.random.below(8) as usize];
        let (from, aliases) = if self.chance(5) {
            let all: Vec<(String, String)> = (0..tables).map(|_| self.table()).collect();
            let (texts, aliases): (Vec<String>, Vec<String>) = all.into_iter().unzip();
            (texts.join(", "), aliases)
        } else {
            self.from(tables)
        };
        let mut conditions = Vec::new();
        for _ in 0..self.random.below(3) {
            conditions.push(self.condition(&aliases, 2));
        }
        if from.contains(", x") || (tables > 3 && self.chance(2)) || !from.contains(" JOIN ") && tables > 1 {
            for pair in aliases.windows(2) {
                let column = self.one(&COLUMNS);
                conditions.push(format!("{}.{column} = {}.{column}", pair[0], pair[1]));
            }
        }
        let condition = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        match self.random.below(6) {
            0 => format!("SELECT COUNT(*) FROM {from}{condition}"),
            1 => {
                let key = self.column(&aliases);
                let value = self.column(&aliases);
                format!(
                    "SELECT {key} IS NULL AS n, COUNT(*), COUNT({value}) FROM {from}{condition} GROUP BY {key} IS NULL"
                )
            }
            2 => {
                let value = self.subquery(&aliases, "MAX", 1);
                let column = self.column(&aliases);
                format!("SELECT {column} + 0 AS c, ({value}) + 0 AS m FROM {from}{condition}")
            }
            3 => {
                let column = self.column(&aliases);
                format!("SELECT DISTINCT {column} + 0 AS c FROM {from}{condition}")
            }
            _ => {
                let columns: Vec<String> =
                    aliases.iter().map(|alias| format!("{alias}.{}", self.one(&COLUMNS))).collect();
                format!("SELECT {} FROM {from}{condition}", columns.join(", "))
            }
        }
    }

    /// NATURAL and USING, whose columns `*` shows.
    fn merged_columns(&mut self) -> String {
        let tables: Vec<String> = (0..2 + self.random.below(2)).map(|_| self.table().0).collect();
        let mut text = tables[0].clone();
        for table in &tables[1..] {
            let join = self.one(&[
                " NATURAL JOIN ",
                " NATURAL LEFT JOIN ",
                " NATURAL RIGHT JOIN ",
                " JOIN ",
                " LEFT JOIN ",
                " RIGHT JOIN ",
            ]);
            let using = match join.starts_with(" NATURAL") {
                true => String::new(),
                false => format!(" USING ({})", self.one(&["id", "a", "a, id", "s", "b, a", "s, id, a, b"])),
            };
            text = format!("{text}{join}{table}{using}");
        }
        let what = self.one(&["*", "*", "COUNT(*)", "a", "id, s", "x1.*", "x2.a, x1.b"]);
        let condition = self.one(&["", "", " WHERE a > 2", " WHERE id IS NULL", " WHERE x2.id < 4"]);
        format!("SELECT {what} FROM {text}{condition}")
    }
}

/// What is compared: the rows in any order, or the number of the error.
fn comparable(step: &Step) -> Vec<String> {
    let text = step.comparable(SelectWarnings::Ignored);
    let line = |line: &str| match line.strip_prefix("ERROR ") {
        Some(error) => error.split_whitespace().next().unwrap_or_default().to_string(),
        None => line.to_string(),
    };
    let mut lines: Vec<String> = text.lines().map(line).filter(|line| !line.is_empty()).collect();
    lines.sort();
    lines
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn random_joins_give_mariadbs_rows_by_every_method() {
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let (rounds, seed) = (number("LATCHWORK_JOIN_ROUNDS", 2), number("LATCHWORK_JOIN_SEED", 1));
    let (mut compared, mut report) = (0, String::new());
    // MariaDB's subquery cache treats parameters as equal that the subquery distinguishes: 'a' and 'A' next
    // to a column of a binary collation.
    judge.sql("SET GLOBAL optimizer_switch = 'subquery_cache=off'; CREATE DATABASE corpus");
    server.sql("CREATE DATABASE corpus");
    for round in seed..seed + rounds {
        let script = Generator { random: Random::new(round, 0), aliases: 0 }.script();
        let expected = transcript::run(&judge.socket, "corpus", &script);
        for switches in SWITCHES {
            server.sql(&format!("SET GLOBAL optimizer_switch = '{switches}'"));
            let got = transcript::run(&server.socket, "corpus", &script);
            assert_eq!(expected.len(), got.len(), "seed {round}: the client lost its way");
            for (expected, got) in expected.iter().zip(&got) {
                assert_eq!(expected.statement, got.statement);
                let selects = expected.statement.starts_with("SELECT");
                compared += usize::from(selects);
                if selects && comparable(expected) != comparable(got) {
                    report += &format!(
                        "\n[seed {round}, {switches}] {}\n--- MariaDB\n{}\n--- Latchwork\n{}\n",
                        expected.statement, expected.outcome, got.outcome
                    );
                }
            }
        }
    }
    println!("{compared} statements compared");
    let count = report.matches("\n[seed").count();
    assert!(report.is_empty(), "{count} of {compared} statements:\n{report}");
}

/// Tables of several leaves, with gaps in their keys, NULLs, negative numbers, and keys of different widths
/// and signs.
fn tables_of_numbers() -> String {
    let mut random = Random::new(7, 0);
    let mut script = String::new();
    let creates = [
        "CREATE TABLE T1 (i INT PRIMARY KEY, j INT, c CHAR(60) NOT NULL DEFAULT 'x')",
        "CREATE TABLE T2 (i INT PRIMARY KEY, j INT, c CHAR(60) NOT NULL DEFAULT 'y', KEY jx (j))",
        "CREATE TABLE T3 (i BIGINT PRIMARY KEY, j SMALLINT UNSIGNED, k TINYINT NOT NULL)",
        "CREATE TABLE T4 (a INT UNSIGNED, i INT, j MEDIUMINT, PRIMARY KEY (a, i), KEY ij (i, j))",
    ];
    for (table, create) in creates.iter().enumerate() {
        script += &format!("DROP TABLE IF EXISTS T{};\n{create};\n", table + 1);
        let mut rows = Vec::new();
        let mut key: i64 = if table == 3 { 0 } else { -40 };
        for _ in 0..1_500 {
            key += 1 + random.below(4) as i64 * random.below(2) as i64;
            let j = match random.below(9) {
                0 => "NULL".to_string(),
                _ => random.below(900).to_string(),
            };
            rows.push(match table {
                0 | 1 => format!("({key}, {j}, 'c{}')", random.below(50)),
                2 => format!("({key}, {j}, {})", random.below(5)),
                _ => format!("({key}, {}, {j})", random.below(700)),
            });
        }
        script += &format!("INSERT INTO T{} VALUES {};\n", table + 1, rows.join(", "));
    }
    script += "DELETE FROM T2 WHERE i BETWEEN 300 AND 420;\nANALYZE TABLE T1, T2, T3, T4;\n";
    script
}

/// Relatives of `SELECT COUNT(*) FROM T1, T2 WHERE T1.j > 0 AND T1.i = T2.i`.
const RELATIVES: &str = include_str!("sql/join_relatives.sql");

#[test]
fn the_published_join_and_its_relatives_give_mariadbs_rows_by_every_method() {
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    judge.sql("CREATE DATABASE corpus");
    server.sql("CREATE DATABASE corpus");
    let script = tables_of_numbers() + RELATIVES;
    let expected = transcript::run(&judge.socket, "corpus", &script);
    let mut report = String::new();
    for switches in SWITCHES {
        server.sql(&format!("SET GLOBAL optimizer_switch = '{switches}'"));
        let got = transcript::run(&server.socket, "corpus", &script);
        assert_eq!(expected.len(), got.len(), "the client lost its way");
        for (expected, got) in expected.iter().zip(&got) {
            // Every ORDER BY is by a key.
            let is_same = match expected.statement.contains("ORDER BY") {
                true => {
                    expected.comparable(SelectWarnings::Ignored) == got.comparable(SelectWarnings::Ignored)
                }
                false => comparable(expected) == comparable(got),
            };
            if expected.statement.starts_with("SELECT") && !is_same {
                report += &format!(
                    "\n[{switches}] {}\n--- MariaDB\n{}\n--- Latchwork\n{}\n",
                    expected.statement, expected.outcome, got.outcome
                );
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

//! LOAD DATA: generated files against MariaDB, other clients, killed connections, and a killed server.

use crate::support::random::Random;
use crate::support::{Latchwork, MariaDb, have, mariadb, transcript};
use std::fmt::Write as _;
use std::path::Path;

/// How many files are generated, each with a table and a format of its own.
const CASES: u64 = 400;

/// Columns, and values that fit them, mostly.
const COLUMNS: &[(&str, &[&str])] = &[
    ("INT NOT NULL", &["0", "1", "-7", "1000", "12a"]),
    ("INT", &["5", "+3", " 4 ", "1e3", "1.5", "99999999999", ""]),
    ("INT NOT NULL DEFAULT 7", &["1", "007", "x"]),
    ("TINYINT", &["1", "-128", "200", "127"]),
    ("BIGINT UNSIGNED", &["18446744073709551615", "1", "-1", "99999999999999999999"]),
    ("VARCHAR(6)", &["a", "word", "longer than six", "", "q\"q", "nn\u{e9}n", "trailing  "]),
    ("VARCHAR(6) NOT NULL DEFAULT 'dflt'", &["a", "b b", "", "NULL"]),
    ("CHAR(3)", &["abc", "x ", "abcd", ""]),
    ("TEXT", &["some text", "tab\there", "line\nline", "\\"]),
    ("VARBINARY(5)", &["bytes", "morebytes", "\u{e9}"]),
    ("DOUBLE", &["1.5", "1e300", "-0.25", "nan"]),
    ("DECIMAL(6,2)", &["1.25", "-3", "1.255", "123456", "x1"]),
    ("DATE", &["2024-02-29", "20240229", "2023-02-29", "", "0000-00-00"]),
    ("DATETIME", &["2024-02-29 12:30:00", "2024-02-29", "noon"]),
    ("TIMESTAMP NULL", &["2024-02-29 12:30:00", "2024-03-01 01:02:03.9"]),
    ("TIME", &["10:11:12", "-1:00"]),
    ("YEAR", &["2024", "70", "1"]),
];

/// Those that take more than one view of a value that is not meant for them (decimals, dates) begin here.
const PARTICULAR_FROM: usize = 11;

/// Marks of fields and lines: ends of fields, quotes, escapes, starts and ends of lines.
#[derive(Clone, Copy, Debug)]
struct Marks {
    clause: &'static str,
    field: &'static str,
    quote: &'static str,
    escape: &'static str,
    start: &'static str,
    line: &'static str,
}

const fn marks(
    clause: &'static str,
    field: &'static str,
    quote: &'static str,
    escape: &'static str,
    start: &'static str,
    line: &'static str,
) -> Marks {
    Marks { clause, field, quote, escape, start, line }
}

const MARKS: &[Marks] = &[
    marks("", "\t", "", "\\", "", "\n"),
    marks("FIELDS TERMINATED BY ','", ",", "", "\\", "", "\n"),
    marks("FIELDS TERMINATED BY ',' ENCLOSED BY '\"'", ",", "\"", "\\", "", "\n"),
    marks(
        "COLUMNS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\\r\\n'",
        ",",
        "\"",
        "",
        "",
        "\r\n",
    ),
    marks("FIELDS TERMINATED BY ';' ENCLOSED BY '\"' ESCAPED BY '\"'", ";", "\"", "\"", "", "\n"),
    marks(
        "FIELDS TERMINATED BY '||' ENCLOSED BY '''' LINES STARTING BY '>>' TERMINATED BY '<br>\\n'",
        "||",
        "'",
        "\\",
        ">>",
        "<br>\n",
    ),
    marks("FIELDS TERMINATED BY 'ab' ESCAPED BY '!' LINES TERMINATED BY 'abc'", "ab", "", "!", "", "abc"),
    marks("FIELDS TERMINATED BY ',' LINES TERMINATED BY ''", ",", "", "\\", "", ""),
    marks("FIELDS TERMINATED BY ',' LINES TERMINATED BY ','", ",", "", "\\", "", ","),
    marks("FIELDS TERMINATED BY '' ENCLOSED BY ''", "", "", "\\", "", "\n"),
    marks("FIELDS TERMINATED BY '' ENCLOSED BY '' LINES TERMINATED BY ''", "", "", "\\", "", ""),
    marks("FIELDS TERMINATED BY ',' ENCLOSED BY '\"' LINES STARTING BY 'x'", ",", "\"", "\\", "x", "\n"),
];

struct Case {
    statements: String,
    file: Vec<u8>,
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// A table, a file of rows for it, most of them right, and the statements that load it.
fn case(seed: u64, path: &Path) -> Case {
    let random = &mut Random::new(seed);
    let marks = pick(random, MARKS);
    let fixed = marks.field.is_empty();
    // How a number becomes a date is another matter: they get what is meant for them.
    let lines = !marks.line.is_empty() && marks.line != marks.field && !fixed;
    let (plain, _) = COLUMNS.split_at(PARTICULAR_FROM);
    let columns: Vec<_> = (0..1 + random.below(5))
        .map(|number| pick(random, if lines && number > 0 { COLUMNS } else { plain }))
        .collect();
    let mut table = String::new();
    // Without lines fields move, and a generated number may follow the largest.
    let key = if lines { random.below(4) } else { 1 + random.below(3) };
    for (number, (kind, _)) in columns.iter().enumerate() {
        write!(table, "c{number} {kind}, ").unwrap();
    }
    table += match key {
        0 => "k INT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        1 => "k INT NOT NULL PRIMARY KEY",
        2 => "k INT, UNIQUE KEY by_k (k), KEY by_first (c0)",
        _ => "k INT",
    };
    if table.contains("TEXT") {
        table = table.replace(", KEY by_first (c0)", "");
    }
    let mut file = String::new();
    let rows = random.below(12);
    for row in 0..rows {
        if !marks.start.is_empty() {
            file += pick(random, &["", "", "junk", "more\njunk"]);
            file += marks.start;
        }
        let wanted = columns.len() + 1;
        let fields = match random.below(12) {
            0 => wanted - 1,
            1 => wanted + 1,
            _ => wanted,
        };
        for number in 0..fields {
            if number > 0 {
                file += marks.field;
            }
            let value = match columns.get(number) {
                Some((_, values)) => pick(random, values).to_string(),
                // Keys, some of them twice.
                None => random.below(2 * rows).to_string(),
            };
            match random.below(14) {
                0 => file += &format!("{}N", marks.escape),
                1 => file += "NULL",
                2 => file += &format!("{}{}t", value, marks.escape),
                3 => file += &format!("{0}{1}{0}", marks.quote, value),
                4 => file += &format!("{0}{1}{0}{0}{2}{0}", marks.quote, value, marks.field),
                5 => file += &format!("{0}{1}", marks.quote, value),
                6 => file += &format!("{0}x{0}y", marks.quote),
                7 => file += &format!("{}{}{}", value, marks.escape, marks.line),
                8 if fixed => file += &format!("{value:<11}"),
                _ => file += &value,
            }
        }
        let last = row + 1 == rows;
        if !last || random.below(3) > 0 {
            file += marks.line;
        }
    }
    let local = if random.below(2) == 0 { "LOCAL " } else { "" };
    let mode = pick(random, &["", "", "", "REPLACE ", "IGNORE "]);
    let skip = pick(random, &["", "", "", "IGNORE 1 LINES", "IGNORE 2 ROWS", "IGNORE 99 LINES"]);
    let names: Vec<String> = (0..columns.len()).map(|number| format!("c{number}")).collect();
    let names = names.join(", ");
    let list = match random.below(6) {
        0 => format!("({names})"),
        1 => "(c0)".to_string(),
        2 if !fixed => format!("({names}, @k) SET k = LENGTH(@k)"),
        3 if !fixed => "(@first, @second) SET c0 = @second, k = LENGTH(@first)".to_string(),
        _ => String::new(),
    };
    let sql_mode = pick(random, &["STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES", ""]);
    let statements = format!(
        "SET sql_mode = '{sql_mode}';\nDROP TABLE IF EXISTS t;\nCREATE TABLE t ({table});\n\
         LOAD DATA {local}INFILE '{}' {mode}INTO TABLE t CHARACTER SET utf8mb4 {} {skip} {list};\n\
         SELECT * FROM t ORDER BY k, {names};\nSELECT ROW_COUNT(), LAST_INSERT_ID() > 0;\n",
        path.display(),
        marks.clause,
    );
    Case { statements, file: file.into_bytes() }
}

/// What is compared: of a statement that failed only its first error, for MariaDB tells further ones of the same row.
fn outcome(step: &transcript::Step) -> String {
    let error = step.outcome.lines().find(|line| line.starts_with("ERROR"));
    match error {
        Some(error) => error.split(" at line ").next().unwrap_or_default().to_string() + &told(error),
        None => step.outcome.clone(),
    }
}

fn told(error: &str) -> String {
    error.split_once(": ").map_or(String::new(), |(_, told)| format!(": {told}"))
}

#[test]
fn generated_files_are_loaded_as_mariadb_loads_them() {
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let first = std::env::var("LATCHWORK_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = first.map_or(0..CASES, |seed| seed..seed + 1);
    let mut script = String::new();
    for seed in seeds {
        let path = scratch.path().join(format!("case-{seed}"));
        let case = case(seed, &path);
        std::fs::write(&path, &case.file).unwrap();
        script += &case.statements;
    }
    let create = "CREATE DATABASE corpus CHARACTER SET utf8mb4";
    judge.sql(create);
    server.sql(create);
    let expected = transcript::run(&judge.socket, "corpus", &script);
    let got = transcript::run(&server.socket, "corpus", &script);
    assert_eq!(expected.len(), got.len());
    let mut report = String::new();
    let (mut loads, mut differ, mut table) = (0, 0, "");
    for (expected, got) in expected.iter().zip(&got) {
        assert_eq!(expected.statement, got.statement);
        if expected.statement.starts_with("CREATE TABLE") {
            table = &expected.statement;
        }
        loads += usize::from(expected.statement.starts_with("LOAD"));
        let (wanted, found) = (outcome(expected), outcome(got));
        if wanted != found {
            differ += 1;
            writeln!(report, "\n{table}\n{}\n--- MariaDB\n{wanted}\n--- Latchwork\n{found}", got.statement)
                .unwrap();
        }
    }
    assert!(loads > 0);
    assert!(differ == 0, "{differ} of {loads} loads:\n{report}");
}

//! LOAD DATA: generated files against MariaDB, other clients, killed connections, and a killed server.

use crate::support::{Latchwork, MariaDb, client, have, mariadb, python, text, transcript, wait_until};
use base::random::Random;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How many files are generated, each with a table and a format of its own.
const CASES: u64 = 400;

/// Cases in which Latchwork reads the same fields as MariaDB, but takes a value of one differently.
const DIFFERENT: &[(u64, &str)] = &[
    (45, "a character cut by a fixed width is told as no character, not as a cut"),
    (172, "numbers that AUTO_INCREMENT has used up end the statement, IGNORE or not"),
    (264, "a decimal that is rounded and cut is told of once"),
    (301, "a date with more behind it than a time is told of as an error in one more case"),
];

/// Columns, and values most of which fit them.
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

/// From here on are the types that can take a value not meant for them in more than one way (decimals,
/// dates).
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

/// A remainder, which makes each number of a case the case that [`DIFFERENT`] names.
fn below(random: &mut Random, bound: u64) -> u64 {
    random.next_u64() % bound
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[below(random, of.len() as u64) as usize]
}

/// A table, a file of rows for it, most of them right, and the statements that load it.
fn case(seed: u64, path: &Path) -> Case {
    let random = &mut Random::of_state(seed);
    let marks = pick(random, MARKS);
    let fixed = marks.field.is_empty();
    // How a number becomes a date is not tested here, so these columns get only values meant for them.
    let lines = !marks.line.is_empty() && marks.line != marks.field && !fixed;
    let (plain, _) = COLUMNS.split_at(PARTICULAR_FROM);
    let columns: Vec<_> = (0..1 + below(random, 5))
        .map(|number| pick(random, if lines && number > 0 { COLUMNS } else { plain }))
        .collect();
    let mut table = String::new();
    // Without lines, fields move to other columns, and a generated number may come after the largest one.
    let key = if lines { below(random, 4) } else { 1 + below(random, 3) };
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
    let rows = below(random, 12);
    for row in 0..rows {
        if !marks.start.is_empty() {
            file += pick(random, &["", "", "junk", "more\njunk"]);
            file += marks.start;
        }
        let wanted = columns.len() + 1;
        let fields = match below(random, 12) {
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
                None => below(random, 2 * rows).to_string(),
            };
            match below(random, 14) {
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
        if !last || below(random, 3) > 0 {
            file += marks.line;
        }
    }
    let local = if below(random, 2) == 0 { "LOCAL " } else { "" };
    let mode = pick(random, &["", "", "", "REPLACE ", "IGNORE "]);
    let skip = pick(random, &["", "", "", "IGNORE 1 LINES", "IGNORE 2 ROWS", "IGNORE 99 LINES"]);
    let names: Vec<String> = (0..columns.len()).map(|number| format!("c{number}")).collect();
    let names = names.join(", ");
    let list = match below(random, 6) {
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

/// What is compared. Of a statement that failed this is only its first error, because MariaDB also reports
/// further errors of the same row.
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

/// The number in `.../case-7'`.
fn number_in(statement: &str) -> u64 {
    let digits = statement.split_once("case-").map_or("", |(_, rest)| rest);
    digits.split('\'').next().and_then(|digits| digits.parse().ok()).unwrap()
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
    let mut case_number = 0;
    for (expected, got) in expected.iter().zip(&got) {
        assert_eq!(expected.statement, got.statement);
        if expected.statement.starts_with("CREATE TABLE") {
            table = &expected.statement;
        }
        if expected.statement.starts_with("LOAD") {
            loads += 1;
            case_number = number_in(&expected.statement);
        }
        let (wanted, found) = (outcome(expected), outcome(got));
        let is_listed = DIFFERENT.iter().any(|(number, _)| *number == case_number);
        if wanted != found && !is_listed {
            differ += 1;
            writeln!(report, "\n{table}\n{}\n--- MariaDB\n{wanted}\n--- Latchwork\n{found}", got.statement)
                .unwrap();
        }
    }
    assert!(loads > 0);
    assert!(differ == 0, "{differ} of {loads} loads:\n{report}");
}

/// More rows than one batch, so that an empty table's trees are built from them.
const MANY: u64 = 13_000;

/// Rows `key<TAB>unique<TAB>text`, in order or not. One may collide with an earlier one.
fn many_rows(shuffled: bool, collision: Option<&str>) -> String {
    let mut keys: Vec<u64> = (0..MANY).collect();
    if shuffled {
        Random::new(7, 0).shuffle(&mut keys);
    }
    let mut file = String::new();
    for (number, key) in keys.iter().enumerate() {
        writeln!(file, "{key}\t{}\ttext {}", key * 7919 % 1_000_003, key % 97).unwrap();
        if number as u64 == MANY - 500 {
            match collision {
                Some("primary") => writeln!(file, "{}\t1000004\tagain", keys[number - 3]).unwrap(),
                Some(_) => writeln!(file, "500000\t{}\tagain", keys[100] * 7919 % 1_000_003).unwrap(),
                None => {}
            }
        }
    }
    file
}

#[test]
fn an_empty_table_is_filled_as_mariadb_fills_it() {
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let mut script = String::new();
    for shuffled in [false, true] {
        for collision in [None, Some("primary"), Some("unique")] {
            let name = format!("{shuffled}-{}", collision.unwrap_or("none"));
            let path = scratch.path().join(name);
            std::fs::write(&path, many_rows(shuffled, collision)).unwrap();
            for (local, mode) in [("", ""), ("LOCAL", ""), ("LOCAL", "REPLACE"), ("", "IGNORE")] {
                let path = path.display();
                for key in ["k INT NOT NULL PRIMARY KEY", "k INT NOT NULL, KEY by_k (k)"] {
                    writeln!(
                        script,
                        "DROP TABLE IF EXISTS t;\n\
                         CREATE TABLE t ({key}, u INT NOT NULL, c VARCHAR(20), UNIQUE KEY by_u (u), KEY by_c (c, k));\n\
                         LOAD DATA {local} INFILE '{path}' {mode} INTO TABLE t CHARACTER SET utf8mb4 (k, u, c);\n\
                         SELECT COUNT(*), SUM(k), SUM(u), MIN(c), MAX(c) FROM t;\n\
                         SELECT COUNT(*), SUM(k) FROM t WHERE c = 'text 5';\n\
                         SELECT k, u, c FROM t WHERE c = 'again' OR u = 792 OR u = 791900 % 1000003 ORDER BY k, u;\n\
                         INSERT INTO t VALUES (1000000, 2000000, 'behind');\n\
                         SELECT * FROM t WHERE u > 1999999;"
                    )
                    .unwrap();
                }
            }
        }
    }
    judge.sql("CREATE DATABASE corpus CHARACTER SET utf8mb4");
    server.sql("CREATE DATABASE corpus CHARACTER SET utf8mb4");
    let expected = transcript::run(&judge.socket, "corpus", &script);
    let got = transcript::run(&server.socket, "corpus", &script);
    assert_eq!(expected.len(), got.len());
    let mut report = String::new();
    for (expected, got) in expected.iter().zip(&got) {
        let (wanted, found) = (outcome(expected), outcome(got));
        if wanted != found {
            let statement = &got.statement;
            writeln!(report, "\n{statement}\n--- MariaDB\n{wanted}\n--- Latchwork\n{found}").unwrap();
        }
    }
    assert!(report.is_empty(), "{report}");
    assert_checked(&server);
}

fn assert_checked(server: &Latchwork) {
    let checked = server.sql("CHECK TABLE corpus.t");
    assert!(checked.trim_end().ends_with("OK"), "{checked}");
}

/// A client in the middle of LOAD DATA LOCAL. It reads from a pipe that does not end.
struct Unfinished {
    client: Child,
    pipe: std::fs::File,
}

impl Unfinished {
    /// Sends `rows` rows from `first` on, and no end.
    fn begin(server: &Latchwork, folder: &Path, before: &str, first: u64, rows: u64) -> Unfinished {
        let path = folder.join(format!("pipe-{first}"));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let load = format!("{before} LOAD DATA LOCAL INFILE '{}' INTO TABLE corpus.t", path.display());
        let client = client(&server.socket)
            .args(["--local-infile=1", "-e", &load])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut text = String::new();
        for key in first..first + rows {
            writeln!(text, "{key}\t{}\tsome text to fill the pipe with", key * 31).unwrap();
        }
        pipe.write_all(text.as_bytes()).unwrap();
        Unfinished { client, pipe }
    }

    fn kill(mut self) {
        self.client.kill().unwrap();
        self.client.wait().unwrap();
        drop(self.pipe);
    }

    /// Lets the file end. Returns the client's error messages.
    fn end(self) -> String {
        drop(self.pipe);
        text(&self.client.wait_with_output().unwrap().stderr)
    }
}

const TABLE: &str = "CREATE DATABASE corpus; CREATE TABLE corpus.t (k INT NOT NULL PRIMARY KEY, \
                     v INT NOT NULL, c VARCHAR(60), KEY by_v (v), UNIQUE KEY by_c (c, k));";

/// The number of rows that are sent before something happens: some batches.
const SENT: u64 = 20_000;

#[test]
fn a_client_that_vanishes_or_is_killed_while_it_loads_leaves_nothing() {
    if !have(&["mariadb", "mkfifo"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql(TABLE);
    let count = || server.sql("SELECT COUNT(*) FROM corpus.t");
    let alone = || server.sql("SELECT COUNT(*) FROM information_schema.processlist") == "1\n";
    let mut first = 0;
    for (before, rows) in [("", "0\n"), ("BEGIN;", "0\n"), ("", "2\n")] {
        if rows == "2\n" {
            server.sql("INSERT INTO corpus.t VALUES (-1, 1, 'a'), (-2, 2, 'b')");
        }
        // The client is killed.
        first += SENT;
        Unfinished::begin(&server, scratch.path(), before, first, SENT).kill();
        assert!(wait_until(alone));
        assert_eq!(count(), rows);
        // Its connection is killed.
        first += SENT;
        let loading = Unfinished::begin(&server, scratch.path(), before, first, SENT);
        let id = "SELECT id FROM information_schema.processlist WHERE info LIKE '%LOAD DATA LOCAL%' AND id <> CONNECTION_ID()";
        let id = server.sql(id);
        server.sql(&format!("KILL {id}"));
        assert!(!loading.end().is_empty());
        assert!(wait_until(alone));
        assert_eq!(count(), rows);
        // Its statement is killed.
        first += SENT;
        let loading = Unfinished::begin(&server, scratch.path(), before, first, SENT);
        let id = "SELECT id FROM information_schema.processlist WHERE info LIKE '%LOAD DATA LOCAL%' AND id <> CONNECTION_ID()";
        let id = server.sql(id);
        server.sql(&format!("KILL QUERY {id}"));
        let complaint = loading.end();
        assert!(complaint.contains("ERROR 1317"), "{complaint}");
        assert!(wait_until(alone));
        assert_eq!(count(), rows);
        assert_checked(&server);
    }
    let done = Unfinished::begin(&server, scratch.path(), "", first + SENT, SENT).end();
    assert_eq!((done, count()), (String::new(), format!("{}\n", SENT + 2)));
}

#[test]
fn a_server_killed_while_clients_load_has_none_of_their_rows() {
    if !have(&["mariadb", "mkfifo"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut server = Latchwork::start(scratch.path(), &[]);
    server.sql(TABLE);
    let count = |server: &Latchwork| server.sql("SELECT COUNT(*), COUNT(DISTINCT v) FROM corpus.t");
    for (round, kept) in ["0\t0\n", "20000\t20000\n"].into_iter().enumerate() {
        let first = 10 * SENT * round as u64;
        // The table is not empty, because otherwise the second session would wait for the first and not read
        // its file.
        let loading: Vec<Unfinished> = (1..2 + round as u64)
            .map(|number| {
                Unfinished::begin(&server, scratch.path(), "", first + number * SENT, SENT / number)
            })
            .collect();
        server.kill();
        loading.into_iter().for_each(Unfinished::kill);
        server = Latchwork::start(scratch.path(), &[]);
        assert_eq!(count(&server), kept);
        assert_checked(&server);
        // A load that was acknowledged is still there after the next kill.
        let done = Unfinished::begin(&server, scratch.path(), "", first + 5 * SENT, SENT).end();
        assert_eq!(done, "");
    }
    server.kill();
    let server = Latchwork::start(scratch.path(), &[]);
    assert_eq!(count(&server), "40000\t40000\n");
    assert_checked(&server);
}

#[test]
fn the_process_list_says_how_much_of_a_file_is_loaded() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql(TABLE);
    server.sql("INSERT INTO corpus.t VALUES (-1, 1, 'a')");
    // Some parts of rows. The first part has a row that another transaction has locked.
    let file = scratch.path().join("rows");
    let rows: String =
        (0..60_000).map(|key| format!("{key}\t{key}\tsome text to fill the file with\n")).collect();
    std::fs::write(&file, rows).unwrap();
    let mut holder = client(&server.socket).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut says = holder.stdin.take().unwrap();
    says.write_all(b"BEGIN; INSERT INTO corpus.t VALUES (100, 1, 'b');\n").unwrap();
    let changed = "SELECT COALESCE(SUM(trx_rows_modified), 0) FROM information_schema.INNODB_TRX";
    assert!(wait_until(|| server.sql(changed) == "1\n"));
    let load = format!("LOAD DATA INFILE '{}' INTO TABLE corpus.t", file.display());
    let loader = client(&server.socket).args(["-e", &load]).spawn().unwrap();
    let progress = "SELECT progress FROM information_schema.processlist WHERE state = 'Waiting for row lock'";
    let mut shown = String::new();
    assert!(wait_until(|| {
        shown = server.sql(progress);
        !shown.is_empty()
    }));
    let percent: f64 = shown.trim().parse().unwrap();
    assert!(percent > 0.0 && percent < 100.0, "{shown}");
    // The transaction ends with its client.
    drop(says);
    assert!(holder.wait().unwrap().success());
    assert!(loader.wait_with_output().unwrap().status.success());
    assert_eq!(server.sql("SELECT COUNT(*) FROM corpus.t"), "60001\n");
}

const DRIVER: &str = r#"
import sys, pymysql
socket, folder = sys.argv[1:]
rows = folder + '/rows.csv'
with open(rows, 'w') as file:
    for number in range(30000):
        file.write('%d,"text ""%d"""\r\n' % (number, number))
connection = pymysql.connect(unix_socket=socket, user='root', database='corpus', local_infile=True, autocommit=True)
cursor = connection.cursor()
cursor.execute('CREATE TABLE p (k INT PRIMARY KEY, c VARCHAR(30))')
load = "LOAD DATA LOCAL INFILE '" + rows + "' %s INTO TABLE p FIELDS TERMINATED BY ',' ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'"
assert cursor.execute(load % '') == 30000
cursor.execute('SELECT COUNT(*), MAX(c) FROM p')
assert cursor.fetchall() == ((30000, 'text "9999"'),)
assert cursor.execute(load % 'REPLACE') >= 30000
with open(rows, 'a') as file:
    file.write('not a number,x\r\n' * 30000)
try:
    cursor.execute(load % 'REPLACE')
    assert False
except pymysql.err.MySQLError as error:
    assert error.args[0] == 1366, error
# What was left of the file has been read past: the connection goes on.
cursor.execute('SELECT COUNT(*) FROM p')
assert cursor.fetchall() == ((30000,),)
cursor.execute('SET GLOBAL local_infile = OFF')
try:
    cursor.execute(load % '')
    assert False
except pymysql.err.MySQLError as error:
    assert error.args[0] == 4166, error
print('done')
"#;

#[test]
fn pymysql_loads_its_own_files() {
    let Some(python) = python("pymysql") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql("CREATE DATABASE corpus");
    let output =
        Command::new(python).args(["-c", DRIVER]).arg(&server.socket).arg(scratch.path()).output().unwrap();
    assert_eq!(text(&output.stdout), "done\n", "{}", text(&output.stderr));
}

//! Random texts of quotes, backslashes and comments in every mode, on MariaDB and on Latchwork: what one
//! takes for a text, the other one does, too.

use crate::support::target::connect;
use crate::support::{Latchwork, MariaDb, have, mariadb};
use base::random::Random;

const MODES: &[&str] = &[
    "''",
    "'NO_BACKSLASH_ESCAPES'",
    "'ANSI_QUOTES'",
    "'PIPES_AS_CONCAT'",
    "'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'",
    "'ANSI,NO_BACKSLASH_ESCAPES'",
];

/// What is between the quotes of a text, and sometimes ends it.
const INNER: &[&str] = &[
    "'", "''", "\"", "\"\"", "\\", "\\\\", "\\'", "\\\"", "\\n", "\\%", "a", " ", "é", "--", "/*", "#", "`",
];

/// What is between texts.
const BETWEEN: &[&str] = &[
    ", ",
    ", ",
    ", ",
    " || ",
    " LIKE ",
    " ",
    " AS ",
    "/* ' */, ",
    " /* \" */ ",
    ", -- '\n",
    ", # \"\n",
    "--",
    " -- ",
    "/*! , */",
    "/*!99999 ' */,",
    " COLLATE utf8mb4_bin, ",
    ", _utf8mb4",
    ", N",
    " IN (",
];

fn statement(random: &mut Random) -> String {
    let mut statement = "SELECT ".to_owned();
    for position in 0..1 + random.index(4) {
        if position > 0 {
            statement += BETWEEN[random.index(BETWEEN.len())];
        }
        let quote = ["'", "'", "'", "\"", "`"][random.index(5)];
        statement += quote;
        for _ in 0..random.index(5) {
            statement += INNER[random.index(INNER.len())];
        }
        statement += quote;
    }
    let ends = ["", "", "", "", " FROM (SELECT 1 AS a) AS d", ")", " -- x", "#'", "/*", ";"];
    statement + ends[random.index(ends.len())]
}

#[test]
fn random_texts_are_cut_as_mariadb_cuts_them() {
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let mut clients = [connect(&judge.socket, None).unwrap(), connect(&server.socket, None).unwrap()];
    let seed = std::env::var("LATCHWORK_SEED").map_or(1, |seed| seed.parse().unwrap());
    let rounds = std::env::var("LATCHWORK_ROUNDS").map_or(4_000, |rounds| rounds.parse().unwrap());
    let mut random = Random::new(seed, 0);
    let (mut report, mut answered) = (String::new(), 0);
    for mode in MODES {
        for client in &mut clients {
            client.query(&format!("SET sql_mode = {mode}")).unwrap();
        }
        for _ in 0..rounds {
            let statement = statement(&mut random);
            let [expected, got] = clients.each_mut().map(|client| match client.query(&statement) {
                Ok(result) => Ok(result.to_text()),
                Err(error) => Err(error.code().unwrap_or_else(|| panic!("{statement}: {error:?}"))),
            });
            answered += usize::from(expected.is_ok());
            // N'...' is utf8mb3 there, so it has not this collation.
            let is_of_charset = expected == Err(1253);
            // Which of two errors comes first depends on the parser.
            if expected != got && !is_of_charset && (expected.is_ok() || got.is_ok()) {
                report += &format!("\n{mode}: {statement}\n    {expected:?}\n    {got:?}\n");
            }
        }
    }
    assert!(answered > rounds / 4, "only {answered} statements had an answer");
    assert!(report.is_empty(), "{} differ:{report}", report.matches("\n    Ok").count());
}

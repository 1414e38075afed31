//! What a server answers, and how two answers differ.

use super::tree::{Mark, Protocol, Tree};
use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use wire::client::{ClientError, ConnectOptions, Connection, OwnedColumn, QueryResult};
use wire::constants::kind;

pub type Client = Connection<UnixStream>;

/// A server that says nothing for so long is considered hung.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// # Errors
/// If nobody listens, or the server refuses.
pub fn connect(socket: &Path) -> Result<Client, ClientError> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    Connection::connect(stream, &ConnectOptions::default())
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// Rows or a count, and the codes of warnings.
    Done(QueryResult, BTreeSet<u16>),
    Error(u16, String),
    /// The connection ended.
    Lost(String),
}

/// Runs a statement as it is sent by this protocol.
pub fn run(client: &mut Client, statement: &Tree, protocol: Protocol) -> Outcome {
    let written = statement.write(protocol);
    let result = match protocol {
        Protocol::Text => client.query(&written.text),
        _ => match client.prepare(&written.text) {
            Err(error) => Err(error),
            Ok(prepared) => {
                let result = client.execute(prepared.id, &written.values());
                match (client.close_statement(prepared.id), result) {
                    (Err(error), Ok(_)) => Err(error),
                    (_, result) => result,
                }
            }
        },
    };
    match result {
        Err(ClientError::Server(error)) => Outcome::Error(error.code, error.message.clone()),
        Err(error) => Outcome::Lost(error.to_string()),
        Ok(result) if result.warnings == 0 => Outcome::Done(result, BTreeSet::new()),
        Ok(result) => match client.query("SHOW WARNINGS") {
            Ok(warnings) => {
                let codes = warnings.to_text().iter().filter_map(|row| row[1].parse().ok()).collect();
                Outcome::Done(result, codes)
            }
            Err(error) => Outcome::Lost(error.to_string()),
        },
    }
}

/// Errors that depend on which rows and operands are looked at, and in which order.
pub fn is_of_values(code: u16) -> bool {
    matches!(
        code,
        1048 | 1062 | 1242 | 1264 | 1292 | 1364 | 1365 | 1366 | 1367 | 1406 | 1411 | 1441 | 1690 | 1918
    )
}

impl Outcome {
    pub fn is_timeout(&self) -> bool {
        matches!(self, Outcome::Error(TIMEOUT, _))
    }
}

/// The error of a statement that took longer than `max_statement_time`.
const TIMEOUT: u16 = 1969;

/// How the answer `got` differs from the one that is `expected`. It names the kind of the difference, so that
/// a smaller statement can be asked for the same kind. `types`: the types of columns are compared, too.
pub fn difference(statement: &Tree, expected: &Outcome, got: &Outcome, types: bool) -> Option<String> {
    match (expected, got) {
        (_, Outcome::Lost(why)) => Some(format!("lost: {why}")),
        (Outcome::Lost(_), _) => None,
        _ if expected.is_timeout() || got.is_timeout() => None,
        (Outcome::Error(expected, _), Outcome::Error(got, _)) => {
            let same = expected == got || is_of_values(*expected) && is_of_values(*got);
            (!same).then(|| format!("error {expected} / {got}"))
        }
        (Outcome::Error(expected, _), Outcome::Done(..)) => Some(format!("error {expected} / none")),
        (Outcome::Done(..), Outcome::Error(got, _)) => Some(format!("error none / {got}")),
        (Outcome::Done(expected, expected_codes), Outcome::Done(got, codes)) => {
            of_rows(statement, expected, got)
                .or_else(|| of_counts(expected, got))
                .or_else(|| of_warnings(statement, expected_codes, codes))
                .or_else(|| of_columns(&expected.columns, &got.columns, types))
        }
    }
}

fn of_columns(expected: &[OwnedColumn], got: &[OwnedColumn], types: bool) -> Option<String> {
    for (expected, got) in expected.iter().zip(got) {
        if expected.name != got.name {
            return Some("column name".into());
        }
        if !types {
            continue;
        }
        let of = |column: &OwnedColumn| {
            let sign = if column.wire_type.unsigned { " unsigned" } else { "" };
            format!("{}{sign}", column.wire_type.kind)
        };
        if of(expected) != of(got) {
            return Some(format!("column type {} / {}", of(expected), of(got)));
        }
        if expected.decimals != got.decimals {
            return Some(format!("column decimals {} / {}", expected.decimals, got.decimals));
        }
        if expected.charset != got.charset {
            return Some(format!("column charset {} / {}", expected.charset, got.charset));
        }
    }
    None
}

fn of_rows(statement: &Tree, expected: &QueryResult, got: &QueryResult) -> Option<String> {
    if expected.columns.len() != got.columns.len() || expected.rows.len() != got.rows.len() {
        return Some("rows: number".into());
    }
    let floating = |at: usize| is_floating(&expected.columns[at]) || is_floating(&got.columns[at]);
    let mut pair = [texts_where(expected, floating), texts_where(got, floating)];
    let mut keys = Vec::new();
    for mark in statement.marks() {
        if let Mark::OrderKey(name) = mark {
            // Behind a column that was left out, the order of those after it says nothing.
            let Some(position) = expected.columns.iter().position(|column| column.name == *name) else {
                break;
            };
            keys.push(position);
        }
    }
    let of_keys = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
        rows.iter().map(|row| keys.iter().map(|key| folded(&row[*key])).collect()).collect()
    };
    let in_order = of_keys(&pair[0]) == of_keys(&pair[1]);
    pair.iter_mut().for_each(|rows| rows.sort());
    let [expected, got] = pair;
    if expected != got {
        let all = |is_same: fn(&str, &str) -> bool| {
            expected.iter().flatten().zip(got.iter().flatten()).all(|(a, b)| is_same(a, b))
        };
        let letters = |rows: &[Vec<String>]| {
            let mut rows: Vec<Vec<String>> =
                rows.iter().map(|row| row.iter().map(|value| folded(value)).collect()).collect();
            rows.sort();
            rows
        };
        let kind = if all(is_same_but_digits) {
            "rows: digits"
        } else if all(is_same_but_cut) {
            "rows: cut"
        } else if letters(&expected) == letters(&got) {
            "rows: letters"
        } else {
            "rows"
        };
        return Some(kind.into());
    }
    (!in_order).then(|| "rows: order".into())
}

/// True if both are one number or one time, of which one shows more digits after the point than the other,
/// or is off by one in the last that both show.
fn is_same_but_digits(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if without_zeros(a) == without_zeros(b) {
        return true;
    }
    let digits = |text: &str| text.rsplit_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => (x - y).abs() <= 1.01 * 10f64.powi(-digits(a).min(digits(b))).min(0.1),
        _ => false,
    }
}

/// True if the first is the second or the beginning of it: a value in a temporary table that is too narrow.
fn is_same_but_cut(expected: &str, got: &str) -> bool {
    got == expected || got.starts_with(expected) && !expected.is_empty()
}

/// A text as collations compare it, near enough.
fn folded(text: &str) -> String {
    text.trim_end_matches(' ').to_lowercase().replace('ü', "u")
}

fn is_floating(column: &OwnedColumn) -> bool {
    matches!(column.wire_type.kind, kind::DOUBLE | kind::FLOAT)
}

/// The rows as text.
pub fn texts(result: &QueryResult) -> Vec<Vec<String>> {
    texts_where(result, |at| is_floating(&result.columns[at]))
}

/// The rows as text. Of a floating number that many others were added to, the last digits depend on their
/// order.
fn texts_where(result: &QueryResult, floating: impl Fn(usize) -> bool) -> Vec<Vec<String>> {
    let mut rows = result.to_text();
    // Zero has a sign in one server more often than in the other.
    for row in &mut rows {
        for value in row.iter_mut().filter(|value| value.starts_with("-0")) {
            if value.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.')) {
                value.remove(0);
            }
        }
    }
    for at in (0..result.columns.len()).filter(|at| floating(*at)) {
        for row in &mut rows {
            if let Ok(value) = row[at].parse::<f64>() {
                row[at] = format!("{:.13e}", value + 0.0);
            }
        }
    }
    rows
}

fn of_counts(expected: &QueryResult, got: &QueryResult) -> Option<String> {
    (expected.affected_rows != got.affected_rows).then(|| "affected rows".into())
}

/// Those of plain rows. How often another statement evaluates a condition, and so what it warns of, depends
/// on the plan.
fn of_warnings(statement: &Tree, expected: &BTreeSet<u16>, got: &BTreeSet<u16>) -> Option<String> {
    let written = statement.to_text();
    let is_plain = written.starts_with("INSERT") || written.starts_with("REPLACE");
    if expected == got || !is_plain || written.contains("SELECT") {
        return None;
    }
    let missing: Vec<String> = expected.difference(got).map(u16::to_string).collect();
    let more: Vec<String> = got.difference(expected).map(u16::to_string).collect();
    Some(format!("warnings -{} +{}", missing.join(","), more.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_told_from_values() {
        for (a, b) in
            [("1", "1.00"), ("0.1666666660", "0.16667"), ("10:00:00", "10:00:00.000"), ("-0.5", "-0.50")]
        {
            assert!(is_same_but_digits(a, b), "{a} {b}");
        }
        for (a, b) in [("1", "2"), ("1.5", "1.7"), ("10:00:00", "10:00:00.5"), ("ab", "a"), ("100", "10")] {
            assert!(!is_same_but_digits(a, b), "{a} {b}");
        }
    }
}

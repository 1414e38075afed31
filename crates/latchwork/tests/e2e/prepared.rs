//! The text and the binary protocol give the same values.

use crate::support::Latchwork;
use std::os::unix::net::UnixStream;
use wire::client::{ClientError, ConnectOptions, Connection, OwnedColumn, QueryResult, Value};
use wire::constants::capability;

type Outcome = Result<QueryResult, u16>;

fn outcome(result: Result<QueryResult, ClientError>) -> Outcome {
    match result {
        Ok(result) => Ok(result),
        Err(ClientError::Server(error)) => Err(error.code),
        Err(other) => panic!("{other:?}"),
    }
}

/// Compares a value that came as text with one that came in its own type.
fn same_value(text: &Value, binary: &Value, column: &OwnedColumn) -> bool {
    let text = text.to_text();
    match binary {
        Value::Float(value) => {
            text.parse::<f32>().is_ok_and(|text| (text - value).abs() <= value.abs() * 1e-5)
        }
        // Only text keeps a fixed number of digits.
        Value::Double(value) if column.decimals < 31 => text
            .parse::<f64>()
            .is_ok_and(|text| (text - value).abs() <= 0.5 / 10f64.powi(column.decimals.into())),
        Value::Double(value) => text.parse() == Ok(*value),
        // A fraction is printed with the column's digits, and sent in binary as it is.
        Value::Time(_) | Value::DateTime(_) => {
            let whole = |text: &str| match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text.to_string(),
            };
            whole(&text) == whole(&binary.to_text())
        }
        // YEAR is printed with four digits.
        Value::Int(0) | Value::UInt(0) => text == "0" || text == "0000",
        _ => text == binary.to_text(),
    }
}

fn same(text: &Outcome, binary: &Outcome) -> bool {
    match (text, binary) {
        (Ok(text), Ok(binary)) => {
            text.columns == binary.columns
                && text.rows.len() == binary.rows.len()
                && text.rows.iter().zip(&binary.rows).all(|(text_row, row)| {
                    let values = text_row.iter().zip(row).zip(&text.columns);
                    values.into_iter().all(|((text, value), column)| same_value(text, value, column))
                })
        }
        (text, binary) => text == binary,
    }
}

fn same_twice(first: &Outcome, second: &Outcome) -> bool {
    // Compared as printed, so that NaN equals NaN.
    format!("{first:?}") == format!("{second:?}")
}

#[test]
fn a_prepared_statement_gives_what_its_text_gives() {
    every_script(capability::CLIENT);
}

#[test]
fn a_prepared_statement_gives_what_its_text_gives_to_clients_that_keep_definitions() {
    every_script(capability::CLIENT | capability::CACHE_METADATA);
}

fn every_script(capabilities: u64) {
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    let stream = UnixStream::connect(&server.socket).unwrap();
    let options = ConnectOptions { capabilities, ..ConnectOptions::default() };
    let mut client = Connection::connect(stream, &options).unwrap();
    client.query("CREATE DATABASE corpus").unwrap();
    client.query("USE corpus").unwrap();
    let (mut compared, mut wrong) = (0, String::new());
    for (name, script) in crate::sql_equality::scripts() {
        for statement in script.split(";\n").map(str::trim) {
            let select = statement.starts_with("SELECT");
            let text = outcome(client.query(statement));
            // These report on the statement before, which is another one here.
            let of_before = ["LAST_INSERT_ID", "FOUND_ROWS", "ROW_COUNT"];
            if !select || of_before.iter().any(|name| statement.contains(name)) || statement.contains('@') {
                continue;
            }
            let prepared = client.prepare(statement);
            let binary = match prepared {
                Ok(prepared) => {
                    let first = outcome(client.execute(prepared.id, &[]));
                    let second = outcome(client.execute(prepared.id, &[]));
                    client.close_statement(prepared.id).unwrap();
                    assert!(
                        same_twice(&first, &second),
                        "[{name}] {statement}: the second execution differs"
                    );
                    first
                }
                Err(error) => outcome(Err(error)),
            };
            compared += 1;
            if !same(&text, &binary) {
                wrong += &format!("[{name}] {statement}\n    text   {text:?}\n    binary {binary:?}\n");
            }
        }
        // Some scripts end with their database dropped.
        client.query("DROP DATABASE IF EXISTS corpus").unwrap();
        client.query("CREATE DATABASE corpus").unwrap();
        client.query("USE corpus").unwrap();
    }
    println!("{compared} statements compared");
    assert!(wrong.is_empty(), "\n{wrong}");
}

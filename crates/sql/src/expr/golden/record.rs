//! Asking MariaDB itself.

use super::environment::NOW_MICROS;
use super::{Line, SCRIPTS, lines, path};
use std::fmt::Write as _;
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs every expression through the `mariadb` client; one result an expression.
fn ask(socket: &str, expressions: &[String]) -> Vec<String> {
    let seconds = NOW_MICROS as f64 / 1e6;
    let mut input = format!("SET NAMES utf8mb4; SET time_zone = '+00:00'; SET timestamp = {seconds:.6};\n");
    for expression in expressions {
        // A statement with a table clears the warnings.
        let clear = "SELECT '@next' FROM information_schema.character_sets LIMIT 1";
        let _ = write!(input, "{clear};\nSELECT {expression};\nSELECT '@warnings';\nSHOW WARNINGS;\n");
    }
    let mut client = Command::new("sh")
        .args(["-c", "exec mariadb --no-defaults --socket=\"$0\" -N -B -r -n --force 2>&1", socket])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the mariadb client runs");
    let mut stdin = client.stdin.take().expect("piped");
    let writer = base::sync::thread::spawn(move || {
        stdin.write_all(input.as_bytes()).expect("the client reads");
    });
    let output = client.wait_with_output().expect("the client ends");
    writer.join().expect("the writer ends");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    output.split("@next\n").skip(1).map(result_of).collect()
}

/// `value`, then `@warnings` and a line a warning: level, number, message.
fn result_of(block: &str) -> String {
    let (value, warnings) = block.split_once("@warnings\n").unwrap_or((block, ""));
    let value = value.trim_end_matches('\n');
    // The client may show the statement before the error.
    if let Some(error) = value.lines().find_map(|line| line.strip_prefix("ERROR ")) {
        let number: String = error.chars().take_while(char::is_ascii_digit).collect();
        return format!("ERROR {number}");
    }
    let numbers: Vec<&str> = warnings.lines().filter_map(|warning| warning.split('\t').nth(1)).collect();
    match numbers.as_slice() {
        [] => value.to_string(),
        numbers => format!("{value} ! {}", numbers.join(" ")),
    }
}

#[test]
#[ignore = "needs a MariaDB server at the socket MARIADB_SOCKET; MARIADB_RECORD=1 takes its results down"]
fn mariadb_still_says_the_same() {
    let socket = std::env::var("MARIADB_SOCKET").expect("MARIADB_SOCKET names the server's socket");
    let record = std::env::var_os("MARIADB_RECORD").is_some();
    for script in SCRIPTS {
        let script_lines = lines(&std::fs::read_to_string(path(script)).unwrap());
        let expressions: Vec<String> = script_lines
            .iter()
            .filter_map(|line| match line {
                Line::Case { expression, .. } => Some(expression.clone()),
                Line::Other(_) => None,
            })
            .collect();
        let mut results = ask(&socket, &expressions).into_iter();
        let width =
            expressions.iter().map(|expression| expression.chars().count()).max().unwrap_or(0).min(60);
        let mut text = String::new();
        for line in script_lines {
            match line {
                Line::Other(other) => text.push_str(&other),
                Line::Case { expression, recorded, ours } => {
                    let result = results.next().expect("a result an expression");
                    if !record {
                        assert_eq!(Some(&result), recorded.as_ref(), "{script}: {expression}");
                    }
                    let _ = write!(text, "{expression:width$} => {result}");
                    if let Some(ours) = ours {
                        let _ = write!(text, " ?? {ours}");
                    }
                }
            }
            text.push('\n');
        }
        if record {
            std::fs::write(path(script), text).unwrap();
        }
    }
}

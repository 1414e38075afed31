//! The audit log of a server that is killed has every statement that was answered.

use super::{DELAY_MAX, random, rounds, some_of};
use crate::support::latchwork::Latchwork;
use crate::support::target::connect;
use crate::support::wait_until;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const CLIENTS: u64 = 4;

/// The statements of the lines that are whole.
fn statements(text: &str) -> HashSet<String> {
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let statement =
        |line: &str| line.split_once(",d,'").map(|(_, rest)| rest.trim_end_matches("',0").to_owned());
    whole.lines().filter_map(statement).collect()
}

/// Every file of the log, the rotated ones first.
fn whole_log(folder: &std::path::Path) -> String {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("server_audit.log"))
        .collect();
    paths.sort();
    paths.reverse();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn the_audit_log_has_what_was_answered() {
    let mut random = random();
    for round in 0..rounds() {
        let folder = tempfile::tempdir().unwrap();
        let sync = format!("--server-audit-sync-log-file={}", round % 2);
        // Small files, so that the kill sometimes meets a rotation.
        let rotation = ["--server-audit-file-rotations=999", "--server-audit-file-rotate-size=2000"];
        let options = ["--server-audit-logging", sync.as_str(), rotation[0], rotation[1]];
        let server = Latchwork::start(folder.path(), &options);
        server.sql("CREATE DATABASE d; CREATE TABLE d.t (a BIGINT PRIMARY KEY)");
        let socket = server.socket.clone();
        let answered = Mutex::new(HashSet::new());
        let count = AtomicUsize::new(0);
        let wanted = [1, 50, 300][random.below(3) as usize];
        let delay = some_of(DELAY_MAX, &mut random);
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (socket, answered, count) = (&socket, &answered, &count);
                scope.spawn(move || {
                    let Ok(mut connection) = connect(socket, None) else { return };
                    if connection.query("USE d").is_err() {
                        return;
                    }
                    for number in 0.. {
                        let id = number * CLIENTS + client;
                        let text = match number % 2 {
                            0 => format!("INSERT INTO t VALUES ({id})"),
                            _ => format!("SELECT COUNT(*) FROM t WHERE a < {id}"),
                        };
                        // The server has been killed.
                        if connection.query(&text).is_err() {
                            return;
                        }
                        answered.lock().unwrap().insert(text);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            wait_until(|| count.load(Ordering::Relaxed) >= wanted);
            thread::sleep(delay);
            server.kill();
        });
        let answered = answered.into_inner().unwrap();
        let noted = statements(&whole_log(&folder.path().join("data")));
        let lost: Vec<_> = answered.difference(&noted).collect();
        assert!(!answered.is_empty() && lost.is_empty(), "{lost:?}");
    }
}

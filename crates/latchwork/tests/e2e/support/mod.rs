//! Servers on scratch folders, and the clients that talk to them.

pub mod latchwork;
pub mod mariadb;
pub mod target;
pub mod transcript;

pub use latchwork::Latchwork;
pub use mariadb::MariaDb;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A server that takes longer to start or stop is considered hung. This is no measure of speed.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// True if the programs are there. Otherwise this prints which one is missing, and fails if the run requires
/// them all.
pub fn have(programs: &[&str]) -> bool {
    let missing: Vec<_> = programs.iter().filter(|program| find(program).is_none()).collect();
    if missing.is_empty() {
        return true;
    }
    let why = format!("not installed: {missing:?}; ./test.sh installs it");
    assert!(std::env::var_os("LATCHWORK_REQUIRE_CLIENTS").is_none(), "{why}");
    eprintln!("skipped, {why}");
    false
}

/// A program on the search path, or where a distribution keeps servers.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// A Python that has these modules.
pub fn python(modules: &str) -> Option<PathBuf> {
    let candidates = find("python3").into_iter().chain([PathBuf::from("/usr/bin/python3")]);
    let found = candidates.into_iter().find(|python| {
        let probe = Command::new(python).args(["-c", &format!("import {modules}")]).output();
        probe.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        let why = format!("no python3 with {modules}; ./test.sh installs it");
        assert!(std::env::var_os("LATCHWORK_REQUIRE_CLIENTS").is_none(), "{why}");
        eprintln!("skipped, {why}");
    }
    found
}

/// The `mariadb` client as root over a unix socket.
pub fn client(socket: &Path) -> Command {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "--user=root", "--default-character-set=utf8mb4", "--batch"]);
    command.arg("--socket").arg(socket);
    command
}

/// Runs a statement or script through the client. Returns its standard output, or panics with its error
/// message.
pub fn sql(socket: &Path, script: &str) -> String {
    let output = feed(client(socket).arg("--skip-column-names"), script);
    assert!(output.status.success(), "{}\n{}", short(script), short(&text(&output.stderr)));
    text(&output.stdout)
}

/// Runs a script that must fail. Returns the client's error message.
pub fn sql_error(socket: &Path, script: &str) -> String {
    let output = feed(&mut client(socket), script);
    assert!(!output.status.success(), "{}\nwent well: {}", short(script), text(&output.stdout));
    text(&output.stderr)
}

/// Runs a command with `input` on its standard input.
pub fn feed(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_string();
    // A thread writes the input, because a client that answers while it reads would otherwise block on a full
    // pipe.
    let writer = std::thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The beginning and the end of a text that may be long.
pub fn short(text: &str) -> String {
    let characters = text.chars().count();
    if characters <= 800 {
        return text.to_string();
    }
    let end: String = text.chars().skip(characters - 400).collect();
    let start: String = text.chars().take(400).collect();
    format!("{start} [...] {end}")
}

/// Polls until `done`. False if that takes too long.
pub fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

pub fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(status.success());
}

pub fn is_machine_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

//! `latchwork serve` on a folder.

use super::{PATIENCE, signal, text};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub struct Latchwork {
    child: Child,
    pub socket: PathBuf,
    /// The line that it printed when it was ready.
    pub ready: String,
    log: PathBuf,
}

/// The binary under test.
pub fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_latchwork"))
}

/// Starts `latchwork` with arguments that it must refuse, and waits for its end.
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Output {
    let child = binary()
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let (send, receive) = mpsc::channel();
    let waiter = std::thread::spawn(move || drop(send.send(child.wait_with_output())));
    let output = match receive.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal("KILL", pid);
            panic!("latchwork went on running where it should have refused");
        }
    };
    waiter.join().unwrap();
    output
}

impl Latchwork {
    /// Starts a server on `folder/data` with a socket in `folder` and no fixed port.
    pub fn start(folder: &Path, options: &[&str]) -> Latchwork {
        match Latchwork::try_start(folder, options) {
            Ok(server) => server,
            Err(why) => panic!("latchwork serve did not start: {why}"),
        }
    }

    pub fn try_start(folder: &Path, options: &[&str]) -> Result<Latchwork, String> {
        let mut server = Latchwork::begin(folder, options);
        let output = server.child.stdout.take().unwrap();
        let (send, receive) = mpsc::channel();
        // The thread ends with the server's output.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        match receive.recv_timeout(PATIENCE) {
            Ok(ready) => {
                server.ready = ready;
                Ok(server)
            }
            Err(_) => {
                let _ = server.child.kill();
                let _ = server.child.wait();
                Err(server.log())
            }
        }
    }

    /// Starts the process and does not wait until it serves.
    pub fn begin(folder: &Path, options: &[&str]) -> Latchwork {
        let socket = folder.join("socket");
        let log = folder.join(format!("latchwork-{}.log", next_number()));
        let mut command = binary();
        command.arg("serve").arg("--datadir").arg(folder.join("data")).arg("--socket").arg(&socket);
        if !options.iter().any(|option| option.starts_with("--port")) {
            command.args(["--port", "0"]);
        }
        command.args(options).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
        Latchwork { child, socket, ready: String::new(), log }
    }

    /// The TCP port, from the line that says where the server listens.
    pub fn port(&self) -> u16 {
        let address = self.ready.split("127.0.0.1:").nth(1).unwrap_or_else(|| panic!("{}", self.ready));
        let digits: String = address.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What it has written to standard error so far.
    pub fn log(&self) -> String {
        text(&std::fs::read(&self.log).unwrap_or_default())
    }

    pub fn sql(&self, script: &str) -> String {
        super::sql(&self.socket, script)
    }

    /// SIGTERM, as a service manager sends it.
    pub fn stop(mut self) -> ExitStatus {
        signal("TERM", self.child.id());
        let child = &mut self.child;
        if !super::wait_until(|| child.try_wait().unwrap().is_some()) {
            panic!("the server did not stop: {}", self.log());
        }
        self.child.wait().unwrap()
    }

    /// SIGKILL: the server cannot write anything more.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Latchwork {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the server's log:\n{}", self.log());
        }
    }
}

fn next_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

//! A server that the lab started. It has a process group of its own, so that Ctrl-C reaches only the lab. The
//! lab always ends the server.

use crate::driver::socket::Login;
use crate::error::{Error, Result, log_tail};
use crate::interrupt::Interrupt;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_PATIENCE: Duration = Duration::from_secs(120);
const STOP_PATIENCE: Duration = Duration::from_secs(120);
const LOG_LINES: usize = 12;

#[derive(Debug)]
pub(crate) struct ServerProcess {
    target: String,
    child: Child,
    log: PathBuf,
    stopped: bool,
}

impl ServerProcess {
    /// Starts `program`; its output goes to `log`. If the lab dies and cannot clean up, the kernel ends the
    /// server, provided that `setpriv` is installed, which asks it to.
    pub(crate) fn start(
        target: &str,
        program: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<ServerProcess> {
        let open = || {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
            file.map_err(Error::path("write", log))
        };
        let mut command = match find_program("setpriv", &[]) {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(arguments).process_group(0).stdin(Stdio::null()).stdout(open()?).stderr(open()?);
        let child = command.spawn().map_err(Error::path("start", program))?;
        Ok(ServerProcess { target: target.to_string(), child, log: log.to_path_buf(), stopped: false })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a client can log in.
    pub(crate) fn wait_until_ready(&mut self, login: &Login, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            interrupt.check()?;
            match login.connect() {
                Ok(_) => return Ok(()),
                Err(error @ Error::Sql { .. }) => return Err(error),
                Err(_) => {}
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                self.stopped = true;
                return Err(self.failure(&format!("the server ended while starting ({status})")));
            }
            if Instant::now() > deadline {
                return Err(self.failure("the server does not answer"));
            }
            interrupt.sleep_until(Instant::now() + Duration::from_millis(50))?;
        }
    }

    /// Asks the server to shut down and waits for it.
    pub(crate) fn stop(&mut self) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // If the server has ended already, the wait below finds that out.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        while Instant::now() < deadline {
            match self.child.try_wait().map_err(Error::io("cannot wait for a server"))? {
                Some(status) if status.success() => {
                    self.stopped = true;
                    return Ok(());
                }
                Some(status) => {
                    self.stopped = true;
                    return Err(self.failure(&format!("the server ended badly ({status})")));
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Err(self.failure("the server does not shut down"))
    }

    /// The error, with the end of the server's log.
    pub(crate) fn failure(&self, why: &str) -> Error {
        Error::Server {
            target: self.target.clone(),
            why: why.to_string(),
            log: log_tail(&self.log, LOG_LINES),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if !self.stopped {
            // Its data is removed as well, so nothing has to be written.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The path of the socket of a server in `folder`. The kernel limits its length.
pub(crate) fn socket_path(folder: &Path) -> Result<PathBuf> {
    const BYTES_MAX: usize = 100;
    let path = folder.join("socket");
    if path.as_os_str().len() > BYTES_MAX {
        let why = format!(
            "a unix socket's path may have {BYTES_MAX} bytes, {} is longer; choose a --scratch folder with a shorter name",
            path.display()
        );
        return Err(Error::Usage(why));
    }
    Ok(path)
}

/// The path of a program in PATH or one of `folders`.
pub(crate) fn find_program(name: &str, folders: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_program_in(name, std::env::split_paths(&path).chain(folders.iter().map(PathBuf::from)))
}

/// The path of a program in the first of `folders` that has it.
pub(crate) fn find_program_in(name: &str, folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.into_iter().map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::socket::Address;

    fn login(folder: &Path) -> Login {
        Login {
            target: "test".to_string(),
            address: Address::Unix(folder.join("none.sock")),
            user: "root".to_string(),
            password: String::new(),
            database: None,
        }
    }

    #[test]
    fn a_server_that_ends_while_starting_shows_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let shell = find_program("sh", &[]).unwrap();
        let arguments = ["-c".to_string(), "echo no such option >&2; exit 3".to_string()];
        let mut server =
            ServerProcess::start("test", &shell, &arguments, &folder.path().join("log")).unwrap();
        let error = server.wait_until_ready(&login(folder.path()), &Interrupt::default()).unwrap_err();
        assert!(error.to_string().contains("no such option"), "{error}");
    }

    #[test]
    fn a_folder_too_deep_for_a_socket_is_refused() {
        assert!(socket_path(Path::new("/tmp/x")).is_ok());
        let deep = "/tmp/".to_string() + &"deep/".repeat(30);
        assert!(socket_path(Path::new(&deep)).unwrap_err().to_string().contains("--scratch"));
    }

    #[test]
    fn an_interrupt_ends_the_wait_and_dropping_ends_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let sleep = find_program("sleep", &[]).unwrap();
        let mut server =
            ServerProcess::start("test", &sleep, &["1000".to_string()], &folder.path().join("log")).unwrap();
        let pid = Pid::from_raw(server.pid() as i32).unwrap();
        let interrupt = Interrupt::default();
        interrupt.raise();
        assert!(matches!(
            server.wait_until_ready(&login(folder.path()), &interrupt),
            Err(Error::Interrupted)
        ));
        drop(server);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}

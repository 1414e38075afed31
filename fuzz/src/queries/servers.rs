//! Latchwork and MariaDB on scratch folders, each in a process of its own.

use super::outcome::{Client, connect};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The first argument with which this program is Latchwork's server.
pub const SERVE: &str = "serve";

/// A server that takes longer to start is considered hung.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

/// A program on the search path, or where a distribution keeps servers.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// True if MariaDB is installed.
pub fn have_mariadb() -> bool {
    ["mariadbd", "mariadb-install-db"].iter().all(|program| find(program).is_some())
}

fn problem(what: &str) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{what}: {error}")
}

impl Server {
    /// This program as Latchwork's server, in `folder`.
    ///
    /// # Errors
    /// If it does not start.
    pub fn latchwork(folder: &Path, program: &Path) -> Result<Server, String> {
        let socket = folder.join("latchwork-socket");
        let mut command = Command::new(program);
        command.arg(SERVE).arg("--datadir").arg(folder.join("latchwork-data"));
        command.arg("--socket").arg(&socket).args(["--port", "0", "--flush_log_at_trx_commit=2"]);
        Server::begin(command, socket, folder.join("latchwork.log"))
    }

    /// The distribution's MariaDB, in `folder`, which it makes.
    ///
    /// # Errors
    /// If it is not installed or does not start.
    pub fn mariadb(folder: &Path) -> Result<Server, String> {
        let data = format!("--datadir={}", folder.join("mariadb-data").display());
        let temporary = folder.join("mariadb-tmp");
        std::fs::create_dir_all(&temporary).map_err(problem("a folder"))?;
        // A server of root's wants to be told so.
        let owner = std::fs::metadata(folder).map_err(problem("the folder"))?;
        let user = match std::os::unix::fs::MetadataExt::uid(&owner) {
            0 => vec!["--user=root"],
            _ => vec![],
        };
        let install = find("mariadb-install-db").ok_or("mariadb-install-db is not installed")?;
        let installed = Command::new(install)
            .env("TMPDIR", &temporary)
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", &data])
            .args(&user)
            .output()
            .map_err(problem("mariadb-install-db"))?;
        if !installed.status.success() {
            return Err(String::from_utf8_lossy(&installed.stderr).into_owned());
        }
        let socket = folder.join("mariadb-socket");
        let mut command = Command::new(find("mariadbd").ok_or("mariadbd is not installed")?);
        command
            .env("TMPDIR", &temporary)
            .args(["--no-defaults", "--skip-networking", "--innodb-flush-log-at-trx-commit=0"])
            .args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"])
            .args([
                "--innodb-doublewrite=OFF",
                "--innodb-buffer-pool-size=64M",
                "--innodb-file-per-table=OFF",
            ])
            .arg(data)
            .args(user)
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", folder.join("mariadb.pid").display()));
        Server::begin(command, socket, folder.join("mariadb.log"))
    }

    fn begin(mut command: Command, socket: PathBuf, log: PathBuf) -> Result<Server, String> {
        let file = std::fs::File::create(&log).map_err(problem("the server's log"))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        let mut server = Server { child: child.map_err(problem("the server"))?, socket, log };
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end && server.is_running() {
            if connect(&server.socket).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{:?} did not start:\n{}", command.get_program(), server.log()))
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// # Errors
    /// If it does not answer.
    pub fn connect(&self) -> Result<Client, String> {
        connect(&self.socket).map_err(|error| format!("{}: {error}\n{}", self.socket.display(), self.log()))
    }

    /// The end of what the server has written.
    pub fn log(&self) -> String {
        let text = String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

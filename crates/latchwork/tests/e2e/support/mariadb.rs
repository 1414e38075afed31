//! The distribution's MariaDB on a scratch folder. Its results are the expected ones.

use super::{find, signal, text, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The programs that [`MariaDb::start`] and the client need.
pub const PROGRAMS: &[&str] = &["mariadbd", "mariadb-install-db", "mariadb"];

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub struct MariaDb {
    child: Child,
    pub socket: PathBuf,
}

impl MariaDb {
    /// A new data directory in `folder`, and a server on it.
    pub fn start(folder: &Path) -> MariaDb {
        std::fs::create_dir_all(temporary(folder)).unwrap();
        let output = Command::new(find("mariadb-install-db").unwrap())
            .env("TMPDIR", temporary(folder))
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", &user()])
            .arg("--innodb-log-file-size=8M")
            .arg(format!("--datadir={}", data(folder).display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        MariaDb::start_again(folder, &[])
    }

    /// A server on the data directory that is there.
    pub fn start_again(folder: &Path, options: &[&str]) -> MariaDb {
        let mut server = MariaDb::begin(folder, options);
        let up = wait_until(|| {
            let gone = server.child.try_wait().unwrap().is_some();
            gone || super::client(&server.socket)
                .args(["-e", "SELECT 1"])
                .output()
                .is_ok_and(|output| output.status.success())
        });
        let log = std::fs::read_to_string(folder.join("mariadb.log")).unwrap_or_default();
        assert!(up && server.child.try_wait().unwrap().is_none(), "MariaDB did not start:\n{log}");
        server
    }

    /// Starts the process and does not wait until it serves.
    pub fn begin(folder: &Path, options: &[&str]) -> MariaDb {
        let socket = folder.join("mariadb-socket");
        let _ = std::fs::remove_file(&socket);
        let log = std::fs::File::create(folder.join("mariadb.log")).unwrap();
        let child = Command::new(find("mariadbd").unwrap())
            .env("TMPDIR", temporary(folder))
            .args(["--no-defaults", "--skip-networking", "--innodb-log-file-size=8M", &user()])
            .args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"])
            .args(["--innodb-flush-log-at-trx-commit=2", "--loose-innodb-buffer-pool-size=64M"])
            // Newer versions refuse, at REPEATABLE READ, to change a row that is newer than the snapshot.
            .arg("--loose-innodb-snapshot-isolation=OFF")
            .arg(format!("--datadir={}", data(folder).display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", folder.join("mariadb.pid").display()))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        MariaDb { child, socket }
    }

    pub fn sql(&self, script: &str) -> String {
        super::sql(&self.socket, script)
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// SIGTERM: an orderly end.
    pub fn stop(mut self) {
        signal("TERM", self.child.id());
        assert!(wait_until(|| !self.is_running()), "MariaDB does not stop");
    }

    /// SIGKILL: the server cannot write anything more.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("mariadb-data")
}

/// A server that starts removes the temporary tables that it finds, even those of another server that is
/// running.
fn temporary(folder: &Path) -> PathBuf {
    folder.join("mariadb-tmp")
}

fn user() -> String {
    let user = text(&Command::new("id").arg("-un").output().unwrap().stdout);
    format!("--user={}", user.trim())
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

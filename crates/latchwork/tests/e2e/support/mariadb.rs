//! The distribution's MariaDB on a scratch folder: the judge of what is right.

use super::{find, text, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The programs that [`MariaDb::start`] and the client need.
pub const PROGRAMS: &[&str] = &["mariadbd", "mariadb-install-db", "mariadb"];

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct MariaDb {
    child: Child,
    pub socket: PathBuf,
}

impl MariaDb {
    pub fn start(folder: &Path) -> MariaDb {
        let data = folder.join("mariadb-data");
        let socket = folder.join("mariadb-socket");
        let user = text(&Command::new("id").arg("-un").output().unwrap().stdout);
        let user = format!("--user={}", user.trim());
        std::fs::create_dir(&data).unwrap();
        let output = Command::new(find("mariadb-install-db").unwrap())
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", &user])
            .arg("--innodb-log-file-size=8M")
            .arg(format!("--datadir={}", data.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let log = std::fs::File::create(folder.join("mariadb.log")).unwrap();
        let child = Command::new(find("mariadbd").unwrap())
            .args(["--no-defaults", "--skip-networking", "--innodb-log-file-size=8M", &user])
            .args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"])
            .args(["--innodb-flush-log-at-trx-commit=2", "--loose-innodb-buffer-pool-size=64M"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", folder.join("mariadb.pid").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = MariaDb { child, socket };
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

    pub fn sql(&self, script: &str) -> String {
        super::sql(&self.socket, script)
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

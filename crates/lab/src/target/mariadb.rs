//! The distribution's MariaDB on a scratch folder, with the published study's options.

use super::process::{ServerProcess, find_program, find_program_in, socket_path};
use super::server::Flavour;
use super::{Context, Engine, HitPath, Segments, Series, SeriesPlan, Setting};
use crate::driver::socket::{Address, Login};
use crate::error::{Error, Result};
use crate::measure::Process;
use crate::workload::TABLE;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folders where distributions keep servers. They are not in the PATH of users.
const SERVER_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin"];
/// Folders that are searched for MariaDB's programs, instead of PATH and [`SERVER_FOLDERS`]; separated by
/// colons.
const FOLDERS: &str = "LATCHWORK_MARIADB_PATH";
/// Options that shape a new data directory.
const SHAPING: [&str; 2] = ["--innodb-page-size", "--innodb-undo-tablespaces"];
/// The programs that this target needs, by the names of newer and of older versions.
const SERVER: [&str; 2] = ["mariadbd", "mysqld"];
const INSTALLER: [&str; 2] = ["mariadb-install-db", "mysql_install_db"];
/// The package of Debian that has them.
pub(crate) const MARIADB_PACKAGE: &str = "mariadb-server";

#[derive(Debug)]
pub(crate) struct MariaDb {
    engine: Engine,
    /// A cache that holds table and index, for engines that cache both.
    cache_bytes: u64,
    /// MyISAM caches indexes only. The file system caches its rows.
    key_buffer_bytes: u64,
    connections_max: u32,
    extra_options: Vec<String>,
    options: Vec<String>,
    process: Option<ServerProcess>,
}

impl MariaDb {
    pub(crate) fn new(
        engine: Engine,
        cache_bytes: u64,
        key_buffer_bytes: u64,
        connections_max: u32,
        extra_options: Vec<String>,
    ) -> MariaDb {
        let options = Vec::new();
        MariaDb {
            engine,
            cache_bytes,
            key_buffer_bytes,
            connections_max,
            extra_options,
            options,
            process: None,
        }
    }

    fn name(&self) -> String {
        format!("mariadb:{}", self.engine.name())
    }

    /// Makes the data directory.
    fn install(&self, common: &[String], temporary: &Path) -> Result<()> {
        let installer = find(INSTALLER)?;
        let installed = Command::new(&installer)
            .args(common)
            .args(
                self.extra_options
                    .iter()
                    .filter(|option| SHAPING.iter().any(|shaping| option.starts_with(shaping))),
            )
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            // It names its temporary tables after the process, so several of them must not share a folder.
            .env("TMPDIR", temporary)
            .process_group(0)
            .stdin(Stdio::null())
            .output()
            .map_err(Error::path("start", &installer))?;
        if installed.status.success() {
            return Ok(());
        }
        Err(Error::Server {
            target: self.name(),
            why: format!("mariadb-install-db failed ({})", installed.status),
            log: String::from_utf8_lossy(&installed.stderr).trim().to_string(),
        })
    }

    fn server_options(&self) -> Vec<String> {
        let mut options: Vec<String> = [
            "--query_cache_size=0",
            "--query_cache_type=0",
            "--skip-grant-tables",
            "--skip-networking",
            "--table_open_cache=512",
            "--thread_cache_size=512",
            "--skip-log-bin",
            "--performance-schema=off",
        ]
        .map(str::to_string)
        .to_vec();
        options.push(format!("--key_buffer_size={}", self.key_buffer_bytes));
        options.push(format!("--max_connections={}", self.connections_max));
        options.push("--key_cache_segments=0".to_string());
        let cache = self.cache_bytes;
        match self.engine {
            Engine::MyIsam => options.push("--innodb-buffer-pool-size=8M".to_string()),
            Engine::Aria => {
                options.push(format!("--aria-pagecache-buffer-size={cache}"));
                options.push("--innodb-buffer-pool-size=8M".to_string());
            }
            Engine::InnoDb => {
                options.push(format!("--innodb-buffer-pool-size={cache}"));
                options.push("--innodb-flush-log-at-trx-commit=2".to_string());
                options.push("--innodb-log-file-size=256M".to_string());
            }
            Engine::RocksDb => {
                options.push("--plugin-load-add=ha_rocksdb".to_string());
                options.push(format!("--rocksdb-block-cache-size={cache}"));
                options.push("--rocksdb-flush-log-at-trx-commit=2".to_string());
                options.push("--innodb-buffer-pool-size=8M".to_string());
            }
        }
        options.extend(self.extra_options.iter().cloned());
        options
    }
}

/// The path of a program that has one of these names.
fn find(names: [&'static str; 2]) -> Result<PathBuf> {
    let installed = |name: &str| match std::env::var_os(FOLDERS) {
        Some(folders) => find_program_in(name, std::env::split_paths(&folders)),
        None => find_program(name, &SERVER_FOLDERS),
    };
    names.into_iter().find_map(installed).ok_or_else(|| Error::Missing {
        program: names[0].to_string(),
        advice: format!("apt-get install {MARIADB_PACKAGE}, or leave the mariadb targets out"),
    })
}

/// The program of MariaDB that is not installed; `None` if all that the lab needs are there.
pub(crate) fn missing_mariadb_program() -> Option<&'static str> {
    [SERVER, INSTALLER].into_iter().find(|names| find(*names).is_err()).map(|names| names[0])
}

/// Explains the error of a server that finds no RocksDB: RocksDB comes in a package of its own.
fn without_plugin(error: Error) -> Error {
    match &error {
        Error::Server { log, .. } if log.contains("unknown variable 'rocksdb") => Error::Missing {
            program: "MariaDB's RocksDB".to_string(),
            advice: "apt-get install mariadb-plugin-rocksdb, or leave mariadb:rocksdb out".to_string(),
        },
        _ => error,
    }
}

impl Flavour for MariaDb {
    /// MyISAM has a series for each number of segments, however many hit paths are asked for. The other
    /// engines have no segments.
    fn series(&self, asked: &[Setting]) -> SeriesPlan {
        if self.engine != Engine::MyIsam {
            let label = self.engine.name().to_string();
            let left_out = vec![format!("{label} does not use the key cache: measured as it is")];
            return SeriesPlan { series: vec![Series { label, setting: None }], baseline: None, left_out };
        }
        let mut settings = Vec::new();
        let mut left_out = Vec::new();
        for setting in asked {
            let own = Setting { segments: setting.segments, hit_path: HitPath::Locked };
            if setting.segments == Segments::Auto {
                left_out = vec!["MariaDB has no automatic number of segments; left out".to_string()];
            } else if !settings.contains(&own) {
                settings.push(own);
            }
        }
        SeriesPlan { left_out, ..super::all_settings(&settings) }
    }

    fn start(&mut self, folder: &Path, context: &mut Context<'_>) -> Result<Login> {
        let server = find(SERVER)?;
        let data = folder.join("data");
        let temporary = folder.join("tmp");
        std::fs::create_dir_all(&temporary).map_err(Error::path("create", &temporary))?;
        let mut common = vec!["--no-defaults".to_string(), format!("--datadir={}", data.display())];
        if rustix::process::geteuid().is_root() {
            common.push("--user=root".to_string());
        }
        let log = folder.join("log");
        if !data.exists() {
            self.install(&common, &temporary)?;
        }
        self.options = self.server_options();
        let socket = socket_path(folder)?;
        common.extend(self.options.iter().cloned());
        common.push(format!("--socket={}", socket.display()));
        common.push(format!("--tmpdir={}", temporary.display()));
        common.push(format!("--log-error={}", log.display()));
        common.push(format!("--pid-file={}", folder.join("pid").display()));
        let login = Login {
            target: self.name(),
            address: Address::Unix(socket),
            user: "root".to_string(),
            password: String::new(),
            database: None,
        };
        let process = ServerProcess::start(&self.name(), &server, &common, &log)?;
        let ready = self.process.insert(process).wait_until_ready(&login, context.interrupt);
        ready.map_err(|error| if self.engine == Engine::RocksDb { without_plugin(error) } else { error })?;
        Ok(login)
    }

    fn process(&self) -> Option<Process> {
        self.process.as_ref().map(|process| Process::Other(process.pid()))
    }

    fn engine(&self) -> &str {
        self.engine.name()
    }

    fn setting_sql(&self, setting: Setting) -> Vec<String> {
        match setting.segments {
            Segments::Count(count) => vec![format!("SET GLOBAL key_cache_segments = {count}")],
            Segments::Auto => Vec::new(),
        }
    }

    fn warming_sql(&self) -> Vec<String> {
        let preload = format!("LOAD INDEX INTO CACHE {TABLE}");
        let rows = format!("SELECT COUNT(*) FROM {TABLE} FORCE INDEX (PRIMARY) WHERE pad <> ''");
        let index = format!("SELECT COUNT(*) FROM {TABLE} FORCE INDEX (k) WHERE k > 0");
        match self.engine {
            Engine::MyIsam => vec![preload, rows],
            Engine::Aria | Engine::InnoDb | Engine::RocksDb => vec![rows, index],
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("options".to_string(), self.options.join(" "))]
    }

    fn stop(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), ServerProcess::stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mariadb(engine: Engine) -> MariaDb {
        MariaDb::new(engine, 1 << 30, 512 << 20, 256, vec!["--extra=1".to_string()])
    }

    #[test]
    fn myisam_sweeps_each_number_of_segments_once() {
        let count = Segments::Count;
        let both =
            |segments| [HitPath::Locked, HitPath::Optimistic].map(|hit_path| Setting { segments, hit_path });
        let asked: Vec<Setting> = [count(0), count(32), Segments::Auto].into_iter().flat_map(both).collect();
        let plan = mariadb(Engine::MyIsam).series(&asked);
        let labels: Vec<&str> = plan.series.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(labels, ["off", "32"]);
        assert_eq!(plan.baseline.as_deref(), Some("off"));
        assert_eq!(plan.left_out.len(), 1);
        let plan = mariadb(Engine::InnoDb).series(&asked);
        assert_eq!((plan.series.len(), plan.baseline), (1, None));
    }

    #[test]
    fn a_server_without_rocksdb_is_told_what_to_install() {
        let ended = |log: &str| Error::Server {
            target: "mariadb:rocksdb".to_string(),
            why: "the server ended while starting".to_string(),
            log: log.to_string(),
        };
        let log =
            "[ERROR] mariadbd: unknown variable 'rocksdb-block-cache-size=1073741824'\n[ERROR] Aborting";
        assert!(without_plugin(ended(log)).to_string().contains("mariadb-plugin-rocksdb"));
        assert!(without_plugin(ended("disk full")).to_string().contains("disk full"));
    }

    #[test]
    fn the_server_gets_the_studys_options_and_the_users_last() {
        let options = mariadb(Engine::MyIsam).server_options();
        for option in [
            "--query_cache_type=0",
            "--table_open_cache=512",
            "--thread_cache_size=512",
            "--max_connections=256",
        ] {
            assert!(options.iter().any(|given| given == option), "{option}");
        }
        assert!(options.contains(&format!("--key_buffer_size={}", 512 << 20)));
        assert_eq!(options.last().unwrap(), "--extra=1");
    }
}

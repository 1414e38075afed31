//! A Latchwork server of this same build, on a scratch folder and a unix socket.

use super::process::{ServerProcess, socket_path};
use super::server::Flavour;
use super::{Context, Preset, Segments, SeriesPlan, Setting, TargetSpec};
use crate::driver::socket::{Address, Login};
use crate::error::{Error, Result};
use crate::measure::Process;
use crate::workload::TABLE;
use std::path::{Path, PathBuf};

/// Names another binary to start, for tests whose own process is not `latchwork`.
const BINARY_VARIABLE: &str = "LATCHWORK_LAB_BINARY";

#[derive(Debug)]
pub(crate) struct Latchwork {
    preset: Option<Preset>,
    cache_bytes: u64,
    connections_max: u32,
    extra_options: Vec<String>,
    options: Vec<String>,
    process: Option<ServerProcess>,
}

impl Latchwork {
    pub(crate) fn new(preset: Option<Preset>, cache_bytes: u64, connections_max: u32) -> Latchwork {
        Latchwork {
            preset,
            cache_bytes,
            connections_max,
            extra_options: Vec::new(),
            options: Vec::new(),
            process: None,
        }
    }

    /// With more options for the server.
    pub(crate) fn with_options(self, extra_options: Vec<String>) -> Latchwork {
        Latchwork { extra_options, ..self }
    }
}

fn binary() -> Result<PathBuf> {
    match std::env::var_os(BINARY_VARIABLE) {
        Some(path) => Ok(PathBuf::from(path)),
        None => std::env::current_exe().map_err(Error::io("cannot find the latchwork binary")),
    }
}

impl Flavour for Latchwork {
    fn series(&self, asked: &[Setting]) -> SeriesPlan {
        super::all_settings(asked)
    }

    fn start(&mut self, folder: &Path, context: &mut Context<'_>) -> Result<Login> {
        let name = TargetSpec::Latchwork(self.preset).name();
        let socket = socket_path(folder)?;
        self.options = [
            "--no-defaults".to_string(),
            format!("--key_buffer_size={}", self.cache_bytes),
            format!("--max_connections={}", self.connections_max),
            "--skip-grant-tables".to_string(),
            "--skip-networking".to_string(),
        ]
        .to_vec();
        self.options.extend(self.preset.map(|preset| format!("--preset={}", preset.name())));
        self.options.extend(self.extra_options.iter().cloned());
        let mut arguments = vec!["serve".to_string()];
        arguments.extend(self.options.iter().cloned());
        arguments.push(format!("--datadir={}", folder.join("data").display()));
        arguments.push(format!("--socket={}", socket.display()));
        let login = Login {
            target: name.clone(),
            address: Address::Unix(socket),
            user: "root".to_string(),
            password: String::new(),
            database: None,
        };
        let process = ServerProcess::start(&name, &binary()?, &arguments, &folder.join("log"))?;
        self.process.insert(process).wait_until_ready(&login, context.interrupt)?;
        Ok(login)
    }

    fn process(&self) -> Option<Process> {
        self.process.as_ref().map(|process| Process::Other(process.pid()))
    }

    fn engine(&self) -> &str {
        "MyISAM"
    }

    fn setting_sql(&self, setting: Setting) -> Vec<String> {
        let segments = match setting.segments {
            Segments::Auto => "DEFAULT".to_string(),
            Segments::Count(count) => count.to_string(),
        };
        vec![
            format!("SET GLOBAL key_cache_segments = {segments}"),
            format!("SET GLOBAL key_cache_hit_path = '{}'", setting.hit_path.name()),
        ]
    }

    fn warming_sql(&self) -> Vec<String> {
        vec![
            format!("SELECT COUNT(*) FROM {TABLE} WHERE pad <> ''"),
            format!("SELECT COUNT(*) FROM {TABLE} WHERE k > 0"),
        ]
    }

    fn latch_waits_variable(&self) -> Option<&str> {
        Some("Latch_waits")
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("options".to_string(), self.options.join(" "))]
    }

    fn stop(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), ServerProcess::stop)
    }
}

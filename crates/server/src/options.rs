//! Options of `latchwork serve`: the command line and configuration files.
//!
//! Every system variable is an option. The table of variables ([`sql::variables`]) knows their types, ranges
//! and old names. This module reads the form (`--name=value`, `--name value`, `-` for `_`, the groups of a
//! file) and has the table of the few options that are no variables ([`OTHER_OPTIONS`]).

mod config_file;
mod hint;

pub(crate) use hint::closest;

use engine::Preset;
use sql::variables::{self, Globals, Kind, OptionError};
use std::fmt;
use std::path::{Path, PathBuf};

/// The options that were given to the server.
#[derive(Debug)]
pub struct Options {
    /// The values of all variables.
    pub globals: Globals,
    pub help: bool,
    /// Whether new passwords are checked from the start: `--plugin-load-add=simple_password_check`.
    pub checks_passwords: bool,
    /// Sentences for the log about options without effect and values that were limited. None is there twice.
    pub remarks: Vec<String>,
}

/// Permissions and owner of the unix socket's file. Whoever may write to it reaches the login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SocketAccess {
    pub mode: u32,
    /// `None` leaves the user and group of the server.
    pub user: Option<u32>,
    pub group: Option<u32>,
}

/// Why the options cannot be used, and where the wrong option is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionProblem {
    /// File and line; `None` is the command line.
    place: Option<(PathBuf, usize)>,
    why: String,
}

impl fmt::Display for OptionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((path, 0)) => write!(f, "{}: {}", path.display(), self.why),
            Some((path, line)) => write!(f, "{}, line {line}: {}", path.display(), self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl std::error::Error for OptionProblem {}

impl OptionProblem {
    fn new(why: impl Into<String>) -> OptionProblem {
        OptionProblem { place: None, why: why.into() }
    }

    fn at(mut self, path: &Path, line: usize) -> OptionProblem {
        self.place = Some((path.to_path_buf(), line));
        self
    }
}

/// The effect of an option that is no variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Other {
    /// Reads the file that its value names.
    File,
    /// Sets several variables, as its value says.
    Preset,
    Help,
    /// Switches on the parts of the server that its value names.
    Plugins,
    /// Nothing: how a part of the server is loaded that is always there.
    Permanent,
    /// Nothing. The option is known because programs that start MySQL's server give it.
    Ignored,
}

/// The options that are no variables, each with its effect.
static OTHER_OPTIONS: &[(&str, Other)] = &[
    ("config", Other::File),
    ("defaults_file", Other::File),
    ("defaults_extra_file", Other::File),
    ("preset", Other::Preset),
    ("help", Other::Help),
    ("plugin_load", Other::Plugins),
    ("plugin_load_add", Other::Plugins),
    // No file is read unless it is asked for.
    ("no_defaults", Other::Ignored),
    // The plugin cannot be uninstalled, whatever the value is.
    ("server_audit", Other::Permanent),
    ("console", Other::Ignored),
];

impl Other {
    /// The option with this name in lower case and with `_`.
    fn named(canonical: &str) -> Option<Other> {
        OTHER_OPTIONS.iter().find(|(name, _)| *name == canonical).map(|(_, other)| *other)
    }

    fn takes_value(self) -> bool {
        matches!(self, Other::File | Other::Preset | Other::Plugins | Other::Permanent)
    }
}

impl Options {
    /// Reads the arguments after `serve`. If an option is given twice, the last value wins. Files count as
    /// given before all arguments, so that the command line overrides them.
    ///
    /// # Errors
    /// An option is unknown, its value is wrong or missing, or a file cannot be read.
    pub fn parse(arguments: &[String]) -> Result<Options, OptionProblem> {
        let given = split(arguments)?;
        let mut options =
            Options { globals: Globals::new(), help: false, checks_passwords: false, remarks: Vec::new() };
        // An option that is given by itself wins over the preset, wherever it is given. So the preset comes
        // first.
        for (name, value) in &given {
            if Other::named(&canonical(name)) == Some(Other::Preset) {
                options.set_preset(value.as_deref().unwrap_or_default())?;
            }
        }
        for (name, value) in &given {
            if let (Some(Other::File), Some(path)) = (Other::named(&canonical(name)), value) {
                options.read_file(Path::new(path))?;
            }
        }
        for (name, value) in &given {
            match Other::named(&canonical(name)) {
                Some(Other::File | Other::Preset | Other::Ignored | Other::Permanent) => {}
                Some(Other::Plugins) => options.load_plugins(value.as_deref().unwrap_or_default()),
                Some(Other::Help) => options.help = true,
                None => options.set(name, value.as_deref())?,
            }
        }
        Ok(options)
    }

    fn read_file(&mut self, path: &Path) -> Result<(), OptionProblem> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            OptionProblem::new(format!("cannot read the configuration: {error}")).at(path, 0)
        })?;
        for option in config_file::parse(&text) {
            let config_file::Line { number, name, value } =
                option.map_err(|(line, why)| OptionProblem::new(why).at(path, line))?;
            self.set(&name, value.as_deref()).map_err(|problem| problem.at(path, number))?;
        }
        Ok(())
    }

    /// Reads a list as MariaDB has it: `LIBRARY;NAME=LIBRARY`.
    fn load_plugins(&mut self, list: &str) {
        for plugin in list.split(';').filter(|plugin| !plugin.is_empty()) {
            let library = plugin.split_once('=').map_or(plugin, |(_, library)| library);
            match library.strip_suffix(".so").unwrap_or(library) {
                "simple_password_check" => self.checks_passwords = true,
                // They are always there.
                "auth_ed25519" | "auth_parsec" | "auth_socket" | "server_audit" => {}
                _ => self.remarks.push(format!("option '--plugin-load-add': there is no plugin '{plugin}'")),
            }
        }
    }

    /// Sets the options that a name of `--preset` stands for.
    fn set_preset(&mut self, name: &str) -> Result<(), OptionProblem> {
        let Some(preset) = Preset::named(name) else {
            let names: Vec<&str> = Preset::ALL.into_iter().map(Preset::name).collect();
            let text =
                format!("option '--preset': wrong value '{name}': expected one of {}", names.join(", "));
            return Err(OptionProblem::new(text));
        };
        let settings = preset.settings();
        let latches = match settings.latches {
            engine::LatchImplementation::Direct => "direct",
            engine::LatchImplementation::WaitArray => "wait_array",
        };
        self.set("latch_implementation", Some(latches))?;
        self.set("key_cache_hit_path", Some(settings.hit_path.name()))?;
        self.set("use_sys_malloc", Some(if settings.use_sys_malloc { "ON" } else { "OFF" }))?;
        self.set("malloc_lib", Some(settings.malloc_lib))?;
        self.set("thread_concurrency", Some(&settings.thread_concurrency.to_string()))
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), OptionProblem> {
        match Other::named(&canonical(name)) {
            Some(Other::Preset) => return self.set_preset(value.unwrap_or_default()),
            Some(Other::Plugins) => {
                self.load_plugins(value.unwrap_or_default());
                return Ok(());
            }
            Some(Other::Permanent) => return Ok(()),
            _ => {}
        }
        // Values out of range are limited, but a wrong port is an error.
        let of_zero = match canonical(name).as_str() {
            "port" => Some("any free port"),
            "extra_port" => Some("none"),
            _ => None,
        };
        if let (Some(of_zero), Some(text)) = (of_zero, value)
            && text.parse::<u16>().is_err()
        {
            return Err(OptionProblem::new(format!(
                "option '--{name}': wrong value '{text}': expected a number from 0 ({of_zero}) to 65535"
            )));
        }
        match self.globals.set_option(name, value) {
            Ok(remarks) => {
                for remark in remarks {
                    if !self.remarks.contains(&remark) {
                        self.remarks.push(remark);
                    }
                }
                Ok(())
            }
            Err(OptionError::Unknown { .. }) => {
                let names = variables::listed().iter().map(|named| named.name);
                let others = OTHER_OPTIONS.iter().map(|(name, _)| *name);
                let hint = match closest(&canonical(name), names.chain(others)) {
                    Some(close) => format!(". Did you mean '--{close}'?"),
                    None => ". `latchwork serve --help` lists the options".to_string(),
                };
                Err(OptionProblem::new(format!("unknown option '--{name}'{hint}")))
            }
            Err(error) => Err(OptionProblem::new(error.to_string())),
        }
    }

    /// The data directory.
    pub fn datadir(&self) -> PathBuf {
        match self.globals.values().text("datadir") {
            text if text.is_empty() => PathBuf::from("latchwork-data"),
            text => PathBuf::from(text),
        }
    }

    /// The path of the socket: that of `--socket`, or `latchwork.sock` in the data directory.
    pub fn socket(&self) -> PathBuf {
        match self.globals.values().text("socket") {
            text if text.is_empty() => self.datadir().join("latchwork.sock"),
            text => PathBuf::from(text),
        }
    }

    /// Permissions and owner of the socket.
    ///
    /// # Errors
    /// `--socket_mode` is no octal number of permissions, or `--socket_owner` is not `USER` or `USER:GROUP`
    /// in numbers.
    pub(crate) fn socket_access(&self) -> Result<SocketAccess, OptionProblem> {
        let values = self.globals.values();
        let wrong = |name: &str, value: &str, expected: &str| {
            OptionProblem::new(format!("option '--{name}': wrong value '{value}': expected {expected}"))
        };
        let text = values.text("socket_mode");
        let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777);
        let mode = mode.ok_or_else(|| wrong("socket_mode", &text, "permissions in octal, such as 0770"))?;
        let text = values.text("socket_owner");
        let number = |part: &str| part.parse::<u32>().ok();
        let (user, group) = match text.split_once(':') {
            _ if text.is_empty() => (Some(None), Some(None)),
            Some((user, group)) => (number(user).map(Some), number(group).map(Some)),
            None => (number(&text).map(Some), Some(None)),
        };
        let (Some(user), Some(group)) = (user, group) else {
            return Err(wrong("socket_owner", &text, "USER or USER:GROUP as numbers, such as 1000:33"));
        };
        Ok(SocketAccess { mode, user, group })
    }

    /// Address and port to listen at. None with `--skip-networking`, and none with `--skip-grant-tables`:
    /// without passwords, whoever reached the port would be `root`.
    pub fn tcp(&self) -> Option<(String, u16)> {
        let values = self.globals.values();
        if values.boolean("skip_networking") || values.boolean("skip_grant_tables") {
            return None;
        }
        let bind = match values.text("bind_address") {
            text if text.is_empty() => "127.0.0.1".to_string(),
            text => text,
        };
        Some((bind, values.unsigned("port") as u16))
    }

    /// Another port at the same address, for `extra_max_connections`.
    pub fn extra_tcp(&self) -> Option<(String, u16)> {
        let port = self.globals.values().unsigned("extra_port") as u16;
        self.tcp().filter(|_| port != 0).map(|(bind, _)| (bind, port))
    }

    pub fn skip_grant_tables(&self) -> bool {
        self.globals.values().boolean("skip_grant_tables")
    }

    /// The file of `--log-error`; `None` is standard error.
    pub fn log_error(&self) -> Option<PathBuf> {
        Some(self.globals.values().text("log_error")).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// The file of `--init-file`, if it was given.
    pub fn init_file(&self) -> Option<PathBuf> {
        Some(self.globals.values().text("init_file")).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// Host and port of `--metrics-address`, if it was given.
    pub fn metrics_address(&self) -> Option<String> {
        Some(self.globals.values().text("metrics_address")).filter(|address| !address.is_empty())
    }

    /// The file of `--pid-file`, if it was given. A relative path begins in the data directory.
    pub fn pid_file(&self) -> Option<PathBuf> {
        let path = self.globals.values().text("pid_file");
        (!path.is_empty()).then(|| self.datadir().join(path))
    }

    /// The folder of `--tmpdir`, if it was given.
    pub fn tmpdir(&self) -> Option<PathBuf> {
        Some(self.globals.values().text("tmpdir")).filter(|path| !path.is_empty()).map(PathBuf::from)
    }
}

/// Lower case, `_` for `-`.
fn canonical(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// Pairs names with their values. A value may follow after a space, unless the option is a switch.
fn split(arguments: &[String]) -> Result<Vec<(String, Option<String>)>, OptionProblem> {
    let mut given = Vec::new();
    let mut arguments = arguments.iter().peekable();
    while let Some(argument) = arguments.next() {
        let Some(option) = argument.strip_prefix("--").filter(|option| !option.is_empty()) else {
            match argument.as_str() {
                "-h" | "-?" => given.push(("help".to_string(), None)),
                _ => {
                    return Err(OptionProblem::new(format!(
                        "'{argument}' is not an option: options are written --name=value"
                    )));
                }
            }
            continue;
        };
        if let Some((name, value)) = option.split_once('=') {
            given.push((name.to_string(), Some(value.to_string())));
            continue;
        }
        let value = match takes_value(&canonical(option)) {
            true => arguments.next_if(|next| !next.starts_with("--")).cloned(),
            false => None,
        };
        if value.is_none() && Other::named(&canonical(option)).is_some_and(Other::takes_value) {
            return Err(OptionProblem::new(format!("option '--{option}' requires an argument")));
        }
        given.push((option.to_string(), value));
    }
    Ok(given)
}

fn takes_value(canonical: &str) -> bool {
    if let Some(other) = Other::named(canonical) {
        return other.takes_value();
    }
    let plain = canonical.strip_prefix("loose_").unwrap_or(canonical);
    let plain = plain.rsplit_once('.').map_or(plain, |(_, component)| component);
    match variables::find(plain) {
        Some(variable) => !matches!(variable.definition().kind, Kind::Boolean { .. }),
        // A negated switch such as `skip-name`, an old name, or an unknown one: their values are written with
        // `=`.
        None => ["skip_", "disable_", "enable_"].iter().all(|prefix| !plain.starts_with(prefix)),
    }
}

#[cfg(test)]
mod tests;

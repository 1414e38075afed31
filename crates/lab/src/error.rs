//! Errors of a run. Their messages are sentences for the user.

use std::fmt;
use std::path::{Path, PathBuf};

#[non_exhaustive]
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line asks for something that does not exist or makes no sense.
    Usage(String),
    Io {
        what: String,
        source: std::io::Error,
    },
    /// A program that a target or driver needs is not installed.
    Missing {
        program: String,
        advice: String,
    },
    /// A server that the lab started did not come up or went away.
    Server {
        target: String,
        why: String,
        /// The end of its error log.
        log: String,
    },
    /// A server answered with an error packet.
    Sql {
        target: String,
        statement: String,
        code: u16,
        message: String,
    },
    /// A server's bytes were not the MySQL protocol.
    Protocol {
        target: String,
        why: String,
    },
    Engine(engine::Error),
    /// A target gave a wrong answer.
    WrongAnswer {
        target: String,
        why: String,
    },
    /// A driver's output could not be understood.
    Driver {
        driver: &'static str,
        why: String,
    },
    /// A file should hold results of the lab, and does not.
    NoResults {
        path: PathBuf,
        why: String,
    },
    /// Ctrl-C or a termination signal.
    Interrupted,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }

    pub(crate) fn path(verb: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        Error::io(format!("cannot {verb} {}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(why) => f.write_str(why),
            Error::Io { what, source } => write!(f, "{what}: {source}"),
            Error::NoResults { path, why } => write!(f, "{}: {why}", path.display()),
            Error::Missing { program, advice } => write!(f, "{program} is not installed: {advice}"),
            Error::Server { target, why, log } => {
                write!(f, "{target}: {why}")?;
                if !log.is_empty() {
                    write!(f, "\nits log ends:\n{}", indented(log))?;
                }
                Ok(())
            }
            Error::Sql { target, statement, code, message } => {
                write!(f, "{target} refused `{}`: error {code}: {message}", shortened(statement))
            }
            Error::Protocol { target, why } => write!(f, "{target} broke the protocol: {why}"),
            Error::Engine(error) => write!(f, "embedded engine: {error}"),
            Error::WrongAnswer { target, why } => write!(f, "{target} gave a wrong answer: {why}"),
            Error::Driver { driver, why } => write!(f, "driver {driver}: {why}"),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Error {
        Error::Engine(error)
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect::<String>().trim_end().to_string()
}

fn shortened(statement: &str) -> String {
    const CHARACTERS_MAX: usize = 120;
    if statement.chars().count() <= CHARACTERS_MAX {
        return statement.to_string();
    }
    statement.chars().take(CHARACTERS_MAX).chain(" ...".chars()).collect()
}

/// The last `lines_max` lines of a log file, or nothing if it cannot be read.
pub(crate) fn log_tail(path: &PathBuf, lines_max: usize) -> String {
    let text =
        std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(lines_max)..].join("\n")
}

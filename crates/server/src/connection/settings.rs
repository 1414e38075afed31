//! The session's variables that the connection itself uses.

use super::cells::ResultCharset;
use sql::Session;
use std::borrow::Cow;
use std::time::Duration;
use types::collation::CharacterMap;

/// These are read again after statements that may have set them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Settings {
    pub results: ResultCharset,
    /// The character set of the client's texts, if they are not UTF-8.
    client: Option<&'static CharacterMap>,
    pub wait_timeout: Duration,
    pub read_timeout: Duration,
    pub write_timeout: Duration,
    /// `long_query_time`, in microseconds.
    slow_micros: u64,
    logs_scans: bool,
}

impl Settings {
    pub(super) fn of(session: &Session) -> Settings {
        let values = session.variables().values();
        let seconds = |name| Duration::from_secs(values.unsigned(name));
        Settings {
            results: match values.text("character_set_results").as_str() {
                "utf8mb3" => ResultCharset::Utf8mb3,
                "ascii" => ResultCharset::Ascii,
                name => CharacterMap::named(name).map_or(ResultCharset::AsStored, ResultCharset::OneByte),
            },
            client: CharacterMap::named(&values.text("character_set_client")),
            wait_timeout: seconds("wait_timeout"),
            read_timeout: seconds("net_read_timeout"),
            write_timeout: seconds("net_write_timeout"),
            slow_micros: (values.double("long_query_time") * 1e6) as u64,
            logs_scans: values.boolean("log_slow_query") && values.boolean("log_queries_not_using_indexes"),
        }
    }

    /// True for a statement that took longer than `long_query_time`.
    #[inline]
    pub(super) fn is_slow(&self, micros: u64) -> bool {
        micros > self.slow_micros
    }

    /// True if statements that read a whole table or index are logged, even if they were fast.
    #[inline]
    pub(super) fn logs_scans(&self) -> bool {
        self.logs_scans
    }

    /// True if the client sends texts that are not UTF-8.
    #[inline]
    pub(super) fn converts_texts(&self) -> bool {
        self.client.is_some()
    }

    /// A text of the client in UTF-8: of a statement, or of a parameter.
    pub(super) fn statement<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match self.client {
            Some(map) if !text.is_ascii() => Cow::Owned(map.decode(text).into_bytes()),
            _ => Cow::Borrowed(text),
        }
    }
}

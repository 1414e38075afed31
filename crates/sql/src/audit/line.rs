//! How events are written.

use super::{ConnectionEvent, Settings, TableUse, Who};
use crate::text::parse;
use std::borrow::Cow;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};
use types::DateTime;

/// `server_audit_format`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Format {
    /// MariaDB's: fields between commas.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

#[derive(Debug)]
pub(super) enum Event<'a> {
    Connection(ConnectionEvent),
    Table { what: TableUse, database: &'a str, table: &'a str },
    Statement { text: &'a [u8], code: u16 },
}

/// The present moment in UTC, to the second.
pub(super) fn now() -> DateTime {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    DateTime::from_unix_micros(micros as i64, 0)
}

impl Event<'_> {
    fn name(&self) -> &'static str {
        match self {
            Event::Connection(ConnectionEvent::Connect) => "CONNECT",
            Event::Connection(ConnectionEvent::FailedConnect(_)) => "FAILED_CONNECT",
            Event::Connection(ConnectionEvent::ChangeUser(_)) => "CHANGEUSER",
            Event::Connection(ConnectionEvent::Disconnect) => "DISCONNECT",
            Event::Table { what: TableUse::Read, .. } => "READ",
            Event::Table { what: TableUse::Write, .. } => "WRITE",
            Event::Table { what: TableUse::Create, .. } => "CREATE",
            Event::Table { what: TableUse::Alter, .. } => "ALTER",
            Event::Table { what: TableUse::Drop, .. } => "DROP",
            Event::Table { what: TableUse::Rename, .. } => "RENAME",
            Event::Statement { .. } => "QUERY",
        }
    }

    /// `None` where nothing can fail.
    fn code(&self) -> Option<u16> {
        match self {
            Event::Connection(ConnectionEvent::FailedConnect(code) | ConnectionEvent::ChangeUser(code)) => {
                Some(*code)
            }
            Event::Connection(_) => Some(0),
            Event::Table { .. } => None,
            Event::Statement { code, .. } => Some(*code),
        }
    }

    fn database<'e>(&'e self, who: Who<'e>) -> &'e str {
        match self {
            Event::Table { database, .. } => database,
            Event::Connection(_) | Event::Statement { .. } => who.database.unwrap_or_default(),
        }
    }
}

/// What the lines of several events have in common.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub settings: &'a Settings,
    pub now: DateTime,
    pub who: Who<'a>,
    pub query: u64,
}

/// Appends the line of an event.
pub(super) fn push(out: &mut Vec<u8>, head: Head<'_>, event: &Event<'_>) {
    match head.settings.format {
        Format::Text => push_text(out, head, event),
        Format::Json => push_json(out, head, event),
    }
    out.push(b'\n');
}

fn push_text(out: &mut Vec<u8>, Head { settings, now, who, query }: Head<'_>, event: &Event<'_>) {
    let DateTime { date, hour, minute, second, .. } = now;
    // Writing into memory does not fail.
    let _ = write!(out, "{:08} {hour:02}:{minute:02}:{second:02},", date.to_number());
    for field in [settings.machine.as_str(), who.user, who.host] {
        push_escaped(out, field.as_bytes(), usize::MAX);
        out.push(b',');
    }
    let _ = write!(out, "{},{query},{},", who.connection, event.name());
    push_escaped(out, event.database(who).as_bytes(), usize::MAX);
    out.push(b',');
    match event {
        Event::Connection(_) => {}
        Event::Table { table, .. } => push_escaped(out, table.as_bytes(), usize::MAX),
        Event::Statement { text, .. } => {
            out.push(b'\'');
            push_escaped(out, &shown(text), settings.text_bytes_max);
            out.push(b'\'');
        }
    }
    out.push(b',');
    if let Some(code) = event.code() {
        let _ = write!(out, "{code}");
    }
}

fn push_json(out: &mut Vec<u8>, Head { settings, now, who, query }: Head<'_>, event: &Event<'_>) {
    let DateTime { date, hour, minute, second, .. } = now;
    let moment = format!("{date}T{hour:02}:{minute:02}:{second:02}Z");
    let text = |out: &mut Vec<u8>, name: &str, value: &str| {
        let _ = write!(out, "\"{name}\":{},", serde_json::Value::from(value));
    };
    out.push(b'{');
    text(out, "time", &moment);
    text(out, "server", &settings.machine);
    text(out, "user", who.user);
    text(out, "host", who.host);
    let _ = write!(out, "\"connection\":{},", who.connection);
    if query > 0 {
        let _ = write!(out, "\"query\":{query},");
    }
    text(out, "event", event.name());
    text(out, "database", event.database(who));
    match event {
        Event::Connection(_) => {}
        Event::Table { table, .. } => text(out, "table", table),
        Event::Statement { text: statement, .. } => {
            let shown = shown(statement);
            let cut = &shown[..cut(&shown, settings.text_bytes_max)];
            text(out, "statement", &String::from_utf8_lossy(cut));
        }
    }
    if let Some(code) = event.code() {
        let _ = write!(out, "\"error\":{code},");
    }
    out.pop();
    out.push(b'}');
}

/// A statement without its secrets, and without what separates it from the next one.
fn shown(text: &[u8]) -> Cow<'_, [u8]> {
    let mut text = text.trim_ascii();
    while let Some(before) = text.strip_suffix(b";") {
        text = before.trim_ascii_end();
    }
    parse::bytes_without_secrets(text)
}

/// Where a text is cut so that at most so many bytes are left, and no letter is cut.
fn cut(text: &[u8], bytes_max: usize) -> usize {
    let mut end = text.len().min(bytes_max);
    while end < text.len() && end > 0 && text[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    end
}

/// Appends at most so many bytes of a text that stays on its line and between its quotes.
fn push_escaped(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    let begin = out.len();
    for (at, &byte) in text.iter().enumerate() {
        let escaped = match byte {
            b'\'' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0C => b'f',
            _ => 0,
        };
        let length = out.len() - begin;
        if length + 1 + usize::from(escaped != 0) > bytes_max {
            // The beginning of a letter whose end has no room goes, too.
            out.truncate(begin + length - (at - cut(text, at)).min(length));
            return;
        }
        if escaped != 0 {
            out.push(b'\\');
        }
        out.push(if escaped == 0 { byte } else { escaped });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_255_965_000_000;
    const WHO: Who<'_> = Who { user: "ann", host: "localhost", connection: 7, database: Some("d") };

    fn line(format: Format, text_bytes_max: usize, query: u64, event: &Event<'_>) -> String {
        let settings = Settings { format, text_bytes_max, machine: "vm".to_owned(), ..Settings::default() };
        let mut out = Vec::new();
        let now = DateTime::from_unix_micros(NOW, 0);
        push(&mut out, Head { settings: &settings, now, who: WHO, query }, event);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_those_of_mariadb() {
        let text = |event| line(Format::Text, 1024, 9, &event);
        assert_eq!(
            text(Event::Statement { text: b"select 'a\tb',\n 'c\\d' ; ", code: 0 }),
            "20261121 10:12:45,vm,ann,localhost,7,9,QUERY,d,'select \\'a\\tb\\',\\n \\'c\\\\d\\'',0\n"
        );
        assert_eq!(
            text(Event::Statement { text: b"set password = password('s3')", code: 1064 }),
            "20261121 10:12:45,vm,ann,localhost,7,9,QUERY,d,'set password = password(*****)',1064\n"
        );
        assert_eq!(
            text(Event::Table { what: TableUse::Rename, database: "d", table: "t|d.u" }),
            "20261121 10:12:45,vm,ann,localhost,7,9,RENAME,d,t|d.u,\n"
        );
        let failed = Event::Connection(ConnectionEvent::FailedConnect(1045));
        assert_eq!(
            line(Format::Text, 0, 0, &failed),
            "20261121 10:12:45,vm,ann,localhost,7,0,FAILED_CONNECT,d,,1045\n"
        );
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        let cut = |text: &str, bytes_max| {
            let line = line(Format::Text, bytes_max, 1, &Event::Statement { text: text.as_bytes(), code: 0 });
            line.split_once("d,'").unwrap().1.trim_end().to_owned()
        };
        assert_eq!(cut("select 1234567890", 10), "select 123',0");
        assert_eq!(cut("select '\t\t\t'", 10), "select \\'',0");
        assert_eq!(cut("ab\u{e9}\u{e9}", 5), "ab\u{e9}',0");
        assert_eq!(cut("ab\u{e9}\u{e9}", 3), "ab',0");
        assert_eq!(cut("ab", 0), "',0");
    }

    #[test]
    fn json_has_an_object_a_line() {
        let event = Event::Statement { text: b"select \"a\nb\"", code: 0 };
        let line = line(Format::Json, 1024, 9, &event);
        let value: serde_json::Value = serde_json::from_str(line.strip_suffix('\n').unwrap()).unwrap();
        assert_eq!(value["statement"], "select \"a\nb\"");
        assert_eq!(value["time"], "2026-11-21T10:12:45Z");
        assert_eq!((&value["query"], &value["error"]), (&9.into(), &0.into()));
        assert!(!line[..line.len() - 1].contains('\n'));
    }
}

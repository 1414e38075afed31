//! Which events are noted: `server_audit_events`.

use crate::text::LexicalMode;
use crate::text::parse;
use crate::variables::AUDIT_EVENTS;

/// The kinds of events that are noted, as bits in the order of [`AUDIT_EVENTS`]. None means all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Kinds(u8);

const CONNECT: u8 = 1;
const QUERY: u8 = 2;
const TABLE: u8 = 4;
const DDL: u8 = 8;
const DML: u8 = 16;
const DCL: u8 = 32;
const DML_NO_SELECT: u8 = 64;

impl Kinds {
    pub(super) fn parse(text: &str) -> Kinds {
        let bit = |name: &str| AUDIT_EVENTS.iter().position(|known| *known == name).map_or(0, |at| 1 << at);
        Kinds(text.split(',').fold(0, |bits, name| bits | bit(name)))
    }

    fn any(self, bits: u8) -> bool {
        self.0 == 0 || self.0 & bits != 0
    }

    pub(super) fn have_connections(self) -> bool {
        self.any(CONNECT)
    }

    pub(super) fn have_tables(self) -> bool {
        self.any(TABLE)
    }

    /// True if some statements are noted, or what they do.
    pub(super) fn have_statements(self) -> bool {
        self.any(!CONNECT)
    }

    /// True if a statement with this text is noted.
    pub(super) fn have(self, text: &[u8], mode: LexicalMode) -> bool {
        if self.any(QUERY) {
            return true;
        }
        let of_parts = DDL | DML | DCL | DML_NO_SELECT;
        self.any(of_parts) && self.any(kind_of(&String::from_utf8_lossy(text), mode))
    }
}

/// The bits under which a statement is noted, beside QUERY. It need not be one that this server knows.
fn kind_of(text: &str, mode: LexicalMode) -> u8 {
    let text = parse::unwrap_comments(text, mode);
    let mut words = words(&text);
    let first = words.next().unwrap_or_default();
    match first.as_str() {
        "GRANT" | "REVOKE" => DCL,
        "ALTER" | "CREATE" | "DROP" | "RENAME" | "TRUNCATE" => {
            let is_prefix = |word: &String| ["OR", "REPLACE"].contains(&word.as_str());
            match words.find(|word| !is_prefix(word)).as_deref() {
                Some("USER" | "ROLE") => DCL,
                Some("PREPARE") => 0,
                _ => DDL,
            }
        }
        "SET" if words.next().as_deref() == Some("PASSWORD") => DCL,
        "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "DO" | "CALL" | "HANDLER" => DML | DML_NO_SELECT,
        "LOAD" if words.next().as_deref() != Some("INDEX") => DML | DML_NO_SELECT,
        "SELECT" | "WITH" | "VALUES" | "TABLE" => DML,
        "EXPLAIN" | "DESCRIBE" | "DESC" => match words.next().as_deref() {
            Some("SELECT" | "WITH" | "EXTENDED" | "PARTITIONS" | "FORMAT") => DML,
            _ => 0,
        },
        _ => 0,
    }
}

/// The words at the beginning of a text, in capitals, without comments and parentheses.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let next = parse::skip_comments(rest).trim_start_matches([' ', '\t', '\n', '\r', '(']);
            if next.len() == rest.len() {
                break;
            }
            rest = next;
        }
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind;
        (!word.is_empty()).then(|| word.to_ascii_uppercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_of_the_kinds_that_mariadb_says() {
        for (text, kind) in [
            ("create table t (a int)", DDL),
            ("create or replace table t (a int)", DDL),
            ("#x\n drop database if exists d", DDL),
            ("/*!50000 drop database d */", DDL),
            ("truncate t", DDL),
            ("create or replace user a", DCL),
            ("drop role r", DCL),
            ("rename user a to b", DCL),
            ("set password = password('x')", DCL),
            ("grant select on d.* to a", DCL),
            ("(select 1)", DML),
            ("(/* x */ (select 1))", DML),
            ("select(1)", DML),
            ("explain select 1", DML),
            ("INSERT/**/into t values (1)", DML | DML_NO_SELECT),
            ("load data infile 'x' into table t", DML | DML_NO_SELECT),
            ("load index into cache t", 0),
            ("describe t", 0),
            ("set @a = 1", 0),
            ("begin", 0),
            ("", 0),
            ("'", 0),
        ] {
            assert_eq!(kind_of(text, LexicalMode::NONE), kind, "{text}");
        }
    }

    #[test]
    fn no_names_mean_all_events() {
        let have = |names: &str, text: &str| Kinds::parse(names).have(text.as_bytes(), LexicalMode::NONE);
        assert!(have("", "begin") && have("QUERY", "begin") && !have("TABLE", "begin"));
        assert!(have("QUERY_DML", "select 1") && !have("QUERY_DML_NO_SELECT", "select 1"));
        assert!(Kinds::parse("").have_connections() && !Kinds::parse("TABLE").have_connections());
        assert!(Kinds::parse("TABLE").have_statements() && !Kinds::parse("CONNECT").have_statements());
    }
}

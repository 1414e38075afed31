//! The tables of the experiment, one for each writer, and the queries on them.

use base::random::Random;
use std::io::Write;

/// How the tables and their caches are set up: the published series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrangement {
    pub cache_per_table: bool,
    /// `PACK_KEYS=0`: keys without prefix compression.
    pub unpacked: bool,
}

impl Arrangement {
    pub(crate) const ALL: [Arrangement; 4] = [
        Arrangement { cache_per_table: false, unpacked: false },
        Arrangement { cache_per_table: true, unpacked: false },
        Arrangement { cache_per_table: false, unpacked: true },
        Arrangement { cache_per_table: true, unpacked: true },
    ];

    pub(crate) fn name(self) -> &'static str {
        match (self.cache_per_table, self.unpacked) {
            (false, false) => "shared cache",
            (true, false) => "cache per table",
            (false, true) => "PACK_KEYS=0",
            (true, true) => "both",
        }
    }
}

pub(crate) fn table(number: u32) -> String {
    format!("contended{number}")
}

pub(crate) fn cache(number: u32) -> String {
    format!("lab{number}")
}

pub(crate) const NAME_CHARS: usize = 40;
pub(crate) const MAIL_CHARS: usize = 80;

pub(crate) fn create_sql(number: u32, arrangement: Arrangement, engine: &str) -> String {
    let packing = if arrangement.unpacked { " PACK_KEYS=0" } else { "" };
    format!(
        "CREATE TABLE {} (id INT UNSIGNED NOT NULL AUTO_INCREMENT, name CHAR({NAME_CHARS}) NOT NULL, \
         mail VARCHAR({MAIL_CHARS}) NOT NULL, PRIMARY KEY (id), KEY name (name), KEY mail (mail)) \
         ENGINE={engine}{packing}",
        table(number)
    )
}

/// The rows of one writer, in an order that is not the order of any index.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    random: Random,
    pub next_id: u32,
}

impl Rows {
    pub(crate) fn new(seed: u64, writer: u32) -> Rows {
        Rows { random: Random::new(seed, 9_000 + u64::from(writer)), next_id: 1 }
    }

    /// `name` and `mail` of the next row. Many of them begin alike, as such keys do.
    pub(crate) fn next(&mut self, name: &mut Vec<u8>, mail: &mut Vec<u8>) -> u32 {
        let (first, second) = (self.random.next_u64(), self.random.next_u64());
        name.clear();
        mail.clear();
        // Writing into memory cannot fail.
        let _ = write!(name, "customer {:03} {first:016x}", first % 500);
        let _ = write!(mail, "{:03}.department.example.org/{second:016x}", second % 500);
        self.next_id += 1;
        self.next_id - 1
    }

    pub(crate) fn insert_sql(&mut self, table: &str, rows: u32, sql: &mut Vec<u8>) {
        let (mut name, mut mail) = (Vec::new(), Vec::new());
        sql.clear();
        let _ = write!(sql, "INSERT INTO {table} (name, mail) VALUES ");
        for position in 0..rows {
            self.next(&mut name, &mut mail);
            sql.extend_from_slice(if position == 0 { b"('" } else { b",('" });
            sql.extend_from_slice(&name);
            sql.extend_from_slice(b"','");
            sql.extend_from_slice(&mail);
            sql.extend_from_slice(b"')");
        }
    }
}

/// The four cases from a reader's comment on the study: how many threads on which tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadersCase {
    pub name: &'static str,
    pub threads: u32,
    pub tables: u32,
    pub published_ms: u32,
}

impl ReadersCase {
    pub(crate) const ALL: [ReadersCase; 4] = [
        ReadersCase { name: "two threads, one table", threads: 2, tables: 1, published_ms: 143 },
        ReadersCase { name: "two threads, a table each", threads: 2, tables: 2, published_ms: 338 },
        ReadersCase { name: "one thread, two tables in turn", threads: 1, tables: 2, published_ms: 137 },
        ReadersCase { name: "one thread, one table", threads: 1, tables: 1, published_ms: 77 },
    ];

    /// The table that a thread asks with its n-th query.
    pub(crate) fn table_of(self, thread: u32, query: u32) -> u32 {
        match (self.threads, self.tables) {
            (_, 1) => 0,
            (1, tables) => query % tables,
            (_, tables) => thread % tables,
        }
    }
}

pub(crate) fn calls(number: u32) -> String {
    format!("calls{number}")
}

/// Calls that each user made.
pub(crate) const CALLS_PER_USER: u32 = 1_000;

pub(crate) fn create_calls_sql(number: u32, engine: &str) -> String {
    format!(
        "CREATE TABLE {} (id INT UNSIGNED NOT NULL AUTO_INCREMENT, user_id INT UNSIGNED NOT NULL, \
         call_id INT UNSIGNED NOT NULL, PRIMARY KEY (id), KEY user_call (user_id, call_id)) ENGINE={engine}",
        calls(number)
    )
}

/// Each row belongs to another user than the one before, as calls arrive.
pub(crate) fn user_of(id: u32, users: u32) -> u32 {
    id % users
}

pub(crate) fn users(rows: u32) -> u32 {
    (rows / CALLS_PER_USER).max(1)
}

pub(crate) const CALLS_QUERY: &str = "SELECT COUNT(*) FROM {table} WHERE user_id = ? AND call_id > 0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_their_rows_and_fit_the_columns() {
        let mut rows = Rows::new(1, 2);
        let (mut name, mut mail) = (Vec::new(), Vec::new());
        assert_eq!(rows.next(&mut name, &mut mail), 1);
        assert!(name.len() <= NAME_CHARS && mail.len() <= MAIL_CHARS);
        let mut sql = Vec::new();
        rows.insert_sql("t", 3, &mut sql);
        assert_eq!(String::from_utf8(sql).unwrap().matches("customer").count(), 3);
        assert_eq!(rows.next_id, 5);
    }

    #[test]
    fn readers_keep_to_their_tables() {
        let [shared, apart, alternating, alone] = ReadersCase::ALL;
        assert_eq!((shared.table_of(1, 5), alone.table_of(0, 5)), (0, 0));
        assert_eq!((apart.table_of(0, 5), apart.table_of(1, 5)), (0, 1));
        assert_eq!((alternating.table_of(0, 4), alternating.table_of(0, 5)), (0, 1));
    }
}

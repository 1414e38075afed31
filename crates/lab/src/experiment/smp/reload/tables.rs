//! The tables of a shard. They are of four kinds, and their sizes are as skewed as in practice.

use crate::workload::{random_c, random_pad};
use base::random::Random;
use std::io::Write;

/// The form of a table's rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// As sbtest: fixed widths, one secondary index.
    Events,
    /// Variable widths, NULLs, decimals, times, two secondary indexes.
    Orders,
    /// Narrow rows with a key of two columns.
    Links,
    /// A unique secondary index on text.
    Users,
}

/// A value of a row in a dump.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    Null,
    /// Digits, which need no quotes.
    Plain(String),
    Text(String),
}

const STATUSES: [&str; 4] = ["open", "paid", "sent", "returned"];
/// Text like that of users: it has every character that a dump has to escape, and some that are not ASCII.
const REMARKS: [&str; 5] = [
    "as always",
    "it's \"urgent\"",
    "ring twice,\tthen wait",
    "back\\slash\nand a new line",
    "Grüße, déjà vu",
];
const LINKS_PER_SOURCE: u32 = 8;

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Events, Kind::Orders, Kind::Links, Kind::Users];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Events => "events",
            Kind::Orders => "orders",
            Kind::Links => "links",
            Kind::Users => "users",
        }
    }

    pub(crate) fn create_sql(self, table: &str, engine: &str) -> String {
        let columns = match self {
            Kind::Events => {
                "id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, \
                 PRIMARY KEY (id), KEY k (k)"
            }
            Kind::Orders => {
                "id BIGINT UNSIGNED NOT NULL, customer INT UNSIGNED NOT NULL, status VARCHAR(16) NOT NULL, \
                 total DECIMAL(10,2) NOT NULL, placed DATETIME NOT NULL, note VARCHAR(200), PRIMARY KEY (id), \
                 KEY customer (customer), KEY status_placed (status, placed)"
            }
            Kind::Links => {
                "source INT UNSIGNED NOT NULL, target INT UNSIGNED NOT NULL, weight INT NOT NULL, \
                 PRIMARY KEY (source, target), KEY target (target)"
            }
            Kind::Users => {
                "id INT UNSIGNED NOT NULL, mail VARCHAR(80) NOT NULL, name VARCHAR(60) NOT NULL, joined DATE NOT NULL, \
                 PRIMARY KEY (id), UNIQUE KEY mail (mail), KEY name (name)"
            }
        };
        format!("CREATE TABLE {table} ({columns}) ENGINE={engine} DEFAULT CHARSET=utf8mb4")
    }

    /// The text that a row's checksum is computed from: the same as [`summed_up`] makes of its fields.
    pub(crate) fn checksum_sql(self, table: &str) -> String {
        let columns = match self {
            Kind::Events => "id, k, c, pad",
            Kind::Orders => "id, customer, status, total, placed, COALESCE(note, 'NULL')",
            Kind::Links => "source, target, weight",
            Kind::Users => "id, mail, name, joined",
        };
        format!("SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', {columns}))) FROM {table}")
    }

    /// Row number `number`, from 1; rows come in the order of their primary key.
    pub(crate) fn row(self, number: u32, random: &mut Random) -> Vec<Field> {
        let plain = |value: u64| Field::Plain(value.to_string());
        let text = |bytes: &[u8]| Field::Text(String::from_utf8_lossy(bytes).into_owned());
        match self {
            Kind::Events => {
                let k = random.below(1 << 30);
                vec![
                    plain(number.into()),
                    plain(k.into()),
                    text(&random_c(random)),
                    text(&random_pad(random)),
                ]
            }
            Kind::Orders => {
                let status = STATUSES[random.below(4) as usize].to_string();
                let (customer, cents) = (random.below(200_000), random.below(10_000_000));
                let remark = random.below(2 * REMARKS.len() as u32) as usize;
                let note = match REMARKS.get(remark) {
                    Some(remark) => Field::Text(format!("{remark} {:x}", random.next_u64())),
                    None => Field::Null,
                };
                vec![
                    plain(u64::from(number) * 3),
                    plain(customer.into()),
                    Field::Text(status),
                    Field::Plain(format!("{}.{:02}", cents / 100, cents % 100)),
                    Field::Text(format!("{} {}", day(random), time(random))),
                    note,
                ]
            }
            Kind::Links => {
                let (source, place) = (number / LINKS_PER_SOURCE, number % LINKS_PER_SOURCE);
                // Ascending within a source, and anywhere in the index of targets.
                let target = place * (1 << 27) + random.below(1 << 27);
                let weight = i64::from(random.below(2_000)) - 1_000;
                vec![plain(source.into()), plain(target.into()), Field::Plain(weight.to_string())]
            }
            Kind::Users => {
                let name = format!("{:x} {:x}", random.below(1 << 16), random.next_u64());
                let mail = format!("{:08x}.{number}@example.org", random.below(u32::MAX));
                vec![plain(number.into()), Field::Text(mail), Field::Text(name), Field::Text(day(random))]
            }
        }
    }
}

fn day(random: &mut Random) -> String {
    format!("20{:02}-{:02}-{:02}", random.below(25), 1 + random.below(12), 1 + random.below(28))
}

fn time(random: &mut Random) -> String {
    format!("{:02}:{:02}:{:02}", random.below(24), random.below(60), random.below(60))
}

/// CRC-32, as the SQL function has it, of a row's fields with bars between them.
pub(crate) fn summed_up(row: &[Field]) -> u64 {
    let mut text = Vec::new();
    for (position, field) in row.iter().enumerate() {
        if position > 0 {
            text.push(b'|');
        }
        match field {
            Field::Null => text.extend_from_slice(b"NULL"),
            Field::Plain(value) | Field::Text(value) => text.extend_from_slice(value.as_bytes()),
        }
    }
    crc32(&text).into()
}

/// The reflected polynomial of IEEE 802.3, bits a byte at a time.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

/// A line of a file for LOAD DATA with its default format.
pub(crate) fn write_line(row: &[Field], out: &mut Vec<u8>) {
    for (position, field) in row.iter().enumerate() {
        if position > 0 {
            out.push(b'\t');
        }
        match field {
            Field::Null => out.extend_from_slice(b"\\N"),
            Field::Plain(value) | Field::Text(value) => {
                for byte in value.bytes() {
                    match byte {
                        b'\t' => out.extend_from_slice(b"\\t"),
                        b'\n' => out.extend_from_slice(b"\\n"),
                        b'\\' => out.extend_from_slice(b"\\\\"),
                        other => out.push(other),
                    }
                }
            }
        }
    }
    out.push(b'\n');
}

/// A row of an INSERT, in brackets. Never a line break, so that a statement is a line.
pub(crate) fn write_values(row: &[Field], out: &mut Vec<u8>) {
    for (position, field) in row.iter().enumerate() {
        out.push(if position == 0 { b'(' } else { b',' });
        match field {
            Field::Null => out.extend_from_slice(b"NULL"),
            // Writing into memory cannot fail.
            Field::Plain(value) => drop(write!(out, "{value}")),
            Field::Text(value) => {
                out.push(b'\'');
                for byte in value.bytes() {
                    match byte {
                        b'\'' => out.extend_from_slice(b"\\'"),
                        b'\n' => out.extend_from_slice(b"\\n"),
                        b'\\' => out.extend_from_slice(b"\\\\"),
                        other => out.push(other),
                    }
                }
                out.push(b'\'');
            }
        }
    }
    out.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_so_that_it_can_be_read_back() {
        let text = Field::Text("it's a\ttab, a \\ and\na line".to_string());
        let row = [Field::Plain("7".to_string()), Field::Null, text];
        let mut out = Vec::new();
        write_line(&row, &mut out);
        assert_eq!(out, b"7\t\\N\tit's a\\ttab, a \\\\ and\\na line\n");
        out.clear();
        write_values(&row, &mut out);
        assert_eq!(out, b"(7,NULL,'it\\'s a\ttab, a \\\\ and\\na line')");
    }

    #[test]
    fn the_checksum_is_the_sql_functions() {
        assert_eq!(crc32(b"MySQL"), 3_259_397_556);
        assert_eq!(crc32(b""), 0);
        let row = [Field::Plain("1".to_string()), Field::Null];
        assert_eq!(summed_up(&row), u64::from(crc32(b"1|NULL")));
    }

    #[test]
    fn keys_ascend_and_are_given_once() {
        for kind in Kind::ALL {
            let mut random = Random::new(303, 1);
            let key = |row: Vec<Field>| -> Vec<u64> {
                let numbers = row.into_iter().take(if kind == Kind::Links { 2 } else { 1 });
                numbers
                    .map(|field| match field {
                        Field::Plain(digits) => digits.parse().unwrap(),
                        other => panic!("{other:?}"),
                    })
                    .collect()
            };
            let keys: Vec<_> = (1..=500).map(|number| key(kind.row(number, &mut random))).collect();
            assert!(keys.is_sorted_by(|one, next| one < next), "{kind:?}");
        }
    }
}

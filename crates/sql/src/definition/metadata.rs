//! What the SQL layer stores in a table's and a database's opaque bytes.
//!
//! Little-endian. A text is a length `u32` and UTF-8. A table:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 1 | version, 3; versions 1 and 2 have no properties of columns, and 1 ends before the foreign keys |
//! | 1 | 1 | default collation; if it is 255, two bytes follow: its number in the protocol |
//! | 2 | 8 | created, in seconds since 1970 |
//! | 10 | | engine and comment: two texts |
//! | | 2 | number of options; each is two texts, name and value |
//! | | 2 | number of columns; each as below |
//! | | 2 | number of index comments; each is two texts, name and comment |
//! | | 2 | number of foreign keys; each as below |
//! | | 2 | number of CHECKs; each is two texts, name and condition |
//! | | 2 | number of IGNORED indexes; each is a text, its name; from version 3 on |
//!
//! A column. If the tag of its default is 2 to 4, a text follows the tag; positions leave it out:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 1 | tag of the default: 0 unset, 1 NULL, 2 number, 3 text, 4 binary, 5 now |
//! | 1 | 1 | flags: 1 on update now, 2 zerofill, 4 width, 8 float digits, 16 a condition |
//! | 2 | 1 | width |
//! | 3 | 2 | float digits: two bytes |
//! | 5 | | comment: a text |
//! | | | the condition of CHECK, if there is one: a text |
//! | | 2 | number of properties; each is a tag of one byte and a text |
//!
//! A property has one of these tags:
//!
//! | tag | meaning | text |
//! |---|---|---|
//! | 1 | a generated column, VIRTUAL | its expression |
//! | 2 | a generated column, STORED | its expression |
//! | 3 | the default is computed | its expression |
//! | 4 | INVISIBLE | empty |
//!
//! A foreign key is three texts, its name and the parent's database and table, then
//!
//! | size | field |
//! |---|---|
//! | 1 | ON DELETE: 0 RESTRICT, 1 CASCADE, 2 SET NULL, 3 NO ACTION |
//! | 1 | ON UPDATE: as ON DELETE |
//! | 2 | number of columns; each is two texts, the column and the one that it refers to |
//!
//! A database:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 1 | default collation, as a table's |

use super::check::{Check, CheckLevel};
use super::defaults::show_in_zone;
use super::foreign_key::{ForeignKey, ReferentialAction};
use super::{ColumnDefault, ColumnExtras, Generated, IndexOptions};
use crate::SqlError;
use crate::variables::time_zones::Zone;
use base::bytes::ByteReader;
use types::Collation;

/// Of a database's bytes.
const VERSION: u8 = 1;
/// Of a table's bytes.
const TABLE_VERSION: u8 = 3;
/// The version whose columns have no properties.
const TABLE_VERSION_WITHOUT_PROPERTIES: u8 = 2;
/// The version that has no foreign keys.
const TABLE_VERSION_WITHOUT_KEYS: u8 = 1;
/// The size of a table's bytes before its first text.
const TABLE_HEAD_BYTES: usize = 10;
const _: () = assert!(size_of_val(&TABLE_VERSION) + size_of::<u8>() + size_of::<u64>() == TABLE_HEAD_BYTES);

/// The content of a table's bytes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TableMetadata {
    pub collation: Collation,
    /// Seconds since 1970.
    pub created: u64,
    /// The engine that ENGINE= named, or the default one. Empty for a table that was created below SQL.
    pub engine: String,
    pub comment: String,
    pub options: Vec<(String, String)>,
    pub columns: Vec<ColumnExtras>,
    /// Name and comment of each index that has a comment.
    pub index_comments: Vec<(String, String)>,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<Check>,
    /// The names of the indexes that no plan uses.
    pub ignored_indexes: Vec<String>,
}

/// The content of a database's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DatabaseMetadata {
    pub collation: Collation,
}

impl Default for DatabaseMetadata {
    fn default() -> DatabaseMetadata {
        DatabaseMetadata { collation: Collation::Utf8mb4GeneralCi }
    }
}

fn read_collation(reader: &mut ByteReader<'_>) -> Option<Collation> {
    let byte = reader.u8()?;
    Collation::of_byte(byte, || reader.u16())
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

impl DatabaseMetadata {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        self.collation.encode(&mut out);
        out
    }

    /// Missing bytes, or bytes of another version, give the default: a database without options.
    pub(crate) fn decode(bytes: &[u8]) -> DatabaseMetadata {
        let mut reader = ByteReader::new(bytes);
        match reader.u8() {
            Some(VERSION) => read_collation(&mut reader).map(|collation| DatabaseMetadata { collation }),
            _ => None,
        }
        .unwrap_or_default()
    }
}

impl TableMetadata {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![TABLE_VERSION];
        self.collation.encode(&mut out);
        out.extend_from_slice(&self.created.to_le_bytes());
        debug_assert!(out.len() >= TABLE_HEAD_BYTES);
        text(&mut out, self.engine.as_bytes());
        text(&mut out, self.comment.as_bytes());
        out.extend_from_slice(&(self.options.len() as u16).to_le_bytes());
        for (name, value) in &self.options {
            text(&mut out, name.as_bytes());
            text(&mut out, value.as_bytes());
        }
        out.extend_from_slice(&(self.columns.len() as u16).to_le_bytes());
        for column in &self.columns {
            encode_column(column, &mut out);
        }
        out.extend_from_slice(&(self.index_comments.len() as u16).to_le_bytes());
        for (name, comment) in &self.index_comments {
            text(&mut out, name.as_bytes());
            text(&mut out, comment.as_bytes());
        }
        out.extend_from_slice(&(self.foreign_keys.len() as u16).to_le_bytes());
        for key in &self.foreign_keys {
            encode_foreign_key(key, &mut out);
        }
        out.extend_from_slice(&(self.checks.len() as u16).to_le_bytes());
        for check in &self.checks {
            text(&mut out, check.name.as_bytes());
            text(&mut out, check.condition.as_bytes());
        }
        out.extend_from_slice(&(self.ignored_indexes.len() as u16).to_le_bytes());
        for name in &self.ignored_indexes {
            text(&mut out, name.as_bytes());
        }
        out
    }

    /// # Errors
    /// 1105 for bytes that this program did not write.
    pub(crate) fn decode(bytes: &[u8]) -> Result<TableMetadata, SqlError> {
        TableMetadata::read(&mut ByteReader::new(bytes)).ok_or_else(damaged)
    }

    /// `None` for bytes that this program did not write.
    fn read(reader: &mut ByteReader<'_>) -> Option<TableMetadata> {
        let version = reader.u8()?;
        if !(TABLE_VERSION_WITHOUT_KEYS..=TABLE_VERSION).contains(&version) {
            return None;
        }
        let collation = read_collation(reader)?;
        let created = reader.u64()?;
        let engine = reader.text()?;
        let comment = reader.text()?;
        let mut options = Vec::new();
        for _ in 0..reader.u16()? {
            options.push((reader.text()?, reader.text()?));
        }
        let mut columns = Vec::new();
        for _ in 0..reader.u16()? {
            let mut column = decode_column(reader)?;
            if version > TABLE_VERSION_WITHOUT_PROPERTIES {
                decode_properties(reader, &mut column)?;
            }
            columns.push(column);
        }
        let mut index_comments = Vec::new();
        for _ in 0..reader.u16()? {
            index_comments.push((reader.text()?, reader.text()?));
        }
        let mut foreign_keys = Vec::new();
        let count = if version > TABLE_VERSION_WITHOUT_KEYS { reader.u16()? } else { 0 };
        for _ in 0..count {
            foreign_keys.push(decode_foreign_key(reader)?);
        }
        let mut checks = Vec::new();
        let count = if version > TABLE_VERSION_WITHOUT_KEYS { reader.u16()? } else { 0 };
        for _ in 0..count {
            checks.push(Check { name: reader.text()?, condition: reader.text()? });
        }
        let mut ignored_indexes = Vec::new();
        let count = if version > TABLE_VERSION_WITHOUT_PROPERTIES { reader.u16()? } else { 0 };
        for _ in 0..count {
            ignored_indexes.push(reader.text()?);
        }
        Some(TableMetadata {
            collation,
            created,
            engine,
            comment,
            options,
            columns,
            index_comments,
            foreign_keys,
            checks,
            ignored_indexes,
        })
    }

    /// As a session sees it whose `time_zone` this is: defaults of TIMESTAMP columns are kept in UTC.
    pub(crate) fn in_zone(mut self, def: &engine::TableDef, zone: &Zone) -> TableMetadata {
        for (extras, column) in self.columns.iter_mut().zip(&def.columns) {
            show_in_zone(extras, &column.column_type, zone);
        }
        self
    }

    /// The engine that the table shows: the one that was asked for. There is one engine for all tables, and
    /// applications and other servers know this name.
    pub(crate) fn shown_engine(&self) -> &str {
        if self.engine.is_empty() { "InnoDB" } else { &self.engine }
    }

    /// The CHECKs of columns, by the columns' names, and those of the table: where each is, its name
    /// and its condition.
    pub(crate) fn conditions<'m>(
        &'m self,
        def: &'m engine::TableDef,
    ) -> impl Iterator<Item = (CheckLevel, &'m str, &'m str)> {
        let of_columns = def.columns.iter().zip(&self.columns).filter_map(|(column, extras)| {
            Some((CheckLevel::Column, column.name.as_str(), extras.check.as_deref()?))
        });
        let of_table = self.checks.iter();
        of_columns
            .chain(of_table.map(|check| (CheckLevel::Table, check.name.as_str(), check.condition.as_str())))
    }

    /// The comment of an index.
    pub(crate) fn index_comment(&self, name: &str) -> &str {
        let found = self.index_comments.iter().find(|(index, _)| index == name);
        found.map_or("", |(_, comment)| comment)
    }

    /// Forgets an index.
    pub(crate) fn forget_index(&mut self, name: &str) {
        self.index_comments.retain(|(index, _)| !index.eq_ignore_ascii_case(name));
        self.ignored_indexes.retain(|index| !index.eq_ignore_ascii_case(name));
    }

    /// Notes the options of an index.
    pub(crate) fn note_index(&mut self, name: &str, options: &IndexOptions) {
        self.forget_index(name);
        if !options.comment.is_empty() {
            self.index_comments.push((name.to_owned(), options.comment.clone()));
        }
        if options.ignored {
            self.ignored_indexes.push(name.to_owned());
        }
    }

    pub(crate) fn is_ignored(&self, index: &str) -> bool {
        self.ignored_indexes.iter().any(|name| name == index)
    }

    /// The options of an index.
    pub(crate) fn index_options(&self, name: &str) -> IndexOptions {
        IndexOptions { comment: self.index_comment(name).to_owned(), ignored: self.is_ignored(name) }
    }

    /// The metadata of a table. A table that was created below the SQL layer, by a program that embeds the
    /// engine, has none. For such a table this is the metadata of a CREATE TABLE without options.
    ///
    /// # Errors
    /// 1105 for bytes that this program did not write.
    pub(crate) fn of(def: &engine::TableDef) -> Result<TableMetadata, SqlError> {
        if def.sql_metadata.is_empty() {
            return Ok(TableMetadata {
                collation: Collation::Utf8mb4GeneralCi,
                created: 0,
                engine: String::new(),
                comment: String::new(),
                options: Vec::new(),
                columns: vec![ColumnExtras::default(); def.columns.len()],
                index_comments: Vec::new(),
                foreign_keys: Vec::new(),
                checks: Vec::new(),
                ignored_indexes: Vec::new(),
            });
        }
        let metadata = TableMetadata::decode(&def.sql_metadata)?;
        if metadata.columns.len() != def.columns.len() {
            return Err(damaged());
        }
        Ok(metadata)
    }
}

fn action_byte(action: ReferentialAction) -> u8 {
    ReferentialAction::ALL.iter().position(|known| *known == action).unwrap_or(0) as u8
}

fn encode_foreign_key(key: &ForeignKey, out: &mut Vec<u8>) {
    for name in [&key.name, &key.parent_database, &key.parent_table] {
        text(out, name.as_bytes());
    }
    out.extend([action_byte(key.on_delete), action_byte(key.on_update)]);
    out.extend_from_slice(&(key.columns.len() as u16).to_le_bytes());
    for (column, parent) in key.columns.iter().zip(&key.parent_columns) {
        text(out, column.as_bytes());
        text(out, parent.as_bytes());
    }
}

fn decode_foreign_key(reader: &mut ByteReader<'_>) -> Option<ForeignKey> {
    let [name, parent_database, parent_table] = [reader.text()?, reader.text()?, reader.text()?];
    let [on_delete, on_update] = reader.take()?;
    let action = |byte: u8| ReferentialAction::ALL.get(usize::from(byte)).copied();
    let (on_delete, on_update) = (action(on_delete)?, action(on_update)?);
    let (mut columns, mut parent_columns) = (Vec::new(), Vec::new());
    for _ in 0..reader.u16()? {
        columns.push(reader.text()?);
        parent_columns.push(reader.text()?);
    }
    let key =
        ForeignKey { name, columns, parent_database, parent_table, parent_columns, on_delete, on_update };
    Some(key)
}

fn encode_column(column: &ColumnExtras, out: &mut Vec<u8>) {
    let (tag, bytes): (u8, &[u8]) = match &column.default {
        ColumnDefault::Unset | ColumnDefault::Expression(_) => (0, b""),
        ColumnDefault::Null => (1, b""),
        ColumnDefault::Number(number) => (2, number.as_bytes()),
        ColumnDefault::Text(text) => (3, text.as_bytes()),
        ColumnDefault::Binary(bytes) => (4, bytes),
        ColumnDefault::Now => (5, b""),
    };
    out.push(tag);
    if (2..=4).contains(&tag) {
        text(out, bytes);
    }
    let flags = u8::from(column.on_update_now)
        | u8::from(column.zerofill) << 1
        | u8::from(column.display_width.is_some()) << 2
        | u8::from(column.float_digits.is_some()) << 3
        | u8::from(column.check.is_some()) << 4;
    let (digits, decimals) = column.float_digits.unwrap_or((0, 0));
    out.extend([flags, column.display_width.unwrap_or(0), digits, decimals]);
    text(out, column.comment.as_bytes());
    if let Some(check) = &column.check {
        text(out, check.as_bytes());
    }
    let properties = properties_of(column);
    out.extend_from_slice(&(properties.len() as u16).to_le_bytes());
    for (tag, value) in properties {
        out.push(tag);
        text(out, value.as_bytes());
    }
}

/// Tags of properties.
mod property {
    pub(super) const VIRTUAL: u8 = 1;
    pub(super) const STORED: u8 = 2;
    pub(super) const DEFAULT: u8 = 3;
    pub(super) const INVISIBLE: u8 = 4;
}

fn properties_of(column: &ColumnExtras) -> Vec<(u8, &str)> {
    let mut properties = Vec::new();
    if let Some(Generated { expression, stored }) = &column.generated {
        properties.push((if *stored { property::STORED } else { property::VIRTUAL }, expression.as_str()));
    }
    if let ColumnDefault::Expression(expression) = &column.default {
        properties.push((property::DEFAULT, expression.as_str()));
    }
    if column.invisible {
        properties.push((property::INVISIBLE, ""));
    }
    properties
}

fn decode_properties(reader: &mut ByteReader<'_>, column: &mut ColumnExtras) -> Option<()> {
    for _ in 0..reader.u16()? {
        let (tag, value) = (reader.u8()?, reader.text()?);
        match tag {
            property::VIRTUAL | property::STORED => {
                column.generated = Some(Generated { expression: value, stored: tag == property::STORED });
            }
            property::DEFAULT => column.default = ColumnDefault::Expression(value),
            property::INVISIBLE => column.invisible = true,
            _ => return None,
        }
    }
    Some(())
}

fn decode_column(reader: &mut ByteReader<'_>) -> Option<ColumnExtras> {
    let default = match reader.u8()? {
        0 => ColumnDefault::Unset,
        1 => ColumnDefault::Null,
        2 => ColumnDefault::Number(reader.text()?),
        3 => ColumnDefault::Text(reader.text()?),
        4 => ColumnDefault::Binary(reader.bytes()?.to_vec()),
        5 => ColumnDefault::Now,
        _ => return None,
    };
    let [flags, width, digits, decimals] = reader.take()?;
    Some(ColumnExtras {
        default,
        on_update_now: flags & 1 != 0,
        zerofill: flags & 2 != 0,
        display_width: (flags & 4 != 0).then_some(width),
        float_digits: (flags & 8 != 0).then_some((digits, decimals)),
        comment: reader.text()?,
        check: if flags & 16 != 0 { Some(reader.text()?) } else { None },
        generated: None,
        invisible: false,
    })
}

fn damaged() -> SqlError {
    SqlError::internal("the description of a table in the catalogue is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_description_survives_its_bytes_and_no_cut_one_is_accepted() {
        let column =
            |default| ColumnExtras { default, comment: "größe".to_owned(), ..ColumnExtras::default() };
        let metadata = TableMetadata {
            collation: Collation::Latin1Bin,
            created: 1_700_000_000,
            engine: "InnoDB".to_owned(),
            comment: "it's".to_owned(),
            options: vec![("ROW_FORMAT".to_owned(), "DYNAMIC".to_owned())],
            columns: vec![
                column(ColumnDefault::Unset),
                column(ColumnDefault::Null),
                column(ColumnDefault::Number("-1.5".to_owned())),
                column(ColumnDefault::Text("é".to_owned())),
                column(ColumnDefault::Binary(vec![0, 255])),
                ColumnExtras {
                    default: ColumnDefault::Now,
                    on_update_now: true,
                    zerofill: true,
                    display_width: Some(5),
                    float_digits: Some((7, 2)),
                    comment: String::new(),
                    check: Some("`a` > 0".to_owned()),
                    ..ColumnExtras::default()
                },
                ColumnExtras {
                    generated: Some(Generated { expression: "`a` + 1".to_owned(), stored: true }),
                    invisible: true,
                    ..ColumnExtras::default()
                },
                ColumnExtras {
                    generated: Some(Generated { expression: "`a` * 2".to_owned(), stored: false }),
                    ..ColumnExtras::default()
                },
                column(ColumnDefault::Expression("uuid()".to_owned())),
            ],
            index_comments: vec![("k".to_owned(), "why".to_owned())],
            foreign_keys: vec![ForeignKey {
                name: "t_ibfk_1".to_owned(),
                columns: vec!["a".to_owned(), "b".to_owned()],
                parent_database: "d".to_owned(),
                parent_table: "p".to_owned(),
                parent_columns: vec!["x".to_owned(), "y".to_owned()],
                on_delete: ReferentialAction::SetNull,
                on_update: ReferentialAction::NoAction,
            }],
            checks: vec![Check { name: "c".to_owned(), condition: "`a` > 0".to_owned() }],
            ignored_indexes: vec!["k".to_owned()],
        };
        let bytes = metadata.encode();
        for cut in 0..bytes.len() {
            assert!(TableMetadata::decode(&bytes[..cut]).is_err());
        }
        // The bytes that older versions wrote.
        let plain = TableMetadata {
            columns: vec![column(ColumnDefault::Null)],
            index_comments: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            ignored_indexes: Vec::new(),
            ..metadata.clone()
        };
        let mut older = plain.encode();
        // The numbers of index comments, of foreign keys, of CHECKs and of IGNORED indexes follow the column.
        older.truncate(older.len() - size_of::<u16>());
        let behind = older.len() - 3 * size_of::<u16>();
        older.drain(behind - size_of::<u16>()..behind);
        older[0] = TABLE_VERSION_WITHOUT_PROPERTIES;
        assert_eq!(TableMetadata::decode(&older), Ok(plain.clone()));
        older[0] = TABLE_VERSION_WITHOUT_KEYS;
        older.truncate(older.len() - 2 * size_of::<u16>());
        assert_eq!(TableMetadata::decode(&older), Ok(plain));
        assert_eq!(TableMetadata::decode(&bytes), Ok(metadata));
    }

    #[test]
    fn a_database_description_survives_its_bytes() {
        let metadata = DatabaseMetadata { collation: Collation::by_id(224).unwrap() };
        assert_eq!(DatabaseMetadata::decode(&metadata.encode()), metadata);
        assert_eq!(DatabaseMetadata::decode(&[]), DatabaseMetadata::default());
    }
}

//! What tables there are: a tree in a file of its own.
//!
//! ```text
//! key                             value (after the row header of `format::row`; large ones overflow)
//! 'd' name                        opaque bytes of the SQL layer
//! 's' table id u32 big-endian     record version u8, file id u32, tree ids u32 + u32..., rows u64,
//!                                 indexes u32 + (parts u32 + distinct u64...)...
//! 't' table id u32 big-endian     record version u8, file id u32, next tree id u32,
//!                                 roots u32 + (page u32, tree id u32)..., definition,
//!                                 page size (u8 whether it has one, u32), pack keys u8, compressed u8
//! ```
//! Numbers in values are little-endian; byte strings and texts have a u32 length before them.

use crate::definition::{IndexDef, PackKeys, Statistics, TableDef};
use base::bytes::ByteReader;
use base::{FileId, PageNo, TableId};
use types::members::{ENUM_MEMBERS_MAX, SET_MEMBERS_MAX};
use types::{Code, Collation, Column, ColumnType, KeyPart, Members};

const RECORD_VERSION: u8 = 2;
/// Of format 2: without what a table's pages are like.
const RECORD_VERSION_1: u8 = 1;

const STATISTICS_VERSION: u8 = 1;

/// The key of a table's record, or of its statistics, in bytes: a letter and the id.
const TABLE_KEY_BYTES: usize = 5;
const _: () = assert!(TABLE_KEY_BYTES == 1 + size_of::<TableId>());
const _: () = assert!(RECORD_VERSION_1 < RECORD_VERSION);

/// The tree id of the catalogue in its file.
pub(crate) const CATALOGUE_TREE: u32 = 1;
/// Its root: the first page after the file header and the free map.
pub(crate) const CATALOGUE_ROOT: PageNo = PageNo(2);

/// Where a table lies, and what it looks like.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TableRecord {
    pub id: TableId,
    pub file: FileId,
    /// The id of the next tree made in the file.
    pub next_tree: u32,
    /// Root page and tree id of each index, the clustered one first.
    pub roots: Vec<(PageNo, u32)>,
    pub def: TableDef,
}

/// An entry of the catalogue.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Record {
    Database { name: String, sql_metadata: Vec<u8> },
    Table(Box<TableRecord>),
    Statistics(StatisticsRecord),
}

/// What ANALYZE TABLE has found, and the trees that it has counted: with others the table has changed since.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StatisticsRecord {
    pub table: TableId,
    pub file: FileId,
    pub trees: Vec<u32>,
    pub statistics: Statistics,
}

pub(crate) fn database_key(name: &str) -> Vec<u8> {
    [b"d", name.as_bytes()].concat()
}

pub(crate) fn table_key(id: TableId) -> [u8; TABLE_KEY_BYTES] {
    id_key(b't', id)
}

pub(crate) fn statistics_key(id: TableId) -> [u8; TABLE_KEY_BYTES] {
    id_key(b's', id)
}

fn id_key(letter: u8, id: TableId) -> [u8; TABLE_KEY_BYTES] {
    let [a, b, c, d] = id.0.to_be_bytes();
    [letter, a, b, c, d]
}

pub(crate) fn encode(record: &Record) -> (Vec<u8>, Vec<u8>) {
    match record {
        Record::Database { name, sql_metadata } => (database_key(name), sql_metadata.clone()),
        Record::Table(table) => {
            let mut out = Writer(Vec::new());
            out.u8(RECORD_VERSION);
            out.u32(table.file.0);
            out.u32(table.next_tree);
            out.u32(table.roots.len() as u32);
            for (page, tree) in &table.roots {
                out.u32(page.0);
                out.u32(*tree);
            }
            out.definition(&table.def);
            out.option(table.def.page_size);
            out.u8(table.def.pack_keys as u8);
            out.u8(u8::from(table.def.compressed));
            (table_key(table.id).to_vec(), out.0)
        }
        Record::Statistics(StatisticsRecord { table, file, trees, statistics }) => {
            let mut out = Writer(Vec::new());
            out.u8(STATISTICS_VERSION);
            out.u32(file.0);
            out.u32(trees.len() as u32);
            trees.iter().for_each(|tree| out.u32(*tree));
            out.u64(statistics.rows);
            out.u32(statistics.distinct.len() as u32);
            for parts in &statistics.distinct {
                out.u32(parts.len() as u32);
                parts.iter().for_each(|distinct| out.u64(*distinct));
            }
            (statistics_key(*table).to_vec(), out.0)
        }
    }
}

/// Reads a record; `None` if it is none of this build's.
pub(crate) fn decode(key: &[u8], value: &[u8]) -> Option<Record> {
    let (kind, key) = key.split_first()?;
    match kind {
        b'd' => Some(Record::Database {
            name: String::from_utf8(key.to_vec()).ok()?,
            sql_metadata: value.to_vec(),
        }),
        b't' => {
            let id = TableId(u32::from_be_bytes(key.try_into().ok()?));
            let mut from = Reader(ByteReader::new(value));
            let version = from.0.u8()?;
            if version != RECORD_VERSION && version != RECORD_VERSION_1 {
                return None;
            }
            let file = FileId(from.0.u32()?);
            let next_tree = from.0.u32()?;
            let roots = from.list(|from| Some((PageNo(from.0.u32()?), from.0.u32()?)))?;
            let mut def = from.definition()?;
            if version == RECORD_VERSION {
                (def.page_size, def.pack_keys) = (from.option()?, from.pack_keys()?);
                def.compressed = from.0.u8()? != 0;
            }
            let whole = from.0.is_empty() && roots.len() == def.indexes.len() + 1;
            whole.then(|| Record::Table(Box::new(TableRecord { id, file, next_tree, roots, def })))
        }
        b's' => {
            let table = TableId(u32::from_be_bytes(key.try_into().ok()?));
            let mut from = Reader(ByteReader::new(value));
            if from.0.u8()? != STATISTICS_VERSION {
                return None;
            }
            let file = FileId(from.0.u32()?);
            let trees = from.list(|from| from.0.u32())?;
            let rows = from.0.u64()?;
            let distinct = from.list(|from| from.list(|from| from.0.u64()))?;
            let record = StatisticsRecord { table, file, trees, statistics: Statistics { rows, distinct } };
            from.0.is_empty().then_some(Record::Statistics(record))
        }
        _ => None,
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    fn option(&mut self, value: Option<u32>) {
        self.u8(u8::from(value.is_some()));
        self.u32(value.unwrap_or(0));
    }

    fn parts(&mut self, parts: &[KeyPart]) {
        self.u32(parts.len() as u32);
        for part in parts {
            self.u32(part.column as u32);
            self.option(part.prefix_chars);
            self.u8(u8::from(part.descending));
        }
    }

    fn definition(&mut self, def: &TableDef) {
        self.bytes(def.database.as_bytes());
        self.bytes(def.name.as_bytes());
        self.u32(def.columns.len() as u32);
        for column in &def.columns {
            self.bytes(column.name.as_bytes());
            self.u8(u8::from(column.nullable));
            self.column_type(&column.column_type);
        }
        self.u8(u8::from(def.primary.is_some()));
        self.parts(def.primary.as_deref().unwrap_or(&[]));
        self.u32(def.indexes.len() as u32);
        for index in &def.indexes {
            self.bytes(index.name.as_bytes());
            self.u8(u8::from(index.unique));
            self.parts(&index.parts);
        }
        self.option(def.auto_increment.map(|column| column as u32));
        self.bytes(&def.sql_metadata);
    }

    /// A type: its number, two numbers, a collation, a sign; unused ones are zero. The protocol's number of
    /// the collation, `u16`, follows if the collation is 255. Behind an ENUM or a SET come its members, as
    /// many as the first number says.
    fn column_type(&mut self, column_type: &ColumnType) {
        let (number, one, two, collation, unsigned) = match *column_type {
            ColumnType::Int { bytes, unsigned } => (1, bytes.into(), 0, 0, unsigned),
            ColumnType::Float { unsigned } => (2, 0, 0, 0, unsigned),
            ColumnType::Double { unsigned } => (3, 0, 0, 0, unsigned),
            ColumnType::Decimal { precision, scale, unsigned } => {
                (4, precision.into(), scale.into(), 0, unsigned)
            }
            ColumnType::Char { chars, collation } => (5, chars, 0, collation_number(collation), false),
            ColumnType::Varchar { chars, collation } => (6, chars, 0, collation_number(collation), false),
            ColumnType::Text { bytes_max, collation } => {
                (7, bytes_max, 0, collation_number(collation), false)
            }
            ColumnType::Binary { bytes } => (8, bytes, 0, 0, false),
            ColumnType::Varbinary { bytes } => (9, bytes, 0, 0, false),
            ColumnType::Blob { bytes_max } => (10, bytes_max, 0, 0, false),
            ColumnType::Date => (11, 0, 0, 0, false),
            ColumnType::Time { fsp } => (12, fsp.into(), 0, 0, false),
            ColumnType::DateTime { fsp } => (13, fsp.into(), 0, 0, false),
            ColumnType::Timestamp { fsp } => (14, fsp.into(), 0, 0, false),
            ColumnType::Year => (15, 0, 0, 0, false),
            ColumnType::Enum { ref members, .. } => {
                (16, members.names().len() as u32, 0, collation_number(members.collation()), false)
            }
            ColumnType::Set { ref members, .. } => {
                (17, members.names().len() as u32, 0, collation_number(members.collation()), false)
            }
            ColumnType::Bit { bits } => (18, bits.into(), 0, 0, false),
            ColumnType::Code(Code::Uuid) => (19, 0, 0, 0, false),
            ColumnType::Code(Code::Inet6) => (20, 0, 0, 0, false),
            ColumnType::Code(Code::Inet4) => (21, 0, 0, 0, false),
        };
        self.u8(number);
        self.u32(one);
        self.u32(two);
        self.u8(collation);
        self.u8(u8::from(unsigned));
        if collation == Collation::LISTED {
            self.0.extend_from_slice(&column_type.collation().id().to_le_bytes());
        }
        for name in column_type.members().map_or(&[][..], Members::names) {
            self.bytes(name.as_bytes());
        }
    }
}

/// A collation's number in the catalogue: stable, from 1; 255 for one that the protocol's number names.
fn collation_number(collation: Collation) -> u8 {
    collation.to_byte().saturating_add(1)
}

/// Reads what the records have in common.
struct Reader<'a>(ByteReader<'a>);

impl Reader<'_> {
    fn bool(&mut self) -> Option<bool> {
        match self.0.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn option(&mut self) -> Option<Option<u32>> {
        let some = self.bool()?;
        let value = self.0.u32()?;
        Some(some.then_some(value))
    }

    /// As many elements as a count says; a count beyond the bytes left ends in `None` soon enough.
    fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.0.u32()?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(element(self)?);
        }
        Some(list)
    }

    fn parts(&mut self) -> Option<Vec<KeyPart>> {
        self.list(|from| {
            Some(KeyPart {
                column: from.0.u32()? as usize,
                prefix_chars: from.option()?,
                descending: from.bool()?,
            })
        })
    }

    fn definition(&mut self) -> Option<TableDef> {
        let database = self.0.text()?;
        let name = self.0.text()?;
        let columns = self.list(|from| {
            let name = from.0.text()?;
            let nullable = from.bool()?;
            Some(Column { name, nullable, column_type: from.column_type()? })
        })?;
        let has_primary = self.bool()?;
        let primary = self.parts()?;
        let indexes = self.list(|from| {
            Some(IndexDef { name: from.0.text()?, unique: from.bool()?, parts: from.parts()? })
        })?;
        let auto_increment = self.option()?.map(|column| column as usize);
        let sql_metadata = self.0.bytes()?.to_vec();
        let primary = has_primary.then_some(primary);
        Some(TableDef {
            database,
            name,
            columns,
            primary,
            indexes,
            auto_increment,
            sql_metadata,
            ..TableDef::default()
        })
    }

    fn pack_keys(&mut self) -> Option<PackKeys> {
        [PackKeys::Default, PackKeys::Never, PackKeys::Always].get(usize::from(self.0.u8()?)).copied()
    }

    fn column_type(&mut self) -> Option<ColumnType> {
        let number = self.0.u8()?;
        let one = self.0.u32()?;
        let two = self.0.u32()?;
        let collation = self.0.u8()?;
        let unsigned = self.bool()?;
        let small = |value: u32| u8::try_from(value).ok();
        let collation = match collation {
            0 => None,
            Collation::LISTED => Some(Collation::of_byte(collation, || self.0.u16())?),
            _ => Collation::of_byte(collation - 1, || None),
        };
        Some(match number {
            1 => ColumnType::Int { bytes: small(one)?, unsigned },
            2 => ColumnType::Float { unsigned },
            3 => ColumnType::Double { unsigned },
            4 => ColumnType::Decimal { precision: small(one)?, scale: small(two)?, unsigned },
            5 => ColumnType::Char { chars: one, collation: collation? },
            6 => ColumnType::Varchar { chars: one, collation: collation? },
            7 => ColumnType::Text { bytes_max: one, collation: collation? },
            8 => ColumnType::Binary { bytes: one },
            9 => ColumnType::Varbinary { bytes: one },
            10 => ColumnType::Blob { bytes_max: one },
            11 => ColumnType::Date,
            12 => ColumnType::Time { fsp: small(one)? },
            13 => ColumnType::DateTime { fsp: small(one)? },
            14 => ColumnType::Timestamp { fsp: small(one)? },
            15 => ColumnType::Year,
            16 => ColumnType::of_enum(self.members(one, ENUM_MEMBERS_MAX, collation?)?),
            17 => ColumnType::of_set(self.members(one, SET_MEMBERS_MAX, collation?)?),
            18 => ColumnType::Bit { bits: small(one).filter(|bits| (1..=64).contains(bits))? },
            19 => ColumnType::Code(Code::Uuid),
            20 => ColumnType::Code(Code::Inet6),
            21 => ColumnType::Code(Code::Inet4),
            _ => return None,
        })
    }

    /// So many members of an ENUM or SET, and no more than it can have.
    fn members(&mut self, count: u32, most: usize, collation: Collation) -> Option<Members> {
        let count = usize::try_from(count).ok().filter(|count| *count <= most)?;
        let names: Option<Vec<String>> = (0..count).map(|_| self.0.text()).collect();
        Some(Members::new(names?, collation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let text = |name: &str, column_type| Column { name: name.into(), column_type, nullable: true };
        let collation = Collation::Utf8mb4GeneralCi;
        let columns = vec![
            text("id", ColumnType::Int { bytes: 8, unsigned: true }),
            text("d", ColumnType::Decimal { precision: 65, scale: 30, unsigned: false }),
            text("c", ColumnType::Char { chars: 120, collation }),
            text("u", ColumnType::Varchar { chars: 120, collation: Collation::by_id(224).unwrap() }),
            text("t", ColumnType::Text { bytes_max: u32::MAX, collation: Collation::Binary }),
            text("z", ColumnType::Timestamp { fsp: 6 }),
            text("y", ColumnType::Year),
            text("e", ColumnType::of_enum(Members::new(["ä", "", "b"].map(String::from), collation))),
            text("s", ColumnType::of_set(Members::new((0..64).map(|bit| bit.to_string()), collation))),
            text("i", ColumnType::Bit { bits: 64 }),
            text("u", ColumnType::Code(Code::Uuid)),
            text("six", ColumnType::Code(Code::Inet6)),
            text("four", ColumnType::Code(Code::Inet4)),
        ];
        let part = |column| KeyPart { column, prefix_chars: Some(10), descending: true };
        Record::Table(Box::new(TableRecord {
            id: TableId(7),
            file: FileId(9),
            next_tree: 3,
            roots: vec![(PageNo(1), 1), (PageNo(2), 2)],
            def: TableDef {
                database: "straße".into(),
                name: "t".into(),
                columns,
                primary: Some(vec![part(0)]),
                indexes: vec![IndexDef { name: "k".into(), unique: true, parts: vec![part(2), part(1)] }],
                auto_increment: Some(0),
                page_size: Some(4096),
                pack_keys: PackKeys::Always,
                compressed: true,
                sql_metadata: vec![1, 2, 3],
            },
        }))
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let (key, value) = encode(&record());
        assert_eq!(decode(&key, &value), Some(record()));
        let database = Record::Database { name: "d".into(), sql_metadata: vec![5; 5_000] };
        let (key, value) = encode(&database);
        assert_eq!(decode(&key, &value), Some(database));
    }

    #[test]
    fn a_record_of_format_2_has_the_directorys_page_size() {
        let Record::Table(mut table) = record() else { panic!("no table") };
        (table.def.page_size, table.def.pack_keys) = (None, PackKeys::Default);
        table.def.compressed = false;
        let (key, mut value) = encode(&Record::Table(table.clone()));
        value[0] = RECORD_VERSION_1;
        value.truncate(value.len() - 7);
        assert_eq!(decode(&key, &value), Some(Record::Table(table)));
    }

    #[test]
    fn a_record_that_was_cut_or_changed_is_refused_or_read_but_never_panics() {
        let (key, value) = encode(&record());
        for len in 0..value.len() {
            assert_eq!(decode(&key, &value[..len]), None);
        }
        for at in 0..value.len() {
            for change in [1, 0x80, 0xff] {
                let mut broken = value.clone();
                broken[at] ^= change;
                decode(&key, &broken);
            }
        }
    }
}

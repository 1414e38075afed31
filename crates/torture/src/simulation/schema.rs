//! Random definitions, and rows as the engine has them.

use super::model::{Name, Row, TableState};
use base::IndexId;
use base::random::Random;
use engine::{IndexDef, PackKeys, Table, TableDef};
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};

/// Rows have ids below one of these, and keys from as many values. With the lower one the same rows have the
/// same keys again and again.
pub(super) const IDS: [u32; 2] = [6, 160];

fn column(name: &str, column_type: ColumnType, nullable: bool) -> Column {
    Column { name: name.to_string(), column_type, nullable }
}

fn part(column: usize, descending: bool) -> KeyPart {
    KeyPart { column, prefix_chars: None, descending }
}

/// `id INT, k INT, u INT NULL, s VARCHAR(40), c BLOB`, now and then with another column behind, with a
/// primary key or without.
pub(super) fn random_definition(random: &mut Random, name: &Name) -> TableDef {
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    let collations = [Collation::Utf8mb4GeneralCi, Collation::Latin1Bin, Collation::Utf8mb4Bin];
    let collation = collations[random.index(3)];
    let mut columns = vec![
        column("id", int(), false),
        column("k", int(), false),
        column("u", int(), true),
        column("s", ColumnType::Varchar { chars: 40, collation }, false),
        column("c", ColumnType::Blob { bytes_max: u32::MAX }, false),
    ];
    if random.below(3) == 0 {
        columns.push(column("n", ColumnType::Int { bytes: 8, unsigned: true }, true));
    }
    let primary = match random.below(6) {
        0 => None,
        1 => Some(vec![part(1, false), part(0, false)]),
        2 => Some(vec![part(0, true)]),
        _ => Some(vec![part(0, false)]),
    };
    let indexes = (0..INDEXES).filter(|_| random.below(2) == 0).map(index).collect();
    let compressed = random.below(6) == 0;
    let page_size = match random.below(5) {
        _ if compressed => Some(8_192 << random.below(2)),
        0 => Some(2_048),
        1 => Some(4_096),
        2 => Some(16_384),
        _ => None,
    };
    TableDef {
        database: name.0.clone(),
        name: name.1.clone(),
        columns,
        primary,
        indexes,
        page_size,
        compressed,
        pack_keys: [PackKeys::Default, PackKeys::Never, PackKeys::Always][random.index(3)],
        sql_metadata: vec![7; random.index(900)],
        ..TableDef::default()
    }
}

/// How many indexes there are to choose from.
pub(super) const INDEXES: usize = 4;

/// Index number `number`.
pub(super) fn index(number: usize) -> IndexDef {
    let (name, unique, parts) = match number {
        0 => ("k", false, vec![part(1, false)]),
        1 => ("u", true, vec![part(2, false)]),
        2 => ("s", false, vec![part(3, true)]),
        _ => ("sku", false, vec![part(3, false), part(1, true), part(2, false)]),
    };
    IndexDef { name: name.into(), unique, parts }
}

/// Mostly rows that fit a leaf, some that take pages of their own. `ids`: see [`IDS`].
pub(super) fn random_row(random: &mut Random, id: i32, ids: u32) -> Row {
    let len = match random.below(12) {
        0 => 300 + random.below(5_000),
        1 => 0,
        _ => 10 + random.below(150),
    };
    let first = random.below(256) as u8;
    let c = (0..len).map(|i| first.wrapping_add((i / 3) as u8)).collect();
    let u = (random.below(3) > 0).then(|| random.below(4 * ids) as i32);
    Row { id, k: random.below(ids.min(9)) as i32, u, c }
}

/// What follows from the rest of a row.
fn text_of(row: &Row) -> String {
    format!("{}{}", ["", "a", "Ab", "abc "][(row.k & 3) as usize], row.k * row.id % 17)
}

pub(super) fn image(table: &Table, def: &TableDef, row: &Row) -> Vec<u8> {
    let text = text_of(row);
    let mut values = vec![
        ValueRef::Int(row.id.into()),
        ValueRef::Int(row.k.into()),
        row.u.map_or(ValueRef::Null, |u| ValueRef::Int(u.into())),
        ValueRef::Text(text.as_bytes()),
        ValueRef::Binary(&row.c),
    ];
    if def.columns.len() > values.len() {
        values.push(ValueRef::UInt(row.id as u64));
    }
    let mut image = Vec::new();
    table.row_codec().encode(&values, &mut image);
    image
}

/// The row of an image.
///
/// # Errors
/// What is wrong with it.
pub(super) fn row_of(table: &Table, image: &[u8]) -> Result<Row, String> {
    let view = table.row_codec().view(image);
    let (ValueRef::Int(id), ValueRef::Int(k)) = (view.get(0), view.get(1)) else {
        return Err(format!("{:?}, {:?} where numbers should be", view.get(0), view.get(1)));
    };
    let u = match view.get(2) {
        ValueRef::Int(u) => Some(u as i32),
        ValueRef::Null => None,
        other => return Err(format!("{other:?} where a number should be")),
    };
    let (ValueRef::Text(text), ValueRef::Binary(c)) = (view.get(3), view.get(4)) else {
        return Err(format!("{:?} where a text should be, in row {id}", view.get(3)));
    };
    let row = Row { id: id as i32, k: k as i32, u, c: c.to_vec() };
    if text != text_of(&row).as_bytes() {
        return Err(format!("row {id} has the text of another"));
    }
    if view.columns() > 5 && view.get(5) != ValueRef::UInt(id as u64) {
        return Err(format!("row {id} has {:?} in its last column", view.get(5)));
    }
    Ok(row)
}

/// The primary key of a row; `None` where it is a hidden number.
pub(super) fn primary_key(table: &Table, def: &TableDef, row: &Row) -> Option<Vec<u8>> {
    def.primary.as_ref()?;
    let image = image(table, def, row);
    let mut key = Vec::new();
    table.key_codec(IndexId(0)).encode_row(&table.row_codec().view(&image), &mut key);
    Some(key)
}

/// Whether the engine sees that an id is there twice.
pub(super) fn id_is_key(table: &TableState) -> bool {
    table.def.primary.as_ref().is_some_and(|parts| parts.len() == 1)
}

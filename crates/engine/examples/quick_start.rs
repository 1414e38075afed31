//! Open a database, create a table, insert, get, look up many keys at once, scan.
//!
//! ```text
//! cargo run -p latchwork-engine --example quick_start
//! ```

use base::IndexId;
use latchwork_engine::{
    Batch, Database, Direction, IndexDef, KeyList, KeyRange, Options, Reader, Table, TableDef,
};
use types::{Collation, Column, ColumnType, KeyPart, ValueRef};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const PRIMARY: IndexId = IndexId(0);
const BY_CITY: IndexId = IndexId(1);

fn main() -> Result {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let database = Database::open(&dir, Options { create: true, ..Options::default() })?;
    database.create_database("town", b"")?;
    let people = database.create_table(definition())?;

    // A statement keeps all of its changes or none.
    let mut statement = database.begin_write()?;
    for (id, city, name) in [(1, "Ulm", "Ada"), (2, "Bern", "Bo"), (3, "Ulm", "Cy")] {
        statement.insert(&people, &row(&people, id, city, name))?;
    }
    statement.commit()?;

    // One row by its primary key.
    let mut image = Vec::new();
    if people.get(Reader::newest(), &key(&people, PRIMARY, &[ValueRef::Int(2)]), &mut image)? {
        println!("2 is {}", name(&people, &image));
    }

    // Many keys of an index at once, sorted: the descents are interleaved.
    let mut cities = KeyList::default();
    cities.push(&key(&people, BY_CITY, &[ValueRef::Text(b"Bern")]));
    cities.push(&key(&people, BY_CITY, &[ValueRef::Text(b"Ulm")]));
    people.multi_get(
        Reader::newest(),
        BY_CITY,
        &cities,
        &mut Batch::default(),
        &mut |position, _, image| {
            println!("city {position}: {}", name(&people, image));
            true
        },
    )?;

    // A range, backward.
    let mut scan = people.scan(Reader::newest(), PRIMARY, KeyRange::all(), Direction::Backward);
    while let Some(image) = scan.next_row()? {
        println!("backward: {}", name(&people, image));
    }

    // Change a row; what the closure sees is its newest image.
    let mut statement = database.begin_write()?;
    statement.update(&people, &key(&people, PRIMARY, &[ValueRef::Int(3)]), &mut |_, new| {
        new.extend(row(&people, 3, "Bern", "Cyd"));
        true
    })?;
    statement.delete(&people, &key(&people, PRIMARY, &[ValueRef::Int(1)]), &mut |_| true)?;
    statement.commit()?;
    println!("{} rows left", people.row_count());

    // Without this the next start refuses: there is no log yet to recover from.
    database.close()?;
    Ok(())
}

fn definition() -> TableDef {
    let text = || ColumnType::Varchar { chars: 40, collation: Collation::Utf8mb4GeneralCi };
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    TableDef {
        database: "town".into(),
        name: "people".into(),
        columns: vec![
            column("id", ColumnType::Int { bytes: 4, unsigned: false }),
            column("city", text()),
            column("name", text()),
        ],
        primary: Some(vec![part(0)]),
        indexes: vec![IndexDef { name: "by_city".into(), unique: false, parts: vec![part(1)] }],
        auto_increment: None,
        sql_metadata: Vec::new(),
        ..TableDef::default()
    }
}

fn row(table: &Table, id: i64, city: &str, name: &str) -> Vec<u8> {
    let mut image = Vec::new();
    let values = [ValueRef::Int(id), ValueRef::Text(city.as_bytes()), ValueRef::Text(name.as_bytes())];
    table.row_codec().encode(&values, &mut image);
    image
}

fn key(table: &Table, index: IndexId, values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut key = Vec::new();
    table.key_codec(index).encode_prefix(values, &mut key);
    key
}

fn name(table: &Table, image: &[u8]) -> String {
    match table.row_codec().view(image).get(2) {
        ValueRef::Text(name) => String::from_utf8_lossy(name).into_owned(),
        other => format!("{other:?}"),
    }
}

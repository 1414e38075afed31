//! Latchwork's engine: `get` for one key, `multi_get` for a sorted batch.

use super::{Lookup, Reader, Store, VALUE_BYTES, check, value};
use crate::Result;
use base::IndexId;
use engine::{Batch, CacheOptions, Database, HitPath, Isolation, KeyList, Options, Session, Table, TableDef};
use std::path::Path;
use std::sync::Arc;
use types::{Column, ColumnType, KeyPart, ValueRef};

pub struct Latchwork {
    table: Arc<Table>,
    database: Arc<Database>,
    hit_path: HitPath,
}

/// Rows a load statement.
const LOAD_ROWS: u32 = 10_000;

pub fn open(folder: &Path, rows: u32, hit_path: HitPath) -> Result<Latchwork> {
    let fail = |error: engine::Error| format!("latchwork: {error:?}");
    let cache = CacheOptions {
        size_bytes: rows as usize * 400 + (256 << 20),
        segments: if hit_path == HitPath::Optimistic { 8 } else { 0 },
        hit_path,
        division_limit: 100,
        age_threshold: 300,
        ..CacheOptions::default()
    };
    let options = Options { cache, create: true, ..Options::default() };
    let database = Database::open(folder, options).map_err(fail)?;
    database.create_database("bench", b"").map_err(fail)?;
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let table = database
        .create_table(TableDef {
            database: "bench".into(),
            name: "rows".into(),
            columns: vec![
                column("id", ColumnType::Int { bytes: 4, unsigned: true }),
                column("value", ColumnType::Binary { bytes: VALUE_BYTES as u32 }),
            ],
            primary: Some(vec![KeyPart { column: 0, prefix_chars: None, descending: false }]),
            indexes: vec![],
            auto_increment: None,
            sql_metadata: vec![],
            ..TableDef::default()
        })
        .map_err(fail)?;
    let mut images = KeyList::default();
    for first in (0..rows).step_by(LOAD_ROWS as usize) {
        images.bytes.clear();
        images.ends.clear();
        for id in first..rows.min(first + LOAD_ROWS) {
            let values = [ValueRef::UInt(id as u64), ValueRef::Binary(&value(id))];
            table.row_codec().encode(&values, &mut images.bytes);
            images.ends.push(images.bytes.len() as u32);
        }
        let mut statement = database.begin_write().map_err(fail)?;
        statement.insert_many(&table, &images).map_err(|(_, error)| fail(error))?;
        statement.commit().map_err(fail)?;
    }
    Ok(Latchwork { table, database, hit_path })
}

impl Store for Latchwork {
    fn name(&self, lookup: Lookup) -> String {
        let hit_path = if self.hit_path == HitPath::Locked { ", locked" } else { "" };
        match lookup {
            Lookup::Single => format!("Latchwork{hit_path}, get"),
            Lookup::Batch(keys) => format!("Latchwork{hit_path}, multi_get of {keys}"),
        }
    }
    fn lookups(&self, batch_keys: usize) -> Vec<Lookup> {
        vec![Lookup::Single, Lookup::Batch(batch_keys)]
    }
    fn reader(&self, lookup: Lookup) -> Result<Box<dyn Reader + '_>> {
        // One snapshot for all lookups, as the others have.
        let mut session = self.database.session();
        session.begin(Isolation::RepeatableRead).map_err(|error| format!("{error:?}"))?;
        Ok(Box::new(LatchworkReader {
            session,
            table: &self.table,
            lookup,
            keys: KeyList::default(),
            batch: Batch::default(),
        }))
    }
}

struct LatchworkReader<'s> {
    session: Session,
    table: &'s Table,
    lookup: Lookup,
    keys: KeyList,
    batch: Batch,
}

impl Reader for LatchworkReader<'_> {
    fn look_up(&mut self, ids: &mut [u32]) -> Result<()> {
        match self.lookup {
            Lookup::Single => self.one_by_one(ids),
            Lookup::Batch(keys) => ids.chunks_mut(keys).try_for_each(|ids| self.together(ids)),
        }
    }
}

impl LatchworkReader<'_> {
    fn one_by_one(&mut self, ids: &[u32]) -> Result<()> {
        let mut copied = Vec::with_capacity(VALUE_BYTES + 32);
        let read = self.session.read().map_err(|error| format!("{error:?}"))?;
        for &id in ids {
            copied.clear();
            // An unsigned NOT NULL column's key is its bytes, high byte first.
            self.table
                .get(read.reader(), &id.to_be_bytes(), &mut copied)
                .map_err(|error| format!("{error:?}"))?;
            check_row(self.table, id, std::hint::black_box(&copied))?;
        }
        Ok(())
    }

    fn together(&mut self, ids: &mut [u32]) -> Result<()> {
        ids.sort_unstable();
        self.keys.bytes.clear();
        self.keys.ends.clear();
        let mut last = None;
        for &id in ids.iter().filter(|&&id| last.replace(id) != Some(id)) {
            self.keys.bytes.extend_from_slice(&id.to_be_bytes());
            self.keys.ends.push(self.keys.bytes.len() as u32);
        }
        let mut copied = Vec::with_capacity(VALUE_BYTES + 32);
        let mut found = 0;
        let mut result = Ok(());
        let table = self.table;
        let read = self.session.read().map_err(|error| format!("{error:?}"))?;
        table
            .multi_get(read.reader(), IndexId(0), &self.keys, &mut self.batch, &mut |_, key, row| {
                copied.clear();
                copied.extend_from_slice(row);
                found += 1;
                let id = key.try_into().map(u32::from_be_bytes).unwrap_or(u32::MAX);
                result = check_row(table, id, std::hint::black_box(&copied));
                result.is_ok()
            })
            .map_err(|error| format!("{error:?}"))?;
        result?;
        if found != self.keys.ends.len() {
            return Err(format!("{found} rows for {} keys", self.keys.ends.len()).into());
        }
        Ok(())
    }
}

fn check_row(table: &Table, id: u32, image: &[u8]) -> Result<()> {
    if image.is_empty() {
        return Err(format!("no row for id {id}").into());
    }
    match table.row_codec().view(image).get(1) {
        ValueRef::Binary(copied) => check(id, copied),
        other => Err(format!("wrong value for id {id}: {other:?}").into()),
    }
}

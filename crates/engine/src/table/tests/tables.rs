//! Tables against a model, through the public API.

use crate::Reader;
use crate::tests::{CacheSize, Row, fixed_table_def, int_key, matrix, options, part, table_def};
use crate::{
    Batch, BuildStep, Building, Database, Direction, Error, HitPath, IndexDef, Integers, KeyList, KeyRange,
    Table, TableDef,
};
use base::IndexId;
use base::sync::{Arc, thread};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use vfs::MemVfs;

const PRIMARY: IndexId = IndexId(0);
const K: IndexId = IndexId(1);
const U: IndexId = IndexId(2);

type Model = BTreeMap<i32, Row>;

struct Fixture {
    vfs: Arc<MemVfs>,
    database: Arc<Database>,
    table: Arc<Table>,
    page_size: usize,
    hit_path: HitPath,
    size: CacheSize,
}

impl Fixture {
    fn new(def: TableDef, page_size: usize, hit_path: HitPath, size: CacheSize) -> Fixture {
        let vfs = Arc::new(MemVfs::new());
        let database =
            Database::open(Path::new("data"), options(vfs.clone(), page_size, hit_path, size)).unwrap();
        database.create_database("d", b"").unwrap();
        let table = database.create_table(def).unwrap();
        Fixture { vfs, database, table, page_size, hit_path, size }
    }

    fn insert(&self, row: &Row) -> crate::Result<()> {
        let mut statement = self.database.begin_write().unwrap();
        statement.insert(&self.table, &row.image(&self.table))?;
        statement.commit().unwrap();
        Ok(())
    }

    fn reopen(self) -> Fixture {
        self.database.close().unwrap();
        let Fixture { vfs, database, table, page_size, hit_path, size } = self;
        drop((database, table));
        let database =
            Database::open(Path::new("data"), options(vfs.clone(), page_size, hit_path, size)).unwrap();
        let table = database.table("d", "t").unwrap();
        Fixture { vfs, database, table, page_size, hit_path, size }
    }

    fn rows(&self, index: IndexId, range: KeyRange, direction: Direction) -> Vec<Row> {
        let mut scan = self.table.scan(Reader::newest(), index, range, direction);
        let mut rows = Vec::new();
        while let Some(image) = scan.next_row().unwrap() {
            rows.push(Row::read(&self.table, image));
            assert_eq!(scan.primary_key(), int_key(rows[rows.len() - 1].id));
        }
        rows
    }

    /// The integers of all rows, and of those from the middle on, in batches.
    fn check_integers(&self, model: &Model) {
        let columns = self.table.integer_columns([2, 0, 1]).unwrap();
        let wanted = |row: &Row| [row.u.map(i64::from), Some(row.id.into()), Some(row.k.into())];
        let middle = model.keys().nth(model.len() / 2).copied().unwrap_or(0);
        for from in [i32::MIN, middle] {
            let mut scan = self.table.scan(Reader::newest(), PRIMARY, KeyRange::all(), Direction::Forward);
            scan.skip_to(&int_key(from));
            let (mut batch, mut rows) = (Integers::default(), Vec::new());
            while scan.next_integers(&columns, &mut batch).unwrap() {
                assert_ne!(batch.rows(), 0);
                rows.extend((0..batch.rows()).map(|row| [0, 1, 2].map(|at| batch.column(at).get(row))));
            }
            let model: Vec<_> = model.range(from..).map(|(_, row)| wanted(row)).collect();
            assert_eq!(rows, model);
        }
    }

    /// Looks up keys, sorted and distinct, together.
    fn check_multi_get(&self, model: &Model, index: IndexId, keys: &[i32]) {
        let mut prefixes = KeyList::default();
        keys.iter().for_each(|key| prefixes.push(&int_key(*key)));
        let mut found = Vec::new();
        let mut each = |position, primary_key: &[u8], image: &[u8]| {
            let row = Row::read(&self.table, image);
            assert_eq!(primary_key, int_key(row.id));
            found.push((position, row));
            true
        };
        let mut batch = Batch::default();
        self.table.multi_get(Reader::newest(), index, &prefixes, &mut batch, &mut each).unwrap();
        let mut expected = Vec::new();
        for (position, key) in keys.iter().enumerate() {
            let rows = model.values().filter(|row| if index == K { row.k == *key } else { row.id == *key });
            expected.extend(rows.map(|row| (position, row.clone())));
        }
        assert_eq!(found, expected);
    }

    fn check(&self, model: &Model) {
        let all: Vec<Row> = model.values().cloned().collect();
        assert_eq!(self.rows(PRIMARY, KeyRange::all(), Direction::Forward), all);
        let mut by_k = all.clone();
        by_k.sort_by_key(|row| (row.k, row.id));
        assert_eq!(self.rows(K, KeyRange::all(), Direction::Forward), by_k);
        by_k.reverse();
        assert_eq!(self.rows(K, KeyRange::all(), Direction::Backward), by_k);
        let mut by_u = all;
        by_u.sort_by_key(|row| (row.u, row.id));
        assert_eq!(self.rows(U, KeyRange::all(), Direction::Forward), by_u);
        self.check_integers(model);
        assert_eq!(self.table.row_count(), model.len() as u64);
        let findings = self.database.check().unwrap();
        assert!(findings.is_clean(), "{findings}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Row),
    InsertMany(Vec<Row>, bool),
    Update(i32, Row),
    Delete(i32),
    /// A statement that deletes, updates and inserts, and is not committed.
    RollBack(Vec<Row>),
    MultiGet(IndexId, Vec<i32>),
    Range(IndexId, i32, i32, Direction),
    Reopen,
}

fn row() -> impl Strategy<Value = Row> {
    let len = prop_oneof![8 => 0..60usize, 1 => 250..260usize, 1 => 900..5_000usize];
    (0..60i32, 0..12i32, proptest::option::weighted(0.5, 0..50i32), len, any::<u8>())
        .prop_map(|(id, k, u, len, byte)| Row { id, k, u, c: vec![byte; len] })
}

fn step() -> impl Strategy<Value = Step> {
    let index = || prop_oneof![Just(PRIMARY), Just(K)];
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Backward)];
    prop_oneof![
        6 => row().prop_map(Step::Insert),
        3 => (proptest::collection::vec(row(), 0..30), any::<bool>()).prop_map(|(r, c)| Step::InsertMany(r, c)),
        3 => (0..60i32, row()).prop_map(|(id, row)| Step::Update(id, row)),
        3 => (0..60i32).prop_map(Step::Delete),
        2 => proptest::collection::vec(row(), 1..10).prop_map(Step::RollBack),
        1 => (index(), proptest::collection::btree_set(0..60i32, 0..50))
            .prop_map(|(index, keys)| Step::MultiGet(index, keys.into_iter().collect())),
        1 => (index(), 0..60i32, 0..60i32, direction).prop_map(|(i, a, b, d)| Step::Range(i, a, b, d)),
        1 => Just(Step::Reopen),
    ]
}

/// What the model says about inserting `row`: the index that refuses it.
fn collides(model: &Model, row: &Row) -> Option<IndexId> {
    if model.contains_key(&row.id) {
        return Some(PRIMARY);
    }
    let taken = row.u.is_some() && model.values().any(|other| other.u == row.u);
    taken.then_some(U)
}

fn assert_duplicate(result: crate::Result<()>, expected: Option<IndexId>) {
    match (result, expected) {
        (Ok(()), None) => {}
        (Err(Error::DuplicateKey { index }), Some(expected)) => assert_eq!(index, expected),
        (result, expected) => panic!("{result:?}, expected a collision in {expected:?}"),
    }
}

fn apply(fixture: Fixture, model: &mut Model, step: Step) -> Fixture {
    let table = fixture.table.clone();
    match step {
        Step::Insert(row) => {
            let expected = collides(model, &row);
            assert_duplicate(fixture.insert(&row), expected);
            if expected.is_none() {
                model.insert(row.id, row);
            }
        }
        Step::InsertMany(rows, commit) => {
            let mut images = KeyList::default();
            rows.iter().for_each(|row| images.push(&row.image(&table)));
            let mut after = model.clone();
            let mut expected = None;
            for (position, row) in rows.iter().enumerate() {
                if let Some(index) = collides(&after, row) {
                    expected = Some((position, index));
                    break;
                }
                after.insert(row.id, row.clone());
            }
            let mut statement = fixture.database.begin_write().unwrap();
            match (statement.insert_many(&table, &images), expected) {
                (Ok(()), None) => {
                    if commit {
                        statement.commit().unwrap();
                        *model = after;
                    }
                }
                (Err((position, Error::DuplicateKey { index })), Some(expected)) => {
                    assert_eq!((position, index), expected);
                    // The call left nothing behind, whatever becomes of the statement.
                    statement.commit().unwrap();
                }
                (result, expected) => panic!("{result:?}, expected {expected:?}"),
            }
        }
        Step::Update(id, row) => {
            let mut without = model.clone();
            let old = without.remove(&id);
            let expected = old.as_ref().and_then(|_| collides(&without, &row));
            let mut statement = fixture.database.begin_write().unwrap();
            let result = statement.update(&table, &int_key(id), &mut |image, new| {
                assert_eq!(Some(&Row::read(&table, image)), model.get(&id));
                new.extend(row.image(&table));
                true
            });
            statement.commit().unwrap();
            let changed = result.as_ref().ok().copied();
            assert_duplicate(result.map(drop), expected);
            if let Some(changed) = changed {
                assert_eq!(changed, old.is_some());
                if changed {
                    without.insert(row.id, row);
                    *model = without;
                }
            }
        }
        Step::Delete(id) => {
            let mut statement = fixture.database.begin_write().unwrap();
            let wants = model.get(&id).is_some_and(|row| row.k % 5 != 0);
            let deleted = statement
                .delete(&table, &int_key(id), &mut |image| Row::read(&table, image).k % 5 != 0)
                .unwrap();
            assert_eq!(deleted, wants);
            statement.commit().unwrap();
            if wants {
                model.remove(&id);
            }
        }
        Step::RollBack(rows) => {
            let mut statement = fixture.database.begin_write().unwrap();
            for row in rows {
                let image = row.image(&table);
                match row.k % 3 {
                    0 => drop(statement.insert(&table, &image)),
                    1 => drop(statement.update(&table, &int_key(row.id / 2), &mut |_, new| {
                        new.extend_from_slice(&image);
                        true
                    })),
                    _ => drop(statement.delete(&table, &int_key(row.id), &mut |_| true)),
                }
            }
        }
        Step::MultiGet(index, keys) => {
            fixture.check_multi_get(model, index, &keys);
        }
        Step::Range(index, low, high, direction) => {
            let range = KeyRange {
                lower: Bound::Excluded(int_key(low).to_vec()),
                upper: Bound::Included(int_key(high).to_vec()),
            };
            let key = |row: &Row| if index == K { row.k } else { row.id };
            let mut expected: Vec<Row> =
                model.values().filter(|row| low < key(row) && key(row) <= high).cloned().collect();
            expected.sort_by_key(|row| (key(row), row.id));
            if direction == Direction::Backward {
                expected.reverse();
            }
            assert_eq!(fixture.rows(index, range.clone(), direction), expected);
            let mut scan = table.scan(Reader::newest(), index, range, direction);
            let mut keys = 0;
            while let Some(key) = scan.next_key().unwrap() {
                assert!(key.ends_with(&int_key(expected[keys].id)));
                keys += 1;
            }
            assert_eq!(keys, expected.len());
        }
        Step::Reopen => return fixture.reopen(),
    }
    fixture
}

proptest! {
    #![proptest_config(crate::tests::cases(48))]
    #[test]
    fn a_table_behaves_like_a_map_of_rows(steps in proptest::collection::vec(step(), 1..80)) {
        for (hit_path, size) in matrix() {
            let mut fixture = Fixture::new(table_def(), 1024, hit_path, size);
            let mut model = Model::new();
            for step in steps.clone() {
                fixture = apply(fixture, &mut model, step);
            }
            fixture.check(&model);
            fixture.reopen().check(&model);
        }
    }
}

fn rows(count: i32) -> impl Iterator<Item = Row> {
    rows_of_keys(count, 1000)
}

fn rows_of_keys(count: i32, keys: i32) -> impl Iterator<Item = Row> {
    (0..count).map(move |id| Row { id, k: id * 7919 % keys, u: None, c: vec![b'a' + (id % 26) as u8; 120] })
}

fn load(fixture: &Fixture, count: i32) -> Model {
    load_rows(fixture, rows(count))
}

fn load_rows(fixture: &Fixture, rows: impl Iterator<Item = Row>) -> Model {
    let mut images = KeyList::default();
    let mut model = Model::new();
    for row in rows {
        images.push(&row.image(&fixture.table));
        model.insert(row.id, row);
    }
    let mut statement = fixture.database.begin_write().unwrap();
    statement.insert_many(&fixture.table, &images).unwrap();
    statement.commit().unwrap();
    model
}

#[test]
fn runs_that_go_on_in_the_next_leaf_are_found_whole_among_others() {
    for (hit_path, size) in matrix() {
        let fixture = Fixture::new(fixed_table_def(), 1024, hit_path, size);
        // Three rows to each of a thousand keys, some forty entries to a leaf.
        let model = load(&fixture, 3_000);
        for step in [1, 2, 7] {
            fixture.check_multi_get(&model, K, &(-1..1_001).step_by(step).collect::<Vec<_>>());
        }
    }
}

#[test]
fn more_rows_than_are_looked_up_at_once_come_in_order() {
    for (hit_path, size) in matrix() {
        let fixture = Fixture::new(fixed_table_def(), 16 << 10, hit_path, size);
        // Twenty rows to a key, and hundreds of entries to a leaf.
        let model = load_rows(&fixture, rows_of_keys(4_000, 200));
        for step in [1, 3] {
            fixture.check_multi_get(&model, K, &(-1..201).step_by(step).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_run_of_any_length_takes_no_more_memory_and_ends_when_it_is_told_to() {
    let fixture = Fixture::new(fixed_table_def(), 1024, HitPath::Optimistic, CacheSize::from_environment());
    let model = load_rows(&fixture, rows_of_keys(20_000, 3));
    fixture.check_multi_get(&model, K, &[-1, 0, 1, 2, 3]);
    let mut prefixes = KeyList::default();
    [0, 2].iter().for_each(|key| prefixes.push(&int_key(*key)));
    let mut batch = Batch::default();
    let all = model.values().filter(|row| row.k != 1).count();
    // In the first run, at its end, in the second run, never.
    for rows_wanted in [1, 300, all / 2, all - 1, all + 1] {
        let mut found = 0;
        let mut each = |_: usize, _: &[u8], _: &[u8]| {
            found += 1;
            found < rows_wanted
        };
        fixture.table.multi_get(Reader::newest(), K, &prefixes, &mut batch, &mut each).unwrap();
        assert_eq!(found, rows_wanted.min(all));
        assert!(batch.capacity() < 64 << 10, "{} bytes", batch.capacity());
    }
}

#[test]
fn a_cursor_that_seeks_finds_what_a_scan_of_the_prefix_finds() {
    let fixture = Fixture::new(fixed_table_def(), 1024, HitPath::Optimistic, CacheSize::from_environment());
    let model = load(&fixture, 3_000);
    let reader = Reader::newest();
    let mut keys = fixture.table.scan_keys(reader, PRIMARY, KeyRange::all(), Direction::Forward);
    let mut rows = fixture.table.scan(reader, PRIMARY, KeyRange::all(), Direction::Forward);
    let mut by_k = fixture.table.scan(reader, K, KeyRange::all(), Direction::Forward);
    // In order, with gaps, twice the same, backwards, beyond both ends.
    let near = (0..200).chain((200..3_000).step_by(37));
    let far = [2_999, 2_999, 5, -1, 3_001, 1_500, 1_499, 1_501, 0];
    for id in near.chain(far) {
        keys.seek(&int_key(id));
        assert_eq!(keys.next_key().unwrap().is_some(), model.contains_key(&id), "{id}");
        assert_eq!(keys.next_key().unwrap(), None);
        rows.seek(&int_key(id));
        let found = rows.next_row().unwrap().map(|image| Row::read(&fixture.table, image));
        assert_eq!(found.as_ref(), model.get(&id));
        assert_eq!(rows.next_row().unwrap(), None);
        let Some(row) = found else { continue };
        let mut prefix = Vec::new();
        let image = row.image(&fixture.table);
        fixture.table.key_codec(K).encode_row(&fixture.table.row_codec().view(&image), &mut prefix);
        by_k.seek(&prefix);
        let mut found = Vec::new();
        while let Some(image) = by_k.next_row().unwrap() {
            found.push(Row::read(&fixture.table, image));
        }
        let expected: Vec<Row> = model.values().filter(|other| other.k == row.k).cloned().collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn statistics_count_distinct_keys_until_the_definition_changes() {
    let fixture = Fixture::new(fixed_table_def(), 1024, HitPath::Optimistic, CacheSize::from_environment());
    let model = load(&fixture, 500);
    assert_eq!(fixture.table.statistics(), None);
    let version = fixture.table.version();
    assert_eq!(fixture.table.analyze(|| Ok::<(), Error>(())).unwrap(), 500);
    assert!(fixture.table.version() > version, "plans are made anew");
    let statistics = fixture.table.statistics().unwrap();
    let values: std::collections::BTreeSet<_> = model.values().map(|row| row.k).collect();
    assert_eq!((statistics.rows, statistics.distinct[0][0]), (500, 500));
    assert_eq!(statistics.distinct[1][0], values.len() as u64);
    assert_eq!(statistics.rows_of_prefix(PRIMARY, 1), Some(1.0));
    fixture.database.keep_statistics(&fixture.table).unwrap();
    let reopened = fixture.reopen();
    assert_eq!(reopened.table.statistics(), Some(statistics), "they outlive the process");
    reopened.database.truncate(&reopened.table).unwrap();
    assert_eq!(reopened.table.statistics(), None);
    assert_eq!(reopened.reopen().table.statistics(), None, "they are of other trees");
}

#[test]
fn a_large_load_is_found_again_through_every_index() {
    for (hit_path, size) in matrix() {
        let fixture = Fixture::new(fixed_table_def(), 16 << 10, hit_path, size);
        let model = load(&fixture, 20_000);
        fixture.check(&model);
        fixture.reopen().check(&model);
    }
}

#[test]
fn an_index_built_later_has_what_one_built_along_has() {
    for (hit_path, size) in matrix() {
        let mut def = table_def();
        let indexes = std::mem::take(&mut def.indexes);
        let fixture = Fixture::new(def, 4096, hit_path, size);
        let model = load(&fixture, 3_000);
        for index in indexes {
            let before = fixture.table.version();
            // So little memory that the build sorts in a scratch file.
            let building = Building { sort_bytes: 10_000, watch: &mut |_, _| Ok(()) };
            fixture.database.build_index(&fixture.table, index, building).unwrap();
            assert!(fixture.table.version() > before);
        }
        fixture.check(&model);
        let fixture = fixture.reopen();
        fixture.check(&model);
        fixture.database.drop_index(&fixture.table, "k").unwrap();
        assert!(matches!(fixture.database.drop_index(&fixture.table, "k"), Err(Error::NoSuchIndex)));
        let index = IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] };
        fixture.database.create_index(&fixture.table, index).unwrap();
        let report = fixture.database.check().unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(fixture.table.def().indexes[1].name, "k");
    }
}

#[test]
fn a_build_that_is_ended_leaves_nothing() {
    for step in [BuildStep::Read, BuildStep::Write] {
        let mut def = table_def();
        let indexes = std::mem::take(&mut def.indexes);
        let fixture = Fixture::new(def, 4096, HitPath::Optimistic, CacheSize::from_environment());
        let model = load(&fixture, 2_000);
        let mut steps = Vec::new();
        let mut watch = |now, _| {
            steps.push(now);
            if now == step { Err(Error::Interrupted) } else { Ok(()) }
        };
        // So little memory that there is a scratch file.
        let building = Building { sort_bytes: 10_000, watch: &mut watch };
        let result = fixture.database.build_index(&fixture.table, indexes[0].clone(), building);
        assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
        assert_eq!(steps.last(), Some(&step));
        assert!(fixture.table.def().indexes.is_empty());
        let report = fixture.database.check().unwrap();
        assert!(report.is_clean(), "{report}");
        for index in indexes {
            fixture.database.create_index(&fixture.table, index).unwrap();
        }
        fixture.reopen().check(&model);
    }
}

#[test]
fn a_unique_index_is_not_built_over_duplicates() {
    let mut def = table_def();
    def.indexes.clear();
    let fixture = Fixture::new(def, 4096, HitPath::Optimistic, CacheSize::from_environment());
    load(&fixture, 2_000);
    let index = IndexDef { name: "k".into(), unique: true, parts: vec![part(1)] };
    let result = fixture.database.create_index(&fixture.table, index);
    assert!(matches!(result, Err(Error::DuplicateKey { index: IndexId(1) })), "{result:?}");
    assert!(fixture.table.def().indexes.is_empty());
    let report = fixture.database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_row_of_sixteen_megabytes_comes_back_whole() {
    let fixture = Fixture::new(table_def(), 16 << 10, HitPath::Optimistic, CacheSize::from_environment());
    let mut c: Vec<u8> = (0..16 << 20).map(|i| (i * 31 % 251) as u8).collect();
    let mut row = Row { id: 1, k: 2, u: Some(3), c: c.clone() };
    fixture.insert(&row).unwrap();
    let mut image = Vec::new();
    assert!(fixture.table.get(Reader::newest(), &int_key(1), &mut image).unwrap());
    assert!(Row::read(&fixture.table, &image) == row);
    c.truncate(10);
    row.c = c;
    let mut statement = fixture.database.begin_write().unwrap();
    statement
        .update(&fixture.table, &int_key(1), &mut |_, new| {
            new.extend(row.image(&fixture.table));
            true
        })
        .unwrap();
    statement.commit().unwrap();
    // The old pages have gone back to the free list.
    fixture.check(&Model::from([(1, row)]));
}

#[test]
fn a_table_without_primary_key_keeps_rows_in_the_order_of_their_arrival() {
    let mut def = table_def();
    def.primary = None;
    let fixture = Fixture::new(def, 4096, HitPath::Optimistic, CacheSize::from_environment());
    let row = |id| Row { id, k: 1, u: None, c: vec![] };
    fixture.insert(&row(9)).unwrap();
    let mut images = KeyList::default();
    [5, 5, 7].iter().for_each(|id| images.push(&row(*id).image(&fixture.table)));
    let mut statement = fixture.database.begin_write().unwrap();
    statement.insert_many(&fixture.table, &images).unwrap();
    statement.commit().unwrap();
    let fixture = fixture.reopen();
    fixture.insert(&row(1)).unwrap();
    let mut scan = fixture.table.scan(Reader::newest(), PRIMARY, KeyRange::all(), Direction::Forward);
    let mut ids = Vec::new();
    while let Some(image) = scan.next_row().unwrap() {
        ids.push(Row::read(&fixture.table, image).id);
    }
    assert_eq!(ids, [9, 5, 5, 7, 1]);
    let report = fixture.database.check().unwrap();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn auto_increment_goes_on_after_a_clean_restart_and_starts_again_after_truncate() {
    let fixture = Fixture::new(table_def(), 4096, HitPath::Optimistic, CacheSize::from_environment());
    assert_eq!(fixture.table.reserve_auto_increment(3).unwrap(), 1);
    fixture.table.raise_auto_increment(99);
    fixture.table.raise_auto_increment(7);
    assert_eq!(fixture.table.next_auto_increment(), 100);
    let fixture = fixture.reopen();
    assert_eq!(fixture.table.reserve_auto_increment(1).unwrap(), 100);
    load(&fixture, 500);
    fixture.database.truncate(&fixture.table).unwrap();
    fixture.check(&Model::new());
    assert_eq!(fixture.table.next_auto_increment(), 1);
    fixture.table.raise_auto_increment(u64::MAX);
    assert!(matches!(fixture.table.reserve_auto_increment(1), Err(Error::AutoIncrementExhausted)));
}

/// Writers move rows between keys of both indexes while readers look them up by either.
fn stress(hit_path: HitPath, size: CacheSize) {
    const ROWS: i32 = 300;
    let fixture = Fixture::new(table_def(), 1024, hit_path, size);
    let row = |id: i32, k: i32| Row { id, k, u: Some(id), c: vec![id as u8; 10 + (k % 7) as usize * 40] };
    for id in 0..ROWS {
        fixture.insert(&row(id, 0)).unwrap();
    }
    thread::scope(|scope| {
        let fixture = &fixture;
        for writer in 0..2 {
            scope.spawn(move || {
                for round in 1..8 {
                    for id in (0..ROWS).filter(|id| id % 2 == writer) {
                        let new = row(id, round);
                        let mut statement = fixture.database.begin_write().unwrap();
                        let changed = statement
                            .update(&fixture.table, &int_key(id), &mut |_, out| {
                                out.extend(new.image(&fixture.table));
                                true
                            })
                            .unwrap();
                        assert!(changed);
                        if id % 3 == 0 {
                            // Taken back: the row is as before.
                            drop(statement);
                        } else {
                            statement.commit().unwrap();
                        }
                    }
                    // Rows that come and go, in bulk, with a duplicate now and then.
                    let mut images = KeyList::default();
                    for id in 0..200 {
                        images.push(
                            &Row { u: None, ..row(1_000 + writer * 150 + id, id) }.image(&fixture.table),
                        );
                    }
                    let mut statement = fixture.database.begin_write().unwrap();
                    match statement.insert_many(&fixture.table, &images) {
                        Ok(()) => statement.commit().unwrap(),
                        Err((_, Error::DuplicateKey { index: PRIMARY })) => drop(statement),
                        Err(error) => panic!("{error:?}"),
                    }
                    for id in 0..200 {
                        let mut statement = fixture.database.begin_write().unwrap();
                        let key = int_key(1_000 + writer * 150 + id);
                        statement.delete(&fixture.table, &key, &mut |_| true).unwrap();
                        statement.commit().unwrap();
                    }
                }
            });
        }
        scope.spawn(move || {
            let mut by_id = KeyList::default();
            (0..ROWS).for_each(|id| by_id.push(&int_key(id)));
            // A nullable part has a byte before its value.
            let mut by_u = KeyList::default();
            (0..ROWS).for_each(|id| by_u.push(&[&[1], int_key(id).as_slice()].concat()));
            let mut batch = Batch::default();
            for _ in 0..10 {
                for (index, prefixes) in [(PRIMARY, &by_id), (U, &by_u)] {
                    let mut found = 0;
                    fixture
                        .table
                        .multi_get(
                            Reader::newest(),
                            index,
                            prefixes,
                            &mut batch,
                            &mut |position, _, image| {
                                let row = Row::read(&fixture.table, image);
                                assert_eq!(row.id, position as i32);
                                assert_eq!(
                                    row.c.len(),
                                    10 + (row.k % 7) as usize * 40,
                                    "a row is never torn"
                                );
                                found += 1;
                                true
                            },
                        )
                        .unwrap();
                    assert_eq!(found, ROWS, "a row that stays put is found through {index:?}");
                }
            }
        });
        scope.spawn(move || {
            for _ in 0..10 {
                let mut scan = fixture.table.scan(Reader::newest(), K, KeyRange::all(), Direction::Forward);
                while let Some(image) = scan.next_row().unwrap() {
                    let row = Row::read(&fixture.table, image);
                    assert_eq!(row.c.len(), 10 + (row.k % 7) as usize * 40);
                }
            }
        });
    });
    // Both writers' bulk rows have been deleted by one or the other.
    let mut statement = fixture.database.begin_write().unwrap();
    for id in 1_000..1_400 {
        statement.delete(&fixture.table, &int_key(id), &mut |_| true).unwrap();
    }
    statement.commit().unwrap();
    let mut model = Model::new();
    for id in 0..ROWS {
        let k = if id % 3 == 0 { 0 } else { 7 };
        model.insert(id, row(id, k));
    }
    fixture.check(&model);
}

#[test]
fn rows_and_their_index_entries_agree_after_concurrent_changes() {
    for (hit_path, size) in matrix() {
        stress(hit_path, size);
    }
}

#[test]
fn cached_rows_and_scans_survive_definition_changes_under_them() {
    let fixture = Fixture::new(table_def(), 1024, HitPath::Optimistic, CacheSize::from_environment());
    let model = load(&fixture, 1_000);
    // An index before the one that is read goes: its number changes, its tree does not.
    let number =
        |name: &str| fixture.table.def().indexes.iter().position(|index| index.name == name).unwrap();
    assert!(number("k") < number("u"));
    let last = IndexId(number("u") as u16 + 1);
    let mut by_u = fixture.table.scan(Reader::newest(), last, KeyRange::all(), Direction::Forward);
    by_u.next_row().unwrap();
    let mut scan = fixture.table.scan(Reader::newest(), K, KeyRange::all(), Direction::Forward);
    scan.next_row().unwrap();
    fixture.database.drop_index(&fixture.table, "k").unwrap();
    let rest = std::iter::from_fn(|| by_u.next_row().unwrap().map(drop)).count();
    assert_eq!(rest, 999);
    drop(by_u);
    let mut seen = 1;
    let end = loop {
        match scan.next_row() {
            Ok(Some(_)) => seen += 1,
            end => break end.map(drop),
        }
    };
    assert!(matches!(end, Err(Error::TableChanged)), "{end:?} after {seen} rows");
    fixture.database.rename_table(("d", "t"), ("d", "new")).unwrap();
    assert!(matches!(fixture.database.table("d", "t"), Err(Error::NoSuchTable)));
    let mut image = Vec::new();
    assert!(fixture.table.get(Reader::newest(), &int_key(5), &mut image).unwrap());
    assert_eq!(Row::read(&fixture.table, &image), model[&5]);
    fixture.database.drop_table("d", "new").unwrap();
    assert!(matches!(fixture.table.get(Reader::newest(), &int_key(5), &mut image), Err(Error::NoSuchTable)));
    assert!(matches!(fixture.insert(&model[&1]), Err(Error::NoSuchTable)));
    fixture.database.drop_database("d").unwrap();
    assert!(fixture.database.databases().is_empty());
}

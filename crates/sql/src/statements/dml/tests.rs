use crate::{ColumnMeta, Completion, Instance, ResultSink, Session, SqlError};
use engine::{CacheOptions, Database, Direction, KeyRange, Options};
use std::ops::Bound;
use std::sync::Arc;
use types::{Value, ValueRef};

#[derive(Default)]
pub(crate) struct Last {
    pub completion: Completion,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl ResultSink for Last {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.columns = columns.iter().map(|column| column.name.clone()).collect();
        Ok(())
    }
    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.rows.push(row.iter().map(ValueRef::to_value).collect());
        Ok(())
    }
    fn end(&mut self, completion: &Completion) -> Result<(), SqlError> {
        self.completion = completion.clone();
        Ok(())
    }
}

pub(crate) struct Fixture {
    pub session: Session,
    _folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let options = Options {
            cache: CacheOptions { size_bytes: 1 << 22, segments: 2, ..CacheOptions::default() },
            create: true,
            ..Options::default()
        };
        let database = Database::open(&folder.path().join("data"), options).expect("a new database");
        let instance: Arc<Instance> = Instance::new(database);
        let session = Session::new(instance, 7, "root", "localhost");
        let mut fixture = Fixture { session, _folder: folder };
        fixture.run("CREATE DATABASE test");
        fixture.session.use_database("test").expect("the database");
        fixture
    }

    pub(crate) fn run(&mut self, sql: &str) -> Last {
        let mut last = Last::default();
        if let Err(error) = self.session.query(sql.as_bytes(), &mut last) {
            panic!("{sql}: {error}");
        }
        last
    }

    pub(crate) fn fail(&mut self, sql: &str) -> (u16, String) {
        let mut last = Last::default();
        match self.session.query(sql.as_bytes(), &mut last) {
            Err(error) => (error.code(), error.message),
            Ok(()) => panic!("{sql} was accepted"),
        }
    }

    /// The rows of a table in the order of its primary key.
    pub(crate) fn rows(&self, table: &str) -> Vec<Vec<Value>> {
        let table = self.session.instance.database.table("test", table).expect("a table");
        let range = KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded };
        let mut scan = table.scan(engine::Reader::newest(), base::IndexId(0), range, Direction::Forward);
        let mut rows = Vec::new();
        while let Some(row) = scan.next_row().expect("a readable table") {
            rows.push(table.row_codec().view(row).to_values());
        }
        rows
    }
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

#[test]
fn rows_of_literals_reach_the_table() {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(5) NOT NULL DEFAULT 'd', c INT)");
    let last = fixture.run("INSERT INTO t (b, a) VALUES ('x', 2), ('it''s', 1)");
    assert_eq!(last.completion.affected_rows, 2);
    assert_eq!(last.completion.info, "Records: 2  Duplicates: 0  Warnings: 0");
    fixture.run("INSERT INTO t VALUES (3, DEFAULT, 7)");
    assert_eq!(
        fixture.rows("t"),
        [
            vec![int(1), Value::text("it's"), Value::Null],
            vec![int(2), Value::text("x"), Value::Null],
            vec![int(3), Value::text("d"), int(7)],
        ]
    );
}

#[test]
fn a_duplicate_undoes_the_whole_statement_and_names_the_entry() {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT, UNIQUE KEY bc (b, c))");
    fixture.run("INSERT INTO t VALUES (1, 2, 3)");
    assert_eq!(
        fixture.fail("INSERT INTO t VALUES (5, 5, 5), (1, 1, 1)"),
        (1062, "Duplicate entry '1' for key 'PRIMARY'".to_owned())
    );
    assert_eq!(
        fixture.fail("INSERT INTO t VALUES (2, 2, 3)"),
        (1062, "Duplicate entry '2-3' for key 'bc'".to_owned())
    );
    assert_eq!(fixture.rows("t").len(), 1);
    let last = fixture.run("INSERT IGNORE INTO t VALUES (5, 5, 5), (1, 1, 1)");
    assert_eq!((last.completion.affected_rows, last.completion.warnings), (1, 1));
    let last = fixture.run("REPLACE INTO t VALUES (1, 5, 5)");
    assert_eq!(last.completion.affected_rows, 3, "one inserted, two that were in its way deleted");
    assert_eq!(fixture.rows("t"), [[int(1), int(5), int(5)]]);
}

#[test]
fn generated_numbers_are_consecutive_within_a_statement_and_never_below_given_ones() {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    assert_eq!(fixture.run("INSERT INTO t (v) VALUES (1), (2), (3)").completion.last_insert_id, 1);
    assert_eq!(fixture.session.variables.last_insert_id, 1);
    let last = fixture.run("INSERT INTO t VALUES (NULL, 4), (10, 5), (0, 6)");
    assert_eq!(last.completion.last_insert_id, 4);
    let last = fixture.run("INSERT INTO t VALUES (20, 7)");
    assert_eq!(last.completion.last_insert_id, 20);
    assert_eq!(fixture.session.variables.last_insert_id, 4, "a number that was given is not generated");
    let ids: Vec<Value> = fixture.rows("t").into_iter().map(|mut row| row.swap_remove(0)).collect();
    assert_eq!(ids, [1, 2, 3, 4, 10, 11, 20].map(int));
}

#[test]
fn a_number_beyond_the_columns_type_is_not_generated() {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (id TINYINT AUTO_INCREMENT PRIMARY KEY)");
    fixture.run("INSERT INTO t VALUES (127)");
    assert_eq!(fixture.fail("INSERT INTO t VALUES (NULL)").0, 1467);
}

#[test]
fn wrong_rows_are_refused_with_their_number() {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (a INT NOT NULL, b INT)");
    assert_eq!(
        fixture.fail("INSERT INTO t VALUES (1, 2), (3)"),
        (1136, "Column count doesn't match value count at row 2".to_owned())
    );
    assert_eq!(
        fixture.fail("INSERT INTO t (b) VALUES (1)"),
        (1364, "Field 'a' doesn't have a default value".to_owned())
    );
    assert!(fixture.rows("t").is_empty());
}

#[test]
fn rows_inserted_while_the_table_is_copied_are_neither_lost_nor_doubled() {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL)");
    const WRITERS: usize = 3;
    const ROWS: usize = 200;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let instance = fixture.session.instance.clone();
            scope.spawn(move || {
                let mut session = Session::new(instance, 100 + writer as u64, "root", "localhost");
                session.use_database("test").expect("the database");
                for row in 0..ROWS {
                    let sql = format!("INSERT INTO t (v) VALUES ({row})");
                    let mut last = Last::default();
                    // Between DROP and RENAME there is no table of that name.
                    while let Err(error) = session.query(sql.as_bytes(), &mut last) {
                        assert_eq!(error.code(), 1146, "{error}");
                    }
                }
            });
        }
        for round in 0..5 {
            fixture.run(&format!("ALTER TABLE t ADD COLUMN c{round} INT DEFAULT {round}"));
        }
    });
    let rows = fixture.rows("t");
    assert_eq!(rows.len(), WRITERS * ROWS);
    let mut sums = vec![0; ROWS];
    for row in &rows {
        let Value::Int(v) = row[1] else { panic!("{row:?}") };
        sums[v as usize] += 1;
    }
    assert!(sums.iter().all(|count| *count == WRITERS));
    assert_eq!(rows[0].len(), 7);
}

#[test]
fn what_is_counted_shows_in_status_and_in_the_key_cache() {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (a INT PRIMARY KEY)");
    fixture.run("INSERT INTO t VALUES (1), (2)");
    fixture.run("SELECT * FROM t");
    let status = |fixture: &mut Fixture, name: &str| -> u64 {
        let last = fixture.run(&format!("SHOW SESSION STATUS LIKE '{name}'"));
        let Value::Text(text) = &last.rows[0][1] else { panic!("{name}") };
        String::from_utf8_lossy(text).parse().expect("a number")
    };
    assert_eq!(status(&mut fixture, "Com_insert"), 1);
    assert_eq!(status(&mut fixture, "Com_select"), 1);
    assert_eq!(status(&mut fixture, "Handler_write"), 2);
    assert!(status(&mut fixture, "Key_read_requests") > 0);
    assert!(status(&mut fixture, "Key_blocks_used") > 0);
    let rows = fixture.run("SELECT * FROM information_schema.KEY_CACHES").rows;
    assert_eq!(rows.len(), 3, "a row a segment, and the whole");
    for column in 5..12 {
        let number = |row: &Vec<Value>| match row[column] {
            Value::UInt(number) => number,
            _ => panic!("{row:?}"),
        };
        // Only the background writer uses the cache now. Used blocks are a high-water mark of each part.
        if column > 6 && column != 7 {
            assert!(number(&rows[0]) + number(&rows[1]) <= number(&rows[2]));
        }
    }
    fixture.run("SET GLOBAL key_cache_segments = 0");
    let rows = fixture.run("SELECT SEGMENTS, SEGMENT_NUMBER FROM information_schema.KEY_CACHES").rows;
    assert_eq!(rows, [[Value::Null, Value::Null]]);
    fixture.run("FLUSH STATUS");
    fixture.run("SET GLOBAL key_buffer_size = 8388608");
    let rows = fixture.run("SELECT FULL_SIZE FROM information_schema.KEY_CACHES").rows;
    assert_eq!(rows, [[Value::UInt(8 << 20)]]);
}

#[test]
fn a_table_that_was_replaced_is_looked_up_anew() {
    let mut fixture = Fixture::new();
    fixture.run("CREATE TABLE t (a INT)");
    fixture.run("INSERT INTO t VALUES (1)");
    fixture.run("ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 5 FIRST");
    fixture.run("INSERT INTO t VALUES (2, 3)");
    assert_eq!(fixture.rows("t"), [[int(5), int(1)], [int(2), int(3)]]);
    fixture.run("DROP TABLE t");
    fixture.run("CREATE TABLE t (c INT)");
    fixture.run("INSERT INTO t VALUES (9)");
    assert_eq!(fixture.rows("t"), [[int(9)]]);
}

//! Statements with buffers so small that everything goes to files give what they give with large ones. A KILL
//! and a full disk end them at any operation on those files, and nothing stays behind.

mod support;

use base::random::Random;
use engine::{CacheOptions, Database, Options};
use latchwork_sql::host::{Interrupt, Kill};
use latchwork_sql::{Instance, Session};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use support::Lines;
use vfs::{Create, File, OsVfs, Vfs};

/// What happens at an operation on a scratch file.
#[derive(Clone, Debug, Default)]
enum Strike {
    #[default]
    Nothing,
    Full,
    Kill(Arc<Interrupt>),
}

/// Counts the operations on scratch files, and strikes at one of them.
#[derive(Debug, Default)]
struct Switch {
    operations: u64,
    at: u64,
    strike: Strike,
}

impl Switch {
    fn operation(&mut self, writes: bool) -> io::Result<()> {
        self.operations += 1;
        if self.operations >= self.at {
            match &self.strike {
                Strike::Full if writes => return Err(io::ErrorKind::StorageFull.into()),
                Strike::Kill(interrupt) if self.operations == self.at => interrupt.raise(Kill::Statement),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The operating system's files, with a switch at those without a name.
#[derive(Clone, Debug, Default)]
struct Switched(Arc<Mutex<Switch>>);

#[derive(Debug)]
struct SwitchedFile {
    inner: base::sync::Arc<dyn File>,
    switch: Arc<Mutex<Switch>>,
}

impl Vfs for Switched {
    fn open(&self, path: &Path, create: Create) -> io::Result<base::sync::Arc<dyn File>> {
        OsVfs.open(path, create)
    }
    fn open_unnamed(&self, dir: &Path) -> io::Result<base::sync::Arc<dyn File>> {
        self.0.lock().unwrap().operation(true)?;
        let inner = OsVfs.open_unnamed(dir)?;
        Ok(base::sync::Arc::new(SwitchedFile { inner, switch: self.0.clone() }))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        OsVfs.exists(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        OsVfs.remove(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsVfs.rename(from, to)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        OsVfs.list(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        OsVfs.create_dir_all(dir)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        OsVfs.remove_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        OsVfs.sync_dir(dir)
    }
}

impl File for SwitchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.switch.lock().unwrap().operation(false)?;
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.switch.lock().unwrap().operation(true)?;
        self.inner.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn try_lock_exclusive(&self) -> io::Result<()> {
        self.inner.try_lock_exclusive()
    }
}

struct World {
    session: Session,
    instance: Arc<Instance>,
    switch: Arc<Mutex<Switch>>,
    _folder: tempfile::TempDir,
}

const TINY: &str = "SET sort_buffer_size = 1024, tmp_memory_table_size = 0, join_buffer_size = 128";
const MEDIUM: &str = "SET sort_buffer_size = 8192, tmp_memory_table_size = 16384, join_buffer_size = 8192";
const LARGE: &str = "SET sort_buffer_size = 67108864, tmp_memory_table_size = 67108864, \
                     max_heap_table_size = 67108864, join_buffer_size = 67108864";

fn session(instance: &Arc<Instance>) -> Session {
    let mut session = Session::new(instance.clone(), 1, "root", "localhost");
    session.use_database("test").expect("the database");
    session
}

impl World {
    fn new(rows: u32) -> World {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let vfs = Switched::default();
        let switch = vfs.0.clone();
        let options = Options {
            cache: CacheOptions { size_bytes: 8 << 20, ..CacheOptions::default() },
            create: true,
            vfs: base::sync::Arc::new(vfs),
            ..Options::default()
        };
        let database = Database::open(&folder.path().join("data"), options).expect("a new database");
        database.create_database("test", &[]).expect("a database");
        let instance = Instance::new(database);
        let session = session(&instance);
        let mut world = World { session, instance, switch, _folder: folder };
        world.fill(rows);
        world
    }

    /// Another client in the same place.
    fn reconnect(&mut self) {
        self.session = session(&self.instance);
    }

    fn fill(&mut self, rows: u32) {
        let columns = "id INT NOT NULL PRIMARY KEY, g INT, h INT, c VARCHAR(40), d DECIMAL(20,3), f DOUBLE, \
                       t DATETIME(3), b VARBINARY(200), u BIGINT UNSIGNED, x TEXT, KEY g (g)";
        for table in ["a", "o"] {
            self.ok(&format!("CREATE TABLE {table} ({columns})"));
            let mut random = Random::new(if table == "a" { 7 } else { 8 }, 0);
            let mut values = Vec::new();
            for id in 0..rows {
                let mut below = |limit: u32| random.below(limit);
                let text = ["ash", "Ash", "birch", "beech ", "elm", "", "Äsche"][below(7) as usize];
                let row = format!(
                    "({id}, {}, {}, '{text}{}', {}.{:03}, {}e-1, '2026-01-{:02} 10:00:{:02}.{:03}', \
                     REPEAT('b', {}), {}, REPEAT('{text}-', {}))",
                    if below(9) == 0 { "NULL".to_string() } else { below(20).to_string() },
                    below(400),
                    below(90),
                    below(50),
                    below(4) * 100,
                    below(300),
                    below(28) + 1,
                    below(60),
                    below(3),
                    below(120),
                    u64::MAX - u64::from(below(30)),
                    below(30),
                );
                values.push(row);
            }
            for few in values.chunks(200) {
                self.ok(&format!("INSERT INTO {table} VALUES {}", few.join(", ")));
            }
        }
    }

    fn run(&mut self, sql: &str) -> Result<Vec<String>, latchwork_sql::SqlError> {
        let mut lines = Lines::default();
        self.session.query(sql.as_bytes(), &mut lines).map(|()| lines.lines)
    }

    fn ok(&mut self, sql: &str) -> Vec<String> {
        self.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    fn status(&mut self, name: &str) -> u64 {
        let lines = self.ok(&format!("SHOW STATUS LIKE '{name}'"));
        lines[1].rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }

    /// How many operations on scratch files the statement makes, and its result.
    fn counted(&mut self, sql: &str) -> (u64, Vec<String>) {
        self.switch.lock().unwrap().operations = 0;
        let lines = self.ok(sql);
        (self.switch.lock().unwrap().operations, lines)
    }
}

/// Statements of which each keeps rows in another way.
const PHASES: &[&str] = &[
    "SELECT id, x FROM a ORDER BY c, x DESC",
    "SELECT id FROM a ORDER BY x, h LIMIT 100, 300",
    "SELECT a.id, o.id, o.c FROM a JOIN o ON a.h = o.h + 0 WHERE a.id < 150",
    "SELECT a.id, d.x FROM a LEFT JOIN (SELECT h + 0 AS k, x, id FROM o) d ON a.h = d.k AND a.g = 3 \
     WHERE a.id < 100",
    "SELECT a.id, o.id, o.c, o.x FROM a LEFT JOIN o ON a.h = o.h + 0 AND o.g > 3",
    "SELECT COUNT(*), SUM(q.n), MIN(q.x) FROM (SELECT h, x, id AS n FROM o WHERE id >= 0) q",
    "SELECT h, COUNT(*), MAX(x) FROM a GROUP BY h",
    "SELECT COUNT(DISTINCT x), SUM(DISTINCT h) FROM a",
    "SELECT h, GROUP_CONCAT(x ORDER BY c), COUNT(DISTINCT f) FROM a GROUP BY h",
    "SELECT c, COUNT(DISTINCT x, b) FROM a GROUP BY c HAVING COUNT(*) > 1 ORDER BY 2",
    "SELECT DISTINCT h, c FROM a",
    "SELECT DISTINCT x, c FROM a ORDER BY b, f, x, c",
    "(SELECT h, g FROM a) UNION (SELECT h, u FROM o) UNION ALL (SELECT id, 7 FROM a WHERE id < 5)",
    "(SELECT c, id FROM a) UNION ALL (SELECT x, id FROM o) ORDER BY 1, 2",
    "SELECT id FROM a WHERE x IN (SELECT x FROM o WHERE id >= 0) AND (h, g) NOT IN (SELECT h, g FROM o)",
    "SELECT id, RANK() OVER (PARTITION BY g ORDER BY h), SUM(h) OVER (ORDER BY id ROWS 9 PRECEDING) FROM a",
    "SELECT id, MIN(x) OVER (ORDER BY c, id ROWS BETWEEN 300 PRECEDING AND 40 FOLLOWING), LEAD(x, g) OVER \
     (ORDER BY c, id), COUNT(*) OVER (ORDER BY h RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING) FROM a",
    "SELECT h, MAX(COUNT(*)) OVER (), MEDIAN(SUM(g)) OVER (PARTITION BY h % 3) FROM a GROUP BY h",
];

/// Statements that keep rows or keys before they change a table, and what they change.
const CHANGES: &[(&str, &str)] = &[
    ("INSERT INTO z SELECT id, g, h, c, d, f, t, b, u, x FROM a", "z"),
    ("INSERT INTO a SELECT id + 100000, g, h, c, d, f, t, b, u, x FROM a", "a"),
    ("REPLACE INTO o SELECT id + 5, g, h, c, d, f, t, b, u, x FROM a WHERE h > 20", "o"),
    ("REPLACE INTO a SELECT id, g + 1, h, c, d, f, t, b, u, x FROM a", "a"),
    ("INSERT IGNORE INTO o SELECT id + 300, g, h, c, d, f, t, b, u, x FROM a", "o"),
    (
        "INSERT INTO o SELECT id + 7, g, h, c, d, f, t, b, u, x FROM a ON DUPLICATE KEY UPDATE o.x = CONCAT(o.c, a.x)",
        "o",
    ),
    ("INSERT INTO n (x, h) SELECT x, h FROM a ORDER BY id", "n"),
    ("CREATE TABLE y (id INT PRIMARY KEY, w INT) AS SELECT id, x, b FROM a", "y"),
    ("UPDATE a SET g = g + 1, x = CONCAT(x, c) WHERE h >= 0", "a"),
    ("UPDATE a SET g = g + 1 WHERE g >= 0", "a"),
    ("UPDATE a SET id = id + 100000 WHERE id >= 0", "a"),
    ("UPDATE a SET c = id WHERE h > 10 ORDER BY x, id LIMIT 300", "a"),
    ("UPDATE a SET h = (SELECT COUNT(*) FROM o WHERE o.id < 5) + h WHERE x IN (SELECT x FROM o)", "a"),
    (
        "UPDATE a SET h = (SELECT MAX(s.h) FROM a s WHERE s.id < a.id AND s.id > a.id - 3), x = b WHERE h > 5",
        "a",
    ),
    ("DELETE FROM a WHERE h >= 3 ORDER BY x, id", "a"),
    ("DELETE FROM a WHERE g >= 0", "a"),
    ("DELETE FROM a WHERE EXISTS (SELECT 1 FROM a s WHERE s.id = a.id - 1)", "a"),
];

impl World {
    /// Tables to write to.
    fn targets(&mut self) {
        self.ok("CREATE TABLE IF NOT EXISTS z LIKE a");
        self.ok("CREATE TABLE IF NOT EXISTS n (id INT PRIMARY KEY AUTO_INCREMENT, x TEXT, h INT)");
    }

    /// Runs a change in a transaction of its own and returns what it says and what is in the table then.
    /// Afterwards nothing is changed.
    fn change(&mut self, sql: &str, table: &str) -> Result<Vec<String>, latchwork_sql::SqlError> {
        self.targets();
        self.ok("BEGIN");
        self.switch.lock().unwrap().operations = 0;
        let result = self.run(sql);
        let switch = std::mem::take(&mut *self.switch.lock().unwrap());
        let result = result.map(|mut lines| {
            lines.extend(self.ok(&format!("SELECT * FROM {table} ORDER BY id")));
            lines
        });
        self.ok("ROLLBACK");
        self.run("DROP TABLE IF EXISTS y").expect("no table");
        self.ok("DROP TABLE n");
        self.switch.lock().unwrap().operations = switch.operations;
        result
    }
}

#[test]
fn changes_are_the_same_with_tiny_buffers_and_with_large_ones() {
    let mut world = World::new(600);
    for (sql, table) in CHANGES {
        world.ok(LARGE);
        let expected = world.change(sql, table).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(expected.len() > 1, "{sql}");
        assert_eq!(world.switch.lock().unwrap().operations, 0, "{sql}");
        for few in [TINY, MEDIUM] {
            world.ok(few);
            let found = world.change(sql, table).unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert!(found == expected, "{sql}");
            assert!(few != TINY || world.switch.lock().unwrap().operations > 2, "{sql}: no file");
        }
        assert_eq!(world.status("Memory_used"), 0, "{sql}");
    }
}

#[test]
fn a_change_that_is_killed_or_finds_the_disk_full_changes_nothing() {
    let mut world = World::new(300);
    world.ok(TINY);
    for (sql, table) in CHANGES {
        let expected = world.change(sql, table).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let operations = world.switch.lock().unwrap().operations;
        world.targets();
        let before =
            if *table == "y" { vec![] } else { world.ok(&format!("SELECT * FROM {table} ORDER BY id")) };
        for nth in 0..60 {
            let at = 1 + nth * operations / 60;
            let interrupt = world.session.interrupt().clone();
            let (strike, code) =
                if nth % 2 == 0 { (Strike::Full, 1021) } else { (Strike::Kill(interrupt), 1317) };
            *world.switch.lock().unwrap() = Switch { operations: 0, at, strike };
            world.ok("BEGIN");
            let result = world.run(sql);
            *world.switch.lock().unwrap() = Switch::default();
            match result {
                Err(error) => {
                    assert_eq!(error.code(), code, "{sql}: {error}");
                    if *table == "y" {
                        assert_eq!(world.run("SELECT * FROM y").unwrap_err().code(), 1146);
                    } else {
                        assert!(world.ok(&format!("SELECT * FROM {table} ORDER BY id")) == before, "{sql}");
                    }
                }
                Ok(lines) => assert_eq!(lines[0], expected[0], "{sql}: only reads were left"),
            }
            world.ok("ROLLBACK");
            world.ok("DROP TABLE IF EXISTS y");
            assert_eq!(world.status("Memory_used"), 0, "{sql}");
        }
    }
}

#[test]
fn a_change_holds_about_its_buffers_however_many_rows_there_are() {
    let mut world = World::new(12_000);
    const BUFFER: u64 = 64 << 10;
    for (sql, _) in CHANGES {
        world.reconnect();
        world.ok(&format!(
            "SET sort_buffer_size = {BUFFER}, tmp_memory_table_size = {BUFFER}, join_buffer_size = {BUFFER}"
        ));
        world.targets();
        world.ok("BEGIN");
        let before = world.status("Max_memory_used");
        world.ok(sql);
        let peak = world.status("Max_memory_used");
        world.ok("ROLLBACK");
        world.ok("DROP TABLE IF EXISTS y");
        assert!(before < 4 * BUFFER, "{sql}: {before}");
        // A batch of rows to be written has 4 MiB. The other buffers grow by doubling.
        let batch = if sql.contains("INTO") { 5 << 20 } else { 0 };
        let tried = if sql.contains("LIMIT") { BUFFER } else { 0 };
        assert!(peak <= batch + tried + 4 * BUFFER, "{sql}: {peak}");
        assert_eq!(world.status("Memory_used"), 0, "{sql}");
    }
}

#[test]
fn a_killed_statement_ends_at_any_operation_on_its_files() {
    let mut world = World::new(600);
    world.ok(TINY);
    for sql in PHASES {
        let (operations, expected) = world.counted(sql);
        assert!(operations > 2, "{sql}: {operations}");
        for at in (1..operations).step_by(1 + operations as usize / 50) {
            let interrupt = world.session.interrupt().clone();
            *world.switch.lock().unwrap() = Switch { operations: 0, at, strike: Strike::Kill(interrupt) };
            match world.run(sql) {
                Err(error) => assert_eq!(error.code(), 1317, "{sql}: {error}"),
                // The statement was done but for its last rows. How many operations it takes depends on its
                // hashes, which are others each time.
                Ok(lines) => {
                    let made = world.switch.lock().unwrap().operations;
                    assert!(lines == expected && at + 20 > made, "{sql}: {at}, {made}");
                }
            }
            assert_eq!(world.status("Memory_used"), 0, "{sql}");
        }
        *world.switch.lock().unwrap() = Switch::default();
        assert_eq!(world.ok(sql), expected);
    }
}

#[test]
fn a_full_disk_is_reported_at_any_write_and_the_next_statement_works() {
    let mut world = World::new(600);
    world.ok(TINY);
    for sql in PHASES {
        let (operations, expected) = world.counted(sql);
        let mut failed = 0;
        for at in (1..=operations).step_by(1 + operations as usize / 50) {
            *world.switch.lock().unwrap() = Switch { operations: 0, at, strike: Strike::Full };
            match world.run(sql) {
                Err(error) => {
                    assert_eq!(error.code(), 1021, "{sql}: {error}");
                    failed += 1;
                }
                Ok(lines) => assert_eq!(lines, expected, "{sql}: only reads were left"),
            }
            *world.switch.lock().unwrap() = Switch::default();
            assert_eq!(world.status("Memory_used"), 0, "{sql}");
        }
        assert!(failed > 1, "{sql}");
        assert_eq!(world.ok(sql), expected);
    }
}

/// A statement, drawn.
fn statement(random: &mut Random) -> String {
    fn pick<'p>(random: &mut Random, from: &[&'p str]) -> &'p str {
        from[random.index(from.len())]
    }
    let columns = ["g", "h", "c", "d", "f", "t", "b", "u", "x", "g, h", "c, f", "g, c", "h DIV 7", "x, id"];
    let wheres = ["", "", " WHERE h > 100", " WHERE g IS NULL OR c LIKE 'b%'", " WHERE f < 20 AND u > 5"];
    let directions = ["", " DESC"];
    let limits = ["", "", "", " LIMIT 40", " LIMIT 10, 200", " LIMIT 3"];
    let list = pick(random, &columns);
    let condition = pick(random, &wheres);
    let first = list.split(", ").next().unwrap_or(list);
    let order = match random.below(3) {
        0 => String::new(),
        1 => format!(" ORDER BY {first}{}", pick(random, &directions)),
        _ => format!(" ORDER BY 1{}", pick(random, &directions)),
    };
    let limit = pick(random, &limits);
    let table = pick(random, &["a", "o"]);
    match random.below(DRAWN) {
        0 => format!("SELECT {list}, id FROM {table}{condition}{order}{limit}"),
        1 => {
            let order = pick(random, &["c", "x, h", "f DESC, b", "d + 1", "u, t DESC", "b"]);
            format!("SELECT {list} FROM {table}{condition} ORDER BY {order}{limit}")
        }
        2 => format!("(SELECT {list} FROM a) UNION ALL (SELECT {list} FROM o{condition}) ORDER BY 1{limit}"),
        7 => format!("SELECT DISTINCT {list} FROM {table}{condition}{order}{limit}"),
        8 => {
            let order = pick(random, &["c", "x, h", "f DESC, b", "d + 1", "u, t DESC", "b"]);
            format!("SELECT DISTINCT {list} FROM {table}{condition} ORDER BY {order}{limit}")
        }
        9 => format!(
            "SELECT DISTINCT SQL_CALC_FOUND_ROWS a.g, o.c FROM a JOIN o ON a.h = o.h + 0 WHERE a.id < 200{limit}"
        ),
        10 => format!(
            "(SELECT {first}, x FROM a{condition}) UNION (SELECT c, x FROM o) UNION {} (SELECT {first}, id FROM a)\
             {}{limit}",
            pick(random, &["", "ALL"]),
            pick(random, &["", "", " ORDER BY 1, 2"]),
        ),
        11..15 => {
            let aggregates = [
                "COUNT(*)",
                "COUNT(DISTINCT x)",
                "COUNT(DISTINCT c, b), MAX(x)",
                "SUM(DISTINCT d), AVG(DISTINCT h), COUNT(x)",
                "SUM(f), STD(h), BIT_XOR(u)",
                "SUM(DISTINCT f / 7), AVG(DISTINCT SQRT(h)), COUNT(DISTINCT f)",
                "STD(DISTINCT d), BIT_XOR(DISTINCT u)",
                "GROUP_CONCAT(x)",
                "GROUP_CONCAT(DISTINCT c SEPARATOR '--'), COUNT(DISTINCT h)",
                "GROUP_CONCAT(c ORDER BY x DESC, id), MIN(DISTINCT b)",
                "x, MIN(t), COUNT(DISTINCT t)",
            ];
            let (aggregates, more) =
                (pick(random, &aggregates), pick(random, &["", "", ", MAX(DISTINCT x)"]));
            let order = pick(random, &["", "", " ORDER BY 2, 1", " ORDER BY COUNT(*) DESC, 1"]);
            let having = pick(random, &["", "", " HAVING COUNT(*) > 2", " HAVING MIN(h) < 200"]);
            match random.below(5) {
                0 => format!("SELECT {aggregates}{more} FROM {table}{condition}{having}"),
                1 => format!(
                    "SELECT DISTINCT {aggregates} FROM {table}{condition} GROUP BY {list}{having}{limit}"
                ),
                2 => format!(
                    "SELECT g, {aggregates}{more} FROM (SELECT * FROM {table}{condition}) q GROUP BY {list}{order}{limit}"
                ),
                _ => format!(
                    "SELECT {first}, {aggregates}{more} FROM {table}{condition} GROUP BY {list}{having}{order}{limit}"
                ),
            }
        }
        17 => {
            let join = pick(
                random,
                &[
                    "a JOIN o ON a.h = o.h + 0",
                    "a LEFT JOIN o ON a.h = o.h + 0",
                    "a LEFT JOIN o ON a.g = o.h + 0 AND o.id < 40",
                    "a LEFT JOIN o ON a.g = o.g + 15 AND a.h > o.h",
                    "a JOIN o ON a.x = o.x AND a.id < 60",
                    "a LEFT JOIN (SELECT h + 0 AS h, g, id, x FROM o) o ON a.h = o.h",
                    "(SELECT g, id, h, c, x FROM a WHERE h < 50) a LEFT JOIN o ON a.h = o.h + 0 JOIN a s ON s.h = o.h + 1",
                    "a LEFT JOIN o ON a.h = o.h + 0 LEFT JOIN o s ON s.h + 0 = o.h AND s.g = 3",
                    "a LEFT JOIN (o JOIN a s ON s.h = o.h + 3) ON a.h = o.h + 0",
                    "a LEFT JOIN (o LEFT JOIN a s ON s.h + 0 = o.h) ON a.h = o.h + 0 AND s.g = 2",
                    "a LEFT JOIN o ON a.h = o.h + 0 AND o.g = 700",
                ],
            );
            let more = pick(random, &["", " AND o.id IS NULL", " AND (o.g > 4 OR o.g IS NULL)"]);
            format!("SELECT a.id, a.c, o.id, o.x FROM {join} WHERE a.id < 150{more}{limit}")
        }
        15 => format!(
            "SELECT a.c, COUNT(DISTINCT o.x), SUM(o.f), GROUP_CONCAT(o.id) FROM a LEFT JOIN o ON a.h = o.h + 0 \
             GROUP BY a.{}{limit}",
            pick(random, &["g", "c", "h", "x"])
        ),
        16 => {
            let test = pick(
                random,
                &[
                    "h IN (SELECT h + 1 FROM o WHERE g > 3)",
                    "h NOT IN (SELECT h FROM o WHERE id > 100)",
                    "g NOT IN (SELECT g FROM o WHERE id < 3)",
                    "g IN (SELECT g FROM o WHERE h < 3)",
                    "id IN (SELECT h FROM o WHERE g = 4)",
                    "x IN (SELECT x FROM o WHERE h > 50)",
                    "d IN (SELECT d FROM o)",
                    "d IN (SELECT id FROM o)",
                    "c IN (SELECT CASE WHEN id % 2 THEN c ELSE 'elm3' END FROM o)",
                    "(h, g) IN (SELECT h, g FROM o)",
                    "(g, c) NOT IN (SELECT g, c FROM o WHERE h < 90)",
                    "(x, t) IN (SELECT x, t FROM a WHERE h > 30)",
                    "h > ALL (SELECT h FROM o WHERE h < 90 AND id < 40)",
                    "f <= ANY (SELECT f + 1 FROM o WHERE id < 9)",
                    "u = ANY (SELECT u FROM o WHERE h < 100)",
                    "h IN (SELECT h FROM o WHERE g IN (SELECT g FROM a WHERE id < 30))",
                    "EXISTS (SELECT 1 FROM o WHERE o.id = a.id AND o.h IN (SELECT h FROM a))",
                ],
            );
            format!(
                "SELECT {list}, id FROM a WHERE {test} ORDER BY {}{limit}",
                pick(random, &["id", "g, id", "g DESC, id DESC"])
            )
        }
        _ => {
            format!("SELECT SQL_CALC_FOUND_ROWS {list}, x FROM {table}{condition} ORDER BY h, c DESC{limit}")
        }
    }
}

const DRAWN: u32 = 19;

#[test]
fn drawn_statements_give_the_same_with_tiny_buffers_and_with_large_ones() {
    let mut world = World::new(500);
    let mut random = Random::new(26, 0);
    let mut spilled = 0;
    for _ in 0..500 {
        let sql = statement(&mut random);
        world.ok(LARGE);
        let (operations, expected) = world.counted(&sql);
        assert_eq!(operations, 0, "{sql}");
        world.ok(if random.below(3) == 0 { MEDIUM } else { TINY });
        let (operations, found) = world.counted(&sql);
        assert_eq!(found, expected, "{sql}");
        spilled += u64::from(operations > 0);
    }
    assert!(spilled > 280, "{spilled} statements used a file");
    assert!(world.status("Sort_merge_passes") > 0);
    assert_eq!(world.status("Memory_used"), 0);
}

#[test]
fn a_partition_that_does_not_fit_is_split_and_one_key_of_many_rows_is_sorted() {
    let mut world = World::new(1_500);
    let spread = "a.id + 0 = o.id * 2";
    let one_key = "IF(a.id % 7 = 0 OR a.id > 20, a.id, -1) = IF(o.id % 3 = 0, o.id, -1)";
    for (condition, is_sorted) in [(spread, false), (one_key, true)] {
        for join in ["JOIN", "LEFT JOIN"] {
            let sql = format!("SELECT a.id, a.x, o.id, o.x FROM a {join} o ON {condition}");
            world.ok(LARGE);
            let expected = world.ok(&sql);
            for buffer in [128, 2_048, 20_000] {
                world.ok("SET sort_buffer_size = 1024, tmp_memory_table_size = 0");
                world.ok(&format!("SET join_buffer_size = {buffer}"));
                let before = world.status("Sort_merge_passes");
                let (operations, found) = world.counted(&sql);
                assert!(found == expected, "{buffer}: {sql}");
                assert!(operations > 0, "{buffer}: {sql}");
                let passes = world.status("Sort_merge_passes") - before;
                assert_eq!(passes > 0, is_sorted, "{buffer}: {sql}: {passes} passes");
                assert_eq!(world.status("Memory_used"), 0, "{buffer}: {sql}");
            }
        }
    }
}

#[test]
fn a_sort_of_few_wanted_rows_keeps_them_in_memory() {
    let mut world = World::new(2000);
    let sql = "SELECT id, x FROM a ORDER BY h DESC, id LIMIT 5";
    let expected = world.ok(sql);
    world.ok("SET sort_buffer_size = 4096");
    assert_eq!(world.counted(sql), (0, expected));
}

#[test]
fn a_session_holds_no_more_than_it_may() {
    let mut world = World::new(2000);
    world.ok(LARGE);
    world.ok("SET max_session_mem_used = 65536");
    let error = world.run("SELECT * FROM a ORDER BY x").unwrap_err();
    assert_eq!(
        error.to_string(),
        "ERROR 1290 (HY000): The Latchwork server is running with the --max-session-mem-used=65536 option so \
         it cannot execute this statement"
    );
    for sql in [
        "SELECT * FROM a WHERE x IN (SELECT CONCAT(x, b) FROM o)",
        "SELECT COUNT(*) FROM (SELECT id, x, b FROM a WHERE id >= 0) q",
        "SELECT COUNT(*) FROM a JOIN o ON a.x = o.x",
        "CREATE TABLE n AS SELECT id, x FROM a",
        "INSERT INTO o SELECT id + 5000, g, h, c, d, f, t, b, u, x FROM a",
    ] {
        let error = world.run(sql).expect_err(sql);
        assert_eq!(error.code(), 1290, "{sql}: {error}");
    }
    assert_eq!(world.status("Memory_used"), 0);
    assert_eq!(world.ok("SELECT COUNT(*) FROM a")[1], "2000");
    world.ok("SET max_session_mem_used = DEFAULT");
    assert_eq!(world.ok("SELECT * FROM a ORDER BY x").len(), 2001);
}

/// 1,280 digits that do not repeat.
fn digits() -> String {
    let mut random = Random::new(9, 0);
    (0..1_280).map(|_| char::from(b"0123456789abcdef"[random.below(16) as usize])).collect()
}

/// Each of these searches would take hours.
#[test]
fn a_kill_ends_one_long_search() {
    let mut world = World::new(1);
    let text = "REPEAT('a', 8000000)";
    let part = "CONCAT(REPEAT('a', 4000000), 'b')";
    for search in [
        format!("{text} LIKE CONCAT('%', {part}, '%')"),
        format!("{text} LIKE CONCAT('_%', REPEAT('_', 4000000), 'b')"),
        format!("LOCATE({part}, {text})"),
        format!("LOCATE({part}, {text}, 17)"),
        format!("INSTR(CAST({text} AS BINARY), {part})"),
        format!("LENGTH(REPLACE({text}, {part}, 'x'))"),
        format!("LENGTH(SUBSTRING_INDEX({text}, {part}, 2))"),
        format!("LENGTH(SUBSTRING_INDEX({text}, {part}, -2))"),
        // Not deeper: a test's thread has 2 MiB of stack, a fourth of a connection's.
        format!("LENGTH({}{text}{})", "REVERSE(".repeat(15), ")".repeat(15)),
        format!("REPEAT('{}', 13000) REGEXP '[0-7][0-9a-f]{{1000}}x'", digits()),
        format!("REPEAT('{}', 13000) NOT RLIKE '([0-7]?[0-9a-f]?){{1000}}x'", digits()),
    ] {
        let interrupt = world.session.interrupt().clone();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        let result = std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    interrupt.raise(Kill::Statement);
                }
            });
            let result = world.run(&format!("SELECT {search}"));
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            result
        });
        assert_eq!(result.expect_err(&search).code(), 1317, "{search}");
    }
}

#[test]
fn values_variables_and_prepared_statements_count() {
    let mut world = World::new(1);
    world.ok("SET max_session_mem_used = 4000000");
    let refused = |world: &mut World, sql: &str| {
        let error = world.run(sql).expect_err(sql);
        assert_eq!(error.code(), 1290, "{sql}: {error}");
    };
    let mega = "REPEAT('a', 1000000)";
    refused(&mut world, &format!("SELECT {}", [mega; 40].join(", ")));
    refused(&mut world, &format!("SELECT LENGTH({mega}){}", format!(" + LENGTH({mega})").repeat(40)));
    assert_eq!(world.status("Memory_used"), 0);

    world.ok(&format!("SET @a = {mega}"));
    let one = world.status("Memory_used");
    assert!((900_000..1_100_000).contains(&one), "{one}");
    world.ok(&format!("SET @a = {mega}, @A = {mega}"));
    assert_eq!(world.status("Memory_used"), one, "a new value replaces the old one");
    world.ok("SET @b = @a");
    refused(&mut world, "SELECT @a, @a, @b, @b, @a");
    refused(&mut world, "SELECT @c := @a, @d := @a");
    world.ok("SET @a = NULL, @c = NULL, @d = NULL");
    assert_eq!(world.ok("SELECT LENGTH(@b)")[1], "1000000");
    world.ok("SET @b = ''");
    assert_eq!(world.status("Memory_used"), 0);

    let long = format!("SELECT '{}'", "x".repeat(100_000));
    let prepared: Vec<u32> = (0..100)
        .map_while(|_| world.session.prepare(long.as_bytes()).ok().map(|prepared| prepared.id))
        .collect();
    assert!((5..30).contains(&prepared.len()), "{}", prepared.len());
    assert_eq!(world.session.prepare(long.as_bytes()).unwrap_err().code(), 1290);
    prepared.into_iter().for_each(|id| world.session.close_statement(id));
    assert_eq!(world.status("Memory_used"), 0);
}

/// The values are MariaDB's.
#[test]
fn group_concat_keeps_no_more_than_it_may_show() {
    let mut world = World::new(2000);
    world.ok("CREATE TABLE e (id INT PRIMARY KEY, c VARCHAR(30))");
    world.ok("INSERT INTO e VALUES (1, 'aä'), (2, 'öü'), (3, 'xyz'), (4, NULL), (5, '')");
    for (max, list, expected, row) in [
        (4, "c", "aä,", 2),
        (4, "c ORDER BY id", "aä,", 2),
        (4, "c ORDER BY c DESC SEPARATOR ''", "xyz", 2),
        (6, "c", "aä,ö", 2),
        (6, "DISTINCT c ORDER BY id DESC", ",xyz,", 3),
    ] {
        world.ok(&format!("SET group_concat_max_len = {max}"));
        let sql = format!("SELECT GROUP_CONCAT({list}) FROM e");
        let lines = world.ok(&sql);
        assert_eq!(lines[1..], [expected, "1 warnings"], "{sql}");
        let warning = format!("Warning | 1260 | Row {row} was cut by GROUP_CONCAT()");
        assert_eq!(world.ok("SHOW WARNINGS")[1], warning, "{sql}");
    }
    // All texts together would not fit into what the session may hold.
    world.ok(LARGE);
    world.ok("SET max_session_mem_used = 65536, group_concat_max_len = 1024");
    for sql in [
        "SELECT LENGTH(GROUP_CONCAT(x)) FROM a",
        "SELECT LENGTH(GROUP_CONCAT(x, c ORDER BY b, id)) FROM a",
        "SELECT LENGTH(GROUP_CONCAT(x, c ORDER BY id DESC)) FROM a",
    ] {
        assert_eq!(world.ok(sql)[1..], ["1024", "1 warnings"], "{sql}");
    }
    world.ok("SET group_concat_max_len = 1000000");
    let whole = world.run("SELECT GROUP_CONCAT(x, c ORDER BY id DESC) FROM a").unwrap_err();
    assert_eq!(whole.code(), 1290);
}

#[test]
fn a_statement_holds_about_its_buffers_however_many_rows_there_are() {
    let mut world = World::new(6_000);
    const BUFFER: u64 = 128 << 10;
    let mut spilled = 0;
    for sql in PHASES {
        world.reconnect();
        world.ok(LARGE);
        let expected = world.ok(sql);
        world.reconnect();
        world.ok(&format!(
            "SET sort_buffer_size = {BUFFER}, tmp_memory_table_size = {BUFFER}, join_buffer_size = {BUFFER}"
        ));
        let (operations, found) = world.counted(sql);
        assert_eq!(found, expected, "{sql}");
        spilled += u64::from(operations > 0);
        let peak = world.status("Max_memory_used");
        // A buffer that grows by doubling, and the one that it took over from.
        assert!(peak <= 4 * BUFFER, "{sql}: {peak}");
        assert_eq!(world.status("Memory_used"), 0, "{sql}");
    }
    assert!(spilled > 6, "{spilled}");
}

#[test]
fn the_keys_of_rows_that_are_locked_count_and_go_to_files() {
    let mut world = World::new(6_000);
    for (order, keeps_keys) in [("", true), (" ORDER BY g", false)] {
        let sql = format!("SELECT id, g FROM a FORCE INDEX (g) WHERE g >= 0{order} FOR UPDATE");
        world.ok(LARGE);
        let expected = world.ok(&sql);
        assert!(expected.len() > 5_000);
        world.ok("SET max_session_mem_used = 65536");
        match keeps_keys {
            true => assert_eq!(world.run(&sql).err().map(|error| error.code()), Some(1290), "{sql}"),
            false => assert!(world.ok(&sql) == expected, "{sql}"),
        }
        world.ok("SET max_session_mem_used = DEFAULT");
        for few in [TINY, MEDIUM] {
            world.ok(few);
            let (operations, found) = world.counted(&sql);
            assert!(found == expected, "{sql}");
            assert_eq!(operations > 0, keeps_keys, "{sql}");
        }
        assert_eq!(world.status("Memory_used"), 0, "{sql}");
    }
}

/// The row is found by the entry that it has and by the one that it will have.
#[test]
fn a_row_that_moves_while_its_lock_is_waited_for_comes_once() {
    for order in ["", " ORDER BY g"] {
        let mut world = World::new(300);
        world.ok(TINY);
        world.ok("UPDATE a SET g = 5 WHERE g IS NULL");
        let mut other = session(&world.instance);
        let mut lines = Lines::default();
        for sql in ["BEGIN", "UPDATE a SET g = g + 7 WHERE id IN (3, 200)"] {
            other.query(sql.as_bytes(), &mut lines).expect(sql);
        }
        let mut found = std::thread::scope(|threads| {
            let sql = format!("SELECT id FROM a FORCE INDEX (g) WHERE g >= 0{order} FOR UPDATE");
            let world = &mut world;
            let reading = threads.spawn(move || world.ok(&sql));
            std::thread::sleep(std::time::Duration::from_millis(300));
            other.query(b"COMMIT", &mut lines).expect("a commit");
            reading.join().expect("rows")
        });
        found.remove(0);
        found.sort_by_key(|id| id.parse::<u32>().expect("a number"));
        assert_eq!(found, (0..300).map(|id| id.to_string()).collect::<Vec<_>>(), "{order}");
    }
}

#[test]
fn the_keys_of_rows_to_be_changed_count() {
    let mut world = World::new(25_000);
    world.ok("SET max_session_mem_used = 65536");
    for sql in ["UPDATE a SET g = g + 1 WHERE h >= 0", "DELETE FROM a WHERE h >= 0 ORDER BY x"] {
        assert_eq!(world.run(sql).expect_err(sql).code(), 1290, "{sql}");
    }
    world.ok("SET max_session_mem_used = DEFAULT");
    assert_eq!(world.ok("SELECT COUNT(*) FROM a")[1], "25000");
    assert_eq!(world.ok("DELETE FROM a WHERE h >= 0 ORDER BY x")[0], "ok, 25000 rows");
}

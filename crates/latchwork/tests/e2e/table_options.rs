//! Page sizes, packed keys and compression, table by table in one server.

use crate::support::latchwork::run;
use crate::support::{Latchwork, have, text};
use std::fmt::Write;

/// The number of pages of a table's indexes. It is the number that LOAD INDEX reads into a cache of its own.
fn pages(server: &Latchwork, table: &str) -> u64 {
    let count = "SELECT read_requests FROM information_schema.key_caches WHERE key_cache_name = 'counting' \
                 AND segment_number IS NULL";
    server.sql(&format!("SET GLOBAL counting.key_buffer_size = 33554432; CACHE INDEX {table} IN counting"));
    let read = || server.sql(count).trim().parse::<u64>().unwrap();
    // The engine's own work may read a page meanwhile.
    let once = || {
        let before = read();
        server.sql(&format!("LOAD INDEX INTO CACHE {table}"));
        read() - before
    };
    let pages = (0..3).map(|_| once()).min().unwrap();
    server.sql(&format!("CACHE INDEX {table} IN DEFAULT"));
    pages
}

fn fill(server: &Latchwork, table: &str) {
    let mut values = String::new();
    for n in 0..3000 {
        let _ = write!(values, "({n}, 'a long beginning that all have, {n:08}'),");
    }
    values.pop();
    server.sql(&format!("INSERT INTO {table} VALUES {values}"));
}

#[test]
fn tables_of_all_page_sizes_live_side_by_side_and_survive_a_restart() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &["--innodb-page-size=4K"]);
    // A key of 60 characters of several bytes would be too long for pages of 1 KiB.
    let columns = "(id INT PRIMARY KEY, v VARCHAR(60) CHARACTER SET latin1, KEY (v))";
    server.sql("CREATE DATABASE d");
    let sizes: Vec<u64> = (0..7).map(|shift| 1024 << shift).collect();
    for size in &sizes {
        server.sql(&format!("CREATE TABLE d.t{size} {columns} PAGE_SIZE={size}"));
        fill(&server, &format!("d.t{size}"));
        let shown = server.sql(&format!("SHOW CREATE TABLE d.t{size}"));
        assert!(shown.contains(&format!("`PAGE_SIZE`='{size}'")), "{shown}");
    }
    server.sql(&format!("CREATE TABLE d.plain {columns}; CREATE TABLE d.small LIKE d.t1024"));
    fill(&server, "d.plain");
    fill(&server, "d.small");
    let counts: Vec<u64> = sizes.iter().map(|size| pages(&server, &format!("d.t{size}"))).collect();
    assert!(counts.is_sorted_by(|small, large| *small > large * 3 / 2), "{counts:?}");
    assert_eq!(pages(&server, "d.plain"), counts[2], "the server's default are 4 KiB");
    assert_eq!(pages(&server, "d.small"), counts[0]);
    assert!(server.stop().success());

    // A new default holds for new tables only.
    let server = Latchwork::start(scratch.path(), &["--innodb-page-size=16K"]);
    server.sql(&format!("CREATE TABLE d.later {columns}"));
    fill(&server, "d.later");
    assert_eq!(server.sql("SELECT @@innodb_page_size"), "16384\n");
    assert_eq!(pages(&server, "d.later"), counts[4]);
    assert_eq!(pages(&server, "d.plain"), counts[2]);
    for size in &sizes {
        let rows = server
            .sql(&format!("SELECT COUNT(*), SUM(id) FROM d.t{size} WHERE v > 'a'; CHECK TABLE d.t{size}"));
        assert_eq!(rows, format!("3000\t4498500\nd.t{size}\tcheck\tstatus\tOK\n"));
    }
    // ALTER TABLE of something else keeps the page size. A change of the page size writes the table anew.
    server.sql("ALTER TABLE d.plain COMMENT = 'no matter'; ALTER TABLE d.t65536 PAGE_SIZE=1K");
    assert_eq!(pages(&server, "d.plain"), counts[2]);
    assert_eq!(pages(&server, "d.t65536"), counts[0]);
    server.sql("ALTER TABLE d.t65536 PAGE_SIZE=DEFAULT");
    assert_eq!(pages(&server, "d.t65536"), counts[4]);
    assert!(server.stop().success());
    let data = scratch.path().join("data");
    let verdict = run(&["check", data.to_str().unwrap()]);
    assert_eq!(verdict.status.code(), Some(0), "{}{}", text(&verdict.stdout), text(&verdict.stderr));

    let refused = run(&["serve", "--datadir", data.to_str().unwrap(), "--innodb-page-size=5000"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--innodb_page_size=5000"), "{}", text(&refused.stderr));
}

#[test]
fn pack_keys_and_compression_are_the_tables_own() {
    if !have(&["mariadb"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    server.sql("CREATE DATABASE d");
    let columns = "(id INT PRIMARY KEY, v VARCHAR(60), KEY (v))";
    for (table, option) in [
        ("packed", "PACK_KEYS=1"),
        ("whole", "PACK_KEYS=0"),
        ("compressed", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4"),
        ("transparent", "PAGE_COMPRESSED=1"),
    ] {
        server.sql(&format!("CREATE TABLE d.{table} {columns} {option}"));
        fill(&server, &format!("d.{table}"));
    }
    let (packed, whole) = (pages(&server, "d.packed"), pages(&server, "d.whole"));
    assert!(packed < whole, "{packed} pages packed, {whole} not");
    server.sql("ALTER TABLE d.whole PACK_KEYS=DEFAULT; ALTER TABLE d.packed PACK_KEYS=0");
    assert_eq!((pages(&server, "d.whole"), pages(&server, "d.packed")), (packed, whole));
    assert!(server.stop().success());

    let server = Latchwork::start(scratch.path(), &[]);
    let shown = "SELECT table_name, row_format, create_options FROM information_schema.tables WHERE table_schema = 'd' \
                 ORDER BY table_name";
    assert_eq!(
        server.sql(shown),
        "compressed\tCompressed\trow_format=COMPRESSED key_block_size=4\n\
         packed\tDynamic\tpack_keys=0\n\
         transparent\tDynamic\t`PAGE_COMPRESSED`='1'\n\
         whole\tDynamic\t\n"
    );
    for table in ["compressed", "transparent", "packed", "whole"] {
        let rows = server
            .sql(&format!("SELECT COUNT(*), SUM(id) FROM d.{table} WHERE v > 'a'; CHECK TABLE d.{table}"));
        assert_eq!(rows, format!("3000\t4498500\nd.{table}\tcheck\tstatus\tOK\n"));
    }
    assert!(server.stop().success());
}

//! The allocators: which one a server uses, and that it works with each.

use crate::support::latchwork::run;
use crate::support::{Latchwork, have, text, wait_until};
use std::path::Path;

/// A name that `--malloc-lib` knows, and the library's file.
const LIBRARIES: [(&str, &str); 3] =
    [("mimalloc", "libmimalloc.so"), ("jemalloc", "libjemalloc.so"), ("tcmalloc", "libtcmalloc_minimal.so")];

fn maps(server: &Latchwork) -> String {
    std::fs::read_to_string(format!("/proc/{}/maps", server.pid())).unwrap()
}

/// True if the library is there. Fails if the run requires it.
fn is_installed(file: &str) -> bool {
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let there = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with(file));
    assert!(there || std::env::var_os("LATCHWORK_REQUIRE_CLIENTS").is_none(), "{file} is not installed");
    if !there {
        eprintln!("skipped: {file} is not installed; ./test.sh installs it");
    }
    there
}

fn refusal(option: &str) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let output = run(&["serve", "--datadir", data.to_str().unwrap(), "--skip-networking", option]);
    assert!(!output.status.success() && !data.exists());
    text(&output.stderr)
}

#[test]
fn a_server_runs_on_each_allocator_that_is_installed() {
    if !have(&["mariadb"]) {
        return;
    }
    for (name, file) in LIBRARIES.into_iter().filter(|(_, file)| is_installed(file)) {
        let scratch = tempfile::tempdir().unwrap();
        let server = Latchwork::start(scratch.path(), &[&format!("--malloc-lib={name}")]);
        assert!(maps(&server).contains(file), "{name}");
        let variables = server.sql("SELECT @@malloc_lib, @@version_malloc_library, @@use_sys_malloc");
        assert!(
            variables.starts_with(&format!("{name}\t{file}")) && variables.ends_with("\t1\n"),
            "{variables}"
        );
        work(&server);
        assert_eq!(server.stop().code(), Some(0), "{name}");
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    let loaded = maps(&server);
    assert!(LIBRARIES.iter().all(|(_, file)| !loaded.contains(file)));
    assert_eq!(server.sql("SELECT @@malloc_lib, @@version_malloc_library"), "system\tsystem\n");
}

#[test]
fn a_library_that_is_missing_or_none_is_refused_with_what_to_do() {
    assert!(refusal("--malloc-lib=/no/such/library.so").contains("No such file"));
    let unknown = refusal("--malloc-lib=best");
    assert!(unknown.contains("expected system, mimalloc, jemalloc, tcmalloc or a path"), "{unknown}");
    let scratch = tempfile::NamedTempFile::new().unwrap();
    let path = scratch.path().to_str().unwrap();
    let refused = refusal(&format!("--malloc-lib={path}"));
    assert!(refused.contains("the system's loader did not take it"), "{refused}");
}

#[test]
fn the_shared_heap_holds_what_a_server_of_many_threads_allocates() {
    if !have(&["mariadb"]) {
        return;
    }
    let heap_of = |options: &[&str]| {
        let scratch = tempfile::tempdir().unwrap();
        let server = Latchwork::start(scratch.path(), options);
        work(&server);
        let status = |name: &str| -> u64 {
            let row = server.sql(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
            row.trim().rsplit('\t').next().unwrap().parse().unwrap()
        };
        let figures = (status("Memory_heap_used"), status("Memory_heap_mapped"));
        assert!(status("Memory_resident") > figures.0);
        assert_eq!(server.sql("SELECT @@innodb_use_sys_malloc = (@@use_sys_malloc = 1)"), "1\n");
        assert_eq!(server.stop().code(), Some(0));
        verify(&scratch.path().join("data"));
        figures
    };
    assert_eq!(heap_of(&[]), (0, 0));
    let (used, mapped) = heap_of(&["--use-sys-malloc=OFF"]);
    assert!(used > 0 && used <= mapped, "{used} of {mapped} bytes");
    if is_installed("libjemalloc.so") {
        let (used, _) = heap_of(&["--innodb_use_sys_malloc=0", "--malloc-lib=jemalloc"]);
        assert!(used > 0);
    }
}

/// Eight clients at once, which insert and delete rows of many sizes.
fn work(server: &Latchwork) {
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, k INT, body TEXT, KEY (k))",
    );
    std::thread::scope(|scope| {
        for client in 0..8 {
            scope.spawn(move || {
                let mut script = String::new();
                for round in 0..30 {
                    let k = client * 100 + round;
                    script += &format!(
                        "INSERT INTO d.t (k, body) VALUES ({k}, REPEAT('x', {})), ({k}, 'short'), ({k}, NULL);
                         SELECT COUNT(*), GROUP_CONCAT(body) FROM d.t WHERE k = {k};
                         UPDATE d.t SET body = CONCAT(body, k) WHERE k = {k} AND body IS NOT NULL;
                         DELETE FROM d.t WHERE k = {k} AND body IS NULL;\n",
                        1 + round * 1_999
                    );
                }
                server.sql(&script);
            });
        }
    });
    assert_eq!(server.sql("SELECT COUNT(*), COUNT(DISTINCT k) FROM d.t"), "480\t240\n");
    let gone = "SELECT COUNT(*) = 1 FROM information_schema.processlist";
    assert!(wait_until(|| server.sql(gone) == "1\n"));
}

fn verify(data: &Path) {
    let verdict = run(&["check", data.to_str().unwrap()]);
    assert_eq!(verdict.status.code(), Some(0), "{}{}", text(&verdict.stdout), text(&verdict.stderr));
}

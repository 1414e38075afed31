//! The lab as its users start it: `latchwork lab ...`, on the engine and on real servers, in tiny sizes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn lab(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latchwork"));
    let scratch = folder.join("scratch");
    let out = folder.join("out");
    command.arg("lab").args(arguments);
    if arguments.first() == Some(&"run") {
        command.arg("--scratch").arg(scratch).arg("--out").arg(out);
    }
    command.stdin(Stdio::null());
    command
}

fn run(arguments: &[&str], folder: &Path) -> Output {
    lab(arguments, folder).output().unwrap()
}

fn succeed(arguments: &[&str], folder: &Path) -> String {
    let output = run(arguments, folder);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn result(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("out/result.json")).unwrap()).unwrap()
}

/// Every cell has `samples` samples. There were queries, and rows if the driver counts them. (On a busy
/// machine a window of milliseconds may pass without a query.)
fn assert_measured(result: &serde_json::Value, cells: usize, samples: usize, rows_counted: bool) {
    assert_eq!(result["complete"], true);
    let measured = result["cells"].as_array().unwrap();
    assert_eq!(measured.len(), cells);
    let mut queries = 0;
    for cell in measured {
        assert_eq!(cell["samples"].as_array().unwrap().len(), samples, "{cell}");
        assert!(cell["median"].is_f64() || cell["median"].is_u64());
        for sample in cell["samples"].as_array().unwrap().iter().filter(|sample| sample["queries"] != 0) {
            queries += sample["queries"].as_u64().unwrap();
            assert_eq!(sample["rows"].as_u64().unwrap() > 0, rows_counted);
            assert!(sample["latency_us"]["p99"].as_f64().unwrap() > 0.0);
        }
    }
    assert!(queries > 0);
}

fn assert_nothing_left_behind(folder: &Path) {
    assert_eq!(fs::read_dir(folder.join("scratch")).unwrap().count(), 0, "scratch folders are left");
}

#[test]
fn segments_on_the_embedded_engine_gives_table_json_and_report() {
    let folder = tempfile::tempdir().unwrap();
    let sizes =
        "run segments --rows 3000 --threads 1,3 --points 5,10 --segments 0,4,auto --time 30ms --warmup 10ms";
    let text = succeed(&sizes.split(' ').collect::<Vec<_>>(), folder.path());
    for expected in [
        "embedded: throughput gain over segments off, in percent",
        "4/off",
        "optimistic auto/off",
        "report.html",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert_measured(&result(folder.path()), 6 * 2 * 2, 3, true);
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
    assert_nothing_left_behind(folder.path());
}

#[test]
fn one_run_compares_latchwork_mariadb_and_the_ceiling() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run segments --target latchwork,mariadb:myisam,mariadb:innodb,null --rows 2000 --threads 1,4 \
                 --points 10 --segments 0,8 --samples 1 --time 100ms --warmup 20ms --cache-size 64M --format json";
    let text = succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    let printed: serde_json::Value = serde_json::from_str(&text).unwrap();
    // Four series of latchwork, two of MyISAM, one each of the others, two thread counts.
    assert_measured(&printed, (4 + 2 + 1 + 1) * 2, 1, true);
    assert_eq!(printed, result(folder.path()));
    let sample = &printed["cells"][0]["samples"][0];
    assert!(sample["server_cpus"].as_f64().is_some());
    assert!(sample["context_switches_per_s"].as_f64().is_some());
    assert_nothing_left_behind(folder.path());
}

#[test]
fn sysbench_drives_the_same_servers() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run segments --driver sysbench --target latchwork,mariadb:myisam --rows 2000 --threads 2 \
                 --points 10 --segments 8 --hit-path optimistic --samples 1 --time 1 --warmup 1 --cache-size 64M";
    succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    assert_measured(&result(folder.path()), 2, 1, false);
    assert_nothing_left_behind(folder.path());
}

#[test]
fn a_server_that_runs_already_is_measured_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (server, socket, mut client) = serve(folder.path(), &OPEN);
    let sizes =
        "run segments --rows 1000 --threads 1 --points 5 --samples 5 --time 300ms --warmup 10ms --target";
    let mut arguments: Vec<&str> = sizes.split(' ').collect();
    arguments.push(socket.to_str().unwrap());
    succeed(&arguments, folder.path());
    assert_measured(&result(folder.path()), 1, 5, true);
    assert!(client.query("SHOW TABLES FROM sbtest").unwrap().rows.is_empty());
    // The lab never touches a table of that name that it did not make.
    client.query("CREATE TABLE sbtest.sbtest1 (id INT PRIMARY KEY)").unwrap();
    let output = run(&arguments, folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is a table sbtest1 already"));
    assert_eq!(client.query("SHOW TABLES FROM sbtest").unwrap().rows.len(), 1);
    drop(server);
}

#[test]
fn trace_replays_generated_traces_and_files_and_names_the_rows_it_loses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.csv");
    let lines: String = (0..6_000).map(|number| format!("{number},key{}\n", number % 400)).collect();
    fs::write(&file, format!("time,key\n{lines}")).unwrap();
    let sizes = "run trace --keys 2k --requests 4k --size 1,10 --threads 1,2 --column 2 --headline --samples 2 --trace";
    let mut arguments: Vec<&str> = sizes.split(' ').collect();
    let traces = format!("zipf-0.8,loop,{}", file.display());
    arguments.push(&traces);
    let text = succeed(&arguments, folder.path());
    for expected in
        ["latchwork against LRU", "where latchwork loses: hit ratio", "requests.csv", "report.html"]
    {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    let result = result(folder.path());
    let cells = result["cells"].as_array().unwrap();
    // One percent of 400 keys is below the smallest capacity of the caches.
    let series = cells.iter().filter(|cell| cell["parameters"]["trace"] == "loop").count() / 2;
    assert!(series >= 3, "LRU, and the page cache on both hit paths");
    assert_eq!(cells.len(), series * 5);
    for cell in cells {
        assert_eq!(cell["samples"].as_array().unwrap().len(), 2);
        for sample in cell["samples"].as_array().unwrap() {
            assert!((0.0..=100.0).contains(&sample["value"].as_f64().unwrap()));
            assert!(sample["million operations/s, threads: 2"].as_f64().unwrap() > 0.0);
        }
        // A policy without random choices gives the same ratio every time with one thread. LRU has no hits in
        // a long loop.
        if cell["series"] == "LRU" {
            assert_eq!(cell["samples"][0]["value"], cell["samples"][1]["value"]);
            assert!(cell["parameters"]["trace"] == "zipf-0.8" || cell["median"].as_f64() == Some(0.0));
        }
    }
    assert_eq!(result["summaries"].as_array().unwrap().len(), 3);
    assert_nothing_left_behind(folder.path());
}

#[test]
fn working_set_sweeps_pages_of_all_kinds_with_rows_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let sizes =
        "run working-set --rows 20k --cache-size 4M --from 100 --to 150 --iops 50000 --time 30ms --writes";
    let text = succeed(&sizes.split(' ').collect::<Vec<_>>(), folder.path());
    for expected in ["keys held at >= 25 %", "device reads a lookup", "16k + rows"] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    let result = result(folder.path());
    let cells = result["cells"].as_array().unwrap();
    let series = |name: &str| cells.iter().filter(|cell| cell["series"] == name).count();
    // 100, 120, 144 keys.
    assert_eq!((series("16k"), series("4k + rows")), (3, 3));
    for sample in cells.iter().map(|cell| &cell["samples"][0]) {
        assert!(sample["device reads a lookup"].as_f64().unwrap() >= 0.0);
        assert!(sample["resident memory, MiB"].is_null(), "several series share the process");
    }
    assert_eq!(cells.len(), 6 * 3, "every series is swept, and what was written is found");
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("aria-pressed=\"true\" data-switch=\"y\""));
    assert_nothing_left_behind(folder.path());
}

#[test]
fn servers_in_the_working_set_are_limited_alike_or_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run working-set --target latchwork,mariadb:innodb --rows 5k --cache-size 16M --from 100 --to 100 \
                 --time 50ms --pages 16k --row-tier off";
    let arguments: Vec<&str> = sizes.split_whitespace().collect();
    let output = run(&arguments, folder.path());
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("cannot be limited to 2000 operations/s"), "{errors}");
        succeed(&[&arguments[..], &["--unlimited"]].concat(), folder.path());
    }
    let result = result(folder.path());
    assert_eq!(result["cells"].as_array().unwrap().len(), 2);
    assert!(result["cells"][0]["samples"][0]["resident memory, MiB"].as_f64().unwrap() > 0.0);
    assert_nothing_left_behind(folder.path());
}

#[test]
fn servers_in_the_working_set_have_every_kind_of_pages_and_memory_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run working-set --target latchwork,mariadb:innodb --rows 20k --cache-size 32M --from 100 --to 100 \
                 --time 50ms --settle 1 --row-tier off,on,auto --writes --unlimited --compressible 4";
    succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    let result = result(folder.path());
    let compression = result["settings"]["LZ4 of pages"].as_str().unwrap();
    assert!(compression.starts_with("4.") || compression.starts_with("3.9"), "{compression}");
    let cells = result["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3 * 3 + 3);
    for cell in cells {
        let sample = &cell["samples"][0];
        assert!(sample["resident memory, MiB"].as_f64().unwrap() > 0.0);
        assert!(sample["device reads a lookup"].as_f64().unwrap() >= 0.0);
    }
    assert_nothing_left_behind(folder.path());
}

#[test]
fn insert_contention_has_the_published_series_and_the_readers_cases() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run insert-contention --target embedded,mariadb:myisam --writers 1,3 --samples 2 --time 100ms \
                 --cache-size 64M --rows-per-statement 10";
    let text = succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    for expected in [
        "cache per table/shared cache",
        "PACK_KEYS=0/shared cache",
        "both/shared cache",
        "context switches/s",
        "bytes a row, indexes",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert_measured(&result(folder.path()), 2 * 4 * 2, 2, true);
    assert_nothing_left_behind(folder.path());
    let sizes = "run insert-contention --case readers --rows 3000 --samples 3 --time 100ms --cache-size 64M";
    let text = succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    assert!(text.contains("one thread, two tables in turn"), "{text}");
    assert_measured(&result(folder.path()), 4, 3, true);
}

#[test]
fn smp_measures_transactions_joins_and_inserts_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run smp --workload readwrite,readonly,joins,inserts --target latchwork,mariadb:innodb --rows 3000 \
                 --rows-per-session 1500 --sessions 1,3 --samples 2 --time 150ms --warmup 20ms";
    let text = succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    assert!(text.contains("transactions/s") && text.contains("server CPU, seconds"), "{text}");
    for (workload, unit) in [
        ("readwrite", "transactions/s"),
        ("readonly", "transactions/s"),
        ("joins", "seconds"),
        ("inserts", "seconds"),
    ] {
        let result: serde_json::Value = serde_json::from_slice(
            &fs::read(folder.path().join("out").join(workload).join("result.json")).unwrap(),
        )
        .unwrap();
        assert_measured(&result, 2 * 2, 2, true);
        for cell in result["cells"].as_array().unwrap() {
            assert_eq!((&cell["unit"], &cell["parameters"]["workload"]), (&unit.into(), &workload.into()));
            for sample in cell["samples"].as_array().unwrap() {
                assert!(sample["resident memory, MiB"].as_f64().unwrap() > 1.0);
                assert!(sample["context_switches_per_s"].is_number());
                if workload == "inserts" {
                    // Every session's rows: 1,500 in two statements.
                    let sessions = cell["x"].as_u64().unwrap();
                    assert_eq!(sample["queries"].as_u64().unwrap(), 2 * sessions);
                    assert_eq!(sample["rows"].as_u64().unwrap(), 1_500 * sessions);
                    assert!(sample["server CPU, seconds"].as_f64().unwrap() >= 0.0);
                }
            }
        }
        assert!(folder.path().join("out").join(workload).join("report.html").exists());
    }
    assert_nothing_left_behind(folder.path());
}

#[test]
fn smp_reads_are_held_against_a_server_that_does_nothing() {
    for (driver, time, samples) in [("builtin", "300ms", 3), ("sysbench", "1", 1)] {
        for statements in ["", " --prepared"] {
            let folder = tempfile::tempdir().unwrap();
            let sizes = format!(
                "run smp --workload readonly,points --target latchwork,null --driver {driver} --rows 2000 --sessions 2 \
                 --samples {samples} --time {time} --warmup 0{statements}"
            );
            let text = succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
            assert!(text.contains("share of null"), "{text}");
            for (workload, unit) in [("readonly", "transactions/s"), ("points", "queries/s")] {
                let file = folder.path().join("out").join(workload).join("result.json");
                let result: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
                assert_measured(&result, 2, samples, driver == "builtin");
                assert_eq!(result["cells"][0]["unit"], unit);
            }
        }
    }
}

#[test]
fn smp_has_sysbench_prepared_statements_engines_without_transactions_and_fewer_processors() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run smp --target latchwork,mariadb:innodb --driver sysbench --rows 2000 --sessions 2 --samples 1 \
                 --time 1 --warmup 1";
    succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    assert_measured(&result(folder.path()), 2, 1, false);
    let sizes = "run smp --target latchwork,mariadb:myisam,mariadb:aria --prepared --distribution uniform --rows 2000 \
                 --sessions 12 --samples 2 --time 200ms --cores 1";
    // When the window ends, twelve sessions are in the middle of their transactions. None of them may leave a
    // row deleted.
    succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    let result = result(folder.path());
    assert_measured(&result, 3, 2, true);
    for target in result["targets"].as_array().unwrap() {
        // One processor, whichever it is, and no list of several.
        let processors = target["facts"]["bound to processors"].as_str().unwrap();
        assert!(processors.parse::<u32>().is_ok(), "{processors}");
    }
    assert_nothing_left_behind(folder.path());
}

#[test]
fn smp_reloads_a_dump_that_it_keeps_and_finds_every_row_again() {
    for (form, targets) in [("insert", "latchwork,mariadb:innodb"), ("load", "latchwork,mariadb:innodb")] {
        let folder = tempfile::tempdir().unwrap();
        let dump = folder.path().join("dump");
        let sizes = "run smp --workload reload --size 300k --samples 2 --connections 3";
        let mut arguments: Vec<&str> = sizes.split(' ').collect();
        arguments.extend(["--form", form, "--target", targets, "--dump", dump.to_str().unwrap()]);
        succeed(&arguments, folder.path());
        let whole = result(folder.path());
        assert_measured(&whole, targets.split(',').count(), 2, true);
        let manifest = fs::read_to_string(dump.join("manifest.tsv")).unwrap();
        let column = |line: &str, column: usize| line.split('\t').nth(column).unwrap().to_string();
        let rows: u64 = manifest.lines().skip(1).map(|line| column(line, 2).parse::<u64>().unwrap()).sum();
        for cell in whole["cells"].as_array().unwrap() {
            assert_eq!((&cell["unit"], &cell["x"]), (&"seconds".into(), &3.into()));
            for sample in cell["samples"].as_array().unwrap() {
                assert_eq!((sample["queries"].as_u64(), sample["rows"].as_u64()), (Some(24), Some(rows)));
            }
        }
        // The same dump again, but its manifest has a wrong sum for one table.
        let first = column(manifest.lines().nth(1).unwrap(), 3);
        fs::write(dump.join("manifest.tsv"), manifest.replace(&first, "1")).unwrap();
        let output = run(&arguments, folder.path());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && errors.contains("gave a wrong answer"), "{errors}");
        assert_nothing_left_behind(folder.path());
    }
}

#[test]
fn smp_runs_in_process_and_on_servers_as_presets_have_them_and_tells_what_latches_cost() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run smp --workload readwrite,inserts --target embedded:base,latchwork:base,latchwork:tc4 --latches \
                 --rows 3000 --rows-per-session 1500 --sessions 2 --samples 1 --time 150ms";
    let text = succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    assert!(text.contains("as a multiple of latchwork:base"), "{text}");
    for workload in ["readwrite", "inserts"] {
        let path = folder.path().join("out").join(workload).join("result.json");
        let result: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_measured(&result, 3, 1, true);
        for cell in result["cells"].as_array().unwrap() {
            let waits = &cell["samples"][0]["latch waits a query: all latches"];
            assert_eq!(waits.is_number(), cell["target"] != "embedded:base", "{cell}");
        }
        let facts = |number: usize| &result["targets"][number]["facts"];
        assert_eq!(
            (&facts(0)["latches"], &facts(0)["thread_concurrency"]),
            (&"WaitArray".into(), &"0".into())
        );
        assert_eq!(
            (&facts(0)["heap"], &facts(0)["malloc"]),
            (&"shared, behind a mutex".into(), &"system".into())
        );
        assert!(facts(2)["options"].as_str().unwrap().contains("--preset=tc4"));
    }
    assert_nothing_left_behind(folder.path());
}

#[test]
fn presets_whose_allocator_is_not_installed_are_left_out_and_the_package_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let without_libraries = |arguments: &str| {
        let mut command = lab(&arguments.split_whitespace().collect::<Vec<_>>(), folder.path());
        // There is no such folder, so no library is found, whatever is installed.
        let output = command.env("LATCHWORK_LIBRARY_PATH", folder.path().join("none")).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let sizes = "--rows 2000 --sessions 2 --samples 1 --time 100ms";
    let (code, table, messages) = without_libraries(&format!("run smp --workload points --presets {sizes}"));
    assert_eq!(code, Some(0), "{messages}");
    for text in [&table, &messages] {
        assert!(text.contains("left out") && text.contains("libtcmalloc-minimal4"), "{text}");
    }
    assert!(messages.trim_end().ends_with("on Debian: apt-get install libtcmalloc-minimal4"), "{messages}");
    let result = result(folder.path());
    assert_measured(&result, 4, 1, true);
    assert!(result["settings"]["left out: latchwork:smpfix"].is_string());
    assert!(result["summaries"].as_array().unwrap().iter().any(|summary| summary["title"] == "left out"));
    let (code, _, messages) = without_libraries(&format!("run smp --target latchwork:smpfix {sizes}"));
    assert_eq!(code, Some(2));
    assert!(messages.contains("latchwork:smpfix: libtcmalloc_minimal.so.4 is not installed"), "{messages}");
    assert!(messages.contains("apt-get install libtcmalloc-minimal4"), "{messages}");
    assert_nothing_left_behind(folder.path());
}

#[test]
fn smp_without_mariadb_measures_the_other_targets_and_names_the_package() {
    let folder = tempfile::tempdir().unwrap();
    let bare = |arguments: &str| {
        let mut command = lab(&arguments.split_whitespace().collect::<Vec<_>>(), folder.path());
        let none = folder.path().join("none");
        command.env("LATCHWORK_MARIADB_PATH", &none).env("LATCHWORK_LIBRARY_PATH", &none);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let sizes = "--workload points --rows 2000 --sessions 2 --samples 1 --time 100ms";
    let (code, table, messages) = bare(&format!("run smp {sizes}"));
    assert_eq!(code, Some(0), "{messages}");
    for text in [&table, &messages] {
        assert!(text.contains("left out") && text.contains("mariadb-server"), "{text}");
    }
    let last = "mariadb:innodb: mariadbd is not installed; on Debian: apt-get install mariadb-server";
    assert!(messages.trim_end().ends_with(last), "{messages}");
    let result = result(folder.path());
    // latchwork and latchwork:base: the allocator of latchwork:smpfix is hidden, too.
    assert_measured(&result, 2, 1, true);
    assert!(result["settings"]["left out: mariadb:innodb"].is_string());
    let (code, _, messages) = bare(&format!("run smp --target latchwork,mariadb:innodb {sizes}"));
    assert_eq!(code, Some(2));
    assert!(messages.contains(last), "{messages}");
    assert_nothing_left_behind(folder.path());
}

#[test]
fn the_lab_has_the_malloc_of_the_preset_in_it_and_what_it_starts_has_not() {
    let malloc = "libtcmalloc_minimal.so";
    let libraries = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let is_malloc = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(malloc);
    if !fs::read_dir(libraries).unwrap().flatten().any(is_malloc) {
        assert!(std::env::var_os("LATCHWORK_REQUIRE_CLIENTS").is_none(), "{malloc} is not installed");
        eprintln!("skipped: {malloc} is not installed; ./test.sh installs it");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run smp --workload points --target embedded:smpfix,latchwork:onlymalloc --rows 2000 --sessions 2 \
                 --samples 1000 --time 20ms";
    let mut child = Stopping(
        lab(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let path = folder.path().join("out/result.json");
    let memory = || {
        let result: serde_json::Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        result["cells"][0]["samples"][0]["resident memory, MiB"].as_f64()
    };
    wait_for("a sample of the engine in the lab", || memory().is_some_and(|memory| memory > 0.0));
    // The process that was started is still the lab that measures: the server is its child.
    let lab = child.0.id();
    let maps = |process: u32| fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let children = fs::read_to_string(format!("/proc/{lab}/task/{lab}/children")).unwrap();
    let server: u32 = children.trim().parse().unwrap();
    assert!(maps(lab).contains(malloc));
    assert!(!maps(server).contains(malloc));
    assert!(Command::new("kill").args(["-INT", &lab.to_string()]).status().unwrap().success());
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
    let result = result(folder.path());
    let facts = &result["targets"][0]["facts"];
    assert!(facts["malloc"].as_str().unwrap().starts_with(malloc), "{facts}");
    assert_eq!(facts["heap"], "none");
    assert_nothing_left_behind(folder.path());
}

#[test]
fn a_server_is_reached_by_tcp_with_a_password_that_no_result_shows() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _, mut client) = serve(folder.path(), &["--port=0"]);
    let port = client.query("SELECT @@port").unwrap().to_text().remove(0).remove(0);
    client.query("SET PASSWORD = PASSWORD('p@ss:word')").unwrap();
    let arguments = |password: &str, options: &str| {
        let target = format!("mysql://root:{password}@127.0.0.1:{port}/sbtest{options}");
        let sizes = "run smp --workload readonly --rows 1000 --sessions 1 --samples 5 --time 300ms --target";
        sizes.split(' ').map(str::to_string).chain([target]).collect::<Vec<_>>()
    };
    let certificate = folder.path().join("data/server-cert.pem");
    let vouched = format!("?ssl-mode=VERIFY_CA&ssl-ca={}", certificate.display());
    for options in ["", "?ssl-mode=REQUIRED", &vouched] {
        let right = arguments("p@ss:word", options);
        succeed(&right.iter().map(String::as_str).collect::<Vec<_>>(), folder.path());
        assert_measured(&result(folder.path()), 1, 5, true);
    }
    // The certificate names no host.
    let named = arguments("p@ss:word", &vouched.replace("VERIFY_CA", "VERIFY_IDENTITY"));
    let output = run(&named.iter().map(String::as_str).collect::<Vec<_>>(), folder.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("certificate"), "{errors}");
    for file in ["result.json", "report.html"] {
        assert!(!fs::read_to_string(folder.path().join("out").join(file)).unwrap().contains("p@ss"));
    }
    let wrong = arguments("guessed", "");
    let output = run(&wrong.iter().map(String::as_str).collect::<Vec<_>>(), folder.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("Access denied"), "{errors}");
    assert!(!errors.contains("guessed"), "{errors}");
    drop(server);
}

#[test]
fn rows_that_a_server_loses_end_an_smp_run() {
    let folder = tempfile::tempdir().unwrap();
    let (server, socket, mut client) = serve(folder.path(), &OPEN);
    for (workload, lost, told) in [
        ("readwrite", "INSERT INTO sbtest1", "sbtest1 has 1000 rows where there are 2000"),
        ("joins", "INSERT INTO T2", "where 1999 is right"),
        ("inserts", "INSERT INTO T1", "inserted were 1500"),
        ("reload", "INSERT INTO shard07", "dumped were"),
    ] {
        let losing = lose_a_statement(folder.path(), &socket, lost);
        let sizes = "--rows 2000 --rows-per-session 1500 --size 100k --form insert --sessions 1 --samples 1 \
                     --time 50ms --target";
        let mut arguments = vec!["run", "smp", "--workload", workload];
        arguments.extend(sizes.split_whitespace());
        arguments.push(losing.to_str().unwrap());
        let output = run(&arguments, folder.path());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(told), "{workload}: {errors}");
        assert!(!folder.path().join("out/result.json").exists(), "{workload}: wrong answers have no figures");
        assert!(client.query("SHOW TABLES FROM sbtest").unwrap().rows.is_empty(), "tables are left");
        // If no statement is lost, the run succeeds.
        arguments.pop();
        arguments.push(socket.to_str().unwrap());
        succeed(&arguments, folder.path());
        fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
    drop(server);
}

#[test]
fn ctrl_c_keeps_the_cells_measured_so_far_and_cleans_up() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run segments --target embedded,mariadb:myisam --rows 2000 --threads 1 --points 5,10 --segments 0 \
                 --hit-path locked --samples 1000 --time 20ms --warmup 0 --cache-size 64M";
    let mut child = Stopping(
        lab(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let path = folder.path().join("out/result.json");
    wait_for("a first result", || path.exists());
    let interrupted = Command::new("kill").args(["-INT", &child.0.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let status = child.0.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    let result = result(folder.path());
    assert_eq!(result["complete"], false);
    let samples = |cell: &serde_json::Value| cell["samples"].as_array().unwrap().len();
    let measured = result["cells"].as_array().unwrap().iter().filter(|cell| samples(cell) > 0).count();
    assert!(measured > 0);
    let mut errors = String::new();
    std::io::Read::read_to_string(child.0.stderr.as_mut().unwrap(), &mut errors).unwrap();
    assert!(errors.contains(&format!("interrupted: {measured} of 4 cells")), "{errors}");
    assert!(folder.path().join("out/report.html").exists());
    assert_nothing_left_behind(folder.path());
}

#[test]
fn wrong_command_lines_are_refused_with_status_2_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, told) in [
        ("run segmnets", "did you mean `segments`?"),
        ("run segments --rows none", "--rows none"),
        ("run segments --driver sysbench", "cannot reach the embedded engine"),
        ("run working-set --target null", "no cache that the lab can set up"),
        ("run insert-contention --case both", "writers and readers"),
        ("run smp --target latchwork:fast", "base, tc4, smpfix"),
        ("run smp --target null", "null keeps no rows"),
        ("run trace --trace zipf-1.1", "did you mean `zipf-1.0`"),
        ("rnu", "did you mean `run`?"),
    ] {
        let output = run(&arguments.split(' ').collect::<Vec<_>>(), folder.path());
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(told), "{arguments}");
    }
    assert!(!folder.path().join("out").exists());
}

#[test]
fn two_runs_are_compared_and_the_exit_status_tells_of_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run segments --rows 500 --threads 1,2 --points 5 --segments 0,4 --time 20ms --warmup 5ms";
    succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    // The measured figures are replaced by figures whose true ratio is known.
    let with_values = |name: &str, median: f64| {
        let mut made_up = result(folder.path());
        for cell in made_up["cells"].as_array_mut().unwrap() {
            for (round, sample) in cell["samples"].as_array_mut().unwrap().iter_mut().enumerate() {
                sample["value"] = (median + round as f64).into();
            }
        }
        made_up["machine"]["kernel"] = name.into();
        let path = folder.path().join(name);
        fs::write(&path, made_up.to_string()).unwrap();
        path.to_str().unwrap().to_string()
    };
    let files = [with_values("before.json", 1_000.0), with_values("after.json", 800.0)];
    let files = [files[0].as_str(), files[1].as_str()];
    let same = succeed(&["compare", files[0], files[0]], folder.path());
    assert!(same.contains("of 8 cells 0 faster, 0 slower, 8 without a difference to be told"), "{same}");
    let output = run(&["compare", files[0], files[1], "--format", "json"], folder.path());
    assert_eq!(output.status.code(), Some(3));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told["warnings"][0].as_str().unwrap().contains("kernel was"), "{told}");
    assert_eq!(told["cells"][0]["verdict"], "slower");
    assert_eq!(run(&["compare", files[0], "/nowhere.json"], folder.path()).status.code(), Some(1));
    assert_eq!(run(&["compare", files[0]], folder.path()).status.code(), Some(2));
}

#[test]
fn a_query_is_explained_by_the_servers_own_account() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let sizes = "explain WHAT --rows 2k --threads 2 --warmup 100ms --time 2s --format json --scratch";
    let explained = |what: &str| -> serde_json::Value {
        let line = sizes.replace("WHAT", what);
        let mut arguments: Vec<&str> = line.split(' ').collect();
        arguments.push(scratch.to_str().unwrap());
        serde_json::from_str(&succeed(&arguments, folder.path())).unwrap()
    };
    let us = |told: &serde_json::Value, phase: &str| told["phases_us_per_query"][phase].as_f64().unwrap();
    let points = explained("points --points 5");
    let queries = points["queries"].as_f64().unwrap();
    assert!(queries > 1.0);
    for phase in ["network", "index", "row", "rest"] {
        assert!(us(&points, phase) > 0.0, "{phase}: {points}");
    }
    // The statements that read the figures are text, and they are few among thousands of queries.
    assert!(queries < 1000.0 || us(&points, "parse") < us(&points, "row"), "{points}");
    let sum: f64 =
        points["phases_us_per_query"].as_object().unwrap().values().map(|us| us.as_f64().unwrap()).sum();
    assert!((sum - points["all_us_per_query"].as_f64().unwrap()).abs() < 1e-6);
    assert!(points["advice"].as_str().unwrap().starts_with("First: "));
    let updates = explained("updates --text");
    assert!(us(&updates, "parse") > 0.0 && us(&updates, "log") > 0.0, "{updates}");
    assert_nothing_left_behind(folder.path());
    let output = run(&["explain", "points", "--target", "mariadb:innodb"], folder.path());
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("out"), "a file").unwrap();
    let output = run(&["run", "segments", "--rows", "100"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/out"));
}

#[test]
fn a_run_that_measures_nothing_says_why_and_leaves_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["run", "smp", "--target", "/no/such/socket", "--rows", "100"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot connect to /no/such/socket"));
    assert!(output.stdout.is_empty() && fs::read_dir(folder.path().join("out")).unwrap().next().is_none());
    assert_nothing_left_behind(folder.path());
    fs::write(folder.path().join("text"), "no JSON").unwrap();
    let output = run(&["report", folder.path().join("text").to_str().unwrap()], folder.path());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/text: this is not a result of the lab"));
}

#[test]
fn long_snapshot_reads_the_same_beside_updates_and_tells_what_that_costs() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run long-snapshot --target latchwork,mariadb:innodb --keys uniform,zipf --rows 3000 --sessions 2 \
                 --time 2 --after 1 --cache-size 64M --version-limit 1M";
    let text = succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    assert!(text.contains("with the snapshot, and after it") && text.contains("first read s"), "{text}");
    let result = result(folder.path());
    assert_measured(&result, 2 * 2 * 3, 1, true);
    for cell in result["cells"].as_array().unwrap() {
        let (x, sample) = (cell["x"].as_u64().unwrap(), &cell["samples"][0]);
        assert_eq!(cell["unit"], "updates/s");
        assert_eq!(cell["parameters"]["snapshot"], if x <= 2 { "held" } else { "closed" });
        // At the start and at the end; between them if the machine is fast enough.
        assert_eq!(sample["full read of the snapshot, s"].is_number(), x <= 2, "{cell}");
        assert!(sample["resident memory, MiB"].as_f64().unwrap() > 1.0);
        assert!(sample["data folder, MiB"].as_f64().unwrap() > 0.0);
        assert!(sample["files of old versions, MiB"].as_f64().unwrap() >= 0.0);
        assert!(sample["length of the history list"].is_number());
        let is_ours = cell["target"] == "latchwork";
        assert_eq!(sample["old versions in memory, MiB"].is_number(), is_ours, "{cell}");
    }
    let summary = &result["summaries"][0];
    assert_eq!(summary["rows"].as_array().unwrap().len(), 4);
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("aria-pressed=\"false\" data-switch=\"x\""), "time is not logarithmic");
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 4, "updates, memory, files and reads");
    assert_nothing_left_behind(folder.path());
    let (out, picture) = (folder.path().join("out"), folder.path().join("memory.svg"));
    let plot = |name: &str| {
        let arguments = ["report", out.to_str().unwrap(), "--svg", picture.to_str().unwrap(), "--plot", name];
        run(&arguments, folder.path())
    };
    assert!(plot("memory").status.success());
    assert!(fs::read_to_string(&picture).unwrap().contains(">resident memory, MiB, sessions 2</text>"));
    let errors = String::from_utf8_lossy(&plot("nonsense").stderr).into_owned();
    assert!(errors.contains("there are updates/s; resident memory, MiB; files"), "{errors}");
}

#[test]
fn long_snapshot_ends_a_last_read_that_takes_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = "run long-snapshot --target latchwork,mariadb:innodb --rows 20k --sessions 2 --time 1 --after 1 \
                 --patience 0 --cache-size 64M";
    succeed(&sizes.split_whitespace().collect::<Vec<_>>(), folder.path());
    let result = result(folder.path());
    assert_measured(&result, 2 * 2, 1, true);
    for cell in result["cells"].as_array().unwrap() {
        let is_given_up = cell["samples"][0]["full read of the snapshot given up"].is_number();
        assert_eq!(is_given_up, cell["x"] == 1, "{cell}");
    }
    for row in result["summaries"][0]["rows"].as_array().unwrap() {
        assert!(row[13].as_str().unwrap().starts_with("> "), "{row}");
    }
    assert_nothing_left_behind(folder.path());
}

#[test]
fn long_snapshot_ends_with_an_error_when_the_snapshot_is_not_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let options = [&OPEN[..], &["--latchwork_version_limit=1M", "--latchwork_version_file_limit=0"]].concat();
    let (server, socket, mut client) = serve(folder.path(), &options);
    let sizes = "run long-snapshot --rows 20k --sessions 2 --time 30 --every 1 --target";
    let fails = |target: &Path| {
        let mut arguments: Vec<&str> = sizes.split(' ').collect();
        arguments.push(target.to_str().unwrap());
        let output = run(&arguments, folder.path());
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // The server has no room for versions: it gives the snapshot up, and says so.
    let errors = fails(&socket);
    assert!(errors.contains("error 1412"), "{errors}");
    // The snapshot is never taken: each read sees the newest rows.
    let losing = lose_a_statement(folder.path(), &socket, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    let errors = fails(&losing);
    assert!(errors.contains("gave a wrong answer: the old snapshot"), "{errors}");
    // What was measured before is kept, without what is only known of a server that the lab starts.
    let result = result(folder.path());
    assert_eq!(result["complete"], false);
    assert!(result["cells"][0]["samples"][0]["resident memory, MiB"].is_null());
    assert!(client.query("SHOW TABLES FROM sbtest").unwrap().rows.is_empty());
    drop(server);
    assert_nothing_left_behind(folder.path());
}

#[test]
fn list_doctor_and_help_explain_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let list = succeed(&["list"], folder.path());
    assert!(list.contains("segments") && list.contains("long-snapshot"), "{list}");
    assert!(succeed(&["run", "--help"], folder.path()).contains("--hit-path"));
    assert!(succeed(&[], folder.path()).contains("latchwork lab run segments"));
    let doctor = run(&["doctor", "--rows", "1000"], folder.path());
    let text = String::from_utf8_lossy(&doctor.stdout);
    for check in ["open files", "memory", "disk", "transparent huge pages", "other load"] {
        assert!(text.contains(check), "{check} is not in:\n{text}");
    }
}

/// Options with which everybody may connect over the socket.
const OPEN: [&str; 2] = ["--skip-grant-tables", "--skip-networking"];

/// Starts a server with an empty database for the lab.
fn serve(folder: &Path, options: &[&str]) -> (Stopping, PathBuf, wire::client::Connection<UnixStream>) {
    let socket = folder.join("socket");
    let server = Command::new(env!("CARGO_BIN_EXE_latchwork"))
        .args(["serve", "--no-defaults"])
        .args(options)
        .arg(format!("--datadir={}", folder.join("data").display()))
        .arg(format!("--socket={}", socket.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Stopping(server);
    wait_for("the server", || UnixStream::connect(&socket).is_ok());
    let mut client = wire::client::Connection::connect(
        UnixStream::connect(&socket).unwrap(),
        &wire::client::ConnectOptions::default(),
    )
    .unwrap();
    client.query("CREATE DATABASE IF NOT EXISTS sbtest").unwrap();
    (server, socket, client)
}

/// Listens at a socket of its own and passes everything on to the server at `socket`, except the first
/// statement that begins with these bytes. The server gets a statement that does nothing instead, and the
/// client gets an OK.
fn lose_a_statement(folder: &Path, socket: &Path, beginning: &'static str) -> PathBuf {
    let address = folder.join("losing");
    let _ = fs::remove_file(&address);
    let listener = UnixListener::bind(&address).unwrap();
    let socket = socket.to_path_buf();
    std::thread::spawn(move || {
        let lost = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        for mut client in listener.incoming().flatten() {
            let mut server = UnixStream::connect(&socket).unwrap();
            let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut answers, &mut back);
                let _ = back.shutdown(std::net::Shutdown::Both);
            });
            let lost = lost.clone();
            std::thread::spawn(move || {
                let mut header = [0; 4];
                while client.read_exact(&mut header).is_ok() {
                    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
                    let mut payload = vec![0; length];
                    if client.read_exact(&mut payload).is_err() {
                        break;
                    }
                    let hit = payload.get(1..).is_some_and(|sql| sql.starts_with(beginning.as_bytes()));
                    if hit && !lost.swap(true, std::sync::atomic::Ordering::Relaxed) {
                        payload[1..].fill(b' ');
                        payload[1..9].copy_from_slice(b"SELECT 1");
                    }
                    if server.write_all(&[&header[..], &payload].concat()).is_err() {
                        break;
                    }
                }
                let _ = server.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    address
}

/// A child process that is killed when the test ends, also if the test fails.
struct Stopping(Child);

impl Drop for Stopping {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        sleep(Duration::from_millis(10));
    }
}

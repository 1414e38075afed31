//! The implementations of latches, and what is counted at latches.

use crate::support::{Client, Live, wait_until};
use base::latch_class;
use base::sync::Mutex;
use latchwork_server::Options;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// The only value that the statement selects, as text.
fn value(live: &Live, statement: &str) -> String {
    live.connect().query(statement).unwrap().rows[0][0].to_text()
}

#[test]
fn latches_are_made_of_what_the_option_says() {
    for option in ["--latch_implementation=wait_array", "--latch-implementation=direct"] {
        let live = Live::start(&[option]);
        let name = option.rsplit_once('=').unwrap().1;
        assert_eq!(value(&live, "SELECT @@latch_implementation"), name);
        let error = live.connect().query("SET GLOBAL latch_implementation = 'direct'").unwrap_err();
        assert_eq!(error.code(), Some(1238));
        // Everything works with each implementation.
        let mut connection = live.connect();
        connection.query("CREATE DATABASE d").unwrap();
        connection.query("CREATE TABLE d.t (a INT PRIMARY KEY, b INT, KEY (b))").unwrap();
        connection.query("INSERT INTO d.t VALUES (1, 2), (2, 3), (3, 4)").unwrap();
        connection.query("UPDATE d.t SET b = b + 1 WHERE a > 1").unwrap();
        assert_eq!(value(&live, "SELECT SUM(b) FROM d.t"), "11");
        assert!(live.stop());
    }
    let error = Options::parse(&["--latch_implementation=spin".to_string()]).unwrap_err();
    let expected = "option '--latch_implementation': wrong value 'spin': expected one of direct, wait_array";
    assert_eq!(error.to_string(), expected);
}

latch_class!(OfThisTest, "tests: a latch");

/// ACQUISITIONS, SPINS, WAITS and WAIT_TIME_US of the class.
fn figures(client: &mut Client, class: &str) -> Option<[u64; 4]> {
    let query = format!(
        "SELECT acquisitions, spins, waits, wait_time_us FROM information_schema.latches \
         WHERE name = '{class}' AND segment IS NULL"
    );
    let rows = client.query(&query).unwrap().rows;
    rows.first().map(|row| [0, 1, 2, 3].map(|column: usize| row[column].to_text().parse().unwrap()))
}

/// The status in SHOW ENGINE ... MUTEX for this name.
fn status(client: &mut Client, engine: &str, name: &str) -> Option<String> {
    let rows = client.query(&format!("SHOW ENGINE {engine} MUTEX")).unwrap().rows;
    let row = rows.into_iter().find(|row| row[1].to_text() == name)?;
    assert_eq!(row[0].to_text(), "Latchwork");
    Some(row[2].to_text())
}

/// Two threads meet at the latch. Usually one of them sleeps.
fn meet(latch: &Arc<Mutex<u32, OfThisTest>>) {
    let mut held = latch.lock();
    let other = latch.clone();
    let waiter = thread::spawn(move || *other.lock() += 1);
    thread::sleep(Duration::from_millis(20));
    *held += 1;
    drop(held);
    waiter.join().unwrap();
}

#[test]
fn who_meets_at_latches_is_counted_while_the_statistics_are_on() {
    // Sessions that wait for the device would rarely meet at a latch.
    let live = Live::start(&["--flush_log_at_trx_commit=2"]);
    let mut client = live.connect();
    let latch = Arc::new(Mutex::<u32, OfThisTest>::of_class(0));
    meet(&latch);
    assert_eq!(value(&live, "SELECT @@latch_statistics"), "0");
    assert_eq!(figures(&mut client, "tests: a latch"), None, "nobody counts");

    client.query("SET GLOBAL latch_statistics = ON").unwrap();
    wait_until("a wait", || {
        meet(&latch);
        figures(&mut client, "tests: a latch").is_some_and(|figures| figures[2] > 0)
    });
    let [acquisitions, spins, waits, time] = figures(&mut client, "tests: a latch").unwrap();
    assert_eq!(acquisitions, u64::from(*latch.lock()) - 2, "all but the two of before");
    assert!(acquisitions > waits && spins > 0 && time > 0);
    let found = status(&mut client, "latchwork", "tests: a latch").unwrap();
    assert!(found.contains(&format!("waits={waits}, wait_time_us={time}, ")), "{found}");
    let this_file = format!("top_holder={}:", file!().trim_start_matches("crates/"));
    assert!(found.contains(&this_file), "{found}");
    // The last choice of the process. It may be that of the other test's server.
    let general = status(&mut client, "InnoDB", "latches").unwrap();
    let is_known = ["direct", "wait_array"]
        .map(|name| format!("implementation={name}, statistics=ON"))
        .contains(&general);
    assert!(is_known, "{general}");

    // Those of the engine, by segment.
    client.query("CREATE DATABASE d").unwrap();
    client.query("CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT, b INT)").unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = live.connect();
                while !is_over.load(Relaxed) {
                    client.query("INSERT INTO d.t (b) VALUES (1), (2), (3)").unwrap();
                }
            });
        }
        wait_until("a page that is not free", || {
            figures(&mut client, "page").is_some_and(|figures| figures[1] > 0)
        });
        is_over.store(true, Relaxed);
    });
    let by_segment = "SELECT SUM(acquisitions), SUM(spins), MIN(segment) >= 0 FROM information_schema.latches \
                      WHERE name = 'page' AND segment IS NOT NULL";
    let row = client.query(by_segment).unwrap().rows.remove(0);
    let segments = [0, 1].map(|column: usize| row[column].to_text().parse::<u64>().unwrap());
    assert!(segments[0] > 0 && segments[1] > 0);

    client.query("SET GLOBAL latch_statistics = OFF").unwrap();
    let before = figures(&mut client, "tests: a latch");
    meet(&latch);
    assert_eq!(figures(&mut client, "tests: a latch"), before, "nobody counts any more");
    client.query("SET GLOBAL latch_statistics = ON").unwrap();
    assert_eq!(figures(&mut client, "tests: a latch"), Some([0; 4]), "begins anew");
    client.query("SET GLOBAL latch_statistics = OFF").unwrap();
    assert!(live.stop());
}

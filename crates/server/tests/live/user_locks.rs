//! GET_LOCK between sessions.

use crate::support::{Client, Live, wait_until};
use wire::command::com;

fn value(client: &mut Client, sql: &str) -> String {
    client.query(sql).unwrap().to_text()[0][0].clone()
}

fn state(client: &mut Client, id: u32) -> String {
    value(client, &format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {id}"))
}

/// A thread that waits for the lock `a`, once the others see it wait. It gives the answer and the client.
fn waiting(
    live: &Live,
    observer: &mut Client,
    sql: &'static str,
) -> std::thread::JoinHandle<(String, Client)> {
    let mut waiter = live.connect();
    let id = waiter.greeting().connection_id;
    let thread = std::thread::spawn(move || (value(&mut waiter, sql), waiter));
    wait_until("the wait", || state(observer, id) == "User lock");
    thread
}

#[test]
fn a_lock_is_handed_over_when_its_session_releases_it_resets_changes_its_user_or_ends() {
    let live = Live::start(&[]);
    let mut observer = live.connect();
    let releases: [fn(Client) -> Option<Client>; 4] = [
        |mut client| {
            assert_eq!(value(&mut client, "SELECT RELEASE_LOCK('a')"), "1");
            Some(client)
        },
        |mut client| {
            client.command(com::RESET_CONNECTION, b"").unwrap();
            Some(client)
        },
        |mut client| {
            client.command(com::CHANGE_USER, b"root\0\0\0").unwrap();
            Some(client)
        },
        |client| client.quit().err().and(None),
    ];
    for release in releases {
        let mut holder = live.connect();
        let holder_id = holder.greeting().connection_id;
        assert_eq!(value(&mut holder, "SELECT GET_LOCK('a', 0)"), "1");
        assert_eq!(value(&mut observer, "SELECT GET_LOCK('a', 0.01)"), "0");
        assert_eq!(value(&mut observer, "SELECT RELEASE_LOCK('a')"), "0");
        assert_eq!(value(&mut observer, "SELECT IS_USED_LOCK('a')"), holder_id.to_string());
        let thread = waiting(&live, &mut observer, "SELECT GET_LOCK('a', 60)");
        let _holder = release(holder);
        let (answer, waiter) = thread.join().unwrap();
        assert_eq!(answer, "1");
        waiter.quit().unwrap();
        wait_until("the end of the session", || value(&mut observer, "SELECT IS_FREE_LOCK('a')") == "1");
    }
}

#[test]
fn a_wait_for_a_lock_ends_with_kill_and_with_the_time_of_the_statement() {
    let live = Live::start(&["--thread_concurrency=1"]);
    let (mut observer, mut holder) = (live.connect(), live.connect());
    assert_eq!(value(&mut holder, "SELECT GET_LOCK('a', 0)"), "1");
    let thread = waiting(&live, &mut observer, "SELECT IFNULL(GET_LOCK('a', 60), 'none')");
    let id = value(&mut observer, "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'");
    observer.query(&format!("KILL QUERY {id}")).unwrap();
    let (answer, mut waiter) = thread.join().unwrap();
    assert_eq!(answer, "none");
    waiter.query("SET max_statement_time = 0.05").unwrap();
    assert_eq!(value(&mut waiter, "SELECT IFNULL(GET_LOCK('a', 60), 'none')"), "none");
    // Nobody is left in the queue.
    assert_eq!(value(&mut holder, "SELECT RELEASE_ALL_LOCKS()"), "1");
    assert_eq!(value(&mut waiter, "SELECT GET_LOCK('a', 0)"), "1");
}

#[test]
fn sessions_that_wait_for_each_others_locks_are_a_deadlock_that_leaves_the_transaction() {
    let live = Live::start(&[]);
    let (mut observer, mut first) = (live.connect(), live.connect());
    first.query("CREATE DATABASE d").unwrap();
    first.query("CREATE TABLE d.t (id INT PRIMARY KEY)").unwrap();
    assert_eq!(value(&mut first, "SELECT GET_LOCK('a', 0)"), "1");
    let thread = waiting(&live, &mut observer, "SELECT GET_LOCK('b', 0) + GET_LOCK('a', 60)");
    first.query("BEGIN").unwrap();
    first.query("INSERT INTO d.t VALUES (1)").unwrap();
    assert_eq!(first.query("SELECT GET_LOCK('b', 60)").unwrap_err().code(), Some(1213));
    assert_eq!(value(&mut first, "SELECT COUNT(*) FROM d.t"), "1");
    assert_eq!(value(&mut first, "SELECT RELEASE_LOCK('a')"), "1");
    assert_eq!(thread.join().unwrap().0, "2");
}

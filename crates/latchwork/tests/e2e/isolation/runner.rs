//! Runs a script at a level. Each step is sent when the one before has been answered or is known to wait.

use super::script::{Script, Transcript};
use super::session::Session;
use super::{Level, NOT_SENT, WAITS, waiting};
use crate::support::target::{Client, Server, connect};
use crate::support::{PATIENCE, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const DATABASE: &str = "isolation";
/// The time between two checks of a session that has not answered.
const PAUSE: Duration = Duration::from_millis(5);
/// If the server reports a session as waiting for this long, it counts as waiting even where an answer was
/// expected. This is longer than a deadlock takes to be found and longer than the lock wait timeouts of the
/// scripts.
const SURELY_WAITS: Duration = Duration::from_secs(20);
/// The same where no answer is expected yet. A wrong guess does not pass the test, because the answer then
/// comes at a later step that does not expect it.
const SEEMS_TO_WAIT: Duration = Duration::from_millis(400);

struct Run<'a> {
    server: &'a Server,
    observer: Client,
    sessions: BTreeMap<String, Session>,
    /// The sessions that have not answered.
    open: BTreeSet<String>,
}

/// Returns what was seen. `expected` says which answers to wait for. Without it, finding the waiting sessions
/// takes longer.
pub fn run(server: &Server, script: &Script, level: Level, expected: &Transcript) -> Transcript {
    let mut observer = connect(server.socket(), Some(PATIENCE)).unwrap();
    let mut admin =
        |sql: &str| observer.query(sql).unwrap_or_else(|error| panic!("{}: {sql}: {error}", script.name));
    admin(&format!("CREATE DATABASE {DATABASE}"));
    admin(&format!("USE {DATABASE}"));
    for sql in &script.setup {
        admin(sql);
    }
    let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", level.sql());
    let greetings = [format!("USE {DATABASE}"), level];
    let mut sessions = BTreeMap::new();
    for name in script.sessions() {
        let session = Session::open(server, &greetings);
        sessions.insert(name, session);
    }
    let mut run = Run { server, observer, sessions, open: BTreeSet::new() };
    let mut transcript = Transcript::new();
    for (position, step) in script.steps().enumerate() {
        transcript.push(run.step(&step.session, &step.sql, &expected[position]));
    }
    run.clean_up();
    transcript
}

impl Run<'_> {
    fn step(
        &mut self,
        name: &str,
        sql: &str,
        expected: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let mut seen = BTreeMap::new();
        // This answer belongs to the step before, and came late.
        self.collect(&mut seen);
        if self.open.contains(name) {
            seen.insert(name.to_string(), NOT_SENT.to_string());
        } else {
            // `{s2}` stands for the number of that session's connection.
            let sql = self.sessions.iter().fold(sql.to_string(), |sql, (name, session)| {
                sql.replace(&format!("{{{name}}}"), &session.id().to_string())
            });
            self.sessions[name].send(&sql);
            self.open.insert(name.to_string());
        }
        self.settle(&mut seen, expected);
        if self.open.contains(name) {
            seen.entry(name.to_string()).or_insert(WAITS.to_string());
        }
        seen
    }

    /// Returns when each session has answered or waits.
    fn settle(&mut self, seen: &mut BTreeMap<String, String>, expected: &BTreeMap<String, String>) {
        let patience = Instant::now() + PATIENCE;
        let mut waiting_since: Option<Instant> = None;
        let unknown = expected.values().any(String::is_empty);
        let answers = |name: &String| {
            expected
                .get(name)
                .is_some_and(|outcome| !outcome.is_empty() && outcome != WAITS && outcome != NOT_SENT)
        };
        loop {
            self.collect(seen);
            if self.open.is_empty() || Instant::now() > patience {
                return;
            }
            let ids: Vec<u32> = self.open.iter().map(|name| self.sessions[name].id()).collect();
            let all_wait = waiting(self.server, &mut self.observer, &ids) >= ids.len();
            // A session that was reported as waiting may have been about to answer.
            let enough = if self.open.iter().any(answers) {
                SURELY_WAITS
            } else if unknown {
                SEEMS_TO_WAIT
            } else {
                PAUSE
            };
            if !all_wait {
                waiting_since = None;
            } else if waiting_since.get_or_insert_with(Instant::now).elapsed() >= enough {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn collect(&mut self, seen: &mut BTreeMap<String, String>) {
        let sessions = &self.sessions;
        self.open.retain(|name| match sessions[name].outcome(Duration::from_millis(1)) {
            Some(outcome) => {
                seen.insert(name.clone(), outcome);
                false
            }
            None => true,
        });
    }

    /// Ends the sessions, whatever they are doing, and drops the database.
    fn clean_up(mut self) {
        let ids: Vec<String> = self.sessions.values().map(|session| session.id().to_string()).collect();
        for (name, session) in &self.sessions {
            if self.open.contains(name) {
                // The connection may be closed already.
                let _ = self.observer.query(&format!("KILL {}", session.id()));
            }
        }
        self.sessions.clear();
        let observer = &mut self.observer;
        let gone = wait_until(|| {
            let rows = observer.query("SHOW PROCESSLIST").unwrap().to_text();
            rows.iter().all(|row| !ids.contains(&row[0]))
        });
        assert!(gone, "sessions do not end");
        observer.query(&format!("DROP DATABASE {DATABASE}")).unwrap();
    }
}

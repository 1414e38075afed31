//! The database, the clients and the promises of one history.

use super::contents::{Contents, Trouble};
use super::model::{Changes, Identity, Name, Row, State, TableState};
use base::random::Random;
use base::sync::Arc;
use engine::{
    CacheOptions, Database, Error, FlushLog, HitPath, Isolation, LogOptions, Options, Savepoint, Session,
    Table, WriteBack,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use vfs::SimVfs;

const DIR: &str = "data";

/// How a history has its directory opened.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    page_size: usize,
    hit_path: HitPath,
    cache_bytes: usize,
    log: LogOptions,
    row_tier_bytes: usize,
    open_files: Option<usize>,
    /// Of larger ones the changes are taken back behind the clients.
    taken_back_at_start_max: usize,
    version_limit: u64,
}

impl Settings {
    pub(super) fn random(random: &mut Random) -> Settings {
        let log = |file: u64, buffer: usize, capacity: u64| LogOptions {
            flush: FlushLog::AtCommit,
            file_size: file << 10,
            buffer_size: buffer << 10,
            capacity: capacity << 10,
        };
        Settings {
            page_size: [1_024, 1_024, 2_048, 4_096][random.index(4)],
            hit_path: [HitPath::Optimistic, HitPath::Locked][random.index(2)],
            // Raised to the fewest frames there can be.
            cache_bytes: [1, 1, 200 << 10][random.index(3)],
            log: [log(16, 8, 48), log(32, 16, 96), log(64, 16, 128)][random.index(3)],
            row_tier_bytes: if random.below(4) == 0 { 300 << 10 } else { 0 },
            open_files: (random.below(4) == 0).then_some(2),
            taken_back_at_start_max: if random.below(6) == 0 { 3 } else { 10_000 },
            // Every old version goes to a file, or none.
            version_limit: if random.below(3) == 0 { 0 } else { 256 << 20 },
        }
    }

    pub(super) fn is_taken_back_behind(&self) -> bool {
        self.taken_back_at_start_max < 100
    }

    /// The same, of a start that takes everything back before it opens.
    pub(super) fn at_once(&self) -> Settings {
        Settings { taken_back_at_start_max: usize::MAX, ..self.clone() }
    }

    /// # Errors
    /// As [`Database::open`].
    pub(super) fn open(&self, vfs: &SimVfs) -> engine::Result<Arc<Database>> {
        let cache = CacheOptions {
            size_bytes: self.cache_bytes,
            hit_path: self.hit_path,
            // No threads, so that a seed is the whole story.
            write_back: WriteBack::AtEvictionOnly,
            ..CacheOptions::default()
        };
        let options = Options {
            cache,
            log: self.log,
            row_tier_bytes: Some(self.row_tier_bytes),
            row_tier_first: self.row_tier_bytes > 0,
            page_size: self.page_size,
            open_files: self.open_files,
            taken_back_at_start_max: self.taken_back_at_start_max,
            create: true,
            vfs: Arc::new(vfs.clone()),
            ..Options::default()
        };
        let database = Database::open(Path::new(DIR), options)?;
        database.set_version_limit(self.version_limit);
        Ok(database)
    }
}

/// A client, and what it has been told.
pub(super) struct Client {
    pub(super) session: Session,
    pub(super) begun: Option<Isolation>,
    /// `Session::set_first_committer_wins`.
    pub(super) wins: bool,
    pub(super) snapshot: Option<State>,
    pub(super) changes: Changes,
    /// With what had been changed then, and whether any table had been touched.
    pub(super) savepoints: Vec<(Savepoint, Changes, bool)>,
    /// Tables that its transaction has changed or locked rows of, or tried to.
    pub(super) touched: BTreeSet<Identity>,
    pub(super) locked: BTreeSet<(Identity, i32)>,
    /// Tables that it has read at SERIALIZABLE.
    pub(super) ranges: BTreeSet<Identity>,
}

impl Client {
    pub(super) fn new(database: &Database) -> Client {
        let mut session = database.session();
        // There is one thread: who waits, waits for nobody.
        session.set_lock_wait(Duration::ZERO);
        Client {
            session,
            begun: None,
            wins: false,
            snapshot: None,
            changes: Changes::new(),
            savepoints: Vec::new(),
            touched: BTreeSet::new(),
            locked: BTreeSet::new(),
            ranges: BTreeSet::new(),
        }
    }

    /// Forgets the transaction, which has ended.
    pub(super) fn ended(&mut self) {
        self.begun = None;
        self.snapshot = None;
        self.changes.clear();
        self.savepoints.clear();
        self.touched.clear();
        self.locked.clear();
        self.ranges.clear();
    }

    pub(super) fn keeps_snapshot(&self) -> bool {
        matches!(self.begun, Some(Isolation::RepeatableRead | Isolation::Serializable))
    }
}

/// What a step came to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Nothing was committed.
    Same,
    /// This was committed.
    Committed(State),
    /// An error of the device; what is committed may be what it was, or this.
    Failed(Error, State),
}

/// What is wrong, for the person who reads it.
pub(super) type Wrong = String;

pub(super) struct World {
    pub(super) database: Arc<Database>,
    pub(super) clients: Vec<Client>,
    pub(super) random: Random,
    /// One of [`super::schema::IDS`].
    pub(super) ids: u32,
    pub(super) committed: State,
    /// What was committed within the step under way, before its own change.
    pub(super) passed: Vec<State>,
    pub(super) next_identity: Identity,
    /// A fault of the device was armed since the last restart, so that its errors are no surprise.
    pub(super) is_faulty: bool,
    /// A transaction may still be on its way back, behind its client.
    pub(super) has_ghosts: bool,
    /// What the steps were, the last at the end.
    pub(super) story: Vec<String>,
}

impl World {
    pub(super) fn tell(&mut self, what: String) {
        self.story.push(what);
    }

    pub(super) fn take_identity(&mut self) -> Identity {
        self.next_identity += 1;
        self.next_identity
    }

    /// A random table of the model, by name.
    pub(super) fn any_table(&mut self) -> Option<(Name, Arc<TableState>)> {
        let count = self.committed.tables.len();
        if count == 0 {
            return None;
        }
        let at = self.random.index(count);
        self.committed.tables.iter().nth(at).map(|(name, table)| (name.clone(), table.clone()))
    }

    /// The engine's table of that name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn open_table(&self, name: &Name) -> Result<Arc<Table>, Wrong> {
        self.database.table(&name.0, &name.1).map_err(|error| format!("table {name:?}: {error}"))
    }

    /// Whether another client than `own` may stand in the way of a change.
    pub(super) fn others_hold(&self, own: usize) -> bool {
        let holds = |client: &Client| !client.touched.is_empty() || !client.ranges.is_empty();
        self.has_ghosts || self.clients.iter().enumerate().any(|(at, client)| at != own && holds(client))
    }

    /// The client, other than `own`, that has changed or locked the row or the range that it is in.
    pub(super) fn holder(&self, own: usize, table: &TableState, id: i32) -> Option<usize> {
        let key = (table.identity, id);
        self.clients.iter().enumerate().position(|(at, client)| {
            at != own
                && (client.changes.contains_key(&key)
                    || client.locked.contains(&key)
                    || client.ranges.contains(&table.identity))
        })
    }

    /// Whether some transaction has changed the row and not ended.
    pub(super) fn is_pending(&self, table: &TableState, id: i32) -> bool {
        self.clients.iter().any(|client| client.changes.contains_key(&(table.identity, id)))
    }

    /// An error of the device, where one may come.
    pub(super) fn is_of_device(&self, error: &Error) -> bool {
        let is = matches!(
            error,
            Error::Io(_) | Error::Full | Error::ReadOnly { .. } | Error::Corrupt { .. } | Error::Closed
        );
        self.is_faulty && is
    }

    /// What to make of an error that the model did not foresee.
    ///
    /// # Errors
    /// Nothing excuses it.
    pub(super) fn unexpected(&self, what: &str, error: Error, after: State) -> Result<Outcome, Wrong> {
        if self.is_of_device(&error) {
            return Ok(Outcome::Failed(error, after));
        }
        Err(format!("{what}: {error}"))
    }

    /// Ends the transactions of all clients for which `chosen` says so, by commit or by rollback.
    ///
    /// # Errors
    /// A commit or rollback failed without a reason.
    pub(super) fn end_clients(&mut self, chosen: impl Fn(&Client) -> bool) -> Result<Outcome, Wrong> {
        let mut outcome = Outcome::Same;
        for at in 0..self.clients.len() {
            if !chosen(&self.clients[at]) {
                continue;
            }
            match self.end_client(at)? {
                Outcome::Same => {}
                Outcome::Committed(state) => {
                    self.committed = state.clone();
                    self.passed.push(state.clone());
                    outcome = Outcome::Committed(state);
                }
                failed @ Outcome::Failed(..) => return Ok(failed),
            }
        }
        Ok(outcome)
    }

    /// Commits or rolls back the transaction of a client.
    ///
    /// # Errors
    /// That failed without a reason.
    pub(super) fn end_client(&mut self, at: usize) -> Result<Outcome, Wrong> {
        let commits = self.random.below(3) > 0;
        self.tell(format!("client {at} {}", if commits { "commits" } else { "rolls back" }));
        let client = &mut self.clients[at];
        let after = self.committed.with(&client.changes);
        let changed = !client.changes.is_empty();
        client.ended();
        if commits {
            match client.session.commit() {
                Ok(()) if changed => Ok(Outcome::Committed(after)),
                Ok(()) => Ok(Outcome::Same),
                Err(error) => self.unexpected("a commit", error, after),
            }
        } else {
            match client.session.roll_back() {
                Ok(()) => Ok(Outcome::Same),
                Err(error) => self.unexpected("a rollback", error, self.committed.clone()),
            }
        }
    }

    /// Compares what a new client sees with what may have been committed. `None` if the device keeps it from
    /// being read: after a failed sync nothing is written any more, and a small cache cannot make room.
    ///
    /// # Errors
    /// It is something else.
    pub(super) fn compare_live(&self, accepted: &[&State]) -> Result<Option<usize>, Wrong> {
        match Contents::read(&self.database) {
            Ok(contents) => closest(&contents, accepted).map(Some),
            Err(Trouble::Engine(error)) if self.is_of_device(&error) => Ok(None),
            Err(Trouble::Engine(error)) => Err(format!("the database cannot be read: {error}")),
            Err(Trouble::Wrong(what)) => Err(what),
        }
    }
}

/// Which of the states a database is in.
///
/// # Errors
/// In none of them; with how it differs from the last.
pub(super) fn closest(contents: &Contents, accepted: &[&State]) -> Result<usize, Wrong> {
    let mut last = String::new();
    for (at, state) in accepted.iter().enumerate().rev() {
        match contents.difference(state) {
            None => return Ok(at),
            Some(difference) if last.is_empty() => last = difference,
            Some(_) => {}
        }
    }
    Err(format!("{last} ({} states would have been right)", accepted.len()))
}

/// Whether two rows share a unique value.
pub(super) fn collides(rows: &super::model::Rows, new: &Row, except: Option<i32>) -> bool {
    new.u.is_some() && rows.values().any(|row| Some(row.id) != except && row.u == new.u)
}

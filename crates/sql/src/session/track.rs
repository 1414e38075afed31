//! What the end of a statement tells the client of changes to its session, if the client wants to know.

use crate::variables::{TransactionInfo, Variable};
use crate::{Change, Session, variables};
use engine::Isolation;

/// What has changed since the client was told last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    /// The client wants to know.
    pub(crate) is_on: bool,
    schema: bool,
    state: bool,
    /// A transaction has begun or ended, or SET TRANSACTION was run.
    transaction: bool,
    /// The letters that the client was told last. Empty if it was told none.
    told: String,
    told_characteristics: bool,
}

/// The words of SET TRANSACTION.
fn level(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

impl Tracker {
    #[inline]
    pub(crate) fn note_transaction(&mut self) {
        self.transaction = true;
    }
}

impl Session {
    /// Sets CLIENT_SESSION_TRACK, a flag of the client.
    pub fn set_tracks_changes(&mut self, on: bool) {
        self.tracker = Tracker { is_on: on, ..Tracker::default() };
        self.variables.note_changes(on);
    }

    /// The default database was set.
    pub(crate) fn note_schema(&mut self) {
        self.tracker.schema = true;
        self.tracker.state = true;
    }

    /// Variables were set, or statements prepared.
    pub(crate) fn note_state(&mut self) {
        self.tracker.state = true;
    }

    /// What has changed since the last call, as far as the session's variables say that the client is told.
    ///
    /// The letters of a transaction's state are those of MySQL: `T` begun by a statement or `I` by the use of
    /// a table, `R` has read, `W` has changed or locked rows, `S` has sent rows, `L` tables are locked. All
    /// tables here are transactional, so that the places for others stay empty.
    pub fn take_changes(&mut self) -> Vec<Change> {
        if !self.tracker.is_on {
            return Vec::new();
        }
        let schema = std::mem::take(&mut self.tracker.schema);
        let state = std::mem::take(&mut self.tracker.state);
        let changed = self.variables.take_changed();
        let info = self.variables.common.transaction_info;
        if !schema && !state && changed.is_empty() && info == TransactionInfo::Off {
            return Vec::new();
        }
        let mut changes = self.tracked(changed);
        let values = self.variables.values();
        if schema && values.boolean("session_track_schema") {
            changes.push(Change::Schema(self.state.database.as_deref().unwrap_or_default().to_owned()));
        }
        if state && values.boolean("session_track_state_change") {
            changes.push(Change::State);
        }
        self.add_transaction(info, &mut changes);
        changes
    }

    fn add_transaction(&mut self, info: TransactionInfo, changes: &mut Vec<Change>) {
        let touched = std::mem::take(&mut self.tracker.transaction);
        if info == TransactionInfo::Off {
            self.tracker.told.clear();
        } else {
            let letters = self.transaction_letters();
            if letters != self.tracker.told {
                self.tracker.told.clone_from(&letters);
                changes.push(Change::TransactionState(letters));
            }
        }
        let tells = info == TransactionInfo::Characteristics;
        let told = std::mem::replace(&mut self.tracker.told_characteristics, tells);
        if tells && (touched || !told) {
            changes.push(Change::TransactionCharacteristics(self.transaction_characteristics()));
        }
    }

    fn transaction_letters(&self) -> String {
        let transaction = &self.state.transaction;
        let did = transaction.did;
        let letter = |on: bool, letter: char| if on { letter } else { '_' };
        let begun = match (transaction.open, transaction.begun_with) {
            (false, _) => '_',
            (true, Some(_)) => 'T',
            (true, None) => 'I',
        };
        let sent = letter(did.send_rows, 'S');
        let locked = letter(self.locked.has_tables(), 'L');
        [begun, '_', letter(did.read, 'R'), '_', letter(did.write, 'W'), '_', sent, locked].iter().collect()
    }

    fn transaction_characteristics(&self) -> String {
        let transaction = &self.state.transaction;
        let access = |read_only: bool| if read_only { "READ ONLY" } else { "READ WRITE" };
        let asked = transaction.begun_with.map_or(transaction.next, |begun| begun.asked);
        let mut statements = Vec::new();
        if let Some(isolation) = asked.isolation {
            statements.push(format!("SET TRANSACTION ISOLATION LEVEL {};", level(isolation)));
        }
        match (transaction.begun_with, asked.read_only) {
            (Some(begun), read_only) => {
                let snapshot = begun.snapshot.then_some("WITH CONSISTENT SNAPSHOT");
                let options: Vec<&str> = snapshot.into_iter().chain(read_only.map(access)).collect();
                let blank = if options.is_empty() { "" } else { " " };
                statements.push(format!("START TRANSACTION{blank}{};", options.join(", ")));
            }
            (None, Some(read_only)) => statements.push(format!("SET TRANSACTION {};", access(read_only))),
            (None, None) => {}
        }
        statements.join(" ")
    }

    /// Those of the variables that are to be tracked.
    fn tracked(&self, mut changed: Vec<Variable>) -> Vec<Change> {
        let wanted = self.variables.values().text("session_track_system_variables");
        if wanted != "*" {
            changed.retain(|variable| wanted.split(',').any(|name| name == variable.definition().name));
        }
        let (globals, live) = (self.instance.globals(), self.live());
        let change = |variable: Variable| {
            let definition = variable.definition();
            let name = definition.name;
            let value = self.variables.read(globals, variables::Asked::Session, variable, name, live).ok()?;
            Some(Change::Variable { name, value: value.show(definition).into_owned() })
        };
        changed.into_iter().filter_map(change).collect()
    }
}

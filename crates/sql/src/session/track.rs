//! What the end of a statement tells the client of changes to its session, if the client wants to know.

use crate::variables::Variable;
use crate::{Change, Session, variables};

/// What has changed since the client was told last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    /// The client wants to know.
    pub(crate) is_on: bool,
    schema: bool,
    state: bool,
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
    pub fn take_changes(&mut self) -> Vec<Change> {
        if !self.tracker.is_on {
            return Vec::new();
        }
        let Tracker { schema, state, .. } =
            std::mem::replace(&mut self.tracker, Tracker { is_on: true, ..Tracker::default() });
        let changed = self.variables.take_changed();
        if !schema && !state && changed.is_empty() {
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
        changes
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

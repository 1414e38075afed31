//! Changes of the session that the client is told of with the next OK packet.

use sql::{Change, Session};
use wire::response::StateChange;

/// As OK packets carry them. Empty for clients that do not want to know.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<u8>);

impl Changes {
    /// Adds what has changed in the session since the last call.
    pub(super) fn add(&mut self, session: &mut Session) {
        self.extend(session.take_changes());
    }

    pub(super) fn extend(&mut self, changes: Vec<Change>) {
        for change in changes {
            let change = match &change {
                Change::Variable { name, value } => {
                    StateChange::Variable { name: name.as_bytes(), value: value.as_bytes() }
                }
                Change::Schema(name) => StateChange::Schema(name.as_bytes()),
                Change::State => StateChange::State,
            };
            change.write(&mut self.0);
        }
    }

    pub(super) fn encoded(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

//! Changes of the session that the client is told of with the next OK packet.

use sql::{Change, Session};
use std::mem::discriminant;
use wire::response::StateChange;

/// As OK packets carry them. Empty for clients that do not want to know.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pending: Vec<Change>,
    encoded: Vec<u8>,
}

impl Changes {
    /// Adds what has changed in the session since the last call.
    pub(super) fn add(&mut self, session: &mut Session) {
        self.extend(session.take_changes());
    }

    pub(super) fn extend(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        for change in changes {
            // Of a transaction, only the last state is told. An EOF packet has no room for those before.
            if matches!(change, Change::TransactionState(_) | Change::TransactionCharacteristics(_)) {
                self.pending.retain(|earlier| discriminant(earlier) != discriminant(&change));
            }
            self.pending.push(change);
        }
        self.encoded.clear();
        self.pending.iter().for_each(|change| encoded(change).write(&mut self.encoded));
    }

    pub(super) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.encoded.clear();
    }
}

fn encoded(change: &Change) -> StateChange<'_> {
    match change {
        Change::Variable { name, value } => {
            StateChange::Variable { name: name.as_bytes(), value: value.as_bytes() }
        }
        Change::Schema(name) => StateChange::Schema(name.as_bytes()),
        Change::State => StateChange::State,
        Change::TransactionState(letters) => StateChange::TransactionState(letters.as_bytes()),
        Change::TransactionCharacteristics(text) => StateChange::TransactionCharacteristics(text.as_bytes()),
    }
}

//! The write transactions that the log has something of, and from where on.

use base::sync::Mutex;
use base::{Lsn, Stamp};
use std::collections::HashMap;

#[derive(Default, Debug)]
pub(crate) struct UnderWay(Mutex<HashMap<u64, Lsn>>);

impl UnderWay {
    /// `from`: at or below the place of the transaction's first record.
    pub fn begin(&self, stamp: Stamp, from: Lsn) {
        self.0.lock().insert(stamp.0, from);
    }

    pub fn end(&self, stamp: Stamp) {
        self.0.lock().remove(&stamp.0);
    }

    /// The first record that a transaction under way may have left.
    pub fn oldest(&self) -> Option<Lsn> {
        self.0.lock().values().copied().min()
    }
}

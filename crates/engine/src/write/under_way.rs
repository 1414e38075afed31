//! The write transactions that the log has something of, and from where on.

use super::core::WriteCore;
use super::undo::Undo;
use crate::Result;
use base::hash::HashMap;
use base::sync::{Arc, Mutex};
use base::{Lsn, Stamp};

base::latch_class!(pub UnderWayLatch, "transactions under way");

#[derive(Default, Debug)]
pub(crate) struct UnderWay(Mutex<HashMap<u64, (Lsn, Arc<Undo>)>, UnderWayLatch>);

impl UnderWay {
    /// `from`: at or below the place of the transaction's first record.
    pub(crate) fn begin(&self, stamp: Stamp, from: Lsn, undo: Arc<Undo>) {
        self.0.lock().insert(stamp.0, (from, undo));
    }

    pub(crate) fn end(&self, stamp: Stamp) {
        self.0.lock().remove(&stamp.0);
    }

    /// The first record that a transaction under way needs.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        self.0.lock().values().map(|(from, _)| *from).min()
    }

    /// Logs again what transactions under way have at and below `below`, where that pays.
    pub(crate) fn log_again(&self, core: &WriteCore, below: Lsn) -> Result<()> {
        let old: Vec<(u64, Arc<Undo>)> = {
            let under_way = self.0.lock();
            let old = under_way.iter().filter(|(_, (from, _))| *from <= below);
            old.map(|(stamp, (_, undo))| (*stamp, undo.clone())).collect()
        };
        for (stamp, undo) in old {
            if let Some(from) = undo.log_again(core)?
                && let Some(entry) = self.0.lock().get_mut(&stamp)
            {
                entry.0 = from;
            }
        }
        Ok(())
    }
}

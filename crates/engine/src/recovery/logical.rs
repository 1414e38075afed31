//! What recovery does besides pages: the transactions' part.

use crate::database::Database;
use crate::{Error, Result};
use base::Lsn;
use std::ops::Range;

/// Gathers the transactions' records while pages are redone, and ends what was unfinished.
#[derive(Default, Debug)]
pub(crate) struct Logical {}

impl Logical {
    /// A record of kind `journal::kind::LOGICAL` or above, in the order of the log. Nothing is open yet.
    pub fn record(&mut self, kind: u8, place: Range<Lsn>, _payload: &[u8]) -> Result<()> {
        Err(Error::Log { why: format!("a record of unknown kind {kind} at {}", place.start) })
    }

    /// All pages are as the log says, the tables are open and the log accepts appends; nobody else uses the database yet.
    /// May be cut short by a crash and is then begun anew, with what it has logged so far among the records.
    pub fn finish(self, _database: &Database) -> Result<()> {
        Ok(())
    }
}

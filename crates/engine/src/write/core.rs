//! What everything that changes rows shares, above what the tables share.

use super::purge::Purge;
use super::rollbacks::Rollbacks;
use super::scratch::{Place, Scratch};
use super::under_way::UnderWay;
use crate::table::Table;
use crate::table::core::Core;
use crate::{Error, Result};
use base::Lsn;
use base::sync::{Arc, Mutex, Weak};
use std::ops::Deref;
use wal::Checkpoint;

base::latch_class!(pub ChangedTablesLatch, "changed tables");

/// The core of a database's tables, and what keeps records in the log besides dirty pages: the transactions
/// under way, and what purge has not come to. Both refer to tables, so a table knows the [`Core`] alone.
#[derive(Debug)]
pub(crate) struct WriteCore {
    core: Arc<Core>,
    pub under_way: UnderWay,
    pub purge: Purge,
    pub rollbacks: Rollbacks,
    /// Where what takes too much memory goes.
    pub scratch: Place,
    /// Tables that were changed since the start, whose numbers each checkpoint saves.
    changed: Mutex<Vec<Weak<Table>>, ChangedTablesLatch>,
}

impl Deref for WriteCore {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl WriteCore {
    pub(crate) fn new(core: Core, scratch: Place) -> WriteCore {
        WriteCore {
            core: Arc::new(core),
            under_way: UnderWay::default(),
            purge: Purge::new(Scratch::new(scratch.clone())),
            rollbacks: Rollbacks::default(),
            scratch,
            changed: Mutex::of_class(Vec::new()),
        }
    }

    /// What the tables share.
    pub(crate) fn tables(&self) -> &Arc<Core> {
        &self.core
    }

    /// To be called before anything is changed, with no latch held: refuses if the database is closed or has
    /// given up writing, and waits if the log is full.
    #[inline]
    pub(crate) fn touch(&self) -> Result<()> {
        self.check_open()?;
        if self.journal.admits() && !self.rollbacks.needs_help() { Ok(()) } else { self.wait_for_log() }
    }

    #[cold]
    fn wait_for_log(&self) -> Result<()> {
        if self.rollbacks.needs_help() {
            self.rollbacks.help(self);
        }
        self.journal.make_admissible(|| self.make_room_in_log())
    }

    /// The first record that something other than a dirty page still needs: the oldest transaction's. Asked
    /// by a checkpoint after it has looked where the log ends.
    pub(crate) fn oldest_needed(&self) -> Option<Lsn> {
        [self.under_way.oldest(), self.purge.oldest_needed()].into_iter().flatten().min()
    }

    /// Takes a checkpoint and gives up what the log does not need any more.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        let _turn = self.checkpointing.lock();
        self.log_again()?;
        // First the log's end, then what of it is needed: what is logged later is behind that end.
        let end = self.journal.position();
        let by_pages = self.caches.oldest_change().unwrap_or(end).min(end);
        let needed = self.oldest_needed().unwrap_or(end).min(by_pages);
        self.purge.save_unlisted(self)?;
        self.save_changed()?;
        self.caches.sync_files()?;
        // After the end: they count all that was logged below it.
        let owner = self.next_ids().to_words(by_pages);
        let log = self.journal.log();
        let before = log.checkpoint().map_or(wal::FIRST_LSN, |checkpoint| checkpoint.needed);
        log.write_checkpoint(Checkpoint { lsn: end, needed: needed.max(before), owner })?;
        log.remove_unneeded()?;
        self.journal.trim_reserve()?;
        self.journal.set_needed(by_pages);
        Ok(())
    }

    /// To be called before the first change of a table is logged: a checkpoint that is to give up the record
    /// finds the table in the list.
    #[inline]
    pub(crate) fn note_changed(&self, table: &Table) {
        if !table.is_changed() {
            self.add_changed(table);
        }
    }

    #[cold]
    fn add_changed(&self, table: &Table) {
        let mut changed = self.changed.lock();
        if !table.is_changed() {
            changed.push(table.weak());
            table.set_changed();
        }
    }

    /// Puts the numbers of changed tables into their headers. After the log's end was looked at: they count
    /// all that was logged below it.
    fn save_changed(&self) -> Result<()> {
        let tables: Vec<Arc<Table>> = {
            let mut changed = self.changed.lock();
            changed.retain(|table| table.strong_count() > 0);
            changed.iter().filter_map(Weak::upgrade).collect()
        };
        for table in tables {
            let mut saved = table.save_numbers();
            while matches!(saved, Err(Error::Full)) && self.journal.give_reserve() {
                saved = table.save_numbers();
            }
            match saved {
                // Dropped meanwhile; or its header is damaged, and a start does not open it.
                Ok(()) | Err(Error::NoSuchTable | Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Logs again at the log's end what would keep too much of it.
    fn log_again(&self) -> Result<()> {
        let old = self.journal.position().0.saturating_sub(self.journal.capacity() / 2);
        if self.oldest_needed().is_some_and(|needed| needed.0 <= old) {
            // In this order: what commits meanwhile is handed from the first to the second.
            self.under_way.log_again(self, Lsn(old))?;
            self.purge.log_again(self, Lsn(old))?;
        }
        Ok(())
    }

    /// Writes pages whose changes are old and takes a checkpoint.
    pub(crate) fn make_room_in_log(&self) -> Result<()> {
        let old = self.journal.position().0.saturating_sub(self.journal.capacity() / 8 * 5);
        if self.journal.needed().0 < old {
            self.caches.write_older_than(Lsn(old))?;
        }
        self.checkpoint()
    }
}

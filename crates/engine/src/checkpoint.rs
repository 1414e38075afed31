//! Checkpoints: what lets recovery begin late and the log stay small.
//!
//! A checkpoint says: what the log has below `needed` is on the device. Nobody waits for it and no page is written for it alone:
//! it looks where the log is, then for the oldest change that is not on the device, syncs the files, and writes that
//! down. What moves it on is the cache's write-back, and when the log grows towards its capacity, pages
//! written because their changes are old.
//!
//! Bounds: pages whose oldest change lies further back than five eighths of the capacity are written. At all of it, statements
//! wait for that before they change a row (`Core::touch`). A transaction whose first record lies further back than half of the
//! capacity, and what purge has not come to since then, are logged again at the log's end; a transaction of more than an
//! eighth of the capacity when the log has four times as much for it. So the log exceeds its capacity by what large
//! transactions need, and by nothing else.

#[cfg(all(test, feature = "shuttle"))]
mod models;

use crate::core::Core;
use crate::database::Database;
use crate::recovery::owner_words;
use crate::tablespace::TableNumbers;
use crate::{Error, Result};
use base::Lsn;
use base::sync::Arc;
use wal::Checkpoint;

impl Core {
    /// Takes a checkpoint and gives up what the log does not need any more.
    pub fn checkpoint(&self) -> Result<()> {
        let _turn = self.checkpointing.lock();
        self.log_again()?;
        // First the log's end, then who needs what of it: what is logged later is behind that end.
        let end = self.journal.position();
        let by_pages = self.caches.oldest_change().unwrap_or(end).min(end);
        let needed = self.oldest_needed().unwrap_or(end).min(by_pages);
        self.caches.sync_files()?;
        // After the end: they count all that was logged below it.
        let owner = owner_words(self.next_ids());
        let log = self.journal.log();
        let before = log.checkpoint().map_or(wal::FIRST_LSN, |checkpoint| checkpoint.needed);
        log.write_checkpoint(Checkpoint { lsn: end, needed: needed.max(before), owner })?;
        log.remove_unneeded()?;
        self.journal.set_needed(by_pages);
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
    pub fn make_room_in_log(&self) -> Result<()> {
        let old = self.journal.position().0.saturating_sub(self.journal.capacity() / 8 * 5);
        if self.journal.needed().0 < old {
            self.caches.write_older_than(Lsn(old))?;
        }
        self.checkpoint()
    }
}

impl Database {
    /// Takes a checkpoint: a start after a crash need not read what the log has of changes that are on the device by now.
    /// The engine does it by itself.
    pub fn checkpoint(&self) -> Result<()> {
        self.save_numbers()?;
        self.core().checkpoint()
    }

    /// Puts the numbers of all tables into their headers.
    pub(crate) fn save_numbers(&self) -> Result<()> {
        let tables: Vec<Arc<crate::Table>> = self.all_tables();
        for table in tables {
            match table.state().space.save(&table.numbers()) {
                // Dropped meanwhile.
                Ok(()) | Err(Error::NoSuchTable) => {}
                Err(error) => return Err(error),
            }
        }
        // Whoever changes definitions may be long about it; after a crash the number is raised anyway.
        if let Some(catalogue) = self.try_catalogue() {
            let numbers = TableNumbers { next_chain: catalogue.next_chain(), ..TableNumbers::default() };
            catalogue.tree().space().save(&numbers)?;
        }
        Ok(())
    }
}

#[cfg(not(feature = "shuttle"))]
pub(crate) use background::Checkpointer;

#[cfg(not(feature = "shuttle"))]
mod background {
    use crate::database::Database;
    use crate::definition::FlushLog;
    use crate::journal::Call;
    use base::sync::{Arc, Weak, thread};
    use std::time::Duration;
    use wal::Durability;

    /// How long what `flush_log_at_trx_commit` does not ask for may wait, and how often an idle log is looked at.
    const TICK: Duration = Duration::from_secs(1);

    /// The thread that takes checkpoints, makes log files ahead and syncs the log once a second.
    #[derive(Debug)]
    pub(crate) struct Checkpointer {
        call: Arc<Call>,
        thread: Option<thread::JoinHandle<()>>,
    }

    impl Checkpointer {
        pub fn start(database: &Arc<Database>) -> Checkpointer {
            let call = database.core().journal.call().clone();
            let database = Arc::downgrade(database);
            let own = call.clone();
            let spawned =
                thread::Builder::new().name("checkpoint".to_owned()).spawn(move || run(&database, &own));
            call.set_served(spawned.is_ok());
            // Without the thread, statements take checkpoints when the log is full.
            Checkpointer { call, thread: spawned.ok() }
        }
    }

    impl Drop for Checkpointer {
        fn drop(&mut self) {
            self.call.stop();
            if let Some(thread) = self.thread.take()
                && thread.thread().id() != thread::current().id()
            {
                // A panic of the thread has been reported by the panic hook; there is nothing to add.
                let _ = thread.join();
            }
        }
    }

    fn run(database: &Weak<Database>, call: &Call) {
        let mut last = base::Lsn(0);
        while call.wait(TICK) {
            let Some(database) = database.upgrade() else { break };
            let core = database.core();
            let journal = &core.journal;
            if core.is_closed() || journal.failure().is_some() {
                call.served();
                continue;
            }
            let position = journal.position();
            // What fails here fails again where somebody waits for it, and is reported there.
            if journal.flush_log() != FlushLog::AtCommit {
                let _ = journal.flush(position, Durability::Synced);
            }
            let _ = journal.prepare();
            let used = position.0.saturating_sub(journal.needed().0);
            let is_idle = position == last && used > 0;
            if used >= journal.capacity() / 8 || is_idle {
                let _ = database.save_numbers().and_then(|()| core.make_room_in_log());
            }
            last = journal.position();
            call.served();
        }
        call.set_served(false);
    }
}

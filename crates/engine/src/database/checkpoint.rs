//! Checkpoints: what lets recovery begin late and the log stay small.
//!
//! A checkpoint says: what the log has below `needed` is on the device. Nobody waits for it and no page is
//! written for it alone: it looks where the log is, then for the oldest change that is not on the device,
//! syncs the files, and writes that down. What moves it on is the cache's write-back, and when the log grows
//! towards its capacity, pages written because their changes are old.
//!
//! Bounds: pages whose oldest change lies further back than five eighths of the capacity are written. At all
//! of it, statements wait for that before they change a row (`WriteCore::touch`). A transaction whose first
//! record lies further back than half of the capacity, and what purge has not come to since then, are logged
//! again at the log's end; a transaction of more than an eighth of the capacity when the log has four times
//! as much for it. So the log exceeds its capacity by what large transactions need, and by nothing else.

use super::{Database, Definitions};
use crate::format::file_header::TableNumbers;
use crate::table::Table;
use crate::{Error, Result};
use base::sync::Arc;

impl Database {
    /// Takes a checkpoint: a start after a crash need not read what the log has of changes that are on the
    /// device by now. The engine does it by itself.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::ReadOnly`] if pages or the log cannot be written; [`Error::Closed`].
    pub fn checkpoint(&self) -> Result<()> {
        self.save_numbers()?;
        self.core().checkpoint()
    }

    /// As [`Definitions::save_numbers`].
    pub(crate) fn save_numbers(&self) -> Result<()> {
        self.definitions.save_numbers()
    }
}

impl Definitions {
    /// Puts the numbers of all tables into their headers, and ends the doubt about files in which no
    /// operation of more than one record is under way: a start after a crash need not walk through them.
    pub(super) fn save_numbers(&self) -> Result<()> {
        let tables: Vec<Arc<Table>> = self.all_tables();
        for table in tables {
            let space = &table.state().space;
            match table.save_numbers().and_then(|()| space.end_doubt_if_idle()) {
                // Dropped meanwhile; or its header is damaged, which keeps its numbers old, and must not keep
                // the log of all the others.
                Ok(()) | Err(Error::NoSuchTable | Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // A change of definitions may take long. Without this number nothing is lost: a start after a crash
        // raises it.
        if let Some(catalogue) = self.catalogue.try_lock() {
            let numbers = TableNumbers { next_chain: catalogue.next_chain(), ..TableNumbers::default() };
            catalogue.tree().space().save(&numbers)?;
            catalogue.tree().space().end_doubt_if_idle()?;
        }
        Ok(())
    }
}

#[cfg(not(feature = "shuttle"))]
pub(crate) use background::Checkpointer;

#[cfg(not(feature = "shuttle"))]
mod background {
    use crate::database::Definitions;
    use crate::definition::FlushLog;
    use crate::journal::Call;
    use base::sync::{Arc, thread};
    use std::time::Duration;
    use wal::Durability;

    /// How long what `flush_log_at_trx_commit` does not ask for may wait, and how often an idle log is looked
    /// at.
    const TICK: Duration = Duration::from_secs(1);

    /// The thread that takes checkpoints, makes log files ahead and syncs the log once a second.
    #[derive(Debug)]
    pub(crate) struct Checkpointer {
        call: Arc<Call>,
        thread: Option<thread::JoinHandle<()>>,
    }

    impl Checkpointer {
        pub(in crate::database) fn start(definitions: &Arc<Definitions>) -> Checkpointer {
            let call = definitions.core.journal.call().clone();
            let (definitions, own) = (definitions.clone(), call.clone());
            let spawned =
                thread::Builder::new().name("checkpoint".to_owned()).spawn(move || run(&definitions, &own));
            call.set_served(spawned.is_ok());
            // Without the thread, statements take checkpoints when the log is full.
            Checkpointer { call, thread: spawned.ok() }
        }
    }

    impl Drop for Checkpointer {
        fn drop(&mut self) {
            self.call.stop();
            if let Some(thread) = self.thread.take() {
                // A panic of the thread has been reported by the panic hook; there is nothing to add.
                let _ = thread.join();
            }
        }
    }

    fn run(definitions: &Definitions, call: &Call) {
        let mut last = base::Lsn(0);
        let core = &definitions.core;
        while call.wait(TICK) {
            let journal = &core.journal;
            if core.is_closed() || journal.failure().is_some() {
                call.served();
                continue;
            }
            let position = journal.position();
            // An error is not lost: the next commit that waits for the log meets it and reports it.
            if journal.flush_log() != FlushLog::AtCommit {
                let _ = journal.flush(position, Durability::Synced);
            }
            let _ = journal.prepare();
            let used = position.0.saturating_sub(journal.needed().0);
            let is_idle = position == last && used > 0;
            if used >= journal.capacity() / 8 || is_idle {
                let _ = definitions.save_numbers().and_then(|()| core.make_room_in_log());
            }
            last = journal.position();
            call.served();
        }
        call.set_served(false);
    }
}

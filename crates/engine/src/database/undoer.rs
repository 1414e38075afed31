//! The thread that takes transactions back behind clients: see `write::rollbacks`.

use super::Definitions;
use crate::Result;
use crate::write::core::WriteCore;
use crate::write::rollbacks::Progress;
use base::sync::{Arc, thread};
use std::time::Duration;

/// How often a full disk is looked at.
const PAUSE_FULL: Duration = Duration::from_millis(200);
/// How long the thread keeps away from the gate of statements while somebody closes it.
const PAUSE_CLOSED: Duration = Duration::from_millis(10);

/// The thread.
#[derive(Debug)]
pub(super) struct Undoer {
    core: Arc<WriteCore>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Undoer {
    pub(super) fn start(definitions: &Arc<Definitions>) -> Undoer {
        let (core, definitions) = (definitions.core.clone(), definitions.clone());
        let spawned = thread::Builder::new().name("rollback".to_owned()).spawn(move || run(&definitions));
        // Without the thread, statements do its work.
        core.rollbacks.set_served(spawned.is_ok());
        Undoer { core, thread: spawned.ok() }
    }
}

impl Drop for Undoer {
    fn drop(&mut self) {
        self.core.rollbacks.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by the panic hook; there is nothing to add.
            let _ = thread.join();
        }
    }
}

fn run(definitions: &Definitions) {
    let core = &definitions.core;
    while core.rollbacks.wait() {
        let pause = match take_back(core) {
            Some(Progress::Some) => continue,
            Some(Progress::Damaged(table, error)) => {
                if definitions.close_damaged(&table, error).is_err() {
                    return;
                }
                continue;
            }
            Some(Progress::Full | Progress::Nothing) => PAUSE_FULL,
            // The next start goes on.
            Some(Progress::Failed) => return,
            None if core.is_closed() => return,
            None => PAUSE_CLOSED,
        };
        if !core.rollbacks.pause(pause) {
            return;
        }
    }
}

/// Does some of the work; nothing while the gate of statements is closed.
fn take_back(core: &WriteCore) -> Option<Progress> {
    let _passage = core.statements.try_pass()?;
    match core.check_open() {
        Ok(()) => Some(core.rollbacks.go_on(core)),
        Err(_) if core.is_closed() => None,
        Err(_) => Some(Progress::Failed),
    }
}

impl Definitions {
    /// Closes a table with a page that cannot be read: its rows cannot be taken back. Nobody reads it
    /// meanwhile.
    fn close_damaged(&self, table: &Arc<crate::table::Table>, error: crate::Error) -> Result<()> {
        let _catalogue = self.catalogue.lock();
        let _closure = table.gate.close();
        self.close_table(table, error)
    }
}

//! Memory that is reused from statement to statement, so that not every statement has to allocate.

use super::Session;
use super::plans::SessionPlans;
use crate::exec::Scratch;
use crate::spill::Workspace;
use crate::text::Scan;
use types::ValueRef;

/// A session's scanner and plans. A statement takes them out of the session while it runs. So it can borrow
/// its plan and also change the session.
#[derive(Debug, Default)]
pub(crate) struct StatementCache {
    pub(crate) scan: Scan,
    pub(crate) plans: SessionPlans,
    /// The prefix of the keys of plans. It is written anew for each statement.
    pub(crate) prefix: Vec<u8>,
}

/// Working memory for the statement that runs on a core, of any session: for keys, rows and values.
#[derive(Debug, Default)]
pub(crate) struct WorkingMemory {
    pub(crate) values: Vec<ValueRef<'static>>,
    pub(crate) scratch: Vec<Scratch>,
}

/// Working memory larger than this, in bytes, is returned to the allocator after the statement that needed
/// it.
const WORKING_BYTES_MAX: usize = 4 << 20;

impl Session {
    /// Where the session's statements keep rows.
    #[inline]
    pub(crate) fn workspace(&self) -> Workspace<'_> {
        Workspace {
            limits: &self.variables.common.memory,
            account: &self.memory,
            interrupt: &self.interrupt,
            counters: &self.counters,
            database: &self.instance.database,
            globals: &self.instance.globals,
        }
    }

    pub(crate) fn take_working_memory(&self) -> WorkingMemory {
        self.instance.working_memory.take().unwrap_or_default()
    }

    pub(crate) fn keep_working_memory(&self, memory: WorkingMemory) {
        let bytes: usize = memory.scratch.iter().map(Scratch::capacity).sum();
        if bytes + memory.values.capacity() * size_of::<ValueRef<'_>>() <= WORKING_BYTES_MAX {
            self.instance.working_memory.put(memory);
        }
    }
}

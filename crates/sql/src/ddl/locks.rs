//! Keeps changes of rows out while a table's definition changes by copying, and the other way round.
//!
//! Not LOCK TABLES: these are held for one statement. Readers take nothing; they see the old table until the
//! new one has its name.

use base::TableId;
use base::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

const STRIPES: usize = 64;

/// One lock for every 64th table.
#[derive(Debug)]
pub struct TableLocks {
    stripes: [RwLock<()>; STRIPES],
}

impl Default for TableLocks {
    fn default() -> TableLocks {
        TableLocks { stripes: std::array::from_fn(|_| RwLock::new(())) }
    }
}

impl TableLocks {
    fn stripe(&self, table: TableId) -> &RwLock<()> {
        &self.stripes[table.0 as usize % STRIPES]
    }

    /// Held by a statement that changes rows. Whoever gets it looks at `Table::version` once more.
    pub fn change_rows(&self, table: TableId) -> RwLockReadGuard<'_, ()> {
        self.stripe(table).read()
    }

    /// Held by a statement that replaces or drops the table. One at a time, so that no order is needed.
    pub fn change_definition(&self, table: TableId) -> RwLockWriteGuard<'_, ()> {
        self.stripe(table).write()
    }
}

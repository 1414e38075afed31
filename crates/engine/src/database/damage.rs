//! Tables that a start cannot open, because a page of theirs is damaged or their file is not there. Each is
//! closed by itself: it keeps its name and its file, a statement that uses it is told what is wrong, and it
//! can be dropped. Everything else serves.

use super::catalogue::Catalogue;
use super::{Database, Definitions};
use crate::names::{path_of, table_path};
use crate::table::Table;
use crate::table::state::TableState;
use crate::{Error, Result};
use base::sync::Arc;
use base::{FileId, TableId};
use pagecache::Detach;
use std::io::ErrorKind;
use std::path::Path;

/// A table that is closed until it is dropped, or a start finds its file whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DamagedTable {
    pub database: String,
    pub name: String,
    /// The file, the page and what is wrong with it.
    pub why: String,
}

/// What is wrong with a closed table.
#[derive(Clone, Debug)]
pub(super) struct Damage {
    id: TableId,
    file: FileId,
    page: u32,
    lsn: u64,
    why: String,
}

impl Damage {
    /// The damage that an error tells of. Any other error is given back: it may have gone at the next start,
    /// which then finds the log that the table needs.
    pub(super) fn of(id: TableId, file: FileId, error: Error) -> Result<Damage> {
        match error {
            Error::Corrupt { page, lsn, why, .. } => Ok(Damage { id, file, page, lsn, why }),
            Error::Io(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => {
                Ok(Damage { id, file, page: 0, lsn: 0, why: error.to_string() })
            }
            error => Err(error),
        }
    }

    pub(super) fn file(&self) -> FileId {
        self.file
    }

    pub(super) fn error(&self, dir: &Path) -> Error {
        let Damage { page, lsn, why, .. } = self.clone();
        Error::Corrupt { path: path_of(dir, self.file), page, lsn, why }
    }
}

impl Database {
    /// The tables that could not be opened, sorted by name. [`Database::table`] fails for them with
    /// [`Error::Corrupt`]; [`Database::drop_table`] drops them.
    pub fn damaged_tables(&self) -> Vec<DamagedTable> {
        let names = self.definitions.names.read();
        let all = names.databases.iter().flat_map(|(database, names)| {
            names.damaged.iter().map(|(name, damage)| DamagedTable {
                database: database.clone(),
                name: name.clone(),
                why: damage.error(&self.dir).to_string(),
            })
        });
        all.collect()
    }

    /// Drops a damaged table. False if there is none of this name.
    pub(super) fn drop_damaged(&self, catalogue: &mut Catalogue, database: &str, name: &str) -> Result<bool> {
        let found =
            self.definitions.names.read().databases.get(database).and_then(|d| d.damaged.get(name).cloned());
        let Some(damage) = found else { return Ok(false) };
        catalogue.remove_table(damage.id)?;
        if let Some(database) = self.definitions.names.write().databases.get_mut(database) {
            database.damaged.remove(name);
        }
        self.remove_path(&table_path(&self.dir, damage.file));
        Ok(true)
    }

    /// Forgets the damaged tables of a database that is being dropped.
    pub(super) fn drop_all_damaged(&self, catalogue: &mut Catalogue, damaged: Vec<Damage>) {
        for damage in damaged {
            catalogue.remove_gone_table(damage.id);
            self.remove_path(&table_path(&self.dir, damage.file));
        }
    }
}

impl Definitions {
    /// Closes an open table that recovery cannot bring to where it should be. Nobody else has it yet.
    pub(super) fn close_table(&self, table: &Arc<Table>, error: Error) -> Result<()> {
        let state = table.state().clone();
        let damage = Damage::of(table.id(), state.space.file_id(), error)?;
        // Its other pages go to the device: a repair needs their newest state.
        state.space.close(Detach::Flush)?;
        table.set_state(TableState { dropped: true, ..state.clone() });
        let mut names = self.names.write();
        if let Some(database) = names.databases.get_mut(&state.def.database) {
            database.tables.remove(&state.def.name);
            database.damaged.insert(state.def.name.clone(), damage);
        }
        Ok(())
    }
}

//! A table as statements that change rows need it. It is reused from statement to statement.

use super::relations::{Family, FamilyView};
use crate::definition::defaults::{Clock, column_default};
use crate::definition::metadata::TableMetadata;
use crate::locks::Mode;
use crate::locks::Used;
use crate::names;
use crate::plan::checks::Checks;
use crate::plan::computed::Computed;
use crate::{Instance, Session, SqlError};
use engine::{Table, TableDef};
use std::sync::Arc;
use types::{ColumnType, Value};

/// A table, with what the SQL layer needs of it.
#[derive(Debug)]
pub(crate) struct Target {
    pub table: Arc<Table>,
    pub def: Arc<TableDef>,
    pub metadata: TableMetadata,
    pub auto_increment: Option<AutoIncrement>,
    checks: Option<Checks>,
    pub computed: Option<Computed>,
    /// The tables around it, by FOREIGN KEY.
    relatives: FamilyView,
    /// `Table::version` when this was made. If the table has another version, this is stale.
    version: u64,
}

/// The AUTO_INCREMENT column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AutoIncrement {
    pub column: usize,
    /// Its offset in every row image, and its size, in bytes.
    pub offset: usize,
    pub bytes: usize,
    /// The largest number that it can hold.
    pub max: u64,
}

impl Target {
    pub(crate) fn new(instance: &Instance, table: Arc<Table>) -> Result<Target, SqlError> {
        let version = table.version();
        let def = table.def();
        let metadata = TableMetadata::of(&def)?;
        let auto_increment = def.auto_increment.and_then(|column| {
            let ColumnType::Int { bytes, unsigned } = def.columns[column].column_type else { return None };
            let bits = u32::from(bytes) * 8 - u32::from(!unsigned);
            let integer = table.row_codec().integer_place(column)?;
            let (offset, bytes) = (integer.offset, usize::from(integer.bytes));
            Some(AutoIncrement { column, offset, bytes, max: u64::MAX >> (64 - bits) })
        });
        let relatives = FamilyView::new(&instance.relations, &instance.database, &table);
        let checks = Checks::of(&def, &metadata)?;
        let computed = Computed::of(&def, &metadata)?;
        Ok(Target { table, def, metadata, auto_increment, checks, computed, relatives, version })
    }

    /// As a table that a statement changes under the table's own name.
    pub(crate) fn used(&self) -> Used<'_> {
        Used { table: &self.table, alias: &self.def.name, mode: Mode::Write }
    }

    pub(crate) fn is_current(&self) -> bool {
        self.table.version() == self.version && self.relatives.is_current()
    }

    /// The conditions that rows have to meet. `None` if there are none, or if the session does not check
    /// them.
    pub(crate) fn checks(&self, session: &Session) -> Option<&Checks> {
        self.checks.as_ref().filter(|_| session.variables.common.check_constraint_checks)
    }

    /// The tables that a session looks at, or changes, when it changes rows of this one. `None` if there is
    /// no FOREIGN KEY, or if the session does not check them.
    pub(crate) fn family(&self, session: &Session) -> Option<&Arc<Family>> {
        self.relatives.family().filter(|_| session.variables.common.foreign_key_checks)
    }

    /// The values of columns that a statement leaves out. `None` for a column that cannot be left out.
    pub(crate) fn defaults(&self, clock: &Clock) -> Vec<Option<Value>> {
        self.def
            .columns
            .iter()
            .zip(&self.metadata.columns)
            .map(|(column, extras)| column_default(column, extras, clock))
            .collect()
    }

    pub(crate) fn is_generated(&self, column: usize) -> bool {
        self.metadata.columns[column].generated.is_some()
    }

    /// The columns that a statement without a list of columns means.
    pub(crate) fn visible(&self) -> Vec<usize> {
        (0..self.def.columns.len()).filter(|column| !self.metadata.columns[*column].invisible).collect()
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.def.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// The targets that a session used last.
#[derive(Default, Debug)]
pub(crate) struct Targets(Vec<(String, String, Arc<Target>)>);

impl Targets {
    /// If more tables than this are used in turn, the oldest is looked up again.
    const KEPT_MAX: usize = 64;
}

impl Session {
    /// A table to be changed. Without `database`, it is in the session's database.
    ///
    /// # Errors
    /// 1046, 1049, 1146, and 1044 for tables that are computed.
    pub(crate) fn target(&mut self, database: Option<&str>, name: &str) -> Result<Arc<Target>, SqlError> {
        let database = match database.or(self.state.database.as_deref()) {
            Some(database) => database,
            None => return Err(SqlError::no_database()),
        };
        let found = self
            .targets
            .0
            .iter()
            .position(|(kept_database, kept_name, _)| kept_name == name && kept_database == database);
        if let Some(position) = found {
            let target = &self.targets.0[position].2;
            if target.is_current() {
                return Ok(target.clone());
            }
            self.targets.0.remove(position);
        }
        if let Some(computed) = names::virtual_database(database) {
            return Err(self.access.database_denied(computed));
        }
        let database = database.to_owned();
        let table = self.table_to_use(&database, name)?;
        let target = Arc::new(Target::new(&self.instance, table)?);
        if self.targets.0.len() >= Targets::KEPT_MAX {
            self.targets.0.remove(0);
        }
        self.targets.0.push((database, name.to_owned(), target.clone()));
        Ok(target)
    }
}

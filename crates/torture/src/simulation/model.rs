//! What there should be: databases, tables, rows.

use base::sync::Arc;
use engine::TableDef;
use std::collections::{BTreeMap, BTreeSet};

/// A row, by what does not follow from the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) id: i32,
    pub(super) k: i32,
    pub(super) u: Option<i32>,
    pub(super) c: Vec<u8>,
}

pub(super) type Rows = BTreeMap<i32, Arc<Row>>;

/// What a transaction has changed so far: by table and row, what the row is now.
pub(super) type Changes = BTreeMap<(Identity, i32), Option<Arc<Row>>>;

/// Of a table, until its rows are given another file: a snapshot that is older than it cannot read it.
pub(super) type Identity = u64;

/// Database and table.
pub(super) type Name = (String, String);

#[derive(Clone, Debug)]
pub(super) struct TableState {
    pub(super) identity: Identity,
    pub(super) def: Arc<TableDef>,
    pub(super) rows: Rows,
    /// Another one whenever an index is built or dropped: a snapshot cannot read a tree that is younger.
    pub(super) generation: u64,
}

impl TableState {
    /// Whether no two rows may have the same `u`.
    pub(super) fn has_unique(&self) -> bool {
        self.def.indexes.iter().any(|index| index.unique)
    }
}

/// Everything that has been committed at a moment.
#[derive(Clone, Default, Debug)]
pub(super) struct State {
    pub(super) databases: BTreeSet<String>,
    pub(super) tables: BTreeMap<Name, Arc<TableState>>,
}

impl State {
    pub(super) fn by_identity(&self, identity: Identity) -> Option<&Arc<TableState>> {
        self.tables.values().find(|table| table.identity == identity)
    }

    pub(super) fn table_mut(&mut self, name: &Name) -> &mut TableState {
        Arc::make_mut(self.tables.get_mut(name).expect("a table that is there"))
    }

    /// The state after a commit of `changes`.
    pub(super) fn with(&self, changes: &Changes) -> State {
        let mut state = self.clone();
        for ((identity, id), row) in changes {
            let table = state.tables.values_mut().find(|table| table.identity == *identity);
            put(&mut Arc::make_mut(table.expect("a table whose rows were changed")).rows, *id, row);
        }
        state
    }
}

/// The rows of a table as one sees them who has made `changes`.
pub(super) fn seen(table: &TableState, changes: &Changes) -> Rows {
    let mut rows = table.rows.clone();
    for ((_, id), row) in changes.range((table.identity, i32::MIN)..=(table.identity, i32::MAX)) {
        put(&mut rows, *id, row);
    }
    rows
}

fn put(rows: &mut Rows, id: i32, row: &Option<Arc<Row>>) {
    match row {
        Some(row) => rows.insert(id, row.clone()),
        None => rows.remove(&id),
    };
}

//! Which tables refer to which by FOREIGN KEY, and what a statement needs of the tables around its own.
//!
//! Only the table that refers keeps a constraint. The tables that refer to another one are found by looking
//! at all tables, once after each change of a definition that has to do with constraints. Such a change
//! counts up `Relations::version`, and every plan that was made before is stale.
//!
//! A session that makes a constraint has locked the definitions of both tables. So no statement that was
//! planned before it changes rows of the parent after it.

use crate::SqlError;
use crate::definition::foreign_key::{ForeignKey, ReferentialAction};
use crate::definition::metadata::TableMetadata;
use crate::locks::{Mode, Used};
use base::IndexId;
use base::sync::Mutex;
use engine::{Database, Table, TableDef};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use types::KeyPart;

/// A table's database and name.
pub(crate) type TableName = (String, String);

/// The constraints of all tables.
#[derive(Debug, Default)]
pub(crate) struct Constraints {
    /// By parent: the tables that refer to it, and how.
    children: HashMap<TableName, Vec<(TableName, Arc<ForeignKey>)>>,
    /// By the table that has them.
    own: HashMap<TableName, Vec<Arc<ForeignKey>>>,
}

impl Constraints {
    /// Reads the definitions of all tables. What is damaged, or dropped meanwhile, has no constraints.
    fn read(database: &Database) -> Constraints {
        let mut constraints = Constraints::default();
        for (name, _) in database.databases() {
            for table in database.tables(&name).unwrap_or_default() {
                let def = table.def();
                let Ok(metadata) = TableMetadata::of(&def) else { continue };
                let child = (def.database.clone(), def.name.clone());
                for key in metadata.foreign_keys {
                    let key = Arc::new(key);
                    let parent = (key.parent_database.clone(), key.parent_table.clone());
                    constraints.children.entry(parent).or_default().push((child.clone(), key.clone()));
                    constraints.own.entry(child.clone()).or_default().push(key);
                }
            }
        }
        constraints
    }

    /// The constraints that refer to a table, with the tables that have them.
    pub(crate) fn children(&self, table: &TableName) -> &[(TableName, Arc<ForeignKey>)] {
        self.children.get(table).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn own(&self, table: &TableName) -> &[Arc<ForeignKey>] {
        self.own.get(table).map_or(&[], Vec::as_slice)
    }

    /// True if a constraint of the database has this name.
    pub(crate) fn has_name(&self, database: &str, name: &str) -> bool {
        self.own.iter().any(|((other, _), keys)| {
            other == database && keys.iter().any(|key| key.name.eq_ignore_ascii_case(name))
        })
    }
}

/// Knows the constraints of all tables.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    /// Counts the changes. A plan remembers it.
    version: AtomicU64,
    /// `None` after a change, until somebody asks.
    known: Mutex<Option<Arc<Constraints>>>,
}

impl Relations {
    pub(crate) fn constraints(&self, database: &Database) -> Arc<Constraints> {
        let mut known = self.known.lock();
        known.get_or_insert_with(|| Arc::new(Constraints::read(database))).clone()
    }

    fn version(&self) -> u64 {
        // ORDER: a change is counted while its tables' definitions are locked, and a statement looks at the
        // number when it has locked its tables.
        self.version.load(Ordering::Acquire)
    }

    /// To be called after the definition of a table with this name was made, changed or dropped; `has_keys`:
    /// it has constraints now.
    pub(crate) fn note_change(&self, table: &TableName, has_keys: bool) {
        let mut known = self.known.lock();
        let concerns = known
            .as_ref()
            .is_none_or(|known| known.own.contains_key(table) || known.children.contains_key(table));
        if has_keys || concerns {
            *known = None;
            self.version.fetch_add(1, Ordering::Release);
        }
    }
}

/// The positions of named columns. `None` if one is missing.
pub(crate) fn column_positions(def: &TableDef, names: &[String]) -> Option<Vec<usize>> {
    let position =
        |name: &String| def.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
    names.iter().map(position).collect()
}

/// An index that begins with these columns, in this order, whole.
pub(crate) fn index_over(def: &TableDef, columns: &[usize]) -> Option<IndexId> {
    let begins = |parts: &[KeyPart]| {
        parts.len() >= columns.len()
            && parts
                .iter()
                .zip(columns)
                .all(|(part, column)| part.column == *column && part.prefix_chars.is_none())
    };
    if def.primary.as_deref().is_some_and(begins) {
        return Some(IndexId(0));
    }
    let position = def.indexes.iter().position(|index| begins(&index.parts))?;
    Some(IndexId(position as u16 + 1))
}

/// A table of a family.
#[derive(Debug)]
pub(crate) struct Member {
    pub table: Arc<Table>,
    pub def: Arc<TableDef>,
    /// True if rows of it may be changed.
    changes: bool,
    version: u64,
}

/// A constraint between two tables of a family.
#[derive(Debug)]
pub(crate) struct Link {
    pub child: usize,
    pub child_columns: Vec<usize>,
    /// `None` if an index is missing: then all rows are read.
    pub child_index: Option<IndexId>,
    /// `None` if there is no such table, or if it lacks the columns: no row can be found there.
    pub parent: Option<Parent>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
    /// How messages name the constraint.
    pub text: String,
}

#[derive(Debug)]
pub(crate) struct Parent {
    pub member: usize,
    pub columns: Vec<usize>,
    pub index: Option<IndexId>,
}

/// A table that has constraints or is referred to, the first member, with the tables whose rows a change of
/// it may have to look at or to change.
#[derive(Debug)]
pub(crate) struct Family {
    pub members: Vec<Member>,
    pub links: Vec<Link>,
}

impl Family {
    /// The family of a table. `None` if constraints do not concern it.
    ///
    /// # Errors
    /// 1105 for a damaged catalogue, and those of tables that cannot be used.
    fn of(database: &Database, constraints: &Constraints, table: &Arc<Table>) -> Option<Family> {
        let name = name_of(&table.def());
        if constraints.own(&name).is_empty() && constraints.children(&name).is_empty() {
            return None;
        }
        let mut family = Family { members: Vec::new(), links: Vec::new() };
        family.add(table.clone(), true);
        let mut next = 0;
        // Tables come behind as they are found to be changed.
        let mut queue = vec![0];
        while let Some(member) = queue.get(next).copied() {
            next += 1;
            let name = name_of(&family.members[member].def);
            for key in constraints.own(&name) {
                let parent = database.table(&key.parent_database, &key.parent_table).ok();
                let parent = parent.map(|parent| family.add(parent, false));
                family.link(member, parent, key);
            }
            for (child, key) in constraints.children(&name) {
                let Ok(child) = database.table(&child.0, &child.1) else { continue };
                let changes = key.on_delete.changes_rows() || key.on_update.changes_rows();
                let child = family.add(child, changes);
                family.link(child, Some(member), key);
                if changes && !queue.contains(&child) {
                    queue.push(child);
                }
            }
        }
        Some(family)
    }

    fn add(&mut self, table: Arc<Table>, changes: bool) -> usize {
        if let Some(position) = self.members.iter().position(|member| member.table.id() == table.id()) {
            self.members[position].changes |= changes;
            return position;
        }
        let version = table.version();
        let def = table.def();
        self.members.push(Member { table, def, changes, version });
        self.members.len() - 1
    }

    fn link(&mut self, child: usize, parent: Option<usize>, key: &ForeignKey) {
        let child_def = &self.members[child].def;
        let text = key.shown((&child_def.database, &child_def.name), &child_def.database);
        let Some(child_columns) = column_positions(child_def, &key.columns) else { return };
        if self.links.iter().any(|link| link.child == child && link.text == text) {
            return;
        }
        let child_index = index_over(child_def, &child_columns);
        let parent = parent.and_then(|member| {
            let def = &self.members[member].def;
            let columns = column_positions(def, &key.parent_columns)?;
            let index = index_over(def, &columns);
            Some(Parent { member, columns, index })
        });
        let (on_delete, on_update) = (key.on_delete, key.on_update);
        self.links.push(Link { child, child_columns, child_index, parent, on_delete, on_update, text });
    }

    /// The tables beside the first, as a statement uses them.
    pub(crate) fn used(&self) -> impl Iterator<Item = Used<'_>> {
        self.members.iter().skip(1).map(|member| Used {
            table: &member.table,
            alias: &member.def.name,
            mode: if member.changes { Mode::Write } else { Mode::Read },
        })
    }

    fn is_current(&self) -> bool {
        self.members.iter().all(|member| member.table.version() == member.version)
    }
}

pub(crate) fn name_of(def: &TableDef) -> TableName {
    (def.database.clone(), def.name.clone())
}

/// The family of a table as it was at one moment.
#[derive(Debug)]
pub(crate) struct FamilyView {
    relations: Arc<Relations>,
    version: u64,
    family: Option<Arc<Family>>,
}

impl FamilyView {
    pub(crate) fn new(relations: &Arc<Relations>, database: &Database, table: &Arc<Table>) -> FamilyView {
        let version = relations.version();
        let constraints = relations.constraints(database);
        let family = Family::of(database, &constraints, table).map(Arc::new);
        FamilyView { relations: relations.clone(), version, family }
    }

    pub(crate) fn family(&self) -> Option<&Arc<Family>> {
        self.family.as_ref()
    }

    pub(crate) fn is_current(&self) -> bool {
        self.relations.version() == self.version
            && self.family.as_ref().is_none_or(|family| family.is_current())
    }
}

/// The error of a change that a constraint forbids.
pub(crate) fn refused(kind: crate::ErrorKind, what: &str, constraint: &str) -> SqlError {
    SqlError::new(kind, format!("Cannot {what} row: a foreign key constraint fails ({constraint})"))
}

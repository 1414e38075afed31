//! Changes of definitions. Before them the transactions end that would have to be waited for.

use super::model::{Identity, Name, Rows, State, TableState};
use super::schema::{INDEXES, image, index, random_definition};
use super::world::{Outcome, World, Wrong};
use base::sync::Arc;
use engine::{Building, Error, KeyList};
use std::collections::BTreeMap;

/// Tables there are at most.
const TABLES: usize = 4;

impl World {
    /// Changes a definition.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn define(&mut self) -> Result<Outcome, Wrong> {
        if self.has_ghosts {
            return Ok(Outcome::Same);
        }
        let few = self.committed.tables.len() < TABLES;
        match self.random.below(16) {
            0 => self.drop_database(),
            1..=3 if few => self.create_table(),
            1 => self.create_database(),
            2..=4 => self.drop_table(),
            5..=6 => self.truncate(),
            7..=8 => self.rename(),
            9..=10 => self.create_index(),
            11..=12 => self.drop_index(),
            _ => self.alter(),
        }
    }

    /// What a change of definition came to that was to lead to `after`.
    fn defined(&self, what: &str, result: engine::Result<()>, after: State) -> Result<Outcome, Wrong> {
        match result {
            Ok(()) => Ok(Outcome::Committed(after)),
            Err(error) => self.unexpected(what, error, after),
        }
    }

    /// Ends the transactions that have to do with a table.
    fn clear(&mut self, identity: Identity) -> Result<Outcome, Wrong> {
        self.end_clients(|client| client.touched.contains(&identity))
    }

    fn create_database(&mut self) -> Result<Outcome, Wrong> {
        let name = ["d", "e"][self.random.index(2)].to_string();
        let result = self.database.create_database(&name, b"");
        self.tell(format!("CREATE DATABASE {name}"));
        let mut after = self.committed.clone();
        if !after.databases.insert(name) && matches!(result, Err(Error::DatabaseExists)) {
            return Ok(Outcome::Same);
        }
        self.defined("CREATE DATABASE", result, after)
    }

    fn drop_database(&mut self) -> Result<Outcome, Wrong> {
        if self.committed.databases.len() < 2 {
            return self.create_database();
        }
        let at = self.random.index(self.committed.databases.len());
        let Some(name) = self.committed.databases.iter().nth(at).cloned() else { return Ok(Outcome::Same) };
        if let failed @ Outcome::Failed(..) = self.end_clients(|client| !client.touched.is_empty())? {
            return Ok(failed);
        }
        self.tell(format!("DROP DATABASE {name}"));
        let mut after = self.committed.clone();
        after.databases.remove(&name);
        after.tables.retain(|(database, _), _| *database != name);
        self.defined("DROP DATABASE", self.database.drop_database(&name), after)
    }

    fn free_name(&mut self) -> Option<Name> {
        let at = self.random.index(self.committed.databases.len().max(1));
        let database = self.committed.databases.iter().nth(at)?.clone();
        let name = (database, format!("t{}", self.random.below(9)));
        (!self.committed.tables.contains_key(&name)).then_some(name)
    }

    fn create_table(&mut self) -> Result<Outcome, Wrong> {
        let Some(name) = self.free_name() else { return self.create_database() };
        let def = random_definition(&mut self.random, &name);
        self.tell(format!("CREATE TABLE {name:?}: {:?}, {} indexes", def.primary, def.indexes.len()));
        let result = self.database.create_table(def.clone()).map(drop);
        let mut after = self.committed.clone();
        let identity = self.take_identity();
        let table = TableState { identity, def: Arc::new(def), rows: Rows::new(), generation: identity };
        after.tables.insert(name, Arc::new(table));
        self.defined("CREATE TABLE", result, after)
    }

    fn drop_table(&mut self) -> Result<Outcome, Wrong> {
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        if let failed @ Outcome::Failed(..) = self.clear(table.identity)? {
            return Ok(failed);
        }
        self.tell(format!("DROP TABLE {name:?}"));
        let mut after = self.committed.clone();
        after.tables.remove(&name);
        self.defined("DROP TABLE", self.database.drop_table(&name.0, &name.1), after)
    }

    fn truncate(&mut self) -> Result<Outcome, Wrong> {
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        if let failed @ Outcome::Failed(..) = self.clear(table.identity)? {
            return Ok(failed);
        }
        self.tell(format!("TRUNCATE {name:?}"));
        let opened = self.open_table(&name)?;
        let identity = self.take_identity();
        let mut after = self.committed.clone();
        let table = after.table_mut(&name);
        (table.identity, table.rows) = (identity, Rows::new());
        self.defined("TRUNCATE", self.database.truncate(&opened), after)
    }

    fn rename(&mut self) -> Result<Outcome, Wrong> {
        let (Some((from, table)), Some(to)) = (self.any_table(), self.free_name()) else {
            return Ok(Outcome::Same);
        };
        self.tell(format!("RENAME {from:?} TO {to:?}"));
        let mut after = self.committed.clone();
        after.tables.remove(&from);
        after.tables.insert(to.clone(), table);
        let result = self.database.rename_table((&from.0, &from.1), (&to.0, &to.1));
        self.defined("RENAME", result, after)
    }

    fn create_index(&mut self) -> Result<Outcome, Wrong> {
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        let index = index(self.random.index(INDEXES));
        if let failed @ Outcome::Failed(..) = self.clear(table.identity)? {
            return Ok(failed);
        }
        self.tell(format!("CREATE INDEX {} ON {name:?}", index.name));
        let opened = self.open_table(&name)?;
        let sort_bytes = [100, 2_000, 1 << 20][self.random.index(3)];
        let building = Building { sort_bytes, watch: &mut |_, _| Ok(()) };
        let result = self.database.build_index(&opened, index.clone(), building);
        // The transactions that were waited for may have changed it.
        let table = self.committed.tables[&name].clone();
        if table.def.indexes.iter().any(|other| other.name == index.name) {
            return match result {
                Err(Error::IndexExists) => Ok(Outcome::Same),
                Ok(()) => Err(format!("index {} of {name:?} is there twice", index.name)),
                Err(error) => self.unexpected("CREATE INDEX", error, self.committed.clone()),
            };
        }
        if index.unique && has_duplicates(&table.rows) {
            return match result {
                Err(Error::DuplicateKey { .. }) => Ok(Outcome::Same),
                Ok(()) => Err(format!("unique index {} of {name:?} over the same value twice", index.name)),
                Err(error) => self.unexpected("CREATE INDEX", error, self.committed.clone()),
            };
        }
        let generation = self.take_identity();
        let mut after = self.committed.clone();
        after.table_mut(&name).generation = generation;
        Arc::make_mut(&mut after.table_mut(&name).def).indexes.push(index);
        self.defined("CREATE INDEX", result, after)
    }

    fn drop_index(&mut self) -> Result<Outcome, Wrong> {
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        if table.def.indexes.is_empty() {
            return Ok(Outcome::Same);
        }
        let at = self.random.index(table.def.indexes.len());
        if let failed @ Outcome::Failed(..) = self.clear(table.identity)? {
            return Ok(failed);
        }
        let opened = self.open_table(&name)?;
        let generation = self.take_identity();
        let mut after = self.committed.clone();
        after.table_mut(&name).generation = generation;
        let index = Arc::make_mut(&mut after.table_mut(&name).def).indexes.remove(at);
        self.tell(format!("DROP INDEX {} ON {name:?}", index.name));
        self.defined("DROP INDEX", self.database.drop_index(&opened, &index.name), after)
    }

    /// ALTER TABLE as the server does it: a copy in another form takes the table's place.
    fn alter(&mut self) -> Result<Outcome, Wrong> {
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        if let failed @ Outcome::Failed(..) = self.clear(table.identity)? {
            return Ok(failed);
        }
        let table = self.committed.tables[&name].clone();
        let def = random_definition(&mut self.random, &name);
        let identity = self.take_identity();
        let new = TableState { identity, def: Arc::new(def), rows: table.rows.clone(), generation: identity };
        self.tell(format!("ALTER TABLE {name:?}: {:?}, {} indexes", new.def.primary, new.def.indexes.len()));
        let is_refused = new.has_unique() && has_duplicates(&new.rows);
        let result = self.copy(&name, &new);
        if is_refused {
            return match result {
                Err(Error::DuplicateKey { .. }) => Ok(Outcome::Same),
                Ok(()) => Err(format!("ALTER TABLE {name:?} kept a unique value twice")),
                Err(error) => self.unexpected("ALTER TABLE", error, self.committed.clone()),
            };
        }
        let mut after = self.committed.clone();
        after.tables.insert(name, Arc::new(new));
        self.defined("ALTER TABLE", result, after)
    }

    fn copy(&mut self, name: &Name, new: &TableState) -> engine::Result<()> {
        let old = self.database.table(&name.0, &name.1)?;
        let copy = self.database.create_replacement((*new.def).clone())?;
        let rows: Vec<_> = new.rows.values().collect();
        let filled = rows.chunks(1 + self.random.index(40)).try_for_each(|rows| {
            let mut list = KeyList::default();
            rows.iter().for_each(|row| list.push(&image(&copy, &new.def, row)));
            let mut statement = self.database.begin_write()?;
            statement.insert_many(&copy, &list).map_err(|(_, error)| error)?;
            statement.commit()
        });
        let result = filled.and_then(|()| self.database.replace_table(&old, &copy));
        if result.is_err() && !old.is_dropped() {
            self.database.discard_replacement(&copy);
        }
        result
    }
}

/// Whether two rows have the same `u`.
fn has_duplicates(rows: &Rows) -> bool {
    let mut count: BTreeMap<i32, u32> = BTreeMap::new();
    rows.values().filter_map(|row| row.u).for_each(|u| *count.entry(u).or_default() += 1);
    count.values().any(|count| *count > 1)
}

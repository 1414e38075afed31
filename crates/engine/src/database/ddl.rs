//! Changes of definition. One at a time, under the catalogue's latch; a table's gate is closed while its
//! trees change, so that no row changes meanwhile. Readers go on.

use super::catalogue::Catalogue;
use super::{
    Database, DatabaseNames, SORT_BYTES, TABLES_DIR, bad_page_size, index_parts, is_page_size, table_path,
};
use crate::definition::{IndexDef, TableDef};
use crate::format::catalogue::{Record, StatisticsRecord, TableRecord};
use crate::format::file_header::TableNumbers;
use crate::sort::Sorter;
use crate::space::tablespace::Tablespace;
use crate::table::state::TableState;
use crate::table::{Entry, Index, Table};
use crate::tree::build::TreeBuilder;
use crate::tree::{Chunk, Remainder, Tree};
use crate::{Error, Result};
use base::sync::Arc;
use base::{FileId, IndexId, Stamp};
use pagecache::{Detach, NamedCache};
use std::collections::BTreeSet;
use std::path::Path;
use transactions::{DEFINITIONS, LockMode, Patience, Transaction};
use types::KeyCodec;
use vfs::Create;
use wal::Durability;

/// How an index is built.
pub struct Building<'b> {
    /// Memory for sorting. What does not fit goes to a scratch file.
    pub sort_bytes: usize,
    /// Called every few thousand entries with the step and how many entries it has done. An error ends the
    /// building. It is called under the catalogue's latch: it must not wait.
    pub watch: &'b mut dyn FnMut(BuildStep, u64) -> Result<()>,
}

/// A step of building an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuildStep {
    /// The rows are read and their entries sorted.
    Read,
    /// The tree is written.
    Write,
}

/// After how many entries [`Building::watch`] is called again.
const ENTRIES_A_WATCH: u64 = 4096;

/// An index that is to be built.
struct NewIndex {
    codec: Arc<KeyCodec>,
    unique: bool,
    whole_keys: bool,
}

/// How long a change of definition waits for transactions that have changed the table.
const DEFINITION_PATIENCE: Patience = Patience::Limit(std::time::Duration::from_secs(50));

/// The tree id of a table's clustered index in its file.
pub(super) const CLUSTERED_TREE: u32 = 1;

impl Database {
    ///
    /// # Errors
    /// [`Error::DatabaseExists`] if there is one of this name. [`Error::ReadOnly`] if the log or a device has
    /// failed, [`Error::Closed`] after [`Database::close`], [`Error::Full`] if there is no room,
    /// [`Error::Io`].
    pub fn create_database(&self, name: &str, sql_metadata: &[u8]) -> Result<()> {
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        if self.definitions.names.read().databases.contains_key(name) {
            return Err(Error::DatabaseExists);
        }
        let sql_metadata = sql_metadata.to_vec();
        catalogue.put(&Record::Database { name: name.to_string(), sql_metadata: sql_metadata.clone() })?;
        let names = DatabaseNames { sql_metadata, ..DatabaseNames::default() };
        self.definitions.names.write().databases.insert(name.to_string(), names);
        self.make_durable()
    }

    /// Changes what a layer above keeps with a database.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`].
    /// As any change of definitions: see [`Database::create_database`].
    pub fn set_database_metadata(&self, name: &str, sql_metadata: &[u8]) -> Result<()> {
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        if !self.definitions.names.read().databases.contains_key(name) {
            return Err(Error::NoSuchDatabase);
        }
        let sql_metadata = sql_metadata.to_vec();
        catalogue.put(&Record::Database { name: name.to_string(), sql_metadata: sql_metadata.clone() })?;
        if let Some(names) = self.definitions.names.write().databases.get_mut(name) {
            names.sql_metadata = sql_metadata;
        }
        self.make_durable()
    }

    /// Drops a database with all its tables.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`].
    /// As any change of definitions: see [`Database::create_database`].
    pub fn drop_database(&self, name: &str) -> Result<()> {
        loop {
            let tables = self.tables(name)?;
            let locks = tables.iter().map(|table| self.lock_definition(table)).collect::<Result<Vec<_>>>()?;
            let mut catalogue = self.definitions.catalogue.lock();
            self.core.touch()?;
            let now = self.tables(name)?;
            if now.len() != tables.len()
                || now.iter().zip(&tables).any(|(one, other)| !Arc::ptr_eq(one, other))
            {
                drop(locks);
                continue;
            }
            // CRASH: once the database's record has gone, a start removes the tables that are left of it. So
            // from here on nothing may fail: what stayed would be gone after the next start.
            catalogue.remove_database(name)?;
            let names = self.definitions.names.write().databases.remove(name).unwrap_or_default();
            self.drop_all_damaged(&mut catalogue, names.damaged.into_values().collect());
            for table in &tables {
                let _closure = table.gate.close();
                catalogue.remove_gone_table(table.id());
                self.end_table(table);
            }
            return self.make_durable();
        }
    }

    /// Waits for the transactions that have changed a table, and keeps others from it.
    fn lock_definition(&self, table: &Table) -> Result<DefinitionLock> {
        // If changes are refused, a transaction that could not be taken back keeps its locks until the
        // restart.
        self.core.touch()?;
        let mut session = self.core.transactions.session();
        let mut transaction = session.begin()?;
        let key = table.id().0.to_be_bytes();
        match transaction.lock(DEFINITIONS, &key, LockMode::Exclusive, DEFINITION_PATIENCE) {
            Ok(()) => Ok(DefinitionLock(Some(transaction))),
            Err(error) => {
                transaction.roll_back();
                Err(error.into())
            }
        }
    }

    /// Makes an empty table.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`]; [`Error::TableExists`].
    /// As any change of definitions: see [`Database::create_database`].
    pub fn create_table(&self, def: TableDef) -> Result<Arc<Table>> {
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        check_definition(&def)?;
        {
            let names = self.definitions.names.read();
            let database = names.databases.get(&def.database).ok_or(Error::NoSuchDatabase)?;
            if database.tables.contains_key(&def.name) || database.damaged.contains_key(&def.name) {
                return Err(Error::TableExists);
            }
        }
        let since = self.newer_than_all_snapshots()?;
        let mut state = self.create_file(Arc::new(def), self.core.caches.default_cache())?;
        let id = self.core.control.lock().take_table_id()?;
        state.set_since(since);
        if let Err(error) = catalogue.put(&record(id, &state)) {
            self.remove_file(&state);
            return Err(error);
        }
        let (database, name) = (state.def.database.clone(), state.def.name.clone());
        let table = Table::new(id, self.core.tables().clone(), state, TableNumbers::default());
        if let Some(database) = self.definitions.names.write().databases.get_mut(&database) {
            database.tables.insert(name, table.clone());
        }
        self.make_durable()?;
        Ok(table)
    }

    /// Makes an empty table that is to take another's place: nobody can find it yet, and nothing of it
    /// survives a crash. Its definition has the other's name.
    ///
    /// # Errors
    /// As [`Database::create_table`], but the table's name may be taken.
    /// As any change of definitions: see [`Database::create_database`].
    pub fn create_replacement(&self, def: TableDef) -> Result<Arc<Table>> {
        self.core.touch()?;
        check_definition(&def)?;
        let state = self.create_file(Arc::new(def), self.core.caches.default_cache())?;
        let id = self.core.control.lock().take_table_id()?;
        Ok(Table::new(id, self.core.tables().clone(), state, TableNumbers::default()))
    }

    /// Puts a table from [`Database::create_replacement`] in the place of `old`, which is dropped. What has
    /// been committed to it is kept; nobody uses it meanwhile.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if `old` has been dropped; [`Error::LockWaitTimeout`] and others while it waits
    /// for transactions. As any change of definitions: see [`Database::create_database`].
    pub fn replace_table(&self, old: &Table, new: &Arc<Table>) -> Result<()> {
        let _definition = self.lock_definition(old)?;
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        let (old_state, new_state) = (old.live_state()?, new.live_state()?);
        // The log names what was taken back or is to be purged there by the file's number, so the file keeps
        // it.
        new.save_numbers()?;
        // Its rows were committed in many pieces. A snapshot taken in between would see some of them.
        let mut published = new_state.clone();
        published.set_since(self.newer_than_all_snapshots()?);
        new.set_state(published);
        let new_state = new.live_state()?;
        // CRASH: of two tables with one name the newer counts; a start removes the older.
        catalogue.put(&record(new.id(), new_state))?;
        {
            let mut names = self.definitions.names.write();
            if let Some(database) = names.databases.get_mut(&old_state.def.database) {
                database.tables.insert(old_state.def.name.clone(), new.clone());
            }
        }
        let _closure = old.gate.close();
        let cache = old_state.space.file().cache();
        if cache.is_enabled() {
            // A table in the wrong cache is no reason to fail: it can be assigned again.
            let _ = new_state.space.file().assign(&cache);
        }
        // The new one has the name already. If this could fail the caller would discard it.
        catalogue.remove_gone_table(old.id());
        self.end_table(old);
        self.make_durable()
    }

    /// Removes a table from [`Database::create_replacement`] that is not needed after all.
    pub fn discard_replacement(&self, new: &Table) {
        let _closure = new.gate.close();
        self.end_table(new);
    }

    /// Ends a table that the catalogue does not name any more: threads that hold it find that it has gone,
    /// and its file is removed. The caller has closed its gate.
    fn end_table(&self, table: &Table) {
        let state = table.state();
        if !state.dropped {
            table.set_state(TableState { dropped: true, ..state.clone() });
            self.remove_file(state);
        }
    }

    /// Makes a file without trees.
    pub(super) fn create_space(&self, def: &TableDef, cache: &Arc<NamedCache>) -> Result<Arc<Tablespace>> {
        let file_id = self.core.control.lock().take_file_id()?;
        let path = table_path(&self.dir, file_id);
        let home = self.core.home(cache, def);
        let file = self.files.open_pages(&path, Create::New, home.format.page_size)?;
        // CRASH: its name is durable before the catalogue can say so.
        self.files.vfs.sync_dir(&self.dir.join(TABLES_DIR))?;
        let space = match Tablespace::create(home, file_id, &path, file) {
            Ok(space) => space,
            Err(error) => {
                let _ = self.files.vfs.remove(&path);
                return Err(error);
            }
        };
        space.set_row_tier(&self.core.rows_kept);
        Ok(space)
    }

    /// The number of a snapshot taken from now on. All that are open have lower ones, also if no transaction
    /// has ended since they were taken.
    fn newer_than_all_snapshots(&self) -> Result<u64> {
        self.core.transactions.session().begin()?.roll_back();
        Ok(self.core.transactions.clock())
    }

    /// Makes a file with an empty tree for each index. No snapshot reads it before
    /// [`TableState::set_since`].
    fn create_file(&self, def: Arc<TableDef>, cache: &Arc<NamedCache>) -> Result<TableState> {
        let space = self.create_space(&def, cache)?;
        let since = u64::MAX;
        let mut indexes = Vec::new();
        for (position, (codec, unique)) in index_parts(&def).enumerate() {
            let own = (position > 0).then(|| codec.clone());
            let id = CLUSTERED_TREE + position as u32;
            match Tree::create(space.clone(), id, own, !def.packs_keys(position)) {
                Ok(tree) => indexes.push(Index { tree, since, codec, unique }),
                Err(error) => {
                    let _ = space.close(Detach::Discard);
                    let _ = self.files.vfs.remove(&space.path());
                    return Err(error);
                }
            }
        }
        let next_tree = CLUSTERED_TREE + indexes.len() as u32;
        Ok(TableState { def, space, indexes, next_tree, dropped: false })
    }

    fn remove_file(&self, state: &TableState) {
        self.remove_space(&state.space);
    }

    /// Forgets a file that no table has any more. What cannot be removed now is removed at the next start.
    pub(super) fn remove_space(&self, space: &Tablespace) {
        let _ = space.close(Detach::Discard);
        self.remove_path(&space.path());
    }

    /// Removes a file that nobody has open.
    pub(super) fn remove_path(&self, path: &Path) {
        // CRASH: the file goes only when it is durable that the catalogue does not name it.
        if self.core.journal.flush(self.core.journal.position(), Durability::Synced).is_ok() {
            let _ = self.files.vfs.remove(path);
        }
    }

    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    /// As any change of definitions: see [`Database::create_database`].
    pub fn drop_table(&self, database: &str, name: &str) -> Result<()> {
        let table = match self.table(database, name) {
            Err(Error::Corrupt { .. }) => {
                let mut catalogue = self.definitions.catalogue.lock();
                self.core.touch()?;
                let dropped = self.drop_damaged(&mut catalogue, database, name)?;
                return if dropped { self.make_durable() } else { Err(Error::NoSuchTable) };
            }
            table => table?,
        };
        let _definition = self.lock_definition(&table)?;
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        self.drop_one(&mut catalogue, &table)?;
        self.make_durable()
    }

    fn drop_one(&self, catalogue: &mut Catalogue, table: &Table) -> Result<()> {
        let _closure = table.gate.close();
        let state = table.live_state()?;
        catalogue.remove_table(table.id())?;
        if let Some(database) = self.definitions.names.write().databases.get_mut(&state.def.database) {
            database.tables.remove(&state.def.name);
        }
        self.end_table(table);
        Ok(())
    }

    /// Keeps what [`Table::analyze`] has found for the next start.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`].
    /// As any change of definitions: see [`Database::create_database`].
    pub fn keep_statistics(&self, table: &Table) -> Result<()> {
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        let state = table.live_state()?;
        let Some(statistics) = table.statistics() else { return Ok(()) };
        catalogue.put(&Record::Statistics(StatisticsRecord {
            table: table.id(),
            file: FileId(state.space.file_id().0),
            trees: state.indexes.iter().map(|index| index.tree.id()).collect(),
            statistics: (*statistics).clone(),
        }))?;
        self.make_durable()
    }

    /// Gives a table another name, or another database. No file is touched.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`]; [`Error::TableExists`] if the new name is taken.
    /// As any change of definitions: see [`Database::create_database`].
    pub fn rename_table(&self, from: (&str, &str), to: (&str, &str)) -> Result<()> {
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        let table = self.table(from.0, from.1)?;
        match self.table(to.0, to.1) {
            Ok(_) => return Err(Error::TableExists),
            Err(Error::NoSuchTable) => {}
            Err(error) => return Err(error),
        }
        let state = table.live_state()?;
        let mut def = (*state.def).clone();
        (def.database, def.name) = (to.0.to_string(), to.1.to_string());
        let state = TableState { def: Arc::new(def), ..state.clone() };
        catalogue.put(&record(table.id(), &state))?;
        table.set_state(state);
        let mut names = self.definitions.names.write();
        if let Some(database) = names.databases.get_mut(from.0) {
            database.tables.remove(from.1);
        }
        if let Some(database) = names.databases.get_mut(to.0) {
            database.tables.insert(to.1.to_string(), table);
        }
        self.make_durable()
    }

    /// Changes what a layer above keeps in [`TableDef::sql_metadata`]. Whoever looks at the table from now on
    /// sees the new bytes.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`].
    /// As any change of definitions: see [`Database::create_database`].
    pub fn set_sql_metadata(&self, table: &Table, sql_metadata: Vec<u8>) -> Result<()> {
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        let state = table.live_state()?;
        let def = TableDef { sql_metadata, ..(*state.def).clone() };
        let state = TableState { def: Arc::new(def), ..state.clone() };
        catalogue.put(&record(table.id(), &state))?;
        table.set_state(state);
        self.make_durable()
    }

    /// Removes all rows, by giving the table a new file. AUTO_INCREMENT starts again at 1.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`].
    /// As any change of definitions: see [`Database::create_database`].
    pub fn truncate(&self, table: &Table) -> Result<()> {
        let _definition = self.lock_definition(table)?;
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        let _closure = table.gate.close();
        let old = table.live_state()?;
        let mut new = self.create_file(old.def.clone(), &old.space.file().cache())?;
        match self.newer_than_all_snapshots() {
            Ok(since) => new.set_since(since),
            Err(error) => {
                self.remove_file(&new);
                return Err(error);
            }
        }
        if let Err(error) = catalogue.put(&record(table.id(), &new)) {
            self.remove_file(&new);
            return Err(error);
        }
        table.begin_anew(new);
        self.remove_file(old);
        self.make_durable()
    }

    /// Builds the index by sorting. Blocks writers of the table, not readers.
    /// The `Arc<Table>`s that sessions hold stay valid; `Table::def` and `Table::version` change.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::IndexExists`]; [`Error::DuplicateKey`] if the index is unique and
    /// rows collide. As any change of definitions: see [`Database::create_database`].
    pub fn create_index(&self, table: &Table, index: IndexDef) -> Result<()> {
        self.build_index(table, index, Building { sort_bytes: SORT_BYTES, watch: &mut |_, _| Ok(()) })
    }

    /// [`Database::create_index`] that can be watched.
    ///
    /// # Errors
    /// As [`Database::create_index`], and those of `building.watch`: the table is then as it was.
    pub fn build_index(&self, table: &Table, index: IndexDef, building: Building<'_>) -> Result<()> {
        let _definition = self.lock_definition(table)?;
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        let _closure = table.gate.close();
        let state = table.live_state()?;
        let mut def = (*state.def).clone();
        def.indexes.push(index);
        check_definition(&def)?;
        let index = &def.indexes[def.indexes.len() - 1];
        let codec = Arc::new(KeyCodec::new(&def.columns, &index.parts));
        let unique = index.unique;
        let whole_keys = !def.packs_keys(def.indexes.len());
        let path = self.dir.join(TABLES_DIR).join(format!("sort-{}", state.space.file_id()));
        let sorter = Sorter::new(self.files.vfs.clone(), &path, building.sort_bytes);
        // CRASH: until the catalogue names the tree its pages belong to nothing. What fails below gives them
        // back, or has not ended an operation of its own.
        let operation = state.space.doubt()?;
        let new = NewIndex { codec: codec.clone(), unique, whole_keys };
        let built = self.build(table, state, new, sorter, building.watch).and_then(|tree| {
            self.name_index(&mut catalogue, table, def, Index { tree, since: 0, codec, unique })
        });
        state.space.end_operation(operation);
        built?;
        self.make_durable()
    }

    /// Gives a table the index that has been built for it.
    fn name_index(
        &self,
        catalogue: &mut Catalogue,
        table: &Table,
        def: TableDef,
        index: Index,
    ) -> Result<()> {
        let state = table.live_state()?;
        let mut indexes = state.indexes.clone();
        indexes.push(Index { since: self.core.transactions.clock(), ..index.clone() });
        let new = TableState {
            def: Arc::new(def),
            indexes,
            next_tree: state.next_tree + 1,
            space: state.space.clone(),
            dropped: false,
        };
        if let Err(error) = catalogue.put(&record(table.id(), &new)) {
            let _ = index.tree.free_all();
            return Err(error);
        }
        table.set_state(new);
        Ok(())
    }

    /// Sorts the entries of all rows and builds a tree of them.
    fn build(
        &self,
        table: &Table,
        state: &TableState,
        NewIndex { codec, unique, whole_keys }: NewIndex,
        mut sorter: Sorter,
        watch: &mut dyn FnMut(BuildStep, u64) -> Result<()>,
    ) -> Result<Tree> {
        // A stand-in for the tree that does not exist yet: only codec and uniqueness make entries.
        let maker = Index { tree: state.indexes[0].tree.clone(), since: 0, codec, unique };
        let mut entry = Entry::default();
        let mut rest = Remainder::new(Vec::new(), None);
        let mut chunk = Chunk::default();
        let mut entries = 0;
        let mut watched = 0;
        while !rest.done {
            state.indexes[0].tree.read_forward(&mut rest, &mut chunk, usize::MAX)?;
            entries += chunk.len() as u64;
            if entries >= watched {
                watch(BuildStep::Read, entries)?;
                watched = entries + ENTRIES_A_WATCH;
            }
            for i in 0..chunk.len() {
                let (primary_key, cell) = chunk.entry(i);
                let image;
                let row = match crate::format::row::split_cell(cell) {
                    Some((header, _)) if header.is_deleted() => continue,
                    Some((header, rest)) if !header.is_overflow() => rest,
                    _ => {
                        image = table.image_of(&state.space, cell)?;
                        &image
                    }
                };
                let row = table.row_codec().view(row);
                maker.entry(&row, primary_key, &mut entry);
                table.check_key(state, &entry.key)?;
                // The sorter carries how long the part is that no two entries may share; 0 = they may.
                let own = if unique && !maker.codec.row_has_null(&row) { entry.own as u32 } else { 0 };
                sorter.push(&entry.key, &own.to_le_bytes())?;
            }
        }
        let own = Some(maker.codec.clone());
        let mut builder = TreeBuilder::new(state.space.clone(), state.next_tree, own, whole_keys, Stamp(0))?;
        let mut last: Vec<u8> = Vec::new();
        let mut entries = 0;
        let built = sorter.finish(|key, own| {
            if entries % ENTRIES_A_WATCH == 0 {
                watch(BuildStep::Write, entries)?;
            }
            entries += 1;
            let own = own.try_into().map_or(0, u32::from_le_bytes) as usize;
            if own > 0 && last == key[..own] {
                return Err(Error::DuplicateKey { index: IndexId(state.indexes.len() as u16) });
            }
            last.clear();
            last.extend_from_slice(&key[..own]);
            builder.push(key, &[])
        });
        match built {
            Ok(()) => builder.finish(),
            Err(error) => {
                builder.discard();
                Err(error)
            }
        }
    }

    /// Drops a secondary index. Scans under way through it fail with [`Error::TableChanged`].
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchIndex`].
    /// As any change of definitions: see [`Database::create_database`].
    pub fn drop_index(&self, table: &Table, name: &str) -> Result<()> {
        let _definition = self.lock_definition(table)?;
        let mut catalogue = self.definitions.catalogue.lock();
        self.core.touch()?;
        let _closure = table.gate.close();
        let state = table.live_state()?;
        let position = state.def.indexes.iter().position(|index| index.name == name);
        let position = position.ok_or(Error::NoSuchIndex)?;
        let mut def = (*state.def).clone();
        def.indexes.remove(position);
        let mut indexes = state.indexes.clone();
        let dropped = indexes.remove(position + 1);
        let new = TableState { def: Arc::new(def), indexes, ..state.clone() };
        // CRASH: once the record is written the tree's pages belong to nothing until they are freed.
        let operation = state.space.doubt()?;
        if let Err(error) = catalogue.put(&record(table.id(), &new)) {
            state.space.end_operation(operation);
            return Err(error);
        }
        table.set_state(new);
        // Readers that are still in the tree find pages of another tree, and look at the new state. The index
        // has gone. If its pages cannot be found now, a start after a crash finds them, or a check.
        let _ = dropped.tree.free_all();
        state.space.end_operation(operation);
        self.make_durable()
    }

    /// The end of a change of definition: it is to survive, as a transaction is.
    pub(super) fn make_durable(&self) -> Result<()> {
        self.core.journal.commit(self.core.journal.position())
    }
}

/// Holds a table's definition still until it is dropped.
struct DefinitionLock(Option<Transaction>);

impl Drop for DefinitionLock {
    fn drop(&mut self) {
        if let Some(transaction) = self.0.take() {
            transaction.roll_back();
        }
    }
}

pub(super) fn record(id: base::TableId, state: &TableState) -> Record {
    Record::Table(Box::new(TableRecord {
        id,
        file: FileId(state.space.file_id().0),
        next_tree: state.next_tree,
        roots: state.indexes.iter().map(|index| (index.tree.root(), index.tree.id())).collect(),
        def: (*state.def).clone(),
    }))
}

/// Refuses definitions that name columns which do not exist, or an index twice.
fn check_definition(def: &TableDef) -> Result<()> {
    let parts = def.primary.iter().flatten().chain(def.indexes.iter().flat_map(|index| &index.parts));
    let mut columns = parts.map(|part| part.column).chain(def.auto_increment);
    if let Some(column) = columns.find(|column| *column >= def.columns.len()) {
        let why = format!("column {column} of a table with {} columns", def.columns.len());
        return Err(Error::BadOption { why });
    }
    if def.primary.as_ref().is_some_and(Vec::is_empty) || def.indexes.iter().any(|i| i.parts.is_empty()) {
        return Err(Error::BadOption { why: "an index without columns".to_string() });
    }
    if let Some(bytes) = def.page_size
        && !is_page_size(bytes as usize)
    {
        return Err(Error::BadOption { why: bad_page_size(bytes as usize) });
    }
    let mut names = BTreeSet::new();
    if def.indexes.iter().any(|index| !names.insert(index.name.as_str())) {
        return Err(Error::IndexExists);
    }
    Ok(())
}

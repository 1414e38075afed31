//! What clients do with rows: transactions, reads, changes, locks.

use super::contents::{Trouble, difference, rows_by};
use super::model::{Changes, Name, Row, Rows, TableState, seen};
use super::schema::{id_is_key, image, primary_key, random_row};
use super::world::{Outcome, World, Wrong, collides};
use base::IndexId;
use base::sync::Arc;
use engine::{
    Direction, Error, Isolation, KeyList, KeyRange, LockMode, LockWait, Reader, Table, WriteStatement,
};

/// Rows by their ids, as they are afterwards; `None`: not there.
type Effect = Vec<(i32, Option<Arc<Row>>)>;

/// A change of rows of one table, and what the model says of it.
#[derive(Debug)]
struct Change {
    name: Name,
    table: Arc<TableState>,
    kind: Kind,
    /// What the rows are afterwards.
    effect: Effect,
    /// Another row has one of the keys.
    is_duplicate: bool,
}

#[derive(Debug)]
enum Kind {
    Insert,
    /// From this row.
    Update(Arc<Row>),
    Delete(Arc<Row>),
}

impl World {
    /// Begins a transaction, or ends the one there is, or goes back to a savepoint in it.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn transaction(&mut self, at: usize) -> Result<Outcome, Wrong> {
        let draw = self.random.below(8);
        let client = &mut self.clients[at];
        match (client.begun, draw) {
            (None, _) => {
                let levels = [
                    Isolation::RepeatableRead,
                    Isolation::RepeatableRead,
                    Isolation::ReadCommitted,
                    Isolation::ReadUncommitted,
                    Isolation::Serializable,
                ];
                let isolation = levels[self.random.index(5)];
                client.wins = self.random.below(3) == 0;
                client.session.set_first_committer_wins(client.wins);
                client.session.begin(isolation).map_err(|error| format!("a begin: {error}"))?;
                client.begun = Some(isolation);
                if client.keeps_snapshot() && self.random.below(2) == 0 {
                    client.session.open_snapshot();
                    client.snapshot = Some(self.committed.clone());
                }
                let (wins, snapshot) = (client.wins, client.snapshot.is_some());
                self.tell(format!("client {at} begins {isolation:?}, wins {wins}, snapshot {snapshot}"));
                Ok(Outcome::Same)
            }
            (Some(_), 0 | 1) => {
                let has_begun = !client.touched.is_empty();
                client.savepoints.push((client.session.savepoint(), client.changes.clone(), has_begun));
                self.tell(format!("client {at} sets a savepoint"));
                Ok(Outcome::Same)
            }
            (Some(_), 2 | 3) if !client.savepoints.is_empty() => {
                let keep = self.random.index(client.savepoints.len());
                client.savepoints.truncate(keep + 1);
                let (savepoint, changes, has_begun) = client.savepoints[keep].clone();
                let result = client.session.roll_back_to(savepoint);
                // Rows that were inserted since are gone, and so are their locks. Rows that were changed are
                // free if the transaction had not begun.
                let (committed, undone) = (&self.committed, &client.changes);
                client.locked.retain(|(identity, id)| match changes.get(&(*identity, *id)) {
                    Some(row) => row.is_some(),
                    None if !has_begun && undone.contains_key(&(*identity, *id)) => false,
                    None => committed.by_identity(*identity).is_some_and(|table| table.rows.contains_key(id)),
                });
                client.changes = changes;
                self.tell(format!("client {at} goes back to savepoint {keep}"));
                match result {
                    Ok(()) => Ok(Outcome::Same),
                    Err(error) => self.unexpected("a savepoint", error, self.committed.clone()),
                }
            }
            (Some(_), _) => self.end_client(at),
        }
    }

    /// Reads a whole table by one of its indexes, and compares.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn read(&mut self, at: usize) -> Result<Outcome, Wrong> {
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        let index = self.random.index(table.def.indexes.len() + 1);
        let direction = [Direction::Forward, Direction::Backward][self.random.index(2)];
        let opened = self.open_table(&name)?;
        let client = &mut self.clients[at];
        if client.keeps_snapshot() && client.snapshot.is_none() {
            client.snapshot = Some(self.committed.clone());
        }
        let snapshot = client.snapshot.as_ref().map(|state| state.by_identity(table.identity).cloned());
        let result = match client.session.read() {
            Ok(statement) => rows_by(&opened, statement.reader(), index, direction),
            Err(error) => Err(error.into()),
        };
        let expected = match (&snapshot, client.begun) {
            (Some(Some(old)), _) => seen(old, &client.changes),
            (Some(None), _) => Rows::new(),
            (None, Some(Isolation::ReadUncommitted)) => {
                self.clients.iter().fold(table.rows.clone(), |rows, client| {
                    let table = TableState { rows, ..(*table).clone() };
                    seen(&table, &client.changes)
                })
            }
            (None, _) => seen(&table, &client.changes),
        };
        self.tell(format!("client {at} reads {name:?} by index {index}"));
        // A snapshot cannot read a tree that is younger.
        let may_refuse = match &snapshot {
            Some(Some(old)) => old.generation != table.generation,
            Some(None) => true,
            None => false,
        };
        // What a full disk keeps from being taken back is there for those who read what is not committed.
        let is_blurred = self.is_faulty && self.clients[at].begun == Some(Isolation::ReadUncommitted);
        match result {
            Err(Trouble::Engine(Error::TableChanged)) if may_refuse => Ok(Outcome::Same),
            Err(Trouble::Engine(error)) => self.unexpected("a read", error, self.committed.clone()),
            Err(Trouble::Wrong(what)) => Err(format!("client {at} reads {name:?}: {what}")),
            // It may have been empty, and the new file is.
            Ok(_) if matches!(snapshot, Some(None)) => {
                Err(format!("client {at} reads {name:?}, which is younger than its snapshot"))
            }
            Ok(_) if is_blurred => Ok(Outcome::Same),
            Ok(found) => match difference(&found, &expected) {
                None => Ok(Outcome::Same),
                Some(what) => Err(format!("client {at} reads {name:?} by index {index}: {what}")),
            },
        }
    }

    /// Reads a table at SERIALIZABLE as a statement does that changes what it reads, which locks it.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn read_locking(&mut self, at: usize) -> Result<Outcome, Wrong> {
        if self.clients[at].begun != Some(Isolation::Serializable) {
            return self.read(at);
        }
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        let opened = self.open_table(&name)?;
        self.tell(format!("client {at} reads and locks {name:?}"));
        let client = &mut self.clients[at];
        client.touched.insert(table.identity);
        let mut run = || -> engine::Result<()> {
            let mut statement = client.session.write()?;
            let (readers, _) = statement.split();
            let mut scan = opened.scan(readers.current, IndexId(0), KeyRange::all(), Direction::Forward);
            while scan.next_row()?.is_some() {}
            drop(scan);
            statement.commit()
        };
        match run() {
            Ok(()) => {
                client.ranges.insert(table.identity);
                Ok(Outcome::Same)
            }
            Err(error) => self.conflict(at, "a locking read", error),
        }
    }

    /// Locks a row.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn lock(&mut self, at: usize) -> Result<Outcome, Wrong> {
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        let rows = seen(&table, &self.clients[at].changes);
        let Some(row) = self.any_row(&rows) else { return Ok(Outcome::Same) };
        let opened = self.open_table(&name)?;
        let Some(key) = primary_key(&opened, &table.def, &row) else { return Ok(Outcome::Same) };
        if self.clients[at].begun.is_none() {
            return Ok(Outcome::Same);
        }
        let mode = [LockMode::Shared, LockMode::Exclusive][self.random.index(2)];
        self.tell(format!("client {at} locks row {} of {name:?}, {mode:?}", row.id));
        let client = &mut self.clients[at];
        client.touched.insert(table.identity);
        let mut run = || -> engine::Result<bool> {
            let mut statement = client.session.write()?;
            let (_, mut writer) = statement.split();
            let found = writer.lock(&opened, &key, mode, LockWait::NoWait)?.is_some();
            statement.commit().map(|()| found)
        };
        match run() {
            Ok(true) => {
                // Another key may have the id after a rollback to a savepoint.
                if id_is_key(&table) {
                    client.locked.insert((table.identity, row.id));
                }
                Ok(Outcome::Same)
            }
            Ok(false) => Err(format!("client {at} locks row {} of {name:?}, and it is not there", row.id)),
            Err(error) => self.conflict(at, "a lock", error),
        }
    }

    fn any_row(&mut self, rows: &Rows) -> Option<Arc<Row>> {
        let at = self.random.index(rows.len().max(1));
        rows.values().nth(at).cloned()
    }

    /// An error of a statement that may have met another client, or the device.
    fn conflict(&mut self, at: usize, what: &str, error: Error) -> Result<Outcome, Wrong> {
        match error {
            Error::LockWaitTimeout | Error::WouldBlock if self.others_hold(at) => Ok(Outcome::Same),
            Error::Deadlock if self.others_hold(at) => self.give_up(at),
            Error::RecordChanged { .. } if self.clients[at].wins && self.clients[at].snapshot.is_some() => {
                self.give_up(at)
            }
            error => self.unexpected(what, error, self.committed.clone()),
        }
    }

    /// Rolls back, because the engine said so.
    fn give_up(&mut self, at: usize) -> Result<Outcome, Wrong> {
        self.clients[at].ended();
        match self.clients[at].session.roll_back() {
            Ok(()) => Ok(Outcome::Same),
            Err(error) => self.unexpected("a rollback", error, self.committed.clone()),
        }
    }

    /// Inserts, updates or deletes rows of a table.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn change(&mut self, at: usize) -> Result<Outcome, Wrong> {
        let Some((name, table)) = self.any_table() else { return Ok(Outcome::Same) };
        let rows = seen(&table, &self.clients[at].changes);
        let Some(change) = self.intend(at, name, table, &rows) else { return Ok(Outcome::Same) };
        let opened = self.open_table(&change.name)?;
        let keeps = self.random.below(12) > 0;
        let ids: Vec<i32> = change.effect.iter().map(|(id, _)| *id).collect();
        let kind = match &change.kind {
            Kind::Insert => "inserts",
            Kind::Update(_) => "updates",
            Kind::Delete(_) => "deletes",
        };
        self.tell(format!("client {at} {kind} rows {ids:?} of {:?}, keeps it: {keeps}", change.name));
        let client = &mut self.clients[at];
        let begun = client.begun.is_some();
        if begun {
            client.touched.insert(change.table.identity);
        }
        let effect: Changes =
            change.effect.iter().map(|(id, row)| ((change.table.identity, *id), row.clone())).collect();
        let mut run = || -> engine::Result<bool> {
            let mut statement = client.session.write()?;
            let changed = change.run(&opened, &mut statement)?;
            if keeps { statement.commit().map(|()| changed) } else { Ok(changed) }
        };
        match run() {
            Ok(_) if change.is_duplicate => {
                Err(format!("a key of {:?} is there twice now: {change:?}", change.name))
            }
            Ok(false) => Err(format!("a row of {:?} was not found: {ids:?}", change.name)),
            Ok(true) => {
                if let Some(reason) = self.forbidden(at, &change) {
                    return Err(format!("client {at} {kind} rows {ids:?} of {:?}: {reason}", change.name));
                }
                if !keeps {
                    Ok(Outcome::Same)
                } else if begun {
                    self.clients[at].changes.extend(effect);
                    Ok(Outcome::Same)
                } else {
                    Ok(Outcome::Committed(self.committed.with(&effect)))
                }
            }
            Err(Error::DuplicateKey { .. }) if change.is_duplicate => Ok(Outcome::Same),
            Err(error) if begun => self.conflict(at, kind, error),
            Err(error) if self.is_of_device(&error) => {
                Ok(Outcome::Failed(error, self.committed.with(&effect)))
            }
            Err(error) => self.conflict(at, kind, error),
        }
    }

    /// Why the change should not have been possible.
    fn forbidden(&self, at: usize, change: &Change) -> Option<String> {
        let mut ids: Vec<i32> = change.effect.iter().map(|(id, _)| *id).collect();
        if let Kind::Update(row) | Kind::Delete(row) = &change.kind {
            ids.push(row.id);
            let client = &self.clients[at];
            let own = client.changes.contains_key(&(change.table.identity, row.id));
            if let Some(snapshot) = &client.snapshot
                && client.wins
                && !own
                && let Some(old) = snapshot.by_identity(change.table.identity)
                && !old.rows.get(&row.id).is_some_and(|old| Arc::ptr_eq(old, row))
            {
                return Some(format!("row {} was changed after the snapshot", row.id));
            }
        }
        let held = ids.iter().find_map(|id| self.holder(at, &change.table, *id));
        let held = held.or_else(|| change.table.has_unique().then(|| self.has_value(at, change)).flatten());
        held.map(|other| format!("client {other} holds it"))
    }

    /// Another client that has given a row the unique value of one of these.
    fn has_value(&self, at: usize, change: &Change) -> Option<usize> {
        let values: Vec<i32> =
            change.effect.iter().filter_map(|(_, row)| row.as_ref().and_then(|row| row.u)).collect();
        self.clients.iter().enumerate().position(|(other, client)| {
            let identity = change.table.identity;
            let mut rows = client.changes.range((identity, i32::MIN)..=(identity, i32::MAX));
            other != at
                && rows
                    .any(|(_, row)| row.as_ref().and_then(|row| row.u).is_some_and(|u| values.contains(&u)))
        })
    }

    /// Whether the snapshot of a client goes on seeing a row with this id that others have changed, beside
    /// what the client itself makes of the id: where the id is no key, these may be two rows.
    fn sees_another(&self, at: usize, table: &TableState, id: i32) -> bool {
        let client = &self.clients[at];
        if id_is_key(table) || client.changes.contains_key(&(table.identity, id)) {
            return false;
        }
        let snapshot = client.snapshot.as_ref().and_then(|state| state.by_identity(table.identity));
        let old = snapshot.and_then(|old| old.rows.get(&id));
        old.is_some_and(|old| !table.rows.get(&id).is_some_and(|new| Arc::ptr_eq(old, new)))
    }

    /// Draws a change; `None` if there is nothing to change.
    fn intend(&mut self, at: usize, name: Name, table: Arc<TableState>, rows: &Rows) -> Option<Change> {
        let draw = self.random.below(10);
        let old = self.any_row(rows).filter(|old| !self.sees_another(at, &table, old.id));
        let (kind, effect, is_duplicate) = match (draw, old) {
            (0..=1, Some(old)) => {
                let effect = vec![(old.id, None)];
                (Kind::Delete(old), effect, false)
            }
            (2..=4, Some(old)) => {
                let free = self.random.below(self.ids) as i32;
                let moves = id_is_key(&table) && self.random.below(6) == 0 && free != old.id;
                let id = if moves { free } else { old.id };
                let mut new = random_row(&mut self.random, id, self.ids);
                if !id_is_key(&table) {
                    // A row whose key changes is another row to an older snapshot, under the same id.
                    new.k = old.k;
                }
                let is_duplicate = moves && rows.contains_key(&id)
                    || table.has_unique() && collides(rows, &new, Some(old.id));
                let mut effect = vec![(id, Some(Arc::new(new)))];
                if moves {
                    effect.push((old.id, None));
                }
                (Kind::Update(old), effect, is_duplicate)
            }
            _ => {
                let count = if self.random.below(4) == 0 { 1 + self.random.below(14) } else { 1 };
                let (effect, is_duplicate) = self.new_rows(at, &table, rows, count);
                (Kind::Insert, effect, is_duplicate)
            }
        };
        (!effect.is_empty()).then_some(Change { name, table, kind, effect, is_duplicate })
    }

    /// Rows to insert, and whether one of them has a key that is taken.
    fn new_rows(&mut self, at: usize, table: &TableState, rows: &Rows, count: u32) -> (Effect, bool) {
        let mut there = rows.clone();
        let (mut new_rows, mut is_duplicate) = (Vec::new(), false);
        for _ in 0..count {
            let id = self.random.below(self.ids) as i32;
            let is_taken = there.contains_key(&id);
            // One row of many with a taken key is enough to have them all refused.
            let is_free = !is_taken && !self.is_pending(table, id);
            if !is_free && (!id_is_key(table) || count > 1) || self.sees_another(at, table, id) {
                continue;
            }
            let new = random_row(&mut self.random, id, self.ids);
            is_duplicate |= is_taken || table.has_unique() && collides(&there, &new, None);
            let new = Arc::new(new);
            there.insert(id, new.clone());
            new_rows.push((id, Some(new)));
        }
        (new_rows, is_duplicate)
    }
}

impl Change {
    /// Does it. False if a row is not there.
    fn run(&self, table: &Table, statement: &mut WriteStatement<'_>) -> engine::Result<bool> {
        let def = &self.table.def;
        let new = self.effect[0].1.as_ref().map(|row| image(table, def, row));
        match &self.kind {
            Kind::Insert => {
                if let [(_, Some(row))] = &self.effect[..] {
                    return statement.insert(table, &image(table, def, row)).map(|()| true);
                }
                let mut list = KeyList::default();
                self.effect.iter().filter_map(|(_, row)| row.as_ref()).for_each(|row| {
                    list.push(&image(table, def, row));
                });
                statement.insert_many(table, &list).map(|()| true).map_err(|(_, error)| error)
            }
            Kind::Update(old) => {
                let Some(key) = self.key(table, old)? else { return Ok(true) };
                let new = new.unwrap_or_default();
                statement.update(table, &key, &mut |_, out| {
                    out.extend_from_slice(&new);
                    true
                })
            }
            Kind::Delete(old) => {
                let Some(key) = self.key(table, old)? else { return Ok(true) };
                statement.delete(table, &key, &mut |_| true)
            }
        }
    }

    /// The primary key of a row; that of a hidden one is looked for.
    fn key(&self, table: &Table, row: &Row) -> engine::Result<Option<Vec<u8>>> {
        if let Some(key) = primary_key(table, &self.table.def, row) {
            return Ok(Some(key));
        }
        let mut scan = table.scan(Reader::newest(), IndexId(0), KeyRange::all(), Direction::Forward);
        while let Some(image) = scan.next_row()? {
            if super::schema::row_of(table, image).is_ok_and(|found| found.id == row.id) {
                return Ok(Some(scan.primary_key().to_vec()));
            }
        }
        // Another client has deleted it.
        Err(Error::WouldBlock)
    }
}

//! Keeps rows in agreement with FOREIGN KEY, after each change of a row.
//!
//! A row that refers to a parent is checked when it has been written: the parent's row is looked up and
//! locked in shared mode. A row of a parent that is deleted, or whose referenced columns change, is locked
//! exclusively by that. An insertion of a row that refers to it waits for the lock, and then finds the row
//! gone. So no gap has to be locked.
//!
//! Rows that follow their parent (CASCADE, SET NULL) are changed in turn, and what refers to them.

use super::write_error;
use crate::definition::foreign_key::ReferentialAction;
use crate::expr::coerce;
use crate::session::relations::{Family, Link, Parent, refused};
use crate::spill::{Spool, Workspace};
use crate::{ErrorKind, SqlError};
use base::IndexId;
use bumpalo::Bump;
use engine::{Direction, KeyRange, LockMode, LockWait, Reader, Savepoint, Table, Writer};
use std::ops::Bound;
use types::{KeyCodec, RowView, Value, ValueRef};

/// A change that rows follow through more constraints than this is refused, as in InnoDB.
const DEPTH_MAX: usize = 15;

/// What happened to a parent's row.
#[derive(Clone, Copy)]
enum ParentChange<'a> {
    Deleted,
    /// The new image.
    Updated(&'a [u8]),
}

/// Checks the rows of a statement that changes the first table of a family.
#[derive(Clone, Copy)]
pub(crate) struct Keeper<'k> {
    pub family: &'k Family,
    /// The one that finds the newest rows.
    pub reader: Reader<'k>,
    pub workspace: Workspace<'k>,
}

impl Keeper<'_> {
    /// True if the first table refers to itself: then its rows are written and checked one by one.
    pub(crate) fn refers_to_itself(&self) -> bool {
        self.own_links().any(|link| link.parent.as_ref().is_some_and(|parent| parent.member == 0))
    }

    /// True if rows of other tables, or its own, may refer to rows of the first table.
    pub(crate) fn is_referenced(&self) -> bool {
        self.family.links.iter().any(|link| link.parent.as_ref().is_some_and(|parent| parent.member == 0))
    }

    fn own_links(&self) -> impl Iterator<Item = &Link> {
        self.family.links.iter().filter(|link| link.child == 0)
    }

    /// Checks a row that was inserted into the first table.
    ///
    /// # Errors
    /// 1452, and those of waiting for a row.
    pub(crate) fn inserted(&self, writer: &mut Writer<'_>, image: &[u8]) -> Result<(), SqlError> {
        let view = self.family.members[0].table.row_codec().view(image);
        self.own_links().try_for_each(|link| self.check_child(writer, link, &view))
    }

    /// Sees to the rows that refer to a row of the first table, which was deleted.
    ///
    /// # Errors
    /// 1451, 1296, and those of waiting for rows and changing them.
    pub(crate) fn deleted(&self, writer: &mut Writer<'_>, old: &[u8]) -> Result<(), SqlError> {
        self.parent_changed(writer, 0, old, ParentChange::Deleted, 0)
    }

    /// Checks a row of the first table that was updated, and sees to the rows that refer to it.
    ///
    /// # Errors
    /// 1451, 1452, 1296, and those of waiting for rows and changing them.
    pub(crate) fn updated(&self, writer: &mut Writer<'_>, old: &[u8], new: &[u8]) -> Result<(), SqlError> {
        self.row_updated(writer, 0, (old, new), None, 0)
    }

    /// `followed`: the constraint through which the row has followed its parent.
    fn row_updated(
        &self,
        writer: &mut Writer<'_>,
        member: usize,
        (old, new): (&[u8], &[u8]),
        followed: Option<&Link>,
        depth: usize,
    ) -> Result<(), SqlError> {
        let codec = self.family.members[member].table.row_codec();
        let (before, after) = (codec.view(old), codec.view(new));
        for link in self.family.links.iter().filter(|link| link.child == member) {
            let follows = followed.is_some_and(|followed| std::ptr::eq(followed, link));
            if !follows && differ(&before, &after, &link.child_columns) {
                self.check_child(writer, link, &after)?;
            }
        }
        self.parent_changed(writer, member, old, ParentChange::Updated(new), depth)
    }

    /// Checks that what a row refers to is there.
    fn check_child(&self, writer: &mut Writer<'_>, link: &Link, row: &RowView<'_>) -> Result<(), SqlError> {
        if link.child_columns.iter().any(|column| row.is_null(*column)) {
            return Ok(());
        }
        let values: Vec<ValueRef<'_>> = link.child_columns.iter().map(|column| row.get(*column)).collect();
        match &link.parent {
            Some(parent) if self.has_parent(writer, parent, &values)? => Ok(()),
            _ => Err(refused(ErrorKind::NoReferencedRow, "add or update a child", &link.text)),
        }
    }

    /// True if a row of the parent has these values. It is locked.
    fn has_parent(
        &self,
        writer: &mut Writer<'_>,
        parent: &Parent,
        values: &[ValueRef<'_>],
    ) -> Result<bool, SqlError> {
        let search = Search::new(&self.family.members[parent.member].table, parent.index, &parent.columns);
        self.lock_first(writer, &search, values)
    }

    /// Locks the first row that has these values, in shared mode. True if there is one.
    fn lock_first(
        &self,
        writer: &mut Writer<'_>,
        search: &Search<'_>,
        values: &[ValueRef<'_>],
    ) -> Result<bool, SqlError> {
        let wanted = search.key(values);
        let mut found = false;
        search.each(self.reader, values, &mut |key| {
            self.workspace.interrupt.check()?;
            let Some(row) = writer.lock(search.table, key, LockMode::Shared, LockWait::Wait)? else {
                return Ok(true);
            };
            found = search.key_of(&row.image) == wanted;
            if !found {
                writer.give_back(row);
            }
            Ok(!found)
        })?;
        Ok(found)
    }

    /// Sees to all rows that refer to a row of a table.
    fn parent_changed(
        &self,
        writer: &mut Writer<'_>,
        member: usize,
        old: &[u8],
        change: ParentChange<'_>,
        depth: usize,
    ) -> Result<(), SqlError> {
        let codec = self.family.members[member].table.row_codec();
        let before = codec.view(old);
        for link in &self.family.links {
            let Some(parent) = link.parent.as_ref().filter(|parent| parent.member == member) else {
                continue;
            };
            if parent.columns.iter().any(|column| before.is_null(*column)) {
                continue;
            }
            let action = match change {
                ParentChange::Deleted => link.on_delete,
                ParentChange::Updated(new) => {
                    if !differ(&before, &codec.view(new), &parent.columns) {
                        continue;
                    }
                    link.on_update
                }
            };
            let values: Vec<ValueRef<'_>> = parent.columns.iter().map(|column| before.get(*column)).collect();
            if action.changes_rows() {
                self.follow(writer, link, &values, (change, action), depth)?;
            } else {
                self.check_unreferenced(writer, link, parent, &values)?;
            }
        }
        Ok(())
    }

    /// 1451 if a row refers to these values, and no row of the parent has them any more.
    fn check_unreferenced(
        &self,
        writer: &mut Writer<'_>,
        link: &Link,
        parent: &Parent,
        values: &[ValueRef<'_>],
    ) -> Result<(), SqlError> {
        let search =
            Search::new(&self.family.members[link.child].table, link.child_index, &link.child_columns);
        if self.lock_first(writer, &search, values)? && !self.has_parent(writer, parent, values)? {
            return Err(refused(ErrorKind::RowIsReferenced, "delete or update a parent", &link.text));
        }
        Ok(())
    }

    /// Changes the rows that referred to these values as the constraint says.
    fn follow(
        &self,
        writer: &mut Writer<'_>,
        link: &Link,
        values: &[ValueRef<'_>],
        (change, action): (ParentChange<'_>, ReferentialAction),
        depth: usize,
    ) -> Result<(), SqlError> {
        let member = &self.family.members[link.child];
        let table = &member.table;
        let search = Search::new(table, link.child_index, &link.child_columns);
        let mut keys = Spool::default();
        search.each(self.reader, values, &mut |key| keys.push(key, &[], self.workspace).map(|()| true))?;
        let any = keys.len() > 0;
        let keys = keys.finish()?;
        if any && depth + 1 >= DEPTH_MAX {
            let text = format!("Got error 193 '{}' from InnoDB", link.text);
            return Err(SqlError::new(ErrorKind::ErrorFromEngine, text));
        }
        let wanted = search.key(values);
        let mut old = Vec::new();
        keys.for_each(|key, _| {
            self.workspace.interrupt.check()?;
            let mut is_meant = |image: &[u8]| {
                old.clear();
                old.extend_from_slice(image);
                search.key_of(image) == wanted
            };
            if matches!((change, action), (ParentChange::Deleted, ReferentialAction::Cascade)) {
                if writer.delete(table, key, &mut is_meant)? {
                    self.parent_changed(writer, link.child, &old, ParentChange::Deleted, depth + 1)?;
                }
                return Ok(true);
            }
            let mut new = Vec::new();
            let mut failure = None;
            let result = writer.update(table, key, &mut |image, out| {
                if !is_meant(image) {
                    return false;
                }
                new.clear();
                match self.follower(link, image, change, action, &mut new) {
                    Ok(()) => out.extend_from_slice(&new),
                    Err(error) => failure = Some(error),
                }
                failure.is_none()
            });
            if let Some(error) = failure {
                return Err(error);
            }
            if result.map_err(|error| write_error(error, table, &new))? {
                self.row_updated(writer, link.child, (&old, &new), Some(link), depth + 1)?;
            }
            Ok(true)
        })
    }

    /// Makes the image of a row that follows its parent.
    fn follower(
        &self,
        link: &Link,
        image: &[u8],
        change: ParentChange<'_>,
        action: ReferentialAction,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let child = &self.family.members[link.child];
        let codec = child.table.row_codec();
        let arena = Bump::new();
        let mut values: Vec<ValueRef<'_>> = Vec::new();
        codec.view(image).read_into(&mut values);
        let new_parent = match (&link.parent, change, action) {
            (Some(parent), ParentChange::Updated(new), ReferentialAction::Cascade) => {
                let view = self.family.members[parent.member].table.row_codec().view(new);
                let value = |column: &usize| view.get(*column).to_value();
                parent.columns.iter().map(value).collect()
            }
            _ => vec![Value::Null; link.child_columns.len()],
        };
        for (column, value) in link.child_columns.iter().zip(&new_parent) {
            let described = &child.def.columns[*column];
            let coerced = coerce(value.as_ref(), described, None, &arena);
            if coerced.issue.is_some() {
                return Err(refused(ErrorKind::RowIsReferenced, "delete or update a parent", &link.text));
            }
            values[*column] = coerced.value;
        }
        codec.encode(&values, out);
        Ok(())
    }
}

/// True if the columns of two rows differ.
fn differ(before: &RowView<'_>, after: &RowView<'_>, columns: &[usize]) -> bool {
    columns.iter().any(|column| before.get(*column) != after.get(*column))
}

/// True if constraints forbid the change: IGNORE passes over it.
fn is_refusal(error: &SqlError) -> bool {
    matches!(error.kind, ErrorKind::NoReferencedRow | ErrorKind::RowIsReferenced)
}

/// Runs the check of a row that was changed after `before`. Of a statement with IGNORE, takes the change back
/// if constraints forbid it, and returns the reason.
///
/// # Errors
/// Those of `check`.
pub(crate) fn or_take_back(
    writer: &mut Writer<'_>,
    before: Option<Savepoint>,
    ignore: bool,
    check: impl FnOnce(&mut Writer<'_>) -> Result<(), SqlError>,
) -> Result<Option<SqlError>, SqlError> {
    match check(writer) {
        Err(error) if ignore && is_refusal(&error) => {
            if let Some(before) = before {
                writer.take_back_to(before)?;
            }
            Ok(Some(error))
        }
        result => result.map(|()| None),
    }
}

/// Finds the rows of a table that have given values in given columns.
pub(crate) struct Search<'t> {
    table: &'t Table,
    index: Option<IndexId>,
    /// Makes keys of the columns alone, to compare them.
    codec: KeyCodec,
}

impl<'t> Search<'t> {
    pub(crate) fn new(table: &'t Table, index: Option<IndexId>, columns: &[usize]) -> Search<'t> {
        let part = |column: &usize| types::KeyPart { column: *column, prefix_chars: None, descending: false };
        let parts: Vec<types::KeyPart> = columns.iter().map(part).collect();
        Search { table, index, codec: KeyCodec::new(&table.def().columns, &parts) }
    }

    pub(crate) fn key(&self, values: &[ValueRef<'_>]) -> Vec<u8> {
        let mut key = Vec::new();
        self.codec.encode_prefix(values, &mut key);
        key
    }

    pub(crate) fn key_of(&self, image: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        self.codec.encode_row(&self.table.row_codec().view(image), &mut key);
        key
    }

    /// True if a row that `reader` sees has these values.
    ///
    /// # Errors
    /// Of the engine.
    pub(crate) fn finds(&self, reader: Reader<'_>, values: &[ValueRef<'_>]) -> Result<bool, SqlError> {
        let mut found = false;
        let mut image = Vec::new();
        self.each(reader, values, &mut |key| {
            image.clear();
            found = self.table.get(reader, key, &mut image)?;
            Ok(!found)
        })?;
        Ok(found)
    }

    /// Calls with the primary key of each row that may have these values, until it gives false. A row may
    /// come twice, by what it is and by what it was.
    ///
    /// # Errors
    /// Of the engine, and those of `each`.
    pub(crate) fn each(
        &self,
        reader: Reader<'_>,
        values: &[ValueRef<'_>],
        each: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let (index, range) = match self.index {
            Some(index) => {
                let codec = self.table.key_codec(index);
                let mut prefix = Vec::new();
                codec.encode_prefix(values, &mut prefix);
                if index == IndexId(0) && codec.parts() == values.len() {
                    return each(&prefix).map(|_| ());
                }
                let bound = Bound::Included(prefix);
                (index, KeyRange { lower: bound.clone(), upper: bound })
            }
            None => (IndexId(0), KeyRange::all()),
        };
        let wanted = self.key(values);
        let mut scan = self.table.scan(reader, index, range, Direction::Forward);
        while let Some(image) = scan.next_row()? {
            if self.index.is_none() && self.key_of(image) != wanted {
                continue;
            }
            if !each(scan.primary_key())? {
                break;
            }
        }
        Ok(())
    }
}

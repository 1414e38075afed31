//! Prepares rows for a table: converts values to images, generates AUTO_INCREMENT numbers, handles
//! duplicates.

use super::computing::{Making, value_for_generated};
use super::foreign_keys::{Keeper, or_take_back};
use super::{UniqueKey, note_issue, write_error};
use crate::definition::defaults::implicit_default;
use crate::expr::{CoerceIssue, Coerced, Context, Slots, coerce, number_of_bits};
use crate::session::Target;
use crate::session::bulk::{Bulk, Inserted};
use crate::session::environment::SessionEnvironment;
use crate::session::relations::Family;
use crate::session::transaction::Writes;
use crate::status::Counter;
use crate::{ErrorKind, Session, SqlError};
use base::IndexId;
use bumpalo::Bump;
use engine::{Error, KeyList, Load, Reader, Writer};
use std::sync::Arc;
use types::{Column, ColumnType, RowCodec, Value, ValueRef};

/// What happens if a key of a new row exists already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnDuplicate {
    Fail,
    /// INSERT IGNORE: a warning, and the row is skipped.
    Skip,
    /// REPLACE.
    Replace,
}

impl OnDuplicate {
    /// Of a statement that is REPLACE, or INSERT with IGNORE.
    pub(super) fn of(replace: bool, ignore: bool) -> OnDuplicate {
        match (replace, ignore) {
            (true, _) => OnDuplicate::Replace,
            (false, true) => OnDuplicate::Skip,
            (false, false) => OnDuplicate::Fail,
        }
    }
}

/// One value of a row to insert.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    Value(ValueRef<'a>),
    /// Bits as a statement writes them: a number for a column of numbers, and bytes for the others.
    Bits(&'a [u8]),
    Default,
}

/// Collects the rows of one INSERT or REPLACE.
pub(crate) struct Inserter {
    pub target: Arc<Target>,
    /// The column of each value.
    columns: Vec<usize>,
    /// The values of columns that are not given. NULL for the columns that are.
    template: Vec<Value>,
    /// By column: the value of DEFAULT.
    defaults: Vec<Option<Value>>,
    /// Columns that have neither a value nor a default: 1364.
    missing: Vec<usize>,
    /// True if the statement names no columns: `VALUES ()` is then a row of defaults.
    takes_defaults: bool,
    on_duplicate: OnDuplicate,
    strict: bool,
    no_zero_generates: bool,
    /// The tables around it, if FOREIGN KEYs have to be checked.
    family: Option<Arc<Family>>,
    images: KeyList,
    image: Vec<u8>,
    /// For each row the number that it gives, or 0 if one has to be generated.
    numbers: Vec<u64>,
    generated: u64,
    rows: u64,
    /// How many of them have been written.
    written: u64,
    single_row: bool,
    /// The rows that were written last, for RETURNING.
    kept: Option<KeyList>,
}

impl Inserter {
    /// `columns` in the order of the values. `None` means all columns.
    ///
    /// # Errors
    /// 1054 for a column that does not exist, 1110 for one that is named twice.
    pub(super) fn new<S: AsRef<str>>(
        session: &Session,
        target: Arc<Target>,
        names: Option<&[S]>,
        on_duplicate: OnDuplicate,
    ) -> Result<Inserter, SqlError> {
        let takes_defaults = names.is_none_or(<[S]>::is_empty);
        let columns = match names {
            None => target.visible(),
            Some(names) => columns_of(&target, names)?,
        };
        let inserter = Inserter::of_columns(session, target, columns, on_duplicate);
        Ok(Inserter { takes_defaults, ..inserter })
    }

    /// The types of the columns that values are given for, in their order.
    pub(super) fn types(&self) -> impl Iterator<Item = ColumnType> {
        self.columns.iter().map(|column| self.target.def.columns[*column].column_type.clone())
    }

    fn of_columns(
        session: &Session,
        target: Arc<Target>,
        columns: Vec<usize>,
        on_duplicate: OnDuplicate,
    ) -> Inserter {
        let count = target.def.columns.len();
        let mut template = vec![Value::Null; count];
        let mut missing = Vec::new();
        let mut defaults = Vec::new();
        if columns.len() < count {
            defaults = target.defaults(&session.clock());
            for position in (0..count).filter(|position| !columns.contains(position)) {
                match &defaults[position] {
                    Some(value) => template[position] = value.clone(),
                    None if target.def.auto_increment == Some(position) => {}
                    None => {
                        template[position] = implicit_default(&target.def.columns[position]);
                        missing.push(position);
                    }
                }
            }
        }
        let common = &session.variables.common;
        // Messages count the rows of all parameters.
        let rows = session.bulk.as_ref().map_or(0, Bulk::records);
        Inserter {
            family: target.family(session).cloned(),
            target,
            columns,
            template,
            defaults,
            missing,
            takes_defaults: false,
            on_duplicate,
            strict: common.sql_mode.is_strict() && on_duplicate != OnDuplicate::Skip,
            no_zero_generates: common.sql_mode.contains(crate::variables::SqlMode::NO_AUTO_VALUE_ON_ZERO),
            images: KeyList::default(),
            image: Vec::new(),
            numbers: Vec::new(),
            generated: 0,
            rows,
            written: rows,
            single_row: true,
            kept: None,
        }
    }

    /// An inserter for rows that are complete lists of values ([`Inserter::push_row`]).
    pub(super) fn whole_rows(session: &Session, target: Arc<Target>, on_duplicate: OnDuplicate) -> Inserter {
        let columns = (0..target.def.columns.len()).collect();
        Inserter::of_columns(session, target, columns, on_duplicate)
    }

    /// Announces that there are several rows: then NULL in a NOT NULL column is only a warning in non-strict
    /// mode.
    pub(super) fn many_rows(&mut self) {
        self.single_row = false;
    }

    /// From now on [`Inserter::last_written`] tells what was written.
    pub(super) fn keep_written(&mut self) {
        self.kept = Some(KeyList::default());
    }

    /// The images of the rows that were written last, without those that were skipped.
    pub(super) fn last_written(&self) -> Option<&KeyList> {
        self.kept.as_ref()
    }

    /// Begins a row that [`Inserter::push_row`] ends. Returns its number, counted from 1.
    pub(super) fn begin_row(&mut self) -> u64 {
        self.rows += 1;
        self.rows
    }

    /// Adds the row that was begun last. `values` has a converted value for each column.
    /// [`Inserter::check_last`] comes next.
    pub(super) fn push_row(&mut self, values: &[ValueRef<'_>]) {
        let target = self.target.clone();
        self.push_image(values, target.table.row_codec());
    }

    /// The images of the rows that are not written yet.
    pub(super) fn batch(&self) -> &KeyList {
        &self.images
    }

    pub(super) fn family(&self) -> Option<&Family> {
        self.family.as_deref()
    }

    pub(super) fn reserve(&mut self, bytes: usize) {
        self.images.bytes.reserve(bytes);
    }

    /// # Errors
    /// 1136 if a row does not have as many values as columns were named.
    pub(super) fn check_count(&self, values: usize, row: u64) -> Result<(), SqlError> {
        // `VALUES ()` is a row of defaults.
        let is_default = values == 0 && self.takes_defaults;
        if values == self.columns.len() || is_default {
            return Ok(());
        }
        let text = format!("Column count doesn't match value count at row {row}");
        Err(SqlError::new(ErrorKind::WrongValueCount, text))
    }

    /// Adds a row of values, in the order of the named columns.
    ///
    /// # Errors
    /// 1136 for a wrong number of values, 1364, and those of values that do not fit.
    #[inline]
    pub(super) fn add(
        &mut self,
        session: &mut Session,
        given: &[Given<'_>],
        arena: &Bump,
    ) -> Result<(), SqlError> {
        self.rows += 1;
        if given.len() != self.columns.len() {
            self.check_count(given.len(), self.rows)?;
            return self.add_defaults(session, arena);
        }
        if !self.missing.is_empty() {
            self.note_missing(session)?;
        }
        let target = self.target.clone();
        let columns = &target.def.columns;
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(columns.len());
        if given.len() == columns.len() && self.columns.is_sorted() {
            for (position, value) in given.iter().enumerate() {
                values.push(self.fit(session, position, &columns[position], *value, arena)?);
            }
        } else {
            values.extend(self.template.iter().map(|value| copy_to(value.as_ref(), arena)));
            for (value, at) in given.iter().zip(0..self.columns.len()) {
                let position = self.columns[at];
                values[position] = self.fit(session, position, &columns[position], *value, arena)?;
            }
        }
        if target.computed.is_some() {
            self.check_generated(session, given)?;
            let is_given = |column: usize| {
                let at = self.columns.iter().position(|named| *named == column);
                at.is_some_and(|at| matches!(given[at], Given::Value(_)))
            };
            self.complete(session, &mut values, &is_given, arena)?;
        }
        self.push_image(&values, target.table.row_codec());
        self.check_last(session)
    }

    /// Refuses values for generated columns. NULL may be given for one.
    ///
    /// # Errors
    /// 1906 in strict mode.
    fn check_generated(&self, session: &mut Session, given: &[Given<'_>]) -> Result<(), SqlError> {
        for (given, column) in given.iter().zip(&self.columns) {
            let has_value = matches!(given, Given::Value(value) if !value.is_null());
            if !has_value || !self.target.is_generated(*column) {
                continue;
            }
            let error = value_for_generated(&self.target.def, *column);
            if self.strict {
                return Err(error);
            }
            session.state.warnings.warn(error.kind, error.message);
        }
        Ok(())
    }

    /// Computes generated columns and defaults of a row, if there are any.
    ///
    /// # Errors
    /// Those of the expressions, and of values that do not fit.
    pub(super) fn complete<'v>(
        &self,
        session: &mut Session,
        values: &mut [ValueRef<'v>],
        is_given: &dyn Fn(usize) -> bool,
        arena: &'v Bump,
    ) -> Result<(), SqlError> {
        let target = &self.target;
        let Some(computed) = &target.computed else { return Ok(()) };
        let (def, metadata) = (&*target.def, &target.metadata);
        let making = Making { def, metadata, computed, strict: self.strict, number: self.rows };
        making.complete(session, values, is_given, arena)
    }

    /// Computes the generated columns again that are made from a number which was generated.
    fn complete_numbered(&mut self, session: &mut Session) -> Result<(), SqlError> {
        let target = self.target.clone();
        let codec = target.table.row_codec();
        let mut images = KeyList::default();
        let mut image = Vec::new();
        for row in 0..self.images.len() {
            let arena = Bump::new();
            let mut values = Vec::new();
            codec.view(self.images.get(row)).read_into(&mut values);
            self.complete(session, &mut values, &|_| true, &arena)?;
            image.clear();
            codec.encode(&values, &mut image);
            images.push(&image);
        }
        self.images = images;
        Ok(())
    }

    /// Tests the row that was added last. With IGNORE it is taken out again if it does not meet a condition.
    ///
    /// # Errors
    /// 4025.
    #[inline]
    pub(super) fn check_last(&mut self, session: &mut Session) -> Result<(), SqlError> {
        match self.target.checks(session) {
            None => Ok(()),
            Some(_) => self.check_last_row(session),
        }
    }

    #[cold]
    fn check_last_row(&mut self, session: &mut Session) -> Result<(), SqlError> {
        let target = self.target.clone();
        let Some(checks) = target.checks(session) else { return Ok(()) };
        let last = self.images.len() - 1;
        let tested = {
            let environment = SessionEnvironment::new(session);
            let arena = Bump::new();
            let context =
                Context { slots: Slots::EMPTY, arena: &arena, environment: &environment, subqueries: None };
            checks.test(target.table.row_codec().view(self.images.get(last)), &context)
        };
        let Err(error) = tested else { return Ok(()) };
        let start = if last == 0 { 0 } else { self.images.ends[last - 1] };
        self.images.ends.pop();
        self.images.bytes.truncate(start as usize);
        if target.auto_increment.is_some() && self.numbers.pop() == Some(0) {
            self.generated -= 1;
        }
        if self.on_duplicate != OnDuplicate::Skip {
            return Err(error);
        }
        session.state.warnings.warn(error.kind, error.message);
        Ok(())
    }

    fn add_defaults(&mut self, session: &mut Session, arena: &Bump) -> Result<(), SqlError> {
        let target = self.target.clone();
        let mut values = Vec::with_capacity(target.def.columns.len());
        for (position, column) in target.def.columns.iter().enumerate() {
            values.push(self.fit(session, position, column, Given::Default, arena)?);
        }
        self.complete(session, &mut values, &|_| false, arena)?;
        self.push_image(&values, target.table.row_codec());
        self.check_last(session)
    }

    #[inline]
    fn push_image(&mut self, values: &[ValueRef<'_>], codec: &RowCodec) {
        if let Some(auto) = self.target.auto_increment {
            let number = match values[auto.column] {
                ValueRef::Int(number) => number as u64,
                ValueRef::UInt(number) => number,
                _ => 0,
            };
            let is_null = values[auto.column].is_null();
            if is_null || number == 0 && !self.no_zero_generates {
                self.generated += 1;
                self.numbers.push(0);
            } else {
                self.numbers.push(number);
            }
        }
        if self.on_duplicate == OnDuplicate::Fail {
            // Encode directly into the list, without a copy.
            codec.encode(values, &mut self.images.bytes);
            self.images.ends.push(self.images.bytes.len() as u32);
        } else {
            self.image.clear();
            codec.encode(values, &mut self.image);
            self.images.push(&self.image);
        }
    }

    /// A value, converted to its column's type. The cases that are common in bulk loads are handled here,
    /// first.
    #[inline]
    pub(super) fn fit<'v>(
        &mut self,
        session: &mut Session,
        position: usize,
        column: &Column,
        given: Given<'v>,
        arena: &'v Bump,
    ) -> Result<ValueRef<'v>, SqlError> {
        let value = match given {
            Given::Value(value) => value,
            Given::Bits(bits) => number_of_bits(bits, &column.column_type),
            Given::Default => return self.fit_default(session, position, arena),
        };
        match (&column.column_type, value) {
            (ColumnType::Int { bytes, unsigned: false }, ValueRef::Int(number)) => {
                let unused_bits = 64 - u32::from(*bytes) * 8;
                if number << unused_bits >> unused_bits == number {
                    return Ok(value);
                }
            }
            (ColumnType::Int { bytes, unsigned: true }, ValueRef::Int(number)) => {
                let unused_bits = 64 - u32::from(*bytes) * 8;
                if number >= 0 && (number as u64) << unused_bits >> unused_bits == number as u64 {
                    return Ok(ValueRef::UInt(number as u64));
                }
            }
            (
                ColumnType::Char { chars, collation } | ColumnType::Varchar { chars, collation },
                ValueRef::Text(text),
            ) if text.len() <= *chars as usize
                && collation.character_bytes_max() == 4
                && std::str::from_utf8(text).is_ok() =>
            {
                // A character has at least one byte, so a text with few enough bytes has few enough
                // characters.
                return Ok(value);
            }
            (_, ValueRef::Null) if column.nullable || self.target.def.auto_increment == Some(position) => {
                return Ok(value);
            }
            _ => {}
        }
        self.fit_slowly(session, position, column, value, arena)
    }

    #[cold]
    fn fit_slowly<'v>(
        &mut self,
        session: &mut Session,
        position: usize,
        column: &Column,
        value: ValueRef<'v>,
        arena: &'v Bump,
    ) -> Result<ValueRef<'v>, SqlError> {
        if self.target.is_generated(position) {
            return Ok(ValueRef::Null);
        }
        let given = match value {
            ValueRef::Null => match session.clock().in_place_of_null(column) {
                Some(now) => return Ok(now),
                None => None,
            },
            ValueRef::Time(_) => session.clock().in_place_of(&value, column),
            _ => None,
        };
        let value = given.map_or(value, |given| copy_to(given.as_ref(), arena));
        let digits = self.target.metadata.columns[position].float_digits;
        let mode = session.variables.common.sql_mode.into();
        let coerced = coerce(value, column, Some(session.variables.zone()), arena)
            .in_digits(digits)
            .in_mode(&value, column, mode);
        if coerced.issue.is_some() {
            self.issue(session, &coerced, &column.name)?;
        }
        Ok(coerced.value)
    }

    fn issue(&mut self, session: &mut Session, coerced: &Coerced<'_>, column: &str) -> Result<(), SqlError> {
        if self.on_duplicate == OnDuplicate::Skip {
            if let Some(issue) = &coerced.issue {
                let def = &self.target.def;
                super::warn_of_issue(issue, def, column, self.rows, &mut session.state.warnings);
            }
            return Ok(());
        }
        if coerced.issue == Some(CoerceIssue::Null) && self.single_row {
            return Err(CoerceIssue::Null.to_error(column, self.rows));
        }
        note_issue(session, coerced, &self.target.def, column, self.rows)
    }

    /// The value of DEFAULT.
    fn fit_default<'v>(
        &mut self,
        session: &mut Session,
        position: usize,
        arena: &'v Bump,
    ) -> Result<ValueRef<'v>, SqlError> {
        if self.target.def.auto_increment == Some(position) {
            return Ok(ValueRef::Null);
        }
        if self.defaults.is_empty() {
            self.defaults = self.target.defaults(&session.clock());
        }
        if let Some(value) = &self.defaults[position] {
            return Ok(copy_to(value.as_ref(), arena));
        }
        let column = &self.target.def.columns[position];
        let error = no_default(&column.name);
        if self.strict {
            return Err(error);
        }
        session.state.warnings.warn(error.kind, error.message);
        Ok(copy_to(implicit_default(column).as_ref(), arena))
    }

    /// Warns of columns that are not named and have no default.
    ///
    /// # Errors
    /// 1364 in strict mode.
    pub(super) fn note_missing(&self, session: &mut Session) -> Result<(), SqlError> {
        for position in &self.missing {
            let error = no_default(&self.target.def.columns[*position].name);
            if self.strict {
                return Err(error);
            }
            session.state.warnings.warn(error.kind, error.message);
        }
        Ok(())
    }

    /// Writes the collected rows as a statement of its own.
    ///
    /// # Errors
    /// 1062, 1467, and those of the engine. Then nothing is written.
    pub(super) fn finish(self, session: &mut Session) -> Result<Inserted, SqlError> {
        let target = self.target.clone();
        let tables = [target.used()];
        let family = self.family.clone();
        session.write_tables(
            Writes::Rows,
            &tables,
            family.as_deref().as_slice(),
            &|| target.is_current(),
            |session, readers, mut writer| self.write(session, readers.current, &mut writer),
        )
    }

    /// Writes the collected rows as part of a statement.
    ///
    /// # Errors
    /// As [`Inserter::finish`]. The statement has to undo what was written.
    pub(super) fn write(
        mut self,
        session: &mut Session,
        reader: Reader<'_>,
        writer: &mut Writer<'_>,
    ) -> Result<Inserted, SqlError> {
        let mut inserted = Inserted::default();
        self.write_and_warn(session, reader, writer, &mut inserted)?;
        Ok(inserted)
    }

    /// As [`Inserter::write_batch`], with a warning for each row that was skipped.
    ///
    /// # Errors
    /// As [`Inserter::write`].
    pub(super) fn write_and_warn(
        &mut self,
        session: &mut Session,
        reader: Reader<'_>,
        writer: &mut Writer<'_>,
        inserted: &mut Inserted,
    ) -> Result<(), SqlError> {
        for (_, error) in self.write_batch(session, reader, writer, inserted)? {
            session.state.warnings.warn(error.kind, error.message);
        }
        Ok(())
    }

    /// Writes the rows that were collected since the last call. Returns the rows that were skipped: their
    /// numbers and the reasons.
    ///
    /// # Errors
    /// As [`Inserter::write`].
    pub(super) fn write_batch(
        &mut self,
        session: &mut Session,
        reader: Reader<'_>,
        writer: &mut Writer<'_>,
        inserted: &mut Inserted,
    ) -> Result<Vec<(u64, SqlError)>, SqlError> {
        let target = self.target.clone();
        let rows = self.images.len() as u64;
        let affected_before = inserted.affected;
        let mut skipped = Vec::new();
        inserted.records += rows;
        self.number(session, inserted)?;
        match self.on_duplicate {
            _ if self.family.is_some() => {
                self.write_checked(session, reader, writer, inserted, &mut skipped)?;
            }
            OnDuplicate::Fail if rows == 1 => {
                writer
                    .insert(&target.table, self.images.get(0))
                    .map_err(|error| write_error(error, &target.table, self.images.get(0)))?;
                inserted.affected += 1;
            }
            OnDuplicate::Fail => {
                writer.insert_many(&target.table, &self.images).map_err(|(position, error)| {
                    write_error(error, &target.table, self.images.get(position))
                })?;
                inserted.affected += rows;
            }
            OnDuplicate::Skip => {
                let before = self.written;
                let images = &self.images;
                writer.insert_or_skip(&target.table, images, &mut |position, error| {
                    let error = write_error(error, &target.table, images.get(position));
                    skipped.push((before + position as u64 + 1, error));
                })?;
                inserted.affected += rows - skipped.len() as u64;
                inserted.duplicates += skipped.len() as u64;
            }
            OnDuplicate::Replace => self.replace(reader, writer, inserted, None)?,
        }
        session.counters.add(Counter::HandlerWrite, inserted.affected - affected_before);
        if let Some(kept) = &mut self.kept {
            kept.clear();
            let mut skipped = skipped.iter().map(|(number, _)| *number).peekable();
            for row in 0..self.images.len() {
                if skipped.next_if_eq(&(self.written + row as u64 + 1)).is_none() {
                    kept.push(self.images.get(row));
                }
            }
        }
        self.forget_batch();
        Ok(skipped)
    }

    /// Writes the rows of the batch, and checks FOREIGN KEYs.
    fn write_checked(
        &mut self,
        session: &Session,
        reader: Reader<'_>,
        writer: &mut Writer<'_>,
        inserted: &mut Inserted,
        skipped: &mut Vec<(u64, SqlError)>,
    ) -> Result<(), SqlError> {
        let Some(family) = self.family.clone() else { return Ok(()) };
        let keeper = Keeper { family: &family, reader, workspace: session.workspace() };
        let ignore = self.on_duplicate == OnDuplicate::Skip;
        if self.on_duplicate == OnDuplicate::Replace {
            return self.replace(reader, writer, inserted, Some(keeper));
        }
        let table = &self.target.table;
        if !ignore && !keeper.refers_to_itself() {
            writer
                .insert_many(table, &self.images)
                .map_err(|(position, error)| write_error(error, table, self.images.get(position)))?;
            inserted.affected += self.images.len() as u64;
            return (0..self.images.len()).try_for_each(|row| keeper.inserted(writer, self.images.get(row)));
        }
        for row in 0..self.images.len() {
            session.interrupt.check()?;
            let image = self.images.get(row);
            let before = Some(writer.savepoint());
            let refusal = match writer.insert(table, image) {
                Ok(()) => or_take_back(writer, before, ignore, |writer| keeper.inserted(writer, image))?,
                Err(error @ Error::DuplicateKey { .. }) if ignore => Some(write_error(error, table, image)),
                Err(error) => return Err(write_error(error, table, image)),
            };
            match refusal {
                None => inserted.affected += 1,
                Some(error) => {
                    inserted.duplicates += 1;
                    skipped.push((self.written + row as u64 + 1, error));
                }
            }
        }
        Ok(())
    }

    /// As [`Inserter::write_batch`], but into a table that is being built. False if keys of the rows collide.
    ///
    /// # Errors
    /// 1467, and those of the engine.
    pub(super) fn load_batch(
        &mut self,
        session: &mut Session,
        load: &mut Load<'_>,
        inserted: &mut Inserted,
    ) -> Result<bool, SqlError> {
        let rows = self.images.len() as u64;
        self.number(session, inserted)?;
        let fits = load.push(&self.images)?;
        inserted.records += rows;
        inserted.affected += rows;
        session.counters.add(Counter::HandlerWrite, rows);
        self.forget_batch();
        Ok(fits)
    }

    /// Uses rows that have been through [`Inserter::load_batch`] as the next batch.
    pub(super) fn take_batch(&mut self, images: &mut KeyList) {
        std::mem::swap(&mut self.images, images);
    }

    /// Starts again from the first row: the rows are written a second time.
    pub(super) fn start_over(&mut self) {
        self.written = 0;
    }

    /// The rows of the batch have been written.
    pub(super) fn forget_batch(&mut self) {
        self.written += self.images.len() as u64;
        self.images.clear();
        self.numbers.clear();
    }

    /// Writes generated numbers into the images, and tells the table which numbers were given.
    fn number(&mut self, session: &mut Session, inserted: &mut Inserted) -> Result<(), SqlError> {
        let Some(auto) = self.target.auto_increment else { return Ok(()) };
        let table = &self.target.table;
        let common = &session.variables.common;
        let (step, start) = (common.auto_increment_increment, common.auto_increment_offset);
        let exhausted = || SqlError::from(Error::AutoIncrementExhausted);
        if let Some(first) = session.variables.insert_id.take().filter(|_| self.generated > 0) {
            table.raise_auto_increment(first - 1);
        }
        // If all numbers are to be generated, one reservation gives consecutive numbers.
        let together = self.generated > 0 && self.generated == self.numbers.len() as u64 && step == 1;
        let mut next = if together { table.reserve_auto_increment(self.generated)? } else { 0 };
        let mut first_generated = None;
        for (row, number) in self.numbers.iter().copied().enumerate() {
            if number != 0 {
                // Negative numbers in a signed column do not change the counter.
                if number <= auto.max {
                    table.raise_auto_increment(number);
                }
                if !inserted.is_generated {
                    inserted.insert_id = number;
                }
                continue;
            }
            let number = if together {
                next += 1;
                next - 1
            } else if step == 1 {
                table.reserve_auto_increment(1)?
            } else {
                let from = table.reserve_auto_increment(step)?;
                let start = if start > step { 1 } else { start };
                from + (start + step - from % step) % step
            };
            if number > auto.max {
                return Err(exhausted());
            }
            first_generated.get_or_insert(number);
            let image_start = if row == 0 { 0 } else { self.images.ends[row - 1] as usize };
            let at = image_start + auto.offset;
            self.images.bytes[at..at + auto.bytes].copy_from_slice(&number.to_le_bytes()[..auto.bytes]);
        }
        if let Some(first) = first_generated {
            if !inserted.is_generated {
                inserted.insert_id = first;
                session.variables.last_insert_id = first;
            }
            inserted.is_generated = true;
        }
        self.generated = 0;
        match &self.target.computed {
            Some(computed) if computed.reads_auto_increment => self.complete_numbered(session),
            _ => Ok(()),
        }
    }

    /// Writes numbers into the images of the batch, for a statement that writes the rows itself. Returns the
    /// number of the first of them, counted from 1.
    ///
    /// # Errors
    /// 1467.
    pub(super) fn begin_batch(
        &mut self,
        session: &mut Session,
        inserted: &mut Inserted,
    ) -> Result<u64, SqlError> {
        inserted.records += self.images.len() as u64;
        self.number(session, inserted)?;
        Ok(self.written + 1)
    }

    fn replace(
        &mut self,
        reader: Reader<'_>,
        writer: &mut Writer<'_>,
        inserted: &mut Inserted,
        keeper: Option<Keeper<'_>>,
    ) -> Result<(), SqlError> {
        let table = &self.target.table;
        // As in MariaDB, a row that others may refer to is always deleted and inserted again.
        let may_stay = !keeper.is_some_and(|keeper| keeper.is_referenced());
        let mut deleted_image = Vec::new();
        let uniques = self.target.def.indexes.iter().rposition(|index| index.unique);
        let last_unique = IndexId(uniques.map_or(0, |position| position as u16 + 1));
        for row in 0..self.images.len() {
            let image = self.images.get(row);
            loop {
                let index = match writer.insert(table, image) {
                    Ok(()) => {
                        if let Some(keeper) = keeper {
                            keeper.inserted(writer, image)?;
                        }
                        break;
                    }
                    Err(Error::DuplicateKey { index }) => index,
                    Err(error) => return Err(error.into()),
                };
                // There is none if the row was deleted meanwhile. Then the next try may succeed.
                let key = UniqueKey::of(table, index, image);
                let mut same = false;
                for primary_key in key.rows(reader, table)? {
                    let deleted = writer.delete(table, &primary_key, &mut |old| {
                        same = may_stay && index == last_unique && old == image;
                        if keeper.is_some() {
                            deleted_image.clear();
                            deleted_image.extend_from_slice(old);
                        }
                        !same && key.is_in(table, old)
                    })?;
                    if same {
                        break;
                    }
                    inserted.affected += u64::from(deleted);
                    inserted.duplicates += u64::from(deleted);
                    if let Some(keeper) = keeper.filter(|_| deleted) {
                        keeper.deleted(writer, &deleted_image)?;
                    }
                }
                if same {
                    // The row has these values already. MySQL counts that as one row, not as two.
                    break;
                }
            }
            inserted.affected += 1;
        }
        Ok(())
    }
}

fn columns_of<S: AsRef<str>>(target: &Target, names: &[S]) -> Result<Vec<usize>, SqlError> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let name = name.as_ref();
        let position = target.column(name).ok_or_else(|| SqlError::unknown_column(name, "INSERT INTO"))?;
        if columns.contains(&position) {
            return Err(SqlError::new(
                ErrorKind::ColumnSpecifiedTwice,
                format!("Column '{name}' specified twice"),
            ));
        }
        columns.push(position);
    }
    if columns.is_empty() {
        // `()`: all columns get their defaults.
        return Ok(target.visible());
    }
    Ok(columns)
}

/// 1364.
pub(crate) fn no_default(column: &str) -> SqlError {
    SqlError::new(ErrorKind::NoDefaultForField, format!("Field '{column}' doesn't have a default value"))
}

/// A copy whose bytes are in the arena.
pub(crate) fn copy_to<'a>(value: ValueRef<'_>, arena: &'a Bump) -> ValueRef<'a> {
    match value {
        ValueRef::Null => ValueRef::Null,
        ValueRef::Int(value) => ValueRef::Int(value),
        ValueRef::UInt(value) => ValueRef::UInt(value),
        ValueRef::Float(value) => ValueRef::Float(value),
        ValueRef::Double(value) => ValueRef::Double(value),
        ValueRef::Decimal(value) => ValueRef::Decimal(value),
        ValueRef::Date(value) => ValueRef::Date(value),
        ValueRef::Time(value) => ValueRef::Time(value),
        ValueRef::DateTime(value) => ValueRef::DateTime(value),
        ValueRef::Text(bytes) => ValueRef::Text(arena.alloc_slice_copy(bytes)),
        ValueRef::Binary(bytes) => ValueRef::Binary(arena.alloc_slice_copy(bytes)),
    }
}

//! Makes rows from the fields of a file.

use super::format::{Cutter, Row};
use super::statement::{FieldTarget, LoadStatement};
use crate::definition::ColumnDefault;
use crate::definition::defaults::implicit_default;
use crate::expr::{Context, ResultType, Slots};
use crate::names::charsets::Charset;
use crate::plan::from::single_scope;
use crate::session::Target;
use crate::session::environment::SessionEnvironment;
use crate::statements::dml::assign::{Assigning, Assignments, Literals, Strictness};
use crate::statements::dml::inserter::{Given, Inserter, OnDuplicate, copy_to, no_default};
use crate::{ErrorKind, Session, SqlError, Warning, Warnings};
use bumpalo::Bump;
use std::sync::Arc;
use types::collation::CharacterMap;
use types::{Collation, Column, ColumnType, Value, ValueRef};

/// The order in which one row's warnings are reported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Phase {
    Values,
    Duplicate,
    Surplus,
}

/// Where the value of a field goes.
#[derive(Debug)]
enum To {
    Column(usize),
    Variable(String),
}

/// Makes rows of a table from fields.
#[derive(Debug)]
pub(super) struct Rows {
    target: Arc<Target>,
    to: Vec<To>,
    assignments: Option<Assignments>,
    strictness: Strictness,
    /// The character set of the file's texts, if they are not UTF-8.
    charset: Option<&'static CharacterMap>,
    defaults: Vec<Option<Value>>,
    /// The values of columns that are not mentioned.
    template: Vec<Value>,
    /// The warnings since they were last taken, each with the number of its row.
    pub warnings: Vec<(u64, Phase, Warning)>,
}

impl Rows {
    /// # Errors
    /// 1054, 1409, and those of the expressions.
    pub(super) fn new(
        session: &mut Session,
        statement: &LoadStatement,
        target: Arc<Target>,
    ) -> Result<Rows, SqlError> {
        let def = &target.def;
        let count = def.columns.len();
        let mut to = Vec::new();
        for field in &statement.targets {
            to.push(match field {
                FieldTarget::Column(path) => To::Column(column(&target, path)?),
                FieldTarget::Variable(name) => To::Variable(name.clone()),
            });
        }
        if to.is_empty() {
            to = target.visible().into_iter().map(To::Column).collect();
        }
        let scope = single_scope(&def.database, &def.name, &target.table)?;
        let connection = Collation::Utf8mb4GeneralCi;
        let assignments = match statement.assignments.as_slice() {
            [] => None,
            written => {
                let literals = Literals { slots: &[], connection };
                Some(Assignments::new(written, "SELECT", &scope, &def.columns, literals, None)?)
            }
        };
        let defaults = target.defaults(&session.clock());
        let mut template = Vec::with_capacity(count);
        for (position, column) in def.columns.iter().enumerate() {
            let is_given = to.iter().any(|to| matches!(to, To::Column(at) if *at == position))
                || assignments.as_ref().is_some_and(|assignments| assignments.sets(position));
            template.push(match &defaults[position] {
                Some(value) => value.clone(),
                None if def.auto_increment == Some(position) => Value::Null,
                None => {
                    if !is_given {
                        let error = no_default(&column.name);
                        session.state.warnings.warn(error.kind, error.message);
                    }
                    implicit_default(column)
                }
            });
        }
        let charset = match statement.charset.map(|charset: &Charset| charset.name) {
            Some(name) => name.to_owned(),
            None => session.variables.values().text("character_set_database"),
        };
        Ok(Rows {
            to,
            assignments,
            strictness: Strictness {
                strict: session.variables.common.sql_mode.is_strict(),
                ignore: statement.on_duplicate == OnDuplicate::Skip,
                generates: true,
                refuses_null: false,
            },
            charset: CharacterMap::named(&charset),
            defaults,
            template,
            target,
            warnings: Vec::new(),
        })
    }

    /// The number of fields in a row.
    pub(super) fn fields(&self) -> usize {
        self.to.len()
    }

    /// The number of bytes of each field in a file of fixed format.
    ///
    /// # Errors
    /// 1409 if a field goes to a variable, which has no width. 1084 for a text or blob, unless lines have an
    /// end.
    pub(super) fn widths(&self, has_line_end: bool) -> Result<Vec<usize>, SqlError> {
        let is_blob = |position: usize| {
            let column_type = &self.target.def.columns[position].column_type;
            matches!(column_type, ColumnType::Text { .. } | ColumnType::Blob { .. })
        };
        let width = |to: &To| match to {
            To::Column(position) if is_blob(*position) && !has_line_end => {
                let text = "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'";
                Err(SqlError::new(ErrorKind::BlobsNeedTerminators, text))
            }
            To::Column(position) => Ok(width(&self.target, *position)),
            To::Variable(_) => {
                let text = "Can't load value from file with fixed size rows to variable";
                Err(SqlError::new(ErrorKind::FixedRowsToVariables, text))
            }
        };
        self.to.iter().map(width).collect()
    }

    /// Adds a row. Its fields were cut from `bytes`.
    ///
    /// # Errors
    /// 1261, 1262, 1263, and those of expressions and of values that do not fit.
    pub(super) fn add(
        &mut self,
        session: &mut Session,
        inserter: &mut Inserter,
        cutter: &Cutter,
        bytes: &[u8],
        row: Row,
        arena: &Bump,
    ) -> Result<(), SqlError> {
        let number = inserter.begin_row();
        let target = self.target.clone();
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(self.template.len());
        values.extend(self.template.iter().map(Value::as_ref));
        for (nth, to) in self.to.iter().enumerate() {
            let field = (nth < cutter.len()).then(|| cutter.field(bytes, nth));
            match to {
                To::Variable(name) => {
                    let text = field.flatten().map(|text| self.text(text, arena));
                    let value = text.map_or(Value::Null, |text| ValueRef::Text(text).to_value());
                    session.state.user_variables.insert(name.clone(), value, &session.memory)?;
                }
                To::Column(position) => {
                    let described = &target.def.columns[*position];
                    values[*position] = match field {
                        Some(Some(text)) => {
                            let value = self.value(described, text, arena);
                            inserter.fit(session, *position, described, Given::Value(value), arena)?
                        }
                        Some(None) => self.null(session, *position, number, arena)?,
                        None => {
                            let text = format!("Row {number} doesn't contain data for all columns");
                            self.complain(session, ErrorKind::TooFewFields, text)?;
                            self.missing(*position, cutter.is_fixed(), arena)
                        }
                    };
                }
            }
        }
        let mut values = match &self.assignments {
            None => values,
            Some(assignments) => {
                let mut warnings = Warnings::default();
                warnings.kept_max = usize::MAX;
                let environment = SessionEnvironment::new(session);
                let result = {
                    let mut values = values;
                    let slots = Slots::new(&[], &[]);
                    let context = Context { slots, arena, environment: &environment, subqueries: None };
                    let assigning = Assigning {
                        assignments,
                        target: &target,
                        defaults: &self.defaults,
                        now: &[],
                        checks: None,
                        strictness: self.strictness,
                    };
                    let set = assigning.set(&mut values, &[], number, &context, &mut warnings);
                    // They outlive the environment.
                    set.map(|()| values.iter().map(|value| copy_to(*value, arena)).collect::<Vec<_>>())
                };
                environment.into_leftovers().settle(session);
                for warning in warnings.list() {
                    session.state.warnings.push(warning.level, warning.kind, warning.message.clone());
                }
                result?
            }
        };
        let is_given = |column: usize| {
            self.to.iter().any(|to| matches!(to, To::Column(at) if *at == column))
                || self.assignments.as_ref().is_some_and(|assignments| assignments.sets(column))
        };
        inserter.complete(session, &mut values, &is_given, arena)?;
        inserter.push_row(&values);
        inserter.check_last(session)?;
        self.take_warnings(session, number, Phase::Values);
        if row.has_more {
            let text =
                format!("Row {number} was truncated; it contained more data than there were input columns");
            self.complain(session, ErrorKind::TooManyFields, text)?;
            self.take_warnings(session, number, Phase::Surplus);
        }
        Ok(())
    }

    /// Moves the session's new warnings to the list of this row.
    fn take_warnings(&mut self, session: &mut Session, number: u64, phase: Phase) {
        let warnings = &mut session.state.warnings;
        if warnings.count() > 0 {
            self.warnings.extend(warnings.list().iter().map(|warning| (number, phase, warning.clone())));
            warnings.clear();
        }
    }

    /// Reports an error in strict mode, a warning otherwise.
    fn complain(&self, session: &mut Session, kind: ErrorKind, text: String) -> Result<(), SqlError> {
        if self.strictness.strict && !self.strictness.ignore {
            return Err(SqlError::new(kind, text));
        }
        session.state.warnings.warn(kind, text);
        Ok(())
    }

    /// A text of the file, converted to UTF-8 unless it is invalid.
    fn text<'v>(&self, text: &'v [u8], arena: &'v Bump) -> &'v [u8] {
        match self.charset {
            Some(map) if !text.is_ascii() => arena.alloc_slice_copy(map.decode(text).as_bytes()),
            _ => text,
        }
    }

    /// A field as a value that can be converted to its column.
    fn value<'v>(&self, column: &Column, text: &'v [u8], arena: &'v Bump) -> ValueRef<'v> {
        match column.column_type {
            ColumnType::Int { .. } => match integer(text) {
                Some(number) => ValueRef::Int(number),
                None => ValueRef::Text(self.text(text, arena)),
            },
            ColumnType::Binary { .. } | ColumnType::Varbinary { .. } | ColumnType::Blob { .. } => {
                ValueRef::Binary(text)
            }
            _ => ValueRef::Text(self.text(text, arena)),
        }
    }

    /// The value of a column whose field is NULL.
    fn null<'v>(
        &self,
        session: &mut Session,
        position: usize,
        number: u64,
        arena: &'v Bump,
    ) -> Result<ValueRef<'v>, SqlError> {
        let column = &self.target.def.columns[position];
        if column.nullable || self.target.def.auto_increment == Some(position) {
            return Ok(ValueRef::Null);
        }
        if let Some(now) = session.clock().in_place_of_null(column) {
            return Ok(now);
        }
        let text = format!(
            "Column set to default value; NULL supplied to NOT NULL column '{}' at row {number}",
            column.name
        );
        self.complain(session, ErrorKind::NullForNotNull, text)?;
        Ok(copy_to(implicit_default(column).as_ref(), arena))
    }

    /// The value of a column whose field is missing: the zero of its type, and not its default. In a file
    /// that is not of fixed format it is NULL if the column is AUTO_INCREMENT, if its default is NULL, or if
    /// it is nullable and its default is the current time.
    fn missing<'v>(&self, position: usize, is_fixed: bool, arena: &'v Bump) -> ValueRef<'v> {
        let def = &self.target.def;
        let column = &def.columns[position];
        let is_now = self.target.metadata.columns[position].default == ColumnDefault::Now;
        let is_null = self.defaults[position].as_ref().is_some_and(|value| value.as_ref().is_null());
        let may_be_null = column.nullable && is_now || is_null || def.auto_increment == Some(position);
        if may_be_null && !is_fixed {
            return ValueRef::Null;
        }
        let zero = implicit_default(&Column { nullable: false, ..column.clone() });
        copy_to(zero.as_ref(), arena)
    }
}

/// The number of bytes of a column in a file of fixed format: as many as clients need to show it.
fn width(target: &Target, position: usize) -> usize {
    let column_type = &target.def.columns[position].column_type;
    let character_bytes = match column_type {
        ColumnType::Char { collation, .. } | ColumnType::Varchar { collation, .. } => {
            collation.character_bytes_max() as usize
        }
        _ => 1,
    };
    let extras = &target.metadata.columns[position];
    match (extras.display_width, extras.float_digits) {
        (Some(width), _) | (None, Some((width, _))) => usize::from(width),
        (None, None) => ResultType::of(column_type.clone(), true).display_chars as usize * character_bytes,
    }
}

/// 1054 for a column that the table does not have.
fn column(target: &Target, path: &[String]) -> Result<usize, SqlError> {
    let def = &target.def;
    let (name, before) = path.split_last().map_or(("", path), |(name, before)| (name.as_str(), before));
    let is_here = match before {
        [] => true,
        [table] => *table == def.name,
        [database, table] => *database == def.database && *table == def.name,
        _ => false,
    };
    let found = if is_here { target.column(name) } else { None };
    found.ok_or_else(|| SqlError::unknown_column(&path.join("."), "SELECT"))
}

/// A short integer in decimal digits. Other numbers are converted like all texts.
fn integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if is_negative { -number } else { number })
}

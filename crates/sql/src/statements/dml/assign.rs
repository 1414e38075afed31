//! `SET column = expression` on the newest image of a row. UPDATE and ON DUPLICATE KEY UPDATE use it.

use super::computing::value_for_generated;
use super::inserter::{copy_to, no_default};
use crate::accounts::Rights;
use crate::definition::defaults::Clock;
use crate::expr::{CoerceIssue, ColumnRef, Compiled, Context, Expr, Part, Row, coerce};
use crate::plan::bind::{Binder, SlotInfo, Subqueries};
use crate::plan::checks::Checks;
use crate::plan::computed::ComputedColumn;
use crate::plan::object_name;
use crate::plan::query::Planner;
use crate::plan::scope::{Scope, written};
use crate::session::Target;
use crate::session::quiet::Quiet;
use crate::{ErrorKind, SqlError, Warnings};
use sqlparser::ast;
use std::collections::BTreeMap;
use types::{Collation, ColumnType, RowView, Value, ValueRef};

/// The new value of a column.
#[derive(Debug)]
enum Right {
    Default,
    Value(Compiled),
    /// A TIMESTAMP column, for another: its value stays as it is stored.
    Moment(Compiled),
}

/// The assignments of a statement.
#[derive(Debug)]
pub(super) struct Assignments(Vec<(usize, Right)>);

/// What a statement's literals are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literals<'a> {
    pub slots: &'a [SlotInfo],
    pub connection: Collation,
}

impl<'a> Literals<'a> {
    pub(super) fn of(planner: &Planner<'a>) -> Literals<'a> {
        Literals { slots: planner.slots, connection: planner.connection }
    }
}

/// How values that do not fit are treated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strictness {
    pub strict: bool,
    /// UPDATE IGNORE, INSERT IGNORE.
    pub ignore: bool,
    /// The rows are new: NULL in the AUTO_INCREMENT column generates a number.
    pub generates: bool,
    /// NULL in a column that cannot be NULL is an error, strict or not.
    pub refuses_null: bool,
}

/// True if the value is DEFAULT.
pub(super) fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("DEFAULT"))
}

impl Right {
    fn new(
        value: &ast::Expr,
        clause: &'static str,
        scope: &Scope,
        literals: Literals<'_>,
        subqueries: Option<&dyn Subqueries>,
        column_type: &ColumnType,
    ) -> Result<Right, SqlError> {
        if is_default(value) {
            return Ok(Right::Default);
        }
        let mut binder = Binder::new(scope, literals.slots, clause);
        binder.subqueries = subqueries;
        match binder.bind(value)? {
            Expr::Column(from) if from.in_utc && column_type.is_timestamp() => {
                let from = Expr::Column(ColumnRef { in_utc: false, ..from });
                Ok(Right::Moment(Compiled::for_column(&from, None, literals.connection)?))
            }
            expr => {
                let to = Some(column_type);
                Ok(Right::Value(Compiled::for_column(&expr, to, literals.connection)?))
            }
        }
    }
}

/// The name of an assignment's column.
fn target_path(target: &ast::AssignmentTarget) -> Result<Vec<ast::Ident>, SqlError> {
    let ast::AssignmentTarget::ColumnName(name) = target else {
        return Err(SqlError::not_supported("assignments to several columns at once"));
    };
    Ok(object_name(name).into_iter().map(ast::Ident::new).collect())
}

/// The position of an assignment's column.
fn column_of(
    target: &ast::AssignmentTarget,
    clause: &'static str,
    scope: &Scope,
    columns: &[types::Column],
) -> Result<usize, SqlError> {
    let path = target_path(target)?;
    let unknown = || SqlError::unknown_column(&written(&path), clause);
    // If the name has a qualifier, it must be one that fits the table.
    if path.len() > 1 && scope.place_of(&path, clause)?.is_none() {
        return Err(unknown());
    }
    let last = path.last().map(|name| name.value.as_str()).unwrap_or_default();
    let column =
        columns.iter().position(|column| column.name.eq_ignore_ascii_case(last)).ok_or_else(unknown)?;
    if let Some(need) = &scope.tables[0].need {
        need.borrow_mut().column(&columns[column].name, Rights::UPDATE);
    }
    Ok(column)
}

impl Assignments {
    /// Binds assignments to columns of the first table in `scope`; `clause` is what messages call this, and
    /// `subqueries` plans the subqueries, if there may be any.
    ///
    /// # Errors
    /// 1054, and those of the expressions.
    pub(super) fn new(
        assignments: &[ast::Assignment],
        clause: &'static str,
        scope: &Scope,
        columns: &[types::Column],
        literals: Literals<'_>,
        subqueries: Option<&dyn Subqueries>,
    ) -> Result<Assignments, SqlError> {
        let mut bound = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let column = column_of(&assignment.target, clause, scope, columns)?;
            let right = Right::new(
                &assignment.value,
                clause,
                scope,
                literals,
                subqueries,
                &columns[column].column_type,
            )?;
            bound.push((column, right));
        }
        Ok(Assignments(bound))
    }

    /// Binds the assignments of an UPDATE of several tables: those of each part that has any.
    ///
    /// # Errors
    /// As [`Assignments::new`].
    pub(super) fn of_parts(
        assignments: &[ast::Assignment],
        scope: &Scope,
        planner: &Planner<'_>,
    ) -> Result<BTreeMap<usize, Assignments>, SqlError> {
        let clause = "SET";
        let literals = Literals::of(planner);
        let mut parts: BTreeMap<usize, Assignments> = BTreeMap::new();
        for assignment in assignments {
            let path = target_path(&assignment.target)?;
            let (part, column) = scope
                .place_of(&path, clause)?
                .ok_or_else(|| SqlError::unknown_column(&written(&path), clause))?;
            let table = &scope.tables[part];
            let column_type = &table.columns[column].column_type;
            let right = Right::new(&assignment.value, clause, scope, literals, Some(planner), column_type)?;
            if let Some(need) = &table.need {
                need.borrow_mut().column(&table.columns[column].name, Rights::UPDATE);
            }
            parts.entry(part).or_insert_with(|| Assignments(vec![])).0.push((column, right));
        }
        Ok(parts)
    }

    /// True if a column is set to DEFAULT.
    pub(super) fn need_defaults(&self) -> bool {
        self.0.iter().any(|(_, right)| matches!(right, Right::Default))
    }

    /// Refuses DEFAULT for a column without a default, whether there are rows or not.
    ///
    /// # Errors
    /// 1364.
    pub(super) fn check_defaults(&self, target: &Target, defaults: &[Option<Value>]) -> Result<(), SqlError> {
        let missing = |(column, right): &&(usize, Right)| {
            matches!(right, Right::Default)
                && defaults[*column].is_none()
                && target.def.auto_increment != Some(*column)
        };
        match self.0.iter().find(missing) {
            Some((column, _)) => Err(no_default(&target.def.columns[*column].name)),
            None => Ok(()),
        }
    }

    /// True if this column is assigned to.
    pub(super) fn sets(&self, column: usize) -> bool {
        self.0.iter().any(|(assigned, _)| *assigned == column)
    }
}

/// The assignments of a statement, with the values that they need for all rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assigning<'a> {
    pub assignments: &'a Assignments,
    pub target: &'a Target,
    /// By column: the value of DEFAULT. Can be empty if no column is set to DEFAULT.
    pub defaults: &'a [Option<Value>],
    /// The new values of ON UPDATE CURRENT_TIMESTAMP columns, if a row changes.
    pub now: &'a [(usize, Value)],
    /// The conditions of rows, if the session checks them.
    pub checks: Option<&'a Checks>,
    pub strictness: Strictness,
}

/// A row that is being changed.
#[derive(Clone, Copy)]
pub(super) struct Assigned<'a> {
    pub image: RowView<'a>,
    /// The rows of the other tables in the scope.
    pub others: &'a [Part<'a>],
    /// The row's number in messages, from 1.
    pub number: u64,
}

/// The outcome for a row that the engine was to change.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The image that was written. Empty if the row did not change.
    pub written: Vec<u8>,
    /// True if IGNORE passed over the row, because it would not meet a condition: it does not count.
    pub refused: bool,
    /// Why the row could not be changed.
    pub error: Option<SqlError>,
}

impl Outcome {
    /// Notes the image that was appended to `out`, behind `start`, if one was.
    fn note(&mut self, done: Result<bool, SqlError>, start: usize, out: &mut Vec<u8>) -> bool {
        match done {
            Ok(true) => {
                self.written.clear();
                self.written.extend_from_slice(&out[start..]);
                return true;
            }
            Ok(false) => {}
            Err(error) => self.error = Some(error),
        }
        out.truncate(start);
        false
    }
}

impl<'a> Assigning<'a> {
    /// Appends a row's new image to `out` and returns true. If the row does not change, it returns false and
    /// appends nothing. The engine calls this while it holds the row's latch.
    pub(super) fn change(
        &self,
        row: &Assigned<'a>,
        context: &Context<'a>,
        warnings: &mut Warnings,
        out: &mut Vec<u8>,
        outcome: &mut Outcome,
    ) -> bool {
        let start = out.len();
        outcome.refused = false;
        let applied = self.apply(row, context, warnings, out, outcome);
        outcome.note(applied, start, out)
    }

    /// Sets the columns of a row's image, one after the other: a later assignment sees what an earlier one
    /// set. Appends the new image to `out` and returns true if it differs from the old one.
    ///
    /// # Errors
    /// Those of the expressions, and of values that do not fit.
    fn apply(
        &self,
        row: &Assigned<'a>,
        context: &Context<'a>,
        warnings: &mut Warnings,
        out: &mut Vec<u8>,
        outcome: &mut Outcome,
    ) -> Result<bool, SqlError> {
        let mut values: Vec<ValueRef<'a>> = Vec::new();
        row.image.read_into(&mut values);
        self.set(&mut values, row.others, row.number, context, warnings)?;
        self.complete(&mut values, row.number, context, warnings)?;
        self.finish(&row.image, &mut values, context, warnings, out, outcome)
    }

    /// Appends to `out` the image of a row that gets the values which the assignments set in the image
    /// `wanted`. As [`Assigning::change`] otherwise.
    pub(super) fn merge(
        &self,
        (image, wanted): (RowView<'a>, RowView<'a>),
        context: &Context<'a>,
        warnings: &mut Warnings,
        out: &mut Vec<u8>,
        outcome: &mut Outcome,
    ) -> bool {
        let mut values: Vec<ValueRef<'a>> = Vec::new();
        image.read_into(&mut values);
        for (column, _) in &self.assignments.0 {
            values[*column] = wanted.get(*column);
        }
        let start = out.len();
        outcome.refused = false;
        let finished = self
            .complete(&mut values, 1, context, warnings)
            .and_then(|()| self.finish(&image, &mut values, context, warnings, out, outcome));
        outcome.note(finished, start, out)
    }

    /// Appends the image of these values to `out` and returns true, if it differs from the old one.
    fn finish(
        &self,
        image: &RowView<'a>,
        values: &mut [ValueRef<'a>],
        context: &Context<'a>,
        warnings: &mut Warnings,
        out: &mut Vec<u8>,
        outcome: &mut Outcome,
    ) -> Result<bool, SqlError> {
        let codec = self.target.table.row_codec();
        let start = out.len();
        codec.encode(values, out);
        if &out[start..] == image.image() {
            return Ok(false);
        }
        let mut stamped = false;
        for (column, value) in self.now {
            if !self.assignments.sets(*column) {
                values[*column] = value.as_ref();
                stamped = true;
            }
        }
        if stamped {
            // What is to be told has been told.
            self.complete(values, 1, context, &mut Warnings::default())?;
            out.truncate(start);
            codec.encode(values, out);
        }
        if let Some(checks) = self.checks {
            let image: &'a [u8] = context.arena.alloc_slice_copy(&out[start..]);
            match checks.test(codec.view(image), context) {
                Err(error) if error.kind == ErrorKind::ConstraintFailed && self.strictness.ignore => {
                    warnings.warn(error.kind, error.message);
                    outcome.refused = true;
                    return Ok(false);
                }
                tested => tested?,
            }
        }
        Ok(true)
    }

    /// Computes the generated columns of a row, if there are any.
    ///
    /// # Errors
    /// Those of the expressions, and of values that do not fit.
    fn complete(
        &self,
        values: &mut [ValueRef<'a>],
        number: u64,
        context: &Context<'a>,
        warnings: &mut Warnings,
    ) -> Result<(), SqlError> {
        let Some(computed) = &self.target.computed else { return Ok(()) };
        for column in computed.columns().iter().filter(|column| !column.is_default) {
            let value = match column.is_quiet {
                true => {
                    let quiet = Quiet(context.environment);
                    let value = column.evaluate(values, &Context { environment: &quiet, ..*context })?;
                    copy_to(value, context.arena)
                }
                false => column.evaluate(values, context)?,
            };
            let described = &self.target.def.columns[column.column];
            let digits = self.target.metadata.columns[column.column].float_digits;
            let zone = Some(context.environment.time_zone());
            let coerced = coerce(value, described, zone, context.arena).in_digits(digits).in_mode(
                &value,
                described,
                context.environment.sql_mode(),
            );
            if let Some(issue) = coerced.issue.as_ref().filter(|_| !column.is_quiet) {
                self.note(issue, &described.name, number, warnings)?;
            }
            values[column.column] = coerced.value;
        }
        Ok(())
    }

    /// # Errors
    /// Those of a value that does not fit, where that is an error.
    fn note(
        &self,
        issue: &CoerceIssue,
        column: &str,
        number: u64,
        warnings: &mut Warnings,
    ) -> Result<(), SqlError> {
        let (def, strictness) = (&*self.target.def, self.strictness);
        let refuse = strictness.strict && issue.is_error_when_strict();
        if refuse && !strictness.ignore {
            return Err(issue.to_error_in(&def.database, &def.name, column, number));
        }
        super::warn_of_issue(issue, def, column, number, warnings);
        Ok(())
    }

    /// Sets the columns in the values of row `number`. `others` are the rows of further tables in the scope.
    ///
    /// # Errors
    /// Those of the expressions, and of values that do not fit.
    pub(super) fn set(
        &self,
        values: &mut [ValueRef<'a>],
        others: &[Part<'a>],
        number: u64,
        context: &Context<'a>,
        warnings: &mut Warnings,
    ) -> Result<(), SqlError> {
        for (column, right) in &self.assignments.0 {
            let value = match right {
                Right::Value(compiled) | Right::Moment(compiled) => {
                    let current: &'a [ValueRef<'a>] = context.arena.alloc_slice_copy(values);
                    let mut parts = vec![Part::Values(current)];
                    parts.extend_from_slice(others);
                    let parts: &'a [Part<'a>] = context.arena.alloc_slice_copy(&parts);
                    Some(compiled.exact(&Row(parts), context)?)
                }
                Right::Default => self.computed_default(*column, values, context)?,
            };
            values[*column] = self.fit((0, *column), right, value, number, context, warnings)?;
        }
        Ok(())
    }

    /// Sets the columns in the values of the table that is `part` of a joined row. Unlike in an UPDATE of one
    /// table, every expression sees the row as it was.
    ///
    /// # Errors
    /// As [`Assigning::set`].
    pub(super) fn set_part(
        &self,
        part: usize,
        row: &Row<'a>,
        values: &mut [ValueRef<'a>],
        context: &Context<'a>,
        warnings: &mut Warnings,
    ) -> Result<(), SqlError> {
        for (column, right) in &self.assignments.0 {
            let value = match right {
                Right::Value(compiled) | Right::Moment(compiled) => Some(compiled.exact(row, context)?),
                Right::Default => self.computed_default(*column, values, context)?,
            };
            values[*column] = self.fit((part, *column), right, value, 1, context, warnings)?;
        }
        Ok(())
    }

    /// The value of a computed default, over the row as it is.
    fn computed_default(
        &self,
        column: usize,
        values: &[ValueRef<'a>],
        context: &Context<'a>,
    ) -> Result<Option<ValueRef<'a>>, SqlError> {
        let computed = computed_default(self.target, column);
        computed.map(|computed| computed.evaluate(values, context)).transpose()
    }

    /// The value that a column, by its part and position, gets for the value of `right`; `None` is DEFAULT's.
    fn fit(
        &self,
        (part, column): (usize, usize),
        right: &Right,
        value: Option<ValueRef<'a>>,
        number: u64,
        context: &Context<'a>,
        warnings: &mut Warnings,
    ) -> Result<ValueRef<'a>, SqlError> {
        let Assigning { target, defaults, strictness, .. } = *self;
        let described = &target.def.columns[column];
        let value = match value {
            Some(value) => value,
            None => match &defaults[column] {
                Some(value) => value.as_ref(),
                None if strictness.strict && target.def.auto_increment != Some(column) => {
                    return Err(no_default(&described.name));
                }
                None => {
                    copy_to(crate::definition::defaults::implicit_default(described).as_ref(), context.arena)
                }
            },
        };
        if target.is_generated(column) {
            // NULL may be given for one.
            if !value.is_null() {
                let error = value_for_generated(&target.def, column);
                if strictness.strict && !strictness.ignore {
                    return Err(error);
                }
                warnings.warn(error.kind, error.message);
            }
            return Ok(ValueRef::Null);
        }
        if value.is_null() && strictness.generates && target.def.auto_increment == Some(column) {
            return Ok(value);
        }
        let given = match value {
            ValueRef::Null => match Clock::of(context.environment).in_place_of_null(described) {
                Some(now) => return Ok(now),
                None => None,
            },
            ValueRef::Time(_) => Clock::of(context.environment).in_place_of(&value, described),
            _ => None,
        };
        let value = given.map_or(value, |given| copy_to(given.as_ref(), context.arena));
        if value.is_null() && !described.nullable && strictness.refuses_null && !strictness.ignore {
            return Err(CoerceIssue::Null.to_error(&described.name, number));
        }
        let digits = target.metadata.columns[column].float_digits;
        let zone = match right {
            Right::Value(_) => Some(context.environment.time_zone()),
            Right::Default => computed_default(target, column).map(|_| context.environment.time_zone()),
            Right::Moment(_) => None,
        };
        let mut coerced = coerce(value, described, zone, context.arena).in_digits(digits);
        // What a column has, it may keep.
        let is_itself = match right {
            Right::Value(compiled) | Right::Moment(compiled) => compiled.as_column() == Some((part, column)),
            Right::Default => false,
        };
        if !is_itself {
            coerced = coerced.in_mode(&value, described, context.environment.sql_mode());
        }
        if let Some(issue) = &coerced.issue {
            self.note(issue, &described.name, number, warnings)?;
        }
        Ok(coerced.value)
    }
}

fn computed_default(target: &Target, column: usize) -> Option<&ComputedColumn> {
    target.computed.as_ref().and_then(|computed| computed.default_of(column))
}

/// The new values of ON UPDATE CURRENT_TIMESTAMP columns.
pub(super) fn on_update(target: &Target, clock: &Clock) -> Vec<(usize, Value)> {
    let extras = target.metadata.columns.iter().enumerate();
    extras
        .filter(|(_, extras)| extras.on_update_now)
        .map(|(position, _)| (position, clock.now_for(&target.def.columns[position].column_type)))
        .collect()
}

//! Binds the expressions that a table's rows are completed by: generated columns, and computed defaults.

use super::bind::Binder;
use super::from::scope_of;
use super::scope::Scope;
use super::select::CONNECTION_COLLATION;
use super::walk::{for_each_column, for_each_operand, is_fixed};
use crate::definition::metadata::TableMetadata;
use crate::definition::{ColumnDefault, ColumnExtras, Generated, quoted};
use crate::expr::functions::{clock, locks, session};
use crate::expr::{Compiled, Context, Expr, Part, Row, Slots};
use crate::text::LexicalMode;
use crate::{ErrorKind, SqlError};
use engine::TableDef;
use types::{Column, ValueRef};

/// The computed columns of a table.
///
/// The values of VIRTUAL columns lie in the rows as well, so that reading them costs nothing, and so that an
/// index on one is like any other.
#[derive(Debug)]
pub(crate) struct Computed {
    columns: Vec<ComputedColumn>,
    /// True if one of them reads the AUTO_INCREMENT column.
    pub reads_auto_increment: bool,
}

#[derive(Debug)]
pub(crate) struct ComputedColumn {
    /// The position in the table.
    pub column: usize,
    /// True for a default: a value that is given wins.
    pub is_default: bool,
    /// True for a VIRTUAL column without an index. As in MariaDB, nobody is told that its value does not fit.
    pub is_quiet: bool,
    is_constant: bool,
    value: Compiled,
}

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clause {
    Generated { stored: bool },
    Default,
}

impl Clause {
    fn name(self) -> &'static str {
        match self {
            Clause::Generated { .. } => "GENERATED ALWAYS AS",
            Clause::Default => "DEFAULT",
        }
    }
}

/// The expression of a column, if it has one.
fn expression(extras: &ColumnExtras) -> Option<(Clause, &str)> {
    match (&extras.generated, &extras.default) {
        (Some(Generated { expression, stored }), _) => {
            Some((Clause::Generated { stored: *stored }, expression))
        }
        (None, ColumnDefault::Expression(expression)) => Some((Clause::Default, expression)),
        _ => None,
    }
}

impl Computed {
    /// `None` for a table without computed columns.
    ///
    /// # Errors
    /// 1054, 1305, 1901, 4029 and others of expressions.
    pub(crate) fn of(def: &TableDef, metadata: &TableMetadata) -> Result<Option<Computed>, SqlError> {
        if metadata.columns.iter().all(|extras| expression(extras).is_none()) {
            return Ok(None);
        }
        let mut scope = Scope::default();
        scope.push(scope_of(&def.database, &def.name, &def.columns, Some(def))?);
        let mut columns = Vec::new();
        let mut reads_auto_increment = false;
        let of_column = |(column, extras): (&Column, &ColumnExtras)| {
            let bound = expression(extras).map(|(clause, text)| bound(text, clause, &scope, &column.name));
            bound.transpose()
        };
        let all: Vec<Option<Expr>> =
            def.columns.iter().zip(&metadata.columns).map(of_column).collect::<Result<_, _>>()?;
        for (position, extras) in metadata.columns.iter().enumerate() {
            let (Some((clause, _)), Some(bound)) = (expression(extras), &all[position]) else { continue };
            let is_indexed = def.indexes.iter().any(|index| index.parts.iter().any(|p| p.column == position));
            let fixed = matches!(clause, Clause::Generated { stored: true }) || is_indexed;
            Place { def, all: &all, position, clause, fixed }.check(bound)?;
            for_each_column(bound, &mut |column| {
                reads_auto_increment |= def.auto_increment == Some(column.column);
            });
            columns.push(ComputedColumn {
                column: position,
                is_default: clause == Clause::Default,
                is_constant: is_constant(bound),
                is_quiet: clause == (Clause::Generated { stored: false }) && !is_indexed,
                // A moment is read as the session's clock shows it.
                value: Compiled::for_column(
                    bound,
                    Some(&def.columns[position].column_type).filter(|to| !to.is_timestamp()),
                    CONNECTION_COLLATION,
                )?,
            });
        }
        // Other expressions may read what is the same for every row, wherever it stands.
        columns.sort_by_key(|column| !column.is_constant);
        Ok(Some(Computed { columns, reads_auto_increment }))
    }

    /// In the order in which they are computed.
    pub(crate) fn columns(&self) -> &[ComputedColumn] {
        &self.columns
    }

    /// The computed default of a column.
    pub(crate) fn default_of(&self, column: usize) -> Option<&ComputedColumn> {
        self.columns.iter().find(|computed| computed.is_default && computed.column == column)
    }
}

fn bound(text: &str, clause: Clause, scope: &Scope, column: &str) -> Result<Expr, SqlError> {
    let parsed = crate::text::parse::parse_expression(text, LexicalMode::NONE)?;
    Binder::new(scope, &[], clause.name()).bind(&parsed).map_err(|error| match error.kind {
        ErrorKind::InvalidGroupFunction => {
            not_allowed(&format!("{}()", first_word(text)), clause.name(), column)
        }
        // The binder plans no subqueries here.
        ErrorKind::NotSupported if error.message.contains("a subquery here") => {
            not_allowed("select ...", clause.name(), column)
        }
        _ => error,
    })
}

fn first_word(text: &str) -> &str {
    text.split(|character: char| !character.is_alphanumeric() && character != '_').next().unwrap_or_default()
}

/// 1901.
pub(crate) fn not_allowed(what: &str, clause: &str, column: &str) -> SqlError {
    let text = format!(
        "Function or expression '{what}' cannot be used in the {clause} clause of {}",
        quoted(column, LexicalMode::NONE)
    );
    SqlError::new(ErrorKind::ExpressionNotAllowed, text)
}

/// The column that an expression belongs to.
struct Place<'a> {
    def: &'a TableDef,
    /// The expressions of all columns.
    all: &'a [Option<Expr>],
    position: usize,
    clause: Clause,
    /// True if the same row must always give the same value: it is STORED or indexed.
    fixed: bool,
}

impl Place<'_> {
    /// # Errors
    /// 1901, 4029, and 1235 for what would differ from one reading to the next.
    fn check(&self, expr: &Expr) -> Result<(), SqlError> {
        let own = &self.def.columns[self.position];
        let mut refused = None;
        for_each_column(expr, &mut |column| {
            let read = column.column;
            // What is computed later has no value yet.
            let is_later = read >= self.position
                && self.all[read].as_ref().is_some_and(|other| read == self.position || !is_constant(other));
            if is_later {
                let text = format!(
                    "Expression for field {} is referring to uninitialized field {}",
                    quoted(&own.name, LexicalMode::NONE),
                    quoted(&column.name, LexicalMode::NONE)
                );
                refused.get_or_insert(SqlError::new(ErrorKind::UninitializedField, text));
            }
            let is_auto = self.def.auto_increment == Some(read);
            if is_auto && (self.fixed || self.clause == Clause::Default) {
                refused.get_or_insert(not_allowed("AUTO_INCREMENT", self.clause.name(), &column.name));
            }
            if self.clause == (Clause::Generated { stored: false }) && column.in_utc {
                refused.get_or_insert(SqlError::not_supported("VIRTUAL columns of a TIMESTAMP"));
            }
        });
        if let (Clause::Generated { .. }, Some(what)) = (self.clause, varying(expr)) {
            refused.get_or_insert(match self.fixed {
                true => not_allowed(&what, self.clause.name(), &own.name),
                false => SqlError::not_supported(&format!("VIRTUAL columns of {what}")),
            });
        }
        refused.map_or(Ok(()), Err)
    }
}

/// True for an expression that is the same for all rows.
fn is_constant(expr: &Expr) -> bool {
    is_fixed(expr) && varying(expr).is_none()
}

/// A part of the expression whose value is not made from the row alone.
fn varying(expr: &Expr) -> Option<String> {
    use crate::expr::functions::Constancy;
    let here = match expr {
        Expr::UserVariable(name) | Expr::AssignUserVariable { name, .. } => Some(format!("@{name}")),
        Expr::SystemVariable { name, .. } => Some(format!("@@{name}")),
        Expr::Call { function, arguments } => {
            // The others of its category make something of a moment that they are given.
            let reads_clock = match **function == clock::UNIX_TIMESTAMP {
                true => arguments.is_empty(),
                false => {
                    let of_given = [&clock::FROM_UNIX_TIME, &clock::CONVERT_TZ].contains(function);
                    clock::CATEGORY.functions.contains(function) && !of_given
                }
            };
            let reads_session = [&session::CATEGORY, &locks::CATEGORY]
                .iter()
                .any(|category| category.functions.contains(function));
            let varies = function.constancy != Constancy::Fixed;
            let name = match **function == clock::NOW {
                true => "current_timestamp",
                false => function.name,
            };
            (reads_clock || reads_session || varies).then(|| format!("{name}()"))
        }
        _ => None,
    };
    let mut found = here;
    for_each_operand(expr, &mut |operand| {
        if found.is_none() {
            found = varying(operand);
        }
    });
    found
}

impl ComputedColumn {
    /// The value for a row, whose values are as the table stores them.
    ///
    /// # Errors
    /// Those of the expression.
    pub(crate) fn evaluate<'a>(
        &'a self,
        values: &[ValueRef<'a>],
        context: &Context<'a>,
    ) -> Result<ValueRef<'a>, SqlError> {
        let values: &'a [ValueRef<'a>] = context.arena.alloc_slice_copy(values);
        let parts = [Part::Values(values)];
        let context = Context { slots: Slots::EMPTY, subqueries: None, ..*context };
        self.value.exact(&Row(context.arena.alloc_slice_copy(&parts)), &context)
    }
}

//! Definitions as a statement wrote them, before they are checked.

pub(crate) mod check;
pub(crate) mod column_types;
pub(crate) mod defaults;
pub(crate) mod expression;
pub(crate) mod foreign_key;
pub(crate) mod metadata;
pub(crate) mod options;
pub(crate) mod parse;

use crate::text::LexicalMode;
use check::{Check, CheckSpec};
use engine::IndexDef;
use expression::ExpressionSpec;
use foreign_key::{ForeignKey, Reference};
use types::{Collation, Column, ColumnType, ValueRef};

/// A column's DEFAULT.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) enum ColumnDefault {
    /// No DEFAULT was written. A nullable column then defaults to NULL; others have no default.
    #[default]
    Unset,
    Null,
    /// A number as it was written.
    Number(String),
    Text(String),
    Binary(Vec<u8>),
    /// CURRENT_TIMESTAMP, with as many digits of a second as the column has.
    Now,
    /// An expression over the row, as [`expression::normal_text`] gives it.
    Expression(String),
}

/// The expression of a generated column.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Generated {
    /// As [`expression::normal_text`] gives it.
    pub expression: String,
    /// STORED, and not VIRTUAL.
    pub stored: bool,
}

/// What the SQL layer keeps of a column in addition to name, type and nullability.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct ColumnExtras {
    pub default: ColumnDefault,
    pub on_update_now: bool,
    pub comment: String,
    /// The n of INT(n): the width that clients show.
    pub display_width: Option<u8>,
    pub zerofill: bool,
    /// The condition of CHECK behind the column, see [`expression::normal_text`].
    pub check: Option<String>,
    /// FLOAT(m, d): values are rounded to d digits.
    pub float_digits: Option<(u8, u8)>,
    pub generated: Option<Generated>,
    /// Not in `*`, nor in an INSERT without a list of columns.
    pub invisible: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ColumnSpec {
    pub name: String,
    pub column_type: ColumnType,
    /// True if the column itself named its character set or collation.
    pub own_collation: bool,
    pub nullable: Option<bool>,
    pub auto_increment: bool,
    pub primary: bool,
    pub unique: bool,
    /// CHECK behind the column.
    pub check: Option<CheckSpec>,
    /// The expression of a generated column, and whether it is STORED.
    pub generated: Option<(ExpressionSpec, bool)>,
    /// DEFAULT with an expression.
    pub default: Option<ExpressionSpec>,
    /// REFERENCES behind the column.
    pub reference: Option<Reference>,
    pub extras: ColumnExtras,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyKind {
    Primary,
    Unique,
    Plain,
    /// FOREIGN KEY. It makes an index if there is none that it can use.
    Foreign,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct KeyPartSpec {
    pub column: String,
    pub prefix: Option<u32>,
    pub descending: bool,
}

/// What stands behind an index's columns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct IndexOptions {
    pub comment: String,
    /// IGNORED: it is kept, and no plan uses it.
    pub ignored: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct KeySpec {
    pub kind: KeyKind,
    pub name: Option<String>,
    pub parts: Vec<KeyPartSpec>,
    pub options: IndexOptions,
    /// What a FOREIGN KEY refers to.
    pub reference: Option<Reference>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct TableOptions {
    pub engine: Option<String>,
    pub auto_increment: Option<u64>,
    pub collation: Option<Collation>,
    pub comment: Option<String>,
    /// Options that are kept and shown, see [`options`].
    pub shown: Vec<options::ShownOption>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct TableSpec {
    pub columns: Vec<ColumnSpec>,
    pub keys: Vec<KeySpec>,
    /// ALTER TABLE: the constraints that the table has already.
    pub foreign_keys: Vec<ForeignKey>,
    pub old_checks: Vec<Check>,
    /// The CHECKs that are not behind a column.
    pub checks: Vec<CheckSpec>,
    pub options: TableOptions,
    /// Clauses that are accepted without effect. Each becomes a warning.
    pub ignored: Vec<String>,
}

/// A name in the quotes of names.
pub(crate) fn quoted(name: &str, mode: LexicalMode) -> String {
    match mode.quotes_text(b'"') {
        true => format!("`{}`", name.replace('`', "``")),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A text in quotes.
pub(crate) fn quoted_text(text: &str, mode: LexicalMode) -> String {
    if !mode.escapes() {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for character in text.chars() {
        match character {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

/// The value that a default writes. `None` for NULL, for the current time and for no default.
pub(crate) fn literal(default: &ColumnDefault) -> Option<ValueRef<'_>> {
    match default {
        ColumnDefault::Unset | ColumnDefault::Null | ColumnDefault::Now | ColumnDefault::Expression(_) => {
            None
        }
        ColumnDefault::Number(text) => Some(
            text.parse()
                .map(ValueRef::Int)
                .or_else(|_| text.parse().map(ValueRef::UInt))
                .unwrap_or(ValueRef::Text(text.as_bytes())),
        ),
        ColumnDefault::Text(text) => Some(ValueRef::Text(text.as_bytes())),
        ColumnDefault::Binary(bytes) => Some(ValueRef::Binary(bytes)),
    }
}

/// The rank of an index. As in MySQL, a table's indexes are sorted by rank, and indexes of the same rank stay
/// in the order of their declaration. Unique indexes without NULL come first, then the other unique indexes,
/// then the rest. In each of the two unique groups, indexes over prefixes of columns come last. Indexes are
/// listed in this order, and checked for duplicates in this order. As in InnoDB, an index that is added in
/// place is listed in this order but checked last.
pub(crate) fn rank(columns: &[Column], index: &IndexDef) -> (bool, bool, bool) {
    if !index.unique {
        return (true, false, false);
    }
    let nullable = index.parts.iter().any(|part| columns[part.column].nullable);
    (false, nullable, index.parts.iter().any(|part| part.prefix_chars.is_some()))
}

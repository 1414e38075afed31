//! Where the rows of a statement go.

use crate::SqlError;
use crate::progress::Progress;
use types::{Collation, ColumnType, ValueRef};

/// A change of the session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A system variable was set, perhaps to the value that it had.
    Variable { name: &'static str, value: String },
    /// The default database; empty for none.
    Schema(String),
    /// Anything that another session would not have: variables, prepared statements, the default database.
    State,
    /// What the transaction has done so far, in eight letters: see [`crate::Session::take_changes`].
    TransactionState(String),
    /// The statements that would begin a transaction like the present one, or like the next one.
    TransactionCharacteristics(String),
}

/// One column of a result set, as the protocol describes it.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnMeta {
    /// What the client prints: the alias or the text of the expression.
    pub name: String,
    /// The column's own name; empty for an expression.
    pub org_name: String,
    /// Alias and own name of the table, and its database; empty for an expression.
    pub table: String,
    pub org_table: String,
    pub database: String,
    pub column_type: ColumnType,
    pub collation: Collation,
    pub not_null: bool,
    pub traits: ColumnTraits,
    /// Digits after the point; 31 for floating point without fixed digits.
    pub decimals: u8,
    /// The widest value, in characters.
    pub display_chars: u32,
}

/// `decimals` of floating point without fixed digits.
pub(crate) const DECIMALS_FLOATING: u8 = 31;

impl ColumnMeta {
    /// How many digits after the point a floating number shows, if that is fixed.
    pub(crate) fn fixed_digits(&self) -> Option<u8> {
        let is_floating = matches!(self.column_type, ColumnType::Float { .. } | ColumnType::Double { .. });
        (is_floating && self.decimals < DECIMALS_FLOATING).then_some(self.decimals)
    }
}

/// What clients are told of a table's column beside its type. All are false for an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ColumnTraits {
    pub primary_key: bool,
    /// It is a unique key by itself.
    pub unique_key: bool,
    /// Another key begins with it.
    pub multiple_key: bool,
    /// It is in some key.
    pub in_key: bool,
    pub auto_increment: bool,
    /// Numbers are shown with noughts in front, up to [`ColumnMeta::display_chars`].
    pub zerofill: bool,
    /// NOT NULL, and an INSERT has to give a value.
    pub no_default: bool,
    /// Its default, or what an UPDATE gives it, is the present time.
    pub takes_present: bool,
    pub on_update_now: bool,
    pub told_as: ToldAs,
    /// The digits of a computed integer; 0 for those of its type.
    pub digits: u8,
    /// The column of a temporary table, and not of an expression.
    pub is_kept: bool,
}

/// The type that clients are told for a text.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ToldAs {
    /// That of the column's type.
    #[default]
    Itself,
    /// CHAR, though it is stored as a VARCHAR.
    Char,
    /// BLOB, however long it is.
    Blob,
    /// LONGBLOB, however short it is.
    LongBlob,
    /// A number without sign, though it is stored as bytes: x'41'.
    Hexadecimal,
}

/// How a statement ended well.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Completion {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub warnings: u16,
    /// A line such as `Records: 3  Duplicates: 0  Warnings: 0`. Often empty.
    pub info: String,
}

/// A file in parts.
pub trait FileParts {
    /// Appends the next part to `buffer`; false, and nothing is appended, at the end.
    ///
    /// # Errors
    /// Those of reading. A file may be dropped before its end; nothing else has to be done then.
    fn next_part(&mut self, buffer: &mut Vec<u8>) -> Result<bool, SqlError>;
}

/// Receives one or more results, in order: for a result set `columns`, then `row`s, then `end`; for other
/// statements just `end`. An error of the statement itself is returned by the session, not sent here. A
/// sink's own failure (the client is gone) comes back as `Err` and stops the statement.
pub trait ResultSink {
    /// Begins a result set.
    ///
    /// # Errors
    /// Those of sending.
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError>;
    /// Takes a row of the result set, one value for each column.
    ///
    /// # Errors
    /// Those of sending.
    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError>;
    /// Ends a result.
    ///
    /// # Errors
    /// Those of sending.
    fn end(&mut self, completion: &Completion) -> Result<(), SqlError>;
    /// Asks the client for a file of its own (LOAD DATA LOCAL). `None` from clients that give none.
    ///
    /// # Errors
    /// Those of sending the request.
    fn client_file(&mut self, name: &str) -> Result<Option<Box<dyn FileParts + '_>>, SqlError> {
        let _ = name;
        Ok(None)
    }
    /// Tells the client how far the statement is: `what` it does in this stage. Clients that do not want to
    /// know are not told, nor those that do not read.
    ///
    /// # Errors
    /// Those of sending.
    fn progress(&mut self, progress: Progress, what: &str) -> Result<(), SqlError> {
        let _ = (progress, what);
        Ok(())
    }
    /// Called before each statement of a text of several: whether another one follows it.
    fn more_follow(&mut self, more: bool) {
        let _ = more;
    }
    /// Called behind each statement of a text: the session's flags, as answers carry them, and what has
    /// changed in the session.
    fn status(&mut self, flags: u16, changes: Vec<Change>) {
        let _ = (flags, changes);
    }
    /// True between `columns` and `end`: the statement cannot be begun anew.
    fn is_in_rows(&self) -> bool {
        false
    }
}

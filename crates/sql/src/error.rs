//! Errors as a MySQL client sees them.

pub use crate::error_kind::ErrorKind;
use std::fmt;

/// The product's name in messages. MariaDB's messages say MariaDB in the same places.
pub(crate) const PRODUCT: &str = "Latchwork";

/// A MySQL error: what went wrong, and the message, as `ERROR 1062 (23000): Duplicate entry ...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqlError {
    pub kind: ErrorKind,
    pub message: String,
}

impl SqlError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> SqlError {
        SqlError { kind, message: message.into() }
    }

    /// The number that clients see.
    pub fn code(&self) -> u16 {
        self.kind.code()
    }

    /// Five characters.
    pub fn sqlstate(&self) -> &'static [u8; 5] {
        self.kind.sqlstate()
    }

    /// 1064: the text could not be parsed from `near` on, in line `line` (counted from 1).
    pub(crate) fn syntax(near: &str, line: usize) -> SqlError {
        SqlError::new(
            ErrorKind::Syntax,
            format!(
                "You have an error in your SQL syntax; check the manual that corresponds to your {PRODUCT} server \
                 version for the right syntax to use near '{near}' at line {line}"
            ),
        )
    }

    /// 1792.
    pub(crate) fn read_only_transaction() -> SqlError {
        let text = "Cannot execute statement in a READ ONLY transaction";
        SqlError::new(ErrorKind::ReadOnlyTransaction, text)
    }

    /// 1065: there is no statement.
    pub fn empty_query() -> SqlError {
        SqlError::new(ErrorKind::EmptyQuery, "Query was empty")
    }

    /// 1046: the name has no database and the session has none either.
    pub(crate) fn no_database() -> SqlError {
        SqlError::new(ErrorKind::NoDatabase, "No database selected")
    }

    /// 1049.
    pub(crate) fn unknown_database(name: &str) -> SqlError {
        SqlError::new(ErrorKind::UnknownDatabase, format!("Unknown database '{name}'"))
    }

    /// 1051: DROP TABLE of a table that does not exist.
    pub(crate) fn unknown_table(name: &str) -> SqlError {
        SqlError::new(ErrorKind::UnknownTable, format!("Unknown table '{name}'"))
    }

    /// 1288: `statement` is to change rows of something that is no stored table.
    pub(crate) fn not_updatable(table: &str, statement: &str) -> SqlError {
        let text = format!("The target table {table} of the {statement} is not updatable");
        SqlError::new(ErrorKind::NotUpdatable, text)
    }

    /// 1093: a subquery reads the table whose rows `statement` changes.
    pub(crate) fn target_is_source(table: &str, statement: &str) -> SqlError {
        let text = format!(
            "Table '{table}' is specified twice, both as a target for '{statement}' and as a separate source for data"
        );
        SqlError::new(ErrorKind::TargetIsSource, text)
    }

    /// 1222: SELECTs of a union, or a query and the variables that its row is for.
    pub(crate) fn column_counts_differ() -> SqlError {
        let text = "The used SELECT statements have a different number of columns";
        SqlError::new(ErrorKind::WrongColumnCountInUnion, text)
    }

    /// 1327: INTO names something else than a user variable.
    pub(crate) fn undeclared_variable(name: &str) -> SqlError {
        SqlError::new(ErrorKind::UndeclaredVariable, format!("Undeclared variable: {name}"))
    }

    /// 1100.
    pub(crate) fn not_locked(alias: &str) -> SqlError {
        SqlError::new(ErrorKind::TableNotLocked, format!("Table '{alias}' was not locked with LOCK TABLES"))
    }

    /// 1412: another session changed the table after the statement was planned and before it ran.
    pub(crate) fn definition_changed() -> SqlError {
        SqlError::new(
            ErrorKind::TableDefinitionChanged,
            "Table definition has changed, please retry transaction",
        )
    }

    /// True if the statement changed nothing because the definition of its table has changed.
    pub(crate) fn is_definition_changed(&self) -> bool {
        self.kind == ErrorKind::TableDefinitionChanged
    }

    /// 1146.
    pub(crate) fn no_such_table(database: &str, name: &str) -> SqlError {
        SqlError::new(ErrorKind::NoSuchTable, format!("Table '{database}.{name}' doesn't exist"))
    }

    /// 1054: `clause` is `field list`, `where clause`, `order clause`, `group statement`, `having clause`,
    /// `on clause`.
    pub(crate) fn unknown_column(name: &str, clause: &str) -> SqlError {
        SqlError::new(ErrorKind::UnknownColumn, format!("Unknown column '{name}' in '{clause}'"))
    }

    /// 1052: several tables have the column.
    pub(crate) fn ambiguous_column(name: &str, clause: &str) -> SqlError {
        SqlError::new(ErrorKind::AmbiguousColumn, format!("Column '{name}' in {clause} is ambiguous"))
    }

    /// 1305: a function that does not exist.
    pub(crate) fn unknown_function(name: &str) -> SqlError {
        SqlError::new(ErrorKind::DoesNotExist, format!("FUNCTION {name} does not exist"))
    }

    /// 1582.
    pub(crate) fn wrong_parameter_count(function: &str) -> SqlError {
        SqlError::new(
            ErrorKind::WrongParameterCount,
            format!("Incorrect parameter count in the call to native function '{function}'"),
        )
    }

    /// 1241.
    pub fn columns(wanted: usize) -> SqlError {
        SqlError::new(
            ErrorKind::WrongColumnCountOfOperand,
            format!("Operand should contain {wanted} column(s)"),
        )
    }

    /// 1242.
    pub(crate) fn subquery_of_several_rows() -> SqlError {
        SqlError::new(ErrorKind::SubqueryReturnsSeveralRows, "Subquery returns more than 1 row")
    }

    /// 1907.
    pub(crate) fn not_yet_for_generated() -> SqlError {
        let text = "This is not yet supported for generated columns";
        SqlError::new(ErrorKind::NotYetForGenerated, text)
    }

    /// 1235: known to MySQL, not (yet) to us. `what` is a noun: `'subqueries in the select list'`.
    pub(crate) fn not_supported(what: &str) -> SqlError {
        SqlError::new(
            ErrorKind::NotSupported,
            format!("This version of {PRODUCT} doesn't yet support '{what}'"),
        )
    }

    /// 1243: a statement id that was never prepared, or is closed.
    pub(crate) fn unknown_statement(id: u32, command: &str) -> SqlError {
        SqlError::new(
            ErrorKind::UnknownStatementHandler,
            format!("Unknown prepared statement handler ({id}) given to {command}"),
        )
    }

    /// 1210: a parameter's kind is not allowed at its place.
    pub fn wrong_arguments(what: &str) -> SqlError {
        SqlError::new(ErrorKind::WrongArguments, format!("Incorrect arguments to {what}"))
    }

    /// 1205: another session kept a row or a table locked for longer than this session may wait.
    pub(crate) fn lock_wait_timeout() -> SqlError {
        SqlError::new(ErrorKind::LockWaitTimeout, "Lock wait timeout exceeded; try restarting transaction")
    }

    /// 1213: sessions wait for each other, and this one was chosen to end it. Its transaction is rolled back.
    pub(crate) fn deadlock() -> SqlError {
        SqlError::new(
            ErrorKind::Deadlock,
            "Deadlock found when trying to get lock; try restarting transaction",
        )
    }

    /// 1213: sessions wait for the names of GET_LOCK in a ring. Only the statement fails.
    pub(crate) fn user_lock_deadlock() -> SqlError {
        SqlError { kind: ErrorKind::UserLockDeadlock, ..SqlError::deadlock() }
    }

    /// 1105: an internal error.
    pub fn internal(what: impl fmt::Display) -> SqlError {
        SqlError::new(ErrorKind::Unknown, format!("{what}"))
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code(), String::from_utf8_lossy(self.sqlstate()), self.message)
    }
}

impl std::error::Error for SqlError {}

impl From<engine::Error> for SqlError {
    /// The error that a client sees for an engine error. Errors with a name in them (duplicate keys, missing
    /// tables) are made where the name is known. This conversion is for all other errors.
    fn from(error: engine::Error) -> SqlError {
        use engine::Error;
        let message = error.to_string();
        match error {
            Error::Io(source) => SqlError::new(
                ErrorKind::StorageEngineFailed,
                format!("Got an I/O error from the storage engine: {source}"),
            ),
            Error::Corrupt { path, page, why, .. } => SqlError::new(
                ErrorKind::TableCorrupt,
                format!("Corrupt page {page} of '{}': {why}", path.display()),
            ),
            Error::RowTooLarge { bytes_max, .. } => SqlError::new(
                ErrorKind::RowTooLarge,
                format!("Row size too large. The maximum row size, not counting BLOBs, is {bytes_max}"),
            ),
            Error::KeyTooLong { bytes_max, .. } => SqlError::new(
                ErrorKind::KeyTooLong,
                format!("Specified key was too long; max key length is {bytes_max} bytes"),
            ),
            Error::AutoIncrementExhausted => SqlError::new(
                ErrorKind::AutoIncrementFailed,
                "Failed to read auto-increment value from storage engine",
            ),
            Error::TableChanged => SqlError::definition_changed(),
            Error::Deadlock => SqlError::deadlock(),
            Error::RecordChanged { table } => SqlError::new(
                ErrorKind::RecordChanged,
                format!("Record has changed since last read in table '{table}'; try restarting transaction"),
            ),
            Error::LockWaitTimeout | Error::WouldBlock => SqlError::lock_wait_timeout(),
            Error::TooManyLocks => SqlError::new(
                ErrorKind::LockTableFull,
                "The total number of locks exceeds the lock table size",
            ),
            Error::Interrupted => {
                SqlError::new(ErrorKind::QueryInterrupted, "Query execution was interrupted")
            }
            Error::SnapshotTooOld => SqlError::new(
                ErrorKind::SnapshotTooOld,
                "The snapshot of this transaction is too old to be read; please retry transaction",
            ),
            Error::DefaultCache => {
                SqlError::new(ErrorKind::CannotDropDefaultCache, "Cannot drop default keycache")
            }
            Error::Full => {
                SqlError::new(ErrorKind::DiskFull, "Disk full; waiting for someone to free some space")
            }
            Error::ReadOnly { why } => {
                SqlError::new(ErrorKind::OptionPreventsStatement, format!("The server refuses writes: {why}"))
            }
            _ => SqlError::internal(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorKind, SqlError};

    /// Both errors have the number 1412. The server tries a statement again only after a changed definition:
    /// a snapshot that is too old stays too old.
    #[test]
    fn a_snapshot_that_is_too_old_is_no_change_of_a_definition() {
        let changed = SqlError::from(engine::Error::TableChanged);
        let too_old = SqlError::from(engine::Error::SnapshotTooOld);
        assert_eq!((changed.code(), too_old.code()), (1412, 1412));
        assert_eq!(changed.kind, ErrorKind::TableDefinitionChanged);
        assert_eq!(too_old.kind, ErrorKind::SnapshotTooOld);
    }
}

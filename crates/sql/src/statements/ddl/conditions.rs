//! IF EXISTS and IF NOT EXISTS in the actions of ALTER TABLE. An action whose condition does not hold is left
//! out, with a note.

use super::alter::{Action, no_such_key};
use super::index::cannot_drop;
use crate::definition::KeyKind;
use crate::definition::metadata::TableMetadata;
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, Session, SqlError};
use engine::TableDef;

/// The words that may stand before a condition.
const BEFORE: [&str; 13] = [
    "RENAME",
    "ADD",
    "DROP",
    "MODIFY",
    "CHANGE",
    "ALTER",
    "COLUMN",
    "UNIQUE",
    "KEY",
    "INDEX",
    "CONSTRAINT",
    "FOREIGN",
    "CHECK",
];

/// Takes IF EXISTS, if it is next. [`is_conditional`] has told of it.
pub(super) fn accept_if_exists(words: &mut Words<'_>) {
    words.accept_all(&["IF", "EXISTS"]);
}

/// Takes IF NOT EXISTS, if it is next.
pub(super) fn accept_if_not_exists(words: &mut Words<'_>) {
    words.accept_all(&["IF", "NOT", "EXISTS"]);
}

/// True if the next action has a condition.
pub(super) fn is_conditional(words: &Words<'_>) -> bool {
    let mut ahead = words.clone();
    loop {
        if ahead.accept_all(&["IF", "NOT", "EXISTS"]) || ahead.accept_all(&["IF", "EXISTS"]) {
            return true;
        }
        match ahead.peek() {
            Word::Bare(word) if BEFORE.iter().any(|before| word.eq_ignore_ascii_case(before)) => {
                ahead.next();
            }
            _ => return false,
        }
    }
}

/// Leaves out those of the actions behind the first `before` ones whose condition does not hold.
///
/// # Errors
/// 1105 for a damaged definition.
pub(super) fn leave_out(
    session: &mut Session,
    def: &TableDef,
    actions: &mut Vec<Action>,
    before: usize,
) -> Result<(), SqlError> {
    let metadata = TableMetadata::of(def)?;
    for action in actions.split_off(before) {
        match unmet(&action, def, &metadata, actions) {
            Some(error) => session.state.warnings.note(error.kind, error.message),
            None => actions.push(action),
        }
    }
    Ok(())
}

/// Why an action cannot be done. `earlier` are the actions before it.
fn unmet(action: &Action, def: &TableDef, metadata: &TableMetadata, earlier: &[Action]) -> Option<SqlError> {
    let has_column = |name: &str| def.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    let has_index = |name: &str| def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name));
    let has_foreign =
        |name: &str| metadata.foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(name));
    let has_check = |name: &str| metadata.checks.iter().any(|check| check.name.eq_ignore_ascii_case(name));
    let adds_column = |name: &str| {
        earlier.iter().any(
            |action| matches!(action, Action::AddColumn(column, _) if column.name.eq_ignore_ascii_case(name)),
        )
    };
    let adds_index = |name: &str| {
        let is_same =
            |other: &Option<String>| other.as_ref().is_some_and(|other| other.eq_ignore_ascii_case(name));
        earlier.iter().any(|action| matches!(action, Action::AddKey(key) if is_same(&key.name)))
    };
    let unknown = |name: &str| SqlError::unknown_column(name, &def.name);
    match action {
        Action::AddColumn(column, _) => {
            let name = &column.name;
            (has_column(name) || adds_column(name))
                .then(|| SqlError::new(ErrorKind::DuplicateColumn, format!("Duplicate column name '{name}'")))
        }
        Action::AddKey(key) => {
            let name = key.name.as_deref()?;
            let is_there = match key.kind {
                KeyKind::Foreign => has_foreign(name),
                _ => has_index(name) || adds_index(name),
            };
            is_there
                .then(|| SqlError::new(ErrorKind::DuplicateKeyName, format!("Duplicate key name '{name}'")))
        }
        Action::AddCheck(check) => {
            let name = check.name.as_deref()?;
            has_check(name).then(|| {
                let text = format!("Duplicate CHECK constraint name '{name}'");
                SqlError::new(ErrorKind::DuplicateConstraintName, text)
            })
        }
        Action::ChangeColumn(name, ..) | Action::SetDefault(name, _) | Action::RenameColumn(name, _) => {
            (!has_column(name)).then(|| unknown(name))
        }
        Action::DropColumn(name) => (!has_column(name)).then(|| cannot_drop("COLUMN", name)),
        Action::DropKey(name) => (!has_index(name)).then(|| cannot_drop("INDEX", name)),
        Action::DropPrimary => def.primary.is_none().then(|| cannot_drop("INDEX", "PRIMARY")),
        Action::DropForeignKey(name) => (!has_foreign(name)).then(|| cannot_drop("FOREIGN KEY", name)),
        Action::DropConstraint(name) => {
            let is_there = has_check(name) || has_foreign(name) || has_index(name);
            (!is_there).then(|| cannot_drop("CONSTRAINT", name))
        }
        Action::RenameKey(name, _) => (!has_index(name)).then(|| cannot_drop("INDEX", name)),
        Action::IgnoreKey(name, _) => (!has_index(name)).then(|| no_such_key(name, &def.name)),
        Action::Rename(..)
        | Action::Options(_)
        | Action::ConvertTo(_)
        | Action::Rebuild
        | Action::Nothing => None,
    }
}

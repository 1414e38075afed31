//! FOREIGN KEY: what a table keeps of the constraints on its columns.

use super::quoted;
use crate::text::LexicalMode;

/// What becomes of the rows that refer to a row that is deleted, or whose referenced columns change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ReferentialAction {
    /// The row must stay as it is. SET DEFAULT means the same, as in InnoDB.
    #[default]
    Restrict,
    Cascade,
    SetNull,
    /// As `Restrict`: no check is put off. Only the name differs.
    NoAction,
}

impl ReferentialAction {
    pub(crate) const ALL: [ReferentialAction; 4] = [
        ReferentialAction::Restrict,
        ReferentialAction::Cascade,
        ReferentialAction::SetNull,
        ReferentialAction::NoAction,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::NoAction => "NO ACTION",
        }
    }

    /// True if rows that refer to the row are changed with it.
    pub(crate) fn changes_rows(self) -> bool {
        matches!(self, ReferentialAction::Cascade | ReferentialAction::SetNull)
    }
}

/// REFERENCES, as a statement wrote it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reference {
    /// The name behind CONSTRAINT.
    pub constraint: Option<String>,
    /// `None` for the database of the table that refers.
    pub database: Option<String>,
    pub table: String,
    /// Empty if none were named: then the columns have the names of those that refer.
    pub columns: Vec<String>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

/// A constraint of a table: values in its columns are those of a row of the parent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ForeignKey {
    pub name: String,
    /// The columns that refer.
    pub columns: Vec<String>,
    pub parent_database: String,
    pub parent_table: String,
    /// The columns that they refer to, one for each.
    pub parent_columns: Vec<String>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

impl ForeignKey {
    /// The clause that makes the constraint, for a table in `database`.
    pub(crate) fn clause(&self, database: &str, mode: LexicalMode) -> String {
        let list = |names: &[String]| {
            names.iter().map(|name| quoted(name, mode)).collect::<Vec<String>>().join(", ")
        };
        let parent = match self.parent_database == database {
            true => quoted(&self.parent_table, mode),
            false => format!("{}.{}", quoted(&self.parent_database, mode), quoted(&self.parent_table, mode)),
        };
        let mut clause = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {parent} ({})",
            quoted(&self.name, mode),
            list(&self.columns),
            list(&self.parent_columns)
        );
        for (event, action) in [("DELETE", self.on_delete), ("UPDATE", self.on_update)] {
            if action != ReferentialAction::Restrict {
                clause.push_str(&format!(" ON {event} {}", action.name()));
            }
        }
        clause
    }

    /// The constraint as messages name it, for a table that has it. `home` is the database that need not be
    /// shown before the parent.
    pub(crate) fn shown(&self, (database, table): (&str, &str), home: &str) -> String {
        let name = |name: &str| quoted(name, LexicalMode::NONE);
        format!("{}.{}, {}", name(database), name(table), self.clause(home, LexicalMode::NONE))
    }

    pub(crate) fn refers_to(&self, database: &str, table: &str) -> bool {
        self.parent_database == database && self.parent_table == table
    }
}

/// The number that the next constraint without a name gets in `table_ibfk_number`.
pub(crate) fn next_number(table: &str, keys: &[ForeignKey]) -> u32 {
    let number = |key: &ForeignKey| -> Option<u32> { generated_number(table, &key.name)?.parse().ok() };
    keys.iter().filter_map(number).max().unwrap_or(0) + 1
}

/// The number in a name that was made for a table's constraint.
fn generated_number<'n>(table: &str, name: &'n str) -> Option<&'n str> {
    let number = name.strip_prefix(table)?.strip_prefix("_ibfk_")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// The name of a constraint without a name.
pub(crate) fn generated_name(table: &str, number: u32) -> String {
    format!("{table}_ibfk_{number}")
}

/// The name of a constraint after its table was renamed: a name that was made for the table follows it.
pub(crate) fn renamed(name: &str, from: &str, to: &str) -> String {
    match generated_number(from, name) {
        Some(number) => format!("{to}_ibfk_{number}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_names_follow_their_table_and_others_stay() {
        assert_eq!(renamed("t_ibfk_12", "t", "u"), "u_ibfk_12");
        assert_eq!(renamed("t_ibfk_", "t", "u"), "t_ibfk_");
        assert_eq!(renamed("t_ibfk_x", "t", "u"), "t_ibfk_x");
        assert_eq!(renamed("other_ibfk_1", "t", "u"), "other_ibfk_1");
    }
}

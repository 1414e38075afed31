//! What a statement said, before it is checked.

use types::{Collation, ColumnType};

/// A column's DEFAULT.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum ColumnDefault {
    /// None written: NULL for a nullable column, otherwise there is none.
    #[default]
    Unset,
    Null,
    /// A number as it was written.
    Number(String),
    Text(String),
    Binary(Vec<u8>),
    /// CURRENT_TIMESTAMP with the column's digits of a second.
    Now,
}

/// What the SQL layer keeps of a column beside name, type and nullability.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ColumnExtras {
    pub default: ColumnDefault,
    pub on_update_now: bool,
    pub comment: String,
    /// INT(n): how wide clients show it.
    pub display_width: Option<u8>,
    pub zerofill: bool,
    /// FLOAT(m, d): values are rounded to d digits.
    pub float_digits: Option<(u8, u8)>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ColumnSpec {
    pub name: String,
    pub column_type: ColumnType,
    /// The column named its character set or collation itself.
    pub own_collation: bool,
    pub nullable: Option<bool>,
    pub auto_increment: bool,
    pub primary: bool,
    pub unique: bool,
    pub extras: ColumnExtras,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    Primary,
    Unique,
    Plain,
    /// FOREIGN KEY: as in MyISAM, an index and nothing else.
    Foreign,
}

#[derive(Clone, PartialEq, Debug)]
pub struct KeyPartSpec {
    pub column: String,
    pub prefix: Option<u32>,
    pub descending: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub struct KeySpec {
    pub kind: KeyKind,
    pub name: Option<String>,
    pub parts: Vec<KeyPartSpec>,
    pub comment: String,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableOptions {
    pub engine: Option<String>,
    pub auto_increment: Option<u64>,
    pub collation: Option<Collation>,
    pub comment: Option<String>,
    /// Options that are kept and shown: see [`super::options`].
    pub kept: Vec<super::options::Kept>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableSpec {
    pub columns: Vec<ColumnSpec>,
    pub keys: Vec<KeySpec>,
    pub options: TableOptions,
    /// What is accepted without effect: becomes warnings.
    pub ignored: Vec<String>,
}

//! Column types, values, collations, and the codecs of rows and keys.
//!
//! A *row image* is the bytes of one row as a table stores it; [`RowCodec`] writes and reads it.
//! A *key* is a byte string that compares (`memcmp`) as MySQL compares the columns it was made of;
//! [`KeyCodec`] makes it.

pub mod code;
pub mod collation;
pub mod column;
pub mod decimal;
pub mod definition;
pub mod key;
pub mod members;
pub mod number;
pub mod row;
pub mod temporal;
pub mod value;

pub use code::Code;
pub use collation::Collation;
pub use column::{Column, ColumnType};
pub use decimal::Decimal;
pub use definition::DefinitionError;
pub use key::{KeyCodec, KeyPart};
pub use members::Members;
pub use row::{CorruptRow, IntegerPlace, RowCodec, RowView};
pub use temporal::{Date, DateTime, Time};
pub use value::{Value, ValueRef};

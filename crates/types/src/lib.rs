//! Column types, values, collations, and the codecs of rows and keys.
//!
//! A *row image* is the bytes of one row as a table stores it; [`RowCodec`] writes and reads it.
//! A *key* is a byte string that compares (`memcmp`) as MySQL compares the columns it was made of;
//! [`KeyCodec`] makes it.

pub mod column;
pub mod key;
pub mod row;
pub mod value;

pub use column::{Collation, Column, ColumnType};
pub use key::{KeyCodec, KeyPart};
pub use row::{RowCodec, RowView};
pub use value::{Value, ValueRef};

//! Names of databases, tables and columns, and of character sets and collations.

pub mod charsets;

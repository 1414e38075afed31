//! Random statements of SQL: on MariaDB and on Latchwork, and on Latchwork alone where one query must give
//! what others give together.

pub mod changes;
pub mod differences;
pub mod differential;
pub mod expressions;
pub mod outcome;
pub mod pair;
pub mod partitions;
pub mod schema;
pub mod selects;
pub mod servers;
pub mod tree;

//! pagecache
pub mod page;

//! Open files of pages: which of their pages are free, chains of overflow pages, and attempts that may be
//! repeated.

pub(crate) mod cell;
pub(crate) mod files;
pub(crate) mod overflow;
pub(crate) mod retry;
pub(crate) mod row_share;
pub(crate) mod tablespace;

#[cfg(test)]
mod tests;

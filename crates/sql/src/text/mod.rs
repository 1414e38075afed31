//! The statement cache. A statement's *shape* is its text with every literal replaced by a slot. Each shape
//! is planned once, even if the literals change.
//!
//! [`scan`] reads the raw bytes once, copies what is not a literal into the key, and leaves the literals in
//! slots. The key holds the slots' kinds too, because `a = 1` and `a = '1'` mean different comparisons. A
//! list of literals behind IN is one slot, whatever its length. A prepared statement is scanned when it is
//! prepared; its parameters' kinds join the key when it is executed, so that both protocols share plans.

#[cfg(test)]
mod agreement;
pub(crate) mod literal;
pub(crate) mod mode;

pub(crate) mod insert_scanner;
pub mod parse;
pub(crate) mod scan;

pub(crate) use literal::{Literal, SlotKind, push_text};
pub(crate) use mode::LexicalMode;
pub(crate) use scan::{Scan, ScanEnd, SlotShape};

//! What the engine writes to disk, as bytes. Nothing here knows files that are open, or trees.
//!
//! - [`layout`], [`node`]: a page of a tree.
//! - [`row`]: the header of a row in its leaf. [`overflow`]: the pages of a row that is too large for a leaf.
//! - [`file_header`], [`free_map`]: the pages that a file of pages begins with, and which of its pages are in
//!   use.
//! - [`control`]: the control file. [`catalogue`]: records of the catalogue.
//! - [`redo`]: what the log says about pages.

pub(crate) mod catalogue;
pub(crate) mod control;
pub(crate) mod file_header;
pub(crate) mod free_map;
pub(crate) mod layout;
pub(crate) mod node;
pub(crate) mod overflow;
pub(crate) mod redo;
pub(crate) mod row;

//! The node: one page of a B+tree. Byte table in `layout`, reading in `read` (total on torn
//! pages), changing in `write`, cutting and joining in `split`.

mod guess;
mod read;
mod shape;
mod split;
mod write;

#[cfg(test)]
mod tests;

pub use read::Node;
pub(crate) use read::Search;
pub(crate) use split::{
    Part, SplitPoint, build_merged, build_part, build_root, cut, merged_bytes, shortest_separator,
};
pub(crate) use write::prefix_len_between;
pub(crate) use write::with_scratch;
pub use write::{NodeHeader, NodeMut};

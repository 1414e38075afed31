//! What every layer shares: ids as newtypes, the page checksum, memory that never moves, and the shims that
//! let a model checker, a simulator or a counter take the place of threads, latches and atomics.

pub mod bytes;
pub mod checksum;
mod core_local;
pub mod hash;
pub mod ids;
pub mod machine;
mod owned;
pub mod phases;
pub mod random;
pub mod region;
mod shared_sync;
pub mod sync;

pub use core_local::CoreLocal;
pub use ids::{FileId, IndexId, Lsn, PageId, PageNo, Stamp, TableId};
pub use owned::{OwnedCounters, ThreadCounters};
pub use shared_sync::{SharedSync, Written};

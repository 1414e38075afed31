//! Models of the weak memory orderings.
//!
//! The models of the crates (feature `shuttle`) try schedules, and see one memory: every load gives what was
//! stored last. The models here run the same sources on loom, which also lets a load give an older value
//! wherever the memory model of C11 allows it.
//!
//! The sources are included as they are. This library stands in for `base`: its atomics and latches are
//! loom's, and note where in the sources an ordering stronger than Relaxed is used. Then each of these is
//! made weaker, one at a time, and the models have to fail. So an ordering that no model needs, and a model
//! that sees nothing, are found alike. The README says what loom cannot see.

pub mod region;
pub mod runner;
mod sites;
pub mod sync;

pub use real::{FileId, IndexId, Lsn, OwnedCounters, PageId, PageNo, Stamp, TableId, checksum, hash, phases};

/// Classes of latches count how threads meet, which does not matter here.
#[macro_export]
macro_rules! latch_class {
    ($(#[$doc:meta])* $visibility:vis $name:ident, $text:literal $(, $segments:expr)?) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        $visibility struct $name;
    };
}

/// A list of models, each with the number of times that a thread may be interrupted where it does not wait.
#[macro_export]
macro_rules! models {
    ($($run:ident: $preemptions:expr,)*) => {
        &[$($crate::runner::Model { claim: stringify!($run), run: $run, preemptions: $preemptions }),*]
    };
}

/// A list of canaries, as that of [`models`].
#[macro_export]
macro_rules! canaries {
    ($($run:ident: $preemptions:expr,)*) => {
        &[$($crate::runner::Canary($crate::runner::Model {
            claim: stringify!($run),
            run: $run,
            preemptions: $preemptions,
        })),*]
    };
}

//! Measuring: what a worker records, when it counts, and what the processes spent meanwhile.

pub mod clock;
pub mod histogram;
pub mod usage;

pub use clock::{Phase, Phases};
pub use histogram::Recorder;
pub use usage::{MEMORY, Process, Usage, resident_mib};

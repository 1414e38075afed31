//! Measuring: what a worker records, when it counts, and what the processes spent meanwhile.

pub(crate) mod clock;
pub(crate) mod histogram;
pub(crate) mod usage;

pub(crate) use clock::{Phase, Phases};
pub(crate) use histogram::Recorder;
pub(crate) use usage::{MEMORY, Process, Usage, resident_mib};

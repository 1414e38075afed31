//! The experiments. Each reads its options, measures its cells and sums them up. [`frame`] does what all runs
//! have in common; [`runner`] measures the cells, turn by turn.

mod frame;
mod insert_contention;
mod instance;
mod long_snapshot;
mod runner;
mod segments;
mod smp;
mod trace;
mod working_set;

pub(crate) use segments::{Options as SegmentsOptions, Segments};

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// A question, and how to answer it here.
pub(crate) trait Experiment: Sync {
    fn name(&self) -> &'static str;
    /// A title of one line.
    fn title(&self) -> &'static str;
    /// What the experiment finds out, and on which data.
    fn question(&self) -> &'static str;
    /// Its options, for `--help`.
    fn options(&self) -> String;
    /// Measures and reports, with the options as the user gave them.
    fn run(&self, args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()>;
}

/// The one list of experiments.
const ALL: &[&dyn Experiment] = &[
    &Segments,
    &insert_contention::InsertContention,
    &working_set::WorkingSet,
    &smp::Smp,
    &long_snapshot::LongSnapshot,
    &trace::Trace,
];

pub(crate) fn all() -> &'static [&'static dyn Experiment] {
    ALL
}

pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|experiment| experiment.name()).collect()
}

pub(crate) fn find(name: &str) -> Option<&'static dyn Experiment> {
    ALL.iter().copied().find(|experiment| experiment.name() == name)
}

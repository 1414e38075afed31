//! The experiments. Each is small: a grid of cells and the words around it; [`runner`] does the rest.

mod runner;
mod segments;

pub use runner::run;

use crate::command::RunOptions;
use crate::workload::Statement;

/// A question that a grid of cells answers.
pub trait Experiment: Sync {
    fn name(&self) -> &'static str;
    /// One line.
    fn title(&self) -> &'static str;
    /// What it asks, and of what.
    fn question(&self) -> &'static str;
    /// What a block of the tables stands for: `points`.
    fn block_name(&self) -> &'static str;
    /// The blocks of the grid; the columns are always threads, the rows the targets' series.
    fn blocks(&self, options: &RunOptions) -> Vec<Block>;
    /// What the gains are relative to, in words.
    fn baseline_name(&self) -> &'static str;
}

/// A workload with the number that names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub value: u32,
    pub statement: Statement,
}

const ALL: [&dyn Experiment; 1] = [&segments::Segments];

pub fn all() -> &'static [&'static dyn Experiment] {
    &ALL
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|experiment| experiment.name()).collect()
}

pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    ALL.iter().copied().find(|experiment| experiment.name() == name)
}

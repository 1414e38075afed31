//! `segments`: what splitting the key cache's mutex is worth (MariaDB 5.2.2's study of MyISAM).

use super::Experiment;
use super::runner::{self, Block, Grid};
use crate::command::{RunOptions, segments_options};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::workload::Statement;

#[derive(Clone, Copy, Debug)]
pub struct Segments;

impl Experiment for Segments {
    fn name(&self) -> &'static str {
        "segments"
    }

    fn title(&self) -> &'static str {
        "The segmented key cache"
    }

    fn question(&self) -> &'static str {
        "A key cache with one mutex makes every index read of every connection queue. What is it worth to \
         split it into segments with a mutex each, or to take no latch at all on a hit? One table, one \
         prepared query: SELECT id, k, c, pad FROM sbtest1 WHERE k IN (...), everything in memory."
    }

    fn options(&self) -> String {
        segments_options()
    }

    fn run(&self, args: &[String], interrupt: &Interrupt, progress: &mut Progress) -> Result<()> {
        let options = RunOptions::parse(args).map_err(Error::Usage)?;
        runner::run(self, args, &options, interrupt, progress)
    }
}

impl Grid for Segments {
    fn block_name(&self) -> &'static str {
        "points"
    }

    fn blocks(&self, options: &RunOptions) -> Vec<Block> {
        let block = |&points: &u32| Block { value: points, statement: Statement::PointsByK { points } };
        options.points.iter().map(block).collect()
    }

    fn baseline_name(&self) -> &'static str {
        "segments off"
    }
}

//! What is measured: the engine in process, or any server that speaks the MySQL protocol.

mod embedded;
mod setting;
mod spec;

pub use setting::{HitPath, Segments, Setting};
pub use spec::{Address, Engine, TargetSpec, hidden};

use crate::command::RunOptions;
use crate::driver::Load;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::results::Sample;
use crate::workload::Sbtest;
use std::path::Path;

/// One line of a chart: a target under one setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    pub label: String,
    /// `None`: the target as it is, nothing to set.
    pub setting: Option<Setting>,
}

/// What a target makes of the settings that a run asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesPlan {
    pub series: Vec<Series>,
    /// The label of the series that gains are relative to.
    pub baseline: Option<String>,
    /// Settings that were left out, and why.
    pub left_out: Vec<String>,
}

/// What a target gets from its run.
#[derive(Debug)]
pub struct Context<'a> {
    pub interrupt: &'a Interrupt,
    pub progress: &'a mut Progress,
    /// An empty folder of the target's own.
    pub folder: &'a Path,
}

/// Something that can be loaded, set and measured. Dropping it stops and removes what it started.
pub trait Target {
    fn name(&self) -> &str;

    /// Which settings make sense here. Called before `start`.
    fn series(&self, asked: &[Setting]) -> SeriesPlan;

    /// Gets going, makes the table, loads it, and makes sure that it gives right answers.
    fn start(&mut self, table: &Sbtest, context: &mut Context<'_>) -> Result<()>;

    /// Version and options, once started.
    fn facts(&self) -> Vec<(String, String)>;

    /// Switches to a series and brings its caches to the state that measuring starts from.
    fn apply(&mut self, series: &Series, context: &mut Context<'_>) -> Result<()>;

    fn sample(&mut self, load: &Load, context: &mut Context<'_>) -> Result<Sample>;

    /// Stops in good order; errors tell that data was lost. Does nothing the second time.
    fn stop(&mut self) -> Result<()>;
}

/// The target that `spec` names, not started yet.
pub fn open(spec: &TargetSpec, options: &RunOptions) -> Result<Box<dyn Target>> {
    match spec {
        TargetSpec::Embedded => Ok(Box::new(embedded::Embedded::new(options.whole_cache_bytes()))),
        other => Err(crate::error::Error::Usage(format!("the target {} is not there yet", other.name()))),
    }
}

/// A series for every setting: the plan of targets that have them all.
fn all_settings(asked: &[Setting]) -> SeriesPlan {
    SeriesPlan {
        series: asked
            .iter()
            .map(|setting| Series { label: setting.label(), setting: Some(*setting) })
            .collect(),
        baseline: Setting::baseline(asked).map(Setting::label),
        left_out: Vec::new(),
    }
}

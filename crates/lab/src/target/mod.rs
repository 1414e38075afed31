//! What is measured: the engine in process, or any server that speaks the MySQL protocol.

pub(crate) mod cores;
mod embedded;
mod latchwork;
mod mariadb;
mod null;
mod process;
mod remote;
mod server;
mod setting;
mod spec;

pub(crate) use embedded::{PRIMARY, make_sbtest, sbtest_values};
pub(crate) use engine::{HitPath, Preset};
pub(crate) use mariadb::{MARIADB_PACKAGE, missing_mariadb_program};
pub(crate) use server::{Flavour, OWN_SERVER_THREADS, load_rows};
pub(crate) use setting::{SEGMENTS_MAX, Segments, Setting};
pub(crate) use spec::{Engine, TargetSpec, hidden};

use crate::driver::socket::Login;
use crate::driver::{DriverKind, Load};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::results::Sample;
use crate::workload::Sbtest;
use std::path::Path;

/// One line of a chart: a target under one setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Series {
    pub label: String,
    /// `None`: the target as it is, nothing to set.
    pub setting: Option<Setting>,
}

/// The series that a target has for the settings that a run asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SeriesPlan {
    pub series: Vec<Series>,
    /// The label of the series that gains are relative to.
    pub baseline: Option<String>,
    /// Settings that were left out, and why.
    pub left_out: Vec<String>,
}

/// The parts of a run that a target may use.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub interrupt: &'a Interrupt,
    pub progress: &'a mut Progress,
    /// An empty folder of the target's own.
    pub folder: &'a Path,
}

/// Something that can be loaded, set and measured. Dropping it stops and removes what it started.
pub(crate) trait Target {
    fn name(&self) -> &str;

    /// Which settings make sense here. Called before `start`.
    fn series(&self, asked: &[Setting]) -> SeriesPlan;

    /// Starts, makes the table, loads it, and checks that the target gives right answers.
    fn start(&mut self, table: &Sbtest, context: &mut Context<'_>) -> Result<()>;

    /// Version and options, once started.
    fn facts(&self) -> Vec<(String, String)>;

    /// Switches to a series and brings its caches to the state that measuring starts from.
    fn apply(&mut self, series: &Series, context: &mut Context<'_>) -> Result<()>;

    fn sample(&mut self, load: &Load, context: &mut Context<'_>) -> Result<Sample>;

    /// Shuts down cleanly. An error means that data was lost. A second call does nothing.
    fn stop(&mut self) -> Result<()>;
}

/// Connections that a server has to take in addition to those of the clients.
const CONNECTIONS_BESIDE: u32 = 32;
/// The study's `max_connections`.
const CONNECTIONS_MIN: u32 = 256;

/// Options that a target is started with.
#[derive(Clone, Debug)]
pub(crate) struct TargetOptions {
    /// The size of a cache that holds rows and indexes.
    pub cache_bytes: u64,
    /// The size of a cache that holds indexes only.
    pub key_buffer_bytes: u64,
    /// The most clients that will work at the same time.
    pub clients_max: u32,
    /// The driver of servers. The engine in process always has the built-in driver.
    pub driver: DriverKind,
    /// More options for MariaDB's servers.
    pub mariadb_options: Vec<String>,
}

/// The target that `spec` names, not started yet.
pub(crate) fn open(spec: &TargetSpec, options: &TargetOptions) -> Box<dyn Target> {
    let connections_max = (options.clients_max + CONNECTIONS_BESIDE).max(CONNECTIONS_MIN);
    let flavour: Box<dyn Flavour> = match spec {
        TargetSpec::Embedded(_) => return Box::new(embedded::Embedded::new(options.cache_bytes)),
        TargetSpec::Latchwork(preset) => {
            Box::new(latchwork::Latchwork::new(*preset, options.cache_bytes, connections_max))
        }
        TargetSpec::MariaDb(engine) => Box::new(mariadb::MariaDb::new(
            *engine,
            options.cache_bytes,
            options.key_buffer_bytes,
            connections_max,
            options.mariadb_options.clone(),
        )),
        TargetSpec::Null => Box::new(null::Null::default()),
        TargetSpec::Remote { .. } => remote_server(spec).expect("it is remote"),
    };
    Box::new(server::Server::new(spec.name(), options.driver, flavour))
}

/// A server that runs already, for an experiment that makes its own tables in the server's database. `None`
/// if `spec` is another kind of target.
pub(crate) fn remote_server(spec: &TargetSpec) -> Option<Box<dyn Flavour>> {
    let TargetSpec::Remote { address, user, password, database } = spec else {
        return None;
    };
    let login = Login {
        target: spec.name(),
        address: address.clone(),
        user: user.clone(),
        password: password.clone(),
        database: Some(database.clone()),
    };
    Some(Box::new(remote::Remote { login }))
}

/// A server on a scratch folder, for an experiment that makes its own tables. `None` if the lab cannot start
/// a server of this kind.
pub(crate) fn scratch_server(
    spec: &TargetSpec,
    cache_bytes: u64,
    connections_max: u32,
    options: Vec<String>,
) -> Option<Box<dyn Flavour>> {
    match spec {
        TargetSpec::Latchwork(preset) => {
            let server = latchwork::Latchwork::new(*preset, cache_bytes, connections_max);
            Some(Box::new(server.with_options(options)))
        }
        TargetSpec::MariaDb(engine) => {
            Some(Box::new(mariadb::MariaDb::new(*engine, cache_bytes, cache_bytes, connections_max, options)))
        }
        _ => None,
    }
}

/// The null server, for an experiment whose statements it can answer. `None` if `spec` is another kind of
/// target.
pub(crate) fn null_server(spec: &TargetSpec) -> Option<Box<dyn Flavour>> {
    (*spec == TargetSpec::Null).then(|| Box::new(null::Null::default()) as Box<dyn Flavour>)
}

/// A series for every setting: the plan of targets that can take all of them.
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

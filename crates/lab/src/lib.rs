//! The performance lab: experiments, the targets they run on, and reports that can be trusted.
//!
//! An [`experiment`] is a grid of cells. A [`target`] is the engine in this process or any server that speaks
//! the MySQL protocol; a [`driver`] puts a [`workload`] on it; [`measure`] counts and [`stats`] summarises;
//! [`report`] shows [`results`]. [`doctor`] says what on this machine would spoil them.

pub mod command;
pub mod device;
pub mod doctor;
pub mod driver;
pub mod error;
pub mod experiment;
pub mod interrupt;
pub mod measure;
pub mod progress;
pub mod report;
pub mod results;
pub mod scratch;
pub mod stats;
pub mod target;
pub mod workload;

pub use command::main;

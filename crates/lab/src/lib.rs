//! The performance lab: experiments, the targets they run on, and reports that can be trusted. Its README has
//! the layers and the life of a run.
//!
//! An [`experiment`] is a grid of cells. A [`target`] is the engine in this process or any server that speaks
//! the MySQL protocol; a [`driver`] puts a [`workload`] on it; [`measure`] counts and [`stats`] summarises;
//! [`report`] shows [`results`]. [`doctor`] says what on this machine would make the figures unreliable.

#![warn(unreachable_pub)]
#![allow(rustdoc::private_intra_doc_links)]

mod arguments;
mod command;
mod device;
mod doctor;
mod driver;
mod error;
mod experiment;
mod interrupt;
mod json;
mod measure;
mod progress;
mod report;
mod results;
mod scratch;
mod stats;
mod target;
mod workload;

pub use command::main;

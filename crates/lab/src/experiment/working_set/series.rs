//! What is swept: a target with one way to keep its pages, with the row tier or without.

use super::data::Data;
use crate::device::DeviceLimit;
use crate::driver::Window;
use crate::error::Result;
use crate::experiment::frame::Run;
use crate::results::Sample;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How pages are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    Large,
    Small,
    /// Large, compressed to the size of small ones.
    Compressed,
}

impl Pages {
    pub const ALL: [Pages; 3] = [Pages::Large, Pages::Small, Pages::Compressed];

    pub fn name(self) -> &'static str {
        match self {
            Pages::Large => "16k",
            Pages::Small => "4k",
            Pages::Compressed => "compressed",
        }
    }

    /// Bytes of an open page.
    pub fn size(self) -> usize {
        match self {
            Pages::Large | Pages::Compressed => 16 << 10,
            Pages::Small => 4 << 10,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    pub pages: Pages,
    pub row_tier: bool,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.pages.name(), if self.row_tier { " + rows" } else { "" })
    }
}

/// What every series is set up with.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub data: Data,
    /// Pages and rows together.
    pub cache_bytes: u64,
    /// The row tier's part of them, where there is one and nothing else decides.
    pub row_bytes: u64,
    pub clients: u32,
    /// `None` = as fast as it is.
    pub operations_per_second: Option<u32>,
}

/// Why a series is not in the run, or that it is.
pub enum Opened {
    Ready(Box<dyn Swept>),
    LeftOut(String),
}

/// A series that is loaded and can be asked.
pub trait Swept {
    fn facts(&self) -> Vec<(String, String)>;
    /// Reads every key once, with the device unlimited.
    fn touch(&mut self, keys: &[u32]) -> Result<()>;
    /// Random ones of `keys`, over and over, with the device limited; the sample's extras are [`READS`] and [`MEMORY`].
    fn sample(&mut self, keys: &[u32], writes: bool, window: &Window, run: &Run<'_>) -> Result<Sample>;
    fn stop(&mut self) -> Result<()>;
}

pub const READS: &str = "device reads a lookup";
pub const MEMORY: &str = "resident memory, MiB";

/// Resident memory of a process in MiB.
pub fn resident(pid: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().split(' ').next()?.parse().ok()?;
    Some(kib / 1024.0)
}

/// Says so if the tables of a Latchwork data directory take about as much as their rows.
pub fn not_compressed(data: &Path, setup: &Setup) -> Option<String> {
    let rows = u64::from(setup.data.rows) * u64::from(setup.data.row_bytes);
    let tables = bytes_under(&data.join("tables"));
    (tables > rows * 3 / 4)
        .then(|| format!("its table of {rows} bytes of rows takes {tables} bytes: nothing is compressed"))
}

/// What `st_blocks` counts in.
const BLOCK_BYTES: u64 = 512;

/// On the device: holes count nothing.
fn bytes_under(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * BLOCK_BYTES).sum()
}

/// The limit for a server's device, or the sentence that says why there is none.
pub fn device_limit(setup: &Setup, folder: &Path, name: &str) -> Result<Option<DeviceLimit>, String> {
    if setup.operations_per_second.is_none() {
        return Ok(None);
    }
    DeviceLimit::new(folder, name).map(Some)
}

/// Which key an operation takes, and whether it writes: every second one, if any do.
#[derive(Clone, Debug)]
pub struct Choice {
    pub random: crate::workload::Random,
    pub writes: bool,
    count: u64,
}

impl Choice {
    pub fn new(seed: u64, client: u32, writes: bool) -> Choice {
        Choice { random: crate::workload::Random::new(seed, 500 + u64::from(client)), writes, count: 0 }
    }

    pub fn next(&mut self, keys: &[u32]) -> (u32, bool) {
        self.count += 1;
        (keys[self.random.below(keys.len() as u32) as usize], self.writes && self.count.is_multiple_of(2))
    }
}

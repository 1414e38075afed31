//! A series of the sweep: a target with one kind of pages, with the row tier or without.

use super::data::Data;
use crate::device::DeviceLimit;
use crate::driver::Window;
use crate::error::Result;
use crate::experiment::frame::Run;
use crate::results::Sample;
use crate::scratch::bytes_under;
use base::random::Random;
use std::fmt;
use std::path::Path;

/// The size and the form of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pages {
    Large,
    Small,
    /// Large, compressed to the size of small ones.
    Compressed,
}

impl Pages {
    pub(crate) const ALL: [Pages; 3] = [Pages::Large, Pages::Small, Pages::Compressed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Pages::Large => "16k",
            Pages::Small => "4k",
            Pages::Compressed => "compressed",
        }
    }

    /// Bytes of an open page.
    pub(crate) fn size(self) -> usize {
        match self {
            Pages::Large | Pages::Compressed => 16 << 10,
            Pages::Small => 4 << 10,
        }
    }
}

/// The row tier's part of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowTier {
    Off,
    /// [`Setup::row_bytes`].
    Fixed,
    /// As much as is more useful there than in the page cache.
    ByBenefit,
}

impl RowTier {
    pub(crate) const ALL: [RowTier; 3] = [RowTier::Off, RowTier::Fixed, RowTier::ByBenefit];

    /// The value for `--row-tier`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RowTier::Off => "off",
            RowTier::Fixed => "on",
            RowTier::ByBenefit => "auto",
        }
    }

    /// Its size in bytes as the engine takes it; `None` = by benefit.
    pub(crate) fn bytes(self, setup: &Setup) -> Option<usize> {
        match self {
            RowTier::Off => Some(0),
            RowTier::Fixed => Some(setup.row_bytes as usize),
            RowTier::ByBenefit => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Variant {
    pub pages: Pages,
    pub row_tier: RowTier,
}

impl Variant {
    /// True if parts of the cache grow and shrink with their benefit. They need time to settle.
    pub(crate) fn follows_benefit(self) -> bool {
        self.pages == Pages::Compressed || self.row_tier == RowTier::ByBenefit
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = match self.row_tier {
            RowTier::Off => "",
            RowTier::Fixed => " + rows",
            RowTier::ByBenefit => " + rows by benefit",
        };
        write!(f, "{}{rows}", self.pages.name())
    }
}

/// The set-up that every series has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub data: Data,
    /// Bytes for pages and rows together.
    pub cache_bytes: u64,
    /// The row tier's part of them, if its size is fixed.
    pub row_bytes: u64,
    pub clients: u32,
    /// `None` = as fast as it is.
    pub operations_per_second: Option<u32>,
}

/// A series that is ready, or the reason why it is left out.
pub(crate) enum Opened {
    Ready(Box<dyn Swept>),
    LeftOut(String),
}

/// The operations of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'k> {
    /// The operations take random keys out of these.
    pub keys: &'k [u32],
    /// Every second operation is an update.
    pub writes: bool,
    /// True while the device is limited.
    pub limited: bool,
    /// See [`Choice::new`].
    pub turn: u64,
}

/// A series that is loaded and can be asked.
pub(crate) trait Swept {
    fn facts(&self) -> Vec<(String, String)>;
    /// Reads every key once, with the device unlimited. Returns the sum of their rows' `k`: each update has
    /// added one to it.
    fn touch(&mut self, keys: &[u32]) -> Result<u64>;
    /// Updates so far.
    fn updates(&self) -> u64;
    /// The sample's extras are [`READS`], [`MEMORY`], and those of [`RowsAndColdPages::extras`].
    fn sample(&mut self, asked: Asked<'_>, window: &Window, run: &Run<'_>) -> Result<Sample>;
    fn stop(&mut self) -> Result<()>;
}

pub(crate) const READS: &str = "device reads a lookup";

/// What a Latchwork cache holds in memory besides uncompressed pages: rows of the row tier, and cold pages.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RowsAndColdPages {
    pub rows: u64,
    pub row_bytes: u64,
    pub cold_page_bytes: u64,
}

impl RowsAndColdPages {
    /// As extras of a sample, without those that are zero.
    pub(crate) fn extras(self) -> impl Iterator<Item = (String, f64)> {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        [
            ("rows kept by themselves", self.rows as f64),
            ("rows kept by themselves, MiB", mib(self.row_bytes)),
            ("compressed pages in memory, MiB", mib(self.cold_page_bytes)),
        ]
        .into_iter()
        .filter(|(_, value)| *value > 0.0)
        .map(|(name, value)| (name.to_string(), value))
    }
}

/// A sentence that nothing is compressed, if the tables of a Latchwork data directory take about as much as
/// their rows.
pub(crate) fn not_compressed(data: &Path, setup: &Setup) -> Option<String> {
    let rows = u64::from(setup.data.rows) * u64::from(setup.data.row_bytes);
    let tables = bytes_under(&data.join("tables"));
    (tables > rows * 3 / 4)
        .then(|| format!("its table of {rows} bytes of rows takes {tables} bytes: nothing is compressed"))
}

/// The limit for a server's device, or the sentence that says why there is none.
pub(crate) fn device_limit(setup: &Setup, folder: &Path, name: &str) -> Result<Option<DeviceLimit>, String> {
    if setup.operations_per_second.is_none() {
        return Ok(None);
    }
    DeviceLimit::new(folder, name).map(Some)
}

/// Which key an operation takes, and whether it writes. If operations write, every second one does.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    random: Random,
    writes: bool,
    count: u64,
}

impl Choice {
    /// `turn` differs each time that a series is asked. Otherwise the series would get the same random
    /// numbers and ask for the keys that it has just read.
    pub(crate) fn new(seed: u64, turn: u64, client: u32, writes: bool) -> Choice {
        Choice { random: Random::new(seed, (turn + 1) << 32 | u64::from(client)), writes, count: 0 }
    }

    pub(crate) fn next(&mut self, keys: &[u32]) -> (u32, bool) {
        self.count += 1;
        (keys[self.random.below(keys.len() as u32) as usize], self.writes && self.count.is_multiple_of(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_asks_in_an_order_of_its_own() {
        let keys: Vec<u32> = (0..1_000).collect();
        let drawn = |turn, client| -> Vec<(u32, bool)> {
            let mut choice = Choice::new(303, turn, client, true);
            (0..100).map(|_| choice.next(&keys)).collect()
        };
        assert_eq!(drawn(0, 1), drawn(0, 1));
        assert_ne!(drawn(0, 1), drawn(1, 1));
        assert_ne!(drawn(0, 1), drawn(0, 2));
        assert_eq!(drawn(0, 1).iter().filter(|(_, write)| *write).count(), 50);
    }
}

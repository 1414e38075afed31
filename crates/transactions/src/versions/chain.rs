//! The old versions of one row: no latches, no threads.

use super::runs::Spilled;
use base::Stamp;
use base::sync::Arc;

/// Why a version is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pin {
    /// It belongs to the snapshots with this number, and perhaps to older ones.
    Snapshot(u64),
    /// A snapshot that is opened now would need it.
    Future,
}

/// The stamp that wrote what a row was, which has 48 bits, and whether that transaction inserted the row
/// where there was none, without leaving a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin(u64);

const IS_FIRST: u64 = 1 << 63;

impl Origin {
    pub fn new(stamp: Stamp, is_first: bool) -> Origin {
        Origin(stamp.0 | if is_first { IS_FIRST } else { 0 })
    }

    pub fn from_bits(bits: u64) -> Origin {
        Origin(bits)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn stamp(self) -> u64 {
        self.0 & !IS_FIRST
    }

    pub fn is_first(self) -> bool {
        self.0 & IS_FIRST != 0
    }
}

/// What a row was until `superseded_by` changed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    pub superseded_by: u64,
    pub origin: Origin,
    /// `None`: there was no row.
    pub old: Option<Arc<[u8]>>,
}

impl Version {
    pub fn bytes(&self) -> u64 {
        super::VERSION_OVERHEAD + self.old.as_ref().map_or(0, |old| old.len() as u64)
    }
}

/// What a snapshot finds of a row whose newest state it does not see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The cell as it was.
    Row(Arc<[u8]>),
    /// There was no row.
    NoRow,
    /// No version hides the row's newest state: its writer has rolled back, or the row was inserted without
    /// leaving a version. Read the page again (transactions R5).
    Newest,
    /// It has to be looked for in files: see [`crate::View::read_spilled`].
    Spilled(Box<Spilled>),
}

/// What a chain says of a row.
#[derive(Debug)]
pub enum Sought {
    Found(Found),
    /// This, unless an older version says something else that has left the chain for a file.
    Unless(Found),
}

/// Oldest first. Transactions that changed a row one after another committed in that order, because each held
/// the row's lock until it ended. So a snapshot sees the first few of them and none of the others.
#[derive(Debug)]
pub struct Chain {
    versions: Vec<Version>,
    /// The length at which an insertion prunes.
    prune_at: usize,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { versions: Vec::new(), prune_at: super::PRUNE_AT }
    }
}

impl Chain {
    /// Adds a version. False if its writer has one here already: no other transaction can see the states in
    /// between.
    pub fn push(&mut self, version: Version) -> bool {
        if self.versions.last().is_some_and(|last| last.superseded_by == version.superseded_by) {
            return false;
        }
        self.versions.push(version);
        true
    }

    pub fn is_long(&self) -> bool {
        self.versions.len() >= self.prune_at
    }

    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    pub fn find(&self, sees: impl Fn(u64) -> bool) -> Sought {
        let Some(version) = self.versions.iter().find(|version| !sees(version.superseded_by)) else {
            return Sought::Unless(Found::Newest);
        };
        if !sees(version.origin.stamp()) {
            // A transaction that this snapshot does not see wrote even the oldest version.
            return match version.origin.is_first() {
                true => Sought::Found(Found::NoRow),
                false => Sought::Unless(Found::NoRow),
            };
        }
        Sought::Found(version.old.clone().map_or(Found::NoRow, Found::Row))
    }

    /// The version that `writer` superseded.
    pub fn version(&self, writer: u64) -> Option<&Version> {
        self.versions.iter().find(|version| version.superseded_by == writer)
    }

    /// What the row was, version by version, with the stamp that changed it.
    pub fn rows(&self) -> impl Iterator<Item = (u64, Arc<[u8]>)> {
        self.versions.iter().filter_map(|version| Some((version.superseded_by, version.old.clone()?)))
    }

    /// Removes what `writer` left. Gives the bytes freed.
    pub fn take_back(&mut self, writer: u64) -> u64 {
        let before = self.bytes();
        self.versions.retain(|version| version.superseded_by != writer);
        before - self.bytes()
    }

    /// Removes the versions that no snapshot needs, and gives the bytes freed. `end_of` says when a
    /// transaction committed (an active one: `u64::MAX`). `pin` says which snapshots need what was current
    /// from one number on and before another.
    pub fn prune(&mut self, end_of: impl Fn(u64) -> u64, pin: impl Fn(u64, u64) -> Option<Pin>) -> u64 {
        let before = self.bytes();
        let mut previous = None;
        self.versions.retain(|version| {
            let from = begin_of(version, previous, &end_of);
            let to = end_of(version.superseded_by);
            previous = Some(to);
            pin(from, to).is_some()
        });
        self.prune_at = super::PRUNE_AT.max(2 * self.versions.len());
        before - self.bytes()
    }

    /// Which snapshots need the version that `writer` superseded. `None` also if it is gone.
    pub fn pin_of(
        &self,
        writer: u64,
        end_of: impl Fn(u64) -> u64,
        pin: impl Fn(u64, u64) -> Option<Pin>,
    ) -> Option<Pin> {
        let at = self.versions.iter().position(|version| version.superseded_by == writer)?;
        let previous = at.checked_sub(1).map(|before| end_of(self.versions[before].superseded_by));
        pin(begin_of(&self.versions[at], previous, &end_of), end_of(writer))
    }

    fn bytes(&self) -> u64 {
        self.versions.iter().map(Version::bytes).sum()
    }
}

/// From which number on snapshots need a version. `previous`: the end of the one before it in the chain.
fn begin_of(version: &Version, previous: Option<u64>, end_of: impl Fn(u64) -> u64) -> u64 {
    // The one before may be in a file, or was needed by nobody. Then the version is needed from its writer's
    // end on. But if the row was inserted where there was none, it also tells older snapshots that there was
    // no row (transactions R6).
    previous.unwrap_or_else(|| first_needed(version.origin, end_of))
}

/// The number of the oldest snapshot that may need a version with this origin.
pub fn first_needed(origin: Origin, end_of: impl Fn(u64) -> u64) -> u64 {
    match end_of(origin.stamp()) {
        _ if origin.is_first() => 0,
        // It has not ended: nothing is known.
        u64::MAX => 0,
        number => number,
    }
}

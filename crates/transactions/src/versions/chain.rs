//! The old versions of one row: no latches, no threads.

use base::sync::Arc;

/// Why a version is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pin {
    /// It belongs to the snapshots with this number, and perhaps to older ones.
    Snapshot(u64),
    /// A snapshot that is opened now would need it.
    Future,
}

/// What a row was until `superseded_by` changed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    pub superseded_by: u64,
    /// The stamp that wrote `old`.
    pub written_by: u64,
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

    pub fn find(&self, sees: impl Fn(u64) -> bool) -> Found {
        match self.versions.iter().find(|version| !sees(version.superseded_by)) {
            None => Found::Newest,
            Some(version) => match &version.old {
                Some(old) if sees(version.written_by) => Found::Row(old.clone()),
                // A transaction that this snapshot does not see inserted even the oldest version.
                _ => Found::NoRow,
            },
        }
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
        // The oldest version also answers snapshots that see none of the chain: they must learn that there
        // was no row (transactions R6).
        let mut from = 0;
        self.versions.retain(|version| {
            let to = end_of(version.superseded_by);
            let keep = pin(from, to).is_some();
            from = to;
            keep
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
        let from = at.checked_sub(1).map_or(0, |before| end_of(self.versions[before].superseded_by));
        pin(from, end_of(writer))
    }

    fn bytes(&self) -> u64 {
        self.versions.iter().map(Version::bytes).sum()
    }
}

//! What a table is at a moment: its definition and its trees. A change of definition makes a new state;
//! the old ones stay where they are until the table goes, so that readers follow plain references and
//! count nothing.

use super::Index;
use crate::definition::TableDef;
use crate::space::tablespace::Tablespace;
use base::IndexId;
use base::sync::atomic::{AtomicUsize, Ordering};
use base::sync::{Arc, OnceLock};

/// A table's definition with its trees, fixed.
#[derive(Clone, Debug)]
pub(crate) struct TableState {
    pub def: Arc<TableDef>,
    pub space: Arc<Tablespace>,
    /// 0 = clustered, n = `def.indexes[n - 1]`.
    pub indexes: Vec<Index>,
    /// The id of the next tree made in the file.
    pub next_tree: u32,
    /// The table has been dropped; only this is left to say so.
    pub dropped: bool,
}

impl TableState {
    /// Lets snapshots read its trees that are of this number or newer.
    pub(crate) fn set_since(&mut self, since: u64) {
        self.indexes.iter_mut().for_each(|index| index.since = since);
    }

    /// True if `index` is the same tree here as in `older`.
    pub(crate) fn has_tree_of(&self, older: &TableState, index: IndexId) -> bool {
        let tree = |state: &TableState| {
            let index = state.indexes.get(usize::from(index.0))?;
            Some((index.tree.space().file_id(), index.tree.id()))
        };
        !self.dropped && tree(self) == tree(older)
    }

    /// True if the tree of `index` in `older` is one of those here, of whichever index.
    pub(crate) fn has_tree_still(&self, older: &TableState, index: IndexId) -> bool {
        let place = |index: &Index| (index.tree.space().file_id(), index.tree.id());
        let old = older.indexes.get(usize::from(index.0)).map(place);
        !self.dropped && old.is_some_and(|old| self.indexes.iter().any(|index| place(index) == old))
    }
}

/// Buckets of states: bucket `b` holds `2^b`.
const BUCKETS: usize = 32;

/// The states of a table, of which the last counts. Grows only.
#[derive(Debug)]
pub(crate) struct States {
    /// How many there are. Published after the state it counts.
    count: AtomicUsize,
    buckets: [OnceLock<Box<[OnceLock<TableState>]>>; BUCKETS],
}

impl States {
    pub(crate) fn new(first: TableState) -> States {
        let states = States { count: AtomicUsize::new(0), buckets: [const { OnceLock::new() }; BUCKETS] };
        states.push(first);
        states
    }

    fn place(&self, index: usize) -> &OnceLock<TableState> {
        let bucket = (index + 1).ilog2() as usize;
        let slots =
            self.buckets[bucket].get_or_init(|| (0..1usize << bucket).map(|_| OnceLock::new()).collect());
        &slots[index + 1 - (1 << bucket)]
    }

    /// The state as of now. Writes nothing shared.
    #[inline]
    pub(crate) fn current(&self) -> &TableState {
        // ORDER: pairs with the release in `push`: the state is complete before it is counted.
        let count = self.count.load(Ordering::Acquire);
        self.place(count - 1).get().expect("a counted state is in its place")
    }

    /// Makes `state` the current one. Callers take turns (the latch for definitions).
    pub(crate) fn push(&self, state: TableState) {
        // ORDER: only the holder of the definition latch changes it.
        let count = self.count.load(Ordering::Relaxed);
        let fresh = self.place(count).set(state).is_ok();
        assert!(fresh, "two changes of definition at once");
        // ORDER: pairs with the acquire in `current`.
        self.count.store(count + 1, Ordering::Release);
    }
}

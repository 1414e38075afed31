//! Pages that were given up lately, to notice when one is asked for again.

use crate::index::Hash;
use std::collections::{HashMap, VecDeque};

/// Pages that were given up lately, by their hashes, oldest forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Ghosts {
    queue: VecDeque<u64>,
    /// How often a hash is in the queue, and when it entered last. A hash that has been recalled stays in the
    /// queue until its turn comes.
    known: HashMap<u64, (u32, u64)>,
    /// How many ever entered.
    entered: u64,
}

impl Ghosts {
    /// A page has been given up. The latest `max` are remembered.
    pub fn remember(&mut self, hash: Hash, max: usize) {
        self.queue.push_back(hash.bits());
        self.entered += 1;
        let known = self.known.entry(hash.bits()).or_default();
        *known = (known.0 + 1, self.entered);
        while self.queue.len() > max {
            let Some(oldest) = self.queue.pop_front() else { break };
            if let Some((count, _)) = self.known.get_mut(&oldest) {
                *count -= 1;
                if *count == 0 {
                    self.known.remove(&oldest);
                }
            }
        }
    }

    /// How many have entered since this page did. `None` if it is not remembered.
    pub fn recall(&self, hash: Hash) -> Option<u64> {
        self.known.get(&hash.bits()).map(|(_, when)| self.entered - when)
    }
}

//! Hashing of what this process keeps in memory.
//!
//! The standard library's hash resists an attacker who can choose all keys and measure the time of each
//! look-up, and costs about a hundred instructions a key. The tables of locks and transactions are looked
//! into several times a row. Their hash is a quarter of that, and its seed is drawn when the process starts.

use foldhash::fast::{FixedState, RandomState};
use std::hash::{BuildHasher, Hash};

/// The standard library's map with the cheaper hash.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// A hash that is the same in every process, to deal keys to a fixed number of places.
#[inline]
pub fn spread(key: &impl Hash) -> u64 {
    FixedState::with_seed(0).hash_one(key)
}

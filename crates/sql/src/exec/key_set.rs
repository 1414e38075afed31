//! Sets of keys that have been seen: for DISTINCT, UNION, and rows that are found twice.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// How many keys a set has room for at first.
const KEYS_FIRST: usize = 112;
const BYTES_FIRST: usize = 4 << 10;

/// A set of keys. Their bytes lie one behind the other, so a new key rarely needs an allocation.
#[derive(Default, Debug)]
pub(super) struct KeySet {
    bytes: Vec<u8>,
    table: HashTable<KeyEntry>,
    hasher: RandomState,
}

/// Where a key lies, with the hash that it has, so that a growing table need not look at the keys.
#[derive(Clone, Copy, Debug)]
struct KeyEntry {
    start: usize,
    len: u32,
    hash: u32,
}

impl KeyEntry {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.start + self.len as usize]
    }
}

impl KeySet {
    /// True if the key is new.
    pub(super) fn insert(&mut self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        if self.table.capacity() == 0 {
            self.bytes.reserve(BYTES_FIRST);
            self.table.reserve(KEYS_FIRST, |entry| spread(entry.hash));
        }
        if self.table.find(spread(hash), |entry| entry.is(hash, key, &self.bytes)).is_some() {
            return false;
        }
        let entry = KeyEntry { start: self.bytes.len(), len: key.len() as u32, hash };
        self.bytes.extend_from_slice(key);
        self.table.insert_unique(spread(hash), entry, |entry| spread(entry.hash));
        true
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        self.table.find(spread(hash), |entry| entry.is(hash, key, &self.bytes)).is_some()
    }

    /// The keys, in the order of the hash table.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.table.iter().map(|entry| entry.of(&self.bytes))
    }

    /// Bytes that keys and table take, about.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.table.len() * 2 * size_of::<KeyEntry>()
    }

    fn hash(&self, key: &[u8]) -> u32 {
        (self.hasher.hash_one(key) >> 32) as u32
    }
}

impl KeyEntry {
    fn is(self, hash: u32, key: &[u8], bytes: &[u8]) -> bool {
        self.hash == hash && self.of(bytes) == key
    }
}

/// The hash table takes the bucket from the low bits of a hash, and a tag from its seven highest bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once() {
        let mut set = KeySet::default();
        let keys: Vec<Vec<u8>> = (0..5000u32).map(|i| vec![i as u8; (i % 300) as usize]).collect();
        let mut model = std::collections::HashSet::new();
        for key in &keys {
            assert_eq!(set.insert(key), model.insert(key.clone()));
        }
        for key in keys.iter().rev() {
            assert_eq!(set.insert(key), model.insert(key.clone()));
        }
    }
}

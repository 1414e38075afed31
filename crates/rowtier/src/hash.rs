//! The hash by which a key is found.

/// Folded multiplication: all bits of both numbers reach all bits of the result (as in wyhash).
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

const SEED: u64 = 0x2d35_8dcc_aa6c_78a5;
const STEP: u64 = 0x8bb8_4b93_962e_acc9;
const END: u64 = 0x4b33_a62e_d433_d4a3;

/// The hash of an owner's key: the lower half chooses the bucket, the upper half has the tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hash(pub u64);

impl Hash {
    #[inline]
    pub fn of(owner: u64, key: &[u8]) -> Hash {
        Hash::of_words(owner, key.len(), key.chunks(8).map(word_of))
    }

    /// Of a key of `len` bytes that lies in words as [`word_of`] makes them.
    #[inline(always)]
    pub fn of_words(owner: u64, len: usize, words: impl Iterator<Item = u64>) -> Hash {
        let hash = words.fold(owner ^ SEED, |hash, word| fold(hash ^ word, STEP));
        Hash(fold(hash ^ len as u64, END))
    }

    #[inline(always)]
    pub fn low(self) -> u32 {
        self.0 as u32
    }
}

/// Up to eight bytes as a word, little-endian, zeroes behind.
#[inline(always)]
pub fn word_of(bytes: &[u8]) -> u64 {
    if let Ok(whole) = bytes.try_into() {
        return u64::from_le_bytes(whole);
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    #[cfg_attr(miri, ignore = "many keys, and nothing but arithmetic")]
    fn keys_that_count_up_spread_over_buckets_and_tags() {
        let mut buckets = [0; 64];
        let mut tags = HashSet::new();
        for number in 0..64_000_u64 {
            let hash = Hash::of(7, &number.to_be_bytes());
            buckets[hash.low() as usize % 64] += 1;
            tags.insert(hash.0 >> 40);
        }
        assert!(buckets.iter().all(|count| (800..1_200).contains(count)), "{buckets:?}");
        assert!(tags.len() > 63_000, "{}", tags.len());
    }

    #[test]
    fn owner_length_and_every_byte_count() {
        let hashes: HashSet<u64> = [
            (1, &b""[..]),
            (2, b""),
            (1, b"\0"),
            (1, b"a"),
            (1, b"a\0"),
            (1, b"12345678"),
            (1, b"12345678\0"),
        ]
        .iter()
        .map(|(owner, key)| Hash::of(*owner, key).0)
        .collect();
        assert_eq!(hashes.len(), 7);
    }
}

//! How an entry lies in its block.
//!
//! ```text
//! word 0: key length 14 bits | value length 14 bits | owner 36 bits
//! then the key and the value, each from a word's start, zeroes behind
//! ```
//! Words are read while they may be written. Whatever a torn word says, a read stays within bounds or finds
//! nothing (rowtier R1).

use crate::hash::{Hash, word_of};
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};

const LENGTH_BITS: u32 = 14;
/// The longest key, and the longest value, in bytes.
const LENGTH_MAX: usize = (1 << LENGTH_BITS) - 1;

/// The largest number of an owner.
pub const OWNER_MAX: u64 = u64::MAX >> (2 * LENGTH_BITS);

/// The first word of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    key_len: usize,
    value_len: usize,
    owner: u64,
}

impl Header {
    #[inline(always)]
    fn from_word(word: u64) -> Header {
        Header {
            key_len: word as usize & LENGTH_MAX,
            value_len: (word >> LENGTH_BITS) as usize & LENGTH_MAX,
            owner: word >> (2 * LENGTH_BITS),
        }
    }

    fn to_word(self) -> u64 {
        self.key_len as u64 | (self.value_len as u64) << LENGTH_BITS | self.owner << (2 * LENGTH_BITS)
    }

    fn words(self) -> usize {
        1 + self.key_len.div_ceil(8) + self.value_len.div_ceil(8)
    }
}

/// The words of an entry; `None` if it is longer than an entry can be.
pub fn words_of(key_len: usize, value_len: usize) -> Option<usize> {
    (key_len <= LENGTH_MAX && value_len <= LENGTH_MAX)
        .then(|| Header { key_len, value_len, owner: 0 }.words())
}

/// The words of the entry that `words` begins with, and its hash. Nobody writes there meanwhile.
pub fn measure(words: &[AtomicU64]) -> (usize, Hash) {
    let header = Header::from_word(words[0].load(Relaxed));
    let key = words[1..].iter().take(header.key_len.div_ceil(8)).map(|word| word.load(Relaxed));
    (header.words(), Hash::of_words(header.owner, header.key_len, key))
}

/// Stores an entry whose length [`words_of`] gave. `value` is its parts, one behind the other.
pub fn write(words: &[AtomicU64], owner: u64, key: &[u8], value: &[&[u8]]) {
    assert!(owner <= OWNER_MAX);
    let value_len = value.iter().map(|part| part.len()).sum();
    let header = Header { key_len: key.len(), value_len, owner };
    words[0].store(header.to_word(), Relaxed);
    let mut at = 1;
    for chunk in key.chunks(8) {
        words[at].store(word_of(chunk), Relaxed);
        at += 1;
    }
    let (mut word, mut filled) = (0, 0);
    for byte in value.iter().flat_map(|part| part.iter()) {
        word |= u64::from(*byte) << filled;
        filled += 8;
        if filled == 64 {
            words[at].store(word, Relaxed);
            at += 1;
            (word, filled) = (0, 0);
        }
    }
    if filled > 0 {
        words[at].store(word, Relaxed);
    }
}

/// Appends the value of the entry at `place` to `out` if it is this key's. The value means nothing before the
/// bucket has been found unchanged (rowtier R1).
#[inline]
pub fn read(words: &[AtomicU64], place: usize, owner: u64, key: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(words) = words.get(place..) else { return false };
    let [first, rest @ ..] = words else { return false };
    let header = Header::from_word(first.load(Relaxed));
    if header.key_len != key.len() || header.owner != owner {
        return false;
    }
    let (key_words, value_words) = (key.len().div_ceil(8), header.value_len.div_ceil(8));
    if rest.len() < key_words + value_words {
        return false;
    }
    let (keys, rest) = rest.split_at(key_words);
    if !key.chunks(8).zip(keys).all(|(chunk, word)| word.load(Relaxed) == word_of(chunk)) {
        return false;
    }
    let start = out.len();
    out.reserve(value_words * 8);
    for word in &rest[..value_words] {
        out.extend_from_slice(&word.load(Relaxed).to_le_bytes());
    }
    out.truncate(start + header.value_len);
    true
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        for key_len in [0, 1, 7, 8, 9, 20] {
            for value_len in [0, 1, 8, 200, 203] {
                let key = &b"abcdefghijklmnopqrstuvwxyz"[..key_len];
                let value: Vec<u8> = (0..value_len as u8).collect();
                let length = words_of(key_len, value_len).unwrap();
                let words: Vec<AtomicU64> = (0..length + 3).map(|_| AtomicU64::new(u64::MAX)).collect();
                let (left, right) = value.split_at(value_len / 3);
                write(&words[3..], 9, key, &[left, right]);
                assert_eq!(measure(&words[3..]), (length, Hash::of(9, key)));
                let mut out = vec![1];
                assert!(read(&words, 3, 9, key, &mut out));
                assert_eq!(out, [&[1], value.as_slice()].concat());
                assert!(!read(&words, 3, 8, key, &mut out) && !read(&words, 3, 9, b"zz", &mut out));
                // An entry cut short, and one beyond the end, as a torn slot may name them.
                assert!(!read(&words[..length + 2], 3, 9, key, &mut out));
                assert!(!read(&words, length + 3, 9, key, &mut out));
                assert!(!read(&words, usize::MAX / 16, 9, key, &mut out));
            }
        }
        assert_eq!((words_of(16_384, 0), words_of(0, 16_384)), (None, None));
        let largest = Header { key_len: LENGTH_MAX, value_len: LENGTH_MAX, owner: OWNER_MAX };
        assert_eq!(Header::from_word(largest.to_word()), largest);
    }
}

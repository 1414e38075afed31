//! The ring buffer: the end of the log, in memory.
//!
//! A word of the ring belongs to one writer from its reservation until it is copied, then to the leader until
//! it is written (wal R2). The slots and `written` hand it over. The words are relaxed atomics, so this needs
//! no `unsafe`.

use crate::format::ALIGNMENT;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};

const WORD: usize = ALIGNMENT as usize;

#[derive(Debug)]
pub(crate) struct Ring {
    words: Box<[AtomicU64]>,
}

impl Ring {
    /// A ring of `bytes`, a power of two.
    pub fn new(bytes: usize) -> Ring {
        assert!(bytes.is_power_of_two() && bytes >= WORD);
        Ring { words: (0..bytes / WORD).map(|_| AtomicU64::new(0)).collect() }
    }

    pub fn bytes(&self) -> u64 {
        (self.words.len() * WORD) as u64
    }

    fn word(&self, lsn: u64) -> &AtomicU64 {
        let place = (lsn / ALIGNMENT) as usize & (self.words.len() - 1);
        &self.words[place]
    }

    pub fn put(&self, lsn: u64, word: u64) {
        // ORDER: published by the Release store to the writer's slot. The words have been free since the
        // Acquire load of `written`.
        self.word(lsn).store(word, Relaxed);
    }

    /// Fills `out`, whole words, from position `from` on.
    pub fn copy_out(&self, from: u64, out: &mut [u8]) {
        let mut lsn = from;
        for bytes in out.chunks_exact_mut(WORD) {
            // ORDER: the words are complete as of the Acquire loads in `Slots::complete_up_to`. They are
            // overwritten only after the Release store to `written` that follows.
            bytes.copy_from_slice(&self.word(lsn).load(Relaxed).to_le_bytes());
            lsn += ALIGNMENT;
        }
    }
}

/// Turns byte strings of any length into words.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// The bytes that do not fill a word yet, the first in the lowest byte.
    pending: u64,
    /// How many they are, 0 to 7.
    count: usize,
}

impl Gather {
    /// Adds bytes; each word that they fill goes to `put`.
    pub fn push<E>(&mut self, bytes: &[u8], put: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        let mut chunks = bytes.chunks_exact(WORD);
        if self.count == 0 {
            for chunk in &mut chunks {
                put(little_endian(chunk))?;
            }
        } else {
            let shift = self.count * 8;
            for chunk in &mut chunks {
                let word = little_endian(chunk);
                put(self.pending | word << shift)?;
                self.pending = word >> (64 - shift);
            }
        }
        for &byte in chunks.remainder() {
            self.pending |= u64::from(byte) << (self.count * 8);
            self.count += 1;
            if self.count == WORD {
                put(self.pending)?;
                (self.pending, self.count) = (0, 0);
            }
        }
        Ok(())
    }

    /// Gives the last word, padded with zeroes, if one is begun.
    pub fn finish<E>(self, put: &mut impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        if self.count == 0 { Ok(()) } else { put(self.pending) }
    }
}

fn little_endian(chunk: &[u8]) -> u64 {
    crate::format::u64_at(chunk, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_division_become_the_same_words() {
        let text: Vec<u8> = (1..=100).collect();
        for first in 0..text.len() {
            for second in [first, first + 1, first + 7, first + 8, first + 23] {
                let second = second.min(text.len());
                let mut words = Vec::new();
                let mut put = |word: u64| {
                    words.extend_from_slice(&word.to_le_bytes());
                    Ok::<(), ()>(())
                };
                let mut gather = Gather::default();
                for part in [&text[..first], &text[first..second], &text[second..]] {
                    gather.push(part, &mut put).unwrap();
                }
                gather.finish(&mut put).unwrap();
                assert_eq!(words[..text.len()], text);
                assert!(words.len() == 104 && words[100..] == [0; 4]);
            }
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod ring_tests {
    use super::*;

    #[test]
    fn a_ring_gives_back_what_was_put_across_its_seam() {
        let ring = Ring::new(64);
        for lsn in (4096 + 40..4096 + 40 + 64).step_by(8) {
            ring.put(lsn, lsn);
        }
        let mut out = [0; 64];
        ring.copy_out(4096 + 40, &mut out);
        for (i, word) in out.chunks_exact(8).enumerate() {
            assert_eq!(little_endian(word), 4096 + 40 + 8 * i as u64);
        }
    }
}

//! Page memory: the only module that touches the bytes of a frame (pagecache R1).
//!
//! An optimistic reader reads a page while a writer may be changing it. In Rust a racing plain read is
//! undefined behaviour even if its result is thrown away, so page memory is a slice of `AtomicU64`
//! and every access, on both sides, is a relaxed load or store of one aligned word. On x86-64 and Arm that
//! is an ordinary move. All accesses are of the same size at the same place, as the memory model asks.
//!
//! Every read is *total*: an offset or a length torn out of a half-written page gives bytes of the page,
//! never a panic and never memory outside it. The reader copies out, validates its version, and
//! only then believes what it copied.
//!
//! Bytes are little-endian inside a word, so byte `i` of the page is byte `i % 8` of word `i / 8`.

use base::region::prefetch_line;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::cmp::Ordering;

/// The smallest and largest page, in bytes. Page sizes are powers of two.
pub const PAGE_SIZE_MIN: usize = 1 << 10;
pub const PAGE_SIZE_MAX: usize = 1 << 16;

/// A page that may change under the reader: total, unvalidated reads.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Page<'a> {
    /// A view of `words`, whose number must be a power of two.
    #[inline(always)]
    pub fn new(words: &'a [AtomicU64]) -> Page<'a> {
        debug_assert!(words.len().is_power_of_two());
        Page { words }
    }

    /// The page size in bytes.
    #[inline(always)]
    pub fn size(self) -> usize {
        self.words.len() * 8
    }

    #[inline(always)]
    fn word(self, index: usize) -> u64 {
        let index = index & (self.words.len() - 1);
        // SAFETY: the length is a power of two (checked when the arena is cut into frames and in
        // `PageBuf::new`), so the mask keeps `index` below it.
        unsafe { self.words.get_unchecked(index) }.load(Relaxed)
    }

    /// The aligned word that holds byte `offset`; the three low bits of `offset` are ignored.
    #[inline(always)]
    pub fn word_at(self, offset: usize) -> u64 {
        self.word(offset / 8)
    }

    /// Eight bytes from any `offset`, as a little-endian number. Wraps at the end of the page.
    #[inline(always)]
    pub fn u64_at(self, offset: usize) -> u64 {
        let shift = (offset % 8) * 8;
        let low = self.word(offset / 8);
        if shift == 0 {
            return low;
        }
        low >> shift | self.word(offset / 8 + 1) << (64 - shift)
    }

    #[inline(always)]
    pub fn u32_at(self, offset: usize) -> u32 {
        self.u64_at(offset) as u32
    }

    #[inline(always)]
    pub fn u16_at(self, offset: usize) -> u16 {
        self.u64_at(offset) as u16
    }

    #[inline(always)]
    pub fn u8_at(self, offset: usize) -> u8 {
        (self.word(offset / 8) >> ((offset % 8) * 8)) as u8
    }

    /// The words of the cache line that holds byte `offset`; a page has at least one line.
    #[inline(always)]
    pub fn line_at(self, offset: usize) -> &'a [AtomicU64; 8] {
        let first = (offset / 64 * 8) & (self.words.len() - 1);
        match self.words.get(first..first + 8).and_then(<[AtomicU64]>::first_chunk) {
            Some(line) => line,
            None => unreachable!("a page of less than a line"),
        }
    }

    /// Appends `len` bytes from `offset` to `out`. A torn length is cut at the page size.
    #[inline]
    pub fn append_to(self, offset: usize, len: usize, out: &mut Vec<u8>) {
        let len = len.min(self.size());
        let (first, shift) = (offset / 8, (offset % 8) * 8);
        let words = len.div_ceil(8);
        // One word more than is filled, because bytes that do not begin at a word begin in the word before.
        let Some(source) = self.words.get(first..first + words + 1) else {
            return self.append_to_end(offset, len, out);
        };
        let start = out.len();
        // Whole words are copied, so up to seven bytes beyond `len` are written and cut off again.
        out.reserve(len + 8);
        // SAFETY: `reserve` made room for `len + 8` bytes behind `start`. Eight bytes are written for each of
        // `words` words, at most `len + 7` together. `set_len` covers only `len` bytes, all of which were
        // written.
        unsafe {
            let mut target = out.as_mut_ptr().add(start).cast::<u64>();
            if shift == 0 {
                for word in &source[..words] {
                    target.write_unaligned(word.load(Relaxed).to_le());
                    target = target.add(1);
                }
            } else {
                let mut low = source[0].load(Relaxed);
                for word in &source[1..] {
                    let high = word.load(Relaxed);
                    target.write_unaligned((low >> shift | high << (64 - shift)).to_le());
                    target = target.add(1);
                    low = high;
                }
            }
            out.set_len(start + len);
        }
    }

    /// As [`Page::append_to`], of bytes at the very end, or around it.
    #[cold]
    fn append_to_end(self, offset: usize, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + len, 0);
        self.copy_to(offset, &mut out[start..]);
    }

    /// Fills `out` from `offset`. Wraps at the end of the page.
    pub fn copy_to(self, offset: usize, out: &mut [u8]) {
        let mut chunks = out.chunks_exact_mut(8);
        let mut at = offset;
        if offset == 0 {
            // Of a whole page, word by word.
            for (word, chunk) in self.words.iter().zip(&mut chunks) {
                chunk.copy_from_slice(&word.load(Relaxed).to_le_bytes());
                at += 8;
            }
        }
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.u64_at(at).to_le_bytes());
            at += 8;
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            let bytes = self.u64_at(at).to_le_bytes();
            rest.copy_from_slice(&bytes[..rest.len()]);
        }
    }

    /// Compares the `len` bytes from `offset` with `key`, as `[u8]` compares.
    pub fn compare(self, offset: usize, len: usize, key: &[u8]) -> Ordering {
        let len = len.min(self.size());
        let common = len.min(key.len());
        let mut at = 0;
        while at + 8 <= common {
            let ours = self.u64_at(offset + at).swap_bytes();
            let theirs = u64::from_be_bytes(key[at..at + 8].try_into().expect("eight bytes"));
            if ours != theirs {
                return ours.cmp(&theirs);
            }
            at += 8;
        }
        if at < common {
            let rest = common - at;
            let mut padded = [0; 8];
            padded[..rest].copy_from_slice(&key[at..common]);
            let mask = !0u64 << (64 - rest * 8);
            let ours = self.u64_at(offset + at).swap_bytes() & mask;
            let theirs = u64::from_be_bytes(padded);
            if ours != theirs {
                return ours.cmp(&theirs);
            }
        }
        len.cmp(&key.len())
    }

    /// Asks the processor to fetch the cache line of byte `offset`. A hint, never a fault.
    #[inline(always)]
    pub fn prefetch(self, offset: usize) {
        let index = (offset / 8) & (self.words.len() - 1);
        prefetch_line(&self.words[index]);
    }
}

/// A page that only the holder may change: the frame is latched exclusively, or the memory is private.
/// Optimistic readers may still look at it, so every store is atomic (pagecache R1).
#[derive(Debug)]
pub struct PageMut<'a> {
    words: &'a [AtomicU64],
}

impl<'a> PageMut<'a> {
    /// The caller holds the page exclusively. Only one `PageMut` of a page exists at a time.
    pub fn new(words: &'a [AtomicU64]) -> PageMut<'a> {
        debug_assert!(words.len().is_power_of_two());
        PageMut { words }
    }

    #[inline(always)]
    pub fn as_page(&self) -> Page<'_> {
        Page { words: self.words }
    }

    pub fn size(&self) -> usize {
        self.words.len() * 8
    }

    /// Writes `bytes` at `offset`. Panics beyond the page: a writer's offsets are never torn.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.size(), "write beyond the page");
        let lead = offset.wrapping_neg() % 8;
        let (lead, rest) = bytes.split_at(lead.min(bytes.len()));
        if !lead.is_empty() {
            self.merge(offset, lead);
        }
        let at = offset + lead.len();
        let (chunks, rest) = rest.as_chunks();
        for (word, chunk) in self.words[at / 8..].iter().zip(chunks) {
            word.store(u64::from_le_bytes(*chunk), Relaxed);
        }
        if !rest.is_empty() {
            self.merge(at + chunks.len() * 8, rest);
        }
    }

    /// Writes one to seven bytes that lie inside one word.
    #[inline]
    fn merge(&mut self, offset: usize, bytes: &[u8]) {
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        self.set_bits(offset, !0 >> (64 - bytes.len() * 8), value);
    }

    /// Sets the bits of `mask`, counted from byte `offset`, to those of `value`, which has no others. They
    /// lie inside one word.
    #[inline(always)]
    fn set_bits(&mut self, offset: usize, mask: u64, value: u64) {
        let shift = (offset % 8) * 8;
        let word = &self.words[offset / 8];
        word.store(word.load(Relaxed) & !(mask << shift) | value << shift, Relaxed);
    }

    #[inline(always)]
    pub fn set_u8(&mut self, offset: usize, value: u8) {
        self.set_bits(offset, 0xff, value.into());
    }

    #[inline(always)]
    pub fn set_u16(&mut self, offset: usize, value: u16) {
        if offset % 8 <= 6 {
            self.set_bits(offset, 0xffff, value.into());
        } else {
            self.write(offset, &value.to_le_bytes());
        }
    }

    #[inline(always)]
    pub fn set_u32(&mut self, offset: usize, value: u32) {
        if offset % 8 <= 4 {
            self.set_bits(offset, 0xffff_ffff, value.into());
        } else {
            self.write(offset, &value.to_le_bytes());
        }
    }

    #[inline(always)]
    pub fn set_u64(&mut self, offset: usize, value: u64) {
        if offset.is_multiple_of(8) {
            self.words[offset / 8].store(value, Relaxed);
        } else {
            self.write(offset, &value.to_le_bytes());
        }
    }

    /// Moves `len` bytes from `from` to `to`; the ranges may overlap.
    pub fn copy_within(&mut self, from: usize, to: usize, len: usize) {
        assert!(from + len <= self.size() && to + len <= self.size(), "move beyond the page");
        if from == to || len == 0 {
            return;
        }
        if (from | to | len).is_multiple_of(8) {
            return self.move_words(from / 8, to / 8, len / 8);
        }
        let mut buffer = [0u8; 64];
        if to < from {
            let mut done = 0;
            while done < len {
                let take = (len - done).min(64);
                self.as_page().copy_to(from + done, &mut buffer[..take]);
                self.write(to + done, &buffer[..take]);
                done += take;
            }
        } else {
            let mut left = len;
            while left > 0 {
                let take = left.min(64);
                left -= take;
                self.as_page().copy_to(from + left, &mut buffer[..take]);
                self.write(to + left, &buffer[..take]);
            }
        }
    }

    fn move_words(&mut self, from: usize, to: usize, len: usize) {
        let (source, target) = (&self.words[from..from + len], &self.words[to..to + len]);
        let move_word =
            |(source, target): (&AtomicU64, &AtomicU64)| target.store(source.load(Relaxed), Relaxed);
        let pairs = source.iter().zip(target);
        if to < from { pairs.for_each(move_word) } else { pairs.rev().for_each(move_word) }
    }

    /// Sets every byte to zero.
    pub fn clear(&mut self) {
        for word in self.words {
            word.store(0, Relaxed);
        }
    }

    /// Replaces the whole page by `source`, which has the same size.
    pub fn copy_from(&mut self, source: Page<'_>) {
        assert_eq!(self.words.len(), source.words.len());
        for (target, word) in self.words.iter().zip(source.words) {
            target.store(word.load(Relaxed), Relaxed);
        }
    }
}

/// A private page, for building and splitting and for reading ahead.
#[derive(Debug)]
pub struct PageBuf {
    words: Box<[AtomicU64]>,
}

impl PageBuf {
    /// A page of zeroes. `size` is a power of two from [`PAGE_SIZE_MIN`] to [`PAGE_SIZE_MAX`].
    pub fn new(size: usize) -> PageBuf {
        assert!(size.is_power_of_two() && (PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&size));
        PageBuf { words: (0..size / 8).map(|_| AtomicU64::new(0)).collect() }
    }

    pub fn page(&self) -> Page<'_> {
        Page::new(&self.words)
    }

    pub fn page_mut(&mut self) -> PageMut<'_> {
        PageMut::new(&self.words)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn page_of_counting_bytes() -> (PageBuf, Vec<u8>) {
        let bytes: Vec<u8> = (0..1024).map(|i| (i * 7 % 251) as u8).collect();
        let mut page = PageBuf::new(1024);
        page.page_mut().write(0, &bytes);
        (page, bytes)
    }

    #[test]
    fn reads_at_every_offset_and_length_give_the_bytes_of_the_page() {
        let (page, bytes) = page_of_counting_bytes();
        for offset in 0..64 {
            for len in 0..40 {
                let mut out = vec![9];
                page.page().append_to(offset, len, &mut out);
                assert_eq!(out[1..], bytes[offset..offset + len]);
                let mut out = vec![0; len];
                page.page().copy_to(offset, &mut out);
                assert_eq!(out, bytes[offset..offset + len]);
            }
            assert_eq!(page.page().u8_at(offset), bytes[offset]);
            assert_eq!(
                page.page().u64_at(offset),
                u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap())
            );
        }
    }

    #[test]
    fn writes_and_moves_agree_with_a_slice() {
        let (mut page, mut bytes) = page_of_counting_bytes();
        for (from, to, len) in
            [(3, 11, 200), (11, 3, 200), (0, 500, 17), (700, 1, 5), (8, 16, 8), (5, 6, 300)]
        {
            page.page_mut().copy_within(from, to, len);
            bytes.copy_within(from..from + len, to);
            let patch: Vec<u8> = (0..len % 23).map(|i| i as u8).collect();
            page.page_mut().write(from + 1, &patch);
            bytes[from + 1..from + 1 + patch.len()].copy_from_slice(&patch);
            let mut out = vec![0; 1024];
            page.page().copy_to(0, &mut out);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn comparison_is_that_of_slices() {
        let (page, bytes) = page_of_counting_bytes();
        for offset in [0, 3, 8, 13] {
            for len in 0..20 {
                for key_len in 0..20 {
                    let mut key = bytes[offset..offset + key_len].to_vec();
                    assert_eq!(page.page().compare(offset, len, &key), bytes[offset..offset + len].cmp(&key));
                    for change in 0..key_len {
                        key[change] ^= 0x80;
                        assert_eq!(
                            page.page().compare(offset, len, &key),
                            bytes[offset..offset + len].cmp(&key)
                        );
                        key[change] ^= 0x80;
                    }
                }
            }
        }
    }

    #[test]
    fn torn_offsets_and_lengths_stay_inside_the_page() {
        let (page, _) = page_of_counting_bytes();
        let mut out = Vec::new();
        page.page().append_to(65_535, 65_535, &mut out);
        assert_eq!(out.len(), 1024);
        page.page().u64_at(usize::from(u16::MAX));
        page.page().compare(1_020, 60_000, &[1; 30]);
    }
}

//! Sorting more entries than fit in memory: sorted runs in a scratch file, merged.
//!
//! ```text
//! entry in a run: key length u32 | value length u32 | key | value
//! ```

use crate::Result;
use base::sync::Arc;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use vfs::{Create, File, Vfs};

/// Bytes read from a run at a time: large enough that a disk that seeks still streams.
const READ_BYTES: usize = 256 << 10;
/// And however many runs share the memory.
const READ_BYTES_MIN: usize = 4 << 10;
const ENTRY_HEADER: usize = 8;

/// Takes entries in any order and gives them back in key order.
#[derive(Debug)]
pub(crate) struct Sorter {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    memory_bytes: usize,
    buffer: Buffer,
    file: Option<Arc<dyn File>>,
    file_bytes: u64,
    /// Where each run begins and ends in the file.
    runs: Vec<(u64, u64)>,
}

/// Entries in memory.
#[derive(Default, Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// The first eight bytes of the key, and where key and value lie.
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    head: u64,
    start: u32,
    key_len: u32,
    value_len: u32,
}

impl Buffer {
    fn used(&self) -> usize {
        self.bytes.len() + self.items.len() * size_of::<Item>()
    }

    fn entry(&self, index: usize) -> (&[u8], &[u8]) {
        let item = self.items[index];
        let key_end = (item.start + item.key_len) as usize;
        (&self.bytes[item.start as usize..key_end], &self.bytes[key_end..key_end + item.value_len as usize])
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |item: &Item| &bytes[item.start as usize..(item.start + item.key_len) as usize];
        self.items.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b))));
    }
}

fn head(key: &[u8]) -> u64 {
    let mut padded = [0; 8];
    let len = key.len().min(8);
    padded[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(padded)
}

impl Sorter {
    /// Uses about `memory_bytes`, and the scratch file `path` beyond them.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, path: &Path, memory_bytes: usize) -> Sorter {
        Sorter {
            vfs,
            path: path.to_path_buf(),
            // Offsets into the buffer are 32 bits wide.
            memory_bytes: memory_bytes.min(1 << 31),
            buffer: Buffer::default(),
            file: None,
            file_bytes: 0,
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.buffer.used() + key.len() + value.len() > self.memory_bytes && !self.buffer.items.is_empty() {
            self.spill()?;
        }
        let start = self.buffer.bytes.len() as u32;
        self.buffer.bytes.extend_from_slice(key);
        self.buffer.bytes.extend_from_slice(value);
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        self.buffer.items.push(Item { head: head(key), start, key_len, value_len });
        Ok(())
    }

    /// Writes the buffer as a sorted run.
    fn spill(&mut self) -> Result<()> {
        self.buffer.sort();
        if self.file.is_none() {
            let file = self.vfs.open(&self.path, Create::IfMissing)?;
            file.set_len(0)?;
            self.file = Some(file);
        }
        let Some(file) = &self.file else { return Ok(()) };
        let start = self.file_bytes;
        let mut out = Vec::with_capacity(READ_BYTES);
        for index in 0..self.buffer.items.len() {
            let (key, value) = self.buffer.entry(index);
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            if out.len() >= READ_BYTES {
                file.write_at(&out, self.file_bytes)?;
                self.file_bytes += out.len() as u64;
                out.clear();
            }
        }
        file.write_at(&out, self.file_bytes)?;
        self.file_bytes += out.len() as u64;
        self.runs.push((start, self.file_bytes));
        self.buffer.bytes.clear();
        self.buffer.items.clear();
        Ok(())
    }

    /// Hands out all entries in key order, equal keys in any order, until `each` fails.
    pub(crate) fn finish<E: From<crate::Error>>(
        mut self,
        each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.read(each)
    }

    /// As [`Sorter::finish`], and may be called again.
    pub(crate) fn read<E: From<crate::Error>>(
        &mut self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.runs.is_empty() {
            self.buffer.sort();
            return (0..self.buffer.items.len()).try_for_each(|index| {
                let (key, value) = self.buffer.entry(index);
                each(key, value)
            });
        }
        if !self.buffer.items.is_empty() {
            self.spill()?;
            self.buffer = Buffer::default();
        }
        let Some(file) = self.file.clone() else { return Ok(()) };
        let read_bytes = (self.memory_bytes / self.runs.len()).clamp(READ_BYTES_MIN, READ_BYTES);
        let mut runs: Vec<Run> =
            self.runs.iter().map(|(start, end)| Run::new(*start, *end, read_bytes)).collect();
        let mut heap = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            if let Some((key, value)) = run.next(&*file)? {
                heap.push(Reverse((key, number, value)));
            }
        }
        while let Some(Reverse((key, number, value))) = heap.pop() {
            each(&key, &value)?;
            if let Some((key, value)) = runs[number].next(&*file)? {
                heap.push(Reverse((key, number, value)));
            }
        }
        Ok(())
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // A scratch file that stays is removed at the next start.
            let _ = self.vfs.remove(&self.path);
        }
    }
}

/// A run being read.
struct Run {
    at: u64,
    end: u64,
    read_bytes: usize,
    buffer: Vec<u8>,
    next: usize,
}

impl Run {
    fn new(start: u64, end: u64, read_bytes: usize) -> Run {
        Run { at: start, end, read_bytes, buffer: Vec::new(), next: 0 }
    }

    /// Makes `len` bytes from `next` on be in the buffer; false at the end of the run.
    fn fill(&mut self, file: &dyn File, len: usize) -> Result<bool> {
        if self.buffer.len() - self.next >= len {
            return Ok(true);
        }
        self.buffer.drain(..self.next);
        self.next = 0;
        let have = self.buffer.len();
        let more = (self.end - self.at).min(self.read_bytes.max(len) as u64) as usize;
        if have + more < len {
            return Ok(false);
        }
        self.buffer.resize(have + more, 0);
        file.read_at(&mut self.buffer[have..], self.at)?;
        self.at += more as u64;
        Ok(self.buffer.len() >= len)
    }

    fn next(&mut self, file: &dyn File) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if !self.fill(file, ENTRY_HEADER)? {
            return Ok(None);
        }
        let header = &self.buffer[self.next..self.next + ENTRY_HEADER];
        let key_len = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let value_len = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let whole = ENTRY_HEADER + key_len + value_len;
        if !self.fill(file, whole)? {
            return Err(std::io::Error::other("a run of the sort's scratch file is cut short").into());
        }
        let start = self.next + ENTRY_HEADER;
        let key = self.buffer[start..start + key_len].to_vec();
        let value = self.buffer[start + key_len..start + key_len + value_len].to_vec();
        self.next += whole;
        Ok(Some((key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vfs::MemVfs;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_in_order_however_little_memory_there_is(
            entries in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..12), proptest::collection::vec(any::<u8>(), 0..9)),
                0..300,
            ),
            memory_bytes in prop_oneof![Just(100usize), Just(1_000), Just(1 << 20)],
        ) {
            let vfs = Arc::new(MemVfs::new());
            let path = Path::new("sort");
            let mut sorter = Sorter::new(vfs.clone(), path, memory_bytes);
            for (key, value) in &entries {
                sorter.push(key, value).unwrap();
            }
            let mut once = Vec::new();
            sorter.read::<crate::Error>(|key, value| {
                once.push((key.to_vec(), value.to_vec()));
                Ok(())
            }).unwrap();
            let mut out = Vec::new();
            sorter.finish::<crate::Error>(|key, value| {
                out.push((key.to_vec(), value.to_vec()));
                Ok(())
            }).unwrap();
            once.sort();
            prop_assert!(out.is_sorted_by_key(|(key, _)| key.clone()));
            let mut expected = entries;
            expected.sort();
            out.sort();
            prop_assert_eq!(&once, &expected);
            prop_assert_eq!(out, expected);
            prop_assert!(!vfs.exists(path).unwrap());
        }
    }
}

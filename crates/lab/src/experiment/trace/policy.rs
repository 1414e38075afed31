//! The caches that replay a trace, behind one trait.

use crate::error::{Error, Result};
use base::checksum::checksum;
use base::sync::{Arc, Mutex};
use base::{FileId, PageId, PageNo};
use pagecache::{CacheConfig, HitPath, Pool, WriteBack, header, loads_of_this_thread, size_for_frames};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::io;

/// A cache of keys below a footprint.
pub(crate) trait Policy: Sync {
    /// Asks for a key. True if the cache had it. Afterwards the cache has it, unless its policy refuses the
    /// key.
    fn get(&self, key: u32) -> bool;
}

/// The caches that this build has. The others are compared with the first one.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names = vec!["LRU", OPTIMISTIC, LOCKED];
    names.extend(super::peers::NAMES);
    names
}

pub(crate) const OPTIMISTIC: &str = "latchwork";
pub(crate) const LOCKED: &str = "latchwork locked";

/// The cache `name` with room for `capacity` keys out of `footprint`.
pub(crate) fn make(name: &str, capacity: usize, footprint: u32) -> Result<Box<dyn Policy>> {
    match name {
        "LRU" => Ok(Box::new(Lru::new(capacity))),
        OPTIMISTIC => Ok(Box::new(Pages::new(capacity, footprint, HitPath::Optimistic)?)),
        LOCKED => Ok(Box::new(Pages::new(capacity, footprint, HitPath::Locked)?)),
        _ => super::peers::make(name, capacity)
            .ok_or_else(|| Error::Usage(format!("there is no cache `{name}` in this build"))),
    }
}

/// Exact LRU behind one mutex. Everything is compared with it.
struct Lru(Mutex<List>);

/// Nodes in a ring, in the order of use. The head is a node of its own, between the newest and the oldest.
struct List {
    node_of_key: HashMap<u32, u32, BuildHasherDefault<Mixed>>,
    nodes: Vec<Node>,
    capacity: usize,
}

#[derive(Clone, Copy)]
struct Node {
    key: u32,
    older: u32,
    newer: u32,
}

const HEAD: u32 = 0;

impl Lru {
    fn new(capacity: usize) -> Lru {
        let mut nodes = Vec::with_capacity(capacity + 1);
        nodes.push(Node { key: 0, older: HEAD, newer: HEAD });
        let node_of_key = HashMap::with_capacity_and_hasher(capacity, BuildHasherDefault::default());
        Lru(Mutex::new(List { node_of_key, nodes, capacity }))
    }
}

impl Policy for Lru {
    fn get(&self, key: u32) -> bool {
        let mut list = self.0.lock();
        if let Some(&node) = list.node_of_key.get(&key) {
            list.unlink(node);
            list.link(node);
            return true;
        }
        let node = if list.nodes.len() <= list.capacity {
            list.nodes.push(Node { key, older: HEAD, newer: HEAD });
            list.nodes.len() as u32 - 1
        } else {
            let oldest = list.nodes[HEAD as usize].newer;
            let gone = list.nodes[oldest as usize].key;
            list.node_of_key.remove(&gone);
            list.unlink(oldest);
            list.nodes[oldest as usize].key = key;
            oldest
        };
        list.node_of_key.insert(key, node);
        list.link(node);
        false
    }
}

impl List {
    fn unlink(&mut self, node: u32) {
        let Node { older, newer, .. } = self.nodes[node as usize];
        self.nodes[older as usize].newer = newer;
        self.nodes[newer as usize].older = older;
    }

    /// As the newest.
    fn link(&mut self, node: u32) {
        let newest = self.nodes[HEAD as usize].older;
        self.nodes[newest as usize].newer = node;
        self.nodes[node as usize].older = newest;
        self.nodes[node as usize].newer = HEAD;
        self.nodes[HEAD as usize].older = node;
    }
}

/// A hasher for keys that are numbers: one multiplication.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, key: u32) {
        let product = (self.0 ^ u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

/// Latchwork's own page cache, as the engine uses it. A key is a page of the smallest size. A miss reads the
/// page from memory and verifies its checksum.
struct Pages {
    cache: Arc<Pool>,
}

const FILE: FileId = FileId(1);
const PAGE_BYTES: usize = 1024;
/// A word after the page's header. Every hit reads it.
const WORD_AT: usize = 64;

impl Pages {
    fn new(capacity: usize, footprint: u32, hit_path: HitPath) -> Result<Pages> {
        let config = CacheConfig {
            hit_path,
            // No page is ever dirty, so the cache needs no thread of its own.
            write_back: WriteBack::AtEvictionOnly,
            ..CacheConfig::new(size_for_frames(capacity, PAGE_BYTES), PAGE_BYTES)
        };
        let failed = |error: pagecache::Error| Error::WrongAnswer {
            target: "page cache".to_string(),
            why: error.to_string(),
        };
        let cache = Pool::new(config).map_err(failed)?;
        let frames = cache.status().frames;
        if frames != capacity as u64 {
            let why = format!("{frames} frames where {capacity} were asked for");
            return Err(Error::WrongAnswer { target: "page cache".to_string(), why });
        }
        cache.attach(FILE, "pages".into(), Arc::new(Numbered { pages: footprint })).map_err(failed)?;
        Ok(Pages { cache })
    }
}

impl Policy for Pages {
    fn get(&self, key: u32) -> bool {
        let loads = loads_of_this_thread();
        let id = PageId::new(FILE, PageNo(key));
        loop {
            let guard = self.cache.read(id).expect("memory can be read");
            let word = guard.page().u64_at(WORD_AT);
            if guard.validate().is_ok() {
                assert_eq!(black_box(word), u64::from(key), "a page that was not asked for");
                break;
            }
        }
        loads_of_this_thread() == loads
    }
}

/// A file whose pages are computed from their numbers, so that any footprint fits.
#[derive(Debug)]
struct Numbered {
    pages: u32,
}

impl vfs::File for Numbered {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let page = (offset / PAGE_BYTES as u64) as u32;
        if page >= self.pages || buffer.len() != PAGE_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.fill(0);
        buffer[header::PAGE_NO..][..4].copy_from_slice(&page.to_le_bytes());
        buffer[header::FILE_ID..][..4].copy_from_slice(&FILE.0.to_le_bytes());
        buffer[WORD_AT..][..8].copy_from_slice(&u64::from(page).to_le_bytes());
        let sum = checksum(0, &buffer[header::FORMAT..]);
        buffer[header::CHECKSUM..][..4].copy_from_slice(&sum.to_le_bytes());
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(u64::from(self.pages) * PAGE_BYTES as u64)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn try_lock_exclusive(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn lru_gives_up_what_was_used_longest_ago() {
        let lru = Lru::new(3);
        let hits: Vec<bool> = [1, 2, 3, 1, 4, 2, 1, 4, 3].map(|key| lru.get(key)).to_vec();
        assert_eq!(hits, [false, false, false, true, false, false, true, true, false]);
    }

    #[test]
    fn lru_agrees_with_a_list_that_is_searched() {
        let lru = Lru::new(20);
        let mut model: Vec<u32> = Vec::new();
        let mut random = Random::new(1, 1);
        for _ in 0..5_000 {
            let key = random.below(10) * random.below(10);
            let position = model.iter().position(|&known| known == key);
            assert_eq!(lru.get(key), position.is_some());
            if let Some(position) = position {
                model.remove(position);
            } else if model.len() == 20 {
                model.remove(0);
            }
            model.push(key);
        }
    }

    fn hits(cache: &dyn Policy, keys: std::ops::Range<u32>) -> usize {
        keys.filter(|&key| cache.get(key)).count()
    }

    #[test]
    fn every_cache_keeps_what_fits_and_no_more_than_it_has_room_for() {
        for name in names() {
            let cache = make(name, 64, 10_000).unwrap();
            for _ in 0..20 {
                hits(cache.as_ref(), 0..32);
            }
            // A cache that divides its capacity among parts may keep fewer.
            assert!(hits(cache.as_ref(), 0..32) >= 16, "{name}");
            hits(cache.as_ref(), 0..10_000);
            let kept = hits(cache.as_ref(), 0..10_000);
            // Some caches evict a little later.
            assert!(kept <= 1_000, "{name} had {kept} of 10000 keys in a cache of 64");
        }
        assert!(make("no such cache", 64, 100).is_err());
    }
}

//! Caches of other projects, in builds with the feature `peers`. They store eight bytes a key. Only
//! their capacity is set, as their documentation describes it.

use super::policy::Policy;

#[cfg(not(feature = "peers"))]
pub(crate) const NAMES: [&str; 0] = [];

#[cfg(not(feature = "peers"))]
pub(crate) fn make(_: &str, _: usize) -> Option<Box<dyn Policy>> {
    None
}

#[cfg(feature = "peers")]
pub(crate) use with_peers::{NAMES, make};

#[cfg(feature = "peers")]
mod with_peers {
    use super::Policy;

    pub(crate) const NAMES: [&str; 4] = ["quick_cache", "moka", "foyer LRU", "foyer S3-FIFO"];

    pub(crate) fn make(name: &str, capacity: usize) -> Option<Box<dyn Policy>> {
        Some(match name {
            "quick_cache" => Box::new(QuickCache(quick_cache::sync::Cache::new(capacity))),
            "moka" => Box::new(Moka(moka::sync::Cache::new(capacity as u64))),
            "foyer LRU" => Box::new(Foyer::new(capacity, foyer_memory::LruConfig::default().into())),
            "foyer S3-FIFO" => Box::new(Foyer::new(capacity, foyer_memory::S3FifoConfig::default().into())),
            _ => return None,
        })
    }

    struct QuickCache(quick_cache::sync::Cache<u32, u64>);

    impl Policy for QuickCache {
        fn get(&self, key: u32) -> bool {
            let hit = self.0.get(&key).is_some();
            if !hit {
                self.0.insert(key, key.into());
            }
            hit
        }
    }

    struct Moka(moka::sync::Cache<u32, u64>);

    impl Policy for Moka {
        fn get(&self, key: u32) -> bool {
            let hit = self.0.get(&key).is_some();
            if !hit {
                self.0.insert(key, key.into());
            }
            hit
        }
    }

    struct Foyer(foyer_memory::Cache<u32, u64>);

    impl Foyer {
        fn new(capacity: usize, eviction: foyer_memory::EvictionConfig) -> Foyer {
            let builder = foyer_memory::CacheBuilder::new(capacity);
            Foyer(builder.with_eviction_config(eviction).build())
        }
    }

    impl Policy for Foyer {
        fn get(&self, key: u32) -> bool {
            let hit = self.0.get(&key).is_some();
            if !hit {
                self.0.insert(key, key.into());
            }
            hit
        }
    }
}

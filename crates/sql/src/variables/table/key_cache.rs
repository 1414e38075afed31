//! The key cache.

use super::super::definition::*;

pub(super) static DEFINITIONS: &[Definition] = &[
    global("key_buffer_size", unsigned(134217728, 0, 18446744073709551615, 4096)).works(),
    global("key_cache_age_threshold", unsigned(300, 100, 4294967295, 100)).works(),
    global("key_cache_block_size", unsigned(1024, 512, 16384, 512))
        .because("a page of the table is the block"),
    global("key_cache_division_limit", unsigned(100, 1, 100, 1)).works(),
    global("key_cache_file_hash_size", unsigned(512, 128, 16384, 1))
        .because("dirty pages are found without a hash of files"),
    global("key_cache_hit_path", one_of("optimistic", &["locked", "optimistic"])).works(),
    // The default is chosen from the number of processors when the server starts: see `segments_default`.
    global("key_cache_segments", unsigned(0, 0, 64, 1)).works(),
];

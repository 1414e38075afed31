//! Variables of other engines and of the optimizer. They exist so that clients and start scripts that name
//! them continue to work.

use super::super::definition::*;

const SAVES_NOTHING: &str = "a page that does not get smaller is kept as it is";

pub(super) static DEFINITIONS: &[Definition] = &[
    global("aria_block_size", unsigned(8192, 4096, 32768, 1024)).read_only(),
    global("aria_pagecache_buffer_size", unsigned(134217728, 131072, 18446744073709551615, 1)).read_only(),
    both("aria_sort_buffer_size", unsigned(268434432, 16352, 1152921504606846975, 1)),
    global("innodb_adaptive_flushing", boolean(true)),
    global("innodb_adaptive_hash_index", boolean(false)),
    global("innodb_additional_mem_pool_size", unsigned(1048576, 524288, 4294967295, 1024)).read_only(),
    global("innodb_autoextend_increment", unsigned(64, 1, 1000, 1)).because("files grow as they need to"),
    global("innodb_autoinc_lock_mode", signed(1, 0, 2)).read_only(),
    global("innodb_buffer_pool_dump_at_shutdown", boolean(true)),
    global("innodb_buffer_pool_load_at_startup", boolean(true)).read_only(),
    global(
        "innodb_checksum_algorithm",
        one_of("full_crc32", &["crc32", "strict_crc32", "full_crc32", "strict_full_crc32"]),
    ),
    global("innodb_buffer_pool_instances", unsigned(1, 0, 64, 1))
        .read_only()
        .because("key_cache_segments splits the cache's latch"),
    global("innodb_checksums", boolean(true)).read_only().because("every page has a checksum"),
    global("innodb_commit_concurrency", unsigned(0, 0, 1000, 1)),
    global("innodb_compression_level", unsigned(6, 0, 9, 1))
        .because("pages are compressed with LZ4, which has no levels"),
    global(
        "innodb_compression_algorithm",
        one_of("zlib", &["none", "zlib", "lz4", "lzo", "lzma", "bzip2", "snappy"]),
    )
    .because("pages are compressed with LZ4"),
    both("innodb_compression_default", boolean(false)).because("those tables are compressed that ask for it"),
    global("innodb_compression_failure_threshold_pct", unsigned(5, 0, 100, 1)).because(SAVES_NOTHING),
    global("innodb_compression_pad_pct_max", unsigned(50, 0, 75, 1)).because(SAVES_NOTHING),
    global("innodb_data_file_path", text("")).read_only().because("each table has a file of its own"),
    global("innodb_data_home_dir", text("")).read_only(),
    global("innodb_deadlock_detect", boolean(true)),
    global("innodb_default_row_format", one_of("dynamic", &["redundant", "compact", "dynamic"])),
    global("innodb_doublewrite", boolean(true)).read_only().because("torn pages are always survived"),
    global("innodb_fast_shutdown", unsigned(1, 0, 3, 1)),
    global("innodb_file_per_table", boolean(true)).because("each table has a file of its own"),
    global("innodb_flush_log_at_trx_commit", unsigned(1, 0, 3, 1)).works(),
    global(
        "innodb_flush_method",
        one_of("fsync", &["fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC"]),
    )
    .read_only()
    .works(),
    global("innodb_flush_neighbors", unsigned(1, 0, 2, 1)),
    global("innodb_force_recovery", unsigned(0, 0, 6, 1))
        .read_only()
        .because("a damaged table is closed by itself, and everything else serves"),
    global("innodb_io_capacity", unsigned(200, 100, 4294967295, 1)).works(),
    global("innodb_io_capacity_max", unsigned(4294967295, 100, 4294967295, 1)).works(),
    both("innodb_lock_wait_timeout", unsigned(50, 0, 100000000, 1)).works(),
    global("innodb_log_buffer_size", unsigned(4194304, 2097152, 2147479552, 4096)).read_only().works(),
    global("innodb_log_file_size", unsigned(268435456, 4194304, 18446744073709551615, 4096))
        .read_only()
        .works(),
    global("innodb_log_files_in_group", unsigned(2, 1, 100, 1))
        .read_only()
        .because("innodb_log_file_size is that of all of the log"),
    global("innodb_log_group_home_dir", text("")).read_only(),
    global("innodb_max_dirty_pages_pct", double(90.0, 0.0, 99.999)),
    global("innodb_open_files", unsigned(0, 0, 9223372036854775807, 1)).read_only(),
    // For new tables. A table keeps the page size that it was created with, and can choose its own.
    global("innodb_page_size", unsigned(16384, 1024, 65536, 1)).read_only().works(),
    global("innodb_read_io_threads", unsigned(4, 0, 64, 1)).read_only().works(),
    global("innodb_read_only", boolean(false)).read_only(),
    global("innodb_read_only_compressed", boolean(false))
        .because("compressed tables are written to like others"),
    global("innodb_rollback_on_timeout", boolean(false)).read_only(),
    both("innodb_snapshot_isolation", boolean(false)).works(),
    global("innodb_spin_wait_delay", unsigned(4, 0, 6000, 1)).because("how latches spin is not a choice"),
    global("innodb_stats_on_metadata", boolean(false)),
    global("innodb_status_output", boolean(false)),
    both("innodb_strict_mode", boolean(true)).works(),
    both("innodb_support_xa", boolean(true)).because("there is no binary log to agree with"),
    global("innodb_sync_spin_loops", unsigned(30, 0, 4294967295, 1))
        .because("how latches spin is not a choice"),
    both("innodb_table_locks", boolean(true)),
    global("innodb_thread_sleep_delay", unsigned(10000, 0, 1000000, 1))
        .because("who queues for thread_concurrency is woken and does not poll"),
    global("innodb_use_native_aio", boolean(true)).read_only(),
    global("innodb_write_io_threads", unsigned(4, 1, 64, 1)).read_only().works(),
    global("myisam_block_size", unsigned(1024, 1024, 16384, 1024))
        .read_only()
        .because("the size of its pages is a table's own"),
    global("myisam_data_pointer_size", unsigned(6, 2, 7, 1)).because("rows are found by their keys"),
    global("myisam_max_sort_file_size", unsigned(9223372036853727232, 0, 9223372036854775807, 1048576))
        .because("new indexes are sorted, whatever their size"),
    global("myisam_mmap_size", unsigned(18446744073709551615, 7, 18446744073709551615, 1))
        .read_only()
        .because("files are not mapped into memory"),
    global(
        "myisam_recover_options",
        set_of("BACKUP,QUICK", &["DEFAULT", "BACKUP", "FORCE", "QUICK", "BACKUP_ALL", "OFF"]),
    )
    .read_only()
    .because("tables are recovered from the log"),
    both("myisam_repair_threads", unsigned(1, 1, 18446744073709551615, 1))
        .because("one thread writes a table anew"),
    both("myisam_sort_buffer_size", unsigned(134216704, 4096, 1152921504606846975, 1)).works(),
    both("myisam_stats_method", one_of("NULLS_UNEQUAL", &["NULLS_UNEQUAL", "NULLS_EQUAL", "NULLS_IGNORED"]))
        .because("it is not a choice how NULLs count"),
    global("myisam_use_mmap", boolean(false)).because("files are not mapped into memory"),
    both("optimizer_prune_level", unsigned(2, 0, 2, 1)),
    both("optimizer_search_depth", unsigned(62, 0, 62, 1)),
];

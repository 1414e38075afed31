//! The rows of SHOW STATUS and of `information_schema.KEY_CACHES`.

use crate::Session;
use crate::host::ConnectionCount;
use crate::status::Counter;
use engine::{DEFAULT_CACHE, NamedCache, ShareStatus};
use std::sync::Arc;
use types::{Decimal, Value};

/// Names and values, sorted by name.
pub(crate) fn rows(session: &Session, global: bool) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: u64| rows.push((name.to_owned(), value.to_string()));
    let counts = if global {
        session.instance.status.sums()
    } else {
        let mut counts = Vec::new();
        for position in 0..Counter::NAMES.len() {
            counts.push(session.counters.at(position));
        }
        counts
    };
    for (name, count) in Counter::NAMES.iter().zip(&counts) {
        add(name, *count);
    }
    add("Queries", session.instance.status.sums()[Counter::Questions as usize]);
    let uptime = session.instance.status.uptime_seconds();
    if let Some(host) = session.instance.host() {
        let connections = host.connections();
        for count in ConnectionCount::ALL {
            add(count.status_name(), connections[count]);
        }
        let memory = host.memory();
        add("Memory_resident", memory.resident);
        add("Memory_heap_used", memory.heap_used);
        add("Memory_heap_mapped", memory.heap_mapped);
    }
    let used = if global { session.instance.memory.used() } else { session.memory.used() };
    add("Memory_used", used);
    if !global {
        add("Max_memory_used", session.memory.peak());
    }
    add("Threads_cached", 0);
    add(
        "Threads_created",
        session.instance.host().map_or(0, |host| host.connections()[ConnectionCount::Attempts]),
    );
    add("Uptime", uptime);
    add("Uptime_since_flush_status", uptime);
    add("Open_tables", session.instance.open_tables());
    add("Prepared_stmt_count", session.instance.status.prepared());
    for (name, value) in key_status(session) {
        add(name, value);
    }
    let engine = session.instance.database.status();
    add("Innodb_checkpoint_age", engine.log_end.0.saturating_sub(engine.log_needed.0));
    add("Innodb_history_list_length", engine.purge_queue);
    add("Innodb_log_waits", engine.log_waits);
    add("Innodb_log_writes", engine.log_writes);
    add("Innodb_lsn_current", engine.log_end.0);
    add("Innodb_lsn_flushed", engine.log_flushed.0);
    add("Innodb_lsn_last_checkpoint", engine.log_needed.0);
    add("Innodb_os_log_fsyncs", engine.log_syncs);
    add("Innodb_os_log_written", engine.log_end.0);
    let waits = engine.lock_waits;
    add("Innodb_deadlocks", waits.deadlocks);
    add("Innodb_row_lock_current_waits", waits.waiting);
    add("Innodb_row_lock_time", waits.waited.as_millis() as u64);
    let ended = u32::try_from(waits.waits - waits.waiting).unwrap_or(u32::MAX);
    let average = waits.waited.checked_div(ended).unwrap_or_default();
    add("Innodb_row_lock_time_avg", average.as_millis() as u64);
    add("Innodb_row_lock_time_max", waits.longest.as_millis() as u64);
    add("Innodb_row_lock_waits", waits.waits);
    add("Threads_inside", engine.gate.inside);
    add("Threads_queued", engine.gate.queued);
    add("Latchwork_lock_bytes", engine.lock_bytes);
    add("Latchwork_version_bytes", engine.version_bytes);
    add("Latchwork_version_file_bytes", engine.version_file_bytes);
    add("Latchwork_versions_in_files", engine.versions_in_files);
    add("Latchwork_versions_spilled", engine.versions_spilled);
    let caches: Vec<_> =
        session.instance.database.caches().list().iter().map(|cache| cache.status().counters).collect();
    add("Latch_waits", caches.iter().map(|counters| counters.latch_waits).sum());
    add("Latch_conflicts", caches.iter().map(|counters| counters.conflicts).sum());
    add("Latch_fallbacks", caches.iter().map(|counters| counters.fallbacks).sum());
    let (cold_bytes, cold_opened) = session.instance.database.caches().cold_pages();
    add("Compressed_pages_opened", cold_opened);
    add("Compressed_pages_bytes", cold_bytes as u64);
    let row_tier = session.instance.database.row_tier_status();
    add("Row_cache_size", row_tier.size as u64);
    add("Row_cache_bytes", row_tier.bytes as u64);
    add("Row_cache_rows", row_tier.entries as u64);
    add("Row_cache_hits", row_tier.hits);
    add("Row_cache_misses", row_tier.misses);
    add("Row_cache_fills", row_tier.fills);
    add("Row_cache_evictions", row_tier.evictions);
    add("Row_cache_invalidations", row_tier.invalidations);
    rows.extend(audit_rows(session));
    rows.extend(tls_rows(session));
    rows.extend(compression_rows(session));
    rows.sort();
    rows
}

/// The first is MariaDB's, too; the others are MySQL's.
fn compression_rows(session: &Session) -> [(String, String); 3] {
    let compression = session.client.compression;
    let on = if compression.is_some() { "ON" } else { "OFF" };
    let algorithm = compression.map_or("", |compression| compression.algorithm);
    let level = compression.map_or(0, |compression| compression.level);
    [
        ("Compression".to_owned(), on.to_owned()),
        ("Compression_algorithm".to_owned(), algorithm.to_owned()),
        ("Compression_level".to_owned(), level.to_string()),
    ]
}

fn audit_rows(session: &Session) -> [(String, String); 4] {
    let audit = session.instance.audit.figures();
    let on = if audit.is_on { "ON" } else { "OFF" };
    [
        ("Server_audit_active", on.to_owned()),
        ("Server_audit_current_log", audit.path.map_or_else(String::new, |path| path.display().to_string())),
        ("Server_audit_last_error", audit.last_error),
        ("Server_audit_writes_failed", audit.writes_failed.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// What MariaDB shows of TLS, with nought and empty texts where there is none.
fn tls_rows(session: &Session) -> Vec<(String, String)> {
    let tls = session.instance.host().and_then(|host| host.tls()).unwrap_or_default();
    let (version, cipher) = session.client.encryption.unwrap_or_default();
    // Of a connection without TLS there is nothing to say.
    let of_session = |text: &str| if cipher.is_empty() { String::new() } else { text.to_owned() };
    let rows = [
        ("Ssl_accepts", tls.begun.to_string()),
        ("Ssl_cipher", cipher.to_owned()),
        ("Ssl_cipher_list", of_session(&tls.ciphers)),
        ("Ssl_finished_accepts", tls.finished.to_string()),
        ("Ssl_server_not_after", of_session(&tls.not_after)),
        ("Ssl_server_not_before", of_session(&tls.not_before)),
        ("Ssl_session_cache_hits", tls.resumed.to_string()),
        ("Ssl_verify_mode", (if tls.asks_for_certificates { "5" } else { "0" }).to_owned()),
        ("Ssl_version", version.to_owned()),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).into()
}

/// One row of KEY_CACHES: a segment, or a whole cache.
#[derive(Clone, Copy, Default)]
struct CacheNumbers {
    dirty: u64,
    unused: u64,
    used_max: u64,
    warm: u64,
    read_requests: u64,
    reads: u64,
    write_requests: u64,
    writes: u64,
}

macro_rules! numbers_of {
    ($status:expr) => {{
        let status = $status;
        CacheNumbers {
            dirty: status.blocks.not_flushed,
            unused: status.blocks.unused,
            used_max: status.blocks.used_high_water,
            warm: status.blocks.warm,
            read_requests: status.counters.read_requests,
            reads: status.counters.reads,
            write_requests: status.counters.write_requests,
            writes: status.counters.writes,
        }
    }};
}

impl CacheNumbers {
    fn row(&self, cache: &str, segments: Value, number: Value, size: u64, block: u64) -> Vec<Value> {
        let mut row = vec![Value::text(cache), segments, number, Value::UInt(size), Value::UInt(block)];
        for value in [
            self.used_max,
            self.unused,
            self.dirty,
            self.read_requests,
            self.reads,
            self.write_requests,
            self.writes,
        ] {
            row.push(Value::UInt(value));
        }
        row
    }
}

/// Names and values of `SHOW STATUS LIKE 'Key%'`.
fn key_status(session: &Session) -> [(&'static str, u64); 8] {
    let cache = numbers_of!(session.instance.database.caches().default_cache().status());
    [
        ("Key_blocks_not_flushed", cache.dirty),
        ("Key_blocks_unused", cache.unused),
        ("Key_blocks_used", cache.used_max),
        ("Key_blocks_warm", cache.warm),
        ("Key_read_requests", cache.read_requests),
        ("Key_reads", cache.reads),
        ("Key_write_requests", cache.write_requests),
        ("Key_writes", cache.writes),
    ]
}

/// The rows of `information_schema.KEY_CACHES`. Each cache that has a size has a row for each segment,
/// followed by a row for the whole cache.
pub(crate) fn key_caches(session: &Session) -> Vec<Vec<Value>> {
    let caches = session.instance.database.caches().list();
    caches.iter().filter(|cache| cache.is_enabled()).flat_map(|cache| rows_of(cache)).collect()
}

fn rows_of(cache: &NamedCache) -> Vec<Vec<Value>> {
    let status = cache.status();
    let name = cache.name();
    // The counters count pages, whatever key_cache_block_size says.
    let (size, block) = (status.size_bytes as u64, status.page_size as u64);
    let whole = numbers_of!(&status);
    let segments = cache.segment_status();
    if status.segments == 0 {
        return vec![whole.row(name, Value::Null, Value::Null, size, block)];
    }
    let count = segments.len().max(1) as u64;
    let share = size / count;
    let row =
        |numbers: CacheNumbers, number, size| numbers.row(name, Value::UInt(count), number, size, block);
    let mut rows: Vec<Vec<Value>> = segments
        .iter()
        .map(|segment| row(numbers_of!(segment), Value::UInt(segment.number.into()), share))
        .collect();
    rows.push(row(whole, Value::Null, share * count));
    rows
}

/// The rows of `information_schema.KEY_CACHE_SHARES`.
pub(crate) fn key_cache_shares(session: &Session) -> Vec<Vec<Value>> {
    let caches = session.instance.database.caches().list();
    let of_cache = |cache: &Arc<NamedCache>| -> Vec<Vec<Value>> {
        let row = |share: ShareStatus| {
            let numbers = [share.bytes as u64, share.free_bytes as u64, share.ghost_hits];
            let texts = [cache.name(), &share.name].map(Value::text);
            texts.into_iter().chain(numbers.map(Value::UInt)).collect()
        };
        cache.budget().shares().into_iter().map(row).collect()
    };
    caches.iter().filter(|cache| cache.is_enabled()).flat_map(of_cache).collect()
}

/// The rows of `information_schema.ROW_CACHE`. Only the default cache keeps single rows.
pub(crate) fn row_cache(session: &Session) -> Vec<Vec<Value>> {
    let status = session.instance.database.row_tier_status();
    let overhead = Decimal::new(((status.overhead() * 10.0).round() as i64).into(), 1);
    let numbers =
        [status.hits, status.misses, status.fills, status.evictions, status.invalidations, status.ghost_hits];
    let sizes = [status.size, status.bytes, status.entries].map(|number| Value::UInt(number as u64));
    let mut row = vec![Value::text(DEFAULT_CACHE)];
    row.extend(sizes.into_iter().chain([Value::Decimal(overhead)]).chain(numbers.map(Value::UInt)));
    vec![row]
}

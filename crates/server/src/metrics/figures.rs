//! The figures of the page: their names, what they mean, and where each comes from.

use super::page::Kind::{Counter, Gauge, Histogram};
use super::page::Page;
use crate::registry::CommandTimes;
use crate::shared::Shared;
use base::sync::ClassFigures;
use sql::host::{ConnectionCount, Host, Metric, MetricKind};
use std::time::{SystemTime, UNIX_EPOCH};

/// The page with the figures of this moment.
pub(super) fn page(shared: &Shared) -> String {
    let mut page = Page::default();
    server(&mut page, shared);
    statements(&mut page, shared);
    connections(&mut page, shared);
    caches(&mut page, shared);
    row_cache(&mut page, shared);
    transactions(&mut page, shared);
    log(&mut page, shared);
    latches(&mut page);
    memory(&mut page, shared);
    page.into_text()
}

fn server(page: &mut Page, shared: &Shared) {
    page.family("latchwork_info", Gauge, "What runs here; always 1.");
    page.sample("latchwork_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let help = "When the server was started, in seconds since 1970.";
    page.gauge("process_start_time_seconds", help, (now - shared.started.elapsed().as_secs_f64()).floor());
}

fn statements(page: &mut Page, shared: &Shared) {
    let counters = shared.instance.counters();
    let with = |prefix: &'static str| {
        counters.iter().filter_map(move |(name, count)| Some((name.strip_prefix(prefix)?, *count)))
    };
    page.family("latchwork_queries_total", Counter, "Statements by their kind.");
    for (command, count) in with("Com_") {
        page.sample("latchwork_queries_total", &[("command", command)], count);
    }
    page.family(
        "latchwork_handler_calls_total",
        Counter,
        "Rows written and transactions ended, by what was done.",
    );
    for (call, count) in with("Handler_") {
        page.sample("latchwork_handler_calls_total", &[("call", &call.to_ascii_lowercase())], count);
    }
    let one = |wanted: &str| counters.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, count)| *count);
    page.counter("latchwork_questions_total", "Statements that clients sent.", one("Questions"));
    page.counter(
        "latchwork_slow_queries_total",
        "Statements that took longer than long_query_time.",
        one("Slow_queries"),
    );
    page.counter("latchwork_rows_sent_total", "Rows of results.", one("Rows_sent"));

    let name = "latchwork_query_duration_seconds";
    page.family(name, Histogram, "From a statement's arrival to its answer's having been sent.");
    let times = shared.command_times();
    let counts = times.counts();
    let bounds = CommandTimes::BOUNDS_MICROS.iter().map(|bound| *bound as f64 / 1e6);
    let above = counts[CommandTimes::BOUNDS_MICROS.len()];
    page.histogram(name, &[], bounds.zip(counts.iter().copied()), above, times.sum_micros() as f64 / 1e6);
}

fn connections(page: &mut Page, shared: &Shared) {
    let counts = shared.connections();
    let mut last = "";
    for count in ConnectionCount::ALL {
        let Metric { name, kind, help, phase } = count.metric();
        if name != last {
            let kind = match kind {
                MetricKind::Counter => Counter,
                MetricKind::Gauge => Gauge,
            };
            page.family(name, kind, help);
            last = name;
        }
        let phase = phase.map(|phase| ("phase", phase));
        page.sample(name, phase.as_slice(), counts[count]);
    }
}

fn caches(page: &mut Page, shared: &Shared) {
    let caches = shared.instance.engine().caches().list();
    page.family("latchwork_key_cache_size_bytes", Gauge, "As configured.");
    for cache in &caches {
        let bytes = cache.status().size_bytes;
        page.sample("latchwork_key_cache_size_bytes", &[("cache", cache.name())], bytes);
    }
    macro_rules! segments {
        ($($name:literal, $kind:expr, $help:literal, $part:ident . $field:ident;)*) => {
            $(
                page.family($name, $kind, $help);
                for cache in &caches {
                    for (number, segment) in cache.segment_status().iter().enumerate() {
                        let labels = [("cache", cache.name()), ("segment", &number.to_string())];
                        page.sample($name, &labels, segment.$part.$field);
                    }
                }
            )*
        };
    }
    segments! {
        "latchwork_key_cache_read_requests_total", Counter, "Pages that were asked for.", counters.read_requests;
        "latchwork_key_cache_reads_total", Counter, "Pages read from the device.", counters.reads;
        "latchwork_key_cache_write_requests_total", Counter, "Changes of pages.", counters.write_requests;
        "latchwork_key_cache_writes_total", Counter, "Pages written to the device.", counters.writes;
        "latchwork_key_cache_latch_waits_total", Counter, "Waits for a segment's latch.", counters.latch_waits;
        "latchwork_key_cache_conflicts_total", Counter, "Optimistic reads that met a change.", counters.conflicts;
        "latchwork_key_cache_fallbacks_total", Counter, "Optimistic reads that took a latch in the end.", counters.fallbacks;
        "latchwork_key_cache_blocks_used_max", Gauge, "The most pages that were in use at a time.", blocks.used_high_water;
        "latchwork_key_cache_blocks_dirty", Gauge, "Pages that wait to be written.", blocks.not_flushed;
    }
}

fn row_cache(page: &mut Page, shared: &Shared) {
    let rows = shared.instance.engine().row_tier_status();
    page.gauge("latchwork_row_cache_size_bytes", "What the row cache may take.", rows.size);
    page.gauge("latchwork_row_cache_bytes", "What it takes.", rows.bytes);
    page.gauge("latchwork_row_cache_rows", "Rows in it.", rows.entries);
    page.counter("latchwork_row_cache_hits_total", "Lookups that found their row.", rows.hits);
    page.counter("latchwork_row_cache_misses_total", "Lookups that did not.", rows.misses);
    page.counter("latchwork_row_cache_fills_total", "Rows that were put in.", rows.fills);
    page.counter("latchwork_row_cache_evictions_total", "Rows that gave way to others.", rows.evictions);
    page.counter(
        "latchwork_row_cache_invalidations_total",
        "Rows that were about to change.",
        rows.invalidations,
    );
}

fn transactions(page: &mut Page, shared: &Shared) {
    let status = shared.instance.engine().status();
    let waits = status.lock_waits;
    page.counter("latchwork_row_lock_waits_total", "Waits for rows.", waits.waits);
    page.counter("latchwork_row_lock_wait_seconds_total", "Their time.", waits.waited.as_secs_f64());
    page.gauge("latchwork_row_lock_waiting", "Who waits now.", waits.waiting);
    page.counter("latchwork_deadlocks_total", "Transactions that gave way to others.", waits.deadlocks);
    page.gauge("latchwork_lock_bytes", "Memory of explicit row locks.", status.lock_bytes);
    page.gauge("latchwork_version_bytes", "Memory of old versions of rows.", status.version_bytes);
    page.gauge("latchwork_version_file_bytes", "Files of old versions.", status.version_file_bytes);
    page.gauge("latchwork_versions_in_files", "Versions that they have.", status.versions_in_files);
    page.counter("latchwork_versions_spilled_total", "Versions that went there.", status.versions_spilled);
    page.gauge(
        "latchwork_purge_queue_length",
        "Rows whose old state waits to be removed.",
        status.purge_queue,
    );
    page.gauge("latchwork_threads_inside", "Statements that thread_concurrency counts.", status.gate.inside);
    page.gauge("latchwork_threads_queued", "Statements that wait for their turn.", status.gate.queued);
}

fn log(page: &mut Page, shared: &Shared) {
    let status = shared.instance.engine().status();
    page.counter(
        "latchwork_log_written_bytes_total",
        "Bytes of the log since the directory was made.",
        status.log_end.0,
    );
    page.counter("latchwork_log_writes_total", "Write calls to the log.", status.log_writes);
    page.counter("latchwork_log_fsyncs_total", "Syncs of the log.", status.log_syncs);
    page.counter("latchwork_log_waits_total", "Appends that found the log's buffer full.", status.log_waits);
    let age = status.log_end.0.saturating_sub(status.log_needed.0);
    page.gauge("latchwork_checkpoint_age_bytes", "Bytes of the log that a recovery would read.", age);
}

fn latches(page: &mut Page) {
    let mut classes = ClassFigures::all();
    classes.retain(|class| class.segment.is_none());
    macro_rules! classes {
        ($($name:literal, $help:literal, $field:ident;)*) => {
            $(
                page.family($name, Counter, $help);
                for class in &classes {
                    page.sample($name, &[("class", class.name)], class.$field);
                }
            )*
        };
    }
    // Counted while latch_statistics is on.
    classes! {
        "latchwork_latch_acquisitions_total", "Latches taken.", acquisitions;
        "latchwork_latch_spins_total", "Looks at latches that were not free.", spins;
        "latchwork_latch_waits_total", "Times asleep for a latch.", waits;
    }
    let name = "latchwork_latch_wait_seconds";
    page.family(name, Histogram, "From finding a latch taken to having it.");
    for class in &classes {
        // Entry n of `times` counts waits below 2^n nanoseconds. The bounds go from a microsecond to a
        // minute, and each is four times the one before.
        let mut buckets = vec![(1024e-9, class.times[..11].iter().sum())];
        for (step, pair) in (1..).zip(class.times[11..37].chunks(2)) {
            buckets.push((f64::from(1u32 << (2 * step)) * 1024e-9, pair.iter().sum()));
        }
        let above = class.times[37..].iter().sum();
        page.histogram(
            name,
            &[("class", class.name)],
            buckets.into_iter(),
            above,
            class.waited_ns as f64 / 1e9,
        );
    }
}

fn memory(page: &mut Page, shared: &Shared) {
    let memory = shared.memory();
    page.gauge("process_resident_memory_bytes", "What the process takes up.", memory.resident);
    page.gauge("latchwork_heap_used_bytes", "In the shared heap; 0 without one.", memory.heap_used);
    page.gauge("latchwork_heap_mapped_bytes", "What the shared heap has of the system.", memory.heap_mapped);
}

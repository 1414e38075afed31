//! Makes changes of variables take effect in the engine: those of the key caches, the log and others.

use super::{Effects, Setting, Values, Variable};
use crate::memory::ServerMemory;
use crate::{ErrorKind, SqlError};
use engine::{
    CacheChange, DEFAULT_CACHE, Database, FlushLog, FlushMethod, HitPath, IoOptions, LatchImplementation,
};
use std::sync::{Arc, Weak};

/// The meaning of a value of `flush_log_at_trx_commit`.
pub fn flush_log(value: u64) -> FlushLog {
    match value {
        0 => FlushLog::Lazily,
        2 => FlushLog::WriteAtCommit,
        _ => FlushLog::AtCommit,
    }
}

/// The meaning of a name of `flush_method`. Each name of MariaDB gets at least the safety that it has there.
pub fn flush_method(name: &str) -> FlushMethod {
    match name {
        // In MariaDB the second one leaves out some syncs as unnecessary. Here there are no syncs of that
        // kind.
        "O_DIRECT" | "O_DIRECT_NO_FSYNC" => FlushMethod::ODirect,
        "nosync" => FlushMethod::NoSync,
        // O_DSYNC opens the log so that each write is durable. Here the log is synced when it has to be,
        // which is as safe. littlesync is an experiment of MariaDB with fewer syncs.
        _ => FlushMethod::Fsync,
    }
}

/// The latch implementation that the variables choose.
pub fn latch_implementation(values: &Values) -> LatchImplementation {
    match values.text("latch_implementation").as_str() {
        "wait_array" => LatchImplementation::WaitArray,
        _ => LatchImplementation::Direct,
    }
}

/// The name of `flush_method` for a method.
pub fn flush_method_name(method: FlushMethod) -> &'static str {
    match method {
        FlushMethod::Fsync => "fsync",
        FlushMethod::ODirect => "O_DIRECT",
        FlushMethod::NoSync => "nosync",
    }
}

/// The options for I/O that the variables about the device's load give.
pub fn io_options(values: &Values) -> IoOptions {
    let short = |name| u32::try_from(values.unsigned(name)).unwrap_or(u32::MAX);
    IoOptions {
        capacity: short("innodb_io_capacity"),
        capacity_max: short("innodb_io_capacity_max"),
        write_threads: short("innodb_write_io_threads"),
        read_threads: short("innodb_read_io_threads"),
    }
}

/// The size of the row tier in bytes. `None` means as much as is useful.
pub fn row_tier_bytes(values: &Values) -> Option<usize> {
    usize::try_from(values.signed("row_cache_size")).ok()
}

/// The change that a value of a cache's variable makes. `None` if the variable does not belong to caches.
pub(super) fn cache_change(name: &str, setting: &Setting) -> Option<CacheChange> {
    let number = match setting {
        Setting::Unsigned(number) => *number,
        _ => 0,
    };
    let short = u32::try_from(number).unwrap_or(u32::MAX);
    let mut change = CacheChange::default();
    match name {
        "key_buffer_size" => change.size_bytes = Some(usize::try_from(number).unwrap_or(usize::MAX)),
        "key_cache_segments" => change.segments = Some(short),
        "key_cache_division_limit" => change.division_limit = Some(short),
        "key_cache_age_threshold" => change.age_threshold = Some(short),
        "key_cache_block_size" => change.block_size = Some(short),
        "key_cache_file_hash_size" => change.file_hash_size = Some(short),
        "key_cache_hit_path" => change.hit_path = Some(hit_path(setting)),
        _ => return None,
    }
    Some(change)
}

/// The meaning of a value of `key_cache_hit_path`.
fn hit_path(setting: &Setting) -> HitPath {
    match setting {
        Setting::Choice(0) => HitPath::Locked,
        _ => HitPath::Optimistic,
    }
}

/// Changes a cache. Creates it if it does not exist.
pub(super) fn change_cache(database: &Database, cache: &str, change: CacheChange) -> Result<(), SqlError> {
    database.set_cache(cache, change).map_err(|error| match error {
        engine::Error::BadOption { .. } => SqlError::new(
            ErrorKind::WrongValueForVariable,
            format!("The key cache '{cache}' cannot be changed so: {error}"),
        ),
        error => error.into(),
    })
}

/// The meaning of `max_server_mem_used`, in bytes. By itself it is half of the memory that the default key
/// cache leaves: what statements allocate takes more than what they count.
fn server_bytes(values: &Values) -> u64 {
    let memory = base::machine::memory_bytes() as u64;
    match values.unsigned("max_server_mem_used") {
        // Nothing is known of the machine.
        0 if memory == 0 => u64::MAX,
        0 => (memory.saturating_sub(values.unsigned("key_buffer_size")) / 2).max(SERVER_BYTES_MIN),
        bytes => bytes,
    }
}

/// The meaning of `latchwork_version_limit`, in bytes. Small machines have less.
pub fn version_bytes(values: &Values) -> u64 {
    let asked = values.unsigned("latchwork_version_limit");
    match base::machine::memory_bytes() as u64 {
        0 => asked,
        memory => asked.min(memory / VERSIONS_SHARE),
    }
}

/// Old versions of rows take at most this part of the machine's memory.
const VERSIONS_SHARE: u64 = 16;

/// However small the machine is and however large the cache.
const SERVER_BYTES_MIN: u64 = 64 << 20;

/// Passes changes of global variables on to the engine, and to the account of all sessions.
pub(crate) struct EngineEffects {
    database: Weak<Database>,
    memory: Arc<ServerMemory>,
}

impl EngineEffects {
    pub(crate) fn new(database: &Arc<Database>, memory: Arc<ServerMemory>, values: &Values) -> EngineEffects {
        memory.set_max(server_bytes(values));
        EngineEffects { database: Arc::downgrade(database), memory }
    }
}

impl Effects for EngineEffects {
    fn apply(&self, changed: Variable, after: &mut Values) -> Result<(), SqlError> {
        let Some(database) = self.database.upgrade() else { return Ok(()) };
        let name = changed.definition().name;
        if matches!(name, "key_buffer_size" | "max_server_mem_used") {
            self.memory.set_max(server_bytes(after));
        }
        if let Some(change) = cache_change(name, after.get(changed)) {
            return change_cache(&database, DEFAULT_CACHE, change);
        }
        match name {
            "innodb_io_capacity" | "innodb_io_capacity_max" => {
                let IoOptions { capacity, capacity_max, .. } = io_options(after);
                database.caches().set_io_capacity(capacity, capacity_max);
            }
            "innodb_flush_log_at_trx_commit" => {
                database.set_flush_log(flush_log(after.unsigned("innodb_flush_log_at_trx_commit")));
            }
            "latch_statistics" => base::sync::set_metering(after.boolean("latch_statistics")),
            "query_phases" => base::phases::set_on(after.boolean("query_phases")),
            "row_cache_size" => database.resize_row_tier(row_tier_bytes(after))?,
            "thread_concurrency" => {
                database.set_thread_concurrency(after.unsigned("thread_concurrency") as u32);
            }
            "concurrency_tickets" => {
                database.set_concurrency_tickets(after.unsigned("concurrency_tickets") as u32);
            }
            "latchwork_lock_limit" => database.set_lock_limit(after.unsigned("latchwork_lock_limit")),
            "latchwork_version_file_limit" => {
                database.set_version_file_limit(after.unsigned("latchwork_version_file_limit"));
            }
            "latchwork_version_limit" => database.set_version_limit(version_bytes(after)),
            _ => {}
        }
        Ok(())
    }
}

//! What changes in the engine when a variable of the key cache or the log changes.

use super::{Effects, Setting, Values, Variable};
use crate::SqlError;
use engine::{CacheChange, Database, FlushLog, FlushMethod, HitPath, IoOptions};
use std::sync::{Arc, Weak};

/// What a value of `flush_log_at_trx_commit` means.
pub fn flush_log(value: u64) -> FlushLog {
    match value {
        0 => FlushLog::Lazily,
        2 => FlushLog::WriteAtCommit,
        _ => FlushLog::AtCommit,
    }
}

/// What a name of `flush_method` means. Each of MariaDB's gets at least the safety that it has there.
pub fn flush_method(name: &str) -> FlushMethod {
    match name {
        // The second leaves out syncs that it takes to be needless; here there are none of that kind.
        "O_DIRECT" | "O_DIRECT_NO_FSYNC" => FlushMethod::ODirect,
        "nosync" => FlushMethod::NoSync,
        // O_DSYNC opens the log so that each write is durable: here it is synced when it has to be, which comes to the same.
        // littlesync is MariaDB's own experiment with fewer syncs.
        _ => FlushMethod::Fsync,
    }
}

/// The name of `flush_method` that says what is done.
pub fn flush_method_name(method: FlushMethod) -> &'static str {
    match method {
        FlushMethod::Fsync => "fsync",
        FlushMethod::ODirect => "O_DIRECT",
        FlushMethod::NoSync => "nosync",
    }
}

/// What the variables about the device's load say.
pub fn io_options(values: &Values) -> IoOptions {
    let short = |name| u32::try_from(values.unsigned(name)).unwrap_or(u32::MAX);
    IoOptions {
        capacity: short("innodb_io_capacity"),
        capacity_max: short("innodb_io_capacity_max"),
        write_threads: short("innodb_write_io_threads"),
        read_threads: short("innodb_read_io_threads"),
    }
}

/// Resizes and repartitions the database's cache.
pub(crate) struct CacheEffects(Weak<Database>);

impl CacheEffects {
    pub fn new(database: &Arc<Database>) -> CacheEffects {
        CacheEffects(Arc::downgrade(database))
    }
}

impl Effects for CacheEffects {
    fn apply(&self, changed: Variable, after: &Values) -> Result<(), SqlError> {
        let number = match after.get(changed) {
            Setting::Unsigned(number) => *number,
            _ => 0,
        };
        let short = u32::try_from(number).unwrap_or(u32::MAX);
        let mut change = CacheChange::default();
        match changed.definition().name {
            "key_buffer_size" => change.size_bytes = Some(usize::try_from(number).unwrap_or(usize::MAX)),
            "key_cache_segments" => change.segments = Some(short),
            "key_cache_division_limit" => change.division_limit = Some(short),
            "key_cache_age_threshold" => change.age_threshold = Some(short),
            "key_cache_hit_path" => {
                let locked = after.text("key_cache_hit_path") == "locked";
                change.hit_path = Some(if locked { HitPath::Locked } else { HitPath::Optimistic });
            }
            "innodb_io_capacity" | "innodb_io_capacity_max" => {
                if let Some(database) = self.0.upgrade() {
                    let IoOptions { capacity, capacity_max, .. } = io_options(after);
                    database.caches().set_io_capacity(capacity, capacity_max);
                }
                return Ok(());
            }
            "innodb_flush_log_at_trx_commit" => {
                if let Some(database) = self.0.upgrade() {
                    database.set_flush_log(flush_log(number));
                }
                return Ok(());
            }
            "latchwork_version_limit" => {
                if let Some(database) = self.0.upgrade() {
                    database.set_version_limit(number);
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        let Some(database) = self.0.upgrade() else { return Ok(()) };
        database.set_cache(engine::DEFAULT_CACHE, change).map_err(|error| {
            SqlError::new(1231, b"42000", format!("The key cache cannot be changed so: {error}"))
        })
    }
}

//! Variables with one value for the whole server.

use super::super::definition::*;
use super::NO_QUERY_CACHE;

/// The values of `server_audit_events`, in MariaDB's order.
pub(crate) const AUDIT_EVENTS: &[&str] =
    &["CONNECT", "QUERY", "TABLE", "QUERY_DDL", "QUERY_DML", "QUERY_DCL", "QUERY_DML_NO_SELECT"];

const NO_BINARY_LOG: &str = "there is no binary log";

pub(super) static DEFINITIONS: &[Definition] = &[
    global("automatic_sp_privileges", boolean(true)),
    global("character_set_system", charset("utf8mb3")).read_only().works(),
    global("concurrent_insert", one_of("AUTO", &["NEVER", "AUTO", "ALWAYS"]))
        .because("readers and inserts never wait for each other"),
    global("connect_timeout", unsigned(10, 2, 31536000, 1)).works(),
    global("core_file", boolean(false)).read_only().works(),
    global("default_password_lifetime", unsigned(0, 0, 65535, 1)).works(),
    global("delay_key_write", one_of("ON", &["OFF", "ON", "ALL"]))
        .because("pages are always written back in the background"),
    global("disconnect_on_expired_password", boolean(false)).works(),
    global("event_scheduler", one_of("OFF", &["OFF", "ON", "DISABLED", "ORIGINAL"])),
    global("expire_logs_days", double(0.0, 0.0, 99.0)).because(NO_BINARY_LOG),
    global("extra_max_connections", unsigned(1, 1, 100000, 1)).works(),
    global("flush", boolean(false)).because("what makes changes durable is flush_log_at_trx_commit"),
    global("flush_time", unsigned(0, 0, 31536000, 1))
        .because("what makes changes durable is flush_log_at_trx_commit"),
    global("general_log", boolean(false)).because("only OFF is taken: there is no general log"),
    global("general_log_file", text("")),
    global("host_cache_size", unsigned(0, 0, 65536, 1)),
    global("init_connect", text("")).works(),
    // Our own: whether events at latches are counted.
    global("latch_statistics", boolean(false)).works(),
    // Our own: memory in bytes for row locks. Beyond it, large parts of tables are locked.
    global("latchwork_lock_limit", unsigned(67108864, 1048576, 18446744073709551615, 1)).works(),
    // Our own: how many bytes the files of old versions may have. Beyond it, the oldest snapshots are
    // cancelled.
    global("latchwork_version_file_limit", unsigned(17179869184, 0, 18446744073709551615, 1)).works(),
    // Our own: memory in bytes for old versions of rows. What is more goes to files.
    global("latchwork_version_limit", unsigned(268435456, 1048576, 18446744073709551615, 1)).works(),
    global("local_infile", boolean(true)).works(),
    global("log_bin", boolean(false)).read_only().because(NO_BINARY_LOG),
    global("log_output", set_of("FILE", &["NONE", "FILE", "TABLE"])).works(),
    global("log_slave_updates", boolean(false)).read_only(),
    global("log_slow_query_file", text("")).works(),
    global("master_verify_checksum", boolean(false)),
    global("max_connect_errors", unsigned(100, 1, 4294967295, 1)),
    global("max_connections", unsigned(151, 10, 100000, 1)).works(),
    global("max_password_errors", unsigned(4294967295, 1, 4294967295, 1)).works(),
    global("max_prepared_stmt_count", unsigned(16382, 0, 4294967295, 1)).works(),
    // Its own: what the statements of all sessions may hold together. 0 is half of what the key cache leaves.
    global("max_server_mem_used", unsigned(0, 0, 18446744073709551615, 1)).works(),
    // MySQL's.
    global(
        "protocol_compression_algorithms",
        set_of("zlib,zstd,uncompressed", &["zlib", "zstd", "uncompressed"]),
    )
    .works(),
    global("proxy_protocol_networks", text("")).works(),
    global("query_cache_limit", unsigned(1048576, 0, 4294967295, 1)).because(NO_QUERY_CACHE),
    global("query_cache_min_res_unit", unsigned(4096, 0, 4294967295, 8)).because(NO_QUERY_CACHE),
    global("query_cache_size", unsigned(0, 0, 18446744073709551615, 1024)).because(NO_QUERY_CACHE),
    // Our own: whether connections record how long each phase of a statement takes.
    global("query_phases", boolean(false)).works(),
    global("read_only", boolean(false)).works(),
    global("require_secure_transport", boolean(false)).works(),
    // Our own: memory in bytes of the default key cache for rows whose pages are not in memory. -1 means as
    // much as is useful.
    global("row_cache_size", signed(-1, -1, 9223372036854775807)).works(),
    global("secure_auth", boolean(true)),
    global("server_audit_events", set_of("", AUDIT_EVENTS)).works(),
    global("server_audit_excl_users", text("")).works(),
    global("server_audit_file_path", text("server_audit.log")).works(),
    global("server_audit_file_rotate_now", boolean(false)).works(),
    global("server_audit_file_rotate_size", unsigned(1000000, 100, 9223372036854775807, 1)).works(),
    global("server_audit_file_rotations", unsigned(9, 0, 999, 1)).works(),
    // Our own.
    global("server_audit_format", one_of("text", &["text", "json"])).works(),
    global("server_audit_incl_users", text("")).works(),
    global("server_audit_logging", boolean(false)).works(),
    global("server_audit_output_type", one_of("file", &["file"])).works(),
    global("server_audit_query_log_limit", unsigned(1024, 0, 2147483647, 1)).works(),
    global("server_audit_sync_log_file", boolean(false)).works(),
    global("simple_password_check_digits", unsigned(1, 0, 1000, 1)).works(),
    global("simple_password_check_letters_same_case", unsigned(1, 0, 1000, 1)).works(),
    global("simple_password_check_minimal_length", unsigned(8, 0, 1000, 1)).works(),
    global("simple_password_check_other_characters", unsigned(1, 0, 1000, 1)).works(),
    global("slave_net_timeout", unsigned(60, 1, 31536000, 1)),
    global("slow_launch_time", unsigned(2, 0, 31536000, 1)),
    global("strict_password_validation", boolean(true)).works(),
    global("sync_binlog", unsigned(0, 0, 4294967295, 1)).because(NO_BINARY_LOG),
    global("table_definition_cache", unsigned(400, 400, 2097152, 1))
        .because("definitions of open tables stay in memory without a limit"),
    global("table_open_cache", unsigned(2000, 10, 1048576, 1))
        .because("definitions of open tables stay in memory without a limit"),
    // How often a statement that has waited may enter again before new ones: InnoDB's default of 5.0.
    global("concurrency_tickets", unsigned(500, 0, 4294967295, 1)).works(),
    // How many statements run at the same time. 0 means any number.
    global("thread_concurrency", unsigned(0, 0, 1000, 1)).works(),
    global("thread_cache_size", unsigned(256, 0, 16384, 1))
        .because("threads are not handed from one connection to the next"),
];

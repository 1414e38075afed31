//! Variables that describe this server and do not change while it runs.

use super::super::definition::*;

pub(super) static DEFINITIONS: &[Definition] = &[
    global("back_log", unsigned(128, 0, 65535, 1)).read_only(),
    global("basedir", text("")).read_only(),
    global("bind_address", text("")).read_only().works(),
    global("caching_sha2_password_private_key_path", text("private_key.pem")).read_only().works(),
    global("caching_sha2_password_public_key_path", text("public_key.pem")).read_only().works(),
    global("character_sets_dir", text("")).read_only(),
    global("datadir", text("")).read_only().works(),
    global("date_format", text("%Y-%m-%d")).read_only(),
    global("datetime_format", text("%Y-%m-%d %H:%i:%s")).read_only(),
    global("extra_port", unsigned(0, 0, 65535, 1)).read_only().works(),
    // The method of the greeting. MySQL's variable of this name also chooses that of new accounts.
    global(
        "default_authentication_plugin",
        one_of("mysql_native_password", &["mysql_native_password", "caching_sha2_password"]),
    )
    .read_only()
    .works(),
    global("have_compress", text("YES")).read_only().works(),
    global("have_crypt", text("NO")).read_only(),
    global("have_dynamic_loading", text("NO")).read_only(),
    global("have_geometry", text("NO")).read_only(),
    global("have_openssl", text("NO")).read_only(),
    global("have_profiling", text("NO")).read_only(),
    global("have_query_cache", text("NO")).read_only(),
    global("have_rtree_keys", text("NO")).read_only(),
    global("have_ssl", text("DISABLED")).read_only().works(),
    global("have_symlink", text("DISABLED")).read_only(),
    global("hostname", text("")).read_only().works(),
    global("init_file", text("")).read_only().works(),
    global("large_files_support", boolean(true)).read_only(),
    global("large_pages", boolean(false)).read_only(),
    // Its own: what latches are made of.
    global("latch_implementation", one_of("direct", &["direct", "wait_array"])).read_only().works(),
    global("lc_messages_dir", text("")).read_only(),
    global("license", text("Apache-2.0 OR MIT")).read_only().works(),
    global("log_error", text("")).read_only().works(),
    global("lower_case_file_system", boolean(false)).read_only().works(),
    global("lower_case_table_names", unsigned(0, 0, 2, 1)).read_only().works(),
    // Its own: the allocator, as mysqld_safe's option of this name.
    global("malloc_lib", text("system")).read_only().works(),
    // Its own: HOST:PORT for Prometheus.
    global("metrics_address", text("")).read_only().works(),
    // 0 at the start: as many as the hard limit lets it have.
    global("open_files_limit", unsigned(0, 0, 4294967295, 1)).read_only().works(),
    global("performance_schema", boolean(false)).read_only(),
    global("pid_file", text("")).read_only().works(),
    global("plugin_dir", text("")).read_only(),
    global("port", unsigned(3306, 0, 65535, 1)).read_only().works(),
    global("protocol_version", unsigned(10, 0, 4294967295, 1)).read_only().works(),
    global("report_host", text("")).read_only(),
    global("secure_file_priv", text("")).read_only().works(),
    global("skip_external_locking", boolean(true)).read_only(),
    global("skip_grant_tables", boolean(false)).read_only().works(),
    global("skip_name_resolve", boolean(false)).read_only(),
    global("skip_networking", boolean(false)).read_only().works(),
    global("skip_show_database", boolean(false)).read_only(),
    global("socket", text("")).read_only().works(),
    // Its own: the permissions of the socket, in octal, and `USER` or `USER:GROUP`, as numbers.
    global("socket_mode", text("0777")).read_only().works(),
    global("socket_owner", text("")).read_only().works(),
    // An option of MariaDB's, and no variable there.
    global("ssl", boolean(true)).read_only().works(),
    global("ssl_ca", text("")).read_only().works(),
    global("ssl_capath", text("")).read_only().works(),
    global("ssl_cert", text("")).read_only().works(),
    global("ssl_cipher", text("")).read_only().works(),
    global("ssl_crl", text("")).read_only().works(),
    global("ssl_crlpath", text("")).read_only().works(),
    global("ssl_key", text("")).read_only().works(),
    global("system_time_zone", text("UTC")).read_only().works(),
    global("table_open_cache_instances", unsigned(1, 1, 64, 1)).read_only(),
    global(
        "thread_handling",
        one_of("one-thread-per-connection", &["one-thread-per-connection", "no-threads", "pool-of-threads"]),
    )
    .read_only(),
    global("tls_version", set_of("TLSv1.2,TLSv1.3", &["TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"]))
        .read_only()
        .works(),
    global("thread_stack", unsigned(299008, 131072, 18446744073709551615, 1024)).read_only(),
    global("time_format", text("%H:%i:%s")).read_only(),
    global("tmpdir", text("/tmp")).read_only().works(),
    // Its own: which users of the machine are `root` over the socket without a password.
    global("trusted_peers", one_of("auto", &["auto", "none", "own", "root", "own_and_root"]))
        .read_only()
        .works(),
    // Off: all memory out of one heap behind one mutex.
    global("use_sys_malloc", boolean(true)).read_only().works(),
    global("version", text(super::super::VERSION)).read_only().works(),
    global("version_comment", text("Latchwork")).read_only().works(),
    global("version_compile_machine", text("x86_64")).read_only().works(),
    global("version_compile_os", text("Linux")).read_only().works(),
    global("version_malloc_library", text("system")).read_only().works(),
];

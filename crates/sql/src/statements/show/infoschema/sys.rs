//! The views of `sys` that say something here, as queries of other virtual tables. The views of the list
//! that are not here are about what nothing counts: they are empty.

/// The query of a view.
pub(super) fn query(view: &str) -> Option<&'static str> {
    QUERIES.iter().find(|(names, _)| names.contains(&view)).map(|(_, query)| *query)
}

const QUERIES: &[(&[&str], &str)] = &[
    (
        &["innodb_lock_waits", "x$innodb_lock_waits"],
        "SELECT r.trx_wait_started AS wait_started, TIMEDIFF(NOW(), r.trx_wait_started) AS wait_age, \
         TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS wait_age_secs, rl.lock_table AS locked_table, \
         rl.lock_index AS locked_index, rl.lock_type AS locked_type, r.trx_id AS waiting_trx_id, \
         r.trx_started AS waiting_trx_started, TIMEDIFF(NOW(), r.trx_started) AS waiting_trx_age, \
         r.trx_rows_locked AS waiting_trx_rows_locked, r.trx_rows_modified AS waiting_trx_rows_modified, \
         r.trx_mysql_thread_id AS waiting_pid, r.trx_query AS waiting_query, rl.lock_id AS waiting_lock_id, \
         rl.lock_mode AS waiting_lock_mode, b.trx_id AS blocking_trx_id, b.trx_mysql_thread_id AS blocking_pid, \
         b.trx_query AS blocking_query, bl.lock_id AS blocking_lock_id, bl.lock_mode AS blocking_lock_mode, \
         b.trx_started AS blocking_trx_started, TIMEDIFF(NOW(), b.trx_started) AS blocking_trx_age, \
         b.trx_rows_locked AS blocking_trx_rows_locked, b.trx_rows_modified AS blocking_trx_rows_modified, \
         CONCAT('KILL QUERY ', b.trx_mysql_thread_id) AS sql_kill_blocking_query, \
         CONCAT('KILL ', b.trx_mysql_thread_id) AS sql_kill_blocking_connection \
         FROM information_schema.innodb_lock_waits w \
         JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id \
         JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id \
         JOIN information_schema.innodb_locks bl ON bl.lock_id = w.blocking_lock_id \
         JOIN information_schema.innodb_locks rl ON rl.lock_id = w.requested_lock_id ORDER BY r.trx_wait_started",
    ),
    (
        &["metrics"],
        "SELECT LOWER(variable_name) AS Variable_name, variable_value AS Variable_value, \
         'Global Status' AS `Type`, 'YES' AS Enabled FROM performance_schema.global_status \
         UNION ALL SELECT 'NOW()', NOW(3), 'System Time', 'YES' \
         UNION ALL SELECT 'UNIX_TIMESTAMP()', ROUND(UNIX_TIMESTAMP(NOW(3)), 3), 'System Time', 'YES' \
         ORDER BY `Type`, Variable_name",
    ),
    (
        &["processlist", "x$processlist", "session", "x$session"],
        "SELECT thread_id AS thd_id, processlist_id AS conn_id, \
         CONCAT(processlist_user, '@', processlist_host) AS `user`, processlist_db AS db, \
         processlist_command AS command, processlist_state AS state, processlist_time AS `time`, \
         processlist_info AS current_statement, NULL AS statement_latency, NULL AS progress, \
         NULL AS lock_latency, NULL AS rows_examined, NULL AS rows_sent, NULL AS rows_affected, \
         NULL AS tmp_tables, NULL AS tmp_disk_tables, NULL AS full_scan, NULL AS last_statement, \
         NULL AS last_statement_latency, NULL AS current_memory, NULL AS last_wait, NULL AS last_wait_latency, \
         NULL AS source, NULL AS trx_latency, NULL AS trx_state, NULL AS trx_autocommit, NULL AS pid, \
         NULL AS program_name FROM performance_schema.threads ORDER BY processlist_time DESC",
    ),
    (
        &["schema_auto_increment_columns"],
        "SELECT w.*, w.auto_increment / w.max_value AS auto_increment_ratio FROM (SELECT c.table_schema AS \
         table_schema, c.table_name AS table_name, c.column_name AS column_name, c.data_type AS data_type, \
         c.column_type AS column_type, LOCATE('unsigned', c.column_type) = 0 AS is_signed, \
         LOCATE('unsigned', c.column_type) > 0 AS is_unsigned, \
         CASE c.data_type WHEN 'tinyint' THEN 255 WHEN 'smallint' THEN 65535 WHEN 'mediumint' THEN 16777215 \
         WHEN 'int' THEN 4294967295 WHEN 'bigint' THEN 18446744073709551615 END \
         >> IF(LOCATE('unsigned', c.column_type) > 0, 0, 1) AS max_value, t.auto_increment AS auto_increment \
         FROM information_schema.columns c JOIN information_schema.tables t \
         ON t.table_schema = c.table_schema AND t.table_name = c.table_name \
         WHERE c.extra = 'auto_increment' AND c.table_schema <> 'mysql') w ORDER BY auto_increment_ratio DESC",
    ),
    (
        &["schema_object_overview"],
        "SELECT table_schema AS db, table_type AS object_type, COUNT(*) AS `count` \
         FROM information_schema.tables GROUP BY table_schema, table_type \
         UNION SELECT table_schema, CONCAT('INDEX (', index_type, ')'), COUNT(*) \
         FROM information_schema.statistics GROUP BY table_schema, index_type ORDER BY db, object_type",
    ),
    (
        &["schema_redundant_indexes"],
        "SELECT r.table_schema AS table_schema, r.table_name AS table_name, \
         r.index_name AS redundant_index_name, r.index_columns AS redundant_index_columns, \
         r.non_unique AS redundant_index_non_unique, d.index_name AS dominant_index_name, \
         d.index_columns AS dominant_index_columns, d.non_unique AS dominant_index_non_unique, \
         GREATEST(r.subpart_exists, d.subpart_exists) AS subpart_exists, \
         CONCAT('ALTER TABLE `', r.table_schema, '`.`', r.table_name, '` DROP INDEX `', r.index_name, '`') \
         AS sql_drop_index FROM sys.x$schema_flattened_keys r JOIN sys.x$schema_flattened_keys d \
         ON d.table_schema = r.table_schema AND d.table_name = r.table_name AND d.index_name <> r.index_name \
         WHERE (r.index_columns = d.index_columns AND (r.non_unique > d.non_unique OR r.non_unique = d.non_unique \
         AND IF(r.index_name = 'PRIMARY', '', r.index_name) > IF(d.index_name = 'PRIMARY', '', d.index_name))) \
         OR (r.non_unique = 1 AND LOCATE(CONCAT(r.index_columns, ','), d.index_columns) = 1) \
         OR (d.non_unique = 0 AND LOCATE(CONCAT(d.index_columns, ','), r.index_columns) = 1)",
    ),
    (&["version"], "SELECT '1.5.1' AS sys_version, VERSION() AS mysql_version"),
    (
        &["x$schema_flattened_keys"],
        "SELECT table_schema AS table_schema, table_name AS table_name, index_name AS index_name, \
         MAX(non_unique) AS non_unique, MAX(IF(sub_part IS NULL, 0, 1)) AS subpart_exists, \
         GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ',') AS index_columns \
         FROM information_schema.statistics WHERE index_type = 'BTREE' AND table_schema <> 'mysql' \
         GROUP BY table_schema, table_name, index_name",
    ),
];

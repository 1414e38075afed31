//! `performance_schema`: MariaDB's tables, and those of MySQL 8 that tools read. Nothing is instrumented, so
//! those that count events are empty, as they are on a MariaDB with `performance_schema=OFF`.

use super::server::{show_variables, visible_processes};
use super::{Definition, Rows, nothing, status, transactions};
use crate::Session;
use crate::host::Process;
use crate::names::PERFORMANCE_SCHEMA;
use types::Value;

const NAME_AND_VALUE: &str = "VARIABLE_NAME varchar(64) NOT NULL, VARIABLE_VALUE varchar(4096)";

/// The tables that only MySQL 8 has.
pub(super) static DEFINITIONS: &[Definition] = &[
    (
        "data_lock_waits",
        "ENGINE varchar(32) NOT NULL, REQUESTING_ENGINE_LOCK_ID varchar(128) NOT NULL, \
         REQUESTING_ENGINE_TRANSACTION_ID bigint(20) unsigned, REQUESTING_THREAD_ID bigint(20) unsigned, \
         REQUESTING_EVENT_ID bigint(20) unsigned, REQUESTING_OBJECT_INSTANCE_BEGIN bigint(20) unsigned NOT NULL, \
         BLOCKING_ENGINE_LOCK_ID varchar(128) NOT NULL, BLOCKING_ENGINE_TRANSACTION_ID bigint(20) unsigned, \
         BLOCKING_THREAD_ID bigint(20) unsigned, BLOCKING_EVENT_ID bigint(20) unsigned, \
         BLOCKING_OBJECT_INSTANCE_BEGIN bigint(20) unsigned NOT NULL",
        transactions::data_lock_waits,
    ),
    ("global_variables", NAME_AND_VALUE, |session| Ok(pairs(show_variables(session, true)))),
    ("persisted_variables", "VARIABLE_NAME varchar(64) NOT NULL, VARIABLE_VALUE varchar(1024)", nothing),
    (
        "processlist",
        "ID bigint(20) unsigned NOT NULL, USER varchar(32), HOST varchar(261), DB varchar(64), COMMAND varchar(16), \
         TIME bigint(20), STATE varchar(64), INFO longtext",
        |session| Ok(visible_processes(session).into_iter().map(process).collect()),
    ),
    (
        "replication_group_members",
        "CHANNEL_NAME char(64) NOT NULL, MEMBER_ID char(36) NOT NULL, MEMBER_HOST char(255) NOT NULL, \
         MEMBER_PORT int(11), MEMBER_STATE char(64) NOT NULL, MEMBER_ROLE char(64) NOT NULL, \
         MEMBER_VERSION char(64) NOT NULL, MEMBER_COMMUNICATION_STACK char(64) NOT NULL",
        nothing,
    ),
    ("session_variables", NAME_AND_VALUE, |session| Ok(pairs(show_variables(session, false)))),
];

/// The tables of the list that have rows.
pub(super) static ROWS: &[(&str, Rows)] = &[
    ("global_status", |session| Ok(pairs(status::rows(session, true)))),
    ("session_status", |session| Ok(pairs(status::rows(session, false)))),
    ("threads", |session| Ok(visible_processes(session).into_iter().map(thread).collect())),
];

/// True for the tables that a session may read without a right.
pub(super) fn is_readable_by_all(database: &str, table: &str) -> bool {
    let names = ["global_status", "global_variables", "session_status", "session_variables"];
    database == PERFORMANCE_SCHEMA && names.contains(&table)
}

fn pairs(values: Vec<(String, String)>) -> Vec<Vec<Value>> {
    values.into_iter().map(|(name, value)| vec![Value::text(name), Value::text(value)]).collect()
}

fn optional(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::text)
}

fn process(process: Process) -> Vec<Value> {
    vec![
        Value::UInt(process.id),
        Value::text(process.user),
        Value::text(process.host),
        optional(process.database),
        Value::text(process.command),
        Value::Int((process.millis / 1000) as i64),
        Value::text(process.state),
        optional(process.info),
    ]
}

/// A connection has one thread, with its number.
fn thread(process: Process) -> Vec<Value> {
    let host = process.host.split(':').next().unwrap_or_default().to_owned();
    vec![
        Value::UInt(process.id),
        Value::text("thread/sql/one_connection"),
        Value::text("FOREGROUND"),
        Value::UInt(process.id),
        Value::text(process.user),
        Value::text(host),
        optional(process.database),
        Value::text(process.command),
        Value::Int((process.millis / 1000) as i64),
        Value::text(process.state),
        optional(process.info),
        Value::Null,
        Value::Null,
        Value::text("NO"),
        Value::text("NO"),
        Value::Null,
        Value::Null,
    ]
}

/// The thread of a connection, if `session` may see it.
pub(super) fn thread_of(session: &Session, transaction: u64) -> Value {
    let is_of = |process: &Process| {
        process.transaction.and_then(|under_way| under_way.writes).is_some_and(|w| w.id.0 == transaction)
    };
    visible_processes(session)
        .iter()
        .find(|process| is_of(process))
        .map_or(Value::Null, |p| Value::UInt(p.id))
}

//! Transactions and the locks that they wait for: INNODB_TRX, INNODB_LOCKS, INNODB_LOCK_WAITS.

use super::{Definition, performance};
use crate::accounts::Rights;
use crate::host::{Process, TransactionUnderWay};
use crate::text::push_text;
use crate::{Session, SqlError};
use engine::{Blocker, Isolation, LockMode, PendingLock, Wanted};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use types::Value;

/// The most characters of a statement that INNODB_TRX shows.
const QUERY_CHARACTERS_MAX: usize = 1024;

pub(super) static DEFINITIONS: &[Definition] = &[
    (
        "INNODB_TRX",
        "trx_id bigint(21) unsigned NOT NULL, trx_state varchar(13) NOT NULL, trx_started datetime NOT NULL, \
         trx_requested_lock_id varchar(81), trx_wait_started datetime, trx_weight bigint(21) unsigned NOT NULL, \
         trx_mysql_thread_id bigint(21) unsigned NOT NULL, trx_query varchar(1024), \
         trx_operation_state varchar(64), trx_tables_in_use bigint(21) unsigned NOT NULL, \
         trx_tables_locked bigint(21) unsigned NOT NULL, trx_lock_structs bigint(21) unsigned NOT NULL, \
         trx_lock_memory_bytes bigint(21) unsigned NOT NULL, trx_rows_locked bigint(21) unsigned NOT NULL, \
         trx_rows_modified bigint(21) unsigned NOT NULL, trx_concurrency_tickets bigint(21) unsigned NOT NULL, \
         trx_isolation_level varchar(16) NOT NULL, trx_unique_checks int(1) NOT NULL, \
         trx_foreign_key_checks int(1) NOT NULL, trx_last_foreign_key_error varchar(256), \
         trx_is_read_only int(1) NOT NULL, trx_autocommit_non_locking int(1) NOT NULL",
        transactions,
    ),
    (
        "INNODB_LOCKS",
        "lock_id varchar(81) NOT NULL, lock_trx_id bigint(21) unsigned NOT NULL, lock_mode varchar(8) NOT NULL, \
         lock_type varchar(6) NOT NULL, lock_table varchar(1024) NOT NULL, lock_index varchar(1024), \
         lock_space int(11) unsigned, lock_page int(11) unsigned, lock_rec int(11) unsigned, \
         lock_data varchar(8192)",
        locks,
    ),
    (
        "INNODB_LOCK_WAITS",
        "requesting_trx_id bigint(21) unsigned NOT NULL, requested_lock_id varchar(81) NOT NULL, \
         blocking_trx_id bigint(21) unsigned NOT NULL, blocking_lock_id varchar(81) NOT NULL",
        lock_waits,
    ),
];

/// The name of a transaction's lock on a key. It is the same in every table that shows the lock.
fn lock_id(transaction: u64, wanted: &Wanted) -> String {
    format!("{transaction}:{}:{:08x}", wanted.table, base::checksum::crc32(&wanted.key))
}

fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

/// Every transaction that has used a table, or runs a statement that changes or locks rows.
fn transactions(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    session.access.check_any_global(Rights::PROCESS)?;
    let Some(host) = session.instance.host() else { return Ok(Vec::new()) };
    let waits = session.instance.database.lock_waits();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let moment = |since_1970: Duration| {
        Value::DateTime(session.variables.zone().shown(since_1970.as_micros() as i64, 0))
    };
    let row = |process: Process, transaction: TransactionUnderWay| {
        let id = transaction.writes.map_or(0, |writes| writes.id.0);
        let wait = waits.iter().find(|wait| wait.transaction == id);
        let begun = match transaction.begun_micros {
            Some(micros) => Duration::from_micros(micros),
            // The transaction consists of this statement only.
            None => now.saturating_sub(Duration::from_millis(process.millis)),
        };
        let (changed, rows, tables) =
            transaction.writes.map_or((0, 0, 0), |w| (w.rows_changed, w.rows_locked, w.tables_locked));
        let is_running = process.info.is_some();
        let query: Option<String> =
            process.info.map(|text| text.chars().take(QUERY_CHARACTERS_MAX).collect());
        vec![
            Value::UInt(id),
            Value::text(if wait.is_some() { "LOCK WAIT" } else { "RUNNING" }),
            moment(begun),
            wait.map_or(Value::Null, |wait| Value::text(lock_id(id, &wait.wanted))),
            wait.map_or(Value::Null, |wait| moment(now.saturating_sub(wait.waited))),
            Value::UInt(changed + rows + tables),
            Value::UInt(process.id),
            query.map_or(Value::Null, Value::text),
            Value::text(""),
            Value::UInt(if is_running { tables } else { 0 }),
            Value::UInt(tables),
            Value::UInt(rows + tables),
            Value::UInt(0),
            Value::UInt(rows),
            Value::UInt(changed),
            Value::UInt(0),
            Value::text(isolation_name(transaction.isolation)),
            Value::Int(1),
            Value::Int(1),
            Value::Null,
            Value::Int(transaction.read_only.into()),
            Value::Int(0),
        ]
    };
    let processes = host.processes().into_iter();
    Ok(processes.filter_map(|process| process.transaction.map(|t| row(process, t))).collect())
}

/// The waits for rows, each paired with a transaction that blocks it.
fn pairs(waits: &[PendingLock]) -> impl Iterator<Item = (&PendingLock, &Blocker)> {
    waits.iter().flat_map(|wait| wait.blockers.iter().map(move |blocker| (wait, blocker)))
}

/// The rows of `performance_schema.data_lock_waits`.
pub(super) fn data_lock_waits(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    session.access.check_any_global(Rights::PROCESS)?;
    let waits = session.instance.database.lock_waits();
    let row = |(wait, blocker): (&PendingLock, &Blocker)| {
        let side = |transaction: u64| {
            [
                Value::text(lock_id(transaction, &wait.wanted)),
                Value::UInt(transaction),
                performance::thread_of(session, transaction),
                Value::Null,
                Value::UInt(0),
            ]
        };
        let sides = side(wait.transaction).into_iter().chain(side(blocker.transaction));
        std::iter::once(Value::text("INNODB")).chain(sides).collect()
    };
    Ok(pairs(&waits).map(row).collect())
}

fn lock_waits(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    session.access.check_any_global(Rights::PROCESS)?;
    let waits = session.instance.database.lock_waits();
    let row = |(wait, blocker): (&PendingLock, &Blocker)| {
        vec![
            Value::UInt(wait.transaction),
            Value::text(lock_id(wait.transaction, &wait.wanted)),
            Value::UInt(blocker.transaction),
            Value::text(lock_id(blocker.transaction, &wait.wanted)),
        ]
    };
    Ok(pairs(&waits).map(row).collect())
}

/// The locks that transactions wait for: those of the transactions that wait and of the transactions that
/// block them.
fn locks(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    session.access.check_any_global(Rights::PROCESS)?;
    let waits = session.instance.database.lock_waits();
    let requested = waits.iter().map(|wait| (wait.transaction, wait.wanted.mode, &wait.wanted));
    let held = pairs(&waits).map(|(wait, blocker)| (blocker.transaction, blocker.mode, &wait.wanted));
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (transaction, mode, wanted) in requested.chain(held) {
        let id = Value::text(lock_id(transaction, wanted));
        // A transaction that waits for a row also blocks those behind it in the queue.
        if rows.iter().any(|row| row[0] == id) {
            continue;
        }
        let Some((table, key)) = session.instance.database.describe_row(wanted.table, &wanted.key) else {
            continue;
        };
        let def = table.def();
        let data: Vec<String> = key.iter().map(shown).collect();
        rows.push(vec![
            id,
            Value::UInt(transaction),
            Value::text(if mode == LockMode::Shared { "S" } else { "X" }),
            Value::text("RECORD"),
            Value::text(format!("`{}`.`{}`", def.database, def.name)),
            Value::text(if def.primary.is_some() { "PRIMARY" } else { "GEN_CLUST_INDEX" }),
            Value::UInt(wanted.table),
            Value::Null,
            Value::Null,
            if data.is_empty() { Value::Null } else { Value::text(data.join(", ")) },
        ]);
    }
    Ok(rows)
}

/// One part of a key. Texts are in quotation marks.
fn shown(value: &Value) -> String {
    let mut text = String::new();
    push_text(value.as_ref(), &mut text);
    if value.as_ref().as_bytes().is_some() { format!("'{text}'") } else { text }
}

//! Tables that describe the server: variables, status, connections, engines, character sets, key caches.

use super::Definition;
use super::status;
use crate::accounts::Rights;
use crate::host::Process;
use crate::names::charsets::{CHARSETS, CollationInfo, short_name};
use crate::variables::{self, Scope};
use crate::{Progress, Session, SqlError};
use types::collation::definitions;
use types::{Decimal, Value};

const NAME_AND_VALUE: &str = "VARIABLE_NAME varchar(64) NOT NULL, VARIABLE_VALUE varchar(4096) NOT NULL";

pub(super) static DEFINITIONS: &[Definition] = &[
    ("GLOBAL_VARIABLES", NAME_AND_VALUE, |session| Ok(variable_rows(session, true))),
    ("SESSION_VARIABLES", NAME_AND_VALUE, |session| Ok(variable_rows(session, false))),
    ("GLOBAL_STATUS", NAME_AND_VALUE, |session| Ok(status_rows(session, true))),
    ("SESSION_STATUS", NAME_AND_VALUE, |session| Ok(status_rows(session, false))),
    (
        "KEY_CACHES",
        "KEY_CACHE_NAME varchar(192) NOT NULL, SEGMENTS int(3) unsigned, SEGMENT_NUMBER int(3) unsigned, \
         FULL_SIZE bigint(21) unsigned NOT NULL, BLOCK_SIZE bigint(21) unsigned NOT NULL, \
         USED_BLOCKS bigint(21) unsigned NOT NULL, UNUSED_BLOCKS bigint(21) unsigned NOT NULL, \
         DIRTY_BLOCKS bigint(21) unsigned NOT NULL, READ_REQUESTS bigint(21) unsigned NOT NULL, \
         READS bigint(21) unsigned NOT NULL, WRITE_REQUESTS bigint(21) unsigned NOT NULL, \
         WRITES bigint(21) unsigned NOT NULL",
        |session| Ok(status::key_caches(session)),
    ),
    (
        // Its own: who has how much of each key cache's bytes.
        "KEY_CACHE_SHARES",
        "KEY_CACHE_NAME varchar(192) NOT NULL, SHARE varchar(192) NOT NULL, BYTES bigint(21) unsigned NOT NULL, \
         FREE_BYTES bigint(21) unsigned NOT NULL, GHOST_HITS bigint(21) unsigned NOT NULL",
        |session| Ok(status::key_cache_shares(session)),
    ),
    (
        // Its own: the single rows that are kept in a key cache's bytes.
        "ROW_CACHE",
        "KEY_CACHE_NAME varchar(192) NOT NULL, SIZE bigint(21) unsigned NOT NULL, BYTES bigint(21) unsigned NOT NULL, \
         ROW_COUNT bigint(21) unsigned NOT NULL, ROW_OVERHEAD decimal(12,1) NOT NULL, HITS bigint(21) unsigned NOT NULL, \
         MISSES bigint(21) unsigned NOT NULL, FILLS bigint(21) unsigned NOT NULL, \
         EVICTIONS bigint(21) unsigned NOT NULL, INVALIDATIONS bigint(21) unsigned NOT NULL, \
         GHOST_HITS bigint(21) unsigned NOT NULL",
        |session| Ok(status::row_cache(session)),
    ),
    (
        "PROCESSLIST",
        "ID bigint(4) NOT NULL, USER varchar(128) NOT NULL, HOST varchar(64) NOT NULL, DB varchar(64), \
         COMMAND varchar(16) NOT NULL, TIME int(7) NOT NULL, STATE varchar(64), INFO longtext, \
         TIME_MS decimal(22,3) NOT NULL, STAGE tinyint(2) NOT NULL, MAX_STAGE tinyint(2) NOT NULL, \
         PROGRESS decimal(7,3) NOT NULL",
        processes,
    ),
    (
        "ENGINES",
        "ENGINE varchar(64) NOT NULL, SUPPORT varchar(8) NOT NULL, COMMENT varchar(160) NOT NULL, \
         TRANSACTIONS varchar(3), XA varchar(3), SAVEPOINTS varchar(3)",
        |session| Ok(engine_rows(session)),
    ),
    (
        "CHARACTER_SETS",
        "CHARACTER_SET_NAME varchar(32) NOT NULL, DEFAULT_COLLATE_NAME varchar(64) NOT NULL, \
         DESCRIPTION varchar(60) NOT NULL, MAXLEN bigint(3) NOT NULL",
        |_| Ok(charset_rows(false)),
    ),
    (
        "COLLATIONS",
        "COLLATION_NAME varchar(64) NOT NULL, CHARACTER_SET_NAME varchar(32), ID bigint(11), IS_DEFAULT varchar(3), \
         IS_COMPILED varchar(3) NOT NULL, SORTLEN bigint(3) NOT NULL",
        |_| Ok(collation_rows()),
    ),
    (
        "COLLATION_CHARACTER_SET_APPLICABILITY",
        "COLLATION_NAME varchar(64) NOT NULL, CHARACTER_SET_NAME varchar(32) NOT NULL, \
         FULL_COLLATION_NAME varchar(64) NOT NULL, ID bigint(11) NOT NULL, IS_DEFAULT varchar(3) NOT NULL",
        applicability,
    ),
    (
        "PLUGINS",
        "PLUGIN_NAME varchar(64) NOT NULL, PLUGIN_VERSION varchar(20) NOT NULL, \
         PLUGIN_STATUS varchar(16) NOT NULL, PLUGIN_TYPE varchar(80) NOT NULL, \
         PLUGIN_TYPE_VERSION varchar(20) NOT NULL, PLUGIN_LIBRARY varchar(64), \
         PLUGIN_LIBRARY_VERSION varchar(20), PLUGIN_AUTHOR varchar(64), PLUGIN_DESCRIPTION longtext, \
         PLUGIN_LICENSE varchar(80) NOT NULL, LOAD_OPTION varchar(64) NOT NULL, \
         PLUGIN_MATURITY varchar(12) NOT NULL, PLUGIN_AUTH_VERSION varchar(80)",
        plugins,
    ),
];

fn pair(name: String, value: String) -> Vec<Value> {
    vec![Value::text(name), Value::text(value)]
}

/// The names are in capitals, as MariaDB has them here.
fn variable_rows(session: &Session, global: bool) -> Vec<Vec<Value>> {
    show_variables(session, global)
        .into_iter()
        .map(|(name, value)| pair(name.to_ascii_uppercase(), value))
        .collect()
}

fn status_rows(session: &Session, global: bool) -> Vec<Vec<Value>> {
    status::rows(session, global)
        .into_iter()
        .map(|(name, value)| pair(name.to_ascii_uppercase(), value))
        .collect()
}

/// The rows of SHOW [GLOBAL | SESSION] VARIABLES.
pub(crate) fn show_variables(session: &Session, global: bool) -> Vec<(String, String)> {
    let values = session.instance.globals.values();
    let live = session.live();
    let mut rows = Vec::new();
    for named in variables::listed() {
        let definition = named.variable.definition();
        let setting = match (definition.scope, global) {
            (Scope::Session, true) => continue,
            (Scope::Global, _) | (Scope::Both, true) => values.get(named.variable).clone(),
            _ => {
                let asked = variables::Asked::Session;
                let read = session.variables.read(
                    &session.instance.globals,
                    asked,
                    named.variable,
                    named.name,
                    live,
                );
                match read {
                    Ok(setting) => setting,
                    Err(_) => continue,
                }
            }
        };
        rows.push((named.name.to_owned(), setting.show(definition).into_owned()));
    }
    rows
}

/// The connections that the session may see: without PROCESS, those of its own user.
pub(super) fn visible_processes(session: &Session) -> Vec<Process> {
    let Some(host) = session.instance.host() else { return Vec::new() };
    let mut processes = host.processes();
    if !session.access.global.contains(Rights::PROCESS) {
        processes.retain(|process| process.user == session.client.user);
    }
    processes
}

/// The columns of SHOW PROCESSLIST. Unless `full` is set, a statement is cut to 100 characters.
pub(crate) fn process_rows(session: &Session, full: bool) -> Vec<Vec<Value>> {
    visible_processes(session).into_iter().map(|process| process_row(process, full)).collect()
}

fn process_row(process: Process, full: bool) -> Vec<Value> {
    let info = process.info.map(|info| if full { info } else { info.chars().take(100).collect() });
    vec![
        Value::UInt(process.id),
        Value::text(process.user),
        Value::text(process.host),
        process.database.map_or(Value::Null, Value::text),
        Value::text(process.command),
        Value::Int((process.millis / 1000) as i64),
        Value::text(process.state),
        info.map_or(Value::Null, Value::text),
        thousandths(process.progress.overall()),
    ]
}

fn processes(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let of_process = |process: Process| {
        let Progress { stage, stages, done } = process.progress;
        let millis = Value::Decimal(Decimal::new(process.millis.into(), 3));
        let mut row = process_row(process, true);
        row.pop();
        row.extend([millis, Value::Int(stage.into()), Value::Int(stages.into()), thousandths(done)]);
        row
    };
    Ok(visible_processes(session).into_iter().map(of_process).collect())
}

/// Thousandths of a percent as percents.
fn thousandths(share: u32) -> Value {
    Value::Decimal(Decimal::new(share.into(), 3))
}

pub(crate) fn engine_rows(session: &Session) -> Vec<Vec<Value>> {
    let default = session.variables.values().text("default_storage_engine");
    let support = |name: &str| if default == name { "DEFAULT" } else { "YES" };
    let row = |name: &str, support: &str, comment: &str| {
        vec![
            Value::text(name),
            Value::text(support),
            Value::text(comment),
            // Transactions, XA and savepoints: whatever ENGINE= says, the table uses Latchwork's engine.
            Value::text("YES"),
            Value::text("NO"),
            Value::text("YES"),
        ]
    };
    vec![
        row("InnoDB", support("InnoDB"), "A name for tables of the engine Latchwork"),
        row(
            "Latchwork",
            support("Latchwork"),
            "Clustered B+trees in a segmented page cache; every table is one",
        ),
        row("MyISAM", support("MyISAM"), "A name for tables of the engine Latchwork"),
        row("Aria", support("Aria"), "A name for tables of the engine Latchwork"),
        row("MEMORY", support("MEMORY"), "A name for tables of the engine Latchwork; they are kept on disk"),
    ]
}

/// The rows of CHARACTER_SETS. With `show`, those of SHOW CHARACTER SET, where the description comes second.
pub(crate) fn charset_rows(show: bool) -> Vec<Vec<Value>> {
    CHARSETS
        .iter()
        .map(|charset| {
            let mut row = vec![
                Value::text(charset.name),
                Value::text(charset.collation_default),
                Value::text(charset.description),
                Value::Int(charset.bytes_max.into()),
            ];
            if show {
                row.swap(1, 2);
            }
            row
        })
        .collect()
}

fn yes_if(default: bool) -> Value {
    Value::text(if default { "Yes" } else { "" })
}

/// Those of UCA 14.0.0 stand here once for all character sets, as in MariaDB.
pub(crate) fn collation_rows() -> Vec<Vec<Value>> {
    let row = |collation: &CollationInfo| {
        let short = short_name(collation);
        if short.is_some() && collation.charset != "utf8mb4" {
            return None;
        }
        let known = |value: Value| if short.is_some() { Value::Null } else { value };
        Some(vec![
            Value::text(short.unwrap_or(collation.name)),
            known(Value::text(collation.charset)),
            known(Value::Int(collation.id.into())),
            known(yes_if(collation.is_default())),
            Value::text("Yes"),
            Value::Int(collation.sort_length.into()),
        ])
    };
    definitions().iter().filter_map(row).collect()
}

fn applicability(_session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let row = |collation: &CollationInfo| {
        vec![
            Value::text(short_name(collation).unwrap_or(collation.name)),
            Value::text(collation.charset),
            Value::text(collation.name),
            Value::Int(collation.id.into()),
            yes_if(collation.is_default()),
        ]
    };
    Ok(definitions().iter().map(row).collect())
}

/// The rows of SHOW PLUGINS.
pub(crate) fn plugin_rows(session: &Session) -> Vec<Vec<Value>> {
    let check = ("simple_password_check", "PASSWORD VALIDATION");
    let checks = session.instance.accounts.checks_passwords();
    [("mysql_native_password", "AUTHENTICATION"), ("Latchwork", "STORAGE ENGINE"), ("SERVER_AUDIT", "AUDIT")]
        .into_iter()
        .chain(checks.then_some(check))
        .map(|(name, kind)| {
            vec![
                Value::text(name),
                Value::text("ACTIVE"),
                Value::text(kind),
                Value::Null,
                Value::text("Apache-2.0 OR MIT"),
            ]
        })
        .collect()
}

pub(super) fn plugins(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    Ok(plugin_rows(session)
        .into_iter()
        .map(|mut row| {
            let license = row.pop().unwrap_or(Value::Null);
            let library = row.pop().unwrap_or(Value::Null);
            row.insert(1, Value::text("1.0"));
            row.extend([
                Value::text("1.0"),
                library,
                Value::Null,
                Value::text("Latchwork"),
                Value::text(""),
                license,
                Value::text("FORCE"),
                Value::text("Stable"),
                Value::text("1.0"),
            ]);
            row
        })
        .collect())
}

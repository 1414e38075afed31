//! The tables in which accounts are kept: reading them into a book, and writing what has changed.
//!
//! They are tables as any other, so a change of accounts is a transaction: it is in the log, and after a
//! crash all of it is there or nothing. Columns are named as in MariaDB; what is an ENUM or a SET there is a
//! text here.

use crate::accounts::book::{Book, TableGrant};
use crate::accounts::{Account, Grantee, Rights};
use crate::error::PRODUCT;
use crate::names::MYSQL;
use crate::statements::admin::plugins::PASSWORD_CHECK;
use crate::{ColumnMeta, Completion, ErrorKind, Instance, ResultSink, Session, SqlError};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{Value, ValueRef};

/// The columns of `mysql.db` that have a right each.
fn database_rights() -> impl Iterator<Item = (Rights, String)> {
    let named = Rights::NAMED.iter().filter(|(right, ..)| Rights::OF_DATABASES.contains(*right));
    named.map(|(right, _, column)| (*right, format!("{column}_priv")))
}

/// Keys of several names need large pages, whatever pages the tables of the data directory have.
const OPTIONS: &str = "PAGE_SIZE=16384";

/// A session for the server's own statements, which nobody is asked for.
struct Own(Session);

/// Keeps the rows of a result.
#[derive(Default)]
struct Gathered(Vec<Vec<Value>>);

impl ResultSink for Gathered {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<(), SqlError> {
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.0.push(row.iter().map(ValueRef::to_value).collect());
        Ok(())
    }

    fn end(&mut self, _: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

impl Own {
    fn new(instance: &Arc<Instance>) -> Result<Own, SqlError> {
        let mut own = Own(Session::new(instance.clone(), 0, "", ""));
        instance.status.leave_out(&own.0.counters);
        // Global settings of the administrator are for clients.
        own.run(
            "SET SESSION sql_mode = 'STRICT_TRANS_TABLES', autocommit = 1, sql_select_limit = 18446744073709551615, \
             max_statement_time = 0, tx_read_only = 0, sql_safe_updates = 0",
        )?;
        Ok(own)
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, SqlError> {
        let mut gathered = Gathered::default();
        self.0.query(sql.as_bytes(), &mut gathered)?;
        Ok(gathered.0)
    }

    fn run(&mut self, sql: &str) -> Result<(), SqlError> {
        self.rows(sql).map(drop)
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

/// Makes the database and the tables that are missing, with `root` in them if there was no account at all.
/// `root` are the accounts of a data directory that has none.
fn create_missing(own: &mut Own, root: &[Account]) -> Result<(), SqlError> {
    let instance = own.0.instance.clone();
    if !instance.database_exists(MYSQL) {
        own.run("CREATE DATABASE mysql")?;
    }
    own.run("USE mysql")?;
    let host = "Host VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''";
    let name = |name: &str, chars: u32| {
        format!("{name} VARCHAR({chars}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''")
    };
    let (database, user) = (name("Db", 64), name("User", 128));
    let (table, column) = (name("Table_name", 64), name("Column_name", 64));
    let yes_no: Vec<String> =
        database_rights().map(|(_, column)| format!("{column} CHAR(1) NOT NULL DEFAULT 'N'")).collect();
    own.run(&format!(
        "CREATE TABLE IF NOT EXISTS db ({host}, {database}, {user}, {}, PRIMARY KEY (Host, Db, User), KEY User (User)) \
         {OPTIONS} COMMENT='Database privileges'",
        yes_no.join(", ")
    ))?;
    own.run(&format!(
        "CREATE TABLE IF NOT EXISTS tables_priv ({host}, {database}, {user}, {table}, \
         Grantor VARCHAR(384) NOT NULL DEFAULT '', \
         Timestamp TIMESTAMP NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(), \
         Table_priv VARCHAR(255) NOT NULL DEFAULT '', Column_priv VARCHAR(64) NOT NULL DEFAULT '', \
         PRIMARY KEY (Host, Db, User, Table_name)) {OPTIONS} COMMENT='Table privileges'"
    ))?;
    own.run(&format!(
        "CREATE TABLE IF NOT EXISTS columns_priv ({host}, {database}, {user}, {table}, {column}, \
         Timestamp TIMESTAMP NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(), \
         Column_priv VARCHAR(64) NOT NULL DEFAULT '', \
         PRIMARY KEY (Host, Db, User, Table_name, Column_name)) {OPTIONS} COMMENT='Column privileges'"
    ))?;
    own.run(&format!(
        "CREATE TABLE IF NOT EXISTS roles_mapping ({host}, {user}, {}, Admin_option CHAR(1) NOT NULL DEFAULT 'N', \
         PRIMARY KEY (Host, User, Role)) {OPTIONS} COMMENT='Granted roles'",
        name("Role", 128)
    ))?;
    own.run(
        "CREATE TABLE IF NOT EXISTS plugin (name VARCHAR(64) NOT NULL DEFAULT '', \
         dl VARCHAR(128) NOT NULL DEFAULT '', PRIMARY KEY (name)) COMMENT='MySQL plugins'",
    )?;
    // Dumps want these two. Nothing is written to them: the logs are files.
    own.run(
        "CREATE TABLE IF NOT EXISTS general_log (event_time TIMESTAMP(6) NOT NULL, user_host MEDIUMTEXT NOT NULL, \
         thread_id BIGINT UNSIGNED NOT NULL, server_id INT UNSIGNED NOT NULL, command_type VARCHAR(64) NOT NULL, \
         argument MEDIUMTEXT NOT NULL) COMMENT='General log'",
    )?;
    own.run(
        "CREATE TABLE IF NOT EXISTS slow_log (start_time TIMESTAMP(6) NOT NULL, user_host MEDIUMTEXT NOT NULL, \
         query_time TIME(6) NOT NULL, lock_time TIME(6) NOT NULL, rows_sent BIGINT UNSIGNED NOT NULL, \
         rows_examined BIGINT UNSIGNED NOT NULL, db VARCHAR(512) NOT NULL, last_insert_id INT NOT NULL, \
         insert_id INT NOT NULL, server_id INT UNSIGNED NOT NULL, sql_text MEDIUMTEXT NOT NULL, \
         thread_id BIGINT UNSIGNED NOT NULL, rows_affected BIGINT UNSIGNED NOT NULL) COMMENT='Slow log'",
    )?;
    // This table comes last: where it is, all of them are. The first account comes with it, in a row of its
    // own statement, and a crash in between is mended by the next start.
    own.run(&format!(
        "CREATE TABLE IF NOT EXISTS global_priv ({host}, {user}, Priv LONGTEXT CHARACTER SET utf8mb4 \
         COLLATE utf8mb4_bin NOT NULL, PRIMARY KEY (Host, User)) {OPTIONS} COMMENT='Users and global privileges'"
    ))?;
    if own.rows("SELECT 1 FROM global_priv LIMIT 1")?.is_empty() {
        for account in root {
            write_account(own, account)?;
        }
    }
    Ok(())
}

/// Reads all tables.
fn load(own: &mut Own) -> Result<Book, SqlError> {
    let mut book = Book::default();
    for row in own.rows("SELECT Host, User, Priv FROM mysql.global_priv")? {
        let account = Account::parse(&text(&row[1]), &text(&row[0]), &text(&row[2]));
        book.accounts.insert(account.name.clone(), Arc::new(account));
    }
    let columns: Vec<(Rights, String)> = database_rights().collect();
    let names: Vec<&str> = columns.iter().map(|(_, column)| column.as_str()).collect();
    for row in own.rows(&format!("SELECT Host, Db, User, {} FROM mysql.db", names.join(", ")))? {
        let grantee = Grantee::new(&text(&row[2]), &text(&row[0]));
        let given = columns.iter().zip(&row[3..]).filter(|(_, value)| text(value).eq_ignore_ascii_case("Y"));
        let rights = given.fold(Rights::NONE, |all, ((right, _), _)| all | *right);
        book.databases.insert((grantee, text(&row[1])), rights);
    }
    for row in own.rows("SELECT Host, Db, User, Table_name, Grantor, Table_priv FROM mysql.tables_priv")? {
        let grantee = Grantee::new(&text(&row[2]), &text(&row[0]));
        let grant = TableGrant {
            rights: rights_of_set(&text(&row[5])),
            grantor: text(&row[4]),
            columns: BTreeMap::new(),
        };
        book.tables.insert((grantee, text(&row[1]), text(&row[3])), grant);
    }
    for row in
        own.rows("SELECT Host, Db, User, Table_name, Column_name, Column_priv FROM mysql.columns_priv")?
    {
        let grantee = Grantee::new(&text(&row[2]), &text(&row[0]));
        let grant = book.tables.entry((grantee, text(&row[1]), text(&row[3]))).or_default();
        grant.columns.insert(text(&row[4]), rights_of_set(&text(&row[5])));
    }
    for row in own.rows("SELECT Host, User, Role, Admin_option FROM mysql.roles_mapping")? {
        let grantee = Grantee::new(&text(&row[1]), &text(&row[0]));
        book.roles.insert((grantee, text(&row[2])), text(&row[3]).eq_ignore_ascii_case("Y"));
    }
    Ok(book)
}

/// How `tables_priv` and `columns_priv` name a right: as GRANT does, with a capital letter at the start.
fn set_name(right: &str) -> String {
    let lower = match right {
        "GRANT OPTION" => "grant".to_owned(),
        "DELETE HISTORY" => "delete versioning rows".to_owned(),
        "CREATE VIEW" => "create View".to_owned(),
        name => name.to_ascii_lowercase(),
    };
    lower[..1].to_ascii_uppercase() + &lower[1..]
}

fn rights_of_set(set: &str) -> Rights {
    let of = |name: &str| {
        let named = Rights::NAMED.iter().find(|(_, right, _)| set_name(right).eq_ignore_ascii_case(name));
        named.map_or(Rights::NONE, |(right, ..)| *right)
    };
    set.split(',').fold(Rights::NONE, |all, name| all | of(name))
}

fn set_of_rights(rights: Rights) -> String {
    rights.names().map(set_name).collect::<Vec<_>>().join(",")
}

fn write_account(own: &mut Own, account: &Account) -> Result<(), SqlError> {
    let (host, user) = (quoted(&account.name.host), quoted(&account.name.user));
    let before =
        own.rows(&format!("SELECT Priv FROM mysql.global_priv WHERE Host = {host} AND User = {user}"))?;
    let before = before.first().map_or(String::new(), |row| text(&row[0]));
    let new = quoted(&account.to_text(&before));
    own.run(&format!("REPLACE INTO mysql.global_priv (Host, User, Priv) VALUES ({host}, {user}, {new})"))
}

/// The keys whose values differ between two maps, with the value in the new one.
fn changes<'m, K: Ord + Clone, V: PartialEq>(
    old: &'m BTreeMap<K, V>,
    new: &'m BTreeMap<K, V>,
) -> Vec<(&'m K, Option<&'m V>)> {
    let gone = old.keys().filter(|key| !new.contains_key(key)).map(|key| (key, None));
    let other = new.iter().filter(|(key, value)| old.get(key) != Some(*value));
    gone.chain(other.map(|(key, value)| (key, Some(value)))).collect()
}

fn write_changes(own: &mut Own, old: &Book, new: &Book) -> Result<(), SqlError> {
    let who = |name: &Grantee| format!("Host = {} AND User = {}", quoted(&name.host), quoted(&name.user));
    let named = |name: &Grantee| (quoted(&name.host), quoted(&name.user));
    for (name, account) in changes(&old.accounts, &new.accounts) {
        match account {
            Some(account) => write_account(own, account)?,
            None => own.run(&format!("DELETE FROM mysql.global_priv WHERE {}", who(name)))?,
        }
    }
    for ((name, database), rights) in changes(&old.databases, &new.databases) {
        let database = quoted(database);
        let Some(rights) = rights else {
            own.run(&format!("DELETE FROM mysql.db WHERE {} AND Db = {database}", who(name)))?;
            continue;
        };
        let columns: Vec<(Rights, String)> = database_rights().collect();
        let names: Vec<&str> = columns.iter().map(|(_, column)| column.as_str()).collect();
        let flag = |right: &Rights| if rights.contains(*right) { "'Y'" } else { "'N'" };
        let flags: Vec<&str> = columns.iter().map(|(right, _)| flag(right)).collect();
        let (host, user) = named(name);
        own.run(&format!(
            "REPLACE INTO mysql.db (Host, Db, User, {}) VALUES ({host}, {database}, {user}, {})",
            names.join(", "),
            flags.join(", ")
        ))?;
    }
    for ((name, database, table), grant) in changes(&old.tables, &new.tables) {
        let (database, table) = (quoted(database), quoted(table));
        let of_table = format!("{} AND Db = {database} AND Table_name = {table}", who(name));
        own.run(&format!("DELETE FROM mysql.columns_priv WHERE {of_table}"))?;
        let Some(grant) = grant else {
            own.run(&format!("DELETE FROM mysql.tables_priv WHERE {of_table}"))?;
            continue;
        };
        let (host, user) = named(name);
        own.run(&format!(
            "REPLACE INTO mysql.tables_priv (Host, Db, User, Table_name, Grantor, Table_priv, Column_priv) \
             VALUES ({host}, {database}, {user}, {table}, {}, {}, {})",
            quoted(&grant.grantor),
            quoted(&set_of_rights(grant.rights)),
            quoted(&set_of_rights(grant.of_columns()))
        ))?;
        for (column, rights) in &grant.columns {
            own.run(&format!(
                "INSERT INTO mysql.columns_priv (Host, Db, User, Table_name, Column_name, Column_priv) \
                 VALUES ({host}, {database}, {user}, {table}, {}, {})",
                quoted(column),
                quoted(&set_of_rights(*rights))
            ))?;
        }
    }
    for ((name, role), passes) in changes(&old.roles, &new.roles) {
        let role = quoted(role);
        let Some(passes) = passes else {
            own.run(&format!("DELETE FROM mysql.roles_mapping WHERE {} AND Role = {role}", who(name)))?;
            continue;
        };
        let (host, user) = named(name);
        let passes = if *passes { "'Y'" } else { "'N'" };
        own.run(&format!(
            "REPLACE INTO mysql.roles_mapping (Host, User, Role, Admin_option) VALUES ({host}, {user}, {role}, {passes})"
        ))?;
    }
    Ok(())
}

/// Reads the accounts of a data directory, at the start of a server. `first` are those of a directory that
/// has none yet.
///
/// # Errors
/// Those of reading and of making the tables.
pub fn open_accounts(instance: &Arc<Instance>, first: &[Account]) -> Result<(), SqlError> {
    let mut own = Own::new(instance)?;
    create_missing(&mut own, first)?;
    let check = own.rows(&format!("SELECT 1 FROM mysql.plugin WHERE name = '{PASSWORD_CHECK}'"))?;
    instance.accounts.set_checks_passwords(!check.is_empty());
    instance.accounts.put(load(&mut own)?);
    Ok(())
}

/// Switches the check of new passwords on or off, also for later starts of the server.
///
/// # Errors
/// Those of writing.
pub(crate) fn switch_password_check(session: &mut Session, on: bool) -> Result<(), SqlError> {
    super::begin(session)?;
    let instance = &session.instance;
    let _changing = instance.accounts.begin_change();
    // A server without accounts has no tables for them.
    if instance.accounts.are_on() {
        Own::new(instance)?.run(&match on {
            true => format!("REPLACE INTO mysql.plugin VALUES ('{PASSWORD_CHECK}', '{PASSWORD_CHECK}.so')"),
            false => format!("DELETE FROM mysql.plugin WHERE name = '{PASSWORD_CHECK}'"),
        })?;
    }
    instance.accounts.set_checks_passwords(on);
    Ok(())
}

/// FLUSH PRIVILEGES: reads the tables again, in which somebody may have changed rows.
///
/// # Errors
/// Those of reading.
pub(crate) fn reload(instance: &Arc<Instance>) -> Result<(), SqlError> {
    let _changing = instance.accounts.begin_change();
    let book = load(&mut Own::new(instance)?)?;
    instance.accounts.put(book);
    Ok(())
}

/// Changes the book, the tables first. If `change` gives an error, nothing changes.
///
/// # Errors
/// Those of `change` and of writing; 1290 for a server without accounts.
pub(super) fn change<T>(
    instance: &Arc<Instance>,
    change: impl FnOnce(&mut Book) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let _changing = instance.accounts.begin_change();
    let Some((old, _)) = instance.accounts.book() else { return Err(without_accounts()) };
    let mut new = (*old).clone();
    let result = change(&mut new)?;
    let mut own = Own::new(instance)?;
    own.run("BEGIN")?;
    let written = write_changes(&mut own, &old, &new);
    own.run(if written.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    written?;
    instance.accounts.put(new);
    Ok(result)
}

/// 1290: the server was started without accounts.
pub(super) fn without_accounts() -> SqlError {
    SqlError::new(
        ErrorKind::OptionPreventsStatement,
        format!(
            "The {PRODUCT} server is running with the --skip-grant-tables option so it cannot execute this statement"
        ),
    )
}

//! The values of one session, and reading and setting variables by scope.

use super::assign::{self, Assigned};
use super::definition::{Kind, Scope};
use super::globals::{Globals, Values};
use super::{Setting, Variable, find};
use crate::names::charsets;
use crate::text::LexicalMode;
use crate::variables::join_methods::JoinMethods;
use crate::variables::time_zones::Zone;
use crate::warning::Warnings;
use crate::{ErrorKind, SqlError};
use engine::Isolation;
use types::Collation;

/// The bits of `sql_mode`, numbered as MariaDB numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SqlMode(pub u64);

impl SqlMode {
    pub(crate) const PIPES_AS_CONCAT: SqlMode = SqlMode(1 << 1);
    pub(crate) const ANSI_QUOTES: SqlMode = SqlMode(1 << 2);
    pub const IGNORE_SPACE: SqlMode = SqlMode(1 << 3);
    pub(crate) const ANSI: SqlMode = SqlMode(1 << 18);
    pub(crate) const NO_AUTO_VALUE_ON_ZERO: SqlMode = SqlMode(1 << 19);
    pub(crate) const NO_BACKSLASH_ESCAPES: SqlMode = SqlMode(1 << 20);
    pub(crate) const STRICT_TRANS_TABLES: SqlMode = SqlMode(1 << 21);
    pub(crate) const STRICT_ALL_TABLES: SqlMode = SqlMode(1 << 22);
    pub(crate) const NO_ZERO_IN_DATE: SqlMode = SqlMode(1 << 23);
    pub(crate) const NO_ZERO_DATE: SqlMode = SqlMode(1 << 24);
    pub(crate) const ERROR_FOR_DIVISION_BY_ZERO: SqlMode = SqlMode(1 << 26);
    pub(crate) const TRADITIONAL: SqlMode = SqlMode(1 << 27);
    pub(crate) const NO_AUTO_CREATE_USER: SqlMode = SqlMode(1 << 28);
    pub(crate) const HIGH_NOT_PRECEDENCE: SqlMode = SqlMode(1 << 29);
    pub(crate) const NO_ENGINE_SUBSTITUTION: SqlMode = SqlMode(1 << 30);

    pub const fn contains(self, other: SqlMode) -> bool {
        self.0 & other.0 == other.0
    }

    /// Strict mode: a value that does not fit is an error. A statement here changes all its rows or none, so
    /// both strict modes mean the same.
    pub(crate) const fn is_strict(self) -> bool {
        self.0 & (SqlMode::STRICT_TRANS_TABLES.0 | SqlMode::STRICT_ALL_TABLES.0) != 0
    }

    /// GRANT makes an account that is not there, even if it says nothing of a password.
    pub(crate) const fn auto_creates_users(self) -> bool {
        !self.contains(SqlMode::NO_AUTO_CREATE_USER)
    }

    /// The part of it that says how the text of statements is read.
    pub(crate) const fn lexical(self) -> LexicalMode {
        LexicalMode::NONE
            .with(LexicalMode::NO_BACKSLASH_ESCAPES, self.contains(SqlMode::NO_BACKSLASH_ESCAPES))
            .with(LexicalMode::ANSI_QUOTES, self.contains(SqlMode::ANSI_QUOTES))
            .with(LexicalMode::PIPES_AS_CONCAT, self.contains(SqlMode::PIPES_AS_CONCAT))
            .with(LexicalMode::HIGH_NOT_PRECEDENCE, self.contains(SqlMode::HIGH_NOT_PRECEDENCE))
    }

    /// True for the modes of other dialects whose words or quotes no lexer here knows. They are refused.
    pub(crate) const fn is_foreign(self) -> bool {
        const ORACLE: u64 = 1 << 9;
        const MSSQL: u64 = 1 << 10;
        self.0 & (ORACLE | MSSQL) != 0
    }

    /// Adds the modes that the combined ones (ANSI, TRADITIONAL, ...) stand for.
    pub const fn expanded(self) -> SqlMode {
        const FOREIGN: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 13 | 1 << 14 | 1 << 15;
        let mut bits = self.0;
        if bits & SqlMode::ANSI.0 != 0 {
            bits |= 1 | 1 << 1 | 1 << 2 | 1 << 3;
        }
        // POSTGRESQL, ORACLE, MSSQL, DB2, MAXDB.
        if bits & (0b11111 << 8) != 0 {
            bits |= FOREIGN;
        }
        if bits & (1 << 9 | 1 << 12) != 0 {
            bits |= SqlMode::NO_AUTO_CREATE_USER.0;
        }
        // MYSQL323, MYSQL40.
        if bits & (1 << 16 | 1 << 17) != 0 {
            bits |= SqlMode::HIGH_NOT_PRECEDENCE.0;
        }
        if bits & SqlMode::TRADITIONAL.0 != 0 {
            bits |= SqlMode::STRICT_TRANS_TABLES.0
                | SqlMode::STRICT_ALL_TABLES.0
                | SqlMode::NO_ZERO_IN_DATE.0
                | SqlMode::NO_ZERO_DATE.0
                | SqlMode::ERROR_FOR_DIVISION_BY_ZERO.0
                | SqlMode::NO_AUTO_CREATE_USER.0
                | SqlMode::NO_ENGINE_SUBSTITUTION.0;
        }
        SqlMode(bits)
    }
}

/// How many bytes of rows a statement keeps in memory, before it writes them to files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryLimits {
    /// `sort_buffer_size`: the rows of an ORDER BY.
    pub sort_bytes: usize,
    /// The smaller of `tmp_memory_table_size` and `max_heap_table_size`: groups, the keys of DISTINCT, the
    /// rows of a derived table.
    pub table_bytes: usize,
    /// The larger of `join_buffer_size` and `table_bytes`: the table of a hash join.
    pub join_bytes: usize,
    /// `group_concat_max_len`: the text of one GROUP_CONCAT.
    pub concat_bytes: usize,
    /// `max_session_mem_used`: everything that the session keeps.
    pub session_bytes: u64,
}

impl MemoryLimits {
    fn unpack(values: &Values) -> MemoryLimits {
        let bytes = |name| usize::try_from(values.unsigned(name)).unwrap_or(usize::MAX);
        let table_bytes = bytes("tmp_memory_table_size").min(bytes("max_heap_table_size"));
        MemoryLimits {
            sort_bytes: bytes("sort_buffer_size"),
            table_bytes,
            join_bytes: bytes("join_buffer_size").max(table_bytes),
            concat_bytes: bytes("group_concat_max_len"),
            session_bytes: values.unsigned("max_session_mem_used"),
        }
    }
}

/// The values that statements read often, unpacked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Common {
    pub autocommit: bool,
    pub sql_mode: SqlMode,
    /// `lc_time_names`, as a number.
    pub time_locale: usize,
    /// The bits of `default_regex_flags`.
    pub regex_flags: u64,
    /// How statements are read, from `sql_mode`.
    pub lexical: LexicalMode,
    pub sql_notes: bool,
    /// `max_recursive_iterations`.
    pub recursions_max: u64,
    pub sql_safe_updates: bool,
    pub foreign_key_checks: bool,
    pub check_constraint_checks: bool,
    pub sql_select_limit: u64,
    /// From `optimizer_switch`.
    pub join_methods: JoinMethods,
    pub auto_increment_increment: u64,
    pub auto_increment_offset: u64,
    pub div_precision_increment: u8,
    pub max_error_count: usize,
    /// `max_statement_time`; 0 without a limit.
    pub statement_micros: u64,
    pub max_allowed_packet: u64,
    /// `tx_isolation`.
    pub isolation: Isolation,
    pub tx_read_only: bool,
    /// `completion_type`.
    pub completion: Completes,
    /// `session_track_transaction_info`.
    pub transaction_info: TransactionInfo,
    /// `lock_wait_timeout`, for tables.
    pub lock_wait_seconds: u64,
    /// `innodb_lock_wait_timeout`, for rows.
    pub row_lock_wait_seconds: u64,
    /// `innodb_snapshot_isolation`.
    pub first_committer_wins: bool,
    /// `collation_connection`.
    pub connection: Collation,
    pub memory: MemoryLimits,
}

/// One session's values.
#[derive(Clone, Debug)]
pub struct SessionVariables {
    values: Values,
    /// Unpacked from `values` after each change.
    pub common: Common,
    /// `time_zone`.
    zone: Zone,
    /// LAST_INSERT_ID(): the first number that the last INSERT generated.
    pub last_insert_id: u64,
    /// `SET insert_id = n`: the number for the next AUTO_INCREMENT column.
    pub insert_id: Option<u64>,
    /// `SET timestamp = t`: the clock stands still at this time, in seconds since 1970.
    pub fixed_timestamp: Option<f64>,
    pub pseudo_thread_id: u64,
    /// The variables that were set since [`SessionVariables::take_changed`]. `None` if nobody asks.
    changed: Option<Vec<Variable>>,
}

/// Values that the session knows and that are not in the table of values.
#[derive(Clone, Copy, Default, Debug)]
pub struct Live {
    pub warning_count: u64,
    pub error_count: u64,
    pub in_transaction: bool,
}

/// The scope before a name, as in `@@global.x` or `SET SESSION x`. Without one, the session's value is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    Unscoped,
    Session,
    Global,
}

impl SessionVariables {
    pub fn new(globals: &Globals) -> SessionVariables {
        let values = globals.values();
        let common = unpack(&values);
        SessionVariables {
            zone: zone_of(&values),
            values,
            common,
            last_insert_id: 0,
            insert_id: None,
            fixed_timestamp: None,
            pseudo_thread_id: 0,
            changed: None,
        }
    }

    /// `time_zone`.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// From now on it is noted which variables are set, or no longer.
    pub(crate) fn note_changes(&mut self, on: bool) {
        self.changed = on.then(Vec::new);
    }

    /// The variables that were set since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<Variable> {
        self.changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, variable: Variable) {
        if let Some(changed) = &mut self.changed
            && !changed.contains(&variable)
        {
            changed.push(variable);
        }
    }

    fn note_named(&mut self, name: &str) {
        if let Some(variable) = find(name) {
            self.note(variable);
        }
    }

    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Stores a session value without any check.
    pub fn store(&mut self, variable: Variable, setting: Setting) {
        self.values.set(variable, setting);
        self.common = unpack(&self.values);
        self.zone = zone_of(&self.values);
    }

    fn store_named(&mut self, name: &str, setting: Setting) {
        if let Some(variable) = find(name) {
            self.values.set(variable, setting);
        }
    }

    /// The value of `@@x`, `@@session.x` or `@@global.x`.
    ///
    /// # Errors
    /// 1238 for a scope that the variable does not have.
    pub fn read(
        &self,
        globals: &Globals,
        asked: Asked,
        variable: Variable,
        name: &str,
        live: Live,
    ) -> Result<Setting, SqlError> {
        let wrong_scope = |scope: &str| {
            Err(SqlError::new(
                ErrorKind::WrongScopeOfVariable,
                format!("Variable '{name}' is a {scope} variable"),
            ))
        };
        match (asked, variable.definition().scope) {
            (Asked::Session, Scope::Global) => wrong_scope("GLOBAL"),
            (Asked::Global, Scope::Session) => wrong_scope("SESSION"),
            (Asked::Global, _) | (_, Scope::Global) => Ok(globals.get(variable)),
            (_, Scope::Both) => Ok(self.values.get(variable).clone()),
            (_, Scope::Session) => Ok(self.read_session_only(variable, live)),
        }
    }

    fn read_session_only(&self, variable: Variable, live: Live) -> Setting {
        match variable.definition().name {
            "last_insert_id" => Setting::Unsigned(self.last_insert_id),
            "insert_id" => Setting::Unsigned(self.insert_id.unwrap_or(0)),
            "timestamp" => Setting::Double(self.timestamp()),
            "pseudo_thread_id" => Setting::Unsigned(self.pseudo_thread_id),
            "warning_count" => Setting::Unsigned(live.warning_count),
            "error_count" => Setting::Unsigned(live.error_count),
            "in_transaction" => Setting::Unsigned(u64::from(live.in_transaction)),
            _ => self.values.get(variable).clone(),
        }
    }

    /// The session's clock, in seconds since 1970.
    pub fn timestamp(&self) -> f64 {
        self.fixed_timestamp.unwrap_or_else(|| {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0.0, |since| since.as_micros() as f64 / 1e6)
        })
    }

    /// The first half of an assignment: checks scope and value. Nothing changes yet.
    ///
    /// # Errors
    /// 1228, 1229, 1230, 1238 and 1621 for a variable that cannot be set like this, and those of
    /// [`assign::check`](super::assign::check).
    pub fn check(
        &self,
        globals: &Globals,
        asked: Asked,
        variable: Variable,
        name: &str,
        value: Assigned<'_>,
        warnings: &mut Warnings,
    ) -> Result<Setting, SqlError> {
        let definition = variable.definition();
        let error = |kind, text: String| Err(SqlError::new(kind, text));
        if !definition.dynamic {
            return error(
                ErrorKind::WrongScopeOfVariable,
                format!("Variable '{name}' is a read only variable"),
            );
        }
        match (asked, definition.scope) {
            (Asked::Global, Scope::Session) => {
                return error(
                    ErrorKind::LocalVariable,
                    format!("Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL"),
                );
            }
            (Asked::Unscoped | Asked::Session, Scope::Global) => {
                return error(
                    ErrorKind::GlobalVariable,
                    format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"),
                );
            }
            (Asked::Unscoped | Asked::Session, Scope::Both) if !definition.session_dynamic => {
                return error(
                    ErrorKind::ReadOnlyVariable,
                    format!("SESSION variable '{name}' is read-only. Use SET GLOBAL to assign the value"),
                );
            }
            _ => {}
        }
        if value != Assigned::Default {
            let setting = assign::check(definition, name, value, self.common.sql_mode, warnings)?;
            let is_refused = assign::unkept_promise(definition, &setting).is_some()
                || LOG_FILES.contains(&definition.name) && !may_be_log(globals, variable, &setting);
            return if is_refused { Err(assign::refused_value(name, value)) } else { Ok(setting) };
        }
        match (asked, definition.scope) {
            (Asked::Global, _) => Ok(globals.default_of(variable)),
            (_, Scope::Both) => Ok(globals.get(variable)),
            _ if definition.name == "timestamp" => Ok(Setting::Double(0.0)),
            _ => Err(SqlError::new(
                ErrorKind::NoDefault,
                format!("Variable '{name}' doesn't have a default value"),
            )),
        }
    }

    /// The second half: stores the result of [`SessionVariables::check`], and changes what depends on it.
    ///
    /// # Errors
    /// If the change of a global variable cannot take effect, or the variable cannot be set in a transaction.
    pub fn apply(
        &mut self,
        globals: &Globals,
        asked: Asked,
        variable: Variable,
        setting: Setting,
    ) -> Result<(), SqlError> {
        let name = variable.definition().name;
        if asked == Asked::Global {
            // Whatever it is that holds these variables.
            if name == "key_buffer_size" && setting == Setting::Unsigned(0) {
                return Err(engine::Error::DefaultCache.into());
            }
            let linked = linked(name, &setting);
            globals.set(variable, setting)?;
            if let Some((other, setting)) = linked
                && let Some(other) = find(other)
            {
                globals.set(other, setting)?;
            }
            return Ok(());
        }
        if let Some((other, setting)) = linked(name, &setting) {
            self.store_named(other, setting);
        }
        match (name, &setting) {
            ("last_insert_id", Setting::Unsigned(value)) => self.last_insert_id = *value,
            ("insert_id", Setting::Unsigned(value)) => {
                self.insert_id = Some(*value).filter(|value| *value != 0)
            }
            ("timestamp", Setting::Double(value)) => {
                self.fixed_timestamp = Some(*value).filter(|value| *value != 0.0);
            }
            ("pseudo_thread_id", Setting::Unsigned(value)) => self.pseudo_thread_id = *value,
            ("query_cache_type", Setting::Choice(position)) if *position != 0 => {
                return Err(SqlError::new(
                    ErrorKind::CannotSetInTransaction,
                    "Query cache is globally disabled and you can't enable it only for this session",
                ));
            }
            _ => {}
        }
        self.store(variable, setting);
        self.note(variable);
        Ok(())
    }

    /// SET NAMES, also for the character set in the handshake. `None` for either name means its default.
    pub(crate) fn set_names(
        &mut self,
        charset: Option<&str>,
        collation: Option<&str>,
    ) -> Result<(), SqlError> {
        let default = self.values.text("character_set_server");
        let name = charset.unwrap_or(&default);
        let charset = charsets::charset(name).ok_or_else(|| assign::unknown_charset(name))?;
        let collation = match collation {
            None => charset.collation_default,
            Some(name) => {
                let found = charsets::collation_in(name, charset.name)
                    .ok_or_else(|| assign::unknown_collation(name))?;
                if found.charset != charset.name {
                    return Err(SqlError::new(
                        ErrorKind::CollationCharacterSetMismatch,
                        format!(
                            "COLLATION '{}' is not valid for CHARACTER SET '{}'",
                            found.name, charset.name
                        ),
                    ));
                }
                found.name
            }
        };
        assign::usable(charset, "character_set_client")?;
        for variable in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.store_named(variable, Setting::Text(charset.name.into()));
            self.note_named(variable);
        }
        self.store_named("collation_connection", Setting::Text(collation.into()));
        self.common = unpack(&self.values);
        Ok(())
    }

    /// Sets the collation of literals. An unknown name changes nothing.
    pub(crate) fn set_connection_collation(&mut self, name: &str) {
        if let Some(found) = charsets::collation_named(name) {
            self.store_named("collation_connection", Setting::Text(found.name.into()));
            self.store_named("character_set_connection", Setting::Text(found.charset.into()));
            self.common = unpack(&self.values);
        }
    }
}

/// A variable that changes together with another one, such as a collation with its character set.
fn linked(name: &str, setting: &Setting) -> Option<(&'static str, Setting)> {
    let Setting::Text(text) = setting else { return None };
    let collation_of = |text| Some(Setting::Text(charsets::charset(text)?.collation_default.into()));
    let charset_of = |text| Some(Setting::Text(charsets::collation_named(text)?.charset.into()));
    Some(match name {
        "character_set_connection" => ("collation_connection", collation_of(text)?),
        "character_set_database" => ("collation_database", collation_of(text)?),
        "character_set_server" => ("collation_server", collation_of(text)?),
        "collation_connection" => ("character_set_connection", charset_of(text)?),
        "collation_database" => ("character_set_database", charset_of(text)?),
        "collation_server" => ("character_set_server", charset_of(text)?),
        _ => return None,
    })
}

/// A zone that has gone from the system since it was set counts as UTC.
fn zone_of(values: &Values) -> Zone {
    Zone::of(&values.text("time_zone")).unwrap_or(Zone::UTC)
}

/// The collation of literals. One that columns cannot have compares as the character set's default does.
fn connection(name: &str) -> Collation {
    const DEFAULT: Collation = Collation::Utf8mb4GeneralCi;
    if name == DEFAULT.name() {
        return DEFAULT;
    }
    let found = charsets::collation_named(name);
    let default = || charsets::collation_named(charsets::charset(found?.charset)?.collation_default);
    found.and_then(|found| found.column()).or_else(|| default()?.column()).unwrap_or(DEFAULT)
}

fn unpack(values: &Values) -> Common {
    let set = |name| match find(name).map(|variable| values.get(variable)) {
        Some(Setting::Set(bits)) => *bits,
        _ => 0,
    };
    let sql_mode = set("sql_mode");
    Common {
        autocommit: values.boolean("autocommit"),
        sql_mode: SqlMode(sql_mode),
        time_locale: match find("lc_time_names").map(|variable| values.get(variable)) {
            Some(Setting::Choice(position)) => usize::from(*position),
            _ => 0,
        },
        regex_flags: set("default_regex_flags"),
        lexical: SqlMode(sql_mode).lexical(),
        sql_notes: values.boolean("sql_notes"),
        check_constraint_checks: values.boolean("check_constraint_checks"),
        foreign_key_checks: values.boolean("foreign_key_checks"),
        recursions_max: values.unsigned("max_recursive_iterations"),
        sql_safe_updates: values.boolean("sql_safe_updates"),
        sql_select_limit: values.unsigned("sql_select_limit"),
        join_methods: JoinMethods::read(&values.text("optimizer_switch")),
        auto_increment_increment: values.unsigned("auto_increment_increment"),
        auto_increment_offset: values.unsigned("auto_increment_offset"),
        div_precision_increment: values.unsigned("div_precision_increment") as u8,
        statement_micros: (values.double("max_statement_time") * 1e6).ceil() as u64,
        max_error_count: values.unsigned("max_error_count") as usize,
        max_allowed_packet: values.unsigned("max_allowed_packet"),
        isolation: match values.text("tx_isolation").as_str() {
            "READ-UNCOMMITTED" => Isolation::ReadUncommitted,
            "READ-COMMITTED" => Isolation::ReadCommitted,
            "SERIALIZABLE" => Isolation::Serializable,
            _ => Isolation::RepeatableRead,
        },
        tx_read_only: values.boolean("tx_read_only"),
        completion: match values.text("completion_type").as_str() {
            "CHAIN" => Completes::Chain,
            "RELEASE" => Completes::Release,
            _ => Completes::Alone,
        },
        transaction_info: match values.text("session_track_transaction_info").as_str() {
            "STATE" => TransactionInfo::State,
            "CHARACTERISTICS" => TransactionInfo::Characteristics,
            _ => TransactionInfo::Off,
        },
        lock_wait_seconds: values.unsigned("lock_wait_timeout"),
        row_lock_wait_seconds: values.unsigned("innodb_lock_wait_timeout"),
        first_committer_wins: values.boolean("innodb_snapshot_isolation"),
        connection: connection(&values.text("collation_connection")),
        memory: MemoryLimits::unpack(values),
    }
}

/// True for the kinds whose value `SELECT @@x` returns as a number.
pub fn is_number(kind: &Kind) -> bool {
    matches!(kind, Kind::Unsigned { .. } | Kind::Signed { .. } | Kind::Double { .. } | Kind::Boolean { .. })
}

/// `session_track_transaction_info`: what clients are told of transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TransactionInfo {
    #[default]
    Off,
    State,
    /// The state, and the characteristics.
    Characteristics,
}

/// `completion_type`: what COMMIT and ROLLBACK do in addition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Completes {
    #[default]
    Alone,
    Chain,
    Release,
}

/// The variables with the path of a log.
const LOG_FILES: &[&str] = &["log_slow_query_file", "server_audit_file_path"];

/// True if a session may give a variable this file for a log. The present one may be a path that the command
/// line gave.
fn may_be_log(globals: &Globals, variable: Variable, setting: &Setting) -> bool {
    let folder = globals.values().text("secure_file_priv");
    match setting {
        _ if globals.get(variable) == *setting => true,
        Setting::Text(name) => assign::is_place_for_a_log(name, &folder),
        _ => false,
    }
}

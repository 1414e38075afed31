//! The session as expressions see it.

use super::Session;
use crate::expr::{Environment, RegexFlags, SqlMode, VariableScope};
use crate::locales::Locale;
use crate::variables::time_zones::Zone;
use crate::variables::{Asked, structured};
use crate::{ErrorKind, Level, SqlError, Warning};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use types::Value;

/// A view of a session while a statement runs. It gathers what the statement leaves behind (warnings, user
/// variables) and hands that over at the end.
pub(crate) struct SessionEnvironment<'s> {
    session: &'s Session,
    user: Cell<Option<&'s str>>,
    now: Cell<Option<i64>>,
    pub(crate) left: Leftovers,
}

/// What a statement leaves behind.
#[derive(Default)]
pub(crate) struct Leftovers {
    pub(crate) warnings: RefCell<Vec<Warning>>,
    pub(crate) assigned: RefCell<Vec<(String, Value)>>,
    /// Bytes of the texts among them.
    assigned_bytes: Cell<usize>,
    /// What LAST_INSERT_ID(n) set.
    last_insert_id: Cell<Option<u64>>,
}

/// More warnings than this are dropped. The session itself keeps fewer.
const WARNINGS_MAX: usize = 1 << 16;

impl<'s> SessionEnvironment<'s> {
    pub(crate) fn new(session: &'s Session) -> SessionEnvironment<'s> {
        SessionEnvironment {
            session,
            user: Cell::new(Some(&session.client.account)),
            now: Cell::new(None),
            left: Leftovers::default(),
        }
    }

    pub(crate) fn into_leftovers(self) -> Leftovers {
        self.left
    }
}

impl Leftovers {
    fn push(&self, warning: Warning) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < WARNINGS_MAX {
            warnings.push(warning);
        }
    }

    /// The result of a statement that stores values. If it is `strict`, the first warning of an expression is
    /// its error.
    ///
    /// # Errors
    /// The statement's own, or the one that a warning became.
    pub(crate) fn refuse_warnings<T>(
        &self,
        strict: bool,
        result: Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let result = result?;
        // A cast to a length was asked for, so that what it cuts is not refused.
        let is_cut = |message: &str| {
            ["CHAR(", "BINARY("].iter().any(|cast| {
                message.strip_prefix("Truncated incorrect ").is_some_and(|rest| rest.starts_with(cast))
            })
        };
        let refused =
            |warning: &&Warning| strict && warning.level != Level::Note && !is_cut(&warning.message);
        let warnings = self.warnings.borrow();
        match warnings.iter().find(refused) {
            Some(warning) => Err(SqlError::new(warning.kind, warning.message.clone())),
            None => Ok(result),
        }
    }

    /// Hands everything over to the session.
    pub(crate) fn settle(self, session: &mut Session) {
        session.values.get_mut().release();
        for warning in self.warnings.into_inner() {
            session.state.warnings.push(warning.level, warning.kind, warning.message);
        }
        for (name, value) in self.assigned.into_inner() {
            // The statement has counted them before. What is refused all the same is not hidden.
            if let Err(error) = session.state.user_variables.insert(name, value, &session.memory) {
                session.state.warnings.push(crate::Level::Warning, error.kind, error.message);
            }
        }
        if let Some(id) = self.last_insert_id.get() {
            session.variables.last_insert_id = id;
            session.state.given_insert_id = Some(id);
        }
    }
}

/// True for what comes from a conversion that the statement asked for.
fn is_note(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unknown | ErrorKind::DataOverflowNoted)
}

impl Environment for SessionEnvironment<'_> {
    fn system_variable(
        &self,
        scope: VariableScope,
        cache: Option<&str>,
        name: &str,
    ) -> Result<Value, SqlError> {
        let session = self.session;
        let asked = match scope {
            VariableScope::Default => Asked::Unscoped,
            VariableScope::Session => Asked::Session,
            VariableScope::Global => Asked::Global,
        };
        let (globals, database) = (&session.instance.globals, &session.instance.database);
        match cache {
            Some(cache) => structured::value(globals, database, asked, cache, name),
            None => session.variables.value(globals, asked, name, session.live()),
        }
    }

    fn user_variable(&self, name: &str) -> Value {
        let assigned = self.left.assigned.borrow();
        match assigned.iter().rev().find(|(known, _)| known == name) {
            Some((_, value)) => value.clone(),
            None => self.session.state.user_variables.get(name).cloned().unwrap_or(Value::Null),
        }
    }

    fn query_attribute(&self, name: &str) -> Option<&Value> {
        let attributes = &self.session.state.query_attributes;
        attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn set_user_variable(&self, name: &str, value: Value) {
        let bytes = value.as_ref().as_bytes().map_or(0, <[u8]>::len);
        self.left.assigned_bytes.set(self.left.assigned_bytes.get() + bytes);
        let mut assigned = self.left.assigned.borrow_mut();
        match assigned.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => {
                let before = known.as_ref().as_bytes().map_or(0, <[u8]>::len);
                self.left.assigned_bytes.set(self.left.assigned_bytes.get() - before);
                *known = value;
            }
            None => assigned.push((name.to_string(), value)),
        }
    }

    fn database(&self) -> Option<&str> {
        self.session.state.database.as_deref()
    }

    fn user(&self) -> &str {
        self.user.get().unwrap_or_default()
    }

    fn current_user(&self) -> &str {
        &self.session.access.account_text
    }

    fn current_role(&self) -> Option<&str> {
        self.session.access.role.as_deref()
    }

    fn connection_id(&self) -> u64 {
        self.session.client.id
    }

    fn last_insert_id(&self) -> u64 {
        self.left.last_insert_id.get().unwrap_or(self.session.variables.last_insert_id)
    }

    fn set_last_insert_id(&self, id: u64) {
        self.left.last_insert_id.set(Some(id));
    }

    fn found_rows(&self) -> u64 {
        self.session.state.found_rows
    }

    fn row_count(&self) -> i64 {
        self.session.state.row_count
    }

    fn now_micros(&self) -> i64 {
        match self.now.get() {
            Some(now) => now,
            None => {
                let now = (self.session.variables.timestamp() * 1e6) as i64;
                self.now.set(Some(now));
                now
            }
        }
    }

    fn time_zone(&self) -> &Zone {
        self.session.variables.zone()
    }

    fn warn(&self, kind: ErrorKind, message: String) {
        let level = if is_note(kind) { Level::Note } else { Level::Warning };
        self.left.push(Warning { level, kind, message });
    }

    fn note(&self, kind: ErrorKind, message: String) {
        self.left.push(Warning { level: Level::Note, kind, message });
    }

    fn sql_mode(&self) -> SqlMode {
        self.session.variables.common.sql_mode.into()
    }

    fn cover(&self, bytes: usize) -> Result<(), SqlError> {
        // A statement that makes long values may make many of them.
        self.session.interrupt.check()?;
        let bytes = bytes + self.left.assigned_bytes.get();
        self.session.values.borrow_mut().cover(bytes, &self.session.memory)
    }

    fn packet_bytes_max(&self) -> usize {
        self.session.variables.common.max_allowed_packet as usize
    }

    fn group_concat_bytes(&self) -> usize {
        self.session.variables.common.memory.concat_bytes
    }

    fn time_locale(&self) -> &'static Locale {
        Locale::at(self.session.variables.common.time_locale)
    }

    fn regex_flags(&self) -> RegexFlags {
        let flags = self.session.variables.common.regex_flags;
        let has = |bit: u64| flags >> bit & 1 == 1;
        // EXTENDED_MORE is EXTENDED, and blanks in classes too. DUPNAMES and EXTRA change nothing here.
        RegexFlags {
            ignore_case: false,
            dot_all: has(0),
            extended: has(2) || has(3),
            multi_line: has(5),
            ungreedy: has(6),
        }
    }

    fn get_lock(&self, name: &[u8], wait: Duration) -> Result<Option<bool>, SqlError> {
        self.session.get_user_lock(name, wait)
    }

    fn release_lock(&self, name: &[u8]) -> Option<bool> {
        self.session.release_user_lock(name)
    }

    fn release_all_locks(&self) -> u64 {
        self.session.release_user_locks()
    }

    fn lock_owner(&self, name: &[u8]) -> Option<u64> {
        self.session.instance.user_locks.owner(name)
    }

    fn recursions_max(&self) -> u64 {
        self.session.variables.common.recursions_max
    }

    fn check_interrupt(&self) -> Result<(), SqlError> {
        self.session.interrupt.check()
    }
}

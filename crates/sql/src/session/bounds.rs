//! What keeps a session from a statement although its account has the rights for it: limits of an hour, a
//! password that has expired, a server that is read-only.

use super::Session;
use crate::accounts::{Account, Hourly, Limits, Rights};
use crate::text::parse;
use crate::variables::Setting;
use crate::{ColumnMeta, Completion, ErrorKind, ResultSink, SqlError};
use std::sync::Arc;
use types::ValueRef;

/// Of a session whose account has limits, or must change its password. Others have none, so that their
/// statements cost nothing more.
#[derive(Debug)]
pub(crate) struct Bounds {
    limits: Limits,
    hourly: Arc<Hourly>,
    password_expired: bool,
}

impl Session {
    /// Binds the session to the limits of its account.
    pub(super) fn set_bounds(&mut self, account: &Account, hourly: &Arc<Hourly>, password_expired: bool) {
        let limits = account.limits;
        let is_bound = limits.queries_per_hour != 0 || limits.updates_per_hour != 0 || password_expired;
        self.bounds = is_bound.then(|| Box::new(Bounds { limits, hourly: hourly.clone(), password_expired }));
        if limits.statement_micros != 0
            && let Some(variable) = crate::variables::find("max_statement_time")
        {
            self.variables.store(variable, Setting::Double(limits.statement_micros as f64 / 1e6));
        }
    }

    /// Runs the statements of `init_connect`, for accounts without CONNECTION ADMIN whose password is good.
    ///
    /// # Errors
    /// That of the first statement that fails. The client is to be sent away then.
    pub fn run_init_connect(&mut self) -> Result<(), SqlError> {
        let text = self.instance.globals().values().text("init_connect");
        let is_exempt = self.access.global.contains(Rights::CONNECTION_ADMIN);
        if text.trim().is_empty() || is_exempt || self.check_password().is_err() {
            return Ok(());
        }
        let allowed = std::mem::replace(&mut self.client.multi_statements, true);
        let result = self.query(text.as_bytes(), &mut Nowhere);
        self.client.multi_statements = allowed;
        result
    }

    /// Counts a statement.
    ///
    /// # Errors
    /// 1226 if the account has had its share of this hour, 1820 if its password must be changed first.
    #[cold]
    pub(crate) fn check_bounds(&self, statement: &[u8]) -> Result<(), SqlError> {
        let Some(bounds) = &self.bounds else { return Ok(()) };
        let text = String::from_utf8_lossy(statement);
        let word = first_word(&text);
        if !matches!(word.as_str(), "SET" | "ALTER") {
            self.check_password()?;
        }
        // EXECUTE is counted as the statement that it runs.
        if word == "EXECUTE" {
            return Ok(());
        }
        bounds.hourly.statement(&self.access.account.user, &bounds.limits, changes_data(&word))
    }

    /// # Errors
    /// 1820 if the account's password must be changed first.
    pub(crate) fn check_password(&self) -> Result<(), SqlError> {
        if self.bounds.as_ref().is_some_and(|bounds| bounds.password_expired) {
            let text = "You must SET PASSWORD before executing this statement";
            return Err(SqlError::new(ErrorKind::MustChangePassword, text));
        }
        Ok(())
    }

    /// The account of the session has a new password.
    pub(crate) fn password_is_changed(&mut self) {
        if let Some(bounds) = &mut self.bounds {
            bounds.password_expired = false;
        }
    }

    /// # Errors
    /// 1290 on a server with `read_only`, unless the account may change data there.
    pub(crate) fn check_server_takes_changes(&self) -> Result<(), SqlError> {
        if !self.instance.globals().is_read_only() || self.access.global.contains(Rights::READ_ONLY_ADMIN) {
            return Ok(());
        }
        let text =
            "The MariaDB server is running with the --read-only option so it cannot execute this statement";
        Err(SqlError::new(ErrorKind::OptionPreventsStatement, text))
    }
}

/// Where results go that nobody reads.
struct Nowhere;

impl ResultSink for Nowhere {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<(), SqlError> {
        Ok(())
    }

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }

    fn end(&mut self, _: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

/// The first word of a statement in capitals, behind comments.
fn first_word(text: &str) -> String {
    let text = parse::skip_comments(text).trim_start_matches(['(', ' ', '\n', '\t', '\r']);
    let end = text.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(text.len());
    text[..end].to_ascii_uppercase()
}

/// True for statements that change data or definitions, by their first word.
pub(crate) fn changes_data(word: &str) -> bool {
    matches!(
        word,
        "INSERT"
            | "REPLACE"
            | "UPDATE"
            | "DELETE"
            | "LOAD"
            | "CREATE"
            | "ALTER"
            | "DROP"
            | "TRUNCATE"
            | "RENAME"
            | "GRANT"
            | "REVOKE"
            | "OPTIMIZE"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_found_behind_comments_and_parentheses() {
        for (text, word) in [
            (" insert into t", "INSERT"),
            ("/* why */ Update t", "UPDATE"),
            ("-- note\n((SELECT 1))", "SELECT"),
            ("", ""),
            ("1", ""),
        ] {
            assert_eq!(first_word(text), word, "{text}");
        }
    }
}

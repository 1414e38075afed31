//! `SELECT /*+ MAX_EXECUTION_TIME(n) */`: MySQL 8's limit of one statement, in milliseconds.

use crate::{ErrorKind, Session, SqlError};

/// The microseconds that a statement's hint gives it.
#[inline]
pub(super) fn limit_of(sql: &[u8]) -> Option<u64> {
    let (word, rest) = sql.split_at_checked(6)?;
    if !word.eq_ignore_ascii_case(b"SELECT") {
        return None;
    }
    let hint = rest.trim_ascii_start().strip_prefix(b"/*+")?;
    limit_in(hint)
}

#[cold]
fn limit_in(hint: &[u8]) -> Option<u64> {
    const NAME: &str = "MAX_EXECUTION_TIME";
    let end = hint.windows(2).position(|pair| pair == b"*/")?;
    let hint = String::from_utf8_lossy(&hint[..end]).to_ascii_uppercase();
    let behind = hint[hint.find(NAME)? + NAME.len()..].trim_start().strip_prefix('(')?;
    let (number, _) = behind.split_once(')')?;
    let millis: u32 = number.trim().parse().ok()?;
    (millis > 0).then_some(u64::from(millis) * 1000)
}

impl Session {
    /// Runs a statement for at most as long as its hint says.
    ///
    /// # Errors
    /// 3024 when the time is over, and those of the statement.
    #[cold]
    pub(super) fn run_limited(
        &mut self,
        micros: u64,
        run: impl FnOnce(&mut Session) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.instance.timer.begin(&self.interrupt, &mut self.is_timed, micros)?;
        let result = run(self);
        self.interrupt.set_end(0);
        let error = match result {
            // The engine does not know why its wait was ended.
            Err(error) if error.kind == ErrorKind::QueryInterrupted => {
                self.interrupt.check().err().unwrap_or(error)
            }
            Err(error) => error,
            Ok(()) => return Ok(()),
        };
        Err(match error.kind {
            ErrorKind::StatementTimeout => SqlError::new(
                ErrorKind::QueryTimeout,
                "Query execution was interrupted, maximum statement execution time exceeded",
            ),
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::limit_of;

    #[test]
    fn a_hint_behind_select_limits_the_statement() {
        for (sql, micros) in [
            ("SELECT /*+ MAX_EXECUTION_TIME(20) */ 1", Some(20_000)),
            ("select/*+max_execution_time ( 1 )*/1", Some(1000)),
            ("SELECT /*+ NO_MERGE(t) MAX_EXECUTION_TIME(5) */ 1", Some(5000)),
            ("SELECT /*+ MAX_EXECUTION_TIME(0) */ 1", None),
            ("SELECT /*+ MAX_EXECUTION_TIME(x) */ 1", None),
            ("SELECT /*+ MAX_EXECUTION_TIME(5)", None),
            ("SELECT 1 /*+ MAX_EXECUTION_TIME(5) */", None),
            ("UPDATE /*+ MAX_EXECUTION_TIME(5) */ t SET a = 1", None),
            ("SELECT", None),
            ("", None),
        ] {
            assert_eq!(limit_of(sql.as_bytes()), micros, "{sql}");
        }
    }
}

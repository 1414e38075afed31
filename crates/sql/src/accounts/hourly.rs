//! What an account uses of its limits for an hour.

use super::Limits;
use crate::{ErrorKind, SqlError};
use base::sync::Mutex;
use std::time::{Duration, Instant};

base::latch_class!(pub HourlyLatch, "limits of an hour");

const HOUR: Duration = Duration::from_secs(60 * 60);

/// The counts of one account, for all its connections together. They begin anew with the first use after an
/// hour.
#[derive(Debug, Default)]
pub struct Hourly(Mutex<Counts, HourlyLatch>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    began: Option<Instant>,
    connections: u64,
    queries: u64,
    updates: u64,
}

impl Counts {
    fn is_over(&self) -> bool {
        self.began.is_none_or(|began| began.elapsed() >= HOUR)
    }
}

impl Hourly {
    /// Counts a connection.
    ///
    /// # Errors
    /// 1226 if it is one too many. It is not counted then.
    pub fn connection(&self, user: &str, limits: &Limits) -> Result<(), SqlError> {
        self.count(|counts| {
            take(&mut counts.connections, limits.connections_per_hour, user, "max_connections_per_hour")
        })
    }

    /// Counts a statement.
    ///
    /// # Errors
    /// 1226 if it is one too many.
    pub(crate) fn statement(&self, user: &str, limits: &Limits, changes: bool) -> Result<(), SqlError> {
        self.count(|counts| {
            take(&mut counts.queries, limits.queries_per_hour, user, "max_queries_per_hour")?;
            match changes {
                true => take(&mut counts.updates, limits.updates_per_hour, user, "max_updates_per_hour"),
                false => Ok(()),
            }
        })
    }

    fn count(&self, what: impl FnOnce(&mut Counts) -> Result<(), SqlError>) -> Result<(), SqlError> {
        let mut counts = self.0.lock();
        if counts.is_over() {
            *counts = Counts { began: Some(Instant::now()), ..Counts::default() };
        }
        what(&mut counts)
    }

    /// FLUSH USER_RESOURCES.
    pub fn forget(&self) {
        *self.0.lock() = Counts::default();
    }

    /// True if nothing was used within the last hour.
    pub fn is_unused(&self) -> bool {
        self.0.lock().is_over()
    }
}

fn take(count: &mut u64, most: u64, user: &str, name: &str) -> Result<(), SqlError> {
    if most != 0 && *count >= most {
        return Err(limit_reached(user, name, most as i64));
    }
    *count += 1;
    Ok(())
}

/// 1226.
pub fn limit_reached(user: &str, name: &str, most: i64) -> SqlError {
    let text = format!("User '{user}' has exceeded the '{name}' resource (current value: {most})");
    SqlError::new(ErrorKind::UserLimitReached, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_counts_for_itself_until_it_is_forgotten() {
        let limits = Limits { queries_per_hour: 3, updates_per_hour: 1, ..Limits::default() };
        let hourly = Hourly::default();
        let ran = |changes| hourly.statement("ann", &limits, changes).map_err(|error| error.message);
        assert_eq!(ran(true), Ok(()));
        let updates = "User 'ann' has exceeded the 'max_updates_per_hour' resource (current value: 1)";
        assert_eq!(ran(true), Err(updates.to_owned()));
        assert_eq!(ran(false), Ok(()));
        let queries = "User 'ann' has exceeded the 'max_queries_per_hour' resource (current value: 3)";
        assert_eq!(ran(false), Err(queries.to_owned()));
        assert!(!hourly.is_unused());
        hourly.forget();
        assert_eq!((ran(false), hourly.connection("ann", &limits)), (Ok(()), Ok(())));
    }
}

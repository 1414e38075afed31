//! How many connections each account has, and what it uses of its limits for an hour.

use base::sync::{Arc, Mutex};
use sql::accounts::{Account, Grantee, Hourly, Rights, limit_reached};
use sql::{ErrorKind, SqlError};
use std::collections::BTreeMap;

/// By account.
pub(super) type Usage = BTreeMap<Grantee, OfAccount>;

#[derive(Debug, Default)]
pub(super) struct OfAccount {
    open: u64,
    pub(super) hourly: std::sync::Arc<Hourly>,
}

/// A connection of an account. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    usage: Arc<Mutex<Usage>>,
    account: Grantee,
    pub hourly: std::sync::Arc<Hourly>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut usage = self.usage.lock();
        if let Some(of_account) = usage.get_mut(&self.account) {
            of_account.open -= 1;
            if of_account.open == 0 && of_account.hourly.is_unused() {
                usage.remove(&self.account);
            }
        }
    }
}

/// `each_max`: `max_user_connections`, for accounts without a limit of their own. Below 0 they may not
/// connect.
pub(super) fn take_place(
    usage: &Arc<Mutex<Usage>>,
    account: &Account,
    each_max: i64,
) -> Result<Place, SqlError> {
    let user = &account.name.user;
    let mut of_all = usage.lock();
    let of_account = of_all.entry(account.name.clone()).or_default();
    let open = of_account.open as i64;
    let limits = &account.limits;
    if !account.rights.contains(Rights::CONNECTION_ADMIN) {
        if limits.user_connections == 0 && each_max != 0 && open >= each_max.max(0) {
            let text = format!("User {user} already has more than 'max_user_connections' active connections");
            return Err(SqlError::new(ErrorKind::TooManyUserConnections, text));
        }
        if limits.user_connections != 0 && open >= limits.user_connections.max(0) {
            return Err(limit_reached(user, "max_user_connections", limits.user_connections));
        }
    }
    of_account.hourly.connection(user, limits)?;
    of_account.open += 1;
    Ok(Place { usage: usage.clone(), account: account.name.clone(), hourly: of_account.hourly.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::accounts::Limits;

    fn limited(limits: Limits) -> Account {
        Account { name: Grantee::new("a", "%"), limits, ..Account::default() }
    }

    #[test]
    fn an_account_has_as_many_connections_as_its_limit_says() {
        let usage = Arc::new(Mutex::new(Usage::new()));
        let taken =
            |account: &Account, each_max| take_place(&usage, account, each_max).map_err(|error| error.code());
        let account = limited(Limits::default());
        let first = taken(&account, 0).unwrap();
        assert_eq!(taken(&account, 1).unwrap_err(), 1203);
        assert_eq!(taken(&account, -1).unwrap_err(), 1203);
        let two = limited(Limits { user_connections: 2, ..Limits::default() });
        let second = taken(&two, 1).unwrap();
        assert_eq!(taken(&two, 0).unwrap_err(), 1226);
        drop((first, second));
        assert!(taken(&two, 0).is_ok());
        let hourly = limited(Limits { connections_per_hour: 3, ..Limits::default() });
        assert_eq!(taken(&hourly, 0).unwrap_err(), 1226, "three were made");
        let none = limited(Limits { user_connections: -1, ..Limits::default() });
        assert_eq!(taken(&none, 0).unwrap_err(), 1226);
        let administrator = Account { rights: Rights::ALL, ..none };
        assert!(taken(&administrator, 1).is_ok());
    }
}

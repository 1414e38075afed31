//! The book of accounts: all accounts, roles and what they may do, as they lie in memory.
//!
//! It is made of the rows of the tables in the database `mysql`, which are where accounts are kept. A book
//! never changes: a statement makes a new one, and sessions take it up with their next statement.

use super::account::{Account, Grantee};
use super::pattern::{database_matches, host_matches, narrowness};
use super::rights::Rights;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The role that everybody has.
pub(crate) const PUBLIC: &str = "PUBLIC";

/// What somebody may do with one table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TableGrant {
    pub(crate) rights: Rights,
    /// Those on single columns, by the column's name as it was given.
    pub(crate) columns: BTreeMap<String, Rights>,
    /// `user@host` of whoever gave the first of them.
    pub(crate) grantor: String,
}

impl TableGrant {
    /// The rights on any column.
    pub(crate) fn of_columns(&self) -> Rights {
        self.columns.values().fold(Rights::NONE, |all, rights| all | *rights)
    }

    /// The rights on a column, those on the whole table among them. For grants of [`Book::table`], which have
    /// columns' names in small letters.
    pub(crate) fn on_column(&self, column: &str) -> Rights {
        let found = self.columns.get(column).or_else(|| self.columns.get(&column.to_lowercase()));
        self.rights | found.copied().unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rights.is_empty() && self.columns.values().all(|rights| rights.is_empty())
    }
}

/// All accounts and grants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    pub(crate) accounts: BTreeMap<Grantee, Arc<Account>>,
    /// By grantee and pattern of databases.
    pub(crate) databases: BTreeMap<(Grantee, String), Rights>,
    /// By grantee, database and table.
    pub(crate) tables: BTreeMap<(Grantee, String, String), TableGrant>,
    /// By grantee and role: whether it may be passed on.
    pub(crate) roles: BTreeMap<(Grantee, String), bool>,
}

impl Book {
    /// The account that a client uses: of those that match, the one with the narrowest host, and a named
    /// user before the nameless one.
    pub(crate) fn find(&self, user: &str, peers: &[&str]) -> Option<Arc<Account>> {
        let is_meant = |account: &&Arc<Account>| {
            let Grantee { user: name, host } = &account.name;
            !account.is_role
                && (name == user || name.is_empty())
                && peers.iter().any(|peer| host_matches(host, peer))
        };
        let found = self.accounts.values().filter(is_meant);
        found.min_by_key(|account| (narrowness(&account.name.host), account.name.user.is_empty())).cloned()
    }

    pub(crate) fn account(&self, name: &Grantee) -> Option<&Arc<Account>> {
        self.accounts.get(name)
    }

    pub(crate) fn role(&self, name: &str) -> Option<&Arc<Account>> {
        self.accounts.get(&Grantee::new(name, "")).filter(|account| account.is_role)
    }

    /// True if somebody was given this role, directly or through other roles.
    pub(crate) fn has_role(&self, name: &Grantee, role: &str) -> bool {
        self.granted(name).contains(role)
    }

    /// The roles that somebody has, directly and through other roles.
    pub(crate) fn granted(&self, name: &Grantee) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let mut next = vec![name.clone()];
        while let Some(name) = next.pop() {
            for role in self.direct_roles(&name) {
                if all.insert(role.to_owned()) {
                    next.push(Grantee::new(role, ""));
                }
            }
        }
        all
    }

    fn direct_roles<'a>(&'a self, name: &'a Grantee) -> impl Iterator<Item = &'a str> {
        self.roles.keys().filter(move |(grantee, _)| grantee == name).map(|(_, role)| role.as_str())
    }

    /// Whose rights a session has: its account, its role with all roles in that, and PUBLIC.
    pub(crate) fn grantees(&self, account: &Grantee, role: Option<&str>) -> Vec<Grantee> {
        let mut all = vec![account.clone()];
        if let Some(role) = role {
            let name = Grantee::new(role, "");
            let inherited = self.granted(&name);
            all.push(name);
            all.extend(inherited.iter().map(|role| Grantee::new(role, "")));
        }
        if self.role(PUBLIC).is_some() {
            all.push(Grantee::new(PUBLIC, ""));
        }
        all
    }

    /// The global rights of these together.
    pub(crate) fn global(&self, grantees: &[Grantee]) -> Rights {
        let of = |name: &Grantee| self.account(name).map_or(Rights::NONE, |account| account.rights);
        grantees.iter().fold(Rights::NONE, |all, name| all | of(name))
    }

    /// The rights on a database beside the global ones. Of each grantee the narrowest pattern counts.
    pub(crate) fn database(&self, grantees: &[Grantee], database: &str) -> Rights {
        let of = |name: &Grantee| {
            self.databases_of(name)
                .filter(|(pattern, _)| database_matches(pattern, database))
                .min_by_key(|(pattern, _)| narrowness(pattern))
                .map_or(Rights::NONE, |(_, rights)| rights)
        };
        grantees.iter().fold(Rights::NONE, |all, name| all | of(name))
    }

    /// The patterns of databases on which somebody has rights.
    pub(crate) fn databases_of<'a>(&'a self, name: &'a Grantee) -> impl Iterator<Item = (&'a str, Rights)> {
        self.databases
            .range((name.clone(), String::new())..)
            .take_while(move |((grantee, _), _)| grantee == name)
            .map(|((_, pattern), rights)| (pattern.as_str(), *rights))
    }

    /// The tables on which somebody has rights: database, table, rights.
    pub(crate) fn tables_of<'a>(
        &'a self,
        name: &'a Grantee,
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a TableGrant)> {
        self.tables
            .range((name.clone(), String::new(), String::new())..)
            .take_while(move |((grantee, ..), _)| grantee == name)
            .map(|((_, database, table), grant)| (database.as_str(), table.as_str(), grant))
    }

    /// The rights of these on a table and its columns, beside those on its database.
    pub(crate) fn table(&self, grantees: &[Grantee], database: &str, table: &str) -> TableGrant {
        let mut all = TableGrant::default();
        for name in grantees {
            let key = (name.clone(), database.to_owned(), table.to_owned());
            let Some(grant) = self.tables.get(&key) else { continue };
            all.rights |= grant.rights;
            for (column, rights) in &grant.columns {
                *all.columns.entry(column.to_lowercase()).or_default() |= *rights;
            }
        }
        all
    }

    /// Takes everything away that somebody has, and the account or role itself.
    pub(crate) fn remove(&mut self, name: &Grantee) {
        self.accounts.remove(name);
        self.take_all(name);
        self.roles
            .retain(|(grantee, role), _| grantee != name && !(name.host.is_empty() && *role == name.user));
    }

    /// Takes all rights on databases and tables away.
    pub(crate) fn take_all(&mut self, name: &Grantee) {
        self.databases.retain(|(grantee, _), _| grantee != name);
        self.tables.retain(|(grantee, ..), _| grantee != name);
    }

    /// Gives an account another name.
    pub(crate) fn rename(&mut self, from: &Grantee, to: &Grantee) {
        if let Some(account) = self.accounts.remove(from) {
            let account = Account { name: to.clone(), ..(*account).clone() };
            self.accounts.insert(to.clone(), Arc::new(account));
        }
        let name = |grantee: Grantee| if grantee == *from { to.clone() } else { grantee };
        let databases = std::mem::take(&mut self.databases).into_iter();
        self.databases = databases.map(|((who, what), rights)| ((name(who), what), rights)).collect();
        let tables = std::mem::take(&mut self.tables).into_iter();
        self.tables =
            tables.map(|((who, database, table), grant)| ((name(who), database, table), grant)).collect();
        let roles = std::mem::take(&mut self.roles).into_iter();
        self.roles = roles.map(|((who, role), passes)| ((name(who), role), passes)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(user: &str, host: &str) -> (Grantee, Arc<Account>) {
        let name = Grantee::new(user, host);
        (name.clone(), Arc::new(Account { name, ..Account::default() }))
    }

    #[test]
    fn the_narrowest_host_wins_over_the_name() {
        let names = [("a", "%"), ("", "localhost"), ("a", "10.0.%"), ("b", "localhost"), ("", "%")];
        let book = Book {
            accounts: names.iter().map(|(user, host)| account(user, host)).collect(),
            ..Book::default()
        };
        let found = |user: &str, peers: &[&str]| {
            book.find(user, peers).map(|account| (account.name.user.clone(), account.name.host.clone()))
        };
        let is = |user: &str, host: &str| Some((user.to_owned(), host.to_owned()));
        assert_eq!(found("a", &["localhost"]), is("", "localhost"), "as in MySQL");
        assert_eq!(found("b", &["127.0.0.1", "localhost"]), is("b", "localhost"));
        assert_eq!(found("a", &["10.0.3.4"]), is("a", "10.0.%"));
        assert_eq!(found("a", &["10.1.3.4"]), is("a", "%"));
        assert_eq!(found("c", &["10.1.3.4"]), is("", "%"));
    }

    #[test]
    fn roles_bring_the_rights_of_roles_in_them() {
        let (a, r, s) = (Grantee::new("a", "%"), Grantee::new("r", ""), Grantee::new("s", ""));
        let mut book = Book::default();
        book.roles.insert((a.clone(), "r".into()), false);
        book.roles.insert((r.clone(), "s".into()), false);
        book.databases.insert((s.clone(), "zoo%".into()), Rights::SELECT);
        book.databases.insert((s.clone(), "zoo".into()), Rights::INSERT);
        book.databases.insert((a.clone(), "zoo".into()), Rights::UPDATE);
        assert!(book.has_role(&a, "s"));
        let with = book.grantees(&a, Some("r"));
        assert_eq!(book.database(&with, "zoo"), Rights::INSERT | Rights::UPDATE, "the narrowest of each");
        assert_eq!(book.database(&with, "zoo2"), Rights::SELECT);
        assert_eq!(book.database(&book.grantees(&a, None), "zoo2"), Rights::NONE);
        book.rename(&a, &Grantee::new("b", "%"));
        assert!(book.has_role(&Grantee::new("b", "%"), "r") && !book.has_role(&a, "r"));
    }
}

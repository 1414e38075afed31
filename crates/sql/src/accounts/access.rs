//! What one session may do, and what a statement needs.

use super::account::Grantee;
use super::book::{Book, TableGrant};
use super::rights::Rights;
use crate::{ErrorKind, SqlError};
use base::sync::atomic::{AtomicU64, Ordering};
use foldhash::fast::FixedState;
use hashbrown::{Equivalent, HashMap, HashSet};
use std::cell::RefCell;
use std::sync::Arc;

/// How many statements a session remembers as allowed, and of how many tables the rights.
const REMEMBERED_MAX: usize = 1024;

/// The names of a table's database and of the table, to look for.
#[derive(Hash)]
struct TableName<'a>(&'a str, &'a str);

impl Equivalent<(String, String)> for TableName<'_> {
    fn equivalent(&self, key: &(String, String)) -> bool {
        self.0 == key.0 && self.1 == key.1
    }
}

/// What one session may do.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The global rights. As in MariaDB they are those from when the client connected, or chose a role.
    pub(crate) global: Rights,
    /// The account, which may have wildcards as its host.
    pub(crate) account: Grantee,
    /// `user@host` of it.
    pub(crate) account_text: String,
    pub(crate) role: Option<String>,
    /// The name that the client gave, and where it comes from: for messages.
    shown: Grantee,
    /// Whose rights the session has.
    grantees: Vec<Grantee>,
    book: Arc<Book>,
    /// [`super::Accounts::version`] of the book.
    version: u64,
    /// The numbers of statements that have been allowed since the book or the role changed.
    allowed: RefCell<HashSet<u64, FixedState>>,
    /// What [`Access::on_table`] gave since then, by database and table.
    on_tables: RefCell<HashMap<(String, String), Arc<TableGrant>, FixedState>>,
}

/// What a statement wants to do with one table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TableNeed {
    pub(crate) database: String,
    pub(crate) table: String,
    /// Rights on the table as a whole.
    pub(crate) whole: Rights,
    /// Rights that are enough if somebody has them on single columns.
    pub(crate) any: Rights,
    /// Rights on single columns, in the order in which the statement names them.
    pub(crate) columns: Vec<(String, Rights)>,
    /// Rights on columns that the statement does not name: those of `*`, and of an INSERT without a list.
    pub(crate) unnamed: Rights,
}

impl TableNeed {
    pub(crate) fn new(database: &str, table: &str) -> TableNeed {
        TableNeed { database: database.to_owned(), table: table.to_owned(), ..TableNeed::default() }
    }

    /// The table as a whole.
    pub(crate) fn whole(database: &str, table: &str, rights: Rights) -> TableNeed {
        TableNeed { whole: rights, ..TableNeed::new(database, table) }
    }

    /// The table is the one whose rows are changed, by UPDATE or DELETE. Rights on the columns to assign to
    /// are enough.
    pub(crate) fn changes(&mut self, right: Rights) {
        (self.whole, self.any) = match right {
            Rights::UPDATE => (Rights::NONE, Rights::UPDATE),
            right => (right, Rights::NONE),
        };
    }

    pub(crate) fn column(&mut self, name: &str, rights: Rights) {
        let known = self.columns.iter_mut().find(|(column, _)| column.eq_ignore_ascii_case(name));
        match known {
            Some((_, all)) => *all |= rights,
            None => self.columns.push((name.to_owned(), rights)),
        }
    }

    fn all(&self) -> Rights {
        self.columns.iter().fold(self.whole | self.any, |all, (_, rights)| all | *rights)
    }
}

/// What a statement needs. A plan keeps it, so that each session that runs the plan is asked.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Every right that it needs on any table.
    all: Rights,
    tables: Vec<TableNeed>,
    /// No other statement has it.
    number: u64,
}

impl Needs {
    pub(crate) fn new(tables: Vec<TableNeed>) -> Needs {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Needs {
            all: tables.iter().fold(Rights::NONE, |all, need| all | need.all()),
            tables,
            // ORDER: only that no number comes twice.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Access {
    /// Everything: for programs that embed the engine, and for `--skip-grant-tables`.
    pub(crate) fn everything(user: &str, host: &str) -> Access {
        let name = Grantee::new(user, host);
        Access {
            global: Rights::ALL,
            account: name.clone(),
            account_text: format!("{user}@{host}"),
            role: None,
            shown: name,
            grantees: vec![],
            book: Arc::default(),
            version: 0,
            allowed: RefCell::default(),
            on_tables: RefCell::default(),
        }
    }

    /// The rights of an account whose client has logged in as `shown`, with a role if it has a default one.
    pub(crate) fn new(
        account: &Grantee,
        shown: Grantee,
        role: Option<String>,
        book: Arc<Book>,
        version: u64,
    ) -> Access {
        let grantees = book.grantees(account, role.as_deref());
        Access {
            global: book.global(&grantees),
            account: account.clone(),
            account_text: format!("{}@{}", account.user, account.host),
            role,
            shown,
            grantees,
            book,
            version,
            allowed: RefCell::default(),
            on_tables: RefCell::default(),
        }
    }

    /// True if no grant on a database or a table can add anything.
    #[inline]
    pub(crate) fn is_global(&self) -> bool {
        self.global.contains(Rights::OF_DATABASES)
    }

    /// The book that the session goes by.
    pub(crate) fn book(&self) -> &Arc<Book> {
        &self.book
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Goes by another book. The global rights stay.
    pub(crate) fn take_up(&mut self, book: Arc<Book>, version: u64) {
        self.grantees = book.grantees(&self.account, self.role.as_deref());
        (self.book, self.version) = (book, version);
        self.forget();
    }

    fn forget(&mut self) {
        self.allowed.get_mut().clear();
        self.on_tables.get_mut().clear();
    }

    /// SET ROLE.
    pub(crate) fn set_role(&mut self, role: Option<String>) {
        self.grantees = self.book.grantees(&self.account, role.as_deref());
        self.global = self.book.global(&self.grantees);
        self.role = role;
        self.forget();
    }

    /// The rights on a database, the global ones among them.
    pub(crate) fn on_database(&self, database: &str) -> Rights {
        if self.is_global() {
            self.global
        } else {
            self.global | self.book.database(&self.grantees, database)
        }
    }

    /// The rights on a table: those on all of it, the database's among them, and those on its columns.
    pub(crate) fn on_table(&self, database: &str, table: &str) -> Arc<TableGrant> {
        if let Some(grant) = self.on_tables.borrow().get(&TableName(database, table)) {
            return grant.clone();
        }
        let mut grant = self.book.table(&self.grantees, database, table);
        grant.rights |= self.on_database(database);
        let grant = Arc::new(grant);
        let mut on_tables = self.on_tables.borrow_mut();
        if on_tables.len() >= REMEMBERED_MAX {
            on_tables.clear();
        }
        on_tables.insert((database.to_owned(), table.to_owned()), grant.clone());
        grant
    }

    /// True if lists of databases have this one.
    pub(crate) fn lists_database(&self, database: &str) -> bool {
        self.global.contains(Rights::SHOW_DATABASES) || self.sees_database(database)
    }

    /// True if the session may use the database.
    pub(crate) fn sees_database(&self, database: &str) -> bool {
        self.on_database(database).intersects(Rights::OF_DATABASES) || self.has_tables(database)
    }

    /// True if the session may know the tables of the database.
    pub(crate) fn sees_tables_of(&self, database: &str) -> bool {
        !self.on_database(database).without(Rights::GRANT).is_empty() || self.has_tables(database)
    }

    fn has_tables(&self, database: &str) -> bool {
        self.grantees.iter().any(|name| self.book.tables_of(name).any(|(of, ..)| of == database))
    }

    /// True if the session may know that the table exists.
    pub(crate) fn sees_table(&self, database: &str, table: &str) -> bool {
        let seeing = Rights::OF_TABLES.without(Rights::GRANT);
        if self.global.intersects(seeing) {
            return true;
        }
        self.on_database(database).intersects(seeing) || self.has_grant(database, table)
    }

    /// True if there is a grant on this very table.
    pub(crate) fn has_grant(&self, database: &str, table: &str) -> bool {
        !self.book.table(&self.grantees, database, table).is_empty()
    }

    /// True if the session may do more with the table than read it. As in MariaDB, of the grants on the table
    /// only those on its columns count.
    pub(crate) fn uses_table(&self, database: &str, table: &str) -> bool {
        if self.is_global() {
            return true;
        }
        let of_columns = self.book.table(&self.grantees, database, table).of_columns();
        let rights = self.on_database(database) & Rights::OF_TABLES | of_columns;
        !rights.without(Rights::SELECT).is_empty()
    }

    /// What the session may do with a column.
    pub(crate) fn on_column(&self, database: &str, table: &str, column: &str) -> Rights {
        if self.global.contains(Rights::OF_COLUMNS) {
            return Rights::OF_COLUMNS;
        }
        let grant = self.on_table(database, table);
        grant.on_column(column) & Rights::OF_COLUMNS
    }

    /// True if the session may know that the column exists.
    pub(crate) fn sees_column(&self, database: &str, table: &str, column: &str) -> bool {
        let grant = self.on_table(database, table);
        grant.rights.intersects(Rights::OF_TABLES) || grant.columns.contains_key(&column.to_lowercase())
    }

    /// # Errors
    /// As [`Access::check_table`], for each of the statement's tables.
    #[inline]
    pub(crate) fn check(&self, needs: &Needs) -> Result<(), SqlError> {
        if self.global.contains(needs.all) { Ok(()) } else { self.check_each(needs) }
    }

    #[cold]
    fn check_each(&self, needs: &Needs) -> Result<(), SqlError> {
        if self.allowed.borrow().contains(&needs.number) {
            return Ok(());
        }
        for need in &needs.tables {
            self.check_table(need)?;
        }
        let mut allowed = self.allowed.borrow_mut();
        if allowed.len() >= REMEMBERED_MAX {
            allowed.clear();
        }
        allowed.insert(needs.number);
        Ok(())
    }

    /// # Errors
    /// 1142 if the table is out of bounds, 1143 if one of its columns is.
    pub(crate) fn check_table(&self, need: &TableNeed) -> Result<(), SqlError> {
        let grant = self.on_table(&need.database, &need.table);
        let missing = need.whole.without(grant.rights) | need.any.without(grant.rights | grant.of_columns());
        if !missing.is_empty() {
            return Err(self.table_denied(missing, &need.database, &need.table));
        }
        for (column, rights) in &need.columns {
            let missing = rights.without(grant.on_column(column));
            if missing.intersects(need.unnamed) {
                return Err(self.table_denied(missing, &need.database, &need.table));
            }
            if !missing.is_empty() {
                let text = format!(
                    "{} command denied to user '{}'@'{}' for column '{column}' in table '{}'",
                    listed(missing),
                    self.shown.user,
                    self.shown.host,
                    need.table
                );
                return Err(SqlError::new(ErrorKind::ColumnAccessDenied, text));
            }
        }
        Ok(())
    }

    /// # Errors
    /// 1044.
    pub(crate) fn check_database(&self, database: &str, rights: Rights) -> Result<(), SqlError> {
        if self.global.contains(rights) || self.on_database(database).contains(rights) {
            return Ok(());
        }
        Err(self.database_denied(database))
    }

    /// # Errors
    /// 1227 if the session has none of these rights globally.
    pub(crate) fn check_any_global(&self, rights: Rights) -> Result<(), SqlError> {
        if self.global.intersects(rights) {
            return Ok(());
        }
        let text = format!(
            "Access denied; you need (at least one of) the {} privilege(s) for this operation",
            listed(rights)
        );
        Err(SqlError::new(ErrorKind::NeedsRight, text))
    }

    pub(crate) fn table_denied(&self, missing: Rights, database: &str, table: &str) -> SqlError {
        self.command_denied(&listed(missing), database, table)
    }

    /// 1142, for a statement that is named by its first word.
    pub(crate) fn command_denied(&self, command: &str, database: &str, table: &str) -> SqlError {
        let text = format!(
            "{command} command denied to user '{}'@'{}' for table `{database}`.`{table}`",
            self.shown.user, self.shown.host
        );
        SqlError::new(ErrorKind::TableAccessDenied, text)
    }

    pub(crate) fn database_denied(&self, database: &str) -> SqlError {
        let text = format!(
            "Access denied for user '{}'@'{}' to database '{database}'",
            self.shown.user, self.shown.host
        );
        SqlError::new(ErrorKind::DatabaseAccessDenied, text)
    }

    /// 1698: without a word on passwords.
    pub(crate) fn denied_shortly(&self) -> SqlError {
        let text = format!("Access denied for user '{}'@'{}'", self.shown.user, self.shown.host);
        SqlError::new(ErrorKind::AccessDeniedShortly, text)
    }

    /// 1045, for something that a session without the right may not do at all.
    pub(crate) fn denied(&self) -> SqlError {
        let text = format!(
            "Access denied for user '{}'@'{}' (using password: YES)",
            self.shown.user, self.shown.host
        );
        SqlError::new(ErrorKind::AccessDenied, text)
    }
}

/// The names of rights as messages list them.
fn listed(rights: Rights) -> String {
    let name = |name: &'static str| if name == "GRANT OPTION" { "GRANT" } else { name };
    rights.names().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(book: Book) -> Access {
        let name = Grantee::new("a", "%");
        Access::new(&name, Grantee::new("a", "localhost"), None, Arc::new(book), 1)
    }

    #[test]
    fn columns_are_looked_at_once_the_table_is_within_bounds() {
        let mut book = Book::default();
        let name = Grantee::new("a", "%");
        let columns = [("A".to_owned(), Rights::SELECT), ("b".to_owned(), Rights::UPDATE)].into();
        let grant = TableGrant { columns, ..TableGrant::default() };
        book.tables.insert((name, "zoo".into(), "t".into()), grant);
        let access = access(book);
        let mut need = TableNeed { any: Rights::SELECT, ..TableNeed::new("zoo", "t") };
        need.column("a", Rights::SELECT);
        assert_eq!(access.check_table(&need), Ok(()));
        need.column("b", Rights::SELECT);
        let error = access.check_table(&need).unwrap_err();
        assert_eq!(error.code(), 1143);
        assert_eq!(
            error.message,
            "SELECT command denied to user 'a'@'localhost' for column 'b' in table 't'"
        );
        let error = access.check_table(&TableNeed::whole("zoo", "t", Rights::SELECT)).unwrap_err();
        assert_eq!(error.message, "SELECT command denied to user 'a'@'localhost' for table `zoo`.`t`");
        assert_eq!(error.code(), 1142);
        assert!(access.sees_table("zoo", "t") && !access.sees_table("zoo", "u"));
        assert!(access.sees_database("zoo") && !access.sees_database("zoo2"));
    }

    #[test]
    fn a_statement_that_was_allowed_is_asked_again_when_the_book_has_changed() {
        let name = (Grantee::new("a", "%"), "zoo".to_owned());
        let with = Book { databases: [(name, Rights::SELECT)].into(), ..Book::default() };
        let needs = Needs::new(vec![TableNeed::whole("zoo", "t", Rights::SELECT)]);
        let mut access = access(with);
        assert_eq!((access.check(&needs), access.check(&needs)), (Ok(()), Ok(())));
        access.take_up(Arc::default(), 2);
        assert_eq!(access.check(&needs).unwrap_err().code(), 1142);
    }
}

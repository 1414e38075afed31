//! What an account may do: a set of rights.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A set of rights. The bits are those that MariaDB keeps in `mysql.global_priv`, so that accounts can be
/// carried over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rights(u64);

macro_rules! rights {
    ($($name:ident = $bit:literal $text:literal $column:literal;)*) => {
        impl Rights {
            $(#[doc = $text] pub const $name: Rights = Rights(1 << $bit);)*

            /// Every right, its name in GRANT, and the beginning of its column's name in `mysql.user`, in the
            /// order in which SHOW GRANTS lists them.
            pub const NAMED: &[(Rights, &str, &str)] = &[$((Rights::$name, $text, $column)),*];

            /// All rights.
            pub const ALL: Rights = Rights(0 $(| 1 << $bit)*);
        }
    };
}

rights! {
    SELECT = 0 "SELECT" "Select";
    INSERT = 1 "INSERT" "Insert";
    UPDATE = 2 "UPDATE" "Update";
    DELETE = 3 "DELETE" "Delete";
    CREATE = 4 "CREATE" "Create";
    DROP = 5 "DROP" "Drop";
    RELOAD = 6 "RELOAD" "Reload";
    SHUTDOWN = 7 "SHUTDOWN" "Shutdown";
    PROCESS = 8 "PROCESS" "Process";
    FILE = 9 "FILE" "File";
    GRANT = 10 "GRANT OPTION" "Grant";
    REFERENCES = 11 "REFERENCES" "References";
    INDEX = 12 "INDEX" "Index";
    ALTER = 13 "ALTER" "Alter";
    SHOW_DATABASES = 14 "SHOW DATABASES" "Show_db";
    SUPER = 15 "SUPER" "Super";
    CREATE_TEMPORARY = 16 "CREATE TEMPORARY TABLES" "Create_tmp_table";
    LOCK_TABLES = 17 "LOCK TABLES" "Lock_tables";
    EXECUTE = 18 "EXECUTE" "Execute";
    REPLICATION_SLAVE = 19 "REPLICATION SLAVE" "Repl_slave";
    BINLOG_MONITOR = 20 "BINLOG MONITOR" "Repl_client";
    CREATE_VIEW = 21 "CREATE VIEW" "Create_view";
    SHOW_VIEW = 22 "SHOW VIEW" "Show_view";
    CREATE_ROUTINE = 23 "CREATE ROUTINE" "Create_routine";
    ALTER_ROUTINE = 24 "ALTER ROUTINE" "Alter_routine";
    CREATE_USER = 25 "CREATE USER" "Create_user";
    EVENT = 26 "EVENT" "Event";
    TRIGGER = 27 "TRIGGER" "Trigger";
    CREATE_TABLESPACE = 28 "CREATE TABLESPACE" "Create_tablespace";
    DELETE_HISTORY = 29 "DELETE HISTORY" "Delete_history";
    SET_USER = 30 "SET USER" "Set_user";
    FEDERATED_ADMIN = 31 "FEDERATED ADMIN" "Federated_admin";
    CONNECTION_ADMIN = 32 "CONNECTION ADMIN" "Connection_admin";
    READ_ONLY_ADMIN = 33 "READ_ONLY ADMIN" "Read_only_admin";
    REPLICATION_SLAVE_ADMIN = 34 "REPLICATION SLAVE ADMIN" "Replication_slave_admin";
    REPLICATION_MASTER_ADMIN = 35 "REPLICATION MASTER ADMIN" "Replication_master_admin";
    BINLOG_ADMIN = 36 "BINLOG ADMIN" "Binlog_admin";
    BINLOG_REPLAY = 37 "BINLOG REPLAY" "Binlog_replay";
    SLAVE_MONITOR = 38 "SLAVE MONITOR" "Slave_monitor";
}

impl Rights {
    /// No right at all: USAGE.
    pub const NONE: Rights = Rights(0);

    /// What GRANT can give on a database.
    pub(crate) const OF_DATABASES: Rights = Rights(
        Rights::OF_TABLES.0
            | Rights::CREATE_TEMPORARY.0
            | Rights::LOCK_TABLES.0
            | Rights::CREATE_ROUTINE.0
            | Rights::ALTER_ROUTINE.0
            | Rights::EXECUTE.0
            | Rights::EVENT.0,
    );

    /// What GRANT can give on a table.
    pub(crate) const OF_TABLES: Rights = Rights(
        Rights::OF_COLUMNS.0
            | Rights::DELETE.0
            | Rights::CREATE.0
            | Rights::DROP.0
            | Rights::GRANT.0
            | Rights::INDEX.0
            | Rights::ALTER.0
            | Rights::CREATE_VIEW.0
            | Rights::SHOW_VIEW.0
            | Rights::TRIGGER.0
            | Rights::DELETE_HISTORY.0,
    );

    /// What GRANT can give on columns.
    pub(crate) const OF_COLUMNS: Rights =
        Rights(Rights::SELECT.0 | Rights::INSERT.0 | Rights::UPDATE.0 | Rights::REFERENCES.0);

    /// The rights whose bits are set. Bits that mean nothing here are left out.
    pub fn from_bits(bits: u64) -> Rights {
        Rights(bits) & Rights::ALL
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub fn contains(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    #[inline]
    pub(crate) fn intersects(self, other: Rights) -> bool {
        self.0 & other.0 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn without(self, other: Rights) -> Rights {
        self & !other
    }

    /// The names of the rights in the set, in the order of SHOW GRANTS.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Rights::NAMED.iter().filter(move |(right, ..)| self.contains(*right)).map(|(_, name, _)| *name)
    }
}

impl BitOr for Rights {
    type Output = Rights;
    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl BitOrAssign for Rights {
    fn bitor_assign(&mut self, other: Rights) {
        *self = *self | other;
    }
}

impl BitAnd for Rights {
    type Output = Rights;
    fn bitand(self, other: Rights) -> Rights {
        Rights(self.0 & other.0)
    }
}

impl Not for Rights {
    type Output = Rights;
    fn not(self) -> Rights {
        Rights(!self.0)
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

//! Numbers of the protocol.

/// Capability flags of the handshake. The upper 32 are MariaDB's own. They are in bytes that other servers
/// and clients set to zero, and they hold only if [`capability::LONG_PASSWORD`] is clear.
pub mod capability {
    /// MariaDB calls it CLIENT_MYSQL. Every other server and client sets it, and it says nothing about
    /// passwords.
    pub const LONG_PASSWORD: u64 = 1;
    /// `affected_rows` counts the rows that were found, changed or not.
    pub const FOUND_ROWS: u64 = 1 << 1;
    pub const LONG_FLAG: u64 = 1 << 2;
    pub const CONNECT_WITH_DB: u64 = 1 << 3;
    pub const COMPRESS: u64 = 1 << 5;
    pub const LOCAL_FILES: u64 = 1 << 7;
    pub const IGNORE_SPACE: u64 = 1 << 8;
    pub const PROTOCOL_41: u64 = 1 << 9;
    pub const INTERACTIVE: u64 = 1 << 10;
    pub const SSL: u64 = 1 << 11;
    pub const TRANSACTIONS: u64 = 1 << 13;
    pub const SECURE_CONNECTION: u64 = 1 << 15;
    pub const MULTI_STATEMENTS: u64 = 1 << 16;
    pub const MULTI_RESULTS: u64 = 1 << 17;
    pub const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub const PLUGIN_AUTH: u64 = 1 << 19;
    pub const CONNECT_ATTRS: u64 = 1 << 20;
    pub const PLUGIN_AUTH_LENENC: u64 = 1 << 21;
    /// The client knows what to do if its password has expired.
    pub const CAN_HANDLE_EXPIRED_PASSWORDS: u64 = 1 << 22;
    pub const SESSION_TRACK: u64 = 1 << 23;
    /// There are no EOF packets: result sets end with an OK packet whose first byte is 0xfe.
    pub const DEPRECATE_EOF: u64 = 1 << 24;
    /// Compression by zstd. The client sends its level. MySQL 8 has it and MariaDB does not.
    pub const ZSTD_COMPRESSION: u64 = 1 << 26;
    /// Statements come with named values. MySQL 8 has it and MariaDB does not.
    pub const QUERY_ATTRIBUTES: u64 = 1 << 27;
    /// The client is told how far long statements are: see [`crate::response::ProgressReport`].
    pub const PROGRESS: u64 = 1 << 32;
    /// COM_STMT_BULK_EXECUTE: a statement runs with many rows of parameters.
    pub const STMT_BULK_OPERATIONS: u64 = 1 << 34;
    /// The first packet of a result set says whether column definitions follow. They may be left out for a
    /// prepared statement if the client has them already.
    pub const CACHE_METADATA: u64 = 1 << 36;

    /// What our server offers: SSL where it has a certificate, and the compressions that
    /// `protocol_compression_algorithms` allows.
    pub const SERVER: u64 = FOUND_ROWS
        | LONG_FLAG
        | CONNECT_WITH_DB
        | COMPRESS
        | LOCAL_FILES
        | IGNORE_SPACE
        | PROTOCOL_41
        | INTERACTIVE
        | TRANSACTIONS
        | SECURE_CONNECTION
        | MULTI_STATEMENTS
        | MULTI_RESULTS
        | PS_MULTI_RESULTS
        | PLUGIN_AUTH
        | CONNECT_ATTRS
        | PLUGIN_AUTH_LENENC
        | CAN_HANDLE_EXPIRED_PASSWORDS
        | SESSION_TRACK
        | DEPRECATE_EOF
        | ZSTD_COMPRESSION
        | QUERY_ATTRIBUTES
        | PROGRESS
        | STMT_BULK_OPERATIONS
        | CACHE_METADATA;

    /// What our client asks for by default.
    pub const CLIENT: u64 = LONG_PASSWORD
        | LONG_FLAG
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE_CONNECTION
        | MULTI_RESULTS
        | PS_MULTI_RESULTS
        | PLUGIN_AUTH
        | PLUGIN_AUTH_LENENC
        | DEPRECATE_EOF;
}

/// Server status flags of OK and EOF packets.
pub mod status {
    pub const IN_TRANSACTION: u16 = 1;
    pub const AUTOCOMMIT: u16 = 2;
    pub const MORE_RESULTS: u16 = 8;
    /// The statement has an open cursor, and its rows are to be fetched.
    pub const CURSOR_EXISTS: u16 = 64;
    /// An OK packet tells of changes to the session.
    pub const SESSION_STATE_CHANGED: u16 = 1 << 14;
    /// The cursor had no more rows, and is closed.
    pub const LAST_ROW_SENT: u16 = 128;
}

/// Types of columns and parameters.
pub mod kind {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Flags of column definitions.
pub mod column_flag {
    pub const NOT_NULL: u16 = 1;
    pub const PRIMARY_KEY: u16 = 2;
    pub const UNIQUE_KEY: u16 = 4;
    pub const MULTIPLE_KEY: u16 = 8;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const ZEROFILL: u16 = 64;
    pub const BINARY: u16 = 128;
    pub const ENUM: u16 = 256;
    pub const AUTO_INCREMENT: u16 = 512;
    pub const TIMESTAMP: u16 = 1024;
    pub const SET: u16 = 2048;
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    pub const ON_UPDATE_NOW: u16 = 8192;
    pub const PART_KEY: u16 = 16384;
    pub const NUMERIC: u16 = 32768;
}

/// Numbers of collations.
pub mod charset {
    pub const LATIN1_SWEDISH_CI: u16 = 8;
    pub const ASCII_GENERAL_CI: u16 = 11;
    pub const UTF8MB3_GENERAL_CI: u16 = 33;
    pub const UTF8MB4_GENERAL_CI: u16 = 45;
    pub const UTF8MB4_BIN: u16 = 46;
    pub const LATIN1_BIN: u16 = 47;
    pub const BINARY: u16 = 63;
    pub const ASCII_BIN: u16 = 65;
}

/// The names of the authentication methods, as the protocol has them.
pub mod auth_plugin {
    pub const NATIVE_PASSWORD: &str = "mysql_native_password";
    pub const CACHING_SHA2: &str = "caching_sha2_password";
    /// The client's side of MariaDB's `ed25519`.
    pub const ED25519: &str = "client_ed25519";
    /// MariaDB's method since version 11.6.
    pub const PARSEC: &str = "parsec";
}

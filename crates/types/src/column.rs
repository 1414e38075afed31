//! What a column holds.

/// The type of a column. Lengths of character types are in characters, of binary types in bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ColumnType {
    /// TINYINT (1) to BIGINT (8): `bytes` is 1, 2, 3, 4 or 8.
    Int {
        bytes: u8,
        unsigned: bool,
    },
    Float {
        unsigned: bool,
    },
    Double {
        unsigned: bool,
    },
    /// DECIMAL(precision, scale): precision at most 65, scale at most 30.
    Decimal {
        precision: u8,
        scale: u8,
        unsigned: bool,
    },
    Char {
        chars: u32,
        collation: Collation,
    },
    Varchar {
        chars: u32,
        collation: Collation,
    },
    /// TINYTEXT to LONGTEXT: `bytes_max` is 255, 65,535, 16,777,215 or 4,294,967,295.
    Text {
        bytes_max: u32,
        collation: Collation,
    },
    Binary {
        bytes: u32,
    },
    Varbinary {
        bytes: u32,
    },
    /// TINYBLOB to LONGBLOB.
    Blob {
        bytes_max: u32,
    },
    Date,
    /// `fsp`: digits of fractional seconds, 0 to 6.
    Time {
        fsp: u8,
    },
    DateTime {
        fsp: u8,
    },
    Timestamp {
        fsp: u8,
    },
    Year,
}

/// The collations that a column can have. Names as MySQL has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Collation {
    Utf8mb4GeneralCi,
    Utf8mb4Bin,
    Latin1SwedishCi,
    Latin1Bin,
    AsciiGeneralCi,
    AsciiBin,
    Binary,
}

/// A column as the codecs need it: defaults and comments are the SQL layer's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    pub name: String,
    pub column_type: ColumnType,
    pub nullable: bool,
}

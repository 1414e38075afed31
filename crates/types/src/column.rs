//! The types of columns.

use crate::{Code, Collation, Members};
use base::sync::Arc;

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
    /// A number of `bytes` 1 or 2: a member's position from 1, or 0 for a text that is no member.
    Enum {
        bytes: u8,
        members: Arc<Members>,
    },
    /// A number of `bytes` 1, 2, 3, 4 or 8 that has a bit for each member, the lowest for the first.
    Set {
        bytes: u8,
        members: Arc<Members>,
    },
    /// BIT(1) to BIT(64): a number without a sign.
    Bit {
        bits: u8,
    },
    /// UUID, INET6 and INET4: the bytes of the code, in the order in which they sort.
    Code(Code),
}

/// A column as the codecs need it: defaults and comments are the SQL layer's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    pub name: String,
    pub column_type: ColumnType,
    pub nullable: bool,
}

/// How many bytes hold so many bits, of the sizes that integers have.
const fn bytes_of_bits(bits: u8) -> u8 {
    match bits.div_ceil(8) {
        bytes @ 1..=4 => bytes,
        0 => 1,
        _ => 8,
    }
}

impl ColumnType {
    /// An ENUM of these members.
    pub fn of_enum(members: Members) -> ColumnType {
        ColumnType::Enum { bytes: members.enum_bytes(), members: Arc::new(members) }
    }

    /// A SET of these members.
    pub fn of_set(members: Members) -> ColumnType {
        ColumnType::Set { bytes: members.set_bytes(), members: Arc::new(members) }
    }

    /// The members of an ENUM or SET.
    pub fn members(&self) -> Option<&Members> {
        match self {
            ColumnType::Enum { members, .. } | ColumnType::Set { members, .. } => Some(members),
            _ => None,
        }
    }

    /// True for the types whose values are stored as something else than statements see: the number of a
    /// member, the bytes of an address.
    pub fn is_coded(&self) -> bool {
        matches!(self, ColumnType::Enum { .. } | ColumnType::Set { .. } | ColumnType::Code(_))
    }

    /// The collation of a character type, an ENUM or a SET; [`Collation::Binary`] for binary types and for
    /// all others.
    pub fn collation(&self) -> Collation {
        match self {
            ColumnType::Char { collation, .. }
            | ColumnType::Varchar { collation, .. }
            | ColumnType::Text { collation, .. } => *collation,
            ColumnType::Enum { members, .. } | ColumnType::Set { members, .. } => members.collation(),
            _ => Collation::Binary,
        }
    }

    /// CHAR, VARCHAR and the TEXT types.
    pub fn is_text(&self) -> bool {
        matches!(self, ColumnType::Char { .. } | ColumnType::Varchar { .. } | ColumnType::Text { .. })
    }

    /// True for the types that have a character set: those of [`ColumnType::is_text`], ENUM and SET.
    pub fn has_characters(&self) -> bool {
        self.is_text() || self.members().is_some()
    }

    /// BINARY, VARBINARY and the BLOB types.
    pub fn is_timestamp(&self) -> bool {
        matches!(self, ColumnType::Timestamp { .. })
    }

    pub fn is_binary(&self) -> bool {
        matches!(self, ColumnType::Binary { .. } | ColumnType::Varbinary { .. } | ColumnType::Blob { .. })
    }

    /// The most bytes a value takes in a row image, not counting its end offset.
    pub const fn image_bytes_max(&self) -> usize {
        match self {
            ColumnType::Int { bytes, .. } => *bytes as usize,
            ColumnType::Float { .. } => 4,
            ColumnType::Double { .. } => 8,
            ColumnType::Decimal { precision, .. } => crate::decimal::bytes_for_precision(*precision),
            ColumnType::Char { chars, .. } | ColumnType::Varchar { chars, .. } => *chars as usize * 4,
            ColumnType::Text { bytes_max, .. } | ColumnType::Blob { bytes_max } => *bytes_max as usize,
            ColumnType::Binary { bytes } | ColumnType::Varbinary { bytes } => *bytes as usize,
            ColumnType::Date => 3,
            ColumnType::Time { fsp: 0 } => 3,
            ColumnType::Time { .. } => 8,
            ColumnType::DateTime { fsp: 0 } | ColumnType::Timestamp { fsp: 0 } => 5,
            ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => 8,
            ColumnType::Year => 1,
            ColumnType::Enum { bytes, .. } | ColumnType::Set { bytes, .. } => *bytes as usize,
            ColumnType::Bit { bits } => bytes_of_bits(*bits) as usize,
            ColumnType::Code(code) => code.bytes(),
        }
    }
}

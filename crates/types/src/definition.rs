//! Columns and key parts as bytes, for the catalogue.
//!
//! Little-endian throughout. A column:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 1 | flags: 1 = nullable |
//! | 2 | 2 | n, the length of the name in bytes |
//! | 4 | n | name in UTF-8 |
//! | 4 + n | | type: a tag byte and its parameters, see [`ColumnType::encode`] |
//!
//! A key part:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 1 | flags: 1 = descending, 2 = prefix |
//! | 2 | 2 | column |
//! | 4 | 4 | prefix in characters (bytes of a binary column), 0 without |

use crate::members::SET_MEMBERS_MAX;
use crate::{Code, Collation, Column, ColumnType, KeyPart, Members};
use std::fmt;

const VERSION: u8 = 1;

/// A key part: version, flags, column, prefix.
const KEY_PART_BYTES: usize = 8;
const _: () = assert!(KEY_PART_BYTES == 2 * size_of::<u8>() + size_of::<u16>() + size_of::<u32>());

/// A definition that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefinitionError {
    pub why: &'static str,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for DefinitionError {}

type Result<T> = std::result::Result<T, DefinitionError>;

fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N]> {
    let (head, rest) =
        from.split_first_chunk().ok_or(DefinitionError { why: "the definition is cut short" })?;
    *from = rest;
    Ok(*head)
}

fn take_u8(from: &mut &[u8]) -> Result<u8> {
    Ok(take::<1>(from)?[0])
}

fn take_u32(from: &mut &[u8]) -> Result<u32> {
    take(from).map(u32::from_le_bytes)
}

fn take_version(from: &mut &[u8]) -> Result<()> {
    match take_u8(from)? {
        VERSION => Ok(()),
        _ => Err(DefinitionError { why: "the definition has a version that this program does not know" }),
    }
}

/// Tags of column types on disk.
mod tag {
    pub const INT: u8 = 1;
    pub const FLOAT: u8 = 2;
    pub const DOUBLE: u8 = 3;
    pub const DECIMAL: u8 = 4;
    pub const CHAR: u8 = 5;
    pub const VARCHAR: u8 = 6;
    pub const TEXT: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const VARBINARY: u8 = 9;
    pub const BLOB: u8 = 10;
    pub const DATE: u8 = 11;
    pub const TIME: u8 = 12;
    pub const DATETIME: u8 = 13;
    pub const TIMESTAMP: u8 = 14;
    pub const YEAR: u8 = 15;
    pub const ENUM: u8 = 16;
    pub const SET: u8 = 17;
    pub const BIT: u8 = 18;
    pub const UUID: u8 = 19;
    pub const INET6: u8 = 20;
    pub const INET4: u8 = 21;
}

impl ColumnType {
    /// Appends tag and parameters: integers bytes, unsigned; floats unsigned; DECIMAL precision, scale,
    /// unsigned; characters length `u32`, collation (a byte, see [`Collation::encode`]); binaries length
    /// `u32`; times fsp; ENUM and SET the count of members `u16`, collation, and each member's length in
    /// bytes `u32` and text; BIT its bits.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut sized = |tag: u8, size: u32, collation: Option<Collation>| {
            out.push(tag);
            out.extend_from_slice(&size.to_le_bytes());
            if let Some(collation) = collation {
                collation.encode(out);
            }
        };
        match *self {
            ColumnType::Char { chars, collation } => sized(tag::CHAR, chars, Some(collation)),
            ColumnType::Varchar { chars, collation } => sized(tag::VARCHAR, chars, Some(collation)),
            ColumnType::Text { bytes_max, collation } => sized(tag::TEXT, bytes_max, Some(collation)),
            ColumnType::Binary { bytes } => sized(tag::BINARY, bytes, None),
            ColumnType::Varbinary { bytes } => sized(tag::VARBINARY, bytes, None),
            ColumnType::Blob { bytes_max } => sized(tag::BLOB, bytes_max, None),
            ColumnType::Int { bytes, unsigned } => out.extend([tag::INT, bytes, unsigned as u8]),
            ColumnType::Float { unsigned } => out.extend([tag::FLOAT, unsigned as u8]),
            ColumnType::Double { unsigned } => out.extend([tag::DOUBLE, unsigned as u8]),
            ColumnType::Decimal { precision, scale, unsigned } => {
                out.extend([tag::DECIMAL, precision, scale, unsigned as u8]);
            }
            ColumnType::Date => out.push(tag::DATE),
            ColumnType::Time { fsp } => out.extend([tag::TIME, fsp]),
            ColumnType::DateTime { fsp } => out.extend([tag::DATETIME, fsp]),
            ColumnType::Timestamp { fsp } => out.extend([tag::TIMESTAMP, fsp]),
            ColumnType::Year => out.push(tag::YEAR),
            ColumnType::Enum { ref members, .. } => members.encode(tag::ENUM, out),
            ColumnType::Set { ref members, .. } => members.encode(tag::SET, out),
            ColumnType::Bit { bits } => out.extend([tag::BIT, bits]),
            ColumnType::Code(Code::Uuid) => out.push(tag::UUID),
            ColumnType::Code(Code::Inet6) => out.push(tag::INET6),
            ColumnType::Code(Code::Inet4) => out.push(tag::INET4),
        }
    }

    /// Reads a type and moves `from` behind it.
    pub fn decode(from: &mut &[u8]) -> Result<ColumnType> {
        let fsp = |from: &mut &[u8]| match take_u8(from)? {
            fsp @ 0..=6 => Ok(fsp),
            _ => Err(DefinitionError { why: "more than 6 digits of fractional seconds" }),
        };
        Ok(match take_u8(from)? {
            tag::INT => {
                let [bytes, unsigned] = take(from)?;
                if !matches!(bytes, 1..=4 | 8) {
                    return Err(DefinitionError { why: "an integer column of an unknown size" });
                }
                ColumnType::Int { bytes, unsigned: unsigned != 0 }
            }
            tag::FLOAT => ColumnType::Float { unsigned: take_u8(from)? != 0 },
            tag::DOUBLE => ColumnType::Double { unsigned: take_u8(from)? != 0 },
            tag::DECIMAL => {
                let [precision, scale, unsigned] = take(from)?;
                if precision > crate::decimal::PRECISION_MAX || scale > precision {
                    return Err(DefinitionError { why: "a DECIMAL column with too many digits" });
                }
                ColumnType::Decimal { precision, scale, unsigned: unsigned != 0 }
            }
            tag::CHAR => ColumnType::Char { chars: take_u32(from)?, collation: Collation::decode(from)? },
            tag::VARCHAR => {
                ColumnType::Varchar { chars: take_u32(from)?, collation: Collation::decode(from)? }
            }
            tag::TEXT => ColumnType::Text { bytes_max: take_u32(from)?, collation: Collation::decode(from)? },
            tag::BINARY => ColumnType::Binary { bytes: take_u32(from)? },
            tag::VARBINARY => ColumnType::Varbinary { bytes: take_u32(from)? },
            tag::BLOB => ColumnType::Blob { bytes_max: take_u32(from)? },
            tag::DATE => ColumnType::Date,
            tag::TIME => ColumnType::Time { fsp: fsp(from)? },
            tag::DATETIME => ColumnType::DateTime { fsp: fsp(from)? },
            tag::TIMESTAMP => ColumnType::Timestamp { fsp: fsp(from)? },
            tag::YEAR => ColumnType::Year,
            tag::ENUM => ColumnType::of_enum(Members::decode(from)?),
            tag::SET => {
                let members = Members::decode(from)?;
                if members.names().len() > SET_MEMBERS_MAX {
                    return Err(DefinitionError { why: "a SET column with too many members" });
                }
                ColumnType::of_set(members)
            }
            tag::BIT => match take_u8(from)? {
                bits @ 1..=64 => ColumnType::Bit { bits },
                _ => return Err(DefinitionError { why: "a BIT column of an unknown size" }),
            },
            tag::UUID => ColumnType::Code(Code::Uuid),
            tag::INET6 => ColumnType::Code(Code::Inet6),
            tag::INET4 => ColumnType::Code(Code::Inet4),
            _ => return Err(DefinitionError { why: "a column type that this program does not know" }),
        })
    }
}

impl Collation {
    /// What stands on disk for a collation that is not one of [`Collation::OWN`]: its number in the protocol
    /// follows, as `u16`.
    pub const LISTED: u8 = u8::MAX;

    /// The byte on disk: the place in [`Collation::OWN`], or [`Collation::LISTED`].
    pub fn to_byte(self) -> u8 {
        Collation::OWN.iter().position(|own| *own == self).map_or(Collation::LISTED, |place| place as u8)
    }

    /// The collation of a byte on disk. `id` reads the number in the protocol.
    pub fn of_byte(byte: u8, id: impl FnOnce() -> Option<u16>) -> Option<Collation> {
        match byte {
            Collation::LISTED => Collation::by_id(id()?),
            place => Collation::OWN.get(usize::from(place)).copied(),
        }
    }

    /// Appends the byte, and the number if it follows.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.push(self.to_byte());
        if self.to_byte() == Collation::LISTED {
            out.extend_from_slice(&self.id().to_le_bytes());
        }
    }

    fn decode(from: &mut &[u8]) -> Result<Collation> {
        let byte = take_u8(from)?;
        Collation::of_byte(byte, || take(from).ok().map(u16::from_le_bytes))
            .ok_or(DefinitionError { why: "a collation that this program does not know" })
    }
}

impl Members {
    fn encode(&self, tag: u8, out: &mut Vec<u8>) {
        out.push(tag);
        out.extend_from_slice(&(self.names().len() as u16).to_le_bytes());
        self.collation().encode(out);
        for name in self.names() {
            out.extend_from_slice(&(name.len() as u32).to_le_bytes());
            out.extend_from_slice(name.as_bytes());
        }
    }

    fn decode(from: &mut &[u8]) -> Result<Members> {
        let count = u16::from_le_bytes(take(from)?);
        let collation = Collation::decode(from)?;
        let names: Vec<String> = (0..count)
            .map(|_| {
                let length = take_u32(from)?;
                take_name(from, length as usize)
            })
            .collect::<Result<_>>()?;
        Ok(Members::new(names, collation))
    }
}

/// A text of so many bytes.
fn take_name(from: &mut &[u8], length: usize) -> Result<String> {
    if from.len() < length {
        return Err(DefinitionError { why: "the definition is cut short" });
    }
    let (name, rest) = from.split_at(length);
    *from = rest;
    String::from_utf8(name.to_vec()).map_err(|_| DefinitionError { why: "a name is not UTF-8" })
}

impl Column {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend([VERSION, self.nullable as u8]);
        // Names have at most 64 characters. A longer name would have been refused.
        let name = &self.name.as_bytes()[..self.name.len().min(u16::MAX as usize)];
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name);
        self.column_type.encode(out);
    }

    /// Reads a column and moves `from` behind it.
    pub fn decode(from: &mut &[u8]) -> Result<Column> {
        take_version(from)?;
        let nullable = take_u8(from)? & 1 != 0;
        let length = u16::from_le_bytes(take(from)?);
        let name = take_name(from, usize::from(length))?;
        Ok(Column { name, column_type: ColumnType::decode(from)?, nullable })
    }
}

impl KeyPart {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flags = self.descending as u8 | (self.prefix_chars.is_some() as u8) << 1;
        let mut bytes = [0; KEY_PART_BYTES];
        bytes[..2].copy_from_slice(&[VERSION, flags]);
        // A table has at most 4,096 columns.
        bytes[2..4].copy_from_slice(&(self.column as u16).to_le_bytes());
        bytes[4..].copy_from_slice(&self.prefix_chars.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// Reads a key part and moves `from` behind it.
    pub fn decode(from: &mut &[u8]) -> Result<KeyPart> {
        take_version(from)?;
        let flags = take_u8(from)?;
        let column = u16::from_le_bytes(take(from)?) as usize;
        let prefix = take_u32(from)?;
        Ok(KeyPart { column, prefix_chars: (flags & 2 != 0).then_some(prefix), descending: flags & 1 != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_survives_its_bytes_and_no_cut_one_is_accepted() {
        let c = Collation::Latin1Bin;
        let types = [
            ColumnType::Int { bytes: 3, unsigned: true },
            ColumnType::Float { unsigned: false },
            ColumnType::Double { unsigned: true },
            ColumnType::Decimal { precision: 65, scale: 30, unsigned: false },
            ColumnType::Char { chars: 120, collation: c },
            ColumnType::Varchar { chars: 16_383, collation: c },
            ColumnType::Text { bytes_max: u32::MAX, collation: Collation::Utf8mb4GeneralCi },
            ColumnType::Text { bytes_max: 255, collation: Collation::by_id(255).unwrap() },
            ColumnType::Binary { bytes: 16 },
            ColumnType::Varbinary { bytes: 65_535 },
            ColumnType::Blob { bytes_max: 255 },
            ColumnType::Date,
            ColumnType::Time { fsp: 6 },
            ColumnType::DateTime { fsp: 3 },
            ColumnType::Timestamp { fsp: 0 },
            ColumnType::Year,
            ColumnType::of_enum(Members::new(["größe", "", "x,y"].map(String::from), c)),
            ColumnType::of_set(Members::new((0..64).map(|bit| bit.to_string()), c)),
            ColumnType::Bit { bits: 64 },
            ColumnType::Code(Code::Uuid),
            ColumnType::Code(Code::Inet6),
            ColumnType::Code(Code::Inet4),
        ];
        for column_type in types {
            let column = Column { name: "größe".into(), column_type, nullable: true };
            let mut bytes = Vec::new();
            column.encode(&mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!(Column::decode(&mut rest), Ok(column));
            assert!(rest.is_empty());
            for cut in 0..bytes.len() {
                assert!(Column::decode(&mut &bytes[..cut]).is_err());
            }
        }
        let part = KeyPart { column: 300, prefix_chars: Some(10), descending: true };
        let mut bytes = Vec::new();
        part.encode(&mut bytes);
        assert_eq!(KeyPart::decode(&mut bytes.as_slice()), Ok(part));
    }
}

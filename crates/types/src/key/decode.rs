//! Reads lengths and values from the bytes of keys. Any bytes are accepted: bytes that are no key give None.

use super::Part;
use super::encode::invert;
use crate::collation::{self, after_spaces, uca};
use crate::row::Kind;
use crate::{Collation, Date, DateTime, Decimal, Time, ValueRef};
use ethnum::I256;
use std::ops::Range;

impl Part {
    fn byte(&self, byte: u8) -> u8 {
        if self.descending { !byte } else { byte }
    }

    /// The length of the part at the start of `key`.
    pub(super) fn len_in(&self, key: &[u8]) -> Option<usize> {
        let head = self.nullable as usize;
        if self.nullable && self.byte(*key.first()?) == 0 {
            return Some(1);
        }
        let length = head
            + match self.kind {
                Kind::Char | Kind::Text => self.text_len(&key[head..])?,
                Kind::Binary => self.binary_len(&key[head..])?,
                Kind::Int { bytes, .. } | Kind::Decimal { bytes, .. } => bytes as usize,
                Kind::Float => 4,
                Kind::Double => 8,
                Kind::FixedBinary { bytes } => bytes as usize,
                Kind::Date | Kind::Time { fsp: 0 } => 3,
                Kind::Time { .. } => 8,
                Kind::DateTime { fsp: 0 } => 5,
                Kind::DateTime { .. } => 8,
                Kind::Year => 1,
            };
        (length <= key.len()).then_some(length)
    }

    fn text_len(&self, key: &[u8]) -> Option<usize> {
        if let Collation::Listed(_) = self.collation {
            match self.collation.kind() {
                collation::Kind::Uca(uca) => {
                    return uca::key_bytes(uca, |at| key.get(at).map(|byte| self.byte(*byte)));
                }
                collation::Kind::Single(_, false) => return self.binary_len(key),
                collation::Kind::Single(_, true) => {}
            }
        }
        // A space byte is never inside a longer weight: those continue with bytes from 0x80 up.
        let space = self.byte(Collation::SPACE as u8);
        let end = self.byte(after_spaces::END);
        let mut at = 0;
        loop {
            at += key.get(at..)?.iter().position(|byte| *byte == space)?;
            if *key.get(at + 1)? == end {
                return Some(at + 2);
            }
            at += 2;
        }
    }

    fn binary_len(&self, key: &[u8]) -> Option<usize> {
        let mut at = 0;
        while self.byte(*key.get(at)?) != 0 || self.byte(*key.get(at + 1)?) != 0 {
            at += if self.byte(key[at]) == 0 { 2 } else { 1 };
        }
        Some(at + 2)
    }

    pub(super) fn is_covering(&self) -> bool {
        self.prefix.is_none()
            && match self.kind {
                Kind::Float | Kind::Double | Kind::Text => false,
                // CHAR has no trailing spaces to lose; its weights are the code points.
                Kind::Char => self.collation == Collation::Utf8mb4Bin,
                _ => true,
            }
    }

    /// The value of a whole part without its null byte; texts and binaries go to `scratch`.
    fn decode(&self, key: &[u8], scratch: &mut Vec<u8>) -> Option<Decoded> {
        let start = scratch.len();
        scratch.extend_from_slice(key);
        if self.descending {
            invert(&mut scratch[start..]);
        }
        let value = match self.kind {
            Kind::Char => {
                let mut to = start;
                let mut at = start;
                while at < scratch.len() - 2 {
                    scratch[to] = scratch[at];
                    at += if scratch[at] == Collation::SPACE as u8 { 2 } else { 1 };
                    to += 1;
                }
                scratch.truncate(to);
                return Some(Decoded::Text(start..to));
            }
            Kind::Binary => {
                let mut to = start;
                let mut at = start;
                while at < scratch.len() - 2 {
                    scratch[to] = scratch[at];
                    at += if scratch[at] == 0 { 2 } else { 1 };
                    to += 1;
                }
                scratch.truncate(to);
                return Some(Decoded::Binary(start..to));
            }
            Kind::FixedBinary { .. } => return Some(Decoded::Binary(start..scratch.len())),
            kind => decode_fixed(kind, &scratch[start..])?,
        };
        scratch.truncate(start);
        Some(Decoded::Fixed(value))
    }
}

enum Decoded {
    Fixed(ValueRef<'static>),
    Text(Range<usize>),
    Binary(Range<usize>),
}

fn decode_fixed(kind: Kind, key: &[u8]) -> Option<ValueRef<'static>> {
    if let Kind::Decimal { scale, .. } = kind {
        let negative = key.first()? & 0x80 == 0;
        let mut be = [if negative { 0xff } else { 0 }; 32];
        let from = 32usize.checked_sub(key.len())?;
        be[from..].copy_from_slice(key);
        be[from] ^= 0x80;
        return Some(ValueRef::Decimal(Decimal::new(I256::from_be_bytes(be), scale)));
    }
    let raw = key.iter().fold(0u64, |sum, &byte| sum << 8 | byte as u64);
    let unused_bits = 64 - 8 * key.len().clamp(1, 8) as u32;
    let signed = || ((raw << unused_bits ^ 1 << 63) as i64) >> unused_bits;
    Some(match kind {
        Kind::Int { unsigned: true, .. } => ValueRef::UInt(raw),
        Kind::Int { unsigned: false, .. } => ValueRef::Int(signed()),
        Kind::Date => ValueRef::Date(Date::from_packed(raw as u32)),
        Kind::Time { fsp: 0 } => ValueRef::Time(Time { micros: signed() * 1_000_000, fsp: 0 }),
        Kind::Time { fsp } => ValueRef::Time(Time { micros: signed(), fsp }),
        Kind::DateTime { fsp: 0 } => ValueRef::DateTime(DateTime::from_packed(raw << 20, 0)),
        Kind::DateTime { fsp } => ValueRef::DateTime(DateTime::from_packed(raw, fsp)),
        Kind::Year => ValueRef::UInt(if raw == 0 { 0 } else { raw + 1900 }),
        _ => return None,
    })
}

pub(super) fn decode<'a>(
    parts: &[Part],
    key: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Option<Vec<ValueRef<'a>>> {
    scratch.clear();
    let mut at = 0;
    let mut decoded = Vec::with_capacity(parts.len());
    for part in parts {
        if !part.is_covering() {
            return None;
        }
        let length = part.len_in(key.get(at..)?)?;
        let bytes = &key[at..at + length];
        at += length;
        let head = part.nullable as usize;
        decoded.push(if part.nullable && part.byte(bytes[0]) == 0 {
            Decoded::Fixed(ValueRef::Null)
        } else {
            part.decode(&bytes[head..], scratch)?
        });
    }
    let scratch = scratch.as_slice();
    let values = decoded.into_iter().map(|value| match value {
        Decoded::Fixed(value) => value,
        Decoded::Text(range) => ValueRef::Text(&scratch[range]),
        Decoded::Binary(range) => ValueRef::Binary(&scratch[range]),
    });
    Some(values.collect())
}

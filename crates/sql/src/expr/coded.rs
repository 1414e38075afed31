//! Columns whose stored values are not what statements see: the members of an ENUM or SET are numbers, UUIDs
//! and addresses are bytes, and the bits of a BIT are a number.
//!
//! Rows, keys, ORDER BY, GROUP BY and derived tables have the stored values. Expressions and clients see
//! texts, and where a number is wanted, the number.

use super::Context;
use super::evaluate;
use super::result_type::{Class, Derivation, Typed};
use crate::ErrorKind;
use bumpalo::Bump;
use types::{Code, Collation, ColumnType, Value, ValueRef};

/// The value that a client or an expression sees. A value that is not as the column stores it is seen
/// already.
pub(crate) fn shown<'a>(value: ValueRef<'a>, of: &'a ColumnType, arena: &'a Bump) -> ValueRef<'a> {
    match (of, value) {
        (ColumnType::Enum { members, .. }, ValueRef::UInt(number)) => match members.collation() {
            Collation::Binary => ValueRef::Binary(members.of_enum(number)),
            _ => ValueRef::Text(members.of_enum(number)),
        },
        (ColumnType::Set { members, .. }, ValueRef::UInt(number)) => {
            let mut text = Vec::new();
            members.write_set(number, &mut text);
            let text = arena.alloc_slice_copy(&text);
            match members.collation() {
                Collation::Binary => ValueRef::Binary(text),
                _ => ValueRef::Text(text),
            }
        }
        (ColumnType::Code(code), value) => shown_code(value, *code, arena),
        (ColumnType::Bit { bits }, ValueRef::UInt(number)) => {
            let bytes = usize::from(bits.div_ceil(8)).min(size_of::<u64>());
            ValueRef::Binary(arena.alloc_slice_copy(&number.to_be_bytes()[size_of::<u64>() - bytes..]))
        }
        _ => value,
    }
}

/// The text of a UUID or an address.
pub(super) fn shown_code<'a>(value: ValueRef<'a>, code: Code, arena: &'a Bump) -> ValueRef<'a> {
    match value {
        ValueRef::Binary(bytes) => {
            let mut text = String::new();
            code.write(bytes, &mut text);
            ValueRef::Text(arena.alloc_slice_copy(text.as_bytes()))
        }
        value => value,
    }
}

/// The number that an expression sees where it wants one: a member's, or that of the bits.
pub(super) fn number<'a>(value: ValueRef<'a>, of: &ColumnType) -> ValueRef<'a> {
    match (of, value) {
        (ColumnType::Enum { .. } | ColumnType::Set { .. }, ValueRef::UInt(number)) => {
            ValueRef::Int(number as i64)
        }
        (ColumnType::Enum { members, .. }, ValueRef::Text(text)) => {
            ValueRef::Int(members.find(text).map_or(0, |at| at as i64 + 1))
        }
        (ColumnType::Set { members, .. }, ValueRef::Text(text)) => {
            ValueRef::Int(members.read_set(text).0 as i64)
        }
        _ => value,
    }
}

/// Bits as a statement writes them, for a column of this type. More than 64 are no number.
pub(crate) fn number_of_bits<'a>(bits: &'a [u8], column: &ColumnType) -> ValueRef<'a> {
    if bits.is_empty() || !Class::of(column).is_numeric() {
        return ValueRef::Binary(bits);
    }
    let from = bits.iter().position(|byte| *byte != 0).unwrap_or(bits.len());
    match bits[from..].len() {
        0..=8 => ValueRef::UInt(bits[from..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))),
        _ => ValueRef::Double(f64::MAX),
    }
}

/// The own bytes of a UUID or an address.
pub(super) fn bytes_of<'a>(value: ValueRef<'a>, code: Code, arena: &'a Bump) -> ValueRef<'a> {
    match value {
        ValueRef::Binary(stored) => ValueRef::Binary(&arena.alloc(code.to_bytes(stored))[..code.bytes()]),
        value => value,
    }
}

/// The bytes that a column of UUIDs or addresses stores for a text. NULL, with warning 1292, if it is none.
pub(crate) fn read<'a>(value: &ValueRef<'a>, code: Code, context: &Context<'a>) -> ValueRef<'a> {
    let found = match value {
        ValueRef::Null => return ValueRef::Null,
        ValueRef::Binary(bytes) if bytes.len() == code.bytes() => code.of_bytes(bytes),
        ValueRef::Text(text) | ValueRef::Binary(text) => code.read(text),
        _ => None,
    };
    match found {
        Some(bytes) => ValueRef::Binary(&context.arena.alloc(bytes)[..code.bytes()]),
        None => {
            let shown = evaluate::to_text(value, context).map(evaluate::shown).unwrap_or_default();
            let message = format!("Incorrect {} value: '{shown}'", code.name());
            context.environment.warn(ErrorKind::TruncatedWrongValue, message);
            ValueRef::Null
        }
    }
}

/// What a column of such a type gives where no other form is wanted: bits are a number.
pub(super) fn is_number(column_type: &ColumnType) -> bool {
    matches!(column_type, ColumnType::Bit { .. })
}

/// The value as a column of members stores it, if it is seen as a text.
pub(super) fn stored(value: Value, of: &ColumnType) -> Value {
    match (of, value) {
        (ColumnType::Enum { members, .. }, Value::Text(text) | Value::Binary(text)) => {
            Value::UInt(members.find(&text).map_or(0, |at| at as u64 + 1))
        }
        (ColumnType::Set { members, .. }, Value::Text(text) | Value::Binary(text)) => {
            Value::UInt(members.read_set(&text).0)
        }
        (_, value) => value,
    }
}

/// The value of a column of type `of` as a column of type `to` takes it: between the same types the member's
/// number or the code's own bytes, a number where that stores one, and else what is seen.
pub(crate) fn given<'a>(
    value: ValueRef<'a>,
    of: &'a ColumnType,
    to: &ColumnType,
    arena: &'a Bump,
) -> ValueRef<'a> {
    match Class::of(to).is_numeric() {
        _ if !of.is_coded() => value,
        _ if (to.is_binary() || of == to)
            && let ColumnType::Code(code) = of =>
        {
            bytes_of(value, *code, arena)
        }
        _ if of == to => value,
        true if of.members().is_some() => number(value, of),
        _ => shown(value, of, arena),
    }
}

/// The type of what expressions see of a column's values.
pub(crate) fn seen_type(column_type: &ColumnType) -> ColumnType {
    match column_type.is_coded() {
        true => seen(column_type, true).result.column_type,
        false => column_type.clone(),
    }
}

/// True if clients and expressions see other values than the column stores.
pub(crate) fn is_seen_apart(column_type: &ColumnType) -> bool {
    column_type.is_coded() || matches!(column_type, ColumnType::Bit { .. })
}

/// The type of bits as bytes.
pub(super) fn bytes_type(column_type: &ColumnType, nullable: bool) -> Typed {
    let bytes = match column_type {
        ColumnType::Bit { bits } => bits.div_ceil(8).into(),
        other => other.image_bytes_max() as u32,
    };
    Typed::text(bytes, Collation::Binary, nullable)
}

/// The type of what expressions see of a column. That of an expression's column is its own.
pub(super) fn seen(column_type: &ColumnType, nullable: bool) -> Typed {
    let text = |chars, collation, derivation| {
        let mut typed = Typed::text(chars, collation, nullable).with_derivation(derivation);
        typed.result.decimals = 0;
        typed
    };
    match column_type {
        ColumnType::Enum { members, .. } => {
            text(members.enum_chars(), members.collation(), Derivation::Implicit)
        }
        ColumnType::Set { members, .. } => {
            text(members.set_chars(), members.collation(), Derivation::Implicit)
        }
        ColumnType::Code(code) => text(code.chars(), Collation::Utf8mb4GeneralCi, Derivation::Numeric),
        column_type => {
            let typed = Typed::new(column_type.clone(), nullable);
            if typed.class.is_text() { typed.with_derivation(Derivation::Implicit) } else { typed }
        }
    }
}

/// The type of [`number`].
pub(super) fn number_type(column_type: &ColumnType, nullable: bool) -> Typed {
    match column_type {
        ColumnType::Enum { bytes, .. } => {
            Typed::int(bytes + 1, false, nullable).with_display(1 + 2 * u32::from(*bytes))
        }
        ColumnType::Set { .. } => Typed::int(8, false, nullable),
        ColumnType::Bit { bits } => Typed::int(if *bits < 32 { 4 } else { 8 }, true, nullable)
            .with_display(u32::from(bits.div_ceil(3))),
        column_type => seen(column_type, nullable),
    }
}

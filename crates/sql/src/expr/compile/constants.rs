//! Types of literals and slots. Constants become values of the kind that they are compared with.

use super::super::SlotKind;
use super::super::coded;
use super::super::node::Node;
use super::super::result_type::{Class, Derivation, Typed};
use crate::ToldAs;
use types::temporal::{read_date_time, read_time};
use types::{Collation, ColumnType, Value};

/// The type of a literal.
pub(in super::super) fn constant_type(value: &Value, connection: Collation) -> Typed {
    match value {
        Value::Null => Typed::null(),
        Value::Int(number) => integer_type(number.unsigned_abs(), *number < 0),
        Value::UInt(number) => {
            let digits = decimal_digits(*number);
            Typed::int(8, true, false).with_display(digits)
        }
        Value::Float(_) | Value::Double(_) => Typed::double(false),
        Value::Decimal(number) => {
            let precision = number.digits().max(number.scale().max(1));
            Typed::decimal(precision as u32, number.scale(), false)
        }
        Value::Date(_) => Typed::new(ColumnType::Date, false),
        Value::Time(time) => Typed::new(ColumnType::Time { fsp: time.fsp }, false),
        Value::DateTime(moment) => Typed::new(ColumnType::DateTime { fsp: moment.fsp }, false),
        Value::Text(text) => Typed::text(types::collation::char_count(text) as u32, connection, false),
        Value::Binary(bytes) => Typed::text(bytes.len() as u32, Collation::Binary, false)
            .without_decimals()
            .told_as(ToldAs::Hexadecimal),
    }
}

/// How many digits a number has.
fn decimal_digits(number: u64) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

/// The type of an integer that is written out.
fn integer_type(number: u64, negative: bool) -> Typed {
    let digits = decimal_digits(number);
    let mut typed = Typed::int_as_wide(digits + u32::from(negative), false, false);
    typed.result.digits = digits as u8;
    typed
}

/// The type of a slot. Only the kind of its value is known.
pub(super) fn slot_type(kind: SlotKind, connection: Collation) -> Typed {
    const CHARS_UNKNOWN: u32 = 255;
    match kind {
        SlotKind::Null => Typed::null(),
        SlotKind::Int => Typed::int(8, false, true),
        SlotKind::UInt => Typed::int(8, true, true),
        SlotKind::Double => Typed::double(true),
        SlotKind::Decimal { scale: Some(scale) } => Typed::decimal(65, scale, true),
        SlotKind::Decimal { scale: None } => {
            let mut typed = Typed::decimal(65, 30, true);
            typed.scale_is_known = false;
            typed
        }
        SlotKind::Date => Typed::new(ColumnType::Date, true),
        SlotKind::FloatOf => Typed::new(ColumnType::Float { unsigned: false }, true),
        SlotKind::Time => Typed::new(ColumnType::Time { fsp: 6 }, true),
        SlotKind::TimeOf(fsp) => Typed::new(ColumnType::Time { fsp }, true),
        SlotKind::DateTime => Typed::new(ColumnType::DateTime { fsp: 6 }, true),
        SlotKind::DateTimeOf(fsp) => Typed::new(ColumnType::DateTime { fsp }, true),
        SlotKind::Binary => Typed::text(CHARS_UNKNOWN, Collation::Binary, true),
        SlotKind::TextOf(collation) => {
            Typed::text(CHARS_UNKNOWN, collation, true).with_derivation(Derivation::Implicit)
        }
        SlotKind::Text | SlotKind::Mixed => {
            Typed::text(CHARS_UNKNOWN, connection, true).with_derivation(Derivation::Coercible)
        }
    }
}

/// If one side is a date or time and the other a constant text, the text is read here and not for each row. A
/// text that is no date or time stays, and warns when the statement runs.
pub(super) fn align(left: &mut (Node, Typed), right: &mut (Node, Typed)) {
    align_constant(&mut left.0, right.1.class);
    align_constant(&mut right.0, left.1.class);
}

/// The sum of a text and an INTERVAL is a text. Where a number is wanted, it is the number that a date or a
/// moment gives, and not what the text begins with. A member of an ENUM or SET is a text, and its number.
pub(super) fn want_number(side: &mut (Node, Typed)) {
    if let Node::DateArithmetic { class, .. } = &mut side.0
        && class.is_text()
    {
        *class = Class::Double;
        side.1 = Typed::double_with(side.1.digits_as_double(), side.1.nullable());
    }
    if let Node::Coded { of, as_number, .. } = &mut side.0
        && !matches!(of, ColumnType::Code(_))
        && !*as_number
    {
        *as_number = true;
        side.1 = coded::number_type(of, side.1.nullable());
    }
}

/// The bits of a BIT are bytes where a text is wanted.
pub(super) fn want_bytes(side: &mut (Node, Typed)) {
    if let Node::Coded { of, as_number, .. } = &mut side.0
        && matches!(of, ColumnType::Bit { .. })
    {
        *as_number = false;
        side.1 = coded::bytes_type(of, side.1.nullable());
    }
}

/// A UUID or an address is its bytes where bytes are wanted.
pub(super) fn want_binary(side: &mut (Node, Typed)) {
    want_bytes(side);
    if let Node::Coded { of, as_number, .. } = &mut side.0
        && matches!(of, ColumnType::Code(_))
    {
        *as_number = true;
        side.1 = coded::bytes_type(of, side.1.nullable());
    }
}

/// A date or time that is written beside a BIGINT column is a number, as in MariaDB: beside an INT column,
/// the column's number is a date.
pub(super) fn number_beside_bigint(left: &mut (Node, Typed), right: &mut (Node, Typed)) {
    let is_bigint = |side: &(Node, Typed)| {
        matches!(side.0, Node::Column { .. })
            && matches!(side.1.result.column_type, ColumnType::Int { bytes: 8, .. })
    };
    let (column, constant) = if is_bigint(left) { (left, right) } else { (right, left) };
    let Node::Constant(value) = &constant.0 else { return };
    let number = match value {
        Value::Date(date) => date.to_number() as i64,
        Value::DateTime(moment) if moment.micros == 0 => moment.to_number() as i64,
        Value::Time(time) if time.micros % 1_000_000 == 0 => time.to_number(),
        _ => return,
    };
    if is_bigint(column) {
        *constant = (Node::Constant(Value::Int(number)), Typed::int(8, false, false));
    }
}

fn align_constant(node: &mut Node, other: Class) {
    let Node::Constant(value) = node else { return };
    let (Value::Text(text) | Value::Binary(text)) = value else { return };
    let read = match other {
        Class::Date | Class::DateTime => read_date_time(text)
            .filter(|reading| !reading.truncated)
            .map(|reading| Value::DateTime(reading.value)),
        Class::Time => {
            read_time(text).filter(|reading| !reading.truncated).map(|reading| Value::Time(reading.value))
        }
        _ => None,
    };
    if let Some(read) = read {
        *value = read;
    }
}

/// Digits of the seconds' fraction that a value has as a moment or a time. A text that is known has its own,
/// and another may have any number of them.
pub(in super::super) fn seconds_digits(node: &Node, typed: &Typed) -> u8 {
    match (typed.class, node) {
        (Class::Text | Class::Binary, Node::Constant(Value::Text(text) | Value::Binary(text))) => {
            let fraction = text.iter().rposition(|byte| *byte == b'.').map(|point| &text[point + 1..]);
            fraction
                .map_or(0, |digits| digits.iter().take(6).take_while(|digit| digit.is_ascii_digit()).count())
                as u8
        }
        (Class::Text | Class::Binary | Class::Double, _) => 6,
        (Class::Time | Class::DateTime | Class::Decimal, _) => typed.result.decimals.min(6),
        (Class::Null | Class::Int | Class::UInt | Class::Date, _) => 0,
    }
}

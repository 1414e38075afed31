//! Comparisons with UUIDs and addresses: their bytes are compared.

use super::super::node::Node;
use super::super::result_type::{Class, Typed};
use crate::{ErrorKind, SqlError};
use types::{Code, Collation, ColumnType, Value};

/// One side of a comparison.
type Side = (Node, Typed);

/// The code of a column.
fn code_of(side: &Side) -> Option<Code> {
    match &side.0 {
        Node::Coded { of: ColumnType::Code(code), .. } => Some(*code),
        _ => None,
    }
}

/// If one of the sides is a UUID or an address, all become its bytes: a text is read as one.
///
/// # Errors
/// 4078 for a side that can be none, as a number.
pub(super) fn align<'s>(
    operation: &str,
    sides: impl IntoIterator<Item = &'s mut Side>,
) -> Result<(), SqlError> {
    let mut sides: Vec<&mut Side> = sides.into_iter().collect();
    let Some(code) = sides.iter().find_map(|side| code_of(side)) else { return Ok(()) };
    if let Some(other) = sides.iter().find(|side| !may_be(side, code)) {
        let (mut left, mut right) = (code.name().to_owned(), name_of(other));
        // They are named in the order of the statement.
        if code_of(sides[0]) != Some(code) && std::ptr::eq(&**other, &*sides[0]) {
            (left, right) = (right, left);
        }
        let message = format!("Illegal parameter data types {left} and {right} for operation '{operation}'");
        return Err(SqlError::new(ErrorKind::IllegalParameterTypes, message));
    }
    sides.iter_mut().for_each(|side| make(side, code));
    Ok(())
}

/// Refuses arithmetic with UUIDs and addresses.
///
/// # Errors
/// 4078.
pub(super) fn refuse_arithmetic(operation: &str, left: &Side, right: &Side) -> Result<(), SqlError> {
    if code_of(left).or_else(|| code_of(right)).is_none() {
        return Ok(());
    }
    let (left, right) = (name_of(left), name_of(right));
    let message = format!("Illegal parameter data types {left} and {right} for operation '{operation}'");
    Err(SqlError::new(ErrorKind::IllegalParameterTypes, message))
}

/// Refuses a UUID or an address where only a number will do.
///
/// # Errors
/// 4079.
pub(in super::super) fn refuse(operation: &str, side: &Side) -> Result<(), SqlError> {
    let Some(code) = code_of(side) else { return Ok(()) };
    let message = format!("Illegal parameter data type {} for operation '{operation}'", code.name());
    Err(SqlError::new(ErrorKind::IllegalParameterType, message))
}

/// True for a code of the same kind, a text and NULL.
fn may_be(side: &Side, code: Code) -> bool {
    match code_of(side) {
        Some(other) => other == code,
        // The type of a parameter is known later.
        None => side.1.class.is_text() || side.1.class == Class::Null || matches!(side.0, Node::Slot(_)),
    }
}

/// How the message names the type of another value.
fn name_of(side: &Side) -> String {
    if let Some(code) = code_of(side) {
        return code.name().to_owned();
    }
    let name = match side.1.class {
        Class::Int | Class::UInt => match side.1.result.column_type {
            ColumnType::Int { bytes: 8, .. } if !matches!(side.0, Node::Slot(_) | Node::Constant(_)) => {
                "bigint"
            }
            _ => "int",
        },
        Class::Double => "double",
        Class::Decimal => "decimal",
        Class::Date => "date",
        Class::Time => "time",
        Class::DateTime => "datetime",
        Class::Null | Class::Text | Class::Binary => "varchar",
    };
    name.to_owned()
}

/// Makes a side the bytes of a code.
fn make(side: &mut Side, code: Code) {
    let node = std::mem::replace(&mut side.0, Node::Constant(Value::Null));
    let length = code.bytes() as u32;
    let (node, nullable) = match node {
        Node::Coded { operand, .. } => (*operand, side.1.nullable()),
        Node::Constant(Value::Text(text)) => match code.read(&text) {
            Some(bytes) => (Node::Constant(Value::Binary(bytes[..code.bytes()].to_vec())), false),
            None => (Node::Code { operand: Box::new(Node::Constant(Value::Text(text))), code }, true),
        },
        node => (Node::Code { operand: Box::new(node), code }, true),
    };
    *side = (node, Typed::text(length, Collation::Binary, nullable));
}

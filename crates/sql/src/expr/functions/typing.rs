//! What the typing of a call sees, and types that many functions have.

use crate::expr::IntervalUnit;
use crate::expr::compile::seconds_digits;
use crate::expr::node::{Conversion, Node};
use crate::expr::result_type::{Class, Derivation, Meaning, Typed};
use crate::{ErrorKind, SqlError};
use types::{Collation, ColumnType, Value};

/// The most bytes that functions like REPEAT are said to give.
pub(super) const BYTES_MAX: u32 = 16_777_216;

/// The same in characters.
pub(super) const CHARS_MAX: u32 = BYTES_MAX;

/// A call that gets its type.
pub(in crate::expr) struct Typing<'t> {
    /// The function's.
    pub name: &'static str,
    pub nodes: &'t [Node],
    /// Of the arguments.
    pub types: &'t [Typed],
    /// The unit of EXTRACT and TIMESTAMPDIFF.
    pub unit: Option<IntervalUnit>,
    /// The collation of literals.
    pub connection: Collation,
    /// By which the arguments compare, and how strongly they insist on it.
    pub collation: Collation,
    pub derivation: Derivation,
    /// In strict mode, as in MariaDB, the text of a function may always be NULL.
    pub is_strict: bool,
    /// What a choice turns its result into: the typing of choices sets it.
    pub to: Conversion,
}

impl<'t> Typing<'t> {
    /// All arguments' types.
    pub(crate) fn all(&self) -> Vec<&'t Typed> {
        self.types.iter().collect()
    }

    /// True if an argument can be NULL.
    pub(crate) fn nullable(&self) -> bool {
        self.types.iter().any(Typed::nullable)
    }

    /// The widest value of an argument, in characters; 0 if there is no such argument.
    pub(crate) fn chars(&self, index: usize) -> u32 {
        self.types.get(index).map_or(0, Typed::chars)
    }

    /// The widest value of all arguments together.
    pub(crate) fn chars_sum(&self) -> u32 {
        self.types.iter().fold(0, |sum, typed| sum.saturating_add(typed.chars()))
    }

    /// Digits after the point of an argument's seconds; 0 if there is no such argument. A text or a number
    /// may have any number of them.
    pub(crate) fn time_fsp(&self, index: usize) -> u8 {
        match (self.nodes.get(index), self.types.get(index)) {
            (Some(node), Some(typed)) => seconds_digits(node, typed),
            _ => 0,
        }
    }

    /// The value of an argument that is a constant number of digits.
    pub(crate) fn constant_places(&self, index: usize) -> Option<u8> {
        match self.nodes.get(index) {
            Some(Node::Constant(Value::Int(places))) => {
                Some((*places).clamp(0, types::decimal::SCALE_MAX as i64) as u8)
            }
            _ => None,
        }
    }

    /// The value of an argument that is a constant integer.
    pub(crate) fn constant_int(&self, index: usize) -> Option<i64> {
        match self.nodes.get(index) {
            Some(Node::Constant(Value::Int(number))) => Some(*number),
            _ => None,
        }
    }

    /// The widest value of an argument, in bytes.
    pub(crate) fn bytes(&self, index: usize) -> u32 {
        self.types.get(index).map_or(0, Typed::bytes)
    }

    /// A constant integer as a number of characters: none if it is negative.
    pub(crate) fn constant_count(&self, index: usize) -> Option<u32> {
        let number = match self.nodes.get(index) {
            Some(Node::Constant(Value::UInt(_))) => i64::MAX,
            _ => self.constant_int(index)?,
        };
        Some(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
    }

    /// The value of an argument that is a constant text.
    pub(crate) fn constant_text(&self, index: usize) -> Option<&'t [u8]> {
        match self.nodes.get(index) {
            Some(Node::Constant(Value::Text(text) | Value::Binary(text))) => Some(text),
            _ => None,
        }
    }

    /// # Errors
    /// 4079 if an argument is no text. A parameter may still get one: [`super::Arguments::expected_text`].
    pub(crate) fn expect_text(&self, index: usize) -> Result<(), SqlError> {
        match self.types.get(index).and_then(type_name) {
            Some(name) if !matches!(self.nodes[index], Node::Slot(_)) => Err(illegal_type(name, self.name)),
            Some(_) | None => Ok(()),
        }
    }

    /// Text in the collation of the arguments.
    pub(crate) fn text(&self, chars: u32, nullable: bool) -> Typed {
        let chars_max = BYTES_MAX / self.collation.character_bytes_max();
        self.any_text(chars.min(chars_max), nullable)
    }

    /// The same, without a limit.
    fn any_text(&self, chars: u32, nullable: bool) -> Typed {
        let typed = Typed::text(chars, self.collation, nullable || self.is_strict);
        // Numbers put together are characters of the connection.
        typed.with_derivation(match self.derivation {
            Derivation::Numeric => Derivation::Coercible,
            derivation => derivation,
        })
    }

    /// Text in the collation of the connection.
    pub(crate) fn plain(&self, chars: u32, nullable: bool) -> Typed {
        let chars_max = BYTES_MAX / self.connection.character_bytes_max();
        Typed::text(chars.min(chars_max), self.connection, nullable || self.is_strict)
    }

    /// Text that the system gives, such as VERSION().
    pub(crate) fn system(&self, chars: u32, nullable: bool) -> Typed {
        Typed::system(chars, nullable)
    }

    /// A signed integer of so many bytes, which is NULL if an argument is.
    pub(crate) fn int(&self, bytes: u8) -> Typed {
        Typed::int(bytes, false, self.nullable())
    }

    pub(crate) fn date(&self, nullable: bool) -> Typed {
        Typed::new(ColumnType::Date, nullable)
    }

    pub(crate) fn time(&self, fsp: u8, nullable: bool) -> Typed {
        Typed::new(ColumnType::Time { fsp }, nullable)
    }

    pub(crate) fn date_time(&self, fsp: u8, nullable: bool) -> Typed {
        Typed::new(ColumnType::DateTime { fsp }, nullable)
    }
}

type Given = Result<Typed, SqlError>;

/// 4079: a function does not take values of such a type.
pub(super) fn illegal_type(name: &str, function: &str) -> SqlError {
    let message = format!("Illegal parameter data type {name} for operation '{function}'");
    SqlError::new(ErrorKind::IllegalParameterType, message)
}

/// What messages call a type of values that are no texts. `None` for texts and NULL.
fn type_name(typed: &Typed) -> Option<&'static str> {
    let names = match typed.result.column_type {
        _ if typed.class == Class::Null => return None,
        _ if typed.meaning == Meaning::Boolean => ["boolean"; 2],
        ColumnType::Int { bytes: 1, .. } => ["tinyint", "tinyint unsigned"],
        ColumnType::Int { bytes: 2, .. } => ["smallint", "smallint unsigned"],
        ColumnType::Int { bytes: 3, .. } => ["mediumint", "mediumint unsigned"],
        ColumnType::Int { bytes: 4, .. } => ["int", "int unsigned"],
        ColumnType::Int { .. } => ["bigint", "bigint unsigned"],
        ColumnType::Float { .. } => ["float"; 2],
        ColumnType::Double { .. } => ["double"; 2],
        ColumnType::Decimal { .. } => ["decimal"; 2],
        ColumnType::Date => ["date"; 2],
        ColumnType::Time { .. } => ["time"; 2],
        ColumnType::DateTime { .. } => ["datetime"; 2],
        ColumnType::Timestamp { .. } => ["timestamp"; 2],
        ColumnType::Year => ["year"; 2],
        _ => return None,
    };
    Some(names[usize::from(typed.class == Class::UInt)])
}

/// INT of at most so many characters, which is NULL if an argument is.
pub(super) fn int_of<const CHARS: u32>(typing: &mut Typing<'_>) -> Given {
    Ok(typing.int(4).with_display(CHARS))
}

/// INT of at most so many characters that may be NULL for other reasons.
pub(super) fn nullable_int_of<const CHARS: u32>(_: &mut Typing<'_>) -> Given {
    Ok(Typed::int(4, false, true).with_display(CHARS))
}

/// A text as long as the first argument at most.
pub(super) fn like_first_text(typing: &mut Typing<'_>) -> Given {
    Ok(typing.any_text(typing.chars(0), typing.nullable()))
}

/// A floating-point number, or NULL where the function is not defined.
pub(super) fn nullable_double(_: &mut Typing<'_>) -> Given {
    Ok(Typed::double(true))
}

/// A date, or NULL.
pub(super) fn nullable_date(typing: &mut Typing<'_>) -> Given {
    Ok(typing.date(true))
}

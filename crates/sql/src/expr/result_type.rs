//! Types of expressions.

use crate::ToldAs;
use crate::result::DECIMALS_FLOATING;
use types::{Collation, ColumnType};

/// The type of an expression's values, as result sets describe it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResultType {
    /// NULL alone is `Binary { bytes: 0 }`.
    pub column_type: ColumnType,
    pub nullable: bool,
    /// `Binary` for numbers and times.
    pub collation: Collation,
    /// Digits after the point. As in MariaDB: 31 for floating point without fixed digits, and 39 for a text
    /// that does not come from a column.
    pub decimals: u8,
    /// The widest value, in characters.
    pub display_chars: u32,
    /// The digits of an integer, for the precision of what is computed from it.
    pub digits: u8,
    pub told_as: ToldAs,
}

/// Integers that are shown in more characters are BIGINT.
const INT_CHARS_MAX: u32 = 9;

/// How wide functions say that a BIGINT is.
const BIGINT_CHARS: u32 = 21;

/// A longer value of bytes is a BLOB: as many as 16,383 characters take.
const VARBINARY_BYTES_MAX: u32 = 65_532;

/// Digits that a double always keeps.
const DOUBLE_DIGITS: u32 = 15;

/// `decimals` of a text that an expression makes.
const DECIMALS_TEXT: u8 = 39;

impl ResultType {
    pub(crate) fn of(column_type: ColumnType, nullable: bool) -> ResultType {
        let decimals = match column_type {
            ColumnType::Float { .. } | ColumnType::Double { .. } => DECIMALS_FLOATING,
            ColumnType::Decimal { scale, .. } => scale,
            ColumnType::Time { fsp } | ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => fsp,
            _ => 0,
        };
        let collation = column_type.collation();
        let display_chars = display_chars(&column_type);
        let digits = integer_digits(&column_type);
        let told_as = ToldAs::Itself;
        ResultType { column_type, nullable, collation, decimals, display_chars, digits, told_as }
    }
}

/// The digits of an integer column, whatever width it is shown with.
fn integer_digits(column_type: &ColumnType) -> u8 {
    match *column_type {
        ColumnType::Int { bytes, unsigned } => match (bytes, unsigned) {
            (1, _) => 3,
            (2, _) => 5,
            (3, unsigned) => 7 + u8::from(unsigned),
            (4, _) => 10,
            (_, unsigned) => 19 + u8::from(unsigned),
        },
        _ => 0,
    }
}

/// The widest value of a type, in characters.
fn display_chars(column_type: &ColumnType) -> u32 {
    let fraction = |fsp: u8| if fsp == 0 { 0 } else { fsp as u32 + 1 };
    match *column_type {
        ColumnType::Int { bytes, unsigned } => match (bytes, unsigned) {
            (1, false) => 4,
            (1, true) => 3,
            (2, false) => 6,
            (2, true) => 5,
            (3, false) => 9,
            (3, true) => 8,
            (4, false) => 11,
            (4, true) => 10,
            _ => 20,
        },
        ColumnType::Float { .. } => 12,
        ColumnType::Double { .. } => 22,
        ColumnType::Decimal { precision, scale, unsigned } => {
            precision as u32 + (scale > 0) as u32 + !unsigned as u32
        }
        ColumnType::Char { chars, .. } | ColumnType::Varchar { chars, .. } => chars,
        ColumnType::Text { bytes_max, .. } | ColumnType::Blob { bytes_max } => bytes_max,
        ColumnType::Binary { bytes } | ColumnType::Varbinary { bytes } => bytes,
        ColumnType::Date => 10,
        ColumnType::Time { fsp } => 10 + fraction(fsp),
        ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => 19 + fraction(fsp),
        ColumnType::Year => 4,
        ColumnType::Enum { ref members, .. } => members.enum_chars(),
        ColumnType::Set { ref members, .. } => members.set_chars(),
        ColumnType::Bit { bits } => bits.into(),
        ColumnType::Code(code) => code.chars(),
    }
}

/// Kinds of values as far as coercion tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Null,
    Int,
    UInt,
    Double,
    Decimal,
    Text,
    Binary,
    Date,
    Time,
    DateTime,
}

impl Class {
    pub(super) fn of(column_type: &ColumnType) -> Class {
        match column_type {
            ColumnType::Int { unsigned: false, .. } => Class::Int,
            ColumnType::Int { unsigned: true, .. } | ColumnType::Year | ColumnType::Bit { .. } => Class::UInt,
            ColumnType::Float { .. } | ColumnType::Double { .. } => Class::Double,
            ColumnType::Decimal { .. } => Class::Decimal,
            ColumnType::Char { .. }
            | ColumnType::Varchar { .. }
            | ColumnType::Text { .. }
            | ColumnType::Enum { .. }
            | ColumnType::Set { .. }
            | ColumnType::Code(_) => Class::Text,
            ColumnType::Binary { .. } | ColumnType::Varbinary { .. } | ColumnType::Blob { .. } => {
                Class::Binary
            }
            ColumnType::Date => Class::Date,
            ColumnType::Time { .. } => Class::Time,
            ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => Class::DateTime,
        }
    }

    pub(super) fn is_numeric(self) -> bool {
        matches!(self, Class::Int | Class::UInt | Class::Double | Class::Decimal)
    }

    pub(super) fn is_temporal(self) -> bool {
        matches!(self, Class::Date | Class::Time | Class::DateTime)
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self, Class::Text | Class::Binary)
    }
}

/// The precedence of a text's collation. A smaller number has precedence over a larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Derivation {
    /// COLLATE.
    Explicit = 0,
    /// Columns whose collations differ, put together: no comparison is possible.
    None = 1,
    /// A column.
    Implicit = 2,
    /// A value of the system: USER(), VERSION().
    System,
    /// A literal or parameter.
    Coercible,
    Numeric,
    /// NULL.
    Ignorable,
}

impl Derivation {
    /// COERCIBILITY().
    pub(super) fn number(self) -> i64 {
        self as i64
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Derivation::Explicit => "EXPLICIT",
            Derivation::None => "NONE",
            Derivation::Implicit => "IMPLICIT",
            Derivation::System => "SYSCONST",
            Derivation::Coercible => "COERCIBLE",
            Derivation::Numeric => "NUMERIC",
            Derivation::Ignorable => "IGNORABLE",
        }
    }
}

/// What the JSON functions, and UNIX_TIMESTAMP, take a value for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Meaning {
    #[default]
    Plain,
    /// The result of a test: `true` or `false`.
    Boolean,
    /// A JSON text: its value.
    Json,
    /// A moment as UTC shows it, and not as the session's zone does.
    InUtc,
}

/// The properties of an expression that compilation uses.
#[derive(Clone, Debug)]
pub(super) struct Typed {
    pub class: Class,
    pub result: ResultType,
    pub derivation: Derivation,
    /// False for a DECIMAL if only the kind of its value is known. Then `decimals` is a guess.
    pub scale_is_known: bool,
    pub meaning: Meaning,
}

impl Typed {
    pub(super) fn new(column_type: ColumnType, nullable: bool) -> Typed {
        let class = Class::of(&column_type);
        let derivation = if class.is_text() { Derivation::Coercible } else { Derivation::Numeric };
        Typed {
            class,
            result: ResultType::of(column_type, nullable),
            derivation,
            scale_is_known: true,
            meaning: Meaning::Plain,
        }
    }

    pub(super) fn null() -> Typed {
        Typed {
            class: Class::Null,
            result: ResultType::of(ColumnType::Binary { bytes: 0 }, true),
            derivation: Derivation::Ignorable,
            scale_is_known: true,
            meaning: Meaning::Plain,
        }
    }

    pub(super) fn int(bytes: u8, unsigned: bool, nullable: bool) -> Typed {
        Typed::new(ColumnType::Int { bytes, unsigned }, nullable)
    }

    /// A BIGINT as functions give it: as wide as the widest one, and one character more.
    pub(super) fn bigint(unsigned: bool, nullable: bool) -> Typed {
        Typed::int(8, unsigned, nullable).with_display(BIGINT_CHARS)
    }

    /// An integer of at most so many digits. As in MariaDB, an INT if it is not wide.
    pub(super) fn int_of_digits(digits: u32, unsigned: bool, nullable: bool) -> Typed {
        let digits = digits.clamp(1, types::decimal::PRECISION_MAX as u32);
        Typed::int_as_wide(digits + u32::from(!unsigned), unsigned, nullable)
    }

    /// An integer that is shown in so many characters. As in MariaDB, an INT if these are few.
    pub(super) fn int_as_wide(chars: u32, unsigned: bool, nullable: bool) -> Typed {
        Typed::int(if chars <= INT_CHARS_MAX { 4 } else { 8 }, unsigned, nullable).with_display(chars)
    }

    /// 0 or 1.
    pub(super) fn boolean(nullable: bool) -> Typed {
        Typed { meaning: Meaning::Boolean, ..Typed::int(4, false, nullable).with_display(1) }
    }

    pub(super) fn double(nullable: bool) -> Typed {
        // One character more than a column.
        Typed::new(ColumnType::Double { unsigned: false }, nullable).with_display(23)
    }

    /// A double that shows so many digits after the point, or all that it has if that is more than 30.
    pub(super) fn double_with(decimals: u32, nullable: bool) -> Typed {
        let decimals = decimals.min(DECIMALS_FLOATING as u32);
        let mut typed = Typed::double(nullable);
        typed.result.decimals = decimals as u8;
        if decimals < DECIMALS_FLOATING as u32 {
            typed.result.display_chars = DOUBLE_DIGITS + 2 + decimals;
        }
        typed
    }

    /// The digits after the point that a double made of this shows. A text does not limit them.
    pub(super) fn digits_as_double(&self) -> u32 {
        match self.class {
            Class::Text | Class::Binary => DECIMALS_FLOATING as u32,
            _ => self.result.decimals as u32,
        }
    }

    pub(super) fn decimal(precision: u32, scale: u8, nullable: bool) -> Typed {
        let scale = scale.min(types::decimal::SCALE_MAX);
        let precision = precision.clamp(scale.max(1) as u32, types::decimal::PRECISION_MAX as u32) as u8;
        Typed::new(ColumnType::Decimal { precision, scale, unsigned: false }, nullable)
    }

    /// Text that the system gives, such as VERSION().
    pub(super) fn system(chars: u32, nullable: bool) -> Typed {
        const UTF8MB3_GENERAL_CI: u16 = 33;
        let collation = Collation::by_id(UTF8MB3_GENERAL_CI).unwrap_or(Collation::Utf8mb4GeneralCi);
        Typed::text(chars, collation, nullable).with_derivation(Derivation::System)
    }

    pub(super) fn text(chars: u32, collation: Collation, nullable: bool) -> Typed {
        let column_type = match (collation, chars) {
            (Collation::Binary, 0..=VARBINARY_BYTES_MAX) => ColumnType::Varbinary { bytes: chars },
            (Collation::Binary, _) => ColumnType::Blob { bytes_max: chars },
            (_, 0..=16_383) => ColumnType::Varchar { chars, collation },
            _ => ColumnType::Text { bytes_max: chars.saturating_mul(4), collation },
        };
        let mut typed = Typed::new(column_type, nullable);
        typed.result.decimals = DECIMALS_TEXT;
        if chars <= 16_383 || collation == Collation::Binary { typed } else { typed.with_display(chars) }
    }

    /// The same, shown in so many characters. An integer then has so many digits, and a sign.
    pub(super) fn with_display(mut self, chars: u32) -> Typed {
        self.result.display_chars = chars;
        if let ColumnType::Int { unsigned, .. } = self.result.column_type {
            let digits = chars.saturating_sub(u32::from(!unsigned)).max(1);
            self.result.digits = u8::try_from(digits).unwrap_or(u8::MAX);
        }
        self
    }

    /// The same, without digits after the point: a few functions say nothing of their texts.
    pub(super) fn without_decimals(mut self) -> Typed {
        self.result.decimals = 0;
        self
    }

    pub(super) fn told_as(mut self, told_as: ToldAs) -> Typed {
        self.result.told_as = told_as;
        self
    }

    pub(super) fn with_derivation(mut self, derivation: Derivation) -> Typed {
        self.derivation = derivation;
        self
    }

    pub(super) fn nullable(&self) -> bool {
        self.result.nullable
    }

    pub(super) fn collation(&self) -> Collation {
        self.result.collation
    }

    /// The widest value as text.
    pub(super) fn chars(&self) -> u32 {
        self.result.display_chars
    }

    pub(super) fn is_unsigned(&self) -> bool {
        match self.result.column_type {
            ColumnType::Int { unsigned, .. } | ColumnType::Decimal { unsigned, .. } => unsigned,
            _ => false,
        }
    }

    /// The same decimal, which is never negative.
    pub(super) fn without_sign(self) -> Typed {
        self.signed(false)
    }

    /// The same decimal, which may be negative.
    pub(super) fn with_sign(self) -> Typed {
        self.signed(true)
    }

    fn signed(mut self, signed: bool) -> Typed {
        if let ColumnType::Decimal { precision, scale, unsigned } = &mut self.result.column_type {
            *unsigned = !signed;
            let point = u32::from(*scale > 0);
            self.result.display_chars = u32::from(*precision) + point + u32::from(signed);
        }
        self
    }

    /// The widest value as text, in bytes.
    pub(super) fn bytes(&self) -> u32 {
        match self.class {
            Class::Text => self.chars().saturating_mul(self.collation().character_bytes_max()),
            _ => self.chars(),
        }
    }

    /// The same for a text that an expression makes.
    pub(super) fn computed(mut self) -> Typed {
        if self.class.is_text() {
            self.result.decimals = DECIMALS_TEXT;
        }
        self
    }

    /// Digits before and after the point, as decimal arithmetic counts them.
    pub(super) fn digits(&self) -> (u32, u8) {
        match self.result.column_type {
            ColumnType::Decimal { precision, scale, .. } => {
                ((precision - scale.min(precision)) as u32, scale)
            }
            ColumnType::Int { .. } => (u32::from(self.result.digits), 0),
            ColumnType::Year => (4, 0),
            ColumnType::Date => (8, 0),
            ColumnType::Time { fsp } => (7, fsp),
            ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => (14, fsp),
            _ => (20, 0),
        }
    }
}

//! What functions give.

use super::super::node::Conversion;
use super::super::result_type::{Class, Derivation, Typed};
use super::super::{Function, IntervalUnit};
use super::{collations, unify};
use crate::SqlError;
use types::{Collation, ColumnType};

/// The most characters that functions like REPEAT are said to give.
const CHARS_MAX: u32 = 16_777_215;

/// The collation that the arguments compare by, the type of the result, and what results turn into.
pub(super) fn call_type(
    function: Function,
    arguments: &[Typed],
    unit: Option<IntervalUnit>,
    connection: Collation,
) -> Result<(Collation, Typed, Conversion), SqlError> {
    use Function as F;
    let all: Vec<&Typed> = arguments.iter().collect();
    let nullable = arguments.iter().any(Typed::nullable);
    let (collation, derivation) = match function {
        // Their arguments need not mix.
        F::If => collations::aggregate(&all[1..], function.name(), connection)?,
        F::Charset | F::CollationOf | F::Coercibility => (connection, Derivation::System),
        _ => collations::aggregate(&all, function.name(), connection)?,
    };
    let chars = |index: usize| arguments.get(index).map_or(0, Typed::chars);
    let chars_sum = || arguments.iter().fold(0u32, |sum, typed| sum.saturating_add(typed.chars()));
    let fsp = |index: usize| arguments.get(index).map_or(0, |typed| typed.result.decimals.min(6));
    let text = |chars: u32, nullable: bool| {
        // Numbers put together are characters of the connection.
        let typed = Typed::text(chars.min(CHARS_MAX), collation, nullable);
        typed.with_derivation(if derivation == Derivation::Numeric {
            Derivation::Coercible
        } else {
            derivation
        })
    };
    let plain = |chars: u32, nullable: bool| Typed::text(chars, connection, nullable);
    let system = |chars: u32, nullable: bool| {
        Typed::text(chars, Collation::Utf8mb4GeneralCi, nullable).with_derivation(Derivation::System)
    };
    let int = |bytes: u8| Typed::int(bytes, false, nullable);
    let date_time = |fsp: u8, nullable: bool| Typed::new(ColumnType::DateTime { fsp }, nullable);
    let time = |fsp: u8, nullable: bool| Typed::new(ColumnType::Time { fsp }, nullable);
    let mut to = Conversion::None;
    let typed = match function {
        F::Version => system(60, false),
        F::Database => system(64, true),
        F::User | F::CurrentUser => system(384, false),
        F::Charset | F::CollationOf => system(64, false),
        F::Coercibility => Typed::int(4, false, false),
        F::Uuid => system(36, false),
        F::ConnectionId | F::LastInsertId => Typed::int(8, true, false),
        F::FoundRows | F::RowCount => Typed::int(8, false, false),
        F::Sleep | F::Benchmark => Typed::int(4, false, false),

        F::If => {
            let (typed, conversion) = unify(&all[1..], function.name(), connection)?;
            to = conversion;
            typed
        }
        F::IfNull | F::Coalesce => {
            let (mut typed, conversion) = unify(&all, function.name(), connection)?;
            to = conversion;
            typed.result.nullable = arguments.iter().all(Typed::nullable);
            typed
        }
        F::Greatest | F::Least => {
            let (typed, conversion) = unify(&all, function.name(), connection)?;
            // A number beside texts makes the texts numbers.
            if all.iter().any(|typed| typed.class.is_numeric())
                && all.iter().any(|typed| typed.class.is_text())
            {
                to = Conversion::Double;
                Typed::double(nullable)
            } else {
                to = conversion;
                typed
            }
        }
        F::NullIf => {
            let mut typed = arguments[0].clone();
            typed.result.nullable = true;
            typed
        }
        F::IsNull => Typed::boolean(false),
        F::Interval | F::Field => Typed::int(4, false, false),
        F::Elt => text(all[1..].iter().map(|typed| typed.chars()).max().unwrap_or(0), true),
        F::StrCmp => int(4),

        F::Concat => text(chars_sum(), nullable),
        F::ConcatWs => {
            let separators = chars(0).saturating_mul(arguments.len() as u32 - 2);
            text(chars_sum().saturating_sub(chars(0)).saturating_add(separators), arguments[0].nullable())
        }
        F::Substring
        | F::SubstringIndex
        | F::Left
        | F::Right
        | F::Upper
        | F::Lower
        | F::Trim
        | F::LeftTrim
        | F::RightTrim
        | F::Reverse => text(chars(0), nullable),
        F::Replace => text(chars(0).saturating_mul(chars(2).max(1)), nullable),
        F::Insert => text(chars(0).saturating_add(chars(3)), nullable),
        F::LeftPad | F::RightPad | F::Repeat => text(CHARS_MAX, true),
        F::Space => plain(CHARS_MAX, true),
        F::Length | F::CharLength | F::BitLength | F::Instr | F::Locate | F::FindInSet => int(4),
        F::Ascii | F::Ord => int(4),
        F::Hex => plain(chars(0).saturating_mul(8).max(16), nullable),
        F::Unhex => Typed::text(chars(0).div_ceil(2), Collation::Binary, true),
        F::Char => Typed::text(arguments.len() as u32 * 4, Collation::Binary, true),
        F::Bin | F::Oct | F::Conv => plain(64, true),
        F::Quote => text(chars(0).saturating_mul(2).saturating_add(2), nullable),
        F::Format => plain(chars(0).saturating_mul(2).saturating_add(31), nullable),
        F::Md5 => plain(32, nullable),
        F::Sha1 => plain(40, nullable),
        F::Crc32 => Typed::int(4, true, nullable),

        F::Abs => match arguments[0].class {
            Class::Text | Class::Binary | Class::Double => {
                Typed::double_with(arguments[0].digits_as_double(), nullable)
            }
            Class::Decimal | Class::UInt => arguments[0].clone(),
            _ => int(8),
        },
        F::Ceiling | F::Floor => match arguments[0].class {
            Class::Text | Class::Binary | Class::Double => Typed::double(nullable),
            Class::Decimal if arguments[0].digits().0 >= 18 => {
                Typed::decimal(arguments[0].digits().0 + 1, 0, nullable)
            }
            Class::UInt => Typed::int(8, true, nullable),
            _ => int(8),
        },
        F::Round | F::Truncate => match arguments[0].class {
            Class::Text | Class::Binary | Class::Double if arguments.len() == 1 => {
                Typed::double_with(0, nullable)
            }
            Class::Text | Class::Binary | Class::Double => Typed::double(nullable),
            // The number of digits is a value: what is known is only that there are no more than before.
            Class::Decimal => {
                let (whole, scale) = arguments[0].digits();
                let scale = if arguments.len() == 1 { 0 } else { scale };
                let mut typed = Typed::decimal(whole + 1 + scale as u32, scale, nullable);
                typed.scale_is_known = arguments.len() == 1;
                typed
            }
            Class::UInt => Typed::int(8, true, nullable),
            _ => int(8),
        },
        F::Mod => super::arithmetic_type(super::Arithmetic::Modulo, &arguments[0], &arguments[1]),
        F::Sign => int(4),
        F::Pi => Typed::double_with(6, false),
        F::Random => Typed::double(false),
        F::Power
        | F::SquareRoot
        | F::Exp
        | F::Ln
        | F::Log
        | F::Log2
        | F::Log10
        | F::Sin
        | F::Cos
        | F::Tan
        | F::Cot
        | F::Asin
        | F::Acos
        | F::Atan
        | F::Radians
        | F::Degrees => Typed::double(true),
        F::BitCount => int(4),

        // Their argument, if any, is a constant number of digits whose value the nodes know.
        F::Now | F::SysDate | F::UtcTimestamp => date_time(if arguments.is_empty() { 0 } else { 6 }, false),
        F::CurrentDate | F::UtcDate => Typed::new(ColumnType::Date, false),
        F::CurrentTime | F::UtcTime => time(if arguments.is_empty() { 0 } else { 6 }, false),
        F::UnixTimestamp if fsp(0) == 0 && !arguments.first().is_some_and(|typed| typed.class.is_text()) => {
            Typed::int(8, false, !arguments.is_empty())
        }
        F::UnixTimestamp => {
            let mut typed = Typed::decimal(17, 6, true);
            typed.scale_is_known = false;
            typed
        }
        F::FromUnixTime if arguments.len() == 1 => date_time(fsp(0), true),
        F::FromUnixTime => plain(255, true),
        F::Date | F::LastDay | F::FromDays | F::MakeDate => Typed::new(ColumnType::Date, true),
        F::Time | F::SecToTime => time(time_fsp(&arguments[0]), true),
        F::MakeTime => time(fsp(2), true),
        F::TimeDiff => time(time_fsp(&arguments[0]).max(time_fsp(&arguments[1])), true),
        F::Timestamp => date_time(time_fsp(&arguments[0]), true),
        F::AddTime | F::SubTime => match arguments[0].class {
            Class::Time => time(fsp(0).max(fsp(1)), true),
            Class::DateTime | Class::Date => date_time(fsp(0).max(fsp(1)), true),
            _ => plain(26, true),
        },
        F::Year
        | F::Quarter
        | F::Month
        | F::Week
        | F::WeekOfYear
        | F::YearWeek
        | F::Day
        | F::DayOfWeek
        | F::DayOfYear
        | F::Weekday
        | F::Hour
        | F::Minute
        | F::Second
        | F::Microsecond
        | F::DateDiff
        | F::ToDays => Typed::int(4, false, true),
        F::Extract => {
            Typed::int(if unit.is_some_and(IntervalUnit::has_fraction) { 8 } else { 4 }, false, true)
        }
        F::TimestampDiff => Typed::int(8, false, true),
        F::TimeToSec if fsp(0) == 0 => Typed::int(8, false, true),
        F::TimeToSec => Typed::decimal(17, fsp(0), true),
        F::MonthName | F::DayName => plain(9, true),
        F::DateFormat | F::TimeFormat => plain(chars(1).saturating_mul(10).min(255), true),
        F::StrToDate => date_time(6, true),
        // Compiled to nodes of their own.
        F::DateAdd | F::DateSub | F::TimestampAdd => plain(26, true),
    };
    Ok((collation, typed, to))
}

/// The digits of fraction that a value has as a time: of a text or number any.
fn time_fsp(typed: &Typed) -> u8 {
    match typed.class {
        Class::Time | Class::DateTime | Class::Decimal => typed.result.decimals.min(6),
        Class::Text | Class::Binary | Class::Double => 6,
        _ => 0,
    }
}

//! The one type that the branches of a choice have together.

use super::super::node::Conversion;
use super::super::result_type::{Class, Derivation, Typed};
use super::collations;
use crate::{SqlError, ToldAs};
use types::{Collation, ColumnType};

/// The type that holds values of all these types, and the conversion that each value needs.
pub(in super::super) fn unify(
    types: &[&Typed],
    operation: &str,
    connection: Collation,
) -> Result<(Typed, Conversion), SqlError> {
    let (mut typed, conversion) = unify_values(types, operation, connection)?;
    let mut known = types.iter().filter(|typed| typed.class != Class::Null).map(|typed| typed.meaning);
    let first = known.next().unwrap_or_default();
    if known.all(|meaning| meaning == first) {
        typed.meaning = first;
    }
    Ok((typed, conversion))
}

fn unify_values(
    types: &[&Typed],
    operation: &str,
    connection: Collation,
) -> Result<(Typed, Conversion), SqlError> {
    let nullable = types.iter().any(|typed| typed.nullable());
    let known: Vec<&Typed> = types.iter().copied().filter(|typed| typed.class != Class::Null).collect();
    let any = |class| known.iter().any(|typed| typed.class == class);
    let all = |class| known.iter().all(|typed| typed.class == class);
    let Some(first) = known.first() else { return Ok((Typed::null(), Conversion::None)) };
    let fsp = known.iter().map(|typed| typed.result.decimals.min(6)).max().unwrap_or(0);
    let chars = known.iter().map(|typed| typed.chars()).max().unwrap_or(0);

    if known.iter().all(|typed| typed.class.is_numeric()) {
        if known.iter().all(|typed| matches!(typed.result.column_type, ColumnType::Float { .. })) {
            return Ok((Typed::new(ColumnType::Float { unsigned: false }, nullable), Conversion::None));
        }
        if any(Class::Double) {
            let decimals = known.iter().map(|typed| typed.digits_as_double()).max().unwrap_or_default();
            return Ok((Typed::double_with(decimals, nullable).with_display(chars), Conversion::Double));
        }
        let whole = known.iter().map(|typed| typed.digits().0).max().unwrap_or(1);
        let scale = known.iter().map(|typed| typed.digits().1).max().unwrap_or(0);
        // As in MariaDB, no integer type holds both values with a sign and values without one.
        let mixed = any(Class::Int) && any(Class::UInt);
        if any(Class::Decimal) || mixed {
            let scale_is_known = known.iter().all(|typed| typed.scale_is_known);
            let mut typed = Typed::decimal(whole + scale as u32, scale, nullable);
            if known
                .iter()
                .all(|typed| matches!(typed.result.column_type, ColumnType::Decimal { unsigned: true, .. }))
            {
                typed = typed.without_sign();
            }
            typed.scale_is_known = scale_is_known;
            return Ok((typed, Conversion::Decimal(scale_is_known.then_some(scale))));
        }
        let bytes = known.iter().map(|typed| int_bytes(typed)).max().unwrap_or(8);
        let unsigned = all(Class::UInt);
        if known.iter().all(|typed| typed.result.column_type == ColumnType::Year) {
            return Ok((Typed::new(ColumnType::Year, nullable), Conversion::None));
        }
        let chars = whole + u32::from(!unsigned);
        return Ok((Typed::int(bytes, unsigned, nullable).with_display(chars), Conversion::None));
    }
    if known.iter().all(|typed| typed.class.is_temporal()) {
        if known.iter().all(|typed| typed.class == first.class) {
            // A value shows its own digits, so that values with fewer are given the rest.
            let alike = known.iter().all(|typed| typed.result.decimals == first.result.decimals);
            let (column_type, to) = temporal(first.class, fsp, digits_shown(known.iter().copied()));
            return Ok((Typed::new(column_type, nullable), if alike { Conversion::None } else { to }));
        }
        let (column_type, to) = temporal(Class::DateTime, fsp, digits_shown(known.iter().copied()));
        return Ok((Typed::new(column_type, nullable), to));
    }
    let (collation, derivation) = collations::aggregate(&known, operation, connection)?;
    let mut typed = Typed::text(chars, collation, nullable);
    if known.iter().filter(|typed| typed.class.is_text()).all(|typed| is_told_as_char(typed)) {
        typed = typed.told_as(ToldAs::Char);
    }
    let typed = typed.with_derivation(derivation.max(Derivation::Explicit));
    Ok((typed, if collation == Collation::Binary { Conversion::Binary } else { Conversion::Text }))
}

/// The type of a class of times, and the conversion to it. Values show at least `shown` digits of the
/// seconds' fraction.
fn temporal(class: Class, fsp: u8, shown: u8) -> (ColumnType, Conversion) {
    match class {
        Class::Date => (ColumnType::Date, Conversion::Date),
        Class::Time => (ColumnType::Time { fsp }, Conversion::Time(shown)),
        _ => (ColumnType::DateTime { fsp }, Conversion::DateTime(shown)),
    }
}

/// How many digits all values of these times have. Six is what a text may have, and its value has fewer.
fn digits_shown<'t>(times: impl Iterator<Item = &'t Typed>) -> u8 {
    times.map(|typed| typed.result.decimals).filter(|fsp| *fsp < 6).max().unwrap_or(0)
}

/// The type of GREATEST and LEAST of times and other values, and the conversion to it: the others are taken
/// for times, too. `None` if there is no time, or nothing else.
pub(in super::super) fn unify_with_times(types: &[&Typed]) -> Option<(Typed, Conversion)> {
    let times = || types.iter().map(|typed| typed.class).filter(|class| class.is_temporal());
    let first = times().next()?;
    if types.iter().all(|typed| typed.class.is_temporal() || typed.class == Class::Null) {
        return None;
    }
    let class = if times().all(|class| class == first) { first } else { Class::DateTime };
    let fsp = types.iter().map(|typed| typed.result.decimals.min(6)).max().unwrap_or(0);
    let shown = digits_shown(types.iter().copied().filter(|typed| typed.class.is_temporal()));
    let (column_type, to) = temporal(class, fsp, shown);
    // A text may be no time.
    Some((Typed::new(column_type, true), to))
}

fn is_told_as_char(typed: &Typed) -> bool {
    matches!(typed.result.column_type, ColumnType::Char { .. } | ColumnType::Binary { .. })
        || typed.result.told_as == ToldAs::Char
}

fn int_bytes(typed: &Typed) -> u8 {
    match typed.result.column_type {
        ColumnType::Int { bytes, .. } => bytes.max(4),
        _ => 4,
    }
}

//! Which collation texts compare by.

use super::super::result_type::{Derivation, Typed};
use crate::{ErrorKind, SqlError};
use types::Collation;

/// A collation and how strongly it holds.
type Side = (Collation, Derivation);

/// The collation of several texts together, and the derivation of the result. If nothing decides between two
/// collations of columns, that is [`Derivation::None`], and the result cannot be compared.
///
/// # Errors
/// 1267, 1270 or 1271 if they cannot be put together.
pub(super) fn aggregate(
    types: &[&Typed],
    operation: &str,
    connection: Collation,
) -> Result<(Collation, Derivation), SqlError> {
    let mut texts = types.iter().filter(|typed| typed.class.is_text());
    let side = |typed: &&Typed| (typed.collation(), typed.derivation);
    let Some(first) = texts.next().map(side) else { return Ok((connection, Derivation::Coercible)) };
    let mut result = first;
    // Character sets that nothing decides between; a later COLLATE does.
    let mut is_unknown = false;
    for other in texts.map(side) {
        match merge(result, other) {
            Merged::One(one) => result = one,
            Merged::OtherCharacterSets => {
                result = (Collation::Binary, Derivation::None);
                is_unknown = true;
            }
            Merged::Illegal => return Err(illegal_mix(types, operation)),
        }
    }
    if is_unknown && result.1 != Derivation::Explicit {
        return Err(illegal_mix(types, operation));
    }
    Ok(result)
}

enum Merged {
    One(Side),
    OtherCharacterSets,
    Illegal,
}

/// The rules of MySQL for two texts.
fn merge(a: Side, b: Side) -> Merged {
    let stronger = || Merged::One(if b.1 < a.1 { b } else { a });
    if a.0 == b.0 {
        return stronger();
    }
    if a.0.character_set() == b.0.character_set() {
        return match (a.0.is_bin(), b.0.is_bin()) {
            _ if a.1 != b.1 => stronger(),
            _ if a.1 == Derivation::Explicit => Merged::Illegal,
            (true, true) => Merged::Illegal,
            (true, false) => Merged::One(a),
            (false, true) => Merged::One(b),
            (false, false) => Merged::One((a.0.binary_of_character_set().unwrap_or(a.0), Derivation::None)),
        };
    }
    // Bytes win over characters of the same derivation.
    match (a.0 == Collation::Binary, b.0 == Collation::Binary) {
        (true, _) => return Merged::One(if a.1 <= b.1 { a } else { b }),
        (_, true) => return Merged::One(if b.1 <= a.1 { b } else { a }),
        _ => {}
    }
    if holds_all(a, b) {
        return Merged::One(a);
    }
    if holds_all(b, a) {
        return Merged::One(b);
    }
    // A literal is converted.
    if a.1 != b.1 && a.1.max(b.1) >= Derivation::System {
        return stronger();
    }
    Merged::OtherCharacterSets
}

/// True if `a` has precedence over `b`, because its character set holds the characters of the other one.
fn holds_all(a: Side, b: Side) -> bool {
    let (set, other) = (a.0.character_set(), b.0.character_set());
    let is_unicode = |set: &str| set.starts_with("utf8");
    let holds = match (is_unicode(set), is_unicode(other)) {
        (true, true) => a.1 < b.1 || set == "utf8mb4",
        (true, false) => true,
        _ => other == "ascii",
    };
    holds && a.1 <= b.1
}

/// 1267 for two, 1270 for three, 1271 for more.
fn illegal_mix(types: &[&Typed], operation: &str) -> SqlError {
    let part = |typed: &&Typed| format!("({},{})", typed.collation().name(), typed.derivation.name());
    let parts: Vec<String> = types.iter().map(part).collect();
    let (kind, listed) = match parts.as_slice() {
        [a, b] => (ErrorKind::IllegalMixOfCollations, format!(" {a} and {b}")),
        [a, b, c] => (ErrorKind::IllegalMixOfThreeCollations, format!(" {a}, {b}, {c}")),
        _ => (ErrorKind::IllegalMixOfManyCollations, String::new()),
    };
    SqlError::new(kind, format!("Illegal mix of collations{listed} for operation '{operation}'"))
}

/// The collation by which values compare; the connection's if none is a text.
///
/// # Errors
/// As [`aggregate`], also if nothing decides.
pub(super) fn for_comparison(
    types: &[&Typed],
    operation: &str,
    connection: Collation,
) -> Result<Collation, SqlError> {
    match aggregate(types, operation, connection)? {
        (_, Derivation::None) => Err(illegal_mix(types, operation)),
        (collation, _) => Ok(collation),
    }
}

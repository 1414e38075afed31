//! Which collation texts compare by.

use super::super::result_type::{Derivation, Typed};
use crate::{ErrorKind, SqlError};
use types::Collation;

/// The collation of several texts together, and the derivation of the result.
pub(super) fn aggregate(
    types: &[&Typed],
    operation: &str,
    connection: Collation,
) -> Result<(Collation, Derivation), SqlError> {
    let texts = types.iter().filter(|typed| typed.class.is_text());
    let mut result: Option<(Collation, Derivation)> = None;
    for typed in texts {
        let other = (typed.collation(), typed.derivation);
        result = Some(match result {
            None => other,
            Some(own) => merge(own, other, operation)?,
        });
    }
    Ok(result.unwrap_or((connection, Derivation::Coercible)))
}

fn merge(
    a: (Collation, Derivation),
    b: (Collation, Derivation),
    operation: &str,
) -> Result<(Collation, Derivation), SqlError> {
    if a.0 == b.0 {
        return Ok((a.0, a.1.min(b.1)));
    }
    // Bytes win over characters, unless the characters' collation is written down.
    let binary = |side: (Collation, Derivation)| side.0 == Collation::Binary;
    if (binary(a) || binary(b)) && a.1 != Derivation::Explicit && b.1 != Derivation::Explicit {
        return Ok((Collation::Binary, a.1.min(b.1)));
    }
    if a.1 != b.1 {
        return Ok(if a.1 < b.1 { a } else { b });
    }
    let same_set = a.0.character_set() == b.0.character_set();
    let illegal = || {
        let part = |side: (Collation, Derivation)| format!("({},{})", side.0.name(), side.1.name());
        let message =
            format!("Illegal mix of collations {} and {} for operation '{operation}'", part(a), part(b));
        Err(SqlError::new(ErrorKind::IllegalMixOfCollations, message))
    };
    if same_set {
        return match (a.0.is_bin(), b.0.is_bin()) {
            _ if a.1 == Derivation::Explicit => illegal(),
            (true, false) => Ok(a),
            (false, true) => Ok(b),
            _ => illegal(),
        };
    }
    if a.1 == Derivation::Explicit {
        return illegal();
    }
    // The larger character set holds the smaller one's texts.
    let size = |side: (Collation, Derivation)| match side.0.character_set() {
        "utf8mb4" => 2,
        "latin1" => 1,
        _ => 0,
    };
    Ok(if size(a) > size(b) { a } else { b })
}

/// The collation by which values compare; the connection's if none is a text.
pub(super) fn for_comparison(
    types: &[&Typed],
    operation: &str,
    connection: Collation,
) -> Result<Collation, SqlError> {
    Ok(aggregate(types, operation, connection)?.0)
}

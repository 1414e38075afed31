//! The character sets and collations that clients may name.
//!
//! Text is stored as UTF-8 in columns of every character set. A smaller character set limits the characters
//! that a column accepts. Not every collation that is listed can be a column's; a connection can have each of
//! them.

use types::Collation;
use types::collation::definitions;
pub(crate) use types::collation::{CHARSETS, Charset, Definition as CollationInfo};

/// The character set of a name as a statement writes it, `utf8` being `utf8mb3`.
pub(crate) fn charset(name: &str) -> Option<&'static Charset> {
    let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
    CHARSETS.iter().find(|charset| charset.name.eq_ignore_ascii_case(name))
}

/// The collation of a name as a statement writes it, `utf8_bin` being `utf8mb3_bin`.
pub(crate) fn collation_named(name: &str) -> Option<&'static CollationInfo> {
    let exact = |name: &str| definitions().iter().find(|collation| collation.name.eq_ignore_ascii_case(name));
    exact(name).or_else(|| {
        let (head, tail) = name.split_at_checked(5)?;
        if head.eq_ignore_ascii_case("utf8_") { exact(&format!("utf8mb3_{tail}")) } else { None }
    })
}

/// The collation of a name where the character set is known: `uca1400_ai_ci` leaves it out.
pub(crate) fn collation_in(name: &str, charset: &str) -> Option<&'static CollationInfo> {
    match is_short(name) {
        true => collation_named(&format!("{charset}_{name}")),
        false => collation_named(name),
    }
}

/// True for the name of a collation of UCA 14.0.0 without its character set.
pub(crate) fn is_short(name: &str) -> bool {
    name.get(..8).is_some_and(|head| head.eq_ignore_ascii_case("uca1400_"))
}

/// The part of a name that the collations of UCA 14.0.0 have in all character sets; None for others.
pub(crate) fn short_name(collation: &CollationInfo) -> Option<&'static str> {
    let (_, short) = collation.name.split_once('_')?;
    is_short(short).then_some(short)
}

/// The collation of the protocol's number.
pub(crate) fn collation_by_id(id: u16) -> Option<&'static CollationInfo> {
    definitions().iter().find(|collation| collation.id == id)
}

/// The description of a column's collation.
pub(crate) fn describe(collation: Collation) -> &'static CollationInfo {
    let all = definitions();
    all.iter().find(|info| info.id == collation.id()).unwrap_or(&all[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_set_has_its_default_collation() {
        for charset in CHARSETS {
            let found = collation_named(charset.collation_default).expect(charset.name);
            assert_eq!(found.charset, charset.name);
        }
    }

    #[test]
    fn utf8_means_utf8mb3_in_both_kinds_of_name() {
        assert_eq!(charset("UTF8").map(|c| c.name), Some("utf8mb3"));
        assert_eq!(collation_named("utf8_general_ci").map(|c| c.id), Some(33));
        assert!(collation_named("utf8_nonsense").is_none());
        assert!(collation_named("").is_none());
        assert_eq!(collation_in("UCA1400_ai_ci", "utf8mb4").map(|c| c.id), Some(2304));
        assert!(collation_in("uca1400_ai_ci", "latin1").is_none());
    }

    #[test]
    fn every_collation_is_found_by_its_number_and_its_name() {
        for collation in definitions() {
            assert_eq!(collation_by_id(collation.id).map(|found| found.name), Some(collation.name));
            assert_eq!(collation_named(collation.name).map(|found| found.id), Some(collation.id));
            if let Some(column) = collation.column() {
                assert_eq!((column.id(), column.name()), (collation.id, collation.name));
            }
        }
    }
}

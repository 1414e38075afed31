//! The character sets and collations that clients may name.
//!
//! Text is stored as UTF-8 in columns of every character set. A character set of one byte limits the
//! characters that a column accepts. No column can have a collation that is listed without a `column` form. A
//! connection can: there it compares as the default collation of its character set.

use types::Collation;

/// A character set, as SHOW CHARACTER SET describes it.
#[derive(Debug)]
pub(crate) struct Charset {
    pub name: &'static str,
    pub description: &'static str,
    pub collation_default: &'static str,
    pub bytes_max: u8,
}

/// A collation, as SHOW COLLATION describes it; `id` is the protocol's number.
#[derive(Debug)]
pub(crate) struct CollationInfo {
    pub name: &'static str,
    pub charset: &'static str,
    pub id: u16,
    pub column: Option<Collation>,
}

pub(crate) static CHARSETS: &[Charset] = &[
    Charset { name: "ascii", description: "US ASCII", collation_default: "ascii_general_ci", bytes_max: 1 },
    Charset {
        name: "binary",
        description: "Binary pseudo charset",
        collation_default: "binary",
        bytes_max: 1,
    },
    Charset {
        name: "latin1",
        description: "cp1252 West European",
        collation_default: "latin1_swedish_ci",
        bytes_max: 1,
    },
    Charset {
        name: "utf8mb3",
        description: "UTF-8 Unicode",
        collation_default: "utf8mb3_general_ci",
        bytes_max: 3,
    },
    Charset {
        name: "utf8mb4",
        description: "UTF-8 Unicode",
        collation_default: "utf8mb4_general_ci",
        bytes_max: 4,
    },
];

const fn collation(
    name: &'static str,
    charset: &'static str,
    id: u16,
    column: Option<Collation>,
) -> CollationInfo {
    CollationInfo { name, charset, id, column }
}

pub(crate) static COLLATIONS: &[CollationInfo] = &[
    collation("ascii_bin", "ascii", 65, Some(Collation::AsciiBin)),
    collation("ascii_general_ci", "ascii", 11, Some(Collation::AsciiGeneralCi)),
    collation("binary", "binary", 63, Some(Collation::Binary)),
    collation("latin1_bin", "latin1", 47, Some(Collation::Latin1Bin)),
    collation("latin1_general_ci", "latin1", 48, None),
    collation("latin1_swedish_ci", "latin1", 8, Some(Collation::Latin1SwedishCi)),
    collation("utf8mb3_bin", "utf8mb3", 83, None),
    collation("utf8mb3_general_ci", "utf8mb3", 33, None),
    collation("utf8mb3_unicode_ci", "utf8mb3", 192, None),
    collation("utf8mb4_0900_ai_ci", "utf8mb4", 255, None),
    collation("utf8mb4_bin", "utf8mb4", 46, Some(Collation::Utf8mb4Bin)),
    collation("utf8mb4_general_ci", "utf8mb4", 45, Some(Collation::Utf8mb4GeneralCi)),
    collation("utf8mb4_unicode_520_ci", "utf8mb4", 246, None),
    collation("utf8mb4_unicode_ci", "utf8mb4", 224, None),
];

/// The character set of a name as a statement writes it, `utf8` being `utf8mb3`.
pub(crate) fn charset(name: &str) -> Option<&'static Charset> {
    let name = if name.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { name };
    CHARSETS.iter().find(|charset| charset.name.eq_ignore_ascii_case(name))
}

/// The collation of a name as a statement writes it, `utf8_bin` being `utf8mb3_bin`.
pub(crate) fn collation_named(name: &str) -> Option<&'static CollationInfo> {
    let exact = |name: &str| COLLATIONS.iter().find(|collation| collation.name.eq_ignore_ascii_case(name));
    exact(name).or_else(|| {
        let (head, tail) = name.split_at_checked(5)?;
        if head.eq_ignore_ascii_case("utf8_") { exact(&format!("utf8mb3_{tail}")) } else { None }
    })
}

/// The collation of the protocol's number.
pub(crate) fn collation_by_id(id: u16) -> Option<&'static CollationInfo> {
    COLLATIONS.iter().find(|collation| collation.id == id)
}

/// The description of a column's collation.
pub(crate) fn describe(collation: Collation) -> &'static CollationInfo {
    let name = match collation {
        Collation::Utf8mb4GeneralCi => "utf8mb4_general_ci",
        Collation::Utf8mb4Bin => "utf8mb4_bin",
        Collation::Latin1SwedishCi => "latin1_swedish_ci",
        Collation::Latin1Bin => "latin1_bin",
        Collation::AsciiGeneralCi => "ascii_general_ci",
        Collation::AsciiBin => "ascii_bin",
        Collation::Binary => "binary",
    };
    COLLATIONS.iter().find(|info| info.name == name).unwrap_or(&COLLATIONS[2])
}

/// True if `collation` is the default of its character set.
pub(crate) fn is_default(collation: &CollationInfo) -> bool {
    charset(collation.charset).is_some_and(|charset| charset.collation_default == collation.name)
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
    }
}

//! LIKE.

use crate::SqlError;
use crate::expr::Patience;
use types::{Collation, ValueRef};

/// A text or a pattern, character by character. A position is a byte offset.
struct Reader<'a> {
    bytes: &'a [u8],
    collation: Collation,
}

impl Reader<'_> {
    /// The character at a position, as a weight, and the position behind it.
    #[inline]
    fn character(&self, at: usize) -> Option<(char, usize)> {
        let first = *self.bytes.get(at)?;
        if first < 0x80 || self.collation == Collation::Binary {
            return Some((first as char, at + 1));
        }
        let length = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        match self.bytes.get(at..at + length).and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            Some(text) => Some((text.chars().next()?, at + length)),
            None => Some((first as char, at + 1)),
        }
    }

    fn equal(&self, a: char, b: char) -> bool {
        a == b || (self.collation != Collation::Binary && self.collation.same_character(a, b))
    }
}

/// One step of a pattern.
enum Step {
    AnyText,
    AnyCharacter,
    Character(char),
}

fn step(pattern: &Reader<'_>, at: usize, escape: Option<char>) -> Option<(Step, usize)> {
    let (character, next) = pattern.character(at)?;
    if Some(character) == escape {
        // An escape at the end stands for itself.
        return Some(match pattern.character(next) {
            Some((escaped, behind)) => (Step::Character(escaped), behind),
            None => (Step::Character(character), next),
        });
    }
    Some(match character {
        '%' => (Step::AnyText, next),
        '_' => (Step::AnyCharacter, next),
        _ => (Step::Character(character), next),
    })
}

/// True if `text` matches the pattern. `%` matches any text, `_` matches any character, and the character
/// behind `escape` matches itself. The collation says which characters are equal. Trailing spaces count.
///
/// # Errors
/// 1317 after KILL.
#[inline]
pub(crate) fn like(
    text: &[u8],
    pattern: &[u8],
    escape: Option<char>,
    collation: Collation,
    patience: &mut Patience<'_>,
) -> Result<bool, SqlError> {
    let (text, pattern) = (Reader { bytes: text, collation }, Reader { bytes: pattern, collation });
    match Patience::is_needed(text.bytes, pattern.bytes) {
        false => search::<false>(&text, &pattern, escape, patience),
        true => search::<true>(&text, &pattern, escape, patience),
    }
}

/// [`like`]. `LONG` says whether it may have to be ended.
fn search<const LONG: bool>(
    text: &Reader<'_>,
    pattern: &Reader<'_>,
    escape: Option<char>,
    patience: &mut Patience<'_>,
) -> Result<bool, SqlError> {
    let (mut in_text, mut in_pattern) = (0, 0);
    // Where to go on if the rest does not fit: behind the last `%`, one character further in the text.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let fits = match step(pattern, in_pattern, escape) {
            Some((Step::AnyText, next)) => {
                if next == pattern.bytes.len() {
                    return Ok(true);
                }
                retry = Some((in_text, next));
                in_pattern = next;
                continue;
            }
            Some((step, next)) => match (text.character(in_text), step) {
                (Some((_, behind)), Step::AnyCharacter) => Some((behind, next)),
                (Some((a, behind)), Step::Character(b)) if text.equal(a, b) => Some((behind, next)),
                _ => None,
            },
            None if in_text == text.bytes.len() => return Ok(true),
            None => None,
        };
        match (fits, retry) {
            (Some(next), _) => (in_text, in_pattern) = next,
            (None, Some((from, behind_percent))) => {
                if LONG {
                    patience.spend(in_text - from + 1)?;
                }
                let Some((_, next)) = text.character(from) else { return Ok(false) };
                retry = Some((next, behind_percent));
                (in_text, in_pattern) = (next, behind_percent);
            }
            (None, None) => return Ok(false),
        }
    }
}

/// The bytes that LIKE looks at: the text itself, or what the caller made of a number.
pub(crate) fn is_binary(value: &ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Binary(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::golden::environment::TestEnvironment;

    #[test]
    fn patterns_match_by_the_collation() {
        let like = |text: &str, pattern: &str| {
            let collation = Collation::Utf8mb4GeneralCi;
            like(
                text.as_bytes(),
                pattern.as_bytes(),
                Some('\\'),
                collation,
                &mut Patience::new(&TestEnvironment::default()),
            )
            .unwrap()
        };
        for (text, pattern) in [
            ("", ""),
            ("", "%"),
            ("abc", "abc"),
            ("ABC", "a%"),
            ("abc", "%c"),
            ("abc", "%b%"),
            ("abc", "a_c"),
            ("Größe", "gro_E"),
            ("aXbXc", "a%X%c"),
            ("aaab", "%aab"),
            ("50%", "50\\%"),
            ("a\\", "a\\"),
            ("😀x", "_x"),
        ] {
            assert!(like(text, pattern), "{text} LIKE {pattern}");
        }
        for (text, pattern) in [
            ("abc", ""),
            ("abc", "ab"),
            ("abc", "b%"),
            ("abc ", "abc"),
            ("50x", "50\\%"),
            ("ab", "a_c"),
            ("aaa", "%b"),
            ("", "_"),
        ] {
            assert!(!like(text, pattern), "{text} NOT LIKE {pattern}");
        }
    }
}

//! "Did you mean": finds the name that is closest to a misspelt one.

/// The candidate with the fewest edits from `name`. `None` if even that one is too far away to be a typing
/// error.
pub(crate) fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let edits_max = (name.chars().count() / 3).clamp(1, 4);
    candidates
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(edits, _)| *edits <= edits_max)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance: the fewest insertions, deletions and substitutions of a character.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, from_char) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to_char) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(from_char != *to_char);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let names = || ["key_buffer_size", "key_cache_segments", "max_connections"].into_iter();
        assert_eq!(closest("key_bufer_size", names()), Some("key_buffer_size"));
        assert_eq!(closest("max_connection", names()), Some("max_connections"));
        assert_eq!(closest("frobnicate", names()), None);
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("same", "same"), 0);
    }
}

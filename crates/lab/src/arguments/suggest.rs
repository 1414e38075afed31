//! Did you mean ...?

/// A message about an unknown word: the closest known one, or all of them if none is close.
pub(crate) fn unknown<'a>(kind: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let closest = known.iter().map(|name| (distance(word, name), *name)).min();
    match closest {
        // A third of the letters may be wrong.
        Some((edits, name)) if edits <= 1 + name.len() / 3 => {
            format!("there is no {kind} `{word}`; did you mean `{name}`?")
        }
        _ => format!("there is no {kind} `{word}`; there is {}", known.join(", ")),
    }
}

/// The number of letters to insert, delete, replace or swap with their neighbour (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
                let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_and_missing_letters_are_forgiven() {
        assert_eq!(distance("segmnets", "segments"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

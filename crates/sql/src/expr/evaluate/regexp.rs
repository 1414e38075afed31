//! REGEXP.

use super::Result;
use crate::{ErrorKind, SqlError};
use regex_lite::{Regex, RegexBuilder};
use std::cell::RefCell;

/// Patterns that a thread keeps compiled: a statement has one or two.
const KEPT_MAX: usize = 8;

thread_local! {
    static KEPT: RefCell<Vec<(Vec<u8>, bool, Regex)>> = const { RefCell::new(Vec::new()) };
}

/// True if `pattern` is found somewhere in `text`. Letters of ASCII match in either case with `ignore_case`.
pub(super) fn matches(text: &[u8], pattern: &[u8], ignore_case: bool) -> Result<bool> {
    let text = String::from_utf8_lossy(text);
    KEPT.with_borrow_mut(|kept| {
        let same = |(other, case, _): &(Vec<u8>, bool, Regex)| other == pattern && *case == ignore_case;
        let at = match kept.iter().position(same) {
            Some(at) => at,
            None => {
                let regex = RegexBuilder::new(&String::from_utf8_lossy(pattern))
                    .case_insensitive(ignore_case)
                    .build()
                    .map_err(|error| {
                        SqlError::new(
                            ErrorKind::RegularExpressionFailed,
                            format!("Got error '{error}' from regexp"),
                        )
                    })?;
                if kept.len() == KEPT_MAX {
                    kept.remove(0);
                }
                kept.push((pattern.to_vec(), ignore_case, regex));
                kept.len() - 1
            }
        };
        Ok(kept[at].2.is_match(&text))
    })
}

//! REGEXP.

use super::Result;
use crate::{ErrorKind, SqlError};
use regex_lite::{Regex, RegexBuilder};
use std::cell::RefCell;

/// Patterns that a thread keeps compiled: a statement has one or two.
const COMPILED_MAX: usize = 8;

thread_local! {
    static COMPILED: RefCell<Vec<(Vec<u8>, bool, Regex)>> = const { RefCell::new(Vec::new()) };
}

/// True if `pattern` is found somewhere in `text`. Letters of ASCII match in either case with `ignore_case`.
pub(super) fn matches(text: &[u8], pattern: &[u8], ignore_case: bool) -> Result<bool> {
    let text = String::from_utf8_lossy(text);
    COMPILED.with_borrow_mut(|compiled| {
        let same = |(other, case, _): &(Vec<u8>, bool, Regex)| other == pattern && *case == ignore_case;
        let at = match compiled.iter().position(same) {
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
                if compiled.len() == COMPILED_MAX {
                    compiled.remove(0);
                }
                compiled.push((pattern.to_vec(), ignore_case, regex));
                compiled.len() - 1
            }
        };
        Ok(compiled[at].2.is_match(&text))
    })
}

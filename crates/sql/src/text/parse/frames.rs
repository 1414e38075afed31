//! EXCLUDE in the frame of a window, which the `sqlparser` crate does not know.

use crate::{ErrorKind, SqlError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

fn is(token: &Token, name: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name))
}

/// Takes EXCLUDE NO OTHERS off the frames of windows: it asks for nothing.
///
/// # Errors
/// 4022 for the other forms of EXCLUDE. As in MariaDB they are known, but there are no such frames.
pub(super) fn exclusions(tokens: &mut [TokenWithSpan]) -> Result<(), SqlError> {
    if !tokens.iter().any(|token| is(&token.token, "EXCLUDE")) {
        return Ok(());
    }
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let places: Vec<usize> = (0..tokens.len()).filter(|at| !is_blank(&tokens[*at])).collect();
    for at in 1..places.len() {
        let token = |ahead: usize| places.get(at + ahead).map(|place| &tokens[*place].token);
        let has = |words: &[&str]| {
            let mut words = words.iter().enumerate();
            words.all(|(ahead, word)| token(ahead).is_some_and(|token| is(token, word)))
        };
        let before = &tokens[places[at - 1]].token;
        let ends_frame = ["PRECEDING", "FOLLOWING", "ROW"].iter().any(|word| is(before, word));
        let ends = |words: usize| token(words) == Some(&Token::RParen);
        if !ends_frame || !has(&["EXCLUDE"]) {
            continue;
        }
        let refused: [&[&str]; 3] =
            [&["EXCLUDE", "CURRENT", "ROW"], &["EXCLUDE", "TIES"], &["EXCLUDE", "GROUP"]];
        if refused.iter().any(|words| has(words) && ends(words.len())) {
            return Err(SqlError::new(ErrorKind::FrameExclusion, "Frame exclusion is not supported yet"));
        }
        if has(&["EXCLUDE", "NO", "OTHERS"]) && ends(3) {
            for place in &places[at..at + 3] {
                tokens[*place].token = Token::Whitespace(Whitespace::Space);
            }
        }
    }
    Ok(())
}

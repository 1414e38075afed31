//! REGEXP.
//!
//! A pattern becomes an automaton whose states are made as a text needs them. The text goes through it byte
//! by byte here, so that a statement can be killed inside of one long text.

use super::Result;
use crate::expr::Patience;
use crate::{ErrorKind, SqlError};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Input, MatchKind};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};
use std::cell::RefCell;

/// Patterns that a thread keeps compiled: a statement has one or two.
const COMPILED_MAX: usize = 8;
/// What a pattern may take before its states are made.
const PATTERN_BYTES_MAX: usize = 10 << 20;
/// What its states may take. Beyond that they are thrown away and made again. Large patterns need more.
const STATES_BYTES: usize = 256 << 10;

/// A pattern that was compiled.
struct Compiled {
    pattern: Vec<u8>,
    ignore_case: bool,
    automaton: DFA,
    states: Cache,
    /// What the next byte of a text costs at most, in steps.
    steps: usize,
}

thread_local! {
    static COMPILED: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

/// True if `pattern` is found somewhere in `text`. Letters match in either case with `ignore_case`.
///
/// # Errors
/// 1139 for a pattern that is none, and those of [`Patience::spend`].
pub(super) fn matches(
    text: &[u8],
    pattern: &[u8],
    ignore_case: bool,
    patience: &mut Patience<'_>,
) -> Result<bool> {
    let text = String::from_utf8_lossy(text);
    COMPILED.with_borrow_mut(|compiled| {
        let same = |other: &Compiled| other.pattern == pattern && other.ignore_case == ignore_case;
        let at = match compiled.iter().position(same) {
            Some(at) => at,
            None => {
                let new = compile(pattern, ignore_case).map_err(|error| {
                    let message = format!("Got error '{error}' from regexp");
                    SqlError::new(ErrorKind::RegularExpressionFailed, message)
                })?;
                if compiled.len() == COMPILED_MAX {
                    compiled.remove(0);
                }
                compiled.push(new);
                compiled.len() - 1
            }
        };
        compiled[at].is_in(&text, patience)
    })
}

fn compile(pattern: &[u8], ignore_case: bool) -> std::result::Result<Compiled, String> {
    let mut parser = ParserBuilder::new().case_insensitive(ignore_case).build();
    let parsed = parser.parse(&String::from_utf8_lossy(pattern)).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        error => error.to_string(),
    })?;
    let config = thompson::Config::new()
        .which_captures(thompson::WhichCaptures::None)
        .nfa_size_limit(Some(PATTERN_BYTES_MAX));
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(&with_ascii_words(parsed));
    let nfa = nfa.map_err(|error| error.to_string())?;
    let steps = nfa.states().len();
    // All matches, and not only the first one: a state of the automaton does not end at one that is none.
    let config =
        DFA::config().match_kind(MatchKind::All).cache_capacity(STATES_BYTES).skip_cache_capacity_check(true);
    let automaton =
        DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| error.to_string())?;
    let states = automaton.create_cache();
    Ok(Compiled { pattern: pattern.to_vec(), ignore_case, automaton, states, steps })
}

/// The pattern with borders of words between letters of ASCII and others: an automaton that goes byte by byte
/// knows no others.
fn with_ascii_words(pattern: Hir) -> Hir {
    match pattern.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            look => look,
        }),
        HirKind::Repetition(mut repetition) => {
            repetition.sub = Box::new(with_ascii_words(*repetition.sub));
            Hir::repetition(repetition)
        }
        HirKind::Capture(group) => with_ascii_words(*group.sub),
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(with_ascii_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(with_ascii_words).collect()),
    }
}

impl Compiled {
    fn is_in(&mut self, text: &str, patience: &mut Patience<'_>) -> Result<bool> {
        let Compiled { automaton, states, steps, .. } = self;
        let fault = |_| SqlError::internal("a regular expression that has no next state");
        let mut state = automaton
            .start_state_forward(states, &Input::new(text))
            .map_err(|_| SqlError::internal("a regular expression that has no first state"))?;
        for (at, byte) in text.bytes().enumerate() {
            state = automaton.next_state(states, state, byte).map_err(fault)?;
            if state.is_tagged() {
                // A match is known one byte late. One that ends inside a character is none: it is empty
                // there.
                if state.is_match() && text.is_char_boundary(at) {
                    return Ok(true);
                }
                if state.is_dead() {
                    return Ok(false);
                }
            }
            patience.spend(*steps)?;
        }
        Ok(automaton.next_eoi_state(states, state).map_err(fault)?.is_match())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::golden::environment::TestEnvironment;

    /// Those with letters beyond ASCII are MariaDB's answers, save the borders of words.
    #[test]
    fn patterns_are_found_where_they_are() {
        let environment = TestEnvironment::default();
        let mut patience = Patience::new(&environment);
        for (text, pattern, expected) in [
            ("abc", "^a.c$", true),
            ("ABC", "b", true),
            ("abc", "^b", false),
            ("aäc", "^a.c$", true),
            ("Ä", "ä", true),
            ("ä", r"^\w$", true),
            ("ä", r"\W", false),
            ("٣", r"^\d$", true),
            ("one two", r"\btwo\b", true),
            ("one two", r"\bwo", false),
            ("aäb", r"^a\B", false),
            ("b", "", true),
            ("", "^$", true),
            ("", r"\B", true),
            ("aäb", r"\B", false),
            ("xay", "(a|b){2}", false),
            ("xaby", "(a|b){2}", true),
            ("x\ny", "x.y", false),
            ("k", "[^a-j]", true),
        ] {
            let found = matches(text.as_bytes(), pattern.as_bytes(), true, &mut patience);
            assert_eq!(found, Ok(expected), "{text} {pattern}");
        }
        assert_eq!(matches(b"Ab", b"ab", false, &mut patience), Ok(false));
        assert_eq!(matches(b"a\xffb", "^a\u{fffd}b$".as_bytes(), false, &mut patience), Ok(true));
        for pattern in ["(", "[a", "a{2", "(a{1000}){1000}", "*", r"(?=a)"] {
            let error = matches(b"a", pattern.as_bytes(), true, &mut patience).expect_err(pattern);
            assert_eq!(error.code(), 1139, "{pattern}: {error}");
            assert!(!error.message.contains('\n'), "{pattern}: {error}");
        }
    }

    /// Some patterns have a state for each text.
    #[test]
    fn states_are_made_again_when_they_were_too_many() {
        let environment = TestEnvironment::default();
        let mut patience = Patience::new(&environment);
        let mut random = base::random::Random::new(3, 0);
        let text: String = (0..30_000).map(|_| if random.below(2) == 0 { 'a' } else { 'b' }).collect();
        for (pattern, expected) in
            [("a[ab]{40}c", false), ("a[ab]{40}$", &text[text.len() - 41..][..1] == "a")]
        {
            assert_eq!(matches(text.as_bytes(), pattern.as_bytes(), false, &mut patience), Ok(expected));
        }
    }
}

//! Regular expressions.
//!
//! A pattern becomes an automaton whose states are made as a text needs them. The text goes through it byte
//! by byte here, so that a statement can be killed inside of one long text. A pattern that no automaton
//! knows (it looks around, or refers to a group) is matched by trying, with a limit.

use super::Result;
use crate::expr::{Environment, Patience};
use crate::{ErrorKind, SqlError};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures, pikevm};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};
use std::cell::RefCell;
use std::ops::Range;

/// Patterns that a thread keeps compiled: a statement has one or two.
const COMPILED_MAX: usize = 8;
/// What a pattern may take before its states are made.
const PATTERN_BYTES_MAX: usize = 10 << 20;
/// What its states may take. Beyond that they are thrown away and made again. Large patterns need more.
const STATES_BYTES: usize = 256 << 10;
/// The steps that the search for the groups of one match may take: nothing ends it.
const GROUP_STEPS_MAX: usize = 1 << 33;

/// How a pattern is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RegexFlags {
    /// Letters match in either case.
    pub ignore_case: bool,
    /// A dot matches the end of a line.
    pub dot_all: bool,
    /// Blanks in the pattern do not count.
    pub extended: bool,
    /// `^` and `$` match at each line.
    pub multi_line: bool,
    /// Repetitions match as little as they can.
    pub ungreedy: bool,
}

/// A pattern that was compiled.
pub(crate) struct Compiled {
    pattern: Vec<u8>,
    flags: RegexFlags,
    engine: Engine,
}

enum Engine {
    Automaton {
        parsed: Hir,
        /// Whether there is a match.
        any: Box<Automaton>,
        /// Where the first match is. Made when it is asked for.
        first: Option<Box<First>>,
        groups: Option<Box<(pikevm::PikeVM, pikevm::Cache)>>,
    },
    Trying(Box<fancy_regex::Regex>),
}

struct Automaton {
    dfa: DFA,
    states: Cache,
    /// What the next byte of a text costs at most, in steps.
    steps: usize,
}

/// The end of the first match is found forwards, then its start backwards.
struct First {
    forwards: Automaton,
    backwards: Automaton,
}

thread_local! {
    static COMPILED: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

/// True if `pattern` is found somewhere in `text`.
///
/// # Errors
/// 1139 for a pattern that is none, and those of [`Patience::spend`].
fn matches(text: &[u8], pattern: &[u8], flags: RegexFlags, patience: &mut Patience<'_>) -> Result<bool> {
    let text = String::from_utf8_lossy(text);
    with_compiled(pattern, flags, |compiled| compiled.is_in(&text, patience))
}

/// REGEXP: [`matches`] by the flags of the session.
///
/// # Errors
/// Those of [`matches`].
pub(super) fn is_found(
    text: &[u8],
    pattern: &[u8],
    ignore_case: bool,
    environment: &dyn Environment,
) -> Result<bool> {
    let flags = RegexFlags { ignore_case, ..environment.regex_flags() };
    matches(text, pattern, flags, &mut Patience::new(environment))
}

/// Calls `run` with the pattern, which is compiled if the thread has not used it lately.
///
/// # Errors
/// 1139 for a pattern that is none, and those of `run`.
pub(crate) fn with_compiled<T>(
    pattern: &[u8],
    flags: RegexFlags,
    run: impl FnOnce(&mut Compiled) -> Result<T>,
) -> Result<T> {
    COMPILED.with_borrow_mut(|compiled| {
        let same = |other: &Compiled| other.pattern == pattern && other.flags == flags;
        let at = match compiled.iter().position(same) {
            Some(at) => at,
            None => {
                let new = compile(pattern, flags).map_err(|error| failed(&error))?;
                if compiled.len() == COMPILED_MAX {
                    compiled.remove(0);
                }
                compiled.push(new);
                compiled.len() - 1
            }
        };
        run(&mut compiled[at])
    })
}

fn failed(error: &str) -> SqlError {
    SqlError::new(ErrorKind::RegularExpressionFailed, format!("Regex error '{error}'"))
}

fn compile(pattern: &[u8], flags: RegexFlags) -> std::result::Result<Compiled, String> {
    let text = translated(&String::from_utf8_lossy(pattern));
    let mut parser = ParserBuilder::new()
        .case_insensitive(flags.ignore_case)
        .dot_matches_new_line(flags.dot_all)
        .ignore_whitespace(flags.extended)
        .multi_line(flags.multi_line)
        .swap_greed(flags.ungreedy)
        .build();
    let engine = match parser.parse(&text) {
        Ok(parsed) => {
            let parsed = with_ascii_words(parsed);
            let any = Box::new(Automaton::of(&parsed, MatchKind::All, false)?);
            Engine::Automaton { parsed, any, first: None, groups: None }
        }
        Err(error) => Engine::Trying(Box::new(trying(&text, flags).ok_or_else(|| match error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            error => error.to_string(),
        })?)),
    };
    Ok(Compiled { pattern: pattern.to_vec(), flags, engine })
}

/// The pattern with what PCRE writes otherwise: spaces of a line, and the borders of words.
fn translated(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        let written = [
            ("\\\\", "\\\\"),
            ("\\h", "[\\t \u{a0}]"),
            ("\\H", "[^\\t \u{a0}]"),
            ("[[:<:]]", "\\b{start}"),
            ("[[:>:]]", "\\b{end}"),
        ];
        match written.into_iter().find(|(pcre, _)| rest.starts_with(pcre)) {
            Some((pcre, here)) => {
                text.push_str(here);
                rest = &rest[pcre.len()..];
            }
            None => {
                text.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    text
}

fn trying(pattern: &str, flags: RegexFlags) -> Option<fancy_regex::Regex> {
    let letters = [
        (flags.ignore_case, 'i'),
        (flags.dot_all, 's'),
        (flags.extended, 'x'),
        (flags.multi_line, 'm'),
        (flags.ungreedy, 'U'),
    ];
    let letters: String = letters.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
    let pattern = if letters.is_empty() { pattern.to_string() } else { format!("(?{letters}){pattern}") };
    fancy_regex::RegexBuilder::new(&pattern).delegate_size_limit(PATTERN_BYTES_MAX).build().ok()
}

impl Automaton {
    fn of(pattern: &Hir, kind: MatchKind, reverse: bool) -> std::result::Result<Automaton, String> {
        let config = thompson::Config::new()
            .which_captures(WhichCaptures::None)
            .reverse(reverse)
            .nfa_size_limit(Some(PATTERN_BYTES_MAX));
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(pattern);
        let nfa = nfa.map_err(|error| error.to_string())?;
        let steps = nfa.states().len();
        let config =
            DFA::config().match_kind(kind).cache_capacity(STATES_BYTES).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| error.to_string())?;
        let states = dfa.create_cache();
        Ok(Automaton { dfa, states, steps })
    }

    /// Where the first match from `from` on ends.
    fn end(&mut self, text: &str, from: usize, patience: &mut Patience<'_>) -> Result<Option<usize>> {
        let Automaton { dfa, states, steps } = self;
        let input = Input::new(text).range(from..);
        let mut state = dfa.start_state_forward(states, &input).map_err(|_| no_state())?;
        let mut end = None;
        for (at, byte) in text.bytes().enumerate().skip(from) {
            state = dfa.next_state(states, state, byte).map_err(|_| no_state())?;
            if state.is_tagged() {
                if state.is_match() {
                    end = Some(at);
                }
                if state.is_dead() {
                    return Ok(end);
                }
            }
            patience.spend(*steps)?;
        }
        let last = dfa.next_eoi_state(states, state).map_err(|_| no_state())?;
        Ok(if last.is_match() { Some(text.len()) } else { end })
    }

    /// Where the match that ends at `end` starts, which is at `from` at the earliest.
    fn start(&mut self, text: &str, from: usize, end: usize, patience: &mut Patience<'_>) -> Result<usize> {
        let Automaton { dfa, states, steps } = self;
        let input = Input::new(text).range(from..end).anchored(Anchored::Yes);
        let mut state = dfa.start_state_reverse(states, &input).map_err(|_| no_state())?;
        let mut start = end;
        for at in (from..end).rev() {
            state = dfa.next_state(states, state, text.as_bytes()[at]).map_err(|_| no_state())?;
            if state.is_tagged() {
                if state.is_match() {
                    start = at + 1;
                }
                if state.is_dead() {
                    return Ok(start);
                }
            }
            patience.spend(*steps)?;
        }
        // What lies before is looked at, but is no part of the match.
        let last = match from.checked_sub(1) {
            Some(before) => dfa.next_state(states, state, text.as_bytes()[before]),
            None => dfa.next_eoi_state(states, state),
        };
        Ok(if last.map_err(|_| no_state())?.is_match() { from } else { start })
    }
}

fn no_state() -> SqlError {
    SqlError::internal("a regular expression that has no next state")
}

fn first_char_boundary(text: &str, from: usize) -> usize {
    (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
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
        HirKind::Capture(mut group) => {
            group.sub = Box::new(with_ascii_words(*group.sub));
            Hir::capture(group)
        }
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(with_ascii_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(with_ascii_words).collect()),
    }
}

impl Compiled {
    fn is_in(&mut self, text: &str, patience: &mut Patience<'_>) -> Result<bool> {
        let any = match &mut self.engine {
            Engine::Automaton { any, .. } => any,
            Engine::Trying(regex) => return regex.is_match(text).map_err(|error| failed(&error.to_string())),
        };
        let Automaton { dfa, states, steps } = &mut **any;
        let mut state = dfa.start_state_forward(states, &Input::new(text)).map_err(|_| no_state())?;
        for (at, byte) in text.bytes().enumerate() {
            state = dfa.next_state(states, state, byte).map_err(|_| no_state())?;
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
        Ok(dfa.next_eoi_state(states, state).map_err(|_| no_state())?.is_match())
    }

    /// The first match that starts at the byte `from` or later: its bytes. `from` lies between characters.
    ///
    /// # Errors
    /// 1139 if the search needs too many steps, and those of [`Patience::spend`].
    pub(crate) fn find(
        &mut self,
        text: &str,
        mut from: usize,
        patience: &mut Patience<'_>,
    ) -> Result<Option<Range<usize>>> {
        let (parsed, first) = match &mut self.engine {
            Engine::Automaton { parsed, first, .. } => (parsed, first),
            Engine::Trying(regex) => {
                let found = regex.find_from_pos(text, from).map_err(|error| failed(&error.to_string()))?;
                return Ok(found.map(|found| found.range()));
            }
        };
        let first = match first {
            Some(first) => first,
            None => {
                let forwards = Automaton::of(parsed, MatchKind::LeftmostFirst, false);
                let backwards = Automaton::of(parsed, MatchKind::All, true);
                let (forwards, backwards) = forwards
                    .and_then(|forwards| Ok((forwards, backwards?)))
                    .map_err(|error| failed(&error))?;
                first.insert(Box::new(First { forwards, backwards }))
            }
        };
        loop {
            let Some(end) = first.forwards.end(text, from, patience)? else { return Ok(None) };
            if text.is_char_boundary(end) {
                return Ok(Some(first.backwards.start(text, from, end, patience)?..end));
            }
            // The match is empty and inside of a character: it is none.
            from = first_char_boundary(text, end);
        }
    }

    /// The groups of a match that [`Compiled::find`] gave, the whole match first. A group that took no part
    /// is `None`.
    ///
    /// # Errors
    /// 1139 if the search needs too many steps.
    pub(crate) fn groups(&mut self, text: &str, found: Range<usize>) -> Result<Vec<Option<Range<usize>>>> {
        let (parsed, groups) = match &mut self.engine {
            Engine::Automaton { parsed, groups, .. } => (parsed, groups),
            Engine::Trying(regex) => {
                let captures = regex.captures_from_pos(text, found.start);
                let captures = captures.map_err(|error| failed(&error.to_string()))?;
                let captures = captures.iter().flat_map(|captures| captures.iter());
                return Ok(captures.map(|group| group.map(|group| group.range())).collect());
            }
        };
        let (machine, cache) = match groups {
            Some(groups) => &mut **groups,
            None => {
                let config = thompson::Config::new().nfa_size_limit(Some(PATTERN_BYTES_MAX));
                let nfa = thompson::Compiler::new().configure(config).build_from_hir(parsed);
                let machine = nfa.map_err(|error| error.to_string()).and_then(|nfa: NFA| {
                    pikevm::PikeVM::new_from_nfa(nfa).map_err(|error| error.to_string())
                });
                let machine = machine.map_err(|error| failed(&error))?;
                let cache = machine.create_cache();
                &mut **groups.insert(Box::new((machine, cache)))
            }
        };
        if found.len().saturating_mul(machine.get_nfa().states().len()) > GROUP_STEPS_MAX {
            return Err(failed("match limit exceeded"));
        }
        let mut slots = machine.create_captures();
        machine.captures(cache, Input::new(text).range(found).anchored(Anchored::Yes), &mut slots);
        Ok(slots.iter().map(|group| group.map(|group| group.range())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::golden::environment::TestEnvironment;

    const ANY_CASE: RegexFlags =
        RegexFlags { ignore_case: true, dot_all: false, extended: false, multi_line: false, ungreedy: false };

    /// The first match and its groups are those of another engine.
    #[test]
    fn the_first_match_is_found_with_its_groups() {
        let environment = TestEnvironment::default();
        let mut patience = Patience::new(&environment);
        let mut random = base::random::Random::new(5, 0);
        let parts = [
            "a", "b", "ä", ".", "(a|b)", "(ab|a)", "a*", "(b*?)", "^", "$", "\\b", "\\B", "(?:äa)+", "[^a]",
            "",
        ];
        for _ in 0..3_000 {
            let pattern: String =
                (0..1 + random.below(4)).map(|_| parts[random.below(15) as usize]).collect();
            let text: String =
                (0..random.below(7)).map(|_| ["a", "b", "ä", " "][random.below(4) as usize]).collect();
            let Ok(other) = fancy_regex::Regex::new(&pattern) else { continue };
            // Borders of words know letters of ASCII only.
            if pattern.contains("\\b") || pattern.contains("\\B") {
                continue;
            }
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            for from in places {
                let expected: Option<Vec<_>> = other
                    .captures_from_pos(&text, from)
                    .expect("few steps")
                    .map(|groups| groups.iter().map(|group| group.map(|group| group.range())).collect());
                let found = with_compiled(pattern.as_bytes(), RegexFlags::default(), |compiled| {
                    let found = compiled.find(&text, from, &mut patience)?;
                    found.map(|found| compiled.groups(&text, found)).transpose()
                });
                assert_eq!(found, Ok(expected), "{pattern} in {text:?} from {from}");
            }
        }
    }

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
            ("a b", r"a\hb", true),
            ("one two", "[[:<:]]two[[:>:]]", true),
            ("one two", "[[:<:]]wo", false),
            ("foobar", "foo(?=bar)", true),
            ("abab", r"^(ab)\1$", true),
        ] {
            let found = matches(text.as_bytes(), pattern.as_bytes(), ANY_CASE, &mut patience);
            assert_eq!(found, Ok(expected), "{text} {pattern}");
        }
        assert_eq!(matches(b"Ab", b"ab", RegexFlags::default(), &mut patience), Ok(false));
        assert_eq!(
            matches(b"a\xffb", "^a\u{fffd}b$".as_bytes(), RegexFlags::default(), &mut patience),
            Ok(true)
        );
        for pattern in ["(", "[a", "(a{1000}){1000}", "*", r"(?=a"] {
            let error = matches(b"a", pattern.as_bytes(), ANY_CASE, &mut patience).expect_err(pattern);
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
            let found = matches(text.as_bytes(), pattern.as_bytes(), RegexFlags::default(), &mut patience);
            assert_eq!(found, Ok(expected));
        }
    }
}

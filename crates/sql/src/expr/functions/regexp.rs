//! Functions of regular expressions. [`crate::expr::evaluate::regexp`] has the patterns.

use super::arguments::{Arguments, Result, int};
use super::text::too_long;
use super::typing::{CHARS_MAX, like_first_text, nullable_int_of};
use crate::expr::Patience;
use crate::expr::RegexFlags;
use crate::expr::evaluate::regexp::with_compiled;
use crate::expr::result_type::Typed;
use std::borrow::Cow;
use types::ValueRef;

functions! {
    "Regular Expressions";

    REGEXP_INSTR {
        name: "regexp_instr",
        arguments: "text, pattern",
        arity: 2..=2,
        typing: nullable_int_of::<11>,
        evaluate: |a| {
            let Some(search) = Search::of(a)? else { return Ok(ValueRef::Null) };
            let mut patience = Patience::new(a.context.environment);
            let found = with_compiled(&search.pattern, search.flags, |pattern| {
                pattern.find(&search.text, 0, &mut patience)
            })?;
            int(found.map_or(0, |found| search.text[..found.start].chars().count() as i64 + 1))
        },
        help: "Gives the place of the first match of a regular expression, in characters from 1, or 0.",
        example: "REGEXP_INSTR('abc', 'b|c')" => "2",
    }
    REGEXP_SUBSTR {
        name: "regexp_substr",
        arguments: "text, pattern",
        arity: 2..=2,
        typing: |t| {
            let typed = like_first_text(t)?;
            Ok(Typed { result: crate::expr::ResultType { nullable: true, ..typed.result.clone() }, ..typed })
        },
        evaluate: |a| {
            let Some(search) = Search::of(a)? else { return Ok(ValueRef::Null) };
            let mut patience = Patience::new(a.context.environment);
            let found = with_compiled(&search.pattern, search.flags, |pattern| {
                pattern.find(&search.text, 0, &mut patience)
            })?;
            Ok(a.give(&search.bytes(found.map_or("", |found| &search.text[found]))))
        },
        help: "Gives the first match of a regular expression, or an empty text.",
        example: "REGEXP_SUBSTR('abc123', '[0-9]+')" => "123",
    }
    REGEXP_REPLACE {
        name: "regexp_replace",
        arguments: "text, pattern, replacement",
        arity: 3..=3,
        typing: |t| Ok(t.text(CHARS_MAX, true)),
        evaluate: replace,
        help: "Replaces all matches of a regular expression. In the replacement `\\\\1` to `\\\\9` stand for groups of \
               the match, and `\\\\0` for all of it.",
        example: "REGEXP_REPLACE('a1b2', '[0-9]', '-')" => "a-b-",
    }
    REGEXP_LIKE {
        name: "regexp_like",
        arguments: "text, pattern[, flags]",
        arity: 2..=3,
        typing: |t| Ok(Typed::boolean(t.nullable())),
        evaluate: |a| {
            let Some(mut search) = Search::of(a)? else { return Ok(ValueRef::Null) };
            if a.len() == 3 {
                search.set_flags(or_null!(a.text(2)?))?;
            }
            let mut patience = Patience::new(a.context.environment);
            let found = with_compiled(&search.pattern, search.flags, |pattern| {
                pattern.find(&search.text, 0, &mut patience)
            })?;
            int(found.is_some() as i64)
        },
        help: "Gives 1 if a regular expression matches, as REGEXP does. Flags are letters: `c` for case, `i` for any \
               case, `m` for lines, `n` for a dot that matches the end of a line.",
        example: "REGEXP_LIKE('abc', '^A', 'i')" => "1",
    }
}

/// A text and a pattern, as characters. A byte of a binary text is the character of its number.
struct Search<'a> {
    text: Cow<'a, str>,
    pattern: Cow<'a, [u8]>,
    flags: RegexFlags,
    is_binary: bool,
}

impl<'a> Search<'a> {
    /// `None` if one of the first two arguments is NULL.
    fn of(arguments: &Arguments<'a, '_>) -> Result<Option<Search<'a>>> {
        let (Some(text), Some(pattern)) = (arguments.text(0)?, arguments.text(1)?) else { return Ok(None) };
        let collation = arguments.call.collation;
        let flags =
            RegexFlags { ignore_case: !collation.is_bin(), ..arguments.context.environment.regex_flags() };
        let is_binary = arguments.is_binary();
        Ok(Some(match is_binary {
            true => Search {
                text: as_characters(text).into(),
                pattern: Cow::Owned(as_characters(pattern).into_bytes()),
                flags,
                is_binary,
            },
            false => Search {
                text: String::from_utf8_lossy(text),
                pattern: Cow::Borrowed(pattern),
                flags,
                is_binary,
            },
        }))
    }

    /// The bytes of a part of the text.
    fn bytes<'p>(&self, part: &'p str) -> Cow<'p, [u8]> {
        match self.is_binary {
            true => part.chars().map(|character| u32::from(character) as u8).collect::<Vec<u8>>().into(),
            false => part.as_bytes().into(),
        }
    }

    /// # Errors
    /// 1210 for an unknown letter.
    fn set_flags(&mut self, letters: &[u8]) -> Result<()> {
        for letter in letters {
            match letter {
                b'c' => self.flags.ignore_case = false,
                b'i' => self.flags.ignore_case = true,
                b'm' => self.flags.multi_line = true,
                b'n' => self.flags.dot_all = true,
                b'u' => {}
                _ => {
                    let message = "Incorrect arguments to regexp_like";
                    return Err(crate::SqlError::new(crate::ErrorKind::WrongArguments, message));
                }
            }
        }
        Ok(())
    }
}

fn as_characters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// A part of a replacement.
enum Part {
    Byte(u8),
    Group(usize),
}

/// The parts of a replacement. A backslash before a digit is a group; another character behind one stands for
/// itself.
fn parts(replacement: &[u8]) -> Vec<Part> {
    let mut parts = Vec::with_capacity(replacement.len());
    let mut bytes = replacement.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(digit @ b'0'..=b'9') => parts.push(Part::Group(usize::from(digit - b'0'))),
                Some(other) => parts.push(Part::Byte(*other)),
                None => {}
            },
            byte => parts.push(Part::Byte(*byte)),
        }
    }
    parts
}

fn replace<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let Some(search) = Search::of(arguments)? else { return Ok(ValueRef::Null) };
    let parts = parts(or_null!(arguments.text(2)?));
    let has_groups = parts.iter().any(|part| matches!(part, Part::Group(1..)));
    let mut patience = Patience::new(arguments.context.environment);
    let bytes_max = arguments.bytes_max();
    let replaced = with_compiled(&search.pattern, search.flags, |pattern| {
        let mut replaced = Vec::new();
        let mut from = 0;
        // As in MariaDB, nothing is replaced from the first match on that is empty.
        while let Some(found) = pattern.find(&search.text, from, &mut patience)?
            && !found.is_empty()
        {
            replaced.extend_from_slice(&search.bytes(&search.text[from..found.start]));
            let groups = if has_groups { pattern.groups(&search.text, found.clone())? } else { Vec::new() };
            for part in &parts {
                let group = match part {
                    Part::Byte(byte) => {
                        replaced.push(*byte);
                        continue;
                    }
                    Part::Group(0) => Some(found.clone()),
                    Part::Group(group) => groups.get(*group).cloned().flatten(),
                };
                replaced.extend_from_slice(&search.bytes(group.map_or("", |group| &search.text[group])));
            }
            from = found.end;
            if replaced.len() > bytes_max {
                return Ok(None);
            }
        }
        replaced.extend_from_slice(&search.bytes(&search.text[from..]));
        Ok(Some(replaced).filter(|replaced| replaced.len() <= bytes_max))
    })?;
    Ok(match replaced {
        Some(replaced) => arguments.give(&replaced),
        None => too_long(arguments),
    })
}

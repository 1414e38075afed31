//! Everything that reads the text of a statement must cut it at the same places. If one reader took for a
//! text what is SQL for another one, a value could become SQL. Random texts of quotes, backslashes and
//! comments, in every mode.

use super::insert_scanner::{self, Scanner};
use super::literal::{Literal, LiteralPosition};
use super::mode::LexicalMode;
use super::parse::tokens::tokenize;
use super::parse::{count_placeholders, split, unwrap_comments};
use super::scan::{Scan, ScanEnd};
use base::random::Random;
use sqlparser::tokenizer::Token;

/// What texts are made of.
const PARTS: &[&str] = &[
    "'",
    "'",
    "'",
    "\"",
    "\"",
    "`",
    "\\",
    "\\",
    "''",
    "\"\"",
    "\\'",
    " ",
    " ",
    "\n",
    "--",
    "-- ",
    "--\t",
    "-",
    "#",
    "/*",
    "*/",
    "/*!",
    "/*!40101 ",
    "/*!99999 ",
    "/*!080000 ",
    "/*M!100000 ",
    "/*M!999999 ",
    ";",
    "a",
    "x",
    "n",
    "b",
    "X'41'",
    "b'01'",
    "_utf8mb4",
    "_binary ",
    "@",
    "@@",
    "? ",
    "1",
    "-2.5",
    ",",
    "(",
    ")",
    ".",
    " IN (",
    "||",
    " LIKE ",
    "%",
    "_",
    "é",
    " AS ",
    "0x0b",
    "\u{b}",
    "\u{a0}",
    "\r",
    "*",
    "/",
    "=",
    "N",
    "\\n",
    "t.",
];

fn text(random: &mut Random) -> String {
    loop {
        let text: String = (0..1 + random.index(14)).map(|_| PARTS[random.index(PARTS.len())]).collect();
        // The parser takes `@` for a letter of the word before it: an account is one token. No value gets out
        // of its quotes by that.
        let is_in_word =
            |pair: &[u8]| pair[1] == b'@' && (pair[0].is_ascii_alphanumeric() || pair[0] >= 0x80);
        // At the end of a statement `--` is a comment. With a `;` behind it MariaDB reports an error.
        if !text.as_bytes().windows(2).any(is_in_word) && !text.contains("--;") {
            return text;
        }
    }
}

fn modes() -> impl Iterator<Item = LexicalMode> {
    (0..16).map(|bits: u8| {
        let all = [
            LexicalMode::NO_BACKSLASH_ESCAPES,
            LexicalMode::ANSI_QUOTES,
            LexicalMode::PIPES_AS_CONCAT,
            LexicalMode::HIGH_NOT_PRECEDENCE,
        ];
        (0..4).fold(LexicalMode::NONE, |mode, at| mode.with(all[at], bits & 1 << at != 0))
    })
}

/// A token, as far as the readers have to agree about it.
#[derive(Clone, PartialEq, Debug)]
enum Item {
    Text(String),
    Number,
    Other(String),
}

/// The parser's tokens. `None` if the text cannot be cut.
fn items(text: &str, mode: LexicalMode) -> Option<Vec<Item>> {
    let tokens = tokenize(text, mode, true).ok()?;
    let mut items = Vec::new();
    for token in tokens {
        items.push(match token.token {
            Token::Whitespace(_) => continue,
            Token::SingleQuotedString(text)
            | Token::DoubleQuotedString(text)
            | Token::NationalStringLiteral(text) => Item::Text(text),
            Token::Number(..) => Item::Number,
            Token::Word(word) if word.quote_style.is_some() => Item::Other(format!("name {}", word.value)),
            other => Item::Other(other.to_string()),
        });
    }
    Some(settled(items))
}

/// Texts one behind the other are one, and an introducer belongs to what follows. Signs are left out.
fn settled(items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for item in items {
        let introduces = |item: &Item| matches!(item, Item::Other(word) if ["_utf8mb4", "_binary"].contains(&word.as_str()));
        match item {
            Item::Text(text) => {
                if out.last().is_some_and(introduces) {
                    out.pop();
                }
                match out.last_mut() {
                    Some(Item::Text(before)) => before.push_str(&text),
                    _ => out.push(Item::Text(text)),
                }
            }
            // A sign may be a part of the literal.
            Item::Other(word) if word == "-" => {}
            other => out.push(other),
        }
    }
    while out.last() == Some(&Item::Other(";".into())) {
        out.pop();
    }
    out
}

/// What the parser reads of a scanned text, with the literals put back.
fn scanned(scan: &Scan, text: &str, mode: LexicalMode) -> Option<Vec<Item>> {
    let parsed = items(std::str::from_utf8(&scan.parser_text()).ok()?, mode)?;
    let bytes = |position: LiteralPosition| {
        String::from_utf8_lossy(position.bytes(text.as_bytes(), &scan.unescaped)).into_owned()
    };
    let item = |literal: &Literal| match *literal {
        Literal::Text(position) | Literal::Binary(position) => Item::Text(bytes(position)),
        Literal::Parameter(_) => Item::Other("?".into()),
        _ => Item::Number,
    };
    let mut out = Vec::new();
    for parsed in parsed {
        let slot = match &parsed {
            Item::Other(word) => word.strip_prefix('?').and_then(|number| number.parse::<usize>().ok()),
            _ => None,
        };
        let Some(slot) = slot else {
            out.push(parsed);
            continue;
        };
        let (from, end) = (scan.starts[slot] as usize, scan.starts[slot + 1] as usize);
        for (position, literal) in scan.literals[from..end].iter().enumerate() {
            if position > 0 {
                out.push(Item::Other(",".into()));
            }
            out.push(item(literal));
        }
    }
    Some(settled(out))
}

#[test]
fn scanner_and_parser_cut_a_text_alike() {
    let mut random = Random::new(1, 0);
    let mut whole = 0;
    for round in 0..3_000 {
        let text = format!("SELECT {}", text(&mut random));
        for mode in modes() {
            let mut scan = Scan::default();
            if scan.scan(b"", text.as_bytes(), mode) != ScanEnd::Whole {
                continue;
            }
            whole += 1;
            let expected = items(&text, mode);
            assert_eq!(scanned(&scan, &text, mode), expected, "{round}: {text:?} {mode:?}");
            assert!(split(&text, mode).len() == 1, "{round}: {text:?} {mode:?}");
        }
    }
    assert!(whole > 5_000, "only {whole} texts could be scanned");
}

#[test]
fn splitter_and_parser_cut_a_text_alike() {
    let mut random = Random::new(2, 0);
    let semicolon = Item::Other(";".into());
    let is_parameter = |item: &&Item| matches!(item, Item::Other(word) if word.starts_with('?'));
    let mut cut = 0;
    for round in 0..3_000 {
        let text = text(&mut random);
        for mode in modes() {
            let Some(expected) = items(&text, mode) else { continue };
            cut += 1;
            assert_eq!(
                count_placeholders(&text, mode),
                expected.iter().filter(is_parameter).count(),
                "{round}: {text:?} {mode:?}"
            );
            if text.contains(";") && (text.contains("/*!") || text.contains("/*M!")) {
                // A statement ends in the middle of a comment.
                continue;
            }
            let statements = split(&text, mode);
            let mut of_statements = Vec::new();
            for statement in statements {
                let unwrapped = unwrap_comments(statement, mode);
                let items = items(&unwrapped, mode).unwrap_or_else(|| panic!("{round}: {text:?} {mode:?}"));
                of_statements.push(items);
            }
            of_statements.retain(|items| !items.is_empty());
            let expected: Vec<Vec<Item>> = expected
                .split(|item| *item == semicolon)
                .filter(|items| !items.is_empty())
                .map(<[Item]>::to_vec)
                .collect();
            assert_eq!(of_statements, expected, "{round}: {text:?} {mode:?}");
        }
    }
    assert!(cut > 5_000, "only {cut} texts could be cut");
}

#[test]
fn the_scanner_of_inserts_reads_the_texts_that_the_parser_reads() {
    let mut random = Random::new(3, 0);
    let values =
        ["'", "\"", "\\", "''", "\"\"", "\\'", "\\n", "\\%", "a", " ", "é", "'", "\"", ";", "--", "/*"];
    let mut read = 0;
    for round in 0..4_000 {
        let inner: String = (0..random.index(9)).map(|_| values[random.index(values.len())]).collect();
        let quote = if random.below(3) == 0 { '"' } else { '\'' };
        let text = format!("INSERT INTO t VALUES (1, {quote}{inner}{quote})");
        for mode in modes() {
            let mut scanner = Scanner::new(text.as_bytes(), mode);
            let mut row = Vec::new();
            let is_plain = scanner.head().is_some()
                && scanner.row(&mut row).is_some()
                && scanner.another_row() == Some(false);
            if !is_plain {
                continue;
            }
            read += 1;
            let value = match row[..] {
                [_, insert_scanner::Literal::Text(inner)] => inner.to_vec(),
                [_, insert_scanner::Literal::Escaped(inner, quote)] => {
                    let mut value = Vec::new();
                    scanner.unescape(inner, quote, &mut value);
                    value
                }
                _ => panic!("{round}: {text:?} {mode:?}: {row:?}"),
            };
            let texts: Vec<Item> = items(&text, mode).unwrap_or_default();
            let texts: Vec<&Item> = texts.iter().filter(|item| matches!(item, Item::Text(_))).collect();
            let value = Item::Text(String::from_utf8(value).unwrap());
            assert_eq!(texts, [&value], "{round}: {text:?} {mode:?}");
        }
    }
    assert!(read > 5_000, "only {read} texts could be read");
}

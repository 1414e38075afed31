//! Keys: the levels one behind the other, each with an end, in bytes that compare as the weights do.
//!
//! The first level has a byte for each weight that an ASCII character has, so that texts in ASCII have keys
//! of about their own length:
//!
//! | byte | what follows | weight |
//! |---|---|---|
//! | 0 | | the text ends here (NO PAD) |
//! | 2, 4, ... 2n | | the first, second, ... of the n weights of ASCII |
//! | 1, 3, ... 2n - 1 | 2 bytes, the weight | one before the first, second, ... weight of ASCII |
//! | 2n + 1 to 254 | 1 byte | one behind all weights of ASCII: the distance, its high part here |
//! | 255 | 2 bytes, the weight | one too far behind for that |
//!
//! With PAD SPACE a byte follows a space that tells how what comes after the run of spaces compares with a
//! space, as in other keys (`key.rs`): 1 less, 2 the text ends here, 3 greater.
//!
//! On the other levels most weights are those that a space has. A run of such weights is one byte, which also
//! tells how the weight behind the run compares:
//!
//! | byte | what follows | meaning |
//! |---|---|---|
//! | 0 | | the text ends here (NO PAD) |
//! | 1 | 2 bytes, the weight | a weight less than a space's |
//! | 2 to 60 | | a run of 1 to 59, then something less, or the end with NO PAD |
//! | 61 | | a run of 59, and it goes on |
//! | 62 | | the text ends here (PAD SPACE) |
//! | 131 | | as 61, if what comes then is greater |
//! | 132 to 190 | | a run of 59 to 1, then something greater |
//! | 192 to 255 | 1 byte | a weight greater than a space's: the distance |

use super::{Level, Scanner, Table, Uca};
use crate::Collation;
use crate::collation::after_spaces;

const RUN_MAX: usize = 59;
const LESS: u8 = 1;
const RUN_THEN_LESS: u8 = 2;
const RUN_GOES_ON_TO_LESS: u8 = 61;
const END_OF_LEVEL: u8 = 62;
const RUN_GOES_ON_TO_GREATER: u8 = 131;
const RUN_THEN_GREATER: u8 = 190;
const GREATER: u8 = 192;

/// The bytes of the first level.
pub(super) struct Codes {
    /// The weights of ASCII in order.
    common: Vec<u16>,
    /// The byte of each ASCII character that has a single weight; else 0.
    pub single: [u8; 128],
    pub space: u8,
}

impl Codes {
    /// `plain` are the weights of ASCII, 0 for a character without a single one.
    pub(super) fn new(plain: &[u16; 128]) -> Codes {
        let mut common: Vec<u16> = plain.iter().copied().filter(|weight| *weight != 0).collect();
        common.sort_unstable();
        common.dedup();
        let code = |weight: &u16| common.binary_search(weight).map_or(0, |position| 2 * position as u8 + 2);
        let single = std::array::from_fn(|byte| code(&plain[byte]));
        Codes { space: single[usize::from(b' ')], single, common }
    }

    fn first_far(&self) -> u8 {
        2 * self.common.len() as u8 + 1
    }

    fn push(&self, weight: u16, out: &mut Vec<u8>) {
        let [high, low] = weight.to_be_bytes();
        match self.common.binary_search(&weight) {
            Ok(position) => out.push(2 * position as u8 + 2),
            Err(position) if position < self.common.len() => out.extend([2 * position as u8 + 1, high, low]),
            Err(_) => {
                let distance = weight - self.common.last().copied().unwrap_or(0);
                let [steps, rest] = distance.to_be_bytes();
                match self.first_far().checked_add(steps) {
                    Some(code) if code < 255 => out.extend([code, rest]),
                    _ => out.extend([255, high, low]),
                }
            }
        }
    }

    /// How many bytes a weight takes that begins with this one.
    fn bytes(&self, first: u8) -> usize {
        match first {
            255 => 3,
            _ if first >= self.first_far() => 2,
            _ if first & 1 == 1 => 3,
            _ => 1,
        }
    }
}

/// Appends the key of a text.
pub(crate) fn write_key(uca: &Uca, text: &[u8], out: &mut Vec<u8>) {
    let table = uca.table();
    write_first(uca, table, text, out);
    match uca.pads {
        true => out.extend([table.codes.space, after_spaces::END]),
        false => out.push(0),
    }
    for level in uca.levels.iter().filter(|level| *level != Level::First) {
        write_level(uca, Scanner::new(table, level, text), uca.space(level), out);
    }
}

/// Appends bytes that the keys of all texts begin with that LIKE finds to begin as `text` does.
pub(crate) fn write_start(uca: &Uca, text: &[u8], out: &mut Vec<u8>) {
    let table = uca.table();
    // LIKE compares characters one by one. A text may have a contraction where `text` has none.
    let mut end = 0;
    while end < text.len() && !table.contractions.is_empty() {
        let length = super::super::weights::decode(&text[end..]).1;
        let weight = Scanner::new(table, Level::First, &text[end..end + length]).next();
        if weight.is_none_or(|weight| table.head_weights.binary_search(&weight).is_ok()) {
            break;
        }
        end += length;
    }
    let end = if table.contractions.is_empty() { text.len() } else { end };
    write_first(uca, table, &text[..end], out);
}

/// The first level without an end; with PAD SPACE without the spaces at the end.
fn write_first(uca: &Uca, table: &Table, text: &[u8], out: &mut Vec<u8>) {
    let codes = &table.codes;
    let mut text = text;
    while let [first, rest @ ..] = text
        && first.is_ascii()
    {
        let code = if table.plain[usize::from(*first)] == 0 { 0 } else { codes.single[usize::from(*first)] };
        if code == 0 || (uca.pads && code == codes.space) {
            break;
        }
        out.push(code);
        text = rest;
    }
    let space = uca.space(Level::First);
    let mut spaces = 0;
    for weight in Scanner::new(table, Level::First, text) {
        if uca.pads && weight == space {
            spaces += 1;
            continue;
        }
        let marker = if weight < space { after_spaces::LESS } else { after_spaces::GREATER };
        for _ in 0..std::mem::take(&mut spaces) {
            out.extend([codes.space, marker]);
        }
        codes.push(weight, out);
    }
}

/// A level behind the first, with its end.
fn write_level(uca: &Uca, weights: Scanner<'_>, space: u16, out: &mut Vec<u8>) {
    let mut run = 0;
    for weight in weights {
        if weight == space {
            run += 1;
        } else if weight < space {
            push_run(std::mem::take(&mut run), true, out);
            let [high, low] = weight.to_be_bytes();
            out.extend([LESS, high, low]);
        } else {
            push_run(std::mem::take(&mut run), false, out);
            let [steps, rest] = (weight - space).to_be_bytes();
            out.extend([GREATER | steps.min(0x3f), rest]);
        }
    }
    if uca.pads {
        out.push(END_OF_LEVEL);
    } else {
        push_run(run, true, out);
        out.push(0);
    }
}

fn push_run(run: usize, less: bool, out: &mut Vec<u8>) {
    let mut run = run;
    while run > RUN_MAX {
        out.push(if less { RUN_GOES_ON_TO_LESS } else { RUN_GOES_ON_TO_GREATER });
        run -= RUN_MAX;
    }
    if run > 0 {
        let shorter = run as u8 - 1;
        out.push(if less { RUN_THEN_LESS + shorter } else { RUN_THEN_GREATER - shorter });
    }
}

/// The length of the key at the start of some bytes, of which `byte` gives each. None if it has no end.
pub(crate) fn key_bytes(uca: &Uca, byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
    let codes = &uca.table().codes;
    let mut at = 0;
    loop {
        let first = byte(at)?;
        at += codes.bytes(first);
        if uca.pads && first == codes.space {
            at += 1;
            if byte(at - 1)? == after_spaces::END {
                break;
            }
        } else if first == 0 {
            break;
        }
    }
    for _ in uca.levels.iter().skip(1) {
        loop {
            let first = byte(at)?;
            at += match first {
                LESS => 3,
                GREATER.. => 2,
                _ => 1,
            };
            if first == if uca.pads { END_OF_LEVEL } else { 0 } {
                break;
            }
        }
    }
    Some(at)
}

const _: () = assert!(Collation::SPACE == 0x20, "the markers behind spaces are those of other keys");

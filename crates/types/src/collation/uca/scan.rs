//! Texts to the weights of one level.

use super::{IMPLICIT, Level, Table, kind};
use crate::collation::weights::decode;

/// What bytes that are not UTF-8 weigh on the first level.
static DAMAGED: [u16; 1] = [0xffff];

/// Iterates over the weights that a text has on a level. None is zero.
pub(super) struct Scanner<'a> {
    table: &'a Table,
    level: Level,
    rest: &'a [u8],
    /// More weights of what is before `rest`.
    pending: &'a [u16],
    /// The second weight that a rule makes; 0 without.
    implicit: u16,
}

impl<'a> Scanner<'a> {
    #[inline]
    pub(super) fn new(table: &'a Table, level: Level, text: &'a [u8]) -> Scanner<'a> {
        Scanner { table, level, rest: text, pending: &[], implicit: 0 }
    }

    /// Takes what is next in the text, which is not empty. Returns its weight if it is a single one, or the
    /// first of two that a rule makes; else the weights are pending.
    fn load(&mut self) -> Option<u16> {
        let table = self.table;
        let (character, length) = decode(self.rest);
        let Some(character) = character else {
            self.rest = &self.rest[length..];
            self.pending = if self.level == Level::First { &DAMAGED } else { &[] };
            return None;
        };
        let entry = table.entry(character);
        if entry.is_head()
            && let Some((contraction, bytes)) = table.contraction(self.rest)
        {
            self.rest = &self.rest[bytes..];
            self.pending = match self.level {
                Level::First => &contraction.primaries,
                Level::Second => &table.classes[contraction.class][0],
                Level::Third => &table.classes[contraction.class][1],
            };
            return None;
        }
        self.rest = &self.rest[length..];
        match (self.level, entry.kind()) {
            (Level::First, kind::SINGLE) => return Some(entry.value()),
            (Level::First, kind::IMPLICIT) => {
                let [first, second] = IMPLICIT[usize::from(entry.value())].weights(character as u32);
                self.implicit = second;
                return Some(first);
            }
            (Level::First, _) => self.pending = table.sequence(entry.value()),
            (Level::Second, _) => self.pending = &table.classes[entry.class()][0],
            (Level::Third, _) => self.pending = &table.classes[entry.class()][1],
        }
        None
    }
}

impl Iterator for Scanner<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        loop {
            if let [weight, rest @ ..] = self.pending {
                self.pending = rest;
                return Some(*weight);
            }
            if self.implicit != 0 {
                return Some(std::mem::take(&mut self.implicit));
            }
            let first = *self.rest.first()?;
            if first.is_ascii() && self.level == Level::First {
                let weight = self.table.plain[usize::from(first)];
                if weight != 0 {
                    self.rest = &self.rest[1..];
                    return Some(weight);
                }
            }
            if let Some(weight) = self.load() {
                return Some(weight);
            }
        }
    }
}

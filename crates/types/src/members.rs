//! The members of an ENUM or SET column: numbers to texts and back.

use crate::Collation;
use std::cmp::Ordering;

/// The members of an ENUM or a SET, in the order of their numbers, and the collation that compares them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Members {
    collation: Collation,
    names: Box<[Box<str>]>,
    /// The positions of the members in the collation's order, equal ones in the order of the list. It finds a
    /// member in a long list.
    in_order: Box<[u16]>,
    /// The position of the first member that is equal to an earlier one.
    duplicate: Option<u16>,
}

/// The longest list of an ENUM.
pub const ENUM_MEMBERS_MAX: usize = 65_535;
/// The longest list of a SET: each member is a bit of a number.
pub const SET_MEMBERS_MAX: usize = 64;

impl Members {
    /// A list of members. Those beyond [`ENUM_MEMBERS_MAX`] are dropped; the caller refuses such a list.
    pub fn new(names: impl IntoIterator<Item = String>, collation: Collation) -> Members {
        let names: Box<[Box<str>]> =
            names.into_iter().take(ENUM_MEMBERS_MAX).map(String::into_boxed_str).collect();
        let compare = |left: &u16, right: &u16| {
            collation.compare(names[usize::from(*left)].as_bytes(), names[usize::from(*right)].as_bytes())
        };
        let mut in_order: Box<[u16]> = (0..).take(names.len()).collect();
        in_order.sort_by(compare);
        let equal = in_order.windows(2).filter(|pair| compare(&pair[0], &pair[1]) == Ordering::Equal);
        let duplicate = equal.map(|pair| pair[1]).min();
        Members { collation, names, in_order, duplicate }
    }

    pub fn collation(&self) -> Collation {
        self.collation
    }

    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// The same members with another collation.
    pub fn with_collation(&self, collation: Collation) -> Members {
        Members::new(self.names.iter().map(|name| name.to_string()), collation)
    }

    /// The bytes of an ENUM's number in a row: 1 or 2.
    pub fn enum_bytes(&self) -> u8 {
        if self.names.len() < 256 { 1 } else { 2 }
    }

    /// The bytes of a SET's number in a row: 1, 2, 3, 4 or 8.
    pub fn set_bytes(&self) -> u8 {
        match self.names.len().div_ceil(8) {
            bytes @ 0..=4 => bytes.max(1) as u8,
            _ => 8,
        }
    }

    /// The position of the first member that the collation takes for equal to an earlier one.
    pub fn duplicate(&self) -> Option<usize> {
        self.duplicate.map(usize::from)
    }

    /// The position of a member, from 0. Of members that are equal it is the first.
    pub fn find(&self, text: &[u8]) -> Option<usize> {
        // Almost always a member is written as in the list, and the list is short.
        const SHORT: usize = 16;
        if self.duplicate.is_none()
            && let Some(at) = self.names.iter().take(SHORT).position(|name| name.as_bytes() == text)
        {
            return Some(at);
        }
        let order = |at: u16| self.collation.compare(self.names[usize::from(at)].as_bytes(), text);
        let place = self.in_order.partition_point(|at| order(*at) == Ordering::Less);
        let at = *self.in_order.get(place)?;
        (order(at) == Ordering::Equal).then_some(usize::from(at))
    }

    /// The text of an ENUM's number. 0, the value of texts that are no member, is the empty text.
    pub fn of_enum(&self, number: u64) -> &[u8] {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.names.get(at)).map_or(b"", |name| name.as_bytes())
    }

    /// Appends the text of a SET's number: its members with commas between them.
    pub fn write_set(&self, number: u64, out: &mut Vec<u8>) {
        let mut is_first = true;
        for (bit, name) in self.names.iter().take(SET_MEMBERS_MAX).enumerate() {
            if number >> bit & 1 == 1 {
                if !std::mem::take(&mut is_first) {
                    out.push(b',');
                }
                out.extend_from_slice(name.as_bytes());
            }
        }
    }

    /// The number of a SET whose members are all there.
    pub fn all(&self) -> u64 {
        match self.names.len() {
            0 => 0,
            count => u64::MAX >> (SET_MEMBERS_MAX - count.min(SET_MEMBERS_MAX)),
        }
    }

    /// Reads members with commas between them, and without blanks behind the last. The number of those that
    /// were found, and whether there were no others.
    pub fn read_set(&self, text: &[u8]) -> (u64, bool) {
        let mut number = 0;
        let mut is_whole = true;
        if text.iter().all(|byte| *byte == b' ') {
            return (0, true);
        }
        for name in text.split(|byte| *byte == b',') {
            // Blanks in front of a comma count.
            match self.find(name) {
                Some(at) if at < SET_MEMBERS_MAX && !name.ends_with(b" ") => number |= 1 << at,
                _ => is_whole = false,
            }
        }
        (number, is_whole)
    }

    /// The most characters that a value of an ENUM of these members has.
    pub fn enum_chars(&self) -> u32 {
        self.lengths().max().unwrap_or(0)
    }

    /// The most characters that a value of a SET of these members has.
    pub fn set_chars(&self) -> u32 {
        self.lengths().sum::<u32>() + (self.names.len() as u32).saturating_sub(1)
    }

    fn lengths(&self) -> impl Iterator<Item = u32> {
        self.names.iter().map(|name| name.chars().count() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[&str], collation: Collation) -> Members {
        Members::new(names.iter().map(|name| name.to_string()), collation)
    }

    #[test]
    fn a_member_is_found_by_its_collation() {
        let names: Vec<String> = (0..40).map(|number| format!("Name {number}")).collect();
        let list = Members::new(names.clone(), Collation::Utf8mb4GeneralCi);
        for (at, name) in names.iter().enumerate() {
            assert_eq!(list.find(name.as_bytes()), Some(at));
            assert_eq!(list.find(format!("{} ", name.to_uppercase()).as_bytes()), Some(at));
        }
        assert_eq!(list.find(b"Name"), None);
        assert_eq!(members(&["a"], Collation::Utf8mb4Bin).find(b"A"), None);
        assert_eq!(members(&["a", "b", "A"], Collation::Utf8mb4GeneralCi).find(b"A"), Some(0));
    }

    #[test]
    fn members_that_are_equal_are_noticed() {
        assert_eq!(members(&["a", "b", "A"], Collation::Utf8mb4GeneralCi).duplicate(), Some(2));
        assert_eq!(members(&["a", "b", "A"], Collation::Utf8mb4Bin).duplicate(), None);
    }

    #[test]
    fn a_set_reads_what_it_writes() {
        let names: Vec<String> = (0..64).map(|number| format!("m{number}")).collect();
        let list = Members::new(names, Collation::Utf8mb4GeneralCi);
        for number in [0, 1, 5, 1 << 63, u64::MAX, 0x8000_0000_0000_0001] {
            let mut text = Vec::new();
            list.write_set(number, &mut text);
            assert_eq!(list.read_set(&text), (number, true));
        }
        assert_eq!(list.read_set(b"m3,M1,m1"), (0b1010, true));
        assert_eq!(list.read_set(b"m3,,x"), (0b1000, false));
        assert_eq!(list.read_set(b"m0 ,m3"), (0b1000, false));
        assert_eq!((list.all(), list.set_bytes()), (u64::MAX, 8));
    }

    #[test]
    fn a_number_beyond_the_list_is_the_empty_text() {
        let list = members(&["a", "b"], Collation::Latin1SwedishCi);
        assert_eq!(list.of_enum(0), b"");
        assert_eq!(list.of_enum(2), b"b");
        assert_eq!(list.of_enum(u64::MAX), b"");
        assert_eq!((list.all(), list.enum_bytes(), list.set_bytes()), (3, 1, 1));
        assert_eq!((list.enum_chars(), list.set_chars()), (1, 3));
    }
}

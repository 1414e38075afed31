//! The files of weights.
//!
//! A number is written in groups of 7 bits, the lowest first; each byte but the last has its high bit set. A
//! list is its length and its elements. A *difference* is from the weight of the first level that stands
//! before it in the file, the first time from 0: twice the distance, or if it is negative twice the distance
//! minus 1. A *class* is the weights of the second and of the third level.
//!
//! A version: the list of classes, each two lists of weights; then the characters from U+0000 to U+10FFFF but
//! for the surrogates, as runs; then the list of contractions.
//!
//! | run | what follows | meaning |
//! |---|---|---|
//! | 0 | | the end |
//! | 1 | class, rule, count | characters whose weights a rule makes |
//! | 2 | class, count | characters with one weight each, each 1 more than the one before |
//! | 3 | class, count | characters with one weight each, the one before |
//! | 4 | class, difference | a character with one weight |
//! | 5 | class, list of differences | a character with several weights |
//! | 6 | class, count | characters without a weight |
//! | 7 | class, class | the syllables of Hangul, with the weights of their letters: of two, then of three |
//!
//! A contraction: the list of its characters, its class, the list of its differences.
//!
//! The languages, in one file: the list of them, each its name (a list of bytes: the version, a plus and the
//! language), its length in bytes, and the
//! differences from the version that it is based on: the list of classes, then a list of the form of
//! contractions, in which a sequence can also be one character.

use super::keys::Codes;
use super::{Contraction, Entry, IMPLICIT, PAGE, PAGES, Page, Table, kind};
use base::sync::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

static VERSIONS: [(&str, &[u8]); 4] = [
    ("400", include_bytes!("400.bin")),
    ("520", include_bytes!("520.bin")),
    ("900", include_bytes!("900.bin")),
    ("1400", include_bytes!("1400.bin")),
];

static LANGUAGES: &[u8] = include_bytes!("languages.bin");

/// Every table that was ever asked for.
static TABLES: LazyLock<Mutex<HashMap<&'static str, &'static Table>>> = LazyLock::new(Mutex::default);

/// The table of a version, or of a version and a language with a plus between them. It stays in memory.
pub(super) fn table(name: &'static str) -> &'static Table {
    if let Some(found) = TABLES.lock().get(name) {
        return found;
    }
    let made: &'static Table = Box::leak(Box::new(match name.split_once('+') {
        None => version(name),
        Some((version, _)) => with_language(table(version), name),
    }));
    TABLES.lock().entry(name).or_insert(made)
}

/// Reads numbers. The files are part of the program, so a damaged one is a mistake of its build.
struct Reader(&'static [u8]);

impl Reader {
    fn number(&mut self) -> u32 {
        let mut number = 0;
        let mut shift = 0;
        while let [byte, rest @ ..] = self.0 {
            self.0 = rest;
            number |= u32::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }

    fn list(&mut self) -> Vec<u16> {
        (0..self.number()).map(|_| self.number() as u16).collect()
    }

    fn difference(&mut self, last: &mut u16) -> u16 {
        let number = self.number();
        let difference = (number >> 1) as i32 ^ -((number & 1) as i32);
        *last = last.wrapping_add(difference as u16);
        *last
    }

    fn differences(&mut self, last: &mut u16) -> Vec<u16> {
        (0..self.number()).map(|_| self.difference(last)).collect()
    }

    fn classes(&mut self) -> Vec<[Box<[u16]>; 2]> {
        (0..self.number()).map(|_| [self.list().into(), self.list().into()]).collect()
    }

    fn characters(&mut self) -> Vec<char> {
        (0..self.number()).filter_map(|_| char::from_u32(self.number())).collect()
    }
}

/// A table in the making.
#[derive(Default)]
struct Draft {
    entries: HashMap<usize, Box<Page>>,
    base: Option<&'static Table>,
    starts: Vec<u32>,
    weights: Vec<u16>,
    known: HashMap<Vec<u16>, u16>,
    classes: Vec<[Box<[u16]>; 2]>,
    contractions: BTreeMap<Vec<char>, (Vec<u16>, usize)>,
}

impl Draft {
    fn entry(&self, character: u32) -> Entry {
        let (page, place) = (character as usize / PAGE, character as usize % PAGE);
        match (self.entries.get(&page), self.base) {
            (Some(page), _) => page[place],
            (None, Some(base)) => base.pages[page][place],
            (None, None) => Entry(0),
        }
    }

    fn set(&mut self, character: u32, entry: Entry) {
        let (page, place) = (character as usize / PAGE, character as usize % PAGE);
        let base = self.base;
        let fresh = || Box::new(base.map_or([Entry(0); PAGE], |base| *base.pages[page]));
        self.entries.entry(page).or_insert_with(fresh)[place] = entry;
    }

    fn sequence(&mut self, weights: Vec<u16>) -> u16 {
        let next = self.starts.len() as u16;
        *self.known.entry(weights).or_insert_with_key(|weights| {
            self.starts.push(self.weights.len() as u32);
            self.weights.extend_from_slice(weights);
            next
        })
    }

    fn set_weights(&mut self, character: u32, weights: Vec<u16>, class: usize) {
        let entry = match weights[..] {
            [weight] => Entry::new(kind::SINGLE, weight, class),
            _ => Entry::new(kind::SEQUENCE, self.sequence(weights), class),
        };
        self.set(character, entry);
    }

    fn single(&self, character: u32) -> u16 {
        self.entry(character).value()
    }

    fn finish(mut self) -> Table {
        self.starts.push(self.weights.len() as u32);
        let mut heads = Vec::new();
        for characters in self.contractions.keys().cloned().collect::<Vec<_>>() {
            for (place, character) in characters.iter().enumerate() {
                let character = *character as u32;
                let before = self.entry(character);
                let mut entry = before;
                entry.0 |= if place == 0 { Entry::HEAD } else { 0 };
                entry.0 |= if place + 1 < characters.len() { Entry::GOES_ON } else { 0 };
                // A page that stays as it is is shared with the version.
                if entry != before {
                    self.set(character, entry);
                }
            }
            heads.push(characters[0]);
        }
        let mut shared: HashMap<Page, &'static Page> = HashMap::new();
        let pages = (0..PAGES).map(|page| match (self.entries.remove(&page), self.base) {
            (None, Some(base)) => base.pages[page],
            (own, _) => {
                let own = own.unwrap_or_else(|| Box::new([Entry(0); PAGE]));
                shared.entry(*own).or_insert_with(|| Box::leak(own))
            }
        });
        let mut table = Table {
            pages: pages.collect(),
            starts: self.starts,
            weights: self.weights,
            classes: self.classes,
            contractions: Vec::new(),
            head_weights: Vec::new(),
            plain: [0; 128],
            codes: Codes::new(&[0; 128]),
        };
        let single = |byte: usize| {
            let entry = table.pages[0][byte];
            (entry.kind() == kind::SINGLE).then(|| (entry.value(), !entry.is_head()))
        };
        let singles: [Option<(u16, bool)>; 128] = std::array::from_fn(single);
        table.codes = Codes::new(&singles.map(|single| single.map_or(0, |(weight, _)| weight)));
        table.plain =
            singles.map(|single| single.map_or(0, |(weight, plain)| if plain { weight } else { 0 }));
        let head_weight = |head: &char| {
            let entry = table.entry(*head);
            match entry.kind() {
                kind::SINGLE => Some(entry.value()),
                kind::SEQUENCE => table.sequence(entry.value()).first().copied(),
                _ => Some(IMPLICIT[usize::from(entry.value())].weights(*head as u32)[0]),
            }
        };
        table.head_weights = heads.iter().filter_map(head_weight).collect();
        table.head_weights.sort_unstable();
        table.head_weights.dedup();
        let contraction = |(characters, (primaries, class)): (Vec<char>, (Vec<u16>, usize))| Contraction {
            characters: characters.into(),
            primaries: primaries.into(),
            class,
        };
        table.contractions = self.contractions.into_iter().map(contraction).collect();
        table
    }
}

fn version(name: &str) -> Table {
    let bytes = VERSIONS.iter().find(|(version, _)| *version == name).map_or(&[][..], |(_, bytes)| bytes);
    let mut from = Reader(bytes);
    let mut draft = Draft { classes: from.classes(), ..Draft::default() };
    assert!(draft.classes.len() <= Entry::CLASSES, "an entry has 12 bits for its class");
    let mut last = 0;
    let mut character = 0;
    loop {
        let run = from.number();
        if run == 0 {
            break;
        }
        let class = from.number() as usize;
        let mut next = |draft: &mut Draft, entry: Entry| {
            draft.set(character, entry);
            // Surrogates are no characters.
            character = if character == 0xd7ff { 0xe000 } else { character + 1 };
        };
        match run {
            1 => {
                let entry = Entry::new(kind::IMPLICIT, from.number() as u16, class);
                (0..from.number()).for_each(|_| next(&mut draft, entry));
            }
            2 | 3 => {
                for _ in 0..from.number() {
                    last += u16::from(run == 2);
                    next(&mut draft, Entry::new(kind::SINGLE, last, class));
                }
            }
            4 => {
                let weight = from.difference(&mut last);
                next(&mut draft, Entry::new(kind::SINGLE, weight, class));
            }
            5 => {
                let sequence = draft.sequence(from.differences(&mut last));
                next(&mut draft, Entry::new(kind::SEQUENCE, sequence, class));
            }
            6 => {
                let entry = Entry::new(kind::SEQUENCE, draft.sequence(Vec::new()), class);
                (0..from.number()).for_each(|_| next(&mut draft, entry));
            }
            _ => {
                let classes = [class, from.number() as usize];
                for index in 0..11_172 {
                    let trail = index % 28;
                    let mut letters = vec![0x1100 + index / 588, 0x1161 + index % 588 / 28];
                    letters.extend((trail > 0).then_some(0x11a7 + trail));
                    let weights = letters.iter().map(|letter| draft.single(*letter)).collect();
                    let sequence = draft.sequence(weights);
                    next(&mut draft, Entry::new(kind::SEQUENCE, sequence, classes[letters.len() - 2]));
                }
            }
        }
    }
    for _ in 0..from.number() {
        let (characters, class) = (from.characters(), from.number() as usize);
        draft.contractions.insert(characters, (from.differences(&mut last), class));
    }
    draft.finish()
}

fn with_language(base: &'static Table, wanted: &str) -> Table {
    let mut from = Reader(LANGUAGES);
    let mut own = Reader(&[]);
    for _ in 0..from.number() {
        let name: Vec<u8> = from.list().iter().map(|letter| *letter as u8).collect();
        let length = from.number() as usize;
        let (bytes, rest) = from.0.split_at(length.min(from.0.len()));
        from.0 = rest;
        if name == wanted.as_bytes() {
            own.0 = bytes;
        }
    }
    let mut draft = Draft { base: Some(base), classes: base.classes.clone(), ..Draft::default() };
    let sequences = base.starts.windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
    for weights in sequences.map(|place| base.weights[place].to_vec()) {
        draft.sequence(weights);
    }
    for one in &base.contractions {
        draft.contractions.insert(one.characters.to_vec(), (one.primaries.to_vec(), one.class));
    }
    let classes = own.classes();
    let first_class = draft.classes.len();
    assert!(first_class + classes.len() <= Entry::CLASSES, "an entry has 12 bits for its class");
    draft.classes.extend(classes);
    let mut last = 0;
    for _ in 0..own.number() {
        let (characters, class) = (own.characters(), first_class + own.number() as usize);
        let weights = own.differences(&mut last);
        match characters[..] {
            [character] => draft.set_weights(character as u32, weights, class),
            _ => {
                draft.contractions.insert(characters, (weights, class));
            }
        }
    }
    draft.finish()
}

use super::*;
use crate::collation::definitions;
use crate::{Collation, Column, ColumnType, KeyCodec, KeyPart, ValueRef};
use proptest::prelude::*;

/// What `examples/collation_tables.rs` printed, from the servers' weights, when it wrote the tables.
const CHECKSUMS: &[(&str, u64)] = &[
    ("900", 0xa7eddba096dbd3c0),
    ("400", 0xcc1bd97f4e3a8f2b),
    ("520", 0x20002685325e6f3d),
    ("1400", 0x7661d328c87bbf29),
    ("400+icelandic", 0x48e7893c5d1cf9c7),
    ("1400+icelandic", 0xd3551668cbca2e6e),
    ("400+latvian", 0xcb9728deceed4773),
    ("1400+latvian", 0xd6968fd539b4f378),
    ("400+romanian", 0xfb976e9ee2bab15f),
    ("1400+romanian", 0xc9b5f614a6758b9e),
    ("400+slovenian", 0xd04ddd2988f8dfbd),
    ("1400+slovenian", 0x201681055bf7453a),
    ("400+polish", 0xbe7b372b70a613c3),
    ("1400+polish", 0x8b4ef804348390e6),
    ("400+estonian", 0xa10a05bab9d89c03),
    ("1400+estonian", 0x3ca5afed473819b2),
    ("400+spanish", 0xd6a9b5a577807321),
    ("1400+spanish", 0x2f0f2da38d843064),
    ("400+swedish", 0x57713d3b455a6af1),
    ("1400+swedish", 0xbb3f5b3b3d6d50d7),
    ("400+turkish", 0xf10440a0fa2aa65b),
    ("1400+turkish", 0x939776b9955a596b),
    ("400+czech", 0xccca04f9f1c7c586),
    ("1400+czech", 0x89d6d97796d7944e),
    ("400+danish", 0x3494deac6aab7f00),
    ("1400+danish", 0xf9fd0eed81307c71),
    ("400+lithuanian", 0xec6e3ff6fa631cea),
    ("1400+lithuanian", 0x305cd738d319caef),
    ("400+slovak", 0x15f1328563de00c8),
    ("1400+slovak", 0x70a78c541915e8ff),
    ("400+spanish2", 0x248b598028f99984),
    ("1400+spanish2", 0xcd3312ef4154094c),
    ("400+roman", 0xe076ff2eea9f0e23),
    ("1400+roman", 0x4816a27bedd646e3),
    ("400+persian", 0x425a1b08d105843b),
    ("1400+persian", 0x0edcae66bd9d38a4),
    ("400+esperanto", 0xd2a9072c761a6eb3),
    ("1400+esperanto", 0xb3269cf590ca4a6b),
    ("400+hungarian", 0x65b0909be778df6f),
    ("1400+hungarian", 0x9a215781ab6e79e5),
    ("400+sinhala", 0xac72e9563f459010),
    ("1400+sinhala", 0xc48a22ac9b0f88b3),
    ("400+german2", 0x6247b024093e1e13),
    ("1400+german2", 0xd2bc1d6a2d44de4e),
    ("400+croatian_mysql561", 0x08da4ca18decfeb8),
];

#[test]
fn the_tables_hold_the_weights_that_they_were_made_from() {
    for (name, expected) in CHECKSUMS {
        let table = read::table(name);
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |number: u32| sum = (sum ^ u64::from(number)).wrapping_mul(0x0100_0000_01b3);
        for character in '\0'..=char::MAX {
            add(character as u32);
            let entry = table.entry(character);
            let value = entry.value();
            match entry.kind() {
                kind::SINGLE => add(value.into()),
                kind::SEQUENCE => table.sequence(value).iter().for_each(|weight| add(u32::from(*weight))),
                _ => IMPLICIT[usize::from(value)]
                    .weights(character as u32)
                    .iter()
                    .for_each(|weight| add(u32::from(*weight))),
            }
            add(0);
            for level in &table.classes[entry.class()] {
                level.iter().for_each(|weight| add(u32::from(*weight)));
                add(0);
            }
        }
        // A language that lacks a contraction of its version has one with the weights of its characters.
        let own = |one: &&Contraction| {
            let text: String = one.characters.iter().collect();
            let alone = |level: Level| -> Vec<u16> {
                let each = one.characters.iter().map(|character| character.to_string());
                each.flat_map(|text| Scanner::new(table, level, text.as_bytes()).collect::<Vec<_>>())
                    .collect()
            };
            let levels = [Level::First, Level::Second, Level::Third];
            levels.iter().any(|level| {
                Scanner::new(table, *level, text.as_bytes()).collect::<Vec<_>>() != alone(*level)
            })
        };
        for one in table.contractions.iter().filter(own) {
            one.characters.iter().for_each(|character| add(*character as u32));
            one.primaries.iter().for_each(|weight| add(u32::from(*weight)));
            add(0);
            for level in &table.classes[one.class] {
                level.iter().for_each(|weight| add(u32::from(*weight)));
                add(0);
            }
        }
        assert_eq!(sum, *expected, "{name}");
    }
}

fn collation(name: &str) -> Collation {
    definitions().iter().find(|one| one.name == name).and_then(|one| one.column()).unwrap()
}

#[test]
fn texts_compare_by_their_levels() {
    let order = |name: &str, a: &str, b: &str| collation(name).compare(a.as_bytes(), b.as_bytes());
    assert_eq!(order("utf8mb4_unicode_ci", "Straße", "STRASSE "), Ordering::Equal);
    assert_eq!(order("utf8mb4_0900_ai_ci", "a", "a "), Ordering::Less);
    assert_eq!(order("utf8mb4_0900_as_cs", "a", "A"), Ordering::Less);
    assert_eq!(order("utf8mb4_uca1400_as_ci", "ab", "áa"), Ordering::Greater);
    assert_eq!(order("utf8mb4_uca1400_as_ci", "a", "á"), Ordering::Less);
    assert_eq!(order("utf8mb4_uca1400_ai_ci", "a\u{301}\t", "a"), Ordering::Less);
    assert_eq!(order("utf8mb4_0900_ai_ci", "가", "\u{1100}\u{1161}"), Ordering::Equal);
    assert_eq!(order("utf8mb4_czech_ci", "chyba", "cz"), Ordering::Greater);
    assert_eq!(order("utf8mb4_unicode_ci", "😀", "😁"), Ordering::Equal);
    assert_eq!(order("utf8mb4_unicode_520_ci", "😀", "😁"), Ordering::Less);
}

/// Characters that make trouble: without weights, with several, below a space, in contractions.
fn text() -> impl Strategy<Value = String> {
    let characters = "aAbczChHlLjJáÁß \t\u{0}\u{1}\u{301}\u{328}ﷺ字한ไกೊ\u{17000}😀\u{e0041}_-~zŽ";
    let all: Vec<char> = characters.chars().collect();
    prop::collection::vec(prop::sample::select(all), 0..8).prop_map(|text| text.into_iter().collect())
}

fn codec(collation: Collation, descending: bool) -> KeyCodec {
    let column_type = ColumnType::Varchar { chars: 20, collation };
    let columns = [Column { name: "c".into(), column_type, nullable: false }];
    KeyCodec::new(&columns, &[KeyPart { column: 0, prefix_chars: None, descending }])
}

/// Those that columns of characters have.
fn any_collation() -> impl Strategy<Value = Collation> {
    let of_characters = |collation: &Collation| *collation != Collation::Binary;
    let columns = definitions().iter().filter_map(|one| one.column());
    prop::sample::select(columns.filter(of_characters).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn keys_sort_as_texts_compare(left in text(), right in text(), collation in any_collation(), spaces in 0..3usize) {
        let right = right + &" ".repeat(spaces);
        for descending in [false, true] {
            let codec = codec(collation, descending);
            let key = |text: &str| {
                let mut key = Vec::new();
                codec.encode_prefix(&[ValueRef::Text(text.as_bytes())], &mut key);
                prop_assert_eq!(codec.len_in(&key), Some(key.len()));
                let whole = key.len();
                key.extend([0, 0x20, 2, 0xff, 0x3e]);
                prop_assert_eq!(codec.len_in(&key), Some(whole));
                key.truncate(whole);
                Ok(key)
            };
            let order = collation.compare(left.as_bytes(), right.as_bytes());
            let found = key(&left)?.cmp(&key(&right)?);
            prop_assert_eq!(found, if descending { order.reverse() } else { order });
        }
        let (left, right) = (left.as_bytes(), right.as_bytes());
        prop_assert_eq!(collation.compare(left, right), collation.compare(right, left).reverse());
    }

    #[test]
    fn keys_begin_with_the_starts_of_their_texts(start in text(), rest in text(), collation in any_collation()) {
        let mut bytes = Vec::new();
        codec(collation, false).encode_text_start(&[], start.as_bytes(), &mut bytes);
        let mut key = Vec::new();
        let text = start + &rest;
        codec(collation, false).encode_prefix(&[ValueRef::Text(text.as_bytes())], &mut key);
        prop_assert!(key.starts_with(&bytes));
    }

    #[test]
    fn no_bytes_are_too_strange_to_compare(
        left in prop::collection::vec(any::<u8>(), 0..12),
        right in prop::collection::vec(any::<u8>(), 0..12),
        collation in any_collation(),
    ) {
        let order = collation.compare(&left, &right);
        prop_assert_eq!(order, collation.compare(&right, &left).reverse());
        let _ = codec(collation, false).len_in(&left);
    }
}

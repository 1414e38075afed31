use super::*;
use crate::row::RowCodec;
use crate::{ColumnType, Value};
use proptest::prelude::*;
use std::cmp::Ordering;

fn codec(column_type: ColumnType, nullable: bool, prefix_chars: Option<u32>, descending: bool) -> KeyCodec {
    let columns = [Column { name: "c".into(), column_type, nullable }];
    KeyCodec::new(&columns, &[KeyPart { column: 0, prefix_chars, descending }])
}

fn key(codec: &KeyCodec, values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    codec.encode_prefix(values, &mut out);
    out
}

#[test]
fn an_int_that_is_not_null_has_a_key_of_four_bytes() {
    let codec = codec(ColumnType::Int { bytes: 4, unsigned: false }, false, None, false);
    assert_eq!(key(&codec, &[ValueRef::Int(-1)]), [0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(key(&codec, &[ValueRef::Int(1)]), [0x80, 0, 0, 1]);
}

#[test]
fn null_comes_first_and_last_in_a_descending_part() {
    let int = ColumnType::Int { bytes: 8, unsigned: false };
    let ascending = codec(int.clone(), true, None, false);
    assert!(key(&ascending, &[ValueRef::Null]) < key(&ascending, &[ValueRef::Int(i64::MIN)]));
    let descending = codec(int, true, None, true);
    assert!(key(&descending, &[ValueRef::Null]) > key(&descending, &[ValueRef::Int(i64::MIN)]));
    assert!(key(&descending, &[ValueRef::Int(2)]) < key(&descending, &[ValueRef::Int(1)]));
}

#[test]
fn a_prefix_part_keeps_whole_characters() {
    let text = ColumnType::Varchar { chars: 20, collation: Collation::Utf8mb4Bin };
    let codec = codec(text, false, Some(3), false);
    assert_eq!(
        key(&codec, &[ValueRef::Text("größe".as_bytes())]),
        key(&codec, &[ValueRef::Text("grö".as_bytes())])
    );
    assert!(!codec.is_covering());
}

#[test]
fn a_text_start_is_the_start_of_the_keys_of_what_it_begins() {
    let text = ColumnType::Varchar { chars: 20, collation: Collation::Utf8mb4GeneralCi };
    for descending in [false, true] {
        let codec = codec(text.clone(), true, None, descending);
        let mut start = Vec::new();
        codec.encode_text_start(&[], b"ab c  ", &mut start);
        for value in ["Ab C  ", "aB c  d", "ab c  \t"] {
            assert!(key(&codec, &[ValueRef::Text(value.as_bytes())]).starts_with(&start), "{value}");
        }
    }
}

#[test]
fn covered_parts_read_back_and_know_their_length() {
    let (columns, values) = crate::row::tests::one_of_each(true);
    let row_codec = RowCodec::new(&columns);
    for descending in [false, true] {
        let all: Vec<_> =
            (0..columns.len()).map(|column| KeyPart { column, prefix_chars: None, descending }).collect();
        let covering: Vec<_> = all
            .iter()
            .filter(|part| KeyCodec::new(&columns, &[(*part).clone()]).is_covering())
            .cloned()
            .collect();
        assert_eq!(covering.len(), columns.len() - 4, "all but FLOAT, DOUBLE, VARCHAR and TEXT");
        let codec = KeyCodec::new(&columns, &covering);
        let nulls = vec![Value::Null; columns.len()];
        for values in [&values, &nulls] {
            let mut image = Vec::new();
            row_codec.encode(&values.iter().map(Value::as_ref).collect::<Vec<_>>(), &mut image);
            let mut key = Vec::new();
            codec.encode_row(&row_codec.view(&image), &mut key);
            assert_eq!(codec.row_has_null(&row_codec.view(&image)), values == &nulls);
            let own = key.len();
            key.extend([7; 9]);
            assert_eq!(codec.len_in(&key), Some(own));
            let mut scratch = Vec::new();
            let decoded = codec.decode(&key, &mut scratch).expect("covering");
            for (part, value) in covering.iter().zip(decoded) {
                assert_eq!(value.to_value(), values[part.column]);
            }
            for cut in 0..own {
                assert_eq!(codec.len_in(&key[..cut]), None);
                assert!(codec.decode(&key[..cut], &mut Vec::new()).is_none());
            }
        }
    }
}

/// Texts that meet in prefixes, cases, spaces and what sorts before a space.
fn texts() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        8 => prop::sample::select(vec!['a', 'A', 'b', ' ', ' ', '\t', '\0', '~', 'ä', 'Ä', 'ß', '€', '\u{ffff}', '😀', '😁']),
        1 => any::<char>(),
    ];
    prop::collection::vec(character, 0..8).prop_map(|characters| characters.into_iter().collect())
}

const COLLATIONS: [Collation; 6] = [
    Collation::Utf8mb4GeneralCi,
    Collation::Utf8mb4Bin,
    Collation::Latin1SwedishCi,
    Collation::Latin1Bin,
    Collation::AsciiGeneralCi,
    Collation::AsciiBin,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn keys_of_texts_order_as_the_collation_compares(a in texts(), b in texts(), c in 0i64..2, d in 0i64..2) {
        for collation in COLLATIONS {
            let columns = [
                Column { name: "t".into(), column_type: ColumnType::Varchar { chars: 20, collation }, nullable: true },
                Column { name: "i".into(), column_type: ColumnType::Int { bytes: 4, unsigned: false }, nullable: false },
            ];
            for descending in [false, true] {
                let part = |column| KeyPart { column, prefix_chars: None, descending };
                let codec = KeyCodec::new(&columns, &[part(0), part(1)]);
                let left = key(&codec, &[ValueRef::Text(a.as_bytes()), ValueRef::Int(c)]);
                let right = key(&codec, &[ValueRef::Text(b.as_bytes()), ValueRef::Int(d)]);
                let expected = collation.compare(a.as_bytes(), b.as_bytes()).then(c.cmp(&d));
                let expected = if descending { expected.reverse() } else { expected };
                prop_assert_eq!(left.cmp(&right), expected, "{:?}", collation);
                prop_assert_eq!(codec.len_in(&left), Some(left.len()));
            }
        }
    }

    #[test]
    fn keys_of_binaries_order_as_bytes(
        a in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xff]), 0..6),
        b in prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xff]), 0..6),
    ) {
        for descending in [false, true] {
            let codec = codec(ColumnType::Varbinary { bytes: 10 }, true, None, descending);
            let order = key(&codec, &[ValueRef::Binary(&a)]).cmp(&key(&codec, &[ValueRef::Binary(&b)]));
            prop_assert_eq!(if descending { order.reverse() } else { order }, a.cmp(&b));
        }
    }

    #[test]
    fn keys_of_doubles_order_as_numbers(a in any::<f64>(), b in any::<f64>()) {
        let codec = codec(ColumnType::Double { unsigned: false }, false, None, false);
        for (a, b) in [(a, b), (a, -a), (0.0, -0.0)] {
            if let Some(order) = a.partial_cmp(&b) {
                prop_assert_eq!(key(&codec, &[ValueRef::Double(a)]).cmp(&key(&codec, &[ValueRef::Double(b)])), order);
            }
        }
    }

    #[test]
    fn a_collation_orders_totally(a in texts(), b in texts(), c in texts()) {
        for collation in COLLATIONS {
            let compare = |a: &str, b: &str| collation.compare(a.as_bytes(), b.as_bytes());
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
            prop_assert_eq!(compare(&a, &format!("{a}  ")), Ordering::Equal);
        }
    }
}

use super::*;
use proptest::prelude::*;

fn d(text: &str) -> Decimal {
    let (value, length) = Decimal::parse_prefix(text.as_bytes());
    assert_eq!(length, text.len(), "{text}");
    value
}

#[test]
fn texts_read_and_print() {
    for (text, printed) in [
        ("0", "0"),
        ("-1.50", "-1.50"),
        (".5", "0.5"),
        ("-.005", "-0.005"),
        ("1e3", "1000"),
        ("1.25e-3", "0.00125"),
        ("1e-50", "0.00000000000000000000000000000000000000"),
        ("1e100", "99999999999999999999999999999999999999999999999999999999999999999"),
    ] {
        assert_eq!(d(text).to_string(), printed);
    }
    assert_eq!(Decimal::parse_prefix(b"  12x"), (d("12"), 4));
    assert_eq!(Decimal::parse_prefix(b"1e"), (d("1"), 1));
    assert_eq!(Decimal::parse_prefix(b"-"), (Decimal::ZERO, 0));
}

#[test]
fn quotients_show_four_more_digits_and_keep_more() {
    let third = d("1").divide(&d("3"), 4).unwrap().unwrap();
    assert_eq!(third.to_string(), "0.3333");
    assert_eq!(third.multiply(&d("3")).unwrap().to_string(), "1.0000");
    assert_eq!(d("2.00").divide(&d("3"), 4).unwrap().unwrap().to_string(), "0.666667");
    assert!(d("1").divide(&d("0.00"), 4).unwrap().is_none());
}

#[test]
fn halves_round_away_from_zero() {
    for (text, scale, rounded) in
        [("0.5", 0, "1"), ("-0.5", 0, "-1"), ("1.245", 2, "1.25"), ("-1.244", 2, "-1.24")]
    {
        assert_eq!(d(text).with_scale(scale).unwrap().to_string(), rounded);
    }
    assert_eq!(d("155").rounded_at(-1, false).unwrap().to_string(), "160");
    assert_eq!(d("155").rounded_at(-1, true).unwrap().to_string(), "150");
    assert_eq!(d("-1.1").floor().to_string(), "-2");
    assert_eq!(d("-1.9").ceiling().to_string(), "-1");
}

#[test]
fn numbers_compare_whatever_their_scales() {
    assert_eq!(d("1.0").compare(&d("1.000")), Ordering::Equal);
    assert_eq!(d("-1.1").compare(&d("-1.09")), Ordering::Less);
    let (huge, tiny) = (Decimal::largest(65, 0), d("0.00000000000000000000000000000000000001"));
    assert_eq!(huge.compare(&tiny), Ordering::Greater);
    assert_eq!(tiny.compare(&huge), Ordering::Less);
    assert_eq!(huge.negate().compare(&tiny.negate()), Ordering::Less);
}

#[test]
fn what_is_too_large_is_none() {
    let huge = Decimal::largest(65, 0);
    assert!(huge.add(&d("1")).is_none());
    assert!(huge.multiply(&huge).is_none());
    assert!(huge.to_i64().is_none());
}

proptest! {
    #[test]
    fn arithmetic_agrees_with_integers(a in -1_000_000_000i64..1_000_000_000, b in -1_000_000_000i64..1_000_000_000, s in 0u8..6) {
        let (x, y) = (Decimal::new(a.into(), s), Decimal::new(b.into(), s));
        prop_assert_eq!(x.add(&y).unwrap().unscaled(), I256::from(a + b));
        prop_assert_eq!(x.multiply(&y).unwrap().unscaled(), I256::from(a * b));
        prop_assert_eq!(x.compare(&y), a.cmp(&b));
        prop_assert_eq!(d(&x.to_string()), x);
        if b != 0 {
            prop_assert_eq!(x.remainder(&y).unwrap().unwrap().unscaled(), I256::from(a % b));
        }
    }

    #[test]
    fn doubles_survive_the_way_there_and_back(number in -1e15f64..1e15) {
        prop_assert_eq!(Decimal::from_f64(number).to_f64(), number);
    }
}

use super::*;
use types::Collation;

/// What is stored, and the error that strict mode gives or the note.
fn stored(column_type: ColumnType, value: ValueRef<'_>) -> (String, Option<String>) {
    let column = Column { name: "c".into(), column_type, nullable: false };
    let arena = Bump::new();
    let coerced = coerce(value, &column, Some(&Zone::UTC), &arena);
    (text_of(&coerced.value), coerced.issue.map(|issue| issue.to_error_in("d", "t", "c", 1).to_string()))
}

fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

fn decimal(text: &str) -> ValueRef<'_> {
    ValueRef::Decimal(Decimal::parse_prefix(text.as_bytes()).0)
}

#[test]
fn integers_take_what_mariadb_takes() {
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    let tiny = || ColumnType::Int { bytes: 1, unsigned: true };
    for (column_type, value, stored_as, issue) in [
        (int(), text("12"), "12", ""),
        (int(), text("1.5"), "2", ""),
        (int(), text("1e2"), "100", ""),
        (int(), text(" 12 "), "12", "ERROR 1265 (01000): Data truncated for column 'c' at row 1"),
        (int(), text("12abc"), "12", "ERROR 1265 (01000): Data truncated for column 'c' at row 1"),
        (
            int(),
            text("abc"),
            "0",
            "ERROR 1366 (22007): Incorrect integer value: 'abc' for column `d`.`t`.`c` at row 1",
        ),
        (
            int(),
            text(""),
            "0",
            "ERROR 1366 (22007): Incorrect integer value: '' for column `d`.`t`.`c` at row 1",
        ),
        (int(), decimal("2.5"), "3", ""),
        (int(), ValueRef::Double(2.5), "2", ""),
        (
            int(),
            ValueRef::Double(1e30),
            "2147483647",
            "ERROR 1264 (22003): Out of range value for column 'c' at row 1",
        ),
        (tiny(), ValueRef::Int(-1), "0", "ERROR 1264 (22003): Out of range value for column 'c' at row 1"),
        (tiny(), ValueRef::Int(300), "255", "ERROR 1264 (22003): Out of range value for column 'c' at row 1"),
        (tiny(), ValueRef::Null, "0", "ERROR 1048 (23000): Column 'c' cannot be null"),
    ] {
        let expected = (stored_as.to_string(), (!issue.is_empty()).then(|| issue.to_string()));
        assert_eq!(stored(column_type, value), expected, "{value:?}");
    }
}

#[test]
fn decimals_round_and_floats_clip() {
    let column = || ColumnType::Decimal { precision: 5, scale: 2, unsigned: false };
    assert_eq!(stored(column(), text("1.25")), ("1.25".into(), None));
    assert_eq!(stored(column(), decimal("1.2")), ("1.20".into(), None));
    let (value, note) = stored(column(), decimal("1.999"));
    assert_eq!((value.as_str(), note.is_some()), ("2.00", true));
    let (value, error) = stored(column(), decimal("-12345.6"));
    assert_eq!(value, "-999.99");
    assert!(error.is_some_and(|error| error.contains("1264")));
    let (value, error) = stored(ColumnType::Float { unsigned: false }, ValueRef::Double(1e300));
    assert_eq!(value, "3.40282e38");
    assert!(error.is_some_and(|error| error.contains("1264")));
}

#[test]
fn texts_are_cut_at_characters() {
    let varchar = |collation| ColumnType::Varchar { chars: 3, collation };
    let utf8 = Collation::Utf8mb4GeneralCi;
    assert_eq!(stored(varchar(utf8), text("äöü")), ("äöü".into(), None));
    let (value, error) = stored(varchar(utf8), text("äöüß"));
    assert_eq!((value.as_str(), error.unwrap().contains("1406")), ("äöü", true));
    let (value, note) = stored(varchar(utf8), text("abc  "));
    assert_eq!((value.as_str(), note.unwrap().contains("1265")), ("abc", true));
    let char = || ColumnType::Char { chars: 3, collation: utf8 };
    assert_eq!(stored(char(), text("abc  ")), ("abc".into(), None));
    assert_eq!(stored(char(), text("a ")), ("a".into(), None));
    let (value, error) = stored(varchar(Collation::Latin1SwedishCi), text("ał"));
    assert_eq!(value, "a?");
    let expected = "ERROR 1366 (22007): Incorrect string value: '\\xC5\\x82' for column `d`.`t`.`c` at row 1";
    assert_eq!(error.as_deref(), Some(expected));
    let (value, error) = stored(varchar(utf8), ValueRef::Binary(b"\xffA"));
    assert_eq!((value.as_str(), error.unwrap().contains("'\\xFFA'")), ("?A", true));
    assert_eq!(stored(varchar(utf8), ValueRef::Int(-12)), ("-12".into(), None));
    assert_eq!(stored(ColumnType::Binary { bytes: 3 }, text("a")), ("a\0\0".into(), None));
}

#[test]
fn dates_and_times_are_read_or_refused() {
    let (value, note) = stored(ColumnType::Date, text("2020-01-01 10:11:12"));
    assert_eq!((value.as_str(), note.unwrap().contains("1265")), ("2020-01-01", true));
    for bad in ["abc", "", "2020-02-30", "2020-01-01x"] {
        let (_, error) = stored(ColumnType::Date, text(bad));
        let expected =
            format!("ERROR 1292 (22007): Incorrect date value: '{bad}' for column `d`.`t`.`c` at row 1");
        assert_eq!(error, Some(expected));
    }
    assert_eq!(stored(ColumnType::Date, ValueRef::Int(20200131)), ("2020-01-31".into(), None));
    let fraction = text("2020-01-01 10:11:12.999");
    assert_eq!(stored(ColumnType::DateTime { fsp: 0 }, fraction), ("2020-01-01 10:11:12".into(), None));
    assert_eq!(stored(ColumnType::DateTime { fsp: 2 }, fraction), ("2020-01-01 10:11:12.99".into(), None));
    let (value, error) = stored(ColumnType::Time { fsp: 0 }, text("900:00:00"));
    assert_eq!((value.as_str(), error.unwrap().contains("Incorrect time value")), ("838:59:59", true));
    assert!(stored(ColumnType::Timestamp { fsp: 0 }, text("1960-01-01 00:00:00")).1.is_some());
    for (value, year) in
        [(text("70"), "1970"), (text("0"), "2000"), (ValueRef::Int(0), "0"), (ValueRef::Int(69), "2069")]
    {
        assert_eq!(stored(ColumnType::Year, value), (year.into(), None));
    }
}

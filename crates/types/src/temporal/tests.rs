use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Option<String> {
    read_date_time(text.as_bytes()).map(|reading| reading.value.to_string())
}

#[test]
fn dates_and_times_are_read_leniently() {
    for (text, read_as) in [
        ("2026-11-21", "2026-11-21 00:00:00"),
        ("26-1-2", "2026-01-02 00:00:00"),
        ("70.1.2", "1970-01-02 00:00:00"),
        ("2026-11-21 10:11:12", "2026-11-21 10:11:12"),
        ("2026-11-21T10:11:12.250", "2026-11-21 10:11:12.250"),
        ("2026/11/21 10.11", "2026-11-21 10:11:00"),
        ("20261121", "2026-11-21 00:00:00"),
        ("20261121101112.5", "2026-11-21 10:11:12.5"),
        ("261121", "2026-11-21 00:00:00"),
        ("0000-00-00", "0000-00-00 00:00:00"),
        ("2026-00-10", "2026-00-10 00:00:00"),
        ("2026-11-21 10:11:12.1234567", "2026-11-21 10:11:12.123456"),
    ] {
        assert_eq!(read(text).as_deref(), Some(read_as), "{text}");
    }
    assert_eq!(read("10:11:12").as_deref(), Some("2010-11-12 00:00:00"), "any punctuation will do");
    for text in ["", "abc", "2026-13-01", "2026-02-30", "2026-11", "2026-11-21 25:00:00"] {
        assert_eq!(read(text), None, "{text}");
    }
    assert!(read_date_time(b"2026-11-21x").unwrap().truncated);
    assert!(!read_date_time(b" 2026-11-21 ").unwrap().truncated);
}

#[test]
fn times_are_read_leniently() {
    for (text, read_as) in [
        ("10:11:12", "10:11:12"),
        ("10:11", "10:11:00"),
        ("101112", "10:11:12"),
        ("1112", "00:11:12"),
        ("12", "00:00:12"),
        ("-10:11:12.5", "-10:11:12.5"),
        ("1 10:11:12", "34:11:12"),
        ("2 10", "58:00:00"),
        ("900:00:00", "838:59:59"),
        ("2026-11-21 10:11:12", "10:11:12"),
        ("20261121101112", "10:11:12"),
    ] {
        assert_eq!(
            read_time(text.as_bytes()).map(|reading| reading.value.to_string()).as_deref(),
            Some(read_as),
            "{text}"
        );
    }
    for text in ["", "abc", "10:60:00", "1061"] {
        assert_eq!(read_time(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn numbers_stand_for_dates_and_times() {
    let date = |number| date_time_from_number(number, 0, 0).map(|reading| reading.value.to_string());
    assert_eq!(date(20261121).as_deref(), Some("2026-11-21 00:00:00"));
    assert_eq!(date(701121).as_deref(), Some("1970-11-21 00:00:00"));
    assert_eq!(date(20261121101112).as_deref(), Some("2026-11-21 10:11:12"));
    assert_eq!(date(0).as_deref(), Some("0000-00-00 00:00:00"));
    assert_eq!(date(20261321), None);
    assert_eq!(time_from_number(101112, true, 0, 0).unwrap().value.to_string(), "-10:11:12");
}

#[test]
fn days_count_as_mysql_counts_them() {
    let date = |year, month, day| Date { year, month, day };
    assert_eq!(date(1970, 1, 1).to_days(), 719_528);
    assert_eq!(date(0, 1, 1).to_days(), 1);
    assert_eq!(date(9999, 12, 31).to_days(), 3_652_424);
    assert_eq!(date(2026, 11, 21).weekday(), 5);
    assert_eq!(date(2024, 12, 31).day_of_year(), 366);
    assert_eq!(date(2024, 1, 31).add_months(1), Some(date(2024, 2, 29)));
    assert_eq!(date(2024, 1, 31).add_months(-2), Some(date(2023, 11, 30)));
    assert_eq!(date(9999, 12, 31).add_days(1), None);
}

#[test]
fn moments_move_across_midnight() {
    let moment = read_date_time(b"2026-12-31 23:59:59").unwrap().value;
    assert_eq!(moment.add_micros(1_000_000).unwrap().to_string(), "2027-01-01 00:00:00");
    assert_eq!(moment.add_micros(-86_400_000_000).unwrap().to_string(), "2026-12-30 23:59:59");
    assert_eq!(DateTime::from_unix_micros(0, 0).to_string(), "1970-01-01 00:00:00");
}

proptest! {
    #[test]
    fn days_turn_to_dates_and_back(days in 366i64..3_652_425) {
        let date = Date::from_days(days);
        prop_assert!(date.is_complete() && date.is_in_calendar());
        prop_assert_eq!(date.to_days(), days);
    }

    #[test]
    fn what_is_printed_reads_back(micros in 0i64..253_402_300_799_000_000, fsp in 0u8..7) {
        let moment = DateTime::from_unix_micros(micros, fsp);
        let reading = read_date_time(moment.to_string().as_bytes()).unwrap();
        prop_assert_eq!(reading.value, moment);
        let time = moment.time();
        prop_assert_eq!(read_time(time.to_string().as_bytes()).unwrap().value, time);
        prop_assert_eq!(DateTime::from_packed(moment.to_packed(), fsp), moment);
    }

    #[test]
    fn any_text_is_read_without_panic(text in "[0-9:./ T-]{0,24}") {
        let _ = (read_date_time(text.as_bytes()), read_time(text.as_bytes()));
    }
}

//! Dates without a library.

/// `20261121-101015`, UTC: for names of files.
pub(crate) fn timestamp(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / 86_400);
    let (hour, minute, second) = clock(unix_s);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// `2026-11-21 10:10 UTC`.
pub(crate) fn date(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / 86_400);
    let (hour, minute, _) = clock(unix_s);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

fn clock(unix_s: u64) -> (u64, u64, u64) {
    let rest = unix_s % 86_400;
    (rest / 3_600, rest % 3_600 / 60, rest % 60)
}

/// Year, month and day of a day counted from 1970-01-01, by counting 400-year cycles that begin in a March
/// (H. Hinnant's method).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let cycle = shifted / 146_097;
    let day_of_cycle = shifted % 146_097;
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (cycle * 400 + year_of_cycle + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc() {
        assert_eq!(timestamp(0), "19700101-000000");
        assert_eq!(timestamp(951_782_400), "20000229-000000");
        assert_eq!(timestamp(1_795_255_815), "20261121-101015");
        assert_eq!(date(1_795_255_815), "2026-11-21 10:10 UTC");
    }
}

//! Days, months and moments.

use super::{Date, DateTime, MICROS_A_DAY, MICROS_A_SECOND, TIME_SECONDS_MAX, Time};

/// TO_DAYS('1970-01-01').
const EPOCH_DAY: i64 = 719_528;
/// TO_DAYS('9999-12-31').
const LAST_DAY: i64 = 3_652_424;

/// MySQL's year 0 is none.
pub fn is_leap_year(year: u16) -> bool {
    year != 0 && year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The days of a month from 1 to 12; 31 for others.
pub fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + is_leap_year(year) as u8,
        _ => 31,
    }
}

impl Date {
    pub const ZERO: Date = Date { year: 0, month: 0, day: 0 };

    pub fn is_zero(self) -> bool {
        self == Date::ZERO
    }

    /// True if neither month nor day is zero.
    pub fn is_complete(self) -> bool {
        self.month != 0 && self.day != 0
    }

    /// True if the month has the day. A zero month or day passes.
    pub fn is_in_calendar(self) -> bool {
        self.is_well_formed() && (self.month == 0 || self.day <= days_in_month(self.year, self.month))
    }

    /// TO_DAYS(): days since the year 0. Zero months and days count like MySQL counts them.
    pub fn to_days(self) -> i64 {
        if self.year == 0 && self.month == 0 {
            return 0;
        }
        let (year, month, day) = (self.year as i64, self.month as i64, self.day as i64);
        let mut days = 365 * year + 31 * (month - 1) + day;
        let leap_years_until = if month <= 2 {
            year - 1
        } else {
            days -= (month * 4 + 23) / 10;
            year
        };
        let centuries = ((leap_years_until / 100 + 1) * 3) / 4;
        days += leap_years_until / 4 - centuries;
        days
    }

    /// FROM_DAYS(): the zero date for days outside 0001-01-01 to 9999-12-31.
    pub fn from_days(days: i64) -> Date {
        if days <= 365 || days > LAST_DAY {
            return Date::ZERO;
        }
        // Days since 0000-03-01, the start of a year that ends in its leap day.
        let shifted = days - 60;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u8;
        let year = (era * 400 + year_of_era + (month <= 2) as i64) as u16;
        Date { year, month, day }
    }

    /// 0 = Monday.
    pub fn weekday(self) -> u8 {
        (self.to_days() + 5).rem_euclid(7) as u8
    }

    pub fn day_of_year(self) -> u16 {
        (self.to_days() - Date { month: 1, day: 1, ..self }.to_days() + 1) as u16
    }

    /// Moves by months; a day that the new month lacks becomes its last. `None` outside the years 0 to 9999.
    pub fn add_months(self, months: i64) -> Option<Date> {
        let total = (self.year as i64 * 12 + self.month as i64 - 1).checked_add(months)?;
        let year = u16::try_from(total.div_euclid(12)).ok().filter(|year| *year <= 9999)?;
        let month = total.rem_euclid(12) as u8 + 1;
        Some(Date { year, month, day: self.day.min(days_in_month(year, month)) })
    }

    pub fn add_days(self, days: i64) -> Option<Date> {
        let total = self.to_days().checked_add(days)?;
        (0..=LAST_DAY).contains(&total).then(|| Date::from_days(total))
    }

    /// WEEK(date, mode), or with `year` YEARWEEK(): the week and the year that it belongs to. `mode` is 0
    /// to 7.
    pub fn week(self, mode: u8, year_week: bool) -> (u16, u8) {
        let monday_first = mode & 1 != 0;
        let mut week_year = mode & 2 != 0 || year_week;
        // The weeks count from the first week with 4 days, or from the first full one.
        let first_weekday = if monday_first { mode & 4 != 0 } else { mode & 4 == 0 };
        let days = self.to_days();
        let mut first_day = Date { month: 1, day: 1, ..self }.to_days();
        let weekday_of = |days: i64| {
            if monday_first { (days + 5).rem_euclid(7) } else { (days + 6).rem_euclid(7) }
        };
        let mut weekday = weekday_of(first_day);
        let mut year = self.year;
        let days_in_year = |year: u16| if is_leap_year(year) { 366 } else { 365 };
        if self.month == 1 && self.day as i64 <= 7 - weekday {
            let in_previous = (first_weekday && weekday != 0) || (!first_weekday && weekday >= 4);
            if !week_year && in_previous {
                return (year, 0);
            }
            if in_previous || week_year {
                week_year = true;
                year = year.saturating_sub(1);
                let length = days_in_year(year);
                first_day -= length;
                weekday = (weekday + 53 * 7 - length) % 7;
                if !in_previous {
                    // The day is in the first week of its own year.
                    year += 1;
                    first_day += length;
                    weekday = weekday_of(first_day);
                }
            }
        }
        let starts_late = (first_weekday && weekday != 0) || (!first_weekday && weekday >= 4);
        let passed =
            if starts_late { days - (first_day + (7 - weekday)) } else { days - (first_day - weekday) };
        if week_year && passed >= 52 * 7 {
            let next = (weekday + days_in_year(year)) % 7;
            if (!first_weekday && next < 4) || (first_weekday && next == 0) {
                return (year + 1, 1);
            }
        }
        (year, (passed / 7 + 1) as u8)
    }

    /// As a number: 20261121.
    pub fn to_number(self) -> u64 {
        self.year as u64 * 10_000 + self.month as u64 * 100 + self.day as u64
    }
}

impl Time {
    pub fn is_negative(self) -> bool {
        self.micros < 0
    }

    /// Hours (beyond 23 too), minutes, seconds, microseconds, of the magnitude.
    pub fn parts(self) -> (u32, u8, u8, u32) {
        let micros = self.micros.unsigned_abs();
        let seconds = micros / MICROS_A_SECOND as u64;
        let micros = (micros % MICROS_A_SECOND as u64) as u32;
        ((seconds / 3600) as u32, (seconds / 60 % 60) as u8, (seconds % 60) as u8, micros)
    }

    /// True within 838:59:59.999999.
    pub fn is_in_range(self) -> bool {
        self.micros.unsigned_abs() < ((TIME_SECONDS_MAX + 1) * MICROS_A_SECOND) as u64
    }

    /// The nearest TIME: beyond the range 838:59:59, with as many nines as there are digits.
    pub fn clipped(self) -> Time {
        if self.is_in_range() {
            return self;
        }
        Time::longest(self.micros < 0, self.fsp)
    }

    /// 838:59:59, with as many nines behind it as there are digits.
    pub fn longest(negative: bool, fsp: u8) -> Time {
        let unit = 10i64.pow(6 - fsp.min(6) as u32);
        let largest = TIME_SECONDS_MAX * MICROS_A_SECOND + (MICROS_A_SECOND - unit) % MICROS_A_SECOND;
        Time { micros: if negative { -largest } else { largest }, fsp }
    }

    /// True if it has the hours, minutes and seconds of the longest TIME.
    pub fn is_longest(self) -> bool {
        self.micros.abs() / MICROS_A_SECOND == TIME_SECONDS_MAX
    }

    /// With so many digits of fraction, the others cut off.
    pub fn with_fsp(self, fsp: u8) -> Time {
        let unit = 10i64.pow(6 - fsp.min(6) as u32);
        Time { micros: self.micros / unit * unit, fsp }
    }

    /// As a number without fraction: 101112, negative for negative times.
    pub fn to_number(self) -> i64 {
        let (hours, minutes, seconds, _) = self.parts();
        let number = hours as i64 * 10_000 + minutes as i64 * 100 + seconds as i64;
        if self.is_negative() { -number } else { number }
    }
}

impl DateTime {
    pub const ZERO: DateTime =
        DateTime { date: Date::ZERO, hour: 0, minute: 0, second: 0, fsp: 0, micros: 0 };

    /// Midnight of a day.
    pub fn from_date(date: Date) -> DateTime {
        DateTime { date, ..DateTime::ZERO }
    }

    /// The time of day.
    pub fn time(self) -> Time {
        let seconds = self.hour as i64 * 3600 + self.minute as i64 * 60 + self.second as i64;
        Time { micros: seconds * MICROS_A_SECOND + self.micros as i64, fsp: self.fsp }
    }

    /// The date and a time of day; `micros` from 0 to a day.
    pub fn at(date: Date, micros: i64, fsp: u8) -> DateTime {
        let seconds = micros / MICROS_A_SECOND;
        DateTime {
            date,
            hour: (seconds / 3600) as u8,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            fsp,
            micros: (micros % MICROS_A_SECOND) as u32,
        }
    }

    /// Moves by microseconds. `None` before the year 1 or after 9999.
    pub fn add_micros(self, micros: i64) -> Option<DateTime> {
        let of_day = self.time().micros.checked_add(micros % MICROS_A_DAY)?;
        let days = micros / MICROS_A_DAY + of_day.div_euclid(MICROS_A_DAY);
        let date = if days == 0 { self.date } else { self.date.add_days(days)? };
        Some(DateTime::at(date, of_day.rem_euclid(MICROS_A_DAY), self.fsp))
    }

    /// Microseconds since the day 0: for differences.
    pub fn to_micros(self) -> i64 {
        self.date.to_days() * MICROS_A_DAY + self.time().micros
    }

    /// Microseconds since 1970-01-01 00:00:00.
    pub fn to_unix_micros(self) -> i64 {
        self.to_micros() - EPOCH_DAY * MICROS_A_DAY
    }

    pub fn from_unix_micros(micros: i64, fsp: u8) -> DateTime {
        let days = micros.div_euclid(MICROS_A_DAY) + EPOCH_DAY;
        DateTime::at(Date::from_days(days), micros.rem_euclid(MICROS_A_DAY), fsp).with_fsp(fsp)
    }

    /// With so many digits of fraction, the others cut off.
    pub fn with_fsp(self, fsp: u8) -> DateTime {
        let unit = 10u32.pow(6 - fsp.min(6) as u32);
        DateTime { micros: self.micros / unit * unit, fsp, ..self }
    }

    /// As a number without fraction: 20261121101112.
    pub fn to_number(self) -> u64 {
        let time = self.hour as u64 * 10_000 + self.minute as u64 * 100 + self.second as u64;
        self.date.to_number() * 1_000_000 + time
    }
}

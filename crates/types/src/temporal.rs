//! Dates and times as MySQL has them, zero dates included.

mod calendar;
mod print;
mod read;

pub use calendar::{days_in_month, is_leap_year};
pub use read::{Reading, date_time_from_number, read_date_time, read_time, time_from_number};

/// The largest TIME either way: 838:59:59, in microseconds.
pub const TIME_SECONDS_MAX: i64 = 838 * 3600 + 59 * 60 + 59;

pub(crate) const MICROS_A_SECOND: i64 = 1_000_000;
pub(crate) const MICROS_A_DAY: i64 = 86_400 * MICROS_A_SECOND;

/// A date: year 0 to 9999, month 0 to 12, day 0 to 31. `0000-00-00` and dates with a zero month or
/// day are values like any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

/// A signed span or time of day, within `838:59:59.999999` either way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Time {
    /// Microseconds.
    pub micros: i64,
    /// Digits of fractional seconds shown, 0 to 6.
    pub fsp: u8,
}

/// A date with a time of day.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DateTime {
    pub date: Date,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    /// Digits of fractional seconds shown, 0 to 6.
    pub fsp: u8,
    pub micros: u32,
}

impl Date {
    /// An integer that orders as dates do: year, then 4 bits of month, then 5 bits of day.
    pub fn to_packed(self) -> u32 {
        (self.year as u32) << 9 | (self.month as u32) << 5 | self.day as u32
    }

    pub fn from_packed(packed: u32) -> Date {
        Date { year: (packed >> 9) as u16, month: (packed >> 5 & 15) as u8, day: (packed & 31) as u8 }
    }

    /// True if the fields are in range (a zero month or day is).
    pub fn is_well_formed(self) -> bool {
        self.year <= 9999 && self.month <= 12 && self.day <= 31
    }
}

impl DateTime {
    /// An integer that orders as date-times do: the packed date, 5 bits of hour, 6 of minute, 6 of
    /// second, 20 of microseconds.
    pub fn to_packed(self) -> u64 {
        (self.date.to_packed() as u64) << 37
            | (self.hour as u64) << 32
            | (self.minute as u64) << 26
            | (self.second as u64) << 20
            | self.micros as u64
    }

    pub fn from_packed(packed: u64, fsp: u8) -> DateTime {
        DateTime {
            date: Date::from_packed((packed >> 37) as u32),
            hour: (packed >> 32 & 31) as u8,
            minute: (packed >> 26 & 63) as u8,
            second: (packed >> 20 & 63) as u8,
            fsp,
            micros: (packed & 0xf_ffff) as u32,
        }
    }

    /// True if the fields are in range (zero dates are).
    pub fn is_well_formed(self) -> bool {
        self.date.is_well_formed()
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
            && self.micros < 1_000_000
    }
}

#[cfg(test)]
mod tests;

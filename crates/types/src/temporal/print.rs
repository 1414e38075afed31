//! Dates and times as texts.

use super::{Date, DateTime, Time};
use std::fmt;

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// A point and so many digits of the microseconds.
fn write_fraction(micros: u32, fsp: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if fsp == 0 {
        return Ok(());
    }
    let fsp = fsp.min(6) as usize;
    write!(f, ".{:0fsp$}", micros / 10u32.pow(6 - fsp as u32))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds, micros) = self.parts();
        let sign = if self.is_negative() { "-" } else { "" };
        write!(f, "{sign}{hours:02}:{minutes:02}:{seconds:02}")?;
        write_fraction(micros, self.fsp, f)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date, self.hour, self.minute, self.second)?;
        write_fraction(self.micros, self.fsp, f)
    }
}

//! Dates and times from texts and numbers, as leniently as MySQL reads them.

use super::{Date, DateTime, MICROS_A_SECOND, TIME_SECONDS_MAX, Time};

/// What was read and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading<T> {
    pub value: T,
    /// Something after the value was left out, or the value was clipped: MySQL warns.
    pub truncated: bool,
    /// The text had a time of day (or the time was part of a date and time).
    pub has_time: bool,
}

/// A text and how far it was read.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        self.at - start
    }

    /// How many digits come next.
    fn digits_ahead(&self) -> usize {
        self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// A number of at most so many digits, and how many there were.
    fn number(&mut self, digits_max: usize) -> Option<(u32, usize)> {
        let digits = self.digits_ahead().min(digits_max);
        if digits == 0 {
            return None;
        }
        let text = &self.text[self.at..self.at + digits];
        self.at += digits;
        let number =
            text.iter().fold(0u32, |sum, digit| sum.saturating_mul(10).saturating_add((digit - b'0') as u32));
        Some((number, digits))
    }

    /// A fraction of a second behind a point: microseconds, and the digits that were given (at most 6).
    fn fraction(&mut self) -> Option<(u32, u8)> {
        if self.peek() != Some(b'.') {
            return None;
        }
        self.at += 1;
        let (mut micros, mut fsp) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if fsp < 6 {
                micros = micros * 10 + (digit - b'0') as u32;
                fsp += 1;
            }
            self.at += 1;
        }
        Some((micros * 10u32.pow(6 - fsp as u32), fsp))
    }

    /// True if only blanks are left.
    fn is_done(&mut self) -> bool {
        self.skip_blanks();
        self.at == self.text.len()
    }

    fn punctuation(&mut self) -> bool {
        let is = self.peek().is_some_and(|byte| byte.is_ascii_punctuation());
        self.at += is as usize;
        is
    }
}

/// Two-digit years: 70 to 99 are 19xx, 00 to 69 are 20xx.
fn full_year(year: u32, digits: usize) -> u32 {
    match (digits, year) {
        (1 | 2, 0..70) => 2000 + year,
        (1 | 2, _) => 1900 + year,
        _ => year,
    }
}

/// Reads a date with or without time: `2026-11-21 10:11:12.5`, `26/11/21`, `20261121101112`,
/// `2026-11-21T10:11`. `None` if it is none or not in the calendar; a zero month or day passes.
pub fn read_date_time(text: &[u8]) -> Option<Reading<DateTime>> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_blanks();
    let digits = reader.digits_ahead();
    let compact = digits > 4;
    let mut parts = [0u32; 6];
    let (year, year_digits) = match compact {
        true => reader.number(if digits == 8 || digits >= 14 { 4 } else { 2 })?,
        false => reader.number(4)?,
    };
    parts[0] = year;
    let mut count = 1;
    let mut fraction = (0, 0);
    while count < 6 {
        let before = reader.at;
        if !compact || reader.digits_ahead() == 0 {
            // Between date and time a T, blanks, or punctuation; elsewhere one sign, or several before a
            // digit.
            let mut separated = false;
            if count == 3 {
                if reader.peek() == Some(b'T') {
                    reader.at += 1;
                    separated = true;
                } else {
                    separated = reader.skip_blanks() > 0;
                }
            }
            while !(count >= 5 && reader.peek() == Some(b'.')) && reader.punctuation() {
                separated = true;
                if count >= 3 {
                    break;
                }
            }
            if !separated || reader.digits_ahead() == 0 {
                reader.at = before;
                break;
            }
        }
        let Some((part, _)) = reader.number(2) else {
            reader.at = before;
            break;
        };
        parts[count] = part;
        count += 1;
    }
    if count < 3 {
        return None;
    }
    if count == 6 {
        fraction = reader.fraction().unwrap_or((0, 0));
    }
    // If all is nought, it is the zero date and no date of 2000.
    if parts != [0; 6] || fraction.0 != 0 {
        parts[0] = full_year(year, year_digits);
    }
    let [year, month, day, hour, minute, second] = parts;
    let date = Date { year: year as u16, month: month as u8, day: day as u8 };
    let value = DateTime {
        date,
        hour: hour as u8,
        minute: minute as u8,
        second: second as u8,
        fsp: fraction.1,
        micros: fraction.0,
    };
    if !value.is_well_formed() || !date.is_in_calendar() {
        return None;
    }
    Some(Reading { value, truncated: !reader.is_done(), has_time: count > 3 })
}

/// Reads a time: `10:11:12.5`, `-1 10:11`, `101112`, or the time of a date and time. Clipped to its range.
/// `None` if it is none.
pub fn read_time(text: &[u8]) -> Option<Reading<Time>> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_blanks();
    if text.len() - reader.at >= 12 {
        // Long enough for a date with time; a time of that length has a point after its first digits.
        let rest = &text[reader.at..];
        let first_other = rest.iter().position(|byte| !byte.is_ascii_digit());
        if first_other.is_none_or(|at| at >= 4 && !matches!(rest[at], b':' | b'.') || at >= 12)
            && let Some(reading) = read_date_time(rest)
            && reading.has_time
        {
            return Some(Reading {
                value: reading.value.time(),
                truncated: reading.truncated,
                has_time: true,
            });
        }
    }
    let negative = reader.peek() == Some(b'-');
    reader.at += negative as usize;
    let mut days = 0u64;
    let (mut first, _) = reader.number(10).map(|(number, digits)| (number as u64, digits))?;
    let after_first = reader.at;
    // A colon without minutes behind it does not make hours of a number.
    let minutes_follow = text.get(after_first + 1).is_some_and(u8::is_ascii_digit);
    let mut hours_given = reader.peek() == Some(b':') && minutes_follow;
    if reader.skip_blanks() > 0 && reader.digits_ahead() > 0 {
        days = first;
        first = reader.number(10)?.0 as u64;
        hours_given = true;
    } else {
        reader.at = after_first;
    }
    let (mut minutes, mut seconds) = (0u64, 0u64);
    let hours;
    if hours_given {
        hours = first;
        let mut given = [0u64; 2];
        for part in &mut given {
            let before = reader.at;
            if reader.peek() != Some(b':') {
                break;
            }
            reader.at += 1;
            match reader.number(2) {
                Some((number, _)) => *part = number as u64,
                None => {
                    reader.at = before;
                    break;
                }
            }
        }
        [minutes, seconds] = given;
    } else {
        hours = first / 10_000;
        minutes += first / 100 % 100;
        seconds += first % 100;
    }
    let (micros, fsp) = reader.fraction().unwrap_or((0, 0));
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let total = (days.saturating_mul(24).saturating_add(hours)).saturating_mul(3600) + minutes * 60 + seconds;
    let in_range = total <= TIME_SECONDS_MAX as u64;
    let total = total.min(TIME_SECONDS_MAX as u64 + 1) as i64 * MICROS_A_SECOND + micros as i64;
    let value = Time { micros: if negative { -total } else { total }, fsp }.clipped();
    Some(Reading { value, truncated: !reader.is_done() || !in_range, has_time: false })
}

/// The date (and time) that a number stands for: 20261121, 261121, 20261121101112. `None` if none.
pub fn date_time_from_number(number: u64, micros: u32, fsp: u8) -> Option<Reading<DateTime>> {
    let (number, has_time) = match number {
        0 => (0, false),
        101..=691_231 => ((number + 20_000_000) * 1_000_000, false),
        700_101..=991_231 => ((number + 19_000_000) * 1_000_000, false),
        10_000_101..=99_991_231 => (number * 1_000_000, false),
        101_000_000..=691_231_235_959 => (number + 20_000_000_000_000, true),
        700_101_000_000..=991_231_235_959 => (number + 19_000_000_000_000, true),
        10_000_000_000_000..=99_991_231_235_959 => (number, true),
        _ => return None,
    };
    let (day, of_day) = (number / 1_000_000, number % 1_000_000);
    let date = Date { year: (day / 10_000) as u16, month: (day / 100 % 100) as u8, day: (day % 100) as u8 };
    let value = DateTime {
        date,
        hour: (of_day / 10_000) as u8,
        minute: (of_day / 100 % 100) as u8,
        second: (of_day % 100) as u8,
        fsp: if has_time { fsp } else { 0 },
        micros: if has_time { micros } else { 0 },
    };
    (value.is_well_formed() && date.is_in_calendar()).then_some(Reading {
        value,
        truncated: !has_time && micros != 0,
        has_time,
    })
}

/// The time that a number stands for: 101112, -1. Clipped to its range; `None` if there are more than 59
/// minutes or seconds.
pub fn time_from_number(magnitude: u64, negative: bool, micros: u32, fsp: u8) -> Option<Reading<Time>> {
    // As in MariaDB, a longer number is a date, with a time or without.
    if (10_000_000..=99_991_231_235_959).contains(&magnitude) && !negative {
        let reading = date_time_from_number(magnitude, micros, fsp)?;
        return Some(Reading { value: reading.value.time(), truncated: false, has_time: true });
    }
    let (hours, minutes, seconds) = (magnitude / 10_000, magnitude / 100 % 100, magnitude % 100);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let total = hours * 3600 + minutes * 60 + seconds;
    let micros = total.min(TIME_SECONDS_MAX as u64 + 1) as i64 * MICROS_A_SECOND + micros as i64;
    let value = Time { micros: if negative { -micros } else { micros }, fsp };
    Some(Reading { value: value.clipped(), truncated: !value.is_in_range(), has_time: false })
}

//! Time zones: offsets, and names of the system's tz database.

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone};
use types::DateTime;

const SECOND_MICROS: i64 = 1_000_000;
/// The moments that TIMESTAMP has, in microseconds since 1970: from 1 second to 2038-01-19 03:14:07.999999.
/// Others are not converted.
pub(crate) const MOMENTS: std::ops::Range<i64> = SECOND_MICROS..((1 << 31) * SECOND_MICROS);

/// A time zone.
#[derive(Clone, Debug)]
pub enum Zone {
    /// In seconds east of UTC.
    Offset(i32),
    Named(TimeZone),
}

/// The moment that a clock's face means, in microseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meant {
    One(i64),
    /// The hour occurs twice. This is its first occurrence.
    Two(i64),
    /// The hour is left out. This is the moment at which it would begin.
    Skipped(i64),
}

impl Meant {
    pub(crate) fn micros(self) -> i64 {
        let (Meant::One(micros) | Meant::Two(micros) | Meant::Skipped(micros)) = self;
        micros
    }
}

impl Zone {
    pub(crate) const UTC: Zone = Zone::Offset(0);

    /// The zone of a name or of an offset `+hh:mm`. `None` if there is none.
    pub(crate) fn of(name: &str) -> Option<Zone> {
        if name.eq_ignore_ascii_case("SYSTEM") {
            // The system's zone is UTC for the server.
            return Some(Zone::UTC);
        }
        if let Some(seconds) = super::assign::zone_offset(name) {
            return Some(Zone::Offset(seconds));
        }
        // Names of the database are paths: a name with dots in it is none.
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte));
        (is_name && !name.is_empty()).then(|| TimeZone::get(name).ok().map(Zone::Named))?
    }

    /// The name of the tz database, as the database writes it. `None` for an offset.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Zone::Offset(_) => None,
            Zone::Named(zone) => zone.iana_name(),
        }
    }

    #[inline]
    pub(crate) fn is_utc(&self) -> bool {
        matches!(self, Zone::Offset(0))
    }

    /// Seconds east of UTC at a moment, which is in microseconds since 1970.
    pub(crate) fn seconds_at(&self, moment: i64) -> i32 {
        match self {
            Zone::Offset(seconds) => *seconds,
            Zone::Named(zone) => {
                Timestamp::from_microsecond(moment).map_or(0, |moment| zone.to_offset(moment).seconds())
            }
        }
    }

    /// The moment that a clock of this zone shows. `None` if the calendar has no such day.
    pub(crate) fn moment(&self, shown: DateTime) -> Option<Meant> {
        let local = shown.to_unix_micros();
        let at = |seconds: i32| local - i64::from(seconds) * SECOND_MICROS;
        Some(match self {
            Zone::Offset(seconds) => Meant::One(at(*seconds)),
            Zone::Named(zone) => {
                let second = local.div_euclid(SECOND_MICROS);
                let civil = civil_of(second)?;
                match zone.to_ambiguous_timestamp(civil).offset() {
                    AmbiguousOffset::Unambiguous { offset } => Meant::One(at(offset.seconds())),
                    AmbiguousOffset::Fold { before, .. } => Meant::Two(at(before.seconds())),
                    AmbiguousOffset::Gap { before, .. } => {
                        let behind = Timestamp::from_second(second - i64::from(before.seconds())).ok()?;
                        let change = zone
                            .preceding(behind.checked_add(jiff::SignedDuration::from_secs(1)).ok()?)
                            .next()?;
                        Meant::Skipped(change.timestamp().as_microsecond())
                    }
                }
            }
        })
    }

    /// What a clock of this zone shows at a moment, which is in microseconds since 1970.
    pub(crate) fn shown(&self, moment: i64, fsp: u8) -> DateTime {
        let seconds = i64::from(self.seconds_at(moment));
        DateTime::from_unix_micros(moment + seconds * SECOND_MICROS, fsp)
    }

    /// What a clock of this zone shows when one of UTC shows this. A date of nought stays as it is.
    #[inline]
    pub fn from_utc(&self, stored: DateTime) -> DateTime {
        match self.is_utc() || stored.date.is_zero() {
            true => stored,
            false => self.shown(stored.to_unix_micros(), stored.fsp),
        }
    }
}

/// True for a moment, in microseconds since 1970, that TIMESTAMP has.
pub(crate) fn is_storable(moment: i64) -> bool {
    MOMENTS.contains(&moment)
}

fn civil_of(second: i64) -> Option<civil::DateTime> {
    // As if the clock showed UTC.
    Some(TimeZone::UTC.to_datetime(Timestamp::from_second(second).ok()?))
}

/// What a clock of zone `to` shows when one of zone `from` shows this. A moment that TIMESTAMP does not have
/// stays as it is.
pub(crate) fn convert(shown: DateTime, from: &Zone, to: &Zone) -> Option<DateTime> {
    let moment = from.moment(shown)?.micros();
    match is_storable(moment) {
        true => Some(to.shown(moment, shown.fsp)),
        false => Some(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As MariaDB converts with its tables of zones filled from the same database.
    #[test]
    fn clocks_are_converted_over_changes_to_and_from_summer_time() {
        let at = |text: &str| types::temporal::read_date_time(text.as_bytes()).map(|reading| reading.value);
        for (shown, from, to, expected) in [
            ("2020-01-01 00:00:00", "UTC", "Europe/Berlin", Some("2020-01-01 01:00:00")),
            ("2020-07-01 00:00:00", "UTC", "europe/berlin", Some("2020-07-01 02:00:00")),
            // 2:00 to 3:00 is left out.
            ("2020-03-29 01:59:59", "Europe/Berlin", "UTC", Some("2020-03-29 00:59:59")),
            ("2020-03-29 02:00:00", "Europe/Berlin", "UTC", Some("2020-03-29 01:00:00")),
            ("2020-03-29 02:30:00", "Europe/Berlin", "UTC", Some("2020-03-29 01:00:00")),
            ("2020-03-29 03:00:00", "Europe/Berlin", "UTC", Some("2020-03-29 01:00:00")),
            // 2:00 to 3:00 occurs twice.
            ("2020-10-25 02:30:00", "Europe/Berlin", "UTC", Some("2020-10-25 00:30:00")),
            ("2020-10-25 01:30:00", "UTC", "Europe/Berlin", Some("2020-10-25 02:30:00")),
            // Not a moment of TIMESTAMP.
            ("1970-01-01 00:00:00", "UTC", "Europe/Berlin", Some("1970-01-01 00:00:00")),
            ("2038-01-19 03:14:07", "UTC", "Europe/Berlin", Some("2038-01-19 04:14:07")),
            ("2038-01-19 03:14:08", "UTC", "Europe/Berlin", Some("2038-01-19 03:14:08")),
            ("2020-01-01 00:00:00", "Asia/Kolkata", "Australia/Lord_Howe", Some("2020-01-01 05:30:00")),
            ("2020-01-01 00:00:00", "UTC", "../etc/passwd", None),
            ("2020-01-01 00:00:00", "UTC", "", None),
        ] {
            let zones = Zone::of(from).zip(Zone::of(to));
            let shown = at(shown).expect("a moment");
            let converted = zones.and_then(|(from, to)| convert(shown, &from, &to));
            assert_eq!(converted, expected.and_then(at), "{shown} {from} {to}");
        }
    }
}

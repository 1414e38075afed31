//! Arithmetic with MySQL's scales. `None` is a result of more than 65 digits before the point.

use super::{Decimal, PRECISION_MAX, SCALE_MAX, power_of_ten};
use ethnum::I256;

/// Division works in groups of so many digits, which shows when a quotient is worked on.
const DIGITS_A_GROUP: u8 = 9;

fn round_up_to_groups(digits: u8) -> u8 {
    digits.div_ceil(DIGITS_A_GROUP) * DIGITS_A_GROUP
}

impl Decimal {
    /// Both numbers with the same digits after the point: the larger of the two.
    fn aligned(&self, other: &Decimal) -> Option<(I256, I256, u8)> {
        let (a, b) = (self.unscaled(), other.unscaled());
        Some(match (self.scale, other.scale) {
            (x, y) if x < y => (a.checked_mul(power_of_ten(y - x)?)?, b, y),
            (x, y) if x > y => (a, b.checked_mul(power_of_ten(x - y)?)?, x),
            (x, _) => (a, b, x),
        })
    }

    fn checked(self) -> Option<Decimal> {
        (self.digits() <= PRECISION_MAX + 11
            && self.digits() - self.digits().min(self.scale) <= PRECISION_MAX)
            .then_some(self)
    }

    pub fn add(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = self.aligned(other)?;
        Decimal::with_shown(a.checked_add(b)?, scale, self.shown.max(other.shown)).checked()
    }

    pub fn subtract(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = self.aligned(other)?;
        Decimal::with_shown(a.checked_sub(b)?, scale, self.shown.max(other.shown)).checked()
    }

    /// The scales add up, to [`SCALE_MAX`] at most.
    pub fn multiply(&self, other: &Decimal) -> Option<Decimal> {
        let product = self.unscaled().checked_mul(other.unscaled())?;
        let shown = (self.shown + other.shown).min(SCALE_MAX);
        let product = Decimal::with_shown(product, self.scale + other.scale, shown);
        let product = if product.scale > SCALE_MAX { product.with_scale(SCALE_MAX)? } else { product };
        Decimal { shown, ..product }.checked()
    }

    /// Shows `increment` more digits than `self` does. `Some(None)` is a division by zero.
    pub fn divide(&self, other: &Decimal, increment: u8) -> Option<Option<Decimal>> {
        if other.is_zero() {
            return Some(None);
        }
        let shown = (self.shown + increment).min(SCALE_MAX);
        let (left, right) = (round_up_to_groups(self.scale), round_up_to_groups(other.scale));
        let slack = left - self.scale + right - other.scale;
        let scale = round_up_to_groups(left + right + increment.saturating_sub(slack)).max(shown);
        // The scale of a quotient is limited by the digits that are left.
        let room = 76u8.saturating_sub(self.digits());
        let scale = scale.min((room + self.scale).saturating_sub(other.scale)).max(shown);
        let shift = scale as i32 + other.scale as i32 - self.scale as i32;
        let (mut dividend, mut divisor) = (self.unscaled(), other.unscaled());
        if shift >= 0 {
            dividend = dividend.checked_mul(power_of_ten(u8::try_from(shift).ok()?)?)?;
        } else {
            divisor = divisor.checked_mul(power_of_ten(u8::try_from(-shift).ok()?)?)?;
        }
        Some(Some(Decimal::with_shown(dividend.checked_div(divisor)?, scale, shown)))
    }

    /// The rest of an integer division, with the sign of `self`. `Some(None)` is a division by zero.
    pub fn remainder(&self, other: &Decimal) -> Option<Option<Decimal>> {
        if other.is_zero() {
            return Some(None);
        }
        let (a, b, scale) = self.aligned(other)?;
        Some(Some(Decimal::with_shown(a % b, scale, self.shown.max(other.shown))))
    }

    pub fn negate(&self) -> Decimal {
        Decimal::with_shown(-self.unscaled(), self.scale, self.shown)
    }

    pub fn abs(&self) -> Decimal {
        if self.is_negative() { self.negate() } else { *self }
    }

    /// With so many digits after the point, rounded half away from zero. `None` if it gets too long.
    pub fn with_scale(&self, scale: u8) -> Option<Decimal> {
        if scale >= self.scale {
            let unscaled = self.unscaled().checked_mul(power_of_ten(scale - self.scale)?)?;
            return Some(Decimal::new(unscaled, scale));
        }
        let power = power_of_ten(self.scale - scale)?;
        let (unscaled, half) = (self.unscaled(), power / 2);
        let away = if unscaled < 0 { unscaled.checked_sub(half)? } else { unscaled.checked_add(half)? };
        Some(Decimal::new(away / power, scale))
    }

    /// A result of it has so many digits after the point; the others stay for further arithmetic. `None` if
    /// it gets too long.
    pub fn showing(&self, shown: u8) -> Option<Decimal> {
        if shown >= self.scale {
            return self.with_scale(shown);
        }
        Some(Decimal { shown, ..*self })
    }

    /// With so many digits after the point, the others cut off.
    pub fn truncated(&self, scale: u8) -> Decimal {
        match power_of_ten(self.scale.saturating_sub(scale)) {
            Some(power) if scale < self.scale => Decimal::new(self.unscaled() / power, scale),
            _ => Decimal { shown: self.scale, ..*self },
        }
    }

    /// Rounded (or cut) at 10^-places, `places` negative for digits before the point; scale 0 then.
    pub fn rounded_at(&self, places: i32, truncate: bool) -> Option<Decimal> {
        if places >= 0 {
            let places = places.min(self.scale as i32) as u8;
            return if truncate { Some(self.truncated(places)) } else { self.with_scale(places) };
        }
        let Some(power) = u8::try_from(-places).ok().and_then(power_of_ten) else {
            return Some(Decimal::ZERO);
        };
        let Some(unit) = power_of_ten(self.scale).and_then(|scale| scale.checked_mul(power)) else {
            return Some(Decimal::ZERO);
        };
        let (unscaled, half) = (self.unscaled(), unit / 2);
        let units = match truncate {
            true => unscaled / unit,
            false if unscaled < 0 => unscaled.checked_sub(half)? / unit,
            false => unscaled.checked_add(half)? / unit,
        };
        Decimal::new(units.checked_mul(power)?, 0).checked()
    }

    /// As a result has it: with [`Decimal::shown`] digits after the point.
    pub fn rounded(&self) -> Decimal {
        if self.scale == self.shown { *self } else { self.with_scale(self.shown).unwrap_or(*self) }
    }

    /// The largest integer not above it.
    pub fn floor(&self) -> Decimal {
        let whole = self.truncated(0);
        let one = Decimal::new(I256::ONE, 0);
        if self.compare(&whole).is_lt() { whole.subtract(&one).unwrap_or(whole) } else { whole }
    }

    /// The smallest integer not below it.
    pub fn ceiling(&self) -> Decimal {
        self.negate().floor().negate()
    }

    /// The largest number of `precision` digits, `scale` of them after the point.
    pub fn largest(precision: u8, scale: u8) -> Decimal {
        Decimal::new(power_of_ten(precision).map_or(I256::MAX, |power| power - 1), scale)
    }
}

//! Exact decimal numbers of up to 65 digits.

mod arithmetic;
mod convert;

use ethnum::I256;
use std::cmp::Ordering;

/// The most digits a DECIMAL has.
pub const PRECISION_MAX: u8 = 65;
/// The most digits after the point a DECIMAL has.
pub const SCALE_MAX: u8 = 38;

/// The length of [`Decimal::to_bytes`].
pub const BYTES: usize = 34;

/// An exact number: `unscaled / 10^scale`.
///
/// A quotient carries more digits than MySQL shows of it, so that `1 / 3 * 3` is 1.0000: `scale` tells the
/// digits that are there, `shown` those that a result has ([`Decimal::rounded`]).
///
/// Equality (`==`) is that of the representation: `1.0` and `1.00` differ. [`Decimal::compare`] compares
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decimal {
    /// Two's complement, low word first; words rather than an [`I256`] keep values 8-byte aligned.
    words: [u64; 4],
    scale: u8,
    shown: u8,
}

impl Decimal {
    pub const ZERO: Decimal = Decimal { words: [0; 4], scale: 0, shown: 0 };

    /// `unscaled / 10^scale`, all digits shown.
    pub fn new(unscaled: I256, scale: u8) -> Decimal {
        Decimal::with_shown(unscaled, scale, scale)
    }

    fn with_shown(unscaled: I256, scale: u8, shown: u8) -> Decimal {
        let (high, low) = unscaled.into_words();
        let words = [low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64];
        Decimal { words, scale, shown }
    }

    /// Everything that the number consists of, for a place that only this process reads.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[32..].copy_from_slice(&[self.scale, self.shown]);
        bytes
    }

    /// The number of which these are the [`Decimal::to_bytes`].
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Decimal {
        let mut words = [0; 4];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = place.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Decimal { words, scale: bytes[32], shown: bytes[33] }
    }

    /// The number without its point.
    pub fn unscaled(&self) -> I256 {
        let low = (self.words[1] as u128) << 64 | self.words[0] as u128;
        let high = (self.words[3] as u128) << 64 | self.words[2] as u128;
        I256::from_words(high as i128, low as i128)
    }

    /// Digits after the point that are there.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Digits after the point that a result has.
    pub fn shown(&self) -> u8 {
        self.shown
    }

    pub fn is_zero(&self) -> bool {
        self.words == [0; 4]
    }

    pub fn is_negative(&self) -> bool {
        self.words[3] >> 63 == 1
    }

    /// All digits before and after the point; 0 for zero.
    pub fn digits(&self) -> u8 {
        let mut rest = self.unscaled().unsigned_abs();
        let mut digits = 0;
        let billion = ethnum::U256::new(1_000_000_000);
        while rest >= billion {
            rest /= billion;
            digits += 9;
        }
        let mut rest = rest.as_u64();
        while rest > 0 {
            rest /= 10;
            digits += 1;
        }
        digits
    }

    /// Compares the numbers.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        let (a, b) = (self.unscaled(), other.unscaled());
        if self.scale == other.scale {
            return a.cmp(&b);
        }
        if self.is_negative() != other.is_negative() {
            return if self.is_negative() { Ordering::Less } else { Ordering::Greater };
        }
        let aligned = |value: I256, by: u8| power_of_ten(by).and_then(|power| value.checked_mul(power));
        // A number that overflows when aligned is further from zero than any that does not.
        let far = if self.is_negative() { Ordering::Less } else { Ordering::Greater };
        match self.scale < other.scale {
            true => aligned(a, other.scale - self.scale).map_or(far, |a| a.cmp(&b)),
            false => aligned(b, self.scale - other.scale).map_or(far.reverse(), |b| a.cmp(&b)),
        }
    }
}

/// 10^exponent, if 256 bits hold it.
pub(crate) fn power_of_ten(exponent: u8) -> Option<I256> {
    static POWERS: std::sync::LazyLock<[I256; 77]> = std::sync::LazyLock::new(|| {
        let mut powers = [I256::ONE; 77];
        for index in 1..77 {
            powers[index] = powers[index - 1] * 10;
        }
        powers
    });
    POWERS.get(exponent as usize).copied()
}

/// The bytes that hold any DECIMAL of this precision as two's complement.
pub const fn bytes_for_precision(precision: u8) -> usize {
    // log2(10) is a little less than 33220 / 10000; one bit more for the sign.
    let bits = (precision as usize * 33220).div_ceil(10_000) + 1;
    bits.div_ceil(8)
}

#[cfg(test)]
mod tests;

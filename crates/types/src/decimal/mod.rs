//! Exact decimal numbers of up to 65 digits.

use ethnum::I256;

/// The most digits a DECIMAL has.
pub const PRECISION_MAX: u8 = 65;
/// The most digits after the point a DECIMAL has.
pub const SCALE_MAX: u8 = 30;

/// An exact number: `unscaled / 10^scale`, at most 65 digits in all.
///
/// Equality is that of the representation: `1.0` and `1.00` differ here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decimal {
    /// Two's complement, low word first; words rather than an [`I256`] keep values 8-byte aligned.
    words: [u64; 4],
    scale: u8,
}

impl Decimal {
    pub const ZERO: Decimal = Decimal { words: [0; 4], scale: 0 };

    pub fn new(unscaled: I256, scale: u8) -> Decimal {
        let (high, low) = unscaled.into_words();
        Decimal { words: [low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64], scale }
    }

    /// The number without its point.
    pub fn unscaled(&self) -> I256 {
        let low = (self.words[1] as u128) << 64 | self.words[0] as u128;
        let high = (self.words[3] as u128) << 64 | self.words[2] as u128;
        I256::from_words(high as i128, low as i128)
    }

    /// Digits after the point.
    pub fn scale(&self) -> u8 {
        self.scale
    }
}

/// The bytes that hold any DECIMAL of this precision as two's complement.
pub const fn bytes_for_precision(precision: u8) -> usize {
    // log2(10) is a little less than 33220 / 10000; one bit more for the sign.
    let bits = (precision as usize * 33220).div_ceil(10_000) + 1;
    bits.div_ceil(8)
}

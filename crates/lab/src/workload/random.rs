//! The lab's random numbers: small, fast, and the same on every machine for the same seed.

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter through a mixing function.
#[derive(Clone, Debug)]
pub struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

impl Random {
    /// Stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Random {
        Random(mix(seed ^ mix(stream.wrapping_add(1).wrapping_mul(STEP))))
    }

    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Uniform in `0..bound`, to within 2^-32 of it.
    #[inline(always)]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Puts the items in an order of its own (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_spread_evenly() {
        let mut random = Random::new(303, 0);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(1, 2).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}

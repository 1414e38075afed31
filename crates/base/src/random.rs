//! Random numbers for workloads, examples and tests: small, fast, and the same on every machine for the same
//! seed. Not for secrets.

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter through a mixing function.
#[derive(Clone, Debug)]
pub struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The mixing function: each bit of the result depends on all bits of `value`.
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

    /// SplitMix64 itself from this state, for cases that are known by their number: they stay the same cases.
    /// Other draws take [`Random::new`], whose seeds lie apart.
    pub fn of_state(state: u64) -> Random {
        Random(state)
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

    /// Uniform in `0..bound`, to within 2^-64 of it.
    #[inline(always)]
    pub fn below_u64(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A position in a list of `len` items, or another number below `len`, which is at most 2^32 - 1.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u32) as usize
    }

    /// Uniform from 0 to 1, without 1, in steps of 2^-53.
    #[inline(always)]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts the items in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

/// Draws ranks from 0 with probability proportional to 1 / (rank + 1)^skew.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// The probability of this rank or a lower one.
    cumulated: Vec<f64>,
}

impl Zipf {
    /// `items` ranks; a skew of 0 makes all of them alike. Takes 8 bytes an item.
    ///
    /// # Panics
    /// If there are no items.
    pub fn new(items: u32, skew: f64) -> Zipf {
        assert!(items > 0, "there is nothing to draw from");
        let mut sum = 0.0;
        let mut cumulated: Vec<f64> = Vec::with_capacity(items as usize);
        for rank in 1..=items {
            sum += f64::from(rank).powf(-skew);
            cumulated.push(sum);
        }
        cumulated.iter_mut().for_each(|value| *value /= sum);
        Zipf { cumulated }
    }

    pub fn draw(&self, random: &mut Random) -> u32 {
        let wanted = random.unit();
        let rank = self.cumulated.partition_point(|&value| value < wanted);
        // The last value may be a little less than 1.
        rank.min(self.cumulated.len() - 1) as u32
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
    fn numbers_below_a_wide_bound_fill_all_of_it() {
        let mut random = Random::new(303, 0);
        let bound = u64::MAX / 3 * 2;
        let mut upper_halves = 0;
        for _ in 0..10_000 {
            let drawn = random.below_u64(bound);
            assert!(drawn < bound);
            upper_halves += u32::from(drawn >= bound / 2);
        }
        assert!((4_800..5_200).contains(&upper_halves), "{upper_halves}");
        assert_eq!(random.below_u64(1), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(1, 2).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    /// Published figures were made with these numbers: they can be repeated by their seed.
    #[test]
    fn the_sequence_of_a_seed_never_changes() {
        let drawn = |seed, stream| Random::new(seed, stream).next_u64();
        assert_eq!(
            [drawn(303, 0), drawn(303, 1), drawn(1, 0)],
            [0xd383_c4ce_3da4_184d, 0x054c_3b4f_3395_b12c, 0x85c6_1a30_0ec7_0fa1]
        );
        assert_eq!(Random::of_state(0).next_u64(), 0xe220_a839_7b1d_cdaf);
        let zipf = Zipf::new(1_000, 1.0);
        let mut random = Random::new(303, 1);
        assert_eq!([(); 8].map(|()| zipf.draw(&mut random)), [0, 0, 4, 8, 319, 28, 0, 1]);
    }

    #[test]
    fn ranks_come_as_often_as_the_skew_says() {
        let (zipf, mut random) = (Zipf::new(100, 1.0), Random::new(1, 1));
        let mut counts = [0_u32; 100];
        for _ in 0..100_000 {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        // The sum of 1 / rank is 5.187: rank 0 has 19.3 percent, rank 9 a tenth of that.
        assert!((18_900..19_700).contains(&counts[0]), "{}", counts[0]);
        assert!((1_750..2_100).contains(&counts[9]), "{}", counts[9]);
        assert!(counts.iter().all(|&count| count > 0));
    }
}

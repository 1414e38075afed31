//! Seeded choices: the same seed on the same history leaves the same file system.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and every seed is as good as another.
#[derive(Debug)]
pub(super) struct Dice(u64);

/// How lucky a whole crash is. The two extremes find most mistakes. If each file had its own luck only, a
/// crash of many files would hardly ever be one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Luck {
    NothingSurvives,
    EverythingSurvives,
    Mixed,
}

/// Eighths of the unsynced changes that survive.
pub(super) type Odds = u64;
pub(super) const NEVER: Odds = 0;
pub(super) const ALWAYS: Odds = 8;

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound - 1`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound as u64) as usize
    }

    pub(super) fn chance(&mut self, odds: Odds) -> bool {
        self.roll() % ALWAYS < odds
    }

    pub(super) fn luck(&mut self) -> Luck {
        match self.below(8) {
            0 => Luck::NothingSurvives,
            1 => Luck::EverythingSurvives,
            _ => Luck::Mixed,
        }
    }

    /// The odds of one file's data, of its length, or of the names.
    pub(super) fn odds(&mut self, luck: Luck) -> Odds {
        match luck {
            Luck::NothingSurvives => NEVER,
            Luck::EverythingSurvives => ALWAYS,
            Luck::Mixed => [NEVER, 1, 4, 7, ALWAYS][self.below(5)],
        }
    }
}

//! Seeded choices: the same seed on the same history leaves the same file system.

use base::random::Random;

#[derive(Debug)]
pub(super) struct Dice(Random);

/// How lucky a whole crash is. The two extremes find most mistakes. If each file had its own luck only, a
/// crash of many files would hardly ever be one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Luck {
    NothingSurvives,
    EverythingSurvives,
    Mixed,
}

/// Eighths of the unsynced changes that survive.
pub(super) type Odds = u32;
pub(super) const NEVER: Odds = 0;
pub(super) const ALWAYS: Odds = 8;

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(Random::new(seed, 0))
    }

    /// A number from 0 to `bound - 1`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    pub(super) fn chance(&mut self, odds: Odds) -> bool {
        self.0.below(ALWAYS) < odds
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

//! How far a long statement is.

/// Thousandths of a percent that are the whole.
pub(crate) const WHOLE: u32 = 100_000;

/// Where a long statement is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// The stage that it is in, from 1 on; 0 if nothing is known.
    pub stage: u8,
    /// How many stages it has.
    pub stages: u8,
    /// How much of the stage is done, in thousandths of a percent.
    pub done: u32,
}

impl Progress {
    /// How much of the statement is done, in thousandths of a percent, if all stages take equally long.
    pub(crate) fn overall(&self) -> u32 {
        let before = u32::from(self.stage.saturating_sub(1)) * WHOLE;
        (before + self.done) / u32::from(self.stages.max(1))
    }

    /// One word that can be kept in an atomic.
    pub(crate) fn packed(self) -> u32 {
        self.done.min(WHOLE) | u32::from(self.stage.min(127)) << 17 | u32::from(self.stages.min(127)) << 24
    }

    pub(crate) fn unpacked(word: u32) -> Progress {
        let stage = (word >> 17 & 0x7f) as u8;
        Progress { stage, stages: (word >> 24) as u8, done: word & 0x1_ffff }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_it() {
        for stage in [0, 1, 2, 127] {
            for done in [0, 1, 99_999, WHOLE] {
                let progress = Progress { stage, stages: 127, done };
                assert_eq!(Progress::unpacked(progress.packed()), progress);
            }
        }
    }

    #[test]
    fn stages_share_the_whole() {
        let overall = |stage, stages, done| Progress { stage, stages, done }.overall();
        assert_eq!(overall(0, 0, 0), 0);
        assert_eq!(overall(1, 1, 25_000), 25_000);
        assert_eq!(overall(2, 4, 50_000), 37_500);
        assert_eq!(overall(4, 4, WHOLE), WHOLE);
    }
}

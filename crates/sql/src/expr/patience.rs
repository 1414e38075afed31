//! Looks whether the statement was killed inside of one long search.

use super::Environment;
use crate::SqlError;

/// Steps of a search, about, between two looks.
const STEPS_BETWEEN_CHECKS: usize = 1 << 20;

/// Ends searches of statements that were killed.
pub(crate) struct Patience<'e> {
    environment: &'e dyn Environment,
    steps: usize,
}

impl<'e> Patience<'e> {
    pub(crate) fn new(environment: &'e dyn Environment) -> Patience<'e> {
        Patience { environment, steps: 0 }
    }

    /// False if a search for `part` is short in any case.
    #[inline]
    pub(super) fn is_needed(text: &[u8], part: &[u8]) -> bool {
        text.len().saturating_mul(part.len()) > STEPS_BETWEEN_CHECKS
    }

    /// So many steps were made.
    ///
    /// # Errors
    /// 1317 for a statement that was killed or whose time is over.
    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), SqlError> {
        self.steps += steps;
        if self.steps < STEPS_BETWEEN_CHECKS {
            return Ok(());
        }
        self.steps = 0;
        self.environment.check_interrupt()
    }

    /// Where `part` begins in `text`, byte by byte.
    ///
    /// # Errors
    /// As [`Patience::spend`].
    pub(super) fn find(&mut self, text: &[u8], part: &[u8]) -> Result<Option<usize>, SqlError> {
        let width = part.len().max(1);
        if !Patience::is_needed(text, part) {
            let found = text.windows(width).position(|window| window == part);
            self.spend(found.unwrap_or(text.len()) + 1)?;
            return Ok(found);
        }
        let starts = (STEPS_BETWEEN_CHECKS / width).max(1);
        let mut from = 0;
        while from + width <= text.len() {
            let piece = &text[from..(from + starts + width - 1).min(text.len())];
            if let Some(found) = piece.windows(width).position(|window| window == part) {
                return Ok(Some(from + found));
            }
            self.spend(starts * width)?;
            from += starts;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::golden::environment::TestEnvironment;

    #[test]
    fn a_part_is_found_wherever_it_is() {
        let environment = TestEnvironment::default();
        let mut patience = Patience::new(&environment);
        let part = [vec![b'a'; 70_000], b"b".to_vec()].concat();
        for before in [0, 1, 13, 14, 15, 30_000] {
            let text = [vec![b'a'; before], part.clone(), b"rest".to_vec()].concat();
            assert_eq!(patience.find(&text, &part).unwrap(), Some(before));
            assert_eq!(patience.find(&text[..before + part.len() - 1], &part).unwrap(), None);
        }
        assert_eq!(patience.find(b"abc", b"c").unwrap(), Some(2));
        assert_eq!(patience.find(b"", b"c").unwrap(), None);
    }
}

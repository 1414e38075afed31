//! Where in a node a key probably lies: a sample of the node's heads, kept in the page's hints.
//!
//! Halving a leaf's slots reads a line of memory for almost every halving, each after the one before. The
//! sample lies in the line that a hit reads for the page's version; between two of its heads the place is
//! interpolated, and a search begins there. Keys that are dense, or spread evenly, are in the line that was
//! guessed or beside it.

use super::read::{Node, SLOTS_A_LINE};
use pagecache::{HINT_WORDS, Hints};

const HEADS: usize = 5;
/// Of nodes with fewer slots there is nothing to guess: their slots take four lines, and small pages would
/// have nothing but samples.
const SLOTS_MIN: usize = 32;

/// A sample is good for a node that has grown or shrunk by one slot in so many, or by a line of them.
const GROWTH: usize = 64;

/// The heads at the ends of the first five sixths of a node's slots, and how many slots there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sample {
    count: u32,
    heads: [u32; HEADS],
}

impl Sample {
    fn of(node: Node<'_>, count: usize) -> Sample {
        let mut heads = [0; HEADS];
        for (i, head) in heads.iter_mut().enumerate() {
            *head = node.slot(place(i, count)).head();
        }
        Sample { count: count as u32, heads }
    }

    #[inline(always)]
    fn from_words(words: [u64; HINT_WORDS]) -> Sample {
        let [a, b, c] = words;
        let heads = [(a >> 32) as u32, b as u32, (b >> 32) as u32, c as u32, (c >> 32) as u32];
        Sample { count: a as u32, heads }
    }

    fn to_words(self) -> [u64; HINT_WORDS] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [a, b, c, d, e] = self.heads;
        [pair(self.count, a), pair(b, c), pair(d, e)]
    }

    /// The slot, below `count`, at which a key of this head is looked for first.
    #[inline(always)]
    fn guess(&self, head: u32, count: usize) -> usize {
        let below = self.heads.iter().map(|&sampled| usize::from(sampled < head)).sum::<usize>();
        // Before the first head and behind the last one, the line through the nearest two goes on.
        let piece = below.clamp(1, HEADS - 1);
        let (low, high) = (self.heads[piece - 1], self.heads[piece]);
        // Floating point, because a division of integers takes longer. If both heads are equal, this divides
        // by zero: the cast below turns infinity into the last slot, and "not a number" into the first.
        let beyond = (i64::from(head) - i64::from(low)) as f32 / (i64::from(high) - i64::from(low)) as f32;
        let place = (piece as f32 + beyond) * (count as f32 / (HEADS + 1) as f32);
        (place as usize).min(count - 1)
    }
}

/// The slot that the `i`th head is of.
#[inline(always)]
fn place(i: usize, count: usize) -> usize {
    (i + 1) * count / (HEADS + 1)
}

/// Where to begin the search for `head` among `count` slots. Takes a sample if there is none, or the node has
/// grown or shrunk by more than a line or two of slots since: where it grows at one end, all that was sampled
/// is so far from where it is taken to be.
#[inline(always)]
pub(super) fn first_place(node: Node<'_>, hints: &Hints, head: u32, count: usize) -> usize {
    if count < SLOTS_MIN {
        return count / 2;
    }
    let mut sample = Sample::from_words(hints.load());
    if (sample.count as usize).abs_diff(count) > (count / GROWTH).max(SLOTS_A_LINE) {
        sample = take(node, hints, count);
    }
    sample.guess(head, count)
}

#[cold]
fn take(node: Node<'_>, hints: &Hints, count: usize) -> Sample {
    let sample = Sample::of(node, count);
    hints.store(sample.to_words());
    sample
}

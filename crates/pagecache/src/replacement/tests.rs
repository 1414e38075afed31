//! Each policy alone, on frames without memory.

use super::*;
use base::random::Random;
use base::{FileId, PageId, PageNo};

struct Rig<P> {
    frames: Frames,
    policy: P,
}

impl<P: Policy + Default> Rig<P> {
    /// Frames 0 to `count`, loaded in that order.
    fn loaded(count: u32, limits: Limits) -> Rig<P> {
        let mut rig = Rig { frames: Frames::new(count as usize + 8).unwrap(), policy: P::default() };
        rig.policy.set_limits(count as usize, limits);
        (0..count).for_each(|n| rig.load(n, n));
        rig
    }

    fn load(&mut self, frame: u32, page: u32) {
        self.frames.header(FrameNo(frame)).set_page_id(PageId::new(FileId(1), PageNo(page)));
        self.policy.insert(&self.frames, FrameNo(frame));
    }

    fn hit(&mut self, frame: u32) {
        self.policy.hit(&self.frames, FrameNo(frame));
    }

    fn evict(&mut self) -> u32 {
        self.policy.evict(&self.frames, &mut |_| Take::Taken).expect("something to evict").0
    }
}

fn all_come_out_once<P: Policy + Default>() {
    let mut rig = Rig::<P>::loaded(50, Limits::default());
    for round in 0..200 {
        rig.hit(round * 7 % 50);
        rig.policy.remove(&rig.frames, FrameNo(round * 11 % 50));
        rig.load(round * 11 % 50, 100 + round);
    }
    rig.policy.substitute(&rig.frames, FrameNo(3), FrameNo(55));
    let mut out: Vec<u32> = (0..20).map(|_| rig.evict()).collect();
    out.extend(rig.policy.drain(&rig.frames).iter().map(|frame| frame.0));
    out.sort_unstable();
    let mut expected: Vec<u32> = (0..50).filter(|&n| n != 3).collect();
    expected.push(55);
    assert_eq!(out, expected);
    assert!(rig.policy.evict(&rig.frames, &mut |_| Take::Taken).is_none());
}

#[test]
fn no_policy_loses_or_doubles_a_frame() {
    all_come_out_once::<Midpoint>();
    all_come_out_once::<Clock>();
    all_come_out_once::<Sieve>();
    all_come_out_once::<S3Fifo>();
}

#[test]
fn with_a_division_limit_of_100_midpoint_insertion_is_plain_lru() {
    let mut rig = Rig::<Midpoint>::loaded(5, Limits::default());
    for _ in 0..10 {
        rig.hit(0);
    }
    rig.hit(2);
    assert_eq!(rig.policy.warm(), 5);
    assert_eq!([0; 5].map(|_| rig.evict()), [1, 3, 4, 0, 2]);
}

#[test]
fn the_third_use_makes_a_page_hot_and_warm_goes_first() {
    let limits = Limits { division_limit: 20, age_threshold: 1000 };
    let mut rig = Rig::<Midpoint>::loaded(10, limits);
    rig.hit(0);
    assert_eq!(rig.policy.hot(), 0, "the load and one hit are two uses");
    rig.hit(0);
    assert_eq!((rig.policy.hot(), rig.policy.warm()), (1, 9));
    let mut out: Vec<u32> = (0..10).map(|_| rig.evict()).collect();
    assert_eq!(out.pop(), Some(0), "the hot page is the last to go");
}

#[test]
fn warm_keeps_its_minimum_however_hot_the_pages_are() {
    let limits = Limits { division_limit: 50, age_threshold: 1_000_000 };
    let mut rig = Rig::<Midpoint>::loaded(10, limits);
    for _ in 0..5 {
        (0..10).for_each(|n| rig.hit(n));
    }
    // 10 * 50 / 100 + 1 pages stay warm.
    assert_eq!((rig.policy.warm(), rig.policy.hot()), (6, 4));
}

#[test]
fn a_hot_page_that_rests_too_long_is_the_next_victim() {
    let limits = Limits { division_limit: 20, age_threshold: 100 };
    let mut rig = Rig::<Midpoint>::loaded(10, limits);
    (0..3).for_each(|_| rig.hit(0));
    assert_eq!(rig.policy.hot(), 1);
    // Ten frames at 100 percent: with its own, ten hits are too few, eleven are enough.
    (0..9).for_each(|_| rig.hit(1));
    assert_eq!(rig.policy.hot(), 2);
    rig.hit(1);
    assert_eq!(rig.policy.hot(), 1);
    assert_eq!(rig.evict(), 0);
}

#[test]
fn clock_and_sieve_spare_what_was_used() {
    let mut clock = Rig::<Clock>::loaded(4, Limits::default());
    clock.hit(0);
    assert_eq!([0; 4].map(|_| clock.evict()), [1, 2, 3, 0]);
    let mut sieve = Rig::<Sieve>::loaded(4, Limits::default());
    sieve.hit(1);
    assert_eq!([sieve.evict(), sieve.evict()], [0, 2]);
    // The hand is past the old ones: a new page is judged before them.
    sieve.load(0, 10);
    assert_eq!([0; 3].map(|_| sieve.evict()), [3, 0, 1]);
}

#[test]
fn a_page_used_once_passes_through_the_small_queue_and_leaves_the_main_one_alone() {
    let mut rig = Rig::<S3Fifo>::loaded(100, Limits::default());
    // All come of age but the youngest two; ten prove themselves.
    (0..10).for_each(|n| rig.hit(n));
    let mut free: Vec<u32> = (0..90).map(|_| rig.evict()).collect();
    assert!(free.iter().all(|&frame| frame >= 10), "the used ones are in the main queue");
    for page in 1000..1500 {
        let frame = free.pop().expect("ninety frames go round");
        rig.load(frame, page);
        if free.is_empty() {
            free.push(rig.evict());
            assert!(free[0] >= 10, "the scan took frame {} of the hot set", free[0]);
        }
    }
}

#[test]
fn a_page_asked_for_again_soon_after_it_left_enters_the_main_queue() {
    let mut rig = Rig::<S3Fifo>::loaded(100, Limits::default());
    let gone = rig.evict();
    assert_eq!(gone, 0);
    rig.load(gone, 0);
    let warm = rig.policy.warm();
    assert_eq!(warm, 99, "it is not among the new ones");
    // Ghosts are forgotten in time.
    for page in 1000..1300 {
        let frame = rig.evict();
        rig.load(frame, page);
    }
    let frame = rig.evict();
    let warm = rig.policy.warm();
    rig.load(frame, 5);
    assert_eq!(rig.policy.warm(), warm + 1, "the ghost of page 5 is long gone");
}

#[test]
fn a_burst_of_uses_right_after_the_load_is_one_use() {
    let mut rig = Rig::<S3Fifo>::loaded(100, Limits::default());
    for page in 1000..2000 {
        let frame = rig.evict();
        rig.load(frame, page);
        (0..3).for_each(|_| rig.hit(frame));
    }
    // Nothing was ever promoted: all are new.
    assert_eq!(rig.policy.warm(), 100);
}

#[test]
fn one_eviction_from_an_all_hot_cache_is_bounded() {
    let mut rig = Rig::<S3Fifo>::loaded(2000, Limits::default());
    for _ in 0..2 {
        (0..2000).for_each(|n| rig.hit(n));
        let frame = rig.evict();
        rig.load(frame, frame + 5000);
    }
    (0..2000).for_each(|n| rig.hit(n));
    rig.evict();
    let still_hot = (0..2000).filter(|&n| rig.frames.header(FrameNo(n)).is_hot()).count();
    assert!(still_hot > 1000, "{still_hot} left hot: the eviction went over nearly all");
}

/// Misses of plain LRU with so many frames on a trace with a preference, and the ghosts it met when it kept
/// so many.
fn misses_and_ghosts(frames: u32, ghosts: usize) -> (u64, u64) {
    let mut rig = Rig::<Midpoint>::loaded(0, Limits::default());
    rig.frames = Frames::new(frames as usize).unwrap();
    rig.policy.set_limits(frames as usize, Limits::default());
    rig.policy.set_ghosts(ghosts);
    let (mut place, mut page_in) = (std::collections::HashMap::new(), vec![u32::MAX; frames as usize]);
    let (mut misses, mut random) = (0, Random::new(1, 0));
    for _ in 0..50_000 {
        let page = random.below(400) & random.below(1 << 14);
        if let Some(frame) = place.get(&page) {
            rig.hit(*frame);
            continue;
        }
        misses += 1;
        let frame = if place.len() < frames as usize { place.len() as u32 } else { rig.evict() };
        place.remove(&page_in[frame as usize]);
        place.insert(page, frame);
        page_in[frame as usize] = page;
        rig.load(frame, page);
    }
    (misses, rig.policy.ghost_hits())
}

#[test]
fn the_ghosts_of_plain_lru_are_hits_of_a_larger_cache() {
    for ghosts in [10, 40] {
        let (misses, met) = misses_and_ghosts(60, ghosts);
        let (misses_larger, _) = misses_and_ghosts(60 + ghosts as u32, 0);
        let saved = misses - misses_larger;
        // Ghosts that have come back still take up room among the others: so some are missed, and none is
        // made up.
        assert!(met <= saved && met * 10 >= saved * 7, "{met} ghosts, {saved} misses saved");
    }
}

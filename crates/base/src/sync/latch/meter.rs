//! What happens at the latches of a class: how often they were taken, and where threads met.
//!
//! Off by default: a latch then only reads a flag, which no thread writes meanwhile. If it is on, each thread
//! counts the latches that it takes in cells of its own. Waits are counted in shared memory, since a wait is
//! expensive anyway. This measures the latches of `base::sync`, and so uses none of them.
//!
//! A class whose latches are in the segments of a cache is counted by segment, too. Figures begin anew when
//! counting is switched on.
//!
//! A small table remembers the holder of a latch by the latch's address; each thread that takes a latch
//! writes it. So the holder that a waiter names is the thread that wrote that place of the table last: almost
//! always the latch's holder, now and then a thread that has left, or none.

use super::Contention;
use crate::phases;
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A class of latches: a type for [`latch_class`](crate::latch_class) to make.
pub trait LatchClass: 'static {
    fn meter() -> &'static Meter;
}

/// Makes a class of latches, with the name it has in figures, and with how many segments its latches are in,
/// if they are.
#[macro_export]
macro_rules! latch_class {
    ($(#[$attribute:meta])* $visibility:vis $class:ident, $name:literal) => {
        $crate::latch_class!($(#[$attribute])* $visibility $class, $name, 0);
    };
    ($(#[$attribute:meta])* $visibility:vis $class:ident, $name:literal, $segments:expr) => {
        $(#[$attribute])*
        #[derive(Debug)]
        $visibility enum $class {}
        impl $crate::sync::LatchClass for $class {
            fn meter() -> &'static $crate::sync::Meter {
                static SEGMENTS: [$crate::sync::LatchCounts; $segments] =
                    [const { $crate::sync::LatchCounts::new() }; $segments];
                static METER: $crate::sync::Meter = $crate::sync::Meter::new($name, &SEGMENTS);
                &METER
            }
        }
    };
}

latch_class! {
    /// Of latches that have none of their own.
    pub Other, "other"
}

/// Classes and segments of classes that there can be; more share the last place.
const PLACES: usize = 256;
/// Waits by their time: the place is the number of bits of its nanoseconds.
pub const WAIT_TIMES: usize = 40;
const HOLDERS: usize = 1_024;

/// What is counted of a class.
#[derive(Debug)]
pub struct Meter {
    name: &'static str,
    /// Of latches that are in no segment.
    outside: LatchCounts,
    segments: &'static [LatchCounts],
}

/// What is counted of latches that are of one class, and of one segment if they are in one.
#[derive(Debug)]
pub struct LatchCounts {
    /// Its place among all, from 1; 0 = none yet.
    number: AtomicUsize,
    /// Latches taken before the figures began anew.
    taken_before: AtomicU64,
    contended: AtomicU64,
    spins: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
    waited_ns_max: AtomicU64,
    times: [AtomicU64; WAIT_TIMES],
}

/// Where in the figures a latch is counted.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    meter: &'static Meter,
    segment: Option<usize>,
}

/// Where a latch was taken.
pub type Site = &'static Location<'static>;
type OwnFigures = fn() -> Option<ClassFigures>;

static METERING: AtomicBool = AtomicBool::new(false);
static SPOTS: Mutex<Vec<Spot>> = Mutex::new(Vec::new());
static THREADS: Mutex<Vec<&'static Taken>> = Mutex::new(Vec::new());
/// Of latches that meter themselves.
static OTHERS: Mutex<Vec<OwnFigures>> = Mutex::new(Vec::new());
/// By class, holder and waiter: waits and nanoseconds.
static MEETINGS: Mutex<Option<HashMap<Meeting, (u64, u64)>>> = Mutex::new(None);
static LAST_HOLDERS: [Holder; HOLDERS] = [const { Holder::new() }; HOLDERS];

#[derive(PartialEq, Eq, Hash)]
struct Meeting {
    class: &'static str,
    segment: Option<usize>,
    holder: Option<Site>,
    waiter: Site,
}

struct Holder {
    address: AtomicUsize,
    site: AtomicPtr<Location<'static>>,
}

impl Holder {
    const fn new() -> Holder {
        Holder { address: AtomicUsize::new(0), site: AtomicPtr::new(std::ptr::null_mut()) }
    }
}

/// Latches that one thread has taken, by place. Lives on for the next thread.
#[repr(align(128))]
struct Taken {
    counts: [AtomicU64; PLACES],
    is_owned: AtomicBool,
}

struct Owned(Cell<Option<&'static Taken>>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(taken) = self.0.get() {
            // ORDER: hands the counts over to the thread that takes them on.
            taken.is_owned.store(false, Release);
        }
    }
}

thread_local! {
    static TAKEN: Owned = const { Owned(Cell::new(None)) };
}

/// What it took to get a latch that meters itself and was not free.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// Looks at the latch.
    pub spins: u64,
    /// Times asleep.
    pub waits: u64,
    /// From finding it taken to having it.
    pub nanoseconds: u64,
}

impl Met {
    /// Its place in [`ClassFigures::times`].
    pub fn place(&self) -> usize {
        time_place(self.nanoseconds)
    }
}

fn time_place(nanoseconds: u64) -> usize {
    let bits = (u64::BITS - nanoseconds.leading_zeros()) as usize;
    bits.min(WAIT_TIMES - 1)
}

fn latched<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True while what happens at latches is counted.
#[inline(always)]
pub fn metering() -> bool {
    // ORDER: a switch; counting may begin and end a little late.
    METERING.load(Relaxed)
}

/// Switches counting on or off. Off, figures stay as they are; switched on, they begin anew.
pub fn set_metering(on: bool) {
    // Held throughout, so that if two threads switch it on, the second changes nothing.
    let spots = latched(&SPOTS);
    if on && !metering() {
        let threads = latched(&THREADS);
        *latched(&MEETINGS) = None;
        for (place, spot) in spots.iter().enumerate() {
            spot.counts().begin_anew(taken_at(&threads, place.min(PLACES - 1)));
        }
    }
    METERING.store(on, Relaxed);
}

/// Adds a class of latches that meter themselves, whether or not [`metering`] is on; their figures do not
/// begin anew.
pub fn add_class(figures: OwnFigures) {
    latched(&OTHERS).push(figures);
}

/// A latch that was not free, from when that was found.
#[derive(Debug)]
pub struct Encounter {
    start: Instant,
    holder: Option<Site>,
    /// Until the encounter is over.
    _waiting: phases::InPhase,
}

impl Encounter {
    /// A meeting with the holder of the latch at `address`.
    pub fn begin(address: usize) -> Encounter {
        Encounter {
            start: Instant::now(),
            holder: holder_of(address),
            _waiting: phases::enter(phases::Phase::LatchWait),
        }
    }

    /// The caller holds the latch, or has given it up.
    pub fn end(self, spot: Spot, contention: Contention, waiter: Site) {
        if contention != Contention::default() {
            let nanoseconds = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            spot.count(contention, nanoseconds, self.holder, waiter);
        }
    }
}

/// Takes a latch, by `try_now` or by `lock`, and counts it.
#[cold]
#[inline(never)]
pub(super) fn acquire(
    spot: Spot,
    address: usize,
    waiter: Site,
    try_now: impl FnOnce() -> bool,
    lock: impl FnOnce() -> Contention,
) {
    if !try_now() {
        let encounter = Encounter::begin(address);
        encounter.end(spot, lock(), waiter);
    }
    spot.acquired(address, waiter);
}

fn holder_of(address: usize) -> Option<Site> {
    let holder = &LAST_HOLDERS[address / 8 % HOLDERS];
    let site = holder.site.load(Relaxed);
    if holder.address.load(Relaxed) != address || site.is_null() {
        return None;
    }
    // SAFETY: only pointers made from `&'static Location` are stored there.
    Some(unsafe { &*site })
}

/// Latches that all threads have taken of a place.
fn taken_at(threads: &[&'static Taken], place: usize) -> u64 {
    threads.iter().map(|taken| taken.counts[place].load(Relaxed)).sum()
}

impl Taken {
    fn adopt() -> &'static Taken {
        let mut threads = latched(&THREADS);
        // ORDER: Acquire sees the last owner's counts.
        let free = |taken: &&&Taken| taken.is_owned.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        if let Some(taken) = threads.iter().find(free) {
            return taken;
        }
        let counts = [const { AtomicU64::new(0) }; PLACES];
        let taken = &*Box::leak(Box::new(Taken { counts, is_owned: AtomicBool::new(true) }));
        threads.push(taken);
        taken
    }
}

impl Meter {
    pub const fn new(name: &'static str, segments: &'static [LatchCounts]) -> Meter {
        Meter { name, outside: LatchCounts::new(), segments }
    }

    /// The class itself, for a latch that is in no segment.
    pub fn outside(&'static self) -> Spot {
        Spot { meter: self, segment: None }
    }

    /// A segment of the class; beyond the last one the class itself.
    pub fn segment(&'static self, number: usize) -> Spot {
        Spot { meter: self, segment: (number < self.segments.len()).then_some(number) }
    }
}

impl LatchCounts {
    #[expect(clippy::new_without_default, reason = "for statics, which a default could not make")]
    pub const fn new() -> LatchCounts {
        LatchCounts {
            number: AtomicUsize::new(0),
            taken_before: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            spins: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            waited_ns_max: AtomicU64::new(0),
            times: [const { AtomicU64::new(0) }; WAIT_TIMES],
        }
    }

    fn begin_anew(&self, taken: u64) {
        self.taken_before.store(taken, Relaxed);
        let counts = [&self.contended, &self.spins, &self.waits, &self.waited_ns, &self.waited_ns_max];
        counts.into_iter().chain(&self.times).for_each(|count| count.store(0, Relaxed));
    }
}

impl Spot {
    fn counts(self) -> &'static LatchCounts {
        self.segment.map_or(&self.meter.outside, |number| &self.meter.segments[number])
    }

    fn place(self) -> usize {
        match self.counts().number.load(Relaxed) {
            0 => self.register(),
            number => number - 1,
        }
    }

    #[cold]
    fn register(self) -> usize {
        let mut spots = latched(&SPOTS);
        let known = spots.iter().position(|spot| std::ptr::eq(spot.counts(), self.counts()));
        let place = known.unwrap_or_else(|| {
            spots.push(self);
            spots.len() - 1
        });
        let place = place.min(PLACES - 1);
        self.counts().number.store(place + 1, Relaxed);
        place
    }

    /// Counts a latch that has been taken.
    pub fn acquired(self, address: usize, site: Site) {
        let place = self.place();
        // Without its cells, a thread that is ending goes uncounted.
        let _ = TAKEN.try_with(|owned| {
            let taken = owned.0.get().unwrap_or_else(|| {
                let taken = Taken::adopt();
                owned.0.set(Some(taken));
                taken
            });
            // ORDER: one writer; readers want a number.
            taken.counts[place].store(taken.counts[place].load(Relaxed) + 1, Relaxed);
        });
        let holder = &LAST_HOLDERS[address / 8 % HOLDERS];
        // ORDER: two words that may be of different holders; the table is a hint.
        holder.address.store(address, Relaxed);
        holder.site.store(std::ptr::from_ref(site).cast_mut(), Relaxed);
    }

    #[cold]
    fn count(self, contention: Contention, nanoseconds: u64, holder: Option<Site>, waiter: Site) {
        // Known from now on, also if nobody ever has the latch.
        self.place();
        let counts = self.counts();
        counts.contended.fetch_add(1, Relaxed);
        counts.spins.fetch_add(contention.spins, Relaxed);
        counts.waits.fetch_add(contention.waits, Relaxed);
        counts.waited_ns.fetch_add(nanoseconds, Relaxed);
        counts.waited_ns_max.fetch_max(nanoseconds, Relaxed);
        counts.times[time_place(nanoseconds)].fetch_add(1, Relaxed);
        let mut meetings = latched(&MEETINGS);
        let meeting = Meeting { class: self.meter.name, segment: self.segment, holder, waiter };
        let (count, time) = meetings.get_or_insert_default().entry(meeting).or_default();
        *count += 1;
        *time += nanoseconds;
    }
}

/// What has happened at the latches of a class, or of one segment of it, since metering was last switched on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassFigures {
    pub name: &'static str,
    /// `None`: the whole class.
    pub segment: Option<usize>,
    /// Latches taken.
    pub acquisitions: u64,
    /// Of them, those that were not free at first.
    pub contended: u64,
    /// Looks at a latch that was not free.
    pub spins: u64,
    /// Times asleep.
    pub waits: u64,
    /// From finding it taken to having it, in nanoseconds.
    pub waited_ns: u64,
    /// The longest of these times.
    pub waited_ns_max: u64,
    /// Contended acquisitions by the number of bits of their nanoseconds: place n took less than 2^n, and no
    /// less than half of that.
    pub times: Vec<u64>,
}

impl ClassFigures {
    /// All classes that were met with, by name, each followed by those of its segments that were.
    pub fn all() -> Vec<ClassFigures> {
        let spots = latched(&SPOTS).clone();
        let threads = latched(&THREADS);
        let mut figures: Vec<ClassFigures> = Vec::new();
        for spot in spots {
            let own = ClassFigures::of(spot, &threads);
            match figures.iter_mut().find(|whole| whole.name == own.name && whole.segment.is_none()) {
                Some(whole) => whole.add(&own),
                None => figures.push(ClassFigures { segment: None, ..own.clone() }),
            }
            figures.extend(own.segment.is_some().then_some(own));
        }
        figures.extend(latched(&OTHERS).iter().filter_map(|figures| figures()));
        figures.sort_unstable_by_key(|class| (class.name, class.segment));
        figures
    }

    fn of(spot: Spot, threads: &[&'static Taken]) -> ClassFigures {
        let counts = spot.counts();
        let taken = taken_at(threads, spot.place());
        ClassFigures {
            name: spot.meter.name,
            segment: spot.segment,
            acquisitions: taken.saturating_sub(counts.taken_before.load(Relaxed)),
            contended: counts.contended.load(Relaxed),
            spins: counts.spins.load(Relaxed),
            waits: counts.waits.load(Relaxed),
            waited_ns: counts.waited_ns.load(Relaxed),
            waited_ns_max: counts.waited_ns_max.load(Relaxed),
            times: counts.times.iter().map(|count| count.load(Relaxed)).collect(),
        }
    }

    fn add(&mut self, other: &ClassFigures) {
        self.acquisitions += other.acquisitions;
        self.contended += other.contended;
        self.spins += other.spins;
        self.waits += other.waits;
        self.waited_ns += other.waited_ns;
        self.waited_ns_max = self.waited_ns_max.max(other.waited_ns_max);
        self.times.iter_mut().zip(&other.times).for_each(|(time, other)| *time += other);
    }

    /// What `share` (0 to 1) of the contended acquisitions took at most, in nanoseconds: known within a
    /// factor of two.
    pub fn waited_ns_within(&self, share: f64) -> u64 {
        let wanted = share * self.times.iter().sum::<u64>() as f64;
        let mut so_far = 0;
        for (bits, count) in self.times.iter().enumerate() {
            so_far += count;
            if so_far > 0 && so_far as f64 >= wanted {
                return (1 << bits).min(self.waited_ns_max);
            }
        }
        0
    }
}

/// The waiters and the holders that they waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitFigures {
    pub class: &'static str,
    /// The segment of the latch, if it is in one.
    pub segment: Option<usize>,
    /// Where the latch was taken, if that is known.
    pub holder: Option<Site>,
    pub waiter: Site,
    pub count: u64,
    pub waited_ns: u64,
}

impl WaitFigures {
    /// Longest waits first.
    pub fn all() -> Vec<WaitFigures> {
        let meetings = latched(&MEETINGS);
        let mut all: Vec<WaitFigures> = meetings
            .iter()
            .flatten()
            .map(|(meeting, (count, waited_ns))| WaitFigures {
                class: meeting.class,
                segment: meeting.segment,
                holder: meeting.holder,
                waiter: meeting.waiter,
                count: *count,
                waited_ns: *waited_ns,
            })
            .collect();
        all.sort_unstable_by_key(|wait| std::cmp::Reverse(wait.waited_ns));
        all
    }
}

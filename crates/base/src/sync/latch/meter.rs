//! What happens at the latches of a class: how often they were taken, and where threads met.
//!
//! Off by default, and then a latch pays for a look at a flag that nobody writes. On, each thread counts what it takes in cells of its own; what
//! happens at a wait, which is dear anyway, is counted in shared memory. This measures the latches of `base::sync`, and so uses
//! none of them.
//!
//! Who holds a latch is remembered in a small table by the latch's address, written by each who takes one. So the holder that a waiter names is
//! who took that place of the table last: almost always the latch's holder, now and then one who has gone, or nobody.

use super::Contention;
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

/// Makes a class of latches, with the name it has in figures.
#[macro_export]
macro_rules! latch_class {
    ($(#[$attribute:meta])* $visibility:vis $class:ident, $name:literal) => {
        $(#[$attribute])*
        #[derive(Debug)]
        $visibility enum $class {}
        impl $crate::sync::LatchClass for $class {
            fn meter() -> &'static $crate::sync::Meter {
                static METER: $crate::sync::Meter = $crate::sync::Meter::new($name);
                &METER
            }
        }
    };
}

latch_class! {
    /// Of latches that have none of their own.
    pub Other, "other"
}

/// Classes that there can be; more share the last place.
const CLASSES_MAX: usize = 64;
/// Waits by their time: the place is the number of bits of its nanoseconds.
pub const WAIT_TIMES: usize = 40;
const HOLDERS: usize = 1_024;

/// The figures of one class.
#[derive(Debug)]
pub struct Meter {
    name: &'static str,
    /// Its place among the classes, from 1; 0 = none yet.
    number: AtomicUsize,
    contended: AtomicU64,
    spins: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
    times: [AtomicU64; WAIT_TIMES],
}

type Site = &'static Location<'static>;
type OwnFigures = fn() -> Option<ClassFigures>;

static METERING: AtomicBool = AtomicBool::new(false);
static CLASSES: Mutex<Vec<&'static Meter>> = Mutex::new(Vec::new());
static THREADS: Mutex<Vec<&'static Taken>> = Mutex::new(Vec::new());
/// Of latches that meter themselves.
static OTHERS: Mutex<Vec<OwnFigures>> = Mutex::new(Vec::new());
/// By class, holder and waiter: waits and nanoseconds.
static MEETINGS: Mutex<Option<HashMap<Meeting, (u64, u64)>>> = Mutex::new(None);
static LAST_HOLDERS: [Holder; HOLDERS] = [const { Holder::new() }; HOLDERS];

#[derive(PartialEq, Eq, Hash)]
struct Meeting {
    class: &'static str,
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

/// Latches that one thread has taken, by class. Lives on for the next thread.
#[repr(align(128))]
struct Taken {
    counts: [AtomicU64; CLASSES_MAX],
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

/// Switches counting on or off. Figures go on from where they were.
pub fn set_metering(on: bool) {
    METERING.store(on, Relaxed);
}

/// Adds a class of latches that meter themselves, whether or not [`metering`] is on.
pub fn add_class(figures: OwnFigures) {
    latched(&OTHERS).push(figures);
}

/// Takes a latch, by `try_fast` or by `lock`, and counts it.
#[cold]
#[inline(never)]
pub(super) fn acquire(
    meter: &'static Meter,
    address: usize,
    waiter: Site,
    try_fast: impl FnOnce() -> bool,
    lock: impl FnOnce() -> Contention,
) {
    if !try_fast() {
        let holder = holder_of(address);
        let start = Instant::now();
        let contention = lock();
        if contention != Contention::default() {
            meter.count(
                contention,
                u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
                holder,
                waiter,
            );
        }
    }
    acquired(meter, address, waiter);
}

/// Counts a latch that was taken without waiting.
pub(super) fn acquired(meter: &'static Meter, address: usize, site: Site) {
    let class = meter.place();
    // Without its cells, a thread that is ending goes uncounted.
    let _ = TAKEN.try_with(|owned| {
        let taken = owned.0.get().unwrap_or_else(|| {
            let taken = Taken::adopt();
            owned.0.set(Some(taken));
            taken
        });
        // ORDER: one writer; readers want a number.
        taken.counts[class].store(taken.counts[class].load(Relaxed) + 1, Relaxed);
    });
    let holder = &LAST_HOLDERS[address / 8 % HOLDERS];
    // ORDER: two words that may be of different holders; the table is a hint.
    holder.address.store(address, Relaxed);
    holder.site.store(std::ptr::from_ref(site).cast_mut(), Relaxed);
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

impl Taken {
    fn adopt() -> &'static Taken {
        let mut threads = latched(&THREADS);
        // ORDER: Acquire sees the last owner's counts.
        let free = |taken: &&&Taken| taken.is_owned.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        if let Some(taken) = threads.iter().find(free) {
            return taken;
        }
        let counts = [const { AtomicU64::new(0) }; CLASSES_MAX];
        let taken = &*Box::leak(Box::new(Taken { counts, is_owned: AtomicBool::new(true) }));
        threads.push(taken);
        taken
    }
}

impl Meter {
    pub const fn new(name: &'static str) -> Meter {
        Meter {
            name,
            number: AtomicUsize::new(0),
            contended: AtomicU64::new(0),
            spins: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            times: [const { AtomicU64::new(0) }; WAIT_TIMES],
        }
    }

    fn place(&'static self) -> usize {
        match self.number.load(Relaxed) {
            0 => self.register(),
            number => number - 1,
        }
    }

    #[cold]
    fn register(&'static self) -> usize {
        let mut classes = latched(&CLASSES);
        let known = classes.iter().position(|class| std::ptr::eq(*class, self));
        let place = known.unwrap_or_else(|| {
            classes.push(self);
            classes.len() - 1
        });
        let place = place.min(CLASSES_MAX - 1);
        self.number.store(place + 1, Relaxed);
        place
    }

    #[cold]
    fn count(&'static self, contention: Contention, nanoseconds: u64, holder: Option<Site>, waiter: Site) {
        self.contended.fetch_add(1, Relaxed);
        self.spins.fetch_add(contention.spins, Relaxed);
        self.waits.fetch_add(contention.waits, Relaxed);
        self.waited_ns.fetch_add(nanoseconds, Relaxed);
        self.times[time_place(nanoseconds)].fetch_add(1, Relaxed);
        let mut meetings = latched(&MEETINGS);
        let meeting = Meeting { class: self.name, holder, waiter };
        let (count, time) = meetings.get_or_insert_default().entry(meeting).or_default();
        *count += 1;
        *time += nanoseconds;
    }
}

/// What has happened at the latches of a class since the process began, while metering was on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassFigures {
    pub name: &'static str,
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
    /// Contended acquisitions by the number of bits of their nanoseconds: place n took less than 2^n, and no less than half of that.
    pub times: Vec<u64>,
}

impl ClassFigures {
    /// All classes that were met with, by name.
    pub fn all() -> Vec<ClassFigures> {
        let classes = latched(&CLASSES).clone();
        let threads = latched(&THREADS);
        let mut figures: Vec<ClassFigures> = classes
            .iter()
            .map(|class| {
                let place = class.place();
                ClassFigures {
                    name: class.name,
                    acquisitions: threads.iter().map(|taken| taken.counts[place].load(Relaxed)).sum(),
                    contended: class.contended.load(Relaxed),
                    spins: class.spins.load(Relaxed),
                    waits: class.waits.load(Relaxed),
                    waited_ns: class.waited_ns.load(Relaxed),
                    times: class.times.iter().map(|count| count.load(Relaxed)).collect(),
                }
            })
            .collect();
        figures.extend(latched(&OTHERS).iter().filter_map(|figures| figures()));
        figures.sort_unstable_by_key(|class| class.name);
        figures
    }
}

/// Who waited for whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitFigures {
    pub class: &'static str,
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

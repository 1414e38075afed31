//! The thread that writes dirty pages ahead of need, so that a miss finds a clean victim.

use crate::error::Error;
use crate::frames::FrameNo;
use crate::pool::Pool;
use crate::signal::Signal;
use base::sync::{Arc, Weak, thread};
use base::{Lsn, PageId};
use std::time::Duration;

/// Without a call the thread looks after this long, so that an idle pool becomes clean.
const PAUSE: Duration = Duration::from_millis(500);
/// While bytes move between shares it looks this soon, so that all of a budget can move in two seconds.
const PAUSE_OF_BALANCE: Duration = Duration::from_millis(25);
/// The wait after a failed write doubles from the first to the second of these.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(2);

impl Pool {
    pub(crate) fn start_write_back(self: &Arc<Pool>) {
        let signal = self.device.write_back.signal.clone();
        let pool = Arc::downgrade(self);
        let spawned = thread::Builder::new().name("write-back".to_owned()).spawn(move || run(&pool, &signal));
        // Without the thread pages are written when their frame is needed, which is slower but not wrong.
        self.device.write_back.signal.state.lock().thread = spawned.ok();
    }

    /// Writes as many dirty pages as the pace allows by now, those first that have been dirty for longest. In
    /// a hurry only as many as are too many. Ends early when only the caller still has the pool.
    fn write_ahead(self: &Arc<Pool>, now: Duration) -> Result<Next, Error> {
        let surplus = self.surplus_dirt();
        let is_urgent = surplus > 0;
        let rate = self.device.backend.rate(is_urgent);
        let wanted = if is_urgent { surplus } else { usize::MAX };
        let allowed = self.device.backend.pace.lock().allowed(now, rate).min(wanted);
        let frames = self.device.dirty.iter(self.growth.free.frames_made());
        let mut dirty: Vec<(Option<Lsn>, PageId, FrameNo)> = frames
            .map(|frame| (self.header(frame).oldest_change(), self.header(frame).page_id(), frame))
            .collect();
        let is_all = dirty.len() <= allowed;
        if !is_all {
            dirty.sort_unstable();
            dirty.truncate(allowed);
        }
        let mut pages: Vec<(PageId, FrameNo)> = dirty.into_iter().map(|(_, id, frame)| (id, frame)).collect();
        // In the order of the device.
        pages.sort_unstable();
        for batch in pages.chunks(self.batch_max()).take_while(|_| Arc::strong_count(self) > 1) {
            let written = self.write_pages(batch)?;
            self.device.backend.pace.lock().spend(now, written, rate);
        }
        // At most the pause, so that a change of the settings is noticed.
        let wait = self.device.backend.pace.lock().wait(now, self.batch_max(), rate).min(PAUSE);
        Ok(match (is_all, is_urgent) {
            // More pages have become dirty meanwhile.
            (true, _) if self.surplus_dirt() > 0 => Next::AtOnce,
            (true, _) => Next::WhenCalled,
            (false, true) => Next::After(wait),
            (false, false) => Next::AfterOrWhenCalled(wait),
        })
    }
}

/// When the thread looks again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    AtOnce,
    /// When too much is dirty, or in a while.
    WhenCalled,
    /// When more may be written.
    After(Duration),
    /// The same, or when it has become urgent.
    AfterOrWhenCalled(Duration),
}

impl Next {
    /// The same, but no later than that.
    fn within(self, pause: Duration) -> Next {
        match self {
            Next::AtOnce => Next::AtOnce,
            Next::WhenCalled => Next::AfterOrWhenCalled(pause),
            Next::After(wait) => Next::After(wait.min(pause)),
            Next::AfterOrWhenCalled(wait) => Next::AfterOrWhenCalled(wait.min(pause)),
        }
    }
}

fn run(pool: &Weak<Pool>, signal: &Signal) {
    let mut retry = RETRY_FIRST;
    let mut next = Next::WhenCalled;
    while match next {
        Next::AtOnce => signal.rest(Duration::ZERO),
        Next::WhenCalled => signal.sleep(PAUSE),
        Next::After(wait) => signal.rest(wait),
        Next::AfterOrWhenCalled(wait) => signal.sleep(wait),
    } {
        let Some(pool) = pool.upgrade() else { return };
        let has_moved = pool.growth.budget.as_ref().is_some_and(|budget| budget.balance());
        match pool.write_ahead(pool.device.backend.now()) {
            Ok(after) => {
                retry = RETRY_FIRST;
                next = after;
            }
            Err(_) => {
                next = Next::AfterOrWhenCalled(retry);
                retry = (retry * 2).min(RETRY_MAX);
            }
        }
        if has_moved {
            next = next.within(PAUSE_OF_BALANCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CacheConfig, Detach, IoConfig, WriteAhead, WriteBack};
    use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use base::{FileId, PageNo};
    use vfs::{Create, MemVfs, Vfs};

    const FILE: FileId = FileId(1);
    const PAGE_SIZE: usize = 1024;

    #[derive(Debug, Default)]
    struct Log(AtomicU64);

    impl WriteAhead for Log {
        fn position(&self) -> Lsn {
            Lsn(self.0.load(Relaxed))
        }
        fn make_durable(&self, _lsn: Lsn) -> Result<(), String> {
            Ok(())
        }
    }

    struct Rig {
        pool: Arc<Pool>,
        log: Arc<Log>,
    }

    /// 800 frames, so 400 dirty pages are no cause for hurry. There is no thread, so that only the test
    /// writes.
    fn rig(capacity: u32, capacity_max: u32) -> Rig {
        let log = Arc::new(Log::default());
        let config = CacheConfig {
            write_back: WriteBack::AtEvictionOnly,
            io: IoConfig { capacity, capacity_max, ..IoConfig::default() },
            log: Some(log.clone()),
            ..CacheConfig::new(crate::size_for_frames(800, PAGE_SIZE), PAGE_SIZE)
        };
        let pool = Pool::new(config).unwrap();
        let file = MemVfs::new().open("file".as_ref(), Create::New).unwrap();
        pool.attach(FILE, "file".into(), file).unwrap();
        Rig { pool, log }
    }

    impl Rig {
        fn dirty(&self, pages: impl Iterator<Item = u32>) {
            for page in pages {
                self.log.0.fetch_add(8, Relaxed);
                self.pool.create(PageId::new(FILE, PageNo(page))).unwrap();
            }
        }

        fn written(&self, at_ms: u64) -> (u64, Next) {
            let before = self.pool.status().counters.writes;
            // Somebody else has the cache as well.
            let _other = self.pool.clone();
            let next = self.pool.write_ahead(Duration::from_millis(at_ms)).unwrap();
            (self.pool.status().counters.writes - before, next)
        }
    }

    #[test]
    fn without_hurry_so_many_pages_are_written_as_the_capacity_says() {
        let rig = rig(40, 1_000_000);
        rig.dirty(0..90);
        assert_eq!(rig.written(0).0, 0);
        assert_eq!(rig.written(500).0, 20);
        let (written, next) = rig.written(750);
        assert_eq!(written, 10);
        assert!(matches!(next, Next::AfterOrWhenCalled(wait) if !wait.is_zero()), "{next:?}");
        assert_eq!(rig.written(751).0, 0);
        // Not more than a second is made up for.
        assert_eq!(rig.written(60_000).0, 40);
        assert_eq!(rig.written(61_000), (20, Next::WhenCalled));
        assert_eq!(rig.pool.status().blocks.not_flushed, 0);
    }

    #[test]
    fn in_hurry_it_goes_up_to_the_maximum_and_then_slower_again() {
        let rig = rig(10, 100);
        rig.dirty(0..600);
        assert_eq!(rig.written(0).0, 0);
        let (written, next) = rig.written(1_000);
        assert_eq!(written, 100);
        assert!(matches!(next, Next::After(wait) if !wait.is_zero()), "{next:?}");
        assert_eq!(rig.written(2_000).0, 100);
        // Four hundred of eight hundred are no hurry any more.
        assert_eq!(rig.written(3_000).0, 10);
        rig.pool.detach(FILE, Detach::Discard).unwrap();
    }

    #[test]
    fn the_capacity_can_be_changed_and_be_none() {
        let rig = rig(10, 20);
        rig.dirty(0..100);
        assert_eq!(rig.written(1_000).0, 10);
        rig.pool.set_io_capacity(60, 20);
        assert_eq!(rig.written(2_000).0, 60);
        rig.dirty(0..500);
        // The maximum is never below the capacity.
        assert_eq!(rig.written(3_000).0, 60);
        rig.pool.set_io_capacity(60, u32::MAX);
        // What is too much, and no more of it at once.
        assert_eq!(rig.written(3_000).0, 40);
    }

    #[test]
    fn what_has_been_dirty_for_longest_goes_first() {
        let rig = rig(30, 30);
        rig.dirty((0..90).rev());
        assert_eq!(rig.written(1_000).0, 30);
        let is_dirty = |page: u32| {
            let mut dirty = false;
            rig.pool.count_dirty(|id| dirty |= id.page.0 == page);
            dirty
        };
        assert!((0..60).all(is_dirty) && !(60..90).any(is_dirty));
    }

    #[test]
    fn a_log_without_room_has_the_pages_with_old_changes_written_and_no_others() {
        let rig = rig(100, 1_000);
        rig.dirty(0..80);
        rig.pool.write_older_than(Lsn(8 * 40)).unwrap();
        assert_eq!(rig.pool.status().blocks.not_flushed, 41);
    }
}

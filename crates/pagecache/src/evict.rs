//! Finding a frame for a page: a free one, else one from the segment that can best spare it.

use crate::cold_pages::Ticket;
use crate::compressed;
use crate::error::Error;
use crate::files::copy_of;
use crate::frames::{DIRTY, FrameNo};
use crate::index::Geometry;
use crate::local;
use crate::park::pause;
use crate::pool::Pool;
use crate::replacement::Take;
use crate::state::Mode;
use crate::write_back::WriteOut;
use base::PageId;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::thread;

/// So many dirty or latched candidates are passed over in search of a clean one. Then a dirty one is written.
const CANDIDATES_MAX: usize = 32;

/// What one segment offers.
enum Victim {
    Clean(FrameNo),
    /// Its page belongs to a compressed file and is to be compressed now.
    Compressible(FrameNo, PageId, Ticket),
    /// To be written first.
    Dirty(FrameNo, PageId),
    None,
}

impl Pool {
    /// A frame that is the caller's alone, for a page of segment `number`. No mutex is held by the caller.
    ///
    /// The search ends when `is_wanted` fails: a pool whose last file has gone has no frames, and gets none.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if there is none and the caller holds latches without the permit (pagecache R8), the
    /// error of `is_wanted`, and that of a page that could not be written.
    pub(crate) fn take_frame(
        &self,
        number: usize,
        is_wanted: impl Fn() -> Result<(), Error>,
    ) -> Result<FrameNo, Error> {
        let mut rounds = 0_u32;
        loop {
            is_wanted()?;
            if let Some(frame) = self.growth.free.take() {
                return Ok(frame);
            }
            if self.grow()? {
                continue;
            }
            match self.evict_somewhere(number, rounds) {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                // Another page could not be written. A frame that needs no write may turn up, unless all are
                // dirty.
                Err(error) if rounds > 3 => return Err(error),
                Err(_) => {}
            }
            rounds += 1;
            if local::holds_latches() && rounds > 3 {
                if !local::has_permit(self.id()) {
                    return Err(Error::Busy);
                }
                if !self.waiting.permits.set_starving(true) {
                    self.waiting.lot.wake_all();
                }
            }
            pause(rounds);
        }
    }

    /// One round over the segments: segment `own` first if it has its fair share, else the fullest first.
    pub(crate) fn evict_somewhere(&self, own: usize, round: u32) -> Result<Option<FrameNo>, Error> {
        let segments = Geometry(self.hot.geometry.load(Relaxed)).segments();
        let fair = self.growth.frame_count.load(Relaxed) / segments;
        let resident = |number: usize| self.shells[number].resident.load(Relaxed);
        let first = if resident(own) >= fair.max(1) {
            own
        } else {
            (0..segments).max_by_key(|&number| resident(number)).unwrap_or(own)
        };
        let mut failure = None;
        // In the common case the first turn finds a victim. The others are for very small pools and failing
        // devices.
        for turn in 0..segments {
            let number = (first + turn) % segments;
            if resident(number) == 0 {
                continue;
            }
            match self.evict_from(number) {
                victim @ (Victim::Clean(frame) | Victim::Compressible(frame, ..)) => {
                    if let Victim::Compressible(_, id, ticket) = victim {
                        self.cold_pages.put(
                            id,
                            ticket,
                            compressed::compress_for_memory(&copy_of(self.page(frame))),
                        );
                    }
                    if self.waiting.permits.is_starving() && local::has_permit(self.id()) {
                        self.waiting.permits.set_starving(false);
                    }
                    return Ok(Some(frame));
                }
                Victim::Dirty(frame, id) => match self.write_out(frame, id) {
                    // The page is clean now, and most likely the next victim.
                    Ok(WriteOut::Written | WriteOut::NothingToDo) => return Ok(None),
                    Ok(WriteOut::InFlight | WriteOut::Latched) => {}
                    Err(error) => failure = Some(error),
                },
                Victim::None => {}
            }
            if round == 0 && turn > 0 && failure.is_none() {
                // Look at two segments before giving others the chance to unlatch theirs.
                break;
            }
        }
        failure.map_or(Ok(None), Err)
    }

    fn evict_from(&self, number: usize) -> Victim {
        let mut segment = self.lock_shell(number);
        let mut dirty = None;
        let mut candidates = 0;
        let victim = segment.evict(self.shared(), &mut |frame| {
            let header = self.header(frame);
            candidates += 1;
            if self.latch(frame).begin_evict() {
                // Nobody can latch or dirty the page any more (pagecache R5).
                if header.flags() == 0 {
                    return Take::Taken;
                }
                let is_dirty = header.flags() & DIRTY != 0;
                self.latch(frame).abort_evict();
                if is_dirty && dirty.is_none() {
                    dirty = Some((frame, header.page_id()));
                }
            }
            if candidates >= CANDIDATES_MAX && dirty.is_some() { Take::Stop } else { Take::Skip }
        });
        match (victim, dirty) {
            (Some(frame), _) => {
                self.shells[number].resident.store(segment.resident(), Relaxed);
                let id = self.header(frame).page_id();
                let ticket = self.expect_cold_page(id);
                drop(segment);
                self.latch(frame).finish_evict();
                ticket.map_or(Victim::Clean(frame), |ticket| Victim::Compressible(frame, id, ticket))
            }
            (None, Some((frame, id))) => Victim::Dirty(frame, id),
            (None, None) => Victim::None,
        }
    }

    /// A ticket for a page that has just left its segment and may become a cold page. The segment's mutex is
    /// held.
    fn expect_cold_page(&self, id: PageId) -> Option<Ticket> {
        if !self.cold_pages.is_used() || !self.file(id).is_ok_and(|file| file.is_compressed()) {
            return None;
        }
        self.cold_pages.expect(id)
    }

    /// Waits until no other thread is loading the frame or giving it up. The caller holds no latch.
    pub(crate) fn wait_settled(&self, frame: FrameNo) {
        while matches!(self.header(frame).state.load().mode(), Mode::Loading | Mode::Evicting) {
            thread::yield_now();
        }
    }
}

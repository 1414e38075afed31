//! Appending: reserve, copy, and let the leader know.

use crate::error::{Error, Result};
use crate::format::{
    ALIGNMENT, PAYLOAD_MAX, RECORD_HEADER_BYTES, body_sum, place_sum, record_bytes, record_header,
};
use crate::log::Log;
use crate::ring::Gather;
use crate::slots::Slot;
use base::Lsn;
use base::phases;
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use base::sync::thread;
use std::ops::Range;

impl Log {
    /// Appends a record whose payload is `parts`, one behind the other, and gives its place: `start` names
    /// the record, `end` is what to flush up to. The record is in memory. A thread that needs it on the
    /// device calls [`Log::flush`].
    ///
    /// If the ring buffer is full this waits, or writes it out if no other thread does (wal R5). A record may
    /// be larger than the ring. Then it goes through the ring in pieces (wal R6).
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`]: nothing was appended. [`Error::Poisoned`]: the record will not be on the device,
    /// or not whole.
    pub fn append(&self, kind: u8, parts: &[&[u8]]) -> Result<Range<Lsn>> {
        let _log = phases::enter(phases::Phase::Log);
        self.check_poison()?;
        let payload = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        if payload > PAYLOAD_MAX {
            return Err(Error::TooLong { bytes: payload });
        }
        // Before the reservation, because from there to the end of the copy leaders may have to wait for this
        // thread (wal R1).
        let body = body_sum(kind, parts, payload);
        let bytes = record_bytes(payload);
        let slot = self.claim_slot()?;
        // ORDER: Release: a leader that sees this end of the log sees the claim of the slot (wal R3).
        let start = self.next.fetch_add(bytes, Release);
        slot.move_to(start);
        let mut copy = Copy { log: self, slot: Some(slot), position: start, room: self.room() };
        let checksum = place_sum(body, Lsn(start));
        let header = record_header((RECORD_HEADER_BYTES + payload) as u32, checksum, kind);
        let mut put = |word| copy.put(word);
        let mut gather = Gather::default();
        gather.push(&header, &mut put)?;
        for part in parts {
            gather.push(part, &mut put)?;
        }
        gather.finish(&mut put)?;
        copy.complete(start + bytes);
        Ok(Lsn(start)..Lsn(start + bytes))
    }

    fn claim_slot(&self) -> Result<Slot<'_>> {
        loop {
            if let Some(slot) = self.slots.claim(&self.next) {
                return Ok(slot);
            }
            self.check_poison()?;
            thread::yield_now();
        }
    }

    /// The first position that does not fit into the ring.
    fn room(&self) -> u64 {
        // ORDER: Acquire meets the leader's Release: the leader has read the words that are about to be
        // overwritten (wal R2).
        self.written.load(Acquire) + self.ring.bytes()
    }

    /// Returns when the ring has room at `position`. The caller has copied up to there and has moved its slot
    /// there.
    fn wait_for_room(&self, position: u64) -> Result<u64> {
        // ORDER: Relaxed: only people read this number.
        self.counters.waits.fetch_add(1, Relaxed);
        let mut leading = self.leading.lock();
        loop {
            let room = self.room();
            if position < room {
                return Ok(room);
            }
            self.check_poison()?;
            if leading.has_leader {
                leading = self.write_done.wait(leading);
                continue;
            }
            let leadership = self.take_leadership(&mut leading);
            drop(leading);
            let has_progress = self.write_complete(&leadership)?.has_progress;
            drop(leadership);
            if !has_progress {
                // A thread below is still copying, and does not need this one for that.
                thread::yield_now();
            }
            leading = self.leading.lock();
        }
    }
}

/// A record that is being copied into the ring.
struct Copy<'l> {
    log: &'l Log,
    slot: Option<Slot<'l>>,
    /// The position of the next word.
    position: u64,
    /// Up to this position there is room.
    room: u64,
}

impl Copy<'_> {
    #[inline]
    fn put(&mut self, word: u64) -> Result<()> {
        if self.position >= self.room {
            self.make_room()?;
        }
        self.log.ring.put(self.position, word);
        self.position += ALIGNMENT;
        Ok(())
    }

    #[cold]
    fn make_room(&mut self) -> Result<()> {
        self.room = self.log.room();
        if self.position < self.room {
            return Ok(());
        }
        // What is copied may be written by the leader. Otherwise a record larger than the ring could not go
        // on (wal R6).
        if let Some(slot) = &self.slot {
            slot.move_to(self.position);
        }
        self.room = self.log.wait_for_room(self.position)?;
        Ok(())
    }

    fn complete(mut self, end: u64) {
        assert_eq!(self.position, end, "a record is as long as was reserved");
        if let Some(slot) = self.slot.take() {
            slot.complete();
        }
    }
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        // The slot is not given back, so nothing from the hole on is ever called complete (wal R7).
        if self.slot.is_some() && self.log.poison.get().is_none() {
            self.log.poison("an append was cut short".to_string());
        }
    }
}

//! One file's bytes: as the process sees them, as the device has them, and what lies between the two.

use super::dice::{ALWAYS, Dice, Luck, NEVER, Odds};

/// Bytes that a device writes as a whole. Sectors are counted from the file's first byte.
pub const SECTOR: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Content {
    /// What reads see: the operating system's cache.
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync, oldest first.
    unsynced: Vec<Change>,
    /// Set once a failed sync has forgotten dirty data: the cache as it was then. It holds bytes that are
    /// neither on the device nor unsynced, and a later write of the same sector takes them along.
    forgotten: Option<Vec<u8>>,
    /// The handle that holds the advisory lock.
    pub(super) locked_by: Option<u64>,
}

#[derive(Debug)]
enum Change {
    Write { start: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        image.resize(self.length_after(image.len()), 0);
        if let Change::Write { start, bytes } = self {
            image[*start..start + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn length_after(&self, before: usize) -> usize {
        match self {
            Change::Write { start, bytes } => before.max(start + bytes.len()),
            Change::SetLen(len) => *len,
        }
    }
}

impl Content {
    /// A file that has always been on the device.
    fn stored(bytes: Vec<u8>) -> Content {
        Content { live: bytes.clone(), durable: bytes, ..Content::default() }
    }

    pub(super) fn live(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn write(&mut self, bytes: &[u8], start: usize) {
        if !bytes.is_empty() {
            self.change(Change::Write { start, bytes: bytes.to_vec() });
        }
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.change(Change::SetLen(len));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        if self.forgotten.is_some() {
            self.durable = self.settle(ALWAYS, ALWAYS, &mut Dice::new(0));
            self.forgotten = Some(self.live.clone());
            self.unsynced.clear();
        } else {
            for change in self.unsynced.drain(..) {
                change.apply(&mut self.durable);
            }
        }
    }

    /// A sync that fails as Linux lets it fail: some of the data was written, all of it is called clean, and
    /// the next sync succeeds. Reads still see what is lost.
    pub(super) fn sync_and_forget(&mut self, dice: &mut Dice) {
        let luck = dice.luck();
        self.durable = self.crash(luck, dice).durable;
        self.forgotten = Some(self.live.clone());
        self.unsynced.clear();
    }

    /// The file as a crash now leaves it.
    pub(super) fn crash(&self, luck: Luck, dice: &mut Dice) -> Content {
        let (data, length) = (dice.odds(luck), dice.odds(luck));
        Content::stored(self.settle(data, length, dice))
    }

    /// The device after some of the unsynced changes have reached it.
    ///
    /// The cache hands over whole sectors: a sector on the device is one that the cache held at some time, so
    /// two small writes to one sector cannot arrive as the second without the first. Sectors arrive in any
    /// order. The lengths of a file follow each other in the order in which they were set, and the one that
    /// survives is independent of the data: a length without its data reads as zeroes, data beyond the length
    /// are gone.
    fn settle(&self, data: Odds, length: Odds, dice: &mut Dice) -> Vec<u8> {
        let mut cache = self.forgotten.as_ref().unwrap_or(&self.durable).clone();
        let mut image = self.durable.clone();
        let mut lengths_left = match (length, self.count_lengths(cache.len())) {
            (NEVER, _) => 0,
            (ALWAYS, count) => count,
            (_, count) => dice.below(count + 1),
        };
        let mut image_len = image.len();
        for change in &self.unsynced {
            let before = cache.len();
            change.apply(&mut cache);
            if cache.len() != before && lengths_left > 0 {
                lengths_left -= 1;
                image_len = cache.len();
                // Whatever lay behind a cut does not come back when the file grows again.
                image.truncate(image_len);
            }
            if let Change::Write { start, bytes } = change {
                let first = start / SECTOR;
                let count = (start + bytes.len()).div_ceil(SECTOR) - first;
                for (sector, arrives) in arrivals(count, data, dice).into_iter().enumerate() {
                    if arrives {
                        copy_sector(&cache, &mut image, first + sector);
                    }
                }
            }
        }
        image.resize(image_len, 0);
        image
    }

    /// How often the unsynced changes changed the length.
    fn count_lengths(&self, start: usize) -> usize {
        let mut len = start;
        let mut count = 0;
        for change in &self.unsynced {
            let after = change.length_after(len);
            count += usize::from(after != len);
            len = after;
        }
        count
    }
}

/// Which of the sectors of one write reach the device: all, none, the first few, or any.
fn arrivals(count: usize, odds: Odds, dice: &mut Dice) -> Vec<bool> {
    if dice.chance(odds) {
        return vec![true; count];
    }
    if odds == NEVER {
        return vec![false; count];
    }
    match dice.below(3) {
        0 => vec![false; count],
        1 => {
            let arrived = dice.below(count + 1);
            (0..count).map(|sector| sector < arrived).collect()
        }
        _ => (0..count).map(|_| dice.chance(ALWAYS / 2)).collect(),
    }
}

/// Copies one sector; behind the end of the file the cache holds zeroes.
fn copy_sector(cache: &[u8], image: &mut Vec<u8>, sector: usize) {
    let (start, end) = (sector * SECTOR, (sector + 1) * SECTOR);
    if image.len() < end {
        image.resize(end, 0);
    }
    let cached = &cache[start..cache.len().min(end)];
    image[start..start + cached.len()].copy_from_slice(cached);
    image[start + cached.len()..end].fill(0);
}

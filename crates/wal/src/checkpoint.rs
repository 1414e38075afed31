//! The checkpoint says where a start begins to read the log. It lies in a small file of its own.
//!
//! The file has two copies, 4096 bytes apart, which are written in turn, so that a write that is cut short
//! leaves the other. A copy, little-endian:
//!
//! | byte | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `LWCHECK\1` |
//! | 8 | 4 | format, 1 |
//! | 12 | 4 | checksum of all other bytes |
//! | 16 | 8 | sequence, from 1: the higher one holds |
//! | 24 | 8 | LSN of the checkpoint |
//! | 32 | 8 | needed LSN: nothing below it is read again |
//! | 40 | 88 | eleven words of the owner |

use crate::error::{Error, Result};
use crate::files::sync_dir;
use crate::format::{u32_at, u64_at};
use base::Lsn;
use base::checksum::checksum;
use base::sync::Arc;
use std::io;
use std::path::{Path, PathBuf};
use vfs::{Create, File, Vfs};

/// How many words the owner stores with a checkpoint, such as next ids.
pub const OWNER_WORDS: usize = 11;

const NAME: &str = "checkpoint";
const MAGIC: u64 = u64::from_le_bytes(*b"LWCHECK\x01");
const FORMAT: u32 = 1;
const COPY_BYTES: usize = 128;
/// Each copy is in a block of its own, so that a torn write damages only one.
const COPY_DISTANCE: u64 = 4096;
const FILE_BYTES: u64 = 2 * COPY_DISTANCE;
const CHECKSUM_AT: usize = 12;
const OWNER_AT: usize = 40;

const _: () = assert!(OWNER_AT + 8 * OWNER_WORDS == COPY_BYTES);
const _: () = assert!(COPY_BYTES as u64 <= COPY_DISTANCE);

/// A point from which the owner can bring its files up to date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Where the log was when the checkpoint was taken, or the record that describes it: the owner's choice.
    pub lsn: Lsn,
    /// Recovery reads from here. Files wholly below may be removed.
    pub needed: Lsn,
    /// The owner's words. The log does not read them.
    pub owner: [u64; OWNER_WORDS],
}

impl Checkpoint {
    /// The last durable checkpoint of the log in `dir`; `None` if there was none yet.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::WrongFormat`] if both copies were written and neither is whole, or one is of
    /// another format.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Checkpoint>> {
        Ok(read(vfs, dir)?.map(|(_, checkpoint)| checkpoint))
    }
}

/// The checkpoint file of a log that is written to.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    path: PathBuf,
    file: Arc<dyn File>,
    /// The last that is known to be durable, and its sequence.
    durable: Option<(u64, Checkpoint)>,
}

impl Checkpoints {
    /// Opens the file of the log in `dir`; makes it if there is none.
    pub fn open(vfs: &dyn Vfs, dir: &Path) -> Result<Checkpoints> {
        let path = dir.join(NAME);
        let io = |source| Error::io(&path, source);
        let durable = read(vfs, dir)?;
        let file = vfs.open(&path, Create::IfMissing).map_err(io)?;
        if file.len().map_err(io)? < FILE_BYTES {
            file.set_len(FILE_BYTES).map_err(io)?;
        }
        // What was read may be known to the operating system only; from here on it is relied on.
        file.sync().map_err(io)?;
        sync_dir(vfs, dir)?;
        Ok(Checkpoints { path, file, durable })
    }

    pub fn durable(&self) -> Option<Checkpoint> {
        self.durable.map(|(_, checkpoint)| checkpoint)
    }

    /// Makes the checkpoint durable. After an error the one before it holds, or this one. A start may begin
    /// at either, and the next attempt writes the same copy.
    pub fn write(&mut self, checkpoint: Checkpoint) -> Result<()> {
        let sequence = self.durable.map_or(1, |(sequence, _)| sequence + 1);
        let io = |source| Error::io(&self.path, source);
        // CRASH: the copy with the durable checkpoint is not touched.
        self.file.write_at(&encode(sequence, &checkpoint), place(sequence)).map_err(io)?;
        self.file.sync().map_err(io)?;
        self.durable = Some((sequence, checkpoint));
        Ok(())
    }
}

fn place(sequence: u64) -> u64 {
    sequence % 2 * COPY_DISTANCE
}

fn sum_of(bytes: &[u8; COPY_BYTES]) -> u32 {
    checksum(checksum(0, &bytes[..CHECKSUM_AT]), &bytes[CHECKSUM_AT + 4..])
}

fn encode(sequence: u64, checkpoint: &Checkpoint) -> [u8; COPY_BYTES] {
    let mut bytes = [0; COPY_BYTES];
    bytes[0..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&sequence.to_le_bytes());
    bytes[24..32].copy_from_slice(&checkpoint.lsn.0.to_le_bytes());
    bytes[32..40].copy_from_slice(&checkpoint.needed.0.to_le_bytes());
    for (place, word) in bytes[OWNER_AT..].chunks_exact_mut(8).zip(checkpoint.owner) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let sum = sum_of(&bytes);
    bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The contents of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Empty,
    Damaged,
    Format(u32),
    Whole(u64, Checkpoint),
}

fn decode(bytes: &[u8; COPY_BYTES]) -> Found {
    if *bytes == [0; COPY_BYTES] {
        return Found::Empty;
    }
    if u64_at(bytes, 0) != MAGIC || u32_at(bytes, CHECKSUM_AT) != sum_of(bytes) {
        return Found::Damaged;
    }
    if u32_at(bytes, 8) != FORMAT {
        return Found::Format(u32_at(bytes, 8));
    }
    let checkpoint = Checkpoint {
        lsn: Lsn(u64_at(bytes, 24)),
        needed: Lsn(u64_at(bytes, 32)),
        owner: std::array::from_fn(|word| u64_at(bytes, OWNER_AT + 8 * word)),
    };
    Found::Whole(u64_at(bytes, 16), checkpoint)
}

fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<(u64, Checkpoint)>> {
    let path = dir.join(NAME);
    let io = |source| Error::io(&path, source);
    if !vfs.exists(&path).map_err(io)? {
        return Ok(None);
    }
    let file = vfs.open(&path, Create::Never).map_err(io)?;
    let mut last = None;
    let mut damaged = 0;
    for number in 0..2 {
        let mut bytes = [0; COPY_BYTES];
        match file.read_at(&mut bytes, place(number)) {
            Ok(()) => {}
            // The file was cut short while it was made, so there was no checkpoint yet.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => continue,
            Err(error) => return Err(io(error)),
        }
        match decode(&bytes) {
            Found::Empty => {}
            Found::Damaged => damaged += 1,
            Found::Format(format) => {
                let why = format!("its format is {format}, this build reads {FORMAT}");
                return Err(Error::WrongFormat { path, why });
            }
            Found::Whole(sequence, checkpoint) => {
                if last.is_none_or(|(before, _)| before < sequence) {
                    last = Some((sequence, checkpoint));
                }
            }
        }
    }
    if damaged == 2 {
        let why = "both checkpoints are damaged".to_string();
        return Err(Error::WrongFormat { path, why });
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_checkpoint_is_found() {
        let checkpoint = Checkpoint { lsn: Lsn(4711), needed: Lsn(42), owner: [7; OWNER_WORDS] };
        let mut bytes = encode(3, &checkpoint);
        assert_eq!(decode(&bytes), Found::Whole(3, checkpoint));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bytes), Found::Damaged, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

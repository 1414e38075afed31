//! From bytes to frames and back, and which settings are valid.

use crate::config::Limits;
use crate::error::Error;
use crate::frames::{Header, Link};
use crate::local::SEGMENTS_MAX;
use crate::page::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};

/// The least frames of a pool in use. They are enough for every operation of the engine: a split holds at
/// most seven pages, and only the thread with the frame permit holds pages while it waits (pagecache R8). The
/// rest is slack.
///
/// Models have fewer, so that they evict soon. Models of the engine in which pages are split ask for more.
pub const FRAMES_MIN: usize = if cfg!(feature = "shuttle") { 3 } else { 16 };

/// Every access to a word of a page is a step of a model, so the pages of models are small.
const PAGE_BYTES_MIN: usize = if cfg!(feature = "shuttle") { 128 } else { PAGE_SIZE_MIN };

/// Bytes a frame costs besides its page: header, link, at two to four frames a bucket up to 32 bytes
/// of index and 16 of shortcuts, and a ghost entry of the replacement policy.
const OVERHEAD_BYTES: usize = size_of::<Header>() + size_of::<Link>() + 32 + 16 + 32;

/// The frames that a budget has room for, [`FRAMES_MIN`] at least.
pub(crate) fn frames_for(size_bytes: usize, page_size: usize) -> usize {
    (size_bytes / (page_size + OVERHEAD_BYTES)).max(FRAMES_MIN)
}

/// The smallest budget, in bytes, that has room for so many pages of `page_size` bytes.
pub fn size_for_frames(frames: usize, page_size: usize) -> usize {
    frames * (page_size + OVERHEAD_BYTES)
}

/// Segments in use for a setting: 0 means one mutex.
pub(crate) fn segments_for(setting: u32) -> usize {
    (setting as usize).clamp(1, SEGMENTS_MAX)
}

pub(crate) fn checked_limits(limits: Limits) -> Result<Limits, Error> {
    if !(1..=100).contains(&limits.division_limit) || limits.age_threshold < 100 {
        let why = format!(
            "division limit {} (1 to 100) or age threshold {} (100 or more) out of range",
            limits.division_limit, limits.age_threshold
        );
        return Err(Error::Config { why });
    }
    Ok(limits)
}

/// Refuses a page size that no pool can have.
pub(crate) fn check_page_size(page_size: usize) -> Result<(), Error> {
    if page_size.is_power_of_two() && (PAGE_BYTES_MIN..=PAGE_SIZE_MAX).contains(&page_size) {
        return Ok(());
    }
    let why = format!("page size {page_size}: a power of two from 1 KiB to 64 KiB is needed");
    Err(Error::Config { why })
}

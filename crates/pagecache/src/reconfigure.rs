//! Changing a cache while it is in use. Pages stay where they can; readers are never stopped.

use crate::cache::{FRAMES_MIN, PageCache};
use crate::config::{HitPath, Limits, Reconfigure};
use crate::error::Error;
use crate::frames::{Header, Link};
use crate::index::Geometry;
use crate::local::SEGMENTS_MAX;
use base::sync::atomic::Ordering::Relaxed;

/// Bytes a frame costs besides its page: header, link, and at two to four frames a bucket
/// up to 32 bytes of index.
const OVERHEAD_BYTES: usize = size_of::<Header>() + size_of::<Link>() + 32;

/// The frames that a budget has room for, [`FRAMES_MIN`] at least.
pub(crate) fn frames_for(size_bytes: usize, page_size: usize) -> usize {
    (size_bytes / (page_size + OVERHEAD_BYTES)).max(FRAMES_MIN)
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

impl PageCache {
    /// Tells every segment what it may expect.
    pub(crate) fn apply_limits(&self, frames: usize, limits: Limits) {
        let segments = Geometry(self.hot.geometry.load(Relaxed)).segments();
        for shell in &self.shells[..segments] {
            shell.segment.lock().set_limits(frames.div_ceil(segments), limits);
        }
    }

    /// Changes settings while the cache is in use.
    pub fn reconfigure(&self, change: Reconfigure) -> Result<(), Error> {
        let _one_at_a_time = self.reconfiguring.lock();
        let mut settings = self.settings.lock().clone();
        let limits = checked_limits(Limits {
            division_limit: change.division_limit.unwrap_or(settings.limits.division_limit),
            age_threshold: change.age_threshold.unwrap_or(settings.limits.age_threshold),
        })?;
        if let Some(hit_path) = change.hit_path {
            for shell in &self.shells {
                shell.segment.lock().set_hit_path(self.shared(), hit_path);
            }
            self.hot.is_optimistic.store(hit_path == HitPath::Optimistic, Relaxed);
            settings.hit_path = hit_path;
        }
        settings.limits = limits;
        self.apply_limits(self.frame_count.load(Relaxed), limits);
        *self.settings.lock() = settings;
        Ok(())
    }
}

//! The settings of a cache for a series.

use super::HitPath;
use std::fmt;

/// `key_cache_segments`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Segments {
    /// The target's own choice for this machine.
    Auto,
    /// 0 = one mutex, no segmentation; 1 to 64.
    Count(u32),
}

pub(crate) const SEGMENTS_MAX: u32 = 64;

impl fmt::Display for Segments {
    /// `off`, `32`, `auto`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segments::Auto => f.write_str("auto"),
            Segments::Count(0) => f.write_str("off"),
            Segments::Count(count) => write!(f, "{count}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Setting {
    pub segments: Segments,
    /// `key_cache_hit_path`: how a cached page is read.
    pub hit_path: HitPath,
}

impl Setting {
    /// The series' label. It does not name the locked path, because that is the study's.
    pub(crate) fn label(self) -> String {
        match self.hit_path {
            HitPath::Locked => self.segments.to_string(),
            HitPath::Optimistic => format!("optimistic {}", self.segments),
        }
    }

    /// The setting among `settings` that gains are relative to: segments off, locked before optimistic.
    pub(crate) fn baseline(settings: &[Setting]) -> Option<Setting> {
        let off = |hit_path| Setting { segments: Segments::Count(0), hit_path };
        [off(HitPath::Locked), off(HitPath::Optimistic)]
            .into_iter()
            .find(|setting| settings.contains(setting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_the_published_table() {
        let locked = |segments| Setting { segments, hit_path: HitPath::Locked };
        assert_eq!(locked(Segments::Count(0)).label(), "off");
        assert_eq!(locked(Segments::Count(32)).label(), "32");
        let optimistic = Setting { segments: Segments::Auto, hit_path: HitPath::Optimistic };
        assert_eq!(optimistic.label(), "optimistic auto");
        assert_eq!(Setting::baseline(&[optimistic, locked(Segments::Count(0))]).unwrap().label(), "off");
        assert_eq!(Setting::baseline(&[optimistic]), None);
    }
}

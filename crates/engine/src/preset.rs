//! The servers of the published comparison of changes for many cores, by the names they have there.

use crate::definition::{HitPath, LatchImplementation};
use LatchImplementation::{Direct, WaitArray};

/// A set of settings by name, for comparisons. In a program of one's own `latches`, `hit_path` and
/// `thread_concurrency` are [`crate::Options`]; the rest is the process's, which `latchwork serve --preset`
/// sets.
///
/// All of those servers latched every page that they read, so all presets do: what they differ by shows then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// Latches with a central wait array, one memory heap behind a mutex, the system's allocator.
    Base,
    /// `Base` with at most four statements at a time.
    Tc4,
    /// Direct latches, no heap, tcmalloc.
    Smpfix,
    /// `Smpfix` with the system's allocator.
    Notcmalloc,
    /// `Base` without the heap.
    Onlymalloc,
}

/// What a preset stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PresetSettings {
    pub latches: LatchImplementation,
    pub hit_path: HitPath,
    /// False: all memory out of one heap. Of the process, as the next one is.
    pub use_sys_malloc: bool,
    /// The allocator under it, by the name that `--malloc-lib` has for it.
    pub malloc_lib: &'static str,
    /// 0 = no limit.
    pub thread_concurrency: u32,
}

impl Preset {
    pub const ALL: [Preset; 5] =
        [Preset::Base, Preset::Tc4, Preset::Smpfix, Preset::Notcmalloc, Preset::Onlymalloc];

    pub fn name(self) -> &'static str {
        match self {
            Preset::Base => "base",
            Preset::Tc4 => "tc4",
            Preset::Smpfix => "smpfix",
            Preset::Notcmalloc => "notcmalloc",
            Preset::Onlymalloc => "onlymalloc",
        }
    }

    pub fn named(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    pub fn settings(self) -> PresetSettings {
        let base = PresetSettings {
            latches: WaitArray,
            hit_path: HitPath::Locked,
            use_sys_malloc: false,
            malloc_lib: "system",
            thread_concurrency: 0,
        };
        let smpfix = PresetSettings {
            latches: Direct,
            hit_path: HitPath::Locked,
            use_sys_malloc: true,
            malloc_lib: "tcmalloc",
            thread_concurrency: 0,
        };
        match self {
            Preset::Base => base,
            Preset::Tc4 => PresetSettings { thread_concurrency: 4, ..base },
            Preset::Smpfix => smpfix,
            Preset::Notcmalloc => PresetSettings { malloc_lib: "system", ..smpfix },
            Preset::Onlymalloc => PresetSettings { use_sys_malloc: true, ..base },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_found_by_its_name_and_differs_from_all_others() {
        for preset in Preset::ALL {
            assert_eq!(Preset::named(preset.name()), Some(preset));
            let same = Preset::ALL.iter().filter(|other| other.settings() == preset.settings()).count();
            assert_eq!(same, 1, "{}", preset.name());
        }
        assert_eq!(Preset::named("fastest"), None);
    }
}

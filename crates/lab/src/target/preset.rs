//! The servers of the multi-core study, by name: which latches, which memory, how many threads at once.

/// What Latchwork's `--preset` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// Latches with a mutex inside, one shared heap, the system's malloc.
    Base,
    /// `base` with four threads at once inside the engine.
    Tc4,
    /// All four changes of the study: direct latches, no shared heap, a malloc that scales.
    SmpFix,
    /// `smpfix` with the system's malloc.
    NoTcMalloc,
    /// `base` without the shared heap.
    OnlyMalloc,
}

impl Preset {
    pub const ALL: [Preset; 5] =
        [Preset::Base, Preset::Tc4, Preset::SmpFix, Preset::NoTcMalloc, Preset::OnlyMalloc];

    pub fn name(self) -> &'static str {
        match self {
            Preset::Base => "base",
            Preset::Tc4 => "tc4",
            Preset::SmpFix => "smpfix",
            Preset::NoTcMalloc => "notcmalloc",
            Preset::OnlyMalloc => "onlymalloc",
        }
    }

    pub fn parse(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name().eq_ignore_ascii_case(name))
    }
}

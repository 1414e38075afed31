//! The definition of a variable: its scope, type and range, and whether it has an effect here.

use super::Setting;

/// Where a variable has values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    Global,
    /// A global value, copied by each new session.
    Both,
    Session,
}

/// The type of a variable, with its compiled default.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// Values are limited to `min..=max`, then rounded down to a multiple of `step`.
    Unsigned {
        default: u64,
        min: u64,
        max: u64,
        step: u64,
    },
    Signed {
        default: i64,
        min: i64,
        max: i64,
    },
    Double {
        default: f64,
        min: f64,
        max: f64,
    },
    Boolean {
        default: bool,
    },
    /// One name of a list, chosen by name or position.
    Choice {
        default: &'static str,
        names: &'static [&'static str],
    },
    /// Any names of a list, as comma-separated names or as a bit mask.
    Set {
        default: &'static str,
        names: &'static [&'static str],
    },
    Text {
        default: &'static str,
    },
    Charset {
        default: &'static str,
    },
    Collation {
        default: &'static str,
    },
}

/// Whether a variable changes what the server does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    Works,
    /// The value is accepted and remembered only. The reason ends the sentence "NAME has no effect: ...".
    None(&'static str),
}

/// One system variable.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// In lower case with underscores, as SHOW VARIABLES prints it.
    pub name: &'static str,
    pub scope: Scope,
    pub kind: Kind,
    /// False if only the command line can set it (1238).
    pub dynamic: bool,
    /// False if the session's value is copied from the global one at connect and cannot be SET (1621).
    pub session_dynamic: bool,
    pub effect: Effect,
}

const NOT_NEEDED: &str = "nothing here depends on it";

const fn define(name: &'static str, scope: Scope, kind: Kind) -> Definition {
    Definition { name, scope, kind, dynamic: true, session_dynamic: true, effect: Effect::None(NOT_NEEDED) }
}

pub(super) const fn global(name: &'static str, kind: Kind) -> Definition {
    define(name, Scope::Global, kind)
}

pub(super) const fn both(name: &'static str, kind: Kind) -> Definition {
    define(name, Scope::Both, kind)
}

pub(super) const fn session(name: &'static str, kind: Kind) -> Definition {
    define(name, Scope::Session, kind)
}

impl Definition {
    pub(super) const fn read_only(mut self) -> Definition {
        self.dynamic = false;
        self
    }

    pub(super) const fn session_read_only(mut self) -> Definition {
        self.session_dynamic = false;
        self
    }

    pub(super) const fn works(mut self) -> Definition {
        self.effect = Effect::Works;
        self
    }

    /// Marks the variable as accepted without effect, for this reason.
    pub(super) const fn because(mut self, reason: &'static str) -> Definition {
        self.effect = Effect::None(reason);
        self
    }

    /// The compiled default. `SET x = DEFAULT` gives it to a global variable.
    pub fn default(&self) -> Setting {
        match self.kind {
            Kind::Unsigned { default, .. } => Setting::Unsigned(default),
            Kind::Signed { default, .. } => Setting::Signed(default),
            Kind::Double { default, .. } => Setting::Double(default),
            Kind::Boolean { default } => Setting::Boolean(default),
            Kind::Choice { default, names } => {
                let position = names.iter().position(|name| *name == default).unwrap_or(0);
                Setting::Choice(position as u8)
            }
            Kind::Set { default, names } => {
                let mut bits = 0;
                for part in default.split(',') {
                    if let Some(bit) = names.iter().position(|name| *name == part) {
                        bits |= 1 << bit;
                    }
                }
                Setting::Set(bits)
            }
            Kind::Text { default } | Kind::Charset { default } | Kind::Collation { default } => {
                Setting::Text(default.into())
            }
        }
    }
}

pub(super) const fn unsigned(default: u64, min: u64, max: u64, step: u64) -> Kind {
    Kind::Unsigned { default, min, max, step }
}

pub(super) const fn signed(default: i64, min: i64, max: i64) -> Kind {
    Kind::Signed { default, min, max }
}

pub(super) const fn double(default: f64, min: f64, max: f64) -> Kind {
    Kind::Double { default, min, max }
}

pub(super) const fn boolean(default: bool) -> Kind {
    Kind::Boolean { default }
}

pub(super) const fn one_of(default: &'static str, names: &'static [&'static str]) -> Kind {
    Kind::Choice { default, names }
}

pub(super) const fn set_of(default: &'static str, names: &'static [&'static str]) -> Kind {
    Kind::Set { default, names }
}

pub(super) const fn text(default: &'static str) -> Kind {
    Kind::Text { default }
}

pub(super) const fn charset(default: &'static str) -> Kind {
    Kind::Charset { default }
}

pub(super) const fn collation(default: &'static str) -> Kind {
    Kind::Collation { default }
}

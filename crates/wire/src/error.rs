//! The errors of malformed packets.

use std::fmt;

/// A packet that does not follow the protocol; says which part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    pub what: &'static str,
}

impl Malformed {
    pub const fn new(what: &'static str) -> Malformed {
        Malformed { what }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed packet: {}", self.what)
    }
}

impl std::error::Error for Malformed {}

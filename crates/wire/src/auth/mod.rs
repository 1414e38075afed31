//! The methods by which a client shows that it knows a password, both sides of each.

pub mod caching_sha2;
pub mod ed25519;
mod native;
pub mod parsec;

pub use native::{PasswordHash, answer};

use crate::constants::auth_plugin;

pub const SCRAMBLE_BYTES: usize = 20;

/// Random bytes of one handshake. None is zero, because old clients read them as a C string.
pub type Scramble = [u8; SCRAMBLE_BYTES];

/// What shows that a client knows the password, by the methods that need one packet for it, or begin with
/// one. Methods that are not known get the answer of the oldest, which is refused.
pub fn answer_by(plugin: &[u8], password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if plugin == auth_plugin::CACHING_SHA2.as_bytes() {
        caching_sha2::answer(password, scramble)
    } else if plugin == auth_plugin::ED25519.as_bytes() {
        ed25519::answer(password, scramble)
    } else {
        answer(password, scramble)
    }
}

/// Compares without an early exit, so that the time taken reveals nothing about a secret.
fn same<const N: usize>(a: &[u8; N], b: &[u8; N]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

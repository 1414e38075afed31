//! The methods by which a client shows that it knows a password, both sides of each.

pub mod caching_sha2;
pub mod ed25519;
mod native;
pub mod parsec;

pub use native::{PasswordHash, answer};

pub const SCRAMBLE_BYTES: usize = 20;

/// Random bytes of one handshake. None is zero, because old clients read them as a C string.
pub type Scramble = [u8; SCRAMBLE_BYTES];

/// Compares without an early exit, so that the time taken reveals nothing about a secret.
fn same<const N: usize>(a: &[u8; N], b: &[u8; N]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

//! Random bytes for secrets, from the operating system.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

const LETTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz./";

/// Characters that stand for themselves everywhere. None of them is zero or `$`, which methods to log in use
/// as separators.
pub(crate) fn random_letters<const N: usize>() -> io::Result<[u8; N]> {
    let mut letters = [0; N];
    getrandom(&mut letters, GetRandomFlags::empty())?;
    for letter in &mut letters {
        *letter = LETTERS[usize::from(*letter % 64)];
    }
    Ok(letters)
}

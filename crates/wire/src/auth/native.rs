//! `mysql_native_password`: the server sends 20 random bytes (the scramble); the client answers
//! `SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password)))`; the server keeps `SHA1(SHA1(password))`.

use super::{Scramble, same};
use sha1::{Digest, Sha1};

/// The hash of a password that a server stores: `SHA1(SHA1(password))`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordHash(pub [u8; 20]);

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

impl PasswordHash {
    pub fn of(password: &[u8]) -> PasswordHash {
        PasswordHash(sha1(&[&sha1(&[password])]))
    }

    /// `*` and 40 hexadecimal digits, as `PASSWORD()` gives it and `SET PASSWORD` takes it.
    pub fn to_text(self) -> String {
        let mut text = String::with_capacity(41);
        text.push('*');
        for byte in self.0 {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from(b"0123456789ABCDEF"[usize::from(nibble)]));
            }
        }
        text
    }

    pub fn from_text(text: &str) -> Option<PasswordHash> {
        let digits = text.strip_prefix('*')?.as_bytes();
        if digits.len() != 40 {
            return None;
        }
        let mut hash = [0; 20];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(PasswordHash(hash))
    }

    /// True if `answer` is what a client that knows the password makes of `scramble`.
    pub fn accepts(&self, scramble: &Scramble, answer: &[u8]) -> bool {
        let Ok(answer) = <[u8; 20]>::try_from(answer) else { return false };
        let mut stage1 = sha1(&[scramble, &self.0]);
        for (byte, &answered) in stage1.iter_mut().zip(&answer) {
            *byte ^= answered;
        }
        same(&sha1(&[&stage1]), &self.0)
    }
}

/// The client's answer. The answer of an empty password is empty.
pub fn answer(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let stage1 = sha1(&[password]);
    let mask = sha1(&[scramble, &sha1(&[&stage1])]);
    stage1.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hasher = Sha1::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::SCRAMBLE_BYTES;

    #[test]
    fn the_hash_of_a_password_is_the_published_one() {
        let hash = PasswordHash::of(b"password");
        assert_eq!(hash.to_text(), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(PasswordHash::from_text(&hash.to_text()), Some(hash));
    }

    #[test]
    fn the_right_password_is_accepted_and_others_are_not() {
        let scramble = [7; SCRAMBLE_BYTES];
        let hash = PasswordHash::of(b"secret");
        assert!(hash.accepts(&scramble, &answer(b"secret", &scramble)));
        assert!(!hash.accepts(&scramble, &answer(b"Secret", &scramble)));
        assert!(!hash.accepts(&[8; SCRAMBLE_BYTES], &answer(b"secret", &scramble)));
        assert!(!hash.accepts(&scramble, b""));
    }

    #[test]
    fn a_hash_with_a_wrong_digit_is_no_hash() {
        assert_eq!(PasswordHash::from_text("*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E1G"), None);
        assert_eq!(PasswordHash::from_text("2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"), None);
        assert_eq!(PasswordHash::from_text("*"), None);
    }
}

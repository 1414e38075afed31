//! `caching_sha2_password`: the server keeps a slow hash of the password. Whoever finds it cannot log in with
//! it, and guesses slowly.
//!
//! The client first answers `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble)`. A server that
//! has seen the password before has `SHA256(SHA256(password))` in memory ([`Verifier`]) and can check that.
//! Otherwise it asks for the password itself, over a connection that nobody can listen to.
//!
//! Source: MySQL's documentation, "Caching SHA-2 Pluggable Authentication", and Ulrich Drepper's "Unix crypt
//! using SHA-256 and SHA-512" for the slow hash.

use super::{SCRAMBLE_BYTES, same};
use rsa::PublicKey;
use rsa::pkcs8::DecodePublicKey;
use sha2::{Digest, Sha256};

/// What the server says in a packet of its own, behind the byte [`MORE_DATA`].
pub const FAST_CHECK_WENT_WELL: u8 = 3;
/// The client must send the password.
pub const NEEDS_PASSWORD: u8 = 4;
/// The client wants the server's public key, to encrypt the password with.
pub const WANTS_PUBLIC_KEY: u8 = 2;
/// The first byte of a packet that continues the login.
pub const MORE_DATA: u8 = 1;

/// The longest password, in bytes. A hash's time grows with it.
pub const PASSWORD_BYTES_MAX: usize = 256;
pub const SALT_BYTES: usize = 20;

const PREFIX: &str = "$A$005$";
/// 005 stands for so many.
const ROUNDS: usize = 5000;
const DIGEST_CHARS: usize = 43;

/// The hash of a password that a server stores: `$A$005$`, 20 bytes of salt, and 43 characters.
#[derive(Clone, Copy)]
pub struct SlowHash<'a> {
    salt: &'a [u8; SALT_BYTES],
    digest: &'a [u8; DIGEST_CHARS],
}

impl<'a> SlowHash<'a> {
    /// `None` if the text is none that [`SlowHash::text_of`] can give.
    pub fn parse(text: &'a str) -> Option<SlowHash<'a>> {
        let (salt, digest) = text.as_bytes().strip_prefix(PREFIX.as_bytes())?.split_first_chunk()?;
        let digest: &[u8; DIGEST_CHARS] = digest.try_into().ok()?;
        digest.iter().all(|byte| DIGITS.contains(byte)).then_some(SlowHash { salt, digest })
    }

    /// The text that a server stores. The salt has ASCII characters and no `$`.
    pub fn text_of(password: &[u8], salt: &[u8; SALT_BYTES]) -> String {
        let digest = slow_digest(password, salt);
        [PREFIX.as_bytes(), salt, &digest].concat().into_iter().map(char::from).collect()
    }

    /// True if it is the hash of this password. Takes a few milliseconds.
    pub fn is_of(&self, password: &[u8]) -> bool {
        password.len() <= PASSWORD_BYTES_MAX && same(&slow_digest(password, self.salt), self.digest)
    }
}

/// `SHA256(SHA256(password))`: checks answers quickly. It is kept in memory only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Verifier([u8; 32]);

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Verifier(..)")
    }
}

impl Verifier {
    pub fn of(password: &[u8]) -> Verifier {
        Verifier(sha256(&[&sha256(&[password])]))
    }

    /// True if `answer` is what a client that knows the password makes of `scramble`.
    pub fn accepts(&self, scramble: &[u8; SCRAMBLE_BYTES], answer: &[u8]) -> bool {
        let Ok(answer) = <[u8; 32]>::try_from(answer) else { return false };
        let mut stage1 = sha256(&[&self.0, scramble]);
        for (byte, answered) in stage1.iter_mut().zip(answer) {
            *byte ^= answered;
        }
        same(&sha256(&[&stage1]), &self.0)
    }
}

/// The client's first answer. That of an empty password is empty.
pub fn answer(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let stage1 = sha256(&[password]);
    let mask = sha256(&[&sha256(&[&stage1]), scramble]);
    stage1.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// The password with a zero behind it, mixed with the scramble and encrypted with the server's public key.
/// `None` if the key is none, or too short for the password.
pub fn encrypted(password: &[u8], scramble: &[u8], key_pem: &[u8]) -> Option<Vec<u8>> {
    let key = PublicKey::from_public_key_pem(std::str::from_utf8(key_pem).ok()?).ok()?;
    let mut text = [password, &[0]].concat();
    text.iter_mut().zip(scramble.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    key.oaep_encrypt::<sha1::Sha1>(&text).ok()
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// SHA-256 crypt, whose salt may be 20 bytes long here and not 16.
fn slow_digest(password: &[u8], salt: &[u8]) -> [u8; DIGEST_CHARS] {
    let inner = sha256(&[password, salt, password]);
    let mut hasher = Sha256::new();
    hasher.update(password);
    hasher.update(salt);
    hasher.update(repeated(&inner, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        hasher.update(if bits & 1 == 1 { &inner[..] } else { password });
        bits >>= 1;
    }
    let mut digest: [u8; 32] = hasher.finalize().into();
    let of_password = repeated(&sha256(&vec![password; password.len()]), password.len());
    let of_salt = repeated(&sha256(&vec![salt; 16 + usize::from(digest[0])]), salt.len());
    for round in 0..ROUNDS {
        let odd = round % 2 == 1;
        let (first, last) =
            if odd { (&of_password[..], &digest[..]) } else { (&digest[..], &of_password[..]) };
        let salt = if round % 3 != 0 { &of_salt[..] } else { &[] };
        let password = if round % 7 != 0 { &of_password[..] } else { &[] };
        digest = sha256(&[first, salt, password, last]);
    }
    encoded(&digest)
}

/// The bytes again and again, up to a length.
fn repeated(bytes: &[u8; 32], length: usize) -> Vec<u8> {
    bytes.iter().copied().cycle().take(length).collect()
}

/// Four characters for three bytes, which stand ten places apart.
fn encoded(digest: &[u8; 32]) -> [u8; DIGEST_CHARS] {
    let mut text = [0; DIGEST_CHARS];
    let mut group = [0, 10, 20];
    for characters in text.chunks_mut(4) {
        let bytes =
            if characters.len() == 4 { group.map(|at| digest[at]) } else { [0, digest[31], digest[30]] };
        let mut value = bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        for character in characters {
            *character = DIGITS[value as usize % 64];
            value /= 64;
        }
        group = [group[2] + 1, group[0] + 1, group[1] + 1];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_hash_is_sha_256_crypt() {
        // Drepper's third example, whose salt is cut to 16 bytes.
        let digest = slow_digest(b"This is just a test", b"toolongsaltstrin");
        assert_eq!(&digest, b"Un/5jzAHMgOGZ5.mWJpuVolil07guHPvOW8mGRcvxa5");
    }

    #[test]
    fn the_slow_hash_of_a_password_is_the_published_one() {
        // The example of hashcat's mode 7401, for MySQL.
        let salt = [
            0xF9, 0xCC, 0x98, 0xCE, 0x08, 0x89, 0x29, 0x24, 0xF5, 0x0A, 0x21, 0x3B, 0x6B, 0xC5, 0x71, 0xA2,
            0xC1, 0x17, 0x78, 0xC5,
        ];
        assert_eq!(&slow_digest(b"hashcat", &salt), b"bTy95Y99eAME1dwEkHOA1ndHGBWz.1bxSSRkuTXFGV/");
    }

    #[test]
    fn a_stored_text_is_read_and_tells_passwords_apart() {
        let text = SlowHash::text_of(b"secret", b"abcdefghijklmnopqrst");
        assert_eq!(text.len(), 70);
        let hash = SlowHash::parse(&text).unwrap();
        assert!(hash.is_of(b"secret") && !hash.is_of(b"Secret") && !hash.is_of(b""));
        assert!(!hash.is_of(&[b'x'; PASSWORD_BYTES_MAX + 1]));
        for wrong in [&text[..69], &text.replace("005", "004"), &text.replace('s', "!"), "", "$A$005$"] {
            assert!(SlowHash::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_quick_check_accepts_the_right_password_alone() {
        let scramble = [7; SCRAMBLE_BYTES];
        let verifier = Verifier::of(b"secret");
        assert!(verifier.accepts(&scramble, &answer(b"secret", &scramble)));
        assert!(!verifier.accepts(&scramble, &answer(b"Secret", &scramble)));
        assert!(!verifier.accepts(&[8; SCRAMBLE_BYTES], &answer(b"secret", &scramble)));
        assert!(!verifier.accepts(&scramble, b""));
    }
}

//! MariaDB's `ed25519`: the server keeps a public key that is made of the password, and the client signs the
//! server's random bytes. What the server keeps is of no use to a thief but for guessing.
//!
//! The secret key is SHA512(password) itself. In RFC 8032 it is SHA512 of 32 random bytes.
//!
//! Source: MariaDB's documentation, "Authentication Plugin - ed25519".

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ed25519_dalek::{Digest, Sha512, Signature, VerifyingKey};

/// The random bytes that a client signs.
pub const NONCE_BYTES: usize = 32;

/// What the server keeps of a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    pub fn of(password: &[u8]) -> PublicKey {
        PublicKey(VerifyingKey::from(&secret_key(password)).to_bytes())
    }

    /// 43 characters of base64, as `ed25519_password()` gives them.
    pub fn to_text(self) -> String {
        STANDARD_NO_PAD.encode(self.0)
    }

    pub fn from_text(text: &str) -> Option<PublicKey> {
        STANDARD_NO_PAD.decode(text).ok()?.try_into().ok().map(PublicKey)
    }

    /// True if `answer` is the signature of `nonce` by a client that knows the password.
    pub fn accepts(&self, nonce: &[u8; NONCE_BYTES], answer: &[u8]) -> bool {
        let (Ok(key), Ok(signature)) = (VerifyingKey::from_bytes(&self.0), Signature::from_slice(answer))
        else {
            return false;
        };
        key.verify_strict(nonce, &signature).is_ok()
    }
}

/// The client's answer: a signature of 64 bytes.
pub fn answer(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let key = secret_key(password);
    raw_sign::<Sha512>(&key, nonce, &VerifyingKey::from(&key)).to_bytes().to_vec()
}

fn secret_key(password: &[u8]) -> ExpandedSecretKey {
    ExpandedSecretKey::from_bytes(&Sha512::digest(password).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_password_is_the_published_one() {
        // MariaDB's documentation: SELECT ed25519_password('secret').
        let key = PublicKey::of(b"secret");
        assert_eq!(key.to_text(), "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY");
        assert_eq!(PublicKey::from_text(&key.to_text()), Some(key));
    }

    #[test]
    fn only_whoever_knows_the_password_can_sign() {
        let key = PublicKey::of(b"secret");
        let nonce = [7; NONCE_BYTES];
        assert!(key.accepts(&nonce, &answer(b"secret", &nonce)));
        assert!(!key.accepts(&nonce, &answer(b"Secret", &nonce)));
        assert!(!key.accepts(&[8; NONCE_BYTES], &answer(b"secret", &nonce)));
        assert!(!key.accepts(&nonce, b""));
    }

    #[test]
    fn a_text_with_a_wrong_digit_is_no_key() {
        assert_eq!(PublicKey::from_text("ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJ="), None);
        assert_eq!(PublicKey::from_text("ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJZ"), None);
        assert_eq!(PublicKey::from_text(""), None);
    }
}

//! MariaDB's `parsec`, which it means to make its default: the server keeps a salt and a public key. The
//! secret key is made of the password by PBKDF2, so that guessing is slow, and the client signs random bytes
//! of both sides.
//!
//! The server sends 32 random bytes. The client answers with an empty packet, and gets the salt. Its next
//! answer is 32 random bytes of its own and the signature of all 64.
//!
//! Source: MariaDB's documentation, "Authentication Plugin - PARSEC"; the order of the packets as in MariaDB
//! 11.6.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ed25519_dalek::{Sha512, Signature, Signer, SigningKey, VerifyingKey};

/// The random bytes of each side.
pub const NONCE_BYTES: usize = 32;
/// The bytes of the salt that MariaDB makes, and the only length that it takes.
pub const SALT_BYTES: usize = 18;
/// PBKDF2, in what is kept and in what is sent.
const PBKDF2: u8 = b'P';
/// The rounds are 1024 doubled so often; more than this no client does.
const DOUBLINGS_MAX: u8 = 3;

/// What the server keeps of a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SaltedKey {
    doublings: u8,
    salt: [u8; SALT_BYTES],
    key: [u8; 32],
}

impl SaltedKey {
    /// With the 1024 rounds that MariaDB makes.
    pub fn of(password: &[u8], salt: &[u8; SALT_BYTES]) -> SaltedKey {
        let key = secret_key(password, 0, salt).verifying_key().to_bytes();
        SaltedKey { doublings: 0, salt: *salt, key }
    }

    /// `P0:salt:key`, both in base64.
    pub fn to_text(self) -> String {
        let (salt, key) = (STANDARD_NO_PAD.encode(self.salt), STANDARD_NO_PAD.encode(self.key));
        format!("P{}:{salt}:{key}", self.doublings)
    }

    pub fn from_text(text: &str) -> Option<SaltedKey> {
        let mut fields = text.strip_prefix('P')?.split(':');
        let doublings = match fields.next()?.as_bytes() {
            [digit @ b'0'..=b'9'] => digit - b'0',
            _ => return None,
        };
        let salt = STANDARD_NO_PAD.decode(fields.next()?).ok()?.try_into().ok()?;
        let key = STANDARD_NO_PAD.decode(fields.next()?).ok()?.try_into().ok()?;
        let is_whole = doublings <= DOUBLINGS_MAX && fields.next().is_none();
        is_whole.then_some(SaltedKey { doublings, salt, key })
    }

    /// What the client has to know before it can make its secret key.
    pub fn salt_packet(&self) -> Vec<u8> {
        [&[PBKDF2, self.doublings], &self.salt[..]].concat()
    }

    /// True if `answer` comes from a client that knows the password.
    pub fn accepts(&self, nonce: &[u8; NONCE_BYTES], answer: &[u8]) -> bool {
        let Some((own_nonce, signature)) = answer.split_at_checked(NONCE_BYTES) else { return false };
        let (Ok(key), Ok(signature)) =
            (VerifyingKey::from_bytes(&self.key), Signature::from_slice(signature))
        else {
            return false;
        };
        key.verify_strict(&[nonce, own_nonce].concat(), &signature).is_ok()
    }
}

/// The client's answer to the server's salt. `None` if the salt is not one of this method, or wants more
/// rounds than [`DOUBLINGS_MAX`] allows: a server must not keep its clients busy.
pub fn answer(
    password: &[u8],
    nonce: &[u8],
    salt_packet: &[u8],
    own_nonce: &[u8; NONCE_BYTES],
) -> Option<Vec<u8>> {
    let [PBKDF2, doublings @ ..=DOUBLINGS_MAX, salt @ ..] = salt_packet else { return None };
    let key = secret_key(password, *doublings, salt);
    let signature = key.sign(&[nonce, own_nonce].concat()).to_bytes();
    Some([&own_nonce[..], &signature].concat())
}

fn secret_key(password: &[u8], doublings: u8, salt: &[u8]) -> SigningKey {
    SigningKey::from_bytes(&pbkdf2::pbkdf2_hmac_array::<Sha512, 32>(password, salt, 1024 << doublings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_nothing_else() {
        // The example of MariaDB's documentation has a salt of seven bytes, which MariaDB does not take
        // either.
        assert_eq!(SaltedKey::from_text("P0:WW9sXaaL/o:vubFBzIrapbfHct1/J72dnUryz5VS7lA6XHH8sIx4TI"), None);
        let text = SaltedKey::of(b"secret", b"eighteen bytes old").to_text();
        assert_eq!(SaltedKey::from_text(&text).unwrap().to_text(), text);
        for wrong in ["P4", "P", "Q0", "P00"] {
            assert_eq!(SaltedKey::from_text(&text.replace("P0", wrong)), None, "{wrong}");
        }
        for wrong in [&text[..text.len() - 1], &format!("{text}:"), "", "P0", "P0::"] {
            assert_eq!(SaltedKey::from_text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_whoever_knows_the_password_can_answer() {
        let kept = SaltedKey::of(b"secret", b"eighteen bytes old");
        let (nonce, own) = ([7; NONCE_BYTES], [9; NONCE_BYTES]);
        let answered = |password: &[u8]| answer(password, &nonce, &kept.salt_packet(), &own).unwrap();
        assert!(kept.accepts(&nonce, &answered(b"secret")));
        assert!(!kept.accepts(&nonce, &answered(b"Secret")));
        assert!(!kept.accepts(&[8; NONCE_BYTES], &answered(b"secret")));
        let mut other = answered(b"secret");
        other[0] ^= 1;
        assert!(!kept.accepts(&nonce, &other));
        assert!(!kept.accepts(&nonce, b"") && !kept.accepts(&nonce, &other[..95]));
    }

    #[test]
    fn a_client_does_not_do_what_would_keep_it_busy() {
        for salt in [&b"P\x04eighteen bytes old"[..], b"Q\x00eighteen bytes old", b"P", b""] {
            assert_eq!(answer(b"secret", &[7; NONCE_BYTES], salt, &[9; NONCE_BYTES]), None);
        }
    }
}

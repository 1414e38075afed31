//! The key with which clients without TLS encrypt a password (`caching_sha2_password`).

use crate::log::Log;
use base::sync::{Arc, Mutex};
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, LineEnding};
use rsa::{Generate, PrivateKey};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use wire::auth::Scramble;

base::latch_class!(pub KeyPairLatch, "key of passwords");

/// A pair of keys, read or made when the first client asks for it: few clients do, and making one takes
/// longer than the rest of a start.
#[derive(Debug)]
pub(crate) struct KeyPair {
    private_path: PathBuf,
    public_path: PathBuf,
    /// Held while the pair is made, so that there is one. Those who wait need it.
    keys: Mutex<Option<Arc<Keys>>, KeyPairLatch>,
}

/// A private key, and the public one in PEM form.
pub(crate) struct Keys {
    private: PrivateKey,
    pub public: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl KeyPair {
    /// Paths begin in the data directory.
    pub(crate) fn at(datadir: &Path, private: &str, public: &str) -> KeyPair {
        KeyPair {
            private_path: datadir.join(private),
            public_path: datadir.join(public),
            keys: Mutex::of_class(None),
        }
    }

    /// `None` if there are none and none can be made. The log has the reason.
    pub(crate) fn keys(&self, log: &Log) -> Option<Arc<Keys>> {
        let mut keys = self.keys.lock();
        if keys.is_none() {
            match self.read_or_make(log) {
                Ok(found) => *keys = Some(Arc::new(found)),
                Err(why) => log.warning(&format!("{}: {why}", self.private_path.display())),
            }
        }
        keys.clone()
    }

    fn read_or_make(&self, log: &Log) -> Result<Keys, String> {
        let private = match std::fs::read_to_string(&self.private_path) {
            Ok(text) => PrivateKey::from_pkcs8_pem(&text)
                .or_else(|_| PrivateKey::from_pkcs1_pem(&text))
                .map_err(|error| format!("not an RSA key in PEM form: {error}"))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.make(log),
            Err(error) => return Err(error.to_string()),
        };
        keys_of(private)
    }

    /// CRASH: the private key is renamed to its name when it is synced. The public one is for users to copy,
    /// and is made of the private one otherwise.
    fn make(&self, log: &Log) -> Result<Keys, String> {
        let private = PrivateKey::generate();
        let text = private.to_pkcs8_pem(LineEnding::LF).map_err(|error| error.to_string())?;
        let keys = keys_of(private)?;
        let written = crate::tls::write_file(&self.private_path, &text)
            .and_then(|()| crate::tls::write_file(&self.public_path, &keys.public));
        match written {
            Ok(()) => log.note(&format!(
                "made a key for passwords of clients without TLS, {}",
                self.private_path.display()
            )),
            Err(error) => log.warning(&format!(
                "cannot keep the key for passwords in {}: {error}",
                self.private_path.display()
            )),
        }
        Ok(keys)
    }
}

fn keys_of(private: PrivateKey) -> Result<Keys, String> {
    let public =
        private.to_public_key().to_public_key_pem(LineEnding::LF).map_err(|error| error.to_string())?;
    Ok(Keys { private, public })
}

impl Keys {
    /// The password that a client has mixed with the scramble and encrypted. `None` if it has not.
    pub(crate) fn decrypt(&self, encrypted: &[u8], scramble: &Scramble) -> Option<Vec<u8>> {
        let mut password = self.private.oaep_decrypt::<sha1::Sha1>(encrypted).ok()?;
        password.iter_mut().zip(scramble.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        Some(password)
    }
}

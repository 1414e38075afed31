//! What the methods to log in keep of a password.

use crate::random::random_letters;
use sql::accounts::Way;
use sql::{ErrorKind, SqlError};
use wire::auth::PasswordHash;
use wire::auth::caching_sha2::{self, SALT_BYTES, SlowHash};
use wire::auth::ed25519::PublicKey;
use wire::auth::parsec::{self, SaltedKey};

/// The method whose secret is `*` and 40 hexadecimal digits.
pub(crate) const NATIVE: &str = "mysql_native_password";
/// MySQL's method since version 8.
pub(crate) const CACHING_SHA2: &str = "caching_sha2_password";
/// MariaDB's method with a public key.
pub(crate) const ED25519: &str = "ed25519";
/// MariaDB's method with a public key and a salt.
pub(crate) const PARSEC: &str = "parsec";
/// The method that believes the operating system.
pub(crate) const UNIX_SOCKET: &str = "unix_socket";
/// The secret of an account that has no password and lets nobody in without one. No hash looks like it.
pub(crate) const INVALID: &str = "invalid";

/// See [`sql::host::Host::new_secret`].
pub(crate) fn new_secret(plugin: &str, password: &[u8]) -> Result<String, SqlError> {
    match plugin {
        UNIX_SOCKET => Ok(String::new()),
        NATIVE | CACHING_SHA2 | ED25519 if password.is_empty() => Ok(String::new()),
        NATIVE => Ok(PasswordHash::of(password).to_text()),
        ED25519 => Ok(PublicKey::of(password).to_text()),
        // An empty password gets a salt too: it is one that a client has to know.
        PARSEC => Ok(SaltedKey::of(password, &random::<{ parsec::SALT_BYTES }>()?).to_text()),
        CACHING_SHA2 if password.len() > caching_sha2::PASSWORD_BYTES_MAX => Err(SqlError::new(
            ErrorKind::NotValidPassword,
            "Your password does not satisfy the current policy",
        )),
        CACHING_SHA2 => Ok(SlowHash::text_of(password, &random::<SALT_BYTES>()?)),
        _ => Err(not_loaded(plugin)),
    }
}

fn random<const N: usize>() -> Result<[u8; N], SqlError> {
    random_letters().map_err(|error| SqlError::new(ErrorKind::Unknown, format!("no random bytes: {error}")))
}

/// See [`sql::host::Host::check_secret`].
pub(crate) fn check_secret(plugin: &str, text: &str) -> Result<(), SqlError> {
    let (is_right, expected) = match plugin {
        UNIX_SOCKET => return Ok(()),
        NATIVE => (
            text == INVALID || PasswordHash::from_text(text).is_some(),
            "Password hash should be a 41-digit hexadecimal number",
        ),
        PARSEC => (SaltedKey::from_text(text).is_some(), "Wrong ext-salt format"),
        ED25519 => (PublicKey::from_text(text).is_some(), "Password hash should be 43 characters long"),
        CACHING_SHA2 => {
            (SlowHash::parse(text).is_some(), "Password hash should be $A$005$ and 63 characters behind it")
        }
        _ => return Err(not_loaded(plugin)),
    };
    if text.is_empty() || is_right {
        return Ok(());
    }
    Err(SqlError::new(ErrorKind::WrongPasswordHash, expected))
}

fn not_loaded(plugin: &str) -> SqlError {
    SqlError::new(ErrorKind::PluginNotLoaded, format!("Plugin '{plugin}' is not loaded"))
}

/// True if a password can be right by this way.
pub(crate) fn asks_for_password(way: &Way) -> bool {
    way.plugin != UNIX_SOCKET && !way.text.is_empty() && way.text != INVALID
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hashes() {
        for plugin in [NATIVE, CACHING_SHA2, ED25519, PARSEC] {
            assert_eq!(new_secret(plugin, b"").unwrap().is_empty(), plugin != PARSEC);
            let hash = new_secret(plugin, b"secret").unwrap();
            assert!(!hash.contains("secret"));
            assert_eq!(check_secret(plugin, &hash), Ok(()));
            assert_eq!(check_secret(plugin, ""), Ok(()));
            assert_eq!(check_secret(plugin, "*12").unwrap_err().code(), 1372);
        }
        assert_eq!(check_secret("none", "").unwrap_err().code(), 1524);
        assert_eq!(new_secret("none", b"x").unwrap_err().code(), 1524);
        assert_eq!(new_secret(CACHING_SHA2, &[b'x'; 257]).unwrap_err().code(), 1819);
    }
}

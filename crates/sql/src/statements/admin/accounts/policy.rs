//! What a new password must be like: `simple_password_check` and its variables, as MariaDB's plugin has them.

use super::names::Secret;
use crate::{ErrorKind, Session, SqlError};

/// # Errors
/// 1819 if the password is too simple, 1290 for a hash, of which nobody can tell.
pub(super) fn check(session: &Session, user: &str, secret: Secret<'_>) -> Result<(), SqlError> {
    let values = session.instance.globals().values();
    if !values.boolean("simple_password_check") {
        return Ok(());
    }
    let password = match secret {
        Secret::Password(password) | Secret::Stored(password @ "") => password.as_bytes(),
        Secret::Stored(_) if !values.boolean("strict_password_validation") => return Ok(()),
        Secret::Stored(_) => {
            let text = "The MariaDB server is running with the --strict-password-validation option so it cannot \
                        execute this statement";
            return Err(SqlError::new(ErrorKind::OptionPreventsStatement, text));
        }
    };
    let least = |what: &'static str| values.unsigned(what);
    let count = |is: fn(&u8) -> bool| password.iter().filter(|byte| is(byte)).count() as u64;
    let is_good = password != user.as_bytes()
        && password.len() as u64 >= least("simple_password_check_minimal_length")
        && count(u8::is_ascii_digit) >= least("simple_password_check_digits")
        && count(u8::is_ascii_uppercase) >= least("simple_password_check_letters_same_case")
        && count(u8::is_ascii_lowercase) >= least("simple_password_check_letters_same_case")
        && count(|byte| !byte.is_ascii_alphanumeric()) >= least("simple_password_check_other_characters");
    if is_good {
        return Ok(());
    }
    let text = "Your password does not satisfy the current policy requirements (simple_password_check)";
    Err(SqlError::new(ErrorKind::NotValidPassword, text))
}

//! What passwords must be like: MariaDB's `simple_password_check`.
//!
//! Without it, an account may have any password. See [`crate::statements::admin::plugins`] for how it is
//! switched on.

use super::names::Secret;
use crate::error::PRODUCT;
use crate::variables::PasswordPolicy;
use crate::{ErrorKind, Session, SqlError};

/// Why an account does not get its password.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    weaknesses: Vec<String>,
    error: SqlError,
}

impl Refusal {
    /// Warns of each weakness, and gives the error of the statement.
    pub(super) fn report(&self, session: &mut Session) -> SqlError {
        for weakness in &self.weaknesses {
            let text = format!("simple_password_check: {weakness}");
            session.state.warnings.warn(ErrorKind::NotValidPassword, text);
        }
        self.error.clone()
    }
}

/// Checks what `user` is to log in with by a method. `None` if nothing is wrong with it.
pub(super) fn check(session: &Session, user: &str, plugin: &str, secret: Secret<'_>) -> Option<Refusal> {
    // This method has no passwords.
    if plugin == "unix_socket" || !session.instance.accounts.checks_passwords() {
        return None;
    }
    let values = session.instance.globals().values();
    let password = match secret {
        // Nobody can tell what password it was made of.
        Secret::Stored(text) if !text.is_empty() => {
            return values.boolean("strict_password_validation").then(|| {
                let text = format!(
                    "The {PRODUCT} server is running with the --strict-password-validation option so it \
                     cannot execute this statement"
                );
                Refusal {
                    weaknesses: Vec::new(),
                    error: SqlError::new(ErrorKind::OptionPreventsStatement, text),
                }
            });
        }
        Secret::Stored(text) | Secret::Password(text) => text,
    };
    let weaknesses = weaknesses(&PasswordPolicy::of(&values), user, password);
    let text = "Your password does not satisfy the current policy requirements (simple_password_check)";
    let error = SqlError::new(ErrorKind::NotValidPassword, text);
    (!weaknesses.is_empty()).then_some(Refusal { weaknesses, error })
}

/// What is wrong with a password, in MariaDB's words. As there, letters are those of ASCII, and lengths are
/// in bytes.
fn weaknesses(policy: &PasswordPolicy, user: &str, password: &str) -> Vec<String> {
    // As in MariaDB, the start of the name is no password either, so an empty one never is.
    if user.starts_with(password) {
        return vec!["The password equal to the user name".to_owned()];
    }
    let count = |is: fn(&u8) -> bool| password.bytes().filter(is).count() as u64;
    let length = password.len() as u64;
    let mut found = Vec::new();
    if length < policy.bytes_min {
        found.push(format!("Too short password (< {})", policy.bytes_min));
    }
    for (what, count, min) in [
        ("upper case letters", count(u8::is_ascii_uppercase), policy.letters_min),
        ("lower case letters", count(u8::is_ascii_lowercase), policy.letters_min),
        ("digits", count(u8::is_ascii_digit), policy.digits_min),
        ("special characters", count(|byte| !byte.is_ascii_alphanumeric()), policy.others_min),
    ] {
        if count < min {
            found.push(format!("Not enough {what} (< {min})"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_as_much_of_each_kind_as_the_policy_wants() {
        let policy = PasswordPolicy { bytes_min: 8, digits_min: 1, letters_min: 1, others_min: 1 };
        let count = |password| weaknesses(&policy, "ann", password).len();
        for (password, expected) in [
            ("Longer1!", 0),
            ("\u{e4}bA1!00", 0),
            ("short", 4),
            ("1", 4),
            ("abcABC12", 1),
            ("ABCABC1!", 1),
            ("abcabc1!", 1),
            ("abcABCD!", 1),
            ("an", 1),
            ("", 1),
        ] {
            assert_eq!(count(password), expected, "{password}");
        }
    }
}

//! What passwords must have.

use super::Values;

/// The values of the variables `simple_password_check_...`.
#[derive(Debug)]
pub(crate) struct PasswordPolicy {
    pub(crate) bytes_min: u64,
    pub(crate) digits_min: u64,
    /// Of capitals, and of small letters.
    pub(crate) letters_min: u64,
    pub(crate) others_min: u64,
}

impl PasswordPolicy {
    /// The shortest length is never shorter than what the other variables want.
    pub(crate) fn of(values: &Values) -> PasswordPolicy {
        let policy = PasswordPolicy {
            bytes_min: values.unsigned("simple_password_check_minimal_length"),
            digits_min: values.unsigned("simple_password_check_digits"),
            letters_min: values.unsigned("simple_password_check_letters_same_case"),
            others_min: values.unsigned("simple_password_check_other_characters"),
        };
        PasswordPolicy { bytes_min: policy.bytes_min.max(policy.bytes_wanted()), ..policy }
    }

    /// A password with all that is wanted is at least this long.
    fn bytes_wanted(&self) -> u64 {
        self.digits_min + 2 * self.letters_min + self.others_min
    }
}

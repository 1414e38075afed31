//! The value of a variable.

use super::definition::{Definition, Kind};
use std::borrow::Cow;
use std::sync::Arc;

/// The value of a variable, in the form that its [`Kind`] requires.
#[derive(Clone, PartialEq, Debug)]
pub enum Setting {
    Unsigned(u64),
    Signed(i64),
    Double(f64),
    Boolean(bool),
    /// The position in the list of names.
    Choice(u8),
    /// Bit `n` stands for name `n`.
    Set(u64),
    Text(Arc<str>),
    Null,
}

impl Setting {
    /// The value in the form in which SHOW VARIABLES prints it.
    pub fn show(&self, definition: &Definition) -> Cow<'_, str> {
        match self {
            Setting::Boolean(on) => Cow::Borrowed(if *on { "ON" } else { "OFF" }),
            _ => self.text(definition),
        }
    }

    /// The value as text, in the form in which `SELECT @@x` returns choices, sets and texts.
    pub fn text(&self, definition: &Definition) -> Cow<'_, str> {
        match self {
            Setting::Unsigned(value) => Cow::Owned(value.to_string()),
            Setting::Signed(value) => Cow::Owned(value.to_string()),
            Setting::Double(value) => Cow::Owned(format!("{value:.6}")),
            Setting::Boolean(on) => Cow::Borrowed(if *on { "1" } else { "0" }),
            Setting::Choice(position) => match definition.kind {
                Kind::Choice { names, .. } => {
                    Cow::Borrowed(names.get(usize::from(*position)).copied().unwrap_or(""))
                }
                _ => Cow::Borrowed(""),
            },
            Setting::Set(bits) => match definition.kind {
                Kind::Set { names, .. } => {
                    let chosen: Vec<&str> = names
                        .iter()
                        .enumerate()
                        .filter(|(bit, _)| bits >> bit & 1 == 1)
                        .map(|(_, name)| *name)
                        .collect();
                    Cow::Owned(chosen.join(","))
                }
                _ => Cow::Borrowed(""),
            },
            Setting::Text(text) => Cow::Borrowed(text),
            Setting::Null => Cow::Borrowed(""),
        }
    }
}

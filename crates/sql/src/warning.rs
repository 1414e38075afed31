//! The list of SHOW WARNINGS.

use crate::{ErrorKind, SqlError};

/// How serious a [`Warning`] is, by MySQL's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    pub const fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// One line of SHOW WARNINGS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    pub level: Level,
    pub kind: ErrorKind,
    pub message: String,
}

/// The diagnostics area of a session: the errors, warnings and notes of the last statement that had any, or
/// that used a table.
#[derive(Clone, Debug)]
pub struct Warnings {
    list: Vec<Warning>,
    /// The list is that of a statement before.
    is_old: bool,
    /// How many there were, including those beyond `kept_max`.
    count: u64,
    errors: u64,
    /// `max_error_count`.
    pub kept_max: usize,
    /// `sql_notes`: whether notes are kept and counted at all.
    pub notes: bool,
}

impl Default for Warnings {
    fn default() -> Warnings {
        Warnings { list: Vec::new(), is_old: false, count: 0, errors: 0, kept_max: 64, notes: true }
    }
}

impl Warnings {
    pub fn push(&mut self, level: Level, kind: ErrorKind, message: impl Into<String>) {
        if level == Level::Note && !self.notes {
            return;
        }
        self.forget_old();
        self.count += 1;
        self.errors += u64::from(level == Level::Error);
        if self.list.len() < self.kept_max {
            self.list.push(Warning { level, kind, message: message.into() });
        }
    }

    pub fn warn(&mut self, kind: ErrorKind, message: impl Into<String>) {
        self.push(Level::Warning, kind, message);
    }

    pub fn note(&mut self, kind: ErrorKind, message: impl Into<String>) {
        self.push(Level::Note, kind, message);
    }

    /// A statement that fails leaves its error here too.
    pub fn error(&mut self, error: &SqlError) {
        self.push(Level::Error, error.kind, error.message.clone());
    }

    /// Moves the warnings of another list behind those of this one.
    pub(crate) fn append(&mut self, other: &mut Warnings) {
        if other.count > 0 {
            self.forget_old();
        }
        self.count += other.count;
        self.errors += other.errors;
        let room = self.kept_max.saturating_sub(self.list.len());
        self.list.extend(other.list.drain(..).take(room));
        other.clear();
    }

    /// A statement begins. What the one before has left stays until this one has something to tell, or uses a
    /// table.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.is_old = true;
    }

    /// The statement uses a table.
    #[inline]
    pub(crate) fn forget_old(&mut self) {
        if self.is_old {
            self.clear();
        }
    }

    pub fn clear(&mut self) {
        self.is_old = false;
        self.list.clear();
        self.count = 0;
        self.errors = 0;
    }

    pub fn list(&self) -> &[Warning] {
        &self.list
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn error_count(&self) -> u64 {
        self.errors
    }

    /// The statement's own count, as an OK packet carries it.
    pub(crate) fn count_u16(&self) -> u16 {
        if self.is_old { 0 } else { u16::try_from(self.count).unwrap_or(u16::MAX) }
    }
}

//! What the audit log is told of a session's statements.

use super::Session;
use crate::SqlError;
use crate::audit::{TableUse, Who};
use crate::locks::{Mode, Used};

impl Session {
    /// From now on the audit log is told of the session's statements.
    pub fn be_audited(&mut self) {
        self.client.is_audited = true;
    }

    fn who(&self) -> Who<'_> {
        Who {
            user: &self.client.user,
            host: &self.client.host,
            connection: self.client.id,
            database: self.state.database.as_deref(),
        }
    }

    /// Before each statement of a client.
    #[inline]
    pub(crate) fn begin_trail(&mut self) {
        if self.instance.audit.is_on() || self.trail.is_some() {
            self.begin_new_trail();
        }
    }

    #[cold]
    fn begin_new_trail(&mut self) {
        self.trail = if self.client.is_audited { self.instance.audit.begin(&self.client.user) } else { None };
    }

    /// Before the next statement of the same text.
    pub(crate) fn go_on_with_trail(&mut self) {
        if let Some(trail) = &mut self.trail {
            self.instance.audit.go_on(trail);
        }
    }

    /// A statement has ended, and its client has not been answered yet.
    #[inline]
    pub(crate) fn note_statement(&mut self, text: &[u8], result: &Result<(), SqlError>) {
        if self.trail.is_some() {
            self.note_audited_statement(text, result);
        }
    }

    #[cold]
    fn note_audited_statement(&mut self, text: &[u8], result: &Result<(), SqlError>) {
        let Some(mut trail) = self.trail.take() else { return };
        let code = result.as_ref().err().map_or(0, SqlError::code);
        self.instance.audit.statement(self.who(), &mut trail, text, self.lexical(), code);
        self.trail = Some(trail);
    }

    /// The statement is about to use these tables.
    #[inline]
    pub(crate) fn note_uses<'t>(&mut self, tables: impl Iterator<Item = Used<'t>>) {
        self.state.warnings.forget_old();
        if self.trail.is_none() {
            return;
        }
        let defs: Vec<_> = tables.map(|used| (used.mode, used.table.def())).collect();
        self.note_tables(defs.iter().map(|(mode, def)| {
            let what = if *mode == Mode::Write { TableUse::Write } else { TableUse::Read };
            (what, def.database.as_str(), def.name.as_str())
        }));
    }

    pub(crate) fn note_table(&mut self, what: TableUse, database: &str, table: &str) {
        self.state.warnings.forget_old();
        self.note_tables(std::iter::once((what, database, table)));
    }

    #[cold]
    fn note_tables<'t>(&mut self, uses: impl Iterator<Item = (TableUse, &'t str, &'t str)>) {
        let Some(mut trail) = self.trail.take() else { return };
        self.instance.audit.tables(self.who(), &mut trail, uses);
        self.trail = Some(trail);
    }
}

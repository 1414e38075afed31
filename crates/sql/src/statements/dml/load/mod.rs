//! LOAD DATA: inserts the rows of a file, which is on the server or sent by the client.
//!
//! The file is read in parts. Rows are cut from them ([`format`]) and made into images ([`rows`]). The images
//! are inserted in batches, each sorted by index. If the table is empty and no transaction is open, the
//! images are collected instead, and the table's trees are built from them at the end. The memory is limited
//! by the batch and the longest row. All of this is one statement: after an error, a KILL or the loss of the
//! client nothing of it remains.

mod file;
mod format;
mod rows;
mod statement;

use super::inserter::{Inserter, OnDuplicate};
use crate::accounts::Rights;
use crate::host::Interrupt;
use crate::session::DEFINITION_RETRIES;
use crate::session::Target;
use crate::session::bulk::Inserted;
use crate::session::transaction::Writes;
use crate::text::parse::Words;
use crate::{Completion, ErrorKind, FileParts, Level, ResultSink, Session, SqlError, Warning, Warnings};
use bumpalo::Bump;
use engine::{Database, KeyList, Loaded, LoadedRows, Readers, Writer};
use format::{Cutter, Found, Row};
use rows::{Phase, Rows};
use statement::LoadStatement;
use std::sync::Arc;

/// The number of rows in a batch and its size in bytes: as many as the engine sorts together.
const BATCH_ROWS: usize = 4_096;
const BATCH_BYTES: usize = 4 << 20;
/// How much memory, in bytes, a row and what was read behind it may take.
const ROW_BYTES_MAX: usize = 1 << 30;

/// LOAD DATA, behind those words.
pub(crate) fn load_data(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let statement = statement::parse(session, words)?;
    let database = session.resolve_database(statement.database.clone())?;
    if !statement.local && !session.access.global.contains(Rights::FILE) {
        return Err(session.access.denied());
    }
    let replaces = statement.on_duplicate == OnDuplicate::Replace;
    let wanted = if replaces { Rights::INSERT | Rights::DELETE } else { Rights::INSERT };
    session.check_rights(wanted, &database, &statement.table)?;
    if statement.local && !session.instance.globals.values().boolean("local_infile") {
        return Err(local_is_off());
    }
    let mut tries = 0;
    let inserted = loop {
        let target = session.target(statement.database.as_deref(), &statement.table)?;
        let mut begun = false;
        match load_into(session, &statement, target, sink, &mut begun) {
            // The client has not been asked for anything yet.
            Err(error) if !begun && tries < DEFINITION_RETRIES && error.is_definition_changed() => tries += 1,
            result => break result?,
        }
    };
    end(session, &statement, &inserted, sink)
}

/// 4166.
fn local_is_off() -> SqlError {
    SqlError::new(
        ErrorKind::CommandNotAllowed,
        format!(
            "The used command is not allowed because the {} server or client has disabled the local infile capability",
            crate::error::PRODUCT
        ),
    )
}

fn end(
    session: &mut Session,
    statement: &LoadStatement,
    inserted: &Inserted,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let (deleted, skipped) = match statement.on_duplicate {
        OnDuplicate::Replace => (inserted.duplicates, 0),
        _ => (0, inserted.duplicates),
    };
    let (records, warnings) = (inserted.records, session.state.warnings.count());
    session.state.row_count = inserted.affected as i64;
    sink.end(&Completion {
        affected_rows: inserted.affected,
        last_insert_id: 0,
        warnings: session.state.warnings.count_u16(),
        info: format!("Records: {records}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}"),
    })
}

fn load_into(
    session: &mut Session,
    statement: &LoadStatement,
    target: Arc<Target>,
    sink: &mut dyn ResultSink,
    begun: &mut bool,
) -> Result<Inserted, SqlError> {
    let tables = [target.used()];
    let family = target.family(session).cloned();
    let family = family.as_deref();
    let instance = session.instance.clone();
    session.write_tables(
        Writes::Rows,
        &tables,
        family.as_slice(),
        &|| target.is_current(),
        |session, readers, mut writer| {
            let rows = Rows::new(session, statement, target.clone())?;
            let mut format = statement.format.clone();
            if format.field_end.is_empty() && format.enclosed.is_none() {
                format.widths = Some(rows.widths(statement.has_line_end)?);
            }
            *begun = true;
            let file: Box<dyn FileParts + '_> = if statement.local {
                sink.client_file(&statement.file)?.ok_or_else(local_is_off)?
            } else {
                Box::new(file::open(session, &statement.file, sink)?)
            };
            let mut inserter = Inserter::whole_rows(session, target.clone(), statement.on_duplicate);
            inserter.many_rows();
            let told = session.state.warnings.clone();
            // During the load, the session's list of warnings holds those of one row only.
            session.state.warnings.clear();
            session.state.warnings.kept_max = usize::MAX;
            let mut load = Load {
                database: &instance.database,
                target: &target,
                file: Reading { file, bytes: Vec::new(), at: 0, is_whole: false },
                cutter: Cutter::new(format),
                rows,
                inserter,
                inserted: Inserted::default(),
                filling: None,
                // What is built at once cannot be checked row by row.
                may_fill: family.is_none()
                    && session.variables.common.autocommit
                    && !session.state.transaction.open,
                told,
            };
            let loaded = load.run(session, statement, readers, &mut writer);
            session.state.warnings = load.told;
            loaded.map(|()| load.inserted)
        },
    )
}

/// A file, with the bytes that have been read.
struct Reading<'f> {
    file: Box<dyn FileParts + 'f>,
    bytes: Vec<u8>,
    /// Where the next row begins.
    at: usize,
    is_whole: bool,
}

impl Reading<'_> {
    /// Reads on. What is there of the row is looked at anew each time, so it is doubled: otherwise a row of
    /// many parts would be looked at once for each of them.
    fn more(&mut self, interrupt: &Interrupt) -> Result<(), SqlError> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let wanted = 2 * self.bytes.len();
        loop {
            interrupt.check()?;
            if self.bytes.len() > ROW_BYTES_MAX {
                let text = format!("A row of the file is longer than {ROW_BYTES_MAX} bytes");
                return Err(SqlError::new(ErrorKind::Unknown, text));
            }
            self.is_whole = !self.file.next_part(&mut self.bytes)?;
            if self.is_whole || self.bytes.len() >= wanted {
                return Ok(());
            }
        }
    }
}

/// A LOAD DATA while it runs.
struct Load<'f> {
    database: &'f Database,
    target: &'f Target,
    file: Reading<'f>,
    cutter: Cutter,
    rows: Rows,
    inserter: Inserter,
    inserted: Inserted,
    /// Set if the table was empty. Its trees are built when all rows are there.
    filling: Option<engine::Load<'f>>,
    /// True while the table may still be built that way: no transaction would have to undo it, and nothing
    /// has been written.
    may_fill: bool,
    /// The warnings of the rows before.
    told: Warnings,
}

impl Load<'_> {
    fn run(
        &mut self,
        session: &mut Session,
        statement: &LoadStatement,
        readers: Readers<'_>,
        writer: &mut Writer<'_>,
    ) -> Result<(), SqlError> {
        let mut rows_to_skip = 0;
        if statement.has_line_end {
            self.skip_lines(session, statement.lines_to_skip)?;
        } else {
            rows_to_skip = statement.lines_to_skip;
        }
        let mut arena = Bump::new();
        loop {
            let row = self.next_row(session)?;
            if let Some(row) = row {
                if rows_to_skip > 0 {
                    rows_to_skip -= 1;
                    self.file.at = row.end;
                    continue;
                }
                arena.reset();
                let added =
                    self.rows.add(session, &mut self.inserter, &self.cutter, &self.file.bytes, row, &arena);
                self.file.at = row.end;
                if let Err(error) = added {
                    // Write the rows before this one first: if one of them collides, that error comes first.
                    self.write(session, readers, writer, false)?;
                    if let Some(filling) = self.filling.take() {
                        self.one_by_one(session, readers, writer, filling.give_up())?;
                    }
                    return Err(error);
                }
            }
            let is_last = row.is_none_or(|row| row.is_last);
            let batch = self.inserter.batch();
            if is_last || batch.len() >= BATCH_ROWS || batch.bytes.len() >= BATCH_BYTES {
                self.write(session, readers, writer, !is_last)?;
            }
            if is_last {
                return self.finish(session, readers, writer);
            }
        }
    }

    fn skip_lines(&mut self, session: &Session, count: u64) -> Result<(), SqlError> {
        for _ in 0..count {
            loop {
                let Reading { bytes, at, is_whole, .. } = &self.file;
                match self.cutter.skip_line(bytes, *at, *is_whole) {
                    Found::More => {
                        session.interrupt.check()?;
                        self.file.more(&session.interrupt)?;
                    }
                    Found::Row(line) => {
                        self.file.at = line.end;
                        break;
                    }
                    Found::Nothing => {
                        self.file.at = self.file.bytes.len();
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn next_row(&mut self, session: &Session) -> Result<Option<Row>, SqlError> {
        loop {
            let Reading { bytes, at, is_whole, .. } = &self.file;
            match self.cutter.row(bytes, *at, *is_whole, self.rows.fields()) {
                Found::Row(row) => return Ok(Some(row)),
                Found::Nothing => return Ok(None),
                Found::More => {
                    session.interrupt.check()?;
                    self.file.more(&session.interrupt)?;
                }
            }
        }
    }

    /// Inserts the collected rows. `goes_on` says whether more may follow.
    fn write(
        &mut self,
        session: &mut Session,
        readers: Readers<'_>,
        writer: &mut Writer<'_>,
        goes_on: bool,
    ) -> Result<(), SqlError> {
        session.interrupt.check()?;
        if self.inserter.batch().is_empty() {
            return Ok(());
        }
        // For a single batch, building the trees from a file is not worth it.
        if std::mem::take(&mut self.may_fill) && goes_on {
            self.filling = writer.begin_load(self.database, &self.target.table)?;
        }
        let Some(filling) = &mut self.filling else { return self.insert(session, readers, writer) };
        let fits = self.inserter.load_batch(session, filling, &mut self.inserted)?;
        self.tell(Vec::new());
        if !fits && let Some(filling) = self.filling.take() {
            self.one_by_one(session, readers, writer, filling.give_up())?;
        }
        Ok(())
    }

    fn insert(
        &mut self,
        session: &mut Session,
        readers: Readers<'_>,
        writer: &mut Writer<'_>,
    ) -> Result<(), SqlError> {
        let skipped = self.inserter.write_batch(session, readers.current, writer, &mut self.inserted)?;
        self.tell(skipped);
        Ok(())
    }

    /// Builds the table's trees, if the table is loaded that way.
    fn finish(
        &mut self,
        session: &mut Session,
        readers: Readers<'_>,
        writer: &mut Writer<'_>,
    ) -> Result<(), SqlError> {
        let Some(filling) = self.filling.take() else { return Ok(()) };
        session.interrupt.check()?;
        match filling.finish()? {
            Loaded::Done => Ok(()),
            Loaded::Collided(rows) => self.one_by_one(session, readers, writer, rows),
        }
    }

    /// If keys of the rows collide, the rows are inserted in the order of the file. That order decides which
    /// of them fail, are skipped or replace others.
    fn one_by_one(
        &mut self,
        session: &mut Session,
        readers: Readers<'_>,
        writer: &mut Writer<'_>,
        mut rows: LoadedRows<'_>,
    ) -> Result<(), SqlError> {
        let insert_id = self.inserted;
        self.inserted = Inserted { records: 0, affected: 0, duplicates: 0, ..insert_id };
        self.inserter.start_over();
        let mut batch = KeyList::default();
        rows.each(|image| {
            batch.push(image);
            if batch.len() >= BATCH_ROWS || batch.bytes.len() >= BATCH_BYTES {
                session.interrupt.check()?;
                self.inserter.take_batch(&mut batch);
                self.insert(session, readers, writer)?;
            }
            Ok::<(), SqlError>(())
        })?;
        self.inserter.take_batch(&mut batch);
        self.insert(session, readers, writer)
    }

    /// Appends the warnings of the rows just written to the warnings of the rows before.
    fn tell(&mut self, skipped: Vec<(u64, SqlError)>) {
        let mut warnings = std::mem::take(&mut self.rows.warnings);
        warnings.extend(skipped.into_iter().map(|(number, error)| {
            let warning = Warning { level: Level::Warning, kind: error.kind, message: error.message };
            (number, Phase::Duplicate, warning)
        }));
        warnings.sort_by_key(|(number, phase, _)| (*number, *phase));
        for (_, _, Warning { level, kind, message }) in warnings {
            self.told.push(level, kind, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of so many parts of ten bytes.
    struct Parts(usize);

    impl FileParts for Parts {
        fn next_part(&mut self, buffer: &mut Vec<u8>) -> Result<bool, SqlError> {
            let is_there = self.0 > 0;
            self.0 -= usize::from(is_there);
            buffer.extend_from_slice(&b"0123456789"[..if is_there { 10 } else { 0 }]);
            Ok(is_there)
        }
    }

    #[test]
    fn a_row_of_many_parts_is_looked_at_a_few_times() {
        let mut reading = Reading { file: Box::new(Parts(1_000)), bytes: vec![], at: 0, is_whole: false };
        let mut looks = 0;
        while !reading.is_whole {
            looks += 1;
            reading.more(&Interrupt::default()).unwrap();
        }
        assert_eq!(reading.bytes.len(), 10_000);
        assert!(looks <= 12, "{looks} looks");
        // Rows that end within a part need one part at a time.
        let mut reading = Reading { file: Box::new(Parts(10)), bytes: vec![], at: 0, is_whole: false };
        reading.more(&Interrupt::default()).unwrap();
        reading.at = 10;
        reading.more(&Interrupt::default()).unwrap();
        assert_eq!(reading.bytes.len(), 10);
        let killed = Interrupt::default();
        killed.raise(crate::host::Kill::Statement);
        assert_eq!(reading.more(&killed).unwrap_err().kind, ErrorKind::QueryInterrupted);
    }
}

//! Verification of a data directory: see `examine` for what is looked at.

use crate::Result;
use crate::database::Database;
use crate::definition::{CacheOptions, Options};
use crate::examine::{CacheSource, CheckReport, Finding, check_files, record_of, start};
use crate::format::control::Control;
use crate::recovery::Start;
use base::sync::Arc;
use pagecache::WriteBack;
use std::path::Path;
use vfs::{Overlay, Vfs};

/// Verifies a data directory that nobody has open. Findings are in the report; `Err` means that it could not
/// be examined at all. Nothing is written: a directory that was not shut down cleanly is recovered in memory,
/// which takes as much of it as recovery changes, and examined as it is then.
///
/// # Errors
/// [`crate::Error::AlreadyOpen`] if a process has the directory open; [`crate::Error::WrongFormat`] if it is
/// no data directory.
pub fn check(dir: &Path, vfs: Arc<dyn Vfs>) -> Result<CheckReport> {
    let overlay: Arc<dyn Vfs> = Arc::new(Overlay::new(vfs.clone()));
    let (control, _) = Control::open(overlay.clone(), dir, 0, false)?;
    let page_size = control.page_size();
    let mut report = CheckReport::default();
    let start = Start::read(&*overlay, dir, page_size)?;
    if start.is_clean() {
        check_files(&mut report, &*overlay, dir, page_size);
        return Ok(report);
    }
    match recover(dir, &overlay, control, &start) {
        Ok(database) => {
            report.recovery = Some(database.recovery());
            check_files(&mut report, &*overlay, dir, page_size);
        }
        Err(error) => {
            let what = format!(
                "it was not shut down cleanly, and cannot be recovered: {error}. What else is found is found in the files \
                 as they are, and may come of that"
            );
            report.findings.push(Finding { path: dir.to_path_buf(), page: None, index: None, what });
            let untouched = Overlay::new(vfs);
            let _locked = Control::open(Arc::new(untouched.clone()), dir, 0, false)?;
            check_files(&mut report, &untouched, dir, page_size);
        }
    }
    Ok(report)
}

/// Does what a start does, with everything written to `overlay` at the end. The lock is held as long as the
/// database lives.
fn recover(dir: &Path, overlay: &Arc<dyn Vfs>, control: Control, start: &Start) -> Result<Database> {
    let cache = CacheOptions { write_back: WriteBack::AtEvictionOnly, ..CacheOptions::default() };
    let options =
        Options { cache, vfs: overlay.clone(), taken_back_at_start_max: usize::MAX, ..Options::default() };
    let database = Database::recover(dir, &options, control, start)?;
    // A start closes such a table and goes on. Its file is examined as it is.
    for damaged in database.damaged_tables() {
        database.table(&damaged.database, &damaged.name)?;
    }
    database.core().caches.flush_all()?;
    Ok(database)
}

impl Database {
    /// Verifies an open database, as its cache has it. Waits for statements under way and keeps others out
    /// meanwhile.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if a file cannot be read. Damage is a finding of the report and no error.
    pub fn check(&self) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        self.finish_rollbacks();
        self.core().purge.drain(self.core());
        let (catalogue, _closure) = self.quiesce();
        let space = catalogue.tree().space();
        let (pages, free) = space.occupancy();
        let mut source = CacheSource(space);
        let mut file = start(&mut report, &space.path(), &mut source, pages);
        file.meet_maps(space.page_size());
        file.meet_free(&free);
        file.catalogue();
        file.find_lost_pages();
        for damaged in self.damaged_tables() {
            let index = Some(format!("{}.{}", damaged.database, damaged.name));
            let what = format!("closed since the start: {}", damaged.why);
            report.findings.push(Finding { path: self.dir().to_path_buf(), page: None, index, what });
        }
        for (name, _) in self.databases() {
            for table in self.tables(&name)? {
                let state = table.live_state()?;
                let record = record_of(&table, state);
                let (pages, free) = state.space.occupancy();
                let mut source = CacheSource(&state.space);
                let mut file = start(&mut report, &state.space.path(), &mut source, pages);
                file.meet_maps(state.space.page_size());
                file.meet_free(&free);
                file.table(&record);
                // Overflow pages of rows as they were are known to their versions only.
                if self.core().purge.len() == 0 {
                    file.find_lost_pages();
                }
            }
        }
        Ok(report)
    }
}

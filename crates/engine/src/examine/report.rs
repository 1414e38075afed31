//! What a verification found.

use crate::recovery::Recovery;
use std::fmt;
use std::path::PathBuf;

/// The result of a verification.
#[derive(Clone, Default, Debug)]
pub struct CheckReport {
    /// The directory was not shut down cleanly, and what is reported is how a start would leave it: done in
    /// memory, for this examination only.
    pub recovery: Option<Recovery>,
    /// Files, pages and rows examined.
    pub files: u64,
    pub pages: u64,
    pub rows: u64,
    /// Deleted rows and old index entries that nobody sees and that have not been removed yet.
    pub garbage: u64,
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub path: PathBuf,
    pub page: Option<u32>,
    /// `database.table, index name`.
    pub index: Option<String>,
    pub what: String,
}

impl CheckReport {
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(page) = self.page {
            write!(f, " page {page}")?;
        }
        if let Some(index) = &self.index {
            write!(f, " ({index})")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(recovery) = &self.recovery {
            let Recovery { records, repaired_pages, rolled_back, changes_taken_back } = recovery;
            writeln!(
                f,
                "not shut down cleanly: examined as the next start will leave it; replayed in memory {records} log \
                 record(s), repaired {repaired_pages} torn page(s), rolled back {rolled_back} transaction(s) with \
                 {changes_taken_back} change(s); nothing was written"
            )?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let verdict = match self.findings.len() {
            0 => "all is well".to_string(),
            1 => "1 finding".to_string(),
            count => format!("{count} findings"),
        };
        write!(f, "{} file(s), {} page(s), {} row(s): {verdict}", self.files, self.pages, self.rows)
    }
}

//! What a verification found.

use std::fmt;
use std::path::PathBuf;

/// The result of a verification.
#[derive(Clone, Default, Debug)]
pub struct CheckReport {
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

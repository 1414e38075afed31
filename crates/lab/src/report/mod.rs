//! From [`crate::results::Results`] to something to read.

mod calendar;
pub mod html;
pub mod json;
pub mod plot;
pub mod text;
pub mod view;

pub use calendar::{date, timestamp};

use crate::error::{Error, Result};
use crate::results::Results;
use std::fs;
use std::path::{Path, PathBuf};

pub const JSON_FILE: &str = "result.json";
pub const HTML_FILE: &str = "report.html";

/// Writes the JSON so that a reader finds the old file or the new one, never half of one.
pub fn save_json(results: &Results, folder: &Path) -> Result<PathBuf> {
    save(folder, JSON_FILE, &results.to_json().to_pretty())
}

/// Writes the page, likewise.
pub fn save_html(results: &Results, folder: &Path) -> Result<PathBuf> {
    save(folder, HTML_FILE, &html::render(results))
}

fn save(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    let draft = folder.join(format!(".{name}.new"));
    fs::write(&draft, text).map_err(Error::path("write", &draft))?;
    fs::rename(&draft, &path).map_err(Error::path("write", &path))?;
    Ok(path)
}

//! Turns [`crate::results::Results`] into text, pages and plots.

mod calendar;
mod download;
pub(crate) mod html;
pub(crate) mod plot;
mod relative;
pub(crate) mod sentences;
pub(crate) mod text;
pub(crate) mod view;

pub(crate) use calendar::{date, timestamp};

use crate::error::{Error, Result};
use crate::results::Results;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The form of a command's output on standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Table,
    Json,
}

/// Writes to standard output. It is no error if the reader is gone (`| head`).
pub(crate) fn print(text: &str) -> Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("cannot write to standard output")(error))
        }
        _ => Ok(()),
    }
}

pub(crate) const JSON_FILE: &str = "result.json";
pub(crate) const HTML_FILE: &str = "report.html";

/// The file of results that a user names, by itself or by its folder.
pub(crate) fn json_path(name: impl AsRef<Path>) -> PathBuf {
    let name = name.as_ref();
    if name.is_dir() { name.join(JSON_FILE) } else { name.to_path_buf() }
}

pub(crate) fn save_json(results: &Results, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(JSON_FILE);
    save(&path, &results.to_json().to_pretty()).map(|()| path)
}

pub(crate) fn save_html(results: &Results, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(HTML_FILE);
    save(&path, &html::render(std::slice::from_ref(results))).map(|()| path)
}

/// Writes a file so that a reader finds the old file or the new one, never a part of one.
pub(crate) fn save(path: &Path, text: &str) -> Result<()> {
    let mut draft = path.as_os_str().to_os_string();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    fs::write(&draft, text).map_err(Error::path("write", &draft))?;
    fs::rename(&draft, path).map_err(Error::path("write", path))
}

/// A plot as a file of its own, for a README: the first one whose name has `wanted` in it. It contains its
/// styles, light and dark. The error is the list of all names.
pub(crate) fn picture(results: &Results, wanted: &str) -> Result<String, String> {
    let block = view::blocks(results).into_iter().next().unwrap_or_default();
    let plots = html::block_plots(results, &block);
    match plots.iter().find(|(_, plot)| plot.y_name.contains(wanted)) {
        Some((_, plot)) => Ok(plot.to_picture(html::STYLE)),
        None => Err(plots.into_iter().map(|(_, plot)| plot.y_name).collect::<Vec<_>>().join("; ")),
    }
}

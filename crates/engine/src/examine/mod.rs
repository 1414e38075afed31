//! Examines files: every page, every order, every reference.
//!
//! For each file: the checksum and identity of every page in use; of every tree the shape of its pages, the
//! order of their keys, fences that agree with the parents' separators, levels; that each page is used once
//! and every page of the file is used, free or the header; of every table that its rows can be read, that
//! each row has its entry in every index and each entry its row, and that the row count is right.

mod report;
mod source;
mod table;
mod tree;

pub use report::{CheckReport, Finding};

use crate::Result;
use crate::format::catalogue::{CATALOGUE_ROOT, CATALOGUE_TREE, Record, TableRecord, decode};
use crate::format::free_map::is_map_page;
use crate::format::overflow::Reference;
use crate::format::row::split_cell;
use crate::names::{CATALOGUE_FILE, CATALOGUE_NAME, table_path};
use crate::space::tablespace::Tablespace;
use crate::table::Table;
use crate::table::state::TableState;
use base::{FileId, PageNo};
pub(crate) use source::CacheSource;
use source::{FileSource, PageSource};
use std::path::{Path, PathBuf};
use vfs::{Create, Vfs};

/// A file under examination.
pub(crate) struct FileCheck<'r> {
    report: &'r mut CheckReport,
    path: PathBuf,
    source: &'r mut dyn PageSource,
    /// The index that findings are about.
    index: Option<String>,
    /// Which pages have been met.
    met: Vec<bool>,
}

impl FileCheck<'_> {
    fn find(&mut self, page: Option<u32>, what: impl Into<String>) {
        self.report.findings.push(Finding {
            path: self.path.clone(),
            page,
            index: self.index.clone(),
            what: what.into(),
        });
    }

    /// Notes that a page is in use; false, and a finding, if it has been met before or lies outside the file.
    fn meet(&mut self, page: PageNo, by: &str) -> bool {
        match self.met.get_mut(page.0 as usize) {
            None => {
                self.find(Some(page.0), format!("{by}, but the file has {} pages", self.met.len()));
                false
            }
            Some(true) => {
                self.find(Some(page.0), format!("{by}, but it is used elsewhere, or free"));
                false
            }
            Some(met) => {
                *met = true;
                true
            }
        }
    }

    pub(crate) fn meet_maps(&mut self, page_size: usize) {
        for page in (0..self.met.len() as u32).map(PageNo).filter(|page| is_map_page(*page, page_size)) {
            self.meet(page, "the free map");
        }
    }

    pub(crate) fn meet_free(&mut self, free: &[PageNo]) {
        for page in free {
            self.meet(*page, "it is free");
        }
    }

    pub(crate) fn find_lost_pages(&mut self) {
        let lost: Vec<u32> = (0..self.met.len() as u32).filter(|page| !self.met[*page as usize]).collect();
        if let Some(first) = lost.first() {
            let what = format!("{} page(s), this one first, are neither in use nor free", lost.len());
            self.find(Some(*first), what);
        }
    }

    /// The bytes of a large row, its pages noted as in use.
    fn chain(&mut self, reference: Reference) -> Option<Vec<u8>> {
        let mut image = Vec::new();
        let mut page = reference.first;
        let mut position = 0;
        while (image.len() as u64) < reference.len {
            if !self.meet(page, "an overflow chain leads to it") {
                return None;
            }
            let buffer = match self.source.page(page) {
                Ok(buffer) => buffer,
                Err(why) => {
                    self.find(Some(page.0), why);
                    return None;
                }
            };
            let link = crate::format::overflow::parse_link(buffer.page(), reference.chain, position);
            let Some(link) = link.filter(|link| link.bytes > 0) else {
                self.find(Some(page.0), format!("not page {position} of overflow chain {}", reference.chain));
                return None;
            };
            buffer.page().append_to(crate::format::layout::HEADER_BYTES, link.bytes, &mut image);
            page = link.next;
            position += 1;
        }
        Some(image)
    }

    /// The image in a row's cell.
    fn image<'c>(&mut self, page: u32, cell: &'c [u8], scratch: &'c mut Vec<u8>) -> Option<&'c [u8]> {
        let Some((header, rest)) = split_cell(cell) else {
            self.find(Some(page), "a row without a header");
            return None;
        };
        if !header.is_overflow() {
            return Some(rest);
        }
        let Some(reference) = Reference::from_bytes(rest) else {
            self.find(Some(page), "a reference to an overflow chain that is cut short");
            return None;
        };
        *scratch = self.chain(reference)?;
        Some(scratch)
    }

    /// Reads the catalogue's records.
    pub(crate) fn catalogue(&mut self) -> Vec<Record> {
        let mut cells = Vec::new();
        self.tree(CATALOGUE_ROOT, CATALOGUE_TREE, &mut |_, page, key, cell| {
            cells.push((page, key.to_vec(), cell.to_vec()));
        });
        let mut records = Vec::new();
        for (page, key, cell) in cells {
            let mut scratch = Vec::new();
            let Some(value) = self.image(page, &cell, &mut scratch) else { continue };
            match decode(&key, value) {
                Some(record) => records.push(record),
                None => self.find(Some(page), "a catalogue record cannot be read"),
            }
        }
        records
    }
}

/// Examines the catalogue, and the files of all tables that it names.
pub(crate) fn check_files(report: &mut CheckReport, vfs: &dyn Vfs, dir: &Path, page_size: usize) {
    let path = dir.join(CATALOGUE_NAME);
    let records = check_file(report, vfs, &path, CATALOGUE_FILE, page_size, |file, _| file.catalogue());
    for record in records.unwrap_or_default() {
        if let Record::Table(record) = record {
            let path = table_path(dir, record.file);
            let page_size = record.def.page_size.map_or(page_size, |bytes| bytes as usize);
            check_file(report, vfs, &path, record.file, page_size, |file, _| file.table(&record));
        }
    }
}

/// Opens a file and examines its header and free map; `contents` examines the rest. It gets the row count
/// that the header names.
fn check_file<T>(
    report: &mut CheckReport,
    vfs: &dyn Vfs,
    path: &Path,
    file_id: FileId,
    page_size: usize,
    contents: impl FnOnce(&mut FileCheck<'_>, u64) -> T,
) -> Option<T> {
    let mut find = |page, what: String| {
        report.findings.push(Finding { path: path.to_path_buf(), page, index: None, what });
    };
    let mut source = match vfs.open(path, Create::Never) {
        Ok(file) => FileSource::new(file, file_id, page_size),
        Err(error) => {
            find(None, format!("cannot be opened: {error}"));
            return None;
        }
    };
    let header = source
        .page(PageNo(0))
        .and_then(|page| crate::format::file_header::parse_header(page.page(), page_size));
    let header = match header {
        Ok(header) => header,
        Err(why) => {
            find(Some(0), why);
            return None;
        }
    };
    let map = match source.free_map(&header) {
        Ok(map) => map,
        Err((page, why)) => {
            find(Some(page), why);
            return None;
        }
    };
    let mut check = start(report, path, &mut source, map.pages);
    check.meet_maps(page_size);
    check.meet_free(&map.free);
    let result = contents(&mut check, header.numbers.rows);
    check.find_lost_pages();
    Some(result)
}

pub(crate) fn start<'r>(
    report: &'r mut CheckReport,
    path: &Path,
    source: &'r mut dyn PageSource,
    pages: u32,
) -> FileCheck<'r> {
    report.files += 1;
    report.pages += u64::from(pages);
    let mut check =
        FileCheck { report, path: path.to_path_buf(), source, index: None, met: vec![false; pages as usize] };
    check.meet(PageNo(0), "the file header");
    check
}

/// Frees the pages of a table that are neither in use nor free: what changes left that a crash cut short.
/// Nobody else uses the table, and all its rows are as they are to stay. Gives their number.
pub(crate) fn free_table_pages(table: &Table) -> Result<usize> {
    let state = table.live_state()?;
    let record = record_of(table, state);
    free_lost_pages(&state.space, |file| {
        for (root, tree) in &record.roots[1..] {
            file.tree(*root, *tree, &mut |_, _, _, _| ());
        }
        let (root, tree) = record.roots[0];
        file.tree(root, tree, &mut |file, page, _, cell| {
            let mut image = Vec::new();
            file.image(page, cell, &mut image);
        });
    })
}

/// Frees what `walk` does not meet of a file that is in doubt. A file with anything wrong in it is left
/// alone.
pub(crate) fn free_lost_pages(space: &Tablespace, walk: impl FnOnce(&mut FileCheck<'_>)) -> Result<usize> {
    // What recovery did by itself has come to its end.
    space.end_doubt_if_idle()?;
    if !space.is_in_doubt() {
        return Ok(0);
    }
    let mut report = CheckReport::default();
    let (pages, free) = space.occupancy();
    let mut source = CacheSource(space);
    let mut file = start(&mut report, &space.path(), &mut source, pages);
    file.meet_maps(space.page_size());
    file.meet_free(&free);
    walk(&mut file);
    let lost: Vec<PageNo> = (0..pages).filter(|page| !file.met[*page as usize]).map(PageNo).collect();
    if !report.is_clean() {
        return Ok(0);
    }
    space.free_pages(&lost)?;
    space.end_doubt()?;
    Ok(lost.len())
}

pub(crate) fn record_of(table: &Table, state: &TableState) -> TableRecord {
    TableRecord {
        id: table.id(),
        file: state.space.file_id(),
        next_tree: state.next_tree,
        roots: state.indexes.iter().map(|index| (index.tree.root(), index.tree.id())).collect(),
        def: (*state.def).clone(),
    }
}

//! A dump: a compressed file a table and form, and a manifest that says what is in them.

use super::super::options::Form;
use super::tables::{Kind, summed_up, write_line, write_values};
use crate::doctor::machine;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use base::random::Random;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.tsv";
const HEADER: &str = "table\tkind\trows\tchecksum\tbytes\tforms";
/// Tables of a shard. The n-th largest has the n-th part of the largest's rows.
const TABLES: u32 = 24;
/// Rows of an INSERT statement.
const ROWS_PER_STATEMENT: u32 = 1_000;
/// The interrupt is checked after this many rows.
const ROWS_PER_LOOK: u32 = 10_000;

/// A table of a dump.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dumped {
    pub name: String,
    pub kind: Kind,
    pub rows: u64,
    /// The sum of all rows' checksums.
    pub checksum: u64,
    /// Bytes in the form that LOAD DATA reads, before compression.
    pub bytes: u64,
    forms: Vec<Form>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dump {
    folder: PathBuf,
    /// The largest first.
    pub tables: Vec<Dumped>,
}

impl Dump {
    /// The dump that lies in `folder`, or a new one of about `bytes`.
    pub(crate) fn at(
        folder: &Path,
        bytes: u64,
        forms: &[Form],
        seed: u64,
        interrupt: &Interrupt,
        progress: &mut Progress,
    ) -> Result<Dump> {
        let manifest = folder.join(MANIFEST);
        if manifest.exists() {
            let text = fs::read_to_string(&manifest).map_err(Error::path("read", &manifest))?;
            let tables =
                parse(&text).ok_or_else(|| Error::Usage(format!("{} is no manifest", manifest.display())))?;
            let missing = forms.iter().find(|form| tables.iter().any(|table| !table.forms.contains(form)));
            if let Some(form) = missing {
                let why = format!(
                    "the dump in {} has no form `{}`; name another folder",
                    folder.display(),
                    form.name()
                );
                return Err(Error::Usage(why));
            }
            progress.note(&format!("taking the dump in {}", folder.display()));
            return Ok(Dump { folder: folder.to_path_buf(), tables });
        }
        fs::create_dir_all(folder).map_err(Error::path("create", folder))?;
        let mut dump = Dump { folder: folder.to_path_buf(), tables: Vec::new() };
        let shares: f64 = (1..=TABLES).map(|rank| 1.0 / f64::from(rank)).sum();
        progress.stage("writing the dump", bytes);
        let mut written = 0;
        for rank in 0..TABLES {
            let share = bytes as f64 / shares / f64::from(rank + 1);
            let kind = Kind::ALL[rank as usize % Kind::ALL.len()];
            let name = format!("shard{:02}_{}", rank + 1, kind.name());
            let random = Random::new(seed, 5_000 + u64::from(rank));
            let mut told = |bytes: u64| {
                progress.at(written + bytes, "");
                interrupt.check()
            };
            let table = dump.write(name, kind, share as u64, forms, random, &mut told)?;
            written += table.bytes;
            dump.tables.push(table);
        }
        // The manifest is written last: a folder that has one is complete.
        let lines: String = dump.tables.iter().map(line).collect();
        fs::write(&manifest, format!("{HEADER}\n{lines}")).map_err(Error::path("write", &manifest))?;
        Ok(dump)
    }

    fn write(
        &self,
        name: String,
        kind: Kind,
        bytes: u64,
        forms: &[Form],
        mut random: Random,
        told: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Dumped> {
        let mut table = Dumped { name, kind, rows: 0, checksum: 0, bytes: 0, forms: forms.to_vec() };
        let mut files = Vec::new();
        for &form in forms {
            let path = self.path(&table, form);
            let file = File::create(&path).map_err(Error::path("create", &path))?;
            files.push((form, path, FrameEncoder::new(BufWriter::new(file))));
        }
        let (mut line, mut piece) = (Vec::new(), Vec::new());
        let mut number = 0;
        while table.bytes < bytes || number == 0 {
            number += 1;
            let row = kind.row(number, &mut random);
            line.clear();
            write_line(&row, &mut line);
            table.rows += 1;
            table.checksum += summed_up(&row);
            table.bytes += line.len() as u64;
            let last = table.bytes >= bytes;
            for (form, path, file) in &mut files {
                piece.clear();
                match form {
                    Form::Load => piece.extend_from_slice(&line),
                    Form::Insert => {
                        if number % ROWS_PER_STATEMENT == 1 {
                            piece.extend_from_slice(format!("INSERT INTO {} VALUES ", table.name).as_bytes());
                        }
                        write_values(&row, &mut piece);
                        let ends = last || number % ROWS_PER_STATEMENT == 0;
                        piece.extend_from_slice(if ends { b";\n" } else { b"," });
                    }
                }
                file.write_all(&piece).map_err(Error::path("write", path))?;
            }
            if number % ROWS_PER_LOOK == 0 {
                told(table.bytes)?;
            }
        }
        for (_, path, file) in files {
            let file = file.finish().map_err(|error| Error::path("write", &path)(error.into()))?;
            file.into_inner().map_err(|error| Error::path("write", &path)(error.into_error()))?;
        }
        Ok(table)
    }

    fn path(&self, table: &Dumped, form: Form) -> PathBuf {
        let extension = match form {
            Form::Load => "txt.lz4",
            Form::Insert => "sql.lz4",
        };
        self.folder.join(format!("{}.{extension}", table.name))
    }

    /// A table's file, decompressed on the way.
    pub(crate) fn open(&self, table: &Dumped, form: Form) -> Result<FrameDecoder<BufReader<File>>> {
        let path = self.path(table, form);
        let file = File::open(&path).map_err(Error::path("open", &path))?;
        Ok(FrameDecoder::new(BufReader::new(file)))
    }

    /// How many tables, and how large.
    pub(crate) fn describe(&self) -> String {
        let rows: u64 = self.tables.iter().map(|table| table.rows).sum();
        let largest = self.tables.first().map_or(0, |table| table.bytes);
        let size = machine::bytes;
        format!("{} of {}, the largest {}, {rows} rows", self.tables.len(), size(self.bytes()), size(largest))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}

fn line(table: &Dumped) -> String {
    let forms: Vec<&str> = table.forms.iter().map(|form| form.name()).collect();
    let Dumped { name, kind, rows, checksum, bytes, .. } = table;
    format!("{name}\t{}\t{rows}\t{checksum}\t{bytes}\t{}\n", kind.name(), forms.join(","))
}

fn parse(text: &str) -> Option<Vec<Dumped>> {
    let lines = text.strip_prefix(HEADER)?.trim_start().lines();
    lines
        .map(|line| {
            let [name, kind, rows, checksum, bytes, forms] =
                line.split('\t').collect::<Vec<_>>().try_into().ok()?;
            let form = |name: &str| Form::ALL.into_iter().find(|form| form.name() == name);
            Some(Dumped {
                name: name.to_string(),
                kind: Kind::ALL.into_iter().find(|known| known.name() == kind)?,
                rows: rows.parse().ok()?,
                checksum: checksum.parse().ok()?,
                bytes: bytes.parse().ok()?,
                forms: forms.split(',').map(form).collect::<Option<_>>()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_dump_is_found_again_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let make = |forms: &[Form]| {
            Dump::at(folder.path(), 200_000, forms, 303, &Interrupt::default(), &mut Progress::quiet())
        };
        let written = make(&[Form::Load, Form::Insert]).unwrap();
        assert_eq!(written.tables.len(), TABLES as usize);
        assert!((200_000..220_000).contains(&written.bytes()), "{}", written.bytes());
        // The sizes are skewed: the largest table has a quarter of all rows.
        assert!(written.tables[0].bytes > 50_000 && written.tables[23].bytes < 4_000);
        let again = make(&[Form::Insert]).unwrap();
        assert_eq!(again.tables, written.tables);
        for table in &again.tables {
            let (mut lines, mut sql) = (String::new(), String::new());
            again.open(table, Form::Load).unwrap().read_to_string(&mut lines).unwrap();
            again.open(table, Form::Insert).unwrap().read_to_string(&mut sql).unwrap();
            assert_eq!((lines.lines().count() as u64, lines.len() as u64), (table.rows, table.bytes));
            assert!(sql.lines().all(|line| line.starts_with("INSERT INTO") && line.ends_with(");")));
        }
    }

    #[test]
    fn a_dump_without_the_form_that_is_asked_for_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let make = |forms: &[Form]| {
            Dump::at(folder.path(), 1_000, forms, 303, &Interrupt::default(), &mut Progress::quiet())
        };
        make(&[Form::Load]).unwrap();
        assert!(make(&[Form::Insert]).unwrap_err().to_string().contains("no form `insert`"));
        fs::write(folder.path().join(MANIFEST), "something else").unwrap();
        assert!(make(&[Form::Load]).unwrap_err().to_string().contains("is no manifest"));
    }
}

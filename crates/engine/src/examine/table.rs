//! A table's rows against its indexes.
//!
//! Entries are compared as sums of hashes, so that memory does not grow with the table; only where the sums
//! differ are the entries themselves laid side by side.

use super::FileCheck;
use super::tree::Visitor;
use crate::definition::index_parts;
use crate::format::catalogue::TableRecord;
use crate::format::row::split_cell;
use crate::table::{Entry, entry_of};
use std::collections::BTreeSet;
use types::{KeyCodec, RowCodec};

/// Findings of one kind that are spelled out; the rest is counted.
const SPELLED_OUT: usize = 5;

/// A multiset of entries as a number of them and two sums of hashes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Sum {
    count: u64,
    one: u64,
    other: u64,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        self.one = self.one.wrapping_add(hash(key, value, 0x243f_6a88_85a3_08d3));
        self.other = self.other.wrapping_add(hash(key, value, 0x1319_8a2e_0370_7344));
    }
}

fn hash(key: &[u8], value: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (key.len() as u64) << 32 ^ value.len() as u64;
    for chunk in key.chunks(8).chain(value.chunks(8)) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let product = u128::from(hash ^ u64::from_le_bytes(word))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        hash = (product >> 64) as u64 ^ product as u64;
    }
    hash
}

impl FileCheck<'_> {
    /// Verifies a table.
    pub(crate) fn table(&mut self, record: &TableRecord) {
        let def = &record.def;
        let codecs: Vec<_> = index_parts(def).collect();
        let rows_codec = RowCodec::new(&def.columns);
        let name = |index: &str| Some(format!("{}.{}, {index}", def.database, def.name));
        let mut sums = vec![Sum::default(); codecs.len()];
        self.index = name("PRIMARY");
        let has_key = def.primary.is_some();
        self.rows(record, &rows_codec, &mut |file, page, key, image| {
            sums[0].count += 1;
            if let Err(error) = rows_codec.validate(image) {
                file.find(Some(page), format!("a row image is not one of the table's: {error:?}"));
                return;
            }
            let row = rows_codec.view(image);
            let mut entry = Entry::default();
            if has_key {
                codecs[0].0.encode_row(&row, &mut entry.key);
                if entry.key != key {
                    file.find(Some(page), "a row lies under another key than its own");
                }
            }
            for ((codec, _), sum) in codecs.iter().zip(&mut sums).skip(1) {
                entry_of(codec, &row, key, &mut entry);
                sum.add(&entry.key, &[]);
            }
        });
        self.report.rows += sums[0].count;
        for (position, index) in def.indexes.iter().enumerate() {
            self.index = name(&index.name);
            let (root, tree) = record.roots[position + 1];
            let mut sum = Sum::default();
            let met = self.met.clone();
            self.tree(root, tree, &mut |_, _, key, value| sum.add(key, value));
            if sum != sums[position + 1] {
                let after = std::mem::replace(&mut self.met, met);
                self.compare(record, position + 1, &rows_codec, &codecs[position + 1].0);
                self.met = after;
            }
        }
        self.index = None;
    }

    /// Walks the clustered index: key and image of each row.
    fn rows(&mut self, record: &TableRecord, _codec: &RowCodec, each: &mut Visitor<'_>) {
        let (root, tree) = record.roots[0];
        self.tree(root, tree, &mut |file, page, key, cell| {
            let is_deleted = split_cell(cell).is_some_and(|(header, _)| header.is_deleted());
            let mut scratch = Vec::new();
            match file.image(page, cell, &mut scratch) {
                Some(_) if is_deleted => file.report.garbage += 1,
                Some(image) => each(file, page, key, image),
                None => {}
            }
        });
    }

    /// Lays the entries that an index should have beside those it has.
    fn compare(&mut self, record: &TableRecord, position: usize, rows_codec: &RowCodec, codec: &KeyCodec) {
        let mut expected = BTreeSet::new();
        // The rows have been examined before: what is found again is not said again.
        let findings = self.report.findings.len();
        let index = self.index.take();
        self.met.fill(false);
        self.rows(record, rows_codec, &mut |_, _, key, image| {
            let mut entry = Entry::default();
            entry_of(codec, &rows_codec.view(image), key, &mut entry);
            expected.insert(entry.key);
        });
        self.met.fill(false);
        let (root, tree) = record.roots[position];
        // Entries of rows as they were may have been left behind by a crash: readers see that no row has
        // them.
        let mut garbage = 0;
        self.tree(root, tree, &mut |_, _, key, _| garbage += u64::from(!expected.remove(key)));
        self.report.garbage += garbage;
        self.report.findings.truncate(findings);
        self.index = index;
        for key in expected.iter().take(SPELLED_OUT) {
            self.find(None, format!("entry {} of a row is missing", hex(key)));
        }
        if expected.len() > SPELLED_OUT {
            self.find(None, format!("{} more entries of rows are missing", expected.len() - SPELLED_OUT));
        }
    }
}

fn hex(key: &[u8]) -> String {
    key.iter().take(32).map(|byte| format!("{byte:02x}")).collect()
}

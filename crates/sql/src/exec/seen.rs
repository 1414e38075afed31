//! The rows that have been seen already: for DISTINCT and UNION.
//!
//! Keys are kept in memory. When they take more than a temporary table may, no key is added any more. A row
//! with another key is put off: it goes to a file, sorted by its key. So at the end the first row of each key
//! is found. These rows are sorted again by when they came, and follow those that were handed on before.

use super::Flow;
use super::key_set::KeySet;
use crate::SqlError;
use crate::expr::value_keys::ValueKeys;
use crate::memory::Charge;
use crate::spill::{Sorter, Workspace};
use types::ValueRef;

/// What is known of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Novelty {
    New,
    Known,
    /// Nothing yet. The row has to be put off.
    Unknown,
}

/// The rows that have been seen already.
pub(super) struct Seen<'p> {
    /// `None` if the caller knows the keys.
    keys: Option<&'p ValueKeys>,
    workspace: Workspace<'p>,
    seen: KeySet,
    key: Vec<u8>,
    /// When the set takes so many bytes, more memory is asked for.
    bytes_next: usize,
    charge: Charge,
    put_off: Option<Box<PutOff<'p>>>,
}

/// Rows of which nobody knows whether they are new.
struct PutOff<'p> {
    /// Each row begins with its number, eight bytes.
    rows: Sorter<'p>,
    count: u64,
    row: Vec<u8>,
}

const NUMBER_BYTES: usize = size_of::<u64>();

impl<'p> Seen<'p> {
    pub(super) fn new(keys: &'p ValueKeys, workspace: Workspace<'p>) -> Seen<'p> {
        Seen { keys: Some(keys), ..Seen::of_keys(workspace) }
    }

    /// For rows whose keys are known.
    pub(super) fn of_keys(workspace: Workspace<'p>) -> Seen<'p> {
        let charge = Charge::default();
        let bytes_next = charge.covered().min(workspace.limits.table_bytes);
        let (seen, key) = (KeySet::default(), Vec::new());
        Seen { keys: None, workspace, seen, key, bytes_next, charge, put_off: None }
    }

    /// Notes a row with these values.
    pub(super) fn note(&mut self, values: &[ValueRef<'_>]) -> Result<Novelty, SqlError> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let keys = self.keys.ok_or_else(|| SqlError::internal("values without their keys"))?;
        keys.encode(values, &mut key);
        let novelty = self.note_key(&key);
        self.key = key;
        novelty
    }

    /// As [`Seen::note`], for values whose key is known.
    pub(super) fn note_key(&mut self, key: &[u8]) -> Result<Novelty, SqlError> {
        if self.put_off.is_some() {
            return Ok(if self.seen.contains(key) { Novelty::Known } else { Novelty::Unknown });
        }
        if !self.seen.insert(key) {
            return Ok(Novelty::Known);
        }
        if self.seen.bytes() >= self.bytes_next {
            self.grow()?;
        }
        Ok(Novelty::New)
    }

    #[cold]
    fn grow(&mut self) -> Result<(), SqlError> {
        let limits = self.workspace.limits;
        if self.seen.bytes() < limits.table_bytes {
            self.charge.cover(self.seen.bytes() + 1, self.workspace.account)?;
            self.bytes_next = self.charge.covered().min(limits.table_bytes);
            return Ok(());
        }
        self.workspace.note_disk_table();
        let rows = Sorter::new(self.workspace, limits.sort_bytes.max(limits.table_bytes), usize::MAX);
        self.put_off = Some(Box::new(PutOff { rows, count: 0, row: Vec::new() }));
        Ok(())
    }

    /// Puts off the row that was noted last. `append` appends its bytes.
    pub(super) fn put_off(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), SqlError> {
        let key = std::mem::take(&mut self.key);
        let done = self.put_off_key(&key, append);
        self.key = key;
        done
    }

    /// Puts off a row with this key.
    pub(super) fn put_off_key(
        &mut self,
        key: &[u8],
        append: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SqlError> {
        let Some(put_off) = &mut self.put_off else {
            return Err(SqlError::internal("a row put off while there is memory"));
        };
        put_off.row.clear();
        put_off.row.extend_from_slice(&put_off.count.to_be_bytes());
        put_off.count += 1;
        append(&mut put_off.row);
        put_off.rows.push(key, &put_off.row)
    }

    /// Hands on the bytes of the rows that were put off and are new. Afterwards nothing has been seen.
    pub(super) fn finish(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<Flow, SqlError>,
    ) -> Result<Flow, SqlError> {
        let Some(put_off) = self.put_off.take() else { return Ok(Flow::Continue) };
        self.seen = KeySet::default();
        self.charge = Charge::default();
        self.bytes_next = self.charge.covered().min(self.workspace.limits.table_bytes);
        let limits = self.workspace.limits;
        let mut rows = put_off.rows.finish()?;
        let memory_bytes = limits.sort_bytes.max(limits.table_bytes);
        let mut firsts = Sorter::new(self.workspace, memory_bytes, usize::MAX);
        let mut last: Option<Vec<u8>> = None;
        while rows.advance()? {
            if last.as_deref() == Some(rows.key()) {
                continue;
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(rows.key());
            let (number, row) = rows.row().split_at(NUMBER_BYTES);
            firsts.push(number, row)?;
        }
        drop(rows);
        let mut rows = firsts.finish()?;
        while rows.advance()? {
            if each(rows.row())? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

//! What is kept of a row while window functions are computed.
//!
//! ```text
//! record: end u32 for each component of each sort, in the key of that sort
//!       | the keys of all sorts but the first
//!       | length u32 | arguments | length u32 | parts | results of the sorts before
//! ```
//!
//! Lengths are little endian. Arguments and results are values as in any scratch file.

use crate::SqlError;
use crate::exec::parts::append_parts;
use crate::expr::{Context, Row};
use crate::plan::window::WindowPlan;
use crate::spill::{append_value, read_nth};
use types::ValueRef;

const LENGTH_BYTES: usize = 4;

/// Where the fields of a record are.
#[derive(Debug)]
pub(super) struct Layout<'p> {
    plan: &'p WindowPlan,
    /// By sort: the number of components of those before.
    first: Vec<usize>,
    components: usize,
}

/// The fields behind the keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'r> {
    pub(super) arguments: &'r [u8],
    pub(super) parts: &'r [u8],
    pub(super) results: &'r [u8],
}

fn bad() -> SqlError {
    SqlError::internal("a row of a window is not well formed")
}

/// Takes a field off that stands behind its length.
fn take<'r>(rest: &mut &'r [u8]) -> Result<&'r [u8], SqlError> {
    let (length, behind) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or_else(bad)?;
    let (field, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(bad)?;
    *rest = behind;
    Ok(field)
}

impl<'p> Layout<'p> {
    pub(super) fn new(plan: &'p WindowPlan) -> Layout<'p> {
        let mut components = 0;
        let mut first = Vec::with_capacity(plan.sorts.len());
        for sort in &plan.sorts {
            first.push(components);
            components += sort.components.len();
        }
        Layout { plan, first, components }
    }

    /// Makes the record of a row, and its key in the first sort.
    ///
    /// # Errors
    /// Those of evaluating what is kept.
    pub(super) fn make<'a>(
        &self,
        row: &Row<'a>,
        context: &Context<'a>,
        key: &mut Vec<u8>,
        record: &mut Vec<u8>,
    ) -> Result<(), SqlError>
    where
        'p: 'a,
    {
        let plan: &'p WindowPlan = self.plan;
        key.clear();
        record.clear();
        record.resize(self.components * LENGTH_BYTES, 0);
        let mut nth = 0;
        for (at, sort) in plan.sorts.iter().enumerate() {
            let start = record.len();
            for component in &sort.components {
                let value = component.value.evaluate(row, context)?;
                let out = if at == 0 { &mut *key } else { &mut *record };
                component.keys.encode(&[value], out);
                let end = (if at == 0 { key.len() } else { record.len() - start }) as u32;
                record[nth * LENGTH_BYTES..][..LENGTH_BYTES].copy_from_slice(&end.to_le_bytes());
                nth += 1;
            }
        }
        let start = record.len();
        record.extend_from_slice(&[0; LENGTH_BYTES]);
        for argument in &plan.arguments {
            let value = match argument.exact {
                true => argument.value.exact(row, context)?,
                false => argument.value.evaluate(row, context)?,
            };
            append_value(&value, record);
        }
        close(start, record);
        let start = record.len();
        record.extend_from_slice(&[0; LENGTH_BYTES]);
        append_parts(row, record);
        close(start, record);
        Ok(())
    }

    /// The bytes that the first components of a sort take in its key.
    pub(super) fn prefix<'r>(
        &self,
        sort: usize,
        components: usize,
        key: &'r [u8],
        record: &[u8],
    ) -> Result<&'r [u8], SqlError> {
        let Some(last) = components.checked_sub(1) else { return Ok(&[]) };
        key.get(..self.end(self.first[sort] + last, record)?).ok_or_else(bad)
    }

    fn end(&self, component: usize, record: &[u8]) -> Result<usize, SqlError> {
        let end = record.get(component * LENGTH_BYTES..).and_then(<[u8]>::first_chunk).ok_or_else(bad)?;
        Ok(u32::from_le_bytes(*end) as usize)
    }

    /// Where the key of a sort lies in a record. The first one is not there.
    fn key_range(&self, sort: usize, record: &[u8]) -> Result<std::ops::Range<usize>, SqlError> {
        let mut start = self.components * LENGTH_BYTES;
        for before in 1..sort {
            start += self.key_bytes(before, record)?;
        }
        Ok(start..start + self.key_bytes(sort, record)?)
    }

    fn key_bytes(&self, sort: usize, record: &[u8]) -> Result<usize, SqlError> {
        match self.plan.sorts[sort].components.len().checked_sub(1) {
            Some(last) if sort > 0 => self.end(self.first[sort] + last, record),
            _ => Ok(0),
        }
    }

    /// The key of a sort that is not the first one.
    pub(super) fn key<'r>(&self, sort: usize, record: &'r [u8]) -> Result<&'r [u8], SqlError> {
        record.get(self.key_range(sort, record)?).ok_or_else(bad)
    }

    pub(super) fn fields<'r>(&self, record: &'r [u8]) -> Result<Fields<'r>, SqlError> {
        let behind = self.key_range(self.plan.sorts.len() - 1, record)?.end;
        let mut rest = record.get(behind..).ok_or_else(bad)?;
        let (arguments, parts) = (take(&mut rest)?, take(&mut rest)?);
        Ok(Fields { arguments, parts, results: rest })
    }

    /// An argument of a function.
    pub(super) fn argument<'r>(&self, record: &'r [u8], nth: usize) -> Result<ValueRef<'r>, SqlError> {
        read_nth(self.fields(record)?.arguments, nth)
    }
}

/// Writes the length of the field that begins at `start` and ends the record.
fn close(start: usize, record: &mut [u8]) {
    // A row is no longer than a packet, 1 GiB at most.
    let length = (record.len() - start - LENGTH_BYTES) as u32;
    record[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

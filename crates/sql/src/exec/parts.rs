//! The parts of a joined row as bytes, for rows that are kept.

use crate::SqlError;
use crate::expr::{Part, Row};
use crate::plan::plan::{SelectPlan, Source};
use crate::spill::{append_row, read_row};
use bumpalo::Bump;

const NULLS: u8 = 0;
const IMAGE: u8 = 1;
const VALUES: u8 = 2;
/// What kind of part it is, and its length in bytes.
const PART_HEADER: usize = 5;

/// Appends the parts of a row, each behind its kind and its length.
pub(super) fn append_parts(row: &Row<'_>, out: &mut Vec<u8>) {
    for part in row.0 {
        let start = out.len();
        out.extend_from_slice(&[0; PART_HEADER]);
        out[start] = match part {
            Part::Nulls => NULLS,
            Part::Image(view) => {
                out.extend_from_slice(view.image());
                IMAGE
            }
            Part::Values(values) => {
                append_row(values, out);
                VALUES
            }
        };
        let length = (out.len() - start - PART_HEADER) as u32;
        out[start + 1..start + PART_HEADER].copy_from_slice(&length.to_le_bytes());
    }
}

/// The parts of a row that [`append_parts`] wrote: those of the tables, and what comes behind them.
///
/// # Errors
/// 1105 if the bytes are not those of a row of the plan.
pub(super) fn read_parts<'a>(
    plan: &'a SelectPlan,
    mut row: &'a [u8],
    arena: &'a Bump,
) -> Result<Vec<Part<'a>>, SqlError> {
    let bad = || SqlError::internal("a row of a scratch file has no parts");
    let mut parts = Vec::with_capacity(plan.inputs.len() + 2);
    while !row.is_empty() {
        let (header, rest) = row.split_first_chunk::<PART_HEADER>().ok_or_else(bad)?;
        let [tag, length @ ..] = *header;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(length) as usize).ok_or_else(bad)?;
        row = rest;
        parts.push(match (tag, plan.inputs.get(parts.len()).map(|input| &input.source)) {
            (NULLS, _) => Part::Nulls,
            (IMAGE, Some(Source::Table { table, .. })) => Part::Image(table.row_codec().view(bytes)),
            (VALUES, _) => {
                let mut values = Vec::new();
                read_row(bytes, &mut values)?;
                Part::Values(arena.alloc_slice_copy(&values))
            }
            _ => return Err(bad()),
        });
    }
    Ok(parts)
}

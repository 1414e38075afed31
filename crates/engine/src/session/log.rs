//! A transaction's records in the log.

use super::undo::{Mark, RowChange};
use crate::Result;
use crate::core::Core;
use crate::definition::KeyList;
use crate::table::Table;
use base::{FileId, Lsn, Stamp};

pub(super) fn position(core: &Core) -> u64 {
    core.journal.position().0
}

pub(super) fn row(
    _core: &Core,
    _stamp: Stamp,
    _n: usize,
    _file: FileId,
    _table: &Table,
    _change: &RowChange,
) -> Result<()> {
    Ok(())
}

pub(super) fn inserted(
    _core: &Core,
    _stamp: Stamp,
    _n: usize,
    _file: FileId,
    _table: &Table,
    _keys: &KeyList,
) -> Result<()> {
    Ok(())
}

pub(super) fn undone(_core: &Core, _stamp: Stamp, _mark: Mark) -> Result<()> {
    Ok(())
}

pub(super) fn committed(core: &Core, _stamp: Stamp) -> Result<u64> {
    Ok(core.journal.position().0)
}

pub(super) fn rolled_back(_core: &Core, _stamp: Stamp) -> Result<()> {
    Ok(())
}

pub(super) fn make_durable(core: &Core, end: u64) -> Result<()> {
    core.journal.commit(Lsn(end))
}

//! A page that is being written.

use crate::files::OpenFile;
use crate::frames::FrameNo;
use crate::page_header::{array, header};
use base::sync::Arc;
use base::{Lsn, PageId};
use vfs::AlignedBuffer;

/// A copy of a page on its way to the device. Its frame is marked `WRITING` until `end_write`.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub frame: FrameNo,
    pub id: PageId,
    pub file: Arc<OpenFile>,
    pub copy: AlignedBuffer,
}

impl Outgoing {
    pub fn lsn(&self) -> Lsn {
        Lsn(u64::from_le_bytes(array(&self.copy, header::LSN)))
    }
}

//! LMDB through heed: a reader keeps one read transaction open and copies out of the memory map.

use super::{Lookup, Reader, Store, VALUE_BYTES, check, value};
use crate::Result;
use heed::types::{Bytes, U32};
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithTls, byteorder::BigEndian};
use std::path::Path;

type Rows = Database<U32<BigEndian>, Bytes>;

pub struct Lmdb {
    environment: Env,
    rows: Rows,
}

pub fn open(folder: &Path, rows: u32) -> Result<Lmdb> {
    let map_bytes = (rows as usize * 400 + (64 << 20)).next_multiple_of(1 << 20);
    let mut open = EnvOpenOptions::new();
    open.map_size(map_bytes);
    // SAFETY: the folder is this process's own scratch folder and opened once; NO_SYNC gives up
    // durability only, which a benchmark's copy has no use for.
    let environment = unsafe { open.flags(EnvFlags::NO_SYNC).open(folder)? };
    let mut transaction = environment.write_txn()?;
    let table: Rows = environment.create_database(&mut transaction, None)?;
    for id in 0..rows {
        table.put_with_flags(&mut transaction, PutFlags::APPEND, &id, &value(id))?;
    }
    transaction.commit()?;
    Ok(Lmdb { environment, rows: table })
}

impl Store for Lmdb {
    fn name(&self, _lookup: Lookup) -> String {
        "LMDB (heed), one transaction open".into()
    }
    fn reader(&self, _lookup: Lookup) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(LmdbReader { transaction: self.environment.read_txn()?, rows: self.rows }))
    }
}

struct LmdbReader<'s> {
    transaction: RoTxn<'s, WithTls>,
    rows: Rows,
}

impl Reader for LmdbReader<'_> {
    fn look_up(&mut self, ids: &mut [u32]) -> Result<()> {
        let mut copied = Vec::with_capacity(VALUE_BYTES);
        for &id in ids.iter() {
            copied.clear();
            copied.extend_from_slice(self.rows.get(&self.transaction, &id)?.unwrap_or_default());
            check(id, std::hint::black_box(&copied))?;
        }
        Ok(())
    }
}

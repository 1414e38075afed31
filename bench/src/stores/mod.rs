//! One workload, several stores.

mod latchwork;
mod lmdb;
mod redb;

use crate::Result;
use crate::options::Options;
use std::path::Path;
use std::time::Instant;

pub const VALUE_BYTES: usize = 190;

/// How keys are handed to a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    Single,
    /// So many keys a call, sorted by the caller within the measured time.
    Batch(usize),
}

/// A store with its rows loaded.
pub trait Store: Sync {
    fn name(&self, lookup: Lookup) -> String;
    fn lookups(&self, _batch_keys: usize) -> Vec<Lookup> {
        vec![Lookup::Single]
    }
    /// A reader for one thread.
    fn reader(&self, lookup: Lookup) -> Result<Box<dyn Reader + '_>>;
}

pub trait Reader {
    /// Looks up every id, copies its value out and checks that it is the right one. May reorder `ids`.
    fn look_up(&mut self, ids: &mut [u32]) -> Result<()>;
}

/// The value of a row: its id, then bytes that follow from it.
pub fn value(id: u32) -> [u8; VALUE_BYTES] {
    let mut bytes = [0; VALUE_BYTES];
    for (position, byte) in bytes.iter_mut().enumerate() {
        *byte = (id as usize).wrapping_mul(31).wrapping_add(position) as u8;
    }
    bytes[..4].copy_from_slice(&id.to_be_bytes());
    bytes
}

/// The check that every lookup pays: the copied value starts with its id.
pub fn check(id: u32, copied: &[u8]) -> Result<()> {
    if copied.len() != VALUE_BYTES || copied[..4] != id.to_be_bytes() {
        return Err(format!("wrong value for id {id}").into());
    }
    Ok(())
}

pub fn load(options: &Options, rows: u32, folder: &Path) -> Result<Vec<Box<dyn Store>>> {
    let mut stores: Vec<Box<dyn Store>> = Vec::new();
    for name in &options.stores {
        let begin = Instant::now();
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        stores.push(match name.as_str() {
            "latchwork" => Box::new(latchwork::open(&folder, rows, engine::HitPath::Optimistic)?),
            "latchwork-locked" => Box::new(latchwork::open(&folder, rows, engine::HitPath::Locked)?),
            "lmdb" => Box::new(lmdb::open(&folder, rows)?),
            "redb" => Box::new(redb::open(&folder, rows)?),
            other => return Err(format!("there is no store `{other}`").into()),
        });
        eprintln!("loaded {rows} rows into {name} in {:.1} s", begin.elapsed().as_secs_f64());
    }
    Ok(stores)
}

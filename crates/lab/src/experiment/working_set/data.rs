//! The table of the sweep: sbtest's without its index. Its rows have a chosen size, and they compress about
//! as much as was asked for.

use base::random::Random;
use std::fmt::Write as _;
use std::io::Write as _;

pub(crate) const TABLE: &str = "sbtest1";
/// `c` is as in sysbench; `pad` fills the rest.
pub(crate) const C_CHARS: usize = 120;
/// Bytes of the id, `k`, and the lengths.
const FIXED_BYTES: usize = 10;
const GROUP: usize = 12;
/// The least bytes of a row.
pub(crate) const ROW_BYTES_MIN: u32 = (C_CHARS + FIXED_BYTES + GROUP) as u32;
/// A `pad` longer than this would not lie in the page with its row.
pub(crate) const ROW_BYTES_MAX: u32 = 1_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Data {
    pub rows: u32,
    pub seed: u64,
    /// About so many; sysbench has 200.
    pub row_bytes: u32,
    /// How many characters of a row are random; the others repeat them.
    pub own_chars: u32,
}

impl Data {
    pub(crate) fn pad_chars(&self) -> usize {
        (self.row_bytes as usize).saturating_sub(C_CHARS + FIXED_BYTES).max(GROUP)
    }

    /// `c` and `pad` of a row.
    pub(crate) fn texts(&self, id: u32) -> (Vec<u8>, Vec<u8>) {
        let mut random = Random::new(self.seed ^ 0x5e7, u64::from(id));
        let own_chars = self.own_chars.max(1) as usize;
        let mut own = String::with_capacity(own_chars + GROUP);
        while own.len() < own_chars {
            let _ = write!(own, "{:011}-", random.next_u64() % 100_000_000_000);
        }
        let mut chars = own.as_bytes()[..own_chars].iter().copied().cycle();
        let mut text = |length: usize| chars.by_ref().take(length - 1).collect();
        (text(C_CHARS), text(self.pad_chars()))
    }

    /// Characters of `c` and `pad` together.
    pub(crate) fn chars(&self) -> u32 {
        (C_CHARS + self.pad_chars() - 2) as u32
    }

    pub(crate) fn create_sql(&self, options: &str) -> String {
        format!(
            "CREATE TABLE {TABLE} (id INT UNSIGNED NOT NULL, k INT UNSIGNED NOT NULL, c CHAR({C_CHARS}) NOT NULL, \
             pad VARCHAR({}) NOT NULL, PRIMARY KEY (id)) CHARACTER SET latin1 {options}",
            self.pad_chars()
        )
    }

    pub(crate) fn insert_sql(&self, ids: std::ops::RangeInclusive<u32>, out: &mut Vec<u8>) {
        let _ = write!(out, "INSERT INTO {TABLE} (id, k, c, pad) VALUES ");
        for (position, id) in ids.enumerate() {
            let (c, pad) = self.texts(id);
            let comma = if position == 0 { "" } else { "," };
            // Writing into memory cannot fail.
            let _ = write!(out, "{comma}({id},0,'");
            out.extend_from_slice(&c);
            out.extend_from_slice(b"','");
            out.extend_from_slice(&pad);
            out.extend_from_slice(b"')");
        }
    }

    /// Ids in a random order: the first N of them are the N keys of the sweep, so that a longer list begins
    /// with the shorter.
    pub(crate) fn scattered(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = (1..=self.rows).collect();
        Random::new(self.seed, 77).shuffle(&mut ids);
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_size_and_repeat_themselves_as_asked() {
        let data = Data { rows: 10, seed: 1, row_bytes: 200, own_chars: 24 };
        let (c, pad) = data.texts(3);
        assert_eq!((c.len(), pad.len()), (119, 69));
        assert_eq!(c[..24], c[24..48]);
        assert_ne!(c[..12], c[12..24]);
        assert_eq!((c[11], pad[0]), (b'-', c[119 % 24]), "the pad goes on where c ends");
        assert_ne!(data.texts(4).0, c);
        let mut sql = Vec::new();
        data.insert_sql(1..=2, &mut sql);
        assert_eq!(sql.iter().filter(|&&byte| byte == b'(').count(), 3);
    }

    #[test]
    fn scattered_keys_are_all_ids_each_once() {
        let data = Data { rows: 1_000, seed: 1, row_bytes: 200, own_chars: 24 };
        let mut ids = data.scattered();
        assert_ne!(ids[..10], (1..=10).collect::<Vec<_>>());
        ids.sort_unstable();
        assert_eq!(ids, (1..=1_000).collect::<Vec<_>>());
    }
}

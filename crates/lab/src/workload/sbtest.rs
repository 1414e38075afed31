//! The table of the published study, each row a function of the seed and its id.

use base::random::{Random, mix};
use std::io::Write;

pub(crate) const DATABASE: &str = "sbtest";
/// The name that sysbench gives its first table.
pub(crate) const TABLE: &str = "sbtest1";

/// Groups of eleven digits in `c` and `pad`.
const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;
const GROUP_DIGITS: usize = 11;
pub(crate) const C_BYTES: usize = C_GROUPS * (GROUP_DIGITS + 1) - 1;
pub(crate) const PAD_BYTES: usize = PAD_GROUPS * (GROUP_DIGITS + 1) - 1;

/// The table `sbtest1` with ids 1 to `rows` and `k` uniform in the same range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sbtest {
    pub rows: u32,
    pub seed: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub id: u32,
    pub k: u32,
    pub c: [u8; C_BYTES],
    pub pad: [u8; PAD_BYTES],
}

impl Sbtest {
    pub(crate) fn k(&self, id: u32) -> u32 {
        1 + Random::new(self.seed, u64::from(id)).below(self.rows)
    }

    pub(crate) fn row(&self, id: u32) -> Row {
        let mut random = Random::new(mix(self.seed ^ 0xc0de), u64::from(id));
        Row { id, k: self.k(id), c: random_c(&mut random), pad: random_pad(&mut random) }
    }

    /// Distinct points to check a target's answers with. Some of them are in the table; the others are
    /// random.
    pub(crate) fn verification_points(&self, count: usize) -> Vec<u32> {
        let mut random = Random::new(self.seed, u64::MAX);
        let mut points: Vec<u32> = (0..count)
            .map(|number| {
                let drawn = 1 + random.below(self.rows);
                if number % 2 == 0 { self.k(drawn) } else { drawn }
            })
            .collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// The rows whose `k` is one of `points`, sorted by id; costs a pass over all ids.
    pub(crate) fn rows_with(&self, points: &[u32]) -> Vec<Row> {
        let mut sorted = points.to_vec();
        sorted.sort_unstable();
        let ids = 1..=self.rows;
        ids.filter(|&id| sorted.binary_search(&self.k(id)).is_ok()).map(|id| self.row(id)).collect()
    }

    pub(crate) fn create_sql(&self, engine: &str) -> String {
        format!(
            "CREATE TABLE {TABLE} (id INT UNSIGNED NOT NULL AUTO_INCREMENT, k INT UNSIGNED NOT NULL DEFAULT '0', \
             c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id)) ENGINE={engine}"
        )
    }

    /// Runs after the rows are in, so that the index is built by sorting.
    pub(crate) fn index_sql(&self) -> String {
        format!("CREATE INDEX k ON {TABLE} (k)")
    }

    /// Appends `INSERT INTO sbtest1 ... VALUES ...` with the rows `ids`.
    pub(crate) fn insert_sql(&self, ids: std::ops::RangeInclusive<u32>, out: &mut Vec<u8>) {
        let _ = write!(out, "INSERT INTO {TABLE} (id, k, c, pad) VALUES ");
        for (position, id) in ids.enumerate() {
            let row = self.row(id);
            let comma = if position == 0 { "" } else { "," };
            // Writing into memory cannot fail.
            let _ = write!(out, "{comma}({id},{},'", row.k);
            out.extend_from_slice(&row.c);
            out.extend_from_slice(b"','");
            out.extend_from_slice(&row.pad);
            out.extend_from_slice(b"')");
        }
    }
}

/// A random `c`, as every row has one.
pub(crate) fn random_c(random: &mut Random) -> [u8; C_BYTES] {
    let mut c = [b'-'; C_BYTES];
    fill_groups(random, &mut c);
    c
}

pub(crate) fn random_pad(random: &mut Random) -> [u8; PAD_BYTES] {
    let mut pad = [b'-'; PAD_BYTES];
    fill_groups(random, &mut pad);
    pad
}

fn fill_groups(random: &mut Random, text: &mut [u8]) {
    for group in text.chunks_mut(GROUP_DIGITS + 1) {
        // Eleven digits from the upper bits; the modulo's bias is below 2^-27.
        let mut number = random.next_u64() % 100_000_000_000;
        for digit in group[..GROUP_DIGITS].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Sbtest = Sbtest { rows: 1_000, seed: 303 };

    #[test]
    fn a_row_has_the_form_that_sysbench_gives_it() {
        let row = TABLE.row(7);
        assert_eq!((row.c.len(), row.pad.len()), (119, 59));
        for (position, byte) in row.c.iter().chain(b"-").chain(&row.pad).enumerate() {
            assert_eq!(*byte == b'-', position % 12 == 11);
            assert!(*byte == b'-' || byte.is_ascii_digit());
        }
        assert!((1..=1_000).contains(&row.k));
        assert_ne!(row.c, TABLE.row(8).c);
        assert_eq!(row, TABLE.row(7));
    }

    #[test]
    fn an_insert_spells_out_its_rows() {
        let mut sql = Vec::new();
        TABLE.insert_sql(3..=4, &mut sql);
        let sql = String::from_utf8(sql).unwrap();
        let row = TABLE.row(4);
        assert!(sql.starts_with("INSERT INTO sbtest1 (id, k, c, pad) VALUES (3,"));
        let last = format!(
            ",(4,{},'{}','{}')",
            row.k,
            String::from_utf8_lossy(&row.c),
            String::from_utf8_lossy(&row.pad)
        );
        assert!(sql.ends_with(&last), "{sql}");
    }

    #[test]
    fn rows_are_found_by_their_points() {
        let points = [TABLE.k(1), TABLE.k(500)];
        let rows = TABLE.rows_with(&points);
        assert!(rows.iter().any(|row| row.id == 1) && rows.iter().any(|row| row.id == 500));
        assert!(rows.iter().all(|row| points.contains(&row.k)));
        assert!(rows.is_sorted_by_key(|row| row.id));
    }
}

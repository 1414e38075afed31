//! The data, and the stream of queries of each client. A workload is written once: a [`Statement`] says what
//! is asked, in a form that both the engine in process and a server can take, and a [`Script`] gives the
//! parameters.

pub(crate) mod oltp;
mod sbtest;

use base::random::Random;

pub(crate) use sbtest::{DATABASE, Row, Sbtest, TABLE, random_c, random_pad};

/// The statement that every client of a run repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Statement {
    /// `SELECT id, k, c, pad FROM sbtest1 WHERE k IN (...)` with this many points: a batch of lookups
    /// in the secondary index, each followed by the fetch of a row.
    PointsByK { points: u32 },
}

impl Statement {
    pub(crate) fn sql(self) -> String {
        match self {
            Statement::PointsByK { points } => {
                let marks = vec!["?"; points as usize].join(", ");
                format!("SELECT id, k, c, pad FROM {} WHERE k IN ({marks})", sbtest::TABLE)
            }
        }
    }

    pub(crate) fn parameters(self) -> usize {
        match self {
            Statement::PointsByK { points } => points as usize,
        }
    }
}

/// A statement over a table, for a number of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Workload {
    pub table: Sbtest,
    pub statement: Statement,
}

impl Workload {
    /// The parameters that client `client` of `clients` sends. As in sysbench's `select_random_points`, each
    /// client draws uniformly from its own slice of the keys.
    pub(crate) fn script(&self, client: u32, clients: u32, seed: u64) -> Script {
        let rows = u64::from(self.table.rows);
        let (client, clients) = (u64::from(client), u64::from(clients.max(1)));
        let low = rows * client / clients;
        let high = (rows * (client + 1) / clients).max(low + 1);
        Script { random: Random::new(seed, client), low: low as u32 + 1, span: (high - low) as u32 }
    }
}

/// The parameters of one client's queries, one after the other. The same seed gives the same stream.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    random: Random,
    low: u32,
    span: u32,
}

impl Script {
    /// Fills in the parameters of the next query.
    #[inline]
    pub(crate) fn next(&mut self, parameters: &mut [u32]) {
        for parameter in parameters {
            *parameter = self.low + self.random.below(self.span);
        }
    }

    /// True if a row with this `k` can be in an answer. Every row gets this light check.
    #[inline(always)]
    pub(crate) fn expects(&self, k: u32) -> bool {
        k.wrapping_sub(self.low) < self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(rows: u32) -> Workload {
        Workload { table: Sbtest { rows, seed: 303 }, statement: Statement::PointsByK { points: 3 } }
    }

    #[test]
    fn clients_share_the_keys_without_gap_or_overlap() {
        for (rows, clients) in [(1_000, 7), (128, 128), (20_000_000, 128)] {
            let mut next = 1;
            for client in 0..clients {
                let script = workload(rows).script(client, clients, 1);
                assert_eq!(script.low, next);
                next += script.span;
            }
            assert_eq!(next, rows + 1);
        }
    }

    #[test]
    fn parameters_stay_in_the_slice_and_depend_on_seed_and_client_only() {
        let draw = |client, seed| {
            let mut script = workload(1_000).script(client, 4, seed);
            let mut parameters = [0; 50];
            script.next(&mut parameters);
            assert!(parameters.iter().all(|&k| script.expects(k)));
            parameters
        };
        assert_eq!(draw(1, 303), draw(1, 303));
        assert_ne!(draw(1, 303), draw(2, 303));
        assert_ne!(draw(1, 303), draw(1, 304));
        assert!(draw(3, 303).iter().all(|&k| (751..=1_000).contains(&k)));
    }

    #[test]
    fn more_clients_than_rows_still_have_a_key_each() {
        let mut parameters = [0; 3];
        workload(2).script(5, 8, 1).next(&mut parameters);
        assert!(parameters.iter().all(|&k| (1..=3).contains(&k)));
    }

    #[test]
    fn the_statement_is_the_studys() {
        assert_eq!(workload(1).statement.sql(), "SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?, ?, ?)");
    }
}

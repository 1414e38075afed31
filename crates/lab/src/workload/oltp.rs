//! Sysbench's OLTP transactions (`oltp_read_write`, `oltp_read_only`) and its `oltp_point_select`: the same
//! statements in the same order, with parameters drawn in the same way.

use super::Random;
use super::sbtest::{C_BYTES, PAD_BYTES, Sbtest, TABLE, random_c, random_pad};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mix {
    ReadWrite,
    ReadOnly,
    /// One read by primary key, without a transaction around it.
    Points,
}

impl Mix {
    /// The workload's name in sysbench.
    pub(crate) fn sysbench_name(self) -> &'static str {
        match self {
            Mix::ReadWrite => "oltp_read_write",
            Mix::ReadOnly => "oltp_read_only",
            Mix::Points => "oltp_point_select",
        }
    }

    /// The statements of a transaction.
    pub(crate) fn steps(self) -> &'static [Step] {
        match self {
            Mix::ReadWrite => &READ_WRITE,
            Mix::ReadOnly => &READ_ONLY,
            Mix::Points => &[Point],
        }
    }
}

/// A statement of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Begin,
    Point,
    Range,
    Sum,
    Order,
    Distinct,
    IndexUpdate,
    OtherUpdate,
    Delete,
    /// The id of the row that was deleted.
    Insert,
    Commit,
}

use Step::{Begin, Commit, Delete, Distinct, IndexUpdate, Insert, Order, OtherUpdate, Point, Range, Sum};

const READ_WRITE: [Step; 20] = [
    Begin,
    Point,
    Point,
    Point,
    Point,
    Point,
    Point,
    Point,
    Point,
    Point,
    Point,
    Range,
    Sum,
    Order,
    Distinct,
    IndexUpdate,
    OtherUpdate,
    Delete,
    Insert,
    Commit,
];
const READ_ONLY: [Step; 16] = [
    Begin, Point, Point, Point, Point, Point, Point, Point, Point, Point, Point, Range, Sum, Order, Distinct,
    Commit,
];

/// The number of rows in a range.
pub(crate) const RANGE_ROWS: u32 = 100;

impl Step {
    pub(crate) const COUNT: usize = Step::Commit as usize + 1;

    /// The statement, with question marks for the parameters.
    pub(crate) fn sql(self) -> String {
        match self {
            Step::Begin => "BEGIN".to_string(),
            Step::Point => format!("SELECT c FROM {TABLE} WHERE id=?"),
            Step::Range => format!("SELECT c FROM {TABLE} WHERE id BETWEEN ? AND ?"),
            Step::Sum => format!("SELECT SUM(k) FROM {TABLE} WHERE id BETWEEN ? AND ?"),
            Step::Order => format!("SELECT c FROM {TABLE} WHERE id BETWEEN ? AND ? ORDER BY c"),
            Step::Distinct => format!("SELECT DISTINCT c FROM {TABLE} WHERE id BETWEEN ? AND ? ORDER BY c"),
            Step::IndexUpdate => format!("UPDATE {TABLE} SET k=k+1 WHERE id=?"),
            Step::OtherUpdate => format!("UPDATE {TABLE} SET c=? WHERE id=?"),
            Step::Delete => format!("DELETE FROM {TABLE} WHERE id=?"),
            Step::Insert => format!("INSERT INTO {TABLE} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            Step::Commit => "COMMIT".to_string(),
        }
    }
}

/// A value of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parameter {
    Number(u32),
    C([u8; C_BYTES]),
    Pad([u8; PAD_BYTES]),
}

/// Which rows the statements take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Distribution {
    Uniform,
    /// Sysbench's own: three quarters of the draws come from the middle hundredth of the table, the others
    /// from a bell curve around it.
    Special,
}

impl Distribution {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Special => "special",
        }
    }

    /// A number from 1 to `rows`.
    pub(crate) fn draw(self, random: &mut Random, rows: u32) -> u32 {
        match self {
            Distribution::Uniform => 1 + random.below(rows),
            Distribution::Special => 1 + special(random, rows),
        }
    }
}

/// The bell curve is the sum of this many draws.
const BELL_DRAWS: u32 = 12;

/// As sysbench's `sb_rand_special` with its default percentages, 1 and 75; from 0 to below `rows`.
fn special(random: &mut Random, rows: u32) -> u32 {
    if random.below(4) == 0 {
        let sum: u64 = (0..BELL_DRAWS).map(|_| u64::from(random.below(rows))).sum();
        return (sum / u64::from(BELL_DRAWS)) as u32;
    }
    let hot = (rows / 100).max(1);
    rows / 2 - hot / 2 + random.below(hot)
}

/// The transactions of one client, statement after statement.
#[derive(Clone, Debug)]
pub(crate) struct Transactions {
    steps: &'static [Step],
    rows: u32,
    distribution: Distribution,
    random: Random,
    position: usize,
    deleted: u32,
}

impl Transactions {
    pub(crate) fn new(
        mix: Mix,
        table: &Sbtest,
        distribution: Distribution,
        seed: u64,
        client: u32,
    ) -> Transactions {
        Transactions {
            steps: mix.steps(),
            rows: table.rows,
            distribution,
            random: Random::new(seed, client.into()),
            position: 0,
            deleted: 1,
        }
    }

    /// The next statement and its parameters. After the last of a transaction comes the first of the next.
    pub(crate) fn next(&mut self, parameters: &mut Vec<Parameter>) -> Step {
        parameters.clear();
        let step = self.steps[self.position];
        self.position = (self.position + 1) % self.steps.len();
        match step {
            Begin | Commit => {}
            Point | IndexUpdate => parameters.push(Parameter::Number(self.id())),
            Range | Sum | Order | Distinct => {
                let first = self.id();
                let last = first.saturating_add(RANGE_ROWS - 1);
                parameters.extend([first, last].map(Parameter::Number));
            }
            OtherUpdate => {
                let c = Parameter::C(random_c(&mut self.random));
                parameters.extend([c, Parameter::Number(self.id())]);
            }
            Delete => {
                self.deleted = self.id();
                parameters.push(Parameter::Number(self.deleted));
            }
            Insert => {
                let k = self.id();
                let c = random_c(&mut self.random);
                let pad = random_pad(&mut self.random);
                let (id, k) = (Parameter::Number(self.deleted), Parameter::Number(k));
                parameters.extend([id, k, Parameter::C(c), Parameter::Pad(pad)]);
            }
        }
        step
    }

    fn id(&mut self) -> u32 {
        self.distribution.draw(&mut self.random, self.rows)
    }

    /// True if the next statement begins a transaction.
    pub(crate) fn is_between(&self) -> bool {
        self.position == 0
    }

    /// Gives up the transaction under way.
    pub(crate) fn restart(&mut self) {
        self.position = 0;
    }

    /// How many rows a read returns if the table has all its rows. `None` if that depends on the rows.
    pub(crate) fn expected_rows(&self, step: Step, parameters: &[Parameter]) -> Option<u64> {
        match (step, parameters) {
            (Point | Sum, _) => Some(1),
            (Range | Order, &[Parameter::Number(first), Parameter::Number(last)]) => {
                Some(u64::from(last.min(self.rows) + 1 - first))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SBTEST: Sbtest = Sbtest { rows: 10_000, seed: 303 };

    #[test]
    fn a_transaction_is_sysbenchs_statement_by_statement() {
        for (mix, reads, others) in [(Mix::ReadWrite, 14, 6), (Mix::ReadOnly, 14, 2), (Mix::Points, 1, 0)] {
            let mut transactions = Transactions::new(mix, &SBTEST, Distribution::Special, 1, 0);
            let mut parameters = Vec::new();
            let mut steps = Vec::new();
            let mut deleted = None;
            loop {
                let step = transactions.next(&mut parameters);
                assert_eq!(step.sql().matches('?').count(), parameters.len(), "{step:?}");
                match step {
                    Delete => deleted = Some(parameters[0]),
                    Insert => assert_eq!(Some(parameters[0]), deleted),
                    _ => {}
                }
                steps.push(step);
                if transactions.is_between() {
                    break;
                }
            }
            let selects = steps.iter().filter(|step| step.sql().starts_with("SELECT")).count();
            assert_eq!((selects, steps.len() - selects), (reads, others));
            let is_transaction = (steps[0], steps[steps.len() - 1]) == (Begin, Commit);
            assert_eq!(is_transaction, mix != Mix::Points);
        }
    }

    #[test]
    fn special_draws_meet_in_the_middle_and_uniform_ones_do_not() {
        let in_the_middle = |distribution: Distribution| {
            let mut random = Random::new(303, 0);
            let draws: Vec<u32> = (0..10_000).map(|_| distribution.draw(&mut random, 10_000)).collect();
            assert!(draws.iter().all(|id| (1..=10_000).contains(id)));
            draws.iter().filter(|id| (4_951..=5_050).contains(*id)).count()
        };
        assert!((7_300..8_000).contains(&in_the_middle(Distribution::Special)));
        assert!((50..200).contains(&in_the_middle(Distribution::Uniform)));
        assert_eq!(special(&mut Random::new(1, 1), 1), 0);
    }

    #[test]
    fn a_range_at_the_end_of_the_table_has_fewer_rows() {
        let transactions = Transactions::new(Mix::ReadOnly, &SBTEST, Distribution::Uniform, 1, 0);
        let between = |first, last| [Parameter::Number(first), Parameter::Number(last)];
        assert_eq!(transactions.expected_rows(Range, &between(1, 100)), Some(100));
        assert_eq!(transactions.expected_rows(Order, &between(9_999, 10_098)), Some(2));
        assert_eq!(transactions.expected_rows(Distinct, &between(1, 100)), None);
        assert_eq!(transactions.expected_rows(Point, &between(1, 1)[..1]), Some(1));
    }
}

//! Conditions on integer columns alone. They are tested on batches of integers, without making values.

use super::node::Node;
use super::{Comparison, Compiled, ListSet, Slots};
use engine::Integers;
use types::{Collation, Value, ValueRef};

/// A conjunction of tests of one table's integer columns, as a plan has it.
#[derive(Debug)]
pub(crate) struct IntegerTests {
    tests: Vec<Test>,
}

#[derive(Debug)]
struct Test {
    /// Its place among the columns of a batch.
    column: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Compare(Comparison, Operand),
    Between {
        low: Operand,
        high: Operand,
        negated: bool,
    },
    /// Sorted.
    In {
        values: Box<[i64]>,
        negated: bool,
    },
    InSlot {
        slot: usize,
        collation: Collation,
        negated: bool,
    },
    IsNotNull,
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Int(i64),
    Slot(usize),
}

/// Tests with the values of one execution.
#[derive(Debug)]
pub(crate) struct IntegerFilter<'p> {
    tests: Vec<(usize, Bound<'p>)>,
}

#[derive(Debug)]
enum Bound<'p> {
    Range { low: i64, high: i64, negated: bool },
    In { values: std::borrow::Cow<'p, [i64]>, negated: bool },
    Set { set: &'p ListSet, negated: bool },
}

impl Bound<'_> {
    /// No value passes.
    const NEVER: Bound<'static> = Bound::Range { low: i64::MIN, high: i64::MAX, negated: true };
    const ALWAYS: Bound<'static> = Bound::Range { low: i64::MIN, high: i64::MAX, negated: false };

    #[inline(always)]
    fn takes(&self, value: i64) -> bool {
        match self {
            Bound::Range { low, high, negated } => (*low <= value && value <= *high) != *negated,
            Bound::In { values, negated } => values.binary_search(&value).is_ok() != *negated,
            Bound::Set { set, negated } => set.has_integer(value) != *negated,
        }
    }
}

impl Compiled {
    /// The tests that the condition consists of. `None` if it consists of anything else, or reads a column
    /// that is not among the `columns` of `part`.
    pub(crate) fn integer_tests(&self, part: usize, columns: &[usize]) -> Option<IntegerTests> {
        let mut tests = Vec::new();
        collect(&self.node, part, columns, &mut tests)?;
        Some(IntegerTests { tests })
    }

    /// The column that the expression is.
    pub(crate) fn as_column(&self) -> Option<(usize, usize)> {
        match self.node {
            Node::Column { part, column, .. } => Some((part, column)),
            _ => None,
        }
    }
}

fn collect(node: &Node, part: usize, columns: &[usize], tests: &mut Vec<Test>) -> Option<()> {
    let column = |node: &Node| match node {
        Node::Column { part: of, column, .. } if *of == part => {
            columns.iter().position(|known| known == column)
        }
        _ => None,
    };
    let (column, kind) = match node {
        Node::And(nodes) => return nodes.iter().try_for_each(|node| collect(node, part, columns, tests)),
        Node::Compare { op: Comparison::NullSafeEqual, .. } => return None,
        Node::Compare { op, sides, .. } => match (column(&sides.0), column(&sides.1)) {
            (Some(column), None) => (column, Kind::Compare(*op, operand(&sides.1)?)),
            (None, Some(column)) => (column, Kind::Compare(op.mirrored(), operand(&sides.0)?)),
            _ => return None,
        },
        Node::Between { operands, negated, .. } => {
            let [value, low, high] = &**operands;
            (column(value)?, Kind::Between { low: operand(low)?, high: operand(high)?, negated: *negated })
        }
        Node::InInts { operand, sorted, has_null: false, negated } => {
            (column(operand)?, Kind::In { values: sorted.clone(), negated: *negated })
        }
        Node::InSlot { operand, index, collation, negated } => {
            let (slot, collation, negated) = (*index, *collation, *negated);
            (column(operand)?, Kind::InSlot { slot, collation, negated })
        }
        Node::IsNull { operand, negated: true } => (column(operand)?, Kind::IsNotNull),
        _ => return None,
    };
    tests.push(Test { column, kind });
    Some(())
}

fn operand(node: &Node) -> Option<Operand> {
    match node {
        Node::Constant(Value::Int(value)) => Some(Operand::Int(*value)),
        Node::Slot(slot) => Some(Operand::Slot(*slot)),
        _ => None,
    }
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int(value) => Some(value),
        ValueRef::UInt(value) => i64::try_from(value).ok(),
        _ => None,
    }
}

impl IntegerTests {
    /// Without a test every row passes.
    pub(crate) const NONE: IntegerTests = IntegerTests { tests: vec![] };

    /// The tests with the values of `slots`; `None` if one of them is no integer, or lets NULL pass.
    pub(crate) fn fill<'p>(&'p self, slots: &Slots<'p>) -> Option<IntegerFilter<'p>> {
        let tests = self.tests.iter().map(|test| Some((test.column, test.kind.fill(slots)?)));
        Some(IntegerFilter { tests: tests.collect::<Option<_>>()? })
    }
}

impl Kind {
    fn fill<'p>(&'p self, slots: &Slots<'p>) -> Option<Bound<'p>> {
        let value = |operand: Operand| match operand {
            Operand::Int(value) => Some(value),
            Operand::Slot(slot) => integer(slots.value(slot)),
        };
        let range = |low: Option<i64>, high: Option<i64>| match (low, high) {
            (Some(low), Some(high)) => Bound::Range { low, high, negated: false },
            _ => Bound::NEVER,
        };
        Some(match self {
            Kind::Compare(op, operand) => {
                let value = value(*operand)?;
                match op {
                    Comparison::Equal | Comparison::NullSafeEqual => range(Some(value), Some(value)),
                    Comparison::NotEqual => Bound::Range { low: value, high: value, negated: true },
                    Comparison::Less => range(Some(i64::MIN), value.checked_sub(1)),
                    Comparison::LessOrEqual => range(Some(i64::MIN), Some(value)),
                    Comparison::Greater => range(value.checked_add(1), Some(i64::MAX)),
                    Comparison::GreaterOrEqual => range(Some(value), Some(i64::MAX)),
                }
            }
            Kind::Between { low, high, negated } => {
                Bound::Range { low: value(*low)?, high: value(*high)?, negated: *negated }
            }
            Kind::In { values, negated } => Bound::In { values: (&**values).into(), negated: *negated },
            Kind::InSlot { slot, collation, negated } => {
                if ListSet::stored_of_slot(slots, *slot).is_some() {
                    return None;
                }
                // Nothing is in an empty list, not even NULL, which passes no test here.
                if *negated && slots.list(*slot).is_empty() {
                    return None;
                }
                if let Some(set) = ListSet::of_slot(slots, *slot, *collation) {
                    return set.is_of_integers().then_some(Bound::Set { set, negated: *negated });
                }
                let values = slots.list(*slot).iter().map(|value| integer(*value));
                let mut values: Vec<i64> = values.collect::<Option<_>>()?;
                values.sort_unstable();
                Bound::In { values: values.into(), negated: *negated }
            }
            Kind::IsNotNull => Bound::ALWAYS,
        })
    }
}

impl IntegerFilter<'_> {
    /// True if a row of a batch passes: NULL passes no test.
    #[inline(always)]
    pub(crate) fn takes(&self, batch: &Integers, row: usize) -> bool {
        self.tests
            .iter()
            .all(|(column, test)| batch.column(*column).get(row).is_some_and(|value| test.takes(value)))
    }
}

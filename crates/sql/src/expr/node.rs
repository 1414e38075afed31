//! The nodes of a compiled expression.

use super::InnerQuery;
use super::functions::Evaluate;
use super::result_type::{Class, Meaning};
use super::{Arithmetic, Comparison, Function, IntervalUnit, Quantifier, VariableScope};
use base::sync::Arc;
use types::{Code, Collation, ColumnType, Value};

/// One step of an evaluation. The compiler has settled collations and conversions.
#[derive(Debug)]
pub(super) enum Node {
    Constant(Value),
    Slot(usize),
    Column {
        part: usize,
        column: usize,
        name: Box<str>,
    },
    /// A TIMESTAMP column as its table stores it: in UTC. Its value is what the session's clock shows then.
    Stamp {
        part: usize,
        column: usize,
        name: Box<str>,
    },
    Outer(usize),
    /// What an expression sees of a value that such a column stores: see [`super::coded`].
    Coded {
        operand: Box<Node>,
        of: ColumnType,
        as_number: bool,
    },
    /// The bytes of a UUID or an address, read from a text. NULL, with a warning, if it is none.
    Code {
        operand: Box<Node>,
        code: Code,
    },
    Subquery(Box<SubqueryNode>),
    Negate(Box<Node>),
    BitNot(Box<Node>),
    Arithmetic {
        op: Arithmetic,
        sides: Box<(Node, Node)>,
    },
    Compare {
        op: Comparison,
        collation: Collation,
        sides: Box<(Node, Node)>,
    },
    And(Box<[Node]>),
    Or(Box<[Node]>),
    Xor(Box<(Node, Node)>),
    Not(Box<Node>),
    IsNull {
        operand: Box<Node>,
        negated: bool,
    },
    IsTruth {
        operand: Box<Node>,
        truth: bool,
        negated: bool,
    },
    /// Operand, low, high.
    Between {
        operands: Box<[Node; 3]>,
        collation: Collation,
        negated: bool,
    },
    InList {
        operand: Box<Node>,
        list: Box<[Node]>,
        collation: Collation,
        negated: bool,
    },
    /// IN of integer constants, sorted.
    InInts {
        operand: Box<Node>,
        sorted: Box<[i64]>,
        has_null: bool,
        negated: bool,
    },
    /// IN of a slot's texts, which are read as UUIDs or addresses.
    InCodes {
        operand: Box<Node>,
        index: usize,
        code: Code,
        negated: bool,
    },
    InSlot {
        operand: Box<Node>,
        index: usize,
        collation: Collation,
        negated: bool,
    },
    Quantified {
        row: Box<RowTest>,
        index: usize,
    },
    Like {
        sides: Box<(Node, Node)>,
        escape: Option<char>,
        collation: Collation,
        negated: bool,
    },
    Regexp {
        sides: Box<(Node, Node)>,
        ignore_case: bool,
        negated: bool,
    },
    Case {
        operand: Option<Box<Node>>,
        whens: Box<[(Node, Node)]>,
        otherwise: Option<Box<Node>>,
        collation: Collation,
        to: Conversion,
    },
    Cast {
        operand: Box<Node>,
        to: ColumnType,
    },
    /// `operand ± INTERVAL amount unit`.
    DateArithmetic {
        sides: Box<(Node, Node)>,
        unit: IntervalUnit,
        subtract: bool,
        /// The type of the result follows from the operand's: a date, a date and time, or a text. Where a
        /// number is wanted, the number of the date takes the place of the text.
        class: Class,
    },
    Call(Box<Call>),
    SystemVariable {
        scope: VariableScope,
        cache: Option<String>,
        name: String,
    },
    UserVariable(String),
    AssignUserVariable {
        name: String,
        value: Box<Node>,
    },
}

/// A subquery that is run for each row.
#[derive(Debug)]
pub(super) struct SubqueryNode {
    pub plan: Arc<dyn InnerQuery>,
    pub parameters: Box<[Node]>,
    pub test: SubqueryTest,
}

#[derive(Debug)]
pub(super) enum SubqueryTest {
    Value,
    Exists,
    In { operand: Node, collation: Collation, negated: bool },
    Quantified(RowTest),
}

/// A row of operands that is compared with others.
#[derive(Debug)]
pub(super) struct RowTest {
    /// With the collations that they compare by.
    pub operands: Box<[(Node, Collation)]>,
    pub op: Comparison,
    pub quantifier: Quantifier,
}

/// A call of a built-in function.
#[derive(Debug)]
pub(super) struct Call {
    pub function: &'static Function,
    /// The function's evaluation. It lies here so that a call is one indirect call.
    pub evaluate: Evaluate,
    pub arguments: Box<[Node]>,
    /// The collation by which texts in it compare.
    pub collation: Collation,
    /// The conversion of the result of a choice (IF, COALESCE, GREATEST).
    pub to: Conversion,
    /// The unit of EXTRACT and TIMESTAMPDIFF.
    pub unit: Option<IntervalUnit>,
    /// The class of the result.
    pub class: Class,
    /// Digits after the point that the result shows.
    pub decimals: u8,
    /// The first argument's collation and the number of its derivation, for CHARSET(), COLLATION() and
    /// COERCIBILITY().
    pub argument_collation: (Collation, i64),
    /// What the JSON functions take each argument for. Empty if every one is a plain value.
    pub meanings: Box<[Meaning]>,
}

/// The conversion of a choice's result. It gives every row the same type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Conversion {
    None,
    Double,
    /// With so many digits after the point, if that is known.
    Decimal(Option<u8>),
    Text,
    Binary,
    Date,
    /// With so many digits of the seconds' fraction, or more if the value has more.
    Time(u8),
    /// The same.
    DateTime(u8),
}

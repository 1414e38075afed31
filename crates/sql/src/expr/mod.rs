//! Bound expressions: names resolved to columns, literals to slots, functions to [`Function`]s.
//!
//! An expression is evaluated over a [`Row`] in a [`Context`]. Values borrow from the row, the statement's
//! slots or the context's arena, so that an evaluation allocates nothing on the heap.

mod aggregate;
mod coded;
mod coerce;
mod compile;
mod compiled;
mod evaluate;
pub(crate) mod functions;
#[cfg(test)]
pub(crate) mod golden;
mod integers;
mod leaves;
mod list_set;
mod node;
mod patience;
mod result_type;
mod row;
mod row_set;
mod stored_list;
pub(crate) mod value_keys;
mod window;

pub(crate) use aggregate::{
    Accumulator, Aggregate, AggregateKind, CompiledAggregate, GROUP_CONCAT_BYTES, ROOM_KEY_BYTES, Room,
};
pub(crate) use coded::{given, is_seen_apart, number_of_bits, read as read_code, seen_type, shown};
pub(crate) use coerce::{CoerceIssue, Coerced, coerce, zero_of};
pub(crate) use compiled::Compiled;
pub(crate) use evaluate::regexp::RegexFlags;
pub(crate) use functions::Function;
pub(crate) use integers::{IntegerFilter, IntegerTests};
pub(crate) use leaves::{Leaf, Leaves, united};
pub(crate) use list_set::ListSet;
pub(crate) use patience::Patience;
pub(crate) use result_type::ResultType;
pub(crate) use row::{Part, Row};
pub(crate) use stored_list::{StoredList, cells};
pub(crate) use window::{
    RangeKey, WindowKind, is_number, place_of, result_of_window, share_of, whole_number,
};

use crate::ColumnMeta;
use crate::locales::Locale;
use crate::spill::Workspace;
use crate::text::SlotKind;
use crate::variables::time_zones::Zone;
use crate::{ErrorKind, SqlError};
use base::sync::Arc;
use bumpalo::Bump;
use std::any::Any;
use std::cell::OnceCell;
use std::fmt::Debug;
use std::time::Duration;
use types::{Collation, ColumnType, DateTime, Value, ValueRef};

/// A bound expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Expr {
    Constant(Value),
    /// A literal of a normalised statement, or a parameter: the value is known when the statement runs.
    Slot {
        index: usize,
        kind: SlotKind,
    },
    Column(ColumnRef),
    /// In a subquery: a value of the row around it.
    Outer(OuterRef),
    /// A subquery that reads columns of the row around it.
    Subquery(Subquery),
    Negate(Box<Expr>),
    /// `~`.
    BitNot(Box<Expr>),
    Arithmetic {
        op: Arithmetic,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Compare {
        op: Comparison,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// True, false or NULL. There are at least two operands.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    IsNull {
        operand: Box<Expr>,
        negated: bool,
    },
    /// IS `[NOT]` TRUE, FALSE.
    IsTruth {
        operand: Box<Expr>,
        truth: bool,
        negated: bool,
    },
    Between {
        operand: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    InList {
        operand: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    /// IN of a list of literals or parameters: the slot holds any number of values.
    InSlot {
        operand: Box<Expr>,
        index: usize,
        kind: SlotKind,
        negated: bool,
    },
    /// A row of operands compared with the rows of a subquery that reads no row around it. The subquery ran
    /// before, and its values lie in a slot.
    Quantified {
        operands: Vec<Expr>,
        op: Comparison,
        quantifier: Quantifier,
        index: usize,
        /// The kinds of a row's values.
        kinds: Vec<SlotKind>,
    },
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        /// `\` unless ESCAPE says otherwise; `None` for ESCAPE ''.
        escape: Option<char>,
        negated: bool,
    },
    /// REGEXP and RLIKE.
    Regexp {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        negated: bool,
    },
    Case {
        operand: Option<Box<Expr>>,
        whens: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// CAST, CONVERT(x, type), BINARY x. `SIGNED` is BIGINT.
    Cast {
        operand: Box<Expr>,
        to: ColumnType,
    },
    Collate {
        operand: Box<Expr>,
        collation: Collation,
        /// The name had no character set: that of the operand counts.
        short: bool,
    },
    /// `INTERVAL n unit`, only as an argument of date arithmetic.
    Interval {
        amount: Box<Expr>,
        unit: IntervalUnit,
    },
    Call {
        function: &'static Function,
        arguments: Vec<Expr>,
    },
    /// `@@name`, `@@global.name`, `@@hot.key_buffer_size`: evaluated by the environment.
    SystemVariable {
        scope: VariableScope,
        /// The key cache of a structured variable.
        cache: Option<String>,
        /// In small letters.
        name: String,
    },
    /// `@name`.
    UserVariable(String),
    /// `@name := value`.
    AssignUserVariable {
        name: String,
        value: Box<Expr>,
    },
}

/// A column of one of the rows that an expression sees at a time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ColumnRef {
    /// Which part of the [`Row`]: tables in the order in which they are joined.
    pub part: usize,
    /// Position in that part.
    pub column: usize,
    pub column_type: ColumnType,
    pub nullable: bool,
    /// How many digits after the point a floating number shows, if that is fixed.
    pub digits: Option<u8>,
    /// True if its texts are JSON, for the JSON functions.
    pub is_json: bool,
    /// True if it is a TIMESTAMP as its table stores it: in UTC.
    pub in_utc: bool,
    /// How messages name it.
    pub name: String,
}

/// A parameter of a subquery: see [`Subquery::parameters`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OuterRef {
    pub index: usize,
    pub column_type: ColumnType,
    pub nullable: bool,
    /// How messages name it.
    pub name: String,
}

/// The plan of a subquery as expressions see it. The planner makes it. The executor that runs it knows its
/// type.
pub(crate) trait InnerQuery: Any + Debug + Send + Sync {
    fn columns(&self) -> &[ColumnMeta];
}

/// A subquery that is run for each row around it: a query with parameters.
#[derive(Clone, Debug)]
pub(crate) struct Subquery {
    pub plan: Arc<dyn InnerQuery>,
    /// The values of the [`Expr::Outer`] in it, as expressions over the row around it.
    pub parameters: Vec<Expr>,
    pub test: SubqueryTest,
}

/// The use that an expression makes of a subquery's rows.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum SubqueryTest {
    /// The only row's value; NULL without a row.
    Value,
    Exists,
    In {
        operand: Box<Expr>,
        negated: bool,
    },
    /// A row of operands compared with its rows.
    Quantified {
        operands: Vec<Expr>,
        op: Comparison,
        quantifier: Quantifier,
    },
}

/// The number of a subquery's rows for which a comparison must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Quantifier {
    Any,
    All,
    /// With the only row. The result is NULL if there is no row.
    Only,
}

impl PartialEq for Subquery {
    fn eq(&self, other: &Subquery) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan) && self.parameters == other.parameters && self.test == other.test
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    /// `/`.
    Divide,
    /// DIV.
    IntegerDivide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

impl Arithmetic {
    /// The operator as messages write it.
    fn sign(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::IntegerDivide => "DIV",
            Arithmetic::Modulo => "MOD",
            Arithmetic::BitAnd => "&",
            Arithmetic::BitOr => "|",
            Arithmetic::BitXor => "^",
            Arithmetic::ShiftLeft => "<<",
            Arithmetic::ShiftRight => ">>",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    /// `<=>`.
    NullSafeEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub(crate) fn mirrored(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

impl IntervalUnit {
    /// Whole days at least: a date stays a date.
    fn is_of_days(self) -> bool {
        matches!(self, IntervalUnit::Day | IntervalUnit::Week) || self.is_of_months()
    }

    /// Counted in months.
    fn is_of_months(self) -> bool {
        matches!(
            self,
            IntervalUnit::Month | IntervalUnit::Quarter | IntervalUnit::Year | IntervalUnit::YearMonth
        )
    }

    /// With microseconds.
    fn has_fraction(self) -> bool {
        matches!(
            self,
            IntervalUnit::Microsecond
                | IntervalUnit::SecondMicrosecond
                | IntervalUnit::MinuteMicrosecond
                | IntervalUnit::HourMicrosecond
                | IntervalUnit::DayMicrosecond
        )
    }
}

/// `@@div_precision_increment`: how many more digits a quotient shows.
const DIVISION_INCREMENT: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum VariableScope {
    /// `@@name`: the session's if it has one, else the global one.
    #[default]
    Default,
    Session,
    Global,
}

/// The values of a statement's slots. Slot `i` holds `values[starts[i]..starts[i + 1]]`: one value, or any
/// number of them for the list of an IN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots<'a> {
    pub values: &'a [ValueRef<'a>],
    /// One more than there are slots. Empty if every slot holds just one value.
    pub starts: &'a [u32],
    /// In a subquery: the values of its parameters.
    pub outer: &'a [ValueRef<'a>],
    /// The list of each slot as a set, made when it is first asked for. Empty if no list is long.
    pub sets: &'a [OnceCell<ListSet>],
}

impl<'a> Slots<'a> {
    pub(crate) const EMPTY: Slots<'static> = Slots::new(&[], &[]);

    pub(crate) const fn new(values: &'a [ValueRef<'a>], starts: &'a [u32]) -> Slots<'a> {
        Slots { values, starts, outer: &[], sets: &[] }
    }

    #[inline]
    pub(crate) fn value(&self, index: usize) -> ValueRef<'a> {
        let at = if self.starts.is_empty() { index } else { self.starts[index] as usize };
        self.values[at]
    }

    #[inline]
    pub(crate) fn list(&self, index: usize) -> &'a [ValueRef<'a>] {
        if self.starts.is_empty() {
            &self.values[index..index + 1]
        } else {
            &self.values[self.starts[index] as usize..self.starts[index + 1] as usize]
        }
    }
}

/// The modes of `@@sql_mode` that change what expressions give or what columns take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SqlMode {
    /// STRICT_TRANS_TABLES or STRICT_ALL_TABLES: a value that does not fit its column is an error.
    pub strict: bool,
    /// ERROR_FOR_DIVISION_BY_ZERO: a division by zero warns (1365), and strict mode refuses to store its
    /// value.
    pub error_for_division_by_zero: bool,
    /// NO_ZERO_DATE and NO_ZERO_IN_DATE.
    pub no_zero_date: bool,
    pub no_zero_in_date: bool,
}

impl From<crate::variables::SqlMode> for SqlMode {
    fn from(mode: crate::variables::SqlMode) -> SqlMode {
        use crate::variables::SqlMode as Modes;
        SqlMode {
            strict: mode.is_strict(),
            error_for_division_by_zero: mode.contains(Modes::ERROR_FOR_DIVISION_BY_ZERO),
            no_zero_date: mode.contains(Modes::NO_ZERO_DATE),
            no_zero_in_date: mode.contains(Modes::NO_ZERO_IN_DATE),
        }
    }
}

impl SqlMode {
    /// True for a moment that the modes take for none: all of it is nought, or its month or day is.
    pub(crate) fn forbids(self, moment: DateTime) -> bool {
        match moment.date.is_zero() && moment.time().micros == 0 {
            true => self.no_zero_date,
            false => self.no_zero_in_date && !moment.date.is_complete(),
        }
    }
}

impl Default for SqlMode {
    fn default() -> SqlMode {
        SqlMode {
            strict: true,
            error_for_division_by_zero: true,
            no_zero_date: false,
            no_zero_in_date: false,
        }
    }
}

/// The default of `max_allowed_packet`.
const PACKET_BYTES: usize = 16 << 20;
/// The default of `max_recursive_iterations`.
const RECURSIONS: u64 = 1_000;

/// The questions that an expression can ask its session.
pub(crate) trait Environment {
    /// The value of a system variable.
    ///
    /// # Errors
    /// 1193 for an unknown name, 1238 for a wrong scope.
    fn system_variable(
        &self,
        scope: VariableScope,
        cache: Option<&str>,
        name: &str,
    ) -> Result<Value, SqlError>;
    fn user_variable(&self, name: &str) -> Value;
    fn set_user_variable(&self, name: &str, value: Value);
    /// What the client has sent beside the statement under this name.
    fn query_attribute(&self, name: &str) -> Option<&Value> {
        let _ = name;
        None
    }
    fn database(&self) -> Option<&str>;
    /// `user@host`.
    fn user(&self) -> &str;
    /// The account.
    fn current_user(&self) -> &str;
    fn current_role(&self) -> Option<&str>;
    fn connection_id(&self) -> u64;
    fn last_insert_id(&self) -> u64;
    /// LAST_INSERT_ID(n): the next LAST_INSERT_ID() gives `id`.
    fn set_last_insert_id(&self, id: u64) {
        let _ = id;
    }
    fn found_rows(&self) -> u64;
    fn row_count(&self) -> i64;
    /// When the statement started: microseconds since 1970 in UTC.
    fn now_micros(&self) -> i64;
    /// `@@time_zone`.
    fn time_zone(&self) -> &Zone;
    /// Adds a warning to the statement's.
    fn warn(&self, kind: ErrorKind, message: String);
    /// Adds a note to the statement's warnings. No mode makes an error of it.
    fn note(&self, kind: ErrorKind, message: String) {
        self.warn(kind, message);
    }
    /// `@@sql_mode` as far as expressions look at it.
    fn sql_mode(&self) -> SqlMode {
        SqlMode::default()
    }
    /// The values of the row take so many bytes, beside those of variables that were assigned.
    ///
    /// # Errors
    /// 1290 and 1041 if that is more than the session may hold.
    fn cover(&self, bytes: usize) -> Result<(), SqlError> {
        let _ = bytes;
        Ok(())
    }
    /// `@@max_allowed_packet`: no function gives a longer value.
    fn packet_bytes_max(&self) -> usize {
        PACKET_BYTES
    }
    /// `@@group_concat_max_len`.
    fn group_concat_bytes(&self) -> usize {
        GROUP_CONCAT_BYTES
    }
    /// `@@lc_time_names`.
    fn time_locale(&self) -> &'static Locale {
        Locale::at(0)
    }
    /// `@@default_regex_flags`.
    fn regex_flags(&self) -> RegexFlags {
        RegexFlags::default()
    }
    /// Locks a name for the session: true if it has the lock, false if the time is over, `None` after KILL
    /// and when the statement's time is over.
    ///
    /// # Errors
    /// 1213 for a deadlock; 1290 and 1041 if the session would hold too much memory.
    fn get_lock(&self, name: &[u8], wait: Duration) -> Result<Option<bool>, SqlError> {
        let _ = (name, wait);
        Ok(None)
    }
    /// Undoes one `get_lock`: false if another session owns the lock, `None` if no session does.
    fn release_lock(&self, name: &[u8]) -> Option<bool> {
        let _ = name;
        None
    }
    /// Undoes every `get_lock` of the session, and counts them.
    fn release_all_locks(&self) -> u64 {
        0
    }
    /// The session that has locked a name.
    fn lock_owner(&self, name: &[u8]) -> Option<u64> {
        let _ = name;
        None
    }
    /// `@@max_recursive_iterations`.
    fn recursions_max(&self) -> u64 {
        RECURSIONS
    }
    /// Fails once the statement was killed or its time is over. SLEEP calls this, and so do long scans that
    /// find no row.
    ///
    /// # Errors
    /// 1317 for a statement that was killed or whose time is over.
    fn check_interrupt(&self) -> Result<(), SqlError> {
        Ok(())
    }
}

/// The surroundings of an evaluation. Values live as long as the row that the expression is evaluated over:
/// the arena is emptied after each row.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub slots: Slots<'a>,
    pub arena: &'a Bump,
    pub environment: &'a dyn Environment,
    /// `None` where no expression has a subquery.
    pub subqueries: Option<&'a dyn RunSubquery>,
}

/// Runs the subqueries of expressions.
pub(crate) trait RunSubquery {
    /// Calls `each` for every row until it returns false. `slots` are the statement's, with the subquery's
    /// parameters.
    ///
    /// # Errors
    /// Those of running the query, and of `each`.
    fn run(
        &self,
        plan: &dyn InnerQuery,
        slots: Slots<'_>,
        each: &mut dyn FnMut(&[ValueRef<'_>]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError>;

    /// Where rows of subqueries are kept.
    fn workspace(&self) -> Workspace<'_>;
}

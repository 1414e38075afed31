//! How one table is read: which index, which keys, and what is left to test.

use super::sarg::{Interval, Sarg, Test, sarg};
use super::walk::{Parts, conjunction};
use crate::SqlError;
use crate::expr::{Compiled, Expr, IntegerTests};
use base::IndexId;
use engine::{Direction, IntegerColumns, Table, TableDef};
use std::sync::Arc;
use types::{Collation, Column, ColumnType, KeyCodec, KeyPart, Value};

/// How the rows of one table are found.
#[derive(Debug)]
pub(crate) struct Access {
    pub path: Path,
    /// The conditions that rows found on the path must still be tested against.
    pub residual: Option<Compiled>,
    /// Every condition. Tested instead of `residual` if a value cannot be made a key.
    pub all: Option<Compiled>,
    /// Set if the keys of the index hold every column that is read.
    pub covering: Option<Covering>,
    /// Set if only integer columns are read, in the order of the clustered index.
    pub integers: Option<IntegerRows>,
    /// For EXPLAIN: how many rows the planner expects, and where the values of the keys come from.
    pub rows: u64,
    pub references: Vec<String>,
    /// The indexes that a condition could use.
    pub possible: Vec<String>,
    /// The path was chosen because its rows come in the wanted order.
    pub in_order: bool,
}

#[derive(Debug)]
pub(crate) enum Path {
    /// All rows, in the order of an index.
    Whole { index: IndexId, direction: Direction },
    /// The rows with these values in the first key parts of an index.
    Points { index: IndexId, codec: Arc<KeyCodec>, points: Vec<Point>, unique: bool },
    /// The rows with these values in the first key parts, and in these ranges of the part that follows.
    Ranges {
        index: IndexId,
        codec: Arc<KeyCodec>,
        points: Vec<Point>,
        /// `None` if `points` cover all parts: then the interval takes in all keys that start with them.
        part: Option<RangePart>,
        intervals: Vec<RangeInterval>,
        direction: Direction,
    },
}

impl Access {
    /// The index in which the rows are found.
    pub(crate) fn index(&self) -> IndexId {
        match self.path {
            Path::Whole { index, .. } | Path::Points { index, .. } | Path::Ranges { index, .. } => index,
        }
    }

    pub(crate) fn direction(&self) -> Direction {
        match self.path {
            Path::Whole { direction, .. } | Path::Ranges { direction, .. } => direction,
            Path::Points { .. } => Direction::Forward,
        }
    }
}

/// The values that one key part is looked up by.
#[derive(Debug)]
pub(crate) struct Point {
    pub values: PointValues,
    pub column_type: ColumnType,
    pub nullable: bool,
}

#[derive(Debug)]
pub(crate) enum PointValues {
    Slot(usize),
    /// All values of a slot.
    Slots(usize),
    Value {
        value: Compiled,
        null_safe: bool,
    },
    Values(Vec<Compiled>),
}

/// The key part that a range is on.
#[derive(Debug)]
pub(crate) struct RangePart {
    pub column_type: ColumnType,
    pub nullable: bool,
    pub descending: bool,
    /// Keys hold only the beginning of a value, so that other values have the key of a bound, too.
    pub cut: bool,
}

#[derive(Debug)]
pub(crate) struct RangeInterval {
    pub lower: Vec<RangeBound>,
    pub upper: Vec<RangeBound>,
}

#[derive(Debug)]
pub(crate) struct RangeBound {
    pub value: BoundValue,
    pub inclusive: bool,
    pub like: Option<super::sarg::Escape>,
}

#[derive(Debug)]
pub(crate) enum BoundValue {
    Slot(usize),
    Value(Compiled),
}

/// Which columns an index's keys hold.
#[derive(Debug)]
pub(crate) struct Covering {
    /// The table's columns in the order of the key's parts, own parts first, then the primary key's.
    pub columns: Vec<usize>,
    pub own: Arc<KeyCodec>,
    /// The codec of the primary key that follows a secondary index's own parts.
    pub primary: Option<Arc<KeyCodec>>,
    /// False if no column is needed: then the keys are only counted.
    pub decode: bool,
    /// How many columns the table has.
    pub width: usize,
}

/// Rows of the clustered index of which only integers are read.
#[derive(Debug)]
pub(crate) struct IntegerRows {
    pub columns: IntegerColumns,
    /// The conditions still to be tested, if integers are enough to test them.
    pub tests: Option<IntegerTests>,
    /// How many columns the table has.
    pub width: usize,
}

impl IntegerRows {
    /// `None` if one of the columns does not hold integers.
    pub(super) fn new(
        target: &Target<'_>,
        columns: impl IntoIterator<Item = usize>,
        residual: Option<&Compiled>,
    ) -> Option<IntegerRows> {
        let columns = target.table.integer_columns(columns)?;
        let tests = match residual {
            None => Some(IntegerTests::NONE),
            Some(residual) => residual.integer_tests(target.part, columns.columns()),
        };
        Some(IntegerRows { columns, tests, width: target.def.columns.len() })
    }
}

/// An index as the planner sees it.
#[derive(Clone, Debug)]
pub(crate) struct IndexShape {
    pub id: IndexId,
    pub name: String,
    pub unique: bool,
    pub parts: Vec<KeyPart>,
}

/// The indexes of a table, the clustered one first. It has no parts if its key is hidden.
pub(crate) fn indexes(def: &TableDef) -> Vec<IndexShape> {
    let primary = IndexShape {
        id: IndexId(0),
        name: "PRIMARY".to_string(),
        unique: true,
        parts: def.primary.clone().unwrap_or_default(),
    };
    let secondary = def.indexes.iter().enumerate().map(|(position, index)| IndexShape {
        id: IndexId(u16::try_from(position + 1).unwrap_or(u16::MAX)),
        name: index.name.clone(),
        unique: index.unique,
        parts: index.parts.clone(),
    });
    std::iter::once(primary).chain(secondary).collect()
}

/// The index hints of the statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// `None`: any index may be used.
    pub only: Option<Vec<String>>,
    pub ignore: Vec<String>,
    pub force: bool,
}

impl Hints {
    pub(crate) fn allows(&self, name: &str) -> bool {
        let is = |other: &String| other.eq_ignore_ascii_case(name);
        self.only.as_ref().is_none_or(|only| only.iter().any(is)) && !self.ignore.iter().any(is)
    }
}

/// The table that an access is chosen for.
pub(crate) struct Target<'a> {
    pub table: &'a Table,
    pub def: &'a TableDef,
    /// Its part of the joined row.
    pub part: usize,
    /// The tables that are read before this one.
    pub before: Parts,
    pub hints: &'a Hints,
    /// By column: true if something other than the conditions reads it.
    pub needed: &'a [bool],
    /// The wanted order of the rows: columns, with true for descending.
    pub order: &'a [(usize, bool)],
    /// The rows must come in that order whatever it costs here: the tables joined behind make up for it.
    pub in_order: bool,
    /// With `order`: how many rows are wanted, if known.
    pub limit: Option<u64>,
    pub connection: Collation,
}

/// A path under consideration.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) index: IndexShape,
    /// The conditions on the first key parts.
    pub(super) points: Vec<Sarg>,
    pub(super) range: Option<Sarg>,
    pub(super) direction: Direction,
    /// The rows come in the wanted order.
    pub(super) ordered: bool,
    pub(super) covering: bool,
    pub(super) rows: u64,
    pub(super) cost: f64,
}

impl Candidate {
    pub(super) fn is_whole(&self) -> bool {
        self.points.is_empty() && self.range.is_none()
    }

    /// True if it finds at most one row.
    pub(super) fn is_unique(&self) -> bool {
        self.index.unique
            && !self.index.parts.is_empty()
            && self.points.len() == self.index.parts.len()
            && self.index.parts.iter().all(|part| part.prefix_chars.is_none())
            && self.points.iter().all(|point| !matches!(point.test, Test::Equal { null_safe: true, .. }))
    }

    /// The columns by which the rows are sorted. An equation gives all rows the same value, so each column
    /// counts by itself.
    pub(super) fn sorted_by(&self) -> Vec<usize> {
        if self.direction == Direction::Backward {
            return vec![];
        }
        let is_equal = |sarg: &&Sarg| matches!(sarg.test, Test::Equal { .. });
        let equal = self.points.iter().take_while(is_equal).count();
        let is_plain = |part: &&KeyPart| !part.descending && part.prefix_chars.is_none();
        self.index.parts.iter().take_while(is_plain).take(equal + 1).map(|part| part.column).collect()
    }

    fn used(&self) -> impl Iterator<Item = &Sarg> {
        self.points.iter().chain(&self.range)
    }
}

/// A chosen access, and whether its rows come in the wanted order.
pub(crate) struct Chosen {
    pub access: Access,
    pub ordered: bool,
    /// True if it finds at most one row for each row of the tables before.
    pub unique: bool,
    /// As [`Candidate::sorted_by`].
    pub sorted_by: Vec<usize>,
    /// By column: true if it is read after the row is found, even if only to test a condition.
    pub needed: Vec<bool>,
}

/// Chooses how to read a table. All of `conditions` can be tested once a row of the table is found.
///
/// # Errors
/// As [`Compiled::new`].
pub(crate) fn choose(target: &Target<'_>, conditions: &[Expr]) -> Result<Chosen, SqlError> {
    let best = best(target, conditions);
    let unique = best.is_unique() && best.points.iter().all(|point| matches!(point.test, Test::Equal { .. }));
    let (mut access, needed) = build(target, conditions, &best)?;
    access.possible = possible(target, conditions);
    Ok(Chosen { access, ordered: best.ordered, unique, sorted_by: best.sorted_by(), needed })
}

/// The cheapest candidate.
pub(super) fn best(target: &Target<'_>, conditions: &[Expr]) -> Candidate {
    let sargs: Vec<Sarg> = conditions
        .iter()
        .enumerate()
        .filter_map(|(at, condition)| sarg(condition, at, target.part, target.before))
        .collect();
    let mut best: Option<Candidate> = None;
    for index in indexes(target.def) {
        let forced_out = !index.parts.is_empty() && !target.hints.allows(&index.name);
        if forced_out && index.id.0 != 0 {
            continue;
        }
        let usable = if forced_out { &[][..] } else { &sargs[..] };
        let mut candidate = super::cost::candidate(target, conditions, index, usable);
        if target.in_order && !candidate.ordered {
            continue;
        }
        if target.hints.force && candidate.is_whole() && candidate.index.id.0 == 0 {
            candidate.cost *= 1e6;
        }
        if best.as_ref().is_none_or(|best| is_better(target, &candidate, best)) {
            best = Some(candidate);
        }
    }
    // The clustered index is always there.
    best.unwrap_or_else(|| {
        super::cost::candidate(target, conditions, indexes(target.def).swap_remove(0), &[])
    })
}

/// The cheaper one is better. Of two whole indexes that cover, the one with the shorter key is better.
fn is_better(target: &Target<'_>, candidate: &Candidate, best: &Candidate) -> bool {
    let is_cover = |candidate: &Candidate| candidate.covering && candidate.is_whole();
    let key_bytes = |candidate: &Candidate| -> u64 {
        let parts = candidate.index.parts.iter();
        parts.map(|part| super::explain::key_bytes(&target.def.columns[part.column], part.prefix_chars)).sum()
    };
    let is_tie = candidate.cost == best.cost && is_cover(candidate) && is_cover(best);
    candidate.cost < best.cost || is_tie && key_bytes(candidate) < key_bytes(best)
}

/// The names of the indexes whose first part has a condition.
fn possible(target: &Target<'_>, conditions: &[Expr]) -> Vec<String> {
    let sargs: Vec<Sarg> = conditions
        .iter()
        .enumerate()
        .filter_map(|(at, condition)| sarg(condition, at, target.part, target.before))
        .collect();
    indexes(target.def)
        .into_iter()
        .filter(|index| target.hints.allows(&index.name))
        .filter(|index| {
            index.parts.first().is_some_and(|part| sargs.iter().any(|sarg| sarg.column == part.column))
        })
        .map(|index| index.name)
        .collect()
}

fn build(
    target: &Target<'_>,
    conditions: &[Expr],
    candidate: &Candidate,
) -> Result<(Access, Vec<bool>), SqlError> {
    let compile = |expr: &Expr| Compiled::new(expr, target.connection);
    let is_met = |at: usize| {
        candidate.used().any(|sarg| {
            let part = candidate.index.parts.iter().find(|part| part.column == sarg.column);
            sarg.condition == at && sarg.exact && part.is_none_or(|part| part.prefix_chars.is_none())
        })
    };
    let left: Vec<Expr> = conditions
        .iter()
        .enumerate()
        .filter(|(at, _)| !is_met(*at))
        .map(|(_, condition)| condition.clone())
        .collect();
    let all = conjunction(conditions.to_vec());
    let mut needed = target.needed.to_vec();
    for condition in &left {
        super::walk::for_each_column(condition, &mut |column| {
            if column.part == target.part {
                needed[column.column] = true;
            }
        });
    }
    let residual = conjunction(left).as_ref().map(compile).transpose()?;
    let is_clustered_run = candidate.index.id.0 == 0
        && (candidate.is_whole() || candidate.range.is_some())
        && candidate.direction == Direction::Forward;
    let integers =
        is_clustered_run.then(|| IntegerRows::new(target, positions(&needed), residual.as_ref())).flatten();
    let access = Access {
        path: build_path(target, candidate)?,
        residual,
        integers,
        all: all.as_ref().map(compile).transpose()?,
        covering: covering(target, candidate, &needed),
        rows: candidate.rows,
        references: references(candidate),
        possible: vec![],
        in_order: candidate.ordered,
    };
    Ok((access, needed))
}

/// The positions of the columns that are needed.
pub(super) fn positions(needed: &[bool]) -> impl Iterator<Item = usize> {
    needed.iter().enumerate().filter(|(_, needed)| **needed).map(|(column, _)| column)
}

fn build_path(target: &Target<'_>, candidate: &Candidate) -> Result<Path, SqlError> {
    let index = candidate.index.id;
    if candidate.is_whole() {
        return Ok(Path::Whole { index, direction: candidate.direction });
    }
    let codec = target.table.key_codec(index);
    let column = |sarg: &Sarg| &target.def.columns[sarg.column];
    let mut points = Vec::with_capacity(candidate.points.len());
    for sarg in &candidate.points {
        points.push(Point {
            values: point_values(target, &sarg.test, column(sarg))?,
            column_type: column(sarg).column_type.clone(),
            nullable: column(sarg).nullable,
        });
    }
    let Some(range) = &candidate.range else {
        return Ok(Path::Points { index, codec, points, unique: candidate.is_unique() });
    };
    let Test::Intervals(intervals) = &range.test else {
        return Err(SqlError::internal("a range without intervals"));
    };
    let part = candidate.index.parts.get(points.len()).map(|part| RangePart {
        column_type: column(range).column_type.clone(),
        nullable: column(range).nullable,
        descending: part.descending,
        cut: part.prefix_chars.is_some(),
    });
    Ok(Path::Ranges {
        index,
        codec,
        part,
        points,
        intervals: intervals
            .iter()
            .map(|interval| range_interval(target, interval, target.def.columns.get(range.column)))
            .collect::<Result<_, SqlError>>()?,
        direction: candidate.direction,
    })
}

fn point_values(target: &Target<'_>, test: &Test, of: &Column) -> Result<PointValues, SqlError> {
    let compile = |expr: &Expr| Compiled::beside(expr, Some(of), target.connection);
    Ok(match test {
        Test::Equal { value: Expr::Slot { index, .. }, null_safe: false } => PointValues::Slot(*index),
        Test::Equal { value, null_safe } => {
            PointValues::Value { value: compile(value)?, null_safe: *null_safe }
        }
        Test::InSlot { index } => PointValues::Slots(*index),
        Test::InList { values } => {
            PointValues::Values(values.iter().map(compile).collect::<Result<_, SqlError>>()?)
        }
        Test::Intervals(_) => return Err(SqlError::internal("intervals where values should be")),
    })
}

fn range_interval(
    target: &Target<'_>,
    interval: &Interval,
    of: Option<&Column>,
) -> Result<RangeInterval, SqlError> {
    let bounds = |bounds: &[super::sarg::Bound]| {
        let bound = |bound: &super::sarg::Bound| {
            Ok(RangeBound {
                value: match &bound.value {
                    Expr::Slot { index, .. } => BoundValue::Slot(*index),
                    value => BoundValue::Value(Compiled::beside(value, of, target.connection)?),
                },
                inclusive: bound.inclusive,
                like: bound.like,
            })
        };
        bounds.iter().map(bound).collect::<Result<Vec<_>, SqlError>>()
    };
    Ok(RangeInterval { lower: bounds(&interval.lower)?, upper: bounds(&interval.upper)? })
}

/// Whether the keys of the candidate's index hold every column that is needed.
pub(super) fn covers(target: &Target<'_>, index: &IndexShape, needed: &[bool]) -> bool {
    let primary = target.def.primary.as_deref().unwrap_or_default();
    if index.id.0 == 0 {
        // The clustered index holds every column, but reading it is reading whole rows.
        return false;
    }
    if !needed.contains(&true) {
        return true;
    }
    let held = |column: usize| index.parts.iter().chain(primary).any(|part| part.column == column);
    let readable = target.table.key_codec(index.id).is_covering()
        && (primary.is_empty() || target.table.key_codec(IndexId(0)).is_covering());
    readable && needed.iter().enumerate().all(|(column, needed)| !needed || held(column))
}

fn covering(target: &Target<'_>, candidate: &Candidate, needed: &[bool]) -> Option<Covering> {
    let index = &candidate.index;
    if candidate.range.is_none() && (!candidate.points.is_empty() && candidate.is_unique()) {
        return None;
    }
    if !covers(target, index, needed) && (index.id.0 != 0 || needed.contains(&true)) {
        return None;
    }
    let primary = target.def.primary.as_deref().filter(|_| index.id.0 != 0);
    Some(Covering {
        columns: index.parts.iter().chain(primary.unwrap_or_default()).map(|part| part.column).collect(),
        own: target.table.key_codec(index.id),
        primary: primary.map(|_| target.table.key_codec(IndexId(0))),
        decode: needed.contains(&true),
        width: target.def.columns.len(),
    })
}

/// The values that EXPLAIN shows as `ref`.
fn references(candidate: &Candidate) -> Vec<String> {
    let name = |value: &Expr| match value {
        Expr::Column(column) => column.name.clone(),
        Expr::Outer(outer) => outer.name.clone(),
        Expr::Constant(_) | Expr::Slot { .. } => "const".to_string(),
        _ => "func".to_string(),
    };
    candidate
        .points
        .iter()
        .map(|point| match &point.test {
            Test::Equal { value: Expr::Constant(Value::Null), .. } => "const".to_string(),
            Test::Equal { value, .. } => name(value),
            _ => "const".to_string(),
        })
        .collect()
}

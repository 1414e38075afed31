//! What a query's plan is.

use super::access::{Access, IntegerRows};
use super::bind::SubqueryUse;
use super::names::Name;
use crate::ColumnMeta;
use crate::expr::value_keys::ValueKeys;
use crate::expr::{Compiled, CompiledAggregate, InnerQuery};
use crate::locks::{Mode, Used};
use engine::{Table, TableDef};
use std::sync::Arc;
use types::Column;

/// A query ready to run: the subqueries that it stands on, and itself.
#[derive(Debug)]
pub(crate) struct StatementPlan {
    pub query: QueryPlan,
    /// In the order in which they must run.
    pub subqueries: Vec<SubqueryPlan>,
    /// Those that run for each row around them, for EXPLAIN: expressions hold them.
    pub dependents: Vec<Arc<QueryPlan>>,
    /// What the plan was made from: it is good as long as these tables have these versions.
    pub dependencies: Vec<Dependency>,
    /// True if one of its SELECTs locks rows, those of subqueries included.
    pub locks: bool,
    /// False if the plan holds something that is only good once: rows of an information_schema table's
    /// definition.
    pub cacheable: bool,
}

#[derive(Debug)]
pub(crate) struct SubqueryPlan {
    pub query: QueryPlan,
    pub use_as: SubqueryUse,
}

/// A table that a statement names.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub table: Arc<Table>,
    /// By which name the statement knows it: LOCK TABLES goes by that.
    pub alias: String,
    pub version: u64,
}

impl Dependency {
    pub(crate) fn is_current(&self) -> bool {
        self.table.version() == self.version
    }

    pub(crate) fn in_mode(&self, mode: Mode) -> Used<'_> {
        Used { table: &self.table, alias: &self.alias, mode }
    }
}

impl InnerQuery for QueryPlan {
    fn columns(&self) -> &[ColumnMeta] {
        &self.columns
    }
}

impl StatementPlan {
    pub(crate) fn is_current(&self) -> bool {
        self.dependencies.iter().all(Dependency::is_current)
    }
}

/// SELECT or UNION.
#[derive(Debug)]
pub(crate) struct QueryPlan {
    pub columns: Arc<[ColumnMeta]>,
    /// Names with slots in them, by the column's position.
    pub names: Vec<(usize, Name)>,
    pub body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Select(Box<SelectPlan>),
    Union(Box<UnionPlan>),
}

#[derive(Debug)]
pub(crate) struct UnionPlan {
    pub branches: Vec<QueryPlan>,
    /// Rows that are equal are kept once among the branches up to this one, counted from 0; `None` for UNION
    /// ALL throughout.
    pub distinct_until: Option<usize>,
    /// What values are made to be.
    pub columns: Vec<types::Column>,
    pub keys: ValueKeys,
    pub order: SortOrder,
    pub limit: Limit,
}

/// One SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    /// The tables, by their part of the row.
    pub inputs: Vec<Input>,
    /// In which order they are read.
    pub steps: Vec<Step>,
    /// The inner sides of outer joins, each a run of steps.
    pub nests: Vec<NestPlan>,
    /// How many rows the planner expects before they are grouped.
    pub rows: u64,
    /// A condition that no table is needed for.
    pub constant: Option<Compiled>,
    pub output: Vec<Output>,
    pub group: Option<Group>,
    pub having: Option<Compiled>,
    pub distinct: Option<ValueKeys>,
    /// Empty if rows come in the wanted order, or in any.
    pub order: SortOrder,
    pub limit: Limit,
    pub calculates_found_rows: bool,
    /// FOR UPDATE and its like.
    pub lock: Option<LockClause>,
    /// COUNT(*) of a table without conditions, or MIN and MAX from the ends of indexes.
    pub shortcut: Option<Shortcut>,
    pub uses_temporary: bool,
}

/// How a SELECT locks the rows that it reads: those of each of its tables that meet the conditions on that
/// table, and on the tables before it in the join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LockClause {
    /// FOR UPDATE; else they are only kept from being changed.
    pub exclusive: bool,
    pub wait: LockPatience,
}

/// What a locking SELECT does about a row that is locked by another transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockPatience {
    /// Waits as long as `innodb_lock_wait_timeout` says.
    Default,
    /// WAIT n.
    Seconds(LimitValue),
    NoWait,
    SkipLocked,
}

#[derive(Debug)]
pub(crate) struct Input {
    pub source: Source,
    /// For EXPLAIN.
    pub name: String,
}

/// A table of `information_schema`, whose rows are computed for each statement that reads it.
#[derive(Debug)]
pub(crate) struct VirtualTable {
    /// In capitals, as `information_schema.TABLES` lists it. Found in any case.
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// Its position among the virtual tables.
    pub number: usize,
}

/// Finds the virtual table of a database and a name.
pub(crate) type FindVirtual = fn(&str, &str) -> Option<&'static VirtualTable>;

#[derive(Debug)]
pub(crate) enum Source {
    Table { table: Arc<Table>, def: Arc<TableDef> },
    Derived(Box<QueryPlan>),
    Virtual(&'static VirtualTable),
}

/// Reading one table for each row of those before.
#[derive(Debug)]
pub(crate) struct Step {
    pub part: usize,
    /// `None` for a derived or virtual table.
    pub access: Option<Access>,
    pub method: Method,
    /// What rows must meet beside the access's own conditions.
    pub filter: Option<Compiled>,
    /// The nest that begins here.
    pub begins: Option<usize>,
    /// The nests that end here, the innermost first.
    pub ends: Vec<usize>,
    /// For EXPLAIN: what reading it costs for all rows before it, in rows read in order.
    pub cost: f64,
    /// Which share of the rows found is expected to meet all conditions.
    pub filtered: f64,
}

/// How the rows of a table are found for each row of those before.
#[derive(Debug)]
pub(crate) enum Method {
    /// By the access, anew for each.
    Each,
    /// By the access's unique index, for many rows of those before at a time.
    Gather,
    /// By the access's index, with a cursor that moves along as keys come in order: a merge of two indexes.
    Follow {
        /// No column is read.
        keys_only: bool,
        /// Both sides can be read as integers.
        merge: Option<Merge>,
    },
    /// In a hash table of the rows that the access finds.
    Hash(HashKeys),
}

/// A merge of the first table with the second, whose primary key is one integer: leaf by leaf, by integers
/// alone.
#[derive(Debug)]
pub(crate) struct Merge {
    /// The column of the first table that the second one's key is equal to, by its place among the integers
    /// read of it.
    pub outer: usize,
    /// Of the second table: the key first.
    pub inner: IntegerRows,
    /// Columns are read of the rows found.
    pub reads_rows: bool,
}

/// The two sides of a join's equations.
#[derive(Debug)]
pub(crate) struct HashKeys {
    pub inner: Vec<Compiled>,
    pub outer: Vec<Compiled>,
    /// Of either side's values. Equal values have equal keys; the opposite is tested again.
    pub keys: ValueKeys,
}

/// The inner side of an outer join: where none of its rows fits, NULLs stand in for all of its tables.
#[derive(Debug)]
pub(crate) struct NestPlan {
    /// Its steps.
    pub first: usize,
    pub last: usize,
    /// What those around it ask of its columns.
    pub after: Option<Compiled>,
}

/// One column of the result.
#[derive(Debug)]
pub(crate) enum Output {
    Column { part: usize, column: usize },
    Value(Compiled),
}

#[derive(Debug)]
pub(crate) struct Group {
    /// Empty if all rows are one group, which is there even if no row is.
    pub keys: Vec<Compiled>,
    /// Of the keys' values.
    pub values: ValueKeys,
    pub aggregates: Vec<CompiledAggregate>,
    /// True if something other than aggregates is read of a group: then its first row is kept.
    pub keeps_row: bool,
    /// Rows come in the order of the keys: one group after the other.
    pub ordered: bool,
}

/// An order of rows. Without items it is any.
#[derive(Debug)]
pub(crate) struct SortOrder {
    pub items: Vec<SortValue>,
    /// Of the items' values.
    pub keys: ValueKeys,
    /// The items are the columns of the result, all of them as they come, ascending.
    pub is_result: bool,
}

impl SortOrder {
    /// The order of a result of `width` columns.
    pub(crate) fn new(items: Vec<SortItem>, width: usize) -> SortOrder {
        let is_column = |(at, item): (usize, &SortItem)| {
            !item.descending && matches!(item.value, SortValue::Output(column) if column == at)
        };
        let is_result = items.len() == width && items.iter().enumerate().all(is_column);
        let (items, columns): (_, Vec<_>) =
            items.into_iter().map(|item| (item.value, (item.column, item.descending))).unzip();
        SortOrder { items, keys: ValueKeys::ordered(columns), is_result }
    }
}

/// One item of ORDER BY.
#[derive(Debug)]
pub(crate) struct SortItem {
    pub value: SortValue,
    pub column: types::Column,
    pub descending: bool,
}

#[derive(Debug)]
pub(crate) enum SortValue {
    /// A column of the result.
    Output(usize),
    Value(Compiled),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Limit {
    pub count: Option<LimitValue>,
    pub offset: Option<LimitValue>,
}

/// The number behind LIMIT or WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LimitValue {
    Number(u64),
    Slot(usize),
}

#[derive(Debug)]
pub(crate) enum Shortcut {
    /// Every aggregate is COUNT(*) or COUNT of a column that is never NULL.
    RowCount,
    /// For each aggregate the index whose first or last entry answers it.
    Ends(Vec<End>),
}

#[derive(Debug)]
pub(crate) struct End {
    pub index: base::IndexId,
    pub column: usize,
    pub last: bool,
}

//! The parts of a query's plan.

use super::access::{Access, IntegerRows};
use super::bind::SubqueryUse;
use super::describe::LateColumns;
use super::names::Name;
use super::window::WindowPlan;
use crate::ColumnMeta;
use crate::accounts::access::Needs;
use crate::expr::value_keys::ValueKeys;
use crate::expr::{Compiled, CompiledAggregate, InnerQuery};
use crate::locks::{Mode, Used};
use engine::{Table, TableDef};
use std::collections::HashSet;
use std::sync::Arc;
use types::Column;

/// A query ready to run, with the subqueries that must run before it.
#[derive(Debug)]
pub(crate) struct StatementPlan {
    pub query: QueryPlan,
    /// What a session must be allowed to do.
    pub needs: Needs,
    /// In the order in which they must run.
    pub subqueries: Vec<SubqueryPlan>,
    /// The subqueries that run for each row of a query around them. Expressions hold them; EXPLAIN finds them
    /// here.
    pub dependents: Vec<Arc<QueryPlan>>,
    /// The tables that the plan was made from. The plan is valid as long as each has the version noted here.
    pub dependencies: Vec<Dependency>,
    /// True if a SELECT of the statement locks rows, be it that of a subquery.
    pub locks: bool,
    /// False if the plan is valid for one execution only: it contains rows of the definition of an
    /// information_schema table.
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
    /// The name that the statement uses for it. LOCK TABLES compares this name.
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

    /// True if it reads a table of any kind, or derived rows.
    pub(crate) fn reads_tables(&self) -> bool {
        !self.dependencies.is_empty() || self.query.has_sources()
    }
}

/// SELECT or UNION.
#[derive(Debug)]
pub(crate) struct QueryPlan {
    pub columns: Arc<[ColumnMeta]>,
    /// True if clients and expressions see other values of a column than its rows have.
    pub is_seen_apart: bool,
    /// Names that have slots in them, with the position of their column.
    pub names: Vec<(usize, Name)>,
    /// The columns of a SELECT that are described when it runs.
    pub late: Option<Box<LateColumns>>,
    pub body: Body,
}

impl QueryPlan {
    fn has_sources(&self) -> bool {
        match &self.body {
            Body::Union(union) => union.branches.iter().any(QueryPlan::has_sources),
            Body::Recursive(recursive) => recursive.parts().any(QueryPlan::has_sources),
            Body::Select(select) => !select.inputs.is_empty(),
        }
    }

    /// True if the query names this table itself, outside of derived tables, whose rows are read beforehand.
    /// Its subqueries are plans of their own.
    pub(crate) fn names(&self, table: &Arc<Table>) -> bool {
        match &self.body {
            Body::Union(union) => union.branches.iter().any(|branch| branch.names(table)),
            Body::Recursive(_) => false,
            Body::Select(select) => select.inputs.iter().any(|input| match &input.source {
                Source::Table { table: read, .. } => Arc::ptr_eq(read, table),
                Source::Derived(_) | Source::Shared(_) | Source::Working(_) | Source::Virtual(_) => false,
            }),
        }
    }

    /// True if the query reads this table itself. Its subqueries are plans of their own.
    pub(crate) fn reads(&self, table: &Arc<Table>) -> bool {
        let mut queries = vec![self];
        // What WITH defines may be named often.
        let mut shared = HashSet::new();
        while let Some(query) = queries.pop() {
            let select = match &query.body {
                Body::Union(union) => {
                    queries.extend(&union.branches);
                    continue;
                }
                Body::Recursive(recursive) => {
                    queries.extend(recursive.parts());
                    continue;
                }
                Body::Select(select) => select,
            };
            for input in &select.inputs {
                match &input.source {
                    Source::Table { table: read, .. } if Arc::ptr_eq(read, table) => return true,
                    Source::Shared(query) if shared.insert(Arc::as_ptr(query)) => queries.push(query),
                    Source::Derived(query) => queries.push(query),
                    _ => {}
                }
            }
        }
        false
    }
}

#[derive(Debug)]
pub(crate) enum Body {
    Select(Box<SelectPlan>),
    Union(Box<UnionPlan>),
    Recursive(Box<RecursivePlan>),
}

/// A definition of WITH RECURSIVE that names itself. Its rows are those of the anchors, and those that the
/// members make of the rows that came last, until no rows come any more.
#[derive(Debug)]
pub(crate) struct RecursivePlan {
    /// What [`Source::Working`] names it by.
    pub number: usize,
    pub anchors: Vec<QueryPlan>,
    pub members: Vec<QueryPlan>,
    /// The types that all values are converted to.
    pub columns: Vec<types::Column>,
    /// Set if equal rows are reduced to one.
    pub keys: Option<ValueKeys>,
}

impl RecursivePlan {
    /// The anchors and the members.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &QueryPlan> {
        self.anchors.iter().chain(&self.members)
    }
}

#[derive(Debug)]
pub(crate) struct UnionPlan {
    pub branches: Vec<QueryPlan>,
    /// What joins each branch but the first to the result of those before it.
    pub operations: Vec<SetOperation>,
    /// The types that values of all branches are converted to.
    pub columns: Vec<types::Column>,
    pub keys: ValueKeys,
    pub order: SortOrder,
    pub limit: Limit,
}

impl UnionPlan {
    /// The last of the first `count` branches that INTERSECT or EXCEPT joins.
    pub(crate) fn last_combined(&self, count: usize) -> Option<usize> {
        let is_combined = |operation: &SetOperation| operation.operator != SetOperator::Union;
        Some(1 + self.operations.iter().take(count.saturating_sub(1)).rposition(is_combined)?)
    }

    /// Equal rows are reduced to one among the branches up to this one, of the first `count`, counted from 0.
    /// `None` if none of them is joined by UNION DISTINCT.
    pub(crate) fn distinct_until(&self, count: usize) -> Option<usize> {
        let is_distinct =
            |operation: &SetOperation| operation.operator == SetOperator::Union && !operation.all;
        Some(1 + self.operations.iter().take(count.saturating_sub(1)).rposition(is_distinct)?)
    }
}

/// What is done with two results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SetOperation {
    pub operator: SetOperator,
    /// If false, equal rows are reduced to one.
    pub all: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// One SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    /// The tables, by their part of the row.
    pub inputs: Vec<Input>,
    /// The order in which they are read.
    pub steps: Vec<Step>,
    /// The inner sides of outer joins. Each is a run of consecutive steps.
    pub nests: Vec<NestPlan>,
    /// How many rows the planner expects before they are grouped.
    pub rows: u64,
    /// The conditions that read no table.
    pub constant: Option<Compiled>,
    pub output: Vec<Output>,
    pub group: Option<Group>,
    pub having: Option<Compiled>,
    /// The window functions. They see the rows that HAVING lets through.
    pub windows: Option<Box<WindowPlan>>,
    pub distinct: Option<ValueKeys>,
    /// Empty if rows already come in the wanted order, or if no order is wanted.
    pub order: SortOrder,
    pub limit: Limit,
    pub calculates_found_rows: bool,
    /// FOR UPDATE and its like.
    pub lock: Option<LockClause>,
    /// COUNT(*) of a table without conditions, or MIN and MAX from the ends of indexes.
    pub shortcut: Option<Shortcut>,
    pub uses_temporary: bool,
}

/// How a SELECT locks rows. For each table it locks the rows that meet the conditions on that table and on
/// the tables before it in the join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LockClause {
    /// FOR UPDATE. If false, other transactions can still read the rows with a lock, but not change them.
    pub exclusive: bool,
    pub wait: LockPatience,
}

/// What a locking SELECT does if another transaction has locked a row.
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

/// A table of `information_schema` or a like database. Its rows are computed for each statement that reads
/// it.
#[derive(Debug)]
pub(crate) struct VirtualTable {
    pub database: &'static str,
    /// As `information_schema.TABLES` lists it.
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// Its position among the virtual tables of its database.
    pub number: usize,
    /// The query that gives its rows, for one that is a view of other virtual tables.
    pub query: Option<&'static str>,
    /// True if reading it needs no right.
    pub readable_by_all: bool,
}

/// Finds the virtual table of a database and a name.
pub(crate) type FindVirtual = fn(&str, &str) -> Option<&'static VirtualTable>;

#[derive(Debug)]
pub(crate) enum Source {
    Table {
        table: Arc<Table>,
        def: Arc<TableDef>,
    },
    Derived(Box<QueryPlan>),
    /// What WITH defines. Its rows are computed once a statement.
    Shared(Arc<QueryPlan>),
    /// Inside a member of a recursive definition: the rows that came last, by the definition's number.
    Working(usize),
    Virtual(&'static VirtualTable),
}

impl Source {
    /// The query whose rows are kept to be read.
    pub(crate) fn query(&self) -> Option<&QueryPlan> {
        match self {
            Source::Derived(query) => Some(query),
            Source::Shared(query) => Some(query),
            Source::Table { .. } | Source::Working(_) | Source::Virtual(_) => None,
        }
    }
}

/// A step of a join: reads one table for each row of the tables before.
#[derive(Debug)]
pub(crate) struct Step {
    pub part: usize,
    /// `None` for a derived or virtual table.
    pub access: Option<Access>,
    pub method: Method,
    /// The conditions on its rows beside those of the access.
    pub filter: Option<Compiled>,
    /// The nest that begins here.
    pub begins: Option<usize>,
    /// The nests that end here, the innermost first.
    pub ends: Vec<usize>,
    /// For EXPLAIN: what reading the table costs for all rows before it. The unit is a row read in order.
    pub cost: f64,
    /// The share of the rows found that is expected to meet all conditions.
    pub filtered: f64,
}

/// How the rows of a table are found for each row of the tables before.
#[derive(Debug)]
pub(crate) enum Method {
    /// The access is run again for each row.
    Each,
    /// Rows of the tables before are gathered and looked up together in the access's unique index.
    Gather,
    /// A cursor on the access's index moves along as keys come in order: a merge of two indexes.
    Follow {
        /// No column of the rows is read.
        keys_only: bool,
        /// Set if both sides can be read as integers.
        merge: Option<Merge>,
    },
    /// The access's rows are put into a hash table.
    Hash(HashKeys),
}

/// A merge of the first table with the second, whose primary key is one integer. Both are read leaf by leaf,
/// and only their integers.
#[derive(Debug)]
pub(crate) struct Merge {
    /// The column of the first table that is equal to the second table's key, as its position among the
    /// integers that are read.
    pub outer: usize,
    /// What is read of the second table. The key comes first.
    pub inner: IntegerRows,
    /// True if columns of the rows found are read.
    pub reads_rows: bool,
}

/// The two sides of a join's equations.
#[derive(Debug)]
pub(crate) struct HashKeys {
    pub inner: Vec<Compiled>,
    pub outer: Vec<Compiled>,
    /// Encodes the values of either side. Equal values have equal keys. Values with equal keys may differ, so
    /// the equation is tested again.
    pub keys: ValueKeys,
}

/// The inner side of an outer join. If none of its rows match, NULLs replace the rows of all of its tables.
#[derive(Debug)]
pub(crate) struct NestPlan {
    /// Its first and last step.
    pub first: usize,
    pub last: usize,
    /// Conditions on its columns that belong to WHERE or to a nest around it.
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
    /// Empty if all rows form one group. That group exists even if there are no rows.
    pub keys: Vec<Compiled>,
    /// Encodes the values of the keys.
    pub values: ValueKeys,
    /// WITH ROLLUP: encodes the value of each key alone.
    pub rollup: Option<Vec<ValueKeys>>,
    pub aggregates: Vec<CompiledAggregate>,
    /// True if something other than aggregates is read from a group: then the group's first row is kept.
    pub keeps_row: bool,
    /// True if rows come in the order of the keys, so that one group ends before the next begins.
    pub ordered: bool,
}

/// An order of rows. Without items, any order will do.
#[derive(Debug)]
pub(crate) struct SortOrder {
    pub items: Vec<SortValue>,
    /// Encodes the values of the items.
    pub keys: ValueKeys,
    /// True if the items are all columns of the result, in their sequence and ascending.
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
    /// WITH TIES: rows that the order puts level with the last one follow it.
    pub ties: bool,
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

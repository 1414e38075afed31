//! INSERT and REPLACE with more than literals: expressions, SET, SELECT, ON DUPLICATE KEY UPDATE.

use super::assign::{Assigned, Assigning, Assignments, Outcome, Strictness, is_default, on_update};
use super::foreign_keys::{Keeper, or_take_back};
use super::inserter::{Given, Inserter, OnDuplicate, copy_to};
use super::on_duplicate::{NewRow, OnDuplicateUpdate, has_rows_of_tables};
use super::returning::{self, Returned};
use super::{UniqueKey, write_error};
use crate::accounts::Rights;
use crate::accounts::access::{Needs, TableNeed};
use crate::exec::{DerivedRows, RowLocks, Runtime, WriterLocks, recycle, run_to_spool, with_subqueries};
use crate::expr::{self, Compiled, Context, ListSet, Part, Row, Slots, cells};
use crate::locks::Mode;
use crate::memory::Charge;
use crate::plan::bind::Binder;
use crate::plan::explain_change::Change;
use crate::plan::from::single_scope;
use crate::plan::names::LiteralText;
use crate::plan::object_name;
use crate::plan::plan::{Dependency, QueryPlan, StatementPlan, SubqueryPlan};
use crate::plan::query::Planner;
use crate::plan::returning::Returning;
use crate::plan::scope::Scope;
use crate::session::Target;
use crate::session::bulk::Bulk;
use crate::session::bulk::Inserted;
use crate::session::environment::SessionEnvironment;
use crate::session::plans::ChangePlan;
use crate::session::transaction::Writes;
use crate::spill::{Spooled, read_row};
use crate::status::Counter;
use crate::{ResultSink, Session, SqlError, Warnings};
use bumpalo::Bump;
use engine::{Error, KeyList, Readers, RowUpdate, Writer};
use sqlparser::ast;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use types::{ColumnType, Value, ValueRef};

/// One value of a VALUES row.
#[derive(Debug)]
enum Item {
    Default,
    Value(Compiled),
}

#[derive(Debug)]
enum Source {
    Rows(Vec<Vec<Item>>),
    Query(Box<StatementPlan>),
}

#[derive(Debug)]
struct InsertPlan {
    target: Arc<Target>,
    needs: Needs,
    columns: Option<Vec<String>>,
    source: Source,
    on_duplicate: OnDuplicate,
    /// ON DUPLICATE KEY UPDATE.
    update: Option<Assignments>,
    /// How many values at the end of each row are for `update` only.
    not_inserted: usize,
    /// The tables that are read.
    dependencies: Vec<Dependency>,
    /// They run first, those of the query too. Their results are in slots.
    subqueries: Vec<SubqueryPlan>,
    returning: Option<Returning>,
}

fn forbid(what: bool, name: &str) -> Result<(), SqlError> {
    if what { Err(SqlError::not_supported(name)) } else { Ok(()) }
}

/// Plans an INSERT or REPLACE.
pub(super) fn plan_insert(
    session: &Session,
    planner: Planner<'_>,
    insert: &ast::Insert,
) -> Result<Box<dyn ChangePlan>, SqlError> {
    forbid(insert.partitioned.is_some() || insert.overwrite || insert.or.is_some(), "this form of INSERT")?;
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::not_supported("INSERT into anything but a table"));
    };
    let path = object_name(name);
    let (database, table_name) = match path.as_slice() {
        [table] => (planner.database.ok_or_else(SqlError::no_database)?.to_owned(), table.clone()),
        [database, table] => (database.clone(), table.clone()),
        _ => return Err(SqlError::syntax(&name.to_string(), 1)),
    };
    if crate::names::virtual_database(&database).is_some() {
        return Err(session.access.database_denied(&database));
    }
    let need = target_need(session, insert, &database, &table_name)?;
    let target = Arc::new(Target::new(&session.instance, session.table_to_use(&database, &table_name)?)?);
    let on_duplicate_update = match &insert.on {
        None => None,
        Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) => {
            let source = source_scope(&planner, insert)?;
            let source = (NewRow::new(insert, &target)?, source);
            Some(OnDuplicateUpdate::new(assignments, &database, &table_name, &target, source)?)
        }
        Some(_) => return Err(SqlError::not_supported("ON CONFLICT")),
    };
    // DEFAULT(column) looks here.
    let defaults = single_scope(&database, &table_name, &target.table)?;
    let (columns, given) = given(&planner, insert, on_duplicate_update.as_ref(), &defaults)?;
    let query = match &given {
        Planned::Query(query) => Some(query),
        Planned::Rows(_) => None,
    };
    let update = match &on_duplicate_update {
        Some(update) => Some(update.bind(&target, query, &planner, need.clone())?),
        None => None,
    };
    let not_inserted = on_duplicate_update.map_or(0, |update| update.not_inserted());
    let returning = returning(&planner, insert, name, &target)?;
    // Wrong columns are an error of the statement, even if there is no row.
    let on_duplicate = OnDuplicate::of(insert.replace_into, insert.ignore);
    let inserter = Inserter::new(session, target.clone(), columns.as_deref(), on_duplicate)?;
    if let Planned::Rows(rows) = &given {
        (1..).zip(rows).try_for_each(|(row, values)| inserter.check_count(values.len(), row))?;
    }
    name_columns(&mut need.borrow_mut(), columns.as_deref(), &target);
    let needs = Needs::new(std::iter::once(need.borrow().clone()).chain(planner.needs()).collect());
    let (source, dependencies, subqueries) = match given {
        Planned::Query(query) => {
            // The subqueries' results are also for ON DUPLICATE KEY UPDATE.
            let mut plan = planner.finish(query);
            let subqueries = std::mem::take(&mut plan.subqueries);
            let dependencies = std::mem::take(&mut plan.dependencies);
            (Source::Query(Box::new(plan)), dependencies, subqueries)
        }
        Planned::Rows(rows) => {
            let (dependencies, subqueries) = planner.into_subqueries();
            (Source::Rows(rows), dependencies, subqueries)
        }
    };
    Ok(Box::new(InsertPlan {
        target,
        needs,
        columns,
        source,
        on_duplicate,
        update,
        not_inserted,
        dependencies,
        subqueries,
        returning,
    }))
}

/// RETURNING. Its subqueries must not read the table.
fn returning(
    planner: &Planner<'_>,
    insert: &ast::Insert,
    name: &ast::ObjectName,
    target: &Target,
) -> Result<Option<Returning>, SqlError> {
    let Some(items) = &insert.returning else { return Ok(None) };
    let before = planner.count_subqueries();
    let returning = planner.returning(items, name, None)?;
    planner.check_not_source(before, &target.table, &target.def.name, "INSERT")?;
    Ok(Some(returning))
}

/// What the statement needs of its table. A session that may do nothing with the table is not told whether
/// it exists.
fn target_need(
    session: &Session,
    insert: &ast::Insert,
    database: &str,
    table: &str,
) -> Result<Rc<RefCell<TableNeed>>, SqlError> {
    let whole = if insert.replace_into { Rights::DELETE } else { Rights::NONE };
    let mut any = Rights::INSERT;
    if insert.on.is_some() {
        any |= Rights::UPDATE;
    }
    let need = TableNeed { whole, any, ..TableNeed::new(database, table) };
    if !session.access.is_global() {
        session.access.check_table(&need)?;
    }
    Ok(Rc::new(RefCell::new(need)))
}

/// The columns that rows are given for: those that are named, or all.
fn name_columns(need: &mut TableNeed, columns: Option<&[String]>, target: &Target) {
    match columns {
        Some(columns) => columns.iter().for_each(|column| need.column(column, Rights::INSERT)),
        None => {
            need.unnamed |= Rights::INSERT;
            target.def.columns.iter().for_each(|column| need.column(&column.name, Rights::INSERT));
        }
    }
}

/// What a statement gives for its rows, while it is planned.
enum Planned {
    Rows(Vec<Vec<Item>>),
    Query(QueryPlan),
}

/// The columns that the statement names, if any, and what it gives for them.
fn given(
    planner: &Planner<'_>,
    insert: &ast::Insert,
    update: Option<&OnDuplicateUpdate>,
    defaults: &Scope,
) -> Result<(Option<Vec<String>>, Planned), SqlError> {
    let none = Scope::default();
    let item = |expr: &ast::Expr| -> Result<Item, SqlError> {
        if is_default(expr) {
            return Ok(Item::Default);
        }
        let mut binder = Binder::new(&none, planner.slots, "field list");
        binder.defaults = Some(defaults);
        binder.subqueries = Some(planner);
        Compiled::for_column(&binder.bind(expr)?, None, planner.connection).map(Item::Value)
    };
    if !insert.assignments.is_empty() {
        let mut names = Vec::new();
        let mut row = Vec::new();
        for assignment in &insert.assignments {
            let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(SqlError::not_supported("assignments to several columns at once"));
            };
            names.push(object_name(name).pop().unwrap_or_default());
            row.push(item(&assignment.value)?);
        }
        return Ok((Some(names), Planned::Rows(vec![row])));
    }
    let last = |name: &ast::ObjectName| object_name(name).pop().unwrap_or_default();
    let columns = (!insert.columns.is_empty()).then(|| insert.columns.iter().map(last).collect());
    let given = match insert.source.as_deref() {
        None => Planned::Rows(vec![Vec::new()]),
        Some(query) => match &*query.body {
            ast::SetExpr::Values(values) => {
                let mut rows = Vec::with_capacity(values.rows.len());
                for row in &values.rows {
                    rows.push(row.content.iter().map(item).collect::<Result<Vec<Item>, SqlError>>()?);
                }
                Planned::Rows(rows)
            }
            _ => Planned::Query(match update {
                Some(update) => planner.whole(&update.extend(query))?,
                None => planner.whole(query)?,
            }),
        },
    };
    Ok((columns, given))
}

/// The tables, besides the target, whose columns ON DUPLICATE KEY UPDATE may name.
fn source_scope(planner: &Planner<'_>, insert: &ast::Insert) -> Result<Scope, SqlError> {
    let Some(query) = insert.source.as_deref() else { return Ok(Scope::default()) };
    match &*query.body {
        ast::SetExpr::Select(select) if has_rows_of_tables(select) => {
            planner.another().scope_of_from(query.with.as_ref(), &select.from)
        }
        _ => Ok(Scope::default()),
    }
}

impl ChangePlan for InsertPlan {
    fn explained(&self) -> Result<(Change<'_>, &[SubqueryPlan]), SqlError> {
        let change = match &self.source {
            Source::Rows(_) => Change::Rows { table: &self.target.def.name },
            Source::Query(plan) => Change::Query(plan),
        };
        Ok((change, &self.subqueries))
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn is_current(&self) -> bool {
        self.target.is_current() && self.dependencies.iter().all(Dependency::is_current)
    }

    fn returning(&self) -> Option<&QueryPlan> {
        self.returning.as_ref().map(|returning| &returning.query)
    }

    fn run(
        &self,
        session: &mut Session,
        slots: Slots<'_>,
        literal_text: &LiteralText<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        forbid(self.returning.is_some() && session.bulk.is_some(), "RETURNING with rows of parameters")?;
        let counter = match (&self.source, self.on_duplicate) {
            (Source::Rows(_), OnDuplicate::Replace) => Counter::ComReplace,
            (Source::Rows(_), _) => Counter::ComInsert,
            (Source::Query(_), OnDuplicate::Replace) => Counter::ComReplaceSelect,
            (Source::Query(_), _) => Counter::ComInsertSelect,
        };
        if session.bulk.as_ref().is_none_or(Bulk::is_at_first_row) {
            session.counters.add(counter, 1);
        }
        let mut tables = vec![self.target.used()];
        tables.extend(self.dependencies.iter().map(|read| read.in_mode(Mode::Read)));
        let (inserted, returned) = session.write_tables(
            Writes::Rows,
            &tables,
            self.target.family(session).cloned().as_deref().as_slice(),
            &|| self.is_current(),
            |session, readers, writer| self.insert(session, readers, writer, slots),
        )?;
        if let (Some(returning), Some(rows)) = (&self.returning, returned) {
            return returning::send(session, returning, rows, (slots, literal_text), sink);
        }
        // INSERT ... SELECT always sends the line about records.
        let tells = inserted.records > 1 || matches!(self.source, Source::Query(_));
        session.end_insert_with_info(&inserted, tells, sink)
    }
}

/// The values of rows.
type Rows<'a> = Vec<Vec<Given<'a>>>;

/// The rows of a statement, before any of them is written: the query may read the table that they go to.
enum NewRows<'a> {
    Values(Rows<'a>),
    Stored { count: usize, rows: Spooled },
}

impl NewRows<'_> {
    fn len(&self) -> usize {
        match self {
            NewRows::Values(rows) => rows.len(),
            NewRows::Stored { count, .. } => *count,
        }
    }
}

/// Rows are written together until their images take so many bytes.
pub(super) const BATCH_BYTES: usize = 4 << 20;

/// A statement's slots, with the results of its subqueries.
struct Filled {
    values: Vec<Value>,
    starts: Vec<u32>,
    /// The lists that did not fit into memory.
    sets: Vec<OnceCell<ListSet>>,
}

impl Filled {
    fn new(slots: &Slots<'_>) -> Filled {
        let stored = |slot| ListSet::stored_of_slot(slots, slot).map(|list| (slot, list.clone()));
        Filled {
            values: slots.values.iter().map(ValueRef::to_value).collect(),
            starts: slots.starts.to_vec(),
            sets: cells(slots.sets.len(), (0..slots.sets.len()).filter_map(stored)),
        }
    }
}

/// The values of the rows of VALUES, in `arena`.
fn values<'a>(rows: &[Vec<Item>], context: &Context<'_>, arena: &'a Bump) -> Result<Rows<'a>, SqlError> {
    let value = |item: &Item| match item {
        Item::Default => Ok(Given::Default),
        Item::Value(compiled) => {
            let value = copy_to(compiled.exact(&Row::EMPTY, context)?, arena);
            Ok(match value {
                ValueRef::Binary(bits) if compiled.is_bits() => Given::Bits(bits),
                value => Given::Value(value),
            })
        }
    };
    rows.iter().map(|row| row.iter().map(value).collect()).collect()
}

fn runtime<'r>(
    session: &'r Session,
    environment: &'r SessionEnvironment<'_>,
    readers: Readers<'r>,
    locks: Option<RowLocks<'r>>,
) -> Runtime<'r> {
    Runtime {
        environment,
        interrupt: &session.interrupt,
        session,
        literal_text: &|_, _| String::new(),
        reader: readers.snapshot,
        locks,
        spare: RefCell::default(),
        derived: DerivedRows::default(),
    }
}

impl InsertPlan {
    /// True if a value that does not fit is an error.
    fn is_strict(&self, session: &Session) -> bool {
        session.variables.common.sql_mode.is_strict() && self.on_duplicate != OnDuplicate::Skip
    }

    fn insert(
        &self,
        session: &mut Session,
        readers: Readers<'_>,
        writer: Writer<'_>,
        slots: Slots<'_>,
    ) -> Result<(Inserted, Option<Spooled>), SqlError> {
        let arena = Bump::new();
        let writer = RefCell::new(writer);
        let (rows, results) = self.rows(session, readers, &writer, slots, &arena)?;
        let mut writer = writer.into_inner();
        let mut inserter =
            Inserter::new(session, self.target.clone(), self.columns.as_deref(), self.on_duplicate)?;
        if rows.len() > 1 || matches!(self.source, Source::Query(_)) {
            inserter.many_rows();
        }
        if self.returning.is_some() {
            inserter.keep_written();
        }
        if rows.len() == 0 {
            // A column without a default is an error of the statement, even if there is no row.
            inserter.note_missing(session)?;
        }
        let values: Vec<ValueRef<'_>>;
        let slots = match &results {
            None => slots,
            Some(filled) => {
                values = filled.values.iter().map(Value::as_ref).collect();
                Slots { sets: &filled.sets, ..Slots::new(&values, &filled.starts) }
            }
        };
        let mut writing = Writing {
            plan: self,
            slots,
            readers,
            writer: &mut writer,
            inserter,
            sources: KeyList::default(),
            inserted: Inserted::default(),
            derived: DerivedRows::default(),
            returned: self.returning.as_ref().map(Returned::new),
            last_insert_id: session.variables.last_insert_id,
        };
        match rows {
            NewRows::Values(rows) => {
                for row in &rows {
                    writing.inserter.add(session, row, &arena)?;
                }
            }
            NewRows::Stored { rows, .. } => writing.add_stored(session, &rows)?,
        }
        writing.write(session)?;
        Ok((writing.inserted, writing.returned.map(Returned::finish).transpose()?))
    }

    /// The values of all rows, in `arena`, and the slots with the results of subqueries, if ON DUPLICATE KEY
    /// UPDATE or RETURNING needs them.
    fn rows<'a>(
        &self,
        session: &mut Session,
        readers: Readers<'_>,
        writer: &RefCell<Writer<'_>>,
        slots: Slots<'_>,
        arena: &'a Bump,
    ) -> Result<(NewRows<'a>, Option<Filled>), SqlError> {
        let environment = SessionEnvironment::new(session);
        let result = match &self.source {
            Source::Rows(rows) if self.subqueries.is_empty() => {
                let scratch = Bump::new();
                let context = Context { slots, arena: &scratch, environment: &environment, subqueries: None };
                values(rows, &context, arena).map(|rows| (NewRows::Values(rows), None))
            }
            _ => self.evaluate(session, &environment, readers, writer, slots, arena),
        };
        let leftovers = environment.into_leftovers();
        let result = leftovers.refuse_warnings(self.is_strict(session), result);
        leftovers.settle(session);
        result
    }

    /// Runs the subqueries, then the query or the rows' expressions.
    fn evaluate<'a>(
        &self,
        session: &Session,
        environment: &SessionEnvironment<'_>,
        readers: Readers<'_>,
        writer: &RefCell<Writer<'_>>,
        slots: Slots<'_>,
        arena: &'a Bump,
    ) -> Result<(NewRows<'a>, Option<Filled>), SqlError> {
        let locks = RowLocks {
            candidates: readers.current,
            rows: &WriterLocks(writer),
            unasked: session.lock_of_reads(),
        };
        let runtime = runtime(session, environment, readers, Some(locks));
        with_subqueries(&self.subqueries, slots, &runtime, &mut Vec::new(), &mut |slots, scratch| {
            let rows = match &self.source {
                Source::Rows(rows) => {
                    let row = Bump::new();
                    let context = Context { slots, arena: &row, environment, subqueries: Some(&runtime) };
                    NewRows::Values(values(rows, &context, arena)?)
                }
                Source::Query(plan) => {
                    let rows = run_to_spool(plan, slots, &runtime, scratch)?;
                    NewRows::Stored { count: rows.len(), rows: rows.finish()? }
                }
            };
            let is_needed = self.update.is_some() || self.returning.is_some();
            let needed = is_needed && !self.subqueries.is_empty();
            Ok((rows, needed.then(|| Filled::new(&slots))))
        })
    }
}

/// A statement while it writes its rows.
struct Writing<'s, 'w> {
    plan: &'s InsertPlan,
    slots: Slots<'s>,
    readers: Readers<'s>,
    writer: &'s mut Writer<'w>,
    /// Has the rows that are not written yet.
    inserter: Inserter,
    /// What the query gave for these rows, if ON DUPLICATE KEY UPDATE names any of it.
    sources: KeyList,
    inserted: Inserted,
    /// The derived tables of ON DUPLICATE KEY UPDATE, and of RETURNING.
    derived: DerivedRows,
    returned: Option<Returned<'s>>,
    /// What LAST_INSERT_ID() was before the statement, as RETURNING tells it.
    last_insert_id: u64,
}

impl Writing<'_, '_> {
    /// Adds the rows of a query, and writes all but the last ones.
    fn add_stored(&mut self, session: &mut Session, rows: &Spooled) -> Result<(), SqlError> {
        let not_inserted = self.plan.not_inserted;
        // The types of the query's columns, and those of the columns that they are for.
        let types: Vec<(ColumnType, ColumnType)> = match &self.plan.source {
            Source::Rows(_) => Vec::new(),
            Source::Query(plan) => {
                let given = plan.query.columns.iter().map(|meta| meta.column_type.clone());
                given.zip(self.inserter.types()).collect()
            }
        };
        let mut arena = Bump::new();
        let mut buffer = Vec::new();
        let mut charge = Charge::default();
        rows.for_each(|_, row| {
            arena.reset();
            let mut values = recycle(std::mem::take(&mut buffer));
            read_row(row, &mut values)?;
            let inserted = values[..values.len() - not_inserted].iter().enumerate();
            let given: Vec<Given<'_>> = inserted
                .map(|(position, value)| match types.get(position) {
                    Some((of, to)) => Given::Value(expr::given(*value, of, to, &arena)),
                    // The inserter refuses a row with too many values.
                    None => Given::Value(*value),
                })
                .collect();
            if let Err(error) = self.inserter.add(session, &given, &arena) {
                // If one of the rows before this one collides, that error comes first.
                self.write(session)?;
                return Err(error);
            }
            buffer = recycle(values);
            if not_inserted > 0 {
                self.sources.push(row);
            }
            let bytes = self.inserter.batch().bytes.len() + self.sources.bytes.len();
            charge.cover(bytes, &session.memory)?;
            if bytes >= BATCH_BYTES {
                self.write(session)?;
            }
            Ok(true)
        })
    }

    /// Writes the rows that have been added since the last call.
    fn write(&mut self, session: &mut Session) -> Result<(), SqlError> {
        session.interrupt.check()?;
        if let Some(update) = &self.plan.update {
            return self.insert_or_update(session, update);
        }
        let Writing { readers, writer, inserter, inserted, .. } = self;
        inserter.write_and_warn(session, readers.current, writer, inserted)?;
        match &self.returned {
            Some(_) => self.return_written(session),
            None => Ok(()),
        }
    }

    /// RETURNING of the rows that have been written last.
    fn return_written(&mut self, session: &mut Session) -> Result<(), SqlError> {
        let Writing { plan, slots, readers, inserter, derived, returned, last_insert_id, .. } = self;
        let (Some(returned), Some(images)) = (returned, inserter.last_written()) else { return Ok(()) };
        let generated = std::mem::replace(&mut session.variables.last_insert_id, *last_insert_id);
        let environment = SessionEnvironment::new(session);
        let mut runtime = runtime(session, &environment, *readers, None);
        runtime.derived = std::mem::take(derived);
        let codec = plan.target.table.row_codec();
        let mut arena = Bump::new();
        let result = (0..images.len()).try_for_each(|position| {
            arena.reset();
            let context = Context {
                slots: *slots,
                arena: &arena,
                environment: &environment,
                subqueries: Some(&runtime),
            };
            returned.add(codec.view(images.get(position)), &context, runtime.workspace())
        });
        *derived = runtime.derived;
        environment.into_leftovers().settle(session);
        session.variables.last_insert_id = generated;
        result
    }

    /// ON DUPLICATE KEY UPDATE: inserts row by row. If a key of the row exists already, it changes the row
    /// that has that key.
    fn insert_or_update(&mut self, session: &mut Session, update: &Assignments) -> Result<(), SqlError> {
        let Writing { plan, slots, readers, writer, inserter, sources, inserted, derived, returned, .. } =
            self;
        let first = inserter.begin_batch(session, inserted)?;
        let clock = session.clock();
        let defaults = plan.target.defaults(&clock);
        let now = on_update(&plan.target, &clock);
        let assigning = Assigning {
            assignments: update,
            target: &plan.target,
            defaults: &defaults,
            now: &now,
            checks: plan.target.checks(session),
            strictness: Strictness {
                strict: session.variables.common.sql_mode.is_strict(),
                ignore: plan.on_duplicate == OnDuplicate::Skip,
                generates: false,
                refuses_null: match &plan.source {
                    Source::Rows(rows) => rows.len() == 1,
                    Source::Query(_) => true,
                },
            },
        };
        let mut warnings = session.state.warnings.clone();
        let environment = SessionEnvironment::new(session);
        // The subqueries run while a row's latch is held, so they must not wait for locks.
        let mut runtime = runtime(session, &environment, *readers, None);
        runtime.derived = std::mem::take(derived);
        let keeper = inserter.family().map(|family| Keeper {
            family,
            reader: readers.current,
            workspace: runtime.workspace(),
        });
        let mut engine = RowWriter { readers: *readers, writer, keeper };
        let mut arena = Bump::new();
        let images = inserter.batch();
        let result: Result<(), SqlError> = (|| {
            for position in 0..images.len() {
                runtime.interrupt.check()?;
                arena.reset();
                let context = Context {
                    slots: *slots,
                    arena: &arena,
                    environment: &environment,
                    subqueries: Some(&runtime),
                };
                let mut source: Vec<ValueRef<'_>> = Vec::new();
                if plan.not_inserted > 0 {
                    read_row(sources.get(position), &mut source)?;
                }
                let number = first + position as u64;
                let new = RowToWrite { image: images.get(position), source: &source, number };
                let image =
                    new.insert_or_update(&assigning, &context, &mut engine, &mut warnings, inserted)?;
                if let (Some(returned), Some(image)) = (&mut *returned, image) {
                    let row = plan.target.table.row_codec().view(image);
                    returned.add(row, &context, runtime.workspace())?;
                }
            }
            Ok(())
        })();
        *derived = runtime.derived;
        let leftovers = environment.into_leftovers();
        let result = leftovers.refuse_warnings(plan.is_strict(session), result);
        session.state.warnings = warnings;
        leftovers.settle(session);
        sources.clear();
        inserter.forget_batch();
        result
    }
}

/// The engine, as a statement sees it that writes rows or changes those that have their keys.
struct RowWriter<'s, 'w> {
    /// The current one finds the rows that have a key.
    readers: Readers<'s>,
    writer: &'s mut Writer<'w>,
    /// Checks FOREIGN KEYs, if there are any.
    keeper: Option<Keeper<'s>>,
}

/// A row of INSERT ... ON DUPLICATE KEY UPDATE.
struct RowToWrite<'a> {
    image: &'a [u8],
    /// The values that the statement gave for the row, if the assignments name any of them. Otherwise empty.
    source: &'a [ValueRef<'a>],
    /// The row's number in messages, from 1.
    number: u64,
}

impl<'a> RowToWrite<'a> {
    /// Inserts the row, or changes the row that has one of its keys. Gives the image that the row has now,
    /// unless IGNORE passed over it.
    fn insert_or_update(
        &self,
        assigning: &Assigning<'a>,
        context: &Context<'a>,
        engine: &mut RowWriter<'_, '_>,
        warnings: &mut Warnings,
        inserted: &mut Inserted,
    ) -> Result<Option<&'a [u8]>, SqlError> {
        let RowWriter { readers, writer, keeper } = engine;
        let ignore = assigning.strictness.ignore;
        let table = &*assigning.target.table;
        loop {
            let before = keeper.map(|_| writer.savepoint());
            let index = match writer.insert(table, self.image) {
                Ok(()) => {
                    let check = |writer: &mut Writer<'_>| match keeper {
                        Some(keeper) => keeper.inserted(writer, self.image),
                        None => Ok(()),
                    };
                    if let Some(error) = or_take_back(writer, before, ignore, check)? {
                        warnings.warn(error.kind, error.message);
                        return Ok(None);
                    }
                    inserted.affected += 1;
                    return Ok(Some(self.image));
                }
                Err(Error::DuplicateKey { index }) => index,
                Err(error) => return Err(error.into()),
            };
            let key = UniqueKey::of(table, index, self.image);
            let mut found = false;
            let mut changed = false;
            let mut image: Option<&'a [u8]> = None;
            for primary_key in key.rows(readers.current, table)? {
                let mut outcome = Outcome::default();
                let mut before_change: &'a [u8] = &[];
                let before = keeper.map(|_| writer.savepoint());
                let result = writer.update_or_keep(table, &primary_key, &mut |old, out| {
                    if !key.is_in(table, old) {
                        return RowUpdate::Skip;
                    }
                    found = true;
                    let codec = table.row_codec();
                    before_change = context.arena.alloc_slice_copy(old);
                    let image = codec.view(before_change);
                    let new = [Part::Image(codec.view(self.image)), Part::Values(self.source)];
                    let others: &'a [Part<'a>] = context.arena.alloc_slice_copy(&new);
                    let row = Assigned { image, others, number: self.number };
                    match assigning.change(&row, context, warnings, out, &mut outcome) {
                        true => RowUpdate::Change,
                        false => RowUpdate::Keep,
                    }
                });
                if let Some(error) = outcome.error {
                    return Err(error);
                }
                changed = result.map_err(|error| write_error(error, table, &outcome.written))?;
                if let Some(keeper) = keeper.filter(|_| changed) {
                    let check =
                        |writer: &mut Writer<'_>| keeper.updated(writer, before_change, &outcome.written);
                    if let Some(error) = or_take_back(writer, before, ignore, check)? {
                        warnings.warn(error.kind, error.message);
                        changed = false;
                    }
                }
                if found {
                    image = Some(match changed {
                        true => context.arena.alloc_slice_copy(&outcome.written),
                        false => before_change,
                    })
                    .filter(|_| !outcome.refused);
                    break;
                }
            }
            if !found {
                // The other row was deleted meanwhile, so the next try may insert.
                continue;
            }
            inserted.duplicates += u64::from(changed);
            // MySQL counts a changed row twice.
            inserted.affected += if changed { 2 } else { 0 };
            return Ok(image);
        }
    }
}

//! Window functions: their calls are bound first, then their windows, whose names may mean aliases of the
//! select list. Functions are gathered by the order that their rows need, so that one sort serves several.

use super::bind::{AliasUse, Binder};
use super::query::{Planner, is_descending};
use super::select::{CONNECTION_COLLATION, pseudo_column};
use super::walk::{for_each_column, has_side_effects, is_fixed};
use crate::expr::value_keys::ValueKeys;
use crate::expr::{
    Aggregate, AggregateKind, ColumnRef, Compiled, CompiledAggregate, Expr, Function, WindowKind, is_number,
    result_of_window,
};
use crate::text::SlotKind;
use crate::{ErrorKind, SqlError};
use sqlparser::ast;
use std::cmp::Reverse;
use types::{ColumnType, Decimal, Value};

/// Whether an expression may have window functions.
#[derive(Debug)]
pub(crate) enum WindowUse<'a> {
    /// Error 4015.
    Nowhere,
    /// The expression is an argument of an aggregate or of a window function: error 4074.
    InAggregate,
    /// They are gathered here.
    Here(&'a mut Vec<FoundWindow>),
}

/// A call of a window function whose window is not bound yet.
#[derive(Debug)]
pub(crate) struct FoundWindow {
    call: Call,
    /// As messages name it.
    name: String,
    over: ast::WindowType,
}

/// The function of a call, and its arguments.
#[derive(Clone, Debug)]
enum Call {
    Aggregate(Aggregate),
    Own {
        kind: WindowKind,
        arguments: Vec<Expr>,
        /// WITHIN GROUP.
        within: Option<(Expr, bool)>,
    },
}

/// A window function, bound.
#[derive(Debug)]
pub(super) struct WindowFunction {
    call: Call,
    partition: Vec<Expr>,
    /// Expressions, and true for DESC.
    order: Vec<(Expr, bool)>,
    frame: Frame,
}

#[derive(Clone, Debug)]
struct Frame {
    /// ROWS. If false, RANGE.
    rows: bool,
    start: FrameBound<Expr>,
    end: FrameBound<Expr>,
}

/// Where a frame begins or ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameBound<T> {
    /// With the partition.
    Unbounded,
    /// With the current row, or with those that are equal to it.
    Current,
    Preceding(T),
    Following(T),
}

/// How the window functions of a SELECT are computed.
#[derive(Debug)]
pub(crate) struct WindowPlan {
    /// What is kept of each row for the functions.
    pub arguments: Vec<WindowArgument>,
    /// The numbers before PRECEDING and FOLLOWING. They are the same for all rows.
    pub distances: Vec<Compiled>,
    pub sorts: Vec<WindowSort>,
    /// The number of functions: the part of a row that holds their results has so many columns.
    pub functions: usize,
}

#[derive(Debug)]
pub(crate) struct WindowArgument {
    pub value: Compiled,
    /// Quotients keep the digits that only further arithmetic needs.
    pub exact: bool,
}

/// An order of rows, and the functions that are computed in it.
#[derive(Debug)]
pub(crate) struct WindowSort {
    pub components: Vec<SortComponent>,
    /// Numbers of components, ascending. Rows that are equal in the first so many form a group: a partition,
    /// or the peers of a row.
    pub groups: Vec<usize>,
    pub frames: Vec<FramePlan>,
    pub functions: Vec<WindowCall>,
}

#[derive(Debug)]
pub(crate) struct SortComponent {
    pub value: Compiled,
    pub keys: ValueKeys,
    /// For EXPLAIN.
    pub name: String,
}

/// A frame over the groups of a sort.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct FramePlan {
    /// Positions among the groups.
    pub partition: usize,
    pub peers: usize,
    pub rows: bool,
    /// With positions among the distances.
    pub start: FrameBound<usize>,
    pub end: FrameBound<usize>,
    /// The argument by which a RANGE of numbers is measured, and true if it descends.
    pub measure: Option<(usize, bool)>,
}

/// A function of a sort.
#[derive(Debug)]
pub(crate) struct WindowCall {
    pub function: ComputedBy,
    /// Its column in the part of the results.
    pub result: usize,
    /// Its position among the frames.
    pub frame: usize,
    /// Positions among the arguments.
    pub arguments: Vec<usize>,
}

#[derive(Debug)]
pub(crate) enum ComputedBy {
    Aggregate(CompiledAggregate),
    Own(WindowKind),
}

fn error(kind: ErrorKind, text: impl Into<String>) -> SqlError {
    SqlError::new(kind, text)
}

/// Error 4015.
pub(super) fn misplaced() -> SqlError {
    error(
        ErrorKind::WindowFunctionPlace,
        "Window function is allowed only in SELECT list and ORDER BY clause",
    )
}

/// True if the value depends on a window function. `part` is the part of their results.
pub(super) fn reads_window(expr: &Expr, part: usize) -> bool {
    let mut reads = false;
    for_each_column(expr, &mut |column| reads |= column.part == part);
    reads
}

impl Binder<'_> {
    /// The part of a row that holds the results of window functions: behind those of the aggregates and of
    /// the keys of WITH ROLLUP.
    pub(super) fn window_part(&self) -> usize {
        self.aggregate_part + 2
    }

    /// Binds the call of a function with OVER. Its window is bound later, by [`bind_windows`].
    pub(super) fn window_call(
        &mut self,
        call: &ast::Function,
        list: &ast::FunctionArgumentList,
        found: &'static Function,
    ) -> Result<Expr, SqlError> {
        let name = super::object_name(&call.name).pop().unwrap_or_default();
        let near = || SqlError::syntax(&call.to_string(), 1);
        let is_known = found.window().is_some() || found.aggregate().is_some();
        let Some(over) = call.over.as_ref().filter(|_| is_known) else { return Err(near()) };
        if call.filter.is_some() || call.null_treatment.is_some() {
            return Err(near());
        }
        let taken = match std::mem::replace(&mut self.windows, WindowUse::InAggregate) {
            WindowUse::Here(functions) => functions,
            refused => {
                let in_aggregate = matches!(refused, WindowUse::InAggregate);
                self.windows = refused;
                let text = "Window functions can not be used as arguments to group functions.";
                return Err(match in_aggregate {
                    true => error(ErrorKind::WindowFunctionInAggregate, text),
                    false => misplaced(),
                });
            }
        };
        let bound = self.window_arguments(call, list, found);
        let column = taken.len();
        let bound = bound.and_then(|bound| {
            let result = self.result_of(&bound)?;
            taken.push(FoundWindow { call: bound, name: found.name.to_string(), over: over.clone() });
            Ok(Expr::Column(ColumnRef { part: self.window_part(), column, name, ..result }))
        });
        self.windows = WindowUse::Here(taken);
        bound
    }

    fn window_arguments(
        &mut self,
        call: &ast::Function,
        list: &ast::FunctionArgumentList,
        found: &'static Function,
    ) -> Result<Call, SqlError> {
        let near = || SqlError::syntax(&call.to_string(), 1);
        let within = match (found.window(), call.within_group.as_slice()) {
            (Some(WindowKind::PercentileCont | WindowKind::PercentileDisc), [item]) => Some(item),
            (Some(WindowKind::PercentileCont | WindowKind::PercentileDisc), _) | (_, [_, ..]) => {
                return Err(near());
            }
            (_, []) => None,
        };
        let Some(kind) = found.window() else {
            let kind = found.aggregate().ok_or_else(near)?;
            return self.aggregate_over(kind, list, found).map(Call::Aggregate);
        };
        let is_plain = list.duplicate_treatment.is_none() && list.clauses.is_empty();
        if !is_plain || !found.arity.contains(&list.args.len()) {
            return Err(near());
        }
        let mut arguments =
            list.args.iter().map(|argument| self.argument(argument)).collect::<Result<Vec<_>, _>>()?;
        let mut within = match within {
            Some(item) => Some((self.bind(&item.expr)?, is_descending(item))),
            None => None,
        };
        if kind == WindowKind::Median {
            within = arguments.pop().map(|value| (value, false));
            let half = Decimal::parse_prefix(b"0.5").0;
            arguments.push(Expr::Constant(Value::Decimal(half)));
        }
        Ok(Call::Own { kind, arguments, within })
    }

    /// An aggregate with OVER. Its arguments may have aggregates of groups.
    fn aggregate_over(
        &mut self,
        kind: AggregateKind,
        list: &ast::FunctionArgumentList,
        found: &'static Function,
    ) -> Result<Aggregate, SqlError> {
        let name = found.name.to_uppercase();
        let refused = |what: &str| {
            Err(SqlError::not_supported(&format!("{name}({what}) aggregate as window function")))
        };
        if matches!(kind, AggregateKind::GroupConcat | AggregateKind::JsonArray | AggregateKind::JsonObject) {
            return refused("");
        }
        let is_extreme = matches!(kind, AggregateKind::Minimum | AggregateKind::Maximum);
        if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) && !is_extreme {
            return refused("DISTINCT");
        }
        let is_star =
            matches!(list.args.as_slice(), [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)]);
        if is_star && kind == AggregateKind::Count {
            return Ok(Aggregate {
                kind: AggregateKind::CountRows,
                distinct: false,
                arguments: vec![],
                separator: None,
                order: vec![],
            });
        }
        if is_star || list.args.len() != 1 {
            return Err(SqlError::syntax(&format!("{found:?}"), 1));
        }
        self.aggregate_parts(kind, list)
    }

    /// The type of a call's result.
    fn result_of(&self, call: &Call) -> Result<ColumnRef, SqlError> {
        let result = match call {
            Call::Aggregate(aggregate) => {
                CompiledAggregate::new(aggregate, CONNECTION_COLLATION)?.result_type().clone()
            }
            Call::Own { kind, arguments, within } => {
                check_percentile(*kind, arguments, within.as_ref())?;
                let value = within.as_ref().map(|(value, _)| value).or(arguments.first());
                let compiled = value.map(|value| Compiled::new(value, CONNECTION_COLLATION)).transpose()?;
                result_of_window(*kind, compiled.as_ref())
            }
        };
        let is_floating = matches!(result.column_type, ColumnType::Double { .. } | ColumnType::Float { .. });
        Ok(ColumnRef {
            part: 0,
            column: 0,
            digits: is_floating.then_some(result.decimals),
            column_type: result.column_type,
            nullable: result.nullable,
            is_json: false,
            in_utc: false,
            name: String::new(),
        })
    }
}

/// PERCENTILE_CONT and PERCENTILE_DISC want a number, and the first one is of numbers.
///
/// # Errors
/// 4101, 4104.
fn check_percentile(
    kind: WindowKind,
    arguments: &[Expr],
    within: Option<&(Expr, bool)>,
) -> Result<(), SqlError> {
    let Some((value, _)) = within else { return Ok(()) };
    let compile = |expr: &Expr| Compiled::new(expr, CONNECTION_COLLATION);
    let name = if kind == WindowKind::PercentileDisc { "percentile_disc" } else { "percentile_cont" };
    for share in arguments {
        if !is_number(&compile(share)?, false) {
            let text =
                format!("{name} function only accepts arguments that can be converted to numerical types");
            return Err(error(ErrorKind::PercentileArgument, text));
        }
    }
    if kind != WindowKind::PercentileDisc && !is_number(&compile(value)?, true) {
        let text = format!("Numeric datatype is required for {name} function");
        return Err(error(ErrorKind::PercentileOfText, text));
    }
    Ok(())
}

/// A window as it is written. What it takes from another one is filled in.
#[derive(Clone, Debug, Default)]
struct Spec {
    partition: Vec<ast::Expr>,
    order: Vec<ast::OrderByExpr>,
    frame: Option<ast::WindowFrame>,
}

/// The windows of WINDOW, by their names.
type Named = Vec<(String, Spec)>;

fn find<'n>(named: &'n Named, name: &str) -> Result<&'n Spec, SqlError> {
    let found = named.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, spec)| spec).ok_or_else(|| {
        error(ErrorKind::UnknownWindow, format!("Window specification with name '{name}' is not defined"))
    })
}

/// A window in parentheses, which may begin with the name of another one.
fn filled(spec: &ast::WindowSpec, named: &Named) -> Result<Spec, SqlError> {
    let mut filled = Spec {
        partition: spec.partition_by.clone(),
        order: spec.order_by.clone(),
        frame: spec.window_frame.clone(),
    };
    let Some(base) = &spec.window_name else { return Ok(filled) };
    let name = &base.value;
    let other = find(named, name)?;
    if !filled.partition.is_empty() {
        let text =
            format!("Window specification referencing another one '{name}' cannot contain partition list");
        return Err(error(ErrorKind::PartitionBesideWindow, text));
    }
    if !filled.order.is_empty() && !other.order.is_empty() {
        let text = format!("Referenced window specification '{name}' already contains order list");
        return Err(error(ErrorKind::OrderBesideWindow, text));
    }
    if other.frame.is_some() {
        let text = format!("Referenced window specification '{name}' cannot contain window frame");
        return Err(error(ErrorKind::FrameInNamedWindow, text));
    }
    filled.partition.clone_from(&other.partition);
    if filled.order.is_empty() {
        filled.order.clone_from(&other.order);
    }
    Ok(filled)
}

/// Binds the windows of the functions that the binder has gathered, and those of WINDOW. The binder sees the
/// aliases.
///
/// # Errors
/// 4009 to 4021, and those of binding.
pub(super) fn bind_windows(
    binder: &mut Binder<'_>,
    defined: &[ast::NamedWindowDefinition],
) -> Result<Vec<WindowFunction>, SqlError> {
    let found = match std::mem::replace(&mut binder.windows, WindowUse::Nowhere) {
        WindowUse::Here(functions) => std::mem::take(functions),
        WindowUse::Nowhere | WindowUse::InAggregate => vec![],
    };
    let mut named = Named::new();
    for ast::NamedWindowDefinition(name, definition) in defined {
        let ast::NamedWindowExpr::WindowSpec(spec) = definition else {
            return Err(SqlError::syntax(&definition.to_string(), 1));
        };
        if find(&named, &name.value).is_ok() {
            let text = format!("Multiple window specifications with the same name '{}'", name.value);
            return Err(error(ErrorKind::DuplicateWindow, text));
        }
        let spec = filled(spec, &named)?;
        bind_spec(binder, &spec)?;
        named.push((name.value.clone(), spec));
    }
    found.into_iter().map(|found| bind_window(binder, &named, found)).collect()
}

fn bind_window(
    binder: &mut Binder<'_>,
    named: &Named,
    found: FoundWindow,
) -> Result<WindowFunction, SqlError> {
    let FoundWindow { call, name, over } = found;
    let spec = match &over {
        ast::WindowType::NamedWindow(name) => find(named, &name.value)?.clone(),
        ast::WindowType::WindowSpec(spec) => filled(spec, named)?,
    };
    if let Call::Own { kind, within, .. } = &call {
        let is_named = match &over {
            ast::WindowType::NamedWindow(_) => true,
            ast::WindowType::WindowSpec(spec) => spec.window_name.is_some(),
        };
        let has_more = is_named || !spec.order.is_empty() || spec.frame.is_some();
        if kind.is_percentile() && has_more {
            return Err(SqlError::syntax(&over.to_string(), 1));
        }
        if kind.needs_order() && spec.order.is_empty() {
            let text = format!("No order list in window specification for '{name}'");
            return Err(error(ErrorKind::WindowWithoutOrder, text));
        }
        if kind.refuses_frame() && spec.frame.is_some() {
            let text = format!("Window frame is not allowed with '{name}'");
            return Err(error(ErrorKind::FrameNotAllowed, text));
        }
        let (partition, mut order, frame) = bind_spec(binder, &spec)?;
        order.extend(within.clone());
        return Ok(WindowFunction { call, partition, order, frame });
    }
    let (partition, order, frame) = bind_spec(binder, &spec)?;
    Ok(WindowFunction { call, partition, order, frame })
}

type BoundSpec = (Vec<Expr>, Vec<(Expr, bool)>, Frame);

fn bind_spec(binder: &mut Binder<'_>, spec: &Spec) -> Result<BoundSpec, SqlError> {
    let part = binder.window_part();
    let checked = |expr: Expr| match reads_window(&expr, part) {
        true => {
            let text = "Window function is not allowed in window specification";
            Err(error(ErrorKind::WindowFunctionInWindow, text))
        }
        false => Ok(expr),
    };
    binder.clause = "group statement";
    binder.alias_use = AliasUse::Last;
    let mut partition = Vec::new();
    for key in &spec.partition {
        partition.push(checked(binder.bind(key)?)?);
    }
    binder.clause = "order clause";
    let mut order = Vec::new();
    for item in &spec.order {
        // Within an expression a column hides an alias.
        let is_name = matches!(item.expr, ast::Expr::Identifier(_));
        binder.alias_use = if is_name { AliasUse::First } else { AliasUse::Last };
        order.push((checked(binder.bind(&item.expr)?)?, is_descending(item)));
    }
    let frame = bind_frame(binder, spec.frame.as_ref(), &order)?;
    Ok((partition, order, frame))
}

/// The frame of a window; if there is none, from the first row of the partition to the last one that is equal
/// to the current row.
fn bind_frame(
    binder: &mut Binder<'_>,
    frame: Option<&ast::WindowFrame>,
    order: &[(Expr, bool)],
) -> Result<Frame, SqlError> {
    use ast::WindowFrameBound as Ast;
    let Some(frame) = frame else {
        return Ok(Frame { rows: false, start: FrameBound::Unbounded, end: FrameBound::Current });
    };
    let near = || SqlError::syntax(&frame.units.to_string(), 1);
    let rows = match frame.units {
        ast::WindowFrameUnits::Rows => true,
        ast::WindowFrameUnits::Range => false,
        ast::WindowFrameUnits::Groups => return Err(near()),
    };
    let wrong = match (&frame.start_bound, &frame.end_bound) {
        (Ast::Following(_), None) => return Err(near()),
        (Ast::Following(None), _) | (_, Some(Ast::Preceding(None))) => true,
        (Ast::CurrentRow, Some(Ast::Preceding(_))) => true,
        (Ast::Following(_), Some(Ast::CurrentRow)) => true,
        _ => false,
    };
    if wrong {
        let text = "Unacceptable combination of window frame bound specifications";
        return Err(error(ErrorKind::WrongFrameBounds, text));
    }
    let mut bound = |bound: &Ast| -> Result<FrameBound<Expr>, SqlError> {
        Ok(match bound {
            Ast::CurrentRow => FrameBound::Current,
            Ast::Preceding(None) | Ast::Following(None) => FrameBound::Unbounded,
            Ast::Preceding(Some(count)) => FrameBound::Preceding(distance(binder, count, rows, order)?),
            Ast::Following(Some(count)) => FrameBound::Following(distance(binder, count, rows, order)?),
        })
    };
    let start = bound(&frame.start_bound)?;
    let end = frame.end_bound.as_ref().map_or(Ok(FrameBound::Current), &mut bound)?;
    Ok(Frame { rows, start, end })
}

/// The number before PRECEDING or FOLLOWING: a literal.
///
/// # Errors
/// 4019 to 4021, and 1064 for what is not a literal.
fn distance(
    binder: &mut Binder<'_>,
    count: &ast::Expr,
    rows: bool,
    order: &[(Expr, bool)],
) -> Result<Expr, SqlError> {
    if !matches!(count, ast::Expr::Value(_)) {
        return Err(SqlError::syntax(&count.to_string(), 1));
    }
    let bound = binder.bind(count)?;
    let (is_whole, is_number_here) = match &bound {
        Expr::Slot { kind, .. } => {
            let whole = matches!(kind, SlotKind::Int | SlotKind::UInt);
            (whole, whole || matches!(kind, SlotKind::Decimal { .. } | SlotKind::Double))
        }
        Expr::Constant(value) => {
            let whole = matches!(value, Value::Int(_) | Value::UInt(_));
            (whole, whole || matches!(value, Value::Decimal(_) | Value::Double(_)))
        }
        _ => return Err(SqlError::syntax(&count.to_string(), 1)),
    };
    if rows {
        return match is_whole {
            true => Ok(bound),
            false => Err(error(ErrorKind::RowsFrameType, "Integer is required for ROWS-type frame")),
        };
    }
    let [(key, _)] = order else {
        let text = "RANGE-type frame requires ORDER BY clause with single sort key";
        return Err(error(ErrorKind::RangeFrameOrder, text));
    };
    match is_number_here && is_number(&Compiled::new(key, CONNECTION_COLLATION)?, false) {
        true => Ok(bound),
        false => Err(error(ErrorKind::RangeFrameType, "Numeric datatype is required for RANGE-type frame")),
    }
}

impl WindowFunction {
    /// Calls `visit` for each expression that is evaluated for a row.
    pub(super) fn for_each_expr<'f>(&'f self, visit: &mut dyn FnMut(&'f Expr)) {
        match &self.call {
            Call::Aggregate(aggregate) => aggregate.arguments.iter().for_each(&mut *visit),
            Call::Own { arguments, .. } => arguments.iter().for_each(&mut *visit),
        }
        self.partition.iter().for_each(&mut *visit);
        self.order.iter().for_each(|(expr, _)| visit(expr));
    }

    /// As [`WindowFunction::for_each_expr`], to change them.
    pub(super) fn for_each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.call {
            Call::Aggregate(aggregate) => aggregate.arguments.iter_mut().for_each(&mut *visit),
            Call::Own { arguments, within, .. } => {
                arguments.iter_mut().for_each(&mut *visit);
                within.iter_mut().for_each(|(value, _)| visit(value));
            }
        }
        self.partition.iter_mut().for_each(&mut *visit);
        self.order.iter_mut().for_each(|(expr, _)| visit(expr));
    }

    /// What its rows are sorted by: expressions, and true for those that descend. The first ones are the
    /// partition's, as many as the second value says.
    fn components(&self) -> (Vec<(&Expr, bool)>, usize) {
        let mut components = Vec::new();
        for key in &self.partition {
            add_component(key, false, &mut components);
        }
        let partition = components.len();
        for (key, descending) in &self.order {
            add_component(key, *descending, &mut components);
        }
        (components, partition)
    }
}

/// Adds what makes a difference to an order.
fn add_component<'e>(expr: &'e Expr, descending: bool, components: &mut Vec<(&'e Expr, bool)>) {
    if !is_fixed(expr) && !components.iter().any(|(known, _)| *known == expr) {
        components.push((expr, descending));
    }
}

/// A sort that is being put together.
struct Gathered<'f> {
    components: Vec<(&'f Expr, bool)>,
    /// Functions by their numbers, with the numbers of the components of partition and order.
    functions: Vec<(usize, usize, usize)>,
}

impl Planner<'_> {
    /// How the functions are computed. `None` if there are none.
    pub(super) fn window_plan(
        &self,
        functions: &[WindowFunction],
    ) -> Result<Option<Box<WindowPlan>>, SqlError> {
        if functions.is_empty() {
            return Ok(None);
        }
        let mut wanted: Vec<_> =
            functions.iter().enumerate().map(|(at, function)| (at, function.components())).collect();
        // The longest first: it serves those that are its beginning.
        wanted.sort_by_key(|(_, (components, _))| Reverse(components.len()));
        let mut gathered: Vec<Gathered<'_>> = Vec::new();
        for (at, (components, partition)) in wanted {
            let serves = |sort: &&mut Gathered<'_>| {
                let pairs = sort.components.iter().zip(&components).enumerate();
                let mut pairs = pairs
                    .map(|(nth, (has, wants))| has.0 == wants.0 && (nth < partition || has.1 == wants.1));
                pairs.all(|same| same)
            };
            let length = components.len();
            match gathered.iter_mut().find(serves) {
                Some(sort) => sort.functions.push((at, partition, length)),
                None => gathered.push(Gathered { components, functions: vec![(at, partition, length)] }),
            }
        }
        let mut arguments = Arguments::default();
        let sorts = gathered
            .into_iter()
            .map(|sort| self.window_sort(functions, sort, &mut arguments))
            .collect::<Result<Vec<_>, SqlError>>()?;
        let compile = |expr: &Expr| Compiled::new(expr, self.connection);
        let distances = arguments.distances.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        let arguments = arguments
            .values
            .into_iter()
            .map(|(expr, exact)| Ok(WindowArgument { value: Compiled::new(&expr, self.connection)?, exact }))
            .collect::<Result<Vec<_>, SqlError>>()?;
        Ok(Some(Box::new(WindowPlan { arguments, distances, sorts, functions: functions.len() })))
    }

    fn window_sort(
        &self,
        functions: &[WindowFunction],
        sort: Gathered<'_>,
        arguments: &mut Arguments,
    ) -> Result<WindowSort, SqlError> {
        let lengths = sort.functions.iter().flat_map(|(_, partition, all)| [*partition, *all]);
        let mut groups: Vec<usize> = lengths.collect();
        groups.sort_unstable();
        groups.dedup();
        let group = |length: usize| groups.iter().position(|known| *known == length).unwrap_or_default();
        let mut frames = Vec::new();
        let mut calls = Vec::new();
        for (at, partition, all) in &sort.functions {
            let function = &functions[*at];
            let (frame, measured) = (&function.frame, function.order.first());
            let mut bound = |bound: &FrameBound<Expr>| match bound {
                FrameBound::Unbounded => FrameBound::Unbounded,
                FrameBound::Current => FrameBound::Current,
                FrameBound::Preceding(count) => FrameBound::Preceding(arguments.distance(count)),
                FrameBound::Following(count) => FrameBound::Following(arguments.distance(count)),
            };
            let (start, end) = (bound(&frame.start), bound(&frame.end));
            let is_measured = [start, end]
                .iter()
                .any(|bound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_)));
            let measure = match measured {
                Some((key, descending)) if is_measured && !frame.rows => {
                    Some((arguments.add(key, false), *descending))
                }
                _ => None,
            };
            let (partition, peers) = (group(*partition), group(*all));
            let frame = FramePlan { partition, peers, rows: frame.rows, start, end, measure };
            let known = frames.iter().position(|known| *known == frame);
            let frame = known.unwrap_or_else(|| {
                frames.push(frame);
                frames.len() - 1
            });
            calls.push(self.window_function(&function.call, *at, frame, arguments)?);
        }
        let component = |(expr, descending): (&Expr, bool)| {
            // Moments are sorted as they are stored: a clock shows an hour of autumn twice.
            let stored = match expr {
                Expr::Column(column) => Expr::Column(ColumnRef { in_utc: false, ..column.clone() }),
                expr => expr.clone(),
            };
            let value = Compiled::new(&stored, self.connection)?;
            let keys = ValueKeys::ordered([(pseudo_column(&value), descending)]);
            let name = match expr {
                Expr::Column(column) => column.name.clone(),
                _ => "<expression>".to_string(),
            };
            Ok(SortComponent { value, keys, name: if descending { format!("{name} desc") } else { name } })
        };
        let components = sort.components.into_iter().map(component).collect::<Result<_, SqlError>>()?;
        Ok(WindowSort { components, groups, frames, functions: calls })
    }

    fn window_function(
        &self,
        call: &Call,
        result: usize,
        frame: usize,
        arguments: &mut Arguments,
    ) -> Result<WindowCall, SqlError> {
        let (function, arguments) = match call {
            Call::Aggregate(aggregate) => {
                let exact = matches!(aggregate.kind, AggregateKind::Sum | AggregateKind::Average);
                let places = aggregate.arguments.iter().map(|expr| arguments.add(expr, exact)).collect();
                (ComputedBy::Aggregate(CompiledAggregate::new(aggregate, self.connection)?), places)
            }
            Call::Own { kind, arguments: own, within } => {
                let values = within.iter().map(|(value, _)| value).chain(own);
                let kind = if *kind == WindowKind::Median { WindowKind::PercentileCont } else { *kind };
                (ComputedBy::Own(kind), values.map(|expr| arguments.add(expr, false)).collect())
            }
        };
        Ok(WindowCall { function, result, frame, arguments })
    }
}

#[derive(Default)]
struct Arguments {
    /// Expressions that are evaluated once for each row, and whether they keep all digits.
    values: Vec<(Expr, bool)>,
    distances: Vec<Expr>,
}

impl Arguments {
    fn add(&mut self, expr: &Expr, exact: bool) -> usize {
        let is_same = |known: &(Expr, bool)| known.0 == *expr && known.1 == exact;
        let known = self.values.iter().position(is_same).filter(|_| !has_side_effects(expr));
        known.unwrap_or_else(|| {
            self.values.push((expr.clone(), exact));
            self.values.len() - 1
        })
    }

    fn distance(&mut self, expr: &Expr) -> usize {
        let known = self.distances.iter().position(|known| known == expr);
        known.unwrap_or_else(|| {
            self.distances.push(expr.clone());
            self.distances.len() - 1
        })
    }
}

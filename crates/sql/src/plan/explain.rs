//! EXPLAIN: shows a plan in the columns that MySQL uses.

use super::access::{Access, Path, PointValues};
use super::plan::*;
use crate::text::parse::ExplainForm;
use crate::{ColumnMeta, ColumnTraits, Completion, ResultSink, SqlError};
use std::collections::HashSet;
use types::{Collation, ColumnType, Value, ValueRef};

/// Columns of EXPLAIN: name, whether it is a number, width.
const COLUMNS: [(&str, bool, u32); 10] = [
    ("id", true, 3),
    ("select_type", false, 19),
    ("table", false, 64),
    ("type", false, 10),
    ("possible_keys", false, 4_096),
    ("key", false, 64),
    ("key_len", false, 393),
    ("ref", false, 2_048),
    ("rows", true, 10),
    ("Extra", false, 255),
];

/// One line.
pub(super) struct Line {
    pub(super) values: Vec<Value>,
    /// In per cent. EXPLAIN EXTENDED shows it.
    pub(super) filtered: Option<f64>,
}

/// Numbers the SELECTs.
pub(super) struct Ids {
    pub(super) next: usize,
    /// The addresses of the queries of FROM that have been shown: one of WITH may be named often.
    shown: HashSet<usize>,
}

impl Default for Ids {
    fn default() -> Ids {
        Ids { next: 1, shown: HashSet::new() }
    }
}

impl Ids {
    /// True if this query of FROM has not been shown yet.
    pub(super) fn is_new(&mut self, query: &QueryPlan) -> bool {
        self.shown.insert(std::ptr::from_ref(query).addr())
    }
}

/// Sends a plan.
///
/// # Errors
/// The sink's.
pub(crate) fn send(
    plan: &StatementPlan,
    form: ExplainForm,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if form == ExplainForm::Json {
        return super::explain_json::send(plan, sink);
    }
    let mut lines = Vec::new();
    let mut ids = Ids::default();
    let is_simple = plan.subqueries.is_empty() && plan.dependents.is_empty();
    query(&plan.query, "SIMPLE", is_simple, &mut ids, &mut lines);
    for subquery in &plan.subqueries {
        ids.next += 1;
        query(&subquery.query, "SUBQUERY", false, &mut ids, &mut lines);
    }
    for subquery in &plan.dependents {
        ids.next += 1;
        query(subquery, "DEPENDENT SUBQUERY", false, &mut ids, &mut lines);
    }
    send_lines(&lines, form == ExplainForm::Extended, sink)
}

pub(super) fn send_lines(lines: &[Line], extended: bool, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
    let mut columns: Vec<ColumnMeta> =
        COLUMNS.iter().map(|(name, number, chars)| meta(name, *number, *chars)).collect();
    let before_extra = columns.len() - 1;
    if extended {
        let column_type = ColumnType::Double { unsigned: false };
        let filtered = ColumnMeta { column_type, decimals: 2, ..meta("filtered", true, 4) };
        columns.insert(before_extra, filtered);
    }
    sink.columns(&columns)?;
    for line in lines {
        let mut values: Vec<ValueRef<'_>> = line.values.iter().map(Value::as_ref).collect();
        if extended {
            values.insert(before_extra, line.filtered.map_or(ValueRef::Null, ValueRef::Double));
        }
        sink.row(&values)?;
    }
    sink.end(&Completion::default())
}

pub(super) fn meta(name: &str, number: bool, chars: u32) -> ColumnMeta {
    let collation = if number { Collation::Binary } else { Collation::Utf8mb4GeneralCi };
    ColumnMeta {
        name: name.to_string(),
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        database: String::new(),
        column_type: match number {
            true => ColumnType::Int { bytes: 8, unsigned: false },
            false => ColumnType::Varchar { chars, collation },
        },
        collation,
        not_null: name == "id" || name == "select_type" || name == "Extra",
        traits: ColumnTraits::default(),
        decimals: if number { 0 } else { 31 },
        display_chars: chars,
    }
}

pub(super) fn query(plan: &QueryPlan, select_type: &str, simple: bool, ids: &mut Ids, lines: &mut Vec<Line>) {
    match &plan.body {
        Body::Select(plan) => {
            let has_derived = plan.inputs.iter().any(|input| input.source.query().is_some());
            let kind = match select_type {
                "SIMPLE" if !simple || has_derived => "PRIMARY",
                other => other,
            };
            select(plan, kind, ids.next as i64, lines);
            for input in &plan.inputs {
                if let Some(inner) = input.source.query().filter(|inner| ids.is_new(inner)) {
                    ids.next += 1;
                    query(inner, "DERIVED", true, ids, lines);
                }
            }
        }
        Body::Recursive(plan) => {
            for (at, part) in plan.parts().enumerate() {
                ids.next += usize::from(at > 0);
                let is_member = at >= plan.anchors.len();
                query(part, if is_member { "RECURSIVE UNION" } else { select_type }, true, ids, lines);
            }
        }
        Body::Union(plan) => {
            let first = ids.next;
            for (at, branch) in plan.branches.iter().enumerate() {
                if at > 0 {
                    ids.next += 1;
                }
                let operation = at.checked_sub(1).and_then(|at| plan.operations.get(at));
                let kind = match (operation.map(|operation| operation.operator), select_type) {
                    (None, "SIMPLE") => "PRIMARY",
                    (None, other) => other,
                    (Some(SetOperator::Union), _) => "UNION",
                    (Some(SetOperator::Intersect), _) => "INTERSECT",
                    (Some(SetOperator::Except), _) => "EXCEPT",
                };
                query(branch, kind, true, ids, lines);
            }
            let is_gathered =
                |operation: &SetOperation| operation.operator != SetOperator::Union || !operation.all;
            if plan.operations.iter().any(is_gathered) || !plan.order.items.is_empty() {
                let members: Vec<String> = (first..=ids.next).map(|id| id.to_string()).collect();
                let name = format!("<union{}>", members.join(","));
                let mut line =
                    vec![Value::Null, Value::text("UNION RESULT"), Value::text(name), Value::text("ALL")];
                line.extend([Value::Null, Value::Null, Value::Null, Value::Null, Value::Null]);
                line.push(Value::text(if plan.order.items.is_empty() { "" } else { "Using filesort" }));
                lines.push(Line { values: line, filtered: None });
            }
        }
    }
}

fn select(plan: &SelectPlan, kind: &str, id: i64, lines: &mut Vec<Line>) {
    let whole = |extra: &str| {
        let mut line = vec![Value::Int(id), Value::text(kind)];
        line.extend(vec![Value::Null; 7]);
        line.push(Value::text(extra));
        Line { values: line, filtered: None }
    };
    if plan.shortcut.is_some() {
        lines.push(whole("Select tables optimized away"));
        return;
    }
    if plan.steps.is_empty() {
        lines.push(whole("No tables used"));
        return;
    }
    for (depth, step) in plan.steps.iter().enumerate() {
        let input = &plan.inputs[step.part];
        let mut line = vec![Value::Int(id), Value::text(kind), Value::text(input.name.clone())];
        match (&input.source, &step.access) {
            (Source::Table { def, .. }, Some(access)) => {
                line.extend(access_columns(access, def, depth > 0));
            }
            (source, _) => {
                if matches!(source, Source::Derived(_) | Source::Shared(_) | Source::Working(_)) {
                    line[2] = Value::text(format!("<derived:{}>", input.name));
                }
                line.extend([Value::text("ALL"), Value::Null, Value::Null, Value::Null, Value::Null]);
                let rows = source.query().map(super::join::rows_of);
                line.push(rows.map_or(Value::Null, |rows| Value::Int(rows as i64)));
            }
        }
        line.push(Value::text(extras(plan, depth).join("; ")));
        lines.push(Line { values: line, filtered: Some(percent(step)) });
    }
}

/// The share of the rows found that meet all conditions, as EXPLAIN shows it.
pub(super) fn percent(step: &Step) -> f64 {
    (step.filtered * 10_000.0).round() / 100.0
}

/// What Extra shows of a step.
pub(super) fn extras(plan: &SelectPlan, depth: usize) -> Vec<&'static str> {
    let step = &plan.steps[depth];
    let mut extra = Vec::new();
    let is_tested = step.filter.is_some() || has_after(plan, step);
    match &step.access {
        Some(access) => {
            let is_range = matches!(&access.path, Path::Ranges { .. });
            if access.residual.is_some() || is_tested || (is_range && access.covering.is_some()) {
                extra.push("Using where");
            } else if is_range {
                extra.push("Using index condition");
            }
            if access.covering.is_some() {
                extra.push("Using index");
            }
        }
        None if is_tested => extra.push("Using where"),
        None => {}
    }
    match &step.method {
        Method::Each => {}
        Method::Gather => extra.push("Using join buffer (flat, BKA join)"),
        Method::Follow { .. } => extra.push("Using merge join"),
        Method::Hash(_) => extra.push("Using join buffer (hash join)"),
    }
    if depth == 0 {
        if plan.uses_temporary {
            extra.push("Using temporary");
        }
        if !plan.order.items.is_empty() {
            extra.push("Using filesort");
        }
    }
    extra
}

/// True if rows must meet a condition after NULLs replaced the rows of a nest that ends here.
fn has_after(plan: &SelectPlan, step: &Step) -> bool {
    step.ends.iter().any(|nest| plan.nests[*nest].after.is_some())
}

/// type, possible_keys, key, key_len, ref, rows.
pub(super) fn access_columns(access: &Access, def: &engine::TableDef, inner: bool) -> Vec<Value> {
    let (index, kind, parts) = match &access.path {
        Path::Whole { index, .. } if access.covering.is_some() || access.in_order || index.0 != 0 => {
            (Some(*index), "index", usize::MAX)
        }
        Path::Whole { .. } => (None, "ALL", usize::MAX),
        Path::Points { index, points, unique, .. } => {
            let is_list = points
                .iter()
                .any(|point| matches!(point.values, PointValues::Slots(_) | PointValues::Values(_)));
            let kind = match (is_list, unique, inner) {
                (true, ..) => "range",
                (false, true, true) => "eq_ref",
                (false, true, false) => "const",
                (false, false, _) => "ref",
            };
            (Some(*index), kind, points.len())
        }
        Path::Ranges { index, points, part, intervals, .. } => {
            let unbounded =
                intervals.iter().all(|interval| interval.lower.is_empty() && interval.upper.is_empty());
            let kind = if unbounded && !points.is_empty() { "ref" } else { "range" };
            let ranged = usize::from(part.is_some() && !unbounded);
            (Some(*index), kind, points.len() + ranged)
        }
    };
    let text = |text: String| if text.is_empty() { Value::Null } else { Value::text(text) };
    let shape =
        index.and_then(|index| super::access::indexes(def).into_iter().find(|shape| shape.id == index));
    let name = shape.as_ref().map(|shape| shape.name.clone()).unwrap_or_default();
    let length: u64 = shape
        .iter()
        .flat_map(|shape| shape.parts.iter().take(parts))
        .map(|part| key_bytes(&def.columns[part.column], part.prefix_chars))
        .sum();
    let possible: Vec<String> = access.possible.clone();
    let reference =
        if matches!(kind, "const" | "ref" | "eq_ref") { access.references.join(",") } else { String::new() };
    let rows = if kind == "const" { 1 } else { access.rows };
    vec![
        Value::text(kind),
        text(possible.join(",")),
        text(name.clone()),
        text(if name.is_empty() { String::new() } else { length.to_string() }),
        text(reference),
        Value::Int(i64::try_from(rows).unwrap_or(i64::MAX)),
    ]
}

/// How many bytes a key part takes, by MySQL's count.
pub(super) fn key_bytes(column: &types::Column, prefix: Option<u32>) -> u64 {
    let chars = |chars: u32| u64::from(prefix.unwrap_or(chars)) * 4;
    let of_type = match &column.column_type {
        ColumnType::Char { chars: length, .. } => chars(*length),
        ColumnType::Varchar { chars: length, .. } => chars(*length) + 2,
        ColumnType::Text { .. } => chars(prefix.unwrap_or(0)) + 2,
        ColumnType::Varbinary { bytes } => u64::from(prefix.unwrap_or(*bytes)) + 2,
        ColumnType::Blob { .. } => u64::from(prefix.unwrap_or(0)) + 2,
        ColumnType::Binary { bytes } => u64::from(prefix.unwrap_or(*bytes)),
        other => other.image_bytes_max() as u64,
    };
    of_type + u64::from(column.nullable)
}

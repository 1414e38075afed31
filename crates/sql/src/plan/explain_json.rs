//! EXPLAIN FORMAT=JSON: a plan in the shape that MariaDB gives it.

use super::explain::{Ids, access_columns, extras, meta, percent};
use super::explain_change::Change;
use super::plan::*;
use super::window::WindowSort;
use crate::{Completion, ResultSink, SqlError};
use types::{Value, ValueRef};

/// A JSON value that is being built.
enum Json {
    Text(String),
    Number(f64),
    True,
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

/// Sends a plan as one text.
///
/// # Errors
/// The sink's.
pub(super) fn send(plan: &StatementPlan, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
    let mut ids = Ids::default();
    let mut block = query(&plan.query, &mut ids);
    let once = plan.subqueries.iter().map(|subquery| &subquery.query);
    let each = plan.dependents.iter().map(|subquery| &**subquery);
    push_subqueries(&mut block, once.chain(each), &mut ids);
    send_block(block, sink)
}

fn push_subqueries<'q>(block: &mut Json, queries: impl Iterator<Item = &'q QueryPlan>, ids: &mut Ids) {
    let subqueries: Vec<Json> = queries
        .map(|subquery| {
            ids.next += 1;
            Json::Object(vec![("query_block", query(subquery, ids))])
        })
        .collect();
    if let (Json::Object(members), false) = (block, subqueries.is_empty()) {
        members.push(("subqueries", Json::List(subqueries)));
    }
}

fn send_block(block: Json, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
    let mut text = String::new();
    Json::Object(vec![("query_block", block)]).write(0, &mut text);
    sink.columns(&[meta("EXPLAIN", false, 65_535)])?;
    sink.row(&[ValueRef::Text(text.as_bytes())])?;
    sink.end(&Completion::default())
}

/// Appends what the columns type, possible_keys, key, key_len, ref and rows show.
fn push_access(columns: Vec<Value>, table: &mut Vec<(&'static str, Json)>) {
    let names = ["access_type", "possible_keys", "key", "key_length", "ref", "rows"];
    let list = |text: &str| Json::List(text.split(',').map(|item| Json::Text(item.to_string())).collect());
    for (name, value) in names.into_iter().zip(columns) {
        match value {
            Value::Text(text) if matches!(name, "possible_keys" | "ref") => {
                table.push((name, list(&String::from_utf8_lossy(&text))));
            }
            Value::Text(text) => table.push((name, Json::Text(String::from_utf8_lossy(&text).into_owned()))),
            Value::Int(number) => table.push((name, Json::Number(number as f64))),
            _ => {}
        }
    }
}

/// Sends the plan of a statement that changes rows as one text.
///
/// # Errors
/// The sink's.
pub(super) fn send_change<'q>(
    change: Change<'_>,
    subqueries: impl Iterator<Item = &'q QueryPlan>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut ids = Ids::default();
    let mut table = Vec::new();
    match change {
        Change::Rows { table: name } => table.push(("table_name", Json::Text(name.to_string()))),
        Change::Query(_) => {}
        Change::Update(read) | Change::Delete(read) => {
            table.push((
                if matches!(change, Change::Update(_)) { "update" } else { "delete" },
                Json::Number(1.0),
            ));
            table.push(("table_name", Json::Text(read.name.clone())));
            push_access(change.access(read), &mut table);
            if Change::extra(read).contains("where") {
                table.push(("using_where", Json::True));
            }
            if Change::extra(read).contains("filesort") {
                table.push(("using_filesort", Json::True));
            }
        }
    }
    let mut block = match change {
        Change::Query(plan) => query(&plan.query, &mut ids),
        _ => Json::Object(vec![("select_id", Json::Number(1.0)), ("table", Json::Object(table))]),
    };
    push_subqueries(&mut block, subqueries, &mut ids);
    send_block(block, sink)
}

fn query(plan: &QueryPlan, ids: &mut Ids) -> Json {
    match &plan.body {
        Body::Select(select) => self::select(select, ids),
        Body::Union(union) => {
            let first = ids.next;
            let mut branches = Vec::new();
            for (at, branch) in union.branches.iter().enumerate() {
                ids.next += usize::from(at > 0);
                branches.push(Json::Object(vec![("query_block", query(branch, ids))]));
            }
            let members: Vec<String> = (first..=ids.next).map(|id| id.to_string()).collect();
            let result = vec![
                ("table_name", Json::Text(format!("<union{}>", members.join(",")))),
                ("access_type", Json::Text("ALL".to_string())),
                ("query_specifications", Json::List(branches)),
            ];
            Json::Object(vec![("union_result", Json::Object(result))])
        }
        Body::Recursive(recursive) => {
            let mut parts = Vec::new();
            for (at, part) in recursive.parts().enumerate() {
                ids.next += usize::from(at > 0);
                parts.push(Json::Object(vec![("query_block", query(part, ids))]));
            }
            let result = vec![
                ("access_type", Json::Text("ALL".to_string())),
                ("query_specifications", Json::List(parts)),
            ];
            Json::Object(vec![("recursive_union", Json::Object(result))])
        }
    }
}

fn select(plan: &SelectPlan, ids: &mut Ids) -> Json {
    let mut block = vec![("select_id", Json::Number(ids.next as f64))];
    let message = if plan.shortcut.is_some() {
        Some("Select tables optimized away")
    } else {
        plan.steps.is_empty().then_some("No tables used")
    };
    if let Some(message) = message {
        block.push(("table", Json::Object(vec![("message", Json::Text(message.to_string()))])));
        return Json::Object(block);
    }
    block.push(("cost", Json::Number(plan.steps.iter().map(|step| step.cost).sum())));
    let tables = (0..plan.steps.len()).map(|depth| {
        let table = Json::Object(table(plan, depth, ids));
        Json::Object(vec![("table", table)])
    });
    let mut tables = ("nested_loop", Json::List(tables.collect()));
    if let Some(windows) = &plan.windows {
        let sort = |sort: &WindowSort| {
            let keys: Vec<&str> = sort.components.iter().map(|component| &*component.name).collect();
            let key = ("sort_key", Json::Text(keys.join(", ")));
            Json::Object(vec![("filesort", Json::Object(vec![key]))])
        };
        let sorts = windows.sorts.iter().filter(|sort| !sort.components.is_empty()).map(sort).collect();
        let computed = vec![("sorts", Json::List(sorts)), ("temporary_table", Json::Object(vec![tables]))];
        tables = ("window_functions_computation", Json::Object(computed));
    }
    block.push(tables);
    Json::Object(block)
}

fn table(plan: &SelectPlan, depth: usize, ids: &mut Ids) -> Vec<(&'static str, Json)> {
    let step = &plan.steps[depth];
    let input = &plan.inputs[step.part];
    let mut table = vec![("table_name", Json::Text(input.name.clone()))];
    match (&input.source, &step.access) {
        (Source::Table { def, .. }, Some(access)) => {
            push_access(access_columns(access, def, depth > 0), &mut table);
        }
        (source, _) => {
            table.push(("access_type", Json::Text("ALL".to_string())));
            if let Some(query) = source.query() {
                table.push(("rows", Json::Number(super::join::rows_of(query))));
            }
        }
    }
    table.push(("cost", Json::Number(step.cost)));
    table.push(("filtered", Json::Number(percent(step))));
    for extra in extras(plan, depth) {
        table.push(match extra {
            "Using index" => ("using_index", Json::True),
            "Using temporary" => ("using_temporary_table", Json::True),
            "Using filesort" => ("using_filesort", Json::True),
            "Using index condition" => ("using_index_condition", Json::True),
            "Using merge join" => ("join_type", Json::Text("MERGE".to_string())),
            "Using join buffer (hash join)" => ("join_type", Json::Text("HASH".to_string())),
            "Using join buffer (flat, BKA join)" => ("join_type", Json::Text("BKA".to_string())),
            _ => ("using_where", Json::True),
        });
    }
    if let Some(inner) = input.source.query().filter(|inner| ids.is_new(inner)) {
        ids.next += 1;
        table.push(("materialized", Json::Object(vec![("query_block", query(inner, ids))])));
    }
    table
}

impl Json {
    fn write(&self, depth: usize, out: &mut String) {
        let line = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        };
        match self {
            Json::Text(text) => quote(text, out),
            Json::Number(number) => out.push_str(&format!("{}", (number * 1_000.0).round() / 1_000.0)),
            Json::True => out.push_str("true"),
            // Lists of texts stay on one line.
            Json::List(items) if items.iter().all(|item| matches!(item, Json::Text(_))) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    item.write(depth, out);
                }
                out.push(']');
            }
            Json::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(depth + 1, out);
                    item.write(depth + 1, out);
                }
                line(depth, out);
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(depth + 1, out);
                    quote(name, out);
                    out.push_str(": ");
                    value.write(depth + 1, out);
                }
                line(depth, out);
                out.push('}');
            }
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

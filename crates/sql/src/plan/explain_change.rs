//! EXPLAIN of INSERT, REPLACE, UPDATE and DELETE.

use super::access::Path;
use super::change::TableRead;
use super::explain::{Ids, Line, access_columns, query, send_lines};
use super::explain_json;
use super::plan::{QueryPlan, StatementPlan, SubqueryPlan};
use crate::text::parse::ExplainForm;
use crate::{ResultSink, SqlError};
use std::sync::Arc;
use types::Value;

/// What a statement does to find the rows that it writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'p> {
    /// INSERT or REPLACE of rows that are written out, into the table of this name.
    Rows {
        table: &'p str,
    },
    /// INSERT or REPLACE of a query's rows.
    Query(&'p StatementPlan),
    Update(&'p TableRead),
    Delete(&'p TableRead),
}

impl<'p> Change<'p> {
    /// The table that is read by the statement itself.
    fn read(self) -> Option<&'p TableRead> {
        match self {
            Change::Update(read) | Change::Delete(read) => Some(read),
            Change::Rows { .. } | Change::Query(_) => None,
        }
    }

    /// True if the statement deletes all rows without looking at them.
    fn deletes_all(self) -> bool {
        matches!(self, Change::Delete(read) if read.condition.is_none() && read.limit.count.is_none())
    }

    /// type, possible_keys, key, key_len, ref, rows.
    pub(super) fn access(self, read: &TableRead) -> Vec<Value> {
        let def = read.table.def();
        let mut columns = access_columns(&read.access, &def, false);
        let is_whole = matches!(read.access.path, Path::Whole { .. });
        // MariaDB has no other words for a change: it reads ranges, and UPDATE the table by its primary key.
        if let (Change::Update(_), true, Some(_)) = (self, is_whole, &def.primary) {
            let length: u64 = def
                .primary
                .iter()
                .flatten()
                .map(|part| super::explain::key_bytes(&def.columns[part.column], part.prefix_chars))
                .sum();
            columns[0] = Value::text("index");
            columns[2] = Value::text("PRIMARY");
            columns[3] = Value::text(length.to_string());
        } else if !is_whole {
            columns[0] = Value::text("range");
            columns[4] = Value::Null;
        }
        columns
    }

    /// What Extra shows.
    pub(super) fn extra(read: &TableRead) -> &'static str {
        match (read.condition.is_some(), read.order.items.is_empty()) {
            (true, true) => "Using where",
            (true, false) => "Using where; Using filesort",
            (false, true) => "",
            (false, false) => "Using filesort",
        }
    }

    fn line(self, kind: &str) -> Option<Line> {
        let mut values = vec![Value::Int(1), Value::text(kind)];
        if self.deletes_all() {
            let rows = self.read().map_or(0, |read| read.access.rows);
            values.extend(vec![Value::Null; 6]);
            values.push(Value::Int(i64::try_from(rows).unwrap_or(i64::MAX)));
            values.push(Value::text("Deleting all rows"));
            return Some(Line { values, filtered: None });
        }
        match self {
            Change::Rows { table } => {
                values[1] = Value::text("INSERT");
                values.extend([Value::text(table), Value::text("ALL")]);
                values.extend(vec![Value::Null; 6]);
            }
            Change::Query(_) => return None,
            Change::Update(read) | Change::Delete(read) => {
                values.push(Value::text(read.name.clone()));
                values.extend(self.access(read));
                values.push(Value::text(Change::extra(read)));
            }
        }
        Some(Line { values, filtered: Some(100.0) })
    }
}

/// Sends the plan of a statement that changes rows. `subqueries` run once before it.
///
/// # Errors
/// The sink's.
pub(crate) fn send(
    change: Change<'_>,
    subqueries: &[SubqueryPlan],
    form: ExplainForm,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let dependents: &[Arc<QueryPlan>] = match change {
        Change::Query(plan) => &plan.dependents,
        other => other.read().map_or(&[], |read| &read.dependents),
    };
    let simple = subqueries.is_empty() && dependents.is_empty();
    let once = subqueries.iter().map(|subquery| (&subquery.query, "SUBQUERY"));
    let each = dependents.iter().map(|subquery| (&**subquery, "DEPENDENT SUBQUERY"));
    if form == ExplainForm::Json {
        return explain_json::send_change(change, once.chain(each).map(|(query, _)| query), sink);
    }
    let (mut ids, mut lines) = (Ids::default(), Vec::new());
    match change {
        Change::Query(plan) => query(&plan.query, "SIMPLE", simple, &mut ids, &mut lines),
        other => lines.extend(other.line(if simple { "SIMPLE" } else { "PRIMARY" })),
    }
    for (subquery, kind) in once.chain(each) {
        ids.next += 1;
        query(subquery, kind, false, &mut ids, &mut lines);
    }
    send_lines(&lines, form == ExplainForm::Extended, sink)
}

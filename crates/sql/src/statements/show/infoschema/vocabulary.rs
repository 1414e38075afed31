//! The words and names that the server knows: ALL_PLUGINS, KEYWORDS, SQL_FUNCTIONS, SYSTEM_VARIABLES,
//! user_variables.

use super::{Rows, server};
use crate::expr::functions::Function;
use crate::text::push_text;
use crate::variables::{self, Definition, Kind, Scope};
use crate::{Session, SqlError};
use types::{Value, ValueRef};

/// The tables of the list that have rows.
pub(super) static ROWS: &[(&str, Rows)] = &[
    ("ALL_PLUGINS", server::plugins),
    ("KEYWORDS", keywords),
    ("SQL_FUNCTIONS", functions),
    ("SYSTEM_VARIABLES", system_variables),
    ("user_variables", user_variables),
];

/// The words of the parser.
fn keywords(_session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    Ok(sqlparser::keywords::ALL_KEYWORDS.iter().map(|word| vec![Value::text(*word)]).collect())
}

fn functions(_session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut names: Vec<&str> = Function::all().flat_map(|function| function.names()).collect();
    names.sort_unstable();
    Ok(names.into_iter().map(|name| vec![Value::text(name.to_ascii_uppercase())]).collect())
}

fn type_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Unsigned { .. } => "BIGINT UNSIGNED",
        Kind::Signed { .. } => "BIGINT",
        Kind::Double { .. } => "DOUBLE",
        Kind::Boolean { .. } => "BOOLEAN",
        Kind::Choice { .. } => "ENUM",
        Kind::Set { .. } => "SET",
        Kind::Text { .. } | Kind::Charset { .. } | Kind::Collation { .. } => "VARCHAR",
    }
}

/// The least value, the greatest, and the step between them.
fn bounds(kind: &Kind) -> [Value; 3] {
    match *kind {
        Kind::Unsigned { min, max, step, .. } => [min, max, step].map(|n| Value::text(n.to_string())),
        Kind::Signed { min, max, .. } => {
            [Value::text(min.to_string()), Value::text(max.to_string()), Value::text("1")]
        }
        Kind::Double { min, max, .. } => {
            [Value::text(min.to_string()), Value::text(max.to_string()), Value::Null]
        }
        _ => [Value::Null, Value::Null, Value::Null],
    }
}

fn system_variables(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let find = |values: &[(String, String)], name: &str| {
        values.iter().find(|(of, _)| of == name).map_or(Value::Null, |(_, value)| Value::text(value.as_str()))
    };
    let (globals, sessions) = (server::show_variables(session, true), server::show_variables(session, false));
    let row = |name: &str, definition: &Definition| {
        let (scope, of_session) = match definition.scope {
            Scope::Global => ("GLOBAL", false),
            Scope::Both => ("SESSION", true),
            Scope::Session => ("SESSION ONLY", true),
        };
        let names = match definition.kind {
            Kind::Choice { names, .. } | Kind::Set { names, .. } => Value::text(names.join(",")),
            Kind::Boolean { .. } => Value::text("OFF,ON"),
            _ => Value::Null,
        };
        let [least, greatest, step] = bounds(&definition.kind);
        vec![
            Value::text(name.to_ascii_uppercase()),
            if of_session { find(&sessions, name) } else { Value::Null },
            find(&globals, name),
            Value::text("COMPILE-TIME"),
            Value::text(definition.default().show(definition)),
            Value::text(scope),
            Value::text(type_name(&definition.kind)),
            Value::text(""),
            least,
            greatest,
            step,
            names,
            Value::text(if definition.dynamic { "NO" } else { "YES" }),
            Value::text("REQUIRED"),
            Value::Null,
        ]
    };
    Ok(variables::listed().iter().map(|named| row(named.name, named.variable.definition())).collect())
}

fn user_variables(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let row = |(name, value): (&str, &Value)| {
        let kind = match value.as_ref() {
            ValueRef::Int(_) => "INT",
            ValueRef::UInt(_) => "INT UNSIGNED",
            ValueRef::Double(_) | ValueRef::Float(_) => "DOUBLE",
            ValueRef::Decimal(_) => "DECIMAL",
            _ => "VARCHAR",
        };
        let mut text = String::new();
        push_text(value.as_ref(), &mut text);
        vec![
            Value::text(name),
            if *value == Value::Null { Value::Null } else { Value::text(text) },
            Value::text(kind),
            Value::text(if matches!(value, Value::Binary(_)) { "binary" } else { "utf8mb4" }),
        ]
    };
    Ok(session.state.user_variables.all().into_iter().map(row).collect())
}

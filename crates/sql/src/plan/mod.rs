//! From parsed statements to plans.
//!
//! [`bind`] resolves names, [`access`] chooses how each table is read, [`select`] puts a query's plan together. A plan
//! holds everything that does not depend on the values of a statement's slots, so that it can be kept and run again.

pub mod access;
pub mod bind;
mod bind_function;
pub mod change;
mod cost;
pub mod explain;
mod explain_json;
pub mod from;
mod join;
pub mod methods;
pub mod names;
#[allow(clippy::module_inception)]
pub mod plan;
pub mod query;
pub mod sarg;
pub mod scope;
pub mod select;
mod tree;
pub mod value_keys;
pub mod walk;

use sqlparser::ast;

/// The parts of a name as they were written.
pub fn object_name(name: &ast::ObjectName) -> Vec<String> {
    name.0
        .iter()
        .map(|part| part.as_ident().map_or_else(|| part.to_string(), |ident| ident.value.clone()))
        .collect()
}

//! From parsed statements to plans.
//!
//! [`bind`] resolves names, [`access`] chooses how each table is read, [`select`] puts a query's plan
//! together. A plan holds everything that does not depend on the values of a statement's slots, so that it
//! can be kept and run again.

pub(crate) mod access;
pub(crate) mod bind;
mod bind_default;
mod bind_function;
pub(crate) mod change;
pub(crate) mod checks;
pub(crate) mod computed;
mod cost;
pub(crate) mod describe;
pub(crate) mod explain;
pub(crate) mod explain_change;
mod explain_json;
pub(crate) mod from;
mod join;
pub(crate) mod joined;
pub(crate) mod names;
#[allow(clippy::module_inception)]
pub(crate) mod plan;
pub(crate) mod query;
pub(crate) mod returning;
mod rewrite;
mod rollup;
pub(crate) mod sarg;
pub(crate) mod scope;
pub(crate) mod select;
pub(crate) mod set_operations;
mod tree;
pub(crate) mod walk;
pub(crate) mod window;
mod with;

use sqlparser::ast;

/// The parts of a name as they were written.
pub(crate) fn object_name(name: &ast::ObjectName) -> Vec<String> {
    name.0
        .iter()
        .map(|part| part.as_ident().map_or_else(|| part.to_string(), |ident| ident.value.clone()))
        .collect()
}

//! The table of all variables.

use super::definition::Definition;
use std::collections::HashMap;
use std::sync::OnceLock;

mod foreign;
mod global;
mod key_cache;
mod server;
mod session;

pub(crate) use global::AUDIT_EVENTS;

const NO_QUERY_CACHE: &str = "there is no query cache, statements are planned once instead";

/// The position of a variable in the table: an index into [`all`] and into every list of values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Variable(u16);

impl Variable {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    pub fn definition(self) -> &'static Definition {
        all()[self.index()].definition
    }
}

/// A name that SHOW VARIABLES lists, with the variable whose value it shows.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub name: &'static str,
    pub variable: Variable,
    definition: &'static Definition,
}

/// Second names of variables. Both names are listed. The last value given to either is used.
static ALIASES: &[(&str, &str)] = &[
    ("flush_log_at_trx_commit", "innodb_flush_log_at_trx_commit"),
    ("flush_method", "innodb_flush_method"),
    ("identity", "last_insert_id"),
    ("innodb_buffer_pool_size", "key_buffer_size"),
    ("innodb_concurrency_tickets", "concurrency_tickets"),
    ("innodb_thread_concurrency", "thread_concurrency"),
    ("innodb_use_sys_malloc", "use_sys_malloc"),
    ("io_capacity", "innodb_io_capacity"),
    ("io_capacity_max", "innodb_io_capacity_max"),
    ("log_buffer_size", "innodb_log_buffer_size"),
    ("log_file_size", "innodb_log_file_size"),
    ("log_slow_query_time", "long_query_time"),
    ("read_io_threads", "innodb_read_io_threads"),
    ("slow_query_log", "log_slow_query"),
    ("slow_query_log_file", "log_slow_query_file"),
    ("storage_engine", "default_storage_engine"),
    ("tmp_table_size", "tmp_memory_table_size"),
    ("transaction_isolation", "tx_isolation"),
    ("transaction_read_only", "tx_read_only"),
    ("write_io_threads", "innodb_write_io_threads"),
];

/// Old names of options, understood but not listed.
static OLD_NAMES: &[(&str, &str)] =
    &[("table_cache", "table_open_cache"), ("thread_cache", "thread_cache_size")];

struct Table {
    /// The variables themselves, sorted by name: `Variable` is an index into it.
    variables: Vec<Named>,
    /// The variables and their aliases, sorted by name.
    listed: Vec<Named>,
    by_name: HashMap<&'static str, Variable>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let groups = [
            foreign::DEFINITIONS,
            global::DEFINITIONS,
            key_cache::DEFINITIONS,
            server::DEFINITIONS,
            session::DEFINITIONS,
        ];
        let mut definitions: Vec<&'static Definition> = groups.into_iter().flatten().collect();
        definitions.sort_by_key(|definition| definition.name);
        let variables: Vec<Named> = definitions
            .into_iter()
            .enumerate()
            .map(|(index, definition)| Named {
                name: definition.name,
                variable: Variable(index as u16),
                definition,
            })
            .collect();
        let mut by_name: HashMap<&str, Variable> =
            variables.iter().map(|named| (named.name, named.variable)).collect();
        let mut listed = variables.clone();
        for (alias, name) in ALIASES {
            if let Some(variable) = by_name.get(name).copied() {
                by_name.insert(alias, variable);
                listed.push(Named {
                    name: alias,
                    variable,
                    definition: variables[variable.index()].definition,
                });
            }
        }
        listed.sort_by_key(|named| named.name);
        Table { variables, listed, by_name }
    })
}

/// Every variable, sorted by name. Aliases are not included.
pub fn all() -> &'static [Named] {
    &table().variables
}

/// Every name that SHOW VARIABLES lists, sorted. Aliases are included.
pub fn listed() -> &'static [Named] {
    &table().listed
}

/// The variable with a name as a statement writes it: in any case, and possibly an alias.
pub fn find(name: &str) -> Option<Variable> {
    let by_name = &table().by_name;
    by_name.get(name).or_else(|| by_name.get(name.to_ascii_lowercase().as_str())).copied()
}

/// The meaning of an option's name.
pub(super) enum OptionName {
    Variable(Variable),
    /// The option is an unambiguous beginning of this variable's name, or an old name of it.
    Shortened(Variable),
    Ambiguous(Vec<&'static str>),
    Unknown,
}

/// The variable that a command-line option names. `name` is in lower case with underscores.
pub(super) fn find_option(name: &str) -> OptionName {
    if let Some(variable) = find(name) {
        return OptionName::Variable(variable);
    }
    if let Some((_, full)) = OLD_NAMES.iter().find(|(old, _)| *old == name)
        && let Some(variable) = find(full)
    {
        return OptionName::Shortened(variable);
    }
    let mut matches: Vec<&Named> = listed().iter().filter(|named| named.name.starts_with(name)).collect();
    matches.dedup_by_key(|named| named.variable);
    match matches[..] {
        [] => OptionName::Unknown,
        [one] => OptionName::Shortened(one.variable),
        _ => OptionName::Ambiguous(matches.iter().map(|named| named.name).collect()),
    }
}

/// The default number of segments for this many processors: enough that two threads rarely meet at one latch,
/// and so few that the segments of a small cache are not tiny.
pub(crate) fn segments_default(processors: usize) -> u64 {
    (processors.max(1) * 4).next_power_of_two().clamp(8, 64) as u64
}

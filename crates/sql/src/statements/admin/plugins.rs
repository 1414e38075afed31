//! INSTALL and UNINSTALL PLUGIN and SONAME.
//!
//! There are no libraries to load. A name of a library of MariaDB stands for the part of this server that
//! does the same. All are always there, except for `simple_password_check`, which is switched on and off.

use super::accounts;
use crate::accounts::Rights;
use crate::accounts::access::TableNeed;
use crate::names::MYSQL;
use crate::text::parse::Words;
use crate::warning::Level;
use crate::{ErrorKind, ResultSink, Session, SqlError};

/// The plugin that checks passwords, and its library.
pub(crate) const PASSWORD_CHECK: &str = "simple_password_check";

/// The parts that are always there, with MariaDB's library of each, if it is one there.
const BUILT_IN: &[(&str, Option<&str>)] = &[
    ("mysql_native_password", None),
    ("caching_sha2_password", None),
    ("unix_socket", Some("auth_socket")),
    ("ed25519", Some("auth_ed25519")),
    ("parsec", Some("auth_parsec")),
    ("SERVER_AUDIT", Some("server_audit")),
    ("Latchwork", None),
];

fn does_not_exist(kind: &str, name: &str) -> SqlError {
    SqlError::new(ErrorKind::DoesNotExist, format!("{kind} {name} does not exist"))
}

fn already_installed(name: &str) -> SqlError {
    SqlError::new(ErrorKind::PluginInstalled, format!("Plugin '{name}' already installed"))
}

fn is_built_in(plugin: &str) -> bool {
    BUILT_IN.iter().any(|(name, _)| name.eq_ignore_ascii_case(plugin))
}

fn is_there(session: &Session, plugin: &str) -> bool {
    let checks = session.instance.accounts.checks_passwords();
    is_built_in(plugin) || checks && plugin.eq_ignore_ascii_case(PASSWORD_CHECK)
}

/// The plugin in a library.
///
/// # Errors
/// 1124 for a name with a path, 1126 for a library that is not known.
fn plugin_of(library: &str) -> Result<&'static str, SqlError> {
    if library.contains('/') {
        return Err(SqlError::new(ErrorKind::NoPathsForLibrary, "No paths allowed for shared library"));
    }
    let library = library.strip_suffix(".so").unwrap_or(library);
    if library == PASSWORD_CHECK {
        return Ok(PASSWORD_CHECK);
    }
    let known = BUILT_IN.iter().find(|(_, known)| *known == Some(library));
    known.map(|(name, _)| *name).ok_or_else(|| {
        let text = format!(
            "Can't open shared library '{library}.so' (errno: 2, cannot open shared object file: No such \
             file or directory)"
        );
        SqlError::new(ErrorKind::CannotOpenLibrary, text)
    })
}

fn check_right(session: &Session, right: Rights) -> Result<(), SqlError> {
    session.access.check_table(&TableNeed::whole(MYSQL, "plugin", right))
}

fn name_of_library(words: &mut Words<'_>) -> Result<String, SqlError> {
    words.expect("SONAME")?;
    words.string()
}

/// INSTALL, behind that word.
pub(crate) fn install(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut named = None;
    let mut if_not_exists = false;
    if words.accept("PLUGIN") {
        if_not_exists = words.accept_all(&["IF", "NOT", "EXISTS"]);
        named = Some(words.name()?);
    }
    let library = name_of_library(words)?;
    words.end()?;
    check_right(session, Rights::INSERT)?;
    if let Some(name) = &named
        && is_there(session, name)
    {
        let error = already_installed(name);
        if !if_not_exists {
            return Err(error);
        }
        session.state.warnings.note(error.kind, error.message);
        return session.done(0, String::new(), sink);
    }
    let plugin = plugin_of(&library)?;
    if let Some(name) = &named
        && !name.eq_ignore_ascii_case(plugin)
    {
        let text = format!("Can't find symbol '{name}' in library");
        return Err(SqlError::new(ErrorKind::CannotFindSymbol, text));
    }
    if is_there(session, plugin) {
        let error = already_installed(plugin);
        // As in MariaDB, the statement succeeds, for a library may have several plugins.
        session.state.warnings.push(Level::Error, error.kind, error.message);
    } else {
        accounts::switch_password_check(session, true)?;
    }
    session.done(0, String::new(), sink)
}

/// UNINSTALL, behind that word.
pub(crate) fn uninstall(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let is_plugin = words.accept("PLUGIN");
    if !is_plugin {
        words.expect("SONAME")?;
    }
    let if_exists = words.accept_all(&["IF", "EXISTS"]);
    let name = if is_plugin { words.name()? } else { words.string()? };
    words.end()?;
    check_right(session, Rights::DELETE)?;
    if is_plugin && is_built_in(&name) {
        let text = "Built-in plugins cannot be deleted";
        return Err(SqlError::new(ErrorKind::BuiltInPlugin, text));
    }
    let is_switched_off = match is_plugin {
        true => name.eq_ignore_ascii_case(PASSWORD_CHECK),
        false => name.strip_suffix(".so").unwrap_or(&name) == PASSWORD_CHECK,
    };
    if is_switched_off && session.instance.accounts.checks_passwords() {
        accounts::switch_password_check(session, false)?;
        return session.done(0, String::new(), sink);
    }
    let error = match is_plugin {
        true => does_not_exist("PLUGIN", &name),
        false => does_not_exist("SONAME", &format!("{}.so", name.strip_suffix(".so").unwrap_or(&name))),
    };
    if !if_exists {
        return Err(error);
    }
    session.state.warnings.note(error.kind, error.message);
    session.done(0, String::new(), sink)
}

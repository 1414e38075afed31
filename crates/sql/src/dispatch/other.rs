//! Statements that are neither queries nor changes of rows. Their first word decides which function runs
//! them.

use super::{prepared, set_statement};
use crate::session::bounds::changes_data;
use crate::statements::admin::maintenance::{self, Operation};
use crate::statements::admin::{self, accounts, key_caches, plugins};
use crate::statements::{ddl, dml, locks, set, show, transaction};
use crate::status::Counter;
use crate::text::parse::{self, OtherStatement, Word, Words};
use crate::{ResultSink, Session, SqlError};

/// Runs a statement by its first word.
///
/// # Errors
/// 1064 if it is no statement, 1235 if it is not supported, and the statement's own errors.
pub(crate) fn run_by_word(
    session: &mut Session,
    statement: &OtherStatement,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut words = statement.words()?;
    let at_start = words.error();
    words.next();
    let second = match words.peek() {
        Word::Bare(word) => word.as_str(),
        _ => "",
    };
    if let Some(counter) = Counter::of_statement(&statement.word, second) {
        session.counters.add(counter, 1);
    }
    let word = statement.word.as_str();
    let loads_index = second.eq_ignore_ascii_case("INDEX");
    check_changes(session, word, second)?;
    let instance = session.instance.clone();
    let _writing = match word {
        "DROP" if second.eq_ignore_ascii_case("PREPARE") => None,
        // The tables of accounts are changed by a session of the server's own, which waits for a read lock.
        "CREATE" | "DROP" | "ALTER" | "RENAME" if names_accounts(&words) => None,
        "CREATE" | "DROP" | "ALTER" | "TRUNCATE" | "RENAME" | "OPTIMIZE" => {
            session.check_not_locked_out()?;
            Some(instance.read_lock.write(&session.writing, &session.request())?)
        }
        _ => None,
    };
    match word {
        "CREATE" => create(session, &mut words, sink),
        "DROP" => drop(session, &mut words, sink),
        "ALTER" => alter(session, &mut words, sink),
        "TRUNCATE" => {
            words.accept("TABLE");
            ddl::truncate_table(session, &mut words, sink)
        }
        "RENAME" => {
            if words.accept("USER") {
                return accounts::rename_user(session, &mut words, sink);
            }
            if !words.accept("TABLE") {
                words.expect("TABLES")?;
            }
            ddl::rename_table(session, &mut words, sink)
        }
        "SET" if words.accept("PASSWORD") => accounts::set_password(session, &mut words, sink),
        "SET" if words.accept_all(&["DEFAULT", "ROLE"]) => {
            accounts::set_default_role(session, &mut words, sink)
        }
        "SET" if words.accept("ROLE") => accounts::set_role(session, &mut words, sink),
        "SET" if words.accept("STATEMENT") => set_statement::set_statement(session, &mut words, sink),
        "SET" => set::set(session, &mut words, sink),
        "GRANT" => accounts::grant(session, &mut words, sink),
        "REVOKE" => accounts::revoke(session, &mut words, sink),
        "SHOW" if words.accept("GRANTS") => accounts::show_grants(session, &mut words, sink),
        "SHOW" if words.accept_all(&["CREATE", "USER"]) => {
            accounts::show_create_user(session, &mut words, sink)
        }
        "SHOW" => show::show(session, &mut words, sink),
        "HELP" => show::help(session, &mut words, sink),
        "DESCRIBE" | "DESC" | "EXPLAIN" => show::describe(session, &mut words, sink),
        "BEGIN" => transaction::begin(session, &mut words, sink),
        "START" => transaction::start(session, &mut words, sink),
        "COMMIT" => transaction::commit(session, &mut words, sink),
        "ROLLBACK" => transaction::rollback(session, &mut words, sink),
        "SAVEPOINT" => transaction::set_savepoint(session, &mut words, sink),
        "RELEASE" => transaction::release_savepoint(session, &mut words, sink),
        "LOCK" => locks::lock_tables(session, &mut words, sink),
        "UNLOCK" => locks::unlock_tables(session, &mut words, sink),
        "FLUSH" => admin::server::flush(session, &mut words, sink),
        "KILL" => admin::server::kill(session, &mut words, sink),
        "ANALYZE" => maintenance::maintain_tables(session, &mut words, Operation::Analyze, sink),
        "CHECK" => maintenance::maintain_tables(session, &mut words, Operation::Check, sink),
        "OPTIMIZE" => maintenance::maintain_tables(session, &mut words, Operation::Optimize, sink),
        "REPAIR" => maintenance::maintain_tables(session, &mut words, Operation::Repair, sink),
        "CHECKSUM" => maintenance::checksum(session, &mut words, sink),
        "CACHE" => key_caches::cache_index(session, &mut words, sink),
        "LOAD" if loads_index => key_caches::load_index(session, &mut words, sink),
        "LOAD" if words.accept("DATA") => dml::load_data(session, &mut words, sink),
        "DO" => {
            set::evaluate(session, words.rest(), words.mode())?;
            session.done(0, String::new(), sink)
        }
        "INSTALL" => plugins::install(session, &mut words, sink),
        "UNINSTALL" => plugins::uninstall(session, &mut words, sink),
        "PREPARE" => prepared::prepare(session, &mut words, sink),
        "EXECUTE" => prepared::execute(session, &mut words, sink),
        "DEALLOCATE" => prepared::deallocate(session, &mut words, sink),
        _ if is_foreign(word) => Err(SqlError::not_supported(word)),
        _ => Err(at_start),
    }
}

/// # Errors
/// 1290 if the statement changes something and the server is read-only, 1792 if the session is.
fn check_changes(session: &Session, word: &str, second: &str) -> Result<(), SqlError> {
    let is = |name: &str| second.eq_ignore_ascii_case(name);
    let changes = match word {
        "SET" => is("PASSWORD"),
        "ANALYZE" | "REPAIR" => true,
        "LOAD" => !is("INDEX"),
        "DROP" => !is("PREPARE"),
        word => changes_data(word),
    };
    if !changes {
        return Ok(());
    }
    session.check_server_takes_changes()?;
    // What an open transaction says does not count: these statements end it first.
    if session.variables.common.tx_read_only && word != "ANALYZE" {
        return Err(SqlError::read_only_transaction());
    }
    Ok(())
}

/// True if CREATE, DROP, ALTER or RENAME is about an account or a role.
fn names_accounts(words: &Words<'_>) -> bool {
    let mut words = words.clone();
    words.accept_all(&["OR", "REPLACE"]);
    words.is("USER") || words.is("ROLE")
}

/// The first words of the statements that [`run`] knows.
const KNOWN: &[&str] = &[
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "CACHE",
    "CHECK",
    "CHECKSUM",
    "COMMIT",
    "CREATE",
    "DEALLOCATE",
    "DESC",
    "DESCRIBE",
    "DO",
    "DROP",
    "EXECUTE",
    "EXPLAIN",
    "FLUSH",
    "GRANT",
    "HELP",
    "INSTALL",
    "KILL",
    "LOAD",
    "LOCK",
    "OPTIMIZE",
    "PREPARE",
    "RELEASE",
    "RENAME",
    "REPAIR",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "SHOW",
    "START",
    "TRUNCATE",
    "UNINSTALL",
    "UNLOCK",
];

/// True for statements that MySQL has and this server does not. (Of LOAD, this means LOAD XML.)
fn is_foreign(word: &str) -> bool {
    const FOREIGN: &[&str] = &[
        "BINLOG", "CALL", "CHANGE", "HANDLER", "LOAD", "PURGE", "RESET", "SHUTDOWN", "SIGNAL", "STOP", "XA",
    ];
    FOREIGN.contains(&word)
}

/// 1064 if the first word begins no statement. The rest is checked when the statement runs.
pub(crate) fn check_word(statement: &OtherStatement) -> Result<(), SqlError> {
    if KNOWN.contains(&statement.word.as_str()) || is_foreign(&statement.word) {
        return Ok(());
    }
    Err(statement.words()?.error())
}

/// True for a statement that defines tables or looks after them: it uses a table.
pub(crate) fn defines_or_maintains(statement: &OtherStatement) -> bool {
    const WORDS: &[&str] = &[
        "ALTER", "ANALYZE", "CHECK", "CHECKSUM", "CREATE", "DROP", "OPTIMIZE", "RENAME", "REPAIR", "TRUNCATE",
    ];
    WORDS.contains(&statement.word.as_str())
}

/// True for a text that begins a stored program: its body may have semicolons.
pub(crate) fn has_a_body(text: &str) -> bool {
    /// How many words may stand between CREATE and the kind, such as those of a DEFINER.
    const WORDS_BETWEEN: usize = 12;
    let text = parse::skip_comments(text);
    let mut words = text.split_ascii_whitespace();
    let is = |word: &str, names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    words.next().is_some_and(|first| is(first, &["CREATE"]))
        && words
            .take(WORDS_BETWEEN)
            .any(|word| is(word, &["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"]))
}

/// 1235 for a kind of object that is not supported, 1064 for a word that is no kind of object.
fn unsupported(statement: &str, words: &mut Words<'_>) -> SqlError {
    const KINDS: &[&str] = &[
        "VIEW",
        "TRIGGER",
        "PROCEDURE",
        "FUNCTION",
        "EVENT",
        "SERVER",
        "SEQUENCE",
        "PACKAGE",
        "TEMPORARY",
        "FULLTEXT",
        "SPATIAL",
        "DEFINER",
        "ALGORITHM",
        "SQL",
        "AGGREGATE",
        "TABLESPACE",
        "LOGFILE",
    ];
    match KINDS.iter().find(|kind| words.is(kind)) {
        Some(kind) => SqlError::not_supported(&format!("{statement} {kind}")),
        None => words.error(),
    }
}

fn create(session: &mut Session, words: &mut Words<'_>, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
    let or_replace = words.accept_all(&["OR", "REPLACE"]);
    if words.accept("TABLE") {
        return ddl::create_table(session, words, or_replace, sink);
    }
    if words.accept("DATABASE") || words.accept("SCHEMA") {
        return ddl::create_database(session, words, sink);
    }
    if words.accept("USER") {
        return accounts::create_user(session, words, or_replace, sink);
    }
    if words.accept("ROLE") {
        return accounts::create_role(session, words, or_replace, sink);
    }
    if words.accept_all(&["UNIQUE", "INDEX"]) {
        return ddl::create_index(session, words, true, sink);
    }
    if words.accept("INDEX") {
        return ddl::create_index(session, words, false, sink);
    }
    Err(unsupported("CREATE", words))
}

fn drop(session: &mut Session, words: &mut Words<'_>, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
    if words.accept_all(&["TEMPORARY", "TABLE"]) || words.accept("TABLE") || words.accept("TABLES") {
        return ddl::drop_table(session, words, sink);
    }
    if words.accept("DATABASE") || words.accept("SCHEMA") {
        return ddl::drop_database(session, words, sink);
    }
    if words.accept("INDEX") {
        return ddl::drop_index(session, words, sink);
    }
    if words.is("PREPARE") {
        return prepared::deallocate(session, words, sink);
    }
    if words.is("USER") || words.is("ROLE") {
        let roles = words.is("ROLE");
        words.next();
        return accounts::drop_user(session, words, roles, sink);
    }
    // There are none, so there is nothing to drop.
    for kind in ["VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT"] {
        if words.accept(kind) && words.accept_all(&["IF", "EXISTS"]) {
            words.qualified_name()?;
            words.end()?;
            return session.done(0, String::new(), sink);
        }
    }
    Err(unsupported("DROP", words))
}

fn alter(session: &mut Session, words: &mut Words<'_>, sink: &mut dyn ResultSink) -> Result<(), SqlError> {
    if words.accept("USER") {
        return accounts::alter_user(session, words, sink);
    }
    words.accept("ONLINE");
    words.accept("IGNORE");
    if words.accept("TABLE") {
        return ddl::alter_table(session, words, sink);
    }
    if words.accept("DATABASE") || words.accept("SCHEMA") {
        return ddl::alter_database(session, words, sink);
    }
    Err(unsupported("ALTER", words))
}

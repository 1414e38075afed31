//! SET.

use crate::accounts::Rights;
use crate::session::transaction::Characteristics;
use crate::text::LexicalMode;
use crate::text::parse::{self, Statement, Word, Words};
use crate::variables::{
    Asked, Assigned, PasswordPolicy, SessionVariables, Setting, Variable, find, structured,
};
use crate::{ColumnMeta, Completion, ErrorKind, ResultSink, Session, SqlError};
use engine::Isolation;
use types::{Value, ValueRef};

/// An assignment that was checked but not yet made.
enum Checked {
    Variable {
        asked: Asked,
        variable: Variable,
        setting: Setting,
    },
    Component {
        cache: String,
        variable: Variable,
        setting: Setting,
    },
    User {
        name: String,
        value: Value,
    },
    Names {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// SET TRANSACTION.
    NextTransaction(Characteristics),
    /// SET CHARACTER SET: as NAMES, but the connection's collation is that of the database.
    CharacterSet(Option<String>),
}

/// The right side of an assignment.
enum Right {
    Default,
    Value(Value),
}

/// SET, behind that word. All assignments are checked before the first is made.
pub(crate) fn set(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let mut checked = Vec::new();
    let mut asked = Asked::Unscoped;
    loop {
        if let Some(scope) = scope_keyword(words) {
            asked = scope;
        }
        if words.is("TRANSACTION") {
            set_transaction(session, words, asked, &mut checked)?;
        } else {
            checked.push(assignment(session, words, asked)?);
        }
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.end()?;
    checked.iter().try_for_each(|assignment| check_right(session, assignment))?;
    let autocommit = session.variables.common.autocommit;
    let done = checked.into_iter().try_for_each(|assignment| carry_out(session, assignment));
    session.after_set();
    done?;
    if !autocommit && session.variables.common.autocommit {
        session.end_transaction(true)?;
    }
    session.done(0, String::new(), sink)
}

fn scope_keyword(words: &mut Words<'_>) -> Option<Asked> {
    // `SET global.x` names a key cache called global. The word is a scope only if a name follows.
    let is_scope = matches!(words.peek_second(), Word::Bare(_) | Word::Name(_));
    if !is_scope {
        return None;
    }
    if words.accept("GLOBAL") {
        return Some(Asked::Global);
    }
    (words.accept("SESSION") || words.accept("LOCAL")).then_some(Asked::Session)
}

/// Variables that SET STATEMENT cannot set, as in MariaDB: they belong to the connection, or to the
/// transaction.
const NOT_FOR_STATEMENTS: &[&str] = &[
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_filesystem",
    "collation_connection",
    "interactive_timeout",
    "profiling",
    "profiling_history_size",
    "query_cache_type",
    "rand_seed1",
    "rand_seed2",
    "skip_replication",
    "sql_log_off",
    "tx_isolation",
    "wait_timeout",
];

/// The variables of SET STATEMENT.
pub(crate) struct StatementVariables {
    wanted: Vec<(Variable, Setting)>,
    /// What the session had.
    before: Box<SessionVariables>,
}

impl StatementVariables {
    pub(crate) fn new(session: &Session) -> StatementVariables {
        StatementVariables { wanted: vec![], before: Box::new(session.variables.clone()) }
    }

    /// Forgets the variables that were read.
    pub(crate) fn forget(&mut self) {
        self.wanted.clear();
    }

    /// Reads and checks `variable = value, ...`, up to FOR.
    ///
    /// # Errors
    /// 1064, 1193, 1229, 1971, and those of the values.
    pub(crate) fn read(&mut self, session: &mut Session, words: &mut Words<'_>) -> Result<(), SqlError> {
        loop {
            if matches!(words.peek(), Word::Bare(word) if word.starts_with('@')) {
                return Err(words.error());
            }
            let name = words.name()?;
            match system_assignment(session, words, Asked::Session, name)? {
                Checked::Variable { variable, setting, .. } => {
                    let name = variable.definition().name;
                    if NOT_FOR_STATEMENTS.contains(&name) {
                        let text = format!("The system variable {name} cannot be set in SET STATEMENT.");
                        return Err(SqlError::new(ErrorKind::NotForStatement, text));
                    }
                    self.wanted.push((variable, setting));
                }
                Checked::Component { variable, .. } => {
                    let name = variable.definition().name;
                    let text =
                        format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL");
                    return Err(SqlError::new(ErrorKind::GlobalVariable, text));
                }
                _ => return Err(words.error()),
            }
            if !words.accept_symbol(",") {
                return Ok(());
            }
        }
    }

    /// # Errors
    /// Those of a variable's effect.
    pub(crate) fn set(&self, session: &mut Session) -> Result<(), SqlError> {
        let globals = session.instance.clone();
        let mut wanted = self.wanted.iter().cloned();
        let done = wanted.try_for_each(|(variable, setting)| {
            session.variables.apply(&globals.globals, Asked::Session, variable, setting)
        });
        session.after_set();
        done
    }

    /// Gives the variables back what they had. Others keep what the statement has set.
    ///
    /// # Errors
    /// As [`StatementVariables::set`].
    pub(crate) fn restore(self, session: &mut Session) -> Result<(), SqlError> {
        let instance = session.instance.clone();
        let StatementVariables { wanted, before } = self;
        let mut done = Ok(());
        for (variable, _) in wanted {
            let variables = &mut session.variables;
            match variable.definition().name {
                "last_insert_id" | "identity" => variables.last_insert_id = before.last_insert_id,
                "insert_id" => variables.insert_id = before.insert_id,
                "timestamp" => variables.fixed_timestamp = before.fixed_timestamp,
                "pseudo_thread_id" => variables.pseudo_thread_id = before.pseudo_thread_id,
                _ => {
                    let old = before.values().get(variable).clone();
                    let result = variables.apply(&instance.globals, Asked::Session, variable, old);
                    done = done.and(result);
                }
            }
        }
        session.after_set();
        done
    }
}

fn assignment(session: &mut Session, words: &mut Words<'_>, asked: Asked) -> Result<Checked, SqlError> {
    if asked == Asked::Unscoped {
        if words.accept("NAMES") {
            return names(words);
        }
        if words.accept_all(&["CHARACTER", "SET"]) || words.accept("CHARSET") {
            return Ok(Checked::CharacterSet(charset_name(words)?));
        }
    }
    let before = words.error();
    let Word::Bare(first) = words.peek().clone() else {
        if let Word::Name(_) = words.peek() {
            let name = words.name()?;
            return system_assignment(session, words, asked, name);
        }
        return Err(before);
    };
    if let Some(scoped) = first.strip_prefix("@@") {
        words.next();
        return at_at_assignment(session, words, scoped);
    }
    if let Some(name) = first.strip_prefix('@') {
        words.next();
        let name = if name.is_empty() {
            match words.next() {
                Word::Text(name) | Word::Name(name) | Word::Bare(name) => name,
                _ => return Err(before),
            }
        } else {
            name.to_owned()
        };
        expect_equals(words)?;
        let value = match expression(session, words, false)? {
            Right::Value(value) => value,
            Right::Default => return Err(before),
        };
        return Ok(Checked::User { name: name.to_lowercase(), value });
    }
    words.next();
    system_assignment(session, words, asked, first)
}

fn expect_equals(words: &mut Words<'_>) -> Result<(), SqlError> {
    if words.accept_symbol("=") || words.accept_symbol(":=") {
        return Ok(());
    }
    // The tokenizer may make two tokens of `:=`.
    if words.accept_symbol(":") {
        return words.expect_symbol("=");
    }
    Err(words.error())
}

/// `@@x`, `@@global.x`, `@@session.x`, `@@hot.x`, `@@global.hot.x`. `scoped` is the word directly behind
/// `@@`.
fn at_at_assignment(session: &mut Session, words: &mut Words<'_>, scoped: &str) -> Result<Checked, SqlError> {
    let first = if scoped.is_empty() { words.name()? } else { scoped.to_owned() };
    let asked = match first.to_ascii_lowercase().as_str() {
        "global" => Some(Asked::Global),
        "session" | "local" => Some(Asked::Session),
        _ => None,
    };
    let Some(asked) = asked.filter(|_| !scoped.is_empty()) else {
        return system_assignment(session, words, Asked::Unscoped, first);
    };
    words.expect_symbol(".")?;
    let name = match words.peek().clone() {
        Word::Bare(name) => {
            words.next();
            name
        }
        _ => words.name()?,
    };
    system_assignment(session, words, asked, name)
}

/// `name = value` or `cache.name = value`, behind the first name.
fn system_assignment(
    session: &mut Session,
    words: &mut Words<'_>,
    asked: Asked,
    first: String,
) -> Result<Checked, SqlError> {
    let (cache, name) = if words.accept_symbol(".") { (Some(first), words.name()?) } else { (None, first) };
    expect_equals(words)?;
    let variable = match &cache {
        // A scope stands where the name of a cache is expected.
        Some(cache)
            if ["global", "session", "local"].iter().any(|scope| cache.eq_ignore_ascii_case(scope)) =>
        {
            return Err(structured::unknown_structure(cache));
        }
        Some(cache) => structured::component_to_set(cache, &name)?,
        None => find(&name).ok_or_else(|| crate::variables::unknown(&name))?,
    };
    let right = expression(session, words, true)?;
    let text;
    let assigned = match &right {
        Right::Default => Assigned::Default,
        Right::Value(value) => match value {
            Value::Null => Assigned::Null,
            Value::Int(value) => Assigned::Int(*value),
            Value::UInt(value) => Assigned::UInt(*value),
            Value::Float(value) => Assigned::Real(f64::from(*value)),
            Value::Double(value) => Assigned::Real(*value),
            Value::Decimal(value) => Assigned::Real(value.to_f64()),
            other => {
                let mut out = String::new();
                crate::text::push_text(other.as_ref(), &mut out);
                text = out;
                Assigned::Text(&text)
            }
        },
    };
    let setting = session.variables.check(
        &session.instance.globals,
        asked,
        variable,
        &name.to_ascii_lowercase(),
        assigned,
        &mut session.state.warnings,
    )?;
    match cache {
        Some(cache) if !structured::is_default(&cache) => Ok(Checked::Component { cache, variable, setting }),
        _ => Ok(Checked::Variable { asked, variable, setting }),
    }
}

fn charset_name(words: &mut Words<'_>) -> Result<Option<String>, SqlError> {
    if words.accept("DEFAULT") {
        return Ok(None);
    }
    match words.peek() {
        Word::Text(_) => words.string().map(Some),
        _ => words.name().map(Some),
    }
}

fn names(words: &mut Words<'_>) -> Result<Checked, SqlError> {
    let charset = charset_name(words)?;
    let collation = if words.accept("COLLATE") { charset_name(words)? } else { None };
    Ok(Checked::Names { charset, collation })
}

/// SET TRANSACTION. Without a scope it holds for the next transaction only.
fn set_transaction(
    session: &mut Session,
    words: &mut Words<'_>,
    asked: Asked,
    checked: &mut Vec<Checked>,
) -> Result<(), SqlError> {
    words.expect("TRANSACTION")?;
    let wanted = crate::statements::transaction::characteristics(words)?;
    if asked == Asked::Unscoped {
        if session.state.transaction.open {
            let text = "Transaction characteristics can't be changed while a transaction is in progress";
            return Err(SqlError::new(ErrorKind::TransactionUnderWay, text));
        }
        checked.push(Checked::NextTransaction(wanted));
        return Ok(());
    }
    let isolation = wanted.isolation.map(|isolation| match isolation {
        Isolation::ReadUncommitted => "READ-UNCOMMITTED",
        Isolation::ReadCommitted => "READ-COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE-READ",
        Isolation::Serializable => "SERIALIZABLE",
    });
    let read_only = wanted.read_only.map(|on| if on { "ON" } else { "OFF" });
    for (name, value) in [("tx_isolation", isolation), ("tx_read_only", read_only)] {
        let (Some(value), Some(variable)) = (value, find(name)) else { continue };
        let setting = session.variables.check(
            &session.instance.globals,
            asked,
            variable,
            name,
            Assigned::Text(value),
            &mut session.state.warnings,
        )?;
        checked.push(Checked::Variable { asked, variable, setting });
    }
    Ok(())
}

/// Variables that those may set who look after connections.
const OF_CONNECTIONS: &[&str] = &[
    "connect_timeout",
    "extra_max_connections",
    "init_connect",
    "max_connect_errors",
    "max_connections",
    "max_password_errors",
    "proxy_protocol_networks",
    "secure_auth",
    "slow_launch_time",
    "thread_pool_size",
];

/// # Errors
/// 1227 for a global variable, without the right to set it.
fn check_right(session: &Session, assignment: &Checked) -> Result<(), SqlError> {
    let name = match assignment {
        Checked::Variable { asked: Asked::Global, variable, .. } => variable.definition().name,
        Checked::Component { variable, .. } => variable.definition().name,
        _ => return Ok(()),
    };
    let wanted = match name {
        "read_only" => Rights::READ_ONLY_ADMIN,
        name if OF_CONNECTIONS.contains(&name) => Rights::SUPER | Rights::CONNECTION_ADMIN,
        _ => Rights::SUPER,
    };
    session.access.check_any_global(wanted)
}

fn carry_out(session: &mut Session, assignment: Checked) -> Result<(), SqlError> {
    let instance = session.instance.clone();
    if !matches!(&assignment, Checked::Variable { asked: Asked::Global, .. } | Checked::Component { .. }) {
        session.note_state();
    }
    match assignment {
        Checked::Variable { asked, variable, setting } => {
            session.variables.apply(&instance.globals, asked, variable, setting)?;
            if variable.definition().name.starts_with("simple_password_check_") {
                return adjust_password_length(session);
            }
            Ok(())
        }
        Checked::Component { cache, variable, setting } => {
            structured::apply(&instance.database, &cache, variable, &setting)
        }
        Checked::NextTransaction(wanted) => {
            let next = &mut session.state.transaction.next;
            next.isolation = wanted.isolation.or(next.isolation);
            next.read_only = wanted.read_only.or(next.read_only);
            session.tracker.note_transaction();
            Ok(())
        }
        Checked::User { name, value } => session.state.user_variables.insert(name, value, &session.memory),
        Checked::Names { charset, collation } => {
            session.variables.set_names(charset.as_deref(), collation.as_deref())
        }
        Checked::CharacterSet(charset) => {
            session.variables.set_names(charset.as_deref(), None)?;
            let database = session.variables.values().text("collation_database");
            session.variables.set_connection_collation(&database);
            Ok(())
        }
    }
}

/// Makes the shortest length of passwords fit the other variables, one of which was set.
fn adjust_password_length(session: &mut Session) -> Result<(), SqlError> {
    let name = "simple_password_check_minimal_length";
    let globals = session.instance.globals();
    let values = globals.values();
    let (set, wanted) = (values.unsigned(name), PasswordPolicy::of(&values).bytes_min);
    if let Some(variable) = find(name)
        && set < wanted
    {
        globals.set(variable, Setting::Unsigned(wanted))?;
        let text = format!("Adjusted the value of {name} from {set} to {wanted}");
        session.state.warnings.warn(ErrorKind::TruncatedWrongValue, text);
    }
    Ok(())
}

/// Evaluates the tokens up to the next comma, USING or FOR. For a system variable, a word without quotes is
/// text, and DEFAULT is allowed.
fn expression(session: &mut Session, words: &mut Words<'_>, system: bool) -> Result<Right, SqlError> {
    let start = words.rest();
    let first = words.clone();
    let mut depth = 0usize;
    let mut count = 0;
    loop {
        match words.peek() {
            Word::End => break,
            Word::Bare(word)
                if depth == 0 && ["USING", "FOR"].iter().any(|end| word.eq_ignore_ascii_case(end)) =>
            {
                break;
            }
            Word::Symbol(symbol) if symbol == "," && depth == 0 => break,
            Word::Symbol(symbol) if symbol == ";" && depth == 0 => break,
            Word::Symbol(symbol) if symbol == "(" => depth += 1,
            Word::Symbol(symbol) if symbol == ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        words.next();
        count += 1;
    }
    let text = start[..start.len() - words.rest().len()].trim();
    if count == 0 {
        return Err(words.error());
    }
    let mut first = first;
    if let Some(right) = simple(session, &mut first, count, system)? {
        return Ok(right);
    }
    evaluate(session, text, words.mode()).map(Right::Value)
}

/// The value of the expression that ends at the next comma, at the word USING or at the end. Statements other
/// than SET use it too.
pub(crate) fn value(session: &mut Session, words: &mut Words<'_>) -> Result<Value, SqlError> {
    let error = words.error();
    match expression(session, words, false)? {
        Right::Value(value) => Ok(value),
        Right::Default => Err(error),
    }
}

/// A right side that needs no evaluation: a literal, a word, `@x`.
fn simple(
    session: &Session,
    words: &mut Words<'_>,
    count: usize,
    system: bool,
) -> Result<Option<Right>, SqlError> {
    let negative = count == 2 && words.accept_symbol("-");
    if count != 1 && !negative {
        return Ok(None);
    }
    let value = match words.next() {
        Word::Number(text) => {
            let text = if negative { format!("-{text}") } else { text };
            match (text.parse::<i64>(), text.parse::<u64>()) {
                (Ok(number), _) => Value::Int(number),
                (_, Ok(number)) => Value::UInt(number),
                _ => return Ok(None),
            }
        }
        _ if negative => return Ok(None),
        Word::Text(text) => Value::text(text),
        Word::Bare(word) => match word.to_ascii_uppercase().as_str() {
            "DEFAULT" if system => return Ok(Some(Right::Default)),
            "NULL" => Value::Null,
            "TRUE" => Value::Int(1),
            "FALSE" => Value::Int(0),
            _ if word.starts_with("@@") => return Ok(None),
            _ if word.starts_with('@') && word.len() > 1 => {
                let name = word[1..].to_lowercase();
                session.state.user_variables.get(&name).cloned().unwrap_or(Value::Null)
            }
            // ON, binary, utf8mb4 and other words that cannot be columns here.
            _ if system => Value::text(word),
            _ => return Ok(None),
        },
        Word::Name(name) if system => Value::text(name),
        _ => return Ok(None),
    };
    Ok(Some(Right::Value(value)))
}

/// Keeps the first value of a result.
#[derive(Default)]
struct FirstValue(Option<Value>);

impl ResultSink for FirstValue {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> Result<(), SqlError> {
        Ok(())
    }
    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if self.0.is_none() {
            self.0 = row.first().map(ValueRef::to_value);
        }
        Ok(())
    }
    fn end(&mut self, _completion: &Completion) -> Result<(), SqlError> {
        Ok(())
    }
}

/// The value of an expression. It is run as a query.
pub(crate) fn evaluate(session: &mut Session, text: &str, mode: LexicalMode) -> Result<Value, SqlError> {
    let statement = parse::parse(&format!("SELECT {text}"), mode)?;
    let Statement::Query(query) = statement else { return Err(SqlError::syntax(text, 1)) };
    let counts = (session.state.found_rows, session.state.row_count);
    let mut first = FirstValue::default();
    let result = session.plan_and_run_inner(&query, &mut first);
    (session.state.found_rows, session.state.row_count) = counts;
    result?;
    Ok(first.0.unwrap_or(Value::Null))
}

//! What functions tell about the session, and functions that wait.

use super::arguments::{Arguments, Result, int};
use crate::expr::evaluate::convert::new_text;
use crate::expr::result_type::Typed;
use crate::{ErrorKind, ToldAs};
use base::random::Random;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use types::{Value, ValueRef};

functions! {
    "Session Functions";

    VERSION {
        name: "version",
        arguments: "",
        arity: 0..=0,
        typing: |t| Ok(t.system(60, false)),
        evaluate: |a| Ok(match a.context.environment.system_variable(Default::default(), None, "version")? {
            Value::Text(version) => ValueRef::Text(a.context.arena.alloc_slice_copy(&version)),
            _ => ValueRef::Null,
        }),
        help: "Gives the version of the server.",
    }
    DATABASE {
        name: "database",
        aliases: ["schema"],
        arguments: "",
        arity: 0..=0,
        typing: |t| Ok(t.system(64, true)),
        evaluate: |a| Ok(new_text(or_null!(a.context.environment.database()), a.context)),
        help: "Gives the name of the session's database, or NULL if it uses none.",
    }
    USER {
        name: "user",
        aliases: ["session_user", "system_user"],
        arguments: "",
        arity: 0..=0,
        typing: |t| Ok(t.system(384, true)),
        evaluate: |a| Ok(new_text(a.context.environment.user(), a.context)),
        help: "Gives the name and host that the client logged in with.",
        example: "USER()" => "root@localhost",
    }
    CURRENT_USER {
        name: "current_user",
        arguments: "",
        arity: 0..=0,
        typing: |t| Ok(t.system(384, true)),
        evaluate: |a| Ok(new_text(a.context.environment.current_user(), a.context)),
        help: "Gives the account, as name and host, that the session has. The parentheses may be left out.",
        example: "CURRENT_USER()" => "root@localhost",
    }
    CURRENT_ROLE {
        name: "current_role",
        arguments: "",
        arity: 0..=0,
        typing: |t| Ok(t.system(384, true)),
        evaluate: |a| Ok(new_text(or_null!(a.context.environment.current_role()), a.context)),
        help: "Gives the role that the session has, or NULL if it has none. The parentheses may be left out.",
    }
    CONNECTION_ID {
        name: "connection_id",
        arguments: "",
        arity: 0..=0,
        typing: |_| Ok(Typed::int(4, true, false).with_display(10)),
        evaluate: |a| Ok(ValueRef::UInt(a.context.environment.connection_id())),
        help: "Gives the number of the connection, which SHOW PROCESSLIST lists and KILL takes.",
    }
    MYSQL_QUERY_ATTRIBUTE_STRING {
        name: "mysql_query_attribute_string",
        arguments: "name",
        arity: 1..=1,
        typing: |t| Ok(t.system(65_535, true)),
        evaluate: |a| {
            let name = or_null!(a.text(0)?);
            let name = String::from_utf8_lossy(name);
            let value = or_null!(a.context.environment.query_attribute(&name));
            let mut text = String::new();
            match value {
                Value::Null => return Ok(ValueRef::Null),
                value => crate::text::push_text(value.as_ref(), &mut text),
            }
            Ok(new_text(&text, a.context))
        },
        help: "Gives the query attribute of this name that the client has sent with the statement, or NULL.",
    }
    LAST_INSERT_ID {
        name: "last_insert_id",
        arguments: "[number]",
        arity: 0..=1,
        constancy: ChangesSession,
        typing: |_| Ok(Typed::int(8, true, false).with_display(21)),
        evaluate: |a| {
            let environment = a.context.environment;
            if a.len() == 0 {
                return Ok(ValueRef::UInt(environment.last_insert_id()));
            }
            let id = or_null!(a.int(0)?) as u64;
            environment.set_last_insert_id(id);
            Ok(ValueRef::UInt(id))
        },
        help: "Gives the first AUTO_INCREMENT value that the last INSERT of the session made. With an argument: \
               gives it, and so does the next LAST_INSERT_ID().",
    }
    FOUND_ROWS {
        name: "found_rows",
        arguments: "",
        arity: 0..=0,
        typing: |_| Ok(Typed::int(8, false, false).with_display(21)),
        evaluate: |a| int(a.context.environment.found_rows() as i64),
        help: "Gives the number of rows of the last SELECT. With SQL_CALC_FOUND_ROWS its LIMIT does not count.",
    }
    ROW_COUNT {
        name: "row_count",
        arguments: "",
        arity: 0..=0,
        typing: |_| Ok(Typed::int(8, false, false).with_display(21)),
        evaluate: |a| int(a.context.environment.row_count()),
        help: "Gives the number of rows that the last statement changed, and -1 after a statement with a result set.",
    }
    UUID {
        name: "uuid",
        arguments: "",
        arity: 0..=0,
        constancy: Visible,
        typing: |t| Ok(t.system(36, true).told_as(ToldAs::Char)),
        evaluate: |a| Ok(new_text(uuid(), a.context)),
        help: "Gives a new random UUID (version 4).",
    }
    SLEEP {
        name: "sleep",
        arguments: "seconds",
        arity: 1..=1,
        constancy: Visible,
        typing: |_| Ok(Typed::int(4, false, false).with_display(1)),
        evaluate: sleep,
        help: "Waits, and gives 0. Gives 1 if KILL ended the wait.",
        example: "SLEEP(0)" => "0",
    }
    BENCHMARK {
        name: "benchmark",
        arguments: "count, value",
        arity: 2..=2,
        constancy: Visible,
        typing: |_| Ok(Typed::int(4, false, false).with_display(1)),
        evaluate: |a| {
            for _ in 0..or_null!(a.int(0)?).max(0) {
                if a.context.environment.check_interrupt().is_err() {
                    break;
                }
                a.value(1)?;
            }
            int(0)
        },
        help: "Evaluates a value so many times, and gives 0. The time of the statement tells how long that took.",
        example: "BENCHMARK(10, MD5('a'))" => "0",
    }
    CHARSET {
        name: "charset",
        arguments: "text",
        arity: 1..=1,
        collation: Connection,
        typing: |t| Ok(t.system(64, true)),
        evaluate: |a| Ok(ValueRef::Text(a.call.argument_collation.0.character_set().as_bytes())),
        help: "Gives the name of a text's character set.",
        example: "CHARSET('a')" => "utf8mb4",
    }
    COLLATION_OF {
        name: "collation",
        arguments: "text",
        arity: 1..=1,
        collation: Connection,
        typing: |t| Ok(t.system(64, true)),
        evaluate: |a| Ok(ValueRef::Text(a.call.argument_collation.0.name().as_bytes())),
        help: "Gives the name of a text's collation.",
        example: "COLLATION('a')" => "utf8mb4_general_ci",
    }
    COERCIBILITY {
        name: "coercibility",
        arguments: "text",
        arity: 1..=1,
        collation: Connection,
        typing: |_| Ok(Typed::int(4, false, false).with_display(10)),
        evaluate: |a| int(a.call.argument_collation.1),
        help: "Tells how strongly a text insists on its collation: 0 for COLLATE, 2 for a column, 3 for what the \
               system gives, 4 for a literal, 5 for a number, 6 for NULL.",
        example: "COERCIBILITY('a')" => "4",
    }
}

fn sleep<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    // The wait goes on in short parts, so that KILL can end it.
    const PART: Duration = Duration::from_millis(50);
    let seconds = arguments.double(0)?.unwrap_or(0.0).clamp(0.0, 1e9);
    let mut left = Duration::from_secs_f64(seconds);
    while !left.is_zero() {
        match arguments.context.environment.check_interrupt() {
            Err(error) if error.kind == ErrorKind::StatementTimeout => return Err(error),
            Err(_) => return int(1),
            Ok(()) => {}
        }
        let part = left.min(PART);
        base::sync::thread::sleep(part);
        left -= part;
    }
    int(0)
}

/// A random UUID (version 4).
pub(super) fn uuid() -> String {
    let random = || RandomState::new().hash_one(std::time::Instant::now());
    let (a, b) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        0x8000 | b >> 48 & 0x3fff,
        b & 0xffff_ffff_ffff
    )
}

/// A random number from 0 up to 1.
pub(super) fn random() -> f64 {
    thread_local! {
        static STATE: RefCell<Random> = RefCell::new(Random::new(RandomState::new().hash_one(0), 0));
    }
    STATE.with_borrow_mut(Random::unit)
}

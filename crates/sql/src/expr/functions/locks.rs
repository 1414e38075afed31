//! Locks on names.

use super::arguments::{Arguments, Result, int};
use super::typing::Typing;
use crate::expr::result_type::Typed;
use crate::{ErrorKind, SqlError};
use std::time::Duration;
use types::ValueRef;

functions! {
    "Locks on Names";

    GET_LOCK {
        name: "get_lock",
        arguments: "name, seconds",
        arity: 2..=2,
        constancy: Visible,
        typing: of_name::<1>,
        evaluate: get_lock,
        help: "Locks a name for the session, and waits so many seconds if another session has locked it. Gives 1, or 0 \
               if the time is over. A session can lock a name several times, and its end releases all.",
    }
    RELEASE_LOCK {
        name: "release_lock",
        arguments: "name",
        arity: 1..=1,
        constancy: Visible,
        typing: of_name::<1>,
        evaluate: |a| {
            let name = or_null!(name(a)?);
            int(or_null!(a.context.environment.release_lock(name)) as i64)
        },
        help: "Undoes one GET_LOCK and gives 1. Gives 0 if another session has locked the name, and NULL if none has.",
    }
    RELEASE_ALL_LOCKS {
        name: "release_all_locks",
        arguments: "",
        arity: 0..=0,
        constancy: Visible,
        typing: |_| Ok(Typed::int(4, true, false).with_display(11)),
        evaluate: |a| Ok(ValueRef::UInt(a.context.environment.release_all_locks())),
        help: "Undoes each GET_LOCK of the session, and gives their number.",
    }
    IS_FREE_LOCK {
        name: "is_free_lock",
        arguments: "name",
        arity: 1..=1,
        constancy: Visible,
        typing: of_name::<1>,
        evaluate: |a| {
            let name = or_null!(name(a)?);
            int(a.context.environment.lock_owner(name).is_none() as i64)
        },
        help: "Gives 1 if no session has locked the name, and 0 if one has.",
    }
    IS_USED_LOCK {
        name: "is_used_lock",
        arguments: "name",
        arity: 1..=1,
        constancy: Visible,
        typing: of_name::<10>,
        evaluate: |a| {
            let name = or_null!(name(a)?);
            int(or_null!(a.context.environment.lock_owner(name)) as i64)
        },
        help: "Gives the number of the connection that has locked the name, or NULL if none has.",
    }
}

/// The longest name of a lock.
const NAME_BYTES_MAX: usize = 192;
/// The longest wait, in seconds: longer ones end as late as that.
const WAIT_SECONDS_MAX: f64 = 1e9;

/// An integer of so many characters; the first argument must be a text.
fn of_name<const CHARS: u32>(typing: &mut Typing<'_>) -> std::result::Result<Typed, SqlError> {
    typing.expect_text(0)?;
    Ok(Typed::int(4, false, true).with_display(CHARS))
}

/// The name of a lock: its bytes, since case and accents matter. `None` for NULL and an empty name.
fn name<'a>(arguments: &Arguments<'a, '_>) -> Result<Option<&'a [u8]>> {
    checked(arguments.expected_text(0)?)
}

fn checked(name: Option<&[u8]>) -> Result<Option<&[u8]>> {
    match name {
        Some([]) | None => Ok(None),
        Some(name) if name.len() <= NAME_BYTES_MAX => Ok(Some(name)),
        Some(name) => {
            // As many bytes as MariaDB's message shows.
            const SHOWN_BYTES: usize = 97;
            let shown = String::from_utf8_lossy(name);
            let end = (0..=SHOWN_BYTES.min(shown.len())).rev().find(|end| shown.is_char_boundary(*end));
            let message = format!("Identifier name '{}...' is too long", &shown[..end.unwrap_or(0)]);
            Err(SqlError::new(ErrorKind::IdentifierTooLong, message))
        }
    }
}

fn get_lock<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = arguments.expected_text(0)?;
    let value = arguments.value(1)?;
    let seconds = crate::expr::evaluate::convert::to_f64(&value, arguments.context);
    let refused = match (seconds, value) {
        (None, _) => Some("NULL".to_string()),
        (Some(_), ValueRef::UInt(_)) => None,
        // What is too large for a number of 64 bits becomes the smallest one.
        (Some(seconds), _) if seconds >= i64::MAX as f64 => Some(i64::MIN.to_string()),
        (Some(seconds), _) if seconds <= -1.0 => Some((seconds as i64).to_string()),
        (Some(_), _) => None,
    };
    if let Some(refused) = refused {
        let message = format!("Incorrect timeout value: '{refused}' for function get_lock");
        arguments.context.environment.warn(ErrorKind::WrongValueForFunction, message);
        return Ok(ValueRef::Null);
    }
    let name = or_null!(checked(text)?);
    let wait = Duration::from_secs_f64(seconds.unwrap_or(0.0).clamp(0.0, WAIT_SECONDS_MAX));
    int(or_null!(arguments.context.environment.get_lock(name, wait)?) as i64)
}

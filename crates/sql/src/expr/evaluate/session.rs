//! What functions tell about the session.

use super::super::Function;
use super::Result;
use super::calls::Arguments;
use super::convert::new_text;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use types::{Collation, Value, ValueRef};

pub(super) fn call<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let context = arguments.context;
    let environment = context.environment;
    let (collation, coercibility) = arguments.call.argument_collation;
    Ok(match arguments.call.function {
        Function::Version => match environment.system_variable(Default::default(), None, "version")? {
            Value::Text(version) => ValueRef::Text(context.arena.alloc_slice_copy(&version)),
            _ => ValueRef::Null,
        },
        Function::Database => match environment.database() {
            Some(database) => new_text(database, context),
            None => ValueRef::Null,
        },
        Function::User | Function::CurrentUser => new_text(environment.user(), context),
        Function::ConnectionId => ValueRef::UInt(environment.connection_id()),
        Function::LastInsertId if arguments.len() == 1 => match arguments.int(0)? {
            Some(id) => {
                environment.set_last_insert_id(id as u64);
                ValueRef::UInt(id as u64)
            }
            None => ValueRef::Null,
        },
        Function::LastInsertId => ValueRef::UInt(environment.last_insert_id()),
        Function::FoundRows => ValueRef::Int(environment.found_rows() as i64),
        Function::RowCount => ValueRef::Int(environment.row_count()),
        Function::Uuid => new_text(uuid(), context),
        Function::Sleep => {
            // A tick at a time, so that KILL ends it.
            const TICK: Duration = Duration::from_millis(50);
            let seconds = arguments.double(0)?.unwrap_or(0.0).clamp(0.0, 1e9);
            let mut left = Duration::from_secs_f64(seconds);
            while !left.is_zero() {
                if environment.check_interrupt().is_err() {
                    return Ok(ValueRef::Int(1));
                }
                let tick = left.min(TICK);
                base::sync::thread::sleep(tick);
                left -= tick;
            }
            ValueRef::Int(0)
        }
        Function::Benchmark => {
            let Some(count) = arguments.int(0)? else { return Ok(ValueRef::Null) };
            for _ in 0..count.max(0) {
                if environment.check_interrupt().is_err() {
                    break;
                }
                arguments.value(1)?;
            }
            ValueRef::Int(0)
        }
        Function::Charset => ValueRef::Text(collation.character_set().as_bytes()),
        Function::CollationOf => ValueRef::Text(collation.name().as_bytes()),
        Function::Coercibility => ValueRef::Int(coercibility),
        _ => {
            debug_assert!(collation != Collation::Binary, "not a function of this module");
            ValueRef::Null
        }
    })
}

/// A random UUID (version 4).
fn uuid() -> String {
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
    use std::cell::Cell;
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1);
    }
    // xorshift64*, by Vigna (2016).
    STATE.with(|state| {
        let mut next = state.get();
        next ^= next >> 12;
        next ^= next << 25;
        next ^= next >> 27;
        state.set(next);
        (next.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    })
}

//! The parameters of COM_STMT_EXECUTE: a null bitmap, a flag that says whether types follow, the types, the
//! values. Types are sent with the first execution and hold for the next ones. Values that were sent ahead by
//! COM_STMT_SEND_LONG_DATA are absent here.

use crate::Malformed;
use crate::constants::kind;
use crate::cursor::Cursor;
use crate::value::{WireType, WireValue};

/// Reads the parameters of a statement that takes `count` of them.
///
/// `types` are those of the statement's last execution. They are replaced if the packet has new ones.
/// `long_data` returns what was sent ahead for a parameter. `each` gets the values in order.
///
/// # Errors
/// The packet ends too early, or a parameter has no type or an unknown one.
pub fn read<'a>(
    encoded: &'a [u8],
    count: usize,
    types: &mut Vec<WireType>,
    long_data: impl Fn(usize) -> Option<&'a [u8]>,
    mut each: impl FnMut(WireValue<'a>),
) -> Result<(), Malformed> {
    if count == 0 {
        return Ok(());
    }
    let mut cursor = Cursor::new(encoded);
    let nulls = cursor.bytes(count.div_ceil(8), "null bitmap")?;
    match cursor.u8("new parameters flag")? {
        0 => {}
        1 => {
            let new = cursor.bytes(count * 2, "types of parameters")?;
            types.clear();
            types.extend(
                new.chunks_exact(2).map(|pair| WireType { kind: pair[0], unsigned: pair[1] & 0x80 != 0 }),
            );
        }
        _ => return Err(Malformed::new("new parameters flag")),
    }
    if types.len() != count {
        return Err(Malformed::new("types of parameters"));
    }
    for (position, &of) in types.iter().enumerate() {
        if let Some(data) = long_data(position) {
            let binary =
                matches!(of.kind, kind::TINY_BLOB | kind::MEDIUM_BLOB | kind::LONG_BLOB | kind::BLOB);
            each(if binary { WireValue::Binary(data) } else { WireValue::Text(data) });
        } else if nulls[position / 8] & 1 << (position % 8) != 0 {
            each(WireValue::Null);
        } else {
            // Numbers are handed over as they are read: a value that is returned, and copied so soon after,
            // has to wait for its parts to be stored.
            match of {
                WireType { kind: kind::LONGLONG, unsigned: false } => {
                    each(WireValue::Int(cursor.u64("bigint")? as i64));
                }
                WireType { kind: kind::LONG, unsigned: false } => {
                    each(WireValue::Int((cursor.u32("int")? as i32).into()));
                }
                of => each(WireValue::read(&mut cursor, of)?),
            }
        }
    }
    Ok(())
}

/// Appends parameters with their types, each as its [`WireValue::wire_type`].
pub fn write(out: &mut Vec<u8>, params: &[WireValue<'_>]) {
    write_except(out, params, |_| false);
}

/// As [`write()`], leaving out the values of those that were sent as long data.
pub fn write_except(out: &mut Vec<u8>, params: &[WireValue<'_>], is_long_data: impl Fn(usize) -> bool) {
    if params.is_empty() {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + params.len().div_ceil(8), 0);
    for (position, param) in params.iter().enumerate() {
        if matches!(param, WireValue::Null) {
            out[nulls + position / 8] |= 1 << (position % 8);
        }
    }
    out.push(1);
    for param in params {
        let of = param.wire_type();
        out.extend_from_slice(&[of.kind, if of.unsigned { 0x80 } else { 0 }]);
    }
    for (position, param) in params.iter().enumerate() {
        if !is_long_data(position) {
            param.write(out);
        }
    }
}

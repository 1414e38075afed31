//! The parameters of COM_STMT_EXECUTE: a null bitmap, a flag that says whether types follow, the types, the
//! values. Types are sent with the first execution and hold for the next ones. Values that were sent ahead by
//! COM_STMT_SEND_LONG_DATA are absent here.

use crate::constants::kind;
use crate::cursor::Cursor;
use crate::value::{WireType, WireValue};
use crate::{Malformed, put};
use std::borrow::Cow;

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
            cursor = Cursor::new(read_types(cursor.rest(), count, types)?);
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

/// A parameter of COM_STMT_BULK_EXECUTE. Its first byte says which of these it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BulkValue<'a> {
    Value(WireValue<'a>),
    /// The default of the column that the parameter stands for.
    Default,
    /// Nothing: the column stays as it is.
    Ignore,
}

/// The rows of parameters of COM_STMT_BULK_EXECUTE: in each one, a byte a parameter that says whether a value
/// follows, and the value.
#[derive(Clone, Debug)]
pub struct BulkRows<'a> {
    all: Cursor<'a>,
    left: Cursor<'a>,
    types: &'a [WireType],
}

impl<'a> BulkRows<'a> {
    /// Rows of parameters of these types. All of them are read once here, so that [`BulkRows::next_row`]
    /// finds nothing that is malformed.
    ///
    /// # Errors
    /// The packet has no row, or a part of one; a parameter has an unknown type or an unknown first byte.
    pub fn new(encoded: &'a [u8], types: &'a [WireType]) -> Result<BulkRows<'a>, Malformed> {
        let all = Cursor::new(encoded);
        let mut rows = BulkRows { all, left: all, types };
        if types.is_empty() || all.is_empty() {
            return Err(Malformed::new("rows of parameters"));
        }
        while !rows.left.is_empty() {
            for of in types {
                bulk_value(&mut rows.left, *of)?;
            }
        }
        rows.rewind();
        Ok(rows)
    }

    /// Goes back to the first row.
    pub fn rewind(&mut self) {
        self.left = self.all;
    }

    /// Hands over the parameters of the next row. False if there is none.
    pub fn next_row(&mut self, mut each: impl FnMut(BulkValue<'a>)) -> bool {
        if self.left.is_empty() {
            return false;
        }
        for of in self.types {
            if let Ok(value) = bulk_value(&mut self.left, *of) {
                each(value);
            }
        }
        true
    }

    /// The same rows with other texts.
    pub fn with_texts(mut self, change: impl Fn(&'a [u8]) -> Cow<'a, [u8]>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.all.len());
        while !self.left.is_empty() {
            for of in self.types {
                let mut whole = self.left;
                match bulk_value(&mut self.left, *of) {
                    Ok(BulkValue::Value(WireValue::Text(text))) => {
                        out.push(BULK_VALUE);
                        put::lenenc_bytes(&mut out, &change(text));
                    }
                    _ => {
                        let length = whole.len() - self.left.len();
                        out.extend_from_slice(whole.bytes(length, "parameter").unwrap_or_default());
                    }
                }
            }
        }
        out
    }
}

/// The first bytes of parameters of COM_STMT_BULK_EXECUTE.
const BULK_VALUE: u8 = 0;
const BULK_NULL: u8 = 1;
const BULK_DEFAULT: u8 = 2;
const BULK_IGNORE: u8 = 3;

fn bulk_value<'a>(cursor: &mut Cursor<'a>, of: WireType) -> Result<BulkValue<'a>, Malformed> {
    Ok(match cursor.u8("indicator of a parameter")? {
        BULK_VALUE => BulkValue::Value(WireValue::read(cursor, of)?),
        BULK_NULL => BulkValue::Value(WireValue::Null),
        BULK_DEFAULT => BulkValue::Default,
        BULK_IGNORE => BulkValue::Ignore,
        _ => return Err(Malformed::new("indicator of a parameter")),
    })
}

/// Takes the types of parameters, two bytes each, from the front.
///
/// # Errors
/// The packet ends too early.
pub fn read_types<'a>(
    encoded: &'a [u8],
    count: usize,
    types: &mut Vec<WireType>,
) -> Result<&'a [u8], Malformed> {
    let mut cursor = Cursor::new(encoded);
    let new = cursor.bytes(count * 2, "types of parameters")?;
    types.clear();
    types.extend(new.chunks_exact(2).map(|pair| wire_type(u16::from_le_bytes([pair[0], pair[1]]))));
    Ok(cursor.rest())
}

/// A type as packets carry it: its number, and in the highest bit whether it has no sign.
pub(crate) fn wire_type(encoded: u16) -> WireType {
    WireType { kind: encoded as u8, unsigned: encoded & 0x8000 != 0 }
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

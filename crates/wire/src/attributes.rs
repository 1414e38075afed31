//! Query attributes: named values that a client sends beside a statement, with MySQL's capability
//! QUERY_ATTRIBUTES. They stand before the text of COM_QUERY, and behind the parameters of COM_STMT_EXECUTE.

use crate::cursor::Cursor;
use crate::value::{WireType, WireValue};
use crate::{Malformed, params};
use std::borrow::Cow;

/// The flag of COM_STMT_EXECUTE that says that the number of parameters comes first, even if it is 0.
const PARAMETER_COUNT_AVAILABLE: u8 = 8;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attribute<'a> {
    pub name: &'a [u8],
    pub value: WireValue<'a>,
}

/// Cuts the contents of a COM_QUERY into its attributes and its text.
///
/// # Errors
/// The packet ends too early, or what it says of the attributes makes no sense.
pub fn of_query(contents: &[u8]) -> Result<(Vec<Attribute<'_>>, &[u8]), Malformed> {
    let mut cursor = Cursor::new(contents);
    let count = cursor.lenenc("number of query attributes")?;
    if cursor.lenenc("number of sets of query attributes")? != 1 {
        return Err(Malformed::new("number of sets of query attributes"));
    }
    let attributes = match count {
        0 => Vec::new(),
        count => Named::read(&mut cursor, count)?.values(&mut cursor, 0, |_| false)?,
    };
    Ok((attributes, cursor.rest()))
}

/// What stands behind the fixed fields of a COM_STMT_EXECUTE.
#[derive(Debug)]
pub struct Execution<'a> {
    /// The parameters as [`params::read`] takes them.
    pub params: Cow<'a, [u8]>,
    pub attributes: Vec<Attribute<'a>>,
}

/// Takes the attributes out of an execution of a statement with `count` parameters. `is_long_data` says of
/// which ones the value was sent ahead.
///
/// # Errors
/// As [`of_query`]. Attributes without types are an error, too: only those of parameters are kept.
pub fn of_execution<'a>(
    encoded: &'a [u8],
    flags: u8,
    count: usize,
    is_long_data: impl Fn(usize) -> bool,
) -> Result<Execution<'a>, Malformed> {
    if count == 0 && flags & PARAMETER_COUNT_AVAILABLE == 0 {
        return Ok(Execution { params: Cow::Borrowed(encoded), attributes: Vec::new() });
    }
    let mut cursor = Cursor::new(encoded);
    let total = cursor.lenenc("number of parameters")?;
    if total < count as u64 {
        return Err(Malformed::new("number of parameters"));
    }
    if total == 0 {
        return Ok(Execution { params: Cow::Borrowed(&[]), attributes: Vec::new() });
    }
    let named = Named::read(&mut cursor, total)?;
    let mut classic = named.nulls[..count.div_ceil(8)].to_vec();
    classic.push(u8::from(named.has_types));
    for (of, _) in named.types.iter().take(count) {
        classic.extend([of.kind, if of.unsigned { 0x80 } else { 0 }]);
    }
    classic.extend_from_slice({ cursor }.rest());
    let attributes = match (named.has_types, total == count as u64) {
        (_, true) => Vec::new(),
        (true, false) => named.values(&mut cursor, count, is_long_data)?,
        (false, false) => return Err(Malformed::new("types of query attributes")),
    };
    Ok(Execution { params: Cow::Owned(classic), attributes })
}

/// Parameters with names, up to their values.
struct Named<'a> {
    nulls: &'a [u8],
    has_types: bool,
    types: Vec<(WireType, &'a [u8])>,
}

impl<'a> Named<'a> {
    fn read(cursor: &mut Cursor<'a>, count: u64) -> Result<Named<'a>, Malformed> {
        let count = usize::try_from(count).map_err(|_| Malformed::new("number of parameters"))?;
        // The packet has to be at least this long, so that the number costs no memory.
        let nulls = cursor.bytes(count.div_ceil(8), "null bitmap")?;
        let has_types = match cursor.u8("new parameters flag")? {
            0 => false,
            1 => true,
            _ => return Err(Malformed::new("new parameters flag")),
        };
        let mut types = Vec::new();
        if has_types {
            for _ in 0..count {
                let of = params::wire_type(cursor.u16("type of a parameter")?);
                types.push((of, cursor.lenenc_bytes("name of a parameter")?));
            }
        }
        Ok(Named { nulls, has_types, types })
    }

    /// Reads the values, and gives those behind the first `skipped`.
    fn values(
        &self,
        cursor: &mut Cursor<'a>,
        skipped: usize,
        is_long_data: impl Fn(usize) -> bool,
    ) -> Result<Vec<Attribute<'a>>, Malformed> {
        let mut attributes = Vec::new();
        for (position, &(of, name)) in self.types.iter().enumerate() {
            let is_null = self.nulls[position / 8] & 1 << (position % 8) != 0;
            let value = match () {
                () if position < skipped && is_long_data(position) => continue,
                () if is_null => WireValue::Null,
                () => WireValue::read(cursor, of)?,
            };
            if position >= skipped {
                attributes.push(Attribute { name, value });
            }
        }
        Ok(attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put;

    fn typed(out: &mut Vec<u8>, kind: u8, name: &str) {
        out.extend([kind, 0]);
        put::lenenc_bytes(out, name.as_bytes());
    }

    #[test]
    fn a_text_is_found_behind_its_attributes() {
        assert_eq!(of_query(b"\0\x01SELECT 1").unwrap(), (vec![], &b"SELECT 1"[..]));
        let mut packet = vec![2, 1, 0b10, 1];
        typed(&mut packet, 253, "trace");
        typed(&mut packet, 8, "n");
        put::lenenc_bytes(&mut packet, b"abc");
        packet.extend_from_slice(b"DO 1");
        let trace = Attribute { name: b"trace", value: WireValue::Text(b"abc") };
        let n = Attribute { name: b"n", value: WireValue::Null };
        assert_eq!(of_query(&packet).unwrap(), (vec![trace, n], &b"DO 1"[..]));
        for end in 0..packet.len() - 4 {
            assert!(of_query(&packet[..end]).is_err(), "{end}");
        }
        assert!(of_query(&[0, 2, b'x']).is_err());
        assert!(of_query(&[254, 255, 255, 255, 255, 255, 255, 255, 255, 1]).is_err());
    }

    #[test]
    fn an_execution_is_given_without_its_attributes() {
        let mut packet = vec![3, 0, 1];
        typed(&mut packet, 8, "");
        typed(&mut packet, 253, "");
        typed(&mut packet, 3, "shard");
        packet.extend_from_slice(&7u64.to_le_bytes());
        packet.extend_from_slice(&9u32.to_le_bytes());
        // The second parameter was sent ahead.
        let execution = of_execution(&packet, 0, 2, |at| at == 1).unwrap();
        assert_eq!(execution.attributes, [Attribute { name: b"shard", value: WireValue::Int(9) }]);
        let mut values = Vec::new();
        let long_data = |at| (at == 1).then_some(&b"long"[..]);
        params::read(&execution.params, 2, &mut Vec::new(), long_data, |value| values.push(value)).unwrap();
        assert_eq!(values, [WireValue::Int(7), WireValue::Text(b"long")]);
        // A statement without parameters.
        assert!(of_execution(b"", 0, 0, |_| false).unwrap().params.is_empty());
        assert!(of_execution(&[0], 8, 0, |_| false).unwrap().attributes.is_empty());
        assert!(of_execution(&[1], 0, 2, |_| false).is_err());
    }
}

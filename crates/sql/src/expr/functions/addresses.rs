//! Addresses of networks, and identifiers.

use super::arguments::{Arguments, Result, int};
use super::session::uuid;
use crate::ErrorKind;
use crate::expr::evaluate::convert::{self, shown};
use crate::expr::result_type::Typed;
use std::net::Ipv4Addr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use types::{Collation, Value, ValueRef};

functions! {
    "Addresses and Identifiers";

    INET_ATON {
        name: "inet_aton",
        arguments: "address",
        arity: 1..=1,
        typing: |_| Ok(Typed::int(8, true, true).with_display(21)),
        evaluate: |a| Ok(ValueRef::UInt(or_null!(number_of(or_null!(a.text(0)?))))),
        help: "Gives an IPv4 address in dotted form as a number.",
        example: "INET_ATON('10.0.5.9')" => "167773449",
    }
    INET_NTOA {
        name: "inet_ntoa",
        arguments: "number",
        arity: 1..=1,
        typing: |t| Ok(t.plain(31, true).without_decimals()),
        evaluate: |a| {
            let number = or_null!(u32::try_from(or_null!(a.int(0)?)).ok());
            Ok(a.give(Ipv4Addr::from(number).to_string().as_bytes()))
        },
        help: "Gives the number of an IPv4 address in dotted form.",
        example: "INET_NTOA(167773449)" => "10.0.5.9",
    }
    INET6_ATON {
        name: "inet6_aton",
        arguments: "address",
        arity: 1..=1,
        typing: |_| Ok(Typed::text(16, Collation::Binary, true)),
        evaluate: |a| {
            let text = or_null!(a.text(0)?);
            if let Some(address) = ipv4(text) {
                return Ok(a.give_binary(&address));
            }
            Ok(a.give_binary(&or_null!(ipv6(text))))
        },
        help: "Gives the bytes of an address: 4 of an IPv4 address, 16 of an IPv6 address.",
        example: "HEX(INET6_ATON('10.0.5.9'))" => "0A000509",
    }
    INET6_NTOA {
        name: "inet6_ntoa",
        arguments: "bytes",
        arity: 1..=1,
        typing: |t| Ok(t.plain(39, true)),
        evaluate: |a| {
            let ValueRef::Binary(bytes) = a.value(0)? else { return Ok(ValueRef::Null) };
            if let Ok(address) = <[u8; 4]>::try_from(bytes) {
                return Ok(a.give(Ipv4Addr::from(address).to_string().as_bytes()));
            }
            let address: [u8; 16] = or_null!(bytes.try_into().ok());
            Ok(a.give(ipv6_text(address).as_bytes()))
        },
        help: "Gives the address that 4 or 16 bytes are.",
        example: "INET6_NTOA(UNHEX('00000000000000000000000000000001'))" => "::1",
    }
    IS_IPV4 {
        name: "is_ipv4",
        arguments: "text",
        arity: 1..=1,
        typing: |_| Ok(Typed::boolean(false)),
        evaluate: |a| int(a.text(0)?.is_some_and(|text| ipv4(text).is_some()) as i64),
        help: "Gives 1 if a text is an IPv4 address, and 0 if it is not.",
        example: "IS_IPV4('10.0.5.9')" => "1",
    }
    IS_IPV6 {
        name: "is_ipv6",
        arguments: "text",
        arity: 1..=1,
        typing: |_| Ok(Typed::boolean(false)),
        evaluate: |a| int(a.text(0)?.is_some_and(|text| ipv6(text).is_some()) as i64),
        help: "Gives 1 if a text is an IPv6 address, and 0 if it is not.",
        example: "IS_IPV6('::1')" => "1",
    }
    IS_IPV4_COMPAT {
        name: "is_ipv4_compat",
        arguments: "address",
        arity: 1..=1,
        typing: |_| Ok(Typed::boolean(false)),
        evaluate: |a| {
            let is_compatible = |address| matches!(u128::from_be_bytes(address), 2..=0xffff_ffff);
            int(address_argument(a)?.is_some_and(is_compatible) as i64)
        },
        help: "Gives 1 if the bytes or the text of an IPv6 address are compatible with IPv4, as ::10.0.5.9.",
        example: "IS_IPV4_COMPAT('::10.0.5.9')" => "1",
    }
    IS_IPV4_MAPPED {
        name: "is_ipv4_mapped",
        arguments: "address",
        arity: 1..=1,
        typing: |_| Ok(Typed::boolean(false)),
        evaluate: |a| {
            let is_mapped = |address| u128::from_be_bytes(address) >> 32 == 0xffff;
            int(address_argument(a)?.is_some_and(is_mapped) as i64)
        },
        help: "Gives 1 if the bytes or the text of an IPv6 address stand for one of IPv4, as ::ffff:10.0.5.9.",
        example: "IS_IPV4_MAPPED('::ffff:10.0.5.9')" => "1",
    }
    SYS_GUID {
        name: "sys_guid",
        arguments: "",
        arity: 0..=0,
        constancy: Visible,
        typing: |t| Ok(t.system(32, true)),
        evaluate: |a| Ok(ValueRef::Text(a.context.arena.alloc_str(&uuid().replace('-', "")).as_bytes())),
        help: "Gives a new random UUID without hyphens.",
    }
    UUID_SHORT {
        name: "uuid_short",
        arguments: "",
        arity: 0..=0,
        constancy: Visible,
        typing: |_| Ok(Typed::int(8, true, false).with_display(21)),
        evaluate: uuid_short,
        help: "Gives a number that no other call gives: one more than the call before.",
    }
    IS_UUID {
        name: "is_uuid",
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(Typed::boolean(t.nullable())),
        evaluate: |a| int(uuid_bytes(or_null!(a.text(0)?)).is_some() as i64),
        help: "Gives 1 if a text is a UUID, with or without hyphens and braces, and 0 if it is not.",
        example: "IS_UUID('6ccd780c-baba-1026-9564-5b8c656024db')" => "1",
    }
    UUID_TO_BIN {
        name: "uuid_to_bin",
        arguments: "text[, swap]",
        arity: 1..=2,
        typing: |_| Ok(Typed::text(16, Collation::Binary, true)),
        evaluate: |a| {
            let text = or_null!(a.text(0)?);
            let Some(mut bytes) = uuid_bytes(text) else { return Err(no_uuid(a, &shown(text))) };
            if swaps(a)? {
                // The last part of the time, which changes least, comes first.
                bytes[..8].rotate_left(4);
                bytes[..4].rotate_left(2);
            }
            Ok(a.give_binary(&bytes))
        },
        help: "Gives the 16 bytes of a UUID. If `swap` is not 0, the part of its time that changes least comes first, \
               so that new ones are larger.",
        example: "HEX(UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c656024db', 1))" => "1026BABA6CCD780C95645B8C656024DB",
    }
    BIN_TO_UUID {
        name: "bin_to_uuid",
        arguments: "bytes[, swap]",
        arity: 1..=2,
        typing: |t| Ok(t.plain(36, true)),
        evaluate: |a| {
            let bytes = or_null!(a.text(0)?);
            let Ok(mut uuid) = <[u8; 16]>::try_from(bytes) else {
                return Err(no_uuid(a, &shown(bytes)));
            };
            if swaps(a)? {
                uuid[..4].rotate_left(2);
                uuid[..8].rotate_left(4);
            }
            let mut text = super::encoding::hex(&uuid);
            for place in [20, 16, 12, 8] {
                text.insert(place, '-');
            }
            Ok(a.give(text.as_bytes()))
        },
        help: "Gives 16 bytes as a UUID. `swap` undoes that of UUID_TO_BIN.",
        example: "BIN_TO_UUID(UNHEX('1026BABA6CCD780C95645B8C656024DB'), 1)" => "6ccd780c-baba-1026-9564-5b8c656024db",
    }
}

/// The number of an address whose last part has the bytes of those that are missing: 1.2 is 1.0.0.2.
fn number_of(text: &[u8]) -> Option<u64> {
    if text.last().is_none_or(|last| *last == b'.') {
        return None;
    }
    let parts: Vec<u64> = text.split(|byte| *byte == b'.').map(byte_of).collect::<Option<_>>()?;
    let (last, before) = parts.split_last()?;
    let number = before.iter().fold(0u64, |number, part| number.wrapping_shl(8).wrapping_add(*part));
    let missing = match before.len() {
        1 => 2,
        2 => 1,
        _ => 0,
    };
    Some((number << (8 * (missing + 1))).wrapping_add(*last))
}

/// A number up to 255 in digits. No digits are 0.
fn byte_of(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(sum * 10 + digit).filter(|sum| *sum <= 255)
    })
}

/// The bytes of an address in dotted form. Each part has one to three digits.
fn ipv4(text: &[u8]) -> Option<[u8; 4]> {
    let mut address = [0; 4];
    let mut parts = text.split(|byte| *byte == b'.');
    for byte in &mut address {
        let digits = parts.next().filter(|digits| matches!(digits.len(), 1..=3))?;
        *byte = byte_of(digits)? as u8;
    }
    parts.next().is_none().then_some(address)
}

/// The bytes of an IPv6 address, whose last four may be written in dotted form.
fn ipv6(text: &[u8]) -> Option<[u8; 16]> {
    const CHARS_MAX: usize = 39;
    if !matches!(text.len(), 2..=CHARS_MAX) {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let (before, behind) = match text.split_once("::") {
        Some((before, behind)) => (groups(before)?, Some(groups(behind)?)),
        None => (groups(text)?, None),
    };
    let mut address = [0; 16];
    match behind {
        None if before.len() == 16 => address.copy_from_slice(&before),
        // At least one group of zeros is left out.
        Some(behind) if before.len() + behind.len() <= 14 && !text.split_once("::")?.0.contains('.') => {
            address[..before.len()].copy_from_slice(&before);
            address[16 - behind.len()..].copy_from_slice(&behind);
        }
        _ => return None,
    }
    Some(address)
}

/// The bytes of groups with colons between them; the last one may be an address in dotted form.
fn groups(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(16);
    if text.is_empty() {
        return Some(bytes);
    }
    let mut parts = text.split(':').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() && part.contains('.') {
            bytes.extend(ipv4(part.as_bytes())?);
        } else {
            let is_group = matches!(part.len(), 1..=4) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            bytes.extend(is_group.then(|| u16::from_str_radix(part, 16).ok())??.to_be_bytes());
        }
        if bytes.len() > 16 {
            return None;
        }
    }
    Some(bytes)
}

/// The text of an IPv6 address: the longest row of groups that are zero is left out.
fn ipv6_text(address: [u8; 16]) -> String {
    let groups: [u16; 8] =
        std::array::from_fn(|at| u16::from_be_bytes([address[2 * at], address[2 * at + 1]]));
    let (mut gap_at, mut gap_len) = (0, 0);
    let mut at = 0;
    while at < 8 {
        let len = groups[at..].iter().take_while(|group| **group == 0).count();
        if len > gap_len {
            (gap_at, gap_len) = (at, len);
        }
        at += len.max(1);
    }
    let hex = |groups: &[u16]| groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    if gap_len == 0 {
        return hex(&groups);
    }
    let is_dotted = gap_at == 0 && (gap_len == 6 || gap_len == 5 && groups[5] == 0xffff);
    if is_dotted {
        let last = [address[12], address[13], address[14], address[15]];
        let mapped = if gap_len == 5 { "ffff:" } else { "" };
        return format!("::{mapped}{}", Ipv4Addr::from(last));
    }
    format!("{}::{}", hex(&groups[..gap_at]), hex(&groups[gap_at + gap_len..]))
}

/// The address that is 16 bytes or a text; `None` with a warning for another value.
fn address_argument(arguments: &Arguments<'_, '_>) -> Result<Option<[u8; 16]>> {
    let value = arguments.value(0)?;
    let Some(bytes) = convert::to_text(&value, arguments.context) else { return Ok(None) };
    let address = match value {
        ValueRef::Binary(bytes) => bytes.try_into().ok(),
        _ => ipv6(bytes),
    };
    if address.is_none() {
        let message = format!("Incorrect inet6 value: '{}'", shown(bytes));
        arguments.context.environment.warn(ErrorKind::TruncatedWrongValue, message);
    }
    Ok(address)
}

/// The server's number, the seconds of its start and a counter, as bits of one number.
fn uuid_short<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    static START: LazyLock<u64> = LazyLock::new(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    });
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let server = match arguments.context.environment.system_variable(Default::default(), None, "server_id") {
        Ok(Value::Int(server)) => server as u64,
        Ok(Value::UInt(server)) => server,
        _ => 0,
    };
    // ORDER: a counter, which carries no data.
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    Ok(ValueRef::UInt(((server & 255) << 56).wrapping_add(*START << 24).wrapping_add(count)))
}

/// The bytes of a UUID, with or without hyphens; one with hyphens may have braces.
fn uuid_bytes(text: &[u8]) -> Option<[u8; 16]> {
    let inner = match text {
        [b'{', inner @ .., b'}'] if inner.len() == 36 => inner,
        _ => text,
    };
    let digits: Vec<u8> = match inner.len() {
        32 => inner.to_vec(),
        36 if [8, 13, 18, 23].iter().all(|place| inner[*place] == b'-') => {
            inner.iter().copied().filter(|byte| *byte != b'-').collect()
        }
        _ => return None,
    };
    if digits.len() != 32 {
        return None;
    }
    super::encoding::unhex(&digits)?.try_into().ok()
}

fn swaps(arguments: &Arguments<'_, '_>) -> Result<bool> {
    Ok(arguments.len() == 2 && arguments.truth(1)? == Some(true))
}

/// 1411: a text that is no UUID.
fn no_uuid(arguments: &Arguments<'_, '_>, shown: &str) -> crate::SqlError {
    let message = format!("Incorrect string value: '{shown}' for function {}", arguments.name());
    crate::SqlError::new(ErrorKind::WrongValueForFunction, message)
}

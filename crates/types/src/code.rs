//! Values that a column stores as bytes and that statements see as texts: UUIDs and addresses.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What the bytes stand for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    Uuid,
    Inet6,
    Inet4,
}

/// The bytes that a column stores: as many as [`Code::bytes`] says, and zeros behind them.
pub type CodeBytes = [u8; 16];

impl Code {
    /// The name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Uuid => "uuid",
            Code::Inet6 => "inet6",
            Code::Inet4 => "inet4",
        }
    }

    /// The size of a stored value in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Code::Uuid | Code::Inet6 => 16,
            Code::Inet4 => 4,
        }
    }

    /// The characters of the longest text.
    pub const fn chars(self) -> u32 {
        match self {
            Code::Uuid => 36,
            Code::Inet6 => 39,
            Code::Inet4 => 15,
        }
    }

    /// Reads a text. `None` if it is no such code.
    pub fn read(self, text: &[u8]) -> Option<CodeBytes> {
        match self {
            Code::Uuid => read_uuid(text).and_then(uuid_order),
            Code::Inet6 => {
                let address: Ipv6Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
                Some(address.octets())
            }
            Code::Inet4 => read_inet4(text).map(padded),
        }
    }

    /// The stored form of a code's own bytes, which are as many as [`Code::bytes`] says.
    pub fn of_bytes(self, bytes: &[u8]) -> Option<CodeBytes> {
        match self {
            Code::Uuid => bytes.try_into().ok().and_then(uuid_order),
            Code::Inet6 => bytes.try_into().ok(),
            Code::Inet4 => bytes.try_into().ok().map(padded),
        }
    }

    /// The code's own bytes from their stored form.
    pub fn to_bytes(self, stored: &[u8]) -> CodeBytes {
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(stored) {
            *to = *from;
        }
        match self {
            Code::Uuid => uuid_from_order(bytes),
            Code::Inet6 | Code::Inet4 => bytes,
        }
    }

    /// Appends the text of a stored value.
    pub fn write(self, stored: &[u8], out: &mut String) {
        let bytes = self.to_bytes(stored);
        match self {
            Code::Uuid => {
                for (position, byte) in bytes.iter().enumerate() {
                    if matches!(position, 4 | 6 | 8 | 10) {
                        out.push('-');
                    }
                    // Writing into memory does not fail.
                    let _ = write!(out, "{byte:02x}");
                }
            }
            Code::Inet6 => write_inet6(&bytes, out),
            Code::Inet4 => {
                let [a, b, c, d, ..] = bytes;
                let _ = write!(out, "{}", Ipv4Addr::new(a, b, c, d));
            }
        }
    }
}

fn padded(bytes: [u8; 4]) -> CodeBytes {
    let mut padded = [0; 16];
    padded[..4].copy_from_slice(&bytes);
    padded
}

/// 32 hexadecimal digits. Hyphens may stand between any two of them.
fn read_uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.first() == Some(&b'-') || text.last() == Some(&b'-') {
        return None;
    }
    let mut bytes = [0; 16];
    let mut digits = 0;
    for character in text.iter().filter(|character| **character != b'-') {
        let digit = char::from(*character).to_digit(16)? as u8;
        let byte = bytes.get_mut(digits / 2)?;
        *byte = *byte << 4 | digit;
        digits += 1;
    }
    (digits == 32).then_some(bytes)
}

/// Four numbers of one to three digits.
fn read_inet4(text: &[u8]) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    let mut count = 0;
    for part in text.split(|character| *character == b'.') {
        if !(1..=3).contains(&part.len()) || !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = part.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        *bytes.get_mut(count)? = u8::try_from(number).ok()?;
        count += 1;
    }
    (count == 4).then_some(bytes)
}

/// Appends an address: the longest run of zeros is left out, and the last four bytes of an address that
/// stands for an INET4 are written as one.
fn write_inet6(bytes: &[u8; 16], out: &mut String) {
    let groups: [u16; 8] = Ipv6Addr::from(*bytes).segments();
    let mut gap = (0, 0);
    let mut start = 0;
    while start < groups.len() {
        let length = groups[start..].iter().take_while(|group| **group == 0).count();
        if length > gap.1 {
            gap = (start, length);
        }
        start += length.max(1);
    }
    let is_inet4 = gap.0 == 0 && (gap.1 == 6 || gap.1 == 5 && groups[5] == 0xffff);
    let mut position = 0;
    while position < groups.len() {
        if gap.1 > 0 && position == gap.0 {
            out.push_str(if position == 0 { "::" } else { ":" });
            position += gap.1;
            continue;
        }
        // Writing into memory does not fail.
        if is_inet4 && position == 6 {
            let _ = write!(out, "{}", Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]));
            return;
        }
        let _ = write!(out, "{:x}", groups[position]);
        position += 1;
        if position < groups.len() {
            out.push(':');
        }
    }
}

/// Where each byte of the stored form comes from, if the UUID's parts are stored from the last to the first.
const REVERSED: [usize; 16] = [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3];

/// True for the versions whose last part tells most: they sort by it, as in MariaDB. The others, and what is
/// of no version, sort as they are written.
fn is_reversed(uuid: &[u8; 16]) -> bool {
    uuid[8] >= 0x80 && (0x01..0x60).contains(&uuid[6])
}

/// The bytes in the order in which UUIDs sort.
fn uuid_order(uuid: [u8; 16]) -> Option<[u8; 16]> {
    // As in MariaDB, these are no UUIDs. Some of them would look like one that is reversed.
    if uuid[6] >= 0x80 && (0x01..=0x80).contains(&uuid[8]) {
        return None;
    }
    Some(if is_reversed(&uuid) { REVERSED.map(|from| uuid[from]) } else { uuid })
}

fn uuid_from_order(stored: [u8; 16]) -> [u8; 16] {
    let mut uuid = [0; 16];
    for (byte, from) in stored.iter().zip(REVERSED) {
        uuid[from] = *byte;
    }
    // No UUID that is stored as it is written looks so: see `uuid_order`.
    if is_reversed(&uuid) { uuid } else { stored }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(code: Code, stored: &[u8]) -> String {
        let mut out = String::new();
        code.write(stored, &mut out);
        out
    }

    #[test]
    fn an_address_is_written_in_its_shortest_form() {
        let written = |given: &str| Code::Inet6.read(given.as_bytes()).map(|bytes| text(Code::Inet6, &bytes));
        for (given, shown) in [
            ("0:0:0:0:0:0:0:0", "::"),
            ("0::1", "::1"),
            ("::1.2.3.4", "::1.2.3.4"),
            ("::ffff:102:304", "::ffff:1.2.3.4"),
            ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("1:0:3:4:5:6:7:8", "1::3:4:5:6:7:8"),
            ("1::", "1::"),
        ] {
            assert_eq!(written(given).as_deref(), Some(shown));
        }
        assert_eq!(written("1.2.3.4"), None);
        let four =
            |given: &str| Code::Inet4.read(given.as_bytes()).map(|bytes| text(Code::Inet4, &bytes[..4]));
        assert_eq!(four("001.2.3.04").as_deref(), Some("1.2.3.4"));
        for given in ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.0004", "1..2.3", "a.b.c.d"] {
            assert_eq!(four(given), None, "{given}");
        }
    }

    #[test]
    fn hyphens_of_a_uuid_stand_between_digits() {
        let bytes = Code::Uuid.read(b"0-0112233--445566778899aabbccddeeff").unwrap();
        assert_eq!(text(Code::Uuid, &bytes), "00112233-4455-6677-8899-aabbccddeeff");
        for given in ["", "-00112233445566778899aabbccddeeff", "00112233445566778899aabbccddeef", "x"] {
            assert_eq!(Code::Uuid.read(given.as_bytes()), None);
        }
        assert_eq!(Code::Uuid.read(b"00112233-4455-8677-7899-aabbccddeeff"), None, "of no version");
    }

    proptest! {
        #[test]
        fn a_uuid_reads_back_and_its_version_decides_its_order(a in any::<[u8; 16]>(), b in any::<[u8; 16]>()) {
            for uuid in [a, b] {
                if let Some(stored) = Code::Uuid.of_bytes(&uuid) {
                    prop_assert_eq!(Code::Uuid.to_bytes(&stored), uuid);
                    prop_assert_eq!(Code::Uuid.read(text(Code::Uuid, &stored).as_bytes()), Some(stored));
                }
            }
            let version_4 = |uuid: [u8; 16]| {
                let mut uuid = uuid;
                (uuid[6], uuid[8]) = (0x40 | uuid[6] & 0x0f, 0x80 | uuid[8] & 0x3f);
                uuid
            };
            let (a, b) = (version_4(a), version_4(b));
            let stored = |uuid: &[u8]| Code::Uuid.of_bytes(uuid).unwrap();
            let last = a[10..].cmp(&b[10..]);
            prop_assert_eq!(stored(&a).cmp(&stored(&b)).then(last), last.then(stored(&a).cmp(&stored(&b))));
        }
    }
}

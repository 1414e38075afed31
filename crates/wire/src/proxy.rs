//! The header that a proxy sends in front of a client's first packet, to tell where the client is: the PROXY
//! protocol, versions 1 and 2.
//!
//! ```text
//! version 1: PROXY {TCP4 | TCP6} source destination port port\r\n   or   PROXY UNKNOWN ...\r\n
//! version 2: signature 12 | version and command u8 | family u8 | length u16, big-endian | addresses, ...
//! ```
//!
//! Source: "The PROXY protocol", <https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt>.

use crate::Malformed;
use crate::cursor::Cursor;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const V1_BEGIN: &[u8] = b"PROXY ";
/// With its end of line.
const V1_BYTES_MAX: usize = 107;
const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const V2_FIXED_BYTES: usize = 16;
/// Addresses, and whatever a proxy may add to them.
const V2_REST_BYTES_MAX: usize = 4096;

/// What the first bytes of a connection are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beginning {
    /// More bytes are needed.
    Unknown,
    /// There is no header: these bytes are of the client's first packet.
    Packet,
    /// A header of so many bytes.
    Header { bytes: usize, client: ProxiedClient },
}

/// Where the client of a proxy is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxiedClient {
    /// It is the proxy itself, or the proxy does not know.
    Proxy,
    /// It has connected to the proxy's own machine, through a unix socket.
    Local,
    At(IpAddr),
}

/// Looks for a header at the beginning of what a connection has sent.
///
/// # Errors
/// They are the beginning of a header that is none.
pub fn beginning(received: &[u8]) -> Result<Beginning, Malformed> {
    let begins = |mark: &[u8]| {
        let length = mark.len().min(received.len());
        received[..length] == mark[..length]
    };
    if begins(V1_BEGIN) && received.len() >= V1_BEGIN.len() {
        return version_1(received);
    }
    if begins(V2_SIGNATURE) && received.len() >= V2_SIGNATURE.len() {
        return version_2(received);
    }
    Ok(if begins(V1_BEGIN) || begins(V2_SIGNATURE) { Beginning::Unknown } else { Beginning::Packet })
}

fn version_1(received: &[u8]) -> Result<Beginning, Malformed> {
    let malformed = || Malformed::new("header of a proxy");
    let window = &received[..received.len().min(V1_BYTES_MAX)];
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        return if received.len() < V1_BYTES_MAX { Ok(Beginning::Unknown) } else { Err(malformed()) };
    };
    let line = std::str::from_utf8(&received[..end]).map_err(|_| malformed())?;
    let words: Vec<&str> = line.split(' ').collect();
    let client = match words[..] {
        ["PROXY", "UNKNOWN", ..] => ProxiedClient::Proxy,
        ["PROXY", family @ ("TCP4" | "TCP6"), source, _, port, to_port] => {
            let source: IpAddr = source.parse().map_err(|_| malformed())?;
            let are_ports = [port, to_port].iter().all(|port| port.parse::<u16>().is_ok());
            if source.is_ipv4() != (family == "TCP4") || !are_ports {
                return Err(malformed());
            }
            ProxiedClient::At(source.to_canonical())
        }
        _ => return Err(malformed()),
    };
    Ok(Beginning::Header { bytes: end + 2, client })
}

fn version_2(received: &[u8]) -> Result<Beginning, Malformed> {
    let mut cursor = Cursor::new(received);
    cursor.bytes(V2_SIGNATURE.len(), "signature of a proxy")?;
    if cursor.len() < V2_FIXED_BYTES - V2_SIGNATURE.len() {
        return Ok(Beginning::Unknown);
    }
    let command = cursor.u8("command of a proxy")?;
    let family = cursor.u8("family of a proxy")?;
    let length = usize::from(cursor.u16("length of a proxy's header")?.swap_bytes());
    if !matches!(command, 0x20 | 0x21) || length > V2_REST_BYTES_MAX {
        return Err(Malformed::new("command of a proxy"));
    }
    if cursor.len() < length {
        return Ok(Beginning::Unknown);
    }
    let mut rest = Cursor::new(cursor.bytes(length, "addresses of a proxy")?);
    let address = "address of a proxy's client";
    let client = match (command, family >> 4) {
        // A proxy that checks whether the server is alive.
        (0x20, _) | (_, 0) => ProxiedClient::Proxy,
        (_, 1) => {
            let [a, b, c, d] = rest.u32(address)?.to_le_bytes();
            rest.bytes(8, address)?;
            ProxiedClient::At(Ipv4Addr::new(a, b, c, d).into())
        }
        (_, 2) => {
            let mut octets = [0; 16];
            octets.copy_from_slice(rest.bytes(16, address)?);
            rest.bytes(20, address)?;
            ProxiedClient::At(IpAddr::from(Ipv6Addr::from(octets)).to_canonical())
        }
        (_, 3) => {
            rest.bytes(216, address)?;
            ProxiedClient::Local
        }
        _ => return Err(Malformed::new("family of a proxy")),
    };
    Ok(Beginning::Header { bytes: V2_FIXED_BYTES + length, client })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        [V2_SIGNATURE, &[command, family], &(rest.len() as u16).to_be_bytes(), rest].concat()
    }

    fn at(address: &str) -> ProxiedClient {
        ProxiedClient::At(address.parse().unwrap())
    }

    #[test]
    fn headers_of_both_versions_are_found_however_they_arrive() {
        let mut six = vec![0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        six.extend_from_slice(&[0; 20]);
        let four = [192, 0, 2, 7, 192, 0, 2, 8, 1, 1, 2, 2];
        for (header, client) in [
            (b"PROXY TCP4 192.0.2.7 192.0.2.8 4444 3306\r\n".to_vec(), at("192.0.2.7")),
            (b"PROXY TCP6 2001:db8::7 ::1 4444 3306\r\n".to_vec(), at("2001:db8::7")),
            (b"PROXY TCP6 ::ffff:192.0.2.9 ::1 4444 3306\r\n".to_vec(), at("192.0.2.9")),
            (b"PROXY UNKNOWN\r\n".to_vec(), ProxiedClient::Proxy),
            (b"PROXY UNKNOWN a b c\r\n".to_vec(), ProxiedClient::Proxy),
            (v2(0x21, 0x11, &four), at("192.0.2.7")),
            (v2(0x21, 0x11, &[&four[..], b"\x04\0\x03abc"].concat()), at("192.0.2.7")),
            (v2(0x21, 0x21, &six), at("2001:db8::9")),
            (v2(0x21, 0x31, &[0; 216]), ProxiedClient::Local),
            (v2(0x20, 0, b""), ProxiedClient::Proxy),
        ] {
            for length in 0..header.len() {
                assert_eq!(beginning(&header[..length]).unwrap(), Beginning::Unknown, "{header:x?}");
            }
            let whole = Beginning::Header { bytes: header.len(), client };
            assert_eq!(beginning(&header).unwrap(), whole, "{header:x?}");
            assert_eq!(beginning(&[&header[..], b"more"].concat()).unwrap(), whole, "{header:x?}");
        }
        for packet in [&b"\x20\0\0\x01"[..], b"\r\n\r\r", b"PROXX"] {
            assert_eq!(beginning(packet).unwrap(), Beginning::Packet);
        }
    }

    #[test]
    fn what_begins_like_a_header_and_is_none_is_refused() {
        let long = [b"PROXY TCP4 ", &[b'1'; 120][..]].concat();
        for bad in [
            b"PROXY TCP4 nonsense 192.0.2.8 4444 3306\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 192.0.2.8 99999 3306\r\n".to_vec(),
            b"PROXY TCP4 ::1 ::1 1 2\r\n".to_vec(),
            b"PROXY TCP4\r\n".to_vec(),
            long,
            v2(0x21, 0x11, b"1234"),
            v2(0x25, 0x11, &[0; 12]),
            v2(0x31, 0x11, &[0; 12]),
            v2(0x21, 0x41, &[0; 12]),
        ] {
            assert!(beginning(&bad).is_err(), "{bad:x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_none(rest in proptest::collection::vec(any::<u8>(), 0..300), of: bool) {
            let mark = if of { V1_BEGIN } else { V2_SIGNATURE };
            let bytes = [mark, &rest].concat();
            if let Ok(Beginning::Header { bytes: length, .. }) = beginning(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}

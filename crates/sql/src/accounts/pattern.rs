//! Patterns of hosts and of databases, and which of several is the narrowest.
//!
//! A host is a name or an address, with the wildcards `%` and `_`, or an address with a mask behind a slash.
//! The case of letters does not matter in a host. A database is a name with the same wildcards, which a
//! backslash turns into plain characters.

use std::cmp::Reverse;
use std::net::Ipv4Addr;

/// True if a client whose name or address is `peer` comes from a host of the pattern.
pub(crate) fn host_matches(pattern: &str, peer: &str) -> bool {
    if let Some((network, mask)) = pattern.split_once('/')
        && let (Ok(network), Ok(mask)) = (network.parse::<Ipv4Addr>(), mask.parse::<Ipv4Addr>())
    {
        let bits = |address: Ipv4Addr| u32::from(address);
        return peer.parse::<Ipv4Addr>().is_ok_and(|peer| bits(peer) & bits(mask) == bits(network));
    }
    pattern.is_empty()
        || matches(pattern.to_ascii_lowercase().as_bytes(), peer.to_ascii_lowercase().as_bytes())
}

/// True if the name is one of the pattern's.
pub(crate) fn database_matches(pattern: &str, name: &str) -> bool {
    matches(pattern.as_bytes(), name.as_bytes())
}

/// The order in which patterns are tried: a name comes before a pattern, and a pattern whose first wildcard
/// stands farther behind comes before another one.
pub(crate) fn narrowness(pattern: &str) -> Reverse<usize> {
    let mut plain = 0;
    let mut bytes = pattern.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' | b'_' => return Reverse(plain),
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
        plain += 1;
    }
    Reverse(if pattern.is_empty() { 0 } else { usize::MAX })
}

/// LIKE, byte by byte; `_` stands for a byte, as names of hosts have no others.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where to go on if what follows the last `%` does not match: one byte further.
    let mut again: Option<(usize, usize)> = None;
    loop {
        let (step, fits) = match pattern.get(at) {
            Some(b'%') => {
                again = Some((at + 1, from));
                at += 1;
                continue;
            }
            Some(b'_') => (1, from < text.len()),
            Some(b'\\') if at + 1 < pattern.len() => (2, text.get(from) == Some(&pattern[at + 1])),
            Some(byte) => (1, text.get(from) == Some(byte)),
            None => (0, from == text.len()),
        };
        if fits && step == 0 {
            return true;
        }
        if fits {
            at += step;
            from += 1;
            continue;
        }
        match &mut again {
            Some((behind, next)) if *next < text.len() => {
                *next += 1;
                (at, from) = (*behind, *next);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_patterns_and_networks() {
        for (pattern, peer) in [
            ("localhost", "LOCALHOST"),
            ("%", "10.0.0.1"),
            ("", "10.0.0.1"),
            ("10.0.%", "10.0.0.1"),
            ("10.0.0._", "10.0.0.1"),
            ("%.example.com", "db.Example.com"),
            ("192.168.1.0/255.255.255.0", "192.168.1.77"),
        ] {
            assert!(host_matches(pattern, peer), "{pattern} {peer}");
        }
        for (pattern, peer) in [
            ("localhost", "127.0.0.1"),
            ("10.0.%", "10.1.0.1"),
            ("10.0.0._", "10.0.0.12"),
            ("192.168.1.0/255.255.255.0", "192.168.2.77"),
            ("192.168.1.0/255.255.255.0", "localhost"),
        ] {
            assert!(!host_matches(pattern, peer), "{pattern} {peer}");
        }
    }

    #[test]
    fn databases_have_wildcards_that_a_backslash_makes_plain() {
        assert!(database_matches("test\\_%", "test_a") && !database_matches("test\\_%", "testa"));
        assert!(database_matches("a%b%c", "axxbyybc") && !database_matches("a%b%c", "axxbyyb"));
        assert!(database_matches("%", "") && database_matches("", "") && !database_matches("", "a"));
        assert!(!database_matches("Test", "test"));
    }

    #[test]
    fn the_narrowest_pattern_comes_first() {
        let mut patterns = ["%", "10.0.%", "localhost", "10.%", "", "10.0.0.1"];
        patterns.sort_by_key(|pattern| narrowness(pattern));
        assert_eq!(patterns, ["localhost", "10.0.0.1", "10.0.%", "10.%", "%", ""]);
    }
}

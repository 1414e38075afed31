//! `proxy_protocol_networks`: the proxies that may say where their clients are.

use std::net::IpAddr;

/// One entry of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Network {
    /// `*`
    Everything,
    /// `localhost`: the unix socket.
    UnixSocket,
    /// An address, and how many of its first bits count.
    Addresses(IpAddr, u32),
}

/// A list of networks: addresses, perhaps with a length (`10.0.0.0/8`), `localhost` for the unix socket, and
/// `*` for all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// Reads the list, whose entries stand between commas or blanks.
    ///
    /// # Errors
    /// The entry that is none.
    pub fn parse(text: &str) -> Result<Networks, &str> {
        let entries = text.split([',', ' ', '\t']).filter(|entry| !entry.is_empty());
        entries.map(|entry| network(entry).ok_or(entry)).collect::<Result<Vec<_>, _>>().map(Networks)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a proxy at this address is in the list. `None` is the unix socket.
    pub fn contain(&self, proxy: Option<IpAddr>) -> bool {
        self.0.iter().any(|network| match (network, proxy) {
            (Network::Everything, _) | (Network::UnixSocket, None) => true,
            (Network::Addresses(address, bits), Some(proxy)) => {
                let proxy = proxy.to_canonical();
                let differ = (bits_of(*address) ^ bits_of(proxy)).leading_zeros();
                address.is_ipv4() == proxy.is_ipv4() && differ >= *bits
            }
            (Network::UnixSocket, Some(_)) | (Network::Addresses(..), None) => false,
        })
    }
}

fn network(entry: &str) -> Option<Network> {
    match entry {
        "*" => return Some(Network::Everything),
        "localhost" => return Some(Network::UnixSocket),
        _ => {}
    }
    let (address, bits) = match entry.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse().ok()?)),
        None => (entry, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(bits_max);
    (bits <= bits_max).then_some(Network::Addresses(address, bits))
}

/// The bits of an address, from the highest one on.
fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96 | u128::from(u32::MAX),
        IpAddr::V6(address) => u128::from(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_addresses_of_its_networks() {
        for (list, inside, outside) in [
            ("10.0.0.0/8, ::1", &["10.255.0.1", "::1", "::ffff:10.1.1.1"][..], &["11.0.0.0", "::2"][..]),
            ("192.0.2.7", &["192.0.2.7"], &["192.0.2.6"]),
            ("0.0.0.0/0", &["1.2.3.4"], &["::1"]),
            ("2001:db8::/32", &["2001:db8:1::1"], &["2001:db9::1", "32.1.13.184"]),
            ("*", &["1.2.3.4", "::1"], &[]),
            ("localhost", &[], &["127.0.0.1", "::1"]),
            ("", &[], &["127.0.0.1"]),
        ] {
            let networks = Networks::parse(list).unwrap();
            let has = |address: &&str| networks.contain(Some(address.parse().unwrap()));
            assert!(inside.iter().all(has) && !outside.iter().any(has), "{list}");
            assert_eq!(networks.contain(None), matches!(list, "*" | "localhost"), "{list}");
        }
        for (list, near) in
            [("nonsense", "nonsense"), ("::1,10.0.0.1/33", "10.0.0.1/33"), ("1.2.3.4;::1", "1.2.3.4;::1")]
        {
            assert_eq!(Networks::parse(list), Err(near));
        }
    }
}

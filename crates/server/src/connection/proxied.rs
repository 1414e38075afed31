//! Connections through a proxy, which says where the client is.

use super::{Channel, End};
use sql::variables::Networks;
use sql::{ErrorKind, SqlError};
use wire::proxy::{Beginning, ProxiedClient, beginning};

/// Reads the header of a proxy, if the client's first bytes are one. The greeting has been sent by then,
/// because clients that come without a proxy wait for it.
///
/// # Errors
/// 1105 for a header that is none, or from an address that is not among the proxies.
pub(super) fn read_header(networks: &str, channel: &mut Channel) -> Result<(), End> {
    let refused = |text: String| End::Refused(SqlError::new(ErrorKind::Unknown, text));
    let networks = match Networks::parse(networks) {
        Ok(networks) if !networks.is_empty() => networks,
        _ => return Ok(()),
    };
    let mut received = Vec::new();
    let header = loop {
        match beginning(&received) {
            Ok(Beginning::Unknown) => {}
            Ok(Beginning::Packet) => {
                channel.reader.feed(&received);
                return Ok(());
            }
            Ok(Beginning::Header { bytes, client }) => {
                channel.reader.feed(&received[bytes..]);
                break client;
            }
            Err(_) => return Err(refused("Failed to parse proxy header".to_owned())),
        }
        channel.hurry()?;
        channel.receive()?;
        received.extend_from_slice(&channel.reader.take_rest());
    };
    let entry = &channel.output.entry;
    if !networks.contain(entry.peer().parse().ok()) {
        return Err(refused(format!("Proxy header is not accepted from {}", entry.peer())));
    }
    match header {
        ProxiedClient::Proxy => {}
        ProxiedClient::Local => entry.set_proxied("localhost".to_owned()),
        ProxiedClient::At(address) => entry.set_proxied(address.to_string()),
    }
    Ok(())
}

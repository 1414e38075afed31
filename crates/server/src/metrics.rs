//! `--metrics-address`: what monitoring systems ask for, `GET /metrics` in Prometheus's text format, version 0.0.4.
//!
//! One thread answers one request after the other. What it reads are the counters that SHOW STATUS shows; nothing is counted for it alone but
//! the times of commands, by each connection for itself.

mod figures;
mod http;
mod page;

use crate::listeners::{Address, Event, Listeners};
use crate::shared::Shared;
use base::sync::{Arc, thread};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Answers until dropped.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    address: SocketAddr,
    wake: UnixStream,
    thread: Option<thread::JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at `address`, a host and a port; answers from [`MetricsServer::start`] on.
    pub fn listen(address: &str) -> Result<Listeners, String> {
        let wrong = || format!("--metrics-address={address}: expected HOST:PORT");
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        // An IPv6 address stands in brackets.
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let mut listeners = Listeners::default();
        listeners.listen_tcp(host, port).map_err(|error| format!("--metrics-address={address}: {error}"))?;
        Ok(listeners)
    }

    pub fn start(listeners: Listeners, shared: Arc<Shared>) -> io::Result<MetricsServer> {
        let address = listeners.addresses().into_iter().find_map(|address| match address {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) => None,
        });
        let address = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let (stop, wake) = UnixStream::pair()?;
        let thread = thread::Builder::new()
            .name("metrics".to_string())
            .spawn(move || answer_all(&listeners, &stop, &shared))?;
        Ok(MetricsServer { address, wake, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        let _ = (&self.wake).write(b"s");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer_all(listeners: &Listeners, stop: &UnixStream, shared: &Shared) {
    loop {
        match listeners.wait(stop) {
            Event::Connection(stream, _) => http::answer(&stream, || figures::page(shared)),
            Event::Stop => return,
            // No file descriptors, most likely: wait for some to be closed.
            Event::Failed(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

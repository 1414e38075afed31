//! `--metrics-address`: answers `GET /metrics` for monitoring systems, in Prometheus's text format, version
//! 0.0.4.
//!
//! Each request has a thread, so that no request waits for another one that hangs. The figures are the
//! counters of SHOW STATUS. Only the times of commands are counted for this page alone, by each connection
//! for itself.

mod figures;
mod http;
mod page;

use crate::listeners::{Address, Event, Listeners};
use crate::shared::Shared;
use crate::stream::{Door, Stream};
use base::sync::{Arc, thread};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The most requests that are answered at a time. If one more comes, the oldest is cut off.
const REQUESTS_MAX: usize = 16;

/// Answers requests until it is dropped.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    address: SocketAddr,
    wake: UnixStream,
    thread: Option<thread::JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at `address`, which is a host and a port. Requests are answered from [`MetricsServer::start`]
    /// on.
    ///
    /// # Errors
    /// The address is not of this form, or it cannot be listened at.
    pub(crate) fn listen(address: &str) -> Result<Listeners, String> {
        let wrong = || format!("--metrics-address={address}: expected HOST:PORT");
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        // An IPv6 address stands in brackets.
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let mut listeners = Listeners::default();
        listeners
            .listen_tcp(host, port, Door::Main)
            .map_err(|error| format!("--metrics-address={address}: {error}"))?;
        Ok(listeners)
    }

    pub(crate) fn start(listeners: Listeners, shared: Arc<Shared>) -> io::Result<MetricsServer> {
        let address = listeners.addresses().into_iter().find_map(|address| match address {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) | Address::ExtraTcp(_) => None,
        });
        let address = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let (stop, wake) = UnixStream::pair()?;
        let thread = thread::Builder::new()
            .name("metrics".to_string())
            .spawn(move || answer_all(&listeners, &stop, &shared))?;
        Ok(MetricsServer { address, wake, thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
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

fn answer_all(listeners: &Listeners, stop: &UnixStream, shared: &Arc<Shared>) {
    let mut requests: Vec<Request> = Vec::new();
    loop {
        let event = listeners.wait(stop);
        requests.retain(|request| !request.thread.is_finished());
        match event {
            Event::Connection(stream, ..) => {
                if requests.len() >= REQUESTS_MAX {
                    requests.remove(0).cut();
                }
                // If no thread can be started, the connection is closed, and the monitoring system tries
                // again.
                requests.extend(Request::answer(stream, shared.clone()).ok());
            }
            Event::Stop => return requests.into_iter().for_each(Request::cut),
            // Most likely there are no file descriptors left: wait until some are closed.
            Event::Failed(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// A request under way.
struct Request {
    stream: Arc<Stream>,
    thread: thread::JoinHandle<()>,
}

impl Request {
    fn answer(stream: Stream, shared: Arc<Shared>) -> io::Result<Request> {
        let stream = Arc::new(stream);
        let own = stream.clone();
        let thread = thread::Builder::new()
            .name("metrics request".to_string())
            .spawn(move || http::answer(&own, || figures::page(&shared)))?;
        Ok(Request { stream, thread })
    }

    /// Closes the connection and waits for the thread.
    fn cut(self) {
        self.stream.close();
        let _ = self.thread.join();
    }
}

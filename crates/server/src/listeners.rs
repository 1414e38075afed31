//! The sockets that clients connect to.

use crate::options::SocketAccess;
use crate::stream::{Door, Stream};
use rustix::event::{PollFd, PollFlags, poll};
use std::fmt;
use std::fs::Permissions;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
    /// `extra_port`.
    ExtraTcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix socket {}", path.display()),
            Address::Tcp(address) => write!(f, "TCP {address}"),
            Address::ExtraTcp(address) => write!(f, "extra TCP {address}"),
        }
    }
}

/// Why a socket cannot be listened at.
#[derive(Debug)]
pub(crate) struct ListenError(String);

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Gives the file of the socket its owner and its permissions.
fn give(path: &Path, access: SocketAccess) -> io::Result<()> {
    if access.user.is_some() || access.group.is_some() {
        std::os::unix::fs::lchown(path, access.user, access.group)?;
    }
    std::fs::set_permissions(path, Permissions::from_mode(access.mode))
}

/// Listens until it is dropped. Then its socket file is removed.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    unix: Option<(UnixListener, PathBuf)>,
    tcp: Vec<(TcpListener, Door)>,
}

/// What woke [`Listeners::wait`].
pub(crate) enum Event {
    Connection(Stream, String, Door),
    Stop,
    /// Accepting failed, perhaps because the process has no file descriptors left.
    Failed(io::Error),
}

impl Listeners {
    pub(crate) fn listen_unix(&mut self, path: &Path, access: SocketAccess) -> Result<(), ListenError> {
        let error = |why: String| ListenError(format!("cannot listen at socket {}: {why}", path.display()));
        remove_stale(path).map_err(error)?;
        let listener = UnixListener::bind(path).map_err(|source| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match folder {
                Some(folder) if !folder.is_dir() => error(format!("there is no folder {}", folder.display())),
                _ => error(source.to_string()),
            }
        })?;
        listener.set_nonblocking(true).map_err(|source| error(source.to_string()))?;
        self.unix = Some((listener, path.to_path_buf()));
        // On an error the drop of `self` removes the file.
        give(path, access).map_err(|source| error(format!("its mode or owner: {source}")))
    }

    /// `bind` is an address, a host name, or `*` for all addresses. Port 0 takes a free port.
    pub(crate) fn listen_tcp(&mut self, bind: &str, port: u16, door: Door) -> Result<(), ListenError> {
        let error =
            |why: String| ListenError(format!("cannot listen at TCP address {bind}, port {port}: {why}"));
        let addresses: Vec<SocketAddr> = match bind {
            "*" => vec![SocketAddr::from(([0, 0, 0, 0], port))],
            _ => (bind, port).to_socket_addrs().map_err(|source| error(source.to_string()))?.collect(),
        };
        let address = addresses.first().ok_or_else(|| error("the name has no address".to_string()))?;
        let listener = TcpListener::bind(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => error(
                "the port is in use by another process; choose one with --port, or 0 for any".to_string(),
            ),
            _ => error(source.to_string()),
        })?;
        listener.set_nonblocking(true).map_err(|source| error(source.to_string()))?;
        self.tcp.push((listener, door));
        Ok(())
    }

    pub(crate) fn addresses(&self) -> Vec<Address> {
        let unix = self.unix.iter().map(|(_, path)| Address::Unix(path.clone()));
        let tcp = self.tcp.iter().filter_map(|(listener, door)| {
            let address = listener.local_addr().ok()?;
            Some(if *door == Door::Main { Address::Tcp(address) } else { Address::ExtraTcp(address) })
        });
        unix.chain(tcp).collect()
    }

    /// The TCP port, if there is one.
    pub(crate) fn port(&self) -> Option<u16> {
        let (main, _) = self.tcp.iter().find(|(_, door)| *door == Door::Main)?;
        Some(main.local_addr().ok()?.port())
    }

    /// Waits for a client, or until `stop` has a byte or is closed.
    pub(crate) fn wait(&self, stop: &UnixStream) -> Event {
        loop {
            let mut fds = vec![PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
            fds.extend(
                self.unix.iter().map(|(unix, _)| PollFd::from_borrowed_fd(unix.as_fd(), PollFlags::IN)),
            );
            fds.extend(self.tcp.iter().map(|(tcp, _)| PollFd::from_borrowed_fd(tcp.as_fd(), PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Event::Failed(errno.into()),
            }
            if !fds[0].revents().is_empty() {
                return Event::Stop;
            }
            match self.accept() {
                Some(event) => return event,
                // The client went away before it was accepted.
                None => continue,
            }
        }
    }

    fn accept(&self) -> Option<Event> {
        if let Some((unix, _)) = &self.unix {
            match unix.accept() {
                Ok((stream, _)) => {
                    return Some(accepted(Stream::unix(stream), "localhost".to_string(), Door::Main));
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Some(Event::Failed(error)),
            }
        }
        for (tcp, door) in &self.tcp {
            match tcp.accept() {
                Ok((stream, peer)) => {
                    return Some(accepted(Stream::tcp(stream), peer.ip().to_string(), *door));
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Some(Event::Failed(error)),
            }
        }
        None
    }
}

fn accepted(stream: io::Result<Stream>, host: String, door: Door) -> Event {
    match stream {
        Ok(stream) => Event::Connection(stream, host, door),
        Err(error) => Event::Failed(error),
    }
}

/// True for errors of one client that went away, which are no errors of the listener.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

impl Drop for Listeners {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.unix {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket file that a killed server left behind. It is an error if a server listens at the socket,
/// or if the file is no socket.
fn remove_stale(path: &Path) -> Result<(), String> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err("the file exists and is not a socket".to_string());
    }
    match UnixStream::connect(path) {
        Ok(_) => Err("another server listens there".to_string()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| format!("cannot remove the stale socket: {error}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

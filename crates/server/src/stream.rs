//! A socket of either family, read and written through shared references.

use base::phases::{self, Phase};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A client's socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// How much is still read from a client whose connection ends, and for how long.
const DRAIN_BYTES_MAX: usize = 1 << 20;
const DRAIN_WAIT: Duration = Duration::from_millis(200);

impl Stream {
    pub(crate) fn unix(stream: UnixStream) -> io::Result<Stream> {
        stream.set_nonblocking(false)?;
        Ok(Stream::Unix(stream))
    }

    pub(crate) fn tcp(stream: TcpStream) -> io::Result<Stream> {
        stream.set_nonblocking(false)?;
        // An answer is one write, so waiting for more bytes would only delay it.
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    pub(crate) fn read(&self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&mut &*stream).read(space),
            Stream::Tcp(stream) => (&mut &*stream).read(space),
        }
    }

    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let _sending = phases::enter(Phase::Network);
        match self {
            Stream::Unix(stream) => (&mut &*stream).write_all(bytes),
            Stream::Tcp(stream) => (&mut &*stream).write_all(bytes),
        }
    }

    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub(crate) fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match self {
            Stream::Unix(stream) => stream.set_write_timeout(timeout),
            Stream::Tcp(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// True if there are bytes to read, or the end of the stream, before `timeout`.
    pub(crate) fn wait_readable(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }

    /// The user at the other end of a unix socket.
    pub(crate) fn peer_uid(&self) -> Option<u32> {
        match self {
            Stream::Unix(stream) => {
                rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.uid.as_raw())
            }
            Stream::Tcp(_) => None,
        }
    }

    fn shut_down(&self, what: Shutdown) {
        // An error means that the other side has gone already. Then nothing is left to do.
        let _ = match self {
            Stream::Unix(stream) => stream.shutdown(what),
            Stream::Tcp(stream) => stream.shutdown(what),
        };
    }

    /// Readers of this socket see its end. What is written still arrives.
    pub(crate) fn shut_down_reading(&self) {
        self.shut_down(Shutdown::Read);
    }

    /// Closes both directions: reading sees the end, and writing fails.
    pub(crate) fn close(&self) {
        self.shut_down(Shutdown::Both);
    }

    /// Ends the writing side, and reads what the client still sends, within limits.
    pub(crate) fn drain(&self) {
        self.shut_down(Shutdown::Write);
        if self.set_read_timeout(DRAIN_WAIT).is_err() {
            return;
        }
        let mut space = [0; 16 << 10];
        let mut drained = 0;
        while drained < DRAIN_BYTES_MAX {
            match self.read(&mut space) {
                Ok(0) | Err(_) => return,
                Ok(count) => drained += count,
            }
        }
    }
}

//! A client's socket, plain or encrypted, read and written through shared references.

use base::phases::{self, Phase};
use base::sync::{Mutex, OnceLock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion, ServerConnection};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wire::compression::{Deflater, Inflater, Method};
use x509_parser::x509::X509Name;

base::latch_class!(pub CompressionLatch, "compression of a connection");
base::latch_class!(pub EncryptionLatch, "encryption of a connection");

/// Which limit a connection counts against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Door {
    /// `max_connections`.
    Main,
    /// `extra_max_connections`: connections by `extra_port`.
    Extra,
}

/// A client's socket, and its encryption and compression from the moments on when the client asks for them.
///
/// The connection's own thread alone reads and writes. Others may shut the socket down, which needs no
/// latch: so the latches are free whenever that thread comes.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    encryption: OnceLock<Box<Encryption>>,
    compression: OnceLock<Box<Mutex<Compression, CompressionLatch>>>,
}

/// Both directions of a compressed connection.
#[derive(Debug)]
struct Compression {
    inflater: Inflater,
    deflater: Deflater,
    /// The number of the next frame to be sent.
    sequence: u8,
}

type Encryption = Mutex<ServerConnection, EncryptionLatch>;

#[derive(Debug)]
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// What is known of an encrypted connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encrypted {
    pub version: ProtocolVersion,
    pub cipher: CipherSuite,
    /// By a ticket of an earlier connection.
    pub resumed: bool,
}

/// The names in a client's certificate, its own and that of the authority, as OpenSSL writes them:
/// `/C=DE/CN=heron`.
#[derive(Default)]
pub(crate) struct PeerNames {
    pub issuer: String,
    pub subject: String,
}

/// How much is still read from a client whose connection ends, and for how long.
const DRAIN_BYTES_MAX: usize = 1 << 20;
const DRAIN_WAIT: Duration = Duration::from_millis(200);

/// How much is encrypted before it is sent: a few records of 16 KiB.
const ENCRYPTED_BYTES: usize = 64 << 10;

impl Read for &Socket {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).read(space),
            Socket::Tcp(stream) => (&mut &*stream).read(space),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    pub(crate) fn unix(stream: UnixStream) -> io::Result<Stream> {
        stream.set_nonblocking(false)?;
        Ok(Stream::plain(Socket::Unix(stream)))
    }

    pub(crate) fn tcp(stream: TcpStream) -> io::Result<Stream> {
        stream.set_nonblocking(false)?;
        // An answer is one write, so waiting for more bytes would only delay it.
        stream.set_nodelay(true)?;
        Ok(Stream::plain(Socket::Tcp(stream)))
    }

    fn plain(socket: Socket) -> Stream {
        Stream { socket, encryption: OnceLock::new(), compression: OnceLock::new() }
    }

    /// Encrypts everything from here on. `early`: bytes of the client's that have been read already. The
    /// handshake is still to be done: see [`Stream::handshake_step`].
    pub(crate) fn encrypt(&self, mut connection: ServerConnection, mut early: &[u8]) -> io::Result<()> {
        while !early.is_empty() {
            connection.read_tls(&mut early)?;
            process(&mut connection, &self.socket)?;
        }
        self.encryption
            .set(Box::new(Mutex::of_class(connection)))
            .map_err(|_| io::Error::other("the connection is encrypted already"))
    }

    /// Compresses everything from here on, and expects the client to do the same.
    pub(crate) fn compress(&self, method: Method) {
        let (inflater, deflater) = (Inflater::new(method), Deflater::new(method));
        // A client that changes its user is compressed already.
        let _ =
            self.compression.set(Box::new(Mutex::of_class(Compression { inflater, deflater, sequence: 0 })));
    }

    /// True if a few bytes can be sent now, without waiting for the client.
    pub(crate) fn is_writable(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.fd(), PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::OUT)
    }

    /// Goes on with the handshake of TLS by one message of the client's. True if it is over.
    pub(crate) fn handshake_step(&self) -> io::Result<bool> {
        let Some(encryption) = self.encryption.get() else { return Ok(true) };
        let mut connection = encryption.lock();
        send(&mut connection, &self.socket)?;
        if !connection.is_handshaking() {
            return Ok(true);
        }
        if !receive(&mut connection, &self.socket)? {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the client left during the TLS handshake",
            ));
        }
        send(&mut connection, &self.socket)?;
        Ok(!connection.is_handshaking())
    }

    /// `None` if the connection is not encrypted.
    pub(crate) fn encrypted(&self) -> Option<Encrypted> {
        let connection = self.encryption.get()?.lock();
        Some(Encrypted {
            version: connection.protocol_version()?,
            cipher: connection.negotiated_cipher_suite()?.suite(),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
        })
    }

    /// `None` if the client has shown no certificate.
    pub(crate) fn peer_names(&self) -> Option<PeerNames> {
        let connection = self.encryption.get()?.lock();
        let certificate = connection.peer_certificates()?.first()?;
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
        Some(PeerNames { issuer: one_line(parsed.issuer()), subject: one_line(parsed.subject()) })
    }

    /// True if nobody can listen: the connection is encrypted, or does not leave the machine.
    pub(crate) fn is_secure(&self) -> bool {
        matches!(self.socket, Socket::Unix(_)) || self.encryption.get().is_some()
    }

    pub(crate) fn read(&self, space: &mut [u8]) -> io::Result<usize> {
        let Some(compression) = self.compression.get() else {
            return self.read_frames(space);
        };
        let Compression { inflater, sequence, .. } = &mut *compression.lock();
        while !inflater.has_plain() {
            let count = self.read_frames(inflater.space())?;
            if count == 0 {
                return Ok(0);
            }
            let malformed = |error: wire::Malformed| io::Error::new(io::ErrorKind::InvalidData, error.what);
            inflater.received(count).map_err(malformed)?;
            *sequence = inflater.next_sequence();
        }
        Ok(inflater.read(space))
    }

    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let _sending = phases::enter(Phase::Network);
        let Some(compression) = self.compression.get() else {
            return self.write_frames(bytes);
        };
        let Compression { deflater, sequence, .. } = &mut *compression.lock();
        self.write_frames(deflater.frames(bytes, sequence))
    }

    /// Reads what is not decompressed yet.
    fn read_frames(&self, space: &mut [u8]) -> io::Result<usize> {
        let Some(encryption) = self.encryption.get() else {
            return (&self.socket).read(space);
        };
        let mut connection = encryption.lock();
        loop {
            match connection.reader().read(space) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The client closed without a farewell of TLS, as many do.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            receive(&mut connection, &self.socket)?;
            send(&mut connection, &self.socket)?;
        }
    }

    fn write_frames(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(encryption) = self.encryption.get() else {
            return (&self.socket).write_all(bytes);
        };
        let mut connection = encryption.lock();
        for part in bytes.chunks(ENCRYPTED_BYTES) {
            let mut part = part;
            while !part.is_empty() {
                let taken = connection.writer().write(part)?;
                part = &part[taken..];
                send(&mut connection, &self.socket)?;
            }
        }
        Ok(())
    }

    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match &self.socket {
            Socket::Unix(stream) => stream.set_read_timeout(timeout),
            Socket::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub(crate) fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match &self.socket {
            Socket::Unix(stream) => stream.set_write_timeout(timeout),
            Socket::Tcp(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// True if there are bytes to read, or the end of the stream, before `timeout`.
    pub(crate) fn wait_readable(&self, timeout: Duration) -> io::Result<bool> {
        if self.compression.get().is_some_and(|compression| compression.lock().inflater.has_plain()) {
            return Ok(true);
        }
        if let Some(encryption) = self.encryption.get() {
            let mut connection = encryption.lock();
            if connection.process_new_packets().map_err(broken)?.plaintext_bytes_to_read() > 0 {
                return Ok(true);
            }
        }
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }

    /// The user at the other end of a unix socket.
    pub(crate) fn peer_uid(&self) -> Option<u32> {
        match &self.socket {
            Socket::Unix(stream) => {
                rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.uid.as_raw())
            }
            Socket::Tcp(_) => None,
        }
    }

    fn shut_down(&self, what: Shutdown) {
        // An error means that the other side has gone already. Then nothing is left to do.
        let _ = match &self.socket {
            Socket::Unix(stream) => stream.shutdown(what),
            Socket::Tcp(stream) => stream.shutdown(what),
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
        if let Some(encryption) = self.encryption.get() {
            let mut connection = encryption.lock();
            connection.send_close_notify();
            // A client that is gone needs no farewell.
            let _ = send(&mut connection, &self.socket);
        }
        self.shut_down(Shutdown::Write);
        if self.set_read_timeout(DRAIN_WAIT).is_err() {
            return;
        }
        let mut space = [0; 16 << 10];
        let mut drained = 0;
        while drained < DRAIN_BYTES_MAX {
            // What it is does not matter, so it stays encrypted.
            match (&self.socket).read(&mut space) {
                Ok(0) | Err(_) => return,
                Ok(count) => drained += count,
            }
        }
    }
}

/// Waits for bytes of the client's and decrypts them. False at the end of the stream.
fn receive(connection: &mut ServerConnection, socket: &Socket) -> io::Result<bool> {
    let received = connection.read_tls(&mut &*socket)?;
    process(connection, socket)?;
    Ok(received > 0)
}

/// Decrypts what has been received.
fn process(connection: &mut ServerConnection, socket: &Socket) -> io::Result<()> {
    connection.process_new_packets().map(drop).map_err(|error| {
        // The client is told why, if it is still there.
        let _ = send(connection, socket);
        broken(error)
    })
}

/// Sends what is encrypted.
fn send(connection: &mut ServerConnection, socket: &Socket) -> io::Result<()> {
    while connection.wants_write() {
        connection.write_tls(&mut &*socket)?;
    }
    Ok(())
}

/// OpenSSL's names for the parts of a certificate's name.
const PARTS: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.46", "dnQualifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// A name as OpenSSL writes it on one line, which is how REQUIRE SUBJECT and ISSUER have it.
fn one_line(name: &X509Name<'_>) -> String {
    let mut line = String::new();
    for attribute in name.iter_attributes() {
        let id = attribute.attr_type().to_id_string();
        let known = PARTS.iter().find(|(known, _)| *known == id);
        line.push('/');
        line.push_str(known.map_or(id.as_str(), |(_, name)| *name));
        line.push('=');
        for byte in attribute.as_slice() {
            match byte {
                b' '..=b'~' => line.push(char::from(*byte)),
                byte => line.push_str(&format!("\\x{byte:02X}")),
            }
        }
    }
    line
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}"))
}

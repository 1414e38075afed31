//! A stream to a server, and the blocking client over it.

use crate::error::{Error, Result};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use wire::client::{ClientError, ConnectOptions, Connection, Encrypted, Encryption};
use wire::constants::capability;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Address {
    Unix(PathBuf),
    Tcp { host: String, port: u16, encryption: Encryption },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<Encrypted<TcpStream>>),
}

impl Socket {
    /// A stream that is not encrypted yet.
    pub(crate) fn connect(address: &Address) -> io::Result<Socket> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
            Address::Tcp { host, port, .. } => {
                let stream = TcpStream::connect((host.as_str(), *port))?;
                // A query is one small packet and waits for its answer.
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

impl Socket {
    fn encrypt(self, encryption: &Encryption, host: &str) -> io::Result<Socket> {
        match self {
            Socket::Tcp(stream) => Ok(Socket::Tls(Box::new(encryption.encrypt(stream, host)?))),
            other => Ok(other),
        }
    }

    /// Another handle of the same connection, to [`Socket::hang_up`] with.
    pub(crate) fn try_clone(&self) -> io::Result<Socket> {
        match self {
            Socket::Unix(stream) => stream.try_clone().map(Socket::Unix),
            Socket::Tcp(stream) => stream.try_clone().map(Socket::Tcp),
            Socket::Tls(stream) => stream.sock.try_clone().map(Socket::Tcp),
        }
    }

    /// Ends the connection while another thread waits for an answer on it.
    pub(crate) fn hang_up(&self) {
        // An error means that the connection has ended already.
        let _ = match self {
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Tls(stream) => stream.sock.shutdown(Shutdown::Both),
        };
    }

    /// True if a read gives bytes although the operating system may have none: they are decrypted already.
    pub(crate) fn holds_bytes(&mut self) -> bool {
        match self {
            Socket::Unix(_) | Socket::Tcp(_) => false,
            // An error comes again with the next read.
            Socket::Tls(stream) => {
                stream.conn.process_new_packets().map_or(true, |state| state.plaintext_bytes_to_read() > 0)
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.read(buffer),
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.write(bytes),
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Unix(_) | Socket::Tcp(_) => Ok(()),
            Socket::Tls(stream) => stream.flush(),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Tls(stream) => stream.sock.as_fd(),
        }
    }
}

/// Address and account of a connection, and the target's name for messages.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub target: String,
    pub address: Address,
    pub user: String,
    pub password: String,
    pub database: Option<String>,
}

/// A blocking client, for everything but the measured queries.
#[derive(Debug)]
pub(crate) struct Client {
    target: String,
    connection: Connection<Socket>,
}

impl Login {
    pub(crate) fn connect(&self) -> Result<Client> {
        let socket = Socket::connect(&self.address)
            .map_err(Error::io(format!("cannot connect to {} at {}", self.target, self.address)))?;
        let options = ConnectOptions {
            user: self.user.clone(),
            password: self.password.clone(),
            database: self.database.clone(),
            is_secure: matches!(self.address, Address::Unix(_)),
            // A file goes out where `load_local` is called, and nowhere else.
            capabilities: capability::CLIENT | capability::LOCAL_FILES,
        };
        let connection = match &self.address {
            Address::Tcp { host, encryption, .. } if *encryption != Encryption::None => {
                Connection::connect_encrypted(socket, &options, |socket| socket.encrypt(encryption, host))
            }
            _ => Connection::connect(socket, &options),
        };
        let connection = connection.map_err(|error| explained(&self.target, "the handshake", error))?;
        Ok(Client { target: self.target.clone(), connection })
    }
}

impl Client {
    /// Runs a statement and gives its rows as text.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>> {
        let result = self.connection.query(sql).map_err(|error| explained(&self.target, sql, error))?;
        Ok(result.to_text())
    }

    /// Runs a statement and forgets what it gives.
    pub(crate) fn run(&mut self, sql: &[u8]) -> Result<()> {
        let result = self.connection.query_summary(sql);
        result.map(drop).map_err(|error| explained(&self.target, &String::from_utf8_lossy(sql), error))
    }

    pub(crate) fn connection(&mut self) -> &mut Connection<Socket> {
        &mut self.connection
    }

    pub(crate) fn into_connection(self) -> Connection<Socket> {
        self.connection
    }
}

/// The error of a client as an error of the lab.
pub(crate) fn explained(target: &str, statement: &str, error: ClientError) -> Error {
    let target = target.to_string();
    match error {
        ClientError::Io(source) => {
            Error::Io { what: format!("{target} went away during {statement:.60}"), source }
        }
        ClientError::Protocol(why) => Error::Protocol { target, why: why.to_string() },
        ClientError::Server(error) => {
            Error::Sql { target, statement: statement.to_string(), code: error.code, message: error.message }
        }
    }
}

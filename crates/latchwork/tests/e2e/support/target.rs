//! One of two servers: what is proven of Latchwork is first shown of MariaDB's InnoDB.

use super::{Latchwork, MariaDb, have, mariadb};
use std::path::Path;
use std::time::Duration;
use wire::client::{ClientError, ConnectOptions, Connection};

/// Whether Latchwork takes part in the tests of transactions: isolation scripts, histories, kills.
pub const LATCHWORK_HAS_TRANSACTIONS: bool = false;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    MariaDb,
    Latchwork,
}

/// The targets whose programs are there; `LATCHWORK_TARGET=latchwork` or `=mariadb` picks one.
pub fn targets() -> Vec<Target> {
    let mut targets = match std::env::var("LATCHWORK_TARGET").as_deref() {
        Ok("mariadb") => vec![Target::MariaDb],
        Ok("latchwork") => vec![Target::Latchwork],
        Ok(other) => panic!("LATCHWORK_TARGET={other}: there are mariadb and latchwork"),
        Err(_) if LATCHWORK_HAS_TRANSACTIONS => vec![Target::MariaDb, Target::Latchwork],
        Err(_) => vec![Target::MariaDb],
    };
    targets.retain(|target| *target != Target::MariaDb || have(mariadb::PROGRAMS));
    targets
}

pub type Client = Connection<std::os::unix::net::UnixStream>;

/// A running server; killed when dropped.
#[derive(Debug)]
pub enum Server {
    MariaDb(MariaDb),
    Latchwork(Latchwork),
}

impl Target {
    pub fn start(self, folder: &Path) -> Server {
        match self {
            Target::MariaDb => Server::MariaDb(MariaDb::start(folder)),
            Target::Latchwork => Server::Latchwork(Latchwork::start(folder, &[])),
        }
    }
}

impl Server {
    pub fn socket(&self) -> &Path {
        match self {
            Server::MariaDb(server) => &server.socket,
            Server::Latchwork(server) => &server.socket,
        }
    }

    /// A connection with autocommit on and no database.
    pub fn connect(&self) -> Client {
        connect(self.socket(), None).unwrap()
    }
}

/// `silence_max`: how long the server may take to answer before that is an error; `None` for ever.
pub fn connect(socket: &Path, silence_max: Option<Duration>) -> Result<Client, ClientError> {
    let stream = std::os::unix::net::UnixStream::connect(socket)?;
    stream.set_read_timeout(silence_max)?;
    Connection::connect(stream, &ConnectOptions::default())
}
